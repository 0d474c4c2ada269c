"""The multisets that a subset of a sample may be: in go how many records of each type there are, out come all choices
of n' of them, numbered, with their probabilities.

Always true: choices stand in lexicographic order, so ranges of numbers may be shared out; probabilities are of a
uniform subset without replacement, Π_t C(N_t, c_t)/C(n, n').
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln


def completions(most: NDArray[np.int64], size: int) -> list[list[int]]:
    """[t][m]: ways to take m more from the types t, t + 1, …, at most ``most`` of each; exact integers."""
    table = [[1] + [0] * size]
    for top in most[::-1].tolist():
        after = table[-1]
        table.append([sum(after[m - c] for c in range(min(top, m) + 1)) for m in range(size + 1)])
    return table[::-1]


def count(most: NDArray[np.int64], size: int) -> int:
    """How many multisets of ``size`` take at most ``most`` of each type.

    >>> count(np.array([1, 2, 2]), 2)
    5
    """
    return completions(most, size)[0][size]


def choices(most: NDArray[np.int64], size: int, start: int, stop: int) -> NDArray[np.int64]:
    """Those of numbers start … stop − 1, fewer than 2^63 in all: (stop − start, types).

    >>> choices(np.array([1, 2, 2]), 2, 0, 5).tolist()
    [[0, 0, 2], [0, 1, 1], [0, 2, 0], [1, 0, 1], [1, 1, 0]]
    """
    table = [np.array(row, dtype=np.int64) for row in completions(most, size)]
    rank = np.arange(start, stop)
    left = np.full(len(rank), size)
    found = np.zeros((len(rank), len(most)), dtype=np.int64)
    for t, top in enumerate(most.tolist()):
        undecided = np.ones(len(rank), dtype=bool)
        for c in range(min(top, size) + 1):
            block = np.where(left >= c, table[t + 1][np.maximum(left - c, 0)], 0)
            here = undecided & (rank < block)
            found[here, t] = c
            undecided &= ~here
            rank = np.where(undecided, rank - block, rank)
        left = left - found[:, t]
    return found


def log_chances(held: NDArray[np.int64], chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """ln Pr of each of ``chosen`` (U, types) in each of B samples with ``held`` (B, types): (B, U), −∞ where a sample
    has too few of a type."""
    n, size = int(held[0].sum()), int(chosen[0].sum())
    found = np.full((len(held), len(chosen)), -_log_choose(n, size))
    table = _log_binomials(int(held.max(initial=0)), min(size, int(chosen.max(initial=0))))
    for t in range(held.shape[1]):
        found += table[held[:, t][:, None], chosen[:, t][None, :]]
    return found


@lru_cache(maxsize=64)
def _log_binomials(top: int, size: int) -> NDArray[np.float64]:
    """ln C(N, c) for N ≤ top and c ≤ size, −∞ where c > N."""
    n, c = np.arange(top + 1)[:, None], np.arange(size + 1)[None, :]
    with np.errstate(invalid="ignore"):
        return np.where(c <= n, gammaln(n + 1) - gammaln(c + 1) - gammaln(np.maximum(n - c, 0) + 1), -np.inf)


def _log_choose(n: int, size: int) -> float:
    return float(gammaln(n + 1) - gammaln(size + 1) - gammaln(n - size + 1))
