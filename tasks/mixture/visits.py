"""Sums over visited subsets, for every class: in go rows of point indices, out come log Σ_I 1{h ∈ H_T}·λ_h/Z_I for
each hypothesis.

A class with a chart is walked on it: hypotheses have numbers, and a sum is one entry of an array however many subsets
are visited. Another class, or a sample on which λ does not fit a float, is asked for the representatives of each
distinct T, and sums are kept by the hypotheses' own rows.

Always true: sums are of positive terms and relative to each hypothesis; two ``Sums`` add to one over the union of
their hypotheses, so partial results combine in any fixed tree.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numba
import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Representatives
from predcube.tasks.hypotheses.charts import Chart
from predcube.tasks.mixture.base import Occupancy
from predcube.tasks.mixture.samples import mistakes

RANGE = 600.0
"""exp of ± this fits a float with room for sums and quotients."""
LISTED = 2**21
"""Labels of the representatives that are held at once where a class has no chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """For each of G groups of subsets, log of the sum of weights: ``logs`` (G, M) on ``names`` (M, …), which are
    distinct and sorted: numbers of a chart, or rows of representatives. ``groups`` (G,) are the groups' distinct
    numbers, sorted.

    ``spread`` (3,): Σ |H_T|, log Σ 1/Z_I and log Σ 1/Z_I² over all subsets visited, λ_h being exp(−β·n·L_S(h)).
    """

    names: Representatives
    logs: NDArray[np.float64]
    groups: NDArray[np.int64]
    spread: NDArray[np.float64]

    def add(self, other: Self) -> Self:
        names, mine, others = self.names, self.logs, other.logs
        if not np.array_equal(names, other.names):
            joined = np.concatenate([names, other.names])
            names, place = np.unique(joined, axis=0, return_inverse=True)
            m = len(self.names)
            mine = _spread(mine, place.reshape(-1)[:m], len(names))
            others = _spread(others, place.reshape(-1)[m:], len(names))
        groups, where = np.unique(np.concatenate([self.groups, other.groups]), return_inverse=True)
        out = np.full((len(groups), len(names)), -np.inf)
        out[where[: len(self.groups)]] = mine
        rest = where[len(self.groups) :]
        out[rest] = np.logaddexp(out[rest], others)
        spread = np.append(
            self.spread[:1] + other.spread[:1], np.logaddexp(self.spread[1:], other.spread[1:])
        )
        return type(self)(names=names, logs=out, groups=groups, spread=spread)


def _spread(logs: NDArray[np.float64], place: NDArray[np.intp], width: int) -> NDArray[np.float64]:
    out = np.full((len(logs), width), -np.inf)
    out[:, place] = logs
    return out


@dataclass(frozen=True, kw_only=True)  # no slots: tables are made once, where they are first needed
class Visitor:
    """A class on one sample (occupied points only), for subsets of up to ``size`` examples."""

    hypotheses: HypothesisClass
    sample: Occupancy
    size: int
    beta: float

    @property
    def _largest(self) -> int:
        return min(self.size, len(self.sample.points))

    @property
    def charted(self) -> bool:
        """Whether a chart is walked, as far as counts tell."""
        return self.hypotheses.charted(len(self.sample.points), self._largest)

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """The point of each example: (n,)."""
        return np.repeat(np.arange(len(self.sample.points)), self.sample.counts.sum(axis=1))

    @cached_property
    def chart(self) -> tuple[Chart, NDArray[np.float64]] | None:
        """The chart and log λ of its hypotheses (−∞ at numbers that name none), where λ/λ_max fits floats."""
        chart = self.hypotheses.chart(self.sample.points, self._largest)
        if chart is None:
            return None
        losses = chart.losses(self.sample.counts)
        log_scale = np.where(np.isfinite(losses), -self.beta * np.where(np.isfinite(losses), losses, 0.0), -np.inf)
        lowest = log_scale[log_scale > -np.inf].min()
        return (chart, log_scale) if log_scale.max() - lowest <= RANGE else None

    @property
    def floats(self) -> int:
        """About how many floats a group's sums take."""
        return 1 if self.chart is None else self.chart[0].size

    def visit(self, rows: NDArray[np.int64], groups: NDArray[np.int64]) -> Sums:
        """Sums over subsets ``rows`` (L, n') of examples, which need not be distinct; ``groups`` (L,) is the group that
        each is counted in."""
        points = self.place[rows]
        if self.chart is None:
            return _listed(self.hypotheses, self.sample, self.beta, points, groups)
        chart, log_scale = self.chart
        numbers, starts = np.unique(groups, return_index=True)
        if np.any(groups[1:] < groups[:-1]):
            order = np.argsort(groups, kind="stable")
            points, starts = points[order], np.searchsorted(groups[order], numbers)
        shift = log_scale.max()
        scale = np.exp(log_scale - shift)
        sums = np.zeros((len(numbers), chart.size))
        spread = np.array([0.0, -np.inf, -np.inf])
        for g, start in enumerate(starts):
            stop = starts[g + 1] if g + 1 < len(starts) else len(points)
            sets, times = sets_of(points[start:stop], len(self.sample.points))
            sizes, totals = np.empty(len(sets), dtype=np.int64), np.empty(len(sets))
            chart.add(sets, times, scale, sums[g], sizes, totals)
            spread = _tallied(spread, times, sizes, np.log(totals) + shift)
        with np.errstate(divide="ignore"):
            logs = np.log(sums) + (log_scale - shift)
        return Sums(names=np.arange(chart.size), logs=logs, groups=numbers, spread=spread)

    def rows(self, names: Representatives) -> Representatives:
        """The representatives that names of ``Sums`` stand for."""
        return names if self.chart is None else self.chart[0].representatives(names)


