"""Losses ℓ(η, y) of a linear predictor η: in go arrays of η and y, out come values, slopes ∂ℓ/∂η, curvatures ∂²ℓ/∂η².

All are negative log-likelihoods up to a constant, convex in η, and evaluated without overflow where the result itself
is a number.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from predcube.tasks.releases.surveys import Marginals

type Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Loss(ABC):
    """One loss. Stateless: two of a kind are equal."""

    kind: ClassVar[str]
    resolution: ClassVar[float] = 0.0
    """A slope below this fraction of max(y, mean) is the rounding of an exact fit, and is 0."""

    @abstractmethod
    def value(self, eta: Floats, y: Floats) -> Floats:
        """ℓ, up to a function of y."""

    @abstractmethod
    def slope(self, eta: Floats, y: Floats) -> Floats:
        """∂ℓ/∂η = mean − y."""

    @abstractmethod
    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """∂²ℓ/∂η² ≥ 0."""

    @abstractmethod
    def refusal(self, target: Marginals, column: int) -> str | None:
        """Why no finite fit exists or the target is unfit, from its marginals; None where neither is so."""

    def start(self, mean: float) -> float:
        """The η that fits a target of this mean best without features."""
        return mean

    def scale(self, mean: float) -> float:
        """The curvature there, which makes objectives of order one."""
        return 1.0

    def margins(self, along: Floats, y: Floats) -> Floats:
        """For a direction that moves the predictors by ``along``: values that are all ≥ 0, and not all 0, exactly where
        the loss falls for ever along it, so that no finite minimum exists (Albert & Anderson 1984)."""
        return np.full_like(along, -1.0)


class Squared(Loss):
    """ℓ = ½(η − y)²."""

    __slots__ = ()
    kind = "squared"

    def value(self, eta: Floats, y: Floats) -> Floats:
        return 0.5 * np.square(eta - y)

    def slope(self, eta: Floats, y: Floats) -> Floats:
        return eta - y

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        return np.ones_like(eta)

    def refusal(self, target: Marginals, column: int) -> str | None:
        return None


class Logistic(Loss):
    """ℓ = ln(1 + e^η) − yη for y in {0, 1}."""

    __slots__ = ()
    kind = "logistic"

    def value(self, eta: Floats, y: Floats) -> Floats:
        return np.logaddexp(0.0, np.where(y > 0, -eta, eta))

    def slope(self, eta: Floats, y: Floats) -> Floats:
        # expit(η) − 1 would cancel for confident and right predictions.
        sign = np.where(y > 0, -1.0, 1.0)
        return sign * expit(sign * eta)

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        return expit(eta) * expit(-eta)

    def refusal(self, target: Marginals, column: int) -> str | None:
        low, high = target.low[column], target.high[column]
        if not target.binary[column]:
            return (
                f"must be 0 or 1 in every row, and its values go from {low:g} to {high:g}: make it 0/1 by an expression"
            )
        return f"is {low:g} in every row, so that no finite fit exists: choose one that varies" if low == high else None

    def start(self, mean: float) -> float:
        return float(np.log(mean) - np.log1p(-mean))

    def scale(self, mean: float) -> float:
        return mean * (1.0 - mean)

    def margins(self, along: Floats, y: Floats) -> Floats:
        return np.where(y > 0, along, -along)


class Poisson(Loss):
    """ℓ = e^η − yη for y ≥ 0 (log link)."""

    __slots__ = ()
    kind = "poisson"
    resolution = 1e-12

    def value(self, eta: Floats, y: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.exp(eta) - y * eta

    def slope(self, eta: Floats, y: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.exp(eta) - y

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.exp(eta)

    def refusal(self, target: Marginals, column: int) -> str | None:
        if target.low[column] < 0:
            return f"must be at least 0, and its smallest value is {target.low[column]:g}: a Poisson target counts"
        if target.high[column] == 0:
            return "is 0 in every row, so that no finite fit exists: choose one that varies"
        return None

    def start(self, mean: float) -> float:
        return float(np.log(mean))

    def scale(self, mean: float) -> float:
        return mean

    def margins(self, along: Floats, y: Floats) -> Floats:
        return np.where(y > 0, -np.abs(along), -along)


LOSSES: Mapping[str, Loss] = {loss.kind: loss for loss in (Squared(), Logistic(), Poisson())}
