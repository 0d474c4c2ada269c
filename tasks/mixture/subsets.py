"""Subsets of examples by rank: in go ranks or uniform numbers, out come subsets as rows of point indices.

The examples 0 … n−1 stand sorted by point, and ``place[i]`` is example i's point. Ranks order the n'-subsets
lexicographically (as itertools.combinations does); they are exact integers.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

LARGEST_RANK = 2**63 - 1


def countable(n: int, subset_size: int) -> bool:
    """Whether C(n, n') is at most 2^63 − 1. C(n, k) ≥ (n/k)^k spares the integers that are large beyond doubt."""
    k = min(subset_size, n - subset_size)
    return k == 0 or (k * math.log2(n / k) < 63 and math.comb(n, k) <= LARGEST_RANK)


def count(n: int, subset_size: int) -> int:
    """C(n, n'); ValueError beyond 2^63 − 1, where ranks no longer fit a machine integer."""
    if not countable(n, subset_size):
        digits = (math.lgamma(n + 1) - math.lgamma(subset_size + 1) - math.lgamma(n - subset_size + 1)) / math.log(10)
        raise ValueError(
            f"enumerate: C({n}, {subset_size}) is about 10^{digits:.0f} subsets, beyond 2^63 ranks; "
            "take laplace or support where they apply, or mc"
        )
    return math.comb(n, subset_size)


def unrank(rank: int, n: int, subset_size: int) -> NDArray[np.int64]:
    """The subset of that rank in lexicographic order (combinatorial number system).

    >>> [unrank(r, 4, 2).tolist() for r in range(6)]
    [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    """
    found = np.empty(subset_size, dtype=np.int64)
    i = 0
    for j in range(subset_size):
        # Subsets that start with i: C(n − i − 1, what is left).
        block = math.comb(n - i - 1, subset_size - j - 1)
        while rank >= block:
            rank -= block
            i += 1
            block = math.comb(n - i - 1, subset_size - j - 1)
        found[j] = i
        i += 1
    return found


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _successors(first: NDArray[np.int64], n: int, rows: NDArray[np.int64]) -> None:
    size = len(first)
    state = first.copy()
    for r in range(len(rows)):
        rows[r] = state
        j = size - 1
        while j >= 0 and state[j] == n - size + j:
            j -= 1
        if j < 0:
            return
        state[j] += 1
        for i in range(j + 1, size):
            state[i] = state[i - 1] + 1


def ranked(start: int, length: int, n: int, subset_size: int) -> NDArray[np.int64]:
    """The subsets of ranks start … start + length − 1: (length, n')."""
    rows = np.empty((length, subset_size), dtype=np.int64)
    _successors(unrank(start, n, subset_size), n, rows)
    return rows


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _shuffled(uniforms: NDArray[np.float64], n: int, rows: NDArray[np.int64]) -> None:
    order = np.arange(n)
    for r in range(len(rows)):
        for j in range(rows.shape[1]):
            i = j + int(uniforms[r, j] * (n - j))
            order[j], order[i] = order[i], order[j]
            rows[r, j] = order[j]


def sampled(rng: np.random.Generator, length: int, n: int, subset_size: int) -> NDArray[np.int64]:
    """Independent uniform subsets, in no order: (length, n'). The first n' steps of a shuffle; the order the last
    subset left behind is as good a start as any."""
    rows = np.empty((length, subset_size), dtype=np.int64)
    _shuffled(rng.random((length, subset_size)), n, rows)
    return rows
