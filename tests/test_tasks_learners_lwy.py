"""Li, Wang and Ye's learner against loops over positions written in Python, its bound, and a wrong choice of chunks."""

import math
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predcube.tasks import audit, hypotheses, learners, predict, worst_case
from predcube.tasks.learners import private_lwy
from predcube.tasks.learners.private_lwy import Drawn, PrivateLwy
from predcube.tasks.learners.relabelling import Relabelling

type Sample = Sequence[tuple[int, int]]
ROWS = [[0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]]
CLASSES = {
    "thresholds": hypotheses.build("thresholds", points=3),
    "cube": hypotheses.build("cube", points=3),
    "table": hypotheses.build("table", matrix=ROWS),
}


def functions(kind: str, on: set[int]) -> dict[tuple[int, ...], list[int]]:
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


def brute(kind: str, s: Sample, size: int, epsilon: float, r: int) -> list[float]:
    n, p = len(s), [0.0] * 3
    everything = list(functions(kind, {0, 1, 2}).values())
    for drawn in combinations(range(n), size):
        rest = [s[i] for i in range(n) if i not in drawn]
        candidates = list(functions(kind, {s[i][0] for i in drawn}).values())
        weights = []
        for h in candidates:
            score = min(
                sum(h[s[i][0]] != f[s[i][0]] for i in drawn) / size + sum(f[x] != y for x, y in rest) / len(rest)
                for f in everything
            )
            weights.append(math.exp(-epsilon * len(rest) * score / 2))
        for h, w in zip(candidates, weights, strict=True):
            margin = [0] * 3
            for chunk in range(r):
                on = {s[i][0] for i in drawn if i % r == chunk}
                said = functions(kind, on)[tuple(h[v] for v in sorted(on))]
                margin = [m + (1 if said[q] else -1) for q, m in enumerate(margin)]
            for q in range(3):
                p[q] += w / sum(weights) / math.comb(n, size) / (1 + math.exp(-margin[q] / 2))
    return p


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(sorted(CLASSES)),
    s=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=4, max_size=7),
    size=st.integers(1, 3),
    r=st.integers(1, 3),
    epsilon=st.sampled_from([0.2, 1.0, 4.0]),
)
def test_predictions_are_the_definition(kind: str, s: Sample, size: int, r: int, epsilon: float) -> None:
    r = min(r, size)
    learner = learners.build("private_lwy", epsilon=epsilon, alpha=0.1, chunks=r, subset_size=size)
    x, y = zip(*s, strict=True)
    expected = brute(kind, s, size, epsilon, r)
    got = predict(learner, CLASSES[kind], x, y, range(3))
    assert got.method == "enumerate"
    assert got.p == pytest.approx(expected, abs=1e-12)
    assert np.exp(got.log_p0) == pytest.approx([1 - p for p in expected], abs=1e-12)


@settings(max_examples=12, deadline=None)
@given(
    kind=st.sampled_from(["thresholds", "cube"]),
    s=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=5, max_size=5),
)
def test_audits_try_every_position(kind: str, s: list[tuple[int, int]]) -> None:
    learner = learners.build("private_lwy", epsilon=0.8, alpha=0.1, chunks=2, subset_size=2)
    base = np.array(brute(kind, s, 2, 0.8, 2))
    stability = loss = 0.0
    for i, new in product(range(len(s)), product(range(3), (0, 1))):
        other = np.array(brute(kind, [*s[:i], new, *s[i + 1 :]], 2, 0.8, 2))
        stability = max(stability, np.abs(other - base).max())
        loss = max(loss, np.abs(np.log(other / base)).max(), np.abs(np.log((1 - other) / (1 - base))).max())
    got = audit(learner, CLASSES[kind], *zip(*s, strict=True))
    assert got.exhaustive
    assert got.stability == pytest.approx(stability, abs=1e-12)
    assert got.privacy_loss == pytest.approx(loss, rel=1e-10, abs=1e-12)
    assert got.privacy_loss <= learner.guaranteed_privacy_loss(5)


def test_worst_case_is_within_the_guarantee() -> None:
    learner = learners.build("private_lwy", epsilon=0.5, alpha=0.1, chunks=2, subset_size=2)
    got = worst_case(learner, hypotheses.build("thresholds", points=2), 5)
    assert 0 < got.privacy_loss <= learner.guaranteed_privacy_loss(5) + 1e-12
    assert 0 < got.stability <= learner.guaranteed_stability(5) + 1e-12


