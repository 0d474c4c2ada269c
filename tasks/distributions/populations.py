"""Populations whose law is known: in go hypotheses, out come their exact errors and the least error of a class."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Points, Representatives

FINITE = "take a finite X or a table for the error of a predictor that is no mixture of hypotheses"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FinitePopulation:
    """A law on a finite X: ``law[j, y]`` = Pr[x = points[j], label = y], shape (k, 2), sum 1."""

    points: Points
    law: NDArray[np.float64]

    @property
    def exact(self) -> bool:
        return True

    def errors(self, hypotheses: HypothesisClass, representatives: Representatives) -> NDArray[np.float64]:
        """L_D(h) = Σ_x Pr[x, 1 − h(x)]: shape (M,)."""
        return hypotheses.loss(representatives, self.points, self.law)

    def least_error(self, hypotheses: HypothesisClass) -> float:
        """min_H L_D(h), kept for the population's next trial."""
        return _least_error(self, hypotheses)

    def quadrature(self, hypotheses: HypothesisClass, points: Points) -> tuple[Points, NDArray[np.float64]]:
        """X itself and the law."""
        return self.points, self.law


@lru_cache(maxsize=128)
def _least_error(population: FinitePopulation, hypotheses: HypothesisClass) -> float:
    best = hypotheses.best(population.points, population.law)
    return float(population.errors(hypotheses, best)[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UniformPopulation:
    """x uniform on [0, 1]^features, labelled by a concept of the class and flipped with probability ``noise`` ≤ ½."""

    concept: Representatives  # (1,) or (1, parameters)
    noise: float

    @property
    def exact(self) -> bool:
        return True

    def errors(self, hypotheses: HypothesisClass, representatives: Representatives) -> NDArray[np.float64]:
        """L_D(h) = noise + (1 − 2 noise) Pr[h(x) ≠ c(x)]: shape (M,)."""
        return self.noise + (1.0 - 2.0 * self.noise) * hypotheses.disagreement(representatives, self.concept)

    def least_error(self, hypotheses: HypothesisClass) -> float:
        """The concept's own error, since it belongs to the class and noise ≤ ½."""
        return self.noise

    def quadrature(self, hypotheses: HypothesisClass, points: Points) -> tuple[Points, NDArray[np.float64]]:
        """A query in each piece into which the sample's points and the concept's own cuts divide [0, 1], with the
        piece's length as its probability."""
        if hypotheses.features > 1:
            raise ValueError(f"{hypotheses.kind} with {hypotheses.features} features: no pieces of a line; {FINITE}")
        # A concept on the line is told by its cuts; other numbers of its row divide a piece to no harm.
        cuts = np.concatenate(
            [np.asarray(points, dtype=np.float64), np.asarray(self.concept, dtype=np.float64).ravel()]
        )
        ends = np.unique(np.clip(cuts[np.isfinite(cuts)], 0.0, 1.0))
        ends = np.union1d(ends, [0.0, 1.0])
        middles = ends[:-1] / 2 + ends[1:] / 2
        return middles, labelled_law(hypotheses.predict(self.concept, middles)[0], np.diff(ends), self.noise)


def labelled_law(labels: NDArray[np.uint8], weights: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Pr[x, y] for points of probability ``weights`` (k,) whose ``labels`` (k,) are flipped with probability
    ``noise``: shape (k, 2)."""
    ones = np.where(labels == 1, 1.0 - noise, noise)
    zeros = np.where(labels == 1, noise, 1.0 - noise)
    return np.column_stack([weights * zeros, weights * ones])


def flipped(labels: NDArray[np.uint8], noise: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """``labels`` (n,), each flipped with probability ``noise``."""
    return np.asarray(labels ^ (rng.random(len(labels)) < noise).astype(np.uint8), dtype=np.uint8)
