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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predcube.tasks import curves
from predcube.tasks.answers import flipped, log_ratios
from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.learners.base import Learner, Occupancy, Points
from predcube.tasks.moves import HELD, TOGETHER, Draws, Neighbourhood, moves, pieces
from predcube.tasks.predictions import check_applicable, check_feasible, checked_points, checked_sample
from predcube.tasks.seeds import stream

type Kind = Literal["exhaustive", "exhaustive over order cells", "lower bound", "lower bound by search", "estimate"]
type Place = float | tuple[float, ...]  # a point: a number, or its features
type Progress = Callable[[int, int], None]
"""Told, now and then, how many of how many neighbours have been tried."""

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
    found: dict[str, tuple[float, Witness]] = {}
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
        changes = {
            "stability": np.maximum(np.exp(largest) - np.exp(base), np.exp(base) - np.exp(least)),
            "privacy_loss": np.maximum(log_ratios(largest, base), log_ratios(base, least)),
        }
        for quantity, change in changes.items():
            if quantity not in found or change.max() > found[quantity][0]:
                found[quantity] = float(change.max()), _witness(block, logs, quantity, change)
        pairs = curves.staircase(*np.concatenate([pairs, _paired(base, least), _paired(largest, base)]).T)
        done += len(block.old)
        if progress is not None:
            progress(done, near.tried)
    assert log_p is not None
    finite = hypotheses.domain is not None
    whole: Kind = "exhaustive" if finite else "exhaustive over order cells"
    return Audit(
        stability=found["stability"][0],
        privacy_loss=found["privacy_loss"][0],
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


def _shown(at: Place) -> str:
    return f"({', '.join(f'{v:g}' for v in at)})" if isinstance(at, tuple) else f"{at:g}"


def _paired(log_p: NDArray[np.float64], log_q: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([log_p.ravel(), log_q.ravel()], axis=1)


def _witness(block: Neighbourhood, logs: NDArray[np.float64], quantity: str, change: NDArray[np.float64]) -> Witness:
    """The neighbour, query and label of the largest ``change`` (Q, 2): ``logs`` (1 + B, Q, 2), S first."""
    q, y = np.unravel_index(int(change.argmax()), change.shape)
    base, others = logs[0, q, y], logs[1:, q, y]
    each = np.abs(np.exp(others) - np.exp(base)) if quantity == "stability" else log_ratios(others, base)
    b = int(each.argmax())
    points = block.sample.points
    old, new = int(block.old[b]), int(block.new[b])
    return Witness(
        sample=block.sample,
        old=(place(points[old // 2]), old % 2),
        new=(place(points[new // 2]), new % 2),
        query=place(block.queries[q]),
        label=int(y),
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
    "pieces",
    "place",
]
