"""Point functions on the line, or on {0, …, points − 1}: 1{x = a}, and the all-zero function."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points, Representatives
from predcube.tasks.hypotheses.points import LARGEST_GRID, distinct, finite_points, real_points
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class PointFunctions(HypothesisClass):
    """H = {1{x = a}} ∪ {0}, of VC dimension 1.

    X is the line, or {0, …, points − 1} when ``points`` is given. A representative is its point a as a float, +∞ for
    the all-zero function; for a labeling of T it is the point of T labelled 1. A concept is named by its point, or
    "all-zero".
    """

    points: Annotated[int, Ge(1), Le(LARGEST_GRID)] | None = None

    kind: ClassVar[str] = "points"
    source: ClassVar[str] = "Beimel, Brenner, Kasiviswanathan & Nissim 2014 (POINT)"
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
        """The m + 1 labelings of m distinct points: all 0, then a one from the last point down to the first."""
        values, place = distinct(self._checked(points))
        m = len(values)
        ones = np.arange(m) == (m - np.arange(m + 1))[:, None]
        return np.asarray(ones, dtype=np.uint8)[:, place]

    def representatives(self, points: Points) -> Representatives:
        values, _ = distinct(self._checked(points))
        return np.concatenate([[np.inf], values[::-1].astype(np.float64)])

    def predict(self, representatives: Representatives, points: Points) -> Labels:
        at = np.asarray(representatives, dtype=np.float64)
        return np.asarray(self._checked(points)[None, :] == at[:, None], dtype=np.uint8)

    def members(self) -> Representatives:
        if self.points is None:
            raise ValueError("point functions on the line are infinitely many; give points for a finite X")
        return self.representatives(np.arange(self.points))

    def named(self, value: Any) -> Representatives:
        """A number is the point a; "all-zero" is 0. On a finite X a point outside it names no function."""
        if value == "all-zero":
            return np.array([np.inf])
        if isinstance(value, (bool, str)) or not isinstance(value, Real) or not math.isfinite(value):
            raise ValueError(f'{value!r} names no point function; give its point as a number, or "all-zero"')
        return np.asarray(self._checked(np.array([value]))).astype(np.float64)

    def growth(self, m: int) -> int | None:
        return 1 + (m if self.points is None else min(m, self.points))

    def loss(
        self, representatives: Representatives, points: Points, mass: NDArray[np.float64] | NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """As the base class, in O((m + M) log m): all ones are lost but those at the point, and the zeros there."""
        values, place = distinct(self._checked(points))
        gained = np.bincount(place, weights=mass[:, 1], minlength=len(values))
        lost = np.bincount(place, weights=mass[:, 0], minlength=len(values))
        at = np.asarray(representatives, dtype=np.float64)
        where = np.searchsorted(values, at)
        there = np.append(values.astype(np.float64), np.nan)[where] == at
        ones = float(mass[:, 1].sum(dtype=np.float64))
        return np.asarray(ones - np.where(there, np.append(gained - lost, 0.0)[where], 0.0))

    def disagreement(self, representatives: Representatives, concept: Representatives) -> NDArray[np.float64]:
        """As the base class: 0, since a point has no length."""
        if self.points is not None:
            raise ValueError(f"points on {self.points} points have no uniform law on [0, 1]; leave points out")
        return np.zeros(len(representatives))

    def _checked(self, points: Points) -> Points:
        return real_points(points) if self.points is None else finite_points(points, self.points)
