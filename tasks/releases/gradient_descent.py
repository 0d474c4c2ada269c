"""Batch gradient descent as a release: every iterate, or the last one alone (P2 Appendix A.1).

In go a loss, a rate η and a number of steps T; w_0 = 0 and w_{t+1} = w_t − η mean ∇ℓ(z_i, w_t). The moment function is
the influence of a row on the iterates, ψ_0 = 0 and ψ_{t+1} = ψ_t − η(H_t ψ_t + ∇ℓ(z_i, w_t) − mean ∇ℓ(w_t)), H_t the
mean Hessian, with G = −1: P2's conditions w_t − w_{t+1} − η∇ℓ(z_i, w_t), solved for the iterates.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge, Gt
from numpy.typing import NDArray

from predcube.tasks import parameters
from predcube.tasks.frames import Frame, Total
from predcube.tasks.releases.base import Fitted, Release, names_of
from predcube.tasks.releases.losses import LOSSES
from predcube.tasks.releases.surveys import Survey
from predcube.tasks.releases.whitening import whitened

type Floats = NDArray[np.float64]

WIDEST = 4096
"""The most numbers of a trajectory: their covariance has to be factored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Predictors of rows: z = (1, (x − centre)/scale). centre, scale: (p,)."""

    centre: Floats
    scale: Floats

    def predictors(self, features: Floats) -> Floats:
        out = np.empty((len(features), 1 + features.shape[1]))
        out[:, 0] = 1.0
        np.subtract(features, self.centre, out=out[:, 1:])
        out[:, 1:] /= self.scale
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """Sums over rows at one w: value of ℓ, gradient (d,), Hessian (d, d)."""

    rows: int
    value: float
    gradient: Floats
    hessian: Floats

    def add(self, other: Self) -> Self:
        return type(self)(
            rows=self.rows + other.rows,
            value=self.value + other.value,
            gradient=self.gradient + other.gradient,
            hessian=self.hessian + other.hessian,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Descend:
    """The request for the ``Descent`` of a loss at w (d,)."""

    loss: str
    scaling: Scaling
    at: Floats

    def __call__(self, frame: Frame) -> Descent:
        rule, y = LOSSES[self.loss], frame.inputs[:, 0]
        z = self.scaling.predictors(frame.inputs[:, 1:])
        # A diverging iterate overflows: the sums are then infinite, and refused.
        with np.errstate(over="ignore", invalid="ignore"):
            eta = z @ self.at
            return Descent(
                rows=frame.rows,
                value=float(rule.value(eta, y).sum()),
                gradient=rule.slope(eta, y) @ z,
                hessian=z.T @ (z * rule.curvature(eta, y)[:, None]),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedDescent(Fitted):
    """iterates, gradients: (T, d) w_t and mean ∇ℓ(w_t), t < T. hessians: (T, d, d), or (1, d, d) of a quadratic."""

    loss: str
    scaling: Scaling
    rate: float
    last: bool
    iterates: Floats
    gradients: Floats
    hessians: Floats

    def moments(self, inputs: Floats, shift: Floats | None = None) -> Floats:
        """Rows (m, d) or, of a trajectory, (m, T·d): ψ (− shift)."""
        z, y = self.scaling.predictors(inputs[:, 1:]), inputs[:, 0]
        rows = self._closed(z, y) if self.last and self.loss == "squared" else self._stepped(z, y)
        return rows if shift is None else rows - shift

    def _stepped(self, z: Floats, y: Floats) -> Floats:
        steps, size = self.iterates.shape
        rule = LOSSES[self.loss]
        psi = np.zeros_like(z)
        out = np.empty((len(z), 0 if self.last else steps * size))
        for t in range(steps):
            slope = rule.slope(z @ self.iterates[t], y)
            fall = psi @ self.hessians[min(t, len(self.hessians) - 1)]
            fall += z * slope[:, None]
            fall -= self.gradients[t]
            psi -= self.rate * fall
            if not self.last:
                out[:, t * size : (t + 1) * size] = psi
        return psi if self.last else out

    def _closed(self, z: Floats, y: Floats) -> Floats:
        """Squared loss has one Hessian H = QΛQᵀ: ψ_T = −ηQ Σ_t (1 − ηΛ)^(T−1−t) Qᵀ(z(zᵀw_t − y) − mean), whose sum over
        t is done once for all rows."""
        steps = len(self.iterates)
        values, vectors = np.linalg.eigh(self.hessians[0])
        left = np.arange(steps - 1, -1, -1)[:, None]
        weights = -self.rate * (1.0 - self.rate * values) ** left
        turned = z @ vectors
        turned *= z @ (self.iterates.T @ weights) - np.outer(y, weights.sum(axis=0))
        turned -= ((self.gradients @ vectors) * weights).sum(axis=0)
        out: Floats = turned @ vectors.T
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientDescent(Release):
    """T steps of batch gradient descent from 0 on mean ℓ over an intercept and ``features``.

    reveal "trajectory" releases w_1 … w_T, T·d numbers step by step, "last" w_T alone. ``standardise`` runs it on
    features less their means, over their standard deviations, and releases iterates in those units. The means and
    deviations are taken for public constants, as P2 takes w_0 and η: what THEY tell of a query is not counted (stack a
    ``mean`` of the features to count means). A constant feature keeps the coefficient 0. Every iterate that is released
    predicts: the utility cost of noise on a trajectory is the sum of what it costs each iterate (P2 Lemma 4.5).

    Raises ValueError where it diverges: where an iterate's mean loss exceeds that of the start, or is not finite.
    """

    kind: ClassVar[str] = "gradient_descent"
    source: ClassVar[str] = "P2 Appendix A.1"

    loss: Literal["squared", "logistic", "poisson"]
    target: str
    features: tuple[str, ...] = field(default=())
    steps: Annotated[int, Ge(1)]
    rate: Annotated[float, Gt(0)]
    reveal: Literal["trajectory", "last"] = "trajectory"
    standardise: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", names_of(self.features, f"{self.kind}: features", least=0))
        parameters.check(self)
        if self.target in self.features:
            raise ValueError(f"{self.kind}: {self.target!r} is the target and a feature: take it out of the features")
        size = self.steps * (1 + len(self.features))
        if self.reveal == "trajectory" and size > WIDEST:
            raise ValueError(
                f"{self.kind}: steps = {self.steps} release {size} numbers, more than {WIDEST}: take fewer steps, or "
                'reveal = "last"'
            )

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.target, *self.features)

    @property
    def names(self) -> tuple[str, ...]:
        names = ("intercept", *self.features)
        if self.reveal == "last":
            return names
        return tuple(f"step {t}: {name}" for t in range(1, self.steps + 1) for name in names)

    def fit(self, total: Total) -> Fitted:
        return whitened(self.bare(total), total)

    def bare(self, total: Total) -> FittedDescent:
        survey = total(Survey.of)
        refusal = LOSSES[self.loss].refusal(survey.marginals, 0)
        if refusal:
            raise ValueError(f"{self.kind}: target {self.target!r} {refusal}")
        for j in survey.overflowing:
            raise ValueError(f"{self.kind}: squares of {self.inputs[j]!r} overflow: measure it in a larger unit")
        features = len(self.features)
        scaling = Scaling(centre=np.zeros(features), scale=np.ones(features))
        if self.standardise:
            deviations = survey.deviations[1:]
            scaling = Scaling(centre=survey.means[1:], scale=np.where(deviations == 0, np.inf, deviations))
        with np.errstate(over="ignore", invalid="ignore"):
            iterates, gradients, hessians = (
                self._quadratic(survey, scaling) if self.loss == "squared" else self._general(total, scaling)
            )
        last = self.reveal == "last"
        estimate = iterates[-1] if last else iterates[1:].ravel()
        gram = self._gram(survey, scaling)
        if not last:
            gram = np.kron(np.eye(self.steps), gram).astype(np.float64)
        return FittedDescent(
            estimate=estimate,
            curvature=-np.eye(estimate.size),
            units=np.eye(estimate.size),
            released=np.eye(estimate.size),
            fixed=np.zeros((0, estimate.size)),
            gram=gram,
            grain=np.full(estimate.size, 4 * (self.steps + 2) * np.finfo(np.float64).eps),
            rank=estimate.size,
            condition=1.0,
            rows=survey.marginals.rows,
            loss=self.loss,
            scaling=scaling,
            rate=self.rate,
            last=last,
            iterates=iterates[:-1],
            gradients=gradients,
            hessians=hessians,
        )

    def _gram(self, survey: Survey, scaling: Scaling) -> Floats:
        """(1 + p, 1 + p) E[z zᵀ] of the predictors z."""
        middle = np.concatenate([[1.0], (survey.means[1:] - scaling.centre) / scaling.scale])
        gram = np.outer(middle, middle)
        gram[1:, 1:] += survey.covariance[1:, 1:] / scaling.scale[:, None] / scaling.scale
        return gram

    def _quadratic(self, survey: Survey, scaling: Scaling) -> tuple[Floats, Floats, Floats]:
        """w_0 … w_T, gradients, and the one Hessian, from the survey's products."""
        means, covariance = survey.means, survey.covariance
        middle = np.concatenate([[1.0], (means[1:] - scaling.centre) / scaling.scale])
        hessian = self._gram(survey, scaling)
        cross = middle * means[0]
        cross[1:] += covariance[1:, 0] / scaling.scale
        w = np.zeros_like(cross)
        level = 1e-9 * (covariance[0, 0] + means[0] ** 2)
        iterates, gradients = [w], []
        for t in range(1, self.steps + 1):
            gradient = hessian @ w - cross
            w = w - self.rate * gradient
            iterates.append(w)
            gradients.append(gradient)
            self._keep(0.5 * w @ hessian @ w - w @ cross <= level, w, t, hessian)
        return np.array(iterates), np.array(gradients), hessian[None]

    def _general(self, total: Total, scaling: Scaling) -> tuple[Floats, Floats, Floats]:
        """w_0 … w_T, gradients and Hessians, by a pass for each step and one for the last iterate's loss."""
        w = np.zeros(1 + len(self.features))
        iterates, gradients, first = [w], [], 0.0
        hessians: list[Floats] = []
        for t in range(self.steps + 1):
            found = total(Descend(loss=self.loss, scaling=scaling, at=w))
            value = found.value / found.rows
            first = first if t else value
            self._keep(value <= first + 1e-9 * abs(first), w, t, hessians[0] if hessians else None)
            if t == self.steps:
                break
            gradients.append(found.gradient / found.rows)
            hessians.append(found.hessian / found.rows)
            w = w - self.rate * gradients[-1]
            iterates.append(w)
        return np.array(iterates), np.array(gradients), np.array(hessians)

    def _keep(self, falls: bool, w: Floats, step: int, hessian: Floats | None) -> None:
        if falls and np.all(np.isfinite(w)):
            return
        cure = "take a smaller rate"
        if hessian is not None and np.all(np.isfinite(hessian)):
            top = 2.0 / float(np.linalg.eigvalsh(hessian)[-1])
            cure = f"take a rate below {top:.3g}" + (", or far below" if self.loss == "poisson" else "")
        raise ValueError(
            f"{self.kind}: rate = {self.rate} diverges at step {step}: {cure}"
            + ("" if self.standardise else ", or standardise")
        )
