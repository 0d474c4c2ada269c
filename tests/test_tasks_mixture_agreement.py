"""Every way to the weights against enumeration in 50 digits, written apart from the product, and against each other."""

import itertools
import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predcube.tasks.hypotheses.cube import Cube
from predcube.tasks.hypotheses.table import Table
from predcube.tasks.hypotheses.thresholds import Thresholds
from predcube.tasks.mixture import (
    METHODS,
    MixtureWeights,
    Occupancy,
    batch_log_marginals,
    batch_log_weights,
    choose_method,
    evaluate,
    inapplicable,
    occupancy,
    subset_mixture,
    support,
)


def key(representative: Any) -> tuple[float, ...]:
    return tuple(np.atleast_1d(representative).tolist())


def oracle(
    hypotheses: Any, x: list[int], y: list[int], subset_size: int, beta: float
) -> dict[tuple[float, ...], Decimal]:
    """The weights by the definition: every subset of examples, λ and Z in 50 digits."""
    weights: dict[tuple[float, ...], Decimal] = {}
    with localcontext() as context:
        context.prec, context.Emin = 50, -999999
        for chosen in itertools.combinations(range(len(x)), subset_size):
            rows = hypotheses.representatives(np.array(sorted({x[i] for i in chosen})))
            labels = hypotheses.predict(rows, np.array(x))
            scale = [(-Decimal(beta) * int(np.sum(row != y))).exp() for row in labels]
            for row, own in zip(rows, scale, strict=True):
                share = own / sum(scale) / math.comb(len(x), subset_size)
                weights[key(row)] = weights.get(key(row), Decimal(0)) + share
    return weights


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, list[int], list[int], int, float]:
    k = draw(st.integers(1, 5))
    n = draw(st.integers(1, 9))
    x = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    rows = draw(st.lists(st.tuples(*[st.sampled_from((0, 1))] * k), min_size=1, max_size=6))
    kinds = [Thresholds(points=k), Thresholds(), Cube(points=k), Table(matrix=tuple(rows))]
    hypotheses = draw(st.sampled_from(kinds))
    return hypotheses, x, y, draw(st.integers(1, n)), draw(st.sampled_from([0.0, 0.05, 0.5, 3.0, 250.0]))


@settings(max_examples=120, deadline=None)
@given(cases())
def test_every_exact_method_gives_every_weight_to_relative_precision(case: Any) -> None:
    hypotheses, x, y, subset_size, beta = case
    sample = occupancy(x, y)
    expected = oracle(hypotheses, x, y, subset_size, beta)
    for method in METHODS:
        if method in ("mc", "analytic") or inapplicable(
            hypotheses, method, k=len(sample.points), n=len(x), subset_size=subset_size
        ):
            continue
        mixture = evaluate(subset_mixture(hypotheses, sample, subset_size=subset_size, beta=beta, method=method))
        assert isinstance(mixture, MixtureWeights)
        assert mixture.method == method
        assert mixture.weights.sum() == pytest.approx(1.0, abs=1e-12)
        found = {key(r): w for r, w in zip(mixture.representatives, mixture.log_weights, strict=True) if w > -np.inf}
        assert found.keys() == expected.keys()
        for representative, weight in expected.items():
            # The log of a weight near e^−2000 has an error of 2e-13 in the oracle's conversion alone.
            assert found[representative] == pytest.approx(float(weight.ln()), abs=2e-12)


@settings(max_examples=80, deadline=None)
@given(cases())
def test_predictions_and_errors_agree_whatever_form_the_mixture_has(case: Any) -> None:
    hypotheses, x, y, subset_size, beta = case
    sample = occupancy(x, y)
    expected = oracle(hypotheses, x, y, subset_size, beta)
    rows = np.array([r if len(r) > 1 or isinstance(hypotheses, Cube) else r[0] for r in expected])
    queries = np.arange(max(x) + 1)
    labels = hypotheses.predict(rows, queries)
    mistakes = hypotheses.loss(rows, np.array(x), np.stack([1 - np.array(y), np.array(y)], axis=1))
    error = float(sum(w * int(m) for w, m in zip(expected.values(), mistakes, strict=True)))
    for method in (*METHODS, "auto"):
        if method == "mc" or (
            method != "auto"
            and inapplicable(hypotheses, method, k=len(sample.points), n=len(x), subset_size=subset_size)
        ):
            continue
        mixture = evaluate(subset_mixture(hypotheses, sample, subset_size=subset_size, beta=beta, method=method))
        prediction = mixture.predict(hypotheses, queries)
        for y_wanted, logs in ((1, prediction.log_p1), (0, prediction.log_p0)):
            for q in range(len(queries)):
                p = sum(w for w, label in zip(expected.values(), labels[:, q], strict=True) if label == y_wanted)
                assert logs[q] == (pytest.approx(float(p.ln()), abs=2e-12) if p else -np.inf)
        assert np.all(prediction.standard_error == 0)
        losses = hypotheses.loss(mixture.representatives, sample.points, sample.counts)
        assert float(mixture.expectation(losses)) == pytest.approx(error, abs=1e-11)
        assert mixture.functional_standard_error(losses) == 0


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_laplace_and_support_agree_on_larger_samples(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 8))
    counts = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 30)] * 2), min_size=k, max_size=k)))
    n = int(counts.sum())
    if n == 0:
        return
    subset_size, beta = data.draw(st.integers(1, n)), data.draw(st.sampled_from([0.0, 0.02, 0.3, 2.0, 20.0]))
    sample = Occupancy(points=np.arange(k), counts=counts)
    a, b = (
        evaluate(subset_mixture(Thresholds(points=k), sample, subset_size=subset_size, beta=beta, method=method))
        for method in ("laplace", "support")
    )
    assert isinstance(a, MixtureWeights)
    assert isinstance(b, MixtureWeights)
    np.testing.assert_allclose(a.log_weights, b.log_weights, rtol=0, atol=2e-12)


