"""Weights of an additive class by Laplace's integral: in go the losses of the points' hypotheses, out come log-weights.

Where Z_I = λ_0 + Σ_{v∈T} λ_v, with λ_v = e^{−β·n·L_S(h_v)} a function of the point alone (thresholds with the rule "at
a point of T"), 1/Z = ∫₀^∞ e^{−tZ} dt turns the mean over subsets into an integral of leave-one-out coefficients:

    w_v = λ_v ∫ E_I[1{v ∈ T} e^{−tZ_I}] dt,       w_0 = λ_0 ∫ E_I[e^{−tZ_I}] dt.

Every w is a mean over subsets of the same function 1/Z, so the error of a quadrature rule in t is, *relative to every
weight*, at most its worst error on 1/Z over the range of Z: a question in one variable, whatever the sample. The rule
is double-exponential, t = exp(u − e^{−u})/Z_max, with step 1/4: below 2e-15 for every Z in [Z_min, Z_max] (tested).

Always true: λ, t and the weights are carried as logs (β·n may be thousands); the weights sum to 1 to 1e-12, which is
asserted and never mended by dividing.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.mixture import contour, recursion, sharing
from predcube.tasks.mixture.base import MixtureWeights, Occupancy, log_sum

STEP = 0.25
LEFT = -3.6  # t·Z_max = exp(−3.6 − e^{3.6}) is 5e-18 of the whole integral and falls
RIGHT = 3.7  # e^{−t·Z_min} = e^{−40}
SMALL = 20
"""Up to this n' the recursion, O(n·n') a node, is no slower than the contour."""
SHARED = 64
"""Up to this many points samples share tables; beyond, each is quicker by itself, points of equal loss merged."""
MAGNIFIED = 500.0
"""Rounding may grow by this factor on the contour before the recursion takes over."""


def nodes(log_least: float, log_most: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """log t_i in increasing order, and log q_i, with Σ_i q_i e^{−t_i Z} = 1/Z to 2e-15 for log Z in the range."""
    tau, rest = _grid(math.ceil((RIGHT - LEFT + log_most - log_least) / STEP))
    tau = tau - log_most
    return tau, tau + rest


@lru_cache(maxsize=64)
def _grid(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The nodes for Z_max = 1, and log STEP + log(1 + e^{−u})."""
    u = LEFT + STEP * np.arange(count, dtype=np.float64)
    return np.asarray(u - np.exp(-u)), np.asarray(math.log(STEP) + np.log1p(np.exp(-u)))


@lru_cache(maxsize=1024)
def log_binomial(n: int, k: int) -> float:
    """log C(n, k), correctly rounded as long as the integer is of moderate size; else to 1e-15 of log n!."""
    if min(k, n - k) <= 2000:
        return math.log(math.comb(n, k))
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def log_weights(
    losses: NDArray[np.float64],
    held: NDArray[np.int64],
    *,
    subset_size: int,
    beta: float,
    relative: bool = True,
    kernel: str = "auto",
) -> NDArray[np.float64]:
    """log w of the null hypothesis and of the k points' hypotheses, (k + 1,).

    ``losses`` (k + 1,) are their n·L_S, null first; ``held`` (k,) the examples at each point, ≥ 0 (−inf where 0).
    ``kernel`` is auto, contour or recursion. Raises ArithmeticError where the weights do not sum to 1.
    """
    found = np.full(len(losses), -np.inf)
    present = np.flatnonzero(held > 0)
    log_scale, c = beta * (losses[0] - losses[1:][present]), held[present]
    n = int(c.sum())
    if subset_size == n:
        # T is all of S: one softmax.
        logs = np.concatenate([[0.0], log_scale])
        found[np.append(0, present + 1)] = logs - log_sum(logs)
        return found
    ordered = np.sort(log_scale)
    top = max(float(ordered[-1]), 0.0)
    most = top + math.log(math.exp(-top) + float(np.exp(ordered[-subset_size:] - top).sum()))
    tau, log_step = nodes(contour.softplus(float(ordered[0])), most)
    log_subsets = log_binomial(n, subset_size)
    tolerance = 1e-12 * max(1.0, log_subsets / 300.0)
    by_recursion = kernel == "recursion" or (kernel == "auto" and subset_size <= SMALL)
    if not by_recursion:
        logs, null, magnified = contour.integrate(
            log_scale, c, subset_size, log_subsets, tau, log_step, contour.softplus(float(ordered[0])), relative
        )
        found[0], found[present + 1] = null, log_scale + logs
        by_recursion = kernel == "auto" and not (magnified < MAGNIFIED and abs(excess(found)) <= tolerance)
    if by_recursion:
        logs, null = recursion.integrate(log_scale, c, subset_size, tau, log_step, relative)
        found[0], found[present + 1] = null, log_scale + logs
    check_sum(found, tolerance, f"n = {n}, n' = {subset_size}, beta = {beta}")
    return found


def batch_log_weights(
    losses: NDArray[np.float64], held: NDArray[np.int64], *, subset_size: int, beta: float
) -> NDArray[np.float64]:
    """The same for B samples of one size on the same points: ``losses`` (B, k + 1), ``held`` (B, k) → (B, k + 1).
    Few points share tables; a sample for which the shared circle is a bad one is done by itself."""
    found = np.full(losses.shape, -np.inf)
    n = int(held[0].sum())
    alone = np.ones(len(losses), dtype=bool)
    if len(losses) > 1 and held.shape[1] <= SHARED and subset_size < n:
        log_scale = beta * (losses[:, :1] - losses[:, 1:])
        present = held > 0
        least = float(np.logaddexp(0.0, log_scale[present].min()))
        most = float(log_sum(np.append(0.0, np.sort(np.where(present, log_scale, -np.inf).max(axis=0)))))
        tau, log_step = nodes(least, most)
        log_subsets = log_binomial(n, subset_size)
        logs, null, magnified = sharing.integrate(log_scale, held, subset_size, log_subsets, tau, log_step)
        found[:, 0], found[:, 1:] = null, log_scale + logs
        off = np.abs(excess(found.T))
        alone = ~((magnified < MAGNIFIED) & (off <= 1e-12 * max(1.0, log_subsets / 300.0)))
    for b in np.flatnonzero(alone):
        found[b] = log_weights(losses[b], held[b], subset_size=subset_size, beta=beta)
    return found


def excess(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ w − 1 over axis 0."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(logs).sum(axis=0) - 1.0)


def check_sum(logs: NDArray[np.float64], tolerance: float, where: str) -> None:
    """Raise ArithmeticError unless the weights sum to 1: dividing by their sum would hide what went wrong."""
    off = float(excess(logs))
    if not abs(off) <= tolerance:
        raise ArithmeticError(
            f"the laplace weights at {where} sum to 1 + {off:.2e}, beyond {tolerance:.0e}; "
            'take method = "support" or "enumerate", and report it'
        )


def weights(
    hypotheses: HypothesisClass, sample: Occupancy, *, subset_size: int, beta: float, relative: bool
) -> MixtureWeights:
    """The mixture over random subsets of n' examples on an additive class; source: Dagan & Feldman 2020, Lemma
    stable-main, for the mixture."""
    representatives = hypotheses.representatives(sample.points)
    losses = hypotheses.loss(representatives, sample.points, sample.counts)
    held = sample.counts.sum(axis=1)[::-1]  # representatives come from the last point down
    logs = log_weights(losses, held, subset_size=subset_size, beta=beta, relative=relative)
    return MixtureWeights(representatives=representatives, log_weights=logs, method="laplace", relative=relative)
