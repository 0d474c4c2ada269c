"""Thresholds on the line, or on {0, …, points − 1}: 1{x ≥ a}, and the all-zero function."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, ClassVar

import numba
import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points, Representatives
from predcube.tasks.hypotheses.points import LARGEST_GRID, distinct, finite_points, real_points
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds(HypothesisClass):
    """H = {1{x ≥ a}} ∪ {0}, of VC dimension 1.

    X is the line, or {0, …, points − 1} when ``points`` is given. A representative is its cut a as a float, +∞ for
    the all-zero function; for a labeling of T the cut is the smallest point of T labelled 1. A concept is named by its
    cut, or "all-zero".
    """

    points: Annotated[int, Ge(1), Le(LARGEST_GRID)] | None = None

    kind: ClassVar[str] = "thresholds"
    source: ClassVar[str] = "Dagan & Feldman 2020, section 1 (the class of VC dimension 1)"
    additive: ClassVar[bool] = True
    cellwise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(self)

    @property
    def vc_dimension(self) -> int:
        return 1

    @property
    def domain(self) -> Points | None:
        return None if self.points is None else np.arange(self.points)

    def labelings(self, points: Points) -> Labels:
        """The m + 1 labelings of m distinct points: all 0, then ones from the last point down to all 1."""
        values, place = distinct(self._checked(points))
        m = len(values)
        ones = np.arange(m) >= (m - np.arange(m + 1))[:, None]
        return ones.astype(np.uint8)[:, place]

    def representatives(self, points: Points) -> Representatives:
        values, _ = distinct(self._checked(points))
        cuts = np.empty(len(values) + 1)
        cuts[0], cuts[1:] = np.inf, values[::-1]
        return cuts

    def predict(self, representatives: Representatives, points: Points) -> Labels:
        cuts = np.asarray(representatives, dtype=np.float64)
        return (self._checked(points)[None, :] >= cuts[:, None]).astype(np.uint8)

    def members(self) -> Representatives:
        if self.points is None:
            raise ValueError("thresholds on the line are infinitely many; give points for a finite X")
        return self.representatives(np.arange(self.points))

    def named(self, value: Any) -> Representatives:
        """A number is the cut a (on a finite X, taken as the smallest point from a on); "all-zero" is 0."""
        if value == "all-zero":
            return np.array([np.inf])
        if isinstance(value, (bool, str)) or not isinstance(value, Real) or math.isnan(value):
            raise ValueError(f'{value!r} names no threshold; give its cut as a number, or "all-zero"')
        cut = float(value) + 0.0
        if self.points is not None:
            first = max(np.ceil(cut), 0.0)
            cut = first if first < self.points else np.inf
        return np.array([cut])

    def growth(self, m: int) -> int | None:
        return 1 + (m if self.points is None else min(m, self.points))

    def loss(
        self, representatives: Representatives, points: Points, mass: NDArray[np.float64] | NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """As the base class, in O((m + M) log m): the ones before the cut and the zeros from it on are lost."""
        x = np.asarray(self._checked(points), dtype=np.float64)
        cuts = np.asarray(representatives, dtype=np.float64)
        mass = np.asarray(mass, dtype=np.float64)
        if not (x[1:] >= x[:-1]).all():
            order = np.argsort(x, kind="stable")
            x, mass = x[order], mass[order]
        return np.asarray(_lost(x, mass, cuts))

    def disagreement(self, representatives: Representatives, concept: Representatives) -> NDArray[np.float64]:
        """As the base class: the length of the part of [0, 1] between the two cuts."""
        if self.points is not None:
            raise ValueError(f"thresholds on {self.points} points have no uniform law on [0, 1]; leave points out")
        cuts = np.clip(np.asarray(representatives, dtype=np.float64), 0.0, 1.0)
        return np.asarray(np.abs(cuts - np.clip(concept[0], 0.0, 1.0)))

    def _checked(self, points: Points) -> Points:
        return real_points(points) if self.points is None else finite_points(points, self.points)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _lost(x: NDArray[np.float64], mass: NDArray[np.float64], cuts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ones before each cut and the zeros from it on: sorted ``x`` (m,), ``mass`` (m, 2), ``cuts`` (M,) → (M,)."""
    m = len(x)
    ones_before, zeros_from = np.zeros(m + 1), np.zeros(m + 1)
    for j in range(m):
        ones_before[j + 1] = ones_before[j] + mass[j, 1]
    for j in range(m - 1, -1, -1):
        zeros_from[j] = zeros_from[j + 1] + mass[j, 0]
    found = np.empty(len(cuts))
    for i in range(len(cuts)):
        place = np.searchsorted(x, cuts[i])
        found[i] = ones_before[place] + zeros_from[place]
    return found
