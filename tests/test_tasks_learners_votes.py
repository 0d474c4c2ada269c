"""Voters on chunks, walks along the line and pairs of opposites, against brute force by Python's own lists."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad

from predcube.tasks import audit, hypotheses, learners, mixture_weights, predict, worst_case
from predcube.tasks.learners import Learner
from predcube.tasks.learners.df_agnostic import clipped_mean
from predcube.tasks.learners.df_realizable import DfRealizable, log_vote

type Sample = list[tuple[int, int]]
ROWS = [[0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]]
CLASSES = {
    "thresholds": hypotheses.build("thresholds", points=3),
    "cube": hypotheses.build("cube", points=3),
    "table": hypotheses.build("table", matrix=ROWS),
}
samples = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=4, max_size=9)


def functions(kind: str, on: set[int]) -> list[list[int]]:
    """H_T as rows over {0, 1, 2}, lexicographic on the sorted points of T."""
    if kind == "thresholds":
        return [[0, 0, 0], *([int(x >= a) for x in range(3)] for a in sorted(on, reverse=True))]
    if kind == "cube":
        rows = [[int(b) for b in row] for row in product((0, 1), repeat=3)]
        rows = [row for row in rows if all(row[v] == 0 for v in range(3) if v not in on)]
    else:
        rows = ROWS
    first: dict[tuple[int, ...], list[int]] = {}
    for row in rows:
        first.setdefault(tuple(row[v] for v in sorted(on)), row)
    return [first[key] for key in sorted(first)]


def voters(kind: str, s: Sample, r: int) -> list[list[int]]:
    chunks = [[s[i] for i in part] for part in np.array_split(range(len(s)), r)]
    return [
        min(functions(kind, {x for x, _ in c}), key=lambda row, c=c: sum(row[x] != y for x, y in c)) for c in chunks
    ]


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(sorted(CLASSES)), s=samples, r=st.integers(1, 4), epsilon=st.sampled_from([0.3, 2.0, 40.0]))
def test_votes_are_the_definition(kind: str, s: Sample, r: int, epsilon: float) -> None:
    h, rows = CLASSES[kind], voters(kind, s, r)
    x, y = zip(*s, strict=True)
    vote = predict(learners.build("df_realizable", epsilon=epsilon, alpha=0.1, chunks=r), h, x, y, range(3))
    mean = predict(learners.build("subsample_average", chunks=r), h, x, y, range(3))
    noisy = predict(learners.build("df_agnostic", epsilon=epsilon, chunks=r), h, x, y, range(3))
    b = 1 / (epsilon * r)
    for q in range(3):
        c1 = sum(row[q] for row in rows)
        odds = epsilon * (2 * c1 - r) / 2
        assert vote.log_p1[q] == pytest.approx(-math.log1p(math.exp(-odds)), rel=1e-12)
        assert vote.log_p0[q] == pytest.approx(-math.log1p(math.exp(odds)), rel=1e-12)
        assert mean.p[q] == pytest.approx(c1 / r, abs=1e-14)
        assert (mean.log_p0[q] == -math.inf) == (c1 == r)
        v = c1 / r
        assert noisy.p[q] == pytest.approx(v + b / 2 * (math.exp(-v / b) - math.exp(-(1 - v) / b)), abs=1e-13)
        assert np.exp(noisy.log_p0[q]) == pytest.approx(1 - noisy.p[q], abs=1e-13)
    assert vote.method == "exact"
    assert (vote.standard_error == 0).all()


def test_values_of_theory() -> None:
    assert learners.build("df_realizable", epsilon=1.0, alpha=0.1).derived(50)["chunks"] == 23
    assert float(clipped_mean(np.array(0.3), 0.2)) == pytest.approx(0.319293, abs=5e-7)


@pytest.mark.parametrize(("v", "b"), [(0.3, 0.2), (0.0, 3.0), (0.8, 0.05), (1.0, 0.4)])
def test_the_clipped_mean_is_an_integral(v: float, b: float) -> None:
    def density(z: float) -> float:
        return math.exp(-abs(z - v) / b) / (2 * b)

    inside = quad(lambda z: z * density(z), 0, 1, points=[v], epsabs=1e-12)[0]
    above = 0.5 * math.exp(-(1 - v) / b)
    assert float(clipped_mean(np.array(v), b)) == pytest.approx(inside + above, abs=1e-10)


def test_a_small_answer_of_the_clipped_mean_keeps_its_digits() -> None:
    # v = 0: the mean is (b/2)(1 − e^{−1/b}); v = 1 mirrored is the complement.
    assert float(clipped_mean(np.array(0.0), 1e-9)) == pytest.approx(5e-10, rel=1e-14)
    learner = learners.build("df_agnostic", epsilon=50.0, chunks=20)
    got = predict(learner, CLASSES["thresholds"], [0, 1] * 20, [1] * 40, [0])
    assert got.log_p0[0] == pytest.approx(math.log(5e-4), rel=1e-12)


def test_the_same_data_in_two_orders() -> None:
    # Four records say 1 and two say 0: in one order the chunks' majorities are 1 and 0, in the other both are 1.
    h = hypotheses.build("cube", points=1)
    learner = learners.build("df_realizable", epsilon=1.0, alpha=0.1, chunks=2)
    assert predict(learner, h, [0] * 6, [1, 1, 1, 1, 0, 0], [0]).p[0] == pytest.approx(0.5, abs=1e-15)
    assert predict(learner, h, [0] * 6, [1, 1, 0, 1, 0, 1], [0]).p[0] == pytest.approx(0.731059, abs=5e-7)


@settings(max_examples=60, deadline=None)
@given(s=samples, epsilon=st.sampled_from([0.5, 2.0]), alpha=st.sampled_from([0.05, 0.3]), paper=st.booleans())
def test_walks_are_the_definition(s: Sample, epsilon: float, alpha: float, paper: bool) -> None:
    convention = "paper" if paper else "proof"
    learner = learners.build("df_thresholds", epsilon=epsilon, alpha=alpha, convention=convention)
    x, y = zip(*s, strict=True)
    got = predict(learner, CLASSES["thresholds"], x, y, range(3))
    for q in range(3):
        p = 0.5
        for v, label in sorted(s, key=lambda record: record[0]):  # stable, as the sample's order
            if v <= q:
                factor = math.exp(epsilon if paper else epsilon / 2)
                odds = p / (1 - p) * (factor if label else 1 / factor)
                p = min(max(odds / (1 + odds), alpha), 1 - alpha)
        assert got.p[q] == pytest.approx(p, abs=1e-12)
        assert np.exp(got.log_p0[q]) == pytest.approx(1 - p, abs=1e-12)
    assert learner.infeasible(5, CLASSES["cube"]) is not None


LEARNERS: list[Learner] = [
    learners.build("df_realizable", epsilon=0.8, alpha=0.1, chunks=3),
    learners.build("df_agnostic", epsilon=1.5, chunks=3),
    learners.build("df_thresholds", epsilon=1.0, alpha=0.1),
    learners.build("df_thresholds", epsilon=1.0, alpha=0.05, convention="paper"),
    learners.build("subsample_average", chunks=4),
]


@settings(max_examples=40, deadline=None)
@given(learner=st.sampled_from(LEARNERS), s=samples)
def test_audits_try_every_position(learner: Learner, s: Sample) -> None:
    h = CLASSES["thresholds"]

    def answers(sample: Sample) -> NDArray[np.float64]:
        got = predict(learner, h, *zip(*sample, strict=True), range(3))
        return np.stack([got.log_p0, got.log_p1])

    base = answers(s)
    stability = loss = 0.0
    for i, new in product(range(len(s)), product(range(3), (0, 1))):
        changed = answers([*s[:i], new, *s[i + 1 :]])
        stability = max(stability, np.abs(np.exp(changed) - np.exp(base)).max())
        loss = max(loss, *(abs(p - q) if p != q else 0.0 for p, q in zip(changed.flat, base.flat, strict=True)))
    got = audit(learner, h, *zip(*s, strict=True))
    assert got.exhaustive
    assert got.stability == pytest.approx(stability, abs=1e-12)
    assert got.privacy_loss == pytest.approx(loss, rel=1e-11, abs=1e-12)
    assert got.stability <= learner.guaranteed_stability(len(s)) + 1e-12
    assert got.privacy_loss <= learner.guaranteed_privacy_loss(len(s)) + 1e-12
    witness = got.witness["stability"]
    assert witness.position is not None
    assert s[witness.position] == witness.old
    after = answers([*s[: witness.position], (int(witness.new[0]), witness.new[1]), *s[witness.position + 1 :]])
    assert after[witness.label, int(witness.query)] == pytest.approx(witness.log_p_neighbour, abs=1e-12)
    assert f"at position {witness.position}" in str(witness)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: f"{learner.kind}")
def test_worst_case_over_sequences(learner: Learner) -> None:
    h = hypotheses.build("thresholds", points=2)
    n, types = 4, list(product(range(2), (0, 1)))
    got = worst_case(learner, h, n)
    stability = loss = 0.0
    for s in product(types, repeat=n):
        found = audit(learner, h, *zip(*s, strict=True))
        stability, loss = max(stability, found.stability), max(loss, found.privacy_loss)
    assert got.exhaustive
    assert got.stability == pytest.approx(stability, abs=1e-12)
    assert got.privacy_loss == pytest.approx(loss, abs=1e-12)
    assert got.stability <= learner.guaranteed_stability(n) + 1e-12
    assert got.privacy_loss <= learner.guaranteed_privacy_loss(n) + 1e-12
    assert got.delta(0.0) == pytest.approx(got.stability, abs=1e-12)


def test_audits_on_the_line_and_in_a_large_batch() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.random(30), rng.integers(0, 2, 30)
    for learner in LEARNERS:
        got = audit(learner, hypotheses.build("thresholds"), x, y, neighbours=40, seed=2)
        assert (got.kind, got.neighbours) == ("lower bound", 40)
        assert 0 < got.stability <= learner.guaranteed_stability(30) + 1e-12
        assert got.privacy_loss <= learner.guaranteed_privacy_loss(30) + 1e-12


# Negative controls.


class TwiceTheVote(DfRealizable):
    """ε a vote: its true cost is 2ε."""

    __slots__ = ()

    def _log_answers(self, ones: NDArray[np.int64]) -> NDArray[np.float64]:
        return log_vote(ones, self._chunks, 2 * self.epsilon)


class OneChunkForAll(DfRealizable):
    """Every teacher is given the first chunk."""

    __slots__ = ()

    def _log_answers(self, ones: NDArray[np.int64]) -> NDArray[np.float64]:
        return log_vote(ones * self._chunks, self._chunks, self.epsilon)

    def batch(self, hypotheses, points, counts, queries, **options):  # type: ignore[no-untyped-def]
        first = DfRealizable(epsilon=self.epsilon, alpha=self.alpha, chunks=1)
        size = -(-counts.shape[1] // self._chunks)
        said = first.batch(hypotheses, points, counts[:, :size], queries, method="exact")[:, :, 1] > math.log(0.5)
        return self._log_answers(said.astype(np.int64))


@pytest.mark.parametrize("wrong", [TwiceTheVote, OneChunkForAll])
def test_false_claims_are_caught(wrong: type[DfRealizable]) -> None:
    learner = wrong(epsilon=0.7, alpha=0.1, chunks=3)
    got = worst_case(learner, hypotheses.build("cube", points=1), 6)
    assert got.privacy_loss > 1.05 * learner.guaranteed_privacy_loss(6)
    right = worst_case(DfRealizable(epsilon=0.7, alpha=0.1, chunks=3), hypotheses.build("cube", points=1), 6)
    assert right.privacy_loss <= 0.7 + 1e-12
    if wrong is TwiceTheVote:
        assert got.privacy_loss <= 1.4


# Two opposite functions.


@settings(max_examples=40, deadline=None)
@given(s=samples)
def test_two_point(s: Sample) -> None:
    h, learner = hypotheses.build("complement_pair", labels=[0, 1, 0]), learners.build("two_point")
    x, y = zip(*s, strict=True)
    wrong = sum([0, 1, 0][v] != label for v, label in s) / len(s)
    got = predict(learner, h, x, y, range(3))
    assert got.p == pytest.approx([wrong, 1 - wrong, wrong], abs=1e-14)
    assert (got.log_p1[0] == -math.inf) == (wrong == 0)
    weights = mixture_weights(learner, h, x, y)
    assert weights.weights.sum() == pytest.approx(1.0, abs=1e-14)
    found = audit(learner, h, x, y)
    assert found.stability <= 1 / len(s) + 1e-12
    assert worst_case(learner, h, 4).stability == pytest.approx(0.25, abs=1e-12)


def test_two_point_on_other_classes() -> None:
    learner = learners.build("two_point")
    assert learner.infeasible(3, hypotheses.build("cube", points=1)) is None
    assert learner.infeasible(3, hypotheses.build("table", matrix=[[0, 1], [1, 0]])) is None
    for kind, parameters in (("cube", {"points": 40}), ("thresholds", {}), ("table", {"matrix": [[0, 1], [1, 1]]})):
        assert "two" in str(learner.infeasible(3, hypotheses.build(kind, **parameters)))


def test_more_chunks_than_records_is_infeasible() -> None:
    learner = learners.build("df_realizable", epsilon=0.1, alpha=0.1)
    assert "more than n = 100" in str(learner.infeasible(100, CLASSES["cube"]))
    with pytest.raises(ValueError, match="no mixture"):
        mixture_weights(learner, CLASSES["cube"], [0] * 300, [1] * 300)
