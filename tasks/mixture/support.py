"""Weights over a few occupied points: in go k points with counts, out come log-weights by a sum over the 2^k supports.

T is a set of points, so the mean over C(n, n') subsets is a mean over supports U with the probabilities Pr[T = U] of
``chances``: w_h = λ_h Σ_U Pr[U]·1{h ∈ H_U}/Z_U. Where a class is additive H_U is a bit pattern: Z_U doubles one point
at a time, and the sums over the U that hold a point come out of one folding of the 2^k terms, half by half.

Always true: relative precision of every weight at any β·n, and a sample's bits are its own whatever samples it is
computed with. Cost 2^k·n' a sample, shared structure apart.
"""

import math
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Points, Representatives
from predcube.tasks.mixture.base import MixtureWeights, Occupancy
from predcube.tasks.mixture.chances import fill, log_add, log_chances, scale_of
from predcube.tasks.mixture.samples import mistakes
from predcube.tasks.mixture.visits import Visitor

LARGEST = 20
"""The most occupied points: a million supports."""
RANGE = 600.0
"""λ/λ_max down to e^{−RANGE} fits a float with room for sums and quotients."""
CHUNK = 2**21
"""Floats worked on at once (16 MB)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supports:
    """Which hypotheses each support tells apart, the same for all samples on these points.

    ``members[starts[U]:starts[U + 1]]`` are the rows of ``representatives`` in H_U, where bit i of U says that
    point i is in it. Support 0 is empty and has no members.
    """

    representatives: Representatives
    members: NDArray[np.int64]
    starts: NDArray[np.int64]


def supports(hypotheses: HypothesisClass, points: Points) -> Supports:
    """H_U of all 2^k supports."""
    k = len(points)
    held = ((np.arange(2**k)[:, None] >> np.arange(k)) & 1).astype(bool)
    found = [hypotheses.representatives(points[row]) for row in held[1:]]
    sizes = np.array([0] + [len(rows) for rows in found])
    rows = np.concatenate(found)
    representatives, members = np.unique(rows, axis=0, return_inverse=True)
    return Supports(
        representatives=representatives,
        members=members.reshape(-1),
        starts=np.concatenate([[0], np.cumsum(sizes)]),
    )


def batch_log_weights(
    hypotheses: HypothesisClass, points: Points, counts: NDArray[np.int64], *, subset_size: int, beta: float
) -> tuple[Representatives, NDArray[np.float64]]:
    """Representatives (M,) and log-weights (B, M) of B samples of one size n on the same points: ``counts``
    (B, k, 2). ValueError beyond ``LARGEST`` points."""
    k = len(points)
    if k > LARGEST:
        raise ValueError(f"support: {k} occupied points have 2^{k} supports, at most 2^{LARGEST} are summed; take mc")
    held = counts.sum(axis=2)
    if hypotheses.additive:
        representatives = hypotheses.representatives(points)
        losses = mistakes(hypotheses, representatives, points, counts)
        return representatives, additive(losses, held, subset_size=subset_size, beta=beta)
    at = supports(hypotheses, points)
    log_scale = -beta * mistakes(hypotheses, at.representatives, points, counts)
    out = np.empty(log_scale.shape)
    batch = max(1, CHUNK // len(at.members))
    for start in range(0, len(counts), batch):
        rows = slice(start, start + batch)
        out[rows] = _mix(at, log_scale[rows], log_probabilities(held[rows], subset_size))
    return at.representatives, out


def log_probabilities(held: NDArray[np.int64], subset_size: int) -> NDArray[np.float64]:
    """log Pr[T = U] of every support: ``held`` (B, k) examples at each point, of one n → (B, 2^k)."""
    layouts, layout = np.unique(held, axis=0, return_inverse=True)
    return np.array([log_chances(own, subset_size) for own in layouts])[layout.reshape(-1)]


def additive(
    losses: NDArray[np.float64], held: NDArray[np.int64], *, subset_size: int, beta: float
) -> NDArray[np.float64]:
    """log w of the hypotheses of an additive class, (B, k + 1), for B samples of one size on the same k points.

    ``losses`` (B, k + 1) are their n·L_S, the null hypothesis first, then those of the points from the last down;
    ``held`` (B, k) the examples at each point, ≥ 0 (−inf where 0). Samples that occupy points alike share Pr[T = U].
    """
    n = int(held[0].sum())
    scale = scale_of(n, subset_size)
    log_scale = -beta * losses
    out = np.empty(losses.shape)
    order = np.lexsort(held.T) if len(held) > 1 else np.zeros(1, dtype=np.int64)
    if scale.logs:
        for b in order:
            _shares(log_chances(held[b], subset_size), True, log_scale[b], out[b])
    else:
        _plain(held, order, log_scale, subset_size, scale.r, scale.total, out)
    return out


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _plain(
    held: NDArray[np.int64],
    order: NDArray[np.int64],
    log_scale: NDArray[np.float64],
    size: int,
    r: float,
    total: float,
    out: NDArray[np.float64],
) -> None:
    chance = np.empty(1 << held.shape[1])
    for i in range(len(order)):
        b = order[i]
        if i == 0 or (held[b] != held[order[i - 1]]).any():
            fill(held[b], size, r, total, chance)
        _shares(chance, False, log_scale[b], out[b])


@numba.njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _shares(chance: NDArray[np.float64], logs: bool, log_scale: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """log w of one sample into ``out`` (k + 1,), from Pr[T = U] (or its logs) and log λ, (k + 1,)."""
    k, most = len(log_scale) - 1, log_scale.max()
    z, share = np.empty(len(chance)), np.empty(len(chance))
    if not logs and log_scale.min() > most - RANGE:
        z[0] = math.exp(log_scale[0] - most)
        share[0] = 0.0
        for v in range(k):
            own, bit = math.exp(log_scale[k - v] - most), 1 << v
            for u in range(bit):
                z[bit + u] = z[u] + own
        for u in range(1, len(z)):
            share[u] = chance[u] / z[u]
        for v in range(k - 1, -1, -1):
            bit, found = 1 << v, 0.0
            for u in range(bit):
                found += share[bit + u]
                share[u] += share[bit + u]
            out[k - v] = log_scale[k - v] - most + math.log(found)
        out[0] = log_scale[0] - most + math.log(share[0])
        return
    z[0], share[0] = log_scale[0] - most, -np.inf
    for v in range(k):
        own, bit = log_scale[k - v] - most, 1 << v
        for u in range(bit):
            z[bit + u] = log_add(z[u], own)
    for u in range(1, len(z)):
        share[u] = (chance[u] if logs else math.log(chance[u])) - z[u]
    for v in range(k - 1, -1, -1):
        bit, found = 1 << v, -np.inf
        for u in range(bit):
            found = log_add(found, share[bit + u])
            share[u] = log_add(share[u], share[bit + u])
        out[k - v] = log_scale[k - v] - most + found
    out[0] = log_scale[0] - most + share[0]


def _mix(at: Supports, log_scale: NDArray[np.float64], log_chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """log Σ_U Pr[U]·1{h ∈ H_U}·λ_h/Z_U: ``log_scale`` (B, M) and ``log_chance`` (B, 2^k) → (B, M)."""
    starts = at.starts[1:-1]  # support 0 is empty
    owner = np.repeat(np.arange(len(at.starts) - 1), np.diff(at.starts))
    scaled = log_scale - log_scale.max(axis=1, keepdims=True)
    order = np.argsort(at.members, kind="stable")
    by_member = np.searchsorted(at.members[order], np.arange(log_scale.shape[1]))
    if scaled.min() > -RANGE and log_chance[np.isfinite(log_chance)].min() > -80.0:
        weight = np.exp(scaled)
        z = np.add.reduceat(weight[:, at.members], starts, axis=1)
        share = np.exp(log_chance[:, 1:]) / z
        with np.errstate(divide="ignore"):
            return np.asarray(scaled + np.log(np.add.reduceat(share[:, owner[order] - 1], by_member, axis=1)))
    log_z = np.logaddexp.reduceat(scaled[:, at.members], starts, axis=1)
    log_share = log_chance[:, 1:] - log_z
    return np.asarray(scaled + np.logaddexp.reduceat(log_share[:, owner[order] - 1], by_member, axis=1))


def weights(hypotheses: HypothesisClass, sample: Occupancy, *, subset_size: int, beta: float) -> MixtureWeights:
    """The mixture over random subsets of n' examples, any class, few occupied points."""
    found = None if hypotheses.additive else _on_a_chart(hypotheses, sample, subset_size, beta)
    if found is None:
        representatives, logs = batch_log_weights(
            hypotheses, sample.points, sample.counts[None], subset_size=subset_size, beta=beta
        )
        found = representatives, logs[0]
    return MixtureWeights(representatives=found[0], log_weights=found[1], method="support")


