"""δ(ε) curves from the spec to the page: values against sums written apart, the extra axis through every reader."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from typer.testing import CliRunner

from predcube import storage
from predcube.pipeline import figures
from predcube.pipeline.cli import asking  # noqa: F401  (registers the commands)
from predcube.pipeline.cli.app import app
from predcube.pipeline.costs import Costs
from predcube.pipeline.execution import execute
from predcube.pipeline.headlines import headlines
from predcube.pipeline.opening import read_surfaces
from predcube.pipeline.planning import plan
from predcube.pipeline.queries import query
from predcube.pipeline.reporting import report
from predcube.pipeline.resuming import reconcile
from predcube.pipeline.shaping import blueprint, bytes_on_disk
from predcube.pipeline.spec import load_spec, problems
from predcube.tasks import hypotheses, learners
from predcube.tasks.bounds import delta_bound
from predcube.tasks.distributions import Threshold
from predcube.tasks.trials import Problem, measure, prepare

GRID = [0.0, 0.2, 0.7, 3.0]
SPEC: dict[str, Any] = {
    "name": "curves",
    "seed": 5,
    "trials": 4,
    "hypotheses": {"kind": "thresholds", "points": 3},
    "distribution": {"kind": "threshold", "at": 1, "noise": 0.1},
    "measure": {"quantities": ["error", "delta", "privacy_loss", "stability"], "delta_epsilon": GRID},
    "sweep": {
        "n": [6, 12],
        "learner": [
            {"label": "exp", "kind": "exponential", "epsilon": 0.6},
            {"label": "stable", "kind": "stable", "subset_size": 3, "beta": 0.4},
        ],
    },
}


def filled(url: Path, spec: dict[str, Any] = SPEC, *, chunks: tuple[int, ...] | None = None) -> str:
    standing = reconcile(load_spec(spec), str(url), extend=True)
    schema = standing.schema
    if schema is None and chunks is not None:
        schema = blueprint(standing.sweep, chunks, {})
    execute(plan(standing.sweep, workers=1, schema=schema, costs=Costs()), str(url), cluster="serial", extend=True)
    return str(url)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return filled(tmp_path_factory.mktemp("delta") / "cube.zarr")


def answers(epsilon: float, k: int, records: list[tuple[int, int]]) -> list[float]:
    """p(x) of the exponential mechanism over 1{x ≥ a}, a = 0, …, k, on {0, …, k − 1}."""
    weights = [math.exp(-epsilon / 2 * sum((x >= a) != y for x, y in records)) for a in range(k + 1)]
    return [sum(w for a, w in enumerate(weights) if x >= a) / sum(weights) for x in range(k)]


def curve(epsilon: float, k: int, records: list[tuple[int, int]], grid: list[float]) -> list[float]:
    """δ at each ε of the grid over every replacement of every record, both directions, both answers."""
    base, found = answers(epsilon, k, records), [0.0] * len(grid)
    for i in range(len(records)):
        for new in ((x, y) for x in range(k) for y in (0, 1)):
            other = answers(epsilon, k, [*records[:i], new, *records[i + 1 :]])
            for p, q in zip(base, other, strict=True):
                for a, b in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
                    found = [max(f, a - math.exp(e) * b) for f, e in zip(found, grid, strict=True)]
    return found


def test_stored_curves_are_the_brute_force_of_each_sample(store: str) -> None:
    trials = storage.open_cube(store)["trials"]
    assert trials["delta"].dims == ("n", "learner", "trial", "delta_epsilon")
    np.testing.assert_array_equal(trials["delta_epsilon"].values, GRID)
    for n in (6, 12):
        problem = Problem(
            hypotheses=hypotheses.build("thresholds", points=3),
            distribution=Threshold(at=1, noise=0.1),
            learner=learners.build("exponential", epsilon=0.6),
            n=n,
            quantities=("delta",),
            seed=5,
            delta_epsilon=tuple(GRID),
        )
        for trial in range(4):
            draw = prepare(problem, trial).draw
            records = [(int(x), int(y)) for x, y in zip(draw.x, draw.y, strict=True)]
            expected = curve(0.6, 3, records, GRID)
            got = trials["delta"].sel(n=n, learner="exp", trial=trial)
            np.testing.assert_allclose(got, expected, atol=1e-13, rtol=0)
            np.testing.assert_array_equal(np.asarray(measure(problem, trial)["delta"]), got)


def test_a_curve_falls_from_the_stability_to_nothing_at_the_privacy_loss(store: str) -> None:
    trials = storage.open_cube(store)["trials"].to_dataset()
    np.testing.assert_allclose(trials["delta"].sel(delta_epsilon=0.0), trials["stability"], rtol=1e-12)
    assert (np.diff(trials["delta"].transpose(..., "delta_epsilon").values) <= 0).all()
    beyond = trials["delta_epsilon"] >= trials["privacy_loss"]
    assert bool(beyond.any())
    assert (trials["delta"].where(beyond, 0.0) <= 1e-12).all()
    assert (trials["delta"].where(~beyond, 1.0) > 0).all()


def test_surfaces_have_mean_maximum_interval_and_the_guarantee_beside(store: str) -> None:
    data = read_surfaces(store)
    trials = storage.open_cube(store)["trials"].to_dataset()
    np.testing.assert_allclose(data["delta"], trials["delta"].mean("trial"), rtol=1e-12)
    np.testing.assert_array_equal(data["delta_maximum"], trials["delta"].max("trial"))
    assert (data["delta_lower"] <= data["delta"]).all()
    assert (data["delta"] <= data["delta_upper"]).all()
    assert data["bound_delta"].dims == ("n", "learner", "delta_epsilon")
    exp = data.sel(learner="exp")
    for e in GRID:
        g = 0.6
        wanted = max(0.0, (math.exp(g) - math.exp(e)) * min(1 / (1 + math.exp(g)), math.tanh(g / 4) / math.expm1(g)))
        np.testing.assert_allclose(exp["bound_delta"].sel(delta_epsilon=e), wanted, rtol=1e-12)
    stable = data.sel(learner="stable")  # no privacy at all: the stability is all that is promised
    for n in (6, 12):
        gamma = 3 / n + (1 - 3 / n) * math.tanh(0.2)
        np.testing.assert_allclose(stable["bound_delta"].sel(n=n), gamma, rtol=1e-12)
    measured = data["ratio_delta"].values[data["bound_delta"].values > 0]
    assert np.isfinite(measured).all()
    assert (measured <= 1 + 1e-12).all()
    assert np.isnan(data["ratio_delta"].values[data["bound_delta"].values == 0]).all()


@pytest.mark.parametrize("g", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("gamma", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.9, 2.5, 3.0])
def test_the_bound_on_delta_is_the_optimum_of_its_linear_program(g: float, gamma: float, epsilon: float) -> None:
    """max p − e^ε q over 0 ≤ p, q ≤ 1 with both answers' ratios at most e^g both ways, and |p − q| ≤ γ."""
    e = math.exp(g)
    rows = [[1, -e], [-e, 1], [e, -1], [-1, e], [1, -1], [-1, 1]]
    right = [0, 0, e - 1, e - 1, gamma, gamma]
    best = linprog([-1, math.exp(epsilon)], A_ub=rows, b_ub=right, bounds=[(0, 1), (0, 1)])
    assert delta_bound(epsilon, g, gamma) == pytest.approx(-best.fun, abs=1e-9)


