"""E_I[e^{−tZ_I}] and its parts as a contour integral on the saddle circle: O(n) a node where the recursion is O(n·n').

With x_u = e^{−tλ_u}, c_u the examples at point u and P(z) = Π_u f_u(z), f_u = 1 + ((1 + z)^{c_u} − 1)·x_u,

    E[e^{−t(Z − λ_0)}] = [z^{n'}] P(z)/C(n, n'),     G_v = [z^{n'}] P(z)·((1 + z)^{c_v} − 1)·x_v/f_v(z) / C(n, n').

The coefficients are means over |z| = ρ. All f_u have coefficients ≥ 0, so P(ρ e^{iθ})/P(ρ) is the characteristic
function of a sum of independent counts B_u; ρ makes its mean n', so that the integrand peaks at θ = 0 with width 1/σ
and nothing cancels. M = 8.6σ + 18 points leave aliases below 1e-16; where points repeat, a Chernoff bound says M. With
p_u = Pr[B_u > 0] and g_c(θ) = ((1 + z)^c − 1)/((1 + ρ)^c − 1),

    f_u(z)/f_u(ρ) = r_u(θ) = 1 + p_u(g_c − 1),       G_v/P(ρ) = p_v · mean_θ[ P/P(ρ) · e^{−in'θ} · g_c/r_v ]

so each leave-one-out term is one division. Where every c = 1 the integrand is below e^{−38} beyond |θ| = 2 asin(4.4/σ).

Points are merged by (λ, c) and sorted by λ: at a node those with tλ < 1e-17 are one factor, and those whose p has
fallen below e^{−50} are done with, so a node costs what lies between. Everything that may leave the range of a float
(λ, t, P) is carried as a log.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

from predcube.tasks.mixture.recursion import SPILL

SATURATED = -39.2
"""log(tλ) below which e^{−tλ} is 1 in a float."""
SPECK = 1e-60
"""Stands for a factor r_u(θ) that has rounded to 0, so that what the product loses the quotient gives back."""
ATTEMPTS = 200
TAIL = 40.0
"""Aliases stay below e^{−TAIL}."""
DONE = -50.0
"""log-odds of p_v below which a point's share of its own weight has become negligible."""


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def softplus(y: float) -> float:
    """log(1 + e^y)."""
    return max(y, 0.0) + math.log1p(math.exp(-abs(y)))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _turned(re: float, im: float, modulus: float, angle: float) -> tuple[float, float]:
    """(re + i·im)·modulus·e^{i·angle}."""
    x, y = modulus * math.cos(angle), modulus * math.sin(angle)
    return re * x - im * y, re * y + im * x


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def log_factor(c: int, y: float, a: float) -> float:
    """log(1 + ((1 + e^y)^c − 1)·e^{−a})."""
    exponent = c * softplus(y)
    return float(softplus(exponent + math.log(-math.expm1(-exponent)) - a))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _integrate(
    log_scale: NDArray[np.float64],
    kinds: NDArray[np.int64],
    repeats: NDArray[np.int64],
    sizes: NDArray[np.int64],
    size: int,
    log_subsets: float,
    tau: NDArray[np.float64],
    log_step: NDArray[np.float64],
    log_least: float,
    relative: bool,
) -> tuple[NDArray[np.float64], float, float]:
    d_all, kinds_all = len(log_scale), len(sizes)
    simple = kinds_all == 1 and sizes[0] == 1
    total, bound = np.zeros(d_all), np.zeros(d_all)
    settled = np.full(d_all, -np.inf)
    flat, flat_bound = np.zeros(kinds_all), np.zeros(kinds_all)
    null, null_bound, top = 0.0, 0.0, -np.inf
    worst = 0.0

    n = 0
    for d in range(d_all):
        n += repeats[d] * sizes[kinds[d]]
    live, saturated = n, n  # examples at points not yet done with; at points with x = 1
    first, last = d_all, d_all  # [0, first) saturated, [first, last) between, [last, d_all) done with
    y = math.log(size / (n - size))
    a, scaled, p = np.empty(d_all), np.empty(d_all), np.empty(d_all)
    gain = np.empty(d_all)
    log_hit, mean_c, second_c, inverse = (
        np.empty(kinds_all),
        np.empty(kinds_all),
        np.empty(kinds_all),
        np.empty(kinds_all),
    )
    rest_c, reference = np.empty(kinds_all), np.empty(kinds_all)
    q_re, q_im, between_re, between_im = np.empty(0), np.empty(0), np.empty(0), np.empty(0)
    share, log_b, arg_b, turns = np.empty(0), np.empty(0), np.empty(0), np.empty(0)
    b_to_re, b_to_im = np.empty((kinds_all, 0)), np.empty((kinds_all, 0))
    g_re, g_im = np.empty((kinds_all, 0)), np.empty((kinds_all, 0))
    h_re, h_im = np.empty((kinds_all, 0)), np.empty((kinds_all, 0))

    for i in range(len(tau)):
        while first > 0 and tau[i] + log_scale[first - 1] > SATURATED:
            first -= 1
            saturated -= repeats[first] * sizes[kinds[first]]
            total[first], bound[first] = flat[kinds[first]], flat_bound[kinds[first]]
        for d in range(first, last):
            a[d] = math.exp(tau[i] + log_scale[d])

        # The saddle point y = log ρ: Newton's method kept inside a bracket. Mean and variance of Σ B_u.
        # p = 1/(1 + e^{a − log_hit}), with e^{a − reference} taken once a node unless y moves far.
        low, high = -np.inf, np.inf
        reference[:] = np.inf
        variance = 0.0
        for attempt in range(ATTEMPTS):
            soft = softplus(y)
            s = 1.0 / (1.0 + math.exp(-y))
            for c in range(kinds_all):
                exponent = sizes[c] * soft
                rest = -math.expm1(-exponent)
                log_hit[c] = y if sizes[c] == 1 else exponent + math.log(rest)
                mean_c[c] = 1.0 if sizes[c] == 1 else sizes[c] * s / rest
                second_c[c] = mean_c[c] * (1.0 + (sizes[c] - 1) * s)
            moved = False
            for c in range(kinds_all):
                moved = moved or not abs(log_hit[c] - reference[c]) < 300.0
            if moved:
                reference[:] = log_hit
                for d in range(first, last):
                    scaled[d] = math.exp(min(a[d] - reference[kinds[d]], 700.0))
            for c in range(kinds_all):
                inverse[c] = math.exp(reference[c] - log_hit[c])
            mean = saturated * s
            variance = saturated * s * (1.0 - s)
            if simple:
                odds = inverse[0]
                for d in range(first, last):
                    chance = 1.0 / (1.0 + scaled[d] * odds)
                    p[d] = chance
                    mean += repeats[d] * chance
                    variance += repeats[d] * chance * (1.0 - chance)
            else:
                for d in range(first, last):
                    c = kinds[d]
                    chance = 1.0 / (1.0 + scaled[d] * inverse[c])
                    p[d] = chance
                    once = chance * mean_c[c]
                    mean += repeats[d] * once
                    variance += repeats[d] * (chance * second_c[c] - once * once)
            off = mean - size
            variance = max(variance, 0.0)
            if abs(off) <= 0.02 * min(math.sqrt(variance), 1.0):
                break
            if off > 0:
                high = y
            else:
                low = y
            if high - low < 1e-9 or attempt == ATTEMPTS - 1:
                break  # p and the moments must belong to this y: any circle is right, only less well conditioned
            step = -off / variance if variance > 1e-12 else np.inf
            new = y + max(min(step, 20.0), -20.0) if step < np.inf else y + (20.0 if off < 0 else -20.0)
            # Where the mean is a step in y Newton's method crawls: halve the bracket every fourth time.
            if not low < new < high or (attempt % 4 == 3 and high - low < np.inf):
                new = 0.5 * (low + high)
            y = new

        # log P(ρ)·ρ^{−n'}·e^{−tλ_0}/C(n, n'): products of factors ≥ 1, logs taken only when they grow large.
        log_peak = -size * y - log_subsets - math.exp(tau[i])
        log_peak += saturated * (max(y, 0.0) + math.log1p(math.exp(-abs(y))))
        product = 1.0
        for d in range(first, last):
            odds = log_hit[kinds[d]] - a[d]
            if odds > 30.0:
                log_peak += repeats[d] * (odds + math.log1p(math.exp(-odds)))
            elif repeats[d] > 4:
                log_peak += repeats[d] * math.log1p(math.exp(odds))
            else:
                factor = 1.0 / (1.0 - p[d]) if p[d] < 0.5 else 1.0 + math.exp(odds)
                for _ in range(repeats[d]):
                    product *= factor
                if product > 1e200:
                    log_peak += math.log(product)
                    product = 1.0
        log_peak += math.log(product)

        # Points of the circle, upper half; and Q(θ) = P/P(ρ)·e^{−in'θ}.
        sigma = math.sqrt(variance)
        if simple:
            around = int(8.6 * sigma + 18.0) | 1
        else:
            # Repeated points jump by many counts at once, so the tails are bounded by Chernoff at ±s instead. A rare
            # point, once hit, shifts the mean up by Δ; its own aliases, up to 2Δ further off, count as well.
            tilt = min(8.6 / sigma, 2.0) if sigma > 0.0 else 2.0
            up, down, shift = -tilt * size, tilt * size, 0.0
            soft = softplus(y)
            up += saturated * (softplus(y + tilt) - soft)
            down += saturated * (softplus(y - tilt) - soft)
            for d in range(first, last):
                c = sizes[kinds[d]]
                here = log_factor(c, y, a[d])
                up += repeats[d] * (log_factor(c, y + tilt, a[d]) - here)
                down += repeats[d] * (log_factor(c, y - tilt, a[d]) - here)
                shift = max(shift, (1.0 - p[d]) * mean_c[kinds[d]])
            around = int(max((TAIL + up) / tilt + 2.0 * shift, min((TAIL + down) / tilt, size + 1.0)) + 1.0) | 1
        half = around // 2
        if simple and sigma > 4.4:
            half = min(half, int(around * math.asin(4.4 / sigma) / math.pi) + 1)
        nodes = half + 1
        if len(q_re) < nodes:
            room = 2 * nodes
            q_re, q_im, between_re, between_im = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
            share, log_b, arg_b, turns = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
            b_to_re, b_to_im = np.empty((kinds_all, room)), np.empty((kinds_all, room))
            g_re, g_im = np.empty((kinds_all, room)), np.empty((kinds_all, room))
            h_re, h_im = np.empty((kinds_all, room)), np.empty((kinds_all, room))
        s = 1.0 / (1.0 + math.exp(-y))
        soft = max(y, 0.0) + math.log1p(math.exp(-abs(y)))
        for c in range(kinds_all):
            rest_c[c] = math.exp(-sizes[c] * soft)
        for m in range(nodes):
            share[m] = (2.0 if m > 0 else 1.0) / around
            angle = 2.0 * math.pi * m / around
            turn = 2.0 * math.pi * ((m * size) % around) / around
            cosine, sine = math.cos(angle), math.sin(angle)
            # b = (1 + z)/(1 + ρ) by its log-modulus and argument.
            log_b[m] = 0.5 * math.log1p(-4.0 * s * (1.0 - s) * math.sin(0.5 * angle) ** 2)
            arg_b[m] = math.atan2(s * sine, 1.0 - 2.0 * s * math.sin(0.5 * angle) ** 2)
            turns[m] = turn
            between_re[m], between_im[m] = 1.0, 0.0
            # b^c by multiplying on from the size before; from its log where the step is long.
            b_re, b_im = 1.0 - 2.0 * s * math.sin(0.5 * angle) ** 2, s * sine
            power_re, power_im, reached = 1.0, 0.0, 0
            for c in range(kinds_all):
                if sizes[c] == 1:
                    g_re[c, m], g_im[c, m] = cosine, sine
                    b_to_re[c, m], b_to_im[c, m] = b_re, b_im
                    continue
                if sizes[c] - reached > 16:
                    modulus = math.exp(sizes[c] * log_b[m])
                    power_re = modulus * math.cos(sizes[c] * arg_b[m])
                    power_im = modulus * math.sin(sizes[c] * arg_b[m])
                else:
                    for _ in range(sizes[c] - reached):
                        power_re, power_im = power_re * b_re - power_im * b_im, power_re * b_im + power_im * b_re
                reached = sizes[c]
                b_to_re[c, m], b_to_im[c, m] = power_re, power_im
                small = rest_c[c]
                g_re[c, m], g_im[c, m] = (power_re - small) / (1.0 - small), power_im / (1.0 - small)
        for d in range(first, last):
            g_r, g_i = g_re[kinds[d]], g_im[kinds[d]]
            chance = p[d]
            rest = 1.0 - chance
            for _ in range(repeats[d]):
                for m in range(nodes):
                    r_r = rest + chance * g_r[m]
                    r_i = chance * g_i[m]
                    if r_r * r_r + r_i * r_i < SPECK * SPECK:
                        r_r, r_i = SPECK, 0.0
                    re = between_re[m] * r_r - between_im[m] * r_i
                    between_im[m] = between_re[m] * r_i + between_im[m] * r_r
                    between_re[m] = re
        for m in range(nodes):
            q_re[m], q_im[m] = _turned(
                between_re[m], between_im[m], math.exp(saturated * log_b[m]), saturated * arg_b[m] - turns[m]
            )
        value, modulus = 0.0, 0.0
        for m in range(nodes):
            value += share[m] * q_re[m]
            modulus += share[m] * math.hypot(q_re[m], q_im[m])
        for c in range(kinds_all):
            for m in range(nodes):
                h_re[c, m] = share[m] * (q_re[m] * g_re[c, m] - q_im[m] * g_im[c, m])
                h_im[c, m] = share[m] * (q_re[m] * g_im[c, m] + q_im[m] * g_re[c, m])

        # Every sum is kept in units of e^{top}, the largest node so far: earlier nodes are never lost that matter.
        logs = log_step[i] + log_peak
        if logs > top:
            down = math.exp(top - logs)
            null *= down
            null_bound *= down
            for c in range(kinds_all):
                flat[c] *= down
                flat_bound[c] *= down
            for d in range(first, last):
                if total[d] > 0.0 and total[d] * down < SPILL:
                    settled[d] = np.logaddexp(settled[d], top + math.log(total[d]))
                    worst = max(worst, bound[d] / total[d])
                    total[d] = bound[d] = 0.0
                total[d] *= down
                bound[d] *= down
            top = logs
        part = math.exp(logs - top)
        null += part * value
        null_bound += part * modulus
        for c in range(kinds_all):
            over_c = saturated - sizes[c]
            if over_c < 0:
                continue  # no point of this size has x = 1
            found = 0.0
            for m in range(nodes):
                # Here r_u is b^c: (1 − p) + p·g would cancel where that is small.
                square = b_to_re[c, m] ** 2 + b_to_im[c, m] ** 2
                if square > SPECK:
                    re = (q_re[m] * b_to_re[c, m] + q_im[m] * b_to_im[c, m]) / square
                    im = (q_im[m] * b_to_re[c, m] - q_re[m] * b_to_im[c, m]) / square
                else:
                    re, im = _turned(
                        between_re[m], between_im[m], math.exp(over_c * log_b[m]), over_c * arg_b[m] - turns[m]
                    )
                found += share[m] * (re * g_re[c, m] - im * g_im[c, m])
            chance = -math.expm1(-sizes[c] * soft)
            flat[c] += part * chance * found
            flat_bound[c] += part * chance * modulus
        gain[first:last] = 0.0
        if simple:
            for m in range(nodes):
                h_r, h_i, g_r0, g_i0 = h_re[0, m], h_im[0, m], g_re[0, m], g_im[0, m]
                for d in range(first, last):
                    r_r = (1.0 - p[d]) + p[d] * g_r0
                    r_i = p[d] * g_i0
                    gain[d] += (h_r * r_r + h_i * r_i) / (r_r * r_r + r_i * r_i)
        else:
            for d in range(first, last):
                c = kinds[d]
                chance = p[d]
                rest = 1.0 - chance
                found = 0.0
                for m in range(nodes):
                    r_r = rest + chance * g_re[c, m]
                    r_i = chance * g_im[c, m]
                    if r_r * r_r + r_i * r_i < SPECK * SPECK:
                        r_r, r_i = SPECK, 0.0
                    found += (h_re[c, m] * r_r + h_im[c, m] * r_i) / (r_r * r_r + r_i * r_i)
                gain[d] = found
        for d in range(first, last):
            total[d] += part * p[d] * gain[d]
            bound[d] += part * p[d] * modulus

        # Points that no later node adds to; n' + 1 examples must stay for the saddle point to exist.
        while last > first and log_hit[kinds[last - 1]] - a[last - 1] < DONE:
            if live - repeats[last - 1] * sizes[kinds[last - 1]] <= size:
                break
            last -= 1
            live -= repeats[last] * sizes[kinds[last]]
            if total[last] > 0.0:
                settled[last] = np.logaddexp(settled[last], top + math.log(total[last]))
                worst = max(worst, bound[last] / total[last])
            elif settled[last] == -np.inf:
                worst = np.inf

        # What later nodes can still add to any sum is at most its integrand over the least Z.
        if not relative:
            if log_peak + math.log(max(value, 1e-300)) < -37.0:
                break
        elif logs < top - 30.0:
            over = log_peak - log_least - top + 39.0
            done = over + math.log(max(value, 1e-300)) < math.log(max(null, 1e-300))
            c = 0
            while done and c < kinds_all:
                done = first == 0 or over < math.log(max(flat[c], 1e-300))
                c += 1
            d = first
            while done and d < last:
                done = over + math.log(max(p[d] * abs(gain[d]), 1e-300)) < math.log(max(total[d], 1e-300))
                d += 1
            if done:
                break

    for d in range(last):
        value = total[d] if d >= first else flat[kinds[d]]
        modulus = bound[d] if d >= first else flat_bound[kinds[d]]
        if value > 0.0:
            settled[d] = np.logaddexp(settled[d], top + math.log(value))
            worst = max(worst, modulus / value)
        elif settled[d] == -np.inf:
            worst = np.inf
    if null <= 0.0:
        return settled, -np.inf, np.inf
    return settled, top + math.log(null), max(worst, null_bound / null)


