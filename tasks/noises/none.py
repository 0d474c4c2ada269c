"""No noise: the release is λ itself."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from predcube.tasks.noises.base import Noise, Setting, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class NoNoise(Noise):
    """S_tot = 0."""

    kind: ClassVar[str] = "none"
    source: ClassVar[str] = "Lu & Sridharan 2026, Remark 3.7, σ² → 0"

    def shape(self, setting: Setting) -> Shape:
        return Shape.of(np.zeros((len(setting.units), 0)), setting)

    def amount(self, m: float) -> float:
        return 0.0
