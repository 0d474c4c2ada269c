"""The noise that reaches a target, per scheme, and what it costs: in go gains and a target, out come noise schemes.

Targets are in units of ``sharp`` (of the loss). Schemes are compared at equal gain, never at equal σ²: a frontier is
the utility cost of every scheme over a grid of targets.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq

from predcube.tasks.gains import Gains, Measure
from predcube.tasks.noises.base import Noise
from predcube.tasks.noises.calibrated import Calibrated
from predcube.tasks.noises.gaussian import Gaussian, profile
from predcube.tasks.noises.isotropic import Isotropic
from predcube.tasks.noises.laplace import Laplace
from predcube.tasks.noises.rank_one import RankOne
from predcube.tasks.processes.base import Process

SCHEMES = ("isotropic", "calibrated", "rank_one")
"""The schemes that need nothing but a target."""

LIMIT = 690.0
"""Logarithms of amounts of noise are looked for up to this size: e^690 is near the largest number there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A scheme's noise that brings every query's ``sharp`` to at most ``target``, the largest of them to it.

    utility_cost: tr(M·S_tot) of it, or tr(S_tot) where the release predicts nothing.
    """

    target: float
    scheme: str
    noise: Noise
    sharp: float
    utility_cost: float


def noise_for(
    gains: Gains, process: Process[Any], measure: Measure, target: float, scheme: str | Noise = "calibrated"
) -> Reached:
    """The noise of ``scheme`` that reaches ``target``.

    ``calibrated`` and ``rank_one`` are closed forms, ``isotropic`` a bracketed root. ``gaussian`` and ``laplace`` are
    given as a scheme whose ε is replaced (its δ and sensitivity kept): the largest ε that reaches the target.

    Raises ValueError for a target that is not above 0, that the release meets without noise, or that no amount of the
    scheme's noise reaches.
    """
    kind = scheme if isinstance(scheme, str) else scheme.kind
    if not target > 0 or not math.isfinite(target):
        raise ValueError(f"target = {target!r} must be a number above 0, in units of the sharp value")
    bend, _, _ = measure.curvatures(gains.law, gains.names)
    per_gain = bend / 2 * process.factors(gains.law).K
    without = float(np.max(per_gain * gains.gain0))
    if target >= without:
        raise ValueError(
            f"without noise the sharp value is {without:.6g}, not above target = {target:g}: none is needed"
        )
    if kind == "rank_one":
        return _reached(gains, process, measure, target, RankOne(gain=target))
    template = _template(scheme)
    amount = _amount(gains, template, per_gain, target)
    m = process.factors(gains.law).m if measure.convention == "corrected" else 1.0
    return _reached(gains, process, measure, target, _of_amount(template, amount, m))


def frontier(
    gains: Gains,
    process: Process[Any],
    measure: Measure,
    targets: Sequence[float],
    schemes: Sequence[str | Noise] = SCHEMES,
) -> list[Reached]:
    """What each scheme costs at each target that is above 0 and below the value without noise: data of a figure."""
    return [noise_for(gains, process, measure, target, scheme) for scheme in schemes for target in targets]


def _template(scheme: str | Noise) -> Noise:
    if scheme == "isotropic" or isinstance(scheme, Isotropic):
        return Isotropic(sd=1.0)
    if scheme == "calibrated" or isinstance(scheme, Calibrated):
        return Calibrated(level=1.0)
    if isinstance(scheme, Gaussian | Laplace):
        return replace(scheme, epsilon=1.0)
    if scheme in ("gaussian", "laplace"):
        raise ValueError(f"{scheme} noise needs its sensitivity (and delta) to reach a target: give them")
    raise ValueError(f"no noise of scheme {scheme!r} can be chosen for a target: take one of {', '.join(SCHEMES)}")


def _amount(gains: Gains, template: Noise, per_gain: np.ndarray[Any, Any], target: float) -> float:
    """The least amount of S_0 for which every per_gain·gain is at most the target."""
    spectrum = gains.spectrum(template)
    loads = per_gain[:, None] * spectrum.loads

    def over(log_amount: float) -> float:
        return float(np.max(loads @ (1.0 / (1.0 + math.exp(log_amount) * spectrum.strengths)))) / target - 1.0

    hidden = spectrum.strengths > 0
    left = float(np.max(loads[:, ~hidden].sum(axis=1), initial=0.0))
    if left >= target:
        raise ValueError(
            f"target = {target:g} is out of reach of {template.kind} noise: however large, it leaves a sharp value of "
            f"{left:.6g}; take rank_one or calibrated noise"
        )
    if isinstance(template, Calibrated) and np.allclose(spectrum.strengths, 1.0, rtol=1e-12, atol=0.0):
        return float(np.max(loads.sum(axis=1))) / target - 1.0
    low = -math.log(float(spectrum.strengths.max()))
    high = -math.log(float(spectrum.strengths[hidden].min()))
    while over(low) < 0 and low > -LIMIT:
        low -= 4.0
    while over(high) > 0 and high < LIMIT:
        high += 4.0
    if over(low) < 0:  # the target differs from the value without noise by rounding alone
        return math.exp(low)
    if over(high) > 0:
        raise ValueError(
            f"target = {target:g} needs more {template.kind} noise than a number can hold; take a higher one"
        )
    return math.exp(brentq(over, low, high, xtol=1e-14, rtol=1e-14))


def _of_amount(template: Noise, amount: float, m: float) -> Noise:
    """The scheme like the template whose amount is the given one."""
    if isinstance(template, Calibrated):
        return Calibrated(level=amount)
    if isinstance(template, Isotropic):
        return Isotropic(sd=math.sqrt(amount / m))
    if isinstance(template, Laplace):
        return replace(template, epsilon=math.sqrt(template.amount(m) / amount))
    if not isinstance(template, Gaussian):
        raise TypeError(f"{template.kind} has no amount to choose")
    unit = template.unit_sd * math.sqrt(amount / template.amount(m))
    if profile(0.0, unit) <= template.delta:
        raise ValueError(
            f"the noise that reaches the target is so large that it is (0, {template.delta:g})-DP: no ε above "
            "0 asks for that much; take isotropic noise"
        )
    low = high = 0.0
    while profile(math.exp(low), unit) <= template.delta:
        low -= 1.0
    while profile(math.exp(high), unit) > template.delta:
        high += 1.0
    epsilon = math.exp(brentq(lambda u: profile(math.exp(u), unit) - template.delta, low, high, xtol=1e-14, rtol=1e-14))
    return replace(template, epsilon=epsilon)


def _reached(gains: Gains, process: Process[Any], measure: Measure, target: float, noise: Noise) -> Reached:
    values = gains.values(process, noise, measure)
    return Reached(
        target=target,
        scheme=noise.kind,
        noise=noise,
        sharp=float(np.max(values.sharp)),
        utility_cost=float(values.utility_cost[0]),
    )
