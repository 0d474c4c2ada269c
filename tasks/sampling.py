"""Sums over drawn rows: in go rows of numbers and uniform random numbers, out comes the sum of the rows of each draw.

Every kernel takes its uniforms draw by draw from one stream, so the sums do not depend on how many draws are made at
once. Rows are (U, C), results (R, C); sums are sequential in float64.
"""

from collections.abc import Callable

import numba
import numpy as np
from numpy.typing import NDArray

type Array = NDArray[np.float64]
type Integers = NDArray[np.int64]

UNIFORMS = 2**17
"""Random numbers made at once, but for one draw: 1 MB, so that they are read from the cache."""
CACHED = 2**16
"""Rows from which a shuffle waits for memory, and drawing a fifth of them in passing is quicker."""


def without_replacement(rows: Array, size: int, draws: int, rng: np.random.Generator) -> Array:
    """Sums over ``size`` of the U rows, drawn uniformly without replacement.

    A partial shuffle, or of many rows one pass over all (Knuth's selection sampling); where more than half are drawn it
    is the rest that is drawn, and taken from the total.
    """
    left = size > len(rows) // 2
    taken = len(rows) - size if left else size
    if len(rows) >= CACHED and 5 * taken >= len(rows):
        sums = _in_blocks(lambda uniforms: _selected(rows, taken, uniforms), len(rows), draws, rows.shape[1], rng)
    else:
        order = np.arange(len(rows))
        sums = _in_blocks(lambda uniforms: _shuffled(rows, order, uniforms), taken, draws, rows.shape[1], rng)
    return rows.sum(axis=0) - sums if left else sums


def with_replacement(
    rows: Array, size: int, draws: int, rng: np.random.Generator, masses: Array | None = None
) -> Array:
    """Sums over ``size`` draws with replacement, row i with probability proportional to ``masses`` (U,), uniform unless
    given: Walker's method of aliases, a uniform a draw."""
    keep, alias = aliases(np.ones(len(rows)) if masses is None else masses)
    return _in_blocks(lambda uniforms: _aliased(rows, keep, alias, uniforms), size, draws, rows.shape[1], rng)


def inclusions(rows: Array, chances: Array, draws: int, rng: np.random.Generator) -> Array:
    """Sums over rows that are included independently, row i with probability ``chances[i]``."""
    return _in_blocks(lambda uniforms: _included(rows, chances, uniforms), len(rows), draws, rows.shape[1], rng)


def chain(
    rows: Array,
    states: Integers,
    transitions: Array,
    start: Array,
    steps: int,
    draws: int,
    rng: np.random.Generator,
) -> Array:
    """Sums over the rows that a Markov chain shows: a uniform row of the current state at each of ``steps`` steps.

    states: (U,) the state 0 … M − 1 of each row, every state having a row. transitions: (M, M), rows sum to 1. start:
    (M,) the law of the first state.
    """
    order = np.argsort(states, kind="stable")
    counts = np.bincount(states, minlength=len(start))
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    tables = [aliases(law) for law in (*transitions, start)]
    keep, alias = np.stack([k for k, _ in tables]), np.stack([a for _, a in tables])
    sorted_rows = np.ascontiguousarray(rows[order])

    def block(uniforms: Array) -> Array:
        return np.asarray(_chained(sorted_rows, first, counts, keep, alias, uniforms))

    return _in_blocks(block, 2 * steps, draws, rows.shape[1], rng)


def aliases(masses: Array) -> tuple[Array, Integers]:
    """(keep, alias) of Walker's method (Vose 1991): place i of U equal places is kept with probability ``keep[i]``,
    else it stands for ``alias[i]``."""
    scaled = masses * (len(masses) / masses.sum())
    keep, alias = _alias_table(np.ascontiguousarray(scaled, dtype=np.float64))
    return keep, alias


def _in_blocks(block: Callable[[Array], Array], each: int, draws: int, columns: int, rng: np.random.Generator) -> Array:
    sums = np.empty((draws, columns))
    length = max(1, UNIFORMS // max(each, 1))
    for begin in range(0, draws, length):
        count = min(length, draws - begin)
        sums[begin : begin + count] = block(rng.random((count, each)))
    return sums


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _alias_table(scaled: Array) -> tuple[Array, Integers]:
    size = len(scaled)
    keep, alias = np.ones(size), np.arange(size)
    small, large = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    smalls = larges = 0
    for i in range(size):
        if scaled[i] < 1.0:
            small[smalls] = i
            smalls += 1
        else:
            large[larges] = i
            larges += 1
    while smalls > 0 and larges > 0:
        smalls -= 1
        i, j = small[smalls], large[larges - 1]
        keep[i], alias[i] = scaled[i], j
        scaled[j] -= 1.0 - scaled[i]
        if scaled[j] < 1.0:
            larges -= 1
            small[smalls] = j
            smalls += 1
    return keep, alias


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _place(uniform: float, keep: Array, alias: Integers) -> int:
    scaled = uniform * len(keep)
    i = min(int(scaled), len(keep) - 1)
    return i if scaled - i < keep[i] else int(alias[i])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _shuffled(rows: Array, order: Integers, uniforms: Array) -> Array:
    size = len(rows)
    sums = np.zeros((len(uniforms), rows.shape[1]))
    for r in range(len(uniforms)):
        # Any order is as good a start as another, so draws need not put back what they moved.
        for i in range(uniforms.shape[1]):
            j = min(i + int(uniforms[r, i] * (size - i)), size - 1)
            chosen = order[j]
            order[j] = order[i]
            order[i] = chosen
            for c in range(rows.shape[1]):
                sums[r, c] += rows[chosen, c]
    return sums


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _aliased(rows: Array, keep: Array, alias: Integers, uniforms: Array) -> Array:
    sums = np.zeros((len(uniforms), rows.shape[1]))
    for r in range(len(uniforms)):
        for i in range(uniforms.shape[1]):
            chosen = _place(uniforms[r, i], keep, alias)
            for c in range(rows.shape[1]):
                sums[r, c] += rows[chosen, c]
    return sums


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _selected(rows: Array, size: int, uniforms: Array) -> Array:
    sums = np.zeros((len(uniforms), rows.shape[1]))
    for r in range(len(uniforms)):
        wanted = size
        for i in range(len(rows)):
            # Multiplied rather than branched upon: which rows are drawn cannot be predicted.
            taken = 1 if uniforms[r, i] * (len(rows) - i) < wanted else 0
            wanted -= taken
            for c in range(rows.shape[1]):
                sums[r, c] += taken * rows[i, c]
    return sums


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _included(rows: Array, chances: Array, uniforms: Array) -> Array:
    sums = np.zeros((len(uniforms), rows.shape[1]))
    for r in range(len(uniforms)):
        for i in range(uniforms.shape[1]):
            taken = 1.0 if uniforms[r, i] < chances[i] else 0.0
            for c in range(rows.shape[1]):
                sums[r, c] += taken * rows[i, c]
    return sums


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _chained(rows: Array, first: Integers, counts: Integers, keep: Array, alias: Integers, uniforms: Array) -> Array:
    sums = np.zeros((len(uniforms), rows.shape[1]))
    for r in range(len(uniforms)):
        state = len(first)  # the last table is the law of the start
        for i in range(0, uniforms.shape[1], 2):
            state = _place(uniforms[r, i], keep[state], alias[state])
            chosen = first[state] + min(int(uniforms[r, i + 1] * counts[state]), counts[state] - 1)
            for c in range(rows.shape[1]):
                sums[r, c] += rows[chosen, c]
    return sums
