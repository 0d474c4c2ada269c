"""What one replaced record can do to a prediction: in go a learner and a sample, out come the largest changes.

Neighbours S ~ S′ have the same size and differ in one record (replace-one). For a sample S

* stability      max |p_S(x) − p_S′(x)| over S′ and x;
* privacy loss   max |ln P_S(y) − ln P_S′(y)| over S′, x and y; both directions. Infinite where one is 0 and the other
  not, which is an answer and never clipped; two zeros differ by 0;
* δ(ε)           max (P(y) − e^ε P′(y))₊ over S′, x, y and both orders of (P, P′).

Learners here depend on S as a multiset, so on a finite X of k points the neighbours are the moves of one record from an
occupied type (point, label) to another of the 2k types: all are tried. On the line new records are tried at the
sample's points, between them and beyond them, up to a number: what is found there is a lower bound.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predcube.tasks.answers import flipped, hockey_stick, log_ratios
from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.hypotheses.points import distinct, locate
from predcube.tasks.learners.base import Learner, Occupancy, Points
from predcube.tasks.predictions import check_applicable, check_feasible, checked_points, checked_sample
from predcube.tasks.seeds import stream

type Kind = Literal["exhaustive", "lower bound", "estimate"]
type Place = float | tuple[float, ...]  # a point: a number, or its features
type Moves = NDArray[np.int64]  # (B, 4): replaced point's index and label, new point's index and label

BLOCK = 2**22
"""Weights held at once (samples × hypotheses), 32 MB as floats: a count, so that no number depends on the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The neighbour and the prediction that show a value: in S, given as a multiset, the record ``old`` is replaced by
    ``new``; the probabilities of answering ``label`` at ``query`` are then ``p`` for S and ``p_neighbour`` for S′."""

    sample: Occupancy
    old: tuple[Place, int]
    new: tuple[Place, int]
    query: Place
    label: int
    log_p: float
    log_p_neighbour: float

    @property
    def p(self) -> float:
        return float(np.exp(self.log_p))

    @property
    def p_neighbour(self) -> float:
        return float(np.exp(self.log_p_neighbour))

    def __str__(self) -> str:
        return (
            f"replacing (x = {_shown(self.old[0])}, y = {self.old[1]}) by "
            f"(x = {_shown(self.new[0])}, y = {self.new[1]}) turns the probability of answering {self.label} "
            f"at x = {_shown(self.query)} from {self.p:.6g} into {self.p_neighbour:.6g}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What was found. ``witness["stability"]`` and ``witness["privacy_loss"]`` show the two values.

    ``kind`` says how far it goes: "exhaustive" (every neighbour of a finite X; ``exhaustive`` is True), "lower bound"
    (some neighbours or some queries) or "estimate" (predictions by Monte Carlo). ``neighbours`` counts those tried.
    """

    stability: float
    privacy_loss: float
    witness: Mapping[str, Witness]
    kind: Kind
    method: str
    neighbours: int
    log_p: NDArray[np.float64] = field(repr=False)  # (queries, 2) of S
    log_p_neighbours: NDArray[np.float64] = field(repr=False)  # (neighbours, queries, 2)

    @property
    def exhaustive(self) -> bool:
        return self.kind == "exhaustive"

    def delta(self, epsilon: float) -> float:
        """δ(ε) = max (P(y) − e^ε P′(y))₊ over the neighbours, queries, labels and both orders; ε ≥ 0, may be inf."""
        return max(
            hockey_stick(self.log_p, self.log_p_neighbours, epsilon),
            hockey_stick(self.log_p_neighbours, self.log_p, epsilon),
        )


def audit(
    learner: Learner,
    hypotheses: HypothesisClass,
    x: ArrayLike,
    y: ArrayLike,
    queries: ArrayLike | None = None,
    *,
    method: str = "auto",
    neighbours: int = 64,
    samples: int | None = None,
    seed: int = 0,
) -> Audit:
    """Replace-one audit of ``learner`` on the sample (x, y).

    ``queries`` (Q,): all of X by default; on the line one in each piece on which every prediction is constant. Giving
    fewer makes the result a lower bound. ``neighbours``: the most to try where X is not finite, drawn by ``seed``.
    ``method`` and ``samples`` as for ``predict``; under mc all samples share their subsets, and the result is an
    estimate, biased upwards as a maximum of noisy values; an answer that no sampled subset gives counts as never given.

    Raises ValueError as ``predict`` does. Source: Dagan & Feldman 2020, definitions of uniform stability and of
    prediction privacy.
    """
    sample = checked_sample(hypotheses, x, y)
    check_feasible(learner, hypotheses, sample.n)
    if neighbours < 1:
        raise ValueError(f"neighbours = {neighbours} must be at least 1")
    at = None if queries is None else checked_points(hypotheses, queries)
    many, k = audit_size(hypotheses, sample.n, neighbours)
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
    )


def audit_size(hypotheses: HypothesisClass, n: int, neighbours: int) -> tuple[int, int]:
    """Of an audit at n records, at most: samples predicted (S and its neighbours), and points that they share."""
    domain = hypotheses.domain
    if domain is not None:
        return 1 + min(n, 2 * len(domain)) * (2 * len(domain) - 1), len(domain)
    return 1 + neighbours, n + min(neighbours, 2 * n + 1)


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
    rng: Callable[[], np.random.Generator],
) -> Audit:
    """``audit`` on a checked sample with a method already chosen; ``rng()`` draws neighbours where X is not finite."""
    finite = hypotheses.domain is not None
    whole, moves = type_moves(hypotheses, sample) if finite else line_moves(sample, neighbours, rng())
    at = queries if queries is not None else (whole.points if finite else pieces(whole.points))
    logs = _predictions(learner, hypotheses, whole, moves, at, method=method, samples=samples, seed=seed)
    kind: Kind = "lower bound" if not finite or (locate(distinct(at)[0], whole.points) < 0).any() else "exhaustive"
    return _summary(whole, moves, at, logs, kind="estimate" if method == "mc" else kind, method=method)


