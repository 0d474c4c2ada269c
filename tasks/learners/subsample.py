"""Subsampling: in go an inner learner and a sample, out comes what the inner learner says of a random subset."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray

from predcube.tasks.answers import flipped
from predcube.tasks.bounds import amplified_privacy_loss
from predcube.tasks.hypotheses.points import locate
from predcube.tasks.learners import submultisets
from predcube.tasks.learners.answering import Answers
from predcube.tasks.learners.base import HypothesisClass, Learner, Occupancy, Points, Workload
from predcube.tasks.learners.common_subsets import SAMPLES
from predcube.tasks.learners.records import Records, counted
from predcube.tasks.learners.subsampled import as_written
from predcube.tasks.mixture import affordable, subsets
from predcube.tasks.parameters import check
from predcube.tasks.seeds import stream

BATCHES = 64
"""Equal batches of sampled subsets, from whose spread a standard error follows."""
BLOCK = 2**12
"""Subsets (or multisets of types) whose inner predictions are computed in one block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subsample(Learner):
    """The ``inner`` learner, a table of its own kind and parameters, run on n' uniformly drawn records, in the order
    they have in S. n' is ``subset_size``, or ⌊``subset_fraction``·n⌋.

    A replaced record is drawn with probability q = n'/n, else nothing changes: q·γ-stable for a γ-stable inner learner,
    and ln(1 + q(e^ε − 1))-private for an ε-private one. The inner learner's own flip, if it has one, is part of it.
    """

    kind: ClassVar[str] = "subsample"
    source: ClassVar[str] = "Dagan & Feldman 2020, introduction and Lemma amp-by-subs"

    inner: Mapping[str, Any] = field(hash=False)
    subset_size: Annotated[int, Ge(1)] | None = None
    subset_fraction: Annotated[float, Gt(0), Le(1)] | None = None
    learner: Learner = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check(self)
        if (self.subset_size is None) == (self.subset_fraction is None):
            raise ValueError("subsample: n' is given by one of subset_size and subset_fraction; give exactly one")
        object.__setattr__(self, "learner", _built(self.inner))

    @property
    def mixes(self) -> bool:
        return False

    @property
    def ordered(self) -> bool:
        return self.learner.ordered

    def _size(self, n: int) -> int:
        if self.subset_size is not None:
            return self.subset_size
        assert self.subset_fraction is not None
        return math.floor(as_written(self.subset_fraction) * n)

    def derived(self, n: int) -> Mapping[str, Any]:
        """``subset_size`` is n', and ``inner`` what follows from it for the inner learner."""
        size = self._size(n)
        return {"subset_size": size, "inner": self.learner.derived(size) if size >= 1 else {}}

    def derived_with(self, hypotheses: HypothesisClass, n: int) -> Mapping[str, Any]:
        size = self._size(n)
        return {"subset_size": size, "inner": self.learner.derived_with(hypotheses, size) if size >= 1 else {}}

    def listed(self, n: int) -> int:
        return self.learner.listed(self._size(n))

    def infeasible(self, n: int, hypotheses: HypothesisClass) -> str | None:
        size = self._size(n)
        if size < 1:
            return f"n' = ⌊{self.subset_fraction}·{n}⌋ = 0 is below 1: raise subset_fraction or n"
        if size > n:
            return f"subset_size = {size} is above n = {n}: lower subset_size or raise n"
        reason = self.learner.infeasible(size, hypotheses)
        return None if reason is None else f"inner {self.learner.kind} at n' = {size}: {reason}"

    def method(self, hypotheses: HypothesisClass, *, k: int, n: int, asked: str = "auto", many: int = 1) -> str:
        if asked != "auto":
            return asked
        exact, sampled = (self.operations(hypotheses, m, k=k, n=n, many=many)[1] for m in ("enumerate", "mc"))
        return "enumerate" if affordable(exact, sampled) else "mc"

    def inapplicable(self, hypotheses: HypothesisClass, *, k: int, n: int, asked: str) -> str | None:
        if asked not in ("auto", "enumerate", "mc"):
            return f"subsample has the methods enumerate and mc, not {asked}; take auto"
        size = self._size(n)
        if asked == "enumerate" and not self._countable(k, n):
            return f"enumerate would visit more than 2^63 subsets of {size} of {n} records; take mc"
        if self._inner_method(hypotheses, k, size) == "mc":
            return f"the inner {self.learner.kind} has no exact method on {k} points at n' = {size}; take another"
        return None

    def workload(self, hypotheses: HypothesisClass, sample: Occupancy, **options: Any) -> Workload:
        raise ValueError(f"{self.kind} is no mixture of hypotheses; ask for its answers")

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
        domain = hypotheses.domain
        if hypotheses.free and domain is not None:  # whose closed forms want every query among the points
            sample = _over(sample, domain)
        k = len(sample.points)
        chosen = self.method(hypotheses, k=k, n=sample.n, asked=method)
        _, cost = self.operations(hypotheses, chosen, k=k, n=sample.n, samples=samples)
        return Subsets(
            learner=self,
            hypotheses=hypotheses,
            points=sample.points,
            sample=(sample.order if isinstance(sample, Records) else sample.counts)[None],
            queries=queries,
            samples=None if chosen == "enumerate" else samples or 4 * SAMPLES,
            seed=0 if seed is None else seed,
            total_cost=cost,
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
        if method == "mc" and seed is None:
            raise ValueError("method 'mc' draws subsets: give a seed")
        work = Subsets(
            learner=self,
            hypotheses=hypotheses,
            points=points,
            sample=counts,
            queries=queries,
            samples=None if method == "enumerate" else samples or SAMPLES,
            seed=0 if seed is None else seed,
            total_cost=0.0,
        )
        found = None
        for block in range(work.blocks):
            part = work.partial(block)
            found = part if found is None else found.add(part)
        assert found is not None
        return found.log_p(work.weight)

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
        if method == "enumerate":
            return "subsample", self._visited(hypotheses, k, n, many)
        drawn = float(samples or SAMPLES * (4 if many == 1 else 1))
        inner = drawn * self._changed(n, many) * self._each(hypotheses, k, n)
        return "subsample mc", inner + drawn * many * 60.0 * self._size(n)

    def guaranteed_stability(self, n: int) -> float:
        """(n'/n)·γ, γ the inner learner's at n'."""
        size = self._size(n)
        return size / n * self.learner.guaranteed_stability(size)

    def guaranteed_privacy_loss(self, n: int) -> float:
        """ln(1 + (n'/n)(e^ε − 1)), ε the inner learner's at n' (Dagan & Feldman 2020, Lemma amp-by-subs, sharper)."""
        size = self._size(n)
        return amplified_privacy_loss(self.learner.guaranteed_privacy_loss(size), size / n)

    def _inner_method(self, hypotheses: HypothesisClass, k: int, size: int) -> str:
        return self.learner.method(hypotheses, k=k, n=size, many=2)

    def _countable(self, k: int, n: int) -> bool:
        return not self.ordered or subsets.countable(n, self._size(n))

    def _each(self, hypotheses: HypothesisClass, k: int, n: int) -> float:
        """Operations of one more inner prediction."""
        size = self._size(n)
        inner = self._inner_method(hypotheses, k, size)
        one = self.learner.operations(hypotheses, inner, k=k, n=size, many=1000)[1] / 1000
        return one + 30.0 * k

    def _changed(self, n: int, many: int) -> float:
        """Inner predictions of one subset for ``many`` neighbours: those that do not draw the replaced record share
        one."""
        return 1.0 + (many - 1) * self._size(n) / n

    def _visited(self, hypotheses: HypothesisClass, k: int, n: int, many: int) -> float:
        """Operations of going through every subset, or every multiset where the inner learner minds no order."""
        if not self._countable(k, n):
            return math.inf
        size = self._size(n)
        if self.ordered:
            each = self._changed(n, many) * self._each(hypotheses, k, n) + many * 30.0 * size
            return float(math.comb(n, size)) * each
        # With n records evenly over 2k types, of which an audit's samples have one more at most.
        most = (n // (2 * k) + 2, min(n, 2 * k))
        states = _states(most[0], most[1], size)
        return states * (self._each(hypotheses, k, n) + many * (20.0 * k))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Log-sums over subsets of probabilities: ``logs`` (G, B, Q, 2), one row a batch of ``mc``, whose numbers are
    ``groups`` (G,)."""

    logs: NDArray[np.float64]
    groups: NDArray[np.int64]

    def add(self, other: Self) -> Self:
        groups, where = np.unique(np.concatenate([self.groups, other.groups]), return_inverse=True)
        logs = np.full((len(groups), *self.logs.shape[1:]), -np.inf)
        logs[where[: len(self.groups)]] = self.logs
        rest = where[len(self.groups) :]
        logs[rest] = np.logaddexp(logs[rest], other.logs)
        return type(self)(logs=logs, groups=groups)

    def log_p(self, weight: float) -> NDArray[np.float64]:
        """ln of the sums over all groups times e^``weight``: (B, Q, 2)."""
        return np.asarray(np.logaddexp.reduce(self.logs, axis=0) + weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subsets:
    """The workload of the inner predictions of a subset's multiset (or sequence), for B samples that share them:
    ``sample`` is (B, k, 2) counts or (B, n) types. ``samples`` is None where all are visited."""

    learner: Subsample
    hypotheses: HypothesisClass
    points: Points
    sample: NDArray[np.int64]
    queries: Points
    samples: int | None
    seed: int
    total_cost: float

    @property
    def n(self) -> int:
        return self.sample.shape[1] if self.learner.ordered else int(self.sample[0].sum())

    @property
    def size(self) -> int:
        return self.learner._size(self.n)

    @property
    def _held(self) -> NDArray[np.int64]:
        return self.sample.reshape(len(self.sample), -1)

    @property
    def total(self) -> int:
        """Subsets, or multisets, to be visited."""
        if self.samples is not None:
            return BATCHES * -(-self.samples // BATCHES)
        if self.learner.ordered:
            return subsets.count(self.n, self.size)
        return submultisets.count(self._held.max(axis=0), self.size)

    @property
    def blocks(self) -> int:
        return BATCHES if self.samples is not None else -(-self.total // BLOCK)

    @property
    def cost(self) -> float:
        return self.total_cost / self.blocks

    @property
    def weight(self) -> float:
        """The log of what a sum over all blocks is to be multiplied by."""
        if self.samples is not None:
            return -math.log(self.total)
        return -math.log(self.total) if self.learner.ordered else 0.0

    def partial(self, block: int) -> Sums:
        group = np.array([block if self.samples is not None else 0])
        if self.samples is None and not self.learner.ordered:
            stop = min((block + 1) * BLOCK, self.total)
            chosen = submultisets.choices(self._held.max(axis=0), self.size, block * BLOCK, stop)
            inner = self._inner(chosen.reshape(-1, len(self.points), 2))
            return Sums(logs=_sum(submultisets.log_chances(self._held, chosen), inner)[None], groups=group)
        rows = self._rows(block)  # (B, L, n') of types
        flat, place = np.unique(rows.reshape(-1, self.size), axis=0, return_inverse=True)
        place = place.reshape(rows.shape[:2])
        inner = np.concatenate([self._inner_of(flat[i : i + BLOCK]) for i in range(0, len(flat), BLOCK)])
        logs = np.stack([np.logaddexp.reduce(inner[own], axis=0) for own in place])
        return Sums(logs=logs[None], groups=group)

    def finish(self, total: Sums) -> Any:
        batches = None
        if self.samples is not None:
            batches = np.exp(total.logs[:, 0, :, 1] - math.log(self.total // BATCHES))
        return Answers(
            queries=self.queries,
            log_p=total.log_p(self.weight)[0],
            method="enumerate" if self.samples is None else "mc",
            batches=batches,
            subsets=self.total,
        )

    def _rows(self, block: int) -> NDArray[np.int64]:
        """The types of each subset of a block in each of the B samples, sorted where the order does not matter."""
        if self.learner.ordered:
            if self.samples is None:
                length = min(BLOCK, self.total - block * BLOCK)
                chosen = subsets.ranked(block * BLOCK, length, self.n, self.size)
            else:
                rng = stream(self.seed, "subsets", self.n, self.size, block)
                chosen = np.sort(subsets.sampled(rng, self.total // BATCHES, self.n, self.size), axis=1)
            return self.sample[:, chosen]
        # The j-th record of a type has one priority in all samples, and a subset is the n' records of least priority:
        # so neighbours draw subsets that differ in one record at most.
        assert self.samples is not None
        rng = stream(self.seed, "subsets", self.n, self.size, block)
        most = self._held.max(axis=0)
        types = np.repeat(np.arange(len(most)), most)
        number = np.arange(len(types)) - np.repeat(np.cumsum(most) - most, most)
        present = number < self._held[:, types]
        found = np.empty((len(self.sample), self.total // BATCHES, self.size), dtype=np.int64)
        for i in range(found.shape[1]):
            priority = np.where(present, rng.random(len(types)), np.inf)
            found[:, i] = types[np.argpartition(priority, self.size - 1, axis=1)[:, : self.size]]
        return np.sort(found, axis=2)

    def _inner_of(self, types: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._inner(types if self.learner.ordered else counted(types, len(self.points)))

    def _inner(self, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln of the inner learner's answers, its flip included: (U, Q, 2)."""
        inner = self.learner.learner
        method = self.learner._inner_method(self.hypotheses, len(self.points), self.size)
        logs = inner.batch(self.hypotheses, self.points, chosen, self.queries, method=method)
        return flipped(logs, inner.flip)


def _sum(log_chances: NDArray[np.float64], inner: NDArray[np.float64]) -> NDArray[np.float64]:
    """ln Σ_u exp(log_chances[b, u] + inner[u, q, y]): (B, Q, 2)."""
    finite = inner[np.isfinite(inner)]
    if not finite.size or finite.min() > -600.0:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.einsum("bu,uqy->bqy", np.exp(log_chances), np.exp(inner))))
    return np.stack([np.logaddexp.reduce(own[:, None, None] + inner, axis=0) for own in log_chances])


def _over(sample: Occupancy, points: Points) -> Occupancy:
    if isinstance(sample, Records):
        return sample.over(points)
    counts = np.zeros((len(points), 2), dtype=np.int64)
    counts[locate(points, sample.points)] = sample.counts
    return Occupancy(points=points, counts=counts)


def _built(inner: Any) -> Learner:
    """The learner that a table describes."""
    from predcube.tasks.learners import build  # the registry holds this class too

    if isinstance(inner, Learner):
        return inner
    if not isinstance(inner, Mapping) or not isinstance(inner.get("kind"), str):
        raise ValueError(f'subsample: inner = {inner!r} must be a table with a kind, as in {{ kind = "erm" }}')
    try:
        return build(inner["kind"], **{k: v for k, v in inner.items() if k != "kind"})
    except ValueError as e:
        raise ValueError(f"subsample: inner: {e}") from e


@lru_cache(maxsize=1024)
def _states(each: int, types: int, size: int) -> float:
    return float(submultisets.count(np.full(types, min(each, size)), size))
