"""Intervals: against SciPy's own, their coverage over many seeds, and every case without a number."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import isotonic_regression

from predcube.tasks.intervals import (
    MISSING,
    NOT_REACHED,
    REACHED,
    REACHED_AT_FIRST,
    clopper_pearson,
    smallest_reached,
    student_t,
)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_clopper_pearson_against_scipy(level: float) -> None:
    for trials in (1, 7, 64):
        successes = np.arange(trials + 1)
        lower, upper = clopper_pearson(successes, trials, level=level)
        for s in successes.tolist():
            expected = stats.binomtest(s, trials).proportion_ci(level, method="exact")
            assert lower[s] == pytest.approx(expected.low, abs=1e-12)
            assert upper[s] == pytest.approx(expected.high, abs=1e-12)
        assert lower[0] == 0.0
        assert upper[-1] == 1.0


def test_clopper_pearson_without_trials_and_in_any_shape() -> None:
    lower, upper = clopper_pearson([[0, 3], [0, 0]], [[0, 9], [5, 0]])
    assert lower.shape == upper.shape == (2, 2)
    assert (lower[0, 0], upper[0, 0]) == (0.0, 1.0)
    for bad in (-1, 4):
        with pytest.raises(ValueError, match="between 0 and trials"):
            clopper_pearson(bad, 3)
    with pytest.raises(ValueError, match="level"):
        clopper_pearson(1, 3, level=1.0)


@pytest.mark.parametrize("p", [0.02, 0.5, 0.9, 0.97])
@pytest.mark.parametrize("trials", [5, 32, 200])
def test_clopper_pearson_covers_exactly(p: float, trials: int) -> None:
    """The coverage is a finite sum: each side misses with probability at most 2.5%."""
    lower, upper = clopper_pearson(np.arange(trials + 1), trials)
    weights = stats.binom.pmf(np.arange(trials + 1), trials, p)
    assert weights[lower > p].sum() <= 0.025
    assert weights[upper < p].sum() <= 0.025


def test_student_t_against_scipy_and_its_coverage() -> None:
    rng = np.random.default_rng(11)
    x = rng.normal(3.0, 2.0, size=(8000, 6))
    mean, error = x.mean(axis=1), x.std(axis=1, ddof=1) / math.sqrt(6)
    lower, upper = student_t(mean, error, 6)
    expected = stats.ttest_1samp(x[0], 0.0).confidence_interval(0.95)
    assert (lower[0], upper[0]) == pytest.approx((expected.low, expected.high), rel=1e-12)
    covered = int(((lower <= 3.0) & (upper >= 3.0)).sum())
    assert stats.binomtest(covered, 8000, 0.95).pvalue > 1e-4


def test_student_t_where_there_is_no_spread_to_use() -> None:
    nan, inf = math.nan, math.inf
    lower, upper = student_t([nan, 2.0, 2.0, inf, inf, 2.0], [nan, nan, 0.0, nan, nan, 0.5], [0, 1, 7, 1, 7, 2])
    np.testing.assert_array_equal(lower[:5], [nan, -inf, 2.0, inf, inf])
    np.testing.assert_array_equal(upper[:5], [nan, inf, 2.0, inf, inf])
    half = 0.5 * math.tan(math.pi * 0.475)  # t with one degree of freedom is Cauchy
    assert (lower[5], upper[5]) == pytest.approx((2 - half, 2 + half), rel=1e-12)


@pytest.mark.parametrize(
    ("mean", "error", "count"), [(math.nan, 1.0, 2), (1.0, 1.0, -1), (1.0, -1.0, 2), (1.0, math.nan, 2)]
)
def test_student_t_refuses_what_no_trials_give(mean: float, error: float, count: int) -> None:
    with pytest.raises(ValueError, match=r"NaN, or a count|must be a number"):
        student_t(mean, error, count)


counts = st.lists(
    st.integers(1, 12).flatmap(lambda t: st.tuples(st.integers(0, t), st.just(t))), min_size=1, max_size=7
)


@given(counts, st.sampled_from(["0.5", "0.55", "0.7", "0.9", "0.95"]))
def test_smallest_is_that_of_the_isotonic_fit(rows: list[tuple[int, int]], confidence: str) -> None:
    s, t = np.array(rows).T
    ns = np.arange(len(rows)) * 10 + 10
    fit = isotonic_regression(s / t, weights=t).x
    # The same fit in exact arithmetic, by the max–min formula, tells a tie from a rounding error.
    exact = [
        max(
            min(Fraction(int(s[a : b + 1].sum()), int(t[a : b + 1].sum())) for b in range(i, len(s)))
            for a in range(i + 1)
        )
        for i in range(len(s))
    ]
    np.testing.assert_allclose(fit, [float(e) for e in exact], atol=1e-12)
    reached = [n for n, e in zip(ns.tolist(), exact, strict=True) if e >= Fraction(confidence)]
    found = smallest_reached(ns, s, t, float(confidence))
    if reached:
        assert found.n == reached[0]
        assert found.status == (REACHED_AT_FIRST if reached[0] == 10 else REACHED)
    else:
        assert np.isnan(found.n)
        assert found.status == NOT_REACHED
    ends = [v if not np.isnan(v) else math.inf for v in (float(found.lower), float(found.n), float(found.upper))]
    assert ends == sorted(ends)


def test_smallest_in_words() -> None:
    ns = [10, 20, 40, 80]
    found = smallest_reached(
        ns,
        [[0, 0, 0, 200], [9, 8, 8, 8], [0, 0, 0, 0], [200, 200, 200, 200], [0, 0, 0, 0], [0, 176, 200, 200]],
        [[200] * 4, [10] * 4, [200] * 4, [200] * 4, [0] * 4, [200] * 4],
        0.9,
    )
    np.testing.assert_array_equal(found.n, [80, np.nan, np.nan, 10, np.nan, 40])
    assert found.status.tolist() == [REACHED, NOT_REACHED, NOT_REACHED, REACHED_AT_FIRST, MISSING, REACHED]
    np.testing.assert_array_equal(found.lower, [80, 10, np.nan, 10, np.nan, 20])
    assert found.lower_status.tolist() == [1, 3, 2, 3, 0, 1]
    np.testing.assert_array_equal(found.upper, [80, np.nan, np.nan, 10, np.nan, 40])
    assert found.upper_status.tolist() == [1, 2, 2, 3, 0, 1]
    assert found.status.dtype == np.uint8


def test_smallest_skips_an_n_without_trials() -> None:
    found = smallest_reached([10, 20, 40], [0, 0, 50], [50, 0, 50], 0.9)
    assert [float(v) for v in (found.n, found.lower, found.upper)] == [
        40,
        20,
        40,
    ]  # the interval may end where nothing is known


def test_one_lucky_small_n_ends_nothing() -> None:
    found = smallest_reached([10, 20, 40, 80], [200, 100, 200, 200], 200, 0.9)
    assert [float(v) for v in (found.lower, found.n, found.upper)] == [10, 40, 40]


def test_equality_with_the_confidence_is_reaching_it() -> None:
    """55 of 100 are 0.55, although 0.55 · 100 is more than 55 in floats."""
    for percent in range(1, 100):
        found = smallest_reached([7, 9], [0, percent], [100, 100], float(f"0.{percent:02d}"))
        assert found.n == 9


def test_the_upper_end_covers_where_many_small_n_almost_reach() -> None:
    """Taking the first n whose lower limit suffices misses here in about six cases of a hundred."""
    rng = np.random.default_rng(4)
    p, repeats = np.array([0.89] * 12 + [0.999]), 20_000
    found = smallest_reached(np.arange(13) + 1, rng.binomial(64, p, size=(repeats, 13)), 64, 0.9)
    missed = int((found.upper < 13).sum())
    assert stats.binomtest(missed, repeats, 0.025, alternative="greater").pvalue > 1e-4


@pytest.mark.parametrize("offset", [0.0, -0.3, 0.4])
def test_interval_of_the_smallest_n_covers(offset: float) -> None:
    """Over many seeds neither end misses n* more often than 2.5%, whether or not the grid reaches it closely."""
    rng = np.random.default_rng(3)
    ns = np.array([10, 14, 20, 28, 40, 57, 80, 113, 160, 226, 320])
    p = 1 / (1 + np.exp(-(np.log(ns / 60) * 2 + 2.2 + offset)))
    truth = ns[np.argmax(p >= 0.9)]
    repeats = 20_000
    found = smallest_reached(ns, rng.binomial(64, p, size=(repeats, len(ns))), 64, 0.9)
    lower = np.where(found.lower_status == NOT_REACHED, np.inf, found.lower)
    upper = np.where(found.upper_status == NOT_REACHED, np.inf, found.upper)
    for missed in (lower > truth, upper < truth):
        assert stats.binomtest(int(missed.sum()), repeats, 0.025, alternative="greater").pvalue > 1e-4
    assert (found.n == truth).mean() > 0.3


@pytest.mark.parametrize(
    ("ns", "successes", "confidence", "message"),
    [
        ([], [], 0.9, "increasing and not empty"),
        ([20, 10], [1, 1], 0.9, "increasing"),
        ([10, 10], [1, 1], 0.9, "increasing"),
        ([10, 20], [1, 1, 1], 0.9, "3 columns and ns has 2"),
        ([10, 20], [1, 1], 1.0, "confidence = 1.0"),
        ([10, 20], [1, 5], 0.9, "between 0 and trials"),
    ],
)
def test_smallest_refuses(ns: list[int], successes: list[int], confidence: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        smallest_reached(ns, successes, np.full(len(successes), 2), confidence)
