"""What a finite class can tell apart: in go its functions as rows of labels, out come a largest shattered set and the
growth function, by search over sets of columns.

A set of columns is carried as the parts into which its patterns divide the distinct rows, each a bit mask: as many
parts as labelings. Always true: an answer is exact; a search that takes too many steps says so by None.
"""

from math import comb

import numpy as np
from numpy.typing import NDArray

SEARCH_STEPS = 2**22
"""Parts cut at most in one search: a few seconds."""


def largest_shattered(rows: NDArray[np.uint8]) -> tuple[int, ...] | None:
    """The columns of a largest set on which all patterns occur, or None where ``SEARCH_STEPS`` do not tell. The VC
    dimension is their number.

    Depth first. A column is tried only where it cuts every part in two, which its parent's set must already allow; a
    part of r rows shatters at most ⌊log₂ r⌋ columns more. Still exponential in the VC dimension.
    """
    masks, everything, names, width = _masks(rows)
    best: tuple[int, ...] = ()
    steps = 0

    def extend(parts: list[int], chosen: tuple[int, ...], candidates: list[int]) -> None:
        nonlocal best, steps
        if len(chosen) > len(best):
            best = chosen
        room = min(part.bit_count() for part in parts).bit_length() - 1
        if len(chosen) + room <= len(best):
            return
        cuts = []
        for j in candidates:
            steps += width * len(parts)
            if steps > SEARCH_STEPS:
                return
            mask = masks[j]
            if all(0 != part & mask != part for part in parts):
                cuts.append(j)
        for i, j in enumerate(cuts):
            if len(chosen) + min(room, len(cuts) - i) <= len(best) or steps > SEARCH_STEPS:
                return
            extend(
                [piece for part in parts for piece in (part & masks[j], part & ~masks[j])], (*chosen, j), cuts[i + 1 :]
            )

    extend([everything], (), list(range(len(masks))))
    return None if steps > SEARCH_STEPS else tuple(sorted(names[j] for j in best))


def most_labelings(rows: NDArray[np.uint8], m: int, vc_dimension: int | None = None) -> tuple[int, bool]:
    """Growth function: the largest number of labelings of m columns, and True; or an upper bound (Sauer–Shelah's, where
    the VC dimension is given) and False where ``SEARCH_STEPS`` do not tell."""
    masks, everything, _, width = _masks(rows)
    count = everything.bit_count()
    if m >= len(masks):  # columns that are equal, complementary or constant divide nothing more
        return count, True
    ceiling = min(count, 2**m)
    if vc_dimension is not None:
        ceiling = min(ceiling, sum(comb(m, i) for i in range(vc_dimension + 1)))
    best = steps = 0

    def extend(parts: list[int], left: int, start: int) -> None:
        nonlocal best, steps
        best = max(best, len(parts))
        for j in range(start, len(masks) - left + 1 if left else 0):
            if best >= ceiling or steps > SEARCH_STEPS:
                return
            if sum(min(1 << left, part.bit_count()) for part in parts) <= best:
                return
            steps += 2 * width * len(parts)
            cut = [piece for part in parts for piece in (part & masks[j], part & ~masks[j]) if piece]
            extend(cut, left - 1, j + 1)

    extend([everything], m, 0)
    return (best, True) if best >= ceiling or steps <= SEARCH_STEPS else (ceiling, False)


def _masks(rows: NDArray[np.uint8]) -> tuple[list[int], int, list[int], int]:
    """The columns that differ in more than complement, as masks over the distinct rows, the most even first; the mask
    of all rows; each mask's column; and what cutting by a mask costs, in steps."""
    patterns = np.unique(rows, axis=0)
    # A column and its complement are shattered with the same others, so of two such only one is searched.
    columns, first = np.unique((patterns ^ patterns[0]).T, axis=0, return_index=True)
    varied = columns.any(axis=1)
    columns, first = columns[varied], first[varied]
    order = np.lexsort((first, np.abs(2 * columns.sum(axis=1, dtype=np.int64) - len(patterns))))
    masks = [int.from_bytes(np.packbits(columns[i]).tobytes()) for i in order]
    everything = int.from_bytes(np.packbits(np.ones(len(patterns), dtype=np.uint8)).tobytes())
    return masks, everything, [int(first[i]) for i in order], 1 + len(patterns) // 4096
