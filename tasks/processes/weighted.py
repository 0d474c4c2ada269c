"""Biased draws with replacement: in go a column of weights and a size n, out come weighted moments."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge

from predcube.tasks.frames import Frame, Groups, Request
from predcube.tasks.moments import Moments
from predcube.tasks.parameters import check
from predcube.tasks.processes.base import Factors, HasMoments, Law, Process, aux_moments_of
from predcube.tasks.processes.plain import Parts, assembled


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSums:
    """moments: of [q, g] with weights 1/c. total: Σc."""

    moments: Moments
    total: float

    def add(self, other: Self) -> Self:
        return type(self)(moments=self.moments.add(other.moments), total=self.total + other.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    fitted: HasMoments
    column: str
    joint: bool

    def __call__(self, frame: Frame) -> WeightedSums:
        c = frame.column
        if c is None:
            raise ValueError("weighted: the frame has no column of weights")
        if not np.all(c > 0):
            raise ValueError(
                f"weighted: column {self.column!r} holds the weight {c[~(c > 0)][0]:g}; every weight must be above 0: "
                "leave out rows that cannot be drawn"
            )
        moments = Moments.over(
            frame.queries, lambda part: self.fitted.moments(frame.inputs[part]), 1.0 / c, joint=self.joint
        )
        return WeightedSums(moments=moments, total=float(c.sum()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted(Process[WeightedSums]):
    """n rows drawn with replacement, row i with probability D_i = c_i/Σc: w_i = 1/(N·D_i), m = n, K = 1/n.

    V, C and s1 are E_D[w²·products] = (1/N)Σw_i·products about the unweighted p and λ. ``aux_moments = ["w"]``: the
    attacker also uses E_D[w] = 1, and the moments are residualised on w − 1. The attacker predicts the mean of all
    rows.
    """

    kind: ClassVar[str] = "weighted"
    source: ClassVar[str] = "Lu & Sridharan 2026, Section 3.1, Theorem 3.6"

    column: str
    size: Annotated[int, Ge(1)]
    target: Literal["all"] = "all"
    aux_moments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "aux_moments", aux_moments_of(self.aux_moments, self.kind))
        check(self)

    def infeasible(self, rows: int, groups: Groups | None = None) -> str | None:
        return None if rows >= 2 else f"the table has {rows} complete rows: at least 2 are needed"

    def request(
        self, fitted: HasMoments, groups: Groups | None = None, *, joint: bool = False
    ) -> Request[WeightedSums]:
        return _Request(fitted=fitted, column=self.column, joint=joint)

    def law(self, state: WeightedSums, groups: Groups | None = None) -> Law:
        moments = state.moments
        scale = state.total / moments.rows**2
        parts = Parts(*moments.about_plain()).scaled(scale)
        if self.aux_moments:  # Cov_D(w·x, w − 1) = E_D[w²x] for x of mean 0; Var_D w = E_D[w²] − 1
            spread = moments.weight * scale - 1.0
            parts = parts.given(moments.first_about_plain() * scale, spread if spread > 1e-12 else 0.0)
        return assembled(moments, parts)

    def factors(self, law: Law) -> Factors:
        return Factors(n=self.size, m=self.size, K=1 / self.size)

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.kind, self.column, list(self.aux_moments))
