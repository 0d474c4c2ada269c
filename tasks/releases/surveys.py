"""What a first pass over a table finds of its columns: counts, means, limits, and centred products.

In go frames, out come additive states. Means are merged by their differences (Chan, Golub & LeVeque 1983), so that an
offset of 1e9 costs no digits; a constant column has its value as mean, exactly.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.frames import Frame
from predcube.tasks.moments import Moments, slices


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginals:
    """Of N rows of P columns: mean, low, high: (P,). binary: (P,) whether a column holds nothing but 0 and 1."""

    rows: int
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    binary: NDArray[np.bool_]

    @classmethod
    def of(cls, frame: Frame) -> Self:
        x = frame.inputs
        return reduce(cls.add, (cls._of(x[part]) for part in slices(*x.shape)))

    @classmethod
    def _of(cls, x: NDArray[np.float64]) -> Self:
        low, high = x.min(axis=0), x.max(axis=0)
        # The mean of differences from a value of the block keeps the digits that an offset would take.
        mean = x[0] + np.ones(len(x)) @ (x - x[0]) / len(x)
        binary = (low >= 0) & (high <= 1)
        for j in np.flatnonzero(binary):
            binary[j] = np.all((x[:, j] == 0) | (x[:, j] == 1))
        return cls(rows=len(x), mean=mean, low=low, high=high, binary=binary)

    def add(self, other: Self) -> Self:
        rows = self.rows + other.rows
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        mean = self.mean + (other.mean - self.mean) * (other.rows / rows)
        return type(self)(rows=rows, mean=mean, low=low, high=high, binary=self.binary & other.binary)

    @property
    def reach(self) -> NDArray[np.float64]:
        """(P,) the largest absolute value of each column."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Marginals of the columns, and their centred products."""

    marginals: Marginals
    moments: Moments

    @classmethod
    def of(cls, frame: Frame) -> Self:
        with np.errstate(over="ignore", invalid="ignore"):
            moments = Moments.of(np.empty((frame.rows, 0)), frame.inputs)
        return cls(marginals=Marginals.of(frame), moments=moments)

    def add(self, other: Self) -> Self:
        with np.errstate(over="ignore", invalid="ignore"):
            moments = self.moments.add(other.moments)
        return type(self)(marginals=self.marginals.add(other.marginals), moments=moments)

    @property
    def means(self) -> NDArray[np.float64]:
        """(P,) the means."""
        return self.moments.average

    @property
    def remainders(self) -> NDArray[np.float64]:
        """(P,) what the rounding of ``means`` left: at an offset of 1e9 as much as 6e-8."""
        return (self.moments.shift - self.means) + self.moments.plain

    @property
    def overflowing(self) -> NDArray[np.int64]:
        """The columns whose squares overflow."""
        return np.flatnonzero(~np.isfinite(np.diag(self.moments.gram)))

    @property
    def covariance(self) -> NDArray[np.float64]:
        """(P, P), dividing by N."""
        covariance: NDArray[np.float64] = self.moments.gram / self.marginals.rows
        return covariance

    @property
    def deviations(self) -> NDArray[np.float64]:
        """(P,) standard deviations, 0 where the values differ by no more than the rounding of their own size."""
        deviations = np.sqrt(np.diag(self.covariance))
        rounding = 16 * np.finfo(np.float64).eps * self.marginals.reach
        return np.where((self.marginals.low == self.marginals.high) | (deviations <= rounding), 0.0, deviations)
