"""The cube against what has bitten others: each test's docstring begins with the symptom it keeps away."""

import json
import multiprocessing
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from predcube.storage import (
    DONE,
    FAILED,
    INFEASIBLE,
    MISSING,
    Axis,
    CubeSchema,
    Receipt,
    StoreError,
    Variable,
    create,
    digest,
    exists,
    generation,
    open_cube,
    place,
    read_attributes,
    read_schema,
    read_tile,
    status_variable,
    tile_states,
    update_attributes,
    worst,
    write_tile,
)
from predcube.storage.schema import RESERVED, check_attributes

WORK = Receipt(cpu_seconds=0.5, wall_seconds=0.75, worker="tester")


def schema(**change: Any) -> CubeSchema:
    parts: dict[str, Any] = {
        "axes": (
            Axis(name="n", values=np.array([20, 40]), chunk=1),
            Axis(name="learner", values=np.array(["stabil", "größte Mühe 🎲"]), chunk=1),
            Axis(name="noise", values=np.array([0.0, 0.1, 0.1 * 3, 0.3]), chunk=2, attributes={"units": "1"}),
            Axis(name="trial", values=np.arange(4), chunk=2),
        ),
        "extra": (Axis(name="delta_epsilon", values=np.array([0.0, 0.5, 1.0]), chunk=3),),
        "variables": (
            Variable(name="error", dtype="float64", attributes={"units": "1", "long_name": "error"}),
            Variable(name="delta", dtype="float64", extra=("delta_epsilon",)),
            status_variable("error_status", "how the trial ended"),
            status_variable("delta_status", "how the trial ended"),
            status_variable("status", "the worst of them"),
        ),
        "attributes": {"spec": "name = 'x'", "answer": 42},
    }
    return CubeSchema(**(parts | change))


