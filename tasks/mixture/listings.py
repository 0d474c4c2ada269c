"""Sums over subsets of a class that is asked for its hypotheses T by T: in go rows of point indices, out come sums by
the hypotheses' own rows, or the means of a few functionals.

The hypotheses of all subsets may be many more than fit: sums by rows grow with the subsets visited. Means of
functionals do not, and are all that a prediction or an error needs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numba
import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Representatives
from predcube.tasks.mixture.base import Functional, Occupancy, weighted
from predcube.tasks.mixture.samples import mistakes

RANGE = 600.0
"""exp of ± this fits a float with room for sums and quotients."""
LISTED, AVERAGED = 2**19, 2**12
"""Representatives that are held at once, for sums by rows, and for means, which hold the functional's values too."""
NOTHING = np.array([0.0, -np.inf, -np.inf])
"""The spread of no subsets. A ``spread`` (3,) is Σ |H_T|, log Σ 1/Z_I and log Σ 1/Z_I² over subsets visited, Z_I in a
unit that is the sample's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """For each of G groups of subsets, log of the sum of weights: ``logs`` (G, M) on ``representatives`` (M, …), which
    are distinct and sorted; ``groups`` (G,) are the groups' distinct numbers, sorted."""

    representatives: Representatives
    logs: NDArray[np.float64]
    groups: NDArray[np.int64]
    spread: NDArray[np.float64]

    def add(self, other: Self) -> Self:
        rows, mine, others = self.representatives, self.logs, other.logs
        if not np.array_equal(rows, other.representatives):
            m = len(rows)
            rows, place = np.unique(np.concatenate([rows, other.representatives]), axis=0, return_inverse=True)
            mine = _spread(mine, place.reshape(-1)[:m], len(rows))
            others = _spread(others, place.reshape(-1)[m:], len(rows))
        groups, where = np.unique(np.concatenate([self.groups, other.groups]), return_inverse=True)
        out = np.full((len(groups), len(rows)), -np.inf)
        out[where[: len(self.groups)]] = mine
        rest = where[len(self.groups) :]
        out[rest] = np.logaddexp(out[rest], others)
        spread = join_spreads(self.spread, other.spread)
        return type(self)(representatives=rows, logs=out, groups=groups, spread=spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Averages:
    """For each of G groups, the sum over its subsets of Σ_{h ∈ H_T} (λ_h/Z_I)·values(h): ``sums`` (G, Q)."""

    sums: NDArray[np.float64]
    groups: NDArray[np.int64]
    spread: NDArray[np.float64]

    def add(self, other: Self) -> Self:
        groups, where = np.unique(np.concatenate([self.groups, other.groups]), return_inverse=True)
        sums = np.zeros((len(groups), self.sums.shape[1]))
        sums[where[: len(self.groups)]] = self.sums
        sums[where[len(self.groups) :]] += other.sums
        return type(self)(sums=sums, groups=groups, spread=join_spreads(self.spread, other.spread))


def join_spreads(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the subsets of both."""
    return np.append(one[:1] + other[:1], np.logaddexp(one[1:], other[1:]))


def tallied(
    times: NDArray[np.float64], sizes: NDArray[np.int64], log_totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The spread of some T, each standing ``times`` times, with |H_T| = ``sizes`` and Z = exp(``log_totals``)."""
    log_times = np.log(times)
    return np.array(
        [
            float((times * sizes).sum()),
            np.logaddexp.reduce(log_times - log_totals),
            np.logaddexp.reduce(log_times - 2.0 * log_totals),
        ]
    )


def _spread(logs: NDArray[np.float64], place: NDArray[np.intp], width: int) -> NDArray[np.float64]:
    out = np.full((len(logs), width), -np.inf)
    out[:, place] = logs
    return out


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _sorted_sets(rows: NDArray[np.int64], sets: NDArray[np.int64], mask: NDArray[np.uint64]) -> None:
    """Each row in increasing order without repetition, and, where there are at most 64 points, as a word."""
    for r in range(len(rows)):
        t = 0
        word = np.uint64(0)
        for v in rows[r]:
            b = t
            while b > 0 and sets[r, b - 1] > v:
                b -= 1
            if b > 0 and sets[r, b - 1] == v:
                continue
            for i in range(t, b, -1):
                sets[r, i] = sets[r, i - 1]
            sets[r, b] = v
            t += 1
            word |= np.uint64(1) << np.uint64(v & 63)
        for b in range(t, rows.shape[1]):
            sets[r, b] = -1
        mask[r] = word


def sets_of(rows: NDArray[np.int64], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The sets T of rows of point indices (L, n'): increasing, padded with −1 at the end, (D, min(n', k)), and how
    often each stands there, (D,). They are distinct where k ≤ 64; with more points sets are rarely met twice."""
    sets = np.empty(rows.shape, dtype=np.int64)
    mask = np.empty(len(rows), dtype=np.uint64)
    _sorted_sets(rows, sets, mask)
    sets = sets[:, : min(k, rows.shape[1])]
    if k > 64:
        return sets, np.ones(len(sets))
    _, first, often = np.unique(mask, return_index=True, return_counts=True)
    return sets[first], often.astype(np.float64)


def supports_of(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct sets among rows of point indices (L, n'): each as a sorted row padded with −1 at the end, (D, n'),
    and the set of each row, (L,)."""
    sets = np.empty(rows.shape, dtype=np.int64)
    _sorted_sets(rows, sets, np.empty(len(rows), dtype=np.uint64))
    whole = sets.view(np.dtype((np.void, sets.dtype.itemsize * sets.shape[1])))
    _, first, place = np.unique(whole.reshape(-1), return_index=True, return_inverse=True)
    return sets[first], place.reshape(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """H_T of some sets T: ``rows`` one after another, the i-th set's from ``starts[i]`` on, ``lengths[i]`` of them;
    ``times`` (G, sets) how often each counts in each group."""

    rows: Representatives
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    times: NDArray[np.float64]


def _pieces(
    hypotheses: HypothesisClass, sample: Occupancy, rows: NDArray[np.int64], groups: NDArray[np.int64], most: int
) -> Iterator[_Piece]:
    """The class is asked for the representatives of each distinct set T once, about ``most`` at a time."""
    numbers, group = np.unique(groups, return_inverse=True)
    sets, place = supports_of(rows)
    pending: list[Representatives] = []
    held, first = 0, 0
    for i, row in enumerate(sets):
        pending.append(hypotheses.representatives(sample.points[row[row >= 0]]))
        held += len(pending[-1])
        if held >= most or i + 1 == len(sets):
            inside = (first <= place) & (place <= i)
            times = np.zeros((len(numbers), i + 1 - first))
            np.add.at(times, (group[inside], place[inside] - first), 1.0)
            lengths = np.array([len(part) for part in pending])
            yield _Piece(
                rows=np.concatenate(pending), starts=np.cumsum(lengths) - lengths, lengths=lengths, times=times
            )
            pending, held, first = [], 0, i + 1


def listed(
    hypotheses: HypothesisClass,
    sample: Occupancy,
    beta: float,
    rows: NDArray[np.int64],
    groups: NDArray[np.int64],
) -> Listed:
    """Sums of weights over subsets ``rows`` (L, n') of point indices, by group (L,)."""
    parts: list[Listed] = []
    for piece in _pieces(hypotheses, sample, rows, groups, LISTED):
        parts.append(_listed_piece(hypotheses, sample, beta, piece, np.unique(groups)))
        while len(parts) > 1 and len(parts[-1].representatives) >= len(parts[-2].representatives):
            last = parts.pop()
            parts[-1] = parts[-1].add(last)
    total = parts.pop()
    while parts:
        total = parts.pop().add(total)
    return total


def _listed_piece(
    hypotheses: HypothesisClass, sample: Occupancy, beta: float, piece: _Piece, numbers: NDArray[np.int64]
) -> Listed:
    representatives, member = np.unique(piece.rows, axis=0, return_inverse=True)
    member = member.reshape(-1)
    log_scale = -beta * mistakes(hypotheses, representatives, sample.points, sample.counts[None])[0]
    shift = log_scale.max()
    owner = np.repeat(np.arange(len(piece.lengths)), piece.lengths)
    order = np.argsort(member, kind="stable")
    by_member = np.searchsorted(member[order], np.arange(len(representatives)))
    if log_scale.min() - shift > -RANGE:
        totals = np.add.reduceat(np.exp(log_scale - shift)[member], piece.starts)
        log_totals = np.log(totals) + shift
        logs = np.empty((len(numbers), len(representatives)))
        for g, times in enumerate(piece.times):
            with np.errstate(divide="ignore"):
                logs[g] = np.log(np.add.reduceat((times / totals)[owner[order]], by_member)) - shift
    else:
        log_totals = np.logaddexp.reduceat(log_scale[member], piece.starts)
        with np.errstate(divide="ignore"):
            log_share = np.log(piece.times) - log_totals
        logs = np.logaddexp.reduceat(log_share[:, owner[order]], by_member, axis=1)
    return Listed(
        representatives=representatives,
        logs=log_scale + logs,
        groups=numbers,
        spread=tallied(piece.times.sum(axis=0), piece.lengths, log_totals),
    )


def average(
    hypotheses: HypothesisClass,
    sample: Occupancy,
    beta: float,
    rows: NDArray[np.int64],
    groups: NDArray[np.int64],
    functional: Functional,
) -> Averages:
    """Sums over subsets of the mean of ``functional`` under each one's weights."""
    total: Averages | None = None
    for piece in _pieces(hypotheses, sample, rows, groups, AVERAGED):
        values = functional(piece.rows)
        log_scale = -beta * mistakes(hypotheses, piece.rows, sample.points, sample.counts[None])[0]
        highest = np.maximum.reduceat(log_scale, piece.starts)
        terms = np.exp(log_scale - np.repeat(highest, piece.lengths))
        totals = np.add.reduceat(terms, piece.starts)
        ends = piece.starts + piece.lengths
        means = np.stack([weighted(terms[a:b], values[a:b]) for a, b in zip(piece.starts, ends, strict=True)])
        means /= totals[:, None]
        part = Averages(
            sums=np.einsum("gs,sq->gq", piece.times, means),
            groups=np.unique(groups),
            spread=tallied(piece.times.sum(axis=0), piece.lengths, np.log(totals) + highest),
        )
        total = part if total is None else total.add(part)
    assert total is not None
    return total
