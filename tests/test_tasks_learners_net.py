"""The stable learner over nets against a loop over subsets with a net written out, and the net's own properties."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predcube.tasks import audit, hypotheses, learners, predict, worst_case

type Sample = list[tuple[int, int]]
CUBE = [[int(b) for b in f"{i:03b}"] for i in range(8)]
CLASSES = {"thresholds": hypotheses.build("thresholds", points=3), "cube": hypotheses.build("cube", points=3)}


def functions(kind: str, on: list[int]) -> list[list[int]]:
    if kind == "thresholds":
        return [[0, 0, 0], *([int(x >= a) for x in range(3)] for a in reversed(on))]
    return [row for row in CUBE if all(row[v] == 0 for v in range(3) if v not in on)]


def brute(kind: str, s: Sample, size: int, beta: float, alpha: float, by_records: bool) -> list[float]:
    p = [0.0] * 3
    for chosen in combinations(s, size):
        drawn = [x for x, _ in chosen]
        on = sorted(set(drawn))
        counted = drawn if by_records else on
        net: list[list[int]] = []
        for h in sorted(functions(kind, on), key=lambda h: [h[v] for v in on]):
            if all(sum(h[v] != g[v] for v in counted) > alpha * len(counted) for g in net):
                net.append(h)
        weights = [math.exp(-beta * sum(h[x] != y for x, y in s)) for h in net]
        for h, w in zip(net, weights, strict=True):
            for q in range(3):
                p[q] += w * h[q] / sum(weights) / math.comb(len(s), size)
    return p


@settings(max_examples=50, deadline=None)
@given(
    kind=st.sampled_from(sorted(CLASSES)),
    s=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=3, max_size=6),
    size=st.integers(1, 3),
    alpha=st.sampled_from([0.0, 0.34, 0.5, 1.0]),
    paper=st.booleans(),
)
def test_predictions_are_the_definition(kind: str, s: Sample, size: int, alpha: float, paper: bool) -> None:
    learner = learners.build(
        "stable_net", gamma=1.2, alpha=alpha, subset_size=size, convention="paper" if paper else "proof"
    )
    x, y = zip(*s, strict=True)
    expected = brute(kind, s, size, 0.6, alpha, paper)
    for method in ("auto", "enumerate"):
        got = predict(learner, CLASSES[kind], x, y, range(3), method=method)
        assert got.p == pytest.approx(expected, abs=1e-12)
    found = audit(learner, CLASSES[kind], x, y)
    assert np.exp(found.log_p[:, 1]) == pytest.approx(expected, abs=1e-12)
    assert found.stability <= learner.guaranteed_stability(len(s)) + 1e-12


def test_radius_zero_is_stable() -> None:
    x, y = [0, 1, 1, 2, 2], [0, 1, 0, 1, 1]
    for kind in CLASSES:
        net = predict(learners.build("stable_net", gamma=0.8, alpha=0.0), CLASSES[kind], x, y, range(3))
        plain = predict(learners.build("stable", gamma=0.8), CLASSES[kind], x, y, range(3))
        assert net.p == pytest.approx(plain.p, abs=1e-13)


@pytest.mark.parametrize("convention", ["proof", "outline", "paper"])
def test_worst_case_is_within_the_guarantee(convention: str) -> None:
    learner = learners.build("stable_net", gamma=0.9, alpha=0.4, convention=convention, subset_size=2)
    got = worst_case(learner, hypotheses.build("thresholds", points=2), 4)
    assert 0 < got.stability <= learner.guaranteed_stability(4) + 1e-12


def test_sampled_subsets_and_infeasible_cubes() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 3, 9), rng.integers(0, 2, 9)
    for convention in ("proof", "paper"):
        learner = learners.build("stable_net", gamma=0.4, alpha=0.5, convention=convention)
        exact = predict(learner, CLASSES["cube"], x, y, range(3), method="enumerate")
        got = predict(learner, CLASSES["cube"], x, y, range(3), method="mc", samples=2000, seed=5)
        assert (np.abs(got.p - exact.p) <= 5 * got.standard_error + 1e-12).all()
        assert audit(learner, CLASSES["cube"], x, y, method="mc", samples=200).kind == "estimate"
    large = learners.build("stable_net", gamma=0.5, alpha=0.1)
    assert "are listed" in str(large.infeasible(200, hypotheses.build("cube", points=64)))
