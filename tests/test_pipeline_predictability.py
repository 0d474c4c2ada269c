"""Predictability sweeps: numbers of plain NumPy; the same bytes whoever reads which part and whatever stops them."""

import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xarray
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from pyarrow import parquet

from predcube import storage
from predcube.pipeline import passes, summaries
from predcube.pipeline.costs import Costs
from predcube.pipeline.execution import Summary, execute, prepare
from predcube.pipeline.failures import BadInput, Interrupted, OtherSweep
from predcube.pipeline.headlines import headlines
from predcube.pipeline.mishaps import error_kinds
from predcube.pipeline.opening import read_surfaces
from predcube.pipeline.planning import plan
from predcube.pipeline.queries import query
from predcube.pipeline.reporting import report
from predcube.pipeline.resuming import reconcile
from predcube.pipeline.shaping import blueprint
from predcube.pipeline.spec import load_spec
from predcube.tasks import predictability

ROWS = 700
SPEC: dict[str, Any] = {
    "name": "small",
    "kind": "predictability",
    "seed": 3,
    "table": {"path": "people.parquet"},
    "query": {"ill": "ill = 1", "old": "age >= 60"},
    "release": {"kind": "mean", "columns": ["age", "weight"]},
    "process": {"kind": "random_shard"},
    "noise": {"kind": "isotropic"},
    "measure": {"quantities": ["n", "p", "sharp", "utility_cost", "dropped_rows"]},
    "sweep": {"process.fraction": [0.1, 0.3, 0.5, 0.9999], "noise.sd": [0.0, 0.05, 0.4]},
}
EVERY: dict[str, Any] = {
    **SPEC,
    "noise": {"kind": "calibrated", "level": 0.5},
    "release": None,
    "process": None,
    "sweep": {
        "release": [
            {"label": "means", "kind": "mean", "columns": ["age", "weight"]},
            {"label": "line", "kind": "linear", "target": "weight", "features": ["age"]},
            {"label": "curve", "kind": "logistic", "target": "ill", "features": ["age", "weight"]},
            {"label": "flat", "kind": "logistic", "target": "one", "features": ["age"]},
        ],
        "process": [
            {"label": "iid", "kind": "iid", "size": 50},
            {"label": "biased", "kind": "weighted", "column": "c", "size": 50},
            {"label": "towns", "kind": "whole_shards", "column": "town", "count": 5},
            {"label": "too many towns", "kind": "whole_shards", "column": "town", "count": 12},
        ],
    },
}


def people(rows: int = ROWS, seed: int = 1) -> dict[str, NDArray[Any]]:
    """Columns that depend on each other; weights of a few are missing."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 90, rows).astype(np.float64)
    weight = 60 + 0.2 * age + rng.normal(0, 9, rows)
    weight[rng.random(rows) < 0.05] = np.nan
    ill = (rng.random(rows) < 0.1 + 0.006 * age).astype(np.int64)
    return {
        "age": age,
        "weight": weight,
        "ill": ill,
        "c": 1 + rng.random(rows),
        "town": np.array([f"t{i}" for i in rng.integers(0, 12, rows)]),
        "one": np.ones(rows, dtype=np.int64),
    }


def write(folder: Path, columns: Mapping[str, NDArray[Any]], *, group: int = 150) -> None:
    table = pa.table({k: pa.array(v, from_pandas=True) for k, v in columns.items()})
    parquet.write_table(table, folder / "people.parquet", row_group_size=group)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table of several parts; the working directory."""
    write(tmp_path, people())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("predcube.storage.rows.PART", 150)
    return tmp_path


def spec_of(base: Mapping[str, Any] = SPEC, **changes: Any) -> dict[str, Any]:
    return {k: v for k, v in {**base, **changes}.items() if v is not None}


