"""Learners against a brute-force mixture written from the definition, and their parameters against the paper's."""

import math
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predcube.tasks import hypotheses, learners, mixture_weights, predict
from predcube.tasks.answers import flipped, hockey_stick, log_probabilities, log_ratios

type Sample = list[tuple[int, int]]
type Function = Callable[[float], int]


def thresholds_on(t: set[int]) -> list[Function]:
    """The constant 0 and, for each point of T, the threshold at it."""
    return [lambda x: 0, *((lambda x, a=a: int(x >= a)) for a in sorted(t, reverse=True))]


def cube_on(t: set[int]) -> list[Function]:
    """Every labelling of T, 0 off T."""
    return [
        (lambda x, on=frozenset(v for v, b in zip(sorted(t), bits, strict=True) if b): int(x in on))
        for bits in product((0, 1), repeat=len(t))
    ]


def table_on(rows: list[list[int]]) -> Callable[[set[int]], list[Function]]:
    """For each labelling of T that occurs, in lexicographic order, the first row that has it."""

    def on(t: set[int]) -> list[Function]:
        first: dict[tuple[int, ...], list[int]] = {}
        for row in rows:
            first.setdefault(tuple(row[v] for v in sorted(t)), row)
        return [(lambda x, row=first[key]: row[int(x)]) for key in sorted(first)]

    return on


def weigh(sample: Sample, candidates: Iterable[Function], beta: float) -> list[tuple[Function, Decimal]]:
    lost = [(h, sum(h(x) != y for x, y in sample)) for h in candidates]
    weights = [(h, (-Decimal(beta) * m).exp()) for h, m in lost]
    total = sum(w for _, w in weights)
    return [(h, w / total) for h, w in weights]


def brute(sample: Sample, size: int, beta: float, on: Callable[[set[int]], list[Function]], q: float) -> list[Decimal]:
    """[Pr(0), Pr(1)] at q by going through every subset of positions, in 50 digits."""
    with localcontext() as context:
        context.prec = 50
        answer = [Decimal(0), Decimal(0)]
        for chosen in combinations(sample, size):
            for h, w in weigh(sample, on({x for x, _ in chosen}), beta):
                answer[h(q)] += w
        return [a / math.comb(len(sample), size) for a in answer]


ROWS = [[0, 0, 0, 0], [1, 1, 0, 1], [1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 0, 1], [1, 0, 0, 1]]
CLASSES = {
    "thresholds": (hypotheses.build("thresholds", points=4), thresholds_on),
    "cube": (hypotheses.build("cube", points=4), cube_on),
    "table": (hypotheses.build("table", matrix=ROWS), table_on(ROWS)),
}
samples = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(sorted(CLASSES)),
    sample=samples,
    data=st.data(),
    gamma=st.sampled_from([0.1, 0.7, 2.0, 9.0]),
)
def test_predictions_are_the_definition(kind: str, sample: Sample, data: st.DataObject, gamma: float) -> None:
    h, on = CLASSES[kind]
    size = data.draw(st.integers(1, len(sample)))
    learner = learners.build("stable", gamma=gamma, subset_size=size)
    x, y = zip(*sample, strict=True)
    got = predict(learner, h, x, y, range(4))
    for q in range(4):
        p0, p1 = brute(sample, size, gamma / 2, on, q)
        for log_p, p in ((got.log_p0[q], p0), (got.log_p1[q], p1)):
            if p == 0:
                assert log_p == -math.inf
            else:
                assert log_p == pytest.approx(float(p.ln()), rel=1e-10, abs=1e-10)
        assert got.p[q] == pytest.approx(float(p1), abs=1e-12)
    assert (got.standard_error == 0).all()


