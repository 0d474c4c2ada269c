"""What predictability sweeps sum up of tables: samples counted by hand, passes shared, results kept to the bit."""

import threading
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyarrow import parquet

from predcube import storage
from predcube.pipeline import stored
from predcube.pipeline.passes import Framed, Reader, Sum, View
from predcube.pipeline.rounds import side_by_side
from predcube.pipeline.samples import Sample, Surveyed
from predcube.pipeline.shelf import Broken, Shelf, name_of
from predcube.storage import Axis, CubeSchema, Variable, moments
from predcube.storage.rows import open_rows
from predcube.tasks import processes, releases
from predcube.tasks.frames import Frame, total_of
from predcube.tasks.releases.surveys import Marginals

VIEW = View(inputs=("x", "y"), queries=("q", "x + y"), column="town", grouped=True, target="t")
NAMES = ("q", "sum")


def table(rows: int, seed: int, *, missing: float = 0.1) -> dict[str, NDArray[Any]]:
    """Columns with holes; the town is None where it is missing."""
    rng = np.random.default_rng(seed)

    def holes(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(rng.random(rows) < missing, np.nan, values)

    town = np.array([None if u < missing else f"t{int(9 * u)}" for u in rng.random(rows)], dtype=object)
    return {
        "x": holes(rng.normal(size=rows)),
        "y": holes(rng.normal(size=rows)),
        "q": holes(rng.integers(0, 2, rows).astype(float)),
        "t": holes(rng.integers(0, 2, rows).astype(float)),
        "town": town,
    }


def written(folder: Path, columns: Mapping[str, NDArray[Any]], group: int = 40) -> str:
    path = folder / "table.parquet"
    arrays = {k: pa.array(v, from_pandas=True) for k, v in columns.items()}
    parquet.write_table(pa.table(arrays), path, row_group_size=group)
    return str(path)


def counted(url: str, view: View = VIEW, names: tuple[str, ...] = NAMES, longest: int = 32) -> Sample:
    ask = Surveyed(view=view, names=names, valued=True)
    [found] = Reader(rows=open_rows(url), longest=longest).read([ask])
    assert found.error is None
    return ask.finished(found.state)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 90))
