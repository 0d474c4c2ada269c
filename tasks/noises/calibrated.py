"""Noise shaped like the release's own sampling error: in goes σ², out comes r = ρ/√(1 + σ²)."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge

from predcube.tasks.noises.base import Noise, Setting, Shape
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated(Noise):
    """Gaussian, S_tot = (level/m)·Var ψ, ψ = −G⁻¹g' (Lemma 4.3, whose covariance is this total): G S_tot Gᵀ =
    (level/m)·V, so that r² = ρ²/(1 + level).

    Each member of a stack has noise of its own, calibrated to that member and independent of the others'.
    """

    kind: ClassVar[str] = "calibrated"
    source: ClassVar[str] = "Lu & Sridharan 2026, Lemma 4.3"

    level: Annotated[float, Ge(0)]

    def __post_init__(self) -> None:
        check(self)

    def shape(self, setting: Setting) -> Shape:
        edges = np.cumsum((0, *setting.members))
        blocks = [setting.root[start:stop] for start, stop in pairwise(edges)]
        width = setting.root.shape[1]
        moments = np.zeros((edges[-1], width * len(blocks)))
        for number, (start, block) in enumerate(zip(edges, blocks, strict=False)):
            moments[start : start + len(block), number * width : (number + 1) * width] = block
        scaled = np.linalg.pinv(setting.curvature) @ moments
        return Shape(released=np.linalg.pinv(setting.units) @ scaled, scaled=scaled, moments=moments)

    def amount(self, m: float) -> float:
        return self.level
