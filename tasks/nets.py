"""What a random subset tells apart: in go a class, a sample and n', out come E|H_T| and the chance that T is a net.

T is the set of points of n' examples drawn uniformly without replacement. T is an α-net for H on S when any two
functions of H that agree on T differ on at most an α share of the examples of S (Dagan & Feldman 2020, section 2, with
the uniform law over S): so the labelings of S's points, grouped by what they say on T, must have groups of diameter at
most α·n, an example counting as often as it stands.

Always true: where ``exact`` says so the values are sums over all 2^k sets of points with Pr[T = U]; elsewhere they are
means over ``DRAWN`` subsets.
"""

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.hypotheses.packing import Words, pack
from predcube.tasks.mixture import subsets
from predcube.tasks.mixture.base import Occupancy
from predcube.tasks.mixture.chances import log_chances
from predcube.tasks.mixture.listings import sets_of
from predcube.tasks.mixture.samples import occupied

FEW = 10
"""Up to so many points all sets are gone through."""
DRAWN = 256
"""Subsets drawn otherwise: a probability's standard error is at most .031."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """Sets of points, rows of increasing indices padded with −1, and their probabilities, of sum 1."""

    rows: NDArray[np.int64]
    chances: NDArray[np.float64]


def exact(k: int) -> bool:
    """Whether all sets of k points are gone through."""
    return k <= FEW


def drawn_sets(sample: Occupancy, subset_size: int, rng: np.random.Generator, most_points: int | None = None) -> Sets:
    """The sets T, all of them or drawn; by ``most_points``, the most that a sample of this kind has, and not by its
    own number, so that a cell's trials are measured alike."""
    sample = occupied(sample)
    held = sample.counts.sum(axis=1)
    k = len(held)
    if exact(k if most_points is None else most_points):
        chances = np.exp(log_chances(held, subset_size))
        found = np.flatnonzero(chances > 0)
        inside = ((found[:, None] >> np.arange(k)) & 1).astype(bool)
        order = np.argsort(~inside, axis=1, kind="stable")
        rows = np.where(np.take_along_axis(inside, order, axis=1), order, -1)
        return Sets(rows=rows, chances=chances[found])
    place = np.repeat(np.arange(k), held)
    rows, times = sets_of(place[subsets.sampled(rng, DRAWN, sample.n, subset_size)], k)
    return Sets(rows=rows, chances=times / DRAWN)


def mean_labelings(hypotheses: HypothesisClass, sample: Occupancy, sets: Sets) -> float:
    """E|H_T|."""
    points = occupied(sample).points
    held = (sets.rows >= 0).sum(axis=1)
    if hypotheses.free:
        return float(sets.chances @ 2.0**held)
    chart = hypotheses.chart(points, sets.rows.shape[1])
    sizes = np.empty(len(sets.rows), dtype=np.int64)
    if chart is not None:
        flat = np.zeros(chart.size)
        chart.add(sets.rows, sets.chances, np.ones(chart.size), flat, sizes, np.empty(len(sets.rows)))
    else:
        sizes[:] = [len(hypotheses.representatives(points[row[row >= 0]])) for row in sets.rows]
    return float(np.einsum("s,s->", sets.chances, sizes.astype(np.float64)))


def net_probability(hypotheses: HypothesisClass, sample: Occupancy, sets: Sets, alpha: float) -> float:
    """Pr[T is an α-net for H on S]; ValueError where the labelings of S are too many to be listed."""
    sample = occupied(sample)
    held = sample.counts.sum(axis=1)
    # An integer distance, and α·n rounded as decimals are meant: 0.29·100 is 29.
    most = int(np.floor(alpha * sample.n * (1 + 1e-12)))
    if hypotheses.free:
        reached = np.where(sets.rows >= 0, held[sets.rows], 0).sum(axis=1)
        nets = sample.n - reached <= most
    else:
        labels = hypotheses.labelings(sample.points)
        words = pack(np.repeat(labels, held, axis=1))
        last = np.cumsum(held) - 1  # a point's bit is that of its last example
        nets = np.array([is_net(words, pack(_mask(last[row[row >= 0]], sample.n))[0], most) for row in sets.rows])
    return float(min(1.0, np.einsum("s,s->", sets.chances, nets.astype(np.float64))))


def _mask(bits: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
    mask = np.zeros((1, width), dtype=np.uint8)
    mask[0, bits] = 1
    return mask


def is_net(words: Words, mask: NDArray[np.uint64], most: int) -> bool:
    masked = words & mask
    order = np.lexsort(masked.T[::-1])
    ordered = masked[order]
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return bool(_within(words[order], np.append(np.flatnonzero(new), len(ordered)), most))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _within(words: NDArray[np.uint64], starts: NDArray[np.int64], most: int) -> bool:
    """Whether rows of one group differ in at most ``most`` bits."""
    for g in range(len(starts) - 1):
        for i in range(starts[g], starts[g + 1]):
            for j in range(i + 1, starts[g + 1]):
                apart = np.int64(0)
                for w in range(words.shape[1]):
                    x = words[i, w] ^ words[j, w]
                    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
                    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
                    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
                    apart += np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
                if apart > most:
                    return False
    return True
