"""The efficient attacker, run: in go breaches and a noisy release, out comes what the release gained it, with errors.

The attacker knows λ + Δ and evaluates the release's moments on the rows it holds: to first order ḡ + GΔ. Its
generalised method of moments corrects the estimate of the target's mean by θ₁ − θ₂ = Cᵀ(V + G S_eff Gᵀ)⁺(ḡ + GΔ): the
weights of P2 Theorem 3.2 with S_eff = m·S_tot, as the noise is drawn once and does not average out over the rows held.
Where only rows that it has not seen are predicted, the mean of all rows is corrected, and carried over to them.

Two quantities are estimated apart. E(θ₁ − θ₂)², which is K·gain if the law is right, has a small variance. The cross
term E(θ₁ − θ₂)(θ₂ − truth), which is 0 if the attacker is efficient, has a large one. Their sum E(θ₁ − truth)² −
E(θ₂ − truth)² = E(θ₁ − θ₂)² + 2·cross is what any attacker gains, efficient or not.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.breaches import Breaches, draw_breaches
from predcube.tasks.frames import Frame, Groups
from predcube.tasks.gains import Gains, Measure
from predcube.tasks.noises import Noise
from predcube.tasks.noises.laplace import Laplace
from predcube.tasks.processes.base import Process
from predcube.tasks.releases.base import Fitted
from predcube.tasks.seeds import stream

type Array = NDArray[np.float64]

BLOCK = 2**12
"""Draws attacked at once; a constant, since the order of additions depends on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What the attacker gained over R ``draws``, for Q queries; arrays are (Q,), gains in squared units of the query.

    simulated_gain: mean of (θ₁ − θ₂)². simulated_ratio: that over K·gain, NaN where the latter is 0; the same for every
    loss, as sharp values are multiples of both. cross: mean of (θ₁ − θ₂)(θ₂ − truth). improvement: mean of
    (θ₁ − truth)² − (θ₂ − truth)². before: mean of (θ₁ − truth)², which is K·s1 where the law is right. Each has a
    standard error.
    """

    draws: int
    simulated_gain: Array
    simulated_gain_error: Array
    simulated_ratio: Array
    simulated_ratio_error: Array
    cross: Array
    cross_error: Array
    improvement: Array
    improvement_error: Array
    before: Array
    before_error: Array


def draws_needed(r: float, relative: float = 0.1) -> int:
    """Draws from which the raw loss difference has this ``relative`` standard error: (2/(r·relative))², 100·(2/r)² for
    10%. More than enough for ``simulated_gain``, whose relative error is √(2/R) whatever r; to be fixed before a
    comparison is made. ValueError unless 0 < r ≤ 1 and ``relative`` > 0.

    >>> draws_needed(0.2)
    10000
    """
    if not (0 < r <= 1 and relative > 0):
        raise ValueError(f"r = {r} must lie in (0, 1] and relative = {relative} be above 0")
    return math.ceil((2 / (r * relative)) ** 2 * (1 - 1e-12))


def attack(
    breaches: Breaches,
    gains: Gains,
    process: Process[Any],
    noise: Noise,
    *,
    measure: Measure | None = None,
    rng: np.random.Generator,
) -> Simulation:
    """Release noisily once for every breach, and let the attacker correct its estimates.

    ``rng``: a stream of ``seeds`` for noise. ``measure.convention`` = "paper" makes it an attacker that takes S_tot for
    m·S_tot. ValueError where the noise is infeasible.
    """
    measure = Measure() if measure is None else measure
    law = gains.law
    amount, shape, m = gains.amount(process, noise, measure)
    # Beside the moments the attacker sees combinations of λ that no data move, and in them the noise alone.
    root = np.concatenate([shape.moments, shape.seen])
    silent = len(shape.seen)
    variance, cross = np.pad(law.variance, (0, silent)), np.pad(law.cross, ((0, 0), (0, silent)))
    weights = _solved(variance + amount * (root @ root.T), cross.T)
    spread = math.sqrt(amount / m)
    beta = _residual(breaches)
    sums = np.zeros((4, 2, len(law.p)))
    for start in range(0, breaches.draws, BLOCK):
        part = slice(start, start + BLOCK)
        held, before = breaches.moments[part], breaches.before[part]
        if breaches.known is not None:
            known = breaches.known[part, None]
            held, before = held - known * beta[1], before - breaches.scale[part] * known * beta[0]
        size = (len(held), root.shape[1])
        unit = rng.laplace(scale=math.sqrt(0.5), size=size) if isinstance(noise, Laplace) else rng.standard_normal(size)
        held = np.pad(held, ((0, 0), (0, silent)))
        moved = breaches.scale[part] * ((held + spread * (unit @ root.T)) @ weights)
        error = before - breaches.truth[part]
        cross = moved * (error - moved)
        for place, values in enumerate((moved**2, cross, moved**2 + 2 * cross, error**2)):
            sums[place] += values.sum(axis=0), (values**2).sum(axis=0)
    mean, errors = _finished(sums, breaches.draws)
    expected = process.factors(law).K * gains.gain(process, noise, measure)
    positive = np.where(expected > 0, expected, np.nan)
    return Simulation(
        draws=breaches.draws,
        simulated_gain=mean[0],
        simulated_gain_error=errors[0],
        simulated_ratio=mean[0] / positive,
        simulated_ratio_error=errors[0] / positive,
        cross=mean[1],
        cross_error=errors[1],
        improvement=mean[2],
        improvement_error=errors[2],
        before=mean[3],
        before_error=errors[3],
    )


def simulate(
    frame: Frame,
    fitted: Fitted,
    process: Process[Any],
    noise: Noise,
    *,
    measure: Measure | None = None,
    groups: Groups | None = None,
    draws: int,
    seed: int = 0,
    trial: int = 0,
) -> Simulation:
    """Breaches, noise and attacker of one cell, on a table that is one frame.

    The streams are ("breach", the process) and ("noise", the process and the noise), so that cells that differ in the
    noise alone attack the same breaches: draw those once with ``draw_breaches`` where there are many.
    """
    moments = fitted.moments(frame.inputs)
    law = process.law(process.request(fitted, groups)(frame), groups)
    breaches = draw_breaches(
        frame, moments, process, groups=groups, draws=draws, rng=breach_stream(seed, process, law.rows, trial)
    )
    gains = Gains(law=law, coordinates=fitted)
    return attack(
        breaches, gains, process, noise, measure=measure, rng=noise_stream(seed, process, noise, law.rows, trial)
    )


def breach_stream(seed: int, process: Process[Any], rows: int, trial: int) -> np.random.Generator:
    """The stream of a process's breaches of a table of N rows."""
    return stream(seed, "breach", *_identity(process), rows, trial)


