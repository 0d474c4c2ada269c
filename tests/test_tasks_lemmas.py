"""The lemmas of private prediction as numbers: ratios, nets and losses against loops over subsets written apart.

The class is thresholds 1{x ≥ a} on {0, …, k − 1}; the loops know a hypothesis by its cut and nothing of sets or masks.
"""

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from predcube.tasks import hypotheses, learners, lemmas, lemmas_nets, lemmas_subsets
from predcube.tasks.audits import audit
from predcube.tasks.bounds import relabelled_swap_ratio_bound, swapped_privacy_loss
from predcube.tasks.distributions import Threshold
from predcube.tasks.distributions.populations import FinitePopulation
from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.learners.base import Learner
from predcube.tasks.learners.records import records
from predcube.tasks.mixture import tally
from predcube.tasks.trials import Problem, infeasible, measure, operations, prepare

type Sample = list[tuple[int, int]]

RATIOS = ("swap_ratio", "swap_ratio_elsewhere", "subset_ratio", "net_failure", "swapped_privacy_loss")


def measured(learner: Learner, h: HypothesisClass, s: Sample, *asked: str) -> dict[str, float]:
    x, y = np.array([r[0] for r in s]), np.array([r[1] for r in s], dtype=np.uint8)
    population = FinitePopulation(points=np.arange(3), law=np.full((3, 2), 1 / 6))
    sample = records(x, y) if learner.ordered else tally(x, y)
    found = lemmas.measure(
        asked,
        learner,
        h,
        population,
        sample,
        neighbours=64,
        streams=lambda purpose: lambda: np.random.default_rng(1),
    )
    return dict(found)


# --- loops written apart ----------------------------------------------------------------------------------------------


def cut_of(points: set[int], says: Callable[[int], bool]) -> float:
    """The representative of a labelling of some points: the smallest that is labelled 1."""
    return min((p for p in points if says(p)), default=math.inf)


def listed(points: set[int]) -> set[float]:
    return {*points, math.inf}


def sigma(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def votes(chunks: list[list[int]], a: float, x: int, privacy: float) -> float:
    """Pr[1] at x of the vote of chunks of points, each relabelled by 1{· ≥ a}."""
    ones = sum(x >= cut_of(set(chunk), lambda p: p >= a) for chunk in chunks)
    return sigma(privacy * (2 * ones - len(chunks)) / 2)


def main_answer(s: Sample, points: set[int], x: int, eta: float, r: int) -> float:
    """Pr[1] at x of the main private learner when T is ``points``, before the flip."""
    n = len(s)
    chunks = [[s[i][0] for i in part] for part in np.array_split(range(n), r)]
    weights = {a: math.exp(-sum((p >= a) != y for p, y in s) / (eta * n)) for a in listed(points)}
    total = sum(weights.values())
    return sum(w * votes(chunks, a, x, 1 / (eta * n)) for a, w in weights.items()) / total


def plain_answer(s: Sample, points: set[int], x: int, beta: float) -> float:
    weights = {a: math.exp(-beta * sum((p >= a) != y for p, y in s)) for a in listed(points)}
    return sum(w for a, w in weights.items() if x >= a) / sum(weights.values())


def lwy_answer(s: Sample, drawn: tuple[int, ...], x: int, epsilon: float, r: int, k: int) -> float:
    """Pr[1] at x of the learner of Li, Wang & Ye when the records ``drawn`` are, by its definition."""
    rest = [i for i in range(len(s)) if i not in drawn]
    cuts = [*range(k), math.inf]

    def q(a: float) -> float:
        return min(
            sum((s[i][0] >= a) != (s[i][0] >= f) for i in drawn) / len(drawn)
            + sum((s[i][0] >= f) != s[i][1] for i in rest) / len(rest)
            for f in cuts
        )

    weights = {a: math.exp(-epsilon * len(rest) * q(a) / 2) for a in listed({s[i][0] for i in drawn})}
    chunks = [[s[i][0] for i in drawn if i % r == c] for c in range(r)]
    return sum(w * votes(chunks, a, x, 1.0) for a, w in weights.items()) / sum(weights.values())


def is_net(s: Sample, kept: list[int], others: list[int], k: int, eta: float) -> bool:
    """Whether functions that agree on the records ``kept`` differ on at most η·|others| of ``others``."""
    for a, b in itertools.combinations([*range(k), math.inf], 2):
        same = all((s[i][0] >= a) == (s[i][0] >= b) for i in kept)
        apart = sum((s[i][0] >= a) != (s[i][0] >= b) for i in others)
        if same and apart > eta * len(others) + 1e-9:
            return False
    return True


def exchanges(n: int, size: int) -> Iterator[tuple[tuple[int, ...], int, tuple[int, ...]]]:
    for drawn in itertools.combinations(range(n), size):
        for j in drawn:
            for i in set(range(n)) - set(drawn):
                yield drawn, j, tuple(sorted({*drawn, i} - {j}))


def ratio(p: float, q: float) -> float:
    return max(p / q, (1 - p) / (1 - q))


def neighbours(s: Sample, k: int) -> Iterator[Sample]:
    for i in range(len(s)):
        for new in itertools.product(range(k), (0, 1)):
            if new != s[i]:
                yield [*s[:i], new, *s[i + 1 :]]


samples = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=4, max_size=6)


