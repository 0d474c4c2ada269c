"""A noisy count seen by a Bayes attacker: in go weights of the counts, out come expectations over the noise.

A count k ∈ {0, …, N} is released as y = k + Δ. The attacker's weights W_k (prior times likelihood of what it holds)
give densities at y, D_v(y) = Σ_k W_{v,k} f(y − k), and it answers with a function φ of them, such as a posterior mean.
Wanted is E[φ(y) | k] = ∫ f(y − k) φ(y) dy for every k. Both rules below give it as a series of refinements, each
with an error far below the last's; φ is analytic in a strip around every piece of the line, so they converge
geometrically.

* Laplace, f(t) = e^{−|t|/b}/2b. Between neighbouring integers D_v(i + t) = (A_i e^{−t/b} + B_{i+1} e^{−(1−t)/b})/2b,
  where A and B are first-order recursions over the weights on either side; beyond 0 and N every D_v is one exponential.
  So a node costs O(N), Gauss–Legendre applies on [0, 1], and sums over i are recursions again. As a function of t the
  nearest singularity lies at distance πb/2 from the real line, which sets panels and orders.
* Gaussian. The trapezoid rule on the whole line; half the step keeps the nodes there were. The step starts where it is
  enough for two neighbouring counts (distance πσ²) and a sharp end of the weights (about 2.8σ).
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

type Function = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""φ: densities (V, points, J) to values (F, points, J)."""

REACH = 8.6
"""Standard deviations of Gaussian noise beyond which its mass, 8e-18, is left out."""
UNDERFLOW = 39.0
"""Standard deviations at which the Gaussian density is 0 in float64."""
BLOCK = 2**20
"""Elements of one array of densities at once."""
REFINEMENTS = 8


def laplace(weights: NDArray[np.float64], scale: float, function: Function) -> Iterator[NDArray[np.float64]]:
    """E[φ | k] for noise of density e^{−|t|/b}/2b, b = ``scale`` in counts: refinements of shape (F, N + 1, J), for
    ``weights`` (V, N + 1, J)."""
    rate = 1.0 / scale
    decay = math.exp(-rate)
    last = weights.shape[1] - 1
    below = _filtered(weights, decay)
    above = _filtered(weights[:, ::-1], decay)[:, ::-1]
    panels = max(1, math.ceil(rate))
    # ρ of the largest ellipse of analyticity around a panel; Gauss–Legendre of order g leaves an error ρ^(−2g).
    half = math.pi * scale * panels
    log_rho = math.log(half + math.hypot(half, 1.0))
    order = max(2, math.ceil(10.0 / log_rho))
    # Beyond either end every density falls as e^{−|y|/b} and the mean of |y|/b there is 1: exact for ratios and logs.
    ends = np.stack([above[:, 0], below[:, last]], axis=1) * (math.exp(-1.0) * rate / 2)
    at_ends = function(ends)
    falling = 0.5 * decay ** np.arange(last + 1)
    tails = at_ends[:, :1] * falling[:, None] + at_ends[:, 1:] * falling[::-1, None]
    while True:
        found = tails.copy()
        if last > 0:
            down, up = _inside(below, above, rate, panels, order, function)
            found[:, :-1] += _filtered(down[:, ::-1], decay)[:, ::-1]
            found[:, 1:] += _filtered(up, decay)
        yield found
        order *= 2


def _inside(
    below: NDArray[np.float64],
    above: NDArray[np.float64],
    rate: float,
    panels: int,
    order: int,
    function: Function,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """∫₀¹ φ(i + t) e^{−t/b}/2b dt and ∫₀¹ φ(i + t) e^{−(1−t)/b}/2b dt, each of shape (F, N, J)."""
    nodes, measure = np.polynomial.legendre.leggauss(order)
    t = ((np.arange(panels)[:, None] + (nodes + 1.0) / 2) / panels).ravel()
    measure = np.tile(measure / (2 * panels), panels)
    falling: NDArray[np.float64] | float = 0.0
    rising: NDArray[np.float64] | float = 0.0
    for place, mass in zip(t.tolist(), measure.tolist(), strict=True):
        down, up = math.exp(-place * rate) * rate / 2, math.exp(-(1.0 - place) * rate) * rate / 2
        part = function(below[:, :-1] * down + above[:, 1:] * up)
        falling = falling + part * (mass * down)
        rising = rising + part * (mass * up)
    return np.asarray(falling), np.asarray(rising)


def gaussian(weights: NDArray[np.float64], sd: float, function: Function) -> Iterator[NDArray[np.float64]]:
    """E[φ | k] for normal noise of standard deviation ``sd`` counts: refinements of shape (F, N + 1, J), for
    ``weights`` (V, N + 1, J)."""
    step = min(sd / 2, sd * sd / 2)
    found = _trapezoid(weights, sd, function, step, 0.0)
    yield found
    for _ in range(REFINEMENTS):
        found = (found + _trapezoid(weights, sd, function, step, step / 2)) / 2
        yield found
        step /= 2


def _trapezoid(
    weights: NDArray[np.float64], sd: float, function: Function, step: float, shift: float
) -> NDArray[np.float64]:
    columns, counts, width = weights.shape
    first = math.floor(-REACH * sd / step)
    nodes = shift + step * np.arange(first, math.ceil((counts - 1 + REACH * sd) / step) + 1)
    total: NDArray[np.float64] | None = None
    length = max(1, min(BLOCK // width, math.ceil(40.0 * sd / step)))
    for start in range(0, len(nodes), length):
        y = nodes[start : start + length]
        near = slice(max(0, math.floor(y[0] - UNDERFLOW * sd)), max(1, math.ceil(y[-1] + UNDERFLOW * sd) + 1))
        k = np.arange(counts)[near]
        kernel = np.exp(-0.5 * ((y[:, None] - k) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
        values = function(np.stack([kernel @ weights[v, near] for v in range(columns)]))
        if total is None:
            total = np.zeros((len(values), counts, width))
        for v in range(len(values)):
            total[v, near] += step * (kernel.T @ values[v])
    assert total is not None
    return total


def _filtered(values: NDArray[np.float64], decay: float) -> NDArray[np.float64]:
    """s_i = values_i + decay·s_{i−1} along axis 1."""
    return np.asarray(lfilter([1.0], [1.0, -decay], values, axis=1))