def type_moves(hypotheses: HypothesisClass, sample: Occupancy) -> tuple[Occupancy, Moves]:
    """On a finite X: the sample over all of X, and every move of a record to another type, (occupied)·(2k − 1) rows."""
    domain = hypotheses.domain
    assert domain is not None
    counts = np.zeros((len(domain), 2), dtype=np.int64)
    counts[locate(domain, sample.points)] = sample.counts
    old = np.flatnonzero(counts.ravel())
    new = np.arange(counts.size)
    pairs = np.stack([np.repeat(old, len(new)), np.tile(new, len(old))], axis=1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    moves = np.stack([pairs[:, 0] // 2, pairs[:, 0] % 2, pairs[:, 1] // 2, pairs[:, 1] % 2], axis=1)
    return Occupancy(points=domain, counts=counts), moves


def line_moves(sample: Occupancy, limit: int, rng: np.random.Generator) -> tuple[Occupancy, Moves]:
    """On the line: at most ``limit`` distinct moves of a record, each equally likely among those from an occupied type
    to either label at a point of the sample, midway between two, or beyond either end. All of them where they are no
    more than ``limit``. The sample comes back over its own points and the new ones."""
    if sample.points.ndim != 1:
        raise ValueError(
            f"an audit needs points on the line or a finite X, not points with {sample.points.shape[1]} features"
        )
    cells = pieces(sample.points)
    occupied = np.flatnonzero(sample.counts.ravel())
    own = 2 * np.searchsorted(cells, sample.points[occupied // 2]) + occupied % 2
    each = 2 * len(cells) - 1
    total = len(occupied) * each
    chosen = np.arange(total) if total <= limit else np.sort(rng.choice(total, limit, replace=False))
    source, target = np.divmod(chosen, each)
    target += target >= own[source]  # skips the type itself
    points = np.union1d(sample.points, cells[np.unique(target // 2)])
    counts = np.zeros((len(points), 2), dtype=np.int64)
    counts[np.searchsorted(points, sample.points)] = sample.counts
    moves = np.stack(
        [
            np.searchsorted(points, sample.points[occupied[source] // 2]),
            occupied[source] % 2,
            np.searchsorted(points, cells[target // 2]),
            target % 2,
        ],
        axis=1,
    )
    return Occupancy(points=points, counts=counts), moves


def pieces(points: Points) -> NDArray[np.float64]:
    """The points, a point in each gap between two, and one beyond each end: every piece of the line on which a
    hypothesis with its cuts at ``points`` is constant. Sorted."""
    v = np.asarray(points, dtype=np.float64)
    margin = np.maximum(1.0, np.abs(v[[0, -1]]) * 2.0**-20)
    return np.unique(np.concatenate([v, v[:-1] / 2 + v[1:] / 2, [v[0] - margin[0], v[-1] + margin[1]]]))


def _predictions(
    learner: Learner,
    hypotheses: HypothesisClass,
    sample: Occupancy,
    moves: Moves,
    queries: Points,
    *,
    method: str,
    samples: int | None,
    seed: int | None,
) -> NDArray[np.float64]:
    """log P(y) of S (row 0) and of every neighbour: shape (1 + B, Q, 2)."""
    rows = np.arange(len(moves))
    counts = np.repeat(sample.counts[None], len(moves) + 1, axis=0)
    counts[rows + 1, moves[:, 0], moves[:, 1]] -= 1
    counts[rows + 1, moves[:, 2], moves[:, 3]] += 1
    return batch_predictions(
        learner, hypotheses, sample.points, counts, queries, method=method, samples=samples, seed=seed
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
    """ln P_S(y), flip included, of B samples of one size on the same points: ``counts`` (B, k, 2) → (B, Q, 2)."""
    rows = max(1, BLOCK // (hypotheses.growth(len(points)) or len(points) ** hypotheses.vc_dimension))
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


def _summary(
    sample: Occupancy, moves: Moves, queries: Points, logs: NDArray[np.float64], *, kind: Kind, method: str
) -> Audit:
    base, others = logs[0], logs[1:]
    change = np.abs(np.exp(others) - np.exp(base))
    loss = log_ratios(base, others)

    def witness(values: NDArray[np.float64]) -> Witness:
        b, q, y = np.unravel_index(int(values.argmax()), values.shape)
        points = [place(point) for point in sample.points]
        i, old, j, new = moves[b].tolist()
        return Witness(
            sample=sample,
            old=(points[i], old),
            new=(points[j], new),
            query=place(queries[q]),
            label=int(y),
            log_p=float(base[q, y]),
            log_p_neighbour=float(others[b, q, y]),
        )

    return Audit(
        stability=float(change.max()),
        privacy_loss=float(loss.max()),
        witness={"stability": witness(change), "privacy_loss": witness(loss)},
        kind=kind,
        method=method,
        neighbours=len(moves),
        log_p=base,
        log_p_neighbours=others,
    )
