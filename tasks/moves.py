"""Replaced records: in go a sample and what it may be changed into, out come its neighbours, block by block.

Always true: no two moves of a list give the same prediction for want of a difference. Records of one type (point,
label) that may change places count once: for a learner of a multiset a move goes from type to type, for a learner that
minds the order from the first of some exchangeable positions to a type.

On a finite X a record becomes any other type. On R^p, cut each axis at the coordinates of the sample's points into
*pieces* (those coordinates, the gaps between them, the two ends); a product of pieces is an *order cell*. A new point
is tried once in each cell, and predictions are asked for once in each cell of the sample's points and the new one
together. For a ``cellwise`` class nothing is missed by that. Such a class commutes with strictly increasing maps of
each axis onto itself: h_{φ(T)}(φ(x)) = h_T(x) for its representatives; φ keeps the (lexicographic) order of points too.
Hence p_{φ(S)}(φ(x)) = p_S(x) for every learner here, which meets points through the class and their order alone.

* Two places v, v′ of a new record in one cell of S are exchanged by a φ that fixes the points of S. So S with v′
  predicts at φ(x) what S with v predicts at x, and S itself predicts the same at both: the pair (p_S, p_S′) takes no
  value at v′ that it does not take at v.
* With v given, a φ that fixes S and v carries x to any other place of its cell of S ∪ {v}: one query a cell is enough.
  The cells of S alone would be too few, since the cut of a threshold, or a side of a box, may stand at v.

Halfspaces turn on angles and not on the order of coordinates: for them the cells show some neighbours and no more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.hypotheses.points import distinct, locate
from predcube.tasks.learners.base import Learner, Occupancy, Points
from predcube.tasks.learners.records import Records

HELD = 2**22
"""Numbers held at once (samples × answers, samples × hypotheses), 32 MB as floats: a count, so that no result depends
on the machine."""
TOGETHER = 8
"""New points of the line that share a block; in several features each has its own, with its own queries."""
QUERIES = 1024
"""Queries of a block at most, in several features, where not all moves are tried."""
RANKED = 2**20
"""Up to so many moves a choice among them is drawn from a list of all."""

type Draws = Callable[[], np.random.Generator]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """``sample`` over all points met, and B moves: from type ``old`` (B,) to type ``new`` (B,), types being 2·point +
    label; ``positions`` (B,) says which record of a sequence is replaced, None for a multiset. ``queries`` (Q, …)."""

    sample: Occupancy
    old: NDArray[np.int64]
    new: NDArray[np.int64]
    positions: NDArray[np.int64] | None
    queries: Points

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """The neighbours of a sample. ``possible`` counts the moves there are, over order cells where X is not finite,
    ``tried`` those in ``blocks``; ``complete`` says that no neighbour and no query shows anything that these do not."""

    possible: int
    tried: int
    complete: bool
    blocks: Iterator[Neighbourhood]


def moves(
    learner: Learner,
    hypotheses: HypothesisClass,
    sample: Occupancy,
    queries: Points | None,
    *,
    limit: int,
    rng: Draws,
) -> Moves:
    """All neighbours where X is finite. Otherwise those over order cells, and where they are more than ``limit`` as
    many as that, drawn by ``rng()``, each move being equally likely. ``queries`` in place of those that tell all."""
    domain = hypotheses.domain
    if domain is not None:
        return _finite(learner, hypotheses, domain, sample, queries)
    return _real(learner, hypotheses, sample, queries, limit, rng)


def rows_together(hypotheses: HypothesisClass, k: int, queries: int) -> int:
    """How many samples on k points are predicted at once at so many queries."""
    labelings = hypotheses.growth(k) or k**hypotheses.vc_dimension
    return max(2, HELD // max(2 * queries, labelings))


def _finite(
    learner: Learner, hypotheses: HypothesisClass, domain: Points, sample: Occupancy, queries: Points | None
) -> Moves:
    whole = _over(sample, domain)
    old, positions = _replaceable(learner, whole)
    at = domain if queries is None else queries
    each = 2 * len(domain) - 1
    total = len(old) * each
    rows = rows_together(hypotheses, len(domain), len(at)) - 1

    def blocks() -> Iterator[Neighbourhood]:
        for start in range(0, total, rows):
            source, target = np.divmod(np.arange(start, min(start + rows, total)), each)
            target += target >= old[source]  # skips the type itself
            yield Neighbourhood(
                sample=whole,
                old=old[source],
                new=target,
                positions=None if positions is None else positions[source],
                queries=at,
            )

    complete = queries is None or bool((locate(distinct(queries)[0], domain) >= 0).all())
    return Moves(possible=total, tried=total, complete=complete, blocks=blocks())


def _real(
    learner: Learner,
    hypotheses: HypothesisClass,
    sample: Occupancy,
    queries: Points | None,
    limit: int,
    rng: Draws,
) -> Moves:
    axes = [pieces(column) for column in _columns(sample.points).T]
    shape = tuple(len(axis) for axis in axes)
    records, positions = _replaceable(learner, sample)
    own = np.stack([np.searchsorted(a, c) for a, c in zip(axes, _columns(sample.points).T, strict=True)], axis=1)
    at = np.column_stack([own[records // 2], records % 2])  # (U, p + 1): the cell and label that each record has
    possible = len(records) * (2 * prod(shape) - 1)
    everything = possible <= limit
    draws = None if everything else rng()
    if draws is None or possible <= RANKED:
        ranks = np.arange(possible)
        if draws is not None:
            ranks = np.sort(draws.choice(possible, limit, replace=False))
        source, target = np.divmod(ranks, 2 * prod(shape) - 1)
        target += target >= np.ravel_multi_index(tuple(at[source].T), (*shape, 2))
        chosen = np.column_stack(np.unravel_index(target, (*shape, 2)))
    else:
        source, chosen = _drawn(draws, at, shape, limit)
    # Moves to one cell stand together: its point is new once, and so are the queries around it.
    order = np.lexsort((source, *chosen.T[::-1]))
    source, chosen = source[order], chosen[order]
    line = len(shape) == 1
    number = np.cumsum(np.append(False, (chosen[1:, :-1] != chosen[:-1, :-1]).any(axis=1)))
    together = TOGETHER if line else 1
    asked = prod(len(axis) + 2 * together for axis in axes) if queries is None else len(queries)
    asked = asked if line or everything else min(asked, QUERIES)
    rows = rows_together(hypotheses, len(sample.points) + together, asked) - 1

    def blocks() -> Iterator[Neighbourhood]:
        starts = np.flatnonzero(np.diff(number // together, prepend=-1))
        for start, stop in zip(starts, np.append(starts[1:], len(source)), strict=True):
            for first in range(start, stop, rows):
                yield block(slice(first, min(first + rows, stop)))

    def block(part: slice) -> Neighbourhood:
        cells, place = np.unique(chosen[part, :-1], axis=0, return_inverse=True)
        new = np.stack([axis[c] for axis, c in zip(axes, cells.T, strict=True)], axis=1)
        new = new[:, 0] if line else new
        points, _ = distinct(np.concatenate([sample.points.astype(np.float64), new]))
        kept, target = locate(points, sample.points.astype(np.float64)), locate(points, new)
        return Neighbourhood(
            sample=_over(sample, points),
            old=2 * kept[records[source[part]] // 2] + records[source[part]] % 2,
            new=2 * target[place.reshape(-1)] + chosen[part, -1],
            positions=None if positions is None else positions[source[part]],
            queries=queries if queries is not None else _cells(points, new, draws),
        )

    return Moves(
        possible=possible,
        tried=len(source),
        complete=everything and queries is None and hypotheses.cellwise,
        blocks=blocks(),
    )


def _drawn(
    rng: np.random.Generator, at: NDArray[np.int64], shape: tuple[int, ...], limit: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``limit`` distinct moves of very many: which record (limit,), and to which cell and label (limit, p + 1)."""
    found = np.empty((0, len(shape) + 2), dtype=np.int64)
    while len(found) < limit:
        drawn = np.column_stack([rng.integers(size, size=2 * limit) for size in (len(at), *shape, 2)])
        drawn = drawn[(drawn[:, 1:] != at[drawn[:, 0]]).any(axis=1)]
        rows = np.concatenate([found, drawn])
        first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
        found = rows[first[:limit]]
    return found[:, 0], found[:, 1:]


