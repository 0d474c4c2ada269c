"""Logistic regression as a release."""

from dataclasses import dataclass
from typing import ClassVar

from predcube.tasks.releases.likelihoods import Likelihood


@dataclass(frozen=True, slots=True, kw_only=True)
class Logistic(Likelihood):
    """λ minimises mean ln(1 + e^η) − yη + (l2/2)|w|², η = λ_0 + xᵀw, y in {0, 1}.

    Separated data (complete or quasi-complete) have no finite λ and are refused, unless l2 > 0."""

    kind: ClassVar[str] = "logistic"
    loss: ClassVar[str] = "logistic"
