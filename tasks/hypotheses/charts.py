"""Charts: a class on the points of one sample, for many subsets T of them at once.

A hypothesis that represents some labeling of some T among the points has a fixed *number*, so that sums over subsets
are kept in one array, whatever T they came from, and no list of labelings is made for each T.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from predcube.tasks.hypotheses.base import HypothesisClass, Points

LARGEST_CHART = 2**22
"""Numbers of a chart at most: 32 MB for each array of sums."""


class Chart(Protocol):
    """A class on sorted distinct points (k, …). The hypotheses of H_T are told by their numbers, 0 ≤ number < size.

    What every chart keeps: ``representatives(numbers of H_T)`` are the rows of ``hypotheses.representatives(T)``, in
    any order; a number's row is the same whatever T it was found for.
    """

    @property
    def size(self) -> int:
        """How many numbers there are."""
        ...

    def losses(self, counts: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """What each hypothesis gets wrong of ``counts`` (k, 2): (size,); +∞ at numbers that name none."""
        ...

    def representatives(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Rows of the class for some numbers: (M,) or (M, parameters)."""
        ...

    def add(
        self,
        sets: NDArray[np.int64],
        times: NDArray[np.float64],
        scale: NDArray[np.float64],
        sums: NDArray[np.float64],
        sizes: NDArray[np.int64],
        totals: NDArray[np.float64],
    ) -> None:
        """Adds times_T/Z_T, Z_T = Σ_{h ∈ H_T} scale_h, to ``sums`` (size,) at every h ∈ H_T.

        ``sets`` (L, t) are rows of increasing point indices, at least one, padded with −1 at the end; ``times`` (L,)
        how often each counts; ``sizes`` and ``totals`` (L,) receive |H_T| and Z_T.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdditiveChart:
    """Of an additive class on ``points``: number 0 is the null hypothesis, v + 1 the one at point v."""

    hypotheses: "HypothesisClass"
    points: "Points"

    @property
    def size(self) -> int:
        return len(self.points) + 1

    def losses(self, counts: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        rows = self.hypotheses.representatives(self.points)
        return _upwards(self.hypotheses.loss(rows, self.points, counts))

    def representatives(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        return _upwards(self.hypotheses.representatives(self.points))[numbers]

    def add(
        self,
        sets: NDArray[np.int64],
        times: NDArray[np.float64],
        scale: NDArray[np.float64],
        sums: NDArray[np.float64],
        sizes: NDArray[np.int64],
        totals: NDArray[np.float64],
    ) -> None:
        _add_points(sets, times, scale, sums, sizes, totals)


def _upwards(values: NDArray[Any]) -> NDArray[Any]:
    """An additive class lists null, then the points downwards."""
    return np.concatenate([values[:1], values[:0:-1]])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _add_points(
    sets: NDArray[np.int64],
    times: NDArray[np.float64],
    scale: NDArray[np.float64],
    sums: NDArray[np.float64],
    sizes: NDArray[np.int64],
    totals: NDArray[np.float64],
) -> None:
    for i in range(len(sets)):
        z, t = scale[0], 0
        for v in sets[i]:
            if v < 0:
                break
            z += scale[v + 1]
            t += 1
        sizes[i], totals[i] = t + 1, z
        share = times[i] / z
        sums[0] += share
        for j in range(t):
            sums[sets[i, j] + 1] += share


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntervalChart:
    """Of intervals on ``points`` (k,): number 0 is the empty one, ``first[i] + j`` the one from point i to point j."""

    points: NDArray[np.float64]
    first: NDArray[np.int64]

    @property
    def size(self) -> int:
        return 1 + len(self.points) * (len(self.points) + 1) // 2

    def losses(self, counts: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        cost = np.concatenate([[0.0], np.cumsum(counts[:, 0].astype(np.float64) - counts[:, 1])])
        low, high = self._ends(np.arange(1, self.size))
        inside = np.concatenate([[0.0], cost[high + 1] - cost[low]])
        return np.asarray(counts[:, 1].sum(dtype=np.float64) + inside)

    def representatives(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        rows = np.tile([np.inf, -np.inf], (len(numbers), 1))
        there = numbers > 0
        rows[there] = self.points[np.stack(self._ends(numbers[there]), axis=1)]
        return rows

    def _ends(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        starts = self.first + np.arange(len(self.points))
        low = np.searchsorted(starts, numbers, side="right") - 1
        return low, numbers - self.first[low]

    def add(
        self,
        sets: NDArray[np.int64],
        times: NDArray[np.float64],
        scale: NDArray[np.float64],
        sums: NDArray[np.float64],
        sizes: NDArray[np.int64],
        totals: NDArray[np.float64],
    ) -> None:
        _add_intervals(sets, times, self.first, scale, sums, sizes, totals)


def interval_chart(points: NDArray[Any]) -> IntervalChart:
    """The chart of sorted distinct points (k,)."""
    i = np.arange(len(points))
    return IntervalChart(points=points.astype(np.float64), first=1 + i * len(points) - i * (i + 1) // 2)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _add_intervals(
    sets: NDArray[np.int64],
    times: NDArray[np.float64],
    first: NDArray[np.int64],
    scale: NDArray[np.float64],
    sums: NDArray[np.float64],
    sizes: NDArray[np.int64],
    totals: NDArray[np.float64],
) -> None:
    for i in range(len(sets)):
        z, t = scale[0], 0
        for v in sets[i]:
            if v < 0:
                break
            t += 1
        for a in range(t):
            row = first[sets[i, a]]
            for b in range(a, t):
                z += scale[row + sets[i, b]]
        sizes[i], totals[i] = t * (t + 1) // 2 + 1, z
        share = times[i] / z
        sums[0] += share
        for a in range(t):
            row = first[sets[i, a]]
            for b in range(a, t):
                sums[row + sets[i, b]] += share
