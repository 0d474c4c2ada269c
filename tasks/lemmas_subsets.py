"""Answers with the drawn records held fixed: in go a learner, a sample and sets T, out come the largest ratios of them.

h_{S,T} is what a learner answers of S when the points of its random subset are T: Σ_{h ∈ H_T} λ_h φ_S(h)/Z, λ_h =
exp(−β n L_S(h)), before any flip. φ is the identity, or the vote of `private`. Two lemmas compare such answers.

* One record of S replaced, T fixed (Dagan & Feldman 2020, Lemma S-Sp): P_{S,T}(y|x)/P_{S′,T}(y|x) is at most e^{2β} for
  the identity, and e^{2β + v} for votes of privacy v; e^{3/(ηn)} with β = v = 1/(ηn).
* One drawn record exchanged, S fixed (Lemma swap): P_{S,S_I}(y|x)/P_{S,S_J}(y|x) for J = I ∖ {j} ∪ {i}, at most 4e⁶
  where I ∖ {j} is an η-net of the records but j, and ηn ≥ 1.

Always true: where ``exact`` says so a value is a maximum over all sets T (and all exchanges); else over drawn ones, and
so is no more than that maximum.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predcube.tasks import nets
from predcube.tasks.answers import log_probabilities, log_ratios
from predcube.tasks.hypotheses.base import HypothesisClass, Points
from predcube.tasks.hypotheses.packing import pack
from predcube.tasks.hypotheses.points import locate
from predcube.tasks.learners.base import Learner, Occupancy
from predcube.tasks.learners.df_realizable import log_vote
from predcube.tasks.learners.private import Private
from predcube.tasks.learners.records import Records, counted
from predcube.tasks.learners.relabelling import Relabelling, places
from predcube.tasks.learners.stable_net import StableNet
from predcube.tasks.learners.subsampled import Subsampled
from predcube.tasks.mixture import subsets
from predcube.tasks.mixture.samples import mistakes, occupied
from predcube.tasks.moves import Draws, moves, pieces

DRAWN = 64
"""Sets T, where not all are visited."""
EXCHANGES = 256
"""Exchanged records, where not all are visited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a learner mixes given T: ``hypotheses`` whose H_T it weighs (a net of the class for `stable_net`), by β per
    record; ``size`` is n'. ``voting`` relabels by what was chosen and votes at privacy ``vote``; None and 0 where the
    answer is the hypothesis's own."""

    hypotheses: HypothesisClass
    size: int
    beta: float
    voting: Private | None = None
    vote: float = 0.0

    @property
    def spent(self) -> float:
        """2β + v: the most by which a replaced record moves ln P_{S,T}, T not changing."""
        return 2.0 * self.beta + self.vote

    def log_answers(
        self,
        whole: HypothesisClass,
        points: Points,
        samples: NDArray[np.int64],
        queries: Points,
        sets: NDArray[np.bool_],
    ) -> Iterator[NDArray[np.float64]]:
        """ln h_{S,T}(y|x) for each row T of ``sets`` (L, k): (B, Q, 2). ``samples`` (B, k, 2) counts, or (B, n) types
        where votes are taken; ``whole`` is the class."""
        counts = samples if samples.ndim == 3 else counted(samples, len(points))
        votes: list[tuple[NDArray[np.intp], NDArray[np.float64]]] = []
        voted = None
        if self.voting is not None:
            n = samples.shape[1]
            voted = Relabelling(hypotheses=whole, points=points, labels=whole.labelings(points), queries=queries)
            for members, ones in self.voting._distinct_votes(voted, samples):
                votes.append((members, np.exp(log_vote(ones, self.voting._chunks(n), self.voting._vote(n)))))
        for held in sets:
            representatives = self.hypotheses.representatives(points[held])
            log_weights = -self.beta * mistakes(self.hypotheses, representatives, points, counts)
            log_weights -= np.logaddexp.reduce(log_weights, axis=1, keepdims=True)
            if voted is None:
                yield log_probabilities(log_weights, self.hypotheses.predict(representatives, queries))
                continue
            rows = places(voted.labels, whole.predict(representatives, points))
            found = np.empty((len(counts), len(queries), 2))
            for members, answers in votes:
                found[members] = np.einsum("bm,mqy->bqy", np.exp(log_weights[members]), answers[rows])
            yield np.log(found)


def given(learner: Learner, hypotheses: HypothesisClass, n: int) -> Given | None:
    """What a learner mixes given T, or None where its answer is not told by the set T."""
    if isinstance(learner, Private):
        inner = learner._inner(n, hypotheses)
        return Given(
            hypotheses=hypotheses, size=inner._size(n), beta=inner._beta, voting=learner, vote=learner._vote(n)
        )
    if not isinstance(learner, Subsampled) or (isinstance(learner, StableNet) and learner._by_records):
        return None
    of: HypothesisClass = learner._net(hypotheses) if isinstance(learner, StableNet) else hypotheses
    return Given(hypotheses=of, size=learner._size(n), beta=learner._beta)


def all_sets(k: int, most: int) -> NDArray[np.bool_]:
    """Every set of 1 to ``most`` of k points: (L, k)."""
    bits = (np.arange(1, 2**k)[:, None] >> np.arange(k)) & 1
    return np.asarray(bits[bits.sum(axis=1) <= most], dtype=np.bool_)


