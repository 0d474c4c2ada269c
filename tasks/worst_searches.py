"""A search for the worst data set: in go a learner, a size n and a budget, out comes the worst that was found.

A state is n − 1 records R with a place left free; its value is the largest change among the data sets R + t, over all
types t, which are all neighbours of each other. From a state every step is looked at (another type for one record, or
for 2, 4, … of one type; where places differ, for one, or the free place is filled and another one freed), and the best
is taken while it is better: best improvement, from many starts, until a number of them in a row find nothing better.
Where steps are too many for the budget, some of them are drawn at each turn.

Always true: each data set is a real one, so that what is found is a lower bound; the result is a function of the seed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from predcube.tasks import curves
from predcube.tasks.answers import log_ratios
from predcube.tasks.audits import SAME, Progress, Rank, Witness, batch_predictions, most_telling, outranks
from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.learners.base import Learner, Points
from predcube.tasks.learners.records import counted
from predcube.tasks.seeds import stream
from predcube.tasks.worst_groups import shown

RESTARTS = 20
"""The search ends after so many starts in a row that find nothing better, unless told otherwise."""
TURNS, LOOKED = 40, 64
"""A turn looks at no more data sets than one part in so many of the budget, or than those of so many steps."""
KEPT = 2**24
"""Numbers of predictions that are kept at most."""
FREE = -1


@dataclass(slots=True, kw_only=True)
class Found:
    """The largest values, their witnesses and what these rank by, the pairs that decide δ(ε), and how many data sets
    were predicted."""

    values: dict[str, float] = field(default_factory=dict)
    witness: dict[str, Witness] = field(default_factory=dict)
    ranks: dict[str, Rank] = field(default_factory=dict)
    pairs: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2)))
    tried: int = 0


def search(
    learner: Learner,
    hypotheses: HypothesisClass,
    n: int,
    *,
    method: str,
    limit: int,
    restarts: int,
    seed: int,
    progress: Progress | None = None,
) -> Found:
    """The worst data sets of n ≥ 1 records found with ``limit`` predictions at most, ``limit`` ≥ 2k."""
    domain = hypotheses.domain
    assert domain is not None
    climb = _Climb(
        learner=learner,
        hypotheses=hypotheses,
        domain=domain,
        places=learner.exchangeable(n),
        method=method,
        limit=limit,
        progress=progress,
    )
    start = fruitless = 0
    while fruitless < restarts and climb.affordable > 0:
        before = dict(climb.found.values)
        for quantity in ("stability", "privacy_loss"):
            if climb.affordable > 0:
                _ascend(climb, quantity, stream(seed, "worst case", quantity, n, start))
        better = [climb.found.values[q] > before.get(q, -1.0) * (1 + SAME) for q in climb.found.values]
        start, fruitless = start + 1, 0 if any(better) else fruitless + 1
    return climb.found


def _ascend(climb: "_Climb", quantity: str, rng: np.random.Generator) -> None:
    """From a start drawn by ``rng`` to where no step is better, or to the end of the budget."""
    state = climb.canonical(_start(rng, len(climb.places), climb.types)[None])
    value = climb.values(state)[quantity][0]
    most = max(LOOKED, climb.limit // (TURNS * climb.types))
    while climb.affordable > 0 and np.isfinite(value):
        steps = climb.steps(state[0])
        looked = min(most, climb.affordable)
        if len(steps) > looked:
            steps = steps[np.sort(rng.choice(len(steps), looked, replace=False))]
        if not len(steps):
            return
        each = climb.values(steps)[quantity]
        best = int(each.argmax())
        if not each[best] > value * (1 + SAME):
            return
        state, value = steps[best : best + 1], each[best]


def _start(rng: np.random.Generator, n: int, types: int) -> NDArray[np.int64]:
    """n − 1 records of a few types, and a free place: worst data sets often hold few types, many times each."""
    few = rng.permutation(types)[: rng.integers(1, min(types, n) + 1)]
    found = rng.choice(few, n, p=rng.dirichlet(np.ones(len(few))))
    found[rng.integers(n)] = FREE
    return np.asarray(found)


@dataclass(slots=True, kw_only=True)
class _Climb:
    """States are rows (n,) of types with one ``FREE``, sorted within ``places`` of equal number."""

    learner: Learner
    hypotheses: HypothesisClass
    domain: Points
    places: NDArray[np.int64]
    method: str
    limit: int
    progress: Progress | None
    found: Found = field(default_factory=Found)
    known: dict[bytes, NDArray[np.float64]] = field(default_factory=dict)

    @property
    def affordable(self) -> int:
        """States that the rest of the budget pays for."""
        return (self.limit - self.found.tried) // self.types

    @property
    def types(self) -> int:
        return 2 * len(self.domain)

    def canonical(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Each row with the records sorted that may change places: (R, n)."""
        base = self.types + 1
        order = np.argsort(self.places, kind="stable")
        keys = np.sort(self.places * base + rows - FREE, axis=1)
        found = np.empty_like(rows)
        found[:, order] = keys % base + FREE
        return found

    def steps(self, state: NDArray[np.int64]) -> NDArray[np.int64]:
        """The states that are a step away, each once: (R, n)."""
        n, types = len(state), self.types
        if self.places.max() == 0:
            return self._multisets_near(state)
        filled = np.flatnonzero(state != FREE)
        codes = self.places[filled] * types + state[filled]
        filled = filled[np.unique(codes, return_index=True)[1]]  # one record of each kind
        record, kind = np.repeat(filled, types), np.tile(np.arange(types), len(filled))
        changed = np.repeat(state[None], len(record), axis=0)
        moved = changed.copy()
        changed[np.arange(len(record)), record] = kind
        moved[:, int(np.flatnonzero(state == FREE)[0])] = kind
        moved[np.arange(len(record)), record] = FREE
        joined = np.unique(self.canonical(np.concatenate([changed, moved])), axis=0)
        others: NDArray[np.int64] = joined[(joined != state).any(axis=1)].reshape(-1, n)
        return others

    def _multisets_near(self, state: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where all records may change places: 1, 2, 4, … records of one type become another."""
        counts = np.bincount(state[state != FREE], minlength=self.types)
        powers = [(a, 1 << e) for a, c in enumerate(counts.tolist()) for e in range(c.bit_length())]
        rows = []
        for a, size in powers:
            near = np.repeat(counts[None], self.types, axis=0)
            near[:, a] -= size
            near[np.arange(self.types), np.arange(self.types)] += size
            rows.append(np.delete(near, a, axis=0))
        if not rows:
            return np.empty((0, len(state)), dtype=np.int64)
        every = np.concatenate(rows)
        records = np.repeat(np.tile(np.arange(self.types), len(every)), every.ravel()).reshape(len(every), -1)
        return np.column_stack([np.full(len(records), FREE), records])

    def values(self, states: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
        """Of each state (R, n) the largest changes, (R,) for each quantity; the best of all are kept."""
        free = (states == FREE).argmax(axis=1)
        whole = np.repeat(states[:, None], self.types, axis=1)
        whole[np.arange(len(states))[:, None], np.arange(self.types), free[:, None]] = np.arange(self.types)
        flat = self.canonical(whole.reshape(-1, states.shape[1]))
        log_p = self._predictions(flat).reshape(len(states), self.types, len(self.domain), 2)
        largest, least = log_p.max(axis=1), log_p.min(axis=1)
        changes = {"stability": np.exp(largest) - np.exp(least), "privacy_loss": log_ratios(largest, least)}
        for quantity, other in zip(changes, reversed(changes), strict=True):
            (r, q, y), rank = most_telling(changes[quantity], changes[other])
            self.found.values[quantity] = max(self.found.values.get(quantity, 0.0), float(changes[quantity].max()))
            if quantity not in self.found.ranks or outranks(rank, self.found.ranks[quantity]):
                rows = flat.reshape(len(states), self.types, -1)[r]
                self.found.ranks[quantity] = rank
                self.found.witness[quantity] = shown(
                    self.domain, rows, log_p[r, :, q, y], q, y, ordered=self.learner.ordered
                )
        pairs = np.stack([largest.ravel(), least.ravel()], axis=1)
        self.found.pairs = curves.staircase(*np.concatenate([self.found.pairs, pairs]).T)
        return {quantity: change.max(axis=(1, 2)) for quantity, change in changes.items()}

    def _predictions(self, samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln P of data sets (R, n), those that are known not computed again: (R, Q, 2)."""
        distinct, place = np.unique(samples, axis=0, return_inverse=True)
        keys = [row.tobytes() for row in distinct]
        new = [i for i, key in enumerate(keys) if key not in self.known]
        if new:
            if len(self.known) * 2 * len(self.domain) > KEPT:
                self.known.clear()
                new = list(range(len(keys)))
            self._learn((keys[i] for i in new), distinct[new])
        return np.stack([self.known[key] for key in keys])[place.reshape(-1)]

    def _learn(self, keys: Iterable[bytes], rows: NDArray[np.int64]) -> None:
        given = rows if self.learner.ordered else counted(rows, len(self.domain))
        logs = batch_predictions(self.learner, self.hypotheses, self.domain, given, self.domain, method=self.method)
        self.known.update(zip(keys, logs, strict=True))
        self.found.tried += len(rows)
        if self.progress is not None:
            self.progress(min(self.found.tried, self.limit), self.limit)
