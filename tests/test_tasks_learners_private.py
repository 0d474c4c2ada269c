"""The main private learner against loops over subsets, hypotheses and chunks written out in Python."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predcube.tasks import audit, hypotheses, learners, predict, worst_case
from predcube.tasks.bounds import drawn_privacy_loss, flip_privacy_loss, swapped_privacy_loss
from predcube.tasks.learners.private import Relabelled
from predcube.tasks.learners.records import records
from predcube.tasks.mixture.base import evaluate, height, subtree

type Sample = list[tuple[int, int]]
ROWS = [[0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]]
CLASSES = {
    "thresholds": hypotheses.build("thresholds", points=3),
    "cube": hypotheses.build("cube", points=3),
    "table": hypotheses.build("table", matrix=ROWS),
}


def functions(kind: str, on: set[int]) -> dict[tuple[int, ...], list[int]]:
    """H_T: each labelling of sorted T and the row that represents it."""
    if kind == "thresholds":
        rows = [[0, 0, 0], *([int(x >= a) for x in range(3)] for a in sorted(on))]
    elif kind == "cube":
        rows = [list(row) for row in product((0, 1), repeat=3) if all(row[v] == 0 for v in range(3) if v not in on)]
    else:
        rows = ROWS
    found: dict[tuple[int, ...], list[int]] = {}
    for row in rows:
        found.setdefault(tuple(row[v] for v in sorted(on)), row)
    return found


def brute(kind: str, s: Sample, size: int, beta: float, r: int, vote: float, alpha: float) -> list[float]:
    n, p = len(s), [0.0] * 3
    for chosen in combinations(s, size):
        candidates = list(functions(kind, {x for x, _ in chosen}).values())
        weights = [math.exp(-beta * sum(h[x] != y for x, y in s)) for h in candidates]
        for h, w in zip(candidates, weights, strict=True):
            said = []
            for part in np.array_split(range(n), r):
                on = {s[i][0] for i in part}
                said.append(functions(kind, on)[tuple(h[v] for v in sorted(on))])
            for q in range(3):
                margin = sum(1 if g[q] else -1 for g in said)
                p[q] += w / sum(weights) / math.comb(n, size) / (1 + math.exp(-vote * margin / 2))
    return [(1 - 2 * alpha) * v + alpha for v in p]


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(sorted(CLASSES)),
    s=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=4, max_size=7),
    size=st.integers(1, 3),
    r=st.integers(1, 4),
    eta=st.sampled_from([0.3, 0.7, 2.0]),
)
def test_predictions_are_the_definition(kind: str, s: Sample, size: int, r: int, eta: float) -> None:
    learner = learners.build("private", epsilon=2.0, alpha=0.1, eta=eta, chunks=r, subset_size=size)
    n = len(s)
    x, y = zip(*s, strict=True)
    expected = brute(kind, s, size, 1 / (eta * n), r, 1 / (eta * n), 0.1)
    for method in ("auto", "enumerate", "support"):
        got = predict(learner, CLASSES[kind], x, y, range(3), method=method)
        assert got.p == pytest.approx(expected, abs=1e-12)
        assert np.exp(got.log_p0) == pytest.approx([1 - p for p in expected], abs=1e-12)
    for method in ("auto", "support"):
        found = audit(learner, CLASSES[kind], x, y, method=method)
        assert np.exp(found.log_p[:, 1]) == pytest.approx(expected, abs=1e-12)
    assert found.exhaustive
    assert found.privacy_loss <= learner.guaranteed_privacy_loss(n) + 1e-12
    assert found.stability <= learner.guaranteed_stability(n) + 1e-12
    witness = found.witness["privacy_loss"]
    assert witness.position is not None
    changed = [*s[: witness.position], (int(witness.new[0]), witness.new[1]), *s[witness.position + 1 :]]
    after = brute(kind, changed, size, 1 / (eta * n), r, 1 / (eta * n), 0.1)[int(witness.query)]
    assert witness.p_neighbour == pytest.approx(after if witness.label else 1 - after, abs=1e-12)


def test_outline_spends_less_on_the_weights() -> None:
    s = [(0, 0), (1, 1), (2, 1), (1, 0), (2, 0)]
    learner = learners.build("private", epsilon=0.8, alpha=0.25, eta=0.5, chunks=2, subset_size=2, convention="outline")
    got = predict(learner, CLASSES["thresholds"], *zip(*s, strict=True), range(3))
    beta = min(0.4, 1 / (0.25 * 5)) / 2
    assert got.p == pytest.approx(brute("thresholds", s, 2, beta, 2, 1 / 2.5, 0.25), abs=1e-12)


def test_parameters_and_infeasible_cells() -> None:
    learner = learners.build("private", epsilon=0.3, alpha=0.1, eta=0.02)
    derived = learner.derived(1000)
    assert derived["subset_size"] == 300
    assert derived["chunks"] == math.ceil(6 * 0.02 * 1000 * math.log(40))
    assert derived["beta"] == derived["vote_epsilon"] == pytest.approx(1 / 20)
    h = CLASSES["thresholds"]
    assert learner.infeasible(1000, h) is None
    assert "1/(ηn)" in str(learner.infeasible(100, h))
    assert "below 1" in str(learner.infeasible(3, h))
    assert "chunks are more" in str(learners.build("private", epsilon=0.3, alpha=0.1, eta=0.2).infeasible(100, h))
    assert "above n" in str(learners.build("private", epsilon=1.5, alpha=0.1, eta=0.02).infeasible(100, h))


def test_the_same_bits_in_any_fan_out() -> None:
    rng = np.random.default_rng(0)
    sample = records(rng.random(40), rng.integers(0, 2, 40).astype(np.uint8))
    learner = learners.build("private", epsilon=1.0, alpha=0.1, eta=0.1, chunks=8, subset_size=2)
    queries = np.linspace(0, 1, 2**15)
    work = learner.answering(hypotheses.build("thresholds"), sample, queries, method="enumerate")
    assert isinstance(work, Relabelled)
    assert work.blocks > 3
    whole = evaluate(work)
    parts = [subtree(work, 0, b) for b in range(work.blocks)]
    for _ in range(height(work.blocks)):
        parts = [parts[i].add(parts[i + 1]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    again = work.finish(parts[0])
    assert (again.log_p == whole.log_p).all()  # type: ignore[attr-defined]


def test_sampled_subsets_agree_within_their_error() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 3, 10), rng.integers(0, 2, 10)
    learner = learners.build("private", epsilon=1.0, alpha=0.1, eta=0.4, chunks=3, subset_size=3)
    for kind in ("cube", "table"):
        exact = predict(learner, CLASSES[kind], x, y, range(3), method="enumerate")
        got = predict(learner, CLASSES[kind], x, y, range(3), method="mc", samples=4000, seed=1)
        assert (np.abs(got.p - exact.p) <= 5 * got.standard_error + 1e-12).all()
        estimate = audit(learner, CLASSES[kind], x, y, method="mc", samples=300, seed=1)
        assert estimate.kind == "estimate"
        assert estimate.stability == pytest.approx(audit(learner, CLASSES[kind], x, y).stability, abs=0.05)


def test_a_large_cube_has_a_closed_form() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 64, 50), rng.integers(0, 2, 50)
    learner = learners.build("private", epsilon=0.5, alpha=0.1, eta=0.1, chunks=12)
    got = predict(learner, hypotheses.build("cube", points=64), x, y, range(64))
    assert got.method == "analytic"
    found = audit(learner, hypotheses.build("cube", points=64), x, y, queries=[0, 5])
    assert found.privacy_loss <= learner.guaranteed_privacy_loss(50)


@pytest.mark.parametrize("convention", ["proof", "outline"])
def test_worst_case_is_within_the_guarantee(convention: str) -> None:
    learner = learners.build("private", epsilon=0.9, alpha=0.2, eta=0.4, chunks=2, subset_size=1, convention=convention)
    got = worst_case(learner, hypotheses.build("thresholds", points=2), 5)
    assert 0 < got.privacy_loss <= learner.guaranteed_privacy_loss(5) + 1e-12
    assert 0 < got.stability <= learner.guaranteed_stability(5) + 1e-12


def test_the_paper_s_bound_knows_the_net() -> None:
    # All drawn sets nets: δ = 0, and the swap alone is paid for; none: no better than the plain argument.
    few = swapped_privacy_loss(10**6, 10, 1e-3, 0.1, 0.0)
    assert few == pytest.approx(3e-3 + math.log1p(4 * math.exp(6) * 10 / (10**6 - 10)))
    assert swapped_privacy_loss(10**6, 10, 1e-3, 0.1, 1e-5) > drawn_privacy_loss(1e-5, 3e-3, 0.1)
    assert swapped_privacy_loss(5, 5, 1.0, 0.1, 0.0) == math.inf
    assert drawn_privacy_loss(0.25, 0.0, 0.1) == pytest.approx(flip_privacy_loss(0.25, 0.1))


def test_the_guarantees_follow_from_each_other() -> None:
    # Here the stability promises more of privacy than the count of draws does, and never less than was measured.
    learner = learners.build("private", epsilon=0.5, alpha=0.1, eta=0.5, subset_size=3, chunks=2)
    assert learner.guaranteed_privacy_loss(6) == pytest.approx(math.log1p(0.5286 / 0.1), abs=2e-4)
    rng = np.random.default_rng(8)
    for _ in range(300):
        n = int(rng.integers(2, 400))
        size = int(rng.integers(1, n + 1))
        alpha, eta = float(rng.uniform(0.01, 0.5)), float(10 ** rng.uniform(-2, 1))
        for convention in ("proof", "outline"):
            own = learners.build(
                "private", epsilon=1, alpha=alpha, eta=eta, subset_size=size, chunks=1, convention=convention
            )
            gamma, epsilon = own.guaranteed_stability(n), own.guaranteed_privacy_loss(n)
            # No answer is rarer than the flip: what moves by γ moves by a factor of 1 + γ/α at most.
            assert epsilon <= math.log1p(gamma / alpha) * (1 + 1e-12)
            assert gamma <= math.tanh(epsilon / 2) * (1 + 1e-12)
