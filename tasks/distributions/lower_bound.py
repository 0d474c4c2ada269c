"""The instance on which every stable learner needs many examples."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt, Le

from predcube.tasks.distributions.base import Distribution, Draw
from predcube.tasks.distributions.populations import FinitePopulation, labelled_law
from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBound(Distribution):
    """d shattered points: Pr[x = k] = 4α/(d − 1) for each but the last, 1 − 4α for the last; the labels are a
    function drawn uniformly from {0, 1}^d before the sample, anew in each trial and part of its population."""

    alpha: Annotated[float, Gt(0), Le(0.25)]

    kind: ClassVar[str] = "lower_bound"
    source: ClassVar[str] = "Dagan & Feldman 2020, Theorem sta-lb (proof)"

    def __post_init__(self) -> None:
        check(self)

    def unsuitable(self, hypotheses: HypothesisClass) -> str | None:
        domain = hypotheses.domain
        if domain is None:
            return "distribution 'lower_bound' needs a finite X that the class shatters; use the cube"
        if len(domain) < 2:
            return "distribution 'lower_bound' needs at least 2 points; give more points"
        if hypotheses.vc_dimension < len(domain):
            return (
                f"distribution 'lower_bound' needs a class that shatters X; {hypotheses.kind!r} has VC dimension "
                f"{hypotheses.vc_dimension} on {len(domain)} points; use the cube"
            )
        return None

    def infeasible(self, n: int) -> str | None:
        return None if n >= 1 else f"n = {n}: a sample has at least one example"

    def draw(self, hypotheses: HypothesisClass, n: int, rng: np.random.Generator) -> Draw:
        domain = hypotheses.domain
        if domain is None or len(domain) < 2:
            raise ValueError(self.unsuitable(hypotheses))
        d = len(domain)
        labels = rng.integers(2, size=d).astype(np.uint8)
        weights = np.full(d, 4.0 * self.alpha / (d - 1))
        weights[-1] = 1.0 - 4.0 * self.alpha
        place = rng.choice(d, size=n, p=weights)
        population = FinitePopulation(points=domain, law=labelled_law(labels, weights, 0.0))
        return Draw(x=domain[place], y=labels[place], population=population)
