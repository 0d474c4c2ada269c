"""Weights of a mixture over hypotheses, and the one way a large computation of them is cut and put together.

A mixture learner predicts p_S(x) = Σ_h w_h h(x). In go the occupied points with their label counts, out come the
representatives h with log w_h. Weights are ≥ 0 and sum to 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Points, Representatives

LEAF_OPERATIONS = 2**24
"""About how many elementary operations one block of a workload holds. A count, never a timing: where a computation
is cut decides in which order floating-point sums are taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """A sample as a multiset: its distinct points in sorted order and how often each label stands at each.

    ``points``: (k,) or (k, features); ``counts``: (k, 2) integers, column y counts the label y. A finite X may be
    given whole, with zero counts at the points that do not occur.
    """

    points: Points
    counts: NDArray[np.int64]

    @property
    def n(self) -> int:
        return int(self.counts.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """p_S at some queries. All arrays have shape (queries,); ``standard_error`` (of p) is 0 when exact. ``log_p1`` and
    ``log_p0`` are log p and log(1 − p), each from its own sum: never log1p(−p)."""

    p: NDArray[np.float64]
    log_p1: NDArray[np.float64]
    log_p0: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    method: str


type Functional = Callable[[Representatives], NDArray[np.float64]]
"""Values (M, Q) of representatives (M, …), affine in the function h."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels:
    """The functional behind predictions: h and 1 − h at some queries, (M, 2·Q)."""

    hypotheses: HypothesisClass
    queries: Points

    def __call__(self, representatives: Representatives) -> NDArray[np.float64]:
        labels = self.hypotheses.predict(representatives, self.queries).astype(np.float64)
        return np.concatenate([labels, 1.0 - labels], axis=1)


class Mixture(Protocol):
    """A probability distribution over hypotheses, as far as it must be known.

    Three forms exist: ``MixtureWeights`` has the weight of every hypothesis; ``Marginals`` has Pr[h(x) = 1] at every
    point, which is all that predictions and errors need and, on a cube of 2^k functions, all that fits; ``Means`` has
    the mean of one functional, all that fits where a class has no numbers for its hypotheses and subsets are many.
    """

    @property
    def representatives(self) -> Representatives:
        """Hypotheses on which ``expectation`` wants its values: (M,) or (M, parameters)."""
        ...

    @property
    def method(self) -> str: ...  # analytic | laplace | support | enumerate | mc | exact
    @property
    def exact(self) -> bool: ...  # False for mc
    @property
    def relative(self) -> bool: ...  # every log is right to relative precision, however small the probability
    @property
    def subsets(self) -> int: ...  # subsets visited or sampled, 0 where none were

    def expectation(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """E_h[values] for ``values`` (M,) or (M, Q) given on ``representatives``, where values is *affine* in the
        function h, as every error Σ_x D(x, y)·|h(x) − y| is: ``mixture.expectation(population.errors(hypotheses,
        mixture.representatives))`` is the exact error of the mixture. Shape () or (Q,)."""
        ...

    def functional_standard_error(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standard error of ``expectation(values)``: zeros when exact. Shape () or (Q,)."""
        ...

    def mean(self, functional: Functional) -> NDArray[np.float64]:
        """E_h of what ``functional`` gives, as ``expectation`` does: shape (Q,)."""
        ...

    def mean_standard_error(self, functional: Functional) -> NDArray[np.float64]:
        """Standard error of ``mean``: zeros when exact."""
        ...

    def predict(self, hypotheses: HypothesisClass, queries: Points) -> Prediction:
        """p_S(x) = Pr[h(x) = 1] at each query, before any flip."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureWeights:
    """Representatives of the hypotheses with weight and their log-weights (−inf where a weight is exactly 0).

    ``batches`` is None for an exact method; for ``mc`` it is the (B, M) array of the weights in each of B
    independent equal batches of sampled subsets, whose mean is the weights and from whose spread the standard
    error of any linear functional of the weights follows. ``effective_subsets`` is then (Σ_I 1/Z_I)²/Σ_I 1/Z_I²: in
    w_h = λ_h E_I[1{h ∈ H_T}/Z_I] the subsets drawn bear unequal shares, and it is Kish's number of equal ones that
    would give the weight of a hypothesis of every H_T as sharply. 0 for an exact method.
    """

    representatives: Representatives  # (M,) or (M, parameters)
    log_weights: NDArray[np.float64]  # (M,)
    method: str
    batches: NDArray[np.float64] | None = None  # (B, M)
    subsets: int = 0
    effective_subsets: float = 0.0
    relative: bool = True

    @property
    def weights(self) -> NDArray[np.float64]:
        return np.exp(self.log_weights)

    @property
    def exact(self) -> bool:
        return self.batches is None

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """Of each weight: zeros when exact. Shape (M,)."""
        if self.batches is None:
            return np.zeros(len(self.log_weights))
        return np.asarray(self.batches.std(axis=0, ddof=1) / np.sqrt(len(self.batches)))

    def expectation(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return weighted(self.weights, values)

    def functional_standard_error(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.batches is None:
            return np.zeros(np.shape(values)[1:])
        means = weighted(self.batches, values)
        return np.asarray(means.std(axis=0, ddof=1) / np.sqrt(len(means)))

    def mean(self, functional: Functional) -> NDArray[np.float64]:
        return self.expectation(functional(self.representatives))

    def mean_standard_error(self, functional: Functional) -> NDArray[np.float64]:
        if self.batches is None:
            return np.zeros(functional(self.representatives).shape[1])
        return self.functional_standard_error(functional(self.representatives))

    def predict(self, hypotheses: HypothesisClass, queries: Points) -> Prediction:
        labels = hypotheses.predict(self.representatives, queries)
        one = labels.astype(bool)
        log_p1 = log_sum(np.where(one, self.log_weights[:, None], -np.inf))
        log_p0 = log_sum(np.where(one, -np.inf, self.log_weights[:, None]))
        error = self.functional_standard_error(labels.astype(np.float64))
        return Prediction(p=np.exp(log_p1), log_p1=log_p1, log_p0=log_p0, standard_error=error, method=self.method)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginals:
    """The same distribution known by its marginals alone, for a class of *all* functions on X (``free``): row i of
    ``log_p1`` and ``log_p0`` is log Pr[h(x) = 1] and log Pr[h(x) = 0] at the i-th occupied point; off them h is 0.

    ``representatives`` are the zero function and, for each occupied point, the function that is 1 there alone, in
    that order: (k + 1,) or (k + 1, parameters). Any affine functional of h is settled by its values on them.
    """

    representatives: Representatives
    log_p1: NDArray[np.float64]  # (k,)
    log_p0: NDArray[np.float64]  # (k,)
    method: str
    subsets: int = 0
    relative: bool = True

    @property
    def exact(self) -> bool:
        return True

    def expectation(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(values[0] + weighted(np.exp(self.log_p1), values[1:] - values[0]))

    def functional_standard_error(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.zeros(np.shape(values)[1:])

    def mean(self, functional: Functional) -> NDArray[np.float64]:
        return self.expectation(functional(self.representatives))

    def mean_standard_error(self, functional: Functional) -> NDArray[np.float64]:
        return np.zeros(functional(self.representatives).shape[1])

    def predict(self, hypotheses: HypothesisClass, queries: Points) -> Prediction:
        at = hypotheses.predict(self.representatives, queries).astype(bool)  # (k + 1, queries): row 0 is all False
        log_p1 = np.append(-np.inf, self.log_p1)[at.argmax(axis=0)]
        log_p0 = np.append(0.0, self.log_p0)[at.argmax(axis=0)]
        return Prediction(
            p=np.exp(log_p1), log_p1=log_p1, log_p0=log_p0, standard_error=np.zeros(len(log_p1)), method=self.method
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """The mean of one ``functional`` alone, from sampled subsets: ``batches`` (B, Q) has it for each of B independent
    equal batches. ValueError where anything else is asked for."""

    functional: Functional
    batches: NDArray[np.float64]
    subsets: int
    effective_subsets: float
    method: str = "mc"
    relative: bool = True
    exact: bool = False

    @property
    def representatives(self) -> Representatives:
        raise ValueError("the weights were not kept, only means; ask for weights, or for mean(functional)")

    def expectation(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        raise ValueError("the weights were not kept, only means; ask for weights, or for mean(functional)")

    functional_standard_error = expectation

    def mean(self, functional: Functional) -> NDArray[np.float64]:
        self._check(functional)
        return np.asarray(self.batches.mean(axis=0))

    def mean_standard_error(self, functional: Functional) -> NDArray[np.float64]:
        self._check(functional)
        return np.asarray(self.batches.std(axis=0, ddof=1) / np.sqrt(len(self.batches)))

    def predict(self, hypotheses: HypothesisClass, queries: Points) -> Prediction:
        known = self.functional
        if not (isinstance(known, Labels) and np.array_equal(known.queries, queries)):
            raise ValueError("the weights were not kept, only other means; make the workload for these queries")
        p, q = np.split(self.batches.mean(axis=0), 2)
        with np.errstate(divide="ignore"):
            log_p1, log_p0 = np.log(p), np.log(q)
        error = self.mean_standard_error(known)[: len(p)]
        return Prediction(p=p, log_p1=log_p1, log_p0=log_p0, standard_error=error, method=self.method)

    def _check(self, functional: Functional) -> None:
        if functional is not self.functional:
            raise ValueError("the mean of another functional was computed; make the workload for this one")


def weighted(weights: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ_h weights[…, h]·values[h, …]. Not a product by BLAS, whose last digit may follow its number of threads."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim == 1 and weights.ndim == 1:
        return np.asarray((weights * values).sum())
    return np.asarray(np.einsum("...m,mq->...q", weights, values.reshape(len(values), -1))).reshape(
        weights.shape[:-1] + values.shape[1:]
    )


def log_sum(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """log Σ exp over axis 0; −inf where every term is −inf (or there is none)."""
    largest = np.max(terms, axis=0, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(shift + np.log(np.exp(terms - shift).sum(axis=0)))


class Partial(Protocol):
    """What some blocks of a workload have found: plain arrays, picklable; ``add`` is the one way two are put
    together."""

    def add(self, other: Self) -> Self: ...


class Workload(Protocol):
    """A computation cut into ``blocks`` numbered pieces whose partial results are combined in one fixed tree.

    ``partial(b)`` is a pure function of the block's number. ``cost`` counts elementary operations of one block.
    """

    @property
    def blocks(self) -> int: ...
    @property
    def cost(self) -> float: ...
    def partial(self, block: int) -> Any: ...
    def finish(self, total: Any) -> Mixture: ...


def subtree(workload: Workload, level: int, index: int) -> Any:
    """The combined partial result of node ``index`` at height ``level`` of the fixed tree.

    Node (level, index) covers the blocks [index·2^level, (index+1)·2^level) that exist. Any set of nodes that
    covers the tree combines, pair by pair, into bitwise the same root: so one worker may compute a leaf or a whole
    subtree.
    """
    if level == 0:
        return workload.partial(index)
    left = subtree(workload, level - 1, 2 * index)
    if (2 * index + 1) << (level - 1) >= workload.blocks:
        return left
    return left.add(subtree(workload, level - 1, 2 * index + 1))


def height(blocks: int) -> int:
    """Height of the fixed tree over ``blocks`` leaves."""
    return max(blocks - 1, 0).bit_length()


def evaluate(workload: Workload) -> Mixture:
    """The whole workload in this process: the same tree, so the same bits, as any fan-out of it."""
    return workload.finish(subtree(workload, height(workload.blocks), 0))