def filled(cube: CubeSchema, key: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng([7, *key])
    return {
        v.name: rng.random(cube.shape(v)) if v.dtype == "float64" else np.full(cube.shape(v), DONE, np.uint8)
        for v in cube.variables
    }


def fill(url: str, key: tuple[int, ...], **change: Any) -> None:
    cube = read_schema(url)
    given_ = {"coordinates": cube.coordinates(key), "arrays": filled(cube, key), "receipt": WORK}
    write_tile(url, key, **(given_ | change))


def files(url: str) -> dict[str, bytes]:
    return {str(p.relative_to(url)): p.read_bytes() for p in Path(url).rglob("*") if p.is_file()}


@pytest.fixture
def url(tmp_path: Path) -> str:
    place = str(tmp_path / "cube.zarr")
    create(place, schema())
    return place


def test_schema_comes_back_from_the_store(url: str) -> None:
    made, read = schema(), read_schema(url)
    assert read.tiles == made.tiles == (2, 2, 2, 2)
    assert dict(read.attributes) == dict(made.attributes)
    for ours, theirs in zip((*made.axes, *made.extra), (*read.axes, *read.extra), strict=True):
        assert (ours.name, ours.chunk, dict(ours.attributes)) == (theirs.name, theirs.chunk, dict(theirs.attributes))
        assert ours.values.dtype.kind == theirs.values.dtype.kind
        assert ours.values.tolist() == theirs.values.tolist()
    assert {v.name: v for v in made.variables} == {v.name: v for v in read.variables}


def test_plain_xarray_opens_it_with_types_as_they_were(url: str) -> None:
    """Integer and boolean cells become floats (a _FillValue, a mask), or text an object; consolidation warns."""
    for key in tuple(read_schema(url).keys()):
        fill(url, key)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = xarray.open_datatree(url, engine="zarr", consolidated=False)
        trials = tree["trials"].to_dataset().load()
        tree["ledger"].to_dataset().load()
    assert trials["error"].dims == ("n", "learner", "noise", "trial")
    assert trials["delta"].dims == ("n", "learner", "noise", "trial", "delta_epsilon")
    assert trials["error"].dtype == np.float64
    assert trials["status"].dtype == np.uint8
    assert trials["n"].dtype == trials["trial"].dtype == np.int64
    assert trials["learner"].dtype.kind == "U"
    assert trials["learner"].values.tolist() == ["stabil", "größte Mühe 🎲"]
    assert not any("_FillValue" in v.attrs | v.encoding.get("attributes", {}) for v in trials.variables.values())
    at = {"n": 20, "learner": "stabil", "noise": 0.1 * 3, "trial": 2}
    assert float(trials["error"].sel(at)) == trials["error"].values[0, 0, 2, 2]
    ours = open_cube(url)
    assert ours.equals(tree)
    assert list(ours["trials"].data_vars) == ["delta", "delta_status", "error", "error_status", "status"]
    assert list(ours["trials"].coords) == ["n", "learner", "noise", "trial", "delta_epsilon"]


def test_opening_is_lazy(url: str) -> None:
    assert not open_cube(url)["trials"]["error"].variable._in_memory


def test_unwritten_cells_are_missing_not_zero(url: str) -> None:
    """Unwritten integer and boolean cells read as 0 or False, taken for a value."""
    fill(url, (0, 1, 0, 1))
    trials = open_cube(url)["trials"]
    assert int((trials["status"] == MISSING).sum()) == 64 - 4 * 4 // 4
    assert bool((np.isnan(trials["error"]) == (trials["error_status"] == MISSING)).all())
    assert set(trials["status"].attrs["flag_values"]) == {MISSING, DONE, FAILED, INFEASIBLE}


def test_a_chunk_of_nothing_but_fill_is_stored(url: str) -> None:
    """An all-fill chunk is not stored, so that its file's absence proves nothing; reopening forgets the setting."""
    cube = read_schema(url)
    key = (1, 1, 1, 1)
    arrays = {
        v.name: np.full(cube.shape(v), np.nan if v.dtype == "float64" else INFEASIBLE, v.dtype) for v in cube.variables
    }
    for _ in range(2):  # a rewrite with fill would delete the file
        fill(url, key, arrays=arrays)
        assert (Path(url) / "trials/error/c/1/1/1/1").exists()
        assert (Path(url) / "trials/delta/c/1/1/1/1/0").exists()
    assert not (Path(url) / "ledger/error/c").exists()
    assert tile_states(url, "digests").done == (key,)


@pytest.mark.parametrize(
    ("axis", "labels"),
    [
        ("n", [40]),
        ("n", [20.0]),
        ("learner", ["stabil "]),
        ("noise", [0.0, 0.1 + 1e-17 + 2e-17]),
        ("noise", [0.1, 0.0]),
        ("trial", [0, 2]),
        ("delta_epsilon", [0.0, 0.5]),
    ],
)
def test_labels_must_be_the_cube_s(url: str, axis: str, labels: list[Any]) -> None:
    """A region write accepts data under the wrong label; 0.3 and 0.1 + 0.2 are taken for one."""
    before = files(url)
    given_ = dict(read_schema(url).coordinates((0, 0, 0, 0))) | {axis: np.array(labels)}
    with pytest.raises(StoreError, match=axis):
        fill(url, (0, 0, 0, 0), coordinates=given_)
    assert files(url) == before


@pytest.mark.parametrize(
    "change",
    [
        {"error": np.zeros((1, 1, 2, 2), np.float32)},
        {"error": np.zeros((1, 1, 2, 1))},
        {"status": np.ones((1, 1, 2, 2), np.int64)},
        {"error_status": np.zeros((1, 1, 2, 2), np.uint8)},
        {"error": np.full((1, 1, 2, 2), np.nan)},
        {"error_status": np.ones((1, 1, 2), np.uint8)},
        {"delta": np.full((1, 1, 2, 2, 3), np.nan)},
        {"error_status": np.full((1, 1, 2, 2), FAILED, np.uint8)},
        {"another": np.zeros((1, 1, 2, 2))},
    ],
)
def test_arrays_must_fit_before_anything_is_written(url: str, change: dict[str, np.ndarray]) -> None:
    """1e300 into float32 becomes infinity; NaN is the only sign of something missing."""
    before = files(url)
    cube = read_schema(url)
    with pytest.raises(StoreError, match=r"tile \(0, 0, 0, 0\)"):
        fill(url, (0, 0, 0, 0), arrays=filled(cube, (0, 0, 0, 0)) | change)
    assert files(url) == before


def test_infinity_is_a_value(url: str) -> None:
    cube = read_schema(url)
    arrays = filled(cube, (0, 0, 0, 0)) | {"error": np.full((1, 1, 2, 2), np.inf)}
    fill(url, (0, 0, 0, 0), arrays=arrays)
    assert np.isinf(read_tile(url, (0, 0, 0, 0))["error"]).all()


@pytest.mark.parametrize("key", [(2, 0, 0, 0), (-1, 0, 0, 0), (0, 0, 0), (0, 0, 0, 9)])
def test_a_tile_outside_is_refused(url: str, key: tuple[int, ...]) -> None:
    """A handle opened before a resize elsewhere writes nothing and raises nothing."""
    inside = (0, 0, 0, 0)
    cube = read_schema(url)
    with pytest.raises(StoreError, match="outside"):
        write_tile(url, key, coordinates=cube.coordinates(inside), arrays=filled(cube, inside), receipt=WORK)


def test_a_flipped_bit_is_an_error_not_a_number(url: str) -> None:
    """A flipped bit returns wrong floats: the default codec has no checksum."""
    fill(url, (0, 0, 0, 0))
    chunk = Path(url) / "trials/error/c/0/0/0/0"
    whole, said = chunk.read_bytes(), set()
    right = read_tile(url, (0, 0, 0, 0))["error"]
    for bit in range(8 * len(whole)):
        torn = bytearray(whole)
        torn[bit // 8] ^= 1 << bit % 8
        chunk.write_bytes(torn)
        try:
            read = read_tile(url, (0, 0, 0, 0))["error"]
        except StoreError as e:
            said.add(str(e)[: str(e).index("damaged")])
        else:  # a bit of the header that means nothing
            np.testing.assert_array_equal(read, right)
    chunk.write_bytes(whole)
    assert len(said) == 1
    assert "tile (0, 0, 0, 0): the chunk of 'error'" in said.pop()


def test_a_truncated_chunk_is_an_error(url: str) -> None:
    """A truncated chunk after a kill makes every retry fail."""
    fill(url, (0, 0, 0, 0))
    chunk = Path(url) / "trials/error/c/0/0/0/0"
    for length in (0, 1, chunk.stat().st_size // 2):
        chunk.write_bytes(chunk.read_bytes()[:length])
        with pytest.raises(StoreError, match="recompute"):
            read_tile(url, (0, 0, 0, 0))
    fill(url, (0, 0, 0, 0))
    assert tile_states(url, "digests").done == ((0, 0, 0, 0),)


def _write_column(url: str, column: int, mark: str) -> None:
    cube = read_schema(url)
    for key in tuple(cube.keys()):
        if key[3] == column:
            fill(url, key, generation=mark)


def test_two_processes_write_neighbouring_tiles(url: str) -> None:
    """Cells lost without an error when several processes write regions of one chunk."""
    mark = generation(url)
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_spawned, args=(str(Path(__file__)), url, column, mark)) for column in (0, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    cube = read_schema(url)
    assert tile_states(url, "digests").done == tuple(cube.keys())
    for key in tuple(cube.keys()):
        np.testing.assert_array_equal(read_tile(url, key)["delta"], filled(cube, key)["delta"])


def _spawned(file: str, url: str, column: int, mark: str) -> None:
    # Tests are no package: a spawned process finds this one by its file.
    import runpy

    runpy.run_path(file)["_write_column"](url, column, mark)


def test_a_retry_that_is_cut_short_leaves_the_tile_missing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(url, (0, 0, 0, 0))

    def cut(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(zarr.Array, "__setitem__", cut)
    with pytest.raises(KeyboardInterrupt):
        fill(url, (0, 0, 0, 0))
    monkeypatch.undo()
    assert not tile_states(url, "listing").done


def test_a_store_is_never_made_over_something(url: str, tmp_path: Path) -> None:
    """``mode="w"`` onto the path that is open wipes it."""
    fill(url, (0, 0, 0, 0))
    before = files(url)
    with pytest.raises(StoreError, match="already holds a cube"):
        create(url, schema())
    assert files(url) == before
    foreign = tmp_path / "mine"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("years")
    strange = tmp_path / "strange.zarr"
    zarr.create_group(str(strange), attributes={"a": 1})
    file = tmp_path / "file"
    file.write_text("x")
    for other in (foreign, strange, file, file / "below"):
        with pytest.raises(StoreError) as e:
            create(str(other), schema())
        assert str(other) in str(e.value)
    assert (foreign / "thesis.tex").read_text() == "years"
    assert [p.name for p in foreign.iterdir()] == ["thesis.tex"]
    assert file.read_text() == "x"


def test_reading_makes_nothing(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere.zarr")
    for reader in (open_cube, read_schema, read_attributes, generation, tile_states):
        with pytest.raises(StoreError, match="there is no store"):
            reader(nowhere)
    assert not exists(nowhere)
    assert not Path(nowhere).exists()


@pytest.mark.parametrize("bad", ["", "  ", "memory://x", "s3://bucket/x"])
def test_other_places_are_refused(bad: str) -> None:
    """A store in memory arrives empty on workers."""
    with pytest.raises(StoreError):
        create(bad, schema())


def test_a_file_url_is_a_path(tmp_path: Path) -> None:
    create((tmp_path / "a b.zarr").as_uri(), schema())
    assert read_schema(str(tmp_path / "a b.zarr")).tiles == (2, 2, 2, 2)


class Killed(BaseException):
    pass


def kill_at(monkeypatch: pytest.MonkeyPatch, count: int, *, torn: bool) -> list[str]:
    """From the count-th write of the driver on, nothing is written any more; ``torn``: it leaves half of it and an
    orphan of the store's temporary files."""
    put, written = place.put, []

    def counted(store: Any, key: str, value: bytes) -> None:
        written.append(key)
        if len(written) == count:
            if torn and key != "zarr.json":
                put(store, key, value[: len(value) // 2])
            put(store, f"{key.removesuffix('.json')}.0123abcd.partial", value[:10])
            raise Killed
        put(store, key, value)

    monkeypatch.setattr(place, "put", counted)
    return written


def test_a_creation_that_is_cut_short_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A truncated zarr.json after a kill makes every retry fail; orphan ``.partial`` files stay."""
    for count in range(1, 100):
        url = str(tmp_path / f"{count}.zarr")
        with monkeypatch.context() as patch:
            kill_at(patch, count, torn=bool(count % 3))
            try:
                create(url, schema())
            except Killed:
                pass
            else:
                break
        assert not exists(url)
        if Path(url, "zarr.json").exists():
            with pytest.raises(StoreError, match="cut short"):
                open_cube(url)
        create(url, schema(attributes={"spec": "another"}))
        whole = files(url)
        assert not any(name.endswith(".partial") for name in whole)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            xarray.open_datatree(url, engine="zarr", consolidated=False)
    assert count > 20
    assert read_attributes(url) == {"spec": "name = 'x'", "answer": 42}


def test_attributes_are_set_in_one_write(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two handles lose each other's attribute updates: there is one writer, and one write."""
    written = kill_at(monkeypatch, 0, torn=False)
    update_attributes(url, {"end": "2026-01-01", "spec": "new"})
    assert written == ["zarr.json"]
    assert read_attributes(url) == {"spec": "new", "answer": 42, "end": "2026-01-01"}
    with pytest.raises(ValueError, match="own"):
        update_attributes(url, {"generation": "x"})
    for bad in (float("nan"), None, {"a": 1}, {1}, Path("x"), b"x"):
        with pytest.raises(ValueError, match="end"):
            update_attributes(url, {"end": bad})


def test_attributes_are_plain_json() -> None:
    """NaN, infinity, NumPy scalars, sets or paths in attributes: invalid JSON or a TypeError."""
    given_ = {"a": np.int64(1), "b": np.array([1.5]), "c": (1, 2)}
    assert check_attributes(given_, "x") == {"a": 1, "b": [1.5], "c": [1, 2]}
    assert json.dumps(check_attributes({"a": np.float64(0.5), "b": np.bool_(True)}, "x")) == '{"a": 0.5, "b": true}'
    for bad in (float("inf"), [1.0, float("nan")], np.array([None]), object()):
        with pytest.raises(ValueError, match="x: attribute 'a'"):
            check_attributes({"a": bad}, "x")


@pytest.mark.parametrize("name", ["method", "drop", "tolerance", "a/b", "", "1st", "ä", "a.b", "_x"])
def test_axes_have_names_that_xarray_can_take(name: str) -> None:
    """An axis named ``method`` makes ``.sel(method=…)`` return everything; "a/b" becomes a nested group."""
    with pytest.raises(ValueError, match="axis"):
        Axis(name=name, values=np.array([1]), chunk=1)


def test_every_word_of_xarray_is_reserved() -> None:
    """The list is Xarray's own, as installed."""
    import inspect

    words = set()
    for cls in (xarray.DataArray, xarray.Dataset, xarray.DataTree):
        for name, method in inspect.getmembers(cls, callable):
            if name.startswith("_") or name in {"mro"}:
                continue
            try:
                parameters = inspect.signature(method).parameters.values()
            except (TypeError, ValueError):
                continue
            if any(p.kind is p.VAR_KEYWORD for p in parameters):
                words |= {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    assert words <= RESERVED


@pytest.mark.parametrize(
    ("values", "chunk"),
    [
        (np.array([]), 1),
        (np.array([1, 1]), 1),
        (np.array([0.5, np.nan]), 1),
        (np.array([np.inf]), 1),
        (np.array([1, 2, 3]), 2),
        (np.array([1]), 0),
        (np.array([1], np.uint64), 1),
        (np.array([1], np.float32), 1),
        (np.array([True]), 1),
        (np.array(["auto", 0.1], object), 1),
        (np.array([["a"]]), 1),
        (np.array([-0.0, 0.0]), 1),
    ],
)
def test_values_of_an_axis(values: np.ndarray, chunk: int) -> None:
    """Ragged chunks corrupt on growth; uint64 becomes rounded floats; ``["auto", 0.1]`` as an axis."""
    with pytest.raises(ValueError, match="axis 'a'"):
        Axis(name="a", values=values, chunk=chunk)


def test_parts_of_a_schema_must_fit() -> None:
    n, trial = Axis(name="n", values=np.array([1]), chunk=1), Axis(name="trial", values=np.arange(2), chunk=1)
    for bad in (
        {"axes": (n,)},
        {"axes": (trial, n)},
        {"variables": (Variable(name="N", dtype="float64"),)},
        {"variables": (Variable(name="delta", dtype="float64", extra=("where",)),)},
        {"extra": (Axis(name="n", values=np.array([1]), chunk=1),)},
        {"extra": (Axis(name="e", values=np.array([1, 2]), chunk=1),)},
        {"attributes": {"x": None}},
    ):
        with pytest.raises(ValueError):  # noqa: PT011 (each says its own)
            CubeSchema(**({"axes": (n, trial), "variables": (), "attributes": {}} | bad))
    for bad_variable in ({"dtype": "int64"}, {"name": "a/b"}, {"attributes": {"_FillValue": -1}}):
        with pytest.raises(ValueError, match="variable"):
            Variable(**({"name": "x", "dtype": "float64"} | bad_variable))


@pytest.mark.parametrize(
    "attributes",
    [{"_FillValue": -1}, {"scale_factor": 2.0}, {"dtype": "bool"}, {"units": "seconds"}, {"units": "days since 2000"}],
)
def test_attributes_that_xarray_would_act_upon(attributes: dict[str, Any]) -> None:
    """``_FillValue=-1`` turns counts into floats."""
    for part in (
        lambda: Variable(name="x", dtype="uint8", attributes=attributes),
        lambda: Axis(name="x", values=np.array([1]), chunk=1, attributes=attributes),
    ):
        with pytest.raises(ValueError, match=next(iter(attributes))):
            part()


def test_worst() -> None:
    every = np.array([MISSING, DONE, FAILED, INFEASIBLE], np.uint8)
    assert worst(every, np.full(4, DONE, np.uint8)).tolist() == every.tolist()
    assert worst(every, np.full(4, FAILED, np.uint8)).tolist() == [FAILED] * 4
    assert worst(every, every[::-1]).tolist() == [MISSING, FAILED, FAILED, MISSING]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(width=64), min_size=1, max_size=6), st.integers(0, 5))
def test_a_digest_tells_every_bit_apart(values: list[float], place_: int) -> None:
    array = np.array(values)
    labels = {"n": np.array([1, 2])}
    one = digest({"x": array}, labels)
    bits = array.view(np.uint64).copy()
    bits[place_ % len(bits)] ^= 1
    assert digest({"x": bits.view(np.float64)}, labels) != one
    assert digest({"x": array.astype(">f8")}, labels) == one
    assert digest({"x": np.asfortranarray(array.reshape(1, -1))}, labels) != one
    assert digest({"y": array}, labels) != one
    assert digest({"x": array}, {"n": np.array([1.0, 2.0])}) != one
    assert digest({}, {"x": array, **labels}) != one


def test_a_digest_does_not_depend_on_a_text_s_width() -> None:
    assert digest({}, {"l": np.array(["a"], "<U1")}) == digest({}, {"l": np.array(["a"], "<U9")})
    assert digest({}, {"l": np.array(["a", "b"])}) != digest({}, {"l": np.array(["ab", ""])})