def test_rows_are_dropped_for_the_first_thing_that_they_lack(
    seed: int, rows: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    columns = table(rows, seed)
    found = counted(written(tmp_path_factory.mktemp("rows"), columns))
    why = {
        "release input x": np.isnan(columns["x"]),
        "release input y": np.isnan(columns["y"]),
        "process column town": np.array([v is None for v in columns["town"]]),
        "target": np.isnan(columns["t"]),
        "query q": np.isnan(columns["q"]),
        "query sum": np.isnan(columns["x"] + columns["y"]),
    }
    wanted: dict[str, int] = {}
    kept = []
    for row in range(rows):
        reason = next((r for r, lacks in why.items() if lacks[row]), None)
        if reason is None:
            kept.append(row)
        else:
            wanted[reason] = wanted.get(reason, 0) + 1
    assert (found.rows, found.total, dict(found.dropped)) == (len(kept), rows, wanted)
    towns = sorted({columns["town"][i] for i in kept})
    assert found.groups is not None
    assert found.groups.labels == tuple(towns)
    assert found.groups.counts.tolist() == [sum(columns["town"][i] == town for i in kept) for town in towns]
    assert (found.queries is not None) == bool(kept)
    if kept and found.queries is not None:
        np.testing.assert_allclose(found.queries.mean[0], columns["q"][kept].mean(), rtol=1e-12)


def test_a_mask_names_the_rows_that_are_dropped_whatever_the_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = table(500, 3)
    url = written(tmp_path, columns)
    views = [
        View(inputs=("x",), queries=("q",)),
        View(inputs=("q",), queries=("x",)),  # the same rows for other reasons
        View(inputs=("x", "y"), queries=("q",)),
        View(inputs=("x",), queries=("CASE WHEN q IS NULL THEN 1 ELSE q END",)),
    ]
    masks = [counted(url, view, ("a",)).mask for view in views]
    assert masks[0] == masks[1]
    assert len(set(masks)) == 3
    assert [counted(url, view, ("a",), longest=7).mask for view in views] == masks
    one_more = {**columns, "x": columns["x"].copy()}
    one_more["x"][np.flatnonzero(~np.isnan(columns["x"]) & ~np.isnan(columns["q"]))[-1]] = np.nan
    assert counted(written(tmp_path, one_more), views[0], ("a",)).mask != masks[0]


def test_frames_hold_the_complete_rows_in_their_order(tmp_path: Path) -> None:
    columns = table(200, 5)
    url = written(tmp_path, columns)
    groups = counted(url).groups
    seen: list[Frame] = []

    class Kept:
        def add(self, other: "Kept") -> "Kept":
            return self

    def keep(frame: Frame) -> Kept:
        seen.append(frame)
        return Kept()

    [found] = Reader(rows=open_rows(url), longest=32).read([Framed(view=VIEW, request=keep, groups=groups)])
    assert found.error is None
    numbers = np.column_stack([columns[name].astype(float) for name in ("x", "y", "q", "t")])
    complete = ~np.isnan(numbers).any(axis=1) & np.array([v is not None for v in columns["town"]])
    np.testing.assert_array_equal(np.concatenate([f.inputs for f in seen]), numbers[complete][:, :2])
    sums = numbers[complete][:, 0] + numbers[complete][:, 1]
    np.testing.assert_array_equal(
        np.concatenate([f.queries for f in seen]), np.column_stack([numbers[complete][:, 2], sums])
    )
    assert groups is not None
    codes = np.concatenate([f.column for f in seen if f.column is not None])
    assert [groups.labels[int(c)] for c in codes] == list(columns["town"][complete])
    members = np.concatenate([f.target for f in seen if f.target is not None])
    np.testing.assert_array_equal(members, numbers[complete][:, 3] == 1)


def test_an_ask_that_fails_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    url = written(tmp_path, table(300, 7, missing=0.0))
    view = View(inputs=("x",), queries=("q",))

    def refuse(frame: Frame) -> Marginals:
        if frame.inputs[0, 0] < 0.5:
            return Marginals.of(frame)
        raise ValueError("x is too large")

    reader = Reader(rows=open_rows(url), longest=16)
    good = Framed(view=view, request=Marginals.of)
    [alone] = reader.read([good])
    bad, beside = reader.read([Framed(view=view, request=refuse), good])
    assert bad == Sum(error="x is too large")
    assert beside.state.mean.tobytes() == alone.state.mean.tobytes()
    [broken] = reader.read([Framed(view=View(inputs=("ln(x - x)",)), request=Marginals.of)])
    assert "ln(x - x)" in str(broken.error)


def frames(seed: int) -> list[Frame]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(400, 2))
    y = (rng.random(400) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)
    rows = np.column_stack([y, x])
    return [Frame(queries=np.empty((100, 0)), inputs=rows[i : i + 100]) for i in range(0, 400, 100)]


RELEASES = {
    "line": releases.build("linear", target="y", features=["a", "b"]),
    "ridge": releases.build("ridge", target="y", features=["a", "b"], l2=0.1),
    "curve": releases.build("logistic", target="y", features=["a", "b"]),
    "mean": releases.build("mean", columns=["y", "a", "b"]),
    "descent": releases.build("gradient_descent", loss="logistic", target="y", features=["a", "b"], steps=4, rate=0.5),
    "stack": releases.build(
        "stack", releases=[{"kind": "mean", "columns": ["y", "a", "b"]}, {"kind": "linear", "target": "y"}]
    ),
}


def test_fits_side_by_side_are_those_that_run_alone_in_as_few_passes_as_the_longest() -> None:
    total = total_of(frames(1))
    passes: list[int] = []

    def read(requests: Mapping[str, Any]) -> dict[str, Sum]:
        passes.append(len(requests))
        return {name: Sum(state=total(request)) for name, request in requests.items()}

    together = side_by_side({name: r.fit for name, r in RELEASES.items()}, read)
    shared = len(passes)
    alone = []
    for name, release in RELEASES.items():
        passes.clear()
        fate = side_by_side({name: release.fit}, read)[name]
        alone.append(len(passes))
        assert stored.encode(fate.result)[0].tobytes() == stored.encode(together[name].result)[0].tobytes()
    assert shared == max(alone)
    assert max(alone) > min(alone)


