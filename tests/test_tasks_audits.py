"""Audits against brute force over the positions of S, the values of theory, and learners that break their promise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from predcube.tasks import audit, hypotheses, learners, predict, worst_case
from predcube.tasks.answers import log_probabilities
from predcube.tasks.audits import batch_predictions, pieces
from predcube.tasks.hypotheses import HypothesisClass
from predcube.tasks.learners import Learner
from predcube.tasks.learners.exponential import Exponential
from predcube.tasks.mixture.samples import mistakes
from predcube.tasks.worst_groups import multisets, neighbour_groups, ranks

ROWS = [[0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 1, 0], [1, 0, 1]]
CLASSES = {
    "thresholds": hypotheses.build("thresholds", points=3),
    "cube": hypotheses.build("cube", points=3),
    "table": hypotheses.build("table", matrix=ROWS),
}
LEARNERS: dict[str, Learner] = {
    "stable": learners.build("stable", gamma=0.8, subset_size=2),
    "stable_flip": learners.build("stable_flip", epsilon=0.9, alpha=0.2, subset_size=1),
    "exponential": learners.build("exponential", epsilon=0.7),
    "erm": learners.build("erm"),
}
CONSTANTS = hypotheses.build("table", matrix=[[0], [1]])


def answers(
    learner: Learner, h: HypothesisClass, s: Sequence[tuple[float, int]], queries: Sequence[float]
) -> NDArray[Any]:
    """ln P(y) of one sample through the public call: (queries, 2)."""
    x, y = zip(*s, strict=True)
    got = predict(learner, h, x, y, queries)
    return np.stack([got.log_p0, got.log_p1], axis=-1)


@dataclass
class Found:
    stability: float = 0.0
    privacy_loss: float = 0.0

    def add(self, a: NDArray[Any], b: NDArray[Any]) -> None:
        for p, q in zip(a.ravel(), b.ravel(), strict=True):
            self.stability = max(self.stability, abs(math.exp(p) - math.exp(q)))
            if p != q:
                self.privacy_loss = max(self.privacy_loss, abs(p - q))


def delta_by_definition(a: NDArray[Any], others: list[NDArray[Any]], epsilon: float) -> float:
    pairs = [(p, q) for b in others for p, q in zip(np.exp(a).ravel(), np.exp(b).ravel(), strict=True)]
    return max(max(p - math.exp(epsilon) * q, q - math.exp(epsilon) * p, 0.0) for p, q in pairs)


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(sorted(CLASSES)),
    name=st.sampled_from(sorted(LEARNERS)),
    s=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=2, max_size=5),
    epsilon=st.sampled_from([0.0, 0.1, 0.5, 2.0]),
)
def test_audit_is_the_maximum_over_every_position(
    kind: str, name: str, s: list[tuple[int, int]], epsilon: float
) -> None:
    h, learner = CLASSES[kind], LEARNERS[name]
    base, expected, others = answers(learner, h, s, range(3)), Found(), []
    for i, new in product(range(len(s)), product(range(3), (0, 1))):
        if new != s[i]:
            others.append(answers(learner, h, [*s[:i], new, *s[i + 1 :]], range(3)))
            expected.add(base, others[-1])
    got = audit(learner, h, *zip(*s, strict=True))
    assert got.stability == pytest.approx(expected.stability, abs=1e-12)
    assert got.privacy_loss == pytest.approx(expected.privacy_loss, rel=1e-11, abs=1e-11)
    assert got.delta(epsilon) == pytest.approx(delta_by_definition(base, others, epsilon), abs=1e-12)
    assert got.delta(0.0) == pytest.approx(got.stability, abs=1e-12)
    assert got.exhaustive
    assert got.neighbours == len(set(s)) * 5


@pytest.mark.parametrize("name", sorted(LEARNERS))
@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_many_samples_at_once_are_each_by_itself(kind: str, name: str) -> None:
    h, learner = CLASSES[kind], LEARNERS[name]
    rng = np.random.default_rng(8)
    drawn = [list(zip(rng.integers(0, 3, 6), rng.integers(0, 2, 6), strict=True)) for _ in range(12)]
    drawn += [[(0, 0)] * 6, [(2, 1)] * 6, [(1, 0), (1, 1)] * 3]
    counts = np.zeros((len(drawn), 3, 2), dtype=np.int64)
    for b, s in enumerate(drawn):
        for v, y in s:
            counts[b, v, y] += 1
    expected = np.stack([answers(learner, h, s, range(3)) for s in drawn])
    method = learner.method(h, k=3, n=6, many=len(drawn))
    got = batch_predictions(learner, h, np.arange(3), counts, np.arange(3), method=method)
    assert (np.isneginf(got) == np.isneginf(expected)).all()
    finite = np.isfinite(expected)
    assert got[finite] == pytest.approx(expected[finite], rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("name", sorted(LEARNERS))
@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_witnesses_show_their_values(kind: str, name: str) -> None:
    h, learner = CLASSES[kind], LEARNERS[name]
    s = [(0, 0), (1, 1), (1, 0), (2, 1)]
    got = audit(learner, h, *zip(*s, strict=True))
    for quantity, witness in got.witness.items():
        changed = list(s)
        changed[changed.index(witness.old)] = witness.new
        one, two = (answers(learner, h, sample, [witness.query])[0, witness.label] for sample in (s, changed))
        assert (witness.log_p, witness.log_p_neighbour) == pytest.approx((one, two), abs=1e-12)
        if quantity == "stability":
            assert abs(witness.p - witness.p_neighbour) == pytest.approx(got.stability, abs=1e-15)
        else:
            assert abs(one - two) == pytest.approx(got.privacy_loss, rel=1e-11) or one == two == -math.inf
    text = str(got.witness["stability"])
    assert text.startswith("replacing (x = ")
    assert "probability of answering" in text


def test_stable_alone_has_infinite_privacy_loss_on_thresholds() -> None:
    # The only record at 0 goes, and with it the only hypothesis that says 1 there.
    got = audit(LEARNERS["stable"], CLASSES["thresholds"], [0, 1, 1], [0, 0, 1])
    assert got.privacy_loss == math.inf
    assert {got.witness["privacy_loss"].p == 0, got.witness["privacy_loss"].p_neighbour == 0} == {True, False}
    assert got.delta(math.inf) > 0
    assert audit(LEARNERS["stable_flip"], CLASSES["thresholds"], [0, 1, 1], [0, 0, 1]).privacy_loss < 0.9


@pytest.mark.parametrize(("n", "subset_size", "value"), [(3, 1, 0.304394), (4, 1, 0.264214)])
def test_worst_case_of_stable_on_three_thresholds(n: int, subset_size: int, value: float) -> None:
    learner = learners.build("stable", gamma=0.5, subset_size=subset_size)
    got = worst_case(learner, CLASSES["thresholds"], n)
    assert got.stability == pytest.approx(value, abs=5e-7)
    assert got.privacy_loss == math.inf
    assert got.exhaustive
    assert got.samples == math.comb(n + 5, n)


@pytest.mark.parametrize(
    ("n", "stability"),
    [(3, math.tanh(0.25)), (5, math.tanh(0.25)), (2, 0.5 * math.tanh(0.5)), (4, 0.5 * math.tanh(0.5))],
)
def test_worst_case_of_the_two_constants(n: int, stability: float) -> None:
    got = worst_case(learners.build("stable", gamma=1.0), CONSTANTS, n)
    assert got.stability == pytest.approx(stability, abs=1e-14)
    assert stability == pytest.approx(0.244919 if n % 2 else 0.231059, abs=5e-7)
    if n == 3:
        assert got.privacy_loss == pytest.approx(0.727336, abs=5e-7)
    # n' = n makes it the exponential mechanism on both constants: nothing is amplified.
    mechanism = worst_case(learners.build("exponential", epsilon=1.0), CONSTANTS, n)
    assert (got.stability, got.privacy_loss) == pytest.approx((mechanism.stability, mechanism.privacy_loss), abs=1e-14)


@pytest.mark.parametrize("name", sorted(LEARNERS))
@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_worst_case_is_the_largest_audit(kind: str, name: str) -> None:
    h, learner = CLASSES[kind], LEARNERS[name]
    types = list(product(range(3), (0, 1)))
    found = [audit(learner, h, *zip(*s, strict=True)) for s in combinations_with_replacement(types, 3)]
    got = worst_case(learner, h, 3)
    assert got.stability == pytest.approx(max(a.stability for a in found), abs=1e-12)
    assert got.privacy_loss == pytest.approx(max(a.privacy_loss for a in found), rel=1e-11)
    for epsilon in (0.0, 0.3, math.inf):
        assert got.delta(epsilon) == pytest.approx(max(a.delta(epsilon) for a in found), abs=1e-12)
    for quantity, value in (("stability", got.stability), ("privacy_loss", got.privacy_loss)):
        w = got.witness[quantity]
        counts = w.sample.counts
        s = [(v, y) for v in range(3) for y in (0, 1) for _ in range(counts[v, y])]
        again = audit(learner, h, *zip(*s, strict=True))
        assert getattr(again, quantity) == pytest.approx(value, rel=1e-11)
        assert counts[w.old] > 0


@pytest.mark.parametrize(("kind", "extra"), [("erm", {}), ("subsample_average", {"chunks": 2})])
def test_worst_case_of_a_constant_prediction_still_shows_two_data_sets(kind: str, extra: dict[str, int]) -> None:
    got = worst_case(learners.build(kind, **extra), hypotheses.build("table", matrix=[[0, 0]]), 2)
    assert (got.stability, got.privacy_loss) == (0, 0)
    for witness in got.witness.values():
        assert witness.old != witness.new


def test_worst_case_refuses_what_it_cannot_try() -> None:
    learner = learners.build("stable", gamma=0.5, subset_size=1)
    with pytest.raises(
        ValueError, match="finite X: give points to thresholds; points = 5 have the worst case of the line"
    ):
        worst_case(learner, hypotheses.build("thresholds"), 3)
    with pytest.raises(ValueError, match=r"finite X: give points to boxes$"):
        worst_case(learner, hypotheses.build("boxes", dimension=2), 3)
    with pytest.raises(ValueError, match="limit = 5 must be at least 6"):
        worst_case(learner, CLASSES["thresholds"], 3, limit=5)
    with pytest.raises(ValueError, match="restarts = 0"):
        worst_case(learner, CLASSES["thresholds"], 3, restarts=0)
    with pytest.raises(ValueError, match="'mc'"):
        worst_case(learner, CLASSES["thresholds"], 3, method="mc")
    with pytest.raises(ValueError, match="infeasible"):
        worst_case(learners.build("stable", gamma=0.1), CLASSES["thresholds"], 3)
    with pytest.raises(ValueError, match="at least 1"):
        worst_case(learner, CLASSES["thresholds"], 0)


@pytest.mark.parametrize(("n", "types"), [(1, 2), (3, 4), (4, 6), (6, 2), (2, 7)])
def test_multisets_and_their_places(n: int, types: int) -> None:
    rows = multisets(n, types)
    expected = sorted([s.count(t) for t in range(types)] for s in combinations_with_replacement(range(types), n))
    assert rows.tolist() == expected
    assert ranks(rows, n).tolist() == list(range(len(rows)))
    groups = neighbour_groups(rows)
    assert len(groups) == math.comb(n + types - 2, n - 1)
    differences = np.abs(rows[groups][:, :, None] - rows[groups][:, None]).sum(axis=-1)
    assert (differences == 2 * (1 - np.eye(types, dtype=int))).all()


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(sorted(CLASSES)),
    s=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=2, max_size=7),
    gamma=st.sampled_from([0.05, 0.5, 1.0, 4.0]),
    alpha=st.sampled_from([0.01, 0.2, 0.45]),
    data=st.data(),
)
def test_no_sample_breaks_a_guarantee(
    kind: str, s: list[tuple[int, int]], gamma: float, alpha: float, data: st.DataObject
) -> None:
    n = len(s)
    size = data.draw(st.integers(1, n))
    family: list[Learner] = [
        learners.build("stable", gamma=gamma, subset_size=size),
        learners.build("stable_flip", epsilon=gamma, alpha=alpha, subset_size=size),
        learners.build("exponential", epsilon=gamma),
    ]
    for learner in family:
        got = audit(learner, CLASSES[kind], *zip(*s, strict=True))
        assert got.stability <= learner.guaranteed_stability(n) + 1e-12
        assert got.privacy_loss <= learner.guaranteed_privacy_loss(n) + 1e-12


# Learners that break their promise must be caught.


class WithoutTheFactorN(Exponential):
    """Weights exp(−ε L_S/2): private indeed, but another mixture."""

    __slots__ = ()
    sign, per_record = 1.0, False

    def batch(self, hypotheses: HypothesisClass, points: Any, counts: Any, queries: Any, **_: Any) -> NDArray[Any]:
        members = hypotheses.members()
        n = 1 if self.per_record else int(counts[0].sum())
        scores = -self.sign * self.epsilon / 2 * mistakes(hypotheses, members, points, counts) / n
        log_weights = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return log_probabilities(log_weights, hypotheses.predict(members, queries))


class Mirrored(WithoutTheFactorN):
    """The worst hypothesis weighs most."""

    __slots__ = ()
    sign, per_record = -1.0, True


class TwiceTheSensitivity(WithoutTheFactorN):
    """Weights exp(−ε n L_S), claiming ε: the utility's sensitivity taken as ½."""

    __slots__ = ()
    sign, per_record = 2.0, True


