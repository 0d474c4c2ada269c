"""E_I[e^{−tZ_I}] and its parts by a recursion of positive terms: the oracle of ``contour``, and quick for small n'.

With x_u = e^{−tλ_u} and N the examples seen so far, f_N(j) = E[Π_{u hit} x_u] over a uniform j-subset of them, j ≤ n'.
One more example at point u is in the subset with probability j/(N + 1); the first one of its point to be taken pays
x_u. So with ``untouched`` and ``touched`` apart (none, some of u's examples taken),

    untouched'(j) = (1 − j/N')·untouched(j)
    touched'(j)   = (1 − j/N')·touched(j) + (j/N')·(touched(j − 1) + x_u·untouched(j − 1)),      N' = N + 1.

Every value is an average of probabilities: nothing cancels or overflows. The adjoint, carried backwards, gives for
every point v at once G_v = E[1{v ∈ T}·e^{−tZ_I}] = Σ_j adjoint(j)·touched_v(j). Cost O(n·n') a node.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

SPILL = 1e-200
"""A running sum below this, in units of the largest node, is put away as a log before it underflows."""
MEMORY = 2**17
"""Floats that the nodes taken together may keep, 1 MB, as long as they are sixteen."""
ENOUGH = -37.0
"""log E[e^{−tZ}] below which what later nodes add is lost in a sum that need not be relative."""


@numba.njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _nodes(
    x: NDArray[np.float64],
    held: NDArray[np.int64],
    size: int,
    touched: NDArray[np.float64],
    hit: NDArray[np.float64],
) -> NDArray[np.float64]:
    """E[e^{−t(Z − λ_0)}] at each of some nodes, (nodes,), and G_v in ``hit`` (k, nodes): ``x`` (k, nodes), and
    ``touched`` (k, size + 1, nodes) to work in. The nodes are independent, so they are the innermost loop."""
    k, width = x.shape
    n = 0
    state, other = np.zeros((size + 2, width)), np.zeros((size + 2, width))
    state[0] = 1.0
    for v in range(k):
        if held[v] == 1:
            # From one array into another: in place the compiler would not dare to take several nodes at once.
            n += 1
            for j in range(1, min(size, n) + 1):
                take = j / n
                stay = 1.0 - take
                for i in range(width):
                    taken = take * (x[v, i] * state[j - 1, i])
                    touched[v, j, i] = taken
                    other[j, i] = stay * state[j, i] + taken
            other[0] = state[0]
            state, other = other, state
            continue
        touched[v] = 0.0
        for _ in range(held[v]):
            n += 1
            for j in range(min(size, n), 0, -1):
                take = j / n
                stay = 1.0 - take
                for i in range(width):
                    taken = take * (touched[v, j - 1, i] + x[v, i] * state[j - 1, i])
                    touched[v, j, i] = stay * touched[v, j, i] + taken
                    state[j, i] *= stay
        for j in range(1, min(size, n) + 1):
            for i in range(width):
                state[j, i] += touched[v, j, i]
    total: NDArray[np.float64] = state[size].copy()
    state[:] = 0.0
    other[:] = 0.0
    state[size] = 1.0
    for v in range(k - 1, -1, -1):
        hit[v] = 0.0
        for j in range(1, min(size, n) + 1):
            for i in range(width):
                hit[v, i] += state[j, i] * touched[v, j, i]
        if held[v] == 1:
            for j in range(min(size, n) + 1):
                stay, up = 1.0 - j / n, (j + 1) / n
                for i in range(width):
                    other[j, i] = stay * state[j, i] + x[v, i] * (up * state[j + 1, i])
            for j in range(min(size, n) + 1, size + 1):
                other[j] = 0.0
            n -= 1
            state, other = other, state
            continue
        low = state.copy()
        for _ in range(held[v]):
            for j in range(min(size, n) + 1):
                stay, up = 1.0 - j / n, (j + 1) / n
                for i in range(width):
                    gone = up * low[j + 1, i]
                    state[j, i] = stay * state[j, i] + x[v, i] * gone
                    low[j, i] = stay * low[j, i] + gone
            n -= 1
    return total


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _add(
    x: NDArray[np.float64],
    held: NDArray[np.int64],
    size: int,
    tau: NDArray[np.float64],
    log_step: NDArray[np.float64],
    relative: bool,
    touched: NDArray[np.float64],
    total: NDArray[np.float64],
    settled: NDArray[np.float64],
    null: float,
    top: float,
) -> tuple[float, float, bool]:
    """Adds some nodes to the points' sums (``settled`` as logs, and ``total`` in units of e^top) and the null one;
    whether later nodes add nothing."""
    hit = np.empty(x.shape)
    values = _nodes(x, held, size, touched, hit)
    for i in range(len(tau)):
        value = values[i]
        if value == 0.0:
            return null, top, True
        peak = math.log(value) - math.exp(tau[i])
        logs = log_step[i] + peak
        if logs > top:
            down = math.exp(top - logs)
            null *= down
            for v in range(len(x)):
                if 0.0 < total[v] * down < SPILL or (total[v] > 0.0 and down == 0.0):
                    settled[v] = np.logaddexp(settled[v], top + math.log(total[v]))
                    total[v] = 0.0
                total[v] *= down
            top = logs
        part = math.exp(logs - top)
        null += part
        for v in range(len(x)):
            total[v] += part / value * hit[v, i]
        if not relative and peak < ENOUGH:
            return null, top, True
    return null, top, False


def integrate(
    log_scale: NDArray[np.float64],
    held: NDArray[np.int64],
    size: int,
    tau: NDArray[np.float64],
    log_step: NDArray[np.float64],
    relative: bool = True,
) -> tuple[NDArray[np.float64], float]:
    """log of Σ_i e^{log_step_i}·E[1{v ∈ T} e^{−t_i Z}] for every point v and of Σ_i e^{log_step_i}·E[e^{−t_i Z}].

    ``log_scale`` (k,) is log λ_v with λ_0 = 1, ``held`` (k,) the examples at each point, ``size`` is n', ``tau`` the
    nodes log t in increasing order. Without ``relative`` the nodes end where E[e^{−tZ}] < 1e-16.
    """
    k = len(held)
    # Nodes taken together, a multiple of what a processor takes at once. They do not meet: no number depends on it.
    width = min(8 * -(-len(tau) // 8), max(16, 8 * (MEMORY // (8 * k * (size + 1)))), 64)
    touched = np.empty((k, size + 1, width))
    total, settled = np.zeros(k), np.full(k, -np.inf)
    x = np.zeros((k, width))  # what is left over of the last nodes is computed and never read
    null, top, done, first = 0.0, -np.inf, False, 0
    while first < len(tau) and not done:
        own = tau[first : first + width]
        x[:, : len(own)] = np.exp(-np.exp(np.minimum(log_scale[:, None] + own, 700.0)))
        null, top, done = _add(
            x, held, size, own, log_step[first : first + width], relative, touched, total, settled, null, top
        )
        first += width
    with np.errstate(divide="ignore"):
        return np.logaddexp(settled, top + np.log(total)), top + math.log(null)
