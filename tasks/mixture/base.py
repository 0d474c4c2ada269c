"""Weights of a mixture over hypotheses, and the one way a large computation of them is cut and put together.

A mixture learner predicts p_S(x) = Σ_h w_h h(x). In go the occupied points with their label counts, out come the
representatives h with log w_h. Weights are ≥ 0 and sum to 1.
"""

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import Points, Representatives

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
class MixtureWeights:
    """Representatives of the hypotheses with weight and their log-weights (−inf where a weight is exactly 0).

    ``batches`` is None for an exact method; for ``mc`` it is the (B, M) array of the weights in each of B
    independent equal batches of sampled subsets, whose mean is the weights and from whose spread the standard
    error of any linear functional of the weights follows.
    """

    representatives: Representatives  # (M,) or (M, parameters)
    log_weights: NDArray[np.float64]  # (M,)
    method: str  # analytic | laplace | support | enumerate | mc | exact
    batches: NDArray[np.float64] | None = None  # (B, M)
    subsets: int = 0  # subsets visited or sampled, 0 where none were
    relative: bool = True  # every log-weight is right to relative precision, not only the large ones

    @property
    def weights(self) -> NDArray[np.float64]:
        return np.exp(self.log_weights)

    @property
    def exact(self) -> bool:
        return self.batches is None

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """Of each weight: zeros when exact. Shape (M,)."""
        return self.functional_standard_error(np.eye(len(self.log_weights)))

    def functional_standard_error(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standard error of Σ_h w_h values[h, q] for each column q of ``values`` (M, Q). Shape (Q,)."""
        if self.batches is None:
            return np.zeros(values.shape[1])
        means = self.batches @ values
        return np.asarray(means.std(axis=0, ddof=1) / np.sqrt(len(means)))


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
    def finish(self, total: Any) -> MixtureWeights: ...


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


def evaluate(workload: Workload) -> MixtureWeights:
    """The whole workload in this process: the same tree, so the same bits, as any fan-out of it."""
    return workload.finish(subtree(workload, height(workload.blocks), 0))
