"""Ordinary least squares as a release."""

from dataclasses import dataclass
from typing import ClassVar

from predcube.tasks.releases.regressions import LeastSquares


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear(LeastSquares):
    """λ minimises mean ½(λ_0 + xᵀw − y)² + (l2/2)|w|². Of collinear features the solution of least norm in units of
    their standard deviations is released, and ``rank`` says so; g is that of the reduced design."""

    kind: ClassVar[str] = "linear"