@pytest.mark.parametrize("wrong", [WithoutTheFactorN, Mirrored])
def test_a_wrong_mixture_is_not_the_oracle(wrong: type[Exponential]) -> None:
    # Ten records say 1 at the one point there is: Pr(1) = 1/(1 + e^{−10ε/2}).
    expected = 1 / (1 + math.exp(-5.0))
    right = audit(Exponential(epsilon=1.0), CONSTANTS, [0] * 10, [1] * 10)
    assert np.exp(right.log_p[0, 1]) == pytest.approx(expected, abs=1e-14)
    got = audit(wrong(epsilon=1.0), CONSTANTS, [0] * 10, [1] * 10)
    assert abs(np.exp(got.log_p[0, 1]) - expected) > 0.3
    # n ≥ 2 ln|H|/(εα) records promise an excess of α at most: 14 of them for α = 0.1.
    n = math.ceil(2 * math.log(2) / 0.1)
    excess = [
        float(np.exp(audit(a, CONSTANTS, [0] * n, [1] * n).log_p[0, 0]))
        for a in (Exponential(epsilon=1.0), wrong(epsilon=1.0))
    ]
    assert excess[0] <= 0.1 < excess[1]


def test_a_false_claim_is_caught() -> None:
    learner = TwiceTheSensitivity(epsilon=1.0)
    got = worst_case(learner, CONSTANTS, 4)
    assert got.privacy_loss > 1.05 * learner.guaranteed_privacy_loss(4)
    assert got.stability > 1.05 * learner.guaranteed_stability(4)


