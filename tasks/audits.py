"""What one replaced record can do to a prediction: in go a learner and a sample, out come the largest changes.

Neighbours S ~ S′ have the same size and differ in one record (replace-one). For a sample S

* stability      max |p_S(x) − p_S′(x)| over S′ and x;
* privacy loss   max |ln P_S(y) − ln P_S′(y)| over S′, x and y; both directions. Infinite where one is 0 and the other
  not, which is an answer and never clipped; two zeros differ by 0;
* δ(ε)           max (P(y) − e^ε P′(y))₊ over S′, x, y and both orders of (P, P′).

On a finite X of k points all neighbours are tried: a record of an occupied type (point, label) becomes one of the other
2k − 1 types, and where a learner minds the order, each position's record does. On the line new records are tried at
the sample's points, between them and beyond them, up to a number: what is found there is a lower bound.
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
from predcube.tasks.moves import Neighbourhood, neighbourhood, pieces
from predcube.tasks.predictions import check_applicable, check_feasible, checked_points, checked_sample
from predcube.tasks.seeds import stream

type Kind = Literal["exhaustive", "lower bound", "estimate"]
type Place = float | tuple[float, ...]  # a point: a number, or its features

BLOCK = 2**22
"""Weights held at once (samples × hypotheses), 32 MB as floats: a count, so that no number depends on the machine."""


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
    sample = checked_sample(hypotheses, x, y, ordered=learner.ordered)
    check_feasible(learner, hypotheses, sample.n)
    if neighbours < 1:
        raise ValueError(f"neighbours = {neighbours} must be at least 1")
    at = None if queries is None else checked_points(hypotheses, queries)
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
    )


def audit_size(learner: Learner, hypotheses: HypothesisClass, n: int, neighbours: int) -> tuple[int, int]:
    """Of an audit at n records, at most: samples predicted (S and its neighbours), and points that they share."""
    domain = hypotheses.domain
    if domain is not None:
        groups = np.bincount(learner.exchangeable(n))
        return 1 + int(np.minimum(groups, 2 * len(domain)).sum()) * (2 * len(domain) - 1), len(domain)
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
    near = neighbourhood(learner, hypotheses, sample, neighbours, None if finite else rng())
    points = near.sample.points
    at = queries if queries is not None else (points if finite else pieces(points))
    logs = batch_predictions(learner, hypotheses, points, near.samples(), at, method=method, samples=samples, seed=seed)
    kind: Kind = "lower bound" if not finite or (locate(distinct(at)[0], points) < 0).any() else "exhaustive"
    return _summary(near, at, logs, kind="estimate" if method == "mc" else kind, method=method)


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


def _summary(near: Neighbourhood, queries: Points, logs: NDArray[np.float64], *, kind: Kind, method: str) -> Audit:
    base, others = logs[0], logs[1:]
    change = np.abs(np.exp(others) - np.exp(base))
    loss = log_ratios(base, others)

    def witness(values: NDArray[np.float64]) -> Witness:
        b, q, y = np.unravel_index(int(values.argmax()), values.shape)
        points = near.sample.points
        old, new = int(near.old[b]), int(near.new[b])
        return Witness(
            sample=near.sample,
            old=(place(points[old // 2]), old % 2),
            new=(place(points[new // 2]), new % 2),
            query=place(queries[q]),
            label=int(y),
            log_p=float(base[q, y]),
            log_p_neighbour=float(others[b, q, y]),
            position=None if near.positions is None else int(near.positions[b]),
        )

    return Audit(
        stability=float(change.max()),
        privacy_loss=float(loss.max()),
        witness={"stability": witness(change), "privacy_loss": witness(loss)},
        kind=kind,
        method=method,
        neighbours=len(near.old),
        log_p=base,
        log_p_neighbours=others,
    )
