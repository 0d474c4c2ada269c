"""The sums of ``planar`` for subsets T with no three points on a line: one sweep over the pairs of T, without a hash.

Point (x, y) is dual to the line v = x·m − y, and the points left of a directed line of slope m are the dual lines below
it. Labelings, complements as one, are then the faces of an arrangement of t lines; a pair of points is a vertex with
four faces around it. As m grows the vertices swap neighbours in the order of the dual lines: a swap closes one face,
opens one, and is a vertex of those above and below. Each face keeps its least pair in lexicographic order, which is the
line that ``separations`` takes for the labeling. Faces open at −∞ go on at +∞, as complements.

The swaps of T are those of the whole sample between points of T, so their order is found once for a sample.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

FEWEST = 3
"""Points of a T at least: with two, the faces around a vertex are not distinct."""
# Where a face lies as seen from its first pair (a, b), a < b: what a and b are labelled.
_NEITHER, _FIRST, _SECOND, _BOTH = np.int64(0), np.int64(1), np.int64(2), np.int64(3)


def turns(rank: NDArray[np.int32]) -> NDArray[np.int32]:
    """(k, k): the place of pair a < b in an order of all pairs that agrees with the turning order about each point;
    −1 where a third point is on the line."""
    order = np.full(rank.shape, -1, dtype=np.int32)
    _order(rank, np.argsort(rank, axis=1, kind="stable"), order)
    return order


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _order(rank: NDArray[np.int32], by_rank: NDArray[np.int64], order: NDArray[np.int32]) -> None:
    """A pair comes as soon as it is next about both of its points; exact, as ``rank`` is."""
    k = len(rank)
    queue = np.empty((k, k), dtype=np.int64)
    length = np.zeros(k, dtype=np.int64)
    for a in range(k):
        held = np.zeros(k + 1, dtype=np.int64)
        for m in range(k):
            if m != a:
                held[rank[a, m]] += 1
        for i in range(k):
            m = by_rank[a, i]
            if m != a and held[rank[a, m]] == 1:
                queue[a, length[a]] = m
                length[a] += 1
    at = np.zeros(k, dtype=np.int64)
    waiting = np.empty(k * k + k, dtype=np.int64)
    count = 0
    for start in range(k):
        waiting[0] = start
        left = 1
        while left > 0:
            left -= 1
            a = waiting[left]
            while at[a] < length[a]:
                b = queue[a, at[a]]
                if queue[b, at[b]] != a:
                    break
                order[min(a, b), max(a, b)] = count
                count += 1
                at[a] += 1
                at[b] += 1
                waiting[left] = b
                left += 1


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _spread(scale: NDArray[np.float64], line: NDArray[np.int32], cells: NDArray[np.float64]) -> None:
    """Writes λ of each labeling and its complement to ``cells`` (4 for each pair; 2): λ, and the sum, here 0."""
    k = len(line)
    i = 0
    for a in range(k):
        for b in range(a + 1, k):
            alike = 2 + 2 * k * k + 4 * line[a, b]
            first, second = 2 + 2 * (b * k + a), 2 + 2 * (a * k + b)
            cells[i + _NEITHER, 0] = scale[alike] + scale[alike + 1]
            cells[i + _FIRST, 0] = scale[first] + scale[first + 1]
            cells[i + _SECOND, 0] = scale[second] + scale[second + 1]
            cells[i + _BOTH, 0] = scale[alike + 2] + scale[alike + 3]
            cells[i : i + 4, 1] = 0.0
            i += 4


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _gather(cells: NDArray[np.float64], line: NDArray[np.int32], sums: NDArray[np.float64]) -> None:
    """Adds the sums of ``cells`` to those by number."""
    k = len(line)
    i = 0
    for a in range(k):
        for b in range(a + 1, k):
            alike = 2 + 2 * k * k + 4 * line[a, b]
            first, second = 2 + 2 * (b * k + a), 2 + 2 * (a * k + b)
            for number, cell in ((alike, _NEITHER), (first, _FIRST), (second, _SECOND), (alike + 2, _BOTH)):
                sums[number] += cells[i + cell, 1]
                sums[number + 1] += cells[i + cell, 1]
            i += 4


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _sort(
    subset: NDArray[np.int64],
    t: int,
    order: NDArray[np.int32],
    counts: NDArray[np.int64],
    digit: int,
    pairs: NDArray[np.uint32],
    other: NDArray[np.uint32],
) -> int:
    """Writes the pairs of T to ``pairs`` as 64a + b, in order; how many, or −1 where some line holds a third point.
    ``counts`` (2, 2^digit): two digits name a place in the order."""
    mask = (np.uint32(1) << np.uint32(digit)) - np.uint32(1)
    low, high = np.uint32(12), np.uint32(12 + digit)
    counts[:] = 0
    n = 0
    worst = np.int32(0)
    for a in range(t - 1):
        row = order[subset[a]]
        for b in range(a + 1, t):
            place = row[subset[b]]
            worst |= place
            word = np.uint32(place) << low | np.uint32(64 * a + b)
            pairs[n] = word
            counts[0, (word >> low) & mask] += 1
            counts[1, (word >> high) & mask] += 1
            n += 1
        if worst < 0:
            return -1
    first = second = 0
    for i in range(counts.shape[1]):
        here, there = counts[0, i], counts[1, i]
        counts[0, i], counts[1, i] = first, second
        first += here
        second += there
    for i in range(n):
        word = pairs[i]
        d = (word >> low) & mask
        other[counts[0, d]] = word
        counts[0, d] += 1
    for i in range(n):
        word = other[i]
        d = (word >> high) & mask
        pairs[counts[1, d]] = word & np.uint32(4095)
        counts[1, d] += 1
    return n


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _sweep(
    pairs: NDArray[np.uint32],
    n: int,
    t: int,
    gap: NDArray[np.int64],
    least: NDArray[np.int64],
    place: NDArray[np.int64],
    faces: NDArray[np.int64],
) -> None:
    """Writes to ``faces`` (n) for each labeling but the constants 4·(64a + b) + its cell, (a, b) its first pair.

    Gap g is below g dual lines; ``gap[i]`` is the one below line i, ``least[g]`` the least pair yet of the face there,
    ``place[g]`` where a face that came from −∞ is kept, or −1."""
    for i in range(t + 1):
        gap[i] = i + 1
        least[i] = 1 << 20
        place[i] = i - 1
    following = t - 1
    for i in range(n):
        pair = np.int64(pairs[i])
        a, b = pair >> 6, pair & 63
        g = gap[a]
        gap[a] = g + 1
        gap[b] = g
        key = 4 * pair
        kept = place[g]
        new = kept < 0
        faces[following if new else kept] = min(least[g], key + _SECOND)
        following += new
        place[g] = -1
        least[g] = key + _FIRST
        least[g - 1] = min(least[g - 1], key + _BOTH)
        least[g + 1] = min(least[g + 1], key + _NEITHER)
    for g in range(1, t):
        faces[t - 1 - g] = min(faces[t - 1 - g], least[g])


def add(
    sets: NDArray[np.int64],
    times: NDArray[np.float64],
    order: NDArray[np.int32],
    line: NDArray[np.int32],
    scale: NDArray[np.float64],
    sums: NDArray[np.float64],
    sizes: NDArray[np.int64],
    totals: NDArray[np.float64],
) -> None:
    """As ``Chart``, for the sets that can be swept; ``sizes`` is 0 of those left, of which nothing is added: too few
    points, or one of the sample on a line through two of them. At most 1024 points, and 64 of a set."""
    sizes[:] = 0
    (k, _), (_, t) = order.shape, sets.shape
    if t < FEWEST or not len(sets):
        return
    digit = (math.comb(k, 2).bit_length() + 1) // 2
    counts = np.empty((2, 1 << digit), dtype=np.int64)
    pairs, state = np.empty((2, math.comb(t, 2)), dtype=np.uint32), np.empty((3, t + 1), dtype=np.int64)
    cells = np.empty((4 * math.comb(k, 2), 2))
    _spread(scale, line, cells)
    _add(sets, times, order, cells, scale[:2].sum(), counts, digit, pairs, state, sums, sizes, totals)
    _gather(cells, line, sums)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _add(
    sets: NDArray[np.int64],
    times: NDArray[np.float64],
    order: NDArray[np.int32],
    cells: NDArray[np.float64],
    constants: float,
    counts: NDArray[np.int64],
    digit: int,
    pairs: NDArray[np.uint32],
    state: NDArray[np.int64],
    sums: NDArray[np.float64],
    sizes: NDArray[np.int64],
    totals: NDArray[np.float64],
) -> None:
    """``constants``: λ of both; the others are scratch."""
    k, width = len(order), sets.shape[1]
    faces = np.empty(pairs.shape[1], dtype=np.int64)
    begin = np.empty(width, dtype=np.int64)
    for i in range(len(sets)):
        subset = sets[i]
        t = width
        while t > 0 and subset[t - 1] < 0:
            t -= 1
        if t < FEWEST:
            continue
        n = _sort(subset, t, order, counts, digit, pairs[0], pairs[1])
        if n < 0:
            continue
        _sweep(pairs[0], n, t, state[0], state[1], state[2], faces)
        for a in range(t):  # pairs of the sample in lexicographic order: (a, b) is at begin[a] + b
            begin[a] = subset[a] * (2 * k - subset[a] - 1) // 2 - subset[a] - 1
        z = constants
        for j in range(n):
            key = faces[j]
            cell = 4 * (begin[key >> 8] + subset[(key >> 2) & 63]) + (key & 3)
            faces[j] = cell
            z += cells[cell, 0]
        sizes[i] = 2 * n + 2
        totals[i] = z
        share = times[i] / z
        sums[0] += share
        sums[1] += share
        for j in range(n):
            cells[faces[j], 1] += share