def _tallied(
    spread: NDArray[np.float64], times: NDArray[np.float64], sizes: NDArray[np.int64], log_totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    log_times = np.log(times)
    return np.array(
        [
            spread[0] + float((times * sizes).sum()),
            np.logaddexp(spread[1], np.logaddexp.reduce(log_times - log_totals)),
            np.logaddexp(spread[2], np.logaddexp.reduce(log_times - 2.0 * log_totals)),
        ]
    )


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


def _listed(
    hypotheses: HypothesisClass,
    sample: Occupancy,
    beta: float,
    rows: NDArray[np.int64],
    groups: NDArray[np.int64],
) -> Sums:
    """Each distinct set T is asked for its representatives once, some sets at a time."""
    numbers, group = np.unique(groups, return_inverse=True)
    sets, place = supports_of(rows)
    times = np.zeros((len(numbers), len(sets)))
    np.add.at(times, (group, place), 1.0)
    parts: list[Sums] = []
    pending: list[Representatives] = []
    held, first = 0, 0
    for i, row in enumerate(sets):
        pending.append(hypotheses.representatives(sample.points[row[row >= 0]]))
        held += pending[-1].size
        if held > LISTED or i + 1 == len(sets):
            parts.append(_listed_part(hypotheses, sample, beta, pending, times[:, first : i + 1], numbers))
            pending, held, first = [], 0, i + 1
            while len(parts) > 1 and len(parts[-1].names) >= len(parts[-2].names):
                last = parts.pop()
                parts[-1] = parts[-1].add(last)
    total = parts.pop()
    while parts:
        total = parts.pop().add(total)
    return total


def _listed_part(
    hypotheses: HypothesisClass,
    sample: Occupancy,
    beta: float,
    found: list[Representatives],
    times: NDArray[np.float64],
    numbers: NDArray[np.int64],
) -> Sums:
    """``found``: the representatives of some sets; ``times`` (G, sets) how often each is counted in each group."""
    lengths = np.array([len(part) for part in found])
    starts = np.cumsum(lengths) - lengths
    representatives, member = np.unique(np.concatenate(found), axis=0, return_inverse=True)
    member = member.reshape(-1)
    log_scale = -beta * mistakes(hypotheses, representatives, sample.points, sample.counts[None])[0]
    shift = log_scale.max()
    log_scale -= shift
    owner = np.repeat(np.arange(len(found)), lengths)
    order = np.argsort(member, kind="stable")
    by_member = np.searchsorted(member[order], np.arange(len(representatives)))
    if log_scale.min() > -RANGE:
        totals = np.add.reduceat(np.exp(log_scale)[member], starts)
        log_totals = np.log(totals)
        logs = np.empty((len(times), len(representatives)))
        for g, mine in enumerate(times):
            with np.errstate(divide="ignore"):
                logs[g] = np.log(np.add.reduceat((mine / totals)[owner[order]], by_member))
    else:
        log_totals = np.logaddexp.reduceat(log_scale[member], starts)
        with np.errstate(divide="ignore"):
            log_share = np.log(times) - log_totals
        logs = np.logaddexp.reduceat(log_share[:, owner[order]], by_member, axis=1)
    spread = _tallied(np.array([0.0, -np.inf, -np.inf]), times.sum(axis=0), lengths, log_totals + shift)
    return Sums(names=representatives, logs=log_scale + logs, groups=numbers, spread=spread)
