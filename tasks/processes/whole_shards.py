"""Whole shards: in goes a column of groups and a number of groups seen whole, out comes the law of their totals."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge

from predcube.tasks.frames import Frame, Groups, Request
from predcube.tasks.moments import GroupSums, Moments
from predcube.tasks.parameters import check
from predcube.tasks.processes.base import FEW_SHARDS, Factors, HasMoments, Law, Process
from predcube.tasks.processes.plain import Parts, assembled


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSums:
    """sums: of [q, g] by shard. queries: moments of the queries alone, for their means and ranges."""

    sums: GroupSums
    queries: Moments

    def add(self, other: Self) -> Self:
        return type(self)(sums=self.sums.add(other.sums), queries=self.queries.add(other.queries))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    fitted: HasMoments

    def __call__(self, frame: Frame) -> ShardSums:
        if frame.column is None:
            raise ValueError("whole_shards: the frame has no column of groups")
        sums = GroupSums.of(frame.column, frame.queries, self.fitted.moments(frame.inputs))
        return ShardSums(sums=sums, queries=Moments.of(frame.queries, np.empty((frame.rows, 0))))


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeShards(Process[ShardSums]):
    """k = ``count`` of the M groups of ``column``, drawn uniformly without replacement, are seen whole; a = k/M.

    Y_j = (M/N)Σ_{i∈j}(q_i − p, g_i), totals of centred rows, which are right for unequal shards where shard means are
    not; covariances ΣY_jY_jᵀ/(M − 1), m = k/(1 − a), n = aN expected rows. The attacker predicts the mean of the unseen
    rows, K = 1/((1 − a)k), or of all, K = (1 − a)/k. First order in M: flagged below 100 shards (9% off at M = 52).
    """

    kind: ClassVar[str] = "whole_shards"
    source: ClassVar[str] = "Lu & Sridharan 2026, Corollary 3.8, for shards drawn whole"
    needs_groups: ClassVar[bool] = True

    column: str
    count: Annotated[int, Ge(1)]
    target: Literal["unseen", "all"] = "unseen"

    def __post_init__(self) -> None:
        check(self)

    def infeasible(self, rows: int, groups: Groups | None = None) -> str | None:
        if groups is None:
            return None
        shards = len(groups.labels)
        if 1 <= self.count <= shards - 1:
            return None
        return (
            f"count = {self.count} of {shards} shards in column {self.column!r} is not between 1 and {shards - 1}: "
            "some shards must be seen and some unseen"
        )

    def request(self, fitted: HasMoments, groups: Groups | None = None, *, joint: bool = False) -> Request[ShardSums]:
        return _Request(fitted=fitted)

    def law(self, state: ShardSums, groups: Groups | None = None) -> Law:
        sums, rows = state.sums, state.queries.rows
        shards = len(sums.codes)
        if shards < 2:
            raise ValueError(f"whole_shards: column {self.column!r} holds one shard alone: there must be at least 2")
        totals = sums.totals * (shards / rows)
        # Totals that differ between shards by the rounding of their sums alone are equal.
        rounding = np.sqrt(sums.spread * float((sums.counts.astype(np.float64) ** 2).sum())) * (shards / rows)
        totals = np.where(np.linalg.norm(totals, axis=0) <= 1e-13 * rounding, 0.0, totals)
        size = state.queries.low.size
        y, g = totals[:, :size], totals[:, size:]
        return assembled(
            state.queries,
            Parts(np.einsum("ij,ij->j", y, y), y.T @ g, g.T @ g, y.T @ y).scaled(1 / (shards - 1)),
            groups=shards,
            flags=("few_shards",) if shards < FEW_SHARDS else (),
        )

    def factors(self, law: Law) -> Factors:
        a = self.count / law.groups
        K = 1 / ((1 - a) * self.count) if self.target == "unseen" else (1 - a) / self.count
        return Factors(n=a * law.rows, m=self.count / (1 - a), K=K)

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.kind, self.column)
