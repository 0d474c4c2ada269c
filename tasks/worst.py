"""The worst data set: in go a learner and a size n, out come the largest changes over all samples and neighbours.

On a finite X of k points a learner of a multiset sees C(n + 2k − 1, n) different samples. All are predicted, once each.
A learner that minds the order sees a multiset for each set of exchangeable positions (a chunk, say), which are any two.
Two samples are neighbours when taking one record from each leaves the same n − 1 records R; the samples R + t, over the
2k types t, are therefore all neighbours of each other, and their largest difference is a maximum less a minimum: no
pair is visited.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.answers import log_ratios
from predcube.tasks.audits import Kind, Witness, batch_predictions, place
from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.learners.base import Learner, Occupancy, Points
from predcube.tasks.learners.records import Records, counted
from predcube.tasks.predictions import check_applicable, check_feasible

LIMIT = 200_000
"""The most data sets that are tried unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCase:
    """Stability, privacy loss and δ(ε) over every sample of size n. ``witness["stability"]`` and
    ``witness["privacy_loss"]`` hold the sample, its neighbour and the prediction; ``samples`` counts the data sets."""

    stability: float
    privacy_loss: float
    witness: Mapping[str, Witness]
    kind: Kind
    method: str
    samples: int
    log_p: NDArray[np.float64] = field(repr=False)  # (samples, queries, 2)
    groups: NDArray[np.int64] = field(repr=False)  # (R, 2k): rows of log_p that are neighbours of each other

    @property
    def exhaustive(self) -> bool:
        return self.kind == "exhaustive"

    def delta(self, epsilon: float) -> float:
        """δ(ε) = max (P(y) − e^ε P′(y))₊ over all neighbouring samples, queries and labels; ε ≥ 0, may be inf."""
        if not epsilon >= 0:
            raise ValueError(f"epsilon = {epsilon} must be at least 0")
        largest, least = _extremes(self.log_p, self.groups)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(np.isneginf(least), 0.0, np.exp(least + epsilon))
        return float(max(0.0, np.max(np.exp(largest) - scaled)))


def worst_case(
    learner: Learner, hypotheses: HypothesisClass, n: int, *, method: str = "auto", limit: int = LIMIT
) -> WorstCase:
    """Replace-one audit over all samples of ``n`` records on a finite X, exhaustively; queries are all of X.

    Raises ValueError where X is not finite, where there are more than ``limit`` samples (with their number), where
    ``method`` is mc, and where the learner is infeasible at n.
    """
    domain = hypotheses.domain
    if domain is None:
        raise ValueError(f"worst_case needs a finite X: give points to {hypotheses.kind}")
    if n < 1:
        raise ValueError(f"n = {n} must be at least 1")
    check_feasible(learner, hypotheses, n)
    types = 2 * len(domain)
    sizes = tuple(np.bincount(learner.exchangeable(n)).tolist())
    size = prod(comb(m + types - 1, m) for m in sizes)
    if size > limit:
        raise ValueError(
            f"n = {n} on {len(domain)} points has {size} data sets, above limit = {limit}: lower n or the points, "
            "or raise limit"
        )
    check_applicable(learner, hypotheses, len(domain), n, method)
    chosen = learner.method(hypotheses, k=len(domain), n=n, asked=method, many=size)
    if chosen == "mc":
        raise ValueError("worst_case is exhaustive and takes no method = 'mc': choose an exact one")
    parts = [multisets(m, types) for m in sizes]
    tried = sequences(parts, learner.exchangeable(n)) if learner.ordered else parts[0].reshape(size, len(domain), 2)
    log_p = batch_predictions(learner, hypotheses, domain, tried, domain, method=chosen)
    groups = joint_groups(parts)
    largest, least = _extremes(log_p, groups)
    stability, loss = np.exp(largest) - np.exp(least), log_ratios(largest, least)
    return WorstCase(
        stability=float(stability.max()),
        privacy_loss=float(loss.max()),
        witness={
            "stability": _witness(domain, tried, log_p, groups, stability),
            "privacy_loss": _witness(domain, tried, log_p, groups, loss),
        },
        kind="exhaustive",
        method=chosen,
        samples=size,
        log_p=log_p,
        groups=groups,
    )


