"""Private prediction where some hypothesis fits: in go votes of chunks, out comes the exponential mechanism's label."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt, Lt
from numpy.typing import NDArray
from scipy.special import log_expit

from predcube.tasks.bounds import exponential_stability
from predcube.tasks.learners.chunks import Chunked
from predcube.tasks.parameters import check


def vote_chunks(epsilon: float, alpha: float) -> int:
    """r = ⌈6 ln(4/α)/ε⌉, as many chunks as keep an answer that all but a third of them give from turning.

    >>> vote_chunks(1.0, 0.1)
    23
    """
    return math.ceil(6.0 * math.log(4.0 / alpha) / epsilon)


def log_vote(ones: NDArray[np.int64], chunks: int, epsilon: float) -> NDArray[np.float64]:
    """ln Pr[answer y] of σ(ε(c1 − c0)/2) where ``ones`` (…) of the chunks vote 1: (…, 2), y last."""
    odds = epsilon / 2 * (2 * ones - chunks)
    return np.stack([log_expit(-odds), log_expit(odds)], axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DfRealizable(Chunked):
    """P(1) = σ(ε(c1 − c0)/2) from the votes c1, c0 of r = ⌈6 ln(4/α)/ε⌉ chunks, each with a consistent hypothesis
    (the least wrong where none fits).

    One record takes a vote from one label and gives it to the other, so that c1 − c0 moves by 2: ε/2 a vote costs ε.
    ``chunks`` replaces r.
    """

    kind: ClassVar[str] = "df_realizable"
    source: ClassVar[str] = "Dwork & Feldman 2018, Theorem 4.1"

    epsilon: Annotated[float, Gt(0)]
    alpha: Annotated[float, Gt(0), Lt(1)]
    chunks: Annotated[int, Ge(1)] | None = None

    def __post_init__(self) -> None:
        check(self)

    @property
    def _chunks(self) -> int:
        return self.chunks if self.chunks is not None else vote_chunks(self.epsilon, self.alpha)

    def _log_answers(self, ones: NDArray[np.int64]) -> NDArray[np.float64]:
        return log_vote(ones, self._chunks, self.epsilon)

    def guaranteed_stability(self, n: int) -> float:
        """tanh(ε/4): the odds move by e^ε at most."""
        return exponential_stability(self.epsilon)

    def guaranteed_privacy_loss(self, n: int) -> float:
        """ε."""
        return self.epsilon
