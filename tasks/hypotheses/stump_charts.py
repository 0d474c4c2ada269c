"""The chart of decision stumps: in go subsets T of one sample's points, out come sums over the stumps of H_T.

Along each feature T is met from its largest coordinate down; the points met so far are those labelled 1 by the cut
there, a mask of |T| bits. Only a labeling that no earlier feature has given is a new one, which a hash table of masks
tells; a cut and its complement come at once.
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

LARGEST_SET = 64
"""Points of a T at most: a mask is one word."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StumpChart:
    """Numbers 0 and 1 are the constants; 2 + 2·(f·k + l) + s is feature f, the cut at its l-th coordinate in increasing
    order, sign + for s = 0. ``cuts`` (p, k) are those coordinates, padded by the largest; ``level`` (p, k) the place of
    each point's coordinate among them; ``order`` (p, k) the rank of each point along a feature, ties by number."""

    cuts: NDArray[np.float64]
    level: NDArray[np.int64]
    order: NDArray[np.int64]

    @property
    def size(self) -> int:
        return 2 + 2 * self.cuts.size

    def losses(self, counts: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        p, k = self.cuts.shape
        found = np.full((p, k, 2), np.inf)
        zeros, ones = counts.sum(axis=0, dtype=np.float64)
        for f in range(p):
            held = np.zeros((k, 2))
            np.add.at(held, self.level[f], counts)
            before = np.cumsum(held, axis=0) - held
            found[f, :, 0] = before[:, 1] + zeros - before[:, 0]
            found[f, :, 1] = before[:, 0] + ones - before[:, 1]
            found[f, self.level[f].max() + 1 :] = np.inf
        return np.concatenate([[ones, zeros], found.ravel()])

    def representatives(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        place, sign = np.divmod(np.maximum(numbers - 2, 0), 2)
        feature, at = np.divmod(place, self.cuts.shape[1])
        rows = np.stack([feature.astype(np.float64), self.cuts[feature, at], np.where(sign == 0, 1.0, -1.0)], axis=1)
        rows[numbers == 0] = [0.0, np.inf, 1.0]
        rows[numbers == 1] = [0.0, -np.inf, 1.0]
        return rows

    def add(
        self,
        sets: NDArray[np.int64],
        times: NDArray[np.float64],
        scale: NDArray[np.float64],
        sums: NDArray[np.float64],
        sizes: NDArray[np.int64],
        totals: NDArray[np.float64],
    ) -> None:
        cells = np.zeros(1 << (2 * len(self.cuts) * sets.shape[1]).bit_length(), dtype=np.uint64)
        _add_stumps(sets, times, self.level, self.order, cells, scale, sums, sizes, totals)


def stump_chart(points: NDArray[Any]) -> StumpChart:
    """The chart of sorted distinct points (k, p)."""
    k, p = points.shape
    cuts, level, order = np.empty((p, k)), np.empty((p, k), dtype=np.int64), np.empty((p, k), dtype=np.int64)
    for f in range(p):
        values, level[f] = np.unique(points[:, f], return_inverse=True)
        cuts[f] = np.append(values, np.full(k - len(values), values[-1]))
        order[f, np.argsort(points[:, f], kind="stable")] = np.arange(k)
    return StumpChart(cuts=cuts, level=level, order=order)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _add_stumps(
    sets: NDArray[np.int64],
    times: NDArray[np.float64],
    level: NDArray[np.int64],
    order: NDArray[np.int64],
    cells: NDArray[np.uint64],
    scale: NDArray[np.float64],
    sums: NDArray[np.float64],
    sizes: NDArray[np.int64],
    totals: NDArray[np.float64],
) -> None:
    """``cells``: an empty hash table (0: free) of more than twice as many cells as there are cuts of T."""
    p, k = level.shape
    width = sets.shape[1]
    one = np.uint64(1)
    last = np.uint64(len(cells) - 1)
    used = np.empty(p * width, dtype=np.int64)
    found = np.empty(2 * p * width + 2, dtype=np.int64)
    rank, place = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)
    for i in range(len(sets)):
        t = width
        while t > 0 and sets[i, t - 1] < 0:
            t -= 1
        full = ~np.uint64(0) if t == 64 else (one << np.uint64(t)) - one
        found[0], found[1] = 0, 1
        count, taken = 2, 0
        z = scale[0] + scale[1]
        for f in range(p):
            for a in range(t):  # by rank along the feature
                mine, b = order[f, sets[i, a]], a
                while b > 0 and rank[b - 1] > mine:
                    rank[b], place[b] = rank[b - 1], place[b - 1]
                    b -= 1
                rank[b], place[b] = mine, a
            # Cuts in increasing order, each labelling 1 what is not below it; the first labels all of them 1.
            mask = full
            for a in range(t - 1):
                mask ^= one << np.uint64(place[a])
                cut = level[f, sets[i, place[a + 1]]]
                if cut == level[f, sets[i, place[a]]]:
                    continue
                key = full & ~mask if mask & one else mask
                at = ((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & last
                fresh = True
                while cells[at] != np.uint64(0):
                    if cells[at] == key:
                        fresh = False
                        break
                    at = (at + one) & last
                if not fresh:
                    continue
                cells[at] = key
                used[taken] = np.int64(at)
                taken += 1
                number = 2 + 2 * (f * k + cut)
                found[count], found[count + 1] = number, number + 1
                count += 2
                z += scale[number] + scale[number + 1]
        for a in range(taken):
            cells[used[a]] = np.uint64(0)
        sizes[i], totals[i] = count, z
        share = times[i] / z
        for a in range(count):
            sums[found[a]] += share
