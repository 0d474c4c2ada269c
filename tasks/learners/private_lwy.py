"""The learner that closed the gap in d: in go ε and α, out comes a hypothesis that relabels the drawn records alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Gt, Le, Lt
from numpy.typing import NDArray
from scipy.special import softmax

from predcube.tasks.bounds import mixture_stability, private_stability, relabelled_subset_privacy_loss
from predcube.tasks.hypotheses.base import Labels
from predcube.tasks.learners import submultisets
from predcube.tasks.learners.answering import Answers
from predcube.tasks.learners.base import HypothesisClass, Learner, Occupancy, Points, Workload
from predcube.tasks.learners.df_realizable import log_vote, vote_chunks
from predcube.tasks.learners.records import Records
from predcube.tasks.learners.relabelling import Relabelling, places
from predcube.tasks.learners.subsample import BATCHES, Sums
from predcube.tasks.learners.subsampled import as_written
from predcube.tasks.mixture import affordable, subsets
from predcube.tasks.parameters import check
from predcube.tasks.seeds import stream

SAMPLES = 1024
"""Subsets where no number is given: each trains its own voters."""
BLOCK = 2**10
"""Choices of records, told by chunk and type, in one block."""
TOGETHER = 2**22
"""Scores or votes held at once."""
HELD = 2**22
"""Numbers of the choices of samples that are predicted together."""
STATE = 20_000.0
"""Operations, about, of one such choice besides its scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateLwy(Learner):
    """Draw n' = ⌈εn⌉ records I; T are their points in order, W the other records. Choose h ∈ H_T with weight
    exp(−ε|W|q(h)/2), q(h) = min_{f ∈ H} dis_T(h, f) + err_W(f) with dis_T a share of the n' drawn records; relabel T by
    h, and let r = ⌈6 ln(4/α)⌉ chunks of T vote at privacy 1.

    Record i belongs to chunk i mod r wherever it is drawn, so that exchanging one drawn record for another touches two
    chunks, never more. A chunk that holds no drawn record votes by the class's hypothesis for no points at all.
    ``chunks`` replaces r, ``subset_size`` or ``subset_fraction`` n'. ln(e^ε + 4e³n'/(n − n'))-private where n' ≥ εn
    (``bounds.relabelled_subset_privacy_loss`` derives it).
    """

    kind: ClassVar[str] = "private_lwy"
    source: ClassVar[str] = "Li, Wang & Ye, COLT 2025"

    epsilon: Annotated[float, Gt(0)]
    alpha: Annotated[float, Gt(0), Lt(1)]
    chunks: Annotated[int, Ge(1)] | None = None
    subset_size: Annotated[int, Ge(1)] | None = None
    subset_fraction: Annotated[float, Gt(0), Le(1)] | None = None

    def __post_init__(self) -> None:
        check(self)
        if self.subset_size is not None and self.subset_fraction is not None:
            raise ValueError("private_lwy: subset_size and subset_fraction both set n'; give one of them")

    @property
    def mixes(self) -> bool:
        return False

    @property
    def ordered(self) -> bool:
        return True

    @property
    def _chunks(self) -> int:
        return self.chunks if self.chunks is not None else vote_chunks(1.0, self.alpha)

    def _size(self, n: int) -> int:
        if self.subset_size is not None:
            return self.subset_size
        if self.subset_fraction is not None:
            return math.floor(as_written(self.subset_fraction) * n)
        return math.ceil(as_written(self.epsilon) * n)

    def derived(self, n: int) -> Mapping[str, Any]:
        """``subset_size`` is n', ``chunks`` r."""
        return {"subset_size": self._size(n), "chunks": self._chunks}

    def infeasible(self, n: int, hypotheses: HypothesisClass) -> str | None:
        size, r = self._size(n), self._chunks
        if size < 1:
            return f"n' = 0 of n = {n} is below 1: raise subset_fraction or n"
        if size > n:
            return f"n' = {size} is above n = {n}: lower epsilon, or set subset_size"
        if size == n:
            return f"n' = n = {n} leaves no record to measure errors on: lower epsilon, or set subset_size"
        if r > size:
            return f"{r} chunks are more than the n' = {size} records drawn: raise n or epsilon, or set chunks"
        domain = hypotheses.domain
        return hypotheses.unlistable(n if domain is None else min(n, len(domain)))

    def exchangeable(self, n: int) -> NDArray[np.int64]:
        return np.arange(n) % self._chunks

    def listed(self, n: int) -> int:
        return n

    def method(self, hypotheses: HypothesisClass, *, k: int, n: int, asked: str = "auto", many: int = 1) -> str:
        if asked != "auto":
            return asked
        exact, sampled = (self.operations(hypotheses, m, k=k, n=n, many=many)[1] for m in ("enumerate", "mc"))
        return "enumerate" if affordable(exact, sampled) else "mc"

    def inapplicable(self, hypotheses: HypothesisClass, *, k: int, n: int, asked: str) -> str | None:
        if asked not in ("auto", "enumerate", "mc"):
            return f"private_lwy has the methods enumerate and mc, not {asked}; take auto"
        if asked == "enumerate" and _most_states(n, min(n, 2 * k * self._chunks), self._size(n)) > 2.0**62:
            return f"enumerate would visit more than 2^62 choices of {self._size(n)} of {n} records; take mc"
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
        assert isinstance(sample, Records)
        chosen = self.method(hypotheses, k=len(sample.points), n=sample.n, asked=method)
        return Drawn(
            learner=self,
            hypotheses=hypotheses,
            points=sample.points,
            types=sample.order,
            queries=queries,
            samples=None if chosen == "enumerate" else samples or SAMPLES,
            seed=0 if seed is None else seed,
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
        """Under mc all samples draw the records at the same positions."""
        if method == "mc" and seed is None:
            raise ValueError("method 'mc' draws subsets: give a seed")
        voted = Relabelling(hypotheses=hypotheses, points=points, labels=hypotheses.labelings(points), queries=queries)
        found = np.empty((len(counts), len(queries), 2))
        works = [
            Drawn(
                learner=self,
                hypotheses=hypotheses,
                points=points,
                types=types,
                queries=queries,
                samples=None if method == "enumerate" else samples or SAMPLES,
                seed=0 if seed is None else seed,
                voted=voted,
            )
            for types in counts
        ]
        together = [b for b, work in enumerate(works) if method == "enumerate" and work.blocks == 1]
        most = max((works[b].total for b in together), default=1) * self._chunks * 2 * len(points)
        for start in range(0, len(together), step := max(1, HELD // most)):
            rows = together[start : start + step]
            found[rows] = _joint([works[b] for b in rows])
        for b, work in enumerate(works):
            if method == "enumerate" and work.blocks == 1:
                continue
            if method == "mc":
                drawn = [work.choices(block) for block in range(work.blocks)]
                chosen, chances = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
                found[b] = work.log_sums(chosen, chances) - math.log(work.total)
            else:
                total = work.partial(0)
                for block in range(1, work.blocks):
                    total = total.add(work.partial(block))
                found[b] = total.log_p(0.0)[0]
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
        """Of each choice of records: the scores of H_T against H_S, and its chunks' votes."""
        size, r = self._size(n), self._chunks
        labelings = hypotheses.growth(k) or k**hypotheses.vc_dimension + 1
        few = min(size, k)
        drawn = hypotheses.growth(few) or few**hypotheses.vc_dimension + 1
        each = STATE + float(drawn * labelings) * (2 + k / 4) + float(r * drawn * k)
        if method == "mc":
            return "lwy mc", many * float(samples or SAMPLES) * (each + 5e3 * r)
        return "lwy", many * _most_states(n, min(n, 2 * k * r), size) * each

    def guaranteed_stability(self, n: int) -> float:
        """The lesser of tanh(ε_g/2) and q + (1 − q) tanh(ε/2), q = n'/n: where the record is not drawn an answer's
        probability, given the records drawn, moves by e^ε at most."""
        return min(
            private_stability(self.guaranteed_privacy_loss(n)), mixture_stability(n, self._size(n), self.epsilon)
        )

    def guaranteed_privacy_loss(self, n: int) -> float:
        """ε_g = ln(e^ε + 4e³n'/(n − n')) where n' ≥ εn, else with 4e^{2 + εn/n'} in place of 4e³."""
        return relabelled_subset_privacy_loss(n, self._size(n), self.epsilon)


@lru_cache(maxsize=1024)
def _most_states(n: int, cells: int, size: int) -> float:
    """Choices of ``size`` of n records spread evenly over ``cells`` cells of records that are alike."""
    most = n // cells + (np.arange(cells) < n % cells).astype(np.int64)
    return float(submultisets.count(most, size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The workload of a sample's choices of n' records. Records of one chunk and type are alike: a choice is told by
    how many are drawn of each cell (chunk, type), and so are its weights and votes. ``samples`` is None where all
    choices are visited."""

    learner: PrivateLwy
    hypotheses: HypothesisClass
    points: Points
    types: NDArray[np.int64]
    queries: Points
    samples: int | None
    seed: int
    voted: Relabelling | None = None

    @property
    def _cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The occupied cells: their numbers chunk·2k + type, the records in each, and each record's cell."""
        kinds = 2 * len(self.points)
        number = (np.arange(len(self.types)) % self.learner._chunks) * kinds + self.types
        found, place, held = np.unique(number, return_inverse=True, return_counts=True)
        return found, held, place

    @property
    def size(self) -> int:
        return self.learner._size(len(self.types))

    @property
    def total(self) -> int:
        if self.samples is not None:
            return BATCHES * -(-self.samples // BATCHES)
        return submultisets.count(self._cells[1], self.size)

    @property
    def blocks(self) -> int:
        return BATCHES if self.samples is not None else -(-self.total // BLOCK)

    @property
    def cost(self) -> float:
        return STATE * self.total / self.blocks

    def choices(self, block: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Those of a block: how many records of each occupied cell (U, cells), and what each counts for (U,)."""
        _, held, place = self._cells
        if self.samples is None:
            stop = min((block + 1) * BLOCK, self.total)
            chosen = submultisets.choices(held, self.size, block * BLOCK, stop)
            return chosen, np.exp(submultisets.log_chances(held[None], chosen)[0])
        n = len(self.types)
        rng = stream(self.seed, "subsets", n, self.size, block)
        drawn = place[subsets.sampled(rng, self.total // BATCHES, n, self.size)]
        flat = (np.arange(len(drawn))[:, None] * len(held) + drawn).ravel()
        each = np.bincount(flat, minlength=len(drawn) * len(held)).reshape(len(drawn), -1)
        return each, np.ones(len(each))

    def partial(self, block: int) -> Sums:
        logs = self.log_sums(*self.choices(block))
        return Sums(logs=logs[None, None], groups=np.array([0 if self.samples is None else block]))

    def log_sums(self, chosen: NDArray[np.int64], chances: NDArray[np.float64]) -> NDArray[np.float64]:
        """ln of the answers' probabilities summed over some choices: (Q, 2)."""
        spread, counted = self.spread(chosen, chances)
        voted = self.voted or Relabelling(
            hypotheses=self.hypotheses,
            points=self.points,
            labels=self.hypotheses.labelings(self.points),
            queries=self.queries,
        )
        answers = self.answers(voted, spread, self.whole)
        return np.asarray(np.log(np.einsum("u,uqy->qy", counted, answers)))

    @property
    def whole(self) -> NDArray[np.int64]:
        """The sample's records of each type: (2k,)."""
        return np.bincount(self.types, minlength=2 * len(self.points))

    def spread(
        self, chosen: NDArray[np.int64], chances: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Distinct choices by chunk and type, (U, r, 2k), and what each counts for."""
        numbers = self._cells[0]
        distinct, place = np.unique(chosen, axis=0, return_inverse=True)
        counted = np.bincount(place.reshape(-1), weights=chances)
        kinds = 2 * len(self.points)
        flat = np.zeros((len(distinct), self.learner._chunks * kinds), dtype=np.int64)
        flat[:, numbers] = distinct
        return flat.reshape(len(distinct), self.learner._chunks, kinds), counted

    def finish(self, total: Sums) -> Any:
        if self.samples is None:
            return Answers(queries=self.queries, log_p=total.log_p(0.0)[0], method="enumerate", subsets=self.total)
        batches = np.exp(total.logs[:, 0, :, 1] - math.log(self.total // BATCHES))
        return Answers(
            queries=self.queries,
            log_p=total.log_p(-math.log(self.total))[0],
            method="mc",
            batches=batches,
            subsets=self.total,
        )

    def answers(self, voted: Relabelling, spread: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
        """Pr[answer y] given each choice: ``spread`` (U, r, 2k) drawn of each chunk and type, ``whole`` (2k,) the
        sample, or (U, 2k) that of each → (U, Q, 2). No answer is rarer than e^{−r}, about."""
        k = len(self.points)
        drawn = spread.sum(axis=1)
        rest = (whole - drawn).reshape(-1, k, 2)
        at = drawn.reshape(-1, k, 2).sum(axis=2)  # (U, k) records of T at each point
        presence = spread.reshape(len(spread), -1, k, 2).any(axis=3)  # (U, r, k)
        found = np.empty((len(spread), len(self.queries), 2))
        supports, support = np.unique(at > 0, axis=0, return_inverse=True)
        for s, held in enumerate(supports):
            representatives = self.hypotheses.representatives(self.points[held])
            rows = places(voted.labels, self.hypotheses.predict(representatives, self.points))
            mine = np.flatnonzero(support.reshape(-1) == s)
            step = max(1, TOGETHER // (len(rows) * max(len(voted.labels), len(self.queries))))
            for start in range(0, len(mine), step):
                u = mine[start : start + step]
                found[u] = self._mixed(voted, rows, at[u], rest[u], presence[u])
        return found

    def _mixed(
        self,
        voted: Relabelling,
        rows: NDArray[np.int64],
        at: NDArray[np.int64],
        rest: NDArray[np.int64],
        presence: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """The same for choices of one set T, whose hypotheses are ``rows`` (L,) among the labelings."""
        learner = self.learner
        weights = softmax(-learner.epsilon / 2 * _scores(voted.labels, rows, at, rest, self.size), axis=1)
        chunks, which = np.unique(presence.reshape(-1, presence.shape[2]), axis=0, return_inverse=True)
        said = np.stack([voted.said(np.flatnonzero(chunk))[rows] for chunk in chunks])  # (chunks, L, Q)
        which = which.reshape(len(at), learner._chunks)
        ones = np.zeros((len(at), len(rows), len(self.queries)), dtype=np.int64)
        for chunk in range(learner._chunks):
            ones += said[which[:, chunk]]
        return np.asarray(np.einsum("um,umqy->uqy", weights, np.exp(log_vote(ones, learner._chunks, 1.0))))


def _joint(works: Sequence[Drawn]) -> NDArray[np.float64]:
    """ln of the answers' probabilities of samples whose choices fit one block each: (B, Q, 2). A set T is asked once
    for its hypotheses and votes, whichever sample draws it: neighbours share most."""
    parts = [work.spread(*work.choices(0)) for work in works]
    lengths = [len(spread) for spread, _ in parts]
    whole = np.repeat(np.stack([work.whole for work in works]), lengths, axis=0)
    voted = works[0].voted
    assert voted is not None
    answers = works[0].answers(voted, np.concatenate([spread for spread, _ in parts]), whole)
    each = np.split(answers, np.cumsum(lengths)[:-1])
    sums = [np.einsum("u,uqy->qy", counted, own) for (_, counted), own in zip(parts, each, strict=True)]
    return np.log(np.stack(sums))


def _scores(
    labels: Labels, rows: NDArray[np.int64], at: NDArray[np.int64], rest: NDArray[np.int64], size: int
) -> NDArray[np.float64]:
    """|W|·q(h) = min_f |W|/n'·#{T: h ≠ f} + #{W: f wrong} for the labelings ``rows`` (L,) among ``labels`` (M, k):
    ``at`` (U, k), ``rest`` (U, k, 2) → (U, L)."""
    values = labels.astype(np.float64)
    held, zeros, ones = at.astype(np.float64), rest[:, :, 0].astype(np.float64), rest[:, :, 1].astype(np.float64)
    weighted = values[rows] * held[:, None, :]  # (U, L, k): whole numbers, which products add exactly in any order
    both = weighted.reshape(-1, values.shape[1]) @ values.T
    differ = (
        weighted.sum(axis=2)[:, :, None] + (held @ values.T)[:, None, :] - 2 * both.reshape(*weighted.shape[:2], -1)
    )
    wrong = ones.sum(axis=1)[:, None] + (zeros - ones) @ values.T
    scale = rest[0].sum() / size
    return np.asarray((scale * differ + wrong[:, None, :]).min(axis=2))