# --- the main private learner -----------------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(samples, st.integers(1, 3), st.sampled_from([0.2, 0.34, 0.5, 0.9]), st.integers(1, 3))
def test_ratios_and_nets_of_the_main_learner_are_loops_over_all_subsets(
    s: Sample, size: int, eta: float, r: int
) -> None:
    n, k = len(s), 3
    learner = learners.build("private", epsilon=2.0, alpha=0.1, eta=eta, chunks=r, subset_size=size)
    got = measured(learner, hypotheses.build("thresholds", points=k), s, *RATIOS)
    swaps, elsewhere, failure = 1.0, 1.0, 0.0
    large = eta * n >= 1
    for j in range(n):
        others = [i for i in range(n) if i != j]
        bad = sum(
            not (large and is_net(s, list(rest), others, k, eta)) for rest in itertools.combinations(others, size - 1)
        )
        failure = max(failure, bad / math.comb(n, size))
    for drawn, j, other in exchanges(n, size):
        kept, others = [i for i in drawn if i != j], [i for i in range(n) if i != j]
        good = large and is_net(s, kept, others, k, eta)
        for x in range(k):
            p, q = (main_answer(s, {s[i][0] for i in rows}, x, eta, r) for rows in (drawn, other))
            if good:
                swaps = max(swaps, ratio(p, q))
            else:
                elsewhere = max(elsewhere, ratio(p, q))
    per_set = 1.0
    for other_sample in neighbours(s, k):
        for m in range(1, min(size, k) + 1):
            for points in itertools.combinations(range(k), m):
                for x in range(k):
                    p, q = (main_answer(of, set(points), x, eta, r) for of in (s, other_sample))
                    per_set = max(per_set, ratio(p, q), ratio(q, p))
    assert got["swap_ratio"] == pytest.approx(swaps, rel=1e-10)
    assert got["swap_ratio_elsewhere"] == pytest.approx(elsewhere, rel=1e-10)
    assert got["net_failure"] == pytest.approx(failure, abs=1e-12)
    assert got["subset_ratio"] == pytest.approx(per_set, rel=1e-10)
    assert got["lemma_sets"] == 1
    factor = math.exp(3 / (eta * n)) * (1 + 4 * math.exp(6) * size / (n - size))
    assert got["swapped_privacy_loss"] == pytest.approx(math.log(factor + 0.8 * failure / 0.1), rel=1e-12)
    # What the proof says of each.
    assert swaps <= 4 * math.exp(6)
    assert per_set <= math.exp(3 / (eta * n)) * (1 + 1e-12)
    assert failure <= size / n


@settings(max_examples=25, deadline=None)
@given(samples, st.integers(1, 4), st.sampled_from([0.25, 0.5, 2.0]), st.sampled_from(["proof", "outline"]))
def test_the_papers_bound_holds_for_the_measured_loss(s: Sample, size: int, eta: float, convention: str) -> None:
    h = hypotheses.build("thresholds", points=3)
    learner = learners.build(
        "private", epsilon=4.0, alpha=0.3, eta=eta, chunks=2, subset_size=size, convention=convention
    )
    if size == len(s) or learner.infeasible(len(s), h):
        return
    found = audit(learner, h, [x for x, _ in s], [y for _, y in s])
    got = measured(learner, h, s, "swapped_privacy_loss", "net_failure")
    assert found.privacy_loss <= got["swapped_privacy_loss"] + 1e-12
    assert found.exhaustive


