"""The full cube: every function on {0, …, points − 1}."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points, Representatives
from predcube.tasks.hypotheses.points import LARGEST_GRID, distinct, finite_points
from predcube.tasks.parameters import check

LARGEST_LISTED = 20
"""The most points whose 2^m labelings are listed: 2^20 rows are 20 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cube(HypothesisClass):
    """H = {0, 1}^X on X = {0, …, points − 1}, of VC dimension ``points``.

    A representative is its label vector, shape (points,) of 0 and 1; for a labeling of T it is 0 off T. A concept is
    named by its labels, as a list or as text of 0 and 1.
    """

    points: Annotated[int, Ge(1), Le(LARGEST_GRID)]

    kind: ClassVar[str] = "cube"
    source: ClassVar[str] = "Dagan & Feldman 2020, Theorem sta-lb (the shattered set of the lower bound)"
    free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(self)

    @property
    def vc_dimension(self) -> int:
        return self.points

    @property
    def domain(self) -> Points | None:
        return np.arange(self.points)

    def labelings(self, points: Points) -> Labels:
        """All 2^m labelings of m distinct points; ValueError beyond ``LARGEST_LISTED`` of them."""
        values, place = distinct(finite_points(points, self.points))
        return _binary(len(values))[:, place]

    def representatives(self, points: Points) -> Representatives:
        values, _ = distinct(finite_points(points, self.points))
        labels = _binary(len(values))
        whole = np.zeros((len(labels), self.points), dtype=np.uint8)
        whole[:, values] = labels
        return whole

    def predict(self, representatives: Representatives, points: Points) -> Labels:
        return np.asarray(representatives, dtype=np.uint8)[:, finite_points(points, self.points)]

    def members(self) -> Representatives:
        return _binary(self.points)

    def named(self, value: Any) -> Representatives:
        """A list of 0 and 1, or text of the same digits, one for each point."""
        digits = list(value) if isinstance(value, Sequence) else []
        if len(digits) != self.points or any(d not in (0, 1, "0", "1") or isinstance(d, bool) for d in digits):
            raise ValueError(
                f"{value!r} names no function on {self.points} points; give {self.points} labels of 0 and 1, "
                f'as a list or as text like "{"01" * (self.points // 2) + "0" * (self.points % 2)}"'
            )
        return np.array([[int(d) for d in digits]], dtype=np.uint8)

    def growth(self, m: int) -> int | None:
        return int(2 ** min(m, self.points))

    def best(self, points: Points, mass: NDArray[np.float64] | NDArray[np.int64]) -> Representatives:
        """As the base class, point by point: 1 where strictly more mass is labelled 1."""
        x = finite_points(points, self.points)
        surplus = np.bincount(x, weights=mass[:, 1], minlength=self.points) - np.bincount(
            x, weights=mass[:, 0], minlength=self.points
        )
        return (surplus > 0).astype(np.uint8)[None, :]


def _binary(m: int) -> Labels:
    """The 2^m binary vectors of length m in lexicographic order."""
    if m > LARGEST_LISTED:
        raise ValueError(
            f"the cube has 2^{m} labelings of {m} points, too many to list (at most 2^{LARGEST_LISTED}); "
            "use the analytic method or fewer points"
        )
    return ((np.arange(2**m)[:, None] >> np.arange(m - 1, -1, -1)) & 1).astype(np.uint8)
