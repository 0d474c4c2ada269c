"""Empirical risk minimisers as releases: in goes a target and features, out come λ = (intercept, slopes) and g = ∇ℓ.

λ minimises mean ℓ(λ_0 + xᵀw, y) + (l2/2)|w|², intercept free. g is the gradient of one row's ℓ and of the penalty in
the coordinates γ of a ``Design``: g_i = u_i·(∂ℓ/∂η)_i + l2·Pγ, and K = E[∂²ℓ/∂η² u uᵀ] + l2·P (P2 section 4.2).
"""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Annotated, ClassVar, Self

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray

from predcube.tasks import parameters
from predcube.tasks.factorisations import EPS
from predcube.tasks.frames import Frame, Total
from predcube.tasks.moments import slices
from predcube.tasks.releases.base import Fitted, Release, names_of
from predcube.tasks.releases.designs import Design
from predcube.tasks.releases.losses import LOSSES, Loss
from predcube.tasks.releases.surveys import Survey
from predcube.tasks.releases.whitening import whitened

type Floats = NDArray[np.float64]

FEATURES = slice(1, None)
"""The inputs of a regression are its target, then its features."""

GATE = 1e-8
"""The largest |mean g| / sd g of any coordinate at which a fit counts as converged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One loss of one design. centre: what the target and γ_0 are measured from, the mean for squared loss, else 0.
    floor: a slope of at most this size is the rounding of the data, and counts as 0."""

    loss: str
    design: Design
    l2: float
    centre: float
    floor: float = 0.0

    @property
    def rule(self) -> Loss:
        return LOSSES[self.loss]

    def predicted(self, inputs: Floats, gamma: Floats, out: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """u (m, 1 + r), η − centre (m,) and y − centre (m,)."""
        u = self.design.predictors(inputs[:, FEATURES], out)
        return u, gamma[0] + u[:, 1:] @ gamma[1:], inputs[:, 0] - self.centre

    def slope(self, eta: Floats, y: Floats) -> Floats:
        """∂ℓ/∂η with what is rounding set to 0: a perfect fit has no gradient, and so says nothing of any query."""
        slope = self.rule.slope(eta, y)
        floor = self.floor
        if self.rule.resolution:
            slope[np.abs(slope) <= np.maximum(floor, self.rule.resolution * np.maximum(y, slope + y))] = 0.0
        elif floor:
            slope[np.abs(slope) <= floor] = 0.0
        return slope

    def pull(self, gamma: Floats) -> Floats:
        """(1 + r,) the penalty's gradient l2·Pγ."""
        return self.l2 * (self.design.penalty @ gamma)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Sums over rows at one γ: value of ℓ, gradient (1 + r,), its squares (1 + r,), curvature (1 + r, 1 + r), and the
    largest |uᵀ step| of a step."""

    rows: int
    value: float
    gradient: Floats
    squares: Floats
    curvature: Floats
    reach: float

    def add(self, other: Self) -> Self:
        return type(self)(
            rows=self.rows + other.rows,
            value=self.value + other.value,
            gradient=self.gradient + other.gradient,
            squares=self.squares + other.squares,
            curvature=self.curvature + other.curvature,
            reach=max(self.reach, other.reach),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluate:
    """The request for an ``Evaluation`` of a model at γ. step: (1 + r,) the step that led there."""

    model: Model
    gamma: Floats
    step: Floats

    def __call__(self, frame: Frame) -> Evaluation:
        parts = slices(frame.rows, frame.inputs.shape[1])
        return reduce(Evaluation.add, (self._of(frame.inputs[part]) for part in parts))

    def _of(self, inputs: Floats) -> Evaluation:
        u, eta, y = self.model.predicted(inputs, self.gamma)
        rule = self.model.rule
        reach = float(np.max(np.abs(u @ self.step)))
        # Far from the minimum e^η may overflow: the sums are then infinite, and the step is not taken.
        with np.errstate(over="ignore", invalid="ignore"):
            value = float(rule.value(eta, y).sum())
            slope = self.model.slope(eta, y)
            curvature = u.T @ (u * rule.curvature(eta, y)[:, None])
            gradient = slope @ u
            squares = np.square(slope) @ np.square(u)
        return Evaluation(
            rows=len(y), value=value, gradient=gradient, squares=squares, curvature=curvature, reach=reach
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRegression(Fitted):
    """A regression at its minimum γ."""

    model: Model
    gamma: Floats

    def rounding(self, sd: Floats) -> Floats:
        """(d,) of u, times the slopes, which are the first coordinate of g."""
        design, rounding = self.model.design, 8 * EPS * sd
        rounding[: design.rank] = np.maximum(rounding[: design.rank], design.grain * sd[0])
        return rounding

    def moments(self, inputs: Floats, shift: Floats | None = None) -> Floats:
        """Rows (m, d): g_i = u_i·∂ℓ/∂η + l2·Pγ at γ = Wλ (+ W·shift); 0 in coordinates that are not determined."""
        design = self.model.design
        gamma = self.gamma if shift is None else self.gamma + design.coordinates(shift)
        out = np.zeros((len(inputs), design.size))
        for part in slices(len(inputs), design.size):
            u, eta, y = self.model.predicted(inputs[part], gamma, out[part, : design.rank])
            u *= self.model.slope(eta, y)[:, None]
            if self.model.l2:
                u += self.model.pull(gamma)
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression(Release):
    """The minimiser of mean ℓ + (l2/2)|w|² over an intercept and slopes w of ``features``."""

    loss: ClassVar[str]
    source: ClassVar[str] = "P2 section 4.2, Theorem 4.2"

    target: str
    features: tuple[str, ...] = field(default=())
    l2: Annotated[float, Ge(0)] = 0.0

    def __post_init__(self) -> None:
        features = names_of(self.features, f"{self.kind}: features", least=0)
        object.__setattr__(self, "features", features)
        parameters.check(self)
        if self.target in features:
            raise ValueError(f"{self.kind}: {self.target!r} is the target and a feature: take it out of the features")

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.target, *self.features)

    @property
    def names(self) -> tuple[str, ...]:
        return ("intercept", *self.features)

    def fit(self, total: Total) -> Fitted:
        fitted = self.bare(total)
        # A penalty keeps collinear features apart, and directions in which g hardly varies with them.
        return whitened(fitted, total) if self.l2 else fitted

    @abstractmethod
    def bare(self, total: Total) -> FittedRegression: ...

    def surveyed(self, total: Total) -> tuple[Survey, Design]:
        """The first pass. Raises ValueError for a target that the loss does not take."""
        survey = total(Survey.of)
        refusal = LOSSES[self.loss].refusal(survey.marginals, 0)
        if refusal:
            raise ValueError(f"{self.kind}: target {self.target!r} {refusal}")
        for j in survey.overflowing:
            raise ValueError(f"{self.kind}: squares of {self.inputs[j]!r} overflow: measure it in a larger unit")
        return survey, Design.of(survey, FEATURES, self.l2)

    def finished(self, model: Model, gamma: Floats, curvature: Floats, survey: Survey) -> FittedRegression:
        """The fitted release, from (1 + r, 1 + r) E[∂²ℓ/∂η² u uᵀ]."""
        design = model.design
        return FittedRegression(
            estimate=design.coefficients(gamma, model.centre),
            curvature=design.padded(curvature + model.l2 * design.penalty),
            units=design.units,
            released=design.released,
            fixed=design.fixed,
            gram=design.padded(design.gram),
            grain=np.zeros(design.size),
            # A penalty determines every coefficient, if not beyond what rounding makes of the features.
            blurred=model.l2 > 0 and design.rank < design.size,
            rank=design.rank,
            condition=design.condition,
            rows=survey.marginals.rows,
            model=model,
            gamma=gamma,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastSquares(Regression):
    """Closed form from centred, scaled products, corrected by one more pass where the features are nearly collinear."""

    loss: ClassVar[str] = "squared"

    def bare(self, total: Total) -> FittedRegression:
        survey, design = self.surveyed(total)
        centre = float(survey.means[0])
        left = survey.remainders
        mixed = (survey.covariance[FEATURES, 0] + left[FEATURES] * left[0])[design.kept]
        cross = np.concatenate([[left[0]], mixed @ design.transform])
        model = Model(loss=self.loss, design=design, l2=self.l2, centre=centre)
        hessian = design.gram + self.l2 * design.penalty
        gamma = np.linalg.solve(hessian, cross)
        if design.condition > 1e3:
            found = total(Evaluate(model=model, gamma=gamma, step=np.zeros_like(gamma)))
            gamma = gamma - np.linalg.solve(hessian, found.gradient / found.rows + model.pull(gamma))
        slopes = design.coefficients(gamma, centre)
        reach = survey.marginals.reach
        size = abs(slopes[0]) + reach[0] + float(np.abs(slopes[1:]) @ reach[FEATURES])
        model = replace(model, floor=16 * np.finfo(np.float64).eps * size)
        return self.finished(model, gamma, design.gram, survey)
