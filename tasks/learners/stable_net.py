"""The stable learner over a net: in goes an α more than for `stable`, out comes a mixture of fewer hypotheses."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray

from predcube.tasks import mixture
from predcube.tasks.answers import log_probabilities
from predcube.tasks.learners.base import HypothesisClass, MixtureWeights, Occupancy, Points, Workload
from predcube.tasks.learners.common_subsets import SAMPLES
from predcube.tasks.learners.nets import MultisetNet, Net
from predcube.tasks.learners.subsampled import Subsampled, as_written
from predcube.tasks.mixture.samples import occupied
from predcube.tasks.seeds import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class StableNet(Subsampled):
    """`stable` with H_T replaced by an α-net of it: (1/α)^O(d) hypotheses instead of as many as H_T has, which saves a
    log d in the number of examples.

    The net is greedy in canonical order; distances count points of the set T. convention "proof" and "outline": n' and
    β as for `stable`. convention "paper": as "proof" with distances that count the n' records drawn, repetitions
    included, as in the paper's Remark 1. Off its net a hypothesis may be missing, so no closed form holds on the cube.
    """

    kind: ClassVar[str] = "stable_net"
    source: ClassVar[str] = "Dagan & Feldman 2020, Remark 1"

    alpha: Annotated[float, Ge(0), Le(1)]
    gamma: Annotated[float, Gt(0)] | None = None
    convention: Literal["proof", "outline", "paper"] = "proof"
    subset_size: Annotated[int, Ge(1)] | None = None
    subset_fraction: Annotated[float, Gt(0), Le(1)] | None = None
    beta: Annotated[float, Ge(0)] | None = None

    @property
    def _gamma(self) -> Fraction | None:
        return None if self.gamma is None else as_written(self.gamma)

    @property
    def _by_records(self) -> bool:
        return self.convention == "paper"

    def _net(self, hypotheses: HypothesisClass) -> Net:
        return Net(whole=hypotheses, radius=as_written(self.alpha))

    def infeasible(self, n: int, hypotheses: HypothesisClass) -> str | None:
        reason = Subsampled.infeasible(self, n, hypotheses)
        if reason is not None:
            return reason
        domain = hypotheses.domain
        most = self._size(n) if domain is None else min(self._size(n), len(domain))
        return hypotheses.unlistable(most)

    def method(self, hypotheses: HypothesisClass, *, k: int, n: int, asked: str = "auto", many: int = 1) -> str:
        if not self._by_records or asked != "auto":
            return Subsampled.method(self, self._net(hypotheses), k=k, n=n, asked=asked, many=many)
        exact, sampled = (self.operations(hypotheses, m, k=k, n=n, many=many)[1] for m in ("enumerate", "mc"))
        return "enumerate" if mixture.affordable(exact, sampled) else "mc"

    def inapplicable(self, hypotheses: HypothesisClass, *, k: int, n: int, asked: str) -> str | None:
        if self._by_records and asked not in ("auto", "enumerate", "mc"):
            return f"distances by records have the methods enumerate and mc, not {asked}; take auto"
        return Subsampled.inapplicable(self, self._net(hypotheses), k=k, n=n, asked=asked)

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
        of: HypothesisClass = self._net(hypotheses)
        if self._by_records:
            if method == "auto":
                method = self.method(hypotheses, k=len(sample.points), n=sample.n)
            of, sample = _by_records(hypotheses, occupied(sample), as_written(self.alpha))
        return Subsampled.workload(
            self, of, sample, method=method, relative=relative, samples=samples, seed=seed, weights=True
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
        if not self._by_records:
            return Subsampled.batch(
                self, self._net(hypotheses), points, counts, queries, method=method, samples=samples, seed=seed
            )
        found = np.empty((len(counts), len(queries), 2))
        for b, own in enumerate(counts):
            work = self.workload(
                hypotheses,
                Occupancy(points=points, counts=own),
                method=method,
                samples=samples or SAMPLES,
                seed=None if seed is None else int(stream(seed, "common subsets", int(own.sum())).integers(2**63)),
            )
            mixed = mixture.evaluate(work)
            assert isinstance(mixed, MixtureWeights)
            said = hypotheses.predict(mixed.representatives, queries)
            found[b] = log_probabilities(mixed.log_weights[None], said)[0]
        return found

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
        """As for `stable`, each set T's H_T being listed and thinned besides."""
        of = self._net(hypotheses)
        if not self._by_records:
            kernel, counted = Subsampled.operations(
                self, of, method, k=k, n=n, many=many, relative=relative, samples=samples
            )
            return f"net {kernel}", counted
        counted = mixture.operations(
            of, method, k=n, n=n, subset_size=self._size(n), beta=self._beta, relative=relative, samples=samples
        )
        return f"net {method}", many * counted


def _by_records(hypotheses: HypothesisClass, sample: Occupancy, radius: Fraction) -> tuple[HypothesisClass, Occupancy]:
    """The class on the records of an occupied sample, and the sample with a point of its own for each record."""
    types = np.repeat(np.arange(2 * len(sample.points)), sample.counts.ravel())
    counts = (types[:, None] % 2 == np.arange(2)).astype(np.int64)
    of = MultisetNet(whole=hypotheses, radius=radius, points=sample.points[types // 2])
    return of, Occupancy(points=np.arange(len(types)), counts=counts)
