"""What holds for every hypothesis at once: in go a class and a sample, out come suprema over H.

* uniform deviation   sup_h |L_D(h) − L_S(h)| (Dagan & Feldman 2020, Lemma uniform-conv);
* relabelling error   sup_h E_{x∼D} |h(x) − φ_S(h)(x)|, φ_S(h) what a learner answers of S relabelled by h (Remark
  priv-real): the vote of `private` at its own privacy, any other learner's own answer.

Always true: a value said to be exact is the supremum. On a finite X and on a table it is a maximum over the labelings
of all points. On the line, hypotheses of one labelling of the sample differ in where their cuts stand between its
points; both |L_D − L_S| and E|h − φ| are convex in what share of such a gap is labelled 1, so that they are largest
where the cuts stand beside a point: at the next float, which is as good as the limit. Otherwise it is a maximum over
the class's representatives on the sample's points, and so a lower bound.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.answers import flipped
from predcube.tasks.distributions.base import Population
from predcube.tasks.distributions.populations import UniformPopulation
from predcube.tasks.distributions.table import HeldOut
from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points, Representatives
from predcube.tasks.hypotheses.points import distinct, locate
from predcube.tasks.learners.base import Learner, Occupancy
from predcube.tasks.learners.df_realizable import DfRealizable
from predcube.tasks.learners.private import Private
from predcube.tasks.learners.records import Records

PATTERNS = 2**12
"""Labelings of the sample that a learner is trained on at most."""
LABELS = 2**24
"""Labels (labelings × points) that are gone through for a supremum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supremum:
    """``value``, and whether it is ``exact`` or a lower bound."""

    value: float
    exact: bool


def uniform_deviation(hypotheses: HypothesisClass, population: Population, sample: Occupancy) -> Supremum:
    """sup_h |L_D(h) − L_S(h)|, L_D as the population measures it (for a table on the rows that S left out)."""
    shares = sample.counts / sample.n
    if hypotheses.free and not isinstance(population, UniformPopulation):
        return Supremum(value=_free_deviation(hypotheses, population, sample), exact=True)
    representatives, exact = _functions(hypotheses, population, sample.points)
    on_sample = hypotheses.loss(representatives, sample.points, shares)
    gap = np.abs(population.errors(hypotheses, representatives) - on_sample)
    return Supremum(value=float(gap.max()), exact=exact)


def relabelling_error(
    learner: Learner, hypotheses: HypothesisClass, population: Population, sample: Occupancy
) -> Supremum:
    """sup_h E|h(x) − φ_S(h)(x)|; the flip of `private` is no part of it, that of other learners is."""
    inner = realizable(learner, sample.n)
    queries, law = population.quadrature(hypotheses, sample.points)
    mass = law.sum(axis=1)
    own, said, exact = _labelled(hypotheses, population, sample.points, queries)
    patterns, place = np.unique(own, axis=0, return_inverse=True)
    if len(patterns) > PATTERNS:  # evenly spread over the canonical order
        kept = np.unique(np.linspace(0, len(patterns) - 1, PATTERNS).round().astype(np.int64))
        number = np.full(len(patterns), -1)
        number[kept] = np.arange(len(kept))
        rows = np.flatnonzero(number[place.reshape(-1)] >= 0)
        patterns, place, said, exact = patterns[kept], number[place.reshape(-1)[rows]], said[rows], False
    p = _trained(inner, hypotheses, sample, patterns, queries)[place.reshape(-1)]
    errors = np.where(said == 1, 1.0 - p, p) @ mass
    return Supremum(value=float(errors.max()), exact=exact)


def realizable(learner: Learner, n: int) -> Learner:
    """What is trained on the relabelled sample."""
    if not isinstance(learner, Private):
        return learner
    return DfRealizable(epsilon=learner._vote(n), alpha=learner.alpha, chunks=learner._chunks(n))