# On the line.


def test_pieces_of_the_line() -> None:
    assert pieces(np.array([0.0, 1.0, 4.0])).tolist() == [-1.0, 0.0, 0.5, 1.0, 2.5, 4.0, 5.0]
    close = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert pieces(close).tolist() == [0.0, *close.tolist(), 2.0 + 2**-52]
    huge = pieces(np.array([-1e300, 1e300]))
    assert huge[0] < -1e300
    assert huge[-1] > 1e300
    assert huge[2] == 0.0 if len(huge) == 5 else True


def test_on_the_line_all_order_cells_when_they_fit_and_a_sample_when_not() -> None:
    h, learner = hypotheses.build("thresholds"), learners.build("stable", gamma=0.8, subset_size=2)
    s = [(0.5, 0), (0.5, 1), (2.0, 1), (3.5, 1)]
    cells = [-0.5, 0.5, 1.25, 2.0, 2.75, 3.5, 4.5]
    # New records stand in a cell of S; predictions then change at the points of S and the new one.
    queries = sorted({*cells, 0.0, 0.875, 1.625, 2.375, 3.125, 4.0, -1.5, 5.5})
    base, expected, count = answers(learner, h, s, queries), Found(), 0
    for i, new in product(range(4), product(cells, (0, 1))):
        if new != s[i]:
            count += 1
            expected.add(base, answers(learner, h, [*s[:i], new, *s[i + 1 :]], queries))
    everything = audit(learner, h, *zip(*s, strict=True), neighbours=1000)
    assert everything.neighbours == count
    assert everything.stability == pytest.approx(expected.stability, abs=1e-11)
    assert everything.privacy_loss == expected.privacy_loss == math.inf
    assert everything.exhaustive
    assert everything.kind == "exhaustive over order cells"
    few = audit(learner, h, *zip(*s, strict=True), neighbours=9, seed=4)
    assert few.neighbours == 9
    assert 0 < few.stability <= everything.stability + 1e-15
    assert few.stability == audit(learner, h, *zip(*s, strict=True), neighbours=9, seed=4).stability
    different = {audit(learner, h, *zip(*s, strict=True), neighbours=9, seed=i).stability for i in range(8)}
    assert len(different) > 1


