"""Sums over visited subsets, for every class: in go rows of examples, out come log Σ_I 1{h ∈ H_T}·λ_h/Z_I for each
hypothesis.

A class with a chart is walked on it: hypotheses have numbers, and a sum is one entry of an array however many subsets
are visited. Another class, or a sample on which λ does not fit a float, is asked for the representatives of each
distinct T: see ``listings``.

Always true: sums are of positive terms and relative to each hypothesis; those of two sets of subsets add, so partial
results combine in any fixed tree.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Representatives
from predcube.tasks.hypotheses.charts import Chart
from predcube.tasks.mixture import listings
from predcube.tasks.mixture.base import Functional, Occupancy
from predcube.tasks.mixture.listings import NOTHING, RANGE, join_spreads, sets_of, tallied

__all__ = ["NOTHING", "RANGE", "Numbered", "Visited", "Visitor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """For each of G groups of subsets Σ 1/Z_I at every number of a chart: ``sums`` (G, size), in units of the largest
    1/λ. ``groups`` (G,) are the groups' distinct numbers, sorted; ``spread`` as in ``listings``."""

    sums: NDArray[np.float64]
    groups: NDArray[np.int64]
    spread: NDArray[np.float64]

    def add(self, other: Self) -> Self:
        spread = join_spreads(self.spread, other.spread)
        if np.array_equal(self.groups, other.groups):
            return type(self)(sums=self.sums + other.sums, groups=self.groups, spread=spread)
        groups, where = np.unique(np.concatenate([self.groups, other.groups]), return_inverse=True)
        sums = np.zeros((len(groups), self.sums.shape[1]))
        sums[where[: len(self.groups)]] = self.sums
        sums[where[len(self.groups) :]] += other.sums
        return type(self)(sums=sums, groups=groups, spread=spread)


type Visited = Numbered | listings.Listed | listings.Averages


@dataclass(frozen=True, kw_only=True)  # no slots: tables are made once, where they are first needed
class Visitor:
    """A class on one sample (occupied points only), for subsets of up to ``size`` examples.

    ``functional``: all that is wanted of the weights. Without a chart its means are then kept and not the weights,
    which would be as many as the subsets' hypotheses.
    """

    hypotheses: HypothesisClass
    sample: Occupancy
    size: int
    beta: float
    functional: Functional | None = None

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """The point of each example: (n,)."""
        return np.repeat(np.arange(len(self.sample.points)), self.sample.counts.sum(axis=1))

    @cached_property
    def chart(self) -> tuple[Chart, NDArray[np.float64]] | None:
        """The chart and log λ/λ_max of its hypotheses (−∞ at numbers that name none), where λ/λ_max fits floats."""
        chart = self.hypotheses.chart(self.sample.points, min(self.size, len(self.sample.points)))
        if chart is None:
            return None
        losses = chart.losses(self.sample.counts)
        named = np.isfinite(losses)
        lost = np.where(named, losses, 0.0) - losses.min()
        if self.beta * lost.max() > RANGE:
            return None
        return chart, np.where(named, -self.beta * lost, -np.inf)

    @property
    def floats(self) -> int:
        """About how many floats a group's sums take."""
        return 1 if self.chart is None else self.chart[0].size

    def visit(self, rows: NDArray[np.int64], groups: NDArray[np.int64]) -> Visited:
        """Sums over subsets ``rows`` (L, n') of examples; ``groups`` (L,), ascending, is the group that each is counted
        in."""
        points = self.place[rows]
        if self.chart is None:
            if self.functional is not None:
                return listings.average(self.hypotheses, self.sample, self.beta, points, groups, self.functional)
            return listings.listed(self.hypotheses, self.sample, self.beta, points, groups)
        chart, log_scale = self.chart
        scale = np.exp(log_scale)
        numbers, starts = np.unique(groups, return_index=True)
        stops = np.append(starts[1:], len(points))
        sums = np.zeros((len(numbers), chart.size))
        spread = NOTHING
        for g, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            sets, times = sets_of(points[start:stop], len(self.sample.points))
            sizes, totals = np.empty(len(sets), dtype=np.int64), np.empty(len(sets))
            chart.add(sets, times, scale, sums[g], sizes, totals)
            spread = join_spreads(spread, tallied(times, sizes, np.log(totals)))
        return Numbered(sums=sums, groups=numbers, spread=spread)

    def weights(self, total: Visited) -> tuple[Representatives, NDArray[np.float64]]:
        """The representatives that have weight, and log Σ_I 1{h ∈ H_T}·λ_h/Z_I in each group: (M, …), (G, M)."""
        if isinstance(total, listings.Listed):
            return total.representatives, total.logs
        assert isinstance(total, Numbered)
        assert self.chart is not None
        chart, log_scale = self.chart
        found = np.flatnonzero(total.sums.any(axis=0))
        with np.errstate(divide="ignore"):
            logs = np.log(total.sums[:, found])
        logs += log_scale[found]
        return chart.representatives(found), logs
