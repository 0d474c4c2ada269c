"""Axis-aligned closed boxes of R^dimension, or of a grid, and the empty one."""

from dataclasses import dataclass
from math import comb, prod
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points, Representatives
from predcube.tasks.hypotheses.charts import LARGEST_CHART, IntervalChart, interval_chart
from predcube.tasks.hypotheses.packing import Words, first_of_each, pack, unpack
from predcube.tasks.hypotheses.points import check_grid, distinct, finite_points, grid, named_numbers, real_points
from predcube.tasks.parameters import check

CELLS = 2**23
"""Cells of prefix sums at most (64 MB), and of comparisons at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes(HypothesisClass):
    """H = {1{lo_f ≤ x_f ≤ hi_f for every feature f}} ∪ {0} in R^dimension, of VC dimension 2·dimension.

    X is R^dimension, or the grid {0, …, points − 1}^dimension when ``points`` is given (with two points a side its VC
    dimension is max(2, dimension), with one it is 1). A representative is a row (lo_1, hi_1, lo_2, hi_2, …), all
    (+∞, −∞) for the empty box; for a labeling of T it is the bounding box of the points labelled 1. A concept is named
    by its bounds [lo_1, hi_1, lo_2, hi_2, …], or "empty".
    """

    dimension: Annotated[int, Ge(1), Le(16)]
    points: Annotated[int, Ge(1)] | None = None

    kind: ClassVar[str] = "boxes"
    source: ClassVar[str] = "Blumer, Ehrenfeucht, Haussler & Warmuth 1989 (axis-aligned rectangles)"
    cellwise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(self)
        check_grid(self.kind, self.points, self.dimension)

    @property
    def vc_dimension(self) -> int:
        if self.points is None or self.points > 2:
            return 2 * self.dimension
        return 1 if self.points == 1 else max(2, self.dimension)

    @property
    def domain(self) -> Points | None:
        return None if self.points is None else grid(self.points, self.dimension)

    @property
    def features(self) -> int:
        return self.dimension

    def labelings(self, points: Points) -> Labels:
        values, place = self._distinct(points)
        return unpack(_boxed(values), len(values))[:, place]

    def representatives(self, points: Points) -> Representatives:
        values, _ = self._distinct(points)
        return _bounding(_boxed(values), values)

    def predict(self, representatives: Representatives, points: Points) -> Labels:
        rows, x = np.asarray(representatives, dtype=np.float64), self._columns(points)
        labels = np.ones((len(rows), len(x)), dtype=np.uint8)
        for f in range(self.dimension):
            labels &= (rows[:, 2 * f, None] <= x[:, f]) & (x[:, f] <= rows[:, 2 * f + 1, None])
        return labels

    def members(self) -> Representatives:
        if self.points is None:
            raise ValueError("boxes of a real space are infinitely many; give points for a finite X")
        return self.representatives(grid(self.points, self.dimension))

    def named(self, value: Any) -> Representatives:
        """Bounds [lo_1, hi_1, lo_2, hi_2, …] with lo ≤ hi, or "empty"."""
        if isinstance(value, str) and value == "empty":
            return np.tile([np.inf, -np.inf], self.dimension)[None, :]
        listed = named_numbers(value)
        if len(listed) != 2 * self.dimension or any(lo > hi for lo, hi in zip(listed[::2], listed[1::2], strict=True)):
            raise ValueError(
                f"{value!r} names no box of {self.dimension} features; give its {2 * self.dimension} bounds "
                '[lo_1, hi_1, lo_2, …] with lo ≤ hi, or "empty"'
            )
        return np.array([listed])

    def growth(self, m: int) -> int | None:
        """Σ_{i ≤ d} C(m, i) with d the VC dimension, which no m points exceed; on the whole of a grid the number of its
        boxes, which is exact, as are the values on a line."""
        bound = sum(comb(m, i) for i in range(min(m, self.vc_dimension) + 1))
        if self.points is None:
            return bound
        whole = int(1 + (self.points * (self.points + 1) // 2) ** self.dimension)
        return whole if m >= self.points**self.dimension else min(bound, whole)

    def loss(
        self, representatives: Representatives, points: Points, mass: NDArray[np.float64] | NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """As the base class, in O(2^dimension) for each box by prefix sums over the grid of coordinates, where that
        grid has at most ``CELLS`` cells."""
        x, rows = self._columns(points), np.asarray(representatives, dtype=np.float64)
        axes = [np.unique(x[:, f]) for f in range(self.dimension)]
        shape = tuple(len(a) + 1 for a in axes)
        if prod(shape) > CELLS:
            return HypothesisClass.loss(self, rows, points, mass)
        sums = np.zeros(shape)
        place = tuple(np.searchsorted(a, x[:, f]) + 1 for f, a in enumerate(axes))
        np.add.at(sums, place, mass[:, 0].astype(np.float64) - mass[:, 1])
        for f in range(self.dimension):
            np.cumsum(sums, axis=f, out=sums)
        low = [np.searchsorted(a, rows[:, 2 * f], side="left") for f, a in enumerate(axes)]
        high = [np.searchsorted(a, rows[:, 2 * f + 1], side="right") for f, a in enumerate(axes)]
        high = [np.maximum(h, b) for h, b in zip(high, low, strict=True)]
        found = np.full(len(rows), mass[:, 1].sum(dtype=np.float64))
        for corner in range(2**self.dimension):
            lower = [(corner >> f) & 1 for f in range(self.dimension)]
            at = tuple(low[f] if lower[f] else high[f] for f in range(self.dimension))
            found += (-1) ** sum(lower) * sums[at]
        return found

    def disagreement(self, representatives: Representatives, concept: Representatives) -> NDArray[np.float64]:
        """As the base class: the volume of the part of [0, 1]^dimension that lies in one of the two boxes."""
        if self.points is not None:
            raise ValueError(f"boxes on {self.points} points have no uniform law on [0, 1]; leave points out")
        a, c = (
            np.clip(np.asarray(representatives, dtype=np.float64), 0.0, 1.0),
            np.clip(np.asarray(concept)[0], 0.0, 1.0),
        )
        own = np.maximum(a[:, 1::2] - a[:, ::2], 0.0)
        other = np.maximum(c[1::2] - c[::2], 0.0)
        both = np.maximum(np.minimum(a[:, 1::2], c[1::2]) - np.maximum(a[:, ::2], c[::2]), 0.0)
        return np.asarray(np.maximum(own.prod(axis=1) + other.prod() - 2.0 * both.prod(axis=1), 0.0))

    def charted(self, k: int, t: int) -> bool:
        return self.dimension == 1 and k * (k + 1) // 2 < LARGEST_CHART

    def chart(self, points: Points, t: int) -> IntervalChart | None:
        return interval_chart(self._columns(points)[:, 0]) if self.charted(len(points), t) else None

    def listing(self, k: int, t: int) -> float:
        if self.charted(k, t):
            return 10.0 + 2.0 * t * t
        return HypothesisClass.listing(self, k, t)

    def _columns(self, points: Points) -> Points:
        if self.points is None:
            checked = real_points(points, self.dimension)
        else:
            checked = finite_points(points, self.points, self.dimension)
        return checked.reshape(len(checked), self.dimension)

    def _distinct(self, points: Points) -> tuple[NDArray[Any], NDArray[np.int64]]:
        values, place = distinct(self._columns(points))
        self.check_listable(len(values))
        return values, place


def _boxed(values: NDArray[Any]) -> Words:
    """The sets of points (m, p) that boxes cut out, packed, in canonical order.

    Feature by feature: each set found so far is cut by every interval between two coordinates of its own points.
    """
    m = len(values)
    found = pack(np.ones((1, m), dtype=np.uint8))
    for column in values.T:
        levels, rank = np.unique(column, return_inverse=True)
        at_level = pack((rank == np.arange(len(levels))[:, None]).astype(np.uint8))
        up_to = pack((rank <= np.arange(len(levels))[:, None]).astype(np.uint8))
        before = np.concatenate([np.zeros((1, up_to.shape[1]), dtype=np.uint64), up_to])
        parts = []
        length = max(1, CELLS // max(1, len(levels) ** 2))
        for start in range(0, len(found), length):
            sets = found[start : start + length]
            held = (sets[:, None] & at_level).any(axis=2)
            which, low, high = np.nonzero(
                held[:, :, None] & np.triu(held[:, None, :] & np.ones((len(levels),) * 2, bool))
            )
            cut = sets[which] & up_to[high] & ~before[low]
            parts.append(cut[first_of_each(cut)])
        every = np.concatenate(parts) if parts else found[:0]
        found = every[first_of_each(every)]
    every = np.concatenate([pack(np.zeros((1, m), dtype=np.uint8)), found])
    return every[first_of_each(every)]


def _bounding(words: Words, values: NDArray[Any]) -> NDArray[np.float64]:
    """The bounding box of each set of points: (M, 2p)."""
    rows = np.empty((len(words), 2 * values.shape[1]))
    length = max(1, CELLS // max(1, len(values)))
    for start in range(0, len(words), length):
        inside = unpack(words[start : start + length], len(values)).astype(bool)
        for f, column in enumerate(values.T.astype(np.float64)):
            rows[start : start + length, 2 * f] = np.where(inside, column, np.inf).min(axis=1, initial=np.inf)
            rows[start : start + length, 2 * f + 1] = np.where(inside, column, -np.inf).max(axis=1, initial=-np.inf)
    return rows