@pytest.mark.parametrize("beta", [0.0, 0.1, 2.0])
def test_the_whole_sample_as_subset_is_the_exponential_mechanism_on_its_labelings(beta: float) -> None:
    x, y = [0, 1, 1, 3, 4], [0, 1, 0, 1, 1]
    sample = occupancy(x, y)
    for hypotheses in (Thresholds(points=5), Cube(points=5)):
        rows = hypotheses.representatives(sample.points)
        weights = np.exp(-beta * np.array([(row != y).sum() for row in hypotheses.predict(rows, np.array(x))]))
        for method in ("laplace", "support", "enumerate"):
            if inapplicable(hypotheses, method, k=4, n=5, subset_size=5):
                continue
            mixture = evaluate(subset_mixture(hypotheses, sample, subset_size=5, beta=beta, method=method))
            assert isinstance(mixture, MixtureWeights)
            found = {key(r): w for r, w in zip(mixture.representatives, mixture.weights, strict=True)}
            assert found == pytest.approx({key(r): w for r, w in zip(rows, weights / weights.sum(), strict=True)})


def test_one_example_drawn_mixes_the_two_hypotheses_of_each_point() -> None:
    x, y, beta = [0, 0, 1, 2], [0, 1, 1, 1], 0.7
    sample = occupancy(x, y)
    cuts = np.array([np.inf, 0, 1, 2])
    loss = np.array([sum((xi >= c) != yi for xi, yi in zip(x, y, strict=True)) for c in cuts])
    odds = np.exp(-beta * (loss[1:] - loss[0]))
    expected = np.array([2, 1, 1]) / 4 * odds / (1 + odds)
    for method in ("laplace", "support", "enumerate"):
        mixture = evaluate(subset_mixture(Thresholds(points=3), sample, subset_size=1, beta=beta, method=method))
        assert isinstance(mixture, MixtureWeights)
        found = dict(zip(mixture.representatives.tolist(), mixture.weights.tolist(), strict=True))
        assert [found[c] for c in (0.0, 1.0, 2.0)] == pytest.approx(expected)


@settings(max_examples=40, deadline=None)
@given(cases(), st.data())
def test_a_batch_gives_each_sample_what_it_gets_alone(case: Any, data: st.DataObject) -> None:
    hypotheses, x, y, subset_size, beta = case
    k = max(x) + 1
    samples = [occupancy(x, y, np.arange(k))]
    for _ in range(3):
        other = data.draw(st.lists(st.integers(0, k - 1), min_size=len(x), max_size=len(x)))
        samples.append(occupancy(other, y, np.arange(k)))
    counts = np.stack([s.counts for s in samples])
    for method in ("laplace", "support", "enumerate", "auto"):
        if method != "auto" and inapplicable(hypotheses, method, k=k, n=len(x), subset_size=subset_size):
            continue
        rows, logs = batch_log_weights(
            hypotheses, np.arange(k), counts, subset_size=subset_size, beta=beta, method=method
        )
        for own, sample in zip(logs, samples, strict=True):
            mixture = evaluate(
                subset_mixture(hypotheses, sample, subset_size=subset_size, beta=beta, method="enumerate", weights=True)
            )
            assert isinstance(mixture, MixtureWeights)
            expected = {
                key(r): w for r, w in zip(mixture.representatives, mixture.log_weights, strict=True) if w > -np.inf
            }
            found = {key(r): w for r, w in zip(rows, own, strict=True) if w > -np.inf}
            assert found == pytest.approx(expected, abs=2e-12)
    if hypotheses.free:
        log_p1, log_p0 = batch_log_marginals(hypotheses, np.arange(k), counts, subset_size=subset_size, beta=beta)
        for b, sample in enumerate(samples):
            prediction = evaluate(
                subset_mixture(hypotheses, sample, subset_size=subset_size, beta=beta, method="support")
            ).predict(hypotheses, np.arange(k))
            np.testing.assert_allclose(log_p1[b], prediction.log_p1, atol=1e-12)
            np.testing.assert_allclose(log_p0[b], prediction.log_p0, atol=1e-12)


