"""What one replaced record can do to a prediction: in go a learner and a sample, out come the largest changes.

Neighbours S ~ S′ have the same size and differ in one record (replace-one). For a sample S

* stability      max |p_S(x) − p_S′(x)| over S′ and x;
* privacy loss   max |ln P_S(y) − ln P_S′(y)| over S′, x and y; both directions. Infinite where one is 0 and the other
  not, which is an answer and never clipped; two zeros differ by 0;
* δ(ε)           max (P(y) − e^ε P′(y))₊ over S′, x, y and both orders of (P, P′).

On a finite X of k points all neighbours are tried: a record of an occupied type (point, label) becomes one of the other
2k − 1 types, and where a learner minds the order, each position's record does. On R^p new records are tried once in
each order cell of the sample's points, up to a number: as ``moves`` proves, nothing is missed by that for classes that
go by the order of coordinates. Beyond the number, and for other classes, what is found is a lower bound.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predcube.tasks import curves
from predcube.tasks.answers import flipped, log_ratios
from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.hypotheses.points import locate
from predcube.tasks.learners.base import Learner, Occupancy, Points
from predcube.tasks.moves import HELD, TOGETHER, Draws, Neighbourhood, moves, pieces
from predcube.tasks.predictions import check_applicable, check_feasible, checked_points, checked_sample
from predcube.tasks.seeds import stream

type Kind = Literal["exhaustive", "exhaustive over order cells", "lower bound", "lower bound by search", "estimate"]
type Place = float | tuple[float, ...]  # a point: a number, or its features
type Rank = tuple[float, float, float]
"""Of a witness: the value it shows, the other of stability and privacy loss there, whether it asks at a point of S."""
type Progress = Callable[[int, int], None]
"""Told, now and then, how many of how many neighbours have been tried."""

SAME = 1e-12
"""Values nearer than this, relatively, differ by rounding."""
NEIGHBOURS = 4096
"""The most neighbours that are tried where X is not finite, unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The neighbour and the prediction that show a value: in S the record ``old`` is replaced by ``new``; the
    probabilities of answering ``label`` at ``query`` are then ``p`` for S and ``p_neighbour`` for S′. ``position`` is
    the record's, from 0, where the learner minds the order (``sample`` is then a ``Records``), else None."""

    sample: Occupancy
    old: tuple[Place, int]
    new: tuple[Place, int]
    query: Place
    label: int
    log_p: float
    log_p_neighbour: float
    position: int | None = None

    @property
    def p(self) -> float:
        return float(np.exp(self.log_p))

    @property
    def p_neighbour(self) -> float:
        return float(np.exp(self.log_p_neighbour))

    def __str__(self) -> str:
        where = "" if self.position is None else f" at position {self.position}"
        return (
            f"replacing (x = {_shown(self.old[0])}, y = {self.old[1]}){where} by "
            f"(x = {_shown(self.new[0])}, y = {self.new[1]}) turns the probability of answering {self.label} "
            f"at x = {_shown(self.query)} from {self.p:.6g} into {self.p_neighbour:.6g}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What was found. ``witness["stability"]`` and ``witness["privacy_loss"]`` show the two values.

    ``kind`` says how far it goes: "exhaustive" (every neighbour of a finite X), "exhaustive over order cells" (every
    neighbour in R^p but for those that show nothing else), "lower bound" (some neighbours or some queries) or
    "estimate" (predictions by Monte Carlo). ``neighbours`` counts those tried, ``possible`` those that there are (over
    order cells where X is not finite). ``log_p`` (Q, 2) is ln P_S(y) over a finite X (else at the queries of the first
    neighbours), ``pairs`` (F, 2) are the ln P, ln P′ that decide δ(ε).
    """

    stability: float
    privacy_loss: float
    witness: Mapping[str, Witness]
    kind: Kind
    method: str
    neighbours: int
    possible: int
    log_p: NDArray[np.float64] = field(repr=False)
    pairs: NDArray[np.float64] = field(repr=False)

    @property
    def exhaustive(self) -> bool:
        """Whether no neighbour changes any prediction by more than the values say."""
        return self.kind in ("exhaustive", "exhaustive over order cells")

    def delta(self, epsilon: float) -> float:
        """δ(ε) = max (P(y) − e^ε P′(y))₊ over the neighbours, queries, labels and both orders; ε ≥ 0, may be inf."""
        return curves.delta(self.pairs, epsilon)


def audit(
    learner: Learner,
    hypotheses: HypothesisClass,
    x: ArrayLike,
    y: ArrayLike,
    queries: ArrayLike | None = None,
    *,
    method: str = "auto",
    neighbours: int = NEIGHBOURS,
    samples: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Audit:
    """Replace-one audit of ``learner`` on the sample (x, y).

    ``queries`` (Q,) or (Q, features): all of X by default; in R^p one in each order cell of the sample's points and the
    new one. Giving fewer makes the result a lower bound. ``neighbours``: the most to try where X is not finite, drawn
    by ``seed`` where there are more. ``method`` and ``samples`` as for ``predict``; under mc S and its neighbours share
    their subsets, and the result is an estimate, biased upwards as a maximum of noisy values; an answer that no sampled
    subset gives counts as never given. ``progress`` is told how many neighbours have been tried.

    Raises ValueError as ``predict`` does. Source: Dagan & Feldman 2020, definitions of uniform stability and of
    prediction privacy.
    """
    sample = checked_sample(hypotheses, x, y, ordered=learner.ordered)
    check_feasible(learner, hypotheses, sample.n)
    if neighbours < 1:
        raise ValueError(f"neighbours = {neighbours} must be at least 1")
    at = None if queries is None else checked_points(hypotheses, queries)
    if at is not None and not len(at):
        raise ValueError("queries is empty: give at least one, or leave it out for all")
    many, k = audit_size(learner, hypotheses, sample.n, neighbours)
    check_applicable(learner, hypotheses, k, sample.n, method)
    chosen = learner.method(hypotheses, k=k, n=sample.n, asked=method, many=many)
    return audit_sample(
        learner,
        hypotheses,
        sample,
        at,
        method=chosen,
        neighbours=neighbours,
        samples=samples,
        seed=seed,
        rng=lambda: stream(seed, "neighbours", sample.n),
        progress=progress,
    )


def audit_size(learner: Learner, hypotheses: HypothesisClass, n: int, neighbours: int) -> tuple[int, int]:
    """Of an audit at n records, at most: samples predicted (S and its neighbours), and points that they share."""
    domain = hypotheses.domain
    if domain is not None:
        groups = np.bincount(learner.exchangeable(n))
        return 1 + int(np.minimum(groups, 2 * len(domain)).sum()) * (2 * len(domain) - 1), len(domain)
    tried = min(neighbours, n * (2 * (2 * n + 1) ** hypotheses.features - 1))
    return 1 + tried, n + (min(TOGETHER, tried, 2 * n + 1) if hypotheses.features == 1 else 1)


def audit_sample(
    learner: Learner,
    hypotheses: HypothesisClass,
    sample: Occupancy,
    queries: Points | None,
    *,
    method: str,
    neighbours: int,
    samples: int | None,
    seed: int | None,
    rng: Draws,
    progress: Progress | None = None,
) -> Audit:
    """``audit`` on a checked sample with a method already chosen; ``rng()`` draws neighbours where X is not finite."""
    near = moves(learner, hypotheses, sample, queries, limit=neighbours, rng=rng)
    found: dict[str, tuple[Rank, Witness]] = {}
    values = {"stability": 0.0, "privacy_loss": 0.0}
    pairs = np.empty((0, 2))
    log_p: NDArray[np.float64] | None = None
    done = 0
    for block in near.blocks:
        logs = learner.batch(
            hypotheses,
            block.sample.points,
            block.samples(),
            block.queries,
            method=method,
            samples=samples,
            seed=seed,
        )
        logs = flipped(logs, learner.flip)
        base, least, largest = logs[0], logs[1:].min(axis=0), logs[1:].max(axis=0)
        log_p = base if log_p is None else log_p
        ends = np.stack([largest, least])
        changes = {"stability": np.abs(np.exp(ends) - np.exp(base)), "privacy_loss": log_ratios(ends, base)}
        for quantity, other in zip(changes, reversed(changes), strict=True):
            values[quantity] = max(values[quantity], float(changes[quantity].max()))
            where, rank = most_telling(changes[quantity], changes[other], _known(block.queries, block)[:, None])
            if quantity not in found or outranks(rank, found[quantity][0]):
                found[quantity] = rank, _witness(block, logs, ends[where[0]], where[1], where[2])
        pairs = curves.staircase(*np.concatenate([pairs, _paired(base, least), _paired(largest, base)]).T)
        done += len(block.old)
        if progress is not None:
            progress(done, near.tried)
    assert log_p is not None
    finite = hypotheses.domain is not None
    whole: Kind = "exhaustive" if finite else "exhaustive over order cells"
    return Audit(
        stability=values["stability"],
        privacy_loss=values["privacy_loss"],
        witness={quantity: witness for quantity, (_, witness) in found.items()},
        kind="estimate" if method == "mc" else whole if near.complete else "lower bound",
        method=method,
        neighbours=near.tried,
        possible=near.possible,
        log_p=log_p,
        pairs=pairs,
    )


def batch_predictions(
    learner: Learner,
    hypotheses: HypothesisClass,
    points: Points,
    counts: NDArray[np.int64],
    queries: Points,
    *,
    method: str,
    samples: int | None = None,
    seed: int | None = None,
) -> NDArray[np.float64]:
    """ln P_S(y), flip included, of B samples of one size on the same points: ``counts`` (B, k, 2), or (B, n) of types
    where the learner minds the order → (B, Q, 2)."""
    rows = max(1, HELD // (hypotheses.growth(len(points)) or len(points) ** hypotheses.vc_dimension))
    found = [
        learner.batch(hypotheses, points, counts[i : i + rows], queries, method=method, samples=samples, seed=seed)
        for i in range(0, len(counts), rows)
    ]
    return flipped(np.concatenate(found), learner.flip)


def place(point: Any) -> Place:
    """A row of an array of points as plain numbers."""
    found: Place = tuple(point.tolist()) if np.ndim(point) else point.item()
    return found


def written(value: float) -> str:
    """A coordinate with all its digits, so that a record can be found again.

    >>> written(14.29118683), written(3.0), written(-0.5), written(1e300)
    ('14.29118683', '3', '-0.5', '1e+300')
    """
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _shown(at: Place) -> str:
    return f"({', '.join(map(written, at))})" if isinstance(at, tuple) else written(at)


def _paired(log_p: NDArray[np.float64], log_q: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([log_p.ravel(), log_q.ravel()], axis=1)


def most_telling(
    values: NDArray[np.float64], others: NDArray[np.float64], asked: NDArray[Any] | None = None
) -> tuple[tuple[int, ...], Rank]:
    """Where ``values`` is largest, and of the places that tie where ``others`` is, and of those where ``asked`` is
    (each broadcast): the place with its rank. So ε = ∞ is shown by the answer that is likeliest where it is given."""
    keys = [values, others] if asked is None else [values, others, np.broadcast_to(asked, values.shape)]
    tied = np.ones(values.shape, dtype=bool)
    for key in keys:
        top = float(key[tied].max())
        tied &= key >= (top if math.isinf(top) else top * (1.0 - SAME))
    place = tuple(int(i) for i in np.unravel_index(int(tied.argmax()), tied.shape))
    rank = [float(key[place]) for key in keys]
    return place, (rank[0], rank[1], rank[2] if asked is not None else 0.0)


def outranks(rank: Rank, best: Rank) -> bool:
    """Whether a witness tells more: by the first of the three that differs by more than rounding."""
    for new, old in zip(rank, best, strict=True):
        if not math.isclose(new, old, rel_tol=SAME):
            return new > old
    return False


def _known(points: Points, block: Neighbourhood) -> NDArray[np.bool_]:
    """Whether S has a record at each of some points."""
    where = locate(block.sample.points, points)
    return np.asarray((where >= 0) & (block.sample.counts.sum(axis=1)[where] > 0))


def _witness(block: Neighbourhood, logs: NDArray[np.float64], end: NDArray[np.float64], q: int, y: int) -> Witness:
    """A neighbour whose answer y at query q has the log-probability ``end`` (Q, 2): of several one that brings a point
    which S has already. ``logs`` (1 + B, Q, 2), S first."""
    base, others = logs[0, q, y], logs[1:, q, y]
    points = block.sample.points
    tied = np.flatnonzero(np.isclose(others, end[q, y], rtol=SAME, atol=SAME))
    own = tied[block.sample.counts.sum(axis=1)[block.new[tied] // 2] > 0]
    b = int((own if len(own) else tied)[0])
    old, new = int(block.old[b]), int(block.new[b])
    return Witness(
        sample=block.sample,
        old=(place(points[old // 2]), old % 2),
        new=(place(points[new // 2]), new % 2),
        query=place(block.queries[q]),
        label=y,
        log_p=float(base),
        log_p_neighbour=float(others[b]),
        position=None if block.positions is None else int(block.positions[b]),
    )


__all__ = [
    "Audit",
    "Kind",
    "Place",
    "Progress",
    "Witness",
    "audit",
    "audit_sample",
    "audit_size",
    "batch_predictions",
    "most_telling",
    "outranks",
    "pieces",
    "place",
    "written",
]
