"""The analytic Gaussian mechanism: in go ε, δ and the sensitivity in L2, out comes the least standard deviation."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar

from annotated_types import Gt, Lt
from scipy.optimize import brentq
from scipy.special import log_ndtr

from predcube.tasks.noises.sensitive import Sensitive


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Sensitive):
    """S_tot = sd²·I, sd the least that makes numbers of this L2 sensitivity (replace-one) (ε, δ)-DP.

    With Δ/sd = x, that is Φ(x/2 − ε/x) − e^ε·Φ(−x/2 − ε/x) ≤ δ: exact, for any ε > 0.
    """

    kind: ClassVar[str] = "gaussian"
    source: ClassVar[str] = "Balle & Wang 2018, Theorem 8"

    delta: Annotated[float, Gt(0), Lt(1)]

    @property
    def unit_sd(self) -> float:
        return _unit_sd(self.epsilon, self.delta)


def profile(epsilon: float, sd: float) -> float:
    """The least δ of Gaussian noise of standard deviation ``sd`` on numbers of L2 sensitivity 1 at ε."""
    x = 1.0 / sd
    upper, lower = float(log_ndtr(x / 2 - epsilon / x)), epsilon + float(log_ndtr(-x / 2 - epsilon / x))
    return 0.0 if lower >= upper else -math.exp(upper) * math.expm1(lower - upper)


@lru_cache(maxsize=4096)
def _unit_sd(epsilon: float, delta: float) -> float:
    low = high = 0.0  # ln sd
    while profile(epsilon, math.exp(low)) <= delta:
        low -= 1.0
    while profile(epsilon, math.exp(high)) > delta:
        high += 1.0
    found = math.exp(brentq(lambda u: profile(epsilon, math.exp(u)) - delta, low, high, xtol=1e-14, rtol=1e-14))
    step = 1e-15
    while profile(epsilon, found) > delta:  # the root may lie an ulp to the side that is not private enough
        found *= 1 + step
        step *= 2
    return found
