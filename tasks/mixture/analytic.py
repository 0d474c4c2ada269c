"""The full cube in closed form: in go the counts at each point, out come log p_S(x) and log(1 − p_S(x)) there.

H_T is all of {0,1}^T with 0 off T, so given T the labels are independent and p_S(x) is the probability that T holds x
times that of a two-point exponential mechanism at x (Dagan & Feldman 2020, the lower bound's class). With n1, n0 the
counts of the labels at x, c = n1 + n0 and σ the logistic function

    p_S(x) = (1 − C(n−c, n')/C(n, n')) · σ(β(n1 − n0)).

Always true: each log is its own sum of positive terms, −inf where the probability is exactly 0. Cost O(k).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from predcube.tasks.hypotheses.base import HypothesisClass, Points, Representatives
from predcube.tasks.mixture.base import Marginals, Occupancy


def log_missed(n: int, subset_size: int, largest: int) -> NDArray[np.float64]:
    """log C(n−c, n')/C(n, n') for c = 0 … ``largest``: the log-probability that a uniform subset of n' of n examples
    misses c given ones; −inf where it cannot. Running sum of terms of one sign."""
    i = np.arange(min(largest, n - subset_size), dtype=np.float64)
    found = np.full(largest + 1, -np.inf)
    found[: len(i) + 1] = np.concatenate([[0.0], np.cumsum(np.log1p(-subset_size / (n - i)))])
    return found


def log_marginals(
    counts: NDArray[np.int64], *, subset_size: int, beta: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(log p_S, log(1 − p_S)) at each point of samples of one size n: ``counts`` (…, k, 2) → two arrays (…, k)."""
    held = counts.sum(axis=-1)
    n = int(held.sum(axis=-1).flat[0])
    miss = log_missed(n, subset_size, int(held.max(initial=0)))
    with np.errstate(divide="ignore"):
        hit = np.log(-np.expm1(miss))
    margin = beta * (counts[..., 1] - counts[..., 0])
    log_p1 = hit[held] + log_expit(margin)
    log_p0 = np.logaddexp(miss[held], hit[held] + log_expit(-margin))
    return log_p1, log_p0


def whole_marginals(counts: NDArray[np.int64], *, beta: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same for the exponential mechanism over the whole cube: p_S(x) = σ(β(n1 − n0)) at every point of X."""
    margin = beta * (counts[..., 1] - counts[..., 0])
    return np.asarray(log_expit(margin)), np.asarray(log_expit(-margin))


def corners(hypotheses: HypothesisClass, points: Points) -> Representatives:
    """The zero function and, for each point, the function that is 1 there alone: (k + 1, …)."""
    pairs = [hypotheses.representatives(points[i : i + 1]) for i in range(len(points))]
    return np.concatenate([pairs[0][:1], *(pair[1:] for pair in pairs)])


def subset_marginals(hypotheses: HypothesisClass, sample: Occupancy, *, subset_size: int, beta: float) -> Marginals:
    """The mixture over random subsets of n' examples on a ``free`` class."""
    log_p1, log_p0 = log_marginals(sample.counts, subset_size=subset_size, beta=beta)
    return Marginals(
        representatives=corners(hypotheses, sample.points), log_p1=log_p1, log_p0=log_p0, method="analytic"
    )
