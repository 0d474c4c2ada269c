"""Lipschitz queries of one column: in go variances and gains of queries 1{x > t}, out comes a bound for the worst f.

For f with |f'| ≤ L, the attacker's error about the mean of f is ∫f'(t)·a_t dt, a_t that about the mean of 1{x > t}. So
sup_f |∫f'a||∫f'(a − b)| ≤ L²·∫|a_t|dt·∫|a_t − b_t|dt, and with Cauchy–Schwarz under the expectation

    E sup_f gain(f) ≤ H·L²·K·∫√s1_t dt·∫√gain_t dt,

s1_t = F(1 − F) under the uniform law. Both are constant between neighbouring values of x, so the integrals are sums.
P2 Theorem 5.4 bounds f by the covariance of x alone, which is false unless f is affine: with x uniform on ±1, ±2,
release mean |x| and f = |x| it gives 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predcube.tasks.families import FamilyValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Queries 1{x > t} that stand for all Lipschitz functions of x.

    at: (M,) t, ascending. widths: (M,) the length of line for which each t stands. complete: whether no value of x lies
    between two of them, so that integrals over t are sums.
    """

    at: NDArray[np.float64]
    widths: NDArray[np.float64]
    complete: bool

    def queries(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """1{x > t}: (m,) values give (m, M)."""
        return (np.asarray(x)[:, None] > self.at).astype(np.float64)


def thresholds(x: ArrayLike, grid: ArrayLike | None = None) -> Thresholds:
    """The thresholds of a column's values: every distinct value but the largest, each standing for the line up to the
    next; or those of an ascending ``grid`` from the least value to the largest, for a column of many values.

    ValueError where a value is missing or infinite, or where the grid does not ascend from the least value to the
    largest.
    """
    values = np.unique(np.asarray(x, dtype=np.float64))
    if values.size == 0 or not np.all(np.isfinite(values)):
        raise ValueError("a Lipschitz family needs a column of finite values: drop rows that lack one")
    points = values if grid is None else np.asarray(grid, dtype=np.float64)
    if np.any(np.diff(points) <= 0) or points[0] > values[0] or points[-1] < values[-1]:
        raise ValueError(f"the grid must ascend and hold {values[0]:g} … {values[-1]:g}, the values of the column")
    complete = bool(np.all(np.isin(values, points)))
    return Thresholds(at=points[:-1], widths=np.diff(points), complete=complete)


def lipschitz_bound(
    family: Thresholds,
    s1: NDArray[np.float64],
    gain: NDArray[np.float64],
    *,
    constant: float,
    K: float,
    H: float = 2.0,
) -> FamilyValue:
    """H·L²·K·Σw√s1·Σw√gain, L = ``constant`` per unit of x, s1 and gain (M,) of the family's queries.

    A bound where the thresholds are ``complete``; on a coarser grid the integrals are approximate: an estimate without
    a standard error (NaN).
    """
    first = float(family.widths @ np.sqrt(np.maximum(s1, 0.0)))
    second = float(family.widths @ np.sqrt(np.maximum(gain, 0.0)))
    value = H * constant**2 * K * first * second
    if family.complete:
        return FamilyValue.known("bound", value)
    return FamilyValue(
        kind="estimate", value=value, standard_error=float("nan"), lower=float("nan"), upper=float("nan")
    )