@pytest.mark.parametrize(("n", "expected"), [(3, 0.304394), (4, 0.264214)])
def test_the_stable_learner_on_three_points_has_the_published_stability(n: int, expected: float) -> None:
    """The sup over all samples, neighbours and queries of thresholds on {0, 1, 2}, n' = 1, β = 1/4."""
    types = [(x, y) for x in range(3) for y in range(2)]
    samples = list(itertools.combinations_with_replacement(range(6), n))
    counts = np.zeros((len(samples), 3, 2), dtype=np.int64)
    for b, sample in enumerate(samples):
        for t in sample:
            counts[b][types[t]] += 1
    hypotheses = Thresholds(points=3)
    rows, logs = batch_log_weights(hypotheses, np.arange(3), counts, subset_size=1, beta=0.25)
    p = np.exp(logs) @ hypotheses.predict(rows, np.arange(3))
    worst = 0.0
    for b, c in itertools.combinations(range(len(samples)), 2):
        if np.abs(counts[b] - counts[c]).sum() == 2:
            worst = max(worst, float(np.abs(p[b] - p[c]).max()))
    assert worst == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(("n", "expected"), [(3, 0.244919), (4, 0.231059), (5, 0.244919)])
def test_the_two_constants_have_the_published_stability(n: int, expected: float) -> None:
    constants = Table(matrix=((0,), (1,)))
    counts = np.array([[[n - ones, ones]] for ones in range(n + 1)])
    rows, logs = batch_log_weights(constants, np.arange(1), counts, subset_size=n, beta=0.5)
    p = np.exp(logs) @ constants.predict(rows, np.arange(1))[:, 0]
    assert np.abs(np.diff(p)).max() == pytest.approx(expected, abs=5e-7)
    if n == 3:
        assert np.abs(np.diff(logs, axis=0)).max() == pytest.approx(0.727336, abs=5e-7)


def test_a_large_cube_predicts_from_marginals() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 64, 1000), rng.integers(0, 2, 1000)
    cube = Cube(points=64)
    mixture = evaluate(subset_mixture(cube, occupancy(x, y), subset_size=50, beta=0.4))
    prediction = mixture.predict(cube, np.arange(64))
    n1, n0 = np.bincount(x[y == 1], minlength=64), np.bincount(x[y == 0], minlength=64)
    c = n1 + n0
    hit = np.array([1 - math.comb(1000 - int(ci), 50) / math.comb(1000, 50) for ci in c])
    np.testing.assert_allclose(prediction.p, hit / (1 + np.exp(-0.4 * (n1 - n0))), rtol=1e-12)
    np.testing.assert_allclose(np.exp(prediction.log_p0), 1 - prediction.p, rtol=1e-12)
    assert mixture.method == "analytic"


def test_auto_goes_by_counts_alone() -> None:
    line, cube, table = Thresholds(), Cube(points=30), Table(matrix=((0, 1, 0), (1, 1, 0)))
    assert choose_method(line, k=1000, n=1000, subset_size=100, beta=0.05) == "laplace"
    assert choose_method(cube, k=30, n=1000, subset_size=100, beta=0.05) == "analytic"
    assert choose_method(Cube(points=5), k=5, n=100, subset_size=10, beta=0.05, weights=True) == "support"
    assert choose_method(table, k=3, n=1000, subset_size=100, beta=0.05) == "support"
    assert choose_method(table, k=300, n=300, subset_size=30, beta=0.05) == "mc"
    assert choose_method(line, k=10**6, n=10**6, subset_size=10**5, beta=5.0) == "mc"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"subset_size": 0}, r"subset size 0 must lie in \[1, n\] with n = 4"),
        ({"subset_size": 5}, r"subset size 5 must lie in \[1, n\] with n = 4"),
        ({"beta": -1.0}, "beta -1.0 must be finite"),
        ({"beta": math.inf}, "beta inf must be finite"),
        ({"method": "laplce"}, "method 'laplce' is unknown; take one of auto, analytic, laplace"),
        ({"method": "analytic"}, "not for thresholds"),
    ],
)
def test_what_cannot_be_computed_is_refused_with_a_reason(change: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"subset_size": 2, "beta": 0.5} | change
    with pytest.raises(ValueError, match=message):
        subset_mixture(Thresholds(), occupancy([0, 1, 2, 2], [0, 1, 1, 0]), **options)


