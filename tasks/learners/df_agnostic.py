"""Private prediction by a noisy mean: in go votes of chunks, out comes the mean of their share plus noise, clipped."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt
from numpy.typing import NDArray

from predcube.tasks.bounds import private_stability
from predcube.tasks.learners.chunks import Chunked
from predcube.tasks.parameters import check


def clipped_mean(share: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """E of v plus Laplace noise of scale b, clipped to [0, 1], v ∈ [0, 1]: v + (b/2)(e^{−v/b} − e^{−(1−v)/b}).

    The noise spends b/2·e^{−v/b} on average below 0 and b/2·e^{−(1−v)/b} above 1. Relative precision for all v: below
    ½ both terms are positive, above it the second is at most half of v.

    >>> round(float(clipped_mean(np.array(0.3), 0.2)), 6)
    0.319293
    """
    away = (1.0 - 2.0 * share) / scale
    # e^{−v/b} − e^{−(1−v)/b}, from the larger of the two.
    near = np.exp(-np.minimum(share, 1.0 - share) / scale)
    return np.asarray(share - np.sign(away) * scale / 2 * near * np.expm1(-np.abs(away)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DfAgnostic(Chunked):
    """P(1) = E clip(v + noise, 0, 1): v is the share of r ``chunks`` whose least wrong hypothesis says 1, the noise is
    Laplace of scale 1/(εr).

    One record moves v by 1/r, hence ε-private; the clipped mean moves no faster than v, hence 1/r-stable.
    """

    kind: ClassVar[str] = "df_agnostic"
    source: ClassVar[str] = "Dwork & Feldman 2018, section 4 (agnostic)"

    epsilon: Annotated[float, Gt(0)]
    chunks: Annotated[int, Ge(1)]

    def __post_init__(self) -> None:
        check(self)

    @property
    def _chunks(self) -> int:
        return self.chunks

    def _log_answers(self, ones: NDArray[np.int64]) -> NDArray[np.float64]:
        scale = 1.0 / (self.epsilon * self.chunks)
        counts = np.stack([self.chunks - ones, ones], axis=-1)
        return np.log(clipped_mean(counts / self.chunks, scale))

    def guaranteed_stability(self, n: int) -> float:
        """The lesser of 1/r and tanh(ε/2)."""
        return min(1.0 / self.chunks, private_stability(self.epsilon))

    def guaranteed_privacy_loss(self, n: int) -> float:
        """ε."""
        return self.epsilon
