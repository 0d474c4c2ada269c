"""Unions of at most ``count`` closed intervals on the line, or on {0, …, points − 1}.

A union is its runs (lo, hi) from left to right; a run that is not there is (+∞, −∞), which no point lies in.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points, Representatives
from predcube.tasks.hypotheses.charts import LARGEST_CHART, IntervalChart, interval_chart
from predcube.tasks.hypotheses.points import LARGEST_GRID, distinct, finite_points, named_numbers, real_points
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalUnions(HypothesisClass):
    """H = the unions of at most ``count`` closed intervals, the empty one included, of VC dimension 2·count.

    X is the line, or {0, …, points − 1} when ``points`` is given (VC dimension at most ``points``). A representative is
    a row (lo_1, hi_1, …, lo_count, hi_count); for a labeling of T its runs are the maximal runs of points labelled 1,
    tight. A concept is named by its bounds [lo_1, hi_1, lo_2, hi_2, …], or "empty".
    """

    count: Annotated[int, Ge(1)]
    points: Annotated[int, Ge(1), Le(LARGEST_GRID)] | None = None

    kind: ClassVar[str] = "interval_unions"
    source: ClassVar[str] = "Shalev-Shwartz & Ben-David 2014, chapter 6 (unions of intervals)"
    cellwise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(self)

    @property
    def vc_dimension(self) -> int:
        return 2 * self.count if self.points is None else min(2 * self.count, self.points)

    @property
    def domain(self) -> Points | None:
        return None if self.points is None else np.arange(self.points)

    def labelings(self, points: Points) -> Labels:
        """The Σ_{j ≤ count} C(m + 1, 2j) labelings of m distinct points."""
        values, place = distinct(self._checked(points))
        return labels_of_runs(self._runs(len(values)), len(values))[:, place]

    def representatives(self, points: Points) -> Representatives:
        values, _ = distinct(self._checked(points))
        return bounds_of_runs(self._runs(len(values)), values)

    def predict(self, representatives: Representatives, points: Points) -> Labels:
        return inside(np.asarray(representatives, dtype=np.float64), self._checked(points))

    def members(self) -> Representatives:
        if self.points is None:
            raise ValueError("unions of intervals on the line are infinitely many; give points for a finite X")
        return self.representatives(np.arange(self.points))

    def named(self, value: Any) -> Representatives:
        """Bounds [lo_1, hi_1, lo_2, hi_2, …] in increasing order, or "empty"."""
        found = np.tile([np.inf, -np.inf], self.count)[None, :]
        if value != "empty":
            bounds = named_bounds(value, self.count)
            found[0, : len(bounds)] = bounds
        return found

    def growth(self, m: int) -> int | None:
        m = m if self.points is None else min(m, self.points)
        return sum(comb(m + 1, 2 * j) for j in range(min(self.count, (m + 1) // 2) + 1))

    def loss(
        self, representatives: Representatives, points: Points, mass: NDArray[np.float64] | NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return loss_of_runs(np.asarray(representatives, dtype=np.float64), self._checked(points), mass)

    def best(self, points: Points, mass: NDArray[np.float64] | NDArray[np.int64]) -> Representatives:
        return best_runs(self._checked(points), mass, self.count)

    def disagreement(self, representatives: Representatives, concept: Representatives) -> NDArray[np.float64]:
        """As the base class: the length of the part of [0, 1] that lies in one of the two unions."""
        if self.points is not None:
            raise ValueError(f"intervals on {self.points} points have no uniform law on [0, 1]; leave points out")
        return disagreement_of_runs(np.asarray(representatives, dtype=np.float64), np.asarray(concept)[0])

    def charted(self, k: int, t: int) -> bool:
        return self.count == 1 and k * (k + 1) // 2 < LARGEST_CHART

    def chart(self, points: Points, t: int) -> IntervalChart | None:
        return interval_chart(self._checked(points)) if self.charted(len(points), t) else None

    def listing(self, k: int, t: int) -> float:
        if self.charted(k, t):
            return 10.0 + 2.0 * t * t
        return HypothesisClass.listing(self, k, t)

    def _checked(self, points: Points) -> Points:
        return real_points(points) if self.points is None else finite_points(points, self.points)

    def _runs(self, m: int) -> NDArray[np.int64]:
        self.check_listable(m)
        return runs(m, self.count)


def runs(m: int, count: int) -> NDArray[np.int64]:
    """Every set of at most ``count`` separate runs of m points in the canonical order of their labelings: rows
    (start_1, stop_1, …), point i labelled 1 where start ≤ i < stop for some run; runs that are not there are (m, m)."""
    found = []
    for j in range(min(count, (m + 1) // 2) + 1):
        ends = np.full((comb(m + 1, 2 * j), 2 * count), m, dtype=np.int64)
        ends[:, : 2 * j] = np.array(list(combinations(range(m + 1), 2 * j)), dtype=np.int64).reshape(len(ends), 2 * j)
        found.append(ends)
    ends = np.concatenate(found)
    # A later start is a longer row of zeros, a later stop a longer row of ones.
    keys = np.where(np.arange(2 * count) % 2 == 0, -ends, ends)
    return ends[np.lexsort(keys.T[::-1])]


def labels_of_runs(ends: NDArray[np.int64], m: int) -> Labels:
    labels = np.zeros((len(ends), m), dtype=np.uint8)
    at = np.arange(m)
    for j in range(0, ends.shape[1], 2):
        labels |= (ends[:, j, None] <= at) & (at < ends[:, j + 1, None])
    return labels


def bounds_of_runs(ends: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.float64]:
    """Runs of the sorted ``values`` as tight closed intervals: (M, 2·count)."""
    bounds = np.empty(ends.shape)
    bounds[:, ::2] = np.append(values.astype(np.float64), np.inf)[ends[:, ::2]]
    last = np.where(ends[:, 1::2] > ends[:, ::2], ends[:, 1::2], 0)
    bounds[:, 1::2] = np.concatenate([[-np.inf], values.astype(np.float64)])[last]
    return bounds


def inside(bounds: NDArray[np.float64], points: Points) -> Labels:
    """Which points lie in which unions of closed intervals: (M, 2·count), (m,) → (M, m)."""
    labels = np.zeros((len(bounds), len(points)), dtype=np.uint8)
    for j in range(0, bounds.shape[1], 2):
        labels |= (bounds[:, j, None] <= points) & (points <= bounds[:, j + 1, None])
    return labels


def named_bounds(value: Any, count: int) -> list[float]:
    """The bounds that a name lists; ValueError says what they look like."""
    bounds = named_numbers(value)
    ordered = all(a <= b for a, b in zip(bounds[::2], bounds[1::2], strict=False)) and all(
        b < a for b, a in zip(bounds[1::2], bounds[2::2], strict=False)
    )
    if not bounds or len(bounds) % 2 or len(bounds) > 2 * count or not ordered:
        shape = "[lo, hi]" if count == 1 else f"[lo_1, hi_1, …] of at most {count} intervals from left to right"
        raise ValueError(f'{value!r} names no union of intervals; give its bounds {shape}, or "empty"')
    return bounds


def loss_of_runs(
    bounds: NDArray[np.float64], points: Points, mass: NDArray[np.float64] | NDArray[np.int64]
) -> NDArray[np.float64]:
    """What unions of closed intervals get wrong, in O((m + M·count) log m) by prefix sums of zeros minus ones."""
    order = np.argsort(points, kind="stable")
    x = points[order].astype(np.float64)
    cost = np.concatenate([[0.0], np.cumsum(mass[order, 0].astype(np.float64) - mass[order, 1])])
    first = np.searchsorted(x, bounds[:, ::2], side="left")
    last = np.searchsorted(x, bounds[:, 1::2], side="right")
    found = (cost[np.maximum(first, last)] - cost[first]).sum(axis=1)
    return np.asarray(found + mass[:, 1].sum(dtype=np.float64))


def best_runs(points: Points, mass: NDArray[np.float64] | NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """The union of at most ``count`` intervals of least loss, first in canonical order, in O(m·count): (1, 2·count).

    ``least[j, s]`` is what the points from i on must lose when j runs may still be opened and the point before them is
    labelled s; walking forward, a point is labelled 0 wherever that still attains the least.
    """
    values, place = distinct(points)
    m = len(values)
    zeros = np.bincount(place, weights=mass[:, 0], minlength=m)
    ones = np.bincount(place, weights=mass[:, 1], minlength=m)
    least = np.zeros((count + 1, 2))
    zero = np.empty((m, count + 1, 2), dtype=bool)  # label 0 attains the least
    for i in range(m - 1, -1, -1):
        stop = ones[i] + least[:, 0]
        stay = zeros[i] + least[:, 1]
        enter = np.concatenate([[np.inf], stay[:-1]])
        zero[i, :, 0], zero[i, :, 1] = stop <= enter, stop <= stay
        least = np.stack([np.minimum(stop, enter), np.minimum(stop, stay)], axis=1)
    found = np.tile([np.inf, -np.inf], count)[None, :]
    left, label = count, 0
    for i in range(m):
        before, label = label, int(not zero[i, left, label])
        if label and not before:
            found[0, 2 * (count - left)] = values[i]
            left -= 1
        if label:
            found[0, 2 * (count - left) - 1] = values[i]
    return found


def disagreement_of_runs(bounds: NDArray[np.float64], concept: NDArray[np.float64]) -> NDArray[np.float64]:
    """The length of [0, 1] ∩ (A △ C) for unions A, the rows of ``bounds``, and one union C: (M,)."""
    a, c = np.clip(bounds, 0.0, 1.0), np.clip(concept, 0.0, 1.0)
    own = np.maximum(a[:, 1::2] - a[:, ::2], 0.0).sum(axis=1)
    other = np.maximum(c[1::2] - c[::2], 0.0).sum()
    low = np.maximum(a[:, ::2, None], c[::2])
    high = np.minimum(a[:, 1::2, None], c[1::2])
    both = np.maximum(high - low, 0.0).sum(axis=(1, 2))
    return np.asarray(np.maximum(own + other - 2.0 * both, 0.0))