def test_the_smaller_probability_keeps_its_digits() -> None:
    # 24 agreeing records and a steep β: 1 − p is about 1e-31, far below the rounding of p itself.
    sample = [(0, 0)] * 12 + [(1, 1)] * 12
    learner = learners.build("stable", gamma=12.0, subset_size=22)
    x, y = zip(*sample, strict=True)
    got = predict(learner, hypotheses.build("thresholds", points=2), x, y, [0, 1])
    with localcontext() as context:
        context.prec = 50
        # T is {0, 1} for every subset of 22 of them; the candidates lose 12, 0 and 12.
        small = (Decimal(-72)).exp() / (1 + 2 * Decimal(-72).exp())
        assert got.log_p1[0] == pytest.approx(float(small.ln()), rel=1e-13)
        assert got.log_p0[1] == pytest.approx(float(small.ln()), rel=1e-13)
    assert got.log_p0[0] == pytest.approx(-float(small), abs=1e-13)
    assert got.log_p0[0] <= 0


@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_flip_mixes_the_two_answers(kind: str) -> None:
    h, on = CLASSES[kind]
    sample = [(0, 0), (2, 1), (2, 1), (3, 0), (1, 1)]
    learner = learners.build("stable_flip", epsilon=0.8, alpha=0.25, subset_size=2)
    x, y = zip(*sample, strict=True)
    got = predict(learner, h, x, y, range(4))
    for q in range(4):
        p = float(brute(sample, 2, 0.05, on, q)[1])
        assert got.p[q] == pytest.approx(0.5 * p + 0.25, abs=1e-12)
        assert np.exp(got.log_p0[q]) == pytest.approx(1 - got.p[q], abs=1e-12)


def test_exponential_mechanism_values() -> None:
    # Utilities 2, 1, 0 at ε = ln 2 and sensitivity 1: the three probabilities of theory.
    h = hypotheses.build("table", matrix=[[1, 1], [1, 0], [0, 0]])
    weights = mixture_weights(learners.build("exponential", epsilon=math.log(2)), h, [0, 1], [1, 1])
    got = dict(zip(weights.representatives.tolist(), weights.weights.tolist(), strict=True))
    assert [got[i] for i in range(3)] == pytest.approx([0.453082, 0.320377, 0.226541], abs=5e-7)


@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_exponential_runs_over_all_of_the_class_with_duplicates(kind: str) -> None:
    h, on = CLASSES[kind]
    sample = [(0, 1), (1, 1), (1, 0), (3, 1)]
    everything = [(lambda x, row=row: row[int(x)]) for row in ROWS] if kind == "table" else on({0, 1, 2, 3})
    x, y = zip(*sample, strict=True)
    got = predict(learners.build("exponential", epsilon=1.4), h, x, y, range(4))
    for q in range(4):
        expected = sum(w for f, w in weigh(sample, everything, 0.7) if f(q) == 1)
        assert got.p[q] == pytest.approx(float(expected), abs=1e-13)


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(sorted(CLASSES)), sample=samples)
def test_erm_is_the_first_minimiser(kind: str, sample: Sample) -> None:
    h, on = CLASSES[kind]
    occupied = {x for x, _ in sample}
    candidates = sorted(on(occupied), key=lambda f: [f(v) for v in sorted(occupied)])
    best = min(candidates, key=lambda f: sum(f(x) != y for x, y in sample))  # min takes the first of equals
    x, y = zip(*sample, strict=True)
    got = predict(learners.build("erm"), h, x, y, range(4))
    assert got.p.tolist() == [best(q) for q in range(4)]


def test_real_thresholds_at_points_between_the_integers() -> None:
    sample = [(-1, 0), (2, 1), (2, 0), (5, 1)]
    x, y = zip(*sample, strict=True)
    queries = [-3.0, -1.0, 0.5, 2.0, 4.999, 5.0, 9.0]
    got = predict(learners.build("stable", gamma=1.0, subset_size=2), hypotheses.build("thresholds"), x, y, queries)
    expected = [float(brute(sample, 2, 0.5, thresholds_on, q)[1]) for q in queries]
    assert got.p == pytest.approx(expected, abs=1e-12)