def multisets(n: int, types: int) -> NDArray[np.int64]:
    """All ways to put n records into ``types`` types: counts (C(n + types − 1, n), types), lexicographic order.

    >>> multisets(2, 2)
    array([[0, 2],
           [1, 1],
           [2, 0]])
    """
    # Rows for the last columns, by the number of records they hold, grow one column at a time.
    found = [np.full((1, 1), m, dtype=np.int64) for m in range(n + 1)]
    for _ in range(types - 1):
        found = [
            np.concatenate(
                [np.concatenate([np.full((len(found[m - c]), 1), c), found[m - c]], axis=1) for c in range(m + 1)]
            )
            for m in range(n + 1)
        ]
    return found[n]


def neighbour_groups(samples: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each multiset R of n − 1 records, the rows of ``samples`` (all multisets of n, lexicographic) that are
    R + t for each type t: shape (R, types)."""
    n, types = int(samples[0].sum()), samples.shape[1]
    rest = multisets(n - 1, types)
    rows = np.empty((len(rest), types), dtype=np.int64)
    for t in range(types):
        rest[:, t] += 1
        rows[:, t] = ranks(rest, n)
        rest[:, t] -= 1
    return rows


def joint_groups(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """``neighbour_groups`` of samples made of a multiset from each of ``parts``, numbered with the last part fastest:
    one part's records change, the others stay."""
    lengths = [len(part) for part in parts]
    found = []
    for i, part in enumerate(parts):
        own = neighbour_groups(part) * prod(lengths[i + 1 :])
        before = np.arange(prod(lengths[:i])) * prod(lengths[i:])
        after = np.arange(prod(lengths[i + 1 :]))
        rest = (before[:, None] + after).reshape(-1, 1, 1)
        found.append((rest + own).reshape(-1, own.shape[1]))
    return np.concatenate(found)


def sequences(parts: Sequence[NDArray[np.int64]], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """One sequence of types for each choice of a multiset from each of ``parts``, the last fastest: (R, n).
    ``positions`` (n,) tells which part each position belongs to."""
    lengths = [len(part) for part in parts]
    found = np.empty((prod(lengths), len(positions)), dtype=np.int64)
    which = np.unravel_index(np.arange(len(found)), lengths)
    for i, part in enumerate(parts):
        rows = np.tile(np.arange(part.shape[1]), len(part))
        listed = np.repeat(rows, part.ravel()).reshape(len(part), -1)
        found[:, positions == i] = listed[which[i]]
    return found


def ranks(samples: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Place of each multiset of n records in lexicographic order. Before it stand, for each type, those that agree so
    far and hold fewer records of this type: with m records left for the type and s types after it,
    Σ_{c < count} C(m − c + s − 1, s − 1) = C(m + s, s) − C(m − count + s, s)."""
    types = samples.shape[1]
    left = np.full(len(samples), n)
    found = np.zeros(len(samples), dtype=np.int64)
    for t in range(types - 1):
        after = types - 1 - t
        table = np.array([comb(m + after, after) for m in range(n + 1)])
        found += table[left] - table[left - samples[:, t]]
        left = left - samples[:, t]
    return found


def _extremes(
    values: NDArray[np.float64], groups: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Largest and least value within each group: (R, Q, 2) each, one type at a time to spare memory."""
    largest = values[groups[:, 0]]
    least = largest.copy()
    for t in range(1, groups.shape[1]):
        part = values[groups[:, t]]
        np.maximum(largest, part, out=largest)
        np.minimum(least, part, out=least)
    return largest, least


def _witness(
    domain: Points,
    tried: NDArray[np.int64],
    log_p: NDArray[np.float64],
    groups: NDArray[np.int64],
    values: NDArray[np.float64],
) -> Witness:
    """The two samples of one group that show the largest of ``values`` (R, Q, 2)."""
    g, q, y = np.unravel_index(int(values.argmax()), values.shape)
    logs = log_p[groups[g], q, y]
    # Where all are equal the least is the largest again, and that would be no replacement.
    old = int(logs.argmax())
    new = int(np.where(np.arange(len(logs)) == old, np.inf, logs).argmin())
    position = None
    if tried.ndim == 2:
        types, other = tried[groups[g, old]], tried[groups[g, new]]
        sample: Occupancy = Records(points=domain, counts=counted(types[None], len(domain))[0], order=types)
        # Within exchangeable positions records stand sorted; those that are of the old type may all be the one.
        position = int(np.flatnonzero((types == old) & (types != other))[0])
    else:
        sample = Occupancy(points=domain, counts=tried[groups[g, old]])
    return Witness(
        position=position,
        sample=sample,
        old=(place(domain[old // 2]), old % 2),
        new=(place(domain[new // 2]), new % 2),
        query=place(domain[q]),
        label=int(y),
        log_p=float(logs[old]),
        log_p_neighbour=float(logs[new]),
    )
