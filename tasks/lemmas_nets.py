"""How often the drawn records but one are a net: in go a class, a sample, n' and η, out come truth of sets, and δ.

U is an η-net for H on a sample when any two functions of H that agree on U differ on at most an η share of its records
(Dagan & Feldman 2020, section 2). Which pairs agree on U is a matter of where they differ: D = {x: f(x) ≠ g(x)}. So U
is a net where no D outside U weighs more than the share; the heaviest D inside every set V is found for all 2^k sets V
at once, by a maximum over subsets that grows a point at a time.
"""

import numpy as np
from numpy.typing import NDArray

from predcube.tasks import nets
from predcube.tasks.hypotheses.base import HypothesisClass, Labels
from predcube.tasks.mixture.base import Occupancy
from predcube.tasks.mixture.chances import log_chances

PAIRS = 2**22
"""Pairs of labelings compared at once."""
RECORDS = 8
"""Records tried as the one left out, where sets are drawn."""


def differences(labels: Labels) -> NDArray[np.int64]:
    """Where two of the rows (M, k) differ, as distinct sets (bit i: point i), ascending; k < 63."""
    bits = labels.astype(np.int64) @ (1 << np.arange(labels.shape[1], dtype=np.int64))
    found = np.zeros(0, dtype=np.int64)
    step = max(1, PAIRS // len(bits))
    for start in range(0, len(bits), step):
        found = np.union1d(found, bits[start : start + step, None] ^ bits[None, :])
    return found[found > 0]


def heaviest(sets: NDArray[np.int64], held: NDArray[np.int64]) -> NDArray[np.int64]:
    """For every set V of the k points the most records, ``held`` (k,) at each, in one of ``sets`` inside V; 0 where
    none is: (2^k,)."""
    k = len(held)
    inside = (sets[:, None] >> np.arange(k)) & 1
    most = np.zeros(2**k, dtype=np.int64)
    most[sets] = inside @ held
    for i in range(k):
        halves = most.reshape(-1, 2, 1 << i)
        np.maximum(halves[:, 1], halves[:, 0], out=halves[:, 1])
    return most


def nets_without(hypotheses: HypothesisClass, sample: Occupancy, eta: float) -> NDArray[np.bool_]:
    """[v, U]: whether the points U are an η-net for H on S without one record at point v: (k, 2^k). All points of the
    sample occur."""
    held = sample.counts.sum(axis=1)
    k, most = len(held), _radius(eta, sample.n - 1)
    sets = np.arange(1, 2**k) if hypotheses.free else differences(hypotheses.labelings(sample.points))
    outside = 2**k - 1 - np.arange(2**k)
    return np.stack([heaviest(sets, held - one)[outside] <= most for one in np.eye(k, dtype=np.int64)])


def net_failure(sample: Occupancy, subset_size: int, nets: NDArray[np.bool_]) -> float:
    """δ = max over records i of Pr[i ∈ I and I ∖ {i} is no net of the other records], I uniform of n' records, with
    ``nets`` as by ``nets_without``: (n'/n) Pr[J is no net], J uniform of n' − 1 of the others."""
    held = sample.counts.sum(axis=1)
    worst = 0.0
    for v, one in enumerate(np.eye(len(held), dtype=np.int64)):
        chances = np.exp(log_chances(held - one, subset_size - 1))
        worst = max(worst, float(np.einsum("u,u->", chances, (~nets[v]).astype(np.float64))))
    return min(1.0, worst) * subset_size / sample.n


def drawn_net_failure(
    hypotheses: HypothesisClass, sample: Occupancy, subset_size: int, eta: float, rng: np.random.Generator
) -> float:
    """The same from some records at random points and drawn sets J: an estimate. ValueError where the labelings of S
    are too many to be listed."""
    k = len(sample.points)
    worst = 0.0
    for v in rng.permutation(k)[:RECORDS]:
        counts = sample.counts.copy()
        counts[v, int(counts[v].argmax())] -= 1
        others = Occupancy(points=sample.points, counts=counts)
        sets = (
            nets.drawn_sets(others, subset_size - 1, rng, k)
            if subset_size > 1
            else nets.Sets(rows=np.full((1, 1), -1), chances=np.ones(1))
        )
        worst = max(worst, 1.0 - nets.net_probability(hypotheses, others, sets, eta))
    return worst * subset_size / sample.n


def _radius(eta: float, n: int) -> int:
    """⌊ηn⌋ of the decimals as they are meant."""
    return int(np.floor(eta * n * (1 + 1e-12)))
