"""Sampled subsets: in go a seed and a number of subsets, out come weights with the means of independent batches.

Always true: the subsets of a batch follow from (seed, n, n', batch) alone, never from the data or from which worker
draws them; the batches are equal in size, so that their spread gives a standard error for any linear functional.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.mixture import subsets, visits
from predcube.tasks.mixture.base import MixtureWeights, Occupancy
from predcube.tasks.seeds import stream

BATCHES = 64
"""With 63 degrees of freedom four standard errors are exceeded in one case of 6,000."""
SAMPLES = 2**14
"""Subsets unless asked: a standard error of p is then at most .004."""
BLOCK = 2**20
"""Elements of subsets drawn in one block: 8 MB of point indices. Blocks hold whole batches, or pieces of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonteCarlo:
    """The workload of ``samples`` random subsets, rounded up to equal batches. ``sample`` has occupied points only."""

    hypotheses: HypothesisClass
    sample: Occupancy
    subset_size: int
    beta: float
    samples: int = SAMPLES
    seed: int = 0

    @property
    def each(self) -> int:
        """Subsets in a batch."""
        return -(-self.samples // BATCHES)

    @property
    def _pieces(self) -> int:
        """Blocks a batch is cut into."""
        return max(1, -(-self.each * self.subset_size // BLOCK))

    @property
    def _whole(self) -> int:
        """Batches a block holds (a power of two), when it holds whole ones."""
        fit = max(1, BLOCK // (self.each * self.subset_size))
        return int(min(BATCHES, 2 ** (fit.bit_length() - 1)))

    @property
    def blocks(self) -> int:
        return BATCHES * self._pieces if self._pieces > 1 else BATCHES // self._whole

    @property
    def cost(self) -> float:
        return 8.0 * self.subset_size * self.each * self._whole / self._pieces

    @property
    def _log_scale(self) -> NDArray[np.float64]:
        points = self.sample.points
        losses = self.hypotheses.loss(self.hypotheses.representatives(points), points, self.sample.counts)
        return np.asarray(self.beta * (losses[0] - losses[:0:-1]))

    @property
    def _additive(self) -> bool:
        return self.hypotheses.additive and bool(np.abs(self._log_scale).max() <= visits.RANGE)

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
            subsets.sampled(stream(self.seed, "subsets", n, size, batch, piece), length, n, size)
            for batch, piece, length in wanted
        ]
        groups = np.repeat([w[0] for w in wanted], [w[2] for w in wanted])
        return np.concatenate(rows), groups

    def partial(self, block: int) -> visits.Sums:
        place = np.repeat(np.arange(len(self.sample.points)), self.sample.counts.sum(axis=1))
        rows, groups = self._drawn(block)
        if self._additive:
            return visits.additive(self._log_scale, place[rows], groups)
        return visits.general(self.hypotheses, self.sample, self.beta, place[rows], groups)

    def finish(self, total: visits.Sums) -> MixtureWeights:
        representatives, logs = total.representatives, total.logs - np.log(self.each)
        if self._additive:
            representatives = self.hypotheses.representatives(self.sample.points)
            logs = np.concatenate([logs[:, :1], logs[:, :0:-1]], axis=1)
        return MixtureWeights(
            representatives=representatives,
            log_weights=np.logaddexp.reduce(logs, axis=0) - np.log(BATCHES),
            method="mc",
            batches=np.exp(logs),
            subsets=self.each * BATCHES,
        )
