"""Execution's laws: bytes do not depend on workers, tiles, fan-out or interruptions; nothing stops at one failure."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from predcube import storage
from predcube.pipeline import execution, working
from predcube.pipeline.costs import Costs
from predcube.pipeline.execution import Summary, execute
from predcube.pipeline.failures import BadInput, OtherSweep, OverBudget
from predcube.pipeline.mishaps import error_kinds
from predcube.pipeline.planning import Plan, plan
from predcube.pipeline.resuming import reconcile
from predcube.pipeline.shaping import blueprint
from predcube.pipeline.spec.loading import load_spec
from predcube.pipeline.tiles import Site
from predcube.storage import StoreError, TileKey
from predcube.tasks import trials

SPEC: dict[str, Any] = {
    "name": "small",
    "kind": "prediction",
    "seed": 7,
    "trials": 4,
    "hypotheses": {"kind": "thresholds", "points": 5},
    "distribution": {"kind": "threshold", "at": 2, "noise": 0.1},
    "learner": {"kind": "stable", "gamma": 0.25},
    "measure": {"quantities": ["excess_error", "stability", "privacy_loss"]},
    "sweep": {"n": [3, 8, 20], "learner.gamma": [0.25, 0.5], "distribution.noise": [0.0, 0.2]},
}


def made(
    url: Path,
    spec: Mapping[str, Any] = SPEC,
    *,
    chunks: tuple[int, ...] | None = None,
    workers: int = 1,
    extend: bool = False,
    level: int | None = None,
) -> Plan:
    """A plan that does not measure this machine, cut as asked; with a level, every tile is fanned out."""
    standing = reconcile(load_spec(spec), str(url), extend=extend)
    schema = standing.schema
    if schema is None and chunks is not None:
        schema = blueprint(standing.sweep, chunks, {})
    planned = plan(standing.sweep, workers=workers, schema=schema, costs=Costs())
    if level is None:
        return planned
    return _Fanned(**{f: getattr(planned, f) for f in Plan.__dataclass_fields__})


class _Fanned(Plan):
    """Every tile in leaves of one block."""

    def level(self, key: TileKey) -> int | None:
        return 0


def fill(url: Path, spec: Mapping[str, Any] = SPEC, *, cluster: str = "serial", **options: Any) -> Summary:
    again = {k: options.pop(k) for k in ("retry_failed",) if k in options}
    planned = made(url, spec, **options)
    workers = planned.workers if cluster == "local" else None
    return execute(planned, str(url), cluster=cluster, workers=workers, extend=options.get("extend", False), **again)


def contents(url: Path) -> dict[str, tuple[Any, ...]]:
    """Every array of /trials and /surfaces as bytes, axes ascending."""
    tree = storage.open_cube(str(url))
    found = {}
    for group in ("trials", "surfaces"):
        data = tree[group].to_dataset(inherit=False)
        for name, order in [(d, np.argsort(data[d].values)) for d in data.dims if d in data.coords]:
            data = data.isel({name: order})
        for name, array in data.variables.items():
            found[f"{group}/{name}"] = (array.dims, array.dtype.str, array.values.tobytes())
    return found


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, ...]]:
    url = tmp_path_factory.mktemp("reference") / "cube"
    summary = fill(url)
    assert summary.status == 0
    assert summary.computed == summary.tiles
    return contents(url)


def test_the_numbers_are_those_of_the_science_alone(tmp_path: Path) -> None:
    fill(tmp_path / "cube")
    sweep = load_spec(SPEC)
    cube = storage.open_cube(str(tmp_path / "cube"))["trials"].to_dataset(inherit=False)
    from predcube.pipeline.building import build_problem

    for index in sweep.indices():
        problem = build_problem(sweep.cell(index), sweep)
        at = cube.isel(dict(zip((a.name for a in sweep.axes), index, strict=True)))
        if trials.infeasible(problem):
            assert set(at["status"].values.tolist()) == {storage.INFEASIBLE}
            assert np.isnan(at["stability"].values).all()
            continue
        for trial in range(sweep.trials):
            for name, value in trials.measure(problem, trial).items():
                assert at[name].values[trial] == value
    assert storage.INFEASIBLE in cube["status"].values  # n = 3 at γ = .25 has no n'
    assert storage.DONE in cube["status"].values


@pytest.mark.parametrize("chunks", [(1, 1, 1, 1), (3, 2, 2, 4), (1, 2, 1, 2)])
def test_any_tiles_give_the_same_bytes(chunks: tuple[int, ...], tmp_path: Path, reference: dict[str, Any]) -> None:
    fill(tmp_path / "cube", chunks=chunks)
    assert contents(tmp_path / "cube") == reference


@pytest.mark.parametrize("workers", [1, 2])
def test_any_workers_give_the_same_bytes(workers: int, tmp_path: Path, reference: dict[str, Any]) -> None:
    summary = fill(tmp_path / "cube", cluster="local", workers=workers, chunks=(1, 2, 2, 2))
    assert (summary.workers, summary.status) == (workers, 0)
    assert contents(tmp_path / "cube") == reference


SAMPLED = {
    **SPEC,
    "trials": 2,
    "measure": {"quantities": ["error", "growth"], "method": "mc", "samples": 200_000},
    "sweep": {"n": [3, 40], "learner.gamma": [0.25, 0.5]},
}


def test_a_tile_that_is_fanned_out_has_the_same_bytes(tmp_path: Path) -> None:
    site = Site(url=str(tmp_path / "whole"), generation="", directory=".")
    fill(tmp_path / "whole", SAMPLED)
    assert max(working.workload_blocks(site, ((1, 1), 0))) > 2
    for cluster, workers in (("serial", 1), ("local", 2)):
        fill(tmp_path / cluster, SAMPLED, level=0, cluster=cluster, workers=workers)
        assert contents(tmp_path / cluster) == contents(tmp_path / "whole")


def broken(at: Callable[[trials.Problem, int], bool]) -> Callable[..., Any]:
    prepare = trials.prepare

    def breaking(problem: trials.Problem, trial: int) -> Any:
        if at(problem, trial):
            raise ZeroDivisionError("nothing\nleft")
        return prepare(problem, trial)

    return breaking


def test_one_failing_trial_is_recorded_and_the_rest_goes_on(
    tmp_path: Path, reference: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = tmp_path / "cube"
    chunks = (1, 2, 2, 4)
    with monkeypatch.context() as patch:
        patch.setattr(trials, "prepare", broken(lambda problem, trial: problem.n == 20 and trial == 3))
        summary = fill(url, chunks=chunks)
    assert (summary.status, summary.computed, summary.failed, summary.trials_failed) == (1, 3, 1, 4)
    cube = storage.open_cube(str(url))["trials"].to_dataset(inherit=False)
    assert np.argwhere(cube["status"].values == storage.FAILED).tolist() == [
        [2, g, a, 3] for g in range(2) for a in range(2)
    ]
    assert (cube["stability_status"].values == cube["status"].values).all()
    [error] = error_kinds(str(url))
    assert error.message == "cell (n=20, gamma=0.25, noise=0.0), trial 3: ZeroDivisionError: nothing left"
    # Without being asked, failed tiles are left alone; asked, they alone are computed again.
    assert fill(url).computed == 0
    assert fill(url).status == 1
    again = fill(url, retry_failed=True)
    assert (again.computed, again.status) == (1, 0)
    assert storage.tile_states(str(url)).receipts[2, 0, 0, 0].attempt == 2
    assert contents(url) == reference


def test_a_leaf_that_fails_fails_its_trial_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subtree = working.subtree
    monkeypatch.setattr(working, "subtree", lambda w, level, index: 1 / 0 if index == 1 else subtree(w, level, index))
    summary = fill(tmp_path / "cube", SAMPLED, level=0, chunks=(2, 2, 2))
    assert summary.status == 1
    cube = storage.open_cube(str(tmp_path / "cube"))["trials"].to_dataset(inherit=False)
    # At n = 3 one of the two cells is infeasible and the other is a single block.
    assert cube["status"].values[:, :, 0].tolist() == [[storage.INFEASIBLE, storage.DONE], [storage.FAILED] * 2]
    assert "ZeroDivisionError: division by zero" in error_kinds(str(tmp_path / "cube"))[0].message


def test_a_value_that_is_no_number_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = trials.Prepared.finish
    monkeypatch.setattr(
        trials.Prepared, "finish", lambda self, mixtures: {**measure(self, mixtures), "stability": float("nan")}
    )
    summary = fill(tmp_path / "cube")
    cube = storage.open_cube(str(tmp_path / "cube"))["trials"].to_dataset(inherit=False)
    assert summary.status == 1
    assert set(np.unique(cube["stability_status"])) == {storage.FAILED, storage.INFEASIBLE}
    assert set(np.unique(cube["privacy_loss_status"])) == {storage.DONE, storage.INFEASIBLE}
    assert "stability is not a number" in error_kinds(str(tmp_path / "cube"))[0].message


def test_a_tile_that_is_lost_as_a_whole_is_recorded(
    tmp_path: Path, reference: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = working.finish_tile

    def lost(site: Site, tile: working.Tile, roots: tuple[Any, ...]) -> Any:
        if tile.key == (0, 0, 0, 0):
            raise MemoryError
        return finish(site, tile, roots)

    with monkeypatch.context() as patch:
        patch.setattr(working, "finish_tile", lost)
        summary = fill(tmp_path / "cube", chunks=(1, 2, 2, 4))
    assert (summary.failed, summary.missing, summary.status) == (1, 0, 1)
    [error] = error_kinds(str(tmp_path / "cube"))
    assert error.message == "cell (n=3, gamma=0.5, noise=0.0), trial 0: MemoryError"
    fill(tmp_path / "cube", retry_failed=True)
    assert contents(tmp_path / "cube") == reference


def test_a_store_of_another_sweep_is_refused_and_left_alone(tmp_path: Path, reference: dict[str, Any]) -> None:
    url = tmp_path / "cube"
    fill(url)
    with pytest.raises(OtherSweep, match=r"(?s)holds another sweep.*seed.*7.*8"):
        made(url, {**SPEC, "seed": 8})
    with pytest.raises(OtherSweep, match=r"(?s)append the new values with --extend.*40"):
        made(url, {**SPEC, "sweep": {**SPEC["sweep"], "n": [3, 8, 20, 40]}})
    with pytest.raises(OtherSweep, match=r"(?s)without"):
        made(url, {**SPEC, "sweep": {**SPEC["sweep"], "n": [3, 8, 40]}}, extend=True)
    with pytest.raises(OtherSweep, match="learner"):
        made(url, {**SPEC, "learner": {"kind": "stable", "gamma": 0.25, "convention": "outline"}}, extend=True)
    assert contents(url) == reference
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine")
    with pytest.raises(StoreError, match="not a predcube store"):
        made(tmp_path / "taken")


def test_the_order_of_an_axis_is_not_another_sweep(tmp_path: Path, reference: dict[str, Any]) -> None:
    fill(tmp_path / "cube")
    summary = fill(tmp_path / "cube", {**SPEC, "sweep": {**SPEC["sweep"], "n": [20, 3, 8]}})
    assert summary.computed == 0
    assert contents(tmp_path / "cube") == reference


def test_an_extended_store_has_the_bytes_of_a_fresh_one(tmp_path: Path, reference: dict[str, Any]) -> None:
    url = tmp_path / "cube"
    fill(url, {**SPEC, "sweep": {**SPEC["sweep"], "n": [20]}}, chunks=(1, 2, 1, 4))
    old = {p: p.read_bytes() for p in sorted(url.glob("trials/*/c/**/*")) if p.is_file() and "trials/n/" not in str(p)}
    summary = fill(url, extend=True)
    assert summary.computed == 4
    assert all(p.read_bytes() == before for p, before in old.items())
    assert contents(url) == reference
    assert fill(url).computed == 0  # and it is now the longer sweep's store
    with pytest.raises(OtherSweep):
        made(url, {**SPEC, "sweep": {**SPEC["sweep"], "n": [20]}})


def test_an_axis_that_cannot_grow_by_that_many_says_so(tmp_path: Path) -> None:
    url = tmp_path / "cube"
    fill(url, chunks=(1, 2, 1, 4))
    with pytest.raises(BadInput, match=r"'gamma' is cut in chunks of 2, and 1 new values .* append 1 more"):
        made(url, {**SPEC, "sweep": {**SPEC["sweep"], "learner.gamma": [0.25, 0.5, 0.4]}}, extend=True)


def test_sections_as_axes_run_and_grow(tmp_path: Path) -> None:
    learners = [
        {"label": "stable", "kind": "stable", "gamma": 0.25},
        {"label": "first", "kind": "erm"},
        {"label": "cheap", "kind": "exponential", "epsilon": 1.0},
    ]
    spec = {k: v for k, v in SPEC.items() if k != "learner"} | {"sweep": {"n": [8, 20], "learner": learners}}
    fill(tmp_path / "fresh", spec)
    fill(tmp_path / "grown", {**spec, "sweep": {"n": [8, 20], "learner": learners[1:]}})
    fill(tmp_path / "grown", spec, extend=True)
    assert contents(tmp_path / "grown") == contents(tmp_path / "fresh")


def test_what_is_wrong_with_the_request_comes_before_anything_is_written(tmp_path: Path) -> None:
    url = tmp_path / "cube"
    with pytest.raises(BadInput, match="did you mean 'serial'"):
        execution.run(SPEC, url, cluster="serail")
    with pytest.raises(BadInput, match="--workers 0"):
        execution.run(SPEC, url, workers=0)
    with pytest.raises(OverBudget):
        execution.run(SPEC, url, cluster="serial", budget=1e-9)
    assert not url.exists()


def test_a_plan_that_does_not_fit_the_store_is_refused(tmp_path: Path) -> None:
    other = made(tmp_path / "other", chunks=(1, 1, 1, 1))
    fill(tmp_path / "cube", chunks=(1, 2, 2, 4))
    with pytest.raises(ValueError, match="cut otherwise"):
        execute(other, str(tmp_path / "cube"), cluster="serial")


def test_the_root_remembers_the_run_and_receipts_the_work(tmp_path: Path) -> None:
    url = tmp_path / "cube"
    summary = fill(url, chunks=(1, 2, 2, 4))
    attributes = storage.read_attributes(str(url))
    assert attributes["started"] <= attributes["ended"]
    assert json.loads(attributes["resolved"])["name"] == "small"
    assert attributes["command_line"]
    receipts = storage.tile_states(str(url)).receipts
    assert len(receipts) == 3
    assert summary.science == pytest.approx(sum(r.cpu_seconds for r in receipts.values()))
    assert 0 < summary.busy <= 1.05
    assert replace(summary, computed=0).line() == "all 3 tiles were there"


def test_changed_versions_are_said(tmp_path: Path) -> None:
    fill(tmp_path / "cube")
    storage.update_attributes(str(tmp_path / "cube"), {"versions": json.dumps({"numpy": "1.0"})})
    [note] = reconcile(load_spec(SPEC), str(tmp_path / "cube")).notes
    assert "begun with numpy 1.0" in note
