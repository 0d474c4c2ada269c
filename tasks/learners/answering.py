"""Predictors that are no mixture of hypotheses: in go queries, out come their answers' probabilities there.

A vote passed through a curve is not linear in the voters, so such a learner is known by its answers at given queries
alone; errors follow from the answers at the queries that a population asks for (``Population.quadrature``).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import Points


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """ln Pr[answer y] before any flip at ``queries``: ``log_p`` (Q, 2), each column its own sum. ``standard_error``
    (Q,) is of p, zeros where ``exact``; ``batches`` (B, Q) are the p of independent equal batches of ``mc``."""

    queries: Points
    log_p: NDArray[np.float64]
    method: str
    batches: NDArray[np.float64] | None = None
    subsets: int = 0

    @property
    def standard_error(self) -> NDArray[np.float64]:
        if self.batches is None:
            return np.zeros(len(self.log_p))
        return np.asarray(self.batches.std(axis=0, ddof=1) / np.sqrt(len(self.batches)))

    def error(self, mass: NDArray[np.float64]) -> float:
        """Σ_q Pr[1]·mass[q, 0] + Pr[0]·mass[q, 1], the probability that a record of a law with ``mass`` (Q, 2) at the
        queries gets the other answer."""
        return float((np.exp(self.log_p[:, ::-1]) * mass).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSample:
    """The workload, in one block, of a learner's own ``batch`` on one sample: ``sample`` is (1, n) types or (1, k, 2)
    counts, as the learner takes it."""

    learner: Any
    hypotheses: Any
    points: Points
    sample: NDArray[np.int64]
    queries: Points
    method: str
    cost: float

    @property
    def blocks(self) -> int:
        return 1

    def partial(self, block: int) -> Answers:
        log_p = self.learner.batch(self.hypotheses, self.points, self.sample, self.queries, method=self.method)[0]
        return Answers(queries=self.queries, log_p=log_p, method=self.method)

    def finish(self, total: Answers) -> Any:
        return total
