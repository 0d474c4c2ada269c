"""Sampled subsets: in go a seed and a number of subsets, out come weights with the means of independent batches.

Always true: the subsets of a batch follow from (seed, n, n', round, batch) alone, never from the data or from which
worker draws them; the batches are equal in size, so that their spread gives a standard error for any linear functional.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.mixture import listings, subsets, visits
from predcube.tasks.mixture.base import Functional, Means, MixtureWeights, Occupancy, Workload, height, subtree
from predcube.tasks.seeds import stream

BATCHES, FEWEST_BATCHES = 64, 16
"""With 63 degrees of freedom four standard errors are exceeded in one case of 6,000, with 15 in one of 900."""
SAMPLES = 2**14
"""Subsets unless asked: a standard error of p is then at most .004."""
MOST_SAMPLES = 2**22
"""Subsets at most, unless asked, where a standard error is to be reached."""
FIRST_ROUND = 2**10
"""Subsets of the first round there."""
BLOCK = 2**20
"""Elements of subsets drawn in one block: 8 MB of point indices. Blocks hold whole batches, or pieces of one."""
KEPT = 2**25
"""Floats of the batches' sums that are kept (256 MB), as far as ``FEWEST_BATCHES`` allows."""


@dataclass(frozen=True, kw_only=True)  # no slots: tables are made once, where they are first needed
class MonteCarlo:
    """The workload of ``samples`` random subsets, rounded up to equal batches. ``sample`` has occupied points only.
    ``round``: which of several independent drawings this is. ``functional``, where given, is all that is wanted of the
    weights: see ``visits``."""

    hypotheses: HypothesisClass
    sample: Occupancy
    subset_size: int
    beta: float
    samples: int = SAMPLES
    seed: int = 0
    round: int = 0
    functional: Functional | None = None

    @cached_property
    def visitor(self) -> visits.Visitor:
        return visits.Visitor(
            hypotheses=self.hypotheses,
            sample=self.sample,
            size=self.subset_size,
            beta=self.beta,
            functional=self.functional,
        )

    @cached_property
    def batches(self) -> int:
        """How many there are: fewer where a batch's sums are large."""
        fit = KEPT // self.visitor.floats
        return BATCHES if fit >= BATCHES else max(FEWEST_BATCHES, 1 << max(fit, 1).bit_length() - 1)

    @property
    def each(self) -> int:
        """Subsets in a batch."""
        return -(-self.samples // self.batches)

    @property
    def _pieces(self) -> int:
        """Blocks a batch is cut into."""
        return max(1, -(-self.each * self.subset_size // BLOCK))

    @property
    def _whole(self) -> int:
        """Batches a block holds (a power of two), when it holds whole ones."""
        fit = max(1, BLOCK // (self.each * self.subset_size))
        return int(min(self.batches, 2 ** (fit.bit_length() - 1)))

    @property
    def blocks(self) -> int:
        return self.batches * self._pieces if self._pieces > 1 else self.batches // self._whole

    @property
    def cost(self) -> float:
        k = len(self.sample.points)
        one = 20.0 * self.subset_size + self.hypotheses.listing(k, min(k, self.subset_size))
        return one * self.each * self._whole / self._pieces

    def _drawn(self, block: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The subsets of a block as examples (L, n'), and their batches (L,)."""
        n, size = self.sample.n, self.subset_size
        if self._pieces > 1:
            batch, piece = divmod(block, self._pieces)
            length = self.each // self._pieces + (piece < self.each % self._pieces)
            wanted = [(batch, piece, length)]
        else:
            wanted = [(batch, 0, self.each) for batch in range(block * self._whole, (block + 1) * self._whole)]
        rows = [
            subsets.sampled(stream(self.seed, "subsets", n, size, self.round, batch, piece), length, n, size)
            for batch, piece, length in wanted
        ]
        groups = np.repeat([w[0] for w in wanted], [w[2] for w in wanted])
        return np.concatenate(rows), groups

    def partial(self, block: int) -> visits.Visited:
        return self.visitor.visit(*self._drawn(block))

    def finish(self, total: visits.Visited) -> MixtureWeights | Means:
        return self.mixture(total, self.each)

    def mixture(self, total: visits.Visited, each: int) -> MixtureWeights | Means:
        """The mixture from sums over ``each`` subsets in every batch."""
        batches = len(total.groups)
        effective = float(np.exp(2.0 * total.spread[1] - total.spread[2]))
        if isinstance(total, listings.Averages):
            assert self.functional is not None
            return Means(
                functional=self.functional,
                batches=total.sums / each,
                subsets=each * batches,
                effective_subsets=effective,
            )
        representatives, logs = self.visitor.weights(total)
        logs -= math.log(each)
        return MixtureWeights(
            representatives=representatives,
            log_weights=np.logaddexp.reduce(logs, axis=0) - math.log(batches),
            method="mc",
            batches=np.exp(logs),
            subsets=each * batches,
            effective_subsets=effective,
        )


@dataclass(frozen=True, kw_only=True)
class Sequential:
    """The workload of as many subsets as a standard error needs, in one block: when to stop follows from all subsets
    so far, so there is nothing to share out.

    Rounds of subsets are drawn, each as large as all before it, until every mean of ``start``'s functional has a
    standard error of at most ``standard_error``. Doubling keeps the interval after the last round near its level: the
    decision is taken a few times, not after every batch. ArithmeticError where ``samples`` subsets do not do.
    """

    start: MonteCarlo
    standard_error: float
    samples: int = MOST_SAMPLES

    @property
    def blocks(self) -> int:
        return 1

    @property
    def cost(self) -> float:
        return self.start.cost * self.start.blocks

    def partial(self, block: int) -> MixtureWeights | Means:
        functional = self.start.functional
        assert functional is not None
        drawing, each = self.start, 0
        total: Any = None  # Visited; all rounds give sums of one kind
        while True:
            found = subtree(drawing, height(drawing.blocks), 0)
            total = found if total is None else total.add(found)
            each += drawing.each
            mixture = self.start.mixture(total, each)
            reached = float(np.max(mixture.mean_standard_error(functional), initial=0.0))
            if reached <= self.standard_error:
                return mixture
            batches = self.start.batches
            if 2 * each * batches > self.samples:
                raise ArithmeticError(
                    f"mc: the standard error is {reached:.2g} after {each * batches:,} subsets and "
                    f"{self.standard_error:g} was asked for; raise samples (at most {self.samples:,} are drawn) or "
                    "standard_error"
                )
            drawing = replace(drawing, samples=each * batches, round=drawing.round + 1)

    def finish(self, total: MixtureWeights | Means) -> MixtureWeights | Means:
        return total


def aimed(
    workload: Workload, functional: Functional, *, standard_error: float | None = None, samples: int | None = None
) -> Workload:
    """The same computation for the sake of one functional's mean alone: mc then takes flat memory whatever the class,
    and stops at a ``standard_error`` of it where one is given (within ``samples`` subsets). An exact workload is
    returned as it is."""
    if not isinstance(workload, MonteCarlo):
        return workload
    if standard_error is None:
        return replace(workload, functional=functional)
    most = MOST_SAMPLES if samples is None else samples
    start = replace(workload, functional=functional, samples=min(FIRST_ROUND, most))
    return Sequential(start=start, standard_error=standard_error, samples=most)
