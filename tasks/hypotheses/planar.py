"""Halfspaces of the plane on the points of one sample: in go many subsets T, out come sums over the hypotheses of H_T,
without a list of labelings and without asking the class once for each T.

Every halfspace that the rule of ``separations`` can give for a T among these k points is a *number*: the two constants;
an ordered pair (z, o) and a sign, the line through them with the cut between z (labelled 0) and o (labelled 1); a line,
a sign and a label, the line labelled alike. There are 2 + 2k(k − 1) + 4·lines of them, about 4k² or fewer.

For one T of t points the lines through pairs are walked in lexicographic order. What lies left of a line is carried as
a mask of t bits that changes by one class of collinear points as the line turns about its first point, so a line costs
O(1); the first line that gives a labeling is told by a hash table of masks. A labeling and its complement come at once.
Sums over a T with no three points on a line are faster by a sweep: see ``sweeps``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses import separations, sweeps
from predcube.tasks.hypotheses.orientation import signs
from predcube.tasks.hypotheses.packing import first_of_each, pack

LARGEST_SET = 64
"""Points of a T at most: a mask is one word."""
LARGEST_SAMPLE, LARGEST_TABLE = 1024, 2048
"""Points of a sample at most, whose subsets are walked, and of one whose best halfspace is sought: tables of some 4k²
entries."""

_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT = np.zeros(64, dtype=np.int64)
for _i in range(64):
    _BIT[(0x03F79D71B4CB0A89 << _i & 0xFFFFFFFFFFFFFFFF) >> 58] = _i


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: the order is made once, where it is first needed
class PlanarChart:
    """Tables on ``points`` (k, 2), sorted and distinct. ``rank[a, b]`` orders the directions of lines through a, equal
    where a, b and another point are collinear; ``line[a, b]`` numbers lines, ``pairs`` (lines, 2) are their first two
    points.

    The numbers 2i and 2i + 1 are complements of each other (but for a point midway of a cut, which either labels 1).
    """

    points: NDArray[np.float64]
    rank: NDArray[np.int32]
    line: NDArray[np.int32]
    pairs: NDArray[np.int64]

    @cached_property
    def order(self) -> NDArray[np.int32]:
        return sweeps.turns(self.rank)

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return 2 + 2 * len(self.points) ** 2 + 4 * len(self.pairs)

    def losses(self, counts: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """What each hypothesis gets wrong of ``counts`` (k, 2): (size,); +∞ at numbers that name none."""
        found = np.full(self.size, np.inf)
        found[0] = counts[:, 1].sum()
        kept = np.where(self.points[self.pairs[:, 0], 1] != self.points[self.pairs[:, 1], 1], 1, 0)
        length = max(1, separations.BLOCK // len(self.points))
        for start in range(0, len(self.pairs), length):
            rows = slice(start, start + length)
            side = signs(self.points[self.pairs[rows]], self.points)
            _losses(side, kept[rows], start, self.points, counts.astype(np.float64), found)
        found[1] = counts[:, 0].sum()
        return found

    def best(self, mass: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """The row of least loss for T = ``points``, the first in canonical order: (1, 8)."""
        losses = self.losses(mass)
        k = len(self.points)
        least = np.flatnonzero(losses == losses.min())
        rows = self.representatives(least)
        words = pack(separations.predict(rows, self.points))
        same = least[(words == words[first_of_each(words)[0]]).all(axis=1)]
        if same[0] < 2:
            return self.representatives(same[:1])
        # Of one labeling's numbers the rule takes the first line, then sign +, cut between neighbours.
        at = np.maximum(same - 2, 0)
        z, o = np.divmod(at // 2, k)
        cut = same < 2 + 2 * k * k
        z, o = np.where(cut, z, 0) % k, np.where(cut, o, 0) % k
        line = np.where(cut, self.line[np.minimum(z, o), np.maximum(z, o)], (at - 2 * k * k) // 4)
        apart = np.where(cut, np.abs(z - o), 0)
        turned = np.where(cut, at % 2, (at - 2 * k * k) % 2)
        return self.representatives(same[np.lexsort((apart, turned, line))[:1]])

    def representatives(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Rows of ``Halfspaces`` for some numbers: (M, 8)."""
        k = len(self.points)
        rows = np.empty((len(numbers), separations.WIDTH[2]))
        constant = numbers < 2
        rows[constant] = separations.constants(2)[numbers[constant]]
        cut = ~constant & (numbers < 2 + 2 * k * k)
        pair, turned = np.divmod(numbers[cut] - 2, 2)
        z, o = np.divmod(pair, k)
        rows[cut] = self._rows(self.line[np.minimum(z, o), np.maximum(z, o)], turned)
        ends = np.column_stack([z, o])
        ends[turned == 1] = ends[turned == 1, ::-1]
        rows[cut, 6:] = self.points[ends, 1 - rows[cut, 5, None].astype(np.int64)]
        alike = numbers >= 2 + 2 * k * k
        line, rest = np.divmod(numbers[alike] - 2 - 2 * k * k, 4)
        rows[alike] = self._rows(line, rest % 2)
        rows[alike, 6:] = np.where((rest == 1) | (rest == 2), -np.inf, np.inf)[:, None]
        return rows

    def _rows(self, line: NDArray[Any], turned: NDArray[np.int64]) -> NDArray[np.float64]:
        a, b = self.points[self.pairs[line, 0]], self.points[self.pairs[line, 1]]
        axis = np.where(a[:, 1] != b[:, 1], 0, 1)
        end = np.zeros((len(line), 2))
        return np.column_stack([a, b, np.where(turned == 0, 1.0, -1.0), axis, end])

    def listed(self, subset: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of H_T for one T of increasing point indices, in the order in which they are found."""
        check_set(len(subset))
        found = np.empty(2 + len(subset) * (len(subset) - 1), dtype=np.int64)
        count, alone = _list(subset, len(subset), self.rank, self.line, *_scratch(len(self.points), len(subset)), found)
        first = found[:count]
        return first if alone else np.stack([first, first + 1], axis=1).ravel()

    def add(
        self,
        sets: NDArray[np.int64],
        times: NDArray[np.float64],
        scale: NDArray[np.float64],
        sums: NDArray[np.float64],
        sizes: NDArray[np.int64],
        totals: NDArray[np.float64],
    ) -> None:
        """As ``Chart``; ValueError where a T may have more than ``LARGEST_SET`` points."""
        check_set(sets.shape[1])
        width = sets.shape[1]
        sweeps.add(sets, times, self.order, self.line, scale, sums, sizes, totals)
        if not sizes.all():
            both = np.column_stack([scale, np.zeros(len(scale))])  # side by side: one line of cache for both
            _add(sets, times, self.rank, self.line, both, *_scratch(len(self.points), width), sizes, totals)
            sums += both[:, 1]


def check_set(t: int) -> None:
    """ValueError where a T is too large for a chart."""
    if t > LARGEST_SET:
        raise ValueError(f"subsets of {t} points, at most {LARGEST_SET} are walked on a chart; take another way")


def chart(points: NDArray[np.float64]) -> PlanarChart:
    """The chart of sorted distinct points (k, 2), in O(k³) operations."""
    k = len(points)
    rank = np.zeros((k, k), dtype=np.int32)
    flip = np.where(np.arange(k) < np.arange(k)[:, None], -1, 1).astype(np.int8)  # l before a: its direction is turned
    for a in range(k):
        lines = np.stack([np.broadcast_to(points[a], points.shape), points], axis=1)
        turn = signs(lines, points) * flip[a][:, None] * flip[a]  # [l, m]: m's direction is after l's
        rank[a] = (turn < 0).sum(axis=1)
    line, pairs = np.full((k, k), -1, dtype=np.int32), np.empty((k * (k - 1) // 2, 2), dtype=np.int64)
    count = _number(rank, line, pairs)
    return PlanarChart(points=points, rank=rank, line=line, pairs=pairs[:count])


def _scratch(
    k: int, t: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]:
    """The hash table and the cells in use, both empty; for each rank the points of T there, and which ranks those are;
    the place of a single bit."""
    size = 1 << (4 * (t * (t - 1) // 2 + 1)).bit_length()
    return (
        np.zeros(size, dtype=np.uint64),
        np.zeros(size, dtype=np.int64),
        np.zeros(k, dtype=np.uint64),
        np.zeros(k // 64 + 1, dtype=np.uint64),
        _BIT,
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


@numba.njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _fresh(mask: int, full: int, cells: NDArray[np.uint64], used: NDArray[np.int64], taken: int) -> bool:
    """Puts a labeling into the hash table under the one of it and its complement that labels the first point 0;
    whether it was not there. The constants are never fresh."""
    key = full & ~mask if mask & np.uint64(1) else mask
    if key == np.uint64(0):
        return False
    last = np.uint64(len(cells) - 1)
    at = ((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & last
    while cells[at] != np.uint64(0):
        if cells[at] == key:
            return False
        at = (at + np.uint64(1)) & last
    cells[at] = key
    used[taken] = np.int64(at)
    return True


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _list(
    subset: NDArray[np.int64],
    t: int,
    rank: NDArray[np.int32],
    line: NDArray[np.int32],
    cells: NDArray[np.uint64],
    used: NDArray[np.int64],
    slot: NDArray[np.uint64],
    bitmap: NDArray[np.uint64],
    bit: NDArray[np.int64],
    found: NDArray[np.int64],
) -> tuple[int, bool]:
    """How many numbers were written to ``found``, and whether they are H_T: if not, each stands for its complement
    too. Point i of T is bit i of a mask. All scratch is left empty."""
    one, zero = np.uint64(1), np.uint64(0)
    k = len(rank)
    found[0] = 0
    count = 1
    if t == 0:
        return count, True
    full = ~zero if t == 64 else (one << np.uint64(t)) - one
    left = np.empty(64, dtype=np.uint64)
    held = np.empty(64, dtype=np.uint64)
    taken = 0
    for a in range(t - 1):
        here = subset[a]
        mine = one << np.uint64(a)
        for i in range(t):
            held[i] = zero
            if i != a:
                r = rank[here, subset[i]]
                slot[r] |= one << np.uint64(i)
                bitmap[r >> 6] |= one << np.uint64(r & 63)
        before = mine - one
        side = full & ~before & ~mine
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
            later = held[b]
            if later == zero:
                continue
            base = left[b]
            whole = mine | later
            if whole == full and t > 1:
                # All of T on one line: sign + for every labeling of it.
                found[1] = 1
                count = 2
                for i in range(t - 1):
                    found[count] = 2 + 2 * (subset[i + 1] * k + subset[i])
                    found[count + 1] = 2 + 2 * (subset[i] * k + subset[i + 1])
                    count += 2
                return count, True
            # On the line none is labelled 1, then all.
            if _fresh(base, full, cells, used, taken):
                found[count] = 2 + 2 * k * k + 4 * line[here, subset[b]]
                count += 1
                taken += 1
            if _fresh(base | whole, full, cells, used, taken):
                found[count] = 2 + 2 * k * k + 4 * line[here, subset[b]] + 2
                count += 1
                taken += 1
            # Those up to some point, then those after it.
            inside, z = mine, a
            while True:
                low = later & (~later + one)
                o = bit[(low * _DE_BRUIJN) >> np.uint64(58)]
                if _fresh(base | inside, full, cells, used, taken):
                    found[count] = 2 + 2 * (subset[o] * k + subset[z])
                    count += 1
                    taken += 1
                if _fresh(base | (whole ^ inside), full, cells, used, taken):
                    found[count] = 2 + 2 * (subset[z] * k + subset[o])
                    count += 1
                    taken += 1
                later ^= low
                if later == zero:
                    break
                inside |= low
                z = o
    for i in range(taken):
        cells[used[i]] = zero
    return count, False


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _add(
    sets: NDArray[np.int64],
    times: NDArray[np.float64],
    rank: NDArray[np.int32],
    line: NDArray[np.int32],
    both: NDArray[np.float64],
    cells: NDArray[np.uint64],
    used: NDArray[np.int64],
    slot: NDArray[np.uint64],
    bitmap: NDArray[np.uint64],
    bit: NDArray[np.int64],
    sizes: NDArray[np.int64],
    totals: NDArray[np.float64],
) -> None:
    """Of the sets of size 0 in ``sizes``, the others being added already. ``both`` (size, 2): scale, and sums."""
    width = sets.shape[1]
    found = np.empty(2 + width * (width - 1), dtype=np.int64)
    for i in range(len(sets)):
        if sizes[i] > 0:
            continue
        t = width
        while t > 0 and sets[i, t - 1] < 0:
            t -= 1
        count, alone = _list(sets[i], t, rank, line, cells, used, slot, bitmap, bit, found)
        z = 0.0
        if alone:
            sizes[i] = count
            for j in range(count):
                z += both[found[j], 0]
            totals[i] = z
            for j in range(count):
                both[found[j], 1] += times[i] / z
            continue
        sizes[i] = 2 * count
        for j in range(count):
            z += both[found[j], 0] + both[found[j] + 1, 0]
        totals[i] = z
        share = times[i] / z
        for j in range(count):
            both[found[j], 1] += share
            both[found[j] + 1, 1] += share


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _losses(
    side: NDArray[np.int8],
    kept: NDArray[np.int64],
    start: int,
    points: NDArray[np.float64],
    counts: NDArray[np.float64],
    found: NDArray[np.float64],
) -> None:
    """The losses of the hypotheses of lines from ``start`` on."""
    k = len(points)
    on = np.empty(k, dtype=np.int64)
    for i in range(len(side)):
        held = 0
        lost = turned = 0.0  # off the line, by labelling its left 1, or its right
        zeros = ones = 0.0  # on it
        for j in range(k):
            if side[i, j] > 0:
                lost += counts[j, 0]
                turned += counts[j, 1]
            elif side[i, j] < 0:
                lost += counts[j, 1]
                turned += counts[j, 0]
            else:
                on[held] = j
                held += 1
                zeros += counts[j, 0]
                ones += counts[j, 1]
        alike = 2 + 2 * k * k + 4 * (start + i)
        found[alike], found[alike + 1] = lost + ones, turned + zeros
        found[alike + 2], found[alike + 3] = lost + zeros, turned + ones
        for a in range(held):
            for b in range(held):
                if a == b:
                    continue
                z, o = points[on[a], kept[i]], points[on[b], kept[i]]
                total = z + o
                part = total - z
                error = (z - (total - part)) + (o - part)
                more = 0.0
                for j in range(held):
                    x = 2.0 * points[on[j], kept[i]]
                    level = x == total and ((o >= z and error <= 0) or (o < z and error >= 0))
                    near = level or (x > total if o >= z else x < total)
                    more += counts[on[j], 0] if near else counts[on[j], 1]
                found[2 + 2 * (on[a] * k + on[b])] = lost + more
                found[2 + 2 * (on[b] * k + on[a]) + 1] = turned + more