def test_mixture_weights_of_a_cube_though_its_closed_form_has_none() -> None:
    h, on = CLASSES["cube"]
    sample = [(0, 1), (1, 0), (1, 1), (2, 1)]
    x, y = zip(*sample, strict=True)
    learner = learners.build("stable", gamma=1.0, subset_size=2)
    for method in ("auto", "analytic", "enumerate"):
        weights = mixture_weights(learner, h, x, y, method=method)
        assert weights.weights.sum() == pytest.approx(1.0, abs=1e-12)
        p = weights.weights @ h.predict(weights.representatives, np.arange(4))
        assert p == pytest.approx([float(brute(sample, 2, 0.5, on, q)[1]) for q in range(4)], abs=1e-12)


def test_mc_agrees_within_its_error() -> None:
    h, _ = CLASSES["table"]
    sample = [(0, 0), (1, 1), (2, 1), (3, 0), (1, 0)]
    x, y = zip(*sample, strict=True)
    learner = learners.build("stable_flip", epsilon=1.0, alpha=0.1, subset_size=2)
    got = predict(learner, h, x, y, range(4), method="mc", samples=4000, seed=3)
    exact = predict(learner, h, x, y, range(4), method="enumerate")
    assert got.method == "mc"
    assert (np.abs(got.p - exact.p) <= 5 * got.standard_error + 1e-12).all()
    assert got.standard_error.max() > 0
    again = predict(learner, h, x, y, range(4), method="mc", samples=4000, seed=3)
    assert (again.p == got.p).all()


# Parameters.


@pytest.mark.parametrize(("gamma", "n"), [(0.29, 100), (0.57, 100), (0.07, 100), (0.1, 30), (0.3, 10), (0.6, 5)])
def test_sizes_are_floors_of_decimals_as_written(gamma: float, n: int) -> None:
    exact = Fraction(str(gamma)) * n
    assert learners.build("stable", gamma=gamma).derived(n)["subset_size"] == exact
    assert learners.build("stable", gamma=np.float64(gamma)).derived(n)["subset_size"] == exact
    assert learners.build("stable", gamma=1.0, subset_fraction=gamma).derived(n)["subset_size"] == exact
    assert learners.build("stable", gamma=2 * gamma, convention="outline").derived(n)["subset_size"] == exact


def test_conventions() -> None:
    assert learners.build("stable", gamma=0.4).derived(50) == {"subset_size": 20, "beta": 0.2, "gamma": 0.4}
    outline = learners.build("stable", gamma=0.4, convention="outline")
    assert outline.derived(50) == {"subset_size": 10, "beta": 0.05, "gamma": 0.4}
    body = learners.build("stable_flip", epsilon=0.8, alpha=0.1)
    assert body.derived(50) == {"subset_size": 2, "beta": 0.02, "gamma": 0.04}
    introduction = learners.build("stable_flip", epsilon=0.8, alpha=0.1, convention="introduction")
    assert introduction.derived(50) == {"subset_size": 4, "beta": 0.04, "gamma": 0.08}
    inner = learners.build("stable_flip", epsilon=0.8, alpha=0.1, convention="outline")
    assert inner.derived(50) == {"subset_size": 1, "beta": 0.005, "gamma": 0.04}