def test_sampled_records_agree_within_their_error() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 3, 12), rng.integers(0, 2, 12)
    learner = learners.build("private_lwy", epsilon=0.25, alpha=0.1, chunks=2)
    for kind in ("thresholds", "table"):
        exact = predict(learner, CLASSES[kind], x, y, range(3))
        got = predict(learner, CLASSES[kind], x, y, range(3), method="mc", samples=2000, seed=1)
        assert (np.abs(got.p - exact.p) <= 5 * got.standard_error + 1e-12).all()
    estimate = audit(learner, CLASSES["cube"], x, y, method="mc", samples=64, seed=1)
    assert estimate.kind == "estimate"


def test_parameters_and_infeasible_cells() -> None:
    learner = learners.build("private_lwy", epsilon=0.29, alpha=0.1)
    assert learner.derived(100) == {"subset_size": 29, "chunks": 23}
    assert learners.build("private_lwy", epsilon=0.1, alpha=0.1).derived(35)["subset_size"] == 4
    h = CLASSES["thresholds"]
    assert learner.infeasible(100, h) is None
    assert "23 chunks are more than the n' = 15" in str(learner.infeasible(50, h))
    assert "no record" in str(learners.build("private_lwy", epsilon=1.0, alpha=0.1).infeasible(50, h))
    assert "above n" in str(learners.build("private_lwy", epsilon=1.2, alpha=0.1).infeasible(50, h))
    assert "are listed" in str(learner.infeasible(100, hypotheses.build("cube", points=64)))


def test_chunks_by_position_in_the_draw_let_a_swap_touch_them_all() -> None:
    # Pairs x, x, a, a, …: in chunks of two every other chunk holds x; moved on by one record, all do. The proof pays
    # 4e³ for exchanging one drawn record for another, which i mod r keeps to and places in the drawn order do not.
    # No audit of a whole sample shows it: S and S′ draw the same positions, so that their chunks differ in one record,
    # and what an exchange may cost is weighed by n'/(n − n'), small only where the places of the others vary anyway.
    r = 24
    learner = PrivateLwy(epsilon=40.0, alpha=0.1, chunks=r, subset_size=2 * r)
    h = hypotheses.build("cube", points=2)
    places = [0, 0, 1, 1] * (r // 2) + [1]
    types = np.array([2 * v + 1 for v in places])
    one, other = list(range(2 * r)), list(range(1, 2 * r + 1))  # all but the last, all but the first: a swap

    def answers(drawn: list[int], by_draw: bool) -> np.ndarray:
        spread = np.zeros((1, r, 4), dtype=np.int64)
        for j, i in enumerate(drawn):
            spread[0, j // 2 if by_draw else i % r, types[i]] += 1
        voted = Relabelling(hypotheses=h, points=np.arange(2), labels=h.labelings(np.arange(2)), queries=np.arange(2))
        work = Drawn(
            learner=learner,
            hypotheses=h,
            points=np.arange(2),
            types=types,
            queries=np.arange(2),
            samples=None,
            seed=0,
        )
        return work.answers(voted, spread, np.bincount(types, minlength=4))[0]

    right = np.abs(np.log(answers(one, False) / answers(other, False))).max()
    wrong = np.abs(np.log(answers(one, True) / answers(other, True))).max()
    assert right <= math.log(4) + 3 < wrong


def test_samples_predicted_together_are_each_by_itself() -> None:
    h, rng = hypotheses.build("thresholds", points=4), np.random.default_rng(5)
    types = rng.integers(0, 8, (9, 7))
    points = np.arange(4)
    for size, limit in ((3, None), (3, 300), (4, 1)):  # 300: a few together, 1: each alone
        learner = learners.build("private_lwy", epsilon=0.7, alpha=0.3, chunks=2, subset_size=size)
        with pytest.MonkeyPatch.context() as patch:
            if limit is not None:
                patch.setattr(private_lwy, "HELD", limit)
            got = learner.batch(h, points, types, points, method="enumerate")
        for b, own in enumerate(types):
            x, y = own // 2, own % 2
            alone = predict(learner, h, x, y, points)
            assert got[b] == pytest.approx(np.stack([alone.log_p0, alone.log_p1], axis=1), rel=1e-12, abs=1e-12)