def noise_stream(seed: int, process: Process[Any], noise: Noise, rows: int, trial: int) -> np.random.Generator:
    """The stream of the noise that is added for each of them."""
    return stream(seed, "noise", *_identity(process), noise.kind, dict(noise.parameters()), rows, trial)


def _identity(process: Process[Any]) -> tuple[Any, ...]:
    amounts = {name: getattr(process, name, None) for name in ("size", "fraction", "count", "steps", "members")}
    return (list(process.key), {name: value for name, value in amounts.items() if value is not None})


def _solved(matrix: Array, right: Array) -> Array:
    """matrix⁺·right of a positive semidefinite matrix, in units of its diagonal: (d, d), (d, Q)."""
    sd = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale = np.where(sd > 0, sd, 1.0)
    inverse = np.linalg.pinv(matrix / np.outer(scale, scale), rcond=1e-13, hermitian=True)
    solved: Array = (inverse @ (right / scale[:, None])) / scale[:, None]
    return solved


def _residual(breaches: Breaches) -> tuple[Array, Array]:
    """Coefficients of estimate (Q,) and moments (d,) on the mean of w less 1, over all draws: what an attacker takes
    away who knows the law of its weights."""
    known = breaches.known
    if known is None:
        return np.zeros(breaches.before.shape[1]), np.zeros(breaches.moments.shape[1])
    square = float(known @ known)
    if square == 0:
        return np.zeros(breaches.before.shape[1]), np.zeros(breaches.moments.shape[1])
    # The estimate of the whole target's mean moves a prediction by ``scale``.
    whole = (breaches.before - breaches.truth) / breaches.scale
    return known @ whole / square, known @ breaches.moments / square


def _finished(sums: Array, draws: int) -> tuple[Array, Array]:
    """Means and standard errors from sums of values and of their squares, (4, 2, Q)."""
    mean = sums[:, 0] / draws
    spread = np.maximum(sums[:, 1] / draws - mean**2, 0.0)
    return mean, np.sqrt(spread / max(draws - 1, 1))
