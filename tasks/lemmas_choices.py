"""The same two ratios for `private_lwy`, whose answer follows from which records are drawn, not from their set alone.

Records of one chunk and type are alike, so a choice of n' records is told by how many are drawn of each (chunk, type).
With the choice held fixed, a replaced record that is not drawn moves every answer by e^ε at most. Exchanging a drawn
record for another moves it by 4e³ at most where n' ≥ εn (``bounds.relabelled_swap_ratio_bound`` derives both).

Always true: where ``exact`` says so a value is a maximum over all choices, else over drawn ones.
"""

import math

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.answers import log_ratios
from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.learners import submultisets
from predcube.tasks.learners.private_lwy import Drawn, PrivateLwy
from predcube.tasks.learners.records import Records
from predcube.tasks.learners.relabelling import Relabelling
from predcube.tasks.lemmas_subsets import DRAWN, EXCHANGES, asked
from predcube.tasks.mixture import subsets
from predcube.tasks.moves import Draws

CHOICES = 2**11
"""Up to so many choices are all visited."""


def swap_ratio(learner: PrivateLwy, hypotheses: HypothesisClass, sample: Records, *, exact: bool, rng: Draws) -> float:
    """max P_{S,I}(y|x)/P_{S,J}(y|x) over I, J = I ∖ {j} ∪ {i}, x and y, or over ``EXCHANGES`` drawn ones."""
    answers = _Answers(learner, hypotheses, sample)
    cells, n = len(answers.held), sample.n
    if exact:
        chosen = submultisets.choices(answers.held, answers.size, 0, submultisets.count(answers.held, answers.size))
        logs = answers.logs(chosen)
        number = {row.tobytes(): u for u, row in enumerate(chosen)}
        largest = 0.0
        one = np.eye(cells, dtype=np.int64)
        for a in range(cells):
            for b in range(cells):
                if a != b:
                    u = np.flatnonzero((chosen[:, a] > 0) & (chosen[:, b] < answers.held[b]))
                    to = [number[row.tobytes()] for row in chosen[u] - one[a] + one[b]]
                    largest = max(largest, float((logs[u] - logs[to]).max(initial=0.0)))
        return math.exp(largest)
    drawn = answers.place[subsets.sampled(rng(), EXCHANGES, n, answers.size + 1)]
    pair = [_tallied(part, cells) for part in (drawn[:, :-1], drawn[:, 1:])]
    logs = answers.logs(np.concatenate(pair))
    return math.exp(max(0.0, float((logs[:EXCHANGES] - logs[EXCHANGES:]).max())))


def subset_ratio(
    learner: PrivateLwy, hypotheses: HypothesisClass, sample: Records, *, exact: bool, rng: Draws
) -> float:
    """max P_{S,I}(y|x)/P_{S′,I}(y|x), either way round, over S′ that has another record at a place outside I, x, y and
    I, or over ``DRAWN`` drawn I. On a real X new records stand at the sample's points, so that it is a lower bound."""
    answers = _Answers(learner, hypotheses, sample)
    if exact:
        chosen = submultisets.choices(answers.held, answers.size, 0, submultisets.count(answers.held, answers.size))
    else:
        drawn = answers.place[subsets.sampled(rng(), DRAWN, sample.n, answers.size)]
        chosen = np.unique(_tallied(drawn, len(answers.held)), axis=0)
    base = answers.logs(chosen)
    left = answers.whole - answers.spread(chosen).sum(axis=1)  # (U, 2k) of each type that are not drawn
    one = np.eye(len(answers.whole), dtype=np.int64)
    largest = 0.0
    for old in range(len(one)):
        u = np.flatnonzero(left[:, old] > 0)
        for new in range(len(one)):
            if new != old and len(u):
                changed = answers.logs(chosen[u], answers.whole - one[old] + one[new])
                largest = max(largest, float(log_ratios(changed, base[u]).max()))
    return math.exp(largest)


def choices(hypotheses: HypothesisClass, learner: PrivateLwy, n: int) -> float:
    """The most choices that a sample of n records on a finite X has; ∞ on a real one."""
    domain = hypotheses.domain
    if domain is None:
        return math.inf
    cells = min(n, 2 * len(domain) * learner._chunks)
    held = n // cells + (np.arange(cells) < n % cells).astype(np.int64)
    return float(submultisets.count(held, learner._size(n)))


class _Answers:
    """The answers of one sample given the choice of records: ``held`` (cells,) records of each occupied (chunk, type),
    ``place`` (n,) each record's cell, ``whole`` (2k,) the sample by type."""

    def __init__(self, learner: PrivateLwy, hypotheses: HypothesisClass, sample: Records) -> None:
        domain = hypotheses.domain
        over = sample if domain is None else sample.over(domain)
        self.queries = asked(hypotheses, sample.points)
        self.work = Drawn(
            learner=learner,
            hypotheses=hypotheses,
            points=over.points,
            types=over.order,
            queries=self.queries,
            samples=None,
            seed=0,
        )
        self.voted = Relabelling(
            hypotheses=hypotheses, points=over.points, labels=hypotheses.labelings(over.points), queries=self.queries
        )
        self.numbers, self.held, self.place = self.work._cells
        self.size = learner._size(sample.n)
        self.chunks = learner._chunks
        self.whole: NDArray[np.int64] = np.bincount(over.order, minlength=2 * len(over.points))

    def spread(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Choices (U, cells) by chunk and type: (U, r, 2k)."""
        flat = np.zeros((len(chosen), self.chunks * len(self.whole)), dtype=np.int64)
        flat[:, self.numbers] = chosen
        return flat.reshape(len(chosen), self.chunks, -1)

    def logs(self, chosen: NDArray[np.int64], whole: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """ln P(y|x) given each choice, of the sample or of one with ``whole`` by type: (U, Q, 2)."""
        held = self.whole if whole is None else whole
        return np.asarray(np.log(self.work.answers(self.voted, self.spread(chosen), held)))


def _tallied(cells: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """How often each cell stands in each row: (U, m) → (U, count)."""
    flat = (np.arange(len(cells))[:, None] * count + cells).ravel()
    return np.bincount(flat, minlength=len(cells) * count).reshape(len(cells), count)
