"""The same independent noise on every released number: in goes its standard deviation."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Le

from predcube.tasks.noises.base import MOST, Noise, Setting, Shape
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class Isotropic(Noise):
    """Gaussian, S_tot = sd²·I in the units of the released numbers."""

    kind: ClassVar[str] = "isotropic"
    source: ClassVar[str] = "Lu & Sridharan 2026, Remark 3.7, Lemma 4.5"

    sd: Annotated[float, Ge(0), Le(MOST)]

    def __post_init__(self) -> None:
        check(self)

    def shape(self, setting: Setting) -> Shape:
        return Shape.of(np.eye(len(setting.units)), setting)

    def amount(self, m: float) -> float:
        return m * self.sd**2
