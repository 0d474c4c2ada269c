"""The uniformly stable learner: in goes γ, out come n' and β of a subsampled exponential mechanism."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, Le

from predcube.tasks.learners.subsampled import Subsampled, as_written


@dataclass(frozen=True, slots=True, kw_only=True)
class Stable(Subsampled):
    """Exponential mechanism over H_T for a random subset T of n' points of S.

    convention "proof": n' = ⌊γn⌋, β = γ/2; the paper proves stability n'/n + 2γ.
    convention "outline": n' = ⌊γn/2⌋, β = γ/8; this one is γ-stable itself.
    ``subset_size`` (an integer n') or ``subset_fraction`` (n' = ⌊fraction·n⌋) replaces n', ``beta`` replaces β.
    Infinite privacy loss on most classes: a hypothesis may lose its only point.
    """

    kind: ClassVar[str] = "stable"
    source: ClassVar[str] = "Dagan & Feldman 2020, Lemma stable-main and its outline"

    gamma: Annotated[float, Gt(0)] | None = None
    convention: Literal["proof", "outline"] = "proof"
    subset_size: Annotated[int, Ge(1)] | None = None
    subset_fraction: Annotated[float, Gt(0), Le(1)] | None = None
    beta: Annotated[float, Ge(0)] | None = None

    @property
    def _gamma(self) -> Fraction | None:
        return None if self.gamma is None else as_written(self.gamma)
