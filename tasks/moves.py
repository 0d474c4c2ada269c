"""Replaced records: in go a sample and what it may be changed into, out come its neighbours.

Always true: no two moves of a list give the same prediction for want of a difference. Records of one type (point,
label) that may change places count once: for a learner of a multiset a move goes from type to type, for a learner that
minds the order from the first of some exchangeable positions to a type.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.hypotheses.points import locate
from predcube.tasks.learners.base import Learner, Occupancy, Points
from predcube.tasks.learners.records import Records


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """``sample`` over all points met, and B moves: from type ``old`` (B,) to type ``new`` (B,), types being 2·point +
    label; ``positions`` (B,) says which record of a sequence is replaced, None for a multiset."""

    sample: Occupancy
    old: NDArray[np.int64]
    new: NDArray[np.int64]
    positions: NDArray[np.int64] | None = None

    def samples(self) -> NDArray[np.int64]:
        """S and its neighbours as a learner's ``batch`` takes them: (1 + B, k, 2) counts or (1 + B, n) types."""
        rows = np.arange(len(self.old)) + 1
        if self.positions is not None:
            assert isinstance(self.sample, Records)
            types = np.repeat(self.sample.order[None], len(rows) + 1, axis=0)
            types[rows, self.positions] = self.new
            return types
        counts = np.repeat(self.sample.counts.reshape(1, -1), len(rows) + 1, axis=0)
        counts[rows, self.old] -= 1
        counts[rows, self.new] += 1
        return counts.reshape(-1, *self.sample.counts.shape)


def neighbourhood(
    learner: Learner, hypotheses: HypothesisClass, sample: Occupancy, limit: int, rng: np.random.Generator | None
) -> Neighbourhood:
    """All neighbours where X is finite (``rng`` is not used); on the line at most ``limit``, drawn by ``rng``."""
    domain = hypotheses.domain
    if domain is not None:
        whole: Occupancy
        if isinstance(sample, Records):
            whole = sample.over(domain)
        else:
            counts = np.zeros((len(domain), 2), dtype=np.int64)
            counts[locate(domain, sample.points)] = sample.counts
            whole = Occupancy(points=domain, counts=counts)
        old, positions = _replaceable(learner, whole)
        new = np.arange(2 * len(domain))
        source, target = np.nonzero(old[:, None] != new)
        return Neighbourhood(
            sample=whole, old=old[source], new=target, positions=None if positions is None else positions[source]
        )
    assert rng is not None
    return _line(learner, sample, limit, rng)


def _replaceable(learner: Learner, sample: Occupancy) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """The records whose replacements differ, as types (U,), and where they stand (U,)."""
    if not learner.ordered:
        return np.flatnonzero(sample.counts.ravel()), None
    assert isinstance(sample, Records)
    codes = learner.exchangeable(sample.n) * (2 * len(sample.points)) + sample.order
    _, first = np.unique(codes, return_index=True)
    positions = np.sort(first)
    return sample.order[positions], positions


def _line(learner: Learner, sample: Occupancy, limit: int, rng: np.random.Generator) -> Neighbourhood:
    """On the line: at most ``limit`` distinct moves, each equally likely among those to either label at a point of the
    sample, midway between two, or beyond either end; all of them where they are no more than ``limit``. The sample
    comes back over its own points and the new ones."""
    if sample.points.ndim != 1:
        raise ValueError(
            f"an audit needs points on the line or a finite X, not points with {sample.points.shape[1]} features"
        )
    cells = pieces(sample.points)
    records, positions = _replaceable(learner, sample)
    own = 2 * np.searchsorted(cells, sample.points[records // 2]) + records % 2
    each = 2 * len(cells) - 1
    total = len(records) * each
    chosen = np.arange(total) if total <= limit else np.sort(rng.choice(total, limit, replace=False))
    source, target = np.divmod(chosen, each)
    target += target >= own[source]  # skips the type itself
    points = np.union1d(sample.points, cells[np.unique(target // 2)])
    whole: Occupancy
    if isinstance(sample, Records):
        whole = sample.over(points)
    else:
        counts = np.zeros((len(points), 2), dtype=np.int64)
        counts[np.searchsorted(points, sample.points)] = sample.counts
        whole = Occupancy(points=points, counts=counts)
    return Neighbourhood(
        sample=whole,
        old=2 * np.searchsorted(points, sample.points[records // 2])[source] + records[source] % 2,
        new=2 * np.searchsorted(points, cells[target // 2]) + target % 2,
        positions=None if positions is None else positions[source],
    )


def pieces(points: Points) -> NDArray[np.float64]:
    """The points, a point in each gap between two, and one beyond each end: every piece of the line on which a
    hypothesis with its cuts at ``points`` is constant. Sorted."""
    v = np.asarray(points, dtype=np.float64)
    margin = np.maximum(1.0, np.abs(v[[0, -1]]) * 2.0**-20)
    return np.unique(np.concatenate([v, v[:-1] / 2 + v[1:] / 2, [v[0] - margin[0], v[-1] + margin[1]]]))
