"""What the noises of differential privacy share: in go sensitivities, out comes a shape.

Neighbours are tables of the same size that differ in one row (replace-one), here and wherever a sensitivity is given.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import Gt

from predcube.tasks.noises.base import MOST, Noise, Setting, Shape
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitive(Noise):
    """Independent noise on every released number, of a scale that follows from (ε, δ, sensitivity).

    Each member of a stack is a mechanism of its own with this (ε, δ): ``sensitivity`` is one number for all members, or
    a list of one a member.
    """

    epsilon: Annotated[float, Gt(0)]
    sensitivity: Any

    def __post_init__(self) -> None:
        given = self.sensitivity
        if isinstance(given, list | tuple | np.ndarray):
            values = tuple(float(value) for value in given)
            if not values or not all(np.isfinite(values)) or not all(value > 0 for value in values):
                raise ValueError(
                    f"{self.kind}: sensitivity = {given!r} must be numbers above 0, one a member of the stack"
                )
            object.__setattr__(self, "sensitivity", values)
        elif isinstance(given, bool) or not isinstance(given, int | float | np.number) or not 0 < given < np.inf:
            raise ValueError(f"{self.kind}: sensitivity = {given!r} must be a number above 0")
        else:
            object.__setattr__(self, "sensitivity", float(given))
        check(self)
        largest = max(self.sensitivity) if isinstance(self.sensitivity, tuple) else self.sensitivity
        sd = largest * self.unit_sd
        if not sd <= MOST:
            raise ValueError(
                f"{self.kind}: epsilon = {self.epsilon} and sensitivity = {given!r} ask for a standard deviation of "
                f"{sd:.3g}, more than {MOST:g}: take a larger epsilon"
            )

    @property
    @abstractmethod
    def unit_sd(self) -> float:
        """The standard deviation of the noise at sensitivity 1."""

    def sds(self, members: tuple[int, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """(d,) standard deviation of the noise on each released number."""
        values = self.sensitivity if isinstance(self.sensitivity, tuple) else (self.sensitivity,) * len(members)
        if len(values) != len(members):
            raise ValueError(
                f"{self.kind}: sensitivity lists {len(values)} numbers for a release of {len(members)} members: "
                "give one a member, or one number for all"
            )
        return np.repeat(np.array(values), members) * self.unit_sd

    def shape(self, setting: Setting) -> Shape:
        sds = self.sds(setting.members)
        return Shape.of(np.diag(sds / sds.max()), setting)

    def amount(self, m: float) -> float:
        largest = max(self.sensitivity) if isinstance(self.sensitivity, tuple) else self.sensitivity
        return float(m * (largest * self.unit_sd) ** 2)

    @property
    def key(self) -> tuple[Any, ...]:
        if not isinstance(self.sensitivity, tuple):
            return ("isotropic",)
        return ("members", *(value / max(self.sensitivity) for value in self.sensitivity))
