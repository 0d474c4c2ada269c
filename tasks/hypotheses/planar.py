"""Halfspaces of the plane on the points of one sample: in go many subsets T, out come sums over the hypotheses of H_T,
without a list of labelings and without asking the class once for each T.

Every halfspace that the rule of ``separations`` can give for a T among these k points is a *number*: the two constants;
an ordered pair (z, o) and a sign, the line through them with the cut between z (labelled 0) and o (labelled 1); a line,
a sign and a label, the line labelled alike. There are 2 + 2k(k − 1) + 4·lines of them, about 4k² or fewer.

For one T of t points the lines through pairs are walked in lexicographic order. What lies left of a line is carried as
a mask of t bits that changes by one class of collinear points as the line turns about its first point, so a line costs
O(1); the first line that gives a labeling is told by a hash table of masks. A labeling and its complement come at once.
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses import separations
from predcube.tasks.hypotheses.orientation import signs

LARGEST_SET = 64
"""Points of a T at most: a mask is one word."""
LARGEST_SAMPLE = 1024
"""Points of a sample at most: tables of k² entries."""

_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT = np.zeros(64, dtype=np.int64)
for _i in range(64):
    _BIT[(0x03F79D71B4CB0A89 << _i & 0xFFFFFFFFFFFFFFFF) >> 58] = _i


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanarChart:
    """Tables on ``points`` (k, 2), sorted and distinct. ``rank[a, b]`` orders the directions of lines through a, equal
    where a, b and another point are collinear; ``line[a, b]`` numbers lines, ``pairs`` (lines, 2) are their first two
    points."""

    points: NDArray[np.float64]
    rank: NDArray[np.int32]
    line: NDArray[np.int32]
    pairs: NDArray[np.int64]

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return 2 + 2 * len(self.points) ** 2 + 4 * len(self.pairs)

    def losses(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """What each hypothesis gets wrong of ``counts`` (k, 2): (size,); NaN at numbers that name none."""
        side = signs(self.points[self.pairs], self.points)
        kept = np.where(self.points[self.pairs[:, 0], 1] != self.points[self.pairs[:, 1], 1], 1, 0)
        found = np.full(self.size, np.nan)
        found[:2] = counts[:, 1].sum(), counts[:, 0].sum()
        _losses(side, kept, self.points, counts.astype(np.int64), found)
        return found

    def representatives(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Rows of ``Halfspaces`` for some numbers: (M, 8)."""
        k = len(self.points)
        rows = np.empty((len(numbers), separations.WIDTH[2]))
        constant = numbers < 2
        rows[constant] = separations.constants(2)[numbers[constant]]
        cut = ~constant & (numbers < 2 + 2 * k * k)
        pair, sign = np.divmod(numbers[cut] - 2, 2)
        z, o = np.divmod(pair, k)
        rows[cut] = self._rows(self.line[np.minimum(z, o), np.maximum(z, o)], sign)
        kept = 1 - rows[cut, 5].astype(np.int64)
        rows[cut, 6], rows[cut, 7] = self.points[z, kept], self.points[o, kept]
        alike = numbers >= 2 + 2 * k * k
        line, rest = np.divmod(numbers[alike] - 2 - 2 * k * k, 4)
        rows[alike] = self._rows(line, rest // 2)
        rows[alike, 6:] = np.where(rest % 2 == 1, -np.inf, np.inf)[:, None]
        return rows

    def _rows(self, line: NDArray[Any], sign: NDArray[np.int64]) -> NDArray[np.float64]:
        a, b = self.points[self.pairs[line, 0]], self.points[self.pairs[line, 1]]
        axis = np.where(a[:, 1] != b[:, 1], 0, 1)
        end = np.zeros((len(line), 2))
        return np.column_stack([a, b, np.where(sign == 0, 1.0, -1.0), axis, end])

    def listed(self, subset: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of H_T for one T of sorted point indices, in the order they are found."""
        scratch = _scratch(len(self.points), len(subset))
        found = np.empty(2 + len(subset) * (len(subset) - 1), dtype=np.int64)
        stamps, keys, slot, bitmap = scratch
        return found[: _list(subset, len(subset), self.rank, self.line, 1, stamps, keys, slot, bitmap, _BIT, found)]

    def add(
        self,
        sets: NDArray[np.int64],
        times: NDArray[np.float64],
        scale: NDArray[np.float64],
        sums: NDArray[np.float64],
        sizes: NDArray[np.int64] | None = None,
    ) -> None:
        """Adds times_T/Z_T, Z_T = Σ_{h ∈ H_T} scale_h, to ``sums`` (size,) at every h ∈ H_T.

        ``sets`` (L, t) are rows of increasing point indices, padded with −1 at the end; ``times`` (L,) how often each
        counts; ``sizes`` (L,), where given, receives |H_T|.
        """
        if sets.shape[1] > LARGEST_SET:
            raise ValueError(f"subsets of {sets.shape[1]} points, at most {LARGEST_SET} are walked; take another way")
        stamps, keys, slot, bitmap = _scratch(len(self.points), sets.shape[1])
        counted = np.empty(len(sets), dtype=np.int64) if sizes is None else sizes
        _add(sets, times, self.rank, self.line, scale, stamps, keys, slot, bitmap, _BIT, sums, counted)


def chart(points: NDArray[np.float64]) -> PlanarChart | None:
    """The chart of sorted distinct points (k, 2); None beyond ``LARGEST_SAMPLE`` of them."""
    k = len(points)
    if k > LARGEST_SAMPLE:
        return None
    rank = np.zeros((k, k), dtype=np.int32)
    flip = np.where(np.arange(k) < np.arange(k)[:, None], -1, 1).astype(np.int8)  # l before a: its direction is turned
    for a in range(k):
        lines = np.stack([np.broadcast_to(points[a], points.shape), points], axis=1)
        turn = signs(lines, points) * flip[a][:, None] * flip[a]  # [l, m]: m's direction is after l's
        rank[a] = (turn < 0).sum(axis=1)
    line, pairs = np.full((k, k), -1, dtype=np.int32), np.empty((k * (k - 1) // 2, 2), dtype=np.int64)
    count = _number(rank, line, pairs)
    return PlanarChart(points=points, rank=rank, line=line, pairs=pairs[:count])


def _scratch(k: int, t: int) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
    size = 1 << (2 * (t * (t - 1) // 2 + 1)).bit_length()
    return (
        np.zeros(size, dtype=np.int64),
        np.zeros(size, dtype=np.uint64),
        np.zeros(k, dtype=np.uint64),
        np.zeros(k // 64 + 1, dtype=np.uint64),
    )


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _number(rank: NDArray[np.int32], line: NDArray[np.int32], pairs: NDArray[np.int64]) -> int:
    """Numbers the lines in the order of their first two points."""
    k = len(rank)
    count = 0
    for a in range(k):
        first = np.full(k + 1, -1, dtype=np.int64)
        for m in range(k):
            if m == a:
                continue
            r = rank[a, m]
            if m < a:
                if first[r] < 0:
                    first[r] = m
            elif first[r] < 0:
                first[r] = m
                pairs[count, 0], pairs[count, 1] = a, m
                line[a, m] = count
                count += 1
            elif first[r] < a:
                line[a, m] = line[first[r], a]
            else:
                line[a, m] = line[a, first[r]]
    return count


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _list(
    subset: NDArray[np.int64],
    t: int,
    rank: NDArray[np.int32],
    line: NDArray[np.int32],
    stamp: int,
    stamps: NDArray[np.int64],
    keys: NDArray[np.uint64],
    slot: NDArray[np.uint64],
    bitmap: NDArray[np.uint64],
    bit: NDArray[np.int64],
    found: NDArray[np.int64],
) -> int:
    """H_T as numbers; how many. Point i of T is bit i of a mask."""
    one, zero = np.uint64(1), np.uint64(0)
    k = len(rank)
    if t == 0:
        found[0] = 0
        return 1
    found[0], found[1] = 0, 1
    count = 2
    full = ~zero if t == 64 else (one << np.uint64(t)) - one
    cells = np.uint64(len(stamps) - 1)
    left = np.empty(64, dtype=np.uint64)
    held = np.empty(64, dtype=np.uint64)
    for a in range(t - 1):
        here = subset[a]
        for i in range(t):
            if i != a:
                r = rank[here, subset[i]]
                slot[r] |= one << np.uint64(i)
                bitmap[r >> 6] |= one << np.uint64(r & 63)
            held[i] = zero
        before = (one << np.uint64(a)) - one
        side = full & ~before & ~(one << np.uint64(a))
        for word in range(len(bitmap)):
            bits = bitmap[word]
            bitmap[word] = zero
            while bits != zero:
                low = bits & (~bits + one)
                bits ^= low
                r = 64 * word + bit[(low * _DE_BRUIJN) >> np.uint64(58)]
                on = slot[r]
                slot[r] = zero
                earlier = on & before
                later = on & ~before
                side &= ~later
                if earlier == zero and later != zero:
                    b = bit[((later & (~later + one)) * _DE_BRUIJN) >> np.uint64(58)]
                    left[b] = side
                    held[b] = later
                side |= earlier
        for b in range(a + 1, t):
            if held[b] == zero:
                continue
            # The labels on the line: none, all, or all up to some point; complements come with them.
            rest = held[b] | (one << np.uint64(a))
            whole = rest == full
            inside = zero
            last = -1
            there = line[here, subset[b]]
            alike = 2 + 2 * k * k + 4 * there
            while True:
                mask = left[b] | inside
                # Sign 0 with these labels, and sign 1 with the others; sign 0 again where all of T is on the line.
                if inside == zero:
                    mine, other = alike, alike + 3
                elif rest == zero:
                    mine, other = alike + 1, alike + 2
                else:
                    nxt = bit[((rest & (~rest + one)) * _DE_BRUIJN) >> np.uint64(58)]
                    mine = 2 + 2 * (subset[nxt] * k + subset[last])
                    other = 2 + 2 * (subset[last] * k + subset[nxt]) + (0 if whole else 1)
                for _ in range(1 if whole else 2):
                    key = full & ~mask if mask & one else mask
                    h = (key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
                    h &= cells
                    fresh = key != zero
                    while fresh and stamps[h] == stamp:
                        if keys[h] == key:
                            fresh = False
                        h = (h + one) & cells
                    if fresh:
                        stamps[h], keys[h] = stamp, key
                        found[count], found[count + 1] = mine, other
                        count += 2
                    # The same cut the other way round.
                    if inside == zero or rest == zero:
                        break
                    mask = left[b] | rest
                    mine, other = _turned(subset[last], subset[nxt], k)
                if rest == zero:
                    break
                low = rest & (~rest + one)
                rest ^= low
                inside |= low
                last = bit[(low * _DE_BRUIJN) >> np.uint64(58)]
    return count


@numba.njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _turned(last: int, nxt: int, k: int) -> tuple[int, int]:
    """The numbers of a cut whose further points are labelled 1, and of its complement."""
    return 2 + 2 * (last * k + nxt), 2 + 2 * (nxt * k + last) + 1


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _add(
    sets: NDArray[np.int64],
    times: NDArray[np.float64],
    rank: NDArray[np.int32],
    line: NDArray[np.int32],
    scale: NDArray[np.float64],
    stamps: NDArray[np.int64],
    keys: NDArray[np.uint64],
    slot: NDArray[np.uint64],
    bitmap: NDArray[np.uint64],
    bit: NDArray[np.int64],
    sums: NDArray[np.float64],
    sizes: NDArray[np.int64],
) -> None:
    width = sets.shape[1]
    found = np.empty(2 + width * (width - 1), dtype=np.int64)
    for i in range(len(sets)):
        t = width
        while t > 0 and sets[i, t - 1] < 0:
            t -= 1
        count = _list(sets[i], t, rank, line, i + 1, stamps, keys, slot, bitmap, bit, found)
        sizes[i] = count
        z = 0.0
        for j in range(count):
            z += scale[found[j]]
        share = times[i] / z
        for j in range(count):
            sums[found[j]] += share


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _losses(
    side: NDArray[np.int8],
    kept: NDArray[np.int64],
    points: NDArray[np.float64],
    counts: NDArray[np.int64],
    found: NDArray[np.float64],
) -> None:
    k = len(points)
    on = np.empty(k, dtype=np.int64)
    for i in range(len(side)):
        held = 0
        plus = minus = 0  # lost off the line when its left, or its right, is labelled 1
        for j in range(k):
            if side[i, j] > 0:
                plus += counts[j, 0]
                minus += counts[j, 1]
            elif side[i, j] < 0:
                plus += counts[j, 1]
                minus += counts[j, 0]
            else:
                on[held] = j
                held += 1
        zeros = ones = 0
        for j in range(held):
            zeros += counts[on[j], 0]
            ones += counts[on[j], 1]
        alike = 2 + 2 * k * k + 4 * i
        found[alike], found[alike + 1] = plus + ones, plus + zeros
        found[alike + 2], found[alike + 3] = minus + ones, minus + zeros
        for a in range(held):
            for b in range(held):
                if a == b:
                    continue
                z, o = points[on[a], kept[i]], points[on[b], kept[i]]
                total = z + o
                part = total - z
                error = (z - (total - part)) + (o - part)
                lost = 0
                for j in range(held):
                    x = 2.0 * points[on[j], kept[i]]
                    level = x == total and ((o >= z and error <= 0) or (o < z and error >= 0))
                    near = level or (x > total if o >= z else x < total)
                    lost += counts[on[j], 0] if near else counts[on[j], 1]
                number = 2 + 2 * (on[a] * k + on[b])
                found[number], found[number + 1] = plus + lost, minus + lost
