"""Plans: every cell once, the same methods on any machine, tiles of a useful length, and refusals with numbers."""

import io
import json
import math
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from rich.console import Console

from predcube.pipeline.building import build_problem
from predcube.pipeline.costs import Costs, Run, fit
from predcube.pipeline.execution import run
from predcube.pipeline.failures import OverBudget
from predcube.pipeline.grid import Grid
from predcube.pipeline.outlook import as_data, as_text
from predcube.pipeline.planning import plan
from predcube.pipeline.shaping import LONGEST, block_sums, bytes_on_disk, chunk_lengths, divisors
from predcube.pipeline.spec import load_spec
from predcube.pipeline.spec.sweep import Sweep
from predcube.storage import read_schema
from predcube.tasks.trials import infeasible, measure, method_of, operations

STEADY = Costs(fixed=1e-3)


def sweep_of(trials: int = 8, **axes: Any) -> Sweep:
    spec: dict[str, Any] = {
        "name": "small",
        "seed": 7,
        "trials": trials,
        "hypotheses": {"kind": "thresholds", "points": 9},
        "distribution": {"kind": "threshold", "at": 4, "noise": 0.1},
        "learner": {"kind": "stable", "gamma": 0.1},
        "measure": {"quantities": ["excess_error", "stability"]},
        "sweep": {"n": [5, 20, 80], **axes},
    }
    for section in axes.keys() & spec.keys():
        del spec[section]
    return load_spec(spec)


LEARNERS = [
    {"label": "stable", "kind": "stable"},
    {"label": "size 4", "kind": "stable", "subset_size": 4},
    {"label": "exponential", "kind": "exponential", "epsilon": 0.5},
]
AXES = {"learner": LEARNERS, "distribution.noise": [0.0, 0.1], "learner.gamma": [0.05, 0.1, 0.2, 0.4]}


def test_each_cell_has_the_estimate_of_its_own_problem() -> None:
    sweep = sweep_of(**AXES)
    made = plan(sweep, workers=2, costs=STEADY)
    assert made.which.shape == sweep.shape == (3, 3, 2, 4)
    some = 0
    for index in sweep.indices():
        problem = build_problem(sweep.cell(index), sweep)
        estimate = made.estimate(index)
        assert estimate.infeasible == infeasible(problem)
        if estimate.infeasible is None:
            assert estimate.method == method_of(problem)
            assert_allclose(estimate.seconds, STEADY.seconds(operations(problem)))
        else:
            assert (estimate.method, estimate.seconds, estimate.blocks) == ("", 0.0, 0)
            some += 1
    assert some  # n = 5 with γ = 0.05 is below n' = 1


def test_laws_of_one_kind_share_their_groups() -> None:
    sweep = sweep_of(**AXES)
    rows, _ = Grid(sweep).groups
    assert len(rows) == 3 * (4 + 4 + 1)  # n × (γ of two stable learners, one exponential), whatever the noise