def fill(
    url: Path | str,
    spec: Mapping[str, Any] = SPEC,
    *,
    cluster: str = "serial",
    workers: int | None = None,
    chunks: tuple[int, ...] | None = None,
    extend: bool = False,
    retry: bool = False,
) -> Summary:
    """A run that does not measure this machine."""
    standing = reconcile(load_spec(spec), str(url), extend=extend)
    schema = standing.schema
    if schema is None and chunks is not None:
        schema = blueprint(standing.sweep, chunks, {})
    there = None if standing.schema is None else str(url)
    made = plan(standing.sweep, workers=workers or 1, schema=schema, costs=Costs(), url=there)
    return execute(made, str(url), cluster=cluster, workers=workers, extend=extend, retry_failed=retry)


def contents(url: Path | str) -> dict[str, tuple[Any, ...]]:
    """Every array of /trials and /surfaces as bytes."""
    tree = storage.open_cube(str(url))
    found = {}
    for group in ("trials", "surfaces"):
        for name, array in tree[group].to_dataset(inherit=False).variables.items():
            found[f"{group}/{name}"] = (array.dims, array.dtype.str, array.values.tobytes())
    return found


def plain(fraction: float, sd: float, q: NDArray[np.float64], g: NDArray[np.float64]) -> dict[str, float]:
    """Theory F for means under a random shard and isotropic noise, written with NumPy's covariances alone."""
    n_rows = len(q)
    n = round(fraction * n_rows)
    a = n / n_rows
    m, k = n / (1 - a), 1 / ((1 - a) * n)
    both = np.cov(np.column_stack([q, g]).T)
    s1, c, v = both[0, 0], both[0, 1:], both[1:, 1:]
    gain = c @ np.linalg.solve(v + m * sd**2 * np.eye(2), c)
    r = np.sqrt(gain / s1)
    kr = 2 / np.pi * (np.sqrt(1 - r**2) + r * np.arcsin(r))
    return {
        "n": n,
        "p": float(q.mean()),
        "rho2": c @ np.linalg.solve(v, c) / s1,
        "gain": gain,
        "r": r,
        "sharp": k * gain,
        "correlated": 2 * k * s1 * r * kr,
        "cauchy_schwarz": 2 * k * s1 * r,
        "paper": 2 * (1 + np.log(4)) * k * s1 * r,
        "utility_cost": 2 * sd**2,
        "rank": 2.0,
        "dropped_rows": float(ROWS - n_rows),
    }


def test_every_cell_is_what_plain_covariances_give(folder: Path) -> None:
    assert fill("cube", spec_of(measure=None)).status == 0
    cube = storage.open_cube("cube")["trials"].to_dataset(inherit=False)
    columns = people()
    kept = ~np.isnan(columns["weight"])
    g = np.column_stack([columns["age"], columns["weight"]])[kept]
    queries = {"ill": columns["ill"][kept] == 1.0, "old": columns["age"][kept] >= 60}
    seen = 0
    for fraction in (0.1, 0.3, 0.5):
        for sd in (0.0, 0.05, 0.4):
            for name, q in queries.items():
                at = cube.sel(fraction=fraction, sd=sd, query=name).isel(trial=0)
                for quantity, wanted in plain(fraction, sd, q.astype(np.float64), g).items():
                    assert_allclose(float(at[quantity]), wanted, rtol=1e-10, atol=1e-15, err_msg=quantity)
                    seen += 1
    assert seen == 3 * 3 * 2 * 12
    # n = round(.9999·N) = N leaves no row unseen.
    left = cube.sel(fraction=0.9999)
    assert set(left["status"].values.ravel().tolist()) == {storage.INFEASIBLE}
    assert np.isnan(left["sharp"].values).all()
    assert cube["sharp"].dims == ("fraction", "sd", "trial", "query")
    assert cube["utility_cost"].dims == ("fraction", "sd", "trial")


def test_any_number_of_workers_gives_the_same_bytes(folder: Path) -> None:
    first = fill("serial", EVERY)
    assert (first.failed, first.missing) == (3, 0)
    fill("local", EVERY, cluster="local", workers=2)
    assert contents("local") == contents("serial")


