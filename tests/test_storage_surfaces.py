"""/surfaces: rewritten any number of times, killed at any write, and never a set of arrays that do not fit together."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from zarr.errors import ZarrUserWarning

from predcube.storage import (
    Axis,
    CubeSchema,
    StoreError,
    Variable,
    create,
    open_cube,
    place,
    read_surfaces,
    write_surfaces,
)


def dataset(rows: int = 3, *, scale: float = 1.0, word: bool = True) -> xarray.Dataset:
    n = np.arange(rows) * 20
    data = {
        "error": (
            ("n", "learner"),
            scale * np.arange(rows * 2.0).reshape(rows, 2),
            {"units": "1", "long_name": "error"},
        ),
        "error_count": (("n", "learner"), np.full((rows, 2), int(scale))),
        "smallest_n": (("learner",), np.array([np.nan, 40.0])),
        "smallest_n_status": (
            ("learner",),
            np.array([2, 1], np.uint8),
            {"flag_values": [0, 1, 2], "flag_meanings": "missing reached not_reached"},
        ),
        "reached": (("learner",), np.array([False, True])),
    }
    if word:
        data["kind"] = (("learner",), np.array(["exact", "größer"], object))
    return xarray.Dataset(data, {"n": n, "learner": np.array(["a", "b"])}, {"description": "reduced"})


@pytest.fixture
def url(tmp_path: Path) -> str:
    there = str(tmp_path / "cube.zarr")
    axes = (Axis(name="n", values=np.array([20]), chunk=1), Axis(name="trial", values=np.arange(2), chunk=2))
    create(there, CubeSchema(axes=axes, variables=(Variable(name="error", dtype="float64"),), attributes={}))
    return there


def files(url: str) -> dict[str, bytes]:
    return {str(p.relative_to(url)): p.read_bytes() for p in Path(url).rglob("*") if p.is_file()}


def strict(url: str) -> xarray.Dataset:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return xarray.open_datatree(url, engine="zarr", consolidated=False)["surfaces"].to_dataset().load()


def test_there_and_back(url: str) -> None:
    assert read_surfaces(url) is None
    write_surfaces(url, dataset())
    read = read_surfaces(url)
    assert read is not None
    assert not read["error"].variable._in_memory
    assert read.equals(dataset())
    assert strict(url).equals(read)
    assert {name: v.dtype.kind for name, v in read.variables.items()} == {
        "n": "i", "learner": "U", "error": "f", "error_count": "i", "smallest_n": "f", "smallest_n_status": "u",
        "reached": "b", "kind": "U",
    }  # fmt: skip
    assert read.attrs == {"description": "reduced"}
    assert read["smallest_n_status"].attrs["flag_values"] == [0, 1, 2]


def test_equal_data_give_equal_bytes_and_no_writes(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_surfaces(url, dataset())
    first = files(url)
    shuffled = dataset()[list(reversed(list(dataset().data_vars)))]
    monkeypatch.setattr(place, "put", lambda *a: pytest.fail("nothing changed"))
    write_surfaces(url, shuffled)
    assert files(url) == first


def test_what_is_gone_leaves_nothing(url: str) -> None:
    """A leftover folder would be remarked upon by every reader."""
    write_surfaces(url, dataset())
    write_surfaces(url, dataset(word=False).drop_dims("n"))
    assert sorted(strict(url).variables) == ["learner", "reached", "smallest_n", "smallest_n_status"]
    assert not Path(url, "surfaces", "kind").exists()
    assert not Path(url, "surfaces", "n").exists()


class Killed(BaseException):
    pass


def kill_at(patch: pytest.MonkeyPatch, count: int, *, torn: bool) -> None:
    seen = [0]
    own = {name: getattr(place, name) for name in ("put", "delete", "delete_prefix")}

    def counted(name: str) -> Any:
        def call(store: Any, key: str, *value: bytes) -> None:
            seen[0] += 1
            if seen[0] == count:
                if torn and name == "put":
                    own["put"](store, key, value[0][: len(value[0]) // 2])
                raise Killed
            own[name](store, key, *value)

        return call

    for name in own:
        patch.setattr(place, name, counted(name))


CHANGES = {
    "first": (None, dataset()),
    "values": (dataset(), dataset(scale=2.0)),
    "longer": (dataset(), dataset(5, scale=3.0, word=False)),
}


@pytest.mark.parametrize(("change", "torn"), [("first", False), ("values", False), ("longer", False), ("longer", True)])
def test_killed_at_every_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, change: str, torn: bool
) -> None:
    import shutil

    before, after = CHANGES[change]
    if before is not None:
        write_surfaces(url, before)
    pristine = tmp_path / "pristine"
    shutil.copytree(url, pristine)
    write_surfaces(url, after)
    wanted = files(url)
    for count in range(1, 200):
        shutil.rmtree(url)
        shutil.copytree(pristine, url)
        with monkeypatch.context() as patch:
            kill_at(patch, count, torn=torn)
            try:
                write_surfaces(url, after)
            except Killed:
                pass
            else:
                break
        # Ours sees the old surfaces or none; plain Xarray a part of one state or values of both, all of one shape.
        ours = read_surfaces(url)
        assert ours is None or (before is not None and ours.equals(before))
        if not torn:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ZarrUserWarning)
                plain = xarray.open_datatree(url, engine="zarr", consolidated=False)
                if "surfaces" in plain.children:
                    plain["surfaces"].to_dataset().load()
        write_surfaces(url, after)
        assert files(url) == wanted
        strict(url)
    assert count > 3


def test_torn_documents_do_not_keep_the_trials_shut(url: str) -> None:
    """A truncated ``zarr.json`` after a kill makes every retry fail."""
    write_surfaces(url, dataset())
    for name in ("surfaces/error/zarr.json", "surfaces/zarr.json"):
        Path(url, name).write_bytes(Path(url, name).read_bytes()[:20])
        tree = open_cube(url)
        assert sorted(tree.children) == ["ledger", "trials"]
        assert read_surfaces(url) is None
        write_surfaces(url, dataset())
        assert read_surfaces(url) is not None
    Path(url, "trials/error/zarr.json").write_bytes(b"{")
    with pytest.raises(StoreError, match="damaged"):
        open_cube(url)


def test_large_surfaces_are_never_cut_along_n(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from predcube.storage import surfaces

    monkeypatch.setattr(surfaces, "_LARGEST_CHUNK", 1000)
    data = xarray.Dataset({"error": (("n", "a", "b"), np.random.default_rng(1).random((40, 5, 7)))})
    write_surfaces(url, data)
    read = read_surfaces(url)
    assert read is not None
    assert read["error"].encoding["chunks"][0] == 40
    assert np.prod(read["error"].encoding["chunks"]) * 8 <= 1000
    assert read.equals(data)


@pytest.mark.parametrize(
    "bad",
    [
        xarray.Dataset({"a/b": ("n", [1.0])}),
        xarray.Dataset({"x": ("n", np.array([None], object))}),
        xarray.Dataset({"x": ("n", np.array(["2020-01-01"], "M8[s]"))}),
        xarray.Dataset({"x": ("n", [1.0], {"sd": float("nan")})}),
    ],
    ids=["name", "object", "time", "attribute"],
)
def test_what_cannot_be_stored_changes_nothing(url: str, bad: xarray.Dataset) -> None:
    write_surfaces(url, dataset())
    before = files(url)
    with pytest.raises(ValueError):  # noqa: PT011 (each says its own)
        write_surfaces(url, bad)
    assert files(url) == before


def test_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        write_surfaces(str(tmp_path / "no.zarr"), dataset())
    assert not list(tmp_path.iterdir())
