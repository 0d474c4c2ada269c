"""How often one point stands in a sample, and with which labels: in go n and the point's probabilities, out come laws.

Always true: every law is an array of probabilities over consecutive integers, of total 1 to 1e-12; what lies outside
it has probability below ``TAIL`` (Binomial laws: below 1e-300, so that sums over them keep relative precision).
"""

import math
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.fft import fft, next_fast_len
from scipy.special import expit

TAIL = 1e-22
"""Probability that a window of a law leaves out, about."""
DEVIATIONS = 10.5
"""Standard deviations on either side of the mean that hold all but ``TAIL`` of a sum of independent terms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """Pr[start + i] = ``p[i]``."""

    start: int
    p: NDArray[np.float64]

    @property
    def values(self) -> NDArray[np.int64]:
        return np.arange(self.start, self.start + len(self.p))

    def mean(self, f: NDArray[np.float64]) -> float:
        """Σ p·f, ``f`` (len(p),)."""
        return float(self.p @ f)


def binomial(n: int, p: float, least: float = 1e-300) -> Law:
    """Binomial(n, p) where it is at least ``least`` times its largest value.

    From the mode outwards by the ratio of neighbours and scaled to 1, which keeps 1e-12 where log-gammas of 10^6 lose
    1e-10.
    """
    start, weights = _binomial(n, p, least)
    return Law(start=start, p=weights / math.fsum(weights))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _binomial(n: int, p: float, least: float) -> tuple[int, NDArray[np.float64]]:
    if p <= 0.0:
        return 0, np.ones(1)
    if p >= 1.0:
        return n, np.ones(1)
    mode = min(int((n + 1) * p), n)
    odds = p / (1.0 - p)
    low, weight = mode, 1.0
    while low > 0 and weight >= least:
        weight *= low / ((n - low + 1) * odds)
        low -= 1
    high, weight = mode, 1.0
    while high < n and weight >= least:
        weight *= (n - high) * odds / (high + 1)
        high += 1
    found = np.empty(high - low + 1)
    found[mode - low] = 1.0
    for c in range(mode, low, -1):
        found[c - 1 - low] = found[c - low] * c / ((n - c + 1) * odds)
    for c in range(mode, high):
        found[c + 1 - low] = found[c - low] * (n - c) * odds / (c + 1)
    return low, found


def margin(n: int, weight: float, noise: float) -> Law:
    """The law of s = (records of a point with its label) − (those with the other), among n of which each falls on the
    point with probability ``weight`` and then carries the other label with probability ``noise``.

    Without noise s is Binomial. With it, (1 − w + w((1−η)e^{it} + ηe^{−it}))^n is transformed back to a window of s,
    exact but for rounding: absolute 1e-15.
    """
    if noise == 0.0:
        return binomial(n, weight)
    drift = weight * (1.0 - 2.0 * noise)
    low, high = _window(n * drift, n * (weight - drift * drift), -n, n)
    length = next_fast_len(high - low + 1)
    t = 2.0 * np.pi * np.arange(length) / length
    # 1 + x + iy: its logarithm without 1 + …, which would lose what n multiplies.
    x, y = -2.0 * weight * np.sin(t / 2) ** 2, drift * np.sin(t)
    with np.errstate(divide="ignore"):
        size = n / 2 * np.log1p(np.maximum(2 * x + x * x + y * y, -1.0))
    turned = np.exp(size + 1j * (n * np.arctan2(y, 1.0 + x) - t * low))
    p = np.maximum(fft(turned).real / length, 0.0)[: high - low + 1]
    return Law(start=low, p=p / math.fsum(p))


def _window(mean: float, variance: float, least: int, most: int) -> tuple[int, int]:
    """Both ends of the integers that hold all but ``TAIL`` of a sum of many terms in [−1, 1]. The constant is for
    small variances, whose tails are Poisson's (Bernstein's inequality)."""
    half = DEVIATIONS * math.sqrt(max(variance, 0.0)) + 40.0
    return max(least, math.floor(mean - half)), min(most, math.ceil(mean + half))


def window(law: Law, least: float = TAIL) -> Law:
    """The law where it is at least ``least``: one run of integers, since Binomial laws have one mode."""
    held = np.flatnonzero(law.p >= least)
    return Law(start=law.start + int(held[0]), p=law.p[held[0] : held[-1] + 1])


def wrong_choice(counts: NDArray[np.int64], noise: float, beta: float) -> NDArray[np.float64]:
    """E[σ(−β s)] given that c records stand at the point, s = c − 2·Binomial(c, ``noise``), for each of ``counts``:
    how often a two-point exponential mechanism with weight e^{−β} a mistake chooses the wrong label."""
    if noise == 0.0:
        return np.asarray(expit(-beta * counts))
    return np.asarray(_wrong_choice(counts, noise, beta, TAIL))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _wrong_choice(counts: NDArray[np.int64], noise: float, beta: float, least: float) -> NDArray[np.float64]:
    found = np.empty(len(counts))
    for i in range(len(counts)):
        start, weights = _binomial(counts[i], noise, least)
        total, mass = 0.0, 0.0
        for j in range(len(weights)):
            mass += weights[j]
            total += weights[j] / (1.0 + math.exp(min(beta * (counts[i] - 2.0 * (start + j)), 700.0)))
        found[i] = total / mass
    return found