def test_methods_that_do_not_apply_say_why() -> None:
    sample = occupancy(np.arange(30) % 30, np.zeros(30, dtype=int))
    with pytest.raises(ValueError, match="one hypothesis a point, which cube is not"):
        subset_mixture(Cube(points=30), sample, subset_size=3, beta=1.0, method="laplace")
    with pytest.raises(ValueError, match="at most 2\\^20"):
        subset_mixture(Cube(points=30), sample, subset_size=3, beta=1.0, method="support")
    with pytest.raises(ValueError, match="not the weight of each function"):
        subset_mixture(Cube(points=30), sample, subset_size=3, beta=1.0, method="analytic", weights=True)
    with pytest.raises(ValueError, match=r"share no batch"):
        batch_log_weights(
            Cube(points=2), np.arange(2), np.array([[[1, 0], [0, 0]], [[1, 1], [0, 0]]]), subset_size=1, beta=1.0
        )


def test_occupancy_counts_and_refuses() -> None:
    sample = occupancy([2.5, -1.0, 2.5], [1, 0, 0])
    assert sample.points.tolist() == [-1.0, 2.5]
    assert sample.counts.tolist() == [[1, 0], [1, 1]]
    assert occupancy([2, 2], [1, 1], np.arange(4)).counts.tolist() == [[0, 0], [0, 0], [0, 2], [0, 0]]
    plane = occupancy([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0]], [1, 1, 0])
    assert plane.points.tolist() == [[0.0, 5.0], [1.0, 2.0]]
    assert plane.counts.tolist() == [[0, 1], [1, 1]]
    with pytest.raises(ValueError, match="label 2 is not 0 or 1"):
        occupancy([1, 2], [0, 2])
    with pytest.raises(ValueError, match="one label for each point"):
        occupancy([1, 2], [0])
    with pytest.raises(ValueError, match="point 7 is outside X"):
        occupancy([1, 7], [0, 1], np.arange(3))


@pytest.mark.parametrize(("n", "subset_size"), [(900, 300), (1500, 60), (3000, 900)])
def test_support_holds_beyond_the_range_of_floats(n: int, subset_size: int) -> None:
    """Binomials as they are, scaled, and as logs."""
    rng = np.random.default_rng(n)
    x = rng.choice(5, n, p=[0.5, 0.3, 0.15, 0.04, 0.01])
    sample = occupancy(x, ((x > 1) ^ (rng.random(n) < 0.2)).astype(int))
    a, b = (
        evaluate(subset_mixture(Thresholds(points=5), sample, subset_size=subset_size, beta=0.8, method=method))
        for method in ("laplace", "support")
    )
    assert isinstance(a, MixtureWeights)
    assert isinstance(b, MixtureWeights)
    np.testing.assert_allclose(a.log_weights, b.log_weights, rtol=0, atol=4e-12)


@pytest.mark.parametrize(("n", "subset_size"), [(40, 7), (900, 300), (1500, 60), (3000, 900)])
def test_support_probabilities_are_right_however_small(n: int, subset_size: int) -> None:
    """Against inclusion and exclusion in integers."""
    held = np.random.default_rng(n).multinomial(n, [0.5, 0.3, 0.15, 0.04, 0.01])
    found = support.log_probabilities(held[None], subset_size)[0]
    total = math.comb(n, subset_size)
    for u in range(32):
        inside = [i for i in range(5) if u >> i & 1]
        ways = sum(
            (-1) ** (len(inside) - size) * math.comb(sum(int(held[i]) for i in chosen), subset_size)
            for size in range(len(inside) + 1)
            for chosen in itertools.combinations(inside, size)
        )
        expected = math.log(ways) - math.log(total) if ways else -np.inf
        assert found[u] == pytest.approx(expected, abs=3e-12)


def test_the_log_of_an_unlikely_zero_is_its_own_sum() -> None:
    """n' = n and a margin of 900 on one point: 1 − p is e^−900, far below what 1 − p in floats can hold."""
    prediction = evaluate(
        subset_mixture(Cube(points=2), occupancy([1] * 900, [1] * 900), subset_size=900, beta=1.0)
    ).predict(Cube(points=2), np.arange(2))
    assert prediction.log_p0.tolist() == [0.0, pytest.approx(-900.0, abs=1e-10)]
    assert prediction.log_p1.tolist() == [-np.inf, pytest.approx(0.0, abs=1e-300)]
