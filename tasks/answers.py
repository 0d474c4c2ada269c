"""Log-probabilities of binary answers: in go log-weights of hypotheses and what they say, out come ln P(0) and ln P(1).

Always true: ln P(0) and ln P(1) are each a sum of their own hypotheses' weights, never one minus the other; −∞ stands
for an answer that is never given and is compared as such.
"""

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import Labels

UNDERFLOW = 1e-280
"""A sum of shifted weights below this is taken again with its own shift: its terms may have lost digits."""


def log_probabilities(log_weights: NDArray[np.float64], labels: Labels) -> NDArray[np.float64]:
    """log P_S(y) at each query for many samples: ``log_weights`` (B, M), ``labels`` (M, Q) → (B, Q, 2).

    Column y is the log-sum-exp of the weights of the hypotheses that say y: right to relative precision, −∞ where no
    hypothesis of positive weight says y.
    """
    top = log_weights.max(axis=1, keepdims=True)
    scaled = np.exp(log_weights - top)
    sums = _nested_sums(scaled, labels)
    if sums is None:
        said = labels.astype(np.float64)
        # Not a matrix product of BLAS: its last digits may follow the number of threads.
        sums = np.stack([np.einsum("bm,mq->bq", scaled, 1.0 - said), np.einsum("bm,mq->bq", scaled, said)], axis=-1)
    with np.errstate(divide="ignore"):
        logs = np.log(sums) + top[:, :, None]
    for y in (0, 1):
        b, q = np.nonzero(sums[:, :, y] < UNDERFLOW)
        if len(b):
            logs[b, q, y] = _shifted_sums(log_weights, labels == y, b, q)
    return np.asarray(logs)


def flipped(logs: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """The answer turned round with probability α: P(y) ← (1 − α)P(y) + α·P(1 − y), in log space, over the last axis
    (2,). That is p ← (1 − 2α)p + α. Sums that rounding has brought above 1 are 1."""
    if alpha:
        logs = np.logaddexp(np.log1p(-alpha) + logs, np.log(alpha) + logs[..., ::-1])
    return np.minimum(logs, 0.0)


def _nested_sums(weights: NDArray[np.float64], labels: Labels) -> NDArray[np.float64] | None:
    """The sums over each query's hypotheses where these form a chain (thresholds): running sums, O(M + Q) a sample
    instead of O(M·Q). None where they do not. Shape (B, Q, 2)."""
    ones = labels.sum(axis=0, dtype=np.int64)
    order = np.argsort(-labels.sum(axis=1, dtype=np.int64), kind="stable")
    if not np.array_equal(labels[order], np.arange(len(labels))[:, None] < ones[None, :]):
        return None
    ordered = weights[:, order]
    zero = np.zeros((len(weights), 1))
    first = np.concatenate([zero, np.cumsum(ordered, axis=1)], axis=1)
    last = np.concatenate([zero, np.cumsum(ordered[:, ::-1], axis=1)], axis=1)
    return np.stack([last[:, len(labels) - ones], first[:, ones]], axis=-1)


def _shifted_sums(
    log_weights: NDArray[np.float64], says: NDArray[np.bool_], b: NDArray[np.intp], q: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Log-sum-exp over the hypotheses that ``says`` marks, each entry with its own shift: shape (len(b),)."""
    found = np.full(len(b), -np.inf)
    # Most entries that come here are exact zeros: told apart before any exponential is taken.
    possible = np.einsum("bm,mq->bq", np.isfinite(log_weights).astype(np.int64), says.astype(np.int64))[b, q] > 0
    block = max(1, 2**20 // len(says))
    places = np.flatnonzero(possible)
    for start in range(0, len(places), block):
        rows = places[start : start + block]
        terms = np.where(says[:, q[rows]].T, log_weights[b[rows]], -np.inf)
        found[rows] = np.logaddexp.reduce(terms, axis=1)
    return found


def log_ratios(log_p: NDArray[np.float64], log_q: NDArray[np.float64]) -> NDArray[np.float64]:
    """|ln p − ln q|, 0 where both are −∞ and ∞ where one is."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(np.where(log_p == log_q, 0.0, log_p - log_q)))


def hockey_stick(log_p: NDArray[np.float64], log_q: NDArray[np.float64], epsilon: float) -> float:
    """max (p − e^ε q)₊ over all entries, one direction only.

    >>> p, q = np.log([0.6, 0.4]), np.log([0.5, 0.5])
    >>> round(hockey_stick(p, q, 0.0), 12), round(hockey_stick(p, q, np.log(1.1)), 12)
    (0.1, 0.05)
    """
    if not epsilon >= 0:
        raise ValueError(f"epsilon = {epsilon} must be at least 0")
    # Where q = 0 the product is 0 for every ε, infinity included; elsewhere e^ε q may overflow to inf, rightly.
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.where(np.isneginf(log_q), 0.0, np.exp(log_q + epsilon))
    return float(max(0.0, np.max(np.exp(log_p) - scaled, initial=0.0)))
