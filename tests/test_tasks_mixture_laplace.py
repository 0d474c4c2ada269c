"""The Laplace integral: its quadrature on 1/Z alone, its contour against the recursion, extremes, and large samples."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predcube.tasks.mixture import laplace, recursion


@pytest.mark.parametrize("width", [0.0, 1.0, 7.3, 60.0, 300.0])
def test_the_quadrature_rule_is_right_for_every_z(width: float) -> None:
    tau, log_step = laplace.nodes(2.0, 2.0 + width)
    for log_z in np.linspace(2.0, 2.0 + width, 501):
        assert np.exp(log_step + log_z - np.exp(tau + log_z)).sum() == pytest.approx(1.0, abs=1e-13 + 3e-16 * width)


def instance(seed: int, n: int, noise: float, ties: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Losses of [null, cuts from the last point down] and the counts in that order, by the definition."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random(n) if ties == 1 else rng.integers(0, n // ties, n).astype(float))
    y = (x >= np.median(x)) ^ (rng.random(n) < noise)
    points, held = np.unique(x, return_counts=True)
    zeros_from = [int(np.sum(~y[x >= p])) for p in points[::-1]]
    ones_before = [int(np.sum(y[x < p])) for p in points[::-1]]
    losses = np.array([y.sum(), *np.add(zeros_from, ones_before)], dtype=float)
    return losses, held[::-1].copy()


@pytest.mark.parametrize("ties", [1, 4, 25])
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("beta", [0.05, 0.5, 4.0])
@pytest.mark.parametrize(("n", "subset_size"), [(60, 9), (200, 20), (200, 150), (200, 199)])
def test_the_contour_keeps_every_weight_to_relative_precision(
    n: int, subset_size: int, beta: float, noise: float, ties: int
) -> None:
    losses, held = instance(n, n, noise, ties)
    found = laplace.log_weights(losses, held, subset_size=subset_size, beta=beta)
    expected = laplace.log_weights(losses, held, subset_size=subset_size, beta=beta, kernel="recursion")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    coarse = laplace.log_weights(losses, held, subset_size=subset_size, beta=beta, relative=False)
    np.testing.assert_allclose(np.exp(coarse), np.exp(expected), rtol=0, atol=1e-12)


@pytest.mark.parametrize("beta", [0.05, 0.5, 2.0])
def test_a_thousand_examples(beta: float) -> None:
    losses, held = instance(7, 1000, 0.1)
    found = laplace.log_weights(losses, held, subset_size=100, beta=beta, kernel="contour")
    expected = laplace.log_weights(losses, held, subset_size=100, beta=beta, kernel="recursion")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_losses_and_counts_however_far_apart(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 20))
    held = np.array(data.draw(st.lists(st.integers(0, data.draw(st.sampled_from([1, 2, 40]))), min_size=k, max_size=k)))
    n = int(held.sum())
    if n == 0:
        return
    losses = np.array(data.draw(st.lists(st.integers(0, n), min_size=k + 1, max_size=k + 1)), dtype=float)
    subset_size, beta = data.draw(st.integers(1, n)), data.draw(st.sampled_from([0.0, 0.1, 1.0, 20.0]))
    found = laplace.log_weights(losses, held, subset_size=subset_size, beta=beta)
    expected = laplace.log_weights(losses, held, subset_size=subset_size, beta=beta, kernel="recursion")
    assert (found[1:] == -np.inf).tolist() == (held == 0).tolist()
    np.testing.assert_allclose(found, expected, rtol=4e-16, atol=1e-12)


def test_the_recursion_gives_the_mean_over_subsets() -> None:
    scale, held, t = np.array([0.3, 2.0, 0.7]), np.array([2, 1, 3]), 0.9
    place = np.repeat(np.arange(3), held)
    from itertools import combinations

    sets = [set(place[list(c)].tolist()) for c in combinations(range(6), 3)]
    value = [math.exp(-t * (1 + sum(scale[v] for v in s))) for s in sets]
    logs, null = recursion.integrate(np.log(scale), held, 3, np.array([math.log(t)]), np.array([0.0]))
    assert null == pytest.approx(math.log(np.mean(value)), abs=1e-14)
    for v in range(3):
        assert logs[v] == pytest.approx(math.log(np.mean([e * (v in s) for e, s in zip(value, sets, strict=True)])))


def test_samples_far_apart_in_one_batch_are_as_right_as_alone() -> None:
    rng = np.random.default_rng(3)
    k, n = 12, 240
    held = np.concatenate([rng.multinomial(n, rng.dirichlet(np.full(k, a)), size=5) for a in (0.05, 1.0, 50.0)])
    losses = rng.integers(0, n, size=(15, k + 1)).astype(float)
    for beta in (0.02, 0.5, 5.0):
        found = laplace.batch_log_weights(losses, held, subset_size=24, beta=beta)
        for b in range(15):
            expected = laplace.log_weights(losses[b], held[b], subset_size=24, beta=beta, kernel="recursion")
            np.testing.assert_allclose(found[b], expected, rtol=4e-16, atol=1e-11)


def test_weights_that_do_not_sum_to_one_are_an_error_and_not_mended() -> None:
    with pytest.raises(ArithmeticError, match="sum to 1"):
        laplace.check_sum(np.log([0.5, 0.5 + 1e-9]), 1e-12, "n = 2")
    laplace.check_sum(np.log([0.5, 0.5]), 1e-12, "n = 2")


def test_log_binomial() -> None:
    assert laplace.log_binomial(1000, 100) == math.log(math.comb(1000, 100))
    assert laplace.log_binomial(10**6, 3 * 10**5) == pytest.approx(
        sum(math.log((10**6 - i) / (i + 1)) for i in range(3 * 10**5)), rel=1e-11
    )


@pytest.mark.parametrize("seed", range(6))
def test_few_points_that_hold_most_of_the_sample(seed: int) -> None:
    """Uneven counts and losses far apart: rare points that jump by many counts, factors that vanish on the circle."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        k, n = int(rng.integers(1, 10)), int(rng.choice([40, 120, 240]))
        held = rng.multinomial(n, rng.dirichlet(np.full(k, rng.choice([0.05, 0.3, 5.0]))))
        losses = rng.integers(0, n, size=k + 1).astype(float)
        subset_size, beta = int(rng.integers(9, n)), float(rng.choice([0.02, 0.3, 3.0]))
        found = laplace.log_weights(losses, held, subset_size=subset_size, beta=beta, kernel="contour")
        expected = laplace.log_weights(losses, held, subset_size=subset_size, beta=beta, kernel="recursion")
        np.testing.assert_allclose(found, expected, rtol=4e-16, atol=1e-12)


