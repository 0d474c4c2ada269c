"""The Laplace mechanism: in go ε and the sensitivity in L1, out comes the variance of its noise."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Le

from predcube.tasks.noises.sensitive import Sensitive


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Sensitive):
    """Independent Laplace noise of scale b = sensitivity/ε on every released number, S_tot = 2b²·I: ε-DP for numbers of
    this L1 sensitivity (replace-one).

    The values are those of the best LINEAR attacker: once this noise dominates, a Bayes attacker gains more (1.17 times
    at S_eff/V = 4, up to twice), so ``sharp`` is no upper bound here.
    """

    kind: ClassVar[str] = "laplace"
    source: ClassVar[str] = "Dwork, McSherry, Nissim & Smith 2006"
    linear_attacker: ClassVar[bool] = True

    delta: Annotated[float, Ge(0), Le(0)] = 0.0

    @property
    def unit_sd(self) -> float:
        return math.sqrt(2.0) / self.epsilon
