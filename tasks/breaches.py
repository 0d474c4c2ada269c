"""Breaches drawn: in go the rows of a table and a process, out comes what the attacker makes of each breach alone.

For R draws of what it holds: its estimate before the release, the truth that it is after, and the sample moments ḡ that
a release will correct. Estimates are self-normalised, Σwq/Σw, as an attacker's must be whose weights do not sum to what
is expected. Rows are taken about p and 0, so that estimates and truths are differences from p.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.tasks import sampling
from predcube.tasks.frames import Frame, Groups
from predcube.tasks.processes.base import Process
from predcube.tasks.processes.iid import Iid
from predcube.tasks.processes.markov import Markov
from predcube.tasks.processes.poisson import Poisson
from predcube.tasks.processes.random_shard import RandomShard
from predcube.tasks.processes.weighted import Weighted
from predcube.tasks.processes.whole_shards import WholeShards

type Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaches:
    """R draws of what an attacker holds, about Q queries and d moments.

    before: (R, Q) its estimate without the release, less p. truth: (R, Q) the mean that it predicts, less p. moments:
    (R, d) ḡ. scale: (R, 1) by how much a correction of the estimate of the whole target's mean moves its prediction:
    T/(T − c) where c of the target's T rows are seen and the rest is predicted, else 1. known: (R,) mean of w, less 1,
    where the attacker uses that it has mean 0; None where it does not.
    """

    before: Array
    truth: Array
    moments: Array
    scale: Array
    known: Array | None = None

    @property
    def draws(self) -> int:
        return len(self.before)


def draw_breaches(
    frame: Frame,
    moments: Array,
    process: Process[Any],
    *,
    groups: Groups | None = None,
    draws: int,
    rng: np.random.Generator,
) -> Breaches:
    """``draws`` breaches of the rows of ``frame``, with their moment rows g (N, d).

    ``rng``: a stream of ``seeds`` for breaches; draws follow from it alone, whatever the release's noise. ValueError
    where the process is infeasible, and where a draw leaves the attacker without a row of the target, or without one to
    predict: then there is no estimate.
    """
    reason = process.infeasible(frame.rows, groups)
    if reason is not None:
        raise ValueError(f"{process.kind}: {reason}")
    inside = np.ones(frame.rows, dtype=np.bool_) if process.target_expression is None else _target(frame, process)
    if not np.any(inside):
        raise ValueError(f"{process.kind}: no row is a member of target = {process.target!r}")
    q = np.where(inside[:, None], frame.queries - frame.queries[inside].mean(axis=0), 0.0)
    all_inside = process.target_expression is None
    board = _Board(q=q, g=moments - moments.mean(axis=0), inside=None if all_inside else inside.astype(np.float64))
    drawn = _DRAWN[process.kind](board, frame.column, process, groups, draws, rng)
    return _estimated(drawn, board, draws)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Board:
    """Centred rows: q (N, Q), 0 outside the target; g (N, d); inside (N,), 1 in the target, None where all are."""

    q: Array
    g: Array
    inside: Array | None

    @property
    def plain(self) -> Array:
        """Columns [g, 1, q, inside]; the last is left out where all rows are in the target."""
        ones = np.ones(len(self.q))
        return np.column_stack([self.g, ones, self.q, *([] if self.inside is None else [self.inside])])

    def split(self, sums: Array) -> tuple[Array, Array, Array, Array]:
        """Sums of [g, 1, q, inside], each with a column or more."""
        size = self.g.shape[1]
        g, ones, q = sums[:, :size], sums[:, size : size + 1], sums[:, size + 1 : size + 1 + self.q.shape[1]]
        return g, ones, q, ones if self.inside is None else sums[:, -1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """Sums over what is held of the board's columns. weighted: times w. raw: as they are; None where rows may be held
    twice, or where all rows are predicted. known: as in ``Breaches``."""

    weighted: Array
    raw: Array | None = None
    known: Array | None = None


def _estimated(drawn: _Drawn, board: _Board, draws: int) -> Breaches:
    g, everything, q, weight = board.split(drawn.weighted)
    if not (np.all(weight > 0) and np.all(everything > 0)):
        empty = int(np.sum(~((weight > 0) & (everything > 0))))
        raise ValueError(
            f"the breach holds no row of the target in {empty} of {draws} draws, so that there is nothing to estimate "
            "from: let it hold more rows"
        )
    estimate, moments = q / weight, g / everything
    if drawn.raw is None:
        zero, one = np.zeros_like(estimate), np.ones_like(weight)
        return Breaches(before=estimate, truth=zero, moments=moments, scale=one, known=drawn.known)
    _, _, seen, count = board.split(drawn.raw)
    total = float(len(board.q) if board.inside is None else board.inside.sum())
    left = total - count
    if not np.all(left > 0.5):
        raise ValueError(
            f"the breach holds every row of the target in {int(np.sum(left <= 0.5))} of {draws} draws, so that there "
            "is nothing to predict: let it hold fewer rows"
        )
    return Breaches(
        before=(total * estimate - seen) / left,
        truth=-seen / left,
        moments=moments,
        scale=total / left,
        known=drawn.known,
    )


def _iid(
    board: _Board,
    column: Array | None,
    process: Iid,
    groups: Groups | None,
    draws: int,
    rng: np.random.Generator,
) -> _Drawn:
    return _Drawn(weighted=sampling.with_replacement(board.plain, process.size, draws, rng))


def _weighted(
    board: _Board,
    column: Array | None,
    process: Weighted,
    groups: Groups | None,
    draws: int,
    rng: np.random.Generator,
) -> _Drawn:
    c = _column(column, process)
    w = c.sum() / (len(c) * c)
    sums = sampling.with_replacement(board.plain * w[:, None], process.size, draws, rng, c)
    return _Drawn(weighted=sums, known=_known(board, sums, process.size) if process.aux_moments else None)


def _random_shard(
    board: _Board,
    column: Array | None,
    process: RandomShard,
    groups: Groups | None,
    draws: int,
    rng: np.random.Generator,
) -> _Drawn:
    sums = sampling.without_replacement(board.plain, process.drawn(len(board.q)), draws, rng)
    unseen = process.target == "unseen" or process.members == "unseen"
    return _Drawn(weighted=sums, raw=sums if unseen else None)


def _poisson(
    board: _Board,
    column: Array | None,
    process: Poisson,
    groups: Groups | None,
    draws: int,
    rng: np.random.Generator,
) -> _Drawn:
    pi = _column(column, process)
    plain, size = board.plain, board.g.shape[1]
    both = np.hstack([plain / pi[:, None], plain[:, size:]])
    sums = sampling.inclusions(np.ascontiguousarray(both), pi, draws, rng)
    weighted = sums[:, : plain.shape[1]]
    raw = np.hstack([np.zeros((draws, size)), sums[:, plain.shape[1] :]])
    known = _known(board, weighted, len(pi)) if process.aux_moments else None
    return _Drawn(weighted=weighted, raw=raw if process.target == "unseen" else None, known=known)


def _whole_shards(
    board: _Board,
    column: Array | None,
    process: WholeShards,
    groups: Groups | None,
    draws: int,
    rng: np.random.Generator,
) -> _Drawn:
    _, codes = np.unique(_column(column, process), return_inverse=True)
    plain = board.plain
    totals = np.stack([np.bincount(codes.ravel(), weights=values) for values in plain.T], axis=1)
    sums = sampling.without_replacement(totals, process.count, draws, rng)
    return _Drawn(weighted=sums, raw=sums if process.target == "unseen" else None)


def _markov(
    board: _Board,
    column: Array | None,
    process: Markov,
    groups: Groups | None,
    draws: int,
    rng: np.random.Generator,
) -> _Drawn:
    if groups is None:
        raise ValueError("markov: the table's groups must be counted first")
    codes = _column(column, process).astype(np.int64)
    transitions, stationary = process.transitions.ordered(groups.labels)
    w = process.weights(groups)[codes]
    sums = sampling.chain(board.plain * w[:, None], codes, transitions, stationary, process.steps, draws, rng)
    return _Drawn(weighted=sums, known=_known(board, sums, process.steps) if process.aux_moments else None)


def _known(board: _Board, weighted: Array, size: int) -> Array:
    """Mean of w, less 1."""
    known: Array = board.split(weighted)[1][:, 0] / size - 1.0
    return known


def _target(frame: Frame, process: Process[Any]) -> NDArray[np.bool_]:
    if frame.target is None:
        raise ValueError(f"{process.kind}: the frame does not say which rows are members of the target")
    return frame.target


def _column(column: Array | None, process: Process[Any]) -> Array:
    if column is None:
        raise ValueError(f"{process.kind}: the frame does not hold the process's column {process.reads!r}")
    return column


_DRAWN: Mapping[str, Callable[..., _Drawn]] = {
    Iid.kind: _iid,
    Weighted.kind: _weighted,
    RandomShard.kind: _random_shard,
    Poisson.kind: _poisson,
    WholeShards.kind: _whole_shards,
    Markov.kind: _markov,
}
