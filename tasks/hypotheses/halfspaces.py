"""Halfspaces of the plane and of space, on all points or on a grid, exact where points are collinear or coplanar."""

from dataclasses import dataclass
from functools import lru_cache
from math import comb, gcd
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from predcube.tasks.hypotheses import separations, simplices
from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points, Representatives
from predcube.tasks.hypotheses.orientation import RANGE, exact_coordinates
from predcube.tasks.hypotheses.packing import unpack
from predcube.tasks.hypotheses.planar import LARGEST_SAMPLE, LARGEST_SET, LARGEST_TABLE, PlanarChart, chart
from predcube.tasks.hypotheses.points import check_grid, distinct, finite_points, grid, named_numbers, real_points
from predcube.tasks.parameters import check

COUNTED = 27
"""The most points of a grid in space whose labelings are counted; for more the growth is bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halfspaces(HypothesisClass):
    """H = {1{w·x ≥ b}} and {1{w·x > b}} in R^dimension, dimension 2 or 3, with the two constants: of VC dimension
    dimension + 1.

    X is R^dimension, or the grid {0, …, points − 1}^dimension when ``points`` is given (VC dimension 1 for one point).
    For a labeling of T the representative is the constant where there is one, else the halfspace whose boundary passes
    through the first p-tuple of affinely independent points of T that weakly separates the labels, points on the
    boundary following the same rule inside it. Coordinates are taken as the exact numbers that floats are. A concept is
    named by [w_1, …, w_p, b], or "all-zero" or "all-one".
    """

    dimension: Annotated[int, Ge(2), Le(3)]
    points: Annotated[int, Ge(1)] | None = None

    kind: ClassVar[str] = "halfspaces"
    source: ClassVar[str] = "Cover 1965; Shalev-Shwartz & Ben-David 2014, section 9.1.3"

    def __post_init__(self) -> None:
        check(self)
        check_grid(self.kind, self.points, self.dimension)

    @property
    def vc_dimension(self) -> int:
        return 1 if self.points == 1 else self.dimension + 1

    @property
    def domain(self) -> Points | None:
        return None if self.points is None else grid(self.points, self.dimension)

    @property
    def features(self) -> int:
        return self.dimension

    def labelings(self, points: Points) -> Labels:
        """2 Σ_{j ≤ dimension} C(m − 1, j) labelings of m distinct points in general position, fewer of others."""
        values, place = self._distinct(points)
        return unpack(separations.separations(values)[0], len(values))[:, place]

    def representatives(self, points: Points) -> Representatives:
        return separations.separations(self._distinct(points)[0])[1]

    def predict(self, representatives: Representatives, points: Points) -> Labels:
        return separations.predict(np.asarray(representatives, dtype=np.float64), self._checked(points))

    def members(self) -> Representatives:
        if self.points is None:
            raise ValueError("halfspaces of a real space are infinitely many; give points for a finite X")
        return self.representatives(grid(self.points, self.dimension))

    def named(self, value: Any) -> Representatives:
        """[w_1, …, w_p, b], the halfspace 1{w·x ≥ b} with w ≠ 0, or "all-zero" or "all-one"."""
        if isinstance(value, str) and value in ("all-zero", "all-one"):
            return separations.constants(self.dimension)[[int(value == "all-one")]]
        listed = named_numbers(value)
        if len(listed) != self.dimension + 1 or not any(listed[:-1]) or max(map(abs, listed)) > RANGE:
            shape = ", ".join(f"w_{i + 1}" for i in range(self.dimension))
            raise ValueError(
                f'{value!r} names no halfspace; give [{shape}, b] for w·x ≥ b with w not 0, or "all-zero" or "all-one"'
            )
        rows = np.zeros((1, separations.WIDTH[self.dimension]))
        rows[0, : self.dimension + 1] = listed
        rows[0, self.dimension**2] = separations.NAMED
        return rows

    def growth(self, m: int) -> int | None:
        """2 Σ_{j ≤ dimension} C(m − 1, j), attained in general position. A grid has no more than on its whole, which is
        counted exactly in the plane and on small grids in space."""
        p = self.dimension
        if m == 0:
            return 1
        if self.points is None:
            return 2 * sum(comb(m - 1, j) for j in range(p + 1))
        size = self.points**p
        general = 2 * sum(comb(min(m, size) - 1, j) for j in range(p + 1))
        if p == 2:
            return min(general, _on_square(self.points))
        return min(general, _on_cube(self.points)) if size <= COUNTED else general

    def best(self, points: Points, mass: NDArray[np.float64] | NDArray[np.int64]) -> Representatives:
        """As the base class; in the plane without a list of labelings, in O(m³) operations and O(m²) memory."""
        values, place = distinct(self._checked(points))
        if self.dimension != 2 or not 0 < len(values) <= LARGEST_TABLE:
            return HypothesisClass.best(self, points, mass)
        joined = np.zeros((len(values), 2))
        np.add.at(joined, place, mass)
        return chart(values).best(joined)

    def charted(self, k: int, t: int) -> bool:
        return self.dimension == 2 and k <= LARGEST_SAMPLE and t <= LARGEST_SET

    def chart(self, points: Points, t: int) -> PlanarChart | None:
        return chart(self._checked(points)) if self.charted(len(points), t) else None

    def listing(self, k: int, t: int) -> float:
        if self.charted(k, t):
            return 60.0 + 22.0 * t * t
        return 4.0 * HypothesisClass.listing(self, k, t)  # exact signs

    def disagreement(self, representatives: Representatives, concept: Representatives) -> NDArray[np.float64]:
        """As the base class: the area or volume of the part of the unit cube that lies in one of the two."""
        if self.points is not None:
            raise ValueError(f"halfspaces on {self.points} points have no uniform law on [0, 1]; leave points out")
        rows = np.concatenate([np.asarray(concept, dtype=np.float64), np.asarray(representatives, dtype=np.float64)])
        normals, offsets = separations.equations(rows, self.dimension)
        return simplices.symmetric_difference(normals[1:], offsets[1:], normals[0], float(offsets[0]))

    def _checked(self, points: Points) -> NDArray[np.float64]:
        if self.points is not None:
            return finite_points(points, self.points, self.dimension).astype(np.float64)
        return exact_coordinates(real_points(points, self.dimension))

    def _distinct(self, points: Points) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        values, place = distinct(self._checked(points))
        self.check_listable(len(values))
        return values, place


@lru_cache(maxsize=64)
def _on_square(side: int) -> int:
    """Labelings of a square grid: the two constants, and one for each ordered pair of points that are neighbours on
    their line, (side − |a|)(side − |b|) for each direction (a, b) of coprime numbers."""
    axes = 4 * side * (side - 1)
    slanted = sum((side - a) * (side - b) for a in range(1, side) for b in range(1, side) if gcd(a, b) == 1)
    return 2 + axes + 4 * slanted


@lru_cache(maxsize=16)
def _on_cube(side: int) -> int:
    return len(separations.separations(grid(side, 3).astype(np.float64))[0])
