"""What `stable` and its like share: in go γ or its overrides and n, out come n' and β, and with them the mixture.

The learner draws I ⊂ [n] of n' records uniformly and runs the exponential mechanism with weights exp(−β·n·L_S(h)) over
the hypotheses H_T that the points of S_I tell apart. Everything else about it follows from (n', β):

* replacing one record changes p by at most γ_g = n'/n + (1 − n'/n)·tanh(β/2) (``bounds.mixture_stability``);
* the size n' is the floor of a product of decimals as they were written: ⌊0.29·100⌋ is 29, which floats get wrong.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.tasks import mixture
from predcube.tasks.answers import log_probabilities
from predcube.tasks.bounds import flip_privacy_loss, mixture_stability
from predcube.tasks.learners.base import HypothesisClass, Learner, Occupancy, Points, Workload
from predcube.tasks.learners.common_subsets import CALL, SAMPLES, common_subsets
from predcube.tasks.mixture import analytic
from predcube.tasks.parameters import check
from predcube.tasks.seeds import stream

FEW_POINTS = 13
"""Up to this many points the sums over supports are cheaper for many samples than Laplace's integrals."""


def as_written(value: float) -> Fraction:
    """The decimal that was written, exactly: 0.1 is 1/10.

    >>> as_written(0.29) * 100
    Fraction(29, 1)
    """
    return Fraction(repr(float(value)))


