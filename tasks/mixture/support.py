"""Weights over a few occupied points: in go k points with counts, out come log-weights by a sum over the 2^k supports.

T is a set of points, so the mean over C(n, n') subsets is a mean over supports U with

    Pr[T = U] = [z^{n'}] Π_{v∈U} ((1 + z)^{c_v} − 1) / C(n, n').

The points are dealt into two halves; within each, the polynomials of all supports grow one point at a time, and the
coefficient for U = A ∪ B is Σ_j a_j·b_{n'−j}. Every term is positive: inclusion and exclusion would cancel. The
coefficients are carried with z scaled so that they fit a float, and as logs where no scale does.

Always true: relative precision of every weight at any β·n. Cost 2^k·n' a sample, shared structure apart.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Points, Representatives
from predcube.tasks.mixture.base import MixtureWeights, Occupancy, log_sum
from predcube.tasks.mixture.samples import mistakes

LARGEST = 20
"""The most occupied points: a million supports."""
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
    """H_U of all 2^k supports. ValueError beyond ``LARGEST`` points."""
    k = len(points)
    if k > LARGEST:
        raise ValueError(f"support: {k} occupied points have 2^{k} supports, at most 2^{LARGEST} are summed; take mc")
    if hypotheses.additive:
        representatives = hypotheses.representatives(points)  # null, then the points from the last down
        held = (np.arange(2**k)[:, None] >> np.arange(k - 1, -1, -1)) & 1
        table = np.concatenate([np.ones((2**k, 1), dtype=np.int64), held], axis=1)
        table[0] = 0
        return Supports(
            representatives=representatives,
            members=np.nonzero(table)[1],
            starts=np.concatenate([[0], np.cumsum(table.sum(axis=1))]),
        )
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


def log_probabilities(held: NDArray[np.int64], subset_size: int) -> NDArray[np.float64]:
    """log Pr[T = U] of every support: ``held`` (B, k) examples at each point, of one n → (B, 2^k)."""
    n, largest = int(held[0].sum()), int(held.max(initial=0))
    size = min(largest, subset_size)
    # log of the scaled coefficients C(c, i)·r^i of (1 + rz)^c, for every c that may occur.
    c, i = np.arange(largest + 1)[:, None], np.arange(size + 1)[None, :]
    factorial = _log_factorials(n)
    logs = np.where(i <= c, factorial[c] - factorial[i] - factorial[np.maximum(c - i, 0)], -np.inf).astype(np.float64)
    log_r = math.log(math.expm1(680.0 / n)) if n > 980 else 0.0  # (1 + r)^n stays below e^680
    plain = subset_size * -log_r < 680.0
    table = logs if not plain else _binomials(largest, size) if log_r == 0.0 else np.exp(logs + log_r * i)
    k = held.shape[1]
    left = _products(held[:, : k // 2], table, subset_size, plain)
    right = _products(held[:, k // 2 :], table, subset_size, plain)[:, :, ::-1]
    log_subsets = float(factorial[n] - factorial[subset_size] - factorial[n - subset_size])
    if plain:
        # Not a product by BLAS, whose last digit may follow its number of threads.
        sums = np.einsum("baj,bcj->bca", left, right)
        total = float(math.comb(n, subset_size)) if log_r == 0.0 else math.exp(log_subsets + subset_size * log_r)
        with np.errstate(divide="ignore"):
            found = np.log(sums / total)
    else:
        found = np.empty((len(held), right.shape[1], left.shape[1]))
        for b in range(len(held)):
            for a in range(left.shape[1]):
                found[b, :, a] = log_sum((left[b, a] + right[b]).T)
        found -= log_subsets
    return np.asarray(found.reshape(len(held), 2**k))


def _log_factorials(n: int) -> NDArray[np.longdouble]:
    """log i! for i = 0 … n, in extended precision where the platform has it: differences of large logs follow."""
    found = np.zeros(n + 1, dtype=np.longdouble)
    np.cumsum(np.log(np.arange(1, n + 1, dtype=np.longdouble)), out=found[1:])
    return found


def _binomials(largest: int, size: int) -> NDArray[np.float64]:
    """C(c, i), each within a few units of the last place: (largest + 1, size + 1)."""
    table = np.zeros((largest + 1, size + 1))
    table[:, 0] = 1.0
    for c in range(1, largest + 1):
        table[c, 1:] = table[c - 1, 1:] + table[c - 1, :-1]
    return table


def _products(held: NDArray[np.int64], table: NDArray[np.float64], size: int, plain: bool) -> NDArray[np.float64]:
    """Coefficients up to z^size of Π_{v∈U}((1 + z)^{c_v} − 1) for all supports of some points: (B, 2^points, size + 1).
    ``table`` has the coefficients of (1 + z)^c, as logs unless ``plain``."""
    nothing = 0.0 if plain else -np.inf
    found = np.full((len(held), 1, size + 1), nothing)
    found[:, :, 0] = 1.0 if plain else 0.0
    for v in range(held.shape[1]):
        factor = table[held[:, v]]
        grown = np.full(found.shape, nothing)
        for i in range(1, min(size, int(held[:, v].max(initial=0))) + 1):
            by = factor[:, i][:, None, None]
            if plain:
                grown[:, :, i:] += found[:, :, : size + 1 - i] * by
            else:
                np.logaddexp(grown[:, :, i:], found[:, :, : size + 1 - i] + by, out=grown[:, :, i:])
        found = np.concatenate([found, grown], axis=1)
    return found


def batch_log_weights(
    hypotheses: HypothesisClass,
    points: Points,
    counts: NDArray[np.int64],
    *,
    subset_size: int,
    beta: float,
    structure: Supports | None = None,
) -> tuple[Representatives, NDArray[np.float64]]:
    """Representatives (M,) and log-weights (B, M) of B samples of one size n on the same points: ``counts``
    (B, k, 2)."""
    at = structure or supports(hypotheses, points)
    log_scale = -beta * mistakes(hypotheses, at.representatives, points, counts)
    held = counts.sum(axis=2)
    out = np.empty(log_scale.shape)
    batch = max(1, CHUNK // len(at.members))
    for start in range(0, len(counts), batch):
        rows = slice(start, start + batch)
        out[rows] = _mix(at, log_scale[rows], log_probabilities(held[rows], subset_size))
    return at.representatives, out


def _mix(at: Supports, log_scale: NDArray[np.float64], log_chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """log Σ_U Pr[U]·1{h ∈ H_U}·λ_h/Z_U: ``log_scale`` (B, M) and ``log_chance`` (B, 2^k) → (B, M)."""
    starts = at.starts[1:-1]  # support 0 is empty
    owner = np.repeat(np.arange(len(at.starts) - 1), np.diff(at.starts))
    scaled = log_scale - log_scale.max(axis=1, keepdims=True)
    order = np.argsort(at.members, kind="stable")
    by_member = np.searchsorted(at.members[order], np.arange(log_scale.shape[1]))
    if scaled.min() > -600.0 and log_chance[np.isfinite(log_chance)].min() > -80.0:
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
    representatives, logs = batch_log_weights(
        hypotheses, sample.points, sample.counts[None], subset_size=subset_size, beta=beta
    )
    return MixtureWeights(representatives=representatives, log_weights=logs[0], method="support")
