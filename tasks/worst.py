"""The worst data set: in go a learner and a size n, out come the largest changes over all samples and neighbours.

On a finite X of k points a learner of a multiset sees C(n + 2k − 1, n) different samples, one that minds the order a
multiset for each set of exchangeable positions (a chunk, say), which are any two. Up to a number of data sets all are
predicted, once each; beyond it a search tries so many at most, and what it finds is a lower bound.

On the line the worst case of a ``cellwise`` class is that of n + 2 points: S, the new record and the query are at most
so many places, and only their order counts (see ``moves``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from predcube.tasks import curves
from predcube.tasks.answers import log_ratios
from predcube.tasks.audits import Kind, Progress, Witness, batch_predictions, most_telling
from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.learners.base import Learner, Points
from predcube.tasks.predictions import check_applicable, check_feasible
from predcube.tasks.worst_groups import extremes, joint_groups, multisets, sequences, shown
from predcube.tasks.worst_searches import RESTARTS, search

LIMIT = 200_000
"""The most data sets that are tried unless told otherwise."""
SHARED = 1000
"""Samples among which the tables of a method are taken to be shared, when the method is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCase:
    """Stability, privacy loss and δ(ε) over the samples of size n. ``witness["stability"]`` and
    ``witness["privacy_loss"]`` hold the sample, its neighbour and the prediction.

    ``kind`` is "exhaustive", or "lower bound by search"; ``samples`` counts the data sets that were tried, ``possible``
    those that there are. ``pairs`` (F, 2) are the ln P, ln P′ that decide δ(ε)."""

    stability: float
    privacy_loss: float
    witness: Mapping[str, Witness]
    kind: Kind
    method: str
    samples: int
    possible: int
    pairs: NDArray[np.float64] = field(repr=False)

    @property
    def exhaustive(self) -> bool:
        return self.kind == "exhaustive"

    def delta(self, epsilon: float) -> float:
        """δ(ε) = max (P(y) − e^ε P′(y))₊ over the neighbouring samples, queries and labels; ε ≥ 0, may be inf."""
        return curves.delta(self.pairs, epsilon)


def worst_case(
    learner: Learner,
    hypotheses: HypothesisClass,
    n: int,
    *,
    method: str = "auto",
    limit: int = LIMIT,
    restarts: int = RESTARTS,
    seed: int = 0,
    progress: Progress | None = None,
) -> WorstCase:
    """Replace-one audit over the samples of ``n`` records on a finite X; queries are all of X.

    Exhaustive where there are no more than ``limit`` data sets. Otherwise a search (see ``worst_searches``) that tries
    ``limit`` data sets at most, from starts drawn by ``seed`` until ``restarts`` in a row find nothing better.
    ``progress`` is told how many data sets have been tried, of how many at most.

    Raises ValueError where X is not finite, where ``method`` is mc or no exact one is affordable, and where the learner
    is infeasible at n.
    """
    domain = hypotheses.domain
    if domain is None:
        hint = f"; points = {n + 2} have the worst case of the line" if _on_line(hypotheses) else ""
        raise ValueError(f"worst_case needs a finite X: give points to {hypotheses.kind}{hint}")
    if n < 1:
        raise ValueError(f"n = {n} must be at least 1")
    types = 2 * len(domain)
    if limit < types:
        raise ValueError(f"limit = {limit} must be at least {types}, a sample with each of its last record's types")
    if restarts < 1:
        raise ValueError(f"restarts = {restarts} must be at least 1")
    check_feasible(learner, hypotheses, n)
    sizes = tuple(np.bincount(learner.exchangeable(n)).tolist())
    size = prod(comb(m + types - 1, m) for m in sizes)
    check_applicable(learner, hypotheses, len(domain), n, method)
    chosen = learner.method(hypotheses, k=len(domain), n=n, asked=method, many=min(size, SHARED))
    if chosen == "mc":
        cause = "asked for" if method == "mc" else f"what is affordable for {learner.kind} here"
        raise ValueError(f"worst_case compares exact predictions, and 'mc' is {cause}: choose an exact method")
    if size > limit:
        found = search(
            learner, hypotheses, n, method=chosen, limit=limit, restarts=restarts, seed=seed, progress=progress
        )
        return WorstCase(
            stability=found.values["stability"],
            privacy_loss=found.values["privacy_loss"],
            witness=found.witness,
            kind="lower bound by search",
            method=chosen,
            samples=found.tried,
            possible=size,
            pairs=found.pairs,
        )
    return _exhaustive(learner, hypotheses, domain, sizes, chosen)


def _on_line(hypotheses: HypothesisClass) -> bool:
    return hypotheses.cellwise and hypotheses.features == 1


def _exhaustive(
    learner: Learner, hypotheses: HypothesisClass, domain: Points, sizes: tuple[int, ...], method: str
) -> WorstCase:
    types = 2 * len(domain)
    parts = [multisets(m, types) for m in sizes]
    if learner.ordered:
        tried = sequences(parts, learner.exchangeable(sum(sizes)))
    else:
        tried = parts[0].reshape(-1, len(domain), 2)
    log_p = batch_predictions(learner, hypotheses, domain, tried, domain, method=method)
    groups = joint_groups(parts)
    largest, least = extremes(log_p, groups)
    changes = {"stability": np.exp(largest) - np.exp(least), "privacy_loss": log_ratios(largest, least)}
    witness = {}
    for quantity, other in zip(changes, reversed(changes), strict=True):
        (g, q, y), _ = most_telling(changes[quantity], changes[other])
        rows = tried[groups[g]]
        if not learner.ordered:
            rows = np.stack([np.repeat(np.arange(types), own.ravel()) for own in rows])
        witness[quantity] = shown(domain, rows, log_p[groups[g], q, y], q, y, ordered=learner.ordered)
    return WorstCase(
        stability=float(changes["stability"].max()),
        privacy_loss=float(changes["privacy_loss"].max()),
        witness=witness,
        kind="exhaustive",
        method=method,
        samples=len(tried),
        possible=len(tried),
        pairs=curves.staircase(largest, least),
    )
