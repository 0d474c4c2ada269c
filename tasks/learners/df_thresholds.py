"""Private thresholds: in go examples sorted along the line, out come odds that each of them left of a query moves."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numba
import numpy as np
from annotated_types import Gt, Lt
from numpy.typing import NDArray
from scipy.special import log_expit

from predcube.tasks.bounds import walk_privacy_loss, walk_stability
from predcube.tasks.learners.answering import OneSample
from predcube.tasks.learners.base import HypothesisClass, Learner, Occupancy, Points, Workload
from predcube.tasks.learners.records import Records
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class DfThresholds(Learner):
    """For thresholds 1{x ≥ a}. The odds of answering 1 start even; every example at or left of the query, from left to
    right (in the sample's order where points are equal), multiplies them by e^s where its label is 1 and by e^{−s}
    where it is 0, and after each the probability is brought back to [α, 1 − α].

    A step moves two walks no further apart, clipping neither. A replaced example takes a step of one walk away and adds
    another, or turns it round: the odds move by e^{2s} at most, and the probability of an answer, never below α, by
    e^{2s}/(1 + α(e^{2s} − 1)), which is reached. convention "proof": s = ε/2, which is ε-private. convention "paper":
    s = ε, which is ε-private where an example is added or left out, and costs almost 2ε where it is replaced.
    n ≥ 12 ln(2/α)/(αε) examples suffice for error α where a threshold fits.
    """

    kind: ClassVar[str] = "df_thresholds"
    source: ClassVar[str] = "Dwork & Feldman 2018, section 4 (thresholds)"

    epsilon: Annotated[float, Gt(0)]
    alpha: Annotated[float, Gt(0), Lt(0.5)]
    convention: Literal["proof", "paper"] = "proof"

    def __post_init__(self) -> None:
        check(self)

    @property
    def mixes(self) -> bool:
        return False

    @property
    def ordered(self) -> bool:
        return True

    @property
    def _step(self) -> float:
        return self.epsilon if self.convention == "paper" else self.epsilon / 2

    def derived(self, n: int) -> Mapping[str, Any]:
        """``step`` of the log-odds, and ``sufficient_n`` = ⌈12 ln(2/α)/(αε)⌉."""
        sufficient = math.ceil(12.0 * math.log(2.0 / self.alpha) / (self.alpha * self.epsilon))
        return {"step": self._step, "sufficient_n": sufficient}

    def infeasible(self, n: int, hypotheses: HypothesisClass) -> str | None:
        if hypotheses.kind == "thresholds":
            return None
        return f"df_thresholds learns thresholds alone, not {hypotheses.kind}; take df_realizable or df_agnostic"

    def workload(self, hypotheses: HypothesisClass, sample: Occupancy, **options: Any) -> Workload:
        raise ValueError(f"{self.kind} is no mixture of hypotheses; ask for its answers")

    def answering(
        self,
        hypotheses: HypothesisClass,
        sample: Occupancy,
        queries: Points,
        *,
        method: str = "auto",
        samples: int | None = None,
        seed: int | None = None,
    ) -> Workload:
        assert isinstance(sample, Records)
        return OneSample(
            learner=self,
            hypotheses=hypotheses,
            points=sample.points,
            sample=sample.order[None],
            queries=queries,
            method="exact",
            cost=float(20 * sample.n),
        )

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
        limit = math.log1p(-self.alpha) - math.log(self.alpha)
        after = np.searchsorted(points, queries, side="right")  # how many of the points are at or left of the query
        odds = _walks(np.ascontiguousarray(counts), len(points), self._step, limit)[:, after]
        return np.stack([log_expit(-odds), log_expit(odds)], axis=-1)

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
        return self.kind, float(many * (20 * n + 20 * k))

    def guaranteed_stability(self, n: int) -> float:
        """tanh(s/2), at most 1 − 2α."""
        return walk_stability(self._step, self.alpha)

    def guaranteed_privacy_loss(self, n: int) -> float:
        """2s − ln(1 + α(e^{2s} − 1)), at most ln((1 − α)/α): reached, so no smaller one holds."""
        return walk_privacy_loss(self._step, self.alpha)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _walks(types: NDArray[np.int64], k: int, step: float, limit: float) -> NDArray[np.float64]:
    """The log-odds after the examples at the first j of k points: (B, n) of types → (B, k + 1)."""
    found = np.zeros((len(types), k + 1))
    for b in range(len(types)):
        order = np.argsort(types[b] // 2, kind="mergesort")
        odds, done = 0.0, 0
        for i in order:
            place = types[b, i] // 2
            while done <= place:
                found[b, done] = odds
                done += 1
            odds += step if types[b, i] % 2 == 1 else -step
            odds = min(max(odds, -limit), limit)
        while done <= k:
            found[b, done] = odds
            done += 1
    return found