@pytest.mark.parametrize("few", [10, 0])
def test_ratios_grow_where_the_others_drawn_are_no_net(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One record drawn: nothing is drawn besides it, so no set is a net unless η lets all of H pass."""
    monkeypatch.setattr(lemmas, "FEW", few)
    s = [(0, 0), (1, 0), (2, 1), (2, 1), (1, 1), (0, 0)]
    h = hypotheses.build("thresholds", points=3)
    tight, wide = (
        measured(learners.build("private", epsilon=3, alpha=0.1, eta=eta, chunks=2, subset_size=1), h, s, *RATIOS)
        for eta in (0.5, 1.0)
    )
    assert tight["swap_ratio"] == 1.0 < tight["swap_ratio_elsewhere"]
    assert wide["swap_ratio"] > 1.0 == wide["swap_ratio_elsewhere"]
    assert tight["net_failure"] == pytest.approx(1 / 6)
    assert wide["net_failure"] == 0.0


def test_all_records_drawn_leave_nothing_to_exchange() -> None:
    s = [(0, 0), (1, 0), (2, 1), (2, 1)]
    learner = learners.build("private", epsilon=3, alpha=0.1, eta=0.5, chunks=2, subset_size=4)
    got = measured(learner, hypotheses.build("thresholds", points=3), s, *RATIOS)
    assert got["swap_ratio"] == got["swap_ratio_elsewhere"] == 1.0
    assert got["swapped_privacy_loss"] == math.inf


# --- other learners ---------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(samples, st.integers(1, 3), st.sampled_from([0.1, 0.7, 2.0]), st.sampled_from(["stable", "stable_flip"]))
def test_the_ratio_of_a_mixture_with_its_set_fixed(s: Sample, size: int, beta: float, kind: str) -> None:
    k = 3
    flip = {"alpha": 0.2, "epsilon": 0.5} if kind == "stable_flip" else {}
    learner = learners.build(kind, subset_size=size, beta=beta, **flip)
    got = measured(learner, hypotheses.build("thresholds", points=k), s, "subset_ratio")
    expected = 1.0
    for other in neighbours(s, k):
        for m in range(1, min(size, k) + 1):
            for points in itertools.combinations(range(k), m):
                for x in range(k):
                    p, q = (plain_answer(of, set(points), x, beta) for of in (s, other))
                    for a, b in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
                        if a > 0:  # an answer that no hypothesis of H_T gives has no ratio, in S or S′
                            expected = max(expected, a / b)
    assert got["subset_ratio"] == pytest.approx(expected, rel=1e-10)
    assert expected <= math.exp(2 * beta) * (1 + 1e-12)


@settings(max_examples=12, deadline=None)
@given(samples, st.integers(1, 3), st.sampled_from([0.3, 1.0, 3.0]), st.integers(1, 3))
def test_ratios_of_the_learner_that_relabels_the_subset_alone(s: Sample, size: int, epsilon: float, r: int) -> None:
    n, k = len(s), 3
    learner = learners.build("private_lwy", epsilon=epsilon, alpha=0.2, chunks=min(r, size), subset_size=size)
    got = measured(learner, hypotheses.build("thresholds", points=k), s, "swap_ratio", "subset_ratio")
    answers = {
        (drawn, x): lwy_answer(s, drawn, x, epsilon, min(r, size), k)
        for drawn in itertools.combinations(range(n), size)
        for x in range(k)
    }
    swaps = max(ratio(answers[a, x], answers[b, x]) for a, _, b in exchanges(n, size) for x in range(k))
    assert got["swap_ratio"] == pytest.approx(max(1.0, swaps), rel=1e-10)
    assert swaps <= relabelled_swap_ratio_bound(n, size, epsilon)
    per_choice = 1.0
    for i, other in ((i, o) for o in neighbours(s, k) for i in range(n) if o[i] != s[i]):
        for drawn in itertools.combinations([j for j in range(n) if j != i], size):
            for x in range(k):
                p, q = answers[drawn, x], lwy_answer(other, drawn, x, epsilon, min(r, size), k)
                per_choice = max(per_choice, ratio(p, q), ratio(q, p))
    assert got["subset_ratio"] == pytest.approx(per_choice, rel=1e-10)
    assert per_choice <= math.exp(epsilon) * (1 + 1e-12)
    assert got["lemma_sets"] == 1


@settings(max_examples=20, deadline=None)
@given(st.data(), st.integers(4, 6), st.sampled_from([0.2, 0.5, 1.0, 4.0]), st.booleans())
def test_what_the_lwy_guarantee_is_derived_from(data: st.DataObject, n: int, epsilon: float, small: bool) -> None:
    """P_{S,I} ≤ R·P_{S′,J} for S′ with another record j ∈ I and J = I ∖ {j} ∪ {i}, the two at once; the sum over I."""
    k = 3
    s = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=n, max_size=n))
    size = 1 if small else min(n - 1, math.ceil(epsilon * n))
    r = data.draw(st.integers(1, size))
    j = data.draw(st.integers(0, n - 1))
    other = [*s[:j], data.draw(st.tuples(st.integers(0, 2), st.integers(0, 1))), *s[j + 1 :]]
    bound = 4 * math.exp(2 + max(1.0, epsilon * n / size))
    for x in range(k):
        sums = [0.0, 0.0]
        for drawn in itertools.combinations(range(n), size):
            p = lwy_answer(s, drawn, x, epsilon, r, k)
            sums[0] += p
            sums[1] += lwy_answer(other, drawn, x, epsilon, r, k)
            if j in drawn:
                for i in set(range(n)) - set(drawn):
                    q = lwy_answer(other, tuple(sorted({*drawn, i} - {j})), x, epsilon, r, k)
                    assert ratio(p, q) <= bound
                    assert ratio(q, p) <= bound
        whole = math.exp(epsilon) + bound * size / (n - size)
        total = math.comb(n, size)
        assert ratio(sums[0] / total, sums[1] / total) <= whole


# --- drawn sets, other classes, and what is refused -------------------------------------------------------------------


CLASSES = [
    ("thresholds", {"points": 4}),
    ("intervals", {"points": 4}),
    ("points", {"points": 4}),
    ("cube", {"points": 4}),
]


@pytest.mark.parametrize(("kind", "options"), CLASSES)
def test_nets_of_all_sets_agree_with_the_test_of_one_set(kind: str, options: dict[str, int]) -> None:
    h = hypotheses.build(kind, **options)
    rng = np.random.default_rng(2)
    for eta in (0.0, 0.2, 0.5, 0.99):
        sample = tally(rng.integers(4, size=9), rng.integers(2, size=9).astype(np.uint8))
        held = sample.counts.sum(axis=1)
        labels = h.labelings(sample.points)
        found = lemmas_nets.nets_without(h, sample, eta)
        for v in range(len(held)):
            weights = held - (np.arange(len(held)) == v)
            for u in range(2 ** len(held)):
                inside = np.array([(u >> i) & 1 for i in range(len(held))], dtype=bool)
                worst = max(
                    (int(weights @ (f != g)) for f in labels for g in labels if (f == g)[inside].all()), default=0
                )
                assert found[v, u] == (worst <= eta * 8 + 1e-9), (v, u)


@pytest.mark.parametrize("quantity", ["swap_ratio", "swap_ratio_elsewhere", "subset_ratio"])
def test_drawn_sets_come_up_to_all_sets_and_never_beyond(quantity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    h = hypotheses.build("thresholds", points=4)
    rng = np.random.default_rng(0)
    s = [(int(x), int(y)) for x, y in zip(rng.integers(4, size=10), rng.integers(2, size=10), strict=True)]
    learner = learners.build("private", epsilon=2, alpha=0.1, eta=0.3, chunks=3, subset_size=4)
    whole = measured(learner, h, s, quantity)
    monkeypatch.setattr(lemmas, "FEW", 0)
    drawn = measured(learner, h, s, quantity)
    assert (whole["lemma_sets"], drawn["lemma_sets"]) == (1, 2)
    assert drawn[quantity] <= whole[quantity] * (1 + 1e-12)
    assert drawn[quantity] == pytest.approx(whole[quantity], rel=0.2)


def test_drawn_nets_estimate_the_chance_over_all(monkeypatch: pytest.MonkeyPatch) -> None:
    h = hypotheses.build("intervals", points=5)
    rng = np.random.default_rng(3)
    s = [(int(x), int(y)) for x, y in zip(rng.integers(5, size=12), rng.integers(2, size=12), strict=True)]
    learner = learners.build("private", epsilon=2, alpha=0.1, eta=0.3, chunks=3, subset_size=4)
    whole = measured(learner, h, s, "net_failure")["net_failure"]
    monkeypatch.setattr(lemmas, "FEW", 0)
    drawn = measured(learner, h, s, "net_failure")["net_failure"]
    assert 0 < whole < 4 / 12
    assert drawn == pytest.approx(whole, abs=4 / 12 * 4 * math.sqrt(0.25 / 256))


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("kind", ["thresholds", "halfspaces"])
def test_real_points_are_measured_over_drawn_sets(kind: str, size: int) -> None:
    """More points than sets are gone through for: every number is there, says so, and keeps to its bound."""
    options = {"dimension": 2} if kind == "halfspaces" else {}
    h = hypotheses.build(kind, **options)
    rng = np.random.default_rng(4)
    x = rng.random((14, 2)) if kind == "halfspaces" else rng.random(14)
    y = rng.integers(2, size=14).astype(np.uint8)
    learner = learners.build("private", epsilon=2, alpha=0.1, eta=0.4, chunks=3, subset_size=size)
    population = FinitePopulation(points=np.arange(3), law=np.full((3, 2), 1 / 6))
    got = lemmas.measure(
        RATIOS,
        learner,
        h,
        population,
        records(x, y),
        neighbours=8,
        streams=lambda purpose: lambda: np.random.default_rng(5),
    )
    assert got["lemma_sets"] == 2
    assert 1 <= got["swap_ratio"] <= 4 * math.exp(6)
    assert got["swap_ratio_elsewhere"] >= 1
    assert 1 < got["subset_ratio"] <= math.exp(3 / (0.4 * 14))
    assert 0 <= got["net_failure"] <= size / 14


def problem(kind: str, quantities: tuple[str, ...], n: int = 12, points: int | None = 5, **options: object) -> Problem:
    return Problem(
        hypotheses=hypotheses.build("thresholds", **({"points": points} if points else {})),
        distribution=Threshold(at=2 if points else 0.4, noise=0.1),
        learner=learners.build(kind, **options),
        n=n,
        quantities=quantities,
        seed=3,
    )


PRIVATE = {"epsilon": 1.0, "alpha": 0.2, "eta": 0.25, "chunks": 3, "subset_size": 4}


def test_a_trial_gives_them_with_what_says_how() -> None:
    cell = problem("private", (*RATIOS, "privacy_loss"), **PRIVATE)
    got = measure(cell, 0)
    assert list(got) == [*RATIOS, "privacy_loss", "mixture_method", "audit", "lemma_sets"]
    assert measure(cell, 0) == got
    assert got["privacy_loss"] <= got["swapped_privacy_loss"]
    assert got["swapped_privacy_loss"] == pytest.approx(
        swapped_privacy_loss(12, 4, 0.25, 0.2, float(np.asarray(got["net_failure"])))
    )
    sample = prepare(cell, 0).draw
    s = [(int(x), int(y)) for x, y in zip(sample.x, sample.y, strict=True)]
    again = measured(cell.learner, cell.hypotheses, s, "net_failure", "swap_ratio")
    assert again["net_failure"] == got["net_failure"]
    assert again["swap_ratio"] == got["swap_ratio"]
    assert operations(cell)["lemmas"] > 0


@pytest.mark.parametrize(
    ("quantity", "kind", "options", "said"),
    [
        ("swap_ratio", "stable", {"gamma": 0.2}, "swap_ratio is of learners that vote"),
        ("swap_ratio_elsewhere", "private_lwy", {"epsilon": 0.5, "alpha": 0.2, "chunks": 2}, "of nets of the learner"),
        ("net_failure", "erm", {}, "net_failure is of nets of the learner private, not of erm"),
        ("subset_ratio", "exponential", {"epsilon": 1.0}, "subset_ratio is of learners that weigh"),
        ("subset_ratio", "stable_net", {"gamma": 0.3, "alpha": 0.2, "convention": "paper"}, "subset_ratio is of"),
    ],
)
def test_a_learner_without_the_lemma_is_infeasible_with_the_reason(
    quantity: str, kind: str, options: dict[str, object], said: str
) -> None:
    cell = problem(kind, (quantity,), **options)
    reason = infeasible(cell)
    assert reason is not None
    assert said in reason
    assert infeasible(problem(kind, ("error",), **options)) is None


def test_bounds_beside() -> None:
    h = hypotheses.build("thresholds", points=5)
    private = learners.build("private", **PRIVATE)
    assert lemmas.bound("swap_ratio", private, h, 12, 0.1) == pytest.approx(4 * math.exp(6))
    assert lemmas.bound("subset_ratio", private, h, 12, 0.1) == pytest.approx(math.exp(3 / (0.25 * 12)))
    assert lemmas.bound("net_failure", private, h, 12, 0.1) == pytest.approx(4 / 12)
    assert math.isnan(lemmas.bound("swap_ratio_elsewhere", private, h, 12, 0.1))
    outlined = learners.build("private", **PRIVATE, convention="outline")
    beta = min(0.5, 1 / (0.2 * 12)) / 2
    spent = 2 * beta + 1 / 3
    assert lemmas.bound("subset_ratio", outlined, h, 12, 0.1) == pytest.approx(math.exp(spent))
    assert lemmas.bound("swap_ratio", outlined, h, 12, 0.1) == pytest.approx(4 * math.exp(6 * spent))
    lwy = learners.build("private_lwy", epsilon=0.5, alpha=0.2, chunks=2)
    assert lemmas.bound("swap_ratio", lwy, h, 12, 0.1) == pytest.approx(4 * math.exp(3))
    assert lemmas.bound("subset_ratio", lwy, h, 12, 0.1) == pytest.approx(math.exp(0.5))
    stable = learners.build("stable", gamma=0.3)
    assert lemmas.bound("subset_ratio", stable, h, 12, 0.1) == pytest.approx(math.exp(0.3))
    assert math.isnan(lemmas.bound("subset_ratio", learners.build("erm"), h, 12, 0.1))


def test_what_the_paper_states_literally() -> None:
    assert lemmas.literal("stability", learners.build("stable", gamma=0.1), 50) == pytest.approx(0.3)
    assert lemmas.literal("stability", learners.build("stable", gamma=0.1, convention="outline"), 50) == 0.1
    assert math.isnan(lemmas.literal("stability", learners.build("erm"), 50))
    inner = {"kind": "exponential", "epsilon": 0.5}
    assert lemmas.literal("privacy_loss", learners.build("subsample", inner=inner, subset_size=5), 50) == 0.1
    strong = learners.build("subsample", inner={"kind": "exponential", "epsilon": 1.5}, subset_size=5)
    assert math.isnan(lemmas.literal("privacy_loss", strong, 50))


def test_sets_as_masks() -> None:
    sets = lemmas_subsets.all_sets(4, 2)
    assert len(sets) == 4 + 6
    rows: set[tuple[bool, ...]] = {tuple(row) for row in sets.tolist()}
    assert len(rows) == 10


def words(sets: NDArray[np.int64]) -> list[str]:
    return [f"{v:04b}" for v in sets]


def test_differences_and_the_heaviest_inside() -> None:
    labels = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]], dtype=np.uint8)
    assert words(lemmas_nets.differences(labels)) == ["0001", "0010", "0011", "0100", "0110", "0111"]
    held = np.array([5, 1, 2])
    most = lemmas_nets.heaviest(lemmas_nets.differences(labels), held)
    for v in range(8):
        inside = [d for d in (1, 2, 3, 4, 6, 7) if d & ~v == 0]
        assert most[v] == max((sum(held[i] for i in range(3) if d >> i & 1) for d in inside), default=0)
