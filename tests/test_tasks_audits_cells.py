"""Audits over order cells: no neighbour anywhere in R^p and no query shows more, however the axes are stretched."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from predcube.tasks import audit, hypotheses, learners, predict
from predcube.tasks.curves import delta, staircase
from predcube.tasks.distributions.table import Table
from predcube.tasks.hypotheses import HypothesisClass
from predcube.tasks.learners import Learner
from predcube.tasks.trials import CODES, Problem, infeasible, measure

CLASSES: dict[str, HypothesisClass] = {
    "thresholds": hypotheses.build("thresholds"),
    "points": hypotheses.build("points"),
    "intervals": hypotheses.build("intervals"),
    "interval_unions": hypotheses.build("interval_unions", count=2),
    "stumps": hypotheses.build("stumps", dimension=1),
    "boxes in the plane": hypotheses.build("boxes", dimension=2),
    "stumps in the plane": hypotheses.build("stumps", dimension=2),
}
LEARNERS: dict[str, Learner] = {
    "stable": learners.build("stable", gamma=0.8, subset_size=2),
    "stable_flip": learners.build("stable_flip", epsilon=0.9, alpha=0.2, subset_size=1),
    "stable_net": learners.build("stable_net", gamma=0.8, alpha=0.5, subset_size=2),
    "erm": learners.build("erm"),
    "df_agnostic": learners.build("df_agnostic", epsilon=1.0, chunks=2),
    "private": learners.build("private", epsilon=2.0, alpha=0.1, eta=0.5, chunks=2, subset_size=2),
    "subsample": learners.build("subsample", inner={"kind": "erm"}, subset_size=2),
}
type Point = tuple[float, ...]
GRID = [0.0, 1.0, 1.5]


def data(s: Sequence[tuple[Point, int]], h: HypothesisClass) -> tuple[NDArray[Any], NDArray[Any]]:
    x = np.array([v[: h.features] for v, _ in s])
    return (x[:, 0] if h.features == 1 else x), np.array([y for _, y in s])


def answers(learner: Learner, h: HypothesisClass, s: Any, queries: NDArray[Any]) -> NDArray[Any]:
    got = predict(learner, h, *s, queries)
    return np.stack([got.log_p0, got.log_p1], axis=-1)


samples = st.lists(
    st.tuples(st.tuples(st.sampled_from(GRID), st.sampled_from(GRID)), st.integers(0, 1)), min_size=3, max_size=4
)


@settings(max_examples=30, deadline=None)
@given(
    kind=st.sampled_from(sorted(CLASSES)), name=st.sampled_from(sorted(LEARNERS)), s=samples, seed=st.integers(0, 999)
)
def test_no_neighbour_anywhere_shows_more(kind: str, name: str, s: list[tuple[Point, int]], seed: int) -> None:
    h, learner, rng = CLASSES[kind], LEARNERS[name], np.random.default_rng(seed)
    x, y = data(s, h)
    got = audit(learner, h, x, y)
    assert got.kind == "exhaustive over order cells"
    assert got.exhaustive
    assert got.neighbours == got.possible
    for _ in range(6):
        i = rng.integers(len(s))
        other_x, other_y = x.copy(), y.copy()
        # Anywhere, or on a coordinate of the sample.
        free = np.where(rng.random(x.shape[1:]) < 0.5, rng.uniform(-2, 4, x.shape[1:]), x[rng.integers(len(s))])
        other_x[i], other_y[i] = free, rng.integers(2)
        queries = np.concatenate([rng.uniform(-3, 5, (6, *x.shape[1:])), other_x, other_x + 0.01, other_x - 0.01])
        one, two = (answers(learner, h, sample, queries) for sample in ((x, y), (other_x, other_y)))
        assert np.abs(np.exp(one) - np.exp(two)).max() <= got.stability + 1e-12
        with np.errstate(invalid="ignore"):
            assert np.where(one == two, 0.0, np.abs(one - two)).max() <= got.privacy_loss + 1e-10
            for p, q in ((one, two), (two, one)):
                assert (np.exp(p) - np.exp(q + 0.3)).max() <= got.delta(0.3) + 1e-12
                assert np.exp(p[np.isneginf(q)]).max(initial=0.0) <= got.delta(math.inf) + 1e-12


@settings(max_examples=20, deadline=None)
@given(kind=st.sampled_from(sorted(CLASSES)), name=st.sampled_from(sorted(LEARNERS)), s=samples)
def test_stretching_the_axes_changes_nothing(kind: str, name: str, s: list[tuple[Point, int]]) -> None:
    h, learner = CLASSES[kind], LEARNERS[name]
    stretched = {0.0: -70.0, 1.0: 0.001, 1.5: 1e6}
    one = audit(learner, h, *data(s, h))
    two = audit(learner, h, *data([(tuple(stretched[v] for v in x), y) for x, y in s], h))
    assert one.stability == pytest.approx(two.stability, abs=1e-12)
    assert one.privacy_loss == pytest.approx(two.privacy_loss, rel=1e-10, abs=1e-12)
    assert one.delta(0.2) == pytest.approx(two.delta(0.2), abs=1e-12)
    assert one.possible == two.possible


@pytest.mark.parametrize("kind", ["thresholds", "boxes in the plane"])
def test_witnesses_show_their_values(kind: str) -> None:
    h, learner = CLASSES[kind], LEARNERS["stable"]
    s = [((0.0, 1.0), 0), ((1.0, 0.0), 1), ((1.5, 1.5), 1), ((1.0, 0.0), 0)]
    x, y = data(s, h)
    got = audit(learner, h, x, y)
    for quantity, w in got.witness.items():
        i = next(i for i in range(4) if np.array_equal(np.ravel(x[i]), np.ravel(w.old[0])) and y[i] == w.old[1])
        other_x, other_y = x.copy(), y.copy()
        other_x[i], other_y[i] = w.new
        query = np.array([w.query])
        one, two = (answers(learner, h, sample, query)[0, w.label] for sample in ((x, y), (other_x, other_y)))
        assert (w.log_p, w.log_p_neighbour) == pytest.approx((one, two), abs=1e-12)
        if quantity == "stability":
            assert abs(w.p - w.p_neighbour) == pytest.approx(got.stability, abs=1e-14)
        else:
            assert got.privacy_loss == math.inf == abs(w.log_p - w.log_p_neighbour)


@pytest.mark.parametrize("neighbours", [37, 90])
def test_beyond_the_budget_some_cells_are_drawn(neighbours: int) -> None:
    h, learner = CLASSES["boxes in the plane"], LEARNERS["df_agnostic"]
    rng = np.random.default_rng(3)
    x, y = rng.random((12, 2)), rng.integers(0, 2, 12)
    few = [audit(learner, h, x, y, neighbours=neighbours, seed=seed) for seed in (1, 1, 2)]
    assert few[0].possible == 12 * (2 * 25**2 - 1)
    for got in few:
        assert (got.kind, got.neighbours, got.exhaustive) == ("lower bound", neighbours, False)
        assert 0 < got.stability <= learner.guaranteed_stability(12) + 1e-12
    assert (few[0].pairs == few[1].pairs).all()
    assert str(few[0].witness["stability"]) != str(few[2].witness["stability"])


def test_very_many_moves_are_drawn_without_a_list_of_them() -> None:
    h, learner = hypotheses.build("stumps", dimension=6), LEARNERS["df_agnostic"]
    rng = np.random.default_rng(3)
    x, y = rng.random((20, 6)), rng.integers(0, 2, 20)
    got = audit(learner, h, x, y, neighbours=20)
    assert got.possible == 20 * (2 * 41**6 - 1)
    assert got.neighbours == 20
    assert got.kind == "lower bound"


@pytest.mark.parametrize("dimension", [2, 3])
def test_halfspaces_have_no_order_cells(dimension: int) -> None:
    h, learner = hypotheses.build("halfspaces", dimension=dimension), LEARNERS["stable_flip"]
    x = np.array([[0, 0, 0], [1, 0, 1], [0, 1, 1], [2, 2, 0]])[:, :dimension]
    got = audit(learner, h, x, [0, 1, 1, 0], neighbours=8)
    assert got.kind == "lower bound"
    assert 0 < got.stability <= learner.guaranteed_stability(4) + 1e-12
    assert 0 < got.privacy_loss <= learner.guaranteed_privacy_loss(4) + 1e-12


def test_a_sweep_says_how_far_its_audits_go() -> None:
    rng = np.random.default_rng(5)
    law = Table(x=rng.random((30, 2)), y=rng.integers(0, 2, 30).astype(np.uint8), digest="30 rows")
    for neighbours, code in ((300, 4), (20, 2)):
        problem = Problem(
            hypotheses=CLASSES["boxes in the plane"],
            distribution=law,
            learner=LEARNERS["df_agnostic"],
            n=3,
            quantities=("stability", "privacy_loss"),
            seed=1,
            neighbours=neighbours,
        )
        assert infeasible(problem) is None
        assert measure(problem, 0)["audit"] == code
    assert CODES["audit"]["exhaustive over order cells"] == 4


def test_progress_counts_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    audit(LEARNERS["stable"], CLASSES["thresholds"], [0.0, 1.0, 2.0], [0, 1, 1], progress=lambda *at: told.append(at))
    assert told[-1] == (39, 39)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


@settings(max_examples=100, deadline=None)
@given(
    pairs=st.lists(st.tuples(*[st.sampled_from([0.0, 0.05, 0.1, 0.4, 0.41, 0.9, 1.0])] * 2), max_size=12),
    epsilon=st.sampled_from([0.0, 0.1, 1.0, 5.0, math.inf]),
)
def test_a_staircase_of_pairs_decides_the_curve(pairs: list[tuple[float, float]], epsilon: float) -> None:
    with np.errstate(divide="ignore"):
        logs = np.log(np.array(pairs).reshape(-1, 2))
    kept = staircase(logs[:, 0], logs[:, 1])
    expected = max([p - (math.exp(epsilon) * q if q else 0.0) for p, q in pairs] + [0.0])
    assert delta(kept, epsilon) == pytest.approx(expected, abs=1e-14)
    assert (np.diff(kept[:, 0]) < 0).all()
    assert (np.diff(kept[:, 1]) < 0).all()


def test_gaps_between_points_have_queries_of_their_own() -> None:
    # Intervals over all three records at 0 or both at 3 and one at 0: between the points less is covered than at them.
    h, learner = CLASSES["intervals"], learners.build("stable", gamma=4.0, subset_size=3)
    x, y = np.array([3.0, 3.0, 0.0, 0.0, 0.0]), np.ones(5, dtype=int)
    fine = np.linspace(-2, 5, 57)
    base = np.exp(answers(learner, h, (x, y), fine)[:, 1])
    anywhere = at_points = 0.0
    for i in (0, 2):
        for place in (-1.0, 0.0, 1.5, 3.0, 4.0):
            for label in (0, 1):
                other_x, other_y = x.copy(), y.copy()
                other_x[i], other_y[i] = place, label
                change = np.abs(np.exp(answers(learner, h, (other_x, other_y), fine)[:, 1]) - base)
                anywhere = max(anywhere, change.max())
                at_points = max(at_points, change[np.isin(fine, [0.0, 3.0, place])].max())
    assert audit(learner, h, x, y).stability == pytest.approx(anywhere, abs=1e-12)
    assert at_points < anywhere - 1e-3
