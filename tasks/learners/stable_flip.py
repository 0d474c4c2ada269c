"""The stable learner made private: in go ε and α, out comes `stable` whose answer is flipped with probability α."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, Le

from predcube.tasks.learners.subsampled import Subsampled, as_written


@dataclass(frozen=True, slots=True, kw_only=True)
class StableFlip(Subsampled):
    """p ← (1 − 2α)p + α after `stable` with a γ that follows from ε and α.

    convention "proof": γ = εα/2 as in the paper's body, n' = ⌊γn⌋, β = γ/2. ε-private by the bound
    ε_g = ln(1 + (1 − 2α)γ_g/α), not by the paper's constant 3γ (which would give 1.37ε at ε = .1, α = .01).
    convention "outline": γ = εα/2 with the outline's inner learner, n' = ⌊γn/2⌋, β = γ/8.
    convention "introduction": γ = εα as the introduction says, else as "proof"; its inner learner is 1.25γ-stable at
    worst, so ε_g may exceed ε.
    ``subset_size``, ``subset_fraction`` and ``beta`` replace n' and β as for `stable`; ε_g follows from what is used.
    """

    kind: ClassVar[str] = "stable_flip"
    source: ClassVar[str] = "Dagan & Feldman 2020, Corollary sta-to-pri"

    epsilon: Annotated[float, Gt(0)]
    alpha: Annotated[float, Gt(0), Le(0.5)]
    convention: Literal["proof", "outline", "introduction"] = "proof"
    subset_size: Annotated[int, Ge(1)] | None = None
    subset_fraction: Annotated[float, Gt(0), Le(1)] | None = None
    beta: Annotated[float, Ge(0)] | None = None

    @property
    def _gamma(self) -> Fraction | None:
        product = as_written(self.epsilon) * as_written(self.alpha)
        return product if self.convention == "introduction" else product / 2

    @property
    def flip(self) -> float:
        return self.alpha
