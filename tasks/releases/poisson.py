"""Poisson regression as a release."""

from dataclasses import dataclass
from typing import ClassVar

from predcube.tasks.releases.likelihoods import Likelihood


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson(Likelihood):
    """λ minimises mean e^η − yη + (l2/2)|w|², η = λ_0 + xᵀw, y ≥ 0 (log link)."""

    kind: ClassVar[str] = "poisson"
    loss: ClassVar[str] = "poisson"