def subset_ratio(
    learner: Learner,
    hypotheses: HypothesisClass,
    sample: Occupancy,
    *,
    exact: bool,
    neighbours: int,
    draws: Draws,
    rng: Draws,
) -> float:
    """max P_{S,T}(y|x)/P_{S′,T}(y|x), either way round, over neighbours S′, x, y and sets T of at most n' points of X,
    or ``DRAWN`` sets that S may give. ``draws`` draws neighbours where X is not finite, ``rng`` sets."""
    parts = given(learner, hypotheses, sample.n)
    assert parts is not None
    near = moves(learner, hypotheses, sample, None, limit=neighbours, rng=draws)
    drawn = None if exact else _drawn_sets(sample, parts.size, rng())
    largest = 0.0
    for block in near.blocks:
        points = block.sample.points
        sets = all_sets(len(points), parts.size) if drawn is None else _over(drawn, occupied(sample).points, points)
        for logs in parts.log_answers(hypotheses, points, block.samples(), block.queries, sets):
            largest = max(largest, float(log_ratios(logs[1:], logs[0]).max()))
    return math.exp(largest)


def swap_ratios(
    learner: Private, hypotheses: HypothesisClass, sample: Occupancy, holds: NDArray[np.bool_]
) -> tuple[float, float]:
    """max P_{S,S_I}(y|x)/P_{S,S_J}(y|x) over all exchanges of a drawn record for another, x and y: where I ∖ {j} is a
    net by ``holds`` (k, 2^k) (``lemmas_nets.nets_without``), and elsewhere; 1 where there is none."""
    parts = given(learner, hypotheses, sample.n)
    assert parts is not None
    assert isinstance(sample, Records)
    held = sample.counts.sum(axis=1)
    k, size = len(held), parts.size
    sets = all_sets(k, size)
    number = sets.astype(np.int64) @ (1 << np.arange(k))
    queries = asked(hypotheses, sample.points)
    logs = np.full((2**k, len(queries), 2), np.nan)
    for u, found in zip(
        number, parts.log_answers(hypotheses, sample.points, sample.order[None], queries, sets), strict=True
    ):
        logs[u] = found[0]
    every = np.arange(2**k)
    inside = (every[:, None] >> np.arange(k)) & 1
    largest = [0.0, 0.0]
    for a in range(k):
        for b in range(k):
            left = held - np.eye(k, dtype=np.int64)[a] - np.eye(k, dtype=np.int64)[b]
            if left.min() < 0:
                continue
            # The n' − 1 others have U for their points: of records that are left, at least one at each point of U.
            may = (inside @ (left == 0) == 0) & (inside.sum(axis=1) < size) & (inside @ left >= size - 1)
            u = every[may]
            change = (logs[u | (1 << a)] - logs[u | (1 << b)]).max(axis=(1, 2), initial=0.0)
            for where, of in ((0, holds[a, u]), (1, ~holds[a, u])):
                largest[where] = max(largest[where], float(change[of].max(initial=0.0)))
    return math.exp(largest[0]), math.exp(largest[1])


def drawn_swap_ratios(
    learner: Private, hypotheses: HypothesisClass, sample: Occupancy, eta: float, rng: np.random.Generator
) -> tuple[float, float]:
    """The same over ``EXCHANGES`` drawn exchanges."""
    parts = given(learner, hypotheses, sample.n)
    assert parts is not None
    assert isinstance(sample, Records)
    n, size, k = sample.n, parts.size, len(sample.points)
    if size == n:
        return 1.0, 1.0
    place = sample.order // 2
    drawn = subsets.sampled(rng, EXCHANGES, n, size + 1)  # the first leaves, the last comes in
    sets = np.zeros((2, EXCHANGES, k), dtype=np.bool_)
    for i, records in enumerate((drawn[:, :-1], drawn[:, 1:])):
        sets[i, np.arange(EXCHANGES)[:, None], place[records]] = True
    distinct, where = np.unique(sets.reshape(-1, k), axis=0, return_inverse=True)
    where = where.reshape(2, EXCHANGES)
    queries = asked(hypotheses, sample.points)
    logs = np.concatenate(
        list(parts.log_answers(hypotheses, sample.points, sample.order[None], queries, distinct)), axis=0
    )
    change = (logs[where[0]] - logs[where[1]]).max(axis=(1, 2))
    words = pack(hypotheses.labelings(sample.points)[:, place])
    most = int(np.floor(eta * (n - 1) * (1 + 1e-12)))
    largest = [0.0, 0.0]
    for row, moved in zip(drawn, change, strict=True):
        kept = np.zeros((1, n), dtype=np.uint8)
        kept[0, row[1:-1]] = 1
        # The record that leaves counts for nothing: its column is left out of every labelling.
        one = np.zeros((1, n), dtype=np.uint8)
        one[0, row[0]] = 1
        net = eta * n >= 1 and nets.is_net(words & ~pack(one), pack(kept)[0], most)
        largest[not net] = max(largest[not net], float(moved))
    return math.exp(largest[0]), math.exp(largest[1])


def asked(hypotheses: HypothesisClass, points: Points) -> Points:
    """Queries that tell all answers: X where it is finite, a point in each piece of the line; the sample's own points
    in several features, where they do not tell all."""
    if hypotheses.domain is not None:
        return hypotheses.domain
    return pieces(points) if hypotheses.features == 1 else points


def _drawn_sets(sample: Occupancy, size: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Sets of points of n' records of S: (DRAWN, occupied points)."""
    held = occupied(sample).counts.sum(axis=1)
    place = np.repeat(np.arange(len(held)), held)
    found = np.zeros((DRAWN, len(held)), dtype=np.bool_)
    found[np.arange(DRAWN)[:, None], place[subsets.sampled(rng, DRAWN, sample.n, size)]] = True
    return np.unique(found, axis=0)


def _over(sets: NDArray[np.bool_], own: Points, points: Points) -> NDArray[np.bool_]:
    """Sets of points ``own`` as sets of ``points`` that include them."""
    found = np.zeros((len(sets), len(points)), dtype=np.bool_)
    found[:, locate(points, own)] = sets
    return found
