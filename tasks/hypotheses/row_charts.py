"""The chart of a finite class whose rule is "the first row": in go rows of labels, out come sums over subsets.

H_T holds, of the rows that agree on T, the first. Rows are packed into words, masked by T, and told apart by a hash
table of the masked words, so a T costs O(rows · words).
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.packing import Words, pack

LARGEST = 2**27
"""Labels at most."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowChart:
    """A number is a row's place in ``rows`` (N,) or (N, parameters), which stand in the order of the rule; ``labels``
    (N, k) are theirs on the points and ``words`` the same packed. Rows that are equal on all points stand for the first
    of them, since no T tells them apart."""

    rows: NDArray[Any]
    labels: NDArray[np.uint8]
    words: Words

    @property
    def size(self) -> int:
        return len(self.rows)

    def losses(self, counts: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        gain = (counts[:, 0] - counts[:, 1]).astype(np.float64)
        return np.asarray(counts[:, 1].sum(dtype=np.float64) + np.einsum("mk,k->m", self.labels, gain))

    def representatives(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        return self.rows[numbers]

    def add(
        self,
        sets: NDArray[np.int64],
        times: NDArray[np.float64],
        scale: NDArray[np.float64],
        sums: NDArray[np.float64],
        sizes: NDArray[np.int64],
        totals: NDArray[np.float64],
    ) -> None:
        cells = np.full(1 << (2 * len(self.rows)).bit_length(), -1, dtype=np.int64)
        _add_rows(sets, times, self.words, cells, scale, sums, sizes, totals)


def row_chart(rows: NDArray[Any], labels: NDArray[np.uint8]) -> RowChart:
    """The chart of rows (N, …) with these labels (N, k) on the points of a sample."""
    words = pack(labels)
    # Equal rows first: what no T tells apart need not be met again for every T.
    distinct = np.sort(np.unique(words, axis=0, return_index=True)[1])
    return RowChart(rows=rows[distinct], labels=labels[distinct], words=words[distinct])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _add_rows(
    sets: NDArray[np.int64],
    times: NDArray[np.float64],
    words: NDArray[np.uint64],
    cells: NDArray[np.int64],
    scale: NDArray[np.float64],
    sums: NDArray[np.float64],
    sizes: NDArray[np.int64],
    totals: NDArray[np.float64],
) -> None:
    """``cells``: an empty hash table, all −1, of more than twice as many cells as rows."""
    rows, width = words.shape
    last = np.uint64(len(cells) - 1)
    mask = np.zeros(width, dtype=np.uint64)
    used = np.empty(rows, dtype=np.int64)
    found = np.empty(rows, dtype=np.int64)
    for i in range(len(sets)):
        mask[:] = np.uint64(0)
        for v in sets[i]:
            if v < 0:
                break
            mask[v >> 6] |= np.uint64(1) << np.uint64(63 - (v & 63))
        count, z = 0, 0.0
        for row in range(rows):
            key = np.uint64(0)
            for w in range(width):
                key = (key ^ (words[row, w] & mask[w])) * np.uint64(0x9E3779B97F4A7C15)
                key ^= key >> np.uint64(29)
            at = key & last
            fresh = True
            while cells[at] >= 0:
                other, same = cells[at], True
                for w in range(width):
                    if (words[row, w] ^ words[other, w]) & mask[w] != np.uint64(0):
                        same = False
                        break
                if same:
                    fresh = False
                    break
                at = (at + np.uint64(1)) & last
            if fresh:
                cells[at] = row
                used[count], found[count] = np.int64(at), row
                count += 1
                z += scale[row]
        sizes[i], totals[i] = count, z
        share = times[i] / z
        for j in range(count):
            sums[found[j]] += share
            cells[used[j]] = -1
