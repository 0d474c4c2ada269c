"""What every learner offers: its parameters, the ones that follow from n, when it is infeasible, and its predictor.

In go a hypothesis class and a sample, out comes p_S(x) = Pr[A^S(x) = 1] with log p and log(1 − p), each computed as
its own sum.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Points, Representatives
from predcube.tasks.mixture.base import MixtureWeights, Occupancy, Prediction, Workload


class Learner(ABC):
    """A learner A. Concrete learners are frozen, keyword-only dataclasses whose fields are the parameters a spec may
    give; the fields' annotations carry their limits (``annotated_types``). Adjacency is replace-one everywhere."""

    __slots__ = ()

    kind: ClassVar[str]
    source: ClassVar[str]

    @abstractmethod
    def derived(self, n: int) -> Mapping[str, Any]:
        """The parameters that follow from the sample size: ``subset_size``, ``beta``, ``chunks``, … ."""

    def derived_with(self, hypotheses: HypothesisClass, n: int) -> Mapping[str, Any]:
        """The same where the class is known too, on which a parameter may depend."""
        return self.derived(n)

    @abstractmethod
    def infeasible(self, n: int, hypotheses: HypothesisClass) -> str | None:
        """Why the learner cannot run at sample size n, or None. Infeasible is not failed."""

    @property
    def mixes(self) -> bool:
        """Whether the prediction is a mixture of hypotheses of H (then flipped). Where it is not there are ``Answers``
        at given queries, by ``answering``, and no weights."""
        return True

    @property
    def ordered(self) -> bool:
        """Whether the prediction depends on the order of the records; then a sample is a ``Records``, and ``batch``
        takes (B, n) of types in place of counts."""
        return False

    def exchangeable(self, n: int) -> NDArray[np.int64]:
        """A number for each of n positions: records at positions of equal number may change places."""
        return np.zeros(n, dtype=np.int64) if not self.ordered else np.arange(n)

    def listed(self, n: int) -> int:
        """The most points whose labelings are listed at once."""
        size = self.derived(n).get("subset_size")
        return n if size is None else int(size)

    @abstractmethod
    def workload(
        self,
        hypotheses: HypothesisClass,
        sample: Occupancy,
        *,
        method: str = "auto",
        relative: bool = True,
        samples: int | None = None,
        seed: int | None = None,
        weights: bool = False,
    ) -> Workload:
        """The computation of the mixture's weights (before any flip), by ``method``. ``relative`` asks for relative
        precision of every weight, which log p needs. ``samples`` and ``seed`` are for ``mc``. ``weights`` asks for the
        weight of each hypothesis where marginals would do for predictions."""

    def answering(
        self,
        hypotheses: HypothesisClass,
        sample: Occupancy,
        queries: Points,
        *,
        method: str = "auto",
        samples: int | None = None,
        seed: int | None = None,
    ) -> Workload:
        """The computation of the answers at some queries, for a learner that does not mix hypotheses; finishes as
        ``Answers``."""
        raise ValueError(f"{self.kind} mixes hypotheses: ask for its weights")

    def method(self, hypotheses: HypothesisClass, *, k: int, n: int, asked: str = "auto", many: int = 1) -> str:
        """The way its mixture is computed on k distinct points, for ``many`` samples on them at once: decided by counts
        alone. ``exact`` for a learner that has only one way, whatever was asked."""
        return "exact"

    def inapplicable(self, hypotheses: HypothesisClass, *, k: int, n: int, asked: str) -> str | None:
        """Why the method that was asked for cannot be used on k distinct points, or None."""
        return None

    @abstractmethod
    def batch(
        self,
        hypotheses: HypothesisClass,
        points: Points,
        counts: NDArray[np.int64],
        queries: Points,
        *,
        method: str,
        samples: int | None = None,
        seed: int | None = None,
    ) -> NDArray[np.float64]:
        """ln Pr[answer y] before any flip, for B samples of one size on the same ``points`` (k,) with ``counts``
        (B, k, 2), or (B, n) of types where the learner is ``ordered``, at each query: shape (B, queries, 2), to
        relative precision. ``method`` is one that ``method()`` gives; under mc all samples share their subsets."""

    @abstractmethod
    def operations(
        self,
        hypotheses: HypothesisClass,
        method: str,
        *,
        k: int,
        n: int,
        many: int = 1,
        relative: bool = True,
        samples: int | None = None,
    ) -> tuple[str, float]:
        """Of the mixtures of ``many`` samples on k distinct points: the name of the code that runs and its elementary
        operations, for estimates of cost."""

    @property
    def flip(self) -> float:
        """The α of the last step p ← (1 − 2α)p + α; 0 where there is none."""
        return 0.0

    @abstractmethod
    def guaranteed_stability(self, n: int) -> float:
        """The γ this learner is known to satisfy at n (theorem named by the concrete class); 1 where none."""

    @abstractmethod
    def guaranteed_privacy_loss(self, n: int) -> float:
        """The ε this learner is known to satisfy at n; inf where none."""

    def parameters(self) -> Mapping[str, Any]:
        """The parameters, named as in a spec."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]


__all__ = [
    "HypothesisClass",
    "Learner",
    "MixtureWeights",
    "Occupancy",
    "Points",
    "Prediction",
    "Representatives",
    "Workload",
]
