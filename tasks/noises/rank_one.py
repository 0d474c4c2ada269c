"""Noise in the one direction that a query can be read from: in goes the gain that is allowed."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Gt

from predcube.tasks.noises.base import Noise, Setting, Shape
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOne(Noise):
    """Gaussian, S_tot = (1/t − 1/κ)·C Cᵀ/m, C = Cov(ψ, q') and κ = CᵀVar(ψ)⁻¹C the gain without noise: it leaves the
    gain t exactly, and touches nothing else of the release.

    ``gain`` is in units of ``sharp``: t = gain/(K·l''(p)/2). One query only; a stack is one release here, since noise
    that its members draw apart cannot be of rank one. C is the query's, so ``gains`` computes shape and amount.
    """

    kind: ClassVar[str] = "rank_one"
    source: ClassVar[str] = "Lu & Sridharan 2026, Theorem 3.6, solved for the noise of least rank"

    gain: Annotated[float, Gt(0)]

    def __post_init__(self) -> None:
        check(self)

    def shape(self, setting: Setting) -> Shape:
        raise ValueError("rank_one: its shape is that of a query; ask the gains of a law for it")

    def amount(self, m: float) -> float:
        raise ValueError("rank_one: its amount is that of a query; ask the gains of a law for it")
