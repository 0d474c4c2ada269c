"""Mixtures that draw no subset: the exponential mechanism over all of H, and one hypothesis with all the weight.

In go a class and a sample, out comes a workload like any other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.mixture.analytic import corners, whole_marginals
from predcube.tasks.mixture.base import (
    LEAF_OPERATIONS,
    Marginals,
    Mixture,
    MixtureWeights,
    Occupancy,
    Workload,
    log_sum,
)
from predcube.tasks.mixture.samples import occupied


@dataclass(frozen=True, slots=True, kw_only=True)
class Single:
    """The workload of a mixture that is one block: its partial result is the mixture itself. ``compute`` is a
    ``functools.partial`` of a function of a module, so that the workload may travel."""

    compute: Callable[[], Mixture]
    cost: float

    @property
    def blocks(self) -> int:
        return 1

    def partial(self, block: int) -> Mixture:
        return self.compute()

    def finish(self, total: Mixture) -> Mixture:
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """−β·n·L_S(h) of a run of hypotheses, in order."""

    values: NDArray[np.float64]

    def add(self, other: Self) -> Self:
        return type(self)(values=np.concatenate([self.values, other.values]))


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeClass:
    """The workload of the exponential mechanism over every member of a finite class, in blocks of hypotheses."""

    hypotheses: HypothesisClass
    sample: Occupancy
    beta: float
    size: int

    @property
    def _rows(self) -> int:
        return max(1, LEAF_OPERATIONS // (4 * len(self.sample.points)))

    @property
    def blocks(self) -> int:
        return -(-self.size // self._rows)

    @property
    def cost(self) -> float:
        return 4.0 * len(self.sample.points) * min(self._rows, self.size)

    def partial(self, block: int) -> Logs:
        rows = self.hypotheses.members()[block * self._rows : (block + 1) * self._rows]
        return Logs(values=-self.beta * self.hypotheses.loss(rows, self.sample.points, self.sample.counts))

    def finish(self, total: Logs) -> MixtureWeights:
        return MixtureWeights(
            representatives=self.hypotheses.members(),
            log_weights=total.values - log_sum(total.values),
            method="exact",
        )


def full_mixture(hypotheses: HypothesisClass, sample: Occupancy, *, beta: float, weights: bool = False) -> Workload:
    """Weights ∝ exp(−β·n·L_S(h)) over all of a finite H; a function that a class lists twice counts twice.

    β = ε/2 is the ε-private exponential mechanism (Kasiviswanathan et al. 2011). On a ``free`` class the result is
    ``Marginals`` over the points of X, unless ``weights`` asks for the weight of each function. Raises ValueError
    where H is infinite.
    """
    if hypotheses.free and hypotheses.domain is not None and not weights:
        return Single(compute=partial(_free_mixture, hypotheses, sample, beta), cost=16.0 * len(hypotheses.domain))
    return WholeClass(hypotheses=hypotheses, sample=sample, beta=beta, size=len(hypotheses.members()))


def point_mass(hypotheses: HypothesisClass, sample: Occupancy) -> Workload:
    """All weight on the first minimiser of L_S, in canonical order, among the representatives of S's points."""
    return Single(compute=partial(_best, hypotheses, sample), cost=float(len(sample.points)))


def _free_mixture(hypotheses: HypothesisClass, sample: Occupancy, beta: float) -> Marginals:
    domain = hypotheses.domain
    assert domain is not None
    counts = np.zeros((len(domain), 2), dtype=np.int64)
    counts[np.searchsorted(domain, sample.points)] = sample.counts
    log_p1, log_p0 = whole_marginals(counts, beta=beta)
    return Marginals(representatives=corners(hypotheses, domain), log_p1=log_p1, log_p0=log_p0, method="exact")


def _best(hypotheses: HypothesisClass, sample: Occupancy) -> MixtureWeights:
    sample = occupied(sample)
    best = hypotheses.best(sample.points, sample.counts)
    return MixtureWeights(representatives=best, log_weights=np.zeros(1), method="exact")