@settings(max_examples=25, deadline=None)
@given(
    s=st.lists(st.tuples(st.sampled_from([-2.0, -0.5, 0.0, 0.25, 7.0]), st.integers(0, 1)), min_size=3, max_size=8),
    epsilon=st.sampled_from([0.2, 1.0, 3.0]),
    seed=st.integers(0, 5),
)
def test_on_the_line_guarantees_hold(s: list[tuple[float, int]], epsilon: float, seed: int) -> None:
    learner = learners.build("stable_flip", epsilon=epsilon, alpha=0.1, subset_size=2)
    got = audit(learner, hypotheses.build("thresholds"), *zip(*s, strict=True), neighbours=30, seed=seed)
    assert got.stability <= learner.guaranteed_stability(len(s)) + 1e-12
    assert got.privacy_loss <= learner.guaranteed_privacy_loss(len(s)) + 1e-12


def test_fewer_queries_are_a_lower_bound() -> None:
    h, learner = CLASSES["thresholds"], LEARNERS["stable"]
    s = [(0, 0), (1, 1), (2, 1)]
    whole = audit(learner, h, *zip(*s, strict=True))
    part = audit(learner, h, *zip(*s, strict=True), queries=[2])
    assert part.kind == "lower bound"
    assert part.stability <= whole.stability
    assert audit(learner, h, *zip(*s, strict=True), queries=[2, 0, 1, 1]).exhaustive


