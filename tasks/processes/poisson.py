"""Poisson inclusion: in goes a column of inclusion probabilities, out come moments of independent inclusions."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from predcube.tasks.frames import Frame, Groups, Request
from predcube.tasks.moments import Moments
from predcube.tasks.parameters import check
from predcube.tasks.processes.base import Factors, HasMoments, Law, Process, aux_moments_of
from predcube.tasks.processes.plain import Parts, assembled


@dataclass(frozen=True, slots=True, kw_only=True)
class InclusionSums:
    """moments: of [q, g] with weights (1 − π)/π. missing: Σ(1 − π)."""

    moments: Moments
    missing: float

    def add(self, other: Self) -> Self:
        return type(self)(moments=self.moments.add(other.moments), missing=self.missing + other.missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    fitted: HasMoments
    column: str
    joint: bool

    def __call__(self, frame: Frame) -> InclusionSums:
        pi = frame.column
        if pi is None:
            raise ValueError("poisson: the frame has no column of inclusion probabilities")
        wrong = ~((pi > 0) & (pi <= 1))
        if np.any(wrong):
            raise ValueError(
                f"poisson: column {self.column!r} holds {pi[wrong][0]:g}; an inclusion probability must be above 0 "
                "and at most 1"
            )
        weights = (1.0 - pi) / pi
        moments = Moments.over(
            frame.queries, lambda part: self.fitted.moments(frame.inputs[part]), weights, joint=self.joint
        )
        return InclusionSums(moments=moments, missing=float((1.0 - pi).sum()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson(Process[InclusionSums]):
    """Row i is seen with probability π_i, independently; the column holds π itself.

    Covariances (1/N)Σ(1 − π)/π·products of q − p and g, not centred again; m = N, n = Nπ̄ expected rows. The attacker
    predicts the mean of the unseen rows, K = 1/(N(1 − π̄)²), or of all rows, K = 1/N. ``aux_moments = ["w"]``: the
    attacker also uses that Σ1/π over the seen rows has mean N.
    """

    kind: ClassVar[str] = "poisson"
    source: ClassVar[str] = "Lu & Sridharan 2026, Theorem 3.6, for Horvitz-Thompson moments"

    column: str
    target: Literal["unseen", "all"] = "unseen"
    aux_moments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "aux_moments", aux_moments_of(self.aux_moments, self.kind))
        check(self)

    def infeasible(self, rows: int, groups: Groups | None = None) -> str | None:
        return None if rows >= 2 else f"the table has {rows} complete rows: at least 2 are needed"

    def request(
        self, fitted: HasMoments, groups: Groups | None = None, *, joint: bool = False
    ) -> Request[InclusionSums]:
        return _Request(fitted=fitted, column=self.column, joint=joint)

    def law(self, state: InclusionSums, groups: Groups | None = None) -> Law:
        moments = state.moments
        if not state.missing > 0:
            raise ValueError(f"poisson: column {self.column!r} is 1 in every row: no row is unseen")
        n = moments.rows
        parts = Parts(*moments.about_plain()).scaled(1 / n)
        if self.aux_moments:
            parts = parts.given(moments.first_about_plain() / n, moments.weight / n)
        return assembled(moments, parts, inclusion=1.0 - state.missing / n)

    def factors(self, law: Law) -> Factors:
        unseen = (1.0 - law.inclusion) ** 2 if self.target == "unseen" else 1.0
        return Factors(n=law.rows * law.inclusion, m=law.rows, K=1.0 / (law.rows * unseen))

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.kind, self.column, list(self.aux_moments))
