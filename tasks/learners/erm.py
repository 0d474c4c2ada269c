"""Empirical risk minimisation: in goes nothing but the sample, out comes one hypothesis that errs least on it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from predcube.tasks import mixture
from predcube.tasks.learners.base import HypothesisClass, Learner, Occupancy, Points, Workload
from predcube.tasks.mixture.samples import mistakes
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class Erm(Learner):
    """The first minimiser of L_S in canonical order among the representatives of the labelings of S.

    Deterministic: one record can turn an answer from 0 to 1, so it promises no stability and no privacy.
    """

    kind: ClassVar[str] = "erm"
    source: ClassVar[str] = "Vapnik & Chervonenkis 1974"

    def __post_init__(self) -> None:
        check(self)

    def derived(self, n: int) -> Mapping[str, Any]:
        return {}

    def infeasible(self, n: int, hypotheses: HypothesisClass) -> str | None:
        return None

    def workload(
        self,
        hypotheses: HypothesisClass,
        sample: Occupancy,
        *,
        method: str = "auto",
        relative: bool = True,
        samples: int | None = None,
        seed: int | None = None,
        weights: bool = False,
    ) -> Workload:
        return mixture.point_mass(hypotheses, sample)

    def batch(
        self,
        hypotheses: HypothesisClass,
        points: Points,
        counts: NDArray[np.int64],
        queries: Points,
        *,
        method: str,
        samples: int | None = None,
        seed: int | None = None,
    ) -> NDArray[np.float64]:
        """Samples that occupy the same points share their candidates."""
        if hypotheses.free:  # too many labelings to list: 1 where strictly more records say so
            at = np.searchsorted(points, queries)
            return _certain(counts[:, at, 1] > counts[:, at, 0])
        said = np.empty((len(counts), len(queries)), dtype=np.uint8)
        supports, group = np.unique(counts.sum(axis=2) > 0, axis=0, return_inverse=True)
        for g, support in enumerate(supports):
            rows = np.flatnonzero(group == g)
            occupied = points[support]
            candidates = hypotheses.representatives(occupied)
            lost = mistakes(hypotheses, candidates, occupied, counts[rows][:, support])
            first, place = np.unique(lost.argmin(axis=1), return_inverse=True)  # argmin: the first of equals
            said[rows] = hypotheses.predict(candidates[first], queries)[place]
        return _certain(said)

    def operations(
        self,
        hypotheses: HypothesisClass,
        method: str,
        *,
        k: int,
        n: int,
        many: int = 1,
        relative: bool = True,
        samples: int | None = None,
    ) -> tuple[str, float]:
        labelings = 1 if hypotheses.free else hypotheses.growth(k) or k**hypotheses.vc_dimension + 1
        return self.kind, float(many * k * labelings)

    def guaranteed_stability(self, n: int) -> float:
        return 1.0

    def guaranteed_privacy_loss(self, n: int) -> float:
        return math.inf


def _certain(said: NDArray[Any]) -> NDArray[np.float64]:
    """Answers given without doubt, as log-probabilities: (B, Q) of 0 and 1 → (B, Q, 2)."""
    return np.where(said[:, :, None] == np.arange(2), 0.0, -np.inf)