def test_laws_that_differ_in_what_they_can_give_are_not_one_group(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("x,y\n" + "".join(f"{i % 9},{i % 2}\n" for i in range(30)), encoding="utf-8")
    table = {"kind": "table", "path": str(rows), "features": ["x"], "label": "y"}
    laws = [
        {"label": "noisy", "kind": "threshold", "at": 4, "noise": 0.1},
        {"name": "real", **table},
        {"label": "clean", "kind": "threshold", "at": 4},
    ]
    sweep = sweep_of(distribution=laws)
    made = plan(sweep, workers=2, costs=STEADY)
    assert [made.estimate((i, 1)).infeasible is None for i in range(3)] == [False, True, False]
    assert "30 rows" in str(made.estimate((2, 1)).infeasible)
    assert [made.estimate((i, 0)).infeasible is None for i in range(3)] == [False, True, True]
    assert_array_equal(made.which[:, 0], made.which[:, 2])


def test_timings_change_shapes_and_estimates_alone() -> None:
    sweep = sweep_of(trials=64, **AXES)
    slow, quick = (
        plan(sweep, workers=2, costs=Costs(speeds=dict.fromkeys(kernels(sweep), speed))) for speed in (1e-6, 1e-12)
    )
    assert slow.schema.tiles != quick.schema.tiles
    assert slow.core_seconds > 100 * quick.core_seconds
    for index in sweep.indices():
        a, b = slow.estimate(index), quick.estimate(index)
        assert (a.method, a.infeasible, a.memory) == (b.method, b.infeasible, b.memory)


def kernels(sweep: Sweep) -> set[str]:
    problems = [build_problem(sweep.cell(i), sweep) for i in sweep.indices()]
    return {k for p in problems if infeasible(p) is None for k in operations(p)}


def test_tiles_hold_every_trial_of_every_cell_once() -> None:
    sweep = sweep_of(trials=6, **AXES)
    made = plan(sweep, workers=2, costs=Costs(fixed=0.2))
    seen = np.zeros((*sweep.shape, 6), dtype=int)
    seconds = 0.0
    for key in made.schema.keys():  # noqa: SIM118  (a method that yields tiles, not a dictionary's)
        for index, trial in product(made.tile_cells(key), made.tile_trials(key)):
            seen[(*index, trial)] += 1
        seconds += made.tile_seconds[key]
    assert_array_equal(seen, 1)
    assert_allclose(seconds, made.core_seconds)
    assert made.tiles == math.prod(made.schema.tiles) == made.tasks


def test_the_schema_says_what_is_measured_and_where_it_comes_from() -> None:
    sweep = sweep_of(**AXES)
    schema = plan(sweep, workers=2, costs=STEADY).schema
    assert [a.name for a in schema.axes] == ["n", "learner", "noise", "gamma", "trial"]
    assert [a.values.dtype.kind for a in schema.axes] == ["i", "U", "f", "f", "i"]
    assert [schema.axes[i].chunk for i in (0, 1)] == [1, 1]
    variables = {v.name: v for v in schema.variables}
    assert {
        "excess_error",
        "excess_error_status",
        "stability",
        "stability_status",
        "status",
        "audit",
    } <= variables.keys()
    for variable in variables.values():
        assert {"long_name", "units", "description"} <= variable.attributes.keys()
        flagged = variable.dtype == "uint8"
        assert flagged == ("flag_values" in variable.attributes)
        if flagged:
            flags = variable.attributes["flag_values"], str(variable.attributes["flag_meanings"]).split()
            assert len(flags[0]) == len(flags[1])
    assert "Dagan & Feldman" in str(variables["stability"].attributes["description"])
    assert schema.attributes["spec"] == sweep.text
    assert json.loads(schema.attributes["resolved"])["targets"] == {"limits": {}, "confidence": 0.9}
    assert len(schema.attributes["spec_hash"]) == 64
    assert json.loads(schema.attributes["versions"]).keys() >= {"python", "predcube", "numpy", "zarr"}


def test_a_stores_own_chunks_are_kept() -> None:
    sweep = sweep_of(trials=64, **AXES)
    first = plan(sweep, workers=2, costs=Costs(fixed=1.0))
    again = plan(sweep, workers=2, costs=Costs(fixed=1e-6), schema=first.schema)
    assert again.schema is first.schema
    assert again.tile_seconds.shape == first.schema.tiles


def test_a_sweep_without_axes_is_planned() -> None:
    one = {"n": 40, "trials": 12, "hypotheses": {"kind": "thresholds", "points": 9}, "learner": {"kind": "erm"}}
    made = plan(load_spec({**one, "distribution": {"kind": "threshold", "at": 4}}), workers=2, costs=STEADY)
    assert (made.cells, [a.name for a in made.schema.axes]) == (1, ["trial"])
    assert sum(len(made.tile_trials(k)) for k in made.schema.keys()) == 12  # noqa: SIM118


def test_a_plan_over_budget_is_refused_with_numbers_and_cures() -> None:
    sweep = sweep_of(trials=100)
    hours = plan(sweep, workers=2, costs=STEADY).core_seconds / 3600
    plan(sweep, workers=2, costs=STEADY, budget=hours * 1.001)
    with pytest.raises(OverBudget) as caught:
        plan(sweep, workers=2, costs=STEADY, budget=hours / 4)
    message = str(caught.value)
    assert caught.value.status == 4
    assert f"about {hours:.3g} core-hours, above the budget of {hours / 4:g}" in message
    assert "lower trials from 100 to 2" in message
    assert "leave out n = 80" in message
    raised = float(message.rpartition("raise the budget to ")[2])
    plan(sweep, workers=2, costs=STEADY, budget=raised)


def test_long_cells_are_fanned_out_and_short_ones_are_not() -> None:
    spec = {
        "trials": 2,
        "n": 60,
        "hypotheses": {"kind": "thresholds"},
        "distribution": {"kind": "threshold", "at": 0.5},
        "learner": {"kind": "stable", "subset_size": 5, "gamma": 0.1},
        "measure": {"quantities": ["error"], "method": "enumerate"},
    }
    sweep = load_spec(spec)
    [kernel] = kernels(sweep)
    count = operations(build_problem(sweep.cell(()), sweep))[kernel]
    short = plan(sweep, workers=2, costs=Costs(speeds={kernel: 1.0 / count}))
    assert {short.level(k) for k in short.schema.keys()} == {None}  # noqa: SIM118
    assert short.tasks == short.tiles
    long = plan(sweep, workers=2, costs=Costs(speeds={kernel: 10000.0 / count}))
    estimate = long.estimate(())
    if estimate.blocks < 2:
        pytest.skip("the enumeration is one block")
    level = long.level((0,))
    assert level is not None
    assert long.tasks > long.tiles
    # Leaves are short, and one level higher they would be longer than wanted.
    leaf = 2**level * estimate.shared / estimate.blocks
    assert leaf <= 5.0 or level == 0


@settings(deadline=None)  # the machine may be busy
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=3),
    st.integers(1, 96),
    st.floats(-6, 3),
    st.integers(1, 16),
    st.integers(0, 2**31),
)
def test_chunks_divide_their_axes_and_tiles_are_not_too_long(
    shape: list[int], trials: int, scale: float, workers: int, seed: int
) -> None:
    paths = ["n", "learner.gamma", "distribution.noise"]
    values = {
        "n": lambda m: list(range(20, 20 + m)),
        "learner.gamma": lambda m: [0.1 + 0.01 * i for i in range(m)],
        "distribution.noise": lambda m: [0.01 * i for i in range(m)],
    }
    sweep = sweep_of(trials, **{p: values[p](m) for p, m in zip(paths, shape, strict=False)})
    seconds = 10**scale * np.random.default_rng(seed).lognormal(size=sweep.shape)
    *lengths, along_trials = chunk_lengths(sweep, seconds, workers)
    assert lengths[0] == 1
    assert all(m % c == 0 for m, c in zip(shape, lengths, strict=True))
    assert trials % along_trials == 0
    sums = block_sums(seconds, lengths) * along_trials
    assume(sums.size)
    one = all(c == 1 for c in lengths) and along_trials == 1
    assert one or sums.max() <= LONGEST * (1 + 1e-9)