def test_any_tiles_give_the_same_bytes(folder: Path) -> None:
    fill("one")
    for number, chunks in enumerate([(2, 1, 1), (4, 3, 1)]):
        fill(f"cut{number}", chunks=chunks)
        assert contents(f"cut{number}") == contents("one")


def test_a_cut_of_the_table_changes_no_more_than_rounding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill("parts", EVERY)
    monkeypatch.setattr("predcube.storage.rows.PART", 2**20)
    monkeypatch.setattr(passes, "longest_block", lambda expressions: 64)
    monkeypatch.setattr("predcube.pipeline.needs.longest_block", lambda expressions: 64)
    (folder / "people.parquet").touch()  # opened anew
    fill("whole", EVERY)
    parts, whole = (storage.open_cube(url)["trials"].to_dataset(inherit=False) for url in ("parts", "whole"))
    for name in ("sharp", "p", "utility_cost"):
        assert_allclose(whole[name].values, parts[name].values, rtol=1e-9, err_msg=name)
    for name in ("status", "n", "dropped_rows"):
        np.testing.assert_array_equal(whole[name].values, parts[name].values, err_msg=name)


def test_what_cannot_be_fitted_fails_with_its_reason_and_the_rest_goes_on(folder: Path) -> None:
    summary = fill("cube", EVERY)
    assert summary.status == 1
    status = read_surfaces("cube")["status"]
    words = dict(zip(status.attrs["flag_values"], status.attrs["flag_meanings"].split(), strict=True))
    found = {
        (str(r), str(p)): words[int(status.sel(release=r, process=p))]
        for r in status["release"].values
        for p in status["process"].values
    }
    for (release, process), word in found.items():
        wanted = "infeasible" if process == "too many towns" else "failed" if release == "flat" else "done"
        assert word == wanted, (release, process)
    [error] = error_kinds("cube")
    assert "release=flat" in error.message
    assert "logistic: target 'one'" in error.message
    page = report("cube")
    assert "count = 12 of 12 shards" in page
    assert "logistic: target &#x27;one&#x27;" in page


def test_failures_are_tried_again_only_where_that_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = contents_of_a_good_run(folder)
    law = summaries.Tables._law

    def lost(self: summaries.Tables, *arguments: Any) -> Any:
        return summaries.Fate(error="the disk was full")

    monkeypatch.setattr(summaries.Tables, "_law", lost)
    assert fill("cube").failed
    monkeypatch.setattr(summaries.Tables, "_law", law)
    assert fill("cube").failed
    assert "the disk was full" in error_kinds("cube")[0].message
    assert not fill("cube", retry=True).failed
    assert contents("cube") == reference


def contents_of_a_good_run(folder: Path) -> dict[str, tuple[Any, ...]]:
    fill("reference")
    return contents("reference")


