"""The contour of many samples at once: in go B samples on the same few points, out come all their integrals.

Samples that differ by a record share almost everything: a point's factor depends on its loss and count alone, and few
such pairs occur. So one grid of t and, at each t, one circle serve all samples, with one table of the factors r_u(θ)
and of the terms p_u·g_u/r_u over the distinct pairs u; what is left for a sample is a product and a dot product a point
(see ``contour`` for the formulas). The circle is the saddle of the average sample: for a sample far from it the
integrand no longer peaks at θ = 0: rounding grows and aliases rise, which ``magnified`` tells.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

from predcube.tasks.mixture.contour import ATTEMPTS, SPECK, TAIL, log_factor, softplus
from predcube.tasks.mixture.recursion import SPILL

ROUNDING = 1e-16
"""One rounding: an alias counts as so many of them."""


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _saddle(
    a: NDArray[np.float64], c: NDArray[np.int64], often: NDArray[np.float64], size: int, y: float
) -> tuple[float, float]:
    """log ρ at which the average sample's mean is n', and its variance there."""
    low, high, variance = -np.inf, np.inf, 0.0
    for attempt in range(ATTEMPTS):
        soft = max(y, 0.0) + math.log1p(math.exp(-abs(y)))
        s = 1.0 / (1.0 + math.exp(-y))
        mean, variance = 0.0, 0.0
        for u in range(len(a)):
            rest = -math.expm1(-c[u] * soft)
            odds = c[u] * soft + math.log(rest) - a[u]
            chance = 1.0 / (1.0 + math.exp(min(-odds, 700.0)))
            once = c[u] * s / rest
            twice = once * (1.0 + (c[u] - 1) * s)
            mean += often[u] * chance * once
            variance += often[u] * (chance * twice - (chance * once) ** 2)
        off = mean - size
        variance = max(variance, 0.0)
        if abs(off) <= 0.02 * min(math.sqrt(variance), 1.0) or high - low < 1e-9 or attempt == ATTEMPTS - 1:
            break
        if off > 0:
            high = y
        else:
            low = y
        step = -off / variance if variance > 1e-12 else (20.0 if off < 0 else -20.0)
        new = y + max(min(step, 20.0), -20.0)
        inside = low < new < high and (attempt % 4 < 3 or high - low == np.inf)
        y = new if inside else 0.5 * (low + high)
    return y, variance


@numba.njit(cache=True, fastmath={"reassoc"})  # type: ignore[untyped-decorator]
def _add(
    pair: NDArray[np.int64],
    r_re: NDArray[np.float64],
    r_im: NDArray[np.float64],
    t_re: NDArray[np.float64],
    t_im: NDArray[np.float64],
    start_re: NDArray[np.float64],
    start_im: NDArray[np.float64],
    share: NDArray[np.float64],
    nodes: int,
    q_re: NDArray[np.float64],
    q_im: NDArray[np.float64],
    hits: NDArray[np.float64],
) -> tuple[float, float]:
    """One sample at one t: mean_θ Q, mean_θ |Q| and, in ``hits``, each point's term. The last row of a table is for a
    point without examples."""
    for m in range(nodes):
        q_re[m], q_im[m] = start_re[m], start_im[m]
    for u in pair:
        for m in range(nodes):
            re = q_re[m] * r_re[u, m] - q_im[m] * r_im[u, m]
            q_im[m] = q_re[m] * r_im[u, m] + q_im[m] * r_re[u, m]
            q_re[m] = re
    value, modulus = 0.0, 0.0
    for m in range(nodes):
        modulus += share[m] * math.sqrt(q_re[m] * q_re[m] + q_im[m] * q_im[m])
        q_re[m] *= share[m]
        q_im[m] *= share[m]
        value += q_re[m]
    for v in range(len(pair)):
        found = 0.0
        for m in range(nodes):
            found += q_re[m] * t_re[pair[v], m] - q_im[m] * t_im[pair[v], m]
        hits[v] = found
    return value, modulus


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _integrate(
    pairs: NDArray[np.int64],
    log_scale: NDArray[np.float64],
    c: NDArray[np.int64],
    often: NDArray[np.float64],
    size: int,
    log_subsets: float,
    tau: NDArray[np.float64],
    log_step: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    b_all, k = pairs.shape
    u_all = len(c)
    total, bound = np.zeros((b_all, k)), np.zeros((b_all, k))
    settled = np.full((b_all, k), -np.inf)
    null, null_bound, top = np.zeros(b_all), np.zeros(b_all), np.full(b_all, -np.inf)
    worst = np.zeros(b_all)
    hits = np.empty(k)
    a, chance, log_f = np.empty(u_all), np.zeros(u_all + 1), np.zeros(u_all + 1)
    higher, lower = np.zeros(u_all + 1), np.zeros(u_all + 1)
    q_re, q_im = np.empty(0), np.empty(0)
    share, start_re, start_im = np.empty(0), np.empty(0), np.empty(0)
    r_re, r_im = np.empty((0, 0)), np.empty((0, 0))
    t_re, t_im = np.empty((0, 0)), np.empty((0, 0))
    y = 0.0
    for i in range(len(tau)):
        for u in range(u_all):
            a[u] = math.exp(tau[i] + log_scale[u])
        y, variance = _saddle(a, c, often, size, y)
        sigma = math.sqrt(variance)
        tilt = min(8.6 / sigma, 2.0) if sigma > 0.0 else 2.0
        up, down, shift, ratio = -tilt * size, tilt * size, 0.0, 1.0 / (1.0 + math.exp(-y))
        for u in range(u_all):
            here = log_factor(c[u], y, a[u])
            higher[u] = log_factor(c[u], y + tilt, a[u]) - here
            lower[u] = log_factor(c[u], y - tilt, a[u]) - here
            up += often[u] * higher[u]
            down += often[u] * lower[u]
            # (1 − p) times the mean count of a point once hit, as in ``contour``.
            shift = max(shift, math.exp(-here) * c[u] * ratio / -math.expm1(-c[u] * softplus(y)))
        around = int(max((TAIL + up) / tilt + 2.0 * shift, min((TAIL + down) / tilt, size + 1.0)) + 1.0) | 1
        nodes = around // 2 + 1
        if nodes > len(q_re):
            q_re, q_im = np.empty(2 * nodes), np.empty(2 * nodes)
            share, start_re, start_im = np.empty(2 * nodes), np.empty(2 * nodes), np.empty(2 * nodes)
            # The last row: a point without examples has factor 1 and no share.
            r_re, r_im = np.ones((u_all + 1, 2 * nodes)), np.zeros((u_all + 1, 2 * nodes))
            t_re, t_im = np.zeros((u_all + 1, 2 * nodes)), np.zeros((u_all + 1, 2 * nodes))
        soft = max(y, 0.0) + math.log1p(math.exp(-abs(y)))
        s = 1.0 / (1.0 + math.exp(-y))
        for m in range(nodes):
            share[m] = (2.0 if m > 0 else 1.0) / around
            turn = 2.0 * math.pi * ((m * size) % around) / around
            start_re[m], start_im[m] = math.cos(turn), -math.sin(turn)
        for u in range(u_all):
            small = math.exp(-c[u] * soft)
            odds = c[u] * soft + math.log(-math.expm1(-c[u] * soft)) - a[u]
            chance[u] = 1.0 / (1.0 + math.exp(min(-odds, 700.0)))
            log_f[u] = max(odds, 0.0) + math.log1p(math.exp(-abs(odds)))
            # Pairs are sorted by count: g_c(θ) is kept in t until the count changes.
            if u == 0 or c[u] != c[u - 1]:
                for m in range(nodes):
                    half = math.sin(math.pi * m / around)
                    modulus = math.exp(0.5 * c[u] * math.log1p(-4.0 * s * (1.0 - s) * half * half))
                    turn = c[u] * math.atan2(s * math.sin(2.0 * math.pi * m / around), 1.0 - 2.0 * s * half * half)
                    t_re[u_all, m] = (modulus * math.cos(turn) - small) / (1.0 - small)
                    t_im[u_all, m] = modulus * math.sin(turn) / (1.0 - small)
            for m in range(nodes):
                g_r, g_i = t_re[u_all, m], t_im[u_all, m]
                re, im = (1.0 - chance[u]) + chance[u] * g_r, chance[u] * g_i
                if re * re + im * im < SPECK * SPECK:
                    re, im = SPECK, 0.0
                scale = chance[u] / (re * re + im * im)
                r_re[u, m], r_im[u, m] = re, im
                t_re[u, m], t_im[u, m] = scale * (g_r * re + g_i * im), scale * (g_i * re - g_r * im)
        t_re[u_all, :nodes] = 0.0
        t_im[u_all, :nodes] = 0.0
        base = log_step[i] - size * y - log_subsets - math.exp(tau[i])
        for b in range(b_all):
            logs = base
            up, down = -tilt * (size + around), tilt * (size - around)
            for u in pairs[b]:
                logs += log_f[u]
                up += higher[u]
                down += lower[u]
            alias = math.exp(min(up, 0.0)) + (math.exp(min(down, 0.0)) if around <= size else 0.0)
            value, modulus = _add(pairs[b], r_re, r_im, t_re, t_im, start_re, start_im, share, nodes, q_re, q_im, hits)
            modulus += alias / ROUNDING
            if logs > top[b]:
                down = math.exp(top[b] - logs)
                null[b] *= down
                null_bound[b] *= down
                for v in range(k):
                    if total[b, v] > 0.0 and total[b, v] * down < SPILL:
                        settled[b, v] = np.logaddexp(settled[b, v], top[b] + math.log(total[b, v]))
                        worst[b] = max(worst[b], bound[b, v] / total[b, v])
                        total[b, v] = bound[b, v] = 0.0
                    total[b, v] *= down
                    bound[b, v] *= down
                top[b] = logs
            part = math.exp(logs - top[b])
            null[b] += part * value
            null_bound[b] += part * modulus
            for v in range(k):
                total[b, v] += part * hits[v]
                bound[b, v] += part * modulus * chance[pairs[b, v]]
    for b in range(b_all):
        worst[b] = max(worst[b], null_bound[b] / null[b]) if null[b] > 0.0 else np.inf
        for v in range(k):
            if total[b, v] > 0.0:
                settled[b, v] = np.logaddexp(settled[b, v], top[b] + math.log(total[b, v]))
                worst[b] = max(worst[b], bound[b, v] / total[b, v])
            elif settled[b, v] == -np.inf and pairs[b, v] < u_all:
                worst[b] = np.inf
        null[b] = top[b] + math.log(null[b]) if null[b] > 0.0 else -np.inf
    return settled, null, worst


def integrate(
    log_scale: NDArray[np.float64],
    held: NDArray[np.int64],
    size: int,
    log_subsets: float,
    tau: NDArray[np.float64],
    log_step: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """As ``contour.integrate`` with relative accuracy, for B samples of one size: ``log_scale`` and ``held`` (B, k),
    held ≥ 0; logs of the points' sums (B, k), of the null sums (B,), and how far rounding was magnified (B,)."""
    values, place = np.unique(log_scale, return_inverse=True)
    code = held * len(values) + place.reshape(held.shape)  # sorted by count first
    code[held == 0] = np.iinfo(np.int64).max
    distinct, pairs, often = np.unique(code, return_inverse=True, return_counts=True)
    pairs = pairs.reshape(held.shape)
    if distinct[-1] == np.iinfo(np.int64).max:
        distinct, often = distinct[:-1], often[:-1]
    logs, null, worst = _integrate(
        pairs,
        values[distinct % len(values)],
        distinct // len(values),
        often / len(held),
        size,
        log_subsets,
        tau,
        log_step,
    )
    return np.asarray(logs), np.asarray(null), np.asarray(worst)
