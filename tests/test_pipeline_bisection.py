"""Searches for the smallest n: the answers of a full run from fewer cells, each with a full run's numbers."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from predcube.pipeline import query, run, search
from predcube.pipeline.bisection import State, next_places, unattainable
from predcube.pipeline.cli.app import app
from predcube.pipeline.failures import BadInput
from predcube.pipeline.reduction import surfaces
from predcube.pipeline.spec import load_spec
from predcube.pipeline.targets import ENDS, truths
from predcube.storage import open_cube

CERTAIN: dict[str, Any] = {
    "trials": 1,
    "hypotheses": {"kind": "cube"},
    "distribution": {"kind": "lower_bound", "alpha": 0.1},
    "learner": {"kind": "stable"},
    "measure": {"quantities": ["expected_error"], "targets": {"expected_error": 0.1}},
    "sweep": {
        "n": {"start": 8, "stop": 20000, "num": 26, "spacing": "log"},
        "hypotheses.points": [2, 30],
        "learner.gamma": [0.001, 0.01, 0.3],
    },
}
SAMPLED: dict[str, Any] = {
    "trials": 20,
    "seed": 3,
    "hypotheses": {"kind": "thresholds", "points": 7},
    "distribution": {"kind": "threshold", "at": 3, "noise": 0.1},
    "learner": {"kind": "stable"},
    "measure": {
        "quantities": ["excess_error", "stability"],
        "targets": {"excess_error": 0.12, "stability": 0.1, "confidence": 0.8},
    },
    "sweep": {"n": [4, 7, 12, 20, 35, 60, 100, 170], "learner.gamma": [0.05, 0.2, 0.4]},
}


# --- where to look next -----------------------------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=150)
def test_a_search_finds_the_first_hit_in_few_steps(data: st.DataObject) -> None:
    """Doubling and halving over any grid, any monotone truth, some places infeasible at the start, some failing."""
    length = data.draw(st.integers(1, 60))
    n = np.cumsum(data.draw(st.lists(st.integers(1, 40), min_size=length, max_size=length)))
    truth = np.arange(length) >= data.draw(st.integers(0, length))
    infeasible = np.arange(length) < data.draw(st.integers(0, length))
    failing = np.array(data.draw(st.lists(st.sampled_from([False] * 9 + [True]), min_size=length, max_size=length)))
    looked = np.zeros(length, dtype=bool)
    for end in (False, True):
        steps = -1
        for _ in range(2 * length + 2):
            steps += 1
            state = State(
                known=(looked & ~failing)[None], infeasible=infeasible[None], open=(~looked & ~infeasible)[None]
            )
            at = int(next_places(n, truth[None], last_miss=end, state=state)[0])
            if at < 0:
                break
            assert not looked[at]
            assert not infeasible[at]
            looked[at] = True
        assert steps <= math.log2(n[-1] / n[0] + 1) + math.log2(length + 1) + failing.sum() + 3
        possible = truth & ~infeasible & ~failing
        if possible.any():
            first = int(possible.argmax())
            assert looked[first]
            below = np.flatnonzero(~infeasible[:first])
            assert not len(below) or looked[below[-1]]
        else:
            assert looked[~infeasible][-1:].all()


def test_the_interval_of_a_searched_answer_covers_at_its_level() -> None:
    """400 searches over one truth at once, with the trials that each looks at."""
    n = np.round(np.geomspace(10, 1000, 33)).astype(int)
    chance = 1 - 0.5 * (n / 10) ** -0.7
    truth = n[int((chance >= 0.9).argmax())]
    rng, draws, trials = np.random.default_rng(8), 400, 60
    hits = rng.uniform(size=(33, draws, trials)) < chance[:, None, None]
    status = np.zeros(hits.shape, dtype=np.uint8)
    flags = {"flag_values": [0, 1, 2, 3], "flag_meanings": "missing done failed infeasible"}
    infeasible = np.zeros((draws, 33), dtype=bool)
    for _ in range(60):
        made = xr.Dataset(
            {
                "status": (("n", "draw", "trial"), status, flags),
                "error_status": (("n", "draw", "trial"), status, flags),
                "error": (
                    ("n", "draw", "trial"),
                    np.where(hits & (status == 1), 0.0, np.where(status == 1, 1.0, np.nan)),
                ),
            },
            coords={"n": n, "draw": np.arange(draws), "trial": np.arange(trials)},
        )
        found = surfaces(made, limits={"error": 0.5}, confidence=0.9)
        held = truths(found, {"error": 0.5}, 0.9)
        looked = status[:, :, 0].T == 1
        state = State(known=held.known, infeasible=infeasible, open=~looked)
        places = [next_places(n, held.holds[e], last_miss=e == "_upper", state=state) for e in ENDS]
        for at in places:
            rows = np.flatnonzero(at >= 0)
            status[at[rows], rows] = 1
        if all((at < 0).all() for at in places):
            break
    lower, upper = found["smallest_n_lower"].values, found["smallest_n_upper"].values
    covered = (np.nan_to_num(lower, nan=np.inf) <= truth) & (np.nan_to_num(upper, nan=np.inf) >= truth)
    assert covered.mean() >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / draws)
    assert looked.mean() < 0.6
    point = found["smallest_n"].values
    assert (np.nan_to_num(lower, nan=0) <= point).all()
    assert (np.nan_to_num(upper, nan=np.inf) >= point).all()


# --- against full runs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [CERTAIN, SAMPLED], ids=["certain", "sampled"])
def test_a_search_gives_a_full_run_s_answers_and_numbers(spec: dict[str, Any], tmp_path: Path) -> None:
    full, part = str(tmp_path / "full.zarr"), str(tmp_path / "part.zarr")
    run(spec, full, cluster="serial")
    summary = search(spec, part, cluster="serial")
    assert summary.status == 0
    assert summary.missing > 0
    assert summary.computed < 0.8 * summary.tiles
    ours, theirs = open_cube(part)["trials"].to_dataset(), open_cube(full)["trials"].to_dataset()
    done = ours["status"].values == 1
    assert done.any()
    for name in ours.data_vars:
        np.testing.assert_array_equal(ours[name].values[done], theirs[name].values[done])
    found, wanted = query(part, smallest="n"), query(full, smallest="n")
    columns = ["smallest_n", "status"]
    if spec is CERTAIN:  # searches of samples end in one of several places where the rates are not monotone
        columns += ["smallest_n_lower", "smallest_n_upper"]
    assert found.select(columns).equals(wanted.select(columns))
    assert set(found["status"].to_pylist()) == {"reached", "not reached"}


def test_a_search_goes_on_with_what_is_there_and_a_run_computes_the_rest(tmp_path: Path) -> None:
    store = str(tmp_path / "s.zarr")
    first = search(CERTAIN, store, cluster="serial")
    again = search(CERTAIN, store, cluster="serial")
    assert (again.computed, again.status) == (0, 0)
    assert "every tile that is needed was there" in again.line()
    rest = run(CERTAIN, store, cluster="serial")
    assert rest.computed == first.missing
    assert rest.missing == 0
    assert set(query(store, smallest="n")["note"].to_pylist()) <= {"", "no smaller n was looked at"}


def test_infeasible_and_unreached_rows_have_answers_of_their_own(tmp_path: Path) -> None:
    spec = {
        **CERTAIN,
        "sweep": {"n": [8, 16, 32, 64], "hypotheses.points": [2, 40], "learner.gamma": [0.001, 0.1, 0.9]},
    }
    store = str(tmp_path / "s.zarr")
    search(spec, store, cluster="serial")
    found = query(store, smallest="n").to_pylist()
    assert {(r["points"], r["gamma"]): r["status"] for r in found} == {
        (2, 0.001): "infeasible",
        (2, 0.1): "not reached",
        (2, 0.9): "reached",
        (40, 0.001): "infeasible",
        (40, 0.1): "not reached",
        (40, 0.9): "not reached",
    }


def test_a_row_of_tiles_of_its_own_says_why_smaller_n_have_no_data(tmp_path: Path) -> None:
    """Reached at the first feasible n; never feasible: neither is left open for want of a record of infeasibility."""
    sections = [
        {"label": "at once", "kind": "stable", "subset_size": 20, "beta": 5.0},
        {"label": "never", "kind": "stable", "subset_size": 500, "beta": 5.0},
    ]
    spec = {
        **{k: v for k, v in CERTAIN.items() if k != "learner"},
        "distribution": {"kind": "lower_bound", "alpha": 0.2},
        "measure": {**CERTAIN["measure"], "targets": {"expected_error": 0.2}},
        "hypotheses": {"kind": "cube", "points": 3},
        "sweep": {"n": [8, 12, 18, 27, 40, 60, 90, 130], "learner": sections},
    }
    store = str(tmp_path / "s.zarr")
    summary = search(spec, store, cluster="serial")
    found = {r["learner"]: r for r in query(store, smallest="n").to_pylist()}
    assert (found["at once"]["smallest_n"], found["at once"]["status"]) == (27, "reached")
    assert found["never"]["status"] == "infeasible"
    assert summary.missing == 4  # above 27, of the one that is reached there


def test_a_search_ends_where_cells_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from predcube.tasks import trials

    def broken(problem: trials.Problem) -> dict[str, float]:
        raise ArithmeticError("broken on purpose")

    monkeypatch.setattr(trials, "_expected", broken)
    store = str(tmp_path / "s.zarr")
    summary = search(CERTAIN, store, cluster="serial")
    assert summary.status == 1
    assert "broken on purpose" in summary.errors[0].message
    again = search(CERTAIN, store, cluster="serial", retry_failed=True)  # each failed tile once more, and no oftener
    assert (again.computed, again.status) == (summary.computed, 1)
    monkeypatch.undo()
    assert search(CERTAIN, store, cluster="serial", retry_failed=True).status in (0, 1)
    assert "reached" in set(query(store, smallest="n")["status"].to_pylist())


# --- what is refused, and what is said --------------------------------------------------------------------------------


def test_a_search_needs_targets_and_an_axis_n(tmp_path: Path) -> None:
    without = {**CERTAIN, "measure": {"quantities": ["expected_error"]}}
    with pytest.raises(BadInput, match="needs targets"):
        search(without, tmp_path / "a.zarr", cluster="serial")
    fixed = {**CERTAIN, "n": 50, "sweep": {"hypotheses.points": [2], "learner.gamma": [0.1]}}
    with pytest.raises(BadInput, match="needs n as an axis"):
        search(fixed, tmp_path / "b.zarr", cluster="serial")
    assert not list(tmp_path.iterdir())


def test_too_few_trials_for_an_upper_end_are_said() -> None:
    few = load_spec(
        {**SAMPLED, "measure": {"quantities": ["excess_error"], "targets": {"excess_error": 0.1}}, "trials": 28}
    )
    assert "raise trials to 36" in str(unattainable(few))
    assert unattainable(load_spec({**SAMPLED, "trials": 36})) is None
    assert unattainable(load_spec(CERTAIN)) is None


def test_the_command_prints_the_answers(tmp_path: Path) -> None:
    from predcube.pipeline.cli import commands  # noqa: F401

    spec = tmp_path / "spec.toml"
    spec.write_text(
        'trials = 1\n[hypotheses]\nkind = "cube"\npoints = 3\n[distribution]\nkind = "lower_bound"\nalpha = 0.2\n'
        '[learner]\nkind = "erm"\n[measure]\nquantities = ["expected_error"]\ntargets = { expected_error = 0.05 }\n'
        "[sweep]\nn = { start = 1, stop = 64, num = 64 }\n"
    )
    found = CliRunner().invoke(app, ["search", str(spec), "--store", str(tmp_path / "s.zarr"), "--cluster", "serial"])
    assert found.exit_code == 0, found.output
    # ½(.4·.6^n·2 + .2·.8^n) ≤ .05 from n = 5 on
    n = next(k for k in range(1, 64) if 0.4 * 0.6**k + 0.1 * 0.8**k <= 0.05)
    assert f" {n} " in found.output
    assert "that no answer needs" in found.output
