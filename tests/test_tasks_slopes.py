"""Exponents of power laws: against the laws they were made of, SciPy's regression, and their own coverage."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from predcube.tasks.slopes import log_log_slopes


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0.01, 100))
def test_an_exact_law_gives_its_exponents_back(a: float, b: float, c: float) -> None:
    x, y = (m.ravel() for m in np.meshgrid([0.01, 0.02, 0.05, 0.1], [1.0, 3.0, 10.0]))
    found = log_log_slopes(c * x**a * y**b, {"x": x, "y": y})
    np.testing.assert_allclose(found.exponent, [a, b], atol=1e-9)
    assert (found.standard_error < 1e-7).all()
    assert (found.names, found.used, found.left_out, found.dropped) == (("x", "y"), 12, 0, ())


def test_one_predictor_agrees_with_scipy() -> None:
    rng = np.random.default_rng(1)
    x = np.geomspace(1, 100, 9)
    n = 5 * x**1.5 * np.exp(rng.normal(0, 0.2, 9))
    found, theirs = log_log_slopes(n, {"x": x}), stats.linregress(np.log(x), np.log(n))
    assert found.exponent[0] == pytest.approx(theirs.slope, rel=1e-12)
    assert found.standard_error[0] == pytest.approx(theirs.stderr, rel=1e-12)
    half = stats.t.ppf(0.975, 7) * theirs.stderr
    assert (found.lower[0], found.upper[0]) == pytest.approx((theirs.slope - half, theirs.slope + half))


def test_groups_have_constants_of_their_own() -> None:
    """As a regression with a dummy for each group."""
    rng = np.random.default_rng(2)
    x, z, group = rng.uniform(1, 9, 40), rng.uniform(1, 9, 40), rng.integers(3, size=40)
    n = np.array([1.0, 50.0, 2000.0])[group] * x**2 / z * np.exp(rng.normal(0, 0.1, 40))
    found = log_log_slopes(n, {"x": x, "z": z}, groups=group)
    design = np.column_stack([np.log(x), np.log(z), *(group == g for g in range(3))])
    b = np.linalg.lstsq(design, np.log(n), rcond=None)[0]
    rest = np.log(n) - design @ b
    error = np.sqrt(rest @ rest / 35 * np.diag(np.linalg.inv(design.T @ design)))
    np.testing.assert_allclose(found.exponent, b[:2], rtol=1e-10)
    np.testing.assert_allclose(found.standard_error, error[:2], rtol=1e-10)
    pooled = log_log_slopes(n, {"x": x, "z": z})
    assert pooled.residual > 10 * found.residual


def test_the_intervals_cover_at_their_level() -> None:
    rng, x, hits = np.random.default_rng(3), np.geomspace(1, 20, 6), 0
    for _ in range(600):
        found = log_log_slopes(x**1.3 * np.exp(rng.normal(0, 0.3, 6)), {"x": x})
        hits += found.lower[0] <= 1.3 <= found.upper[0]
    assert abs(hits / 600 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 600)


def test_what_was_not_reached_is_left_out_and_counted() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    found = log_log_slopes(np.where(x == 8, np.nan, x**3), {"x": x})
    assert (found.used, found.left_out) == (4, 1)
    assert found.exponent[0] == pytest.approx(3.0)


def test_predictors_that_say_nothing_are_dropped_and_named() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0])
    found = log_log_slopes(x**2, {"x": x, "same": 3 * x**2, "constant": np.full(4, 7.0)})
    assert (found.names, found.dropped) == (("x",), ("same", "constant"))
    none = log_log_slopes(np.full(3, np.nan), {"x": x[:3]})
    assert (none.names, none.used, none.left_out) == ((), 0, 3)
    two = log_log_slopes(x[:2] ** 2, {"x": x[:2]})  # a line through two points has no error to show
    assert two.exponent[0] == pytest.approx(2.0)
    assert math.isinf(two.upper[0])


def test_what_is_no_power_law_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        log_log_slopes([1.0, 2.0, 3.0], {"x": [0.0, 1.0, 2.0]})
    with pytest.raises(ValueError, match="positive"):
        log_log_slopes([-1.0, 2.0, 3.0], {"x": [3.0, 1.0, 2.0]})
    with pytest.raises(ValueError, match="as many"):
        log_log_slopes([1.0, 2.0, 3.0], {"x": [1.0, 2.0]})