def integrate(
    log_scale: NDArray[np.float64],
    held: NDArray[np.int64],
    size: int,
    log_subsets: float,
    tau: NDArray[np.float64],
    log_step: NDArray[np.float64],
    log_least: float,
    relative: bool,
) -> tuple[NDArray[np.float64], float, float]:
    """log of Σ_i e^{log_step_i}·E[1{v ∈ T} e^{−t_i Z}] for every point v, log of Σ_i e^{log_step_i}·E[e^{−t_i Z}], and
    the worst factor by which these sums may have magnified rounding (means of moduli over sums).

    ``log_scale`` (k,) is log λ_v with λ_0 = 1, ``held`` (k,) the examples at each point (≥ 1), ``size`` is n' < n,
    ``log_subsets`` is log C(n, n'), ``tau`` the nodes log t in increasing order, ``log_least`` a lower bound of log Z.
    ``relative`` keeps relative accuracy of every sum; without it the nodes end where E[e^{−tZ}] < 1e-16.
    """
    order = log_scale.argsort() if held.max() == 1 else np.lexsort((held, log_scale))
    values, kinds, repeats, sizes, merged = _merged(log_scale, held, order)
    logs, null, worst = _integrate(
        values,
        kinds,
        repeats,
        sizes,
        size,
        log_subsets,
        tau,
        log_step,
        log_least,
        relative,
    )
    return np.asarray(logs)[merged], float(null), float(worst)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _merged(
    log_scale: NDArray[np.float64], held: NDArray[np.int64], order: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Points merged by (λ, c), in the ``order`` that sorts them so: their log λ, the place of c among the distinct
    ``sizes``, how many each stands for; the sizes; and the merged point of each point."""
    k = len(order)
    place = np.zeros(held.max() + 1, dtype=np.int64)
    place[held] = 1
    sizes = np.flatnonzero(place)
    place[sizes] = np.arange(len(sizes))
    values, kinds = np.empty(k), np.empty(k, dtype=np.int64)
    repeats, merged = np.zeros(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    d = -1
    for i in range(k):
        v = order[i]
        if i == 0 or log_scale[v] != values[d] or place[held[v]] != kinds[d]:
            d += 1
            values[d], kinds[d] = log_scale[v], place[held[v]]
        repeats[d] += 1
        merged[v] = d
    return values[: d + 1].copy(), kinds[: d + 1].copy(), repeats[: d + 1].copy(), sizes, merged
