"""What every noise scheme offers: in go a release's moments, out comes the covariance of the noise that is added to it.

The release is λ + Δ, Δ of mean 0 and covariance S_tot, drawn once. Beside what the attacker's rows say it counts as
S_eff = m·S_tot (m from the process). A scheme is a shape S_0 and an amount: S_eff = amount·S_0, so that a sweep over
amounts factors a matrix once.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

type Array = NDArray[np.float64]

MOST = 1e150
"""The largest standard deviation of noise whose square, with all that it is multiplied by, is still a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a scheme may look at.

    curvature: (d, d) K = E ∂g/∂γ and units: (d, d) W, γ = Wλ, so that G = E ∂g/∂λ = KW. released: (d, d) γ → λ, and
    fixed: (c, d) combinations of λ that no data move, both as in ``releases.base.Fitted``. root: (d, k) B with V = B
    Bᵀ, k the rank of V. members: sizes of a stack's members, in order; (d,) for one release.
    """

    curvature: Array
    units: Array
    released: Array
    fixed: Array
    root: Array
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A root of S_0 = L Lᵀ in the coordinates of a release, each (d, l), l = 0 without noise.

    released: L, of λ. scaled: WL, of γ. moments: F = GL, of g, so that G S_0 Gᵀ = F Fᵀ. terms: (d, l) the absolute
    values that entries of F are sums of, which their rounding is a part of. seen: (c, l) what the combinations of λ
    that no data move show of the noise.
    """

    released: Array
    scaled: Array
    moments: Array
    terms: Array
    seen: Array

    @classmethod
    def of(cls, released: Array, setting: Setting) -> "Shape":
        """The shape of noise that is given in the released coordinates."""
        scaled = setting.units @ released
        return cls(
            released=released,
            scaled=scaled,
            moments=setting.curvature @ scaled,
            terms=np.abs(setting.curvature) @ np.abs(scaled),
            seen=setting.fixed @ released,
        )

    @classmethod
    def like(cls, scaled: Array, moments: Array, setting: Setting) -> "Shape":
        """The shape of noise like the release's own errors, which move no combination that the data do not."""
        return cls(
            released=setting.released @ scaled,
            scaled=scaled,
            moments=moments,
            terms=np.abs(moments),
            seen=np.zeros((len(setting.fixed), scaled.shape[1])),
        )


def undone(curvature: Array, moments: Array) -> Array:
    """γ (d, l) with Kγ = ``moments``, 0 in coordinates that the data do not determine: those whose row of K is 0."""
    rows = np.flatnonzero(np.any(curvature != 0, axis=1))
    columns = np.flatnonzero(np.any(curvature != 0, axis=0))
    found = np.zeros(moments.shape)
    inner = curvature[np.ix_(rows, columns)]
    sizes = np.max(np.abs(inner), axis=1, initial=0.0)[:, None]
    try:
        found[columns] = np.linalg.solve(inner / sizes, moments[rows] / sizes)
    except np.linalg.LinAlgError:
        found[columns] = np.linalg.pinv(inner) @ moments[rows]
    return found


class Noise(ABC):
    """A noise scheme. Concrete ones are frozen, keyword-only dataclasses whose fields are the spec's words."""

    __slots__ = ()

    kind: ClassVar[str]
    source: ClassVar[str]
    linear_attacker: ClassVar[bool] = False
    """True where ``sharp`` is the value of the best LINEAR attacker, whom a Bayes attacker exceeds (Laplace)."""

    @abstractmethod
    def shape(self, setting: Setting) -> Shape:
        """A root of S_0. ValueError where the scheme has no meaning for the release."""

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
