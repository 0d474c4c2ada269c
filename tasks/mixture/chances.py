"""Pr[T = U] for every set U of occupied points: in go the examples at k points, out come 2^k probabilities.

T is the set of points of n' examples drawn uniformly without replacement, so with c_v examples at point v

    Pr[T = U] = [z^{n'}] Π_{v∈U} ((1 + z)^{c_v} − 1) / C(n, n').

The points are dealt into two halves; within each, the polynomials of all sets grow one point at a time, and the
coefficient for U = A ∪ B is Σ_j a_j·b_{n'−j}. Every term is positive: inclusion and exclusion would cancel. z is scaled
by a power of two, which rounds nothing, so that coefficients fit a float; where no scale does they are logs.

Always true: relative precision of every probability; a sample's depend on its own counts alone. Cost 2^k·n'.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numba
import numpy as np
from numpy.typing import NDArray

FITS = 680.0
"""e^± this fits a float with room for sums and quotients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How coefficients are carried: as they are times ``r``^i, their total being ``total`` = C(n, n')·r^n'; or, where
    ``logs``, as logarithms (r = 1, ``total`` a logarithm too)."""

    logs: bool
    r: float
    total: float


@lru_cache(maxsize=1024)
def scale_of(n: int, subset_size: int) -> Scale:
    """By n and n' alone: the largest r = 2^{−m} for which (1 + r)^n fits a float, as long as r^{n'} does."""
    subsets, m = math.comb(n, subset_size), 0
    while n * math.log1p(2.0**-m) > FITS:
        m += 1
    if m * subset_size * math.log(2.0) > FITS:
        return Scale(logs=True, r=1.0, total=math.log(subsets))
    return Scale(logs=False, r=2.0**-m, total=subsets / 2 ** (m * subset_size))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _products(held: NDArray[np.int64], size: int, r: float) -> NDArray[np.float64]:
    """Coefficients up to z^size of Π_{v∈U} ((1 + rz)^{c_v} − 1) for all sets U of some points: (2^points, size + 1)."""
    found = np.zeros((1 << len(held), size + 1))
    found[0, 0] = 1.0
    factor = np.empty(size + 1)
    reached = 0
    for v in range(len(held)):
        top = min(held[v], size)
        value = 1.0
        for i in range(1, top + 1):
            value = value * (held[v] - i + 1) / i * r  # a whole number times r^i, exact up to 2^53
            factor[i] = value
        for u in range(1 << v):
            own, grown = found[u], found[(1 << v) + u]
            for i in range(1, top + 1):
                for j in range(min(reached, size - i) + 1):
                    grown[i + j] += own[j] * factor[i]
        reached = min(reached + top, size)
    return found


@numba.njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def fill(held: NDArray[np.int64], size: int, r: float, total: float, chance: NDArray[np.float64]) -> None:
    """Pr[T = U] of every U into ``chance`` (2^k,): bit i of U says that point i is in it."""
    low = len(held) // 2
    left, right = _products(held[:low], size, r).T.copy(), _products(held[low:], size, r)
    for b in range(len(right)):
        into = chance[b << low : (b + 1) << low]
        into[:] = 0.0
        for j in range(size + 1):
            by = right[b, size - j]
            if by > 0.0:
                for a in range(len(into)):
                    into[a] += by * left[j, a]
        for a in range(len(into)):
            into[a] /= total


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def log_add(x: float, y: float) -> float:
    """log(e^x + e^y); −inf of two −inf."""
    most = max(x, y)
    return most if most == -np.inf else most + math.log1p(math.exp(min(x, y) - most))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _log_fill(factors: NDArray[np.float64], held: NDArray[np.int64], size: int, chance: NDArray[np.float64]) -> None:
    """As ``fill`` without the total, in logs: ``factors`` (k, size + 1) are the log-coefficients of (1 + z)^{c_v}."""
    k, low = len(held), len(held) // 2
    halves = np.full((2, 1 << (k - low), size + 1), -np.inf)
    for side in range(2):
        first, last = (0, low) if side == 0 else (low, k)
        found = halves[side]
        found[0, 0] = 0.0
        reached = 0
        for v in range(first, last):
            top, bit = min(held[v], size), 1 << (v - first)
            for u in range(bit):
                for i in range(1, top + 1):
                    for j in range(min(reached, size - i) + 1):
                        if found[u, j] > -np.inf:
                            found[bit + u, i + j] = log_add(found[bit + u, i + j], found[u, j] + factors[v, i])
            reached = min(reached + top, size)
    for u in range(1 << k):
        a, b = halves[0, u & ((1 << low) - 1)], halves[1, u >> low]
        most, total = -np.inf, 0.0
        for j in range(size + 1):
            most = max(most, a[j] + b[size - j])
        if most > -np.inf:
            for j in range(size + 1):
                total += math.exp(a[j] + b[size - j] - most)
            most += math.log(total)
        chance[u] = most


def log_chances(held: NDArray[np.int64], subset_size: int) -> NDArray[np.float64]:
    """log Pr[T = U] of every U, (2^k,), for one sample with ``held`` (k,) examples at its points."""
    n = int(held.sum())
    scale = scale_of(n, subset_size)
    chance = np.empty(2 ** len(held))
    if not scale.logs:
        fill(held, subset_size, scale.r, scale.total, chance)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(chance))
    factorial, i = _log_factorials(n), np.arange(subset_size + 1)
    left = held[:, None] - i
    factors = np.where(left >= 0, factorial[held][:, None] - factorial[i] - factorial[np.maximum(left, 0)], -np.inf)
    _log_fill(factors.astype(np.float64), held, subset_size, chance)
    return chance - scale.total


@lru_cache(maxsize=4)
def _log_factorials(n: int) -> NDArray[np.longdouble]:
    """log i! for i = 0 … n, in extended precision where the platform has it: differences of large logs follow."""
    found = np.zeros(n + 1, dtype=np.longdouble)
    np.cumsum(np.log(np.arange(1, n + 1, dtype=np.longdouble)), out=found[1:])
    return found
