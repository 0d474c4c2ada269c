"""Closed intervals on the line, or on {0, …, points − 1}: 1{lo ≤ x ≤ hi}, and the empty one."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points, Representatives
from predcube.tasks.hypotheses.charts import LARGEST_CHART, IntervalChart, interval_chart
from predcube.tasks.hypotheses.interval_unions import (
    best_runs,
    bounds_of_runs,
    disagreement_of_runs,
    inside,
    labels_of_runs,
    loss_of_runs,
    named_bounds,
    runs,
)
from predcube.tasks.hypotheses.points import LARGEST_GRID, distinct, finite_points, real_points
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals(HypothesisClass):
    """H = {1{lo ≤ x ≤ hi}} ∪ {0}, of VC dimension 2.

    X is the line, or {0, …, points − 1} when ``points`` is given (VC dimension 1 for one point). A representative is a
    row (lo, hi), (+∞, −∞) for the empty interval; for a labeling of T it is the tight interval of the points labelled
    1. A concept is named by its bounds [lo, hi], or "empty".
    """

    points: Annotated[int, Ge(1), Le(LARGEST_GRID)] | None = None

    kind: ClassVar[str] = "intervals"
    source: ClassVar[str] = "Shalev-Shwartz & Ben-David 2014, chapter 6 (intervals)"
    cellwise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(self)

    @property
    def vc_dimension(self) -> int:
        return 2 if self.points is None else min(2, self.points)

    @property
    def domain(self) -> Points | None:
        return None if self.points is None else np.arange(self.points)

    def labelings(self, points: Points) -> Labels:
        """The m(m + 1)/2 + 1 labelings of m distinct points."""
        values, place = distinct(self._checked(points))
        return labels_of_runs(self._runs(len(values)), len(values))[:, place]

    def representatives(self, points: Points) -> Representatives:
        values, _ = distinct(self._checked(points))
        return bounds_of_runs(self._runs(len(values)), values)

    def predict(self, representatives: Representatives, points: Points) -> Labels:
        return inside(np.asarray(representatives, dtype=np.float64), self._checked(points))

    def members(self) -> Representatives:
        if self.points is None:
            raise ValueError("intervals on the line are infinitely many; give points for a finite X")
        return self.representatives(np.arange(self.points))

    def named(self, value: Any) -> Representatives:
        """Bounds [lo, hi] with lo ≤ hi, or "empty"."""
        return np.array([[np.inf, -np.inf] if value == "empty" else named_bounds(value, 1)])

    def growth(self, m: int) -> int | None:
        m = m if self.points is None else min(m, self.points)
        return m * (m + 1) // 2 + 1

    def loss(
        self, representatives: Representatives, points: Points, mass: NDArray[np.float64] | NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return loss_of_runs(np.asarray(representatives, dtype=np.float64), self._checked(points), mass)

    def best(self, points: Points, mass: NDArray[np.float64] | NDArray[np.int64]) -> Representatives:
        return best_runs(self._checked(points), mass, 1)

    def disagreement(self, representatives: Representatives, concept: Representatives) -> NDArray[np.float64]:
        """As the base class: the length of the part of [0, 1] that lies in one of the two intervals."""
        if self.points is not None:
            raise ValueError(f"intervals on {self.points} points have no uniform law on [0, 1]; leave points out")
        return disagreement_of_runs(np.asarray(representatives, dtype=np.float64), np.asarray(concept)[0])

    def charted(self, k: int, t: int) -> bool:
        return k * (k + 1) // 2 < LARGEST_CHART

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
        return runs(m, 1)