def test_erm_on_the_line_can_turn_over() -> None:
    got = audit(learners.build("erm"), hypotheses.build("thresholds"), [0.0, 1.0], [0, 1], neighbours=200)
    assert got.stability == 1.0
    assert got.privacy_loss == math.inf
    assert got.delta(5.0) == 1.0


def test_an_audit_by_sampled_subsets_is_an_estimate() -> None:
    h = CLASSES["table"]
    learner = LEARNERS["stable_flip"]
    s = [(0, 0), (1, 1), (1, 0), (2, 1), (2, 0)]
    exact = audit(learner, h, *zip(*s, strict=True))
    got = audit(learner, h, *zip(*s, strict=True), method="mc", samples=800, seed=1)
    assert got.kind == "estimate"
    assert not got.exhaustive
    assert got.stability == pytest.approx(exact.stability, abs=0.03)
    again = audit(learner, h, *zip(*s, strict=True), method="mc", samples=800, seed=1)
    assert again.stability == got.stability


def test_neighbours_share_their_sampled_subsets() -> None:
    h, points = CLASSES["cube"], np.arange(3)
    base = np.array([[2, 1], [0, 2], [1, 3]])
    one_label, one_record = base.copy(), base.copy()
    one_label[2] = [2, 2]
    one_record[0], one_record[2] = [1, 1], [2, 3]
    counts = np.stack([base, one_label, one_record])
    learner = learners.build("stable", gamma=0.4, subset_size=2)
    exact = np.exp(learner.batch(h, points, counts, points, method="enumerate"))[:, :, 1]

    def estimate(seed: int, rows: list[int]) -> NDArray[Any]:
        return np.exp(learner.batch(h, points, counts[rows], points, method="mc", samples=20, seed=seed))[:, :, 1]

    together = np.array([estimate(seed, [0, 1, 2]) for seed in range(60)])
    assert together.mean(axis=0) == pytest.approx(exact, abs=0.06)
    apart = np.array([[estimate(seed, [0])[0], estimate(seed + 1000, [2])[0]] for seed in range(60)])
    spread = (together[:, 2] - together[:, 0]).std(axis=0)
    assert (spread < 0.75 * (apart[:, 1] - apart[:, 0]).std(axis=0)).any()
    # Where only a label changed, T is the same: at the other points nothing moves at all.
    assert np.abs(together[:, 1] - together[:, 0])[:, :2].max() < 1e-12


