"""The exponential mechanism: in goes ε, out comes the mixture over every function of a finite class."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt
from numpy.typing import NDArray
from scipy.special import log_softmax

from predcube.tasks import mixture
from predcube.tasks.answers import log_probabilities
from predcube.tasks.bounds import exponential_stability
from predcube.tasks.learners.base import HypothesisClass, Learner, Occupancy, Points, Workload
from predcube.tasks.mixture import analytic
from predcube.tasks.mixture.samples import mistakes
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(Learner):
    """Output h ∈ H with probability ∝ exp(−ε·n·L_S(h)/2); functions listed twice count twice.

    The utility −n·L_S has sensitivity 1 under replacement, so every weight moves by a factor within e^{±ε} and the
    learner is ε-private. The odds of an event move within e^{±ε} as well, hence stability tanh(ε/4) (an ε-private
    learner as such is only tanh(ε/2)-stable). With n ≥ 2 ln|H|/(εα) its empirical excess error is ≤ α on average.
    """

    kind: ClassVar[str] = "exponential"
    source: ClassVar[str] = "Kasiviswanathan et al. 2011; McSherry & Talwar 2007"

    epsilon: Annotated[float, Gt(0)]

    def __post_init__(self) -> None:
        check(self)

    def derived(self, n: int) -> Mapping[str, Any]:
        """``beta`` = ε/2: the weight of h is exp(−β·n·L_S(h))."""
        return {"beta": self.epsilon / 2}

    def infeasible(self, n: int, hypotheses: HypothesisClass) -> str | None:
        if hypotheses.free:
            return None
        try:
            hypotheses.members()
        except ValueError as e:
            return f"the exponential mechanism runs over all of a finite class: {e}"
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
        return mixture.full_mixture(hypotheses, sample, beta=self.epsilon / 2, weights=weights)

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
        if hypotheses.free:
            log_p1, log_p0 = analytic.whole_marginals(counts, beta=self.epsilon / 2)
            return np.stack([log_p0, log_p1], axis=-1)[:, np.searchsorted(points, queries)]
        members = hypotheses.members()
        lost = mistakes(hypotheses, members, points, counts)
        log_weights = log_softmax(-self.epsilon / 2 * lost, axis=1)
        return log_probabilities(log_weights, hypotheses.predict(members, queries))

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
        return self.kind, float(many * k * (1 if hypotheses.free else len(hypotheses.members())))

    def guaranteed_stability(self, n: int) -> float:
        """tanh(ε/4)."""
        return exponential_stability(self.epsilon)

    def guaranteed_privacy_loss(self, n: int) -> float:
        """ε."""
        return self.epsilon
