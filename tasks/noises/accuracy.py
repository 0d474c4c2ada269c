"""What calibrated noise costs a linear regression at most: in go rows, out come the bounds of P2 Theorem 4.4."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.frames import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """Of rows with predictors x = (1, features) and residuals e = xᵀλ − y: how many, max|x|², Σe², max e²."""

    rows: int
    reach: float
    squares: float
    largest: float

    def add(self, other: Self) -> Self:
        return type(self)(
            rows=self.rows + other.rows,
            reach=max(self.reach, other.reach),
            squares=self.squares + other.squares,
            largest=max(self.largest, other.largest),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualsOf:
    """Asks a pass for the residuals of a linear release. coefficients: (d,) λ; inputs are target, features."""

    coefficients: NDArray[np.float64]

    def __call__(self, frame: Frame) -> Residuals:
        features = frame.inputs[:, 1:]
        squared = (self.coefficients[0] + features @ self.coefficients[1:] - frame.inputs[:, 0]) ** 2
        reach = 1.0 + np.einsum("ij,ij->i", features, features)
        return Residuals(
            rows=frame.rows,
            reach=float(reach.max(initial=0.0)),
            squares=float(squared.sum()),
            largest=float(squared.max(initial=0.0)),
        )


def cost_bounds(residuals: Residuals, utility: NDArray[np.float64], sigma2: float) -> tuple[float, float]:
    """Both terms of Theorem 4.4's minimum, for S_tot = sigma2·E[xxᵀ]⁻¹E[e²xxᵀ]E[xxᵀ]⁻¹ (sigma2 = level/m):

    sigma2·max|x|²/λ_min(E xxᵀ)·mean e², and sigma2·d·max e². utility: (d, d) E xxᵀ. The first is ∞ where E xxᵀ is
    singular.
    """
    least = float(np.linalg.eigvalsh(utility)[0])
    mean = residuals.squares / residuals.rows
    first = sigma2 * residuals.reach / least * mean if least > 0 else np.inf
    return float(first), float(sigma2 * len(utility) * residuals.largest)
