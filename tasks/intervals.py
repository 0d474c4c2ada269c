"""Intervals: in go counts, means and standard errors, out come confidence intervals and the smallest n of a grid.

Everything is vectorised. Nothing here hides a missing answer in a number: what was not reached says so by a status.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

LEVEL = 0.95
"""Nominal coverage of every interval unless asked otherwise."""

MISSING, REACHED, NOT_REACHED, REACHED_AT_FIRST = 0, 1, 2, 3
"""Meanings of a smallest n's status: no trials anywhere; a value of the grid; beyond the grid; the grid's first value
or anything below it."""


def clopper_pearson(
    successes: ArrayLike, trials: ArrayLike, *, level: float = LEVEL
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Limits of a success probability, in the arguments' common shape; [0, 1] without trials.

    Each limit misses with probability at most (1 − level)/2, whatever the true probability. ValueError unless
    0 ≤ successes ≤ trials.
    """
    _check_level(level)
    s, t = np.broadcast_arrays(np.asarray(successes), np.asarray(trials))
    if np.any((s < 0) | (s > t)):
        raise ValueError("successes must lie between 0 and trials")
    tail = (1.0 - level) / 2
    # The clipped arguments keep the quantile function on its domain where the limit is 0 or 1 by definition.
    lower = np.where(s > 0, stats.beta.ppf(tail, np.maximum(s, 1), t - np.minimum(s, t) + 1), 0.0)
    upper = np.where(s < t, stats.beta.isf(tail, s + 1, np.maximum(t - s, 1)), 1.0)
    return lower, upper


def student_t(
    mean: ArrayLike, standard_error: ArrayLike, count: ArrayLike, *, level: float = LEVEL
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Limits of a mean of ``count`` trials, mean ± t·se, in the arguments' common shape.

    * No trial: (NaN, NaN). One finite trial: (−∞, +∞), since its spread is unknown.
    * An infinite mean: some trial was infinite, so the true mean is: (mean, mean), whatever the standard error.
    * Zero spread over two or more trials: (mean, mean).

    ValueError on a negative count or standard error, and on a NaN mean of trials that exist.
    """
    _check_level(level)
    m, se, c = np.broadcast_arrays(
        np.asarray(mean, dtype=np.float64), np.asarray(standard_error, dtype=np.float64), np.asarray(count)
    )
    finite = np.isfinite(m)
    several = finite & (c >= 2)
    if np.any(c < 0) or np.any(np.isnan(m) & (c > 0)):
        raise ValueError("a mean of trials is NaN, or a count is negative; leave trials that failed out")
    if np.any(several & ~(se >= 0)):
        raise ValueError("the standard error of two or more finite trials must be a number ≥ 0")
    quantile = stats.t.isf((1.0 - level) / 2, np.maximum(c - 1, 1))
    half = np.where(several, quantile * np.where(several, se, 0.0), np.where(finite, np.inf, 0.0))
    nothing = c == 0
    centre = np.where(nothing, np.nan, m)
    return centre - half, centre + half


@dataclass(frozen=True, slots=True, kw_only=True)
class Smallest:
    """The smallest n that meets a target, with an interval. Arrays have the cells' shape; each value is NaN unless
    its status (``MISSING`` to ``REACHED_AT_FIRST``, u1) says it was reached."""

    n: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    status: NDArray[np.uint8]
    lower_status: NDArray[np.uint8]
    upper_status: NDArray[np.uint8]


def smallest_reached(
    ns: ArrayLike, successes: ArrayLike, trials: ArrayLike, confidence: float, *, level: float = LEVEL
) -> Smallest:
    """The smallest n of the grid ``ns`` at which a trial succeeds with probability at least ``confidence``.

    ``successes`` and ``trials`` have shape (…, len(ns)). The success probability p is taken not to fall with n;
    n* is the first n of the grid with p(n) ≥ confidence.

    * ``n``: the first n, of those with trials, at which the non-decreasing least-squares fit of the observed rates
      (pool adjacent violators, weighted by trials) reaches ``confidence``. So one lucky small n is not taken when
      larger ones fall short. Counts are compared as ratios of integers, so 9 of 10 reach 0.9.
    * ``lower``: the first n whose upper Clopper–Pearson limit reaches ``confidence``. It exceeds n* only if the limit
      at n* itself misses.
    * ``upper``: from the largest n downwards, the last n before a lower limit falls short. It is below n* only if the
      limit at n*'s predecessor misses. Taking the first n whose lower limit suffices would give every smaller n a
      chance to miss.

    So each end misses with probability at most (1 − level)/2 and lower ≤ n ≤ upper. An end at the grid's first n
    reads "there or below". ValueError unless ``ns`` increases and 0 < confidence < 1.
    """
    grid = np.asarray(ns, dtype=np.float64)
    s, t = np.broadcast_arrays(np.asarray(successes, dtype=np.int64), np.asarray(trials, dtype=np.int64))
    if grid.ndim != 1 or len(grid) == 0 or np.any(np.diff(grid) <= 0):
        raise ValueError("ns must be increasing and not empty; sort it and drop duplicates")
    if s.shape[-1] != len(grid):
        raise ValueError(f"counts have {s.shape[-1]} columns and ns has {len(grid)} values; give one for each")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence = {confidence} must lie strictly between 0 and 1")
    low, high = clopper_pearson(s, t, level=level)
    measured = t.sum(axis=-1) > 0
    surely = np.logical_and.accumulate((low >= confidence)[..., ::-1], axis=-1)[..., ::-1]
    n, status = _first(grid, _fit_reaches(s, t, confidence) & (t > 0), measured)
    lower, lower_status = _first(grid, high >= confidence, measured)
    upper, upper_status = _first(grid, surely, measured)
    return Smallest(n=n, lower=lower, upper=upper, status=status, lower_status=lower_status, upper_status=upper_status)


def _fit_reaches(s: NDArray[np.int64], t: NDArray[np.int64], level: float) -> NDArray[np.bool_]:
    """Where the non-decreasing fit is ≥ ``level``: shape (…, L).

    By the max–min formula the fit at i is max over a ≤ i of min over b ≥ i of the pooled rate of a…b: it reaches the
    level iff from some a ≤ i every window a…b, b ≥ i, does. A window without trials has nothing against it.
    """
    length = s.shape[-1]
    reaches = np.zeros(s.shape, dtype=np.bool_)
    for a in range(length):
        pooled_s, pooled_t = np.cumsum(s[..., a:], axis=-1), np.cumsum(t[..., a:], axis=-1)
        # Division rounds correctly, so a ratio equal to the level's decimal gives the level's own double.
        enough = (pooled_t == 0) | (pooled_s / np.maximum(pooled_t, 1) >= level)
        reaches[..., a:] |= np.logical_and.accumulate(enough[..., ::-1], axis=-1)[..., ::-1]
    return reaches


def _first(
    grid: NDArray[np.float64], holds: NDArray[np.bool_], measured: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """The first n that holds in each row, and its status."""
    somewhere = holds.any(axis=-1)
    place = holds.argmax(axis=-1)  # 0 where none holds: the status, not the place, says so
    found = measured & somewhere
    values: NDArray[Any] = np.where(found, grid[place], np.nan)
    status = np.where(found, np.where(place == 0, REACHED_AT_FIRST, REACHED), NOT_REACHED)
    return values, np.where(measured, status, MISSING).astype(np.uint8)


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level = {level} must lie strictly between 0 and 1")
