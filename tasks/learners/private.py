"""The main private learner: in go ε, α and η, out comes a mixture whose hypotheses relabel S for private votes."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray

from predcube.tasks import mixture
from predcube.tasks.bounds import drawn_privacy_loss, flip_privacy_loss, mixture_stability, private_stability
from predcube.tasks.hypotheses.points import locate
from predcube.tasks.learners.answering import Answers, OneSample
from predcube.tasks.learners.base import (
    HypothesisClass,
    Learner,
    MixtureWeights,
    Occupancy,
    Points,
    Representatives,
    Workload,
)
from predcube.tasks.learners.chunks import lengths
from predcube.tasks.learners.common_subsets import SAMPLES, common_subsets
from predcube.tasks.learners.df_realizable import log_vote, vote_chunks
from predcube.tasks.learners.records import Records, counted
from predcube.tasks.learners.relabelling import Relabelling, places
from predcube.tasks.learners.stable import Stable
from predcube.tasks.learners.subsampled import as_written
from predcube.tasks.mixture import analytic
from predcube.tasks.parameters import check
from predcube.tasks.seeds import stream

LABELINGS = 2**22
"""Votes (labelings × queries) of one block, times chunks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Private(Learner):
    """Draw n' = ⌊εn⌋ records with points T; choose h ∈ H_T with weight exp(−L_S(h)/η); relabel all of S by h and let
    r = ⌈6ηn ln(4/α)⌉ chunks vote at privacy 1/(ηn); flip the answer with probability α.

    convention "outline": the weights are those of an exponential mechanism of privacy min(ε/2, d/(αn)), the vote as
    before. ``chunks`` replaces r, ``subset_size`` or ``subset_fraction`` n'.

    For S′ with another record, P_S ≤ A·P_S′ + δ before the flip, with A = e^{3/(ηn)}(1 + 4e⁶n'/(n − n')) and δ the
    probability that the record is drawn and the others drawn are no η-net. δ depends on the data and is n'/n at most;
    ``guaranteed_privacy_loss`` takes that, and then no swap is needed: ln(e^{3/(ηn)} + (1 − 2α)n'/(nα)), or what
    follows from the stability where that is less.
    """

    kind: ClassVar[str] = "private"
    source: ClassVar[str] = "Dagan & Feldman 2020, Theorem main and Lemma main"

    epsilon: Annotated[float, Gt(0)]
    alpha: Annotated[float, Gt(0), Le(0.5)]
    eta: Annotated[float, Gt(0)]
    convention: Literal["proof", "outline"] = "proof"
    chunks: Annotated[int, Ge(1)] | None = None
    subset_size: Annotated[int, Ge(1)] | None = None
    subset_fraction: Annotated[float, Gt(0), Le(1)] | None = None

    def __post_init__(self) -> None:
        check(self)
        if self.subset_size is not None and self.subset_fraction is not None:
            raise ValueError("private: subset_size and subset_fraction both set n'; give one of them")

    @property
    def mixes(self) -> bool:
        return False

    @property
    def ordered(self) -> bool:
        return True

    @property
    def flip(self) -> float:
        return self.alpha

    def _vote(self, n: int) -> float:
        """The vote's privacy, 1/(ηn)."""
        return 1.0 / (self.eta * n)

    def _chunks(self, n: int) -> int:
        return self.chunks if self.chunks is not None else vote_chunks(self._vote(n), self.alpha)

    def _size(self, n: int) -> int:
        if self.subset_size is not None:
            return self.subset_size
        share = self.epsilon if self.subset_fraction is None else self.subset_fraction
        return math.floor(as_written(share) * n)

    def _inner(self, n: int, hypotheses: HypothesisClass) -> Stable:
        """The mixture before φ: n' and β are all that is left of it."""
        beta = self._vote(n)
        if self.convention == "outline":
            beta = min(self.epsilon / 2, hypotheses.vc_dimension / (self.alpha * n)) / 2
        return Stable(subset_size=self._size(n), beta=beta)

    def derived(self, n: int) -> Mapping[str, Any]:
        """``subset_size`` is n', ``chunks`` r, ``vote_epsilon`` the privacy of a vote, ``beta`` β per record (None
        under "outline", where it follows from the class too: ``derived_with``)."""
        beta = self._vote(n) if self.convention == "proof" else None
        return {
            "subset_size": self._size(n),
            "beta": beta,
            "chunks": self._chunks(n),
            "vote_epsilon": self._vote(n),
        }

    def derived_with(self, hypotheses: HypothesisClass, n: int) -> Mapping[str, Any]:
        return {**self.derived(n), "beta": self._inner(n, hypotheses)._beta}

    def infeasible(self, n: int, hypotheses: HypothesisClass) -> str | None:
        size, r = self._size(n), self._chunks(n)
        if size < 1:
            return f"n' = ⌊ε·{n}⌋ = 0 is below 1: raise n or epsilon"
        if size > n:
            return f"n' = {size} is above n = {n}: lower epsilon, or set subset_size"
        if self._vote(n) > self.epsilon:
            return f"1/(ηn) = {self._vote(n):.6g} is above epsilon = {self.epsilon}: raise eta or n"
        if r > n:
            return f"{r} chunks are more than n = {n} records: lower eta, or set chunks"
        return None

    def exchangeable(self, n: int) -> NDArray[np.int64]:
        r = self._chunks(n)
        return np.repeat(np.arange(r), lengths(n, r))

    def listed(self, n: int) -> int:
        return n

    def method(self, hypotheses: HypothesisClass, *, k: int, n: int, asked: str = "auto", many: int = 1) -> str:
        chosen = self._inner(n, hypotheses).method(hypotheses, k=k, n=n, asked=asked, many=many)
        return "analytic" if asked == "auto" and hypotheses.free else chosen

    def inapplicable(self, hypotheses: HypothesisClass, *, k: int, n: int, asked: str) -> str | None:
        reason = self._inner(n, hypotheses).inapplicable(hypotheses, k=k, n=n, asked=asked)
        return reason or (hypotheses.unlistable(k) if asked not in ("auto", "analytic") else None)

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
        assert isinstance(sample, Records)
        n = sample.n
        chosen = self.method(hypotheses, k=len(sample.points), n=n, asked=method)
        if chosen == "analytic":
            return OneSample(
                learner=self,
                hypotheses=hypotheses,
                points=sample.points,
                sample=sample.order[None],
                queries=queries,
                method=chosen,
                cost=20.0 * n,
            )
        weights = self._inner(n, hypotheses).workload(
            hypotheses,
            Occupancy(points=sample.points, counts=sample.counts),
            method=chosen,
            samples=samples,
            seed=seed,
            weights=True,
        )
        labelings = len(hypotheses.labelings(sample.points))
        return Relabelled(
            learner=self,
            hypotheses=hypotheses,
            sample=sample,
            queries=queries,
            weights=weights,
            labelings=labelings,
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
        n = counts.shape[1]
        if method == "analytic":
            return self._closed(hypotheses, points, counts, queries)
        inner = self._inner(n, hypotheses)
        multisets = counted(counts, len(points))
        voted = Relabelling(hypotheses=hypotheses, points=points, labels=hypotheses.labelings(points), queries=queries)
        if method == "mc":
            if seed is None:
                raise ValueError("method 'mc' draws subsets: give a seed")
            return self._sampled(voted, counts, multisets, inner, samples or SAMPLES, seed)
        # Neighbours that differ in where a record stands have the same weights.
        distinct, place = np.unique(multisets.reshape(len(counts), -1), axis=0, return_inverse=True)
        representatives, log_weights = mixture.batch_log_weights(
            hypotheses,
            points,
            distinct.reshape(-1, len(points), 2),
            subset_size=inner._size(n),
            beta=inner._beta,
            method=method,
        )
        rows = places(voted.labels, hypotheses.predict(representatives, points))
        weights = np.exp(log_weights)
        found = np.empty((len(counts), len(queries), 2))
        for members, ones in self._distinct_votes(voted, counts):
            answers = np.exp(log_vote(ones[rows], self._chunks(n), self._vote(n)))
            found[members] = np.einsum("bm,mqy->bqy", weights[place[members]], answers)
        return np.log(found)

    def _distinct_votes(
        self, voted: Relabelling, types: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.int64]]]:
        """The samples (B, n) that have the same votes, and those (M, Q): the first sample's with the chunks changed in
        which another differs from it, mostly one."""
        n, k = types.shape[1], len(voted.points)
        stops = np.cumsum(lengths(n, self._chunks(n)))
        presence = np.zeros((len(types), len(stops), k), dtype=bool)
        chunk = np.repeat(np.arange(len(stops)), lengths(n, len(stops)))
        presence[np.arange(len(types))[:, None], chunk[None, :], types // 2] = True
        words = np.packbits(presence, axis=2)
        flat = np.ascontiguousarray(words).view(f"S{words.shape[2]}").reshape(len(types), -1)
        base = voted.votes(np.flatnonzero(own) for own in presence[0])
        changed = flat != flat[0]
        _, first, group = np.unique(
            np.where(changed, flat, b"").astype(flat.dtype), axis=0, return_index=True, return_inverse=True
        )
        order = np.argsort(group.reshape(-1), kind="stable")
        members = np.split(order, np.cumsum(np.bincount(group.reshape(-1)))[:-1])
        for b, mine in zip(first, members, strict=True):
            ones = base
            for c in np.flatnonzero(changed[b]):
                new, old = (voted.said(np.flatnonzero(presence[i, c])).astype(np.int64) for i in (b, 0))
                ones = ones + new - old
            yield mine, ones

    def _log_votes(self, voted: Relabelling, types: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln φ_S(h) for every labelling h of S's points: (M, Q, 2)."""
        n, r = len(types), self._chunks(len(types))
        return log_vote(voted.votes(chunk_points(types, r)), r, self._vote(n))

    def _closed(
        self, hypotheses: HypothesisClass, points: Points, types: NDArray[np.int64], queries: Points
    ) -> NDArray[np.float64]:
        """On the cube a voter says h(x) where its chunk holds x and 0 elsewhere, so φ depends on h through h(x)."""
        n, r, k = types.shape[1], self._chunks(types.shape[1]), len(points)
        inner = self._inner(n, hypotheses)
        log_p1, log_p0 = analytic.log_marginals(counted(types, k), subset_size=inner._size(n), beta=inner._beta)
        holding = np.zeros((len(types), k), dtype=np.int64)  # how many chunks hold each point
        for chunk in np.split(types // 2, np.cumsum(lengths(n, r))[:-1], axis=1):
            held = np.zeros((len(types), k), dtype=bool)
            held[np.arange(len(types))[:, None], chunk] = True
            holding += held
        where = locate(points, queries)
        seen = where >= 0
        yes = log_vote(np.where(seen, holding[:, where], 0), r, self._vote(n))
        no = log_vote(np.zeros((len(types), len(queries)), dtype=np.int64), r, self._vote(n))
        one = np.where(seen, log_p1[:, where], -np.inf)[:, :, None]
        zero = np.where(seen, log_p0[:, where], 0.0)[:, :, None]
        return np.asarray(np.logaddexp(one + yes, zero + no))

    def _sampled(
        self,
        voted: Relabelling,
        types: NDArray[np.int64],
        counts: NDArray[np.int64],
        inner: Stable,
        samples: int,
        seed: int,
    ) -> NDArray[np.float64]:
        """By subsets that the samples share, a few samples' votes held at a time."""
        n, queries = types.shape[1], voted.queries
        rows = max(1, LABELINGS // (len(voted.labels) * len(queries)))
        found = np.empty((len(types), len(queries), 2))
        for start in range(0, len(types), rows):
            block = slice(start, start + rows)
            votes = np.exp(np.stack([self._log_votes(voted, own) for own in types[block]]))

            def answers(
                members: NDArray[np.intp],
                candidates: Representatives,
                log_weights: NDArray[np.float64],
                votes: NDArray[np.float64] = votes,
            ) -> NDArray[np.float64]:
                at = places(voted.labels, voted.hypotheses.predict(candidates, voted.points))
                return np.asarray(np.einsum("bm,bmqy->bqy", np.exp(log_weights), votes[members][:, at]))

            found[block] = common_subsets(
                voted.hypotheses,
                voted.points,
                counts[block],
                queries,
                subset_size=inner._size(n),
                beta=inner._beta,
                samples=samples,
                rng=stream(seed, "common subsets", n, inner._size(n)),
                most=counts.sum(axis=2).max(axis=0),
                answers=answers,
            )
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
        """The mixture's, and the votes of every labelling of the points at as many queries."""
        inner = self._inner(n, hypotheses)
        kernel, count = inner.operations(hypotheses, method, k=k, n=n, many=many, relative=relative, samples=samples)
        labelings = 1 if method == "analytic" else hypotheses.growth(k) or k**hypotheses.vc_dimension + 1
        r = self._chunks(n)
        return f"private {kernel}", count + float(many * (r * k * labelings + 20 * n)) + 1e5 * r

    def guaranteed_stability(self, n: int) -> float:
        """The lesser of (1 − 2α)γ, γ = q + (1 − q) tanh(β/2 + v/2), q = n'/n and v the vote's privacy, and of
        tanh(ε/2), ε the guaranteed privacy loss: where the record is not drawn the weights move the odds by e^{2β} and
        the votes by e^{2v} at most."""
        return min((1 - 2 * self.alpha) * self._moved(n), private_stability(self._drawn_loss(n)))

    def guaranteed_privacy_loss(self, n: int) -> float:
        """The lesser of ln(e^{2β+v} + (1 − 2α)q/α) and ln(1 + (1 − 2α)γ/α). The first: the record is drawn with
        probability q = n'/n, and elsewhere weights and vote cost 2β + v; with β = v = 1/(ηn) that is 3/(ηn). The
        second: what the flip makes of γ, the stability before it. See ``bounds.swapped_privacy_loss`` for the
        paper's, which knows how often the others drawn are a net."""
        return min(self._drawn_loss(n), flip_privacy_loss(self._moved(n), self.alpha))

    def _drawn_loss(self, n: int) -> float:
        spent = 2 * self._most_beta(n) + self._vote(n)
        return drawn_privacy_loss(self._size(n) / n, spent, self.alpha)

    def _moved(self, n: int) -> float:
        """γ of the answer before the flip."""
        return mixture_stability(n, self._size(n), self._most_beta(n) + self._vote(n))

    def _most_beta(self, n: int) -> float:
        """β, or the most that it can be whatever the class."""
        return self._vote(n) if self.convention == "proof" else self.epsilon / 4


def chunk_points(types: NDArray[np.int64], chunks: int) -> list[NDArray[np.int64]]:
    """The distinct points of each chunk of a sequence of types, sorted."""
    return [np.unique(part // 2) for part in np.split(types, np.cumsum(lengths(len(types), chunks))[:-1])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """Partial results of the mixture's weights and of the votes of a run of labelings, either of which may be missing
    as yet."""

    weights: Any
    votes: NDArray[np.int64] | None

    def add(self, other: Self) -> Self:
        return type(self)(weights=_joined(self.weights, other.weights), votes=_appended(self.votes, other.votes))


def _joined(left: Any, right: Any) -> Any:
    return left if right is None else right if left is None else left.add(right)


def _appended(left: NDArray[np.int64] | None, right: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    return left if right is None else right if left is None else np.concatenate([left, right])


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabelled:
    """The workload of Σ_h w_h φ_h at some queries: first the blocks of ``weights``, then the votes of the
    ``labelings`` of the sample's points, which all weights' hypotheses are among, a run of them in each block."""

    learner: Private
    hypotheses: HypothesisClass
    sample: Records
    queries: Points
    weights: Workload
    labelings: int

    @property
    def _chunks(self) -> int:
        return self.learner._chunks(self.sample.n)

    @property
    def _rows(self) -> int:
        return max(1, LABELINGS // (self._chunks * len(self.queries)))

    @property
    def blocks(self) -> int:
        return self.weights.blocks + -(-self.labelings // self._rows)

    @property
    def cost(self) -> float:
        votes = float(self.labelings * self._chunks * len(self.queries))
        return (self.weights.cost * self.weights.blocks + votes) / self.blocks

    def partial(self, block: int) -> Both:
        if block < self.weights.blocks:
            return Both(weights=self.weights.partial(block), votes=None)
        start = (block - self.weights.blocks) * self._rows
        voted = Relabelling(
            hypotheses=self.hypotheses,
            points=self.sample.points,
            labels=self.hypotheses.labelings(self.sample.points)[start : start + self._rows],
            queries=self.queries,
        )
        return Both(weights=None, votes=voted.votes(chunk_points(self.sample.order, self._chunks)))

    def finish(self, total: Both) -> Any:
        mixed = self.weights.finish(total.weights)
        assert isinstance(mixed, MixtureWeights)
        assert total.votes is not None
        points = self.sample.points
        said = self.hypotheses.predict(mixed.representatives, points)
        votes = total.votes[places(self.hypotheses.labelings(points), said)]
        answers = np.exp(log_vote(votes, self._chunks, self.learner._vote(self.sample.n)))
        # No answer is rarer than e^{−6 ln(4/α)/2}, about, so that no term of the sum is lost.
        log_p = np.log(np.einsum("m,mqy->qy", mixed.weights, answers))
        batches = None if mixed.batches is None else np.einsum("gm,mq->gq", mixed.batches, answers[:, :, 1])
        return Answers(queries=self.queries, log_p=log_p, method=mixed.method, batches=batches, subsets=mixed.subsets)