class Subsampled(Learner):
    """A mixture learner given by (n', β). Concrete ones declare the fields named here."""

    __slots__ = ()

    convention: str
    subset_size: int | None
    subset_fraction: float | None
    beta: float | None

    def __post_init__(self) -> None:
        check(self)
        if self.subset_size is not None and self.subset_fraction is not None:
            raise ValueError(
                f"{self.kind}: subset_size = {self.subset_size} and subset_fraction = {self.subset_fraction} both set "
                "n'; give one of them"
            )
        if self._gamma is None and (self.beta is None or (self.subset_size is None and self.subset_fraction is None)):
            raise ValueError(f"{self.kind} needs gamma: it may be left out only where n' and beta are both given")

    @property
    @abstractmethod
    def _gamma(self) -> Fraction | None:
        """γ of the mixture, exactly as written, or None where n' and β are both given."""

    @property
    def _outline(self) -> bool:
        return self.convention == "outline"

    @property
    def _share(self) -> Fraction:
        """The share of the records that is drawn (where n' is not given as a number)."""
        if self.subset_fraction is not None:
            return as_written(self.subset_fraction)
        assert self._gamma is not None
        return self._gamma / 2 if self._outline else self._gamma

    def _size(self, n: int) -> int:
        return self.subset_size if self.subset_size is not None else _size_of(self, n)

    @property
    def _beta(self) -> float:
        return self.beta if self.beta is not None else _beta_of(self)

    def derived(self, n: int) -> Mapping[str, Any]:
        """``subset_size`` is n', ``beta`` is β (per record), ``gamma`` the γ they come from (None where unused)."""
        gamma = None if self._gamma is None else float(self._gamma)
        return {"subset_size": self._size(n), "beta": self._beta, "gamma": gamma}

    def infeasible(self, n: int, hypotheses: HypothesisClass) -> str | None:
        size = self._size(n)
        if 1 <= size <= n:
            return None
        if self.subset_size is not None:
            return f"subset_size = {size} is above n = {n}: lower subset_size or raise n"
        share = self._share
        formula = f"n' = ⌊{float(share):.6g}·{n}⌋ = {size}"
        if size < 1:
            return f"{formula} is below 1: raise n to {math.ceil(1 / share)} or more"
        return f"{formula} is above n = {n}: lower gamma, or set n' by subset_size or subset_fraction"

    def method(self, hypotheses: HypothesisClass, *, k: int, n: int, asked: str = "auto", many: int = 1) -> str:
        """For one sample the cheapest exact method, else mc. For many samples on the same points other ways are the
        cheapest, since laplace and support share their tables: the closed form of a free class, then for an additive
        one support on few points and laplace on more."""
        if asked != "auto":
            return asked
        if many == 1:
            return mixture.choose_method(hypotheses, k=k, n=n, subset_size=self._size(n), beta=self._beta)
        if hypotheses.free:
            return "analytic"
        if hypotheses.additive:
            return "support" if k <= FEW_POINTS else "laplace"
        counts = {m: self.operations(hypotheses, m, k=k, n=n, many=many)[1] for m in ("support", "enumerate")}
        best = min(counts, key=counts.__getitem__)
        sampled = self.operations(hypotheses, "mc", k=k, n=n, many=many)[1]
        return best if mixture.affordable(counts[best], sampled) else "mc"

    def inapplicable(self, hypotheses: HypothesisClass, *, k: int, n: int, asked: str) -> str | None:
        if asked == "auto":
            return None
        return mixture.inapplicable(hypotheses, asked, k=k, n=n, subset_size=self._size(n))

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
        return mixture.subset_mixture(
            hypotheses,
            sample,
            subset_size=self._size(sample.n),
            beta=self._beta,
            method=method,
            relative=relative,
            samples=samples,
            seed=seed,
            weights=weights,
        )

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
        size = self._size(int(counts[0].sum()))
        if method == "analytic":
            log_p1, log_p0 = analytic.log_marginals(counts, subset_size=size, beta=self._beta)
            return np.stack([log_p0, log_p1], axis=-1)[:, np.searchsorted(points, queries)]
        if method == "mc":
            if seed is None:
                raise ValueError("method 'mc' draws subsets: give a seed")
            return common_subsets(
                hypotheses,
                points,
                counts,
                queries,
                subset_size=size,
                beta=self._beta,
                samples=samples or SAMPLES,
                rng=stream(seed, "common subsets", int(counts[0].sum()), size),
            )
        representatives, log_weights = mixture.batch_log_weights(
            hypotheses, points, counts, subset_size=size, beta=self._beta, method=method
        )
        return log_probabilities(log_weights, hypotheses.predict(representatives, queries))

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
        size = self._size(n)
        counted = mixture.operations(
            hypotheses,
            method,
            k=k,
            n=n,
            subset_size=size,
            beta=self._beta,
            relative=relative,
            samples=samples,
            shared=many > 1,
        )
        if many == 1:
            return mixture.kernel(hypotheses, method), counted
        if method == "support":
            # Which hypotheses each of the 2^k sets tells apart is asked once, and samples that occupy the points alike
            # (about every fourth neighbour does so anew) share the sets' probabilities.
            each = 5.0 + 0.03 * size if hypotheses.additive else 10.0 * k
            return "shared support", counted + many * 2.0**k * each
        if method == "mc":
            return "common subsets", (samples or SAMPLES) * (4.0 * many * k + CALL * min(k, many))
        return f"shared {mixture.kernel(hypotheses, method)}", many * counted

    def guaranteed_stability(self, n: int) -> float:
        """(1 − 2α)·γ_g with γ_g = n'/n + (1 − n'/n)·tanh(β/2), α the flip."""
        return (1 - 2 * self.flip) * mixture_stability(n, self._size(n), self._beta)

    def guaranteed_privacy_loss(self, n: int) -> float:
        """ln(1 + (1 − 2α)γ_g/α) with a flip α: both predictions are at least α and differ by (1 − 2α)γ_g at most.
        Infinite without one: the replaced record may bring the only point at which a hypothesis stands."""
        return flip_privacy_loss(mixture_stability(n, self._size(n), self._beta), self.flip)


@lru_cache(maxsize=4096)
def _size_of(learner: Subsampled, n: int) -> int:
    """⌊share·n⌋, kept since a fraction takes longer than many a mixture."""
    return math.floor(learner._share * n)


@lru_cache(maxsize=4096)
def _beta_of(learner: Subsampled) -> float:
    gamma = learner._gamma
    assert gamma is not None
    return float(gamma / 8 if learner._outline else gamma / 2)