def _on_a_chart(
    hypotheses: HypothesisClass, sample: Occupancy, subset_size: int, beta: float
) -> tuple[Representatives, NDArray[np.float64]] | None:
    """Representatives and log-weights where the class has a chart and nothing leaves the range of floats: supports go
    through it a block at a time, each counted Pr[T = U] times, and no list of all their hypotheses is kept."""
    k = len(sample.points)
    chances = log_chances(sample.counts.sum(axis=1), subset_size)
    possible = np.flatnonzero(np.isfinite(chances))
    visitor = Visitor(hypotheses=hypotheses, sample=sample, size=subset_size, beta=beta)
    if visitor.chart is None or chances[possible].min() < -RANGE:
        return None
    chart, log_scale = visitor.chart
    scale, sums = np.exp(log_scale), np.zeros(chart.size)
    block = 2**14
    for start in range(0, len(possible), block):
        some = possible[start : start + block]
        held = ((some[:, None] >> np.arange(k)) & 1).astype(bool)
        # The points of each support first, in order; then padding.
        sets = np.where(held, np.arange(k), k)
        sets.sort(axis=1)
        sets[sets == k] = -1
        sizes, totals = np.empty(len(some), dtype=np.int64), np.empty(len(some))
        chart.add(sets[:, : min(k, subset_size)], np.exp(chances[some]), scale, sums, sizes, totals)
    numbers = np.flatnonzero(sums)
    return chart.representatives(numbers), log_scale[numbers] + np.log(sums[numbers])
