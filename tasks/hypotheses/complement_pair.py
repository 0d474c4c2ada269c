"""Two functions: h and 1 − h."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Le, MinLen
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points, Representatives
from predcube.tasks.hypotheses.points import LARGEST_GRID, distinct, finite_points, real_points
from predcube.tasks.hypotheses.row_charts import RowChart, row_chart
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class ComplementPair(HypothesisClass):
    """H = {h, 1 − h}, of VC dimension 1.

    h is the all-zero function on the line, or on {0, …, points − 1} when ``points`` is given; with ``labels`` it is the
    function with these labels on {0, …, len(labels) − 1}. A representative is 0 for h and 1 for 1 − h; each represents
    its own labeling (h where there are no points). A concept is named by 0 or 1.
    """

    points: Annotated[int, Ge(1), Le(LARGEST_GRID)] | None = None
    labels: Annotated[tuple[Literal[0, 1], ...], MinLen(1)] | None = None

    kind: ClassVar[str] = "complement_pair"
    source: ClassVar[str] = "Dagan & Feldman 2020 (the pair of a function and its complement)"
    cellwise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(self)
        if self.labels is None:
            return
        labels = list(self.labels) if isinstance(self.labels, list | tuple | np.ndarray) else []
        if not labels or any(isinstance(v, bool) or v not in (0, 1) for v in labels):
            raise ValueError(f"complement_pair: labels = {self.labels!r} must be a list of 0 and 1, one a point of X")
        if self.points is not None and self.points != len(labels):
            raise ValueError(
                f"complement_pair: points = {self.points} and {len(labels)} labels; give as many, or labels alone"
            )
        object.__setattr__(self, "labels", tuple(int(v) for v in labels))

    @property
    def vc_dimension(self) -> int:
        return 1

    @property
    def domain(self) -> Points | None:
        size = self._size
        return None if size is None else np.arange(size)

    def labelings(self, points: Points) -> Labels:
        """h and 1 − h at the points, the one that labels the smallest point 0 first."""
        return self.predict(self.representatives(points), points)

    def representatives(self, points: Points) -> Representatives:
        values, _ = distinct(self._checked(points))
        if not len(values):
            return np.array([0])
        return np.array([1, 0]) if self._base(values[:1])[0] else np.array([0, 1])

    def predict(self, representatives: Representatives, points: Points) -> Labels:
        base = self._base(self._checked(points))
        return np.asarray(representatives).astype(np.uint8)[:, None] ^ base[None, :]

    def members(self) -> Representatives:
        return self.representatives(np.array([0]))

    def named(self, value: Any) -> Representatives:
        """0 for h, 1 for 1 − h."""
        if isinstance(value, (bool, str)) or value not in (0, 1):
            raise ValueError(f"{value!r} names no function of the pair; give 0 for h or 1 for its complement")
        return np.array([int(value)])

    def growth(self, m: int) -> int | None:
        return 2 if m else 1

    def disagreement(self, representatives: Representatives, concept: Representatives) -> NDArray[np.float64]:
        """As the base class: 0 or 1."""
        if self._size is not None:
            raise ValueError(f"a pair on {self._size} points has no uniform law on [0, 1]; leave points and labels out")
        return np.asarray(np.asarray(representatives) != np.asarray(concept)[0], dtype=np.float64)

    def charted(self, k: int, t: int) -> bool:
        return True

    def chart(self, points: Points, t: int) -> RowChart | None:
        return row_chart(np.array([0, 1]), self.predict(np.array([0, 1]), points))

    def listing(self, k: int, t: int) -> float:
        return 40.0 + k / 16

    @property
    def _size(self) -> int | None:
        return self.points if self.labels is None else len(self.labels)

    def _checked(self, points: Points) -> Points:
        size = self._size
        return real_points(points) if size is None else finite_points(points, size)

    def _base(self, values: NDArray[Any]) -> NDArray[np.uint8]:
        """h at checked points."""
        if self.labels is None:
            return np.zeros(len(values), dtype=np.uint8)
        return np.array(self.labels, dtype=np.uint8)[values.astype(np.int64)]