def exhaustive(hypotheses: HypothesisClass, population: Population, k: int) -> bool:
    """Whether suprema are over all of H, for a sample of up to k points: by counts alone."""
    if isinstance(population, UniformPopulation):
        return hypotheses.features == 1 and _few(hypotheses, 3 * k + 8)
    points = population.table.points if isinstance(population, HeldOut) else hypotheses.domain
    return points is not None and _few(hypotheses, len(points))


def _few(hypotheses: HypothesisClass, m: int) -> bool:
    count = hypotheses.growth(m)
    if count is None:
        count = sum(math.comb(m, i) for i in range(min(m, hypotheses.vc_dimension) + 1))
    return count * m <= LABELS


def _trained(
    learner: Learner, hypotheses: HypothesisClass, sample: Occupancy, patterns: Labels, queries: Points
) -> NDArray[np.float64]:
    """Pr[answer 1] at each query, the sample's points (k,) relabelled by each of ``patterns`` (P, k): (P, Q)."""
    points = sample.points if hypotheses.domain is None else hypotheses.domain
    where = locate(points, sample.points)
    if isinstance(sample, Records):
        place = sample.order // 2
        given = 2 * where[place] + patterns[:, place].astype(np.int64)
    else:
        held = sample.counts.sum(axis=1)
        given = np.zeros((len(patterns), len(points), 2), dtype=np.int64)
        given[:, where, 1] = patterns * held
        given[:, where, 0] = (1 - patterns.astype(np.int64)) * held
    method = learner.method(hypotheses, k=len(points), n=sample.n, many=len(patterns))
    logs = learner.batch(hypotheses, points, given, queries, method=method)
    return np.exp(flipped(logs, learner.flip)[:, :, 1])


def _functions(hypotheses: HypothesisClass, population: Population, own: Points) -> tuple[Representatives, bool]:
    """Hypotheses among which a supremum over H is reached, up to rounding, or some of them."""
    exact = exhaustive(hypotheses, population, len(own))
    if not exact:
        return hypotheses.representatives(own), False
    if isinstance(population, UniformPopulation):
        cuts = np.asarray(population.concept, dtype=np.float64).ravel()
        ends = np.concatenate([own, cuts[np.isfinite(cuts)], [0.0, 1.0]])
        beside = np.concatenate([ends, np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)])
        return hypotheses.representatives(distinct(beside)[0]), True
    points = population.table.points if isinstance(population, HeldOut) else hypotheses.domain
    assert points is not None
    return hypotheses.representatives(points), True


def _labelled(
    hypotheses: HypothesisClass, population: Population, own: Points, queries: Points
) -> tuple[Labels, Labels, bool]:
    """What the hypotheses of a supremum say on the sample's points (M, k) and at the queries (M, Q)."""
    exact = exhaustive(hypotheses, population, len(own))
    if exact and isinstance(population, UniformPopulation) and hypotheses.kind != "points":
        # A query stands for its whole gap. (A function that is 1 at single points is 0 on every gap.)
        points, _ = distinct(np.concatenate([own, queries]))
        labels = hypotheses.labelings(points)
        return labels[:, locate(points, own)], labels[:, locate(points, queries)], True
    representatives = hypotheses.representatives(own)
    if exact and not isinstance(population, UniformPopulation):
        representatives, _ = _functions(hypotheses, population, own)
    return hypotheses.predict(representatives, own), hypotheses.predict(representatives, queries), exact


def _free_deviation(hypotheses: HypothesisClass, population: Population, sample: Occupancy) -> float:
    """Every function being in H, L_D − L_S is largest point by point; turned round, a function has it with the other
    sign, since the gaps of both labels add up to 0."""
    points, law = population.quadrature(hypotheses, sample.points)
    joined, _ = distinct(np.concatenate([points, sample.points]))
    gap = np.zeros((len(joined), 2))
    gap[locate(joined, points)] += law
    gap[locate(joined, sample.points)] -= sample.counts / sample.n
    return float(gap.max(axis=1).sum())
