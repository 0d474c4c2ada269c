"""Laws whose points are independent of each other: in goes a class, out come its kinds of points.

The labels are a function drawn uniformly from {0, 1}^X before the sample, so each point's label is a fair coin, and
what a sample says of one point says nothing of another's label.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from predcube.tasks.distributions.base import Distribution, Draw
from predcube.tasks.distributions.populations import FinitePopulation, flipped, labelled_law
from predcube.tasks.hypotheses.base import HypothesisClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """``times`` points of X, each of probability ``weight``, whose records carry the other label with probability
    ``noise`` < ½."""

    times: int
    weight: float
    noise: float = 0.0


class Symmetric(Distribution):
    """A law on a finite X that the class shatters, with random labels."""

    __slots__ = ()

    @property
    @abstractmethod
    def smallest_domain(self) -> int:
        """The fewest points of X."""

    @abstractmethod
    def alike(self, hypotheses: HypothesisClass) -> tuple[Point, ...]:
        """The kinds of points, in the order of X."""

    def unsuitable(self, hypotheses: HypothesisClass) -> str | None:
        domain = hypotheses.domain
        if domain is None:
            return f"distribution {self.kind!r} needs a finite X that the class shatters; use the cube"
        if len(domain) < self.smallest_domain:
            return f"distribution {self.kind!r} needs at least {self.smallest_domain} points; give more points"
        if hypotheses.vc_dimension < len(domain):
            return (
                f"distribution {self.kind!r} needs a class that shatters X; {hypotheses.kind!r} has VC dimension "
                f"{hypotheses.vc_dimension} on {len(domain)} points; use the cube"
            )
        return None

    def infeasible(self, n: int) -> str | None:
        return None if n >= 1 else f"n = {n}: a sample has at least one example"

    def draw(self, hypotheses: HypothesisClass, n: int, rng: np.random.Generator) -> Draw:
        domain = hypotheses.domain
        if domain is None or len(domain) < self.smallest_domain:
            raise ValueError(self.unsuitable(hypotheses))
        kinds = self.alike(hypotheses)
        labels = rng.integers(2, size=len(domain)).astype(np.uint8)
        weights = np.repeat([k.weight for k in kinds], [k.times for k in kinds])
        place = rng.choice(len(domain), size=n, p=weights)
        noise = kinds[0].noise
        population = FinitePopulation(points=domain, law=labelled_law(labels, weights, noise))
        y = flipped(labels[place], noise, rng) if noise else labels[place]
        return Draw(x=domain[place], y=y, population=population)