def test_a_fit_that_fails_ends_alone_and_a_broken_pass_ends_all() -> None:
    total = total_of(frames(2))

    def read(requests: Mapping[str, Any]) -> dict[str, Sum]:
        return {n: Sum(error="the disk is full") if n == "curve" else Sum(state=total(r)) for n, r in requests.items()}

    fates = side_by_side({name: RELEASES[name].fit for name in ("line", "curve")}, read)
    assert fates["curve"].error == "the disk is full"
    assert fates["line"].result.rank == 3

    def broken(requests: Mapping[str, Any]) -> dict[str, Sum]:
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        side_by_side({name: r.fit for name, r in RELEASES.items()}, broken)
    assert threading.active_count() == before


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal to the bit."""
    if is_dataclass(one):
        return type(one) is type(other) and all(
            same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one) if f.init
        )
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    if isinstance(one, tuple):
        return type(other) is tuple and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):  # NumPy's scalars come back as Python's
        return isinstance(other, float) and np.float64(one).tobytes() == np.float64(other).tobytes()
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("name", RELEASES)
def test_fits_and_laws_come_back_to_the_bit(name: str) -> None:
    total = total_of([Frame(queries=f.inputs[:, :1], inputs=f.inputs) for f in frames(3)])
    fitted = RELEASES[name].fit(total)
    again = stored.decode(*stored.encode(fitted))
    assert same(fitted, again)
    shard = processes.build("random_shard", fraction=0.3)
    law = shard.law(total(shard.request(fitted)))
    assert same(law, stored.decode(*stored.encode(law)))
    rows = frames(4)[0].inputs
    assert fitted.moments(rows).tobytes() == again.moments(rows).tobytes()


def test_only_results_of_the_science_are_ever_made() -> None:
    good = {"a": [1, 2.5, None, "b", True, float("inf")], "b": (np.array([1, 2]), np.array([True, False]))}
    again = stored.decode(*stored.encode(good))
    assert same(good["b"], again["b"])
    assert again["a"] == good["a"]
    for made in ("../pathlib:Path", "seeds:stream", "x:y", "gains:NoNoise"):  # the last is declared elsewhere
        text = f'{{"made":"{made}","of":{{}}}}'
        with pytest.raises(ValueError, match="not a stored result"):
            stored.decode(np.zeros(0), text)
    with pytest.raises(TypeError, match="cannot be stored"):
        stored.encode({"a": {1, 2}})
    with pytest.raises(TypeError, match="is no result"):
        stored.encode(View())


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = str(tmp_path / "cube")
    trial = Axis(name="trial", values=np.arange(1), chunk=1)
    storage.create(url, CubeSchema(axes=(trial,), variables=(Variable(name="a", dtype="float64"),), attributes={}))
    return url


def test_entries_are_whole_or_not_there(store: str) -> None:
    assert moments.get_entry(store, "law_a") is None
    moments.put_entry(store, "law_a", np.array([1.0, np.pi]), "about it")
    moments.put_entry(store, "law_b", np.zeros(0), "nothing")
    found = moments.get_entry(store, "law_a")
    assert found is not None
    assert (found[0].tolist(), found[1]) == ([1.0, np.pi], "about it")
    assert moments.entry_names(store) == ("law_a", "law_b")
    empty = moments.get_entry(store, "law_b")
    assert empty is not None
    assert empty[0].shape == (0,)
    document = Path(store, "moments/law_a/zarr.json")
    document.write_text(document.read_text().replace("about it", "about me"))
    assert moments.get_entry(store, "law_a") is None
    moments.put_entry(store, "law_a", np.array([2.0]), "again")
    again = moments.get_entry(store, "law_a")
    assert again is not None
    assert again[0].tolist() == [2.0]
    moments.drop_entries(store, ["law_a"])
    assert moments.entry_names(store) == ("law_b",)


def test_a_shelf_keeps_results_and_errors_by_what_they_depend_on(store: str) -> None:
    assert name_of("law", {"a": 1, "b": [2]}) == name_of("law", {"b": [2], "a": 1})
    assert name_of("law", ["a", "b"]) != name_of("law", ["b", "a"])
    one, other = Shelf(store), Shelf(store)
    one.put("law_a", {"x": 1.5})
    one.put_together({f"sample_{i}": {"rows": i} for i in range(5)})
    assert other.find("law_a") == {"x": 1.5}
    assert other.find("sample_3") == {"rows": 3}
    assert len(moments.entry_names(store)) == 2
    assert other.find("law_b") is None
    one.fail("law_b", "no luck")
    with pytest.raises(Broken, match="no luck"):
        other.find("law_b")
    assert other.has("law_b")
    one.forget_errors(["law_a", "law_b"])
    assert other.find("law_b") is None  # an error is not remembered: another run may have mended it
    assert other.find("law_a") == {"x": 1.5}
    one.fail("law_c", "no luck")
    other.put("law_c", {"x": 2})
    assert one.find("law_c") == {"x": 2}
