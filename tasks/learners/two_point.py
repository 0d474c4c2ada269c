"""Two opposite functions: in goes a sample, out comes the one with the probability that it is right on a record."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.answers import log_probabilities
from predcube.tasks.learners.base import (
    HypothesisClass,
    Learner,
    MixtureWeights,
    Occupancy,
    Points,
    Representatives,
    Workload,
)
from predcube.tasks.mixture.full import Single
from predcube.tasks.mixture.samples import mistakes
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoPoint(Learner):
    """Of H = {h, 1 − h}, output h with probability 1 − L_S(h).

    1/n-stable, since one record moves L_S by 1/n at most; never wrong where the law is realizable. With q the error of
    the better function its excess error is q(1 − 2q), up to 1/8.
    """

    kind: ClassVar[str] = "two_point"
    source: ClassVar[str] = "Dagan & Feldman 2020, a remark left out of the published text (after Lemma VC-1)"

    def __post_init__(self) -> None:
        check(self)

    def derived(self, n: int) -> Mapping[str, Any]:
        return {}

    def infeasible(self, n: int, hypotheses: HypothesisClass) -> str | None:
        other = f"two_point needs two functions, h and 1 − h, and {hypotheses.kind} here is no such pair; "
        other += "take complement_pair"
        try:
            pair = _pair(hypotheses)
        except ValueError:
            return other
        at = hypotheses.domain if hypotheses.domain is not None else np.zeros((1, hypotheses.features)).squeeze(1)
        said = hypotheses.predict(pair, at)
        if len(pair) == 2 and (said[0] != said[1]).all():
            return None
        return other

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
        return Single(compute=partial(_weights, hypotheses, sample), cost=float(2 * len(sample.points)))

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
        pair = _pair(hypotheses)
        return log_probabilities(_log_weights(hypotheses, pair, points, counts), hypotheses.predict(pair, queries))

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
        return self.kind, float(2 * many * k)

    def guaranteed_stability(self, n: int) -> float:
        """1/n."""
        return 1.0 / n

    def guaranteed_privacy_loss(self, n: int) -> float:
        """Infinite: a single mistake of h lets 1 − h be output at all."""
        return math.inf


def _pair(hypotheses: HypothesisClass) -> Representatives:
    """The members of H, if they are few enough to be a pair."""
    domain = hypotheses.domain
    if hypotheses.free and domain is not None and len(domain) > 1:
        raise ValueError(f"{hypotheses.kind} has 2^{len(domain)}")
    return hypotheses.members()


def _log_weights(
    hypotheses: HypothesisClass, pair: Representatives, points: Points, counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """ln(1 − L_S) of both functions, each from its own count: (B, 2)."""
    right = counts.sum(axis=(1, 2))[:, None] - mistakes(hypotheses, pair, points, counts)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(right) - np.log(counts.sum(axis=(1, 2)))[:, None])


def _weights(hypotheses: HypothesisClass, sample: Occupancy) -> MixtureWeights:
    pair = _pair(hypotheses)
    logs = _log_weights(hypotheses, pair, sample.points, sample.counts[None])[0]
    return MixtureWeights(representatives=pair, log_weights=logs, method="exact")
