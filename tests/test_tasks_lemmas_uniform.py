"""Suprema over a class: uniform convergence and Remark priv-real against loops over functions and grids of cuts."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predcube.tasks import hypotheses, lemmas, lemmas_uniform, predict
from predcube.tasks import learners as of
from predcube.tasks.bounds import uniform_deviation_bound
from predcube.tasks.distributions import Concept, Table, Threshold
from predcube.tasks.distributions.populations import FinitePopulation, UniformPopulation
from predcube.tasks.learners.base import Learner
from predcube.tasks.learners.records import records
from predcube.tasks.mixture import tally
from predcube.tasks.trials import Problem, infeasible, measure, prepare

type Sample = list[tuple[int, int]]

LAWS = st.lists(st.integers(0, 5), min_size=6, max_size=6).filter(any)
SAMPLES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=2, max_size=7)
FUNCTIONS = {
    "thresholds": [tuple(int(x >= a) for x in range(3)) for a in range(4)],
    "points": [tuple(int(x == a) for x in range(3)) for a in range(4)],
    "intervals": [tuple(int(a <= x < b) for x in range(3)) for a in range(4) for b in range(a, 4)],
    "cube": list(itertools.product((0, 1), repeat=3)),
}


def drawn(s: Sample) -> Any:
    return tally(np.array([x for x, _ in s]), np.array([y for _, y in s], dtype=np.uint8))


@settings(max_examples=40, deadline=None)
@given(SAMPLES, LAWS, st.sampled_from(sorted(FUNCTIONS)))
def test_uniform_deviation_is_the_loop_over_every_function(s: Sample, weights: list[int], kind: str) -> None:
    law = np.array(weights, dtype=float).reshape(3, 2) / sum(weights)
    worst = 0.0
    for f in FUNCTIONS[kind]:
        on_law = sum(law[x, 1 - f[x]] for x in range(3))
        worst = max(worst, abs(on_law - sum(f[x] != y for x, y in s) / len(s)))
    population = FinitePopulation(points=np.arange(3), law=law)
    got = lemmas_uniform.uniform_deviation(hypotheses.build(kind, points=3), population, drawn(s))
    assert got.value == pytest.approx(worst, abs=1e-14)
    assert got.exact


@pytest.mark.parametrize("kind", ["thresholds", "intervals", "points"])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_on_the_line_the_supremum_is_the_limit_of_ever_finer_grids(kind: str, noise: float) -> None:
    """Functions with their cuts on a grid come near it from below."""
    h = hypotheses.build(kind)
    names: dict[str, Any] = {"thresholds": 0.3, "intervals": (0.2, 0.7), "points": 0.5}
    law = Concept(hypothesis=names[kind], noise=noise)
    draw = law.draw(h, 9, np.random.default_rng(5))
    got = lemmas_uniform.uniform_deviation(h, draw.population, tally(draw.x, draw.y))
    assert got.exact
    step = 0.002 if kind != "intervals" else 0.01
    grid = np.arange(-step, 1 + 2 * step, step)
    cuts = np.unique(np.concatenate([grid, draw.x])) if kind == "points" else grid

    def truth(x: np.ndarray[Any, Any]) -> Any:
        return x >= 0.3 if kind == "thresholds" else (x >= 0.2) & (x <= 0.7) if kind == "intervals" else x == 0.5

    fine = (np.arange(20000) + 0.5) / 20000  # the law by a sum over cells
    functions = (
        [lambda x, a=a: x >= a for a in cuts]
        if kind == "thresholds"
        else [lambda x, a=a: x == a for a in cuts]
        if kind == "points"
        else [lambda x, a=a, b=b: (x >= a) & (x <= b) for a, b in itertools.combinations(cuts, 2)]
    )
    best = 0.0
    for f in functions:
        apart = float((f(fine) != truth(fine)).mean())
        best = max(best, abs(noise + (1 - 2 * noise) * apart - float((f(draw.x) != draw.y).mean())))
    assert best <= got.value + 2e-4
    assert got.value <= best + 2.5 * step


def test_a_table_is_judged_on_the_rows_left_out() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, 40), rng.integers(0, 2, 40).astype(np.uint8)
    table = Table(x=x, y=y, digest="t")
    h = hypotheses.build("thresholds")
    draw = table.draw(h, 15, np.random.default_rng(1))
    got = lemmas_uniform.uniform_deviation(h, draw.population, tally(draw.x, draw.y))
    rest_x, rest_y = list(x), list(y)
    for a, b in zip(draw.x, draw.y, strict=True):
        i = next(i for i in range(len(rest_x)) if (rest_x[i], rest_y[i]) == (a, b))
        del rest_x[i], rest_y[i]
    worst = max(abs(np.mean((np.array(rest_x) >= a) != rest_y) - np.mean((draw.x >= a) != draw.y)) for a in range(7))
    assert got.value == pytest.approx(worst, abs=1e-12)
    assert got.exact


def test_too_many_labelings_give_a_lower_bound() -> None:
    h = hypotheses.build("boxes", dimension=2)
    population = Concept(hypothesis=(0.1, 0.1, 0.8, 0.8), noise=0.0)
    draw = population.draw(h, 12, np.random.default_rng(0))
    got = lemmas_uniform.uniform_deviation(h, draw.population, tally(draw.x, draw.y))
    assert not got.exact
    assert 0 < got.value < 1


# --- Remark priv-real -------------------------------------------------------------------------------------------------


def sigma(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def voted(points: list[int], f: tuple[int, ...], r: int, privacy: float, x: int) -> float:
    """The vote of chunks that are trained on the points as f labels them: thresholds."""
    ones = 0
    for part in np.array_split(range(len(points)), r):
        cut = min((points[i] for i in part if f[points[i]]), default=math.inf)
        ones += x >= cut
    return sigma(privacy * (2 * ones - r) / 2)


@settings(max_examples=25, deadline=None)
@given(SAMPLES, LAWS, st.integers(1, 2), st.sampled_from([0.3, 1.0, 4.0]), st.booleans())
def test_relabelling_error_of_a_vote_is_the_loop_over_every_threshold(
    s: Sample, weights: list[int], r: int, epsilon: float, main: bool
) -> None:
    """For df_realizable at ε, and for the main learner, whose vote is at 1/(ηn)."""
    n = len(s)
    learner: Learner = of.build("df_realizable", epsilon=epsilon, alpha=0.2, chunks=r)
    privacy = epsilon
    if main:
        learner = of.build("private", epsilon=1.0, alpha=0.2, eta=1 / (epsilon * n), chunks=r, subset_size=1)
    law = np.array(weights, dtype=float).reshape(3, 2) / sum(weights)
    points = [x for x, _ in s]
    worst = 0.0
    for f in FUNCTIONS["thresholds"]:
        worst = max(worst, sum(law[x].sum() * abs(f[x] - voted(points, f, r, privacy, x)) for x in range(3)))
    sample = records(np.array(points), np.array([y for _, y in s], dtype=np.uint8))
    population = FinitePopulation(points=np.arange(3), law=law)
    got = lemmas_uniform.relabelling_error(learner, hypotheses.build("thresholds", points=3), population, sample)
    assert got.value == pytest.approx(worst, rel=1e-10)
    assert got.exact


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("erm", {}),
        ("stable", {"subset_size": 2, "beta": 0.5}),
        ("stable_flip", {"subset_size": 2, "beta": 0.5, "epsilon": 1.0, "alpha": 0.2}),
        ("exponential", {"epsilon": 0.8}),
        ("subsample_average", {"chunks": 2}),
    ],
)
@pytest.mark.parametrize("name", ["thresholds", "intervals", "cube"])
def test_relabelling_error_of_any_learner_is_its_error_on_the_worst_relabelling(
    kind: str, options: dict[str, Any], name: str
) -> None:
    h, learner = hypotheses.build(name, points=3), of.build(kind, **options)
    x = np.array([0, 2, 1, 1, 2])
    mass = np.array([0.2, 0.5, 0.3])
    worst = 0.0
    for f in FUNCTIONS[name]:
        p = predict(learner, h, x, np.array(f)[x], [0, 1, 2]).p
        worst = max(worst, float(mass @ np.abs(np.array(f) - p)))
    make = records if learner.ordered else tally
    sample = make(x, np.array([0, 1, 1, 0, 0], dtype=np.uint8))
    population = FinitePopulation(points=np.arange(3), law=np.column_stack([mass / 2, mass / 2]))
    got = lemmas_uniform.relabelling_error(learner, h, population, sample)
    assert got.value == pytest.approx(worst, rel=1e-10)
    assert got.exact


@pytest.mark.parametrize("kind", ["thresholds", "intervals", "points"])
def test_relabelling_error_on_the_line_is_the_limit_of_ever_finer_grids(kind: str) -> None:
    h = hypotheses.build(kind)
    learner = of.build("df_realizable", epsilon=1.0, alpha=0.2, chunks=3)
    x = np.sort(np.random.default_rng(6).random(6))[[3, 0, 5, 1, 4, 2]]
    concept = h.named({"thresholds": 0.4, "intervals": [0.2, 0.5], "points": 0.5}[kind])
    population = UniformPopulation(concept=concept, noise=0.0)
    got = lemmas_uniform.relabelling_error(learner, h, population, records(x, np.zeros(6, dtype=np.uint8)))
    assert got.exact
    step = 0.01 if kind == "intervals" else 0.002
    grid = (
        np.unique(np.concatenate([np.arange(-step, 1 + 2 * step, step), x]))
        if kind != "intervals"
        else np.arange(-step, 1 + 2 * step, step)
    )
    fine = (np.arange(2000) + 0.5) / 2000
    functions = (
        [lambda v, a=a: v >= a for a in grid]
        if kind == "thresholds"
        else [lambda v, a=a: v == a for a in grid]
        if kind == "points"
        else [lambda v, a=a, b=b: (v >= a) & (v <= b) for a, b in itertools.combinations(grid, 2)]
    )
    best, known = 0.0, {}
    for f in functions:
        labels = f(x).astype(np.uint8)
        key = labels.tobytes()
        if key not in known:
            known[key] = predict(learner, h, x, labels, fine).p
        best = max(best, float(np.abs(f(fine) - known[key]).mean()))
    assert best <= got.value + 1e-3
    assert got.value <= best + 2.5 * step


def test_many_labelings_are_thinned_to_a_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    h = hypotheses.build("cube", points=6)
    learner = of.build("df_realizable", epsilon=1.0, alpha=0.2, chunks=2)
    sample = records(np.arange(6), np.zeros(6, dtype=np.uint8))
    population = FinitePopulation(points=np.arange(6), law=np.full((6, 2), 1 / 12))
    whole = lemmas_uniform.relabelling_error(learner, h, population, sample)
    monkeypatch.setattr(lemmas_uniform, "PATTERNS", 5)
    some = lemmas_uniform.relabelling_error(learner, h, population, sample)
    assert whole.exact
    assert not some.exact
    assert 0 < some.value <= whole.value


# --- in trials --------------------------------------------------------------------------------------------------------


def test_uniform_convergence_at_its_confidence() -> None:
    """Of many samples no more than β go beyond the bound, and a bound half as wide is no bound."""
    cell = Problem(
        hypotheses=hypotheses.build("thresholds", points=8),
        distribution=Threshold(at=3, noise=0.2),
        learner=of.build("erm"),
        n=100,
        quantities=("uniform_deviation",),
        seed=1,
    )
    values = np.array([measure(cell, t)["uniform_deviation"] for t in range(200)])
    bound = lemmas.bound("uniform_deviation", cell.learner, cell.hypotheses, 100, 0.1)
    assert bound == pytest.approx(uniform_deviation_bound(100, 0.1, math.log(9), math.log(9)))
    assert (values > bound).mean() <= 0.1
    assert (values > bound / 3).mean() > 0.1
    assert measure(cell, 0)["supremum"] == 1
    draw = prepare(cell, 0).draw
    assert (
        measure(cell, 0)["uniform_deviation"]
        == lemmas_uniform.uniform_deviation(cell.hypotheses, draw.population, tally(draw.x, draw.y)).value
    )


def test_relabelling_error_falls_with_n_and_says_where_it_cannot_be_had() -> None:
    def cell(n: int, **options: Any) -> Problem:
        return Problem(
            hypotheses=hypotheses.build("thresholds", **options),
            distribution=Threshold(at=0.4 if not options else 2, noise=0.1),
            learner=of.build("df_realizable", epsilon=2.0, alpha=0.1),
            n=n,
            quantities=("relabelling_error",),
            seed=1,
        )

    means = [np.mean([measure(cell(n), t)["relabelling_error"] for t in range(6)]) for n in (20, 80, 320)]
    assert means[0] > means[1] > means[2]
    many = Problem(
        hypotheses=hypotheses.build("boxes", dimension=2),
        distribution=Concept(hypothesis=(0.1, 0.1, 0.8, 0.8), noise=0.0),
        learner=of.build("df_realizable", epsilon=2.0, alpha=0.1, chunks=3),
        n=20,
        quantities=("relabelling_error",),
        seed=1,
    )
    assert "2 real features" in (infeasible(many) or "")
