"""Voters trained on disjoint chunks: in go a sequence and a number of chunks, out come the votes at each query.

Chunks are those of ``numpy.array_split(range(n), r)``: runs of positions whose lengths differ by one at most, the
longer first. Each trains the first minimiser of its own error (a consistent hypothesis where one exists), as the
class's representative of the labelling of the chunk's points alone. One record sits in one chunk and moves one vote.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.points import locate
from predcube.tasks.learners.answering import OneSample
from predcube.tasks.learners.base import HypothesisClass, Learner, Occupancy, Points, Workload
from predcube.tasks.learners.erm import Erm
from predcube.tasks.learners.records import Records, counted

TRAINED = 2**22
"""Counts of types held at once while chunks are trained."""


def lengths(n: int, chunks: int) -> NDArray[np.int64]:
    """The lengths of r chunks of n records: (r,).

    >>> lengths(8, 3).tolist()
    [3, 3, 2]
    """
    return n // chunks + (np.arange(chunks) < n % chunks).astype(np.int64)


def votes(
    hypotheses: HypothesisClass, points: Points, types: NDArray[np.int64], queries: Points, *, chunks: int
) -> NDArray[np.int64]:
    """How many of the chunks' hypotheses say 1 at each query: ``types`` (B, n) over ``points`` (k,) → (B, Q). Equal
    chunks are trained once."""
    found = np.zeros((len(types), len(queries)), dtype=np.int64)
    sizes = lengths(types.shape[1], chunks)
    stops = np.cumsum(sizes)
    for size in np.unique(sizes):
        which = np.flatnonzero(sizes == size)
        rows = np.stack([np.sort(types[:, stops[c] - size : stops[c]], axis=1) for c in which], axis=1)
        distinct, place = np.unique(rows.reshape(-1, size), axis=0, return_inverse=True)
        said = _trained(hypotheses, points, distinct, queries)
        found += said[place.reshape(len(types), len(which))].sum(axis=1)
    return found


def _trained(
    hypotheses: HypothesisClass, points: Points, rows: NDArray[np.int64], queries: Points
) -> NDArray[np.int64]:
    """What the hypothesis trained on each row of types says: (U, m) → (U, Q) of 0 and 1."""
    said = np.zeros((len(rows), len(queries)), dtype=np.int64)
    step = max(1, TRAINED // (2 * len(points)))
    where = locate(points, queries) if hypotheses.free else None
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        counts = counted(rows[block], len(points))
        if where is not None:  # point by point: 1 where strictly more of the chunk's records say so, 0 off the chunk
            ones = (counts[:, :, 1] > counts[:, :, 0])[:, where]
            said[block] = ones & (where >= 0)
        else:
            said[block] = np.isfinite(Erm().batch(hypotheses, points, counts, queries, method="exact")[:, :, 1])
    return said


class Chunked(Learner):
    """A learner whose answer is a function of its chunks' votes. Concrete ones say into how many chunks, and how votes
    become probabilities."""

    __slots__ = ()

    @property
    def mixes(self) -> bool:
        return False

    @property
    def ordered(self) -> bool:
        return True

    @property
    @abstractmethod
    def _chunks(self) -> int:
        """r."""

    @abstractmethod
    def _log_answers(self, ones: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln Pr[answer y] where ``ones`` (…) of the r votes are for 1: (…, 2), each its own sum."""

    def derived(self, n: int) -> Mapping[str, Any]:
        """``chunks`` is r, ``chunk_size`` the length of the longest."""
        return {"chunks": self._chunks, "chunk_size": -(-n // self._chunks)}

    def infeasible(self, n: int, hypotheses: HypothesisClass) -> str | None:
        r = self._chunks
        return None if r <= n else f"{r} chunks are more than n = {n} records: raise n to {r} or more, or set chunks"

    def exchangeable(self, n: int) -> NDArray[np.int64]:
        return np.repeat(np.arange(self._chunks), lengths(n, self._chunks))

    def listed(self, n: int) -> int:
        return -(-n // self._chunks)

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
        _, cost = self.operations(hypotheses, "exact", k=len(sample.points), n=sample.n)
        return OneSample(
            learner=self,
            hypotheses=hypotheses,
            points=sample.points,
            sample=sample.order[None],
            queries=queries,
            method="exact",
            cost=cost,
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
        return self._log_answers(votes(hypotheses, points, counts, queries, chunks=self._chunks))

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
        """Training the first sample's r chunks and one more for each other sample, and adding up the votes."""
        size = min(self.listed(n), k)
        labelings = 1 if hypotheses.free else hypotheses.growth(size) or size**hypotheses.vc_dimension + 1
        trained = self._chunks + many - 1
        return "chunks", float(trained * (2e4 + size * labelings + 2 * k) + many * (k * self._chunks + 10 * n))
