"""Averaging: in go chunks of the sample, out comes the plain mean of the hypotheses trained on each."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray

from predcube.tasks.learners.base import HypothesisClass, MixtureWeights, Occupancy, Workload
from predcube.tasks.learners.chunks import Chunked, lengths
from predcube.tasks.learners.records import Records, counted
from predcube.tasks.mixture.full import Single
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsampleAverage(Chunked):
    """The hypothesis of least error on one of r ``chunks``, each chunk with probability 1/r.

    One record touches one chunk: 1/r-stable. Infinite privacy loss, as a vote may be the only one for its label.
    """

    kind: ClassVar[str] = "subsample_average"
    source: ClassVar[str] = "Shalev-Shwartz, Shamir, Srebro & Sridharan 2010"

    chunks: Annotated[int, Ge(1)]

    def __post_init__(self) -> None:
        check(self)

    @property
    def mixes(self) -> bool:
        return True

    @property
    def _chunks(self) -> int:
        return self.chunks

    def _log_answers(self, ones: NDArray[np.int64]) -> NDArray[np.float64]:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.stack([self.chunks - ones, ones], axis=-1)) - math.log(self.chunks))

    def workload(self, hypotheses: HypothesisClass, sample: Occupancy, **options: Any) -> Workload:
        _, cost = self.operations(hypotheses, "exact", k=len(sample.points), n=sample.n)
        return Single(compute=partial(_mean, hypotheses, sample, self.chunks), cost=cost)

    def guaranteed_stability(self, n: int) -> float:
        """1/r."""
        return 1.0 / self.chunks

    def guaranteed_privacy_loss(self, n: int) -> float:
        return math.inf


def _mean(hypotheses: HypothesisClass, sample: Occupancy, chunks: int) -> MixtureWeights:
    """The mixture of the chunks' hypotheses, equal ones counted together."""
    assert isinstance(sample, Records)
    found = []
    for types in np.split(sample.order, np.cumsum(lengths(sample.n, chunks))[:-1]):
        counts = counted(types[None], len(sample.points))[0]
        held = counts.any(axis=1)
        found.append(hypotheses.best(sample.points[held], counts[held]))
    distinct, times = np.unique(np.concatenate(found), axis=0, return_counts=True)
    return MixtureWeights(representatives=distinct, log_weights=np.log(times) - math.log(chunks), method="exact")
