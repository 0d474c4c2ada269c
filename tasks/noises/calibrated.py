"""Noise shaped like the release's own sampling error: in goes σ², out comes r = ρ/√(1 + σ²)."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Le

from predcube.tasks.noises.base import MOST, Noise, Setting, Shape, undone
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated(Noise):
    """Gaussian, S_tot = (level/m)·Var ψ, ψ = −G⁻¹g' (Lemma 4.3, whose covariance is this total): G S_tot Gᵀ =
    (level/m)·V, so that r² = ρ²/(1 + level).

    Each member of a stack has noise of its own, calibrated to that member and independent of the others'.
    """

    kind: ClassVar[str] = "calibrated"
    source: ClassVar[str] = "Lu & Sridharan 2026, Lemma 4.3"

    level: Annotated[float, Ge(0), Le(MOST**2)]

    def __post_init__(self) -> None:
        check(self)

    def shape(self, setting: Setting) -> Shape:
        scaled = undone(setting.curvature, setting.root)
        if len(setting.members) == 1:
            return Shape.like(scaled, setting.root, setting)
        edges = np.cumsum((0, *setting.members))
        width = scaled.shape[1]
        apart = np.zeros((len(scaled), width * len(setting.members)))
        for number, (start, stop) in enumerate(pairwise(edges)):
            apart[start:stop, number * width : (number + 1) * width] = scaled[start:stop]
        shape = Shape.like(apart, setting.curvature @ apart, setting)
        return replace(shape, terms=np.abs(setting.curvature) @ np.abs(apart))

    def amount(self, m: float) -> float:
        return self.level