def test_a_saddle_in_a_step() -> None:
    """Where the mean count is a step in log ρ, Newton's method used to stop short of a consistent circle."""
    scale, held = np.array([273.0, 762.0, 408.0, 39.0, 90.0, 1176.0]), np.array([16, 83, 91, 149, 59, 2])
    losses = np.append(1200.0, 1200.0 - scale)
    found, expected = (
        laplace.log_weights(losses, held, subset_size=76, beta=1.0, kernel=kernel)
        for kernel in ("contour", "recursion")
    )
    np.testing.assert_allclose(found, expected, rtol=4e-16, atol=1e-12)


def test_one_odd_sample_among_many_alike() -> None:
    """The shared circle is the saddle of the average sample: the odd one must be told and done by itself."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        k, n = int(rng.integers(2, 10)), int(rng.choice([40, 120]))
        subset_size, beta = int(rng.integers(9, n)), float(rng.choice([0.02, 0.3, 3.0]))
        alike, odd = (rng.multinomial(n, rng.dirichlet(np.full(k, a))) for a in (0.3, 0.05))
        held = np.stack([alike] * 30 + [odd])
        losses = rng.integers(0, n, size=(2, k + 1)).astype(float)[[0] * 30 + [1]]
        found = laplace.batch_log_weights(losses, held, subset_size=subset_size, beta=beta)
        expected = laplace.log_weights(losses[30], held[30], subset_size=subset_size, beta=beta, kernel="recursion")
        np.testing.assert_allclose(found[30], expected, rtol=4e-16, atol=1e-11)
