"""Sums over visited subsets: in go rows of point indices, out come log Σ_I 1{h ∈ H_T}·λ_h/Z_I for each hypothesis.

Always true: sums are of positive terms and relative to each hypothesis; two ``Sums`` add to one over the union of
their hypotheses, so partial results combine in any fixed tree.
"""

from dataclasses import dataclass
from typing import Self

import numba
import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Representatives
from predcube.tasks.mixture.base import Occupancy
from predcube.tasks.mixture.samples import mistakes

RANGE = 600.0
"""exp of ± this fits a float with room for sums and quotients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """For each of G groups of subsets, log of the sum of weights: ``logs`` (G, M) on ``representatives`` (M, …), which
    are distinct and sorted; ``groups`` (G,) are the groups' distinct numbers, sorted."""

    representatives: Representatives
    logs: NDArray[np.float64]
    groups: NDArray[np.int64]

    def add(self, other: Self) -> Self:
        representatives, mine, others = self.representatives, self.logs, other.logs
        if not np.array_equal(representatives, other.representatives):
            joined = np.concatenate([representatives, other.representatives])
            representatives, place = np.unique(joined, axis=0, return_inverse=True)
            m = len(self.representatives)
            mine = _spread(mine, place.reshape(-1)[:m], len(representatives))
            others = _spread(others, place.reshape(-1)[m:], len(representatives))
        groups, where = np.unique(np.concatenate([self.groups, other.groups]), return_inverse=True)
        out = np.full((len(groups), len(representatives)), -np.inf)
        out[where[: len(self.groups)]] = mine
        rest = where[len(self.groups) :]
        out[rest] = np.logaddexp(out[rest], others)
        return type(self)(representatives=representatives, logs=out, groups=groups)


def _spread(logs: NDArray[np.float64], place: NDArray[np.intp], width: int) -> NDArray[np.float64]:
    out = np.full((len(logs), width), -np.inf)
    out[:, place] = logs
    return out


def supports_of(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct sets among rows of point indices (L, n'): each as a sorted row padded with −1 at the end, (D, n'),
    and the set of each row, (L,)."""
    ordered = np.sort(rows, axis=1)
    again = np.zeros(rows.shape, dtype=bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    ordered[again] = np.iinfo(np.int64).max
    ordered.sort(axis=1)
    ordered[ordered == np.iinfo(np.int64).max] = -1
    whole = np.ascontiguousarray(ordered).view(np.dtype((np.void, ordered.dtype.itemsize * ordered.shape[1])))
    _, first, place = np.unique(whole.reshape(-1), return_index=True, return_inverse=True)
    return ordered[first], place.reshape(-1)


def general(
    hypotheses: HypothesisClass,
    sample: Occupancy,
    beta: float,
    rows: NDArray[np.int64],
    groups: NDArray[np.int64],
) -> Sums:
    """Any class: ``rows`` (L, n') of point indices, ``groups`` (L,) the group each row is counted in. Each distinct
    set T is asked for its representatives once."""
    numbers, group = np.unique(groups, return_inverse=True)
    sets, place = supports_of(rows)
    times = np.zeros((len(numbers), len(sets)))
    np.add.at(times, (group, place), 1.0)
    found = [hypotheses.representatives(sample.points[row[row >= 0]]) for row in sets]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in found])])[:-1]
    representatives, member = np.unique(np.concatenate(found), axis=0, return_inverse=True)
    member = member.reshape(-1)
    log_scale = -beta * mistakes(hypotheses, representatives, sample.points, sample.counts[None])[0]
    log_scale -= log_scale.max()
    owner = np.repeat(np.arange(len(sets)), np.diff(np.append(starts, len(member))))
    order = np.argsort(member, kind="stable")
    by_member = np.searchsorted(member[order], np.arange(len(representatives)))
    if log_scale.min() > -RANGE:
        share = times / np.add.reduceat(np.exp(log_scale)[member], starts)
        with np.errstate(divide="ignore"):
            logs = np.log(np.add.reduceat(share[:, owner[order]], by_member, axis=1))
    else:
        with np.errstate(divide="ignore"):
            log_share = np.log(times) - np.logaddexp.reduceat(log_scale[member], starts)
        logs = np.logaddexp.reduceat(log_share[:, owner[order]], by_member, axis=1)
    return Sums(representatives=representatives, logs=log_scale + logs, groups=numbers)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _visit(
    rows: NDArray[np.int64], group: NDArray[np.int64], scale: NDArray[np.float64], sums: NDArray[np.float64]
) -> None:
    seen = np.full(len(scale), -1)
    for r in range(len(rows)):
        z = 1.0
        for v in rows[r]:
            if seen[v] != r:
                seen[v] = r
                z += scale[v]
        share = 1.0 / z
        sums[group[r], 0] += share
        for v in rows[r]:
            if seen[v] == r:
                seen[v] = -1
                sums[group[r], v + 1] += share


def additive(log_scale: NDArray[np.float64], rows: NDArray[np.int64], groups: NDArray[np.int64]) -> Sums:
    """An additive class: ``log_scale`` (k,) is log λ_v with λ_0 = 1, at most ``RANGE``; the representatives of the
    result are 0 for the null hypothesis and v + 1 for the one at point v."""
    numbers, group = np.unique(groups, return_inverse=True)
    sums = np.zeros((len(numbers), len(log_scale) + 1))
    _visit(rows, group.reshape(-1), np.exp(log_scale), sums)
    with np.errstate(divide="ignore"):
        logs = np.log(sums) + np.append(0.0, log_scale)
    return Sums(representatives=np.arange(len(log_scale) + 1), logs=logs, groups=numbers)