def test_an_audit_on_more_points_than_records() -> None:
    rows = np.random.default_rng(3).integers(0, 2, (12, 30))
    h = hypotheses.build("table", matrix=rows.tolist())
    learner = learners.build("stable", gamma=0.6, subset_size=2)
    s = [(3, 0), (17, 1), (29, 1)]
    got = audit(learner, h, *zip(*s, strict=True))
    assert got.exhaustive
    assert got.neighbours == 3 * 59
    base, expected = answers(learner, h, s, range(30)), Found()
    for i, new in product(range(3), product(range(0, 30, 7), (0, 1))):
        if new != s[i]:
            expected.add(base, answers(learner, h, [*s[:i], new, *s[i + 1 :]], range(30)))
    assert got.stability >= expected.stability - 1e-12
    on_line = audit(learner, hypotheses.build("thresholds", points=40), [3, 17], [0, 1])
    assert on_line.neighbours == 2 * 79
    with pytest.raises(ValueError, match="30 points: support sums over"):
        audit(learner, h, *zip(*s, strict=True), method="support")


def test_malformed_audits_are_refused() -> None:
    learner, h = LEARNERS["stable"], CLASSES["thresholds"]
    with pytest.raises(ValueError, match="neighbours = 0"):
        audit(learner, h, [0, 1], [0, 1], neighbours=0)
    with pytest.raises(ValueError, match="outside X"):
        audit(learner, h, [0, 1], [0, 1], queries=[3])
    with pytest.raises(ValueError, match="infeasible"):
        audit(learner, h, [0], [1])
    with pytest.raises(ValueError, match="at least 0"):
        audit(learner, h, [0, 1], [0, 1]).delta(-0.1)


# Of witnesses that tie, the one that tells most.


def strongest(learner: Learner, h: HypothesisClass, s: Sequence[tuple[float, int]], k: int) -> float:
    """The likeliest answer that a neighbour (or S) gives and the other never does."""
    base, found = answers(learner, h, s, range(k)), 0.0
    for i, new in product(range(len(s)), product(range(k), (0, 1))):
        other = answers(learner, h, [*s[:i], new, *s[i + 1 :]], range(k))
        never = np.isneginf(base) != np.isneginf(other)
        found = max(found, np.exp(np.maximum(base, other))[never].max(initial=0.0))
    return float(found)


@settings(max_examples=15, deadline=None)
@given(s=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=2, max_size=5))
def test_an_infinite_loss_is_shown_by_the_likeliest_answer(s: list[tuple[int, int]]) -> None:
    h, learner = hypotheses.build("thresholds", points=4), learners.build("stable", subset_size=2, beta=1)
    got = audit(learner, h, *zip(*s, strict=True))
    witness = got.witness["privacy_loss"]
    assume(got.privacy_loss == math.inf)
    assert max(witness.p, witness.p_neighbour) == pytest.approx(strongest(learner, h, s, 4), abs=1e-12)
    assert max(witness.p, witness.p_neighbour) == pytest.approx(got.delta(50.0), abs=1e-12)


def test_the_worst_case_of_an_infinite_loss_is_shown_by_the_likeliest_answer() -> None:
    h, learner = hypotheses.build("thresholds", points=2), learners.build("stable", subset_size=1, beta=1)
    every = combinations_with_replacement(list(product(range(2), (0, 1))), 3)
    expected = max(strongest(learner, h, s, 2) for s in every)
    for limit in (1000, 19):  # all, and a search
        got = worst_case(learner, h, 3, limit=limit)
        witness = got.witness["privacy_loss"]
        assert got.exhaustive == (limit == 1000)
        assert max(witness.p, witness.p_neighbour) == pytest.approx(expected, abs=1e-12)


def test_of_equal_changes_those_at_points_of_the_data_are_shown() -> None:
    # The answer depends on the number of wrong labels alone: any new point and any query show the same.
    got = audit(learners.build("two_point"), hypotheses.build("complement_pair"), [0.0, 1.0, 1.0, 0.0], [0, 1, 0, 1])
    for witness in got.witness.values():
        assert witness.new[0] in (0.0, 1.0)
        assert witness.query in (0.0, 1.0)
