"""Growth: killed after every one of its writes and run again, it ends the same; old chunks are never touched."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

from predcube.storage import (
    DONE,
    Axis,
    CubeSchema,
    Receipt,
    StoreError,
    Variable,
    create,
    exists,
    extend,
    generation,
    open_cube,
    place,
    read_attributes,
    read_schema,
    read_surfaces,
    read_tile,
    recover,
    status_variable,
    tile_states,
    write_surfaces,
    write_tile,
)

WORK = Receipt(cpu_seconds=0.5, wall_seconds=0.75, worker="tester")
NEW = {"n": np.array([80, 160]), "learner": np.array(["a much longer label"]), "trial": np.array([4, 5])}
SPEC = {"spec": "grown", "hash": "abc"}


def schema() -> CubeSchema:
    return CubeSchema(
        axes=(
            Axis(name="n", values=np.array([20, 40]), chunk=1, attributes={"long_name": "examples"}),
            Axis(name="learner", values=np.array(["a", "b"]), chunk=1),
            Axis(name="trial", values=np.arange(4), chunk=2),
        ),
        extra=(Axis(name="delta_epsilon", values=np.array([0.0, 1.0]), chunk=2),),
        variables=(
            Variable(name="error", dtype="float64", attributes={"units": "1"}),
            Variable(name="delta", dtype="float64", extra=("delta_epsilon",)),
            status_variable("error_status", "how it ended"),
        ),
        attributes={"spec": "first", "name": "x"},
    )


def fill(url: str, key: tuple[int, ...]) -> None:
    cube = read_schema(url)
    labels = cube.coordinates(key)
    seed = [int(labels["n"][0]), ord(labels["learner"][0][0]), *labels["trial"].tolist()]  # of the values alone
    rng = np.random.default_rng(seed)
    arrays = {
        v.name: rng.random(cube.shape(v)) if v.dtype == "float64" else np.full(cube.shape(v), DONE, np.uint8)
        for v in cube.variables
    }
    write_tile(url, key, coordinates=labels, arrays=arrays, receipt=WORK)


def fill_missing(url: str) -> int:
    missing = tile_states(url).missing
    for key in missing:
        fill(url, key)
    return len(missing)


def surfaces(cube: CubeSchema) -> xarray.Dataset:
    n, learner = cube.axes[0].values, cube.axes[1].values
    return xarray.Dataset(
        {"error": (("n", "learner"), np.add.outer(n, np.arange(len(learner))) * 1.0)}, {"n": n, "learner": learner}
    )


@pytest.fixture
def url(tmp_path: Path) -> str:
    there = str(tmp_path / "cube.zarr")
    create(there, schema())
    fill_missing(there)
    write_surfaces(there, surfaces(read_schema(there)))
    return there


def chunks(url: str) -> dict[str, tuple[bytes, int]]:
    """The bytes and times of what must never be touched: the variables' and the ledger's chunks."""
    own = ("error", "delta", "error_status", "receipt")
    return {
        str(p.relative_to(url)): (p.read_bytes(), p.stat().st_mtime_ns)
        for p in Path(url).rglob("*")
        if p.is_file() and p.parts[-1] != "zarr.json" and set(p.parts) & set(own) and "surfaces" not in p.parts
    }


def documents(url: str) -> dict[str, bytes]:
    return {str(p.relative_to(url)): p.read_bytes() for p in Path(url).rglob("*") if p.is_file()}


def test_several_axes_at_once(url: str) -> None:
    old, before = open_cube(url)["trials"].to_dataset().load(), chunks(url)
    extend(url, NEW, SPEC)
    cube = read_schema(url)
    assert cube.tiles == (4, 3, 3)
    assert [a.values.tolist() for a in cube.axes] == [
        [20, 40, 80, 160],
        ["a", "b", "a much longer label"],
        [0, 1, 2, 3, 4, 5],
    ]
    assert dict(cube.axes[0].attributes) == {"long_name": "examples"}
    assert read_attributes(url) == {"spec": "grown", "hash": "abc", "name": "x"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = xarray.open_datatree(url, engine="zarr", consolidated=False)["trials"].to_dataset().load()
    xarray.testing.assert_identical(new.isel(n=[0, 1], learner=[0, 1], trial=[0, 1, 2, 3]).astype(old.dtypes), old)
    assert tile_states(url, "digests").done == tuple(schema().keys())
    assert fill_missing(url) == 4 * 3 * 3 - 8
    assert len(tile_states(url, "digests").done) == 36
    after = chunks(url)
    assert {name: after[name] for name in before} == before


def test_grown_equals_made_at_once(url: str, tmp_path: Path) -> None:
    extend(url, NEW, SPEC)
    fill_missing(url)
    grown = read_schema(url)
    whole = str(tmp_path / "whole.zarr")
    create(whole, grown)
    fill_missing(whole)
    ours = {k: v for k, v in documents(url).items() if k.startswith("trials/")}
    assert ours == {k: v for k, v in documents(whole).items() if k.startswith("trials/")}


def test_a_worker_of_the_old_shape_writes_into_its_place(url: str, tmp_path: Path) -> None:
    """A handle opened before a resize elsewhere writes nothing and raises nothing."""
    mark = generation(url)
    fill(url, (0, 0, 0))
    extend(url, {"n": np.array([80])})
    assert generation(url) != mark
    cube = read_schema(url)
    new = (2, 0, 0)
    arrays = {v.name: np.full(cube.shape(v), 0.25 if v.dtype == "float64" else DONE, v.dtype) for v in cube.variables}
    with pytest.raises(StoreError, match="outside"):
        write_tile(url, new, coordinates=cube.coordinates(new), arrays=arrays, receipt=WORK, generation=mark)
    write_tile(url, new, coordinates=cube.coordinates(new), arrays=arrays, receipt=WORK, generation=generation(url))
    assert read_tile(url, new)["error"].tolist() == [[[0.25, 0.25]]]


class Killed(BaseException):
    pass


def kill_at(patch: pytest.MonkeyPatch, count: int, how: str) -> None:
    """Nothing is written from the driver's count-th write on. ``torn``: half of that one is, under its own name
    (except the root, which the store renames into place); ``after``: all of it is."""
    put, seen = place.put, [0]

    def counted(store: Any, key: str, value: bytes) -> None:
        seen[0] += 1
        if seen[0] > count:
            raise Killed
        if seen[0] == count:
            if how == "torn" and key != "zarr.json":
                put(store, key, value[: len(value) // 2])
            put(store, f"{key.removesuffix('.json')}.0123abcd.partial", value[:10])
            if how == "after":
                put(store, key, value)
            raise Killed
        put(store, key, value)

    patch.setattr(place, "put", counted)


@pytest.mark.parametrize(("how", "again"), [("torn", "recover"), ("after", "same")])
def test_killed_at_every_write_and_run_again(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, again: str
) -> None:
    """An extension killed midway leaves dimensions of different sizes, and a re-run that infers its progress from the
    store leaves a coordinate [20, 80, 0]."""
    import shutil

    before = chunks(url)
    pristine = tmp_path / "pristine"
    shutil.copytree(url, pristine)  # copystat keeps the times
    extend(url, NEW, SPEC)
    wanted = documents(url)
    reached = 0
    for count in range(1, 100):
        shutil.rmtree(url)
        shutil.copytree(pristine, url)
        with monkeypatch.context() as patch:
            kill_at(patch, count, how)
            try:
                extend(url, NEW, SPEC)
            except Killed:
                reached = count
            else:
                break
        assert exists(url)
        started = b"unfinished" in Path(url, "zarr.json").read_bytes()
        if started:
            for reader in (open_cube, read_schema, tile_states, read_attributes):
                with pytest.raises(StoreError, match="extension was cut short"):
                    reader(url)
        if again == "recover":
            assert recover(url) is started
        if axes_or_none(url) != (4, 3, 3):  # as a driver does: append what is not there yet
            extend(url, NEW, SPEC)
        recover(url)
        assert documents(url) == wanted
        after = chunks(url)
        assert {name: after[name] for name in before} == before
    assert reached > 10


def axes_or_none(url: str) -> tuple[int, ...] | None:
    try:
        return read_schema(url).tiles
    except StoreError:
        return None


def test_surfaces_stay_whole_meanwhile(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old = read_surfaces(url)
    assert old is not None
    old = old.load()
    extend(url, NEW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = xarray.open_datatree(url, engine="zarr", consolidated=False)
    xarray.testing.assert_identical(tree["surfaces"].to_dataset().load(), old)
    write_surfaces(url, surfaces(read_schema(url)))
    new = read_surfaces(url)
    assert new is not None
    assert new.sizes == {"n": 4, "learner": 3}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"trial": [4]}, "append 2"),
        ({"trial": [4, 5, 6]}, "append 2 or 4"),
        ({"n": [40]}, "already holds 40"),
        ({"n": [80, 80]}, "twice"),
        ({"n": [0.5]}, "int64"),
        ({"n": ["80"]}, "int64"),
        ({"learner": [3]}, "cannot be appended"),
        ({"noise": [0.5]}, "no axis 'noise'"),
        ({"delta_epsilon": [2.0, 3.0]}, "no axis 'delta_epsilon'"),
        ({"n": [80], "trial": [4]}, "no multiple"),
    ],
)
def test_what_cannot_grow(url: str, values: dict[str, list[Any]], says: str) -> None:
    """0.5 written into an int64 coordinate becomes 0; appending the same trials twice gives duplicate labels; a
    ragged last chunk is rewritten by the next growth."""
    before = documents(url)
    with pytest.raises(StoreError, match=says):
        extend(url, {name: np.array(new) for name, new in values.items()}, SPEC)
    assert documents(url) == before


def test_nothing_to_recover(url: str) -> None:
    before = documents(url)
    for orphan in (
        "zarr.1.partial",
        "trials/zarr.1.partial",
        "trials/error/zarr.1.partial",
        "surfaces/n/c/0.1.partial",
    ):
        Path(url, orphan).write_bytes(b"x")
    assert not recover(url)
    assert documents(url) == before
    with pytest.raises(StoreError):
        recover(os.path.join(url, "nowhere"))  # noqa: PTH118
    assert not Path(url, "nowhere").exists()


def test_twice_in_a_row(url: str) -> None:
    extend(url, {"n": np.array([80])})
    extend(url, {"n": np.array([5])})
    assert read_schema(url).axes[0].values.tolist() == [20, 40, 80, 5]
    assert generation(url).endswith(".2")
