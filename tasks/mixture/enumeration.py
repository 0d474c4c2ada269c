"""Every subset in turn: in go rank ranges, out come sums of weights that add. Any class; exact.

Always true: block b holds ranks [b·length, (b + 1)·length), a length fixed by a count of operations; so any way to
share the blocks out gives the same bits.
"""

from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.mixture import subsets, visits
from predcube.tasks.mixture.base import LEAF_OPERATIONS, MixtureWeights, Occupancy

ADDITIVE_BLOCK = LEAF_OPERATIONS // 4
LARGEST_BLOCK, SMALLEST_BLOCK = 2**17, 2**8
"""Subsets a block. An additive class pays about four operations a subset, and its subsets are not written down; those
of another class are, as rows."""


@dataclass(frozen=True, kw_only=True)  # no slots: tables are made once, where they are first needed
class Enumeration:
    """The workload of all C(n, n') subsets. ``sample`` has occupied points only."""

    hypotheses: HypothesisClass
    sample: Occupancy
    subset_size: int
    beta: float

    @property
    def total(self) -> int:
        return subsets.count(self.sample.n, self.subset_size)

    @cached_property
    def visitor(self) -> visits.Visitor:
        return visits.Visitor(hypotheses=self.hypotheses, sample=self.sample, size=self.subset_size, beta=self.beta)

    @property
    def _each(self) -> float:
        """Operations of a subset."""
        if self.hypotheses.additive:
            return 4.0
        k = len(self.sample.points)
        return 4.0 * self.subset_size + self.hypotheses.listing(k, min(k, self.subset_size))

    @cached_property
    def block(self) -> int:
        """Subsets in a block."""
        if self._by_prefixes:
            return ADDITIVE_BLOCK
        fit = max(1, int(LEAF_OPERATIONS / self._each))
        return int(min(max(2 ** (fit.bit_length() - 1), SMALLEST_BLOCK), LARGEST_BLOCK))

    @property
    def blocks(self) -> int:
        return -(-self.total // self.block)

    @property
    def cost(self) -> float:
        return self._each * min(self.block, self.total)

    @cached_property
    def _by_prefixes(self) -> bool:
        return self.hypotheses.additive and self.visitor.chart is not None

    def partial(self, block: int) -> visits.Visited:
        start = block * self.block
        length = min(self.block, self.total - start)
        n, size = self.sample.n, self.subset_size
        if not self._by_prefixes:
            return self.visitor.visit(subsets.ranked(start, length, n, size), np.zeros(length, dtype=np.int64))
        chart = self.visitor.chart
        assert chart is not None
        scale = np.exp(chart[1])
        sums = np.zeros((1, len(scale)))
        _prefixes(subsets.unrank(start, n, size), length, self.visitor.place, scale[0], scale[1:], sums[0])
        return visits.Numbered(sums=sums, groups=np.zeros(1, dtype=np.int64), spread=visits.NOTHING)

    def finish(self, total: visits.Visited) -> MixtureWeights:
        representatives, logs = self.visitor.weights(total)
        return MixtureWeights(
            representatives=representatives,
            log_weights=logs[0] - np.log(self.total),
            method="enumerate",
            subsets=self.total,
        )


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _prefixes(
    first: NDArray[np.int64],
    length: int,
    place: NDArray[np.int64],
    null: float,
    scale: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Σ 1/Z over ``length`` subsets from ``first`` on in lexicographic order, for the null hypothesis (``sums[0]``)
    and for each point of T (``sums[v + 1]``), with Z = ``null`` + Σ_{v∈T} ``scale[v]``.

    A stack holds Z of every prefix and the sum of 1/Z over the subsets that continue it: the last element runs in a
    tight loop of one addition, one division and one sum, and a prefix's sum is handed down when it is left. Equal
    points stand side by side, so an element opens a new point exactly where the one before it is another point.
    """
    n, size = len(place), len(first)
    state = first.copy()
    z = np.full(size + 1, null)  # z[j]: of the first j elements
    kept = np.zeros(size + 1)  # kept[j]: Σ 1/Z of the visited subsets that share the current first j elements
    for j in range(size):
        fresh = j == 0 or place[state[j]] != place[state[j - 1]]
        z[j + 1] = z[j] + (scale[place[state[j]]] if fresh else 0.0)
    last = size - 1
    left = length
    while left > 0:
        stop = min(n, state[last] + left)
        left -= stop - state[last]
        base, before = z[last], -1
        if last > 0:
            before = place[state[last - 1]]
        inside = 0.0
        i = state[last]
        while i < stop and place[i] == before:
            inside += 1.0 / base
            i += 1
        while i < stop:
            share = 1.0 / (base + scale[place[i]])
            sums[place[i] + 1] += share
            inside += share
            i += 1
        kept[last] += inside
        # Leave prefixes that are exhausted, handing their sums down, and step to the next one.
        j = last - 1
        while j >= 0:
            if j == 0 or place[state[j]] != place[state[j - 1]]:
                sums[place[state[j]] + 1] += kept[j + 1]
            kept[j] += kept[j + 1]
            kept[j + 1] = 0.0
            if left > 0 and state[j] < n - size + j:
                break
            j -= 1
        if j < 0:
            break
        state[j] += 1
        for i in range(j + 1, size):
            state[i] = state[i - 1] + 1
        for i in range(j, size):
            fresh = i == 0 or place[state[i]] != place[state[i - 1]]
            z[i + 1] = z[i] + (scale[place[state[i]]] if fresh else 0.0)
    sums[0] += kept[0]