def _cells(points: Points, new: Points, rng: np.random.Generator | None) -> NDArray[np.float64]:
    """A query in each order cell of the points, or, in several features with a generator, of ``QUERIES`` at most: at
    points and new ones, the rest drawn."""
    if points.ndim == 1:
        return pieces(points)
    axes = [pieces(column) for column in points.T]
    if rng is None or prod(len(axis) for axis in axes) <= QUERIES:
        grid = np.meshgrid(*axes, indexing="ij")
        return np.stack([axis.ravel() for axis in grid], axis=1)
    shown = points[rng.permutation(len(points))[: QUERIES // 2]]
    rest = QUERIES - len(shown) - len(new)
    drawn = np.stack([rng.choice(axis, max(rest, 1)) for axis in axes], axis=1)
    return distinct(np.concatenate([new, shown, drawn]))[0]


def _replaceable(learner: Learner, sample: Occupancy) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """The records whose replacements differ, as types (U,), and where they stand (U,)."""
    if not learner.ordered:
        return np.flatnonzero(sample.counts.ravel()), None
    assert isinstance(sample, Records)
    codes = learner.exchangeable(sample.n) * (2 * len(sample.points)) + sample.order
    _, first = np.unique(codes, return_index=True)
    positions = np.sort(first)
    return sample.order[positions], positions


def _over(sample: Occupancy, points: Points) -> Occupancy:
    """The same sample over sorted distinct ``points`` that include its own."""
    if isinstance(sample, Records):
        return sample.over(points)
    counts = np.zeros((len(points), 2), dtype=np.int64)
    counts[locate(points, sample.points)] = sample.counts
    return Occupancy(points=points, counts=counts)


def _columns(points: Points) -> NDArray[np.float64]:
    """Points as rows of features."""
    return np.asarray(points, dtype=np.float64).reshape(len(points), -1)


def pieces(points: Points) -> NDArray[np.float64]:
    """The points, a point in each gap between two, and one beyond each end: every piece of the line on which a
    hypothesis with its cuts at ``points`` is constant. Sorted."""
    v = np.unique(np.asarray(points, dtype=np.float64))
    margin = np.maximum(1.0, np.abs(v[[0, -1]]) * 2.0**-20)
    return np.unique(np.concatenate([v, v[:-1] / 2 + v[1:] / 2, [v[0] - margin[0], v[-1] + margin[1]]]))
