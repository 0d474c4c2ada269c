"""Decision stumps: 1{x_feature ≥ cut} and 1{x_feature < cut} in R^dimension, or on a grid."""

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points, Representatives
from predcube.tasks.hypotheses.charts import LARGEST_CHART
from predcube.tasks.hypotheses.packing import first_of_each, pack
from predcube.tasks.hypotheses.points import check_grid, distinct, finite_points, grid, named_numbers, real_points
from predcube.tasks.hypotheses.shattering import largest_shattered
from predcube.tasks.hypotheses.stump_charts import LARGEST_SET, StumpChart, stump_chart
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class Stumps(HypothesisClass):
    """H = {1{x_f ≥ c}, 1{x_f < c}} over features f < ``dimension`` and cuts c, with the two constants; its VC dimension
    is the largest d with C(d, ⌊d/2⌋) ≤ 2·dimension (2, 3, 4 for one, two, three features).

    X is R^dimension, or the grid {0, …, points − 1}^dimension when ``points`` is given. A representative is a row
    (feature, cut, sign), sign 1 for 1{x ≥ cut} and −1 for 1{x < cut}; a constant is (0, ±∞, 1). For a labeling of T it
    is the constant where there is one, else the first (feature, cut at a point of T, sign), 1 before −1. A concept is
    named by [feature, cut, sign], features counted from 0, or "all-zero" or "all-one".
    """

    dimension: Annotated[int, Ge(1), Le(64)]
    points: Annotated[int, Ge(1)] | None = None

    kind: ClassVar[str] = "stumps"
    source: ClassVar[str] = "Iba & Langley 1992; VC dimension: Gey 2018"
    cellwise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(self)
        check_grid(self.kind, self.points, self.dimension)

    @property
    def vc_dimension(self) -> int:
        d = largest_real(self.dimension)
        return d if self.points is None or self.points >= d else _on_grid(self.points, self.dimension)

    @property
    def domain(self) -> Points | None:
        return None if self.points is None else grid(self.points, self.dimension)

    @property
    def features(self) -> int:
        return self.dimension

    def labelings(self, points: Points) -> Labels:
        """At most Σ_j min(2·dimension, C(m, j)) labelings of m distinct points."""
        values, place = self._distinct(points)
        return self._predict(self._first(values), values)[:, place]

    def representatives(self, points: Points) -> Representatives:
        return self._first(self._distinct(points)[0])

    def predict(self, representatives: Representatives, points: Points) -> Labels:
        return self._predict(np.asarray(representatives, dtype=np.float64), self._columns(points))

    def members(self) -> Representatives:
        if self.points is None:
            raise ValueError("stumps on real features are infinitely many; give points for a finite X")
        return self.representatives(grid(self.points, self.dimension))

    def named(self, value: Any) -> Representatives:
        """[feature, cut, sign] with a feature from 0 on and sign 1 or −1, or "all-zero" or "all-one"."""
        if isinstance(value, str) and value in ("all-zero", "all-one"):
            return np.array([[0.0, np.inf if value == "all-zero" else -np.inf, 1.0]])
        listed = named_numbers(value)
        if len(listed) != 3 or listed[0] not in range(self.dimension) or listed[2] not in (1, -1):
            raise ValueError(
                f"{value!r} names no stump of {self.dimension} features; give [feature, cut, sign] with a feature "
                f'from 0 to {self.dimension - 1} and sign 1 (x ≥ cut) or -1 (x < cut), or "all-zero" or "all-one"'
            )
        return np.array([listed])

    def growth(self, m: int) -> int | None:
        """Σ_j min(2·dimension, C(m, j)), which no m points exceed; on the whole of a grid 2 + 2·dimension·(points − 1),
        which is exact."""
        if self.points is None:
            return _most(self.dimension, m)
        whole = 2 + 2 * self.dimension * (self.points - 1)
        return whole if m >= self.points**self.dimension else min(_most(self.dimension, m), whole)

    def loss(
        self, representatives: Representatives, points: Points, mass: NDArray[np.float64] | NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """As the base class, in O((m·dimension + M) log m): prefix sums along each feature."""
        x, rows = self._columns(points), np.asarray(representatives, dtype=np.float64)
        found = np.empty(len(rows))
        for f in range(self.dimension):
            here = rows[:, 0] == f
            if here.any():
                order = np.argsort(x[:, f], kind="stable")
                ones = np.concatenate([[0.0], np.cumsum(mass[order, 1], dtype=np.float64)])
                zeros = np.concatenate([[0.0], np.cumsum(mass[order, 0], dtype=np.float64)])
                cut = np.searchsorted(x[order, f], rows[here, 1], side="left")
                up = ones[cut] + (zeros[-1] - zeros[cut])
                down = zeros[cut] + (ones[-1] - ones[cut])
                found[here] = np.where(rows[here, 2] > 0, up, down)
        return found

    def disagreement(self, representatives: Representatives, concept: Representatives) -> NDArray[np.float64]:
        """As the base class: the length between two cuts of one feature, or, for two features, which are independent,
        u(1 − v) + v(1 − u) with u, v the shares labelled 1."""
        if self.points is not None:
            raise ValueError(f"stumps on {self.points} points have no uniform law on [0, 1]; leave points out")
        rows, (feature, cut, sign) = np.asarray(representatives, dtype=np.float64), np.asarray(concept)[0]
        ones = _share(rows[:, 1], rows[:, 2])
        other = float(_share(np.array([cut]), np.array([sign]))[0])
        between = np.abs(np.clip(rows[:, 1], 0.0, 1.0) - min(max(cut, 0.0), 1.0))
        same = np.where(rows[:, 2] == sign, between, 1.0 - between)
        apart = ones * (1.0 - other) + other * (1.0 - ones)
        constant = np.isinf(rows[:, 1]) | np.isinf(cut)  # constants belong to no feature
        return np.where((rows[:, 0] == feature) & ~constant, same, apart)

    def charted(self, k: int, t: int) -> bool:
        return t <= LARGEST_SET and 2 * self.dimension * k < LARGEST_CHART

    def chart(self, points: Points, t: int) -> StumpChart | None:
        return stump_chart(self._columns(points)) if self.charted(len(points), t) else None

    def listing(self, k: int, t: int) -> float:
        if self.charted(k, t):
            return 20.0 + self.dimension * t * (12.0 + t / 2)
        return HypothesisClass.listing(self, k, t)

    def _columns(self, points: Points) -> Points:
        if self.points is None:
            checked = real_points(points, self.dimension)
        else:
            checked = finite_points(points, self.points, self.dimension)
        return checked.reshape(len(checked), self.dimension)

    def _distinct(self, points: Points) -> tuple[NDArray[Any], NDArray[np.int64]]:
        return distinct(self._columns(points))

    def _first(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The representatives on sorted distinct points (m, dimension)."""
        rows = [np.array([[0.0, np.inf, 1.0], [0.0, -np.inf, 1.0]])]
        for f in range(self.dimension):
            cuts = np.repeat(np.unique(values[:, f])[1:].astype(np.float64), 2)
            signs = np.tile([1.0, -1.0], len(cuts) // 2)
            rows.append(np.column_stack([np.full(len(cuts), float(f)), cuts, signs]))
        all_rows = np.concatenate(rows)
        return all_rows[first_of_each(pack(self._predict(all_rows, values)))]

    @staticmethod
    def _predict(rows: NDArray[np.float64], columns: NDArray[Any]) -> Labels:
        at_least = columns.T[rows[:, 0].astype(np.int64)] >= rows[:, 1, None]
        return np.asarray(at_least == (rows[:, 2, None] > 0), dtype=np.uint8)


def largest_real(dimension: int) -> int:
    """The largest d with C(d, ⌊d/2⌋) ≤ 2·dimension."""
    d = 1
    while comb(d + 1, (d + 1) // 2) <= 2 * dimension:
        d += 1
    return d


def _most(dimension: int, m: int) -> int:
    # Each feature and sign cuts off one set of each size.
    return sum(min(2 * dimension, comb(m, j)) for j in range(m + 1)) if m < 64 else 2 + 2 * dimension * (m - 1)


@lru_cache(maxsize=64)
def _on_grid(side: int, dimension: int) -> int:
    """On a grid too narrow for d points with different coordinates: found by search, over feature ranks."""
    stumps = Stumps(dimension=dimension, points=side)
    domain = grid(side, dimension)
    found = largest_shattered(stumps.predict(stumps.representatives(domain), domain))
    if found is None:
        raise ValueError(f"the VC dimension of stumps on {side}^{dimension} points was not found; leave points out")
    return len(found)


def _share(cut: NDArray[np.float64], sign: NDArray[np.float64]) -> NDArray[np.float64]:
    below = np.clip(cut, 0.0, 1.0)
    return np.where(sign > 0, 1.0 - below, below)