def test_n_prime_of_one_is_not_a_fraction_of_one() -> None:
    assert learners.build("stable", gamma=0.1, subset_size=1).derived(40)["subset_size"] == 1
    assert learners.build("stable", gamma=0.1, subset_fraction=1).derived(40)["subset_size"] == 40
    with pytest.raises(ValueError, match="must be an integer"):
        learners.build("stable", gamma=0.1, subset_size=1.0)


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("stabel", {}, "did you mean 'stable'"),
        ("stable", {"gama": 0.1}, "did you mean 'gamma'"),
        ("stable", {}, "needs gamma"),
        ("stable", {"subset_size": 3}, "needs gamma"),
        ("stable", {"beta": 0.3}, "needs gamma"),
        ("stable", {"gamma": 0.0}, "above 0"),
        ("stable", {"gamma": -1}, "above 0"),
        ("stable", {"gamma": math.nan}, "finite"),
        ("stable", {"gamma": math.inf}, "finite"),
        ("stable", {"gamma": True}, "a number"),
        ("stable", {"gamma": "0.1"}, "a number"),
        ("stable", {"gamma": 0.1, "convention": "body"}, "'proof', 'outline'"),
        ("stable", {"gamma": 0.1, "subset_size": 0}, "at least 1"),
        ("stable", {"gamma": 0.1, "subset_fraction": 1.5}, "at most 1"),
        ("stable", {"gamma": 0.1, "subset_size": 2, "subset_fraction": 0.1}, "give one of them"),
        ("stable_flip", {"epsilon": 1.0}, "needs alpha"),
        ("stable_flip", {"epsilon": 1.0, "alpha": 0.6}, "at most 0.5"),
        ("exponential", {"epsilon": 0}, "above 0"),
        ("erm", {"gamma": 0.1}, "takes no parameter 'gamma'"),
    ],
)
def test_wrong_parameters_are_named(kind: str, parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        learners.build(kind, **parameters)


def test_gamma_may_be_left_out_where_it_is_not_used() -> None:
    learner = learners.build("stable", beta=0.3, subset_size=4)
    assert learner.derived(9) == {"subset_size": 4, "beta": 0.3, "gamma": None}
    assert learner.infeasible(9, CLASSES["cube"][0]) is None


def test_infeasible_says_why() -> None:
    h = hypotheses.build("thresholds")
    stable = learners.build("stable", gamma=0.05)
    assert stable.infeasible(20, h) is None
    assert "below 1: raise n to 20 or more" in str(stable.infeasible(19, h))
    assert "above n = 8" in str(learners.build("stable", gamma=0.1, subset_size=9).infeasible(8, h))
    assert "above n = 8" in str(learners.build("stable", gamma=1.5).infeasible(8, h))
    assert "finite" in str(learners.build("exponential", epsilon=1.0).infeasible(8, h))
    assert learners.build("exponential", epsilon=1.0).infeasible(8, hypotheses.build("cube", points=40)) is None
    with pytest.raises(ValueError, match="infeasible at n = 2"):
        predict(stable, h, [0.0, 1.0], [0, 1], [0.5])


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([0, 1], [0], "2 examples and y has 1"),
        ([], [], "n ≥ 1"),
        ([0, 1], [0, 2], "label 2 at position 1"),
        ([0, 1], [0.0, math.nan], "label nan at position 1"),
        ([0, 1], ["a", "b"], "must be 0 and 1"),
        ([0, 4], [0, 1], "outside X"),
        ([0, math.nan], [0, 1], "not finite"),
        ([[0, 1], [1, 2]], [0, 1], "several features"),
    ],
)
def test_malformed_samples_are_refused(x: list[object], y: list[object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        predict(learners.build("erm"), hypotheses.build("thresholds", points=4), x, y, [0])


def test_labels_may_be_booleans_or_floats() -> None:
    h = hypotheses.build("thresholds", points=4)
    for y in ([True, False], [1.0, 0.0], np.array([1, 0], dtype=np.int8)):
        assert predict(learners.build("erm"), h, [3, 1], y, [0, 1, 2, 3]).p.tolist() == [0, 0, 0, 1]


def test_guarantees() -> None:
    # Sharper than the paper's: n'/n + (1 − n'/n) tanh(β/2).
    stable = learners.build("stable", gamma=0.5)
    assert stable.guaranteed_stability(40) == pytest.approx(0.5 + 0.5 * math.tanh(0.125))
    assert stable.guaranteed_privacy_loss(40) == math.inf
    # An inner learner that is exactly εα/2-stable: β = 0 and n'/n = 1/20.
    exact = learners.build("stable_flip", epsilon=1.0, alpha=0.1, subset_fraction=0.05, beta=0.0)
    assert exact.guaranteed_privacy_loss(100) == pytest.approx(0.336472, abs=5e-7)
    # γ = εα/2 is enough for ε, though the paper's constant 3γ would not be (1.37ε).
    for epsilon, alpha in product((0.05, 0.1, 0.5, 1.0, 3.0), (0.01, 0.1, 0.3, 0.5)):
        for convention in ("proof", "outline"):
            flip = learners.build("stable_flip", epsilon=epsilon, alpha=alpha, convention=convention)
            assert flip.guaranteed_privacy_loss(10**6) <= epsilon
    assert math.log1p((1 - 0.02) * 3 * 0.1 * 0.01 / 2 / 0.01) / 0.1 == pytest.approx(1.37, abs=5e-3)
    introduction = learners.build("stable_flip", epsilon=0.1, alpha=0.01, convention="introduction")
    assert introduction.guaranteed_privacy_loss(10**6) > 0.1
    exponential = learners.build("exponential", epsilon=1.2)
    assert exponential.guaranteed_privacy_loss(5) == 1.2
    assert exponential.guaranteed_stability(5) == pytest.approx(math.tanh(0.3))
    assert learners.build("erm").guaranteed_stability(5) == 1.0


# Log-probabilities.


@settings(max_examples=80, deadline=None)
@given(data=st.data(), shape=st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 5)), nested=st.booleans())
def test_log_probabilities_are_sums_of_their_own_weights(
    data: st.DataObject, shape: tuple[int, int, int], nested: bool
) -> None:
    b, m, q = shape
    logs = data.draw(
        st.lists(st.sampled_from([-math.inf, -900.0, -710.0, -30.0, -1.0, 0.0]), min_size=b * m, max_size=b * m)
    )
    log_weights = np.array(logs).reshape(b, m)
    log_weights[:, data.draw(st.integers(0, m - 1))] = 0.0
    if nested:
        ones = np.array(data.draw(st.lists(st.integers(0, m), min_size=q, max_size=q)))
        labels = (np.array(data.draw(st.permutations(range(m))))[:, None] < ones[None, :]).astype(np.uint8)
    else:
        labels = np.array(data.draw(st.lists(st.integers(0, 1), min_size=m * q, max_size=m * q)), dtype=np.uint8)
        labels = labels.reshape(m, q)
    got = log_probabilities(log_weights, labels)
    for i, j, y in product(range(b), range(q), (0, 1)):
        terms = [w for w, label in zip(log_weights[i], labels[:, j], strict=True) if label == y]
        top = max(terms, default=-math.inf)
        expected = top if top == -math.inf else top + math.log(math.fsum(math.exp(t - top) for t in terms))
        assert got[i, j, y] == pytest.approx(expected, rel=1e-13, abs=1e-13)