def test_the_bound_on_delta_at_its_ends() -> None:
    assert delta_bound(1.0, 1.0) == 0.0
    assert delta_bound(5.0, math.inf, 0.3) == pytest.approx(0.3)
    assert delta_bound(0.0, 900.0) == pytest.approx(1.0)  # e^900 is beyond a float
    assert delta_bound(0.0, 1.0) == pytest.approx(math.tanh(0.5))


# --- the axis through every reader ------------------------------------------------------------------------------------


def test_rows_leave_a_curve_out_and_say_so_until_its_axis_is_fixed(store: str) -> None:
    plain = query(store)
    assert plain.num_rows == 4
    assert "delta" not in plain.column_names
    assert json.loads((plain.schema.metadata or {})[b"predcube_aside"]) == {"delta": ["delta_epsilon"]}
    fixed = query(store, at={"delta_epsilon": 0.7})
    assert fixed.num_rows == 4
    assert fixed["delta_epsilon"].to_pylist() == [0.7] * 4
    assert {"delta", "delta_lower", "delta_upper", "error"} <= set(fixed.column_names)
    whole = query(store, select=["delta"]).to_pylist()
    data = read_surfaces(store)
    assert len(whole) == 16
    for row in whole:
        cell = data["delta"].sel(n=row["n"], learner=row["learner"], delta_epsilon=row["delta_epsilon"])
        assert row["delta"] == float(cell)
    said = CliRunner().invoke(app, ["query", store, "--format", "csv"], catch_exceptions=False)
    assert "delta runs over delta_epsilon too: --select delta, or --at delta_epsilon=VALUE" in said.stderr
    said = CliRunner().invoke(app, ["query", store, "--at", "delta_epsilon=0.2", "--format", "csv"])
    assert "runs over" not in said.stderr
    assert said.stdout.startswith('"n","learner","delta_epsilon","error"')


def test_all_columns_have_the_curves_where_the_axis_is_fixed(store: str) -> None:
    assert "delta_maximum" not in query(store, select=["*"]).column_names
    assert "ratio_delta" in query(store, select=["*"], at={"delta_epsilon": [0.0, 3.0]}).column_names


