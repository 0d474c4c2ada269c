"""E_I[e^{−tZ_I}] and its parts by a recursion of positive terms: the oracle of ``contour``, and quick for small n'.

With x_u = e^{−tλ_u} and N the examples seen so far, f_N(j) = E[Π_{u hit} x_u] over a uniform j-subset of them, j ≤ n'.
One more example at point u is in the subset with probability j/(N + 1); the first one of its point to be taken pays
x_u. So with ``untouched`` and ``touched`` apart (none, some of u's examples taken),

    untouched'(j) = (1 − j/N')·untouched(j)
    touched'(j)   = (1 − j/N')·touched(j) + (j/N')·(touched(j − 1) + x_u·untouched(j − 1)),      N' = N + 1.

Every value is an average of probabilities: nothing cancels or overflows. The adjoint, carried backwards, gives for
every point v at once G_v = E[1{v ∈ T}·e^{−tZ_I}] = Σ_j adjoint(j)·touched_v(j). Cost O(n·n') a node.
"""

import numba
import numpy as np
from numpy.typing import NDArray

SPILL = 1e-200
"""A running sum below this, in units of the largest node, is put away as a log before it underflows."""


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _node(
    x: NDArray[np.float64],
    held: NDArray[np.int64],
    size: int,
    touched: NDArray[np.float64],
    state: NDArray[np.float64],
    hit: NDArray[np.float64],
) -> float:
    state[:] = 0.0
    state[0] = 1.0
    low = np.empty(size + 2)
    n = 0
    for v in range(len(x)):
        w = touched[v]
        w[:] = 0.0
        for _ in range(held[v]):
            n += 1
            for j in range(min(size, n), 0, -1):
                take = j / n
                w[j] = (1.0 - take) * w[j] + take * (w[j - 1] + x[v] * state[j - 1])
                state[j] *= 1.0 - take
        for j in range(size + 1):
            state[j] += w[j]
    total = state[size]
    state[:] = 0.0
    state[size] = 1.0
    for v in range(len(x) - 1, -1, -1):
        w = touched[v]
        found = 0.0
        for j in range(size + 1):
            found += state[j] * w[j]
        hit[v] = found
        low[:] = 0.0
        low[: size + 1] = state
        for _ in range(held[v]):
            for j in range(min(size, n) + 1):
                stay = 1.0 - j / n
                up = (j + 1) / n * low[j + 1]
                state[j] = stay * state[j] + x[v] * up
                low[j] = stay * low[j] + up
            n -= 1
    return float(total)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _integrate(
    log_scale: NDArray[np.float64],
    held: NDArray[np.int64],
    size: int,
    tau: NDArray[np.float64],
    log_step: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float]:
    k = len(held)
    touched = np.empty((k, size + 1))
    state = np.empty(size + 1)
    hit = np.empty(k)
    total, settled = np.zeros(k), np.full(k, -np.inf)
    null, top = 0.0, -np.inf
    for i in range(len(tau)):
        value = _node(np.exp(-np.exp(tau[i] + log_scale)), held, size, touched, state, hit)
        if value == 0.0:
            break
        logs = log_step[i] + np.log(value) - np.exp(tau[i])
        if logs > top:
            down = np.exp(top - logs)
            null *= down
            for v in range(k):
                if 0.0 < total[v] * down < SPILL or (total[v] > 0.0 and down == 0.0):
                    settled[v] = np.logaddexp(settled[v], top + np.log(total[v]))
                    total[v] = 0.0
                total[v] *= down
            top = logs
        part = np.exp(logs - top)
        null += part
        total += part / value * hit
    return np.logaddexp(settled, top + np.log(total)), top + np.log(null)


def integrate(
    log_scale: NDArray[np.float64],
    held: NDArray[np.int64],
    size: int,
    tau: NDArray[np.float64],
    log_step: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float]:
    """log of Σ_i e^{log_step_i}·E[1{v ∈ T} e^{−t_i Z}] for every point v and of Σ_i e^{log_step_i}·E[e^{−t_i Z}].

    ``log_scale`` (k,) is log λ_v with λ_0 = 1, ``held`` (k,) the examples at each point, ``size`` is n', ``tau`` the
    nodes log t in increasing order.
    """
    logs, null = _integrate(log_scale, held, size, tau, log_step)
    return np.asarray(logs), float(null)