def test_flip_in_log_space_and_differences_of_infinities() -> None:
    logs = np.array([[-math.inf, 0.0], [math.log(0.25), math.log(0.75)]])
    assert np.exp(flipped(logs, 0.1)) == pytest.approx(np.array([[0.1, 0.9], [0.3, 0.7]]))
    assert (flipped(logs, 0.0) == logs).all()
    assert flipped(np.array([-40.0, 1e-15]), 0.0).tolist() == [-40.0, 0.0]
    nothing = np.array([-math.inf, -math.inf, 0.0])
    something = np.array([-math.inf, -1.0, -2.0])
    assert log_ratios(nothing, something).tolist() == [0.0, math.inf, 2.0]
    assert hockey_stick(np.log([0.6, 0.4]), np.log([0.5, 0.5]), math.log(1.1)) == pytest.approx(0.05)
    assert hockey_stick(np.log([0.5, 0.5]), np.log([0.6, 0.4]), math.log(1.1)) == pytest.approx(0.06)
    assert hockey_stick(np.array([0.0]), np.array([-math.inf]), math.inf) == 1.0
    assert hockey_stick(np.array([0.0]), np.array([-1.0]), math.inf) == 0.0
    with pytest.raises(ValueError, match="at least 0"):
        hockey_stick(np.array([0.0]), np.array([0.0]), math.nan)
