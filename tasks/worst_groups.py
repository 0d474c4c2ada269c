"""Groups of data sets that are neighbours of each other: in go n and a number of types, out come rows and groups.

Two samples are neighbours when taking one record from each leaves the same n − 1 records R. The samples R + t, over all
types t, are therefore all neighbours of each other, and their largest difference is a maximum less a minimum: no pair
is visited.
"""

from collections.abc import Sequence
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.audits import Witness, place
from predcube.tasks.learners.base import Occupancy, Points
from predcube.tasks.learners.records import Records, counted


def multisets(n: int, types: int) -> NDArray[np.int64]:
    """All ways to put n records into ``types`` types: counts (C(n + types − 1, n), types), lexicographic order.

    >>> multisets(2, 2)
    array([[0, 2],
           [1, 1],
           [2, 0]])
    """
    # Rows for the last columns, by the number of records they hold, grow one column at a time.
    found = [np.full((1, 1), m, dtype=np.int64) for m in range(n + 1)]
    for _ in range(types - 1):
        found = [
            np.concatenate(
                [np.concatenate([np.full((len(found[m - c]), 1), c), found[m - c]], axis=1) for c in range(m + 1)]
            )
            for m in range(n + 1)
        ]
    return found[n]


def neighbour_groups(samples: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each multiset R of n − 1 records, the rows of ``samples`` (all multisets of n, lexicographic) that are
    R + t for each type t: shape (R, types)."""
    n, types = int(samples[0].sum()), samples.shape[1]
    rest = multisets(n - 1, types)
    rows = np.empty((len(rest), types), dtype=np.int64)
    for t in range(types):
        rest[:, t] += 1
        rows[:, t] = ranks(rest, n)
        rest[:, t] -= 1
    return rows


def joint_groups(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """``neighbour_groups`` of samples made of a multiset from each of ``parts``, numbered with the last part fastest:
    one part's records change, the others stay."""
    lengths = [len(part) for part in parts]
    found = []
    for i, part in enumerate(parts):
        own = neighbour_groups(part) * prod(lengths[i + 1 :])
        before = np.arange(prod(lengths[:i])) * prod(lengths[i:])
        after = np.arange(prod(lengths[i + 1 :]))
        rest = (before[:, None] + after).reshape(-1, 1, 1)
        found.append((rest + own).reshape(-1, own.shape[1]))
    return np.concatenate(found)


def sequences(parts: Sequence[NDArray[np.int64]], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """One sequence of types for each choice of a multiset from each of ``parts``, the last fastest: (R, n).
    ``positions`` (n,) tells which part each position belongs to."""
    lengths = [len(part) for part in parts]
    found = np.empty((prod(lengths), len(positions)), dtype=np.int64)
    which = np.unravel_index(np.arange(len(found)), lengths)
    for i, part in enumerate(parts):
        rows = np.tile(np.arange(part.shape[1]), len(part))
        listed = np.repeat(rows, part.ravel()).reshape(len(part), -1)
        found[:, positions == i] = listed[which[i]]
    return found


def ranks(samples: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Place of each multiset of n records in lexicographic order. Before it stand, for each type, those that agree so
    far and hold fewer records of this type: with m records left for the type and s types after it,
    Σ_{c < count} C(m − c + s − 1, s − 1) = C(m + s, s) − C(m − count + s, s)."""
    types = samples.shape[1]
    left = np.full(len(samples), n)
    found = np.zeros(len(samples), dtype=np.int64)
    for t in range(types - 1):
        after = types - 1 - t
        table = np.array([comb(m + after, after) for m in range(n + 1)])
        found += table[left] - table[left - samples[:, t]]
        left = left - samples[:, t]
    return found


def extremes(values: NDArray[np.float64], groups: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Largest and least value within each group: (R, Q, 2) each, one type at a time to spare memory."""
    largest = values[groups[:, 0]]
    least = largest.copy()
    for t in range(1, groups.shape[1]):
        part = values[groups[:, t]]
        np.maximum(largest, part, out=largest)
        np.minimum(least, part, out=least)
    return largest, least


def shown(
    domain: Points, samples: NDArray[np.int64], logs: NDArray[np.float64], query: int, label: int, *, ordered: bool
) -> Witness:
    """The two of a group's data sets that differ most in the answer ``label`` at ``query``: ``samples`` (T, n) of
    types, the t-th with a record of type t more than the rest, ``logs`` (T,) their ln P."""
    # Where all are equal the least is the largest again, and that would be no replacement.
    old = int(logs.argmax())
    new = int(np.where(np.arange(len(logs)) == old, np.inf, logs).argmin())
    types, other = samples[old], samples[new]
    counts = counted(types[None], len(domain))[0]
    sample: Occupancy = Occupancy(points=domain, counts=counts)
    position = None
    if ordered:
        sample = Records(points=domain, counts=counts, order=types)
        # Within exchangeable positions records stand sorted; those that are of the old type may all be the one.
        position = int(np.flatnonzero((types == old) & (types != other))[0])
    return Witness(
        position=position,
        sample=sample,
        old=(place(domain[old // 2]), old % 2),
        new=(place(domain[new // 2]), new % 2),
        query=place(domain[query]),
        label=label,
        log_p=float(logs[old]),
        log_p_neighbour=float(logs[new]),
    )
