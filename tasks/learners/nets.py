"""Classes thinned to nets: in go a class and a radius, out comes a class whose H_T is a net of the other's.

Always true: which hypotheses of H_T are kept depends on the set T alone (on the multiset of T's points, for
``MultisetNet``), never on labels; every other one is within the radius of a kept one, and no two kept ones are.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numba
import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points, Representatives
from predcube.tasks.hypotheses.points import distinct


@dataclass(frozen=True, slots=True, kw_only=True)
class Net(HypothesisClass):
    """H_T thinned greedily in canonical order: a hypothesis is kept where it differs from each kept one at more than
    ``radius``·|T| of T's points. A row is a row of ``whole``."""

    whole: HypothesisClass
    radius: Fraction

    kind: ClassVar[str] = "net"
    source: ClassVar[str] = "Dagan & Feldman 2020, Remark 1"

    @property
    def vc_dimension(self) -> int:
        return self.whole.vc_dimension

    @property
    def domain(self) -> Points | None:
        return self.whole.domain

    @property
    def features(self) -> int:
        return self.whole.features

    def labelings(self, points: Points) -> Labels:
        return self.predict(self.representatives(points), points)

    def representatives(self, points: Points) -> Representatives:
        values, _ = distinct(points)
        representatives = self.whole.representatives(values)  # type: ignore[arg-type]
        labels = self.whole.labelings(values)  # type: ignore[arg-type]
        times = np.ones(len(values), dtype=np.int64)
        kept: Representatives = representatives[_greedy(labels, times, int(self.radius * len(values)))]
        return kept

    def predict(self, representatives: Representatives, points: Points) -> Labels:
        return self.whole.predict(representatives, points)

    def members(self) -> Representatives:
        return self.whole.members()

    def named(self, value: Any) -> Representatives:
        return self.whole.named(value)

    def growth(self, m: int) -> int | None:
        return self.whole.growth(m)

    def loss(
        self, representatives: Representatives, points: Points, mass: NDArray[np.float64] | NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return self.whole.loss(representatives, points, mass)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MultisetNet(HypothesisClass):
    """The same on records instead of points: X is {0, …, n − 1}, the records of one sample, record i standing at
    ``points[i]``, and the distance of two hypotheses counts records. A row is a row of ``whole``."""

    whole: HypothesisClass
    radius: Fraction
    points: Points  # (n,) or (n, features)

    kind: ClassVar[str] = "multiset_net"
    source: ClassVar[str] = "Dagan & Feldman 2020, Remark 1"

    @property
    def vc_dimension(self) -> int:
        return self.whole.vc_dimension

    @property
    def domain(self) -> Points | None:
        return np.arange(len(self.points))

    def labelings(self, points: Points) -> Labels:
        return self.predict(self.representatives(points), points)

    def representatives(self, points: Points) -> Representatives:
        drawn = np.unique(points.astype(np.int64))
        values, place = distinct(self.points[drawn])
        labels = self.whole.labelings(values)  # type: ignore[arg-type]
        times = np.bincount(place, minlength=len(values)).astype(np.int64)
        representatives = self.whole.representatives(values)  # type: ignore[arg-type]
        kept: Representatives = representatives[_greedy(labels, times, int(self.radius * len(drawn)))]
        return kept

    def predict(self, representatives: Representatives, points: Points) -> Labels:
        return self.whole.predict(representatives, self.points[points.astype(np.int64)])

    def members(self) -> Representatives:
        return self.whole.members()

    def named(self, value: Any) -> Representatives:
        return self.whole.named(value)

    def growth(self, m: int) -> int | None:
        return self.whole.growth(m)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _greedy(labels: Labels, times: NDArray[np.int64], radius: int) -> NDArray[np.int64]:
    """The rows kept: each differs from all kept before it in columns that count more than ``radius`` in all."""
    kept = np.empty(len(labels), dtype=np.int64)
    count = 0
    for i in range(len(labels)):
        far = True
        for j in range(count):
            distance = 0
            for v in range(labels.shape[1]):
                if labels[i, v] != labels[kept[j], v]:
                    distance += times[v]
                    if distance > radius:
                        break
            if distance <= radius:
                far = False
                break
        if far:
            kept[count] = i
            count += 1
    return kept[:count].copy()