def test_cheap_cells_are_joined_and_dear_ones_cut() -> None:
    sweep = sweep_of(32, **{"n": list(range(20, 40)), "learner.gamma": [0.1 + 0.01 * i for i in range(20)]})
    assert chunk_lengths(sweep, np.full((20, 20), 1e-3), 2) == (1, 20, 32)
    assert chunk_lengths(sweep, np.full((20, 20), 0.2), 2) == (1, 1, 32)
    assert chunk_lengths(sweep, np.full((20, 20), 20.0), 2) == (1, 1, 1)
    assert chunk_lengths(sweep, np.full((20, 20), 1.0), 2) == (1, 1, 8)


@settings(deadline=None)  # the machine may be busy
@given(st.integers(1, 5000))
def test_divisors_are_all_of_them(n: int) -> None:
    assert divisors(n) == [d for d in range(1, n + 1) if n % d == 0]


def test_speeds_are_found_again_from_runs() -> None:
    true = Costs(fixed=2e-3, speeds={"laplace": 4e-9, "audit": 1e-10})
    runs = [
        Run(counts={"laplace": a, "audit": b}, trial=True, seconds=true.seconds({"laplace": a, "audit": b}))
        for a, b in [(1e3, 1e6), (1e6, 1e6), (1e7, 1e8), (1e5, 1e9)]
    ]
    found = fit(runs, ["audit", "laplace"])
    for measured in runs:
        assert_allclose(found.seconds(measured.counts), measured.seconds, rtol=0.03)
    assert_allclose(
        found.seconds({"laplace": 3e6, "audit": 3e7}), true.seconds({"laplace": 3e6, "audit": 3e7}), rtol=0.1
    )


def test_a_speed_that_changes_with_the_size_is_followed() -> None:
    true = {c: 5e-4 + 1e-5 * c**0.5 for c in (1e4, 1e5, 1e6, 1e7, 1e8)}
    runs = [Run(counts={"audit": c}, trial=True, seconds=true[c]) for c in (1e4, 1e6, 1e8)]
    found = fit(runs, ["audit"])
    for c, seconds in true.items():
        assert_allclose(found.seconds({"audit": c}), seconds, rtol=0.2 if c in (1e4, 1e6, 1e8) else 0.35)


def test_the_calibrated_estimate_is_near_what_it_takes_here() -> None:
    sweep = sweep_of(trials=4, **{"n": [40, 160], "learner.gamma": [0.1, 0.2]})
    made = plan(sweep, workers=2)
    problems = [build_problem(sweep.cell(i), sweep) for i in sweep.indices()]
    for problem in problems:
        measure(problem, 0)
    start = process_time()
    for problem, trial in product(problems, range(sweep.trials)):
        measure(problem, trial)
    taken = process_time() - start
    assert taken / 5 < made.core_seconds < taken * 5


def test_bytes_on_disk_are_near_what_a_run_leaves_there(tmp_path: Path) -> None:
    sweep = sweep_of(trials=12, **{"distribution.noise": [0.0, 0.1, 0.2]})
    made = plan(sweep, workers=1, costs=STEADY)
    run(sweep, tmp_path / "cube", cluster="serial")
    schema = read_schema(str(tmp_path / "cube"))
    left = sum(p.stat().st_blocks * 512 for p in [tmp_path / "cube", *(tmp_path / "cube").rglob("*")])
    assert left / 2 < bytes_on_disk(schema) < left * 2
    assert made.bytes == bytes_on_disk(made.schema)


def test_a_plan_is_shown_to_people_and_to_programs() -> None:
    made = plan(sweep_of(**AXES), workers=2, costs=STEADY)
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(as_text(made))
    text = console.export_text()
    for words in ("72 (3 n × 3 learner × 2 noise × 4 gamma), 8 trials each", "infeasible", "is below 1", "a worker"):
        assert words in text
    data = as_data(made)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert len(data["grid"]) == data["cells"] == 72
    assert data["infeasible_cells"] == sum(c["infeasible"] is not None for c in data["grid"])
    assert set(data["tile_shape"]) == {"n", "learner", "noise", "gamma", "trial"}
