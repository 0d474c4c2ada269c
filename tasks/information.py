"""Predictability under log loss as information: in go a prior over small data sets and a mechanism's chances, out come
the identities of P2 (Theorems 2.4 and 2.7, Definition 2.6, Theorem A.9), each side computed by its own sum.

A world is a finite list of data sets S ∈ {0, …, V − 1}^N with a prior, and a mechanism's law over a finite range:
``chances[s, a]`` = Pr[A(S_s) = a]. Everything is exact, in nats, and costs a pass over the list: a means of checking,
for tables of a few rows. For a released count of a long table see ``finite_counts``.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr, xlogy

from predcube.tasks.finite_counts import CountNoise

GAP = 1e-12
"""Distance, in nats, between the two bounds of a capacity at which it is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Data sets, their prior and the mechanism.

    ``datasets``: (M, N) integers. ``prior``: (M,), sums to 1. ``chances``: (M, A), rows sum to 1.
    """

    datasets: NDArray[np.int64]
    prior: NDArray[np.float64]
    chances: NDArray[np.float64]

    def __post_init__(self) -> None:
        listed = len(self.datasets)
        if self.datasets.ndim != 2 or self.prior.shape != (listed,) or self.chances.shape[:1] != (listed,):
            raise ValueError("give one row of datasets and of chances for every element of the prior")
        for name, sums in (("prior", self.prior.sum()), ("chances", self.chances.sum(axis=1))):
            if not np.allclose(sums, 1.0, atol=1e-9):
                raise ValueError(f"{name} must sum to 1")
        if np.any(self.prior < 0) or np.any(self.chances < 0):
            raise ValueError("probabilities must not be negative")


def all_datasets(rows: int, values: int = 2) -> NDArray[np.int64]:
    """Every data set of N = ``rows`` records in {0, …, values − 1}, in lexicographic order: (values^N, N)."""
    return np.array(list(product(range(values), repeat=rows)), dtype=np.int64).reshape(-1, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGain:
    """What a release gains a Bayes attacker under log loss, in nats, of one query and one set of known rows.

    ``by_dataset``: (M,) the gain at each data set S; ``average`` over the prior; ``divergence``, E KL(P(q(x) | C, A) ‖
    P(q(x) | C)); ``information``, I(q(x); A | C). The last three are equal (Theorem 2.4), and the largest of the first
    is at least as large. ``largest_ratio``: max |ln P(q(x) | C, A)/P(q(x) | C)|, at most ε for an ε-private A when all
    rows but one are known (Theorem A.9); inf where a release rules a value out.
    """

    by_dataset: NDArray[np.float64]
    average: float
    divergence: float
    information: float
    largest_ratio: float


def log_gain(world: World, query: ArrayLike, known: ArrayLike) -> LogGain:
    """The gain of predicting ``query`` (V,), an integer for each value of a record, at a row drawn uniformly from those
    not in ``known`` (row numbers, seen with their place). ValueError if every row is known."""
    answers = np.asarray(query, dtype=np.int64)[world.datasets]
    seen = np.asarray(known, dtype=np.int64).ravel()
    hidden = np.setdiff1d(np.arange(world.datasets.shape[1]), seen)
    if len(hidden) == 0:
        raise ValueError("every row is known: leave at least one to be predicted")
    kinds = int(answers.max()) + 1
    # The law of q(x) given S, x a random hidden row.
    shares = np.stack([(answers[:, hidden] == y).mean(axis=1) for y in range(kinds)], axis=1)
    _, held = np.unique(world.datasets[:, seen], axis=0, return_inverse=True)
    classes = int(held.max()) + 1
    joint = np.zeros((classes, world.chances.shape[1], kinds))
    np.add.at(joint, held.ravel(), world.prior[:, None, None] * world.chances[:, :, None] * shares[:, None, :])
    before = _share(joint.sum(axis=1))[:, None, :]
    after = _share(joint)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(joint > 0, np.log(after / before), 0.0)
        ruled_out = (after == 0) & (before > 0) & (joint.sum(axis=2, keepdims=True) > 0)
    by_dataset = np.einsum("ma,my,may->m", world.chances, shares, ratio[held.ravel()])
    seen_mass = joint.sum(axis=2)
    return LogGain(
        by_dataset=by_dataset,
        average=float(world.prior @ by_dataset),
        divergence=float(np.sum(seen_mass * np.sum(rel_entr(after, before), axis=2))),
        information=_entropy(joint.sum(axis=1))
        - _entropy(joint.sum(axis=(1, 2)))
        + _entropy(seen_mass)
        - _entropy(joint),
        largest_ratio=float("inf") if np.any(ruled_out) else float(np.max(np.abs(ratio))),
    )


def worst_gain(world: World) -> float:
    """γ(P_DP, all binary queries, log loss): the largest over data sets, the row that is not known, and binary queries
    chosen for the data set (P2, Definition 2.3 with n = N − 1).

    At least ``known_rest_information``: where the query is "is x_i the value it has", its average over the prior is
    I(x_i; A | rest). (P2's proof of Theorem 2.7 goes by one query for all data sets, which gives I(q(x_i); A | rest)
    alone: less than I(x_i; A | rest) where records take more than two values.)
    """
    values = int(world.datasets.max()) + 1
    rows = world.datasets.shape[1]
    worst = 0.0
    for row in range(rows):
        rest = np.delete(np.arange(rows), row)
        for query in product((0, 1), repeat=values):
            gains = log_gain(world, query, rest).by_dataset
            worst = max(worst, float(np.max(gains[world.prior > 0])))
    return worst


def known_rest_information(world: World) -> float:
    """max over i of I(x_i; A | all other rows) under the world's own prior, in nats."""
    rows = world.datasets.shape[1]
    identity = np.arange(int(world.datasets.max()) + 1)
    return max(log_gain(world, identity, np.delete(np.arange(rows), i)).information for i in range(rows))


