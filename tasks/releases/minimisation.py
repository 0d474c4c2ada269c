"""The minimum of a convex mean loss by passes over the data: in go a model and a total, out come γ and the curvature.

SciPy's trust-region method brings γ near the minimum, Newton steps finish it. A step is judged by what it does to the
predictions of the rows: near a minimum it shrinks quadratically, while towards a minimum at infinity it stays of order
one however small the gradient becomes, and then a pass verifies that the loss falls along it for ever (separation).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import minimize

from predcube.tasks.frames import Frame, Total
from predcube.tasks.releases.regressions import GATE, Evaluate, Evaluation, Model

type Floats = NDArray[np.float64]

PASSES = 200
"""Trials of the trust region before a fit is given up."""

POLISHES = 60
"""Newton steps before a fit is given up: a weak penalty on separated rows is reached by steps of one in η."""


def minimised(model: Model, total: Total, mean: float, kind: str) -> tuple[Floats, Floats]:
    """γ (1 + r,) and E[∂²ℓ/∂η² u uᵀ] there. ``mean``: of the target, where the search starts.

    Raises ValueError where no finite minimum exists (complete or quasi-complete separation), or none was reached.
    """
    start = np.zeros(model.design.rank)
    start[0] = model.rule.start(mean)
    scale = model.rule.scale(mean)
    objective = _Objective(model, total, scale)
    found = minimize(
        objective.value,
        start,
        jac=objective.gradient,
        hess=objective.hessian,
        method="trust-exact",
        options={"gtol": 1e-5, "maxiter": PASSES, "initial_trust_radius": 2.0, "max_trust_radius": 1e6},
    )
    gamma, step, reached = found.x, np.zeros_like(start), np.inf
    for steps in range(POLISHES):
        at = total(Evaluate(model=model, gamma=gamma, step=step))
        left = _left(model, at, gamma, mean)
        # Where a weak penalty alone bounds a direction, rounding keeps the steps above the first limit.
        if steps and (at.reach <= 1e-6 or (at.reach <= 1e-3 and left <= 1e-12)):
            if left > GATE:
                break
            return gamma, at.curvature / at.rows
        if steps and not model.l2 and at.reach > 0.5 * reached and at.reach > 1e-2:
            break
        reached = at.reach if steps else np.inf
        if not np.all(np.isfinite(at.curvature)):
            break
        step, bounded = _newton(model, at, gamma)
        if not bounded:
            break
        gamma = gamma + step
    if not model.l2 and np.all(np.isfinite(at.curvature)):
        _refuse_separation(model, total, step, kind)
    raise ValueError(
        f"{kind}: the fit did not converge: a mean gradient is {left:.1e} of its standard deviation, where {GATE:.0e} "
        "is allowed: drop features that are nearly collinear, or give an l2 above 0"
    )


class _Objective:
    """Mean loss and penalty over its scale, with gradient and Hessian; one pass for all three at a γ."""

    def __init__(self, model: Model, total: Total, scale: float) -> None:
        self.model, self.total, self.scale = model, total, scale
        self.penalty = model.l2 * model.design.penalty
        self.last: tuple[Floats, Evaluation] | None = None

    def at(self, gamma: Floats) -> Evaluation:
        if self.last is None or not np.array_equal(self.last[0], gamma):
            found = self.total(Evaluate(model=self.model, gamma=gamma.copy(), step=np.zeros_like(gamma)))
            self.last = (gamma.copy(), found)
        return self.last[1]

    def value(self, gamma: Floats) -> float:
        at = self.at(gamma)
        value = (at.value / at.rows + 0.5 * float(gamma @ self.penalty @ gamma)) / self.scale
        return value if np.isfinite(value) else np.inf

    def gradient(self, gamma: Floats) -> Floats:
        at = self.at(gamma)
        return (at.gradient / at.rows + self.penalty @ gamma) / self.scale

    def hessian(self, gamma: Floats) -> Floats:
        at = self.at(gamma)
        return (at.curvature / at.rows + self.penalty) / self.scale


def _newton(model: Model, at: Evaluation, gamma: Floats) -> tuple[Floats, bool]:
    """The Newton step, and True; or the direction of no curvature, and False."""
    hessian = at.curvature / at.rows + model.l2 * model.design.penalty
    gradient = at.gradient / at.rows + model.pull(gamma)
    values, vectors = eigh(hessian)
    if not values[0] > 1e-15 * values[-1]:
        flat = vectors[:, 0]
        return (-flat if gradient @ flat > 0 else flat), False
    return -vectors @ ((vectors.T @ gradient) / values), True


def _left(model: Model, at: Evaluation, gamma: Floats, mean: float) -> float:
    """The largest |mean g| / sd g of a coordinate, where an sd is at least what rounding makes of the target."""
    gradient = at.gradient / at.rows
    with np.errstate(invalid="ignore"):
        variance = np.maximum(at.squares / at.rows - np.square(gradient), 0.0)
    return float(np.max(np.abs(gradient + model.pull(gamma)) / np.maximum(np.sqrt(variance), 1e-7 * mean)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Margins:
    """The least and largest margin of the rows along a direction."""

    low: float
    high: float

    def add(self, other: Self) -> Self:
        return type(self)(low=min(self.low, other.low), high=max(self.high, other.high))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Margin:
    """The request for the ``_Margins`` of a direction."""

    model: Model
    direction: Floats

    def __call__(self, frame: Frame) -> _Margins:
        u = self.model.design.predictors(frame.inputs[:, 1:])
        margins = self.model.rule.margins(u @ self.direction, frame.inputs[:, 0])
        return _Margins(low=float(margins.min(initial=np.inf)), high=float(margins.max(initial=-np.inf)))


def _refuse_separation(model: Model, total: Total, direction: Floats, kind: str) -> None:
    found = total(_Margin(model=model, direction=direction))
    if found.high > 0 and found.low >= -1e-3 * found.high:
        rows = "target" if model.loss == "logistic" else "zeros of the target"
        raise ValueError(
            f"{kind}: separation: a combination of the features tells the {rows} apart without an error, so that no "
            "finite fit exists: drop or merge such features, or give an l2 above 0"
        )
