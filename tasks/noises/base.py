"""What every noise scheme offers: in go a release's moments, out comes the covariance of the noise that is added to it.

The release is λ + Δ, Δ of mean 0 and covariance S_tot, drawn once. Beside what the attacker's rows say it counts as
S_eff = m·S_tot (m from the process). A scheme is a shape S_0 and an amount: S_eff = amount·S_0, so that a sweep over
amounts factors a matrix once. Released coordinates are λ's; ``root`` gives F with G S_0 Gᵀ = F Fᵀ in g's.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a scheme may look at.

    jacobian: (d, d) G = E ∂g/∂λ. root: (d, k) B with V = B Bᵀ, k the rank of V. members: sizes of a stack's members, in
    order; (d,) for one release.
    """

    jacobian: NDArray[np.float64]
    root: NDArray[np.float64]
    members: tuple[int, ...]


class Noise(ABC):
    """A noise scheme. Concrete ones are frozen, keyword-only dataclasses whose fields are the spec's words."""

    __slots__ = ()

    kind: ClassVar[str]
    source: ClassVar[str]
    linear_attacker: ClassVar[bool] = False
    """True where ``sharp`` is the value of the best LINEAR attacker, whom a Bayes attacker exceeds (Laplace)."""

    @abstractmethod
    def shape(self, setting: Setting) -> NDArray[np.float64]:
        """F, shape (d, l), with G S_0 Gᵀ = F Fᵀ; l = 0 without noise."""

    @abstractmethod
    def amount(self, m: float) -> float:
        """The number that S_0 is multiplied by in S_eff = m·S_tot."""

    @property
    def key(self) -> tuple[Any, ...]:
        """Schemes of equal key have the same shape S_0."""
        return (self.kind,)

    def parameters(self) -> Mapping[str, Any]:
        """The parameters, named as in a spec."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]