def mutual_information_privacy(world: World) -> float:
    """The ε of mutual-information privacy: sup over priors and rows of I(x_i; A | all other rows), in nats
    (P2 Definition 2.6; Cuff & Yu 2016). The world's own prior plays no part.

    Given the other rows the mechanism is a channel from x_i to A, and the best prior sits where its capacity is
    largest. Every data set that differs in x_i alone must be listed for a row to count.
    """
    rows = world.datasets.shape[1]
    largest = 0.0
    for row in range(rows):
        rest = np.delete(world.datasets, row, axis=1)
        _, group = np.unique(rest, axis=0, return_inverse=True)
        for g in range(int(group.max()) + 1):
            largest = max(largest, capacity(world.chances[group.ravel() == g]))
    return largest


def privacy_loss(world: World) -> float:
    """The ε of pure differential privacy: the largest log-ratio of chances over data sets that differ in one row; inf
    where a release is possible under one alone."""
    apart = np.sum(world.datasets[:, None, :] != world.datasets[None, :, :], axis=2) == 1
    first, second = np.nonzero(apart)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(world.chances[first] / world.chances[second])
    return float(np.nanmax(ratio, initial=0.0))


def capacity(chances: NDArray[np.float64]) -> float:
    """Capacity of a channel (X, A) in nats, to ``GAP``, by Blahut–Arimoto: max over laws of x of I(x; a)."""
    if len(chances) == 1:
        return 0.0
    law = np.full(len(chances), 1.0 / len(chances))
    while True:
        divergence = np.sum(rel_entr(chances, law @ chances), axis=1)
        lower, upper = float(law @ divergence), float(np.max(divergence))
        if upper - lower <= GAP:
            return lower
        law = law * np.exp(divergence - upper)
        law /= law.sum()


def count_privacy(noise: CountNoise) -> float:
    """The ε of mutual-information privacy of a released count under ``noise``, in nats: ln 2 without noise.

    Given the other rows one record shifts the noise by 0 or 1. The noise is symmetric, so the best prior is ½, and the
    value is the Jensen–Shannon divergence of f(t) and f(t − 1).
    """
    if noise.negligible:
        return float(np.log(2.0))
    value, before = np.inf, -np.inf
    for found in noise.expectations(np.eye(2)[:, :, None] / 2, _log_odds_of_truth):
        value = (float(found[0, 0, 0]) + float(found[1, 1, 0])) / 2
        if abs(value - before) <= GAP:
            break
        before = value
    return value


def group_privacy_loss(noise: CountNoise, members: int) -> float:
    """The ε that a released count has for a group of ``members`` rows changed together: members ÷ scale for Laplace
    noise; inf for Gaussian noise, which has no pure ε, and without noise."""
    if noise.kind == "laplace":
        assert noise.scale is not None
        return members / noise.scale
    return float("inf")


def _log_odds_of_truth(densities: NDArray[np.float64]) -> NDArray[np.float64]:
    """ln of density ÷ mean density, for either count (their weights are ½)."""
    logs = np.log(densities, out=np.zeros_like(densities), where=densities > 0)
    total = np.log(np.sum(densities, axis=0))
    return np.asarray(logs + np.log(2.0) - total)


def _share(joint: NDArray[np.float64]) -> NDArray[np.float64]:
    total = joint.sum(axis=-1, keepdims=True)
    return np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)


def _entropy(masses: NDArray[np.float64]) -> float:
    return -float(np.sum(xlogy(masses, masses)))