def test_the_smallest_epsilon_at_which_delta_is_small(store: str) -> None:
    rows = query(store, smallest="delta_epsilon", such_that="delta_maximum <= 0.01").to_pylist()
    data = read_surfaces(store)
    assert len(rows) == 4
    for row in rows:
        along = data["delta_maximum"].sel(n=row["n"], learner=row["learner"])
        held = [e for e in GRID if float(along.sel(delta_epsilon=e)) <= 0.01]
        assert row["smallest_delta_epsilon"] == held[0]


def test_pictures_headlines_report_and_files_know_the_axis(store: str, tmp_path: Path) -> None:
    figure = figures.plot(store, x="delta_epsilon", y="delta", hue="learner", facet="n")
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert lines
    drawn = figure.axes[0].get_lines()[0]
    data = read_surfaces(store)
    np.testing.assert_array_equal(np.asarray(drawn.get_xdata()), GRID)
    np.testing.assert_array_equal(np.asarray(drawn.get_ydata()), data["delta"].isel(n=0, learner=0))
    along = figures.plot(store, x="n", y="delta", hue="delta_epsilon", at={"learner": "exp"})
    assert along.axes[0].get_lines()
    titles = {h.title.rpartition(", ")[2]: h.rows.column_names for h in headlines(data)}
    assert titles["delta"] == ["n", "learner", *(f"delta_epsilon={e:g}" for e in GRID)]
    assert titles["error"] == ["learner", "n=6", "n=12"]
    page = report(store)
    assert "measured δ at given ε" in page
    assert "delta_epsilon" in page
    written = storage.export(store, tmp_path / "out.parquet")
    assert {p.name for p in written} >= {"out.delta_epsilon.parquet", "out.trials_delta_epsilon.parquet"}
    table = pq.read_table(tmp_path / "out.trials_delta_epsilon.parquet")
    assert table.num_rows == 2 * 2 * 4 * 4


def test_bytes_are_the_same_for_any_tiles_and_after_growth(store: str, tmp_path: Path) -> None:
    def content(url: str) -> dict[str, NDArray[Any]]:
        tree = storage.open_cube(url)
        groups = {g: tree[g].to_dataset(inherit=False).sortby("n") for g in ("trials", "surfaces")}
        return {f"{g}/{n}": v.values for g, data in groups.items() for n, v in data.variables.items()}

    whole = content(store)
    cut = content(filled(tmp_path / "cut.zarr", chunks=(1, 1, 2)))
    shorter = {**SPEC, "sweep": {**SPEC["sweep"], "n": [12]}}
    filled(tmp_path / "grown.zarr", shorter)
    grown = content(filled(tmp_path / "grown.zarr"))
    assert whole.keys() == cut.keys() == grown.keys()
    for name, array in whole.items():
        np.testing.assert_array_equal(array, cut[name], err_msg=name)
        np.testing.assert_array_equal(array, grown[name], err_msg=name)


# --- the spec ---------------------------------------------------------------------------------------------------------


def with_measure(**measure: Any) -> dict[str, Any]:
    return {**SPEC, "measure": measure}


def test_the_grid_is_ascending_floats_with_a_default() -> None:
    assert load_spec(with_measure(quantities=["delta"])).measure["delta_epsilon"][0] == 0.0
    given = load_spec(with_measure(quantities=["delta"], delta_epsilon=[2, 0, 0.5]))
    assert given.measure["delta_epsilon"] == [0.0, 0.5, 2.0]
    schema = blueprint(given, [1, 1, 4], {})
    assert [(a.name, a.values.tolist()) for a in schema.extra] == [("delta_epsilon", [0.0, 0.5, 2.0])]
    assert schema.shape(next(v for v in schema.variables if v.name == "delta")) == (1, 1, 4, 3)
    plain = load_spec(with_measure(quantities=["error"]))
    assert "delta_epsilon" not in plain.measure
    assert not blueprint(plain, [1, 1, 4], {}).extra


def test_a_wider_curve_takes_more_room() -> None:
    sizes = [
        bytes_on_disk(blueprint(load_spec(with_measure(quantities=["delta"], delta_epsilon=grid)), [1, 1, 4], {}))
        for grid in ([0.0], [i / 1000 for i in range(2000)])
    ]
    trials, surfaces = 4 * 4, 10 * 4
    assert sizes[1] - sizes[0] > 0.9 * (trials + surfaces) * 2000 * 8


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        ({"quantities": ["delta"], "delta_epsilon": [0, 0.0]}, "stands twice"),
        ({"quantities": ["delta"], "delta_epsilon": [-1]}, "out of range"),
        ({"quantities": ["delta"], "delta_epsilon": []}, "too short"),
        ({"quantities": ["delta"], "delta_epsilon": 1.0}, "give a list of numbers ≥ 0"),
        ({"quantities": ["error"], "delta_epsilon": [1.0]}, '"delta" is not measured'),
    ],
)
def test_what_is_no_grid_is_refused_at_its_place(measure: dict[str, Any], said: str) -> None:
    found = problems(with_measure(**measure))
    assert len(found) == 1
    assert found[0].path.startswith("measure.delta_epsilon")
    assert said in found[0].message