@pytest.mark.parametrize("entry", [1, 3])
def test_a_run_that_ends_between_entries_goes_on_to_the_same_bytes(
    entry: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill("reference", EVERY)
    from predcube.storage.moments import put_entry as put

    count = 0

    def stopped(*arguments: Any) -> None:
        nonlocal count
        count += 1
        if count > entry:
            raise KeyboardInterrupt
        put(*arguments)

    monkeypatch.setattr("predcube.storage.moments.put_entry", stopped)
    with pytest.raises(Interrupted):
        fill("cube", EVERY)
    monkeypatch.setattr("predcube.storage.moments.put_entry", put)
    fill("cube", EVERY)
    assert contents("cube") == contents("reference")


def test_a_run_that_is_killed_goes_on_to_the_same_bytes(folder: Path) -> None:
    fractions = np.round(np.linspace(0.05, 0.95, 40), 6).tolist()
    spec = spec_of(sweep={"process.fraction": fractions, "noise.sd": np.round(np.linspace(0, 1, 30), 6).tolist()})
    program = """
import sys, time
from predcube.pipeline import execution
from predcube.pipeline.kinds import predictability
from predcube.storage import rows
rows.PART = 150
fill = predictability._Bench.fill
def slowly(self, *arguments):
    time.sleep(0.2)
    return fill(self, *arguments)
predictability._Bench.fill = slowly
execution.run(eval(sys.argv[1]), "cube", cluster="serial")
"""
    process = subprocess.Popen([sys.executable, "-c", program, repr(spec)], cwd=folder)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(folder.glob("cube/ledger/receipt/c/*/*/*")):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    made = prepare(spec, "cube", cluster="serial")
    assert made.preparation is not None
    assert made.preparation.passes == 0  # every law was kept
    assert execute(made, "cube", cluster="serial").status == 0
    fill("reference", spec)
    assert contents("cube") == contents("reference")


def test_an_axis_grows_and_old_cells_stay_as_they_were(folder: Path) -> None:
    short = {"process.fraction": [0.1, 0.3], "noise.sd": [0.0, 0.05, 0.4]}
    longer = {"process.fraction": [0.1, 0.3, 0.2, 0.5], "noise.sd": [0.0, 0.05, 0.4]}
    fill("cube", spec_of(sweep=short), chunks=(1, 3, 1))
    with pytest.raises(OtherSweep, match="--extend"):
        fill("cube", spec_of(sweep=longer))
    assert fill("cube", spec_of(sweep=longer), extend=True).computed == 2
    fill("fresh", spec_of(sweep=longer), chunks=(1, 3, 1))
    assert contents("cube") == contents("fresh")


def test_an_axis_of_queries_grows_to_the_numbers_of_a_fresh_run(folder: Path) -> None:
    one = [{"label": "ill", "q": "ill = 1"}]
    both = [*one, {"label": "old", "q": "age >= 60"}]
    axes = {"process.fraction": [0.3], "noise.sd": [0.1]}
    fill("cube", spec_of(query=None, sweep={**axes, "query": one}))
    before = storage.open_cube("cube")["trials"].to_dataset(inherit=False).load()
    fill("cube", spec_of(query=None, sweep={**axes, "query": both}), extend=True)
    after = storage.open_cube("cube")["trials"].to_dataset(inherit=False).load()
    fill("fresh", spec_of(query=None, sweep={**axes, "query": both}))
    fresh = storage.open_cube("fresh")["trials"].to_dataset(inherit=False).load()
    for name in ("p", "sharp", "utility_cost"):
        np.testing.assert_array_equal(after[name].sel(query="ill").values, before[name].sel(query="ill").values)
        assert_allclose(after[name].values, fresh[name].values, rtol=1e-12)


def test_queries_are_an_axis_or_a_dimension(folder: Path) -> None:
    fill("dimension")
    axis = [{"label": "ill", "q": "ill = 1"}, {"label": "old", "q": "age >= 60"}]
    fill("axis", spec_of(query=None, sweep={**SPEC["sweep"], "query": axis}))
    one, other = (storage.open_cube(url)["trials"].to_dataset(inherit=False) for url in ("dimension", "axis"))
    assert other["sharp"].dims == ("fraction", "sd", "query", "trial")
    for name in ("ill", "old"):
        assert_allclose(one["sharp"].sel(query=name).values, other["sharp"].sel(query=name).values, rtol=1e-13)
    families = [
        {"label": "a", "x": "ill = 1", "y": "age >= 60"},
        {"label": "b", "x": "ill = 1", "y": "weight > 80"},
    ]
    sweep = load_spec(spec_of(query=None, sweep={"query": families, "process.fraction": [0.3], "noise.sd": [0.1]}))
    assert [a.name for a in sweep.axes] == ["family", "fraction", "sd"]


def test_queries_that_drop_other_rows_have_laws_of_their_own(folder: Path) -> None:
    queries = {"whole": "ill = 1", "partly": "CASE WHEN age > 40 THEN ill END"}
    axis = [{"label": name, "q": text} for name, text in queries.items()]
    release = {"kind": "linear", "target": "c", "features": ["age"]}
    spec = spec_of(query=None, release=release, sweep={"query": axis, "process.fraction": [0.3], "noise.sd": [0.1]})
    fill("cube", spec)
    cube = storage.open_cube("cube")["trials"].to_dataset(inherit=False).isel(trial=0, fraction=0, sd=0)
    age = people()["age"]
    assert cube["dropped_rows"].values.tolist() == [0.0, float((age <= 40).sum())]
    columns = people()
    partly = np.where(age > 40, columns["ill"], np.nan)
    for name, q in (("whole", columns["ill"].astype(np.float64)), ("partly", partly)):
        alone = predictability(
            columns, q, release, {"kind": "random_shard", "fraction": 0.3}, {"kind": "isotropic", "sd": 0.1}
        )
        for quantity in ("n", "p", "sharp", "utility_cost"):
            assert_allclose(float(cube[quantity].sel(query=name)), getattr(alone, quantity), rtol=1e-9)
    # In one family both are of the rows that have both.
    fill("family", spec_of(query=queries, release=release, sweep={"process.fraction": [0.3], "noise.sd": [0.1]}))
    family = storage.open_cube("family")["trials"].to_dataset(inherit=False).isel(trial=0, fraction=0, sd=0)
    assert float(family["dropped_rows"]) == float((age <= 40).sum())
    assert float(family["p"].sel(query="whole")) == pytest.approx(float(people()["ill"][age > 40].mean()), rel=1e-12)


def test_simulated_gains_are_near_what_is_predicted(folder: Path) -> None:
    spec = spec_of(
        trials=8,
        measure={"quantities": ["sharp", "simulated_gain", "simulated_ratio"], "draws": 500},
        sweep={"process.fraction": [0.3], "noise.sd": [0.0, 0.4]},
    )
    fill("cube", spec)
    data = read_surfaces("cube")
    for sd in (0.0, 0.4):
        at = data.sel(fraction=0.3, sd=sd)
        error = 4 * at["simulated_ratio_standard_error"].values
        assert (np.abs(at["simulated_ratio"].values - 1) < np.maximum(error, 0.05)).all()
        assert (at["simulated_ratio_standard_error"].values > 0).all()
        assert (at["sharp_standard_error"].values == 0).all()


def test_families_are_valued_between_their_worst_member_and_the_bound(folder: Path) -> None:
    quantities = ["sharp", "family_gain", "family_bound"]
    measure = {"quantities": quantities, "draws": 4000}
    fill("cube", spec_of(trials=4, measure=measure, sweep={"process.fraction": [0.3], "noise.sd": [0.0, 0.4]}))
    data = read_surfaces("cube")
    assert data["family_gain"].dims == ("fraction", "sd")
    worst = data["sharp"].max("query").values
    assert (data["family_gain"].values > worst).all()
    assert (data["family_gain"].values < data["family_bound"].values).all()


def test_rank_one_noise_says_where_it_is_not_needed(folder: Path) -> None:
    spec = spec_of(
        query={"ill": "ill = 1"},
        noise={"kind": "rank_one"},
        sweep={"process.fraction": [0.3], "noise.gain": [1e-9, 1e-6, 10.0]},
    )
    fill("cube", spec)
    cube = storage.open_cube("cube")["trials"].to_dataset(inherit=False).isel(trial=0, fraction=0, query=0)
    assert [a.name for a in load_spec(spec).axes] == ["fraction", "noise_gain"]  # "gain" is a variable
    assert cube["status"].values.tolist() == [storage.DONE, storage.DONE, storage.INFEASIBLE]
    assert_allclose(cube["sharp"].values[:2], [1e-9, 1e-6], rtol=1e-9)
    assert "no noise is needed" in report("cube")
    with pytest.raises(BadInput, match="rank_one noise hides one query, and there are 2"):
        plan(load_spec(spec_of(noise={"kind": "rank_one"}, sweep={"process.fraction": [0.3], "noise.gain": [1e-6]})))


def test_log_loss_needs_a_binary_query(folder: Path) -> None:
    measure = {"loss": "log"}
    queries = [{"label": "ill", "q": "ill"}, {"label": "age", "q": "age"}]
    spec = spec_of(query=None, measure=measure, sweep={**SPEC["sweep"], "process.fraction": [0.3], "query": queries})
    made = plan(load_spec(spec), costs=Costs())
    assert {made.estimate((0, 0, i)).infeasible is None for i in (0,)} == {True}
    assert "log loss needs a binary query" in str(made.estimate((0, 0, 1)).infeasible)
    fill("cube", spec)
    assert "log loss needs a binary query" in report("cube")


def test_plain_xarray_opens_the_whole_store_without_a_warning(folder: Path) -> None:
    fill("cube", EVERY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = xarray.open_datatree("cube", engine="zarr", consolidated=False)
        assert set(tree.children) == {"trials", "surfaces", "ledger", "moments"}
        assert all("about" in v.attrs for v in tree["moments"].data_vars.values())
    assert all(p.name in ("zarr.json",) or "c" in p.parts for p in folder.glob("cube/moments/**/*") if p.is_file())


def test_damaged_sums_are_summed_up_again(folder: Path) -> None:
    fill("cube")
    before = contents("cube")
    [law] = folder.glob("cube/moments/law_*")
    chunk = next(p for p in law.rglob("*") if p.is_file() and p.name != "zarr.json")
    chunk.write_bytes(b"torn")
    for tile in folder.glob("cube/ledger/receipt/c/*/*/*"):
        tile.unlink()
    fill("cube")
    assert contents("cube") == before


def test_a_changed_table_is_one_message(folder: Path) -> None:
    fill("cube")
    write(folder, people(seed=2))
    with pytest.raises(OtherSweep) as caught:
        fill("cube")
    assert "table: the table is no longer the one that the store was made of" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 2


def test_a_plan_counts_the_rows_and_the_passes(folder: Path) -> None:
    made = plan(load_spec(EVERY), costs=Costs())
    assert made.preparation is not None
    lost = int(np.isnan(people()["weight"]).sum())
    some, every = made.preparation.lines  # a regression of "one" on age needs no weight
    assert some.startswith(
        f"people.parquet: N = {ROWS - lost} of {ROWS} rows (dropped: {lost} by release input weight)"
    )
    assert every == f"people.parquet: N = {ROWS} of {ROWS} rows, for 3 of 12 samples"
    assert made.preparation.passes >= 2
    assert made.estimate((0, 3)).infeasible is not None
    assert "count = 12 of 12 shards" in str(made.estimate((0, 3)).infeasible)
    assert not list(folder.glob("cube*"))


def test_the_smallest_noise_that_protects_is_looked_up(folder: Path) -> None:
    fill("cube")
    found = query("cube", smallest="sd", such_that="sharp <= 0.00002", where="fraction = 0.3").to_pylist()
    data = read_surfaces("cube").sel(fraction=0.3)
    for row in found:
        values = data["sharp"].sel(query=row["query"]).values
        reached = np.flatnonzero(values <= 2e-5)
        wanted = float(data["sd"].values[reached[0]]) if len(reached) else None
        assert row["smallest_sd"] == wanted
        assert row["status"] == ("reached" if len(reached) else "not reached")
    assert {row["status"] for row in found} == {"reached"} or found


def test_headlines_lead_with_what_the_release_tells(folder: Path) -> None:
    fill("cube")
    first, *others = headlines(read_surfaces("cube"))
    assert first.title.startswith("where loss that the release saves the attacker is largest")
    sharp = first.rows["sharp"].to_pylist()
    assert sharp == sorted(sharp, reverse=True)
    assert sharp[0] == pytest.approx(float(read_surfaces("cube")["sharp"].max()))
    assert [h.title for h in others] == [
        "loss that the release saves the attacker, sharp",
        "cost of the noise in accuracy, utility_cost",
    ]
