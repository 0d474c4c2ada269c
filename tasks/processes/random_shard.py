"""A random shard: in goes a fraction or size of the table, out come plain moments of a draw without replacement."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge, Gt, Lt

from predcube.tasks.frames import Frame, Groups, Request
from predcube.tasks.moments import Moments
from predcube.tasks.parameters import check
from predcube.tasks.processes.base import Factors, HasMoments, Law, Process, share_of
from predcube.tasks.processes.plain import Parts, Rows, assembled, plain_law


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSums:
    """Moments of all rows' g, and of the members' [q, g]; None where a block has no member."""

    everyone: Moments
    members: Moments | None

    def add(self, other: Self) -> Self:
        both = [m for m in (self.members, other.members) if m is not None]
        members = both[0].add(both[1]) if len(both) == 2 else (both[0] if both else None)
        return type(self)(everyone=self.everyone.add(other.everyone), members=members)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Members:
    fitted: HasMoments
    joint: bool

    def __call__(self, frame: Frame) -> MemberSums:
        inside = frame.target
        if inside is None:
            raise ValueError("random_shard: the frame does not say which rows are members of the target")
        g = self.fitted.moments(frame.inputs)
        members = Moments.of(frame.queries[inside], g[inside], joint=self.joint) if np.any(inside) else None
        return MemberSums(everyone=Moments.of(np.empty((frame.rows, 0)), g), members=members)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomShard(Process[Moments | MemberSums]):
    """n = round(fraction·N) rows (or ``size``) drawn uniformly without replacement; a = n/N.

    Plain moments × N/(N − 1), m = n/(1 − a). The attacker predicts the mean of the unseen rows, K = 1/((1 − a)n); of
    all rows, K = (1 − a)/n; or, where ``target`` is an expression, of the law D' uniform on the rows where it holds:
    q' = (N/N')·1{i ∈ D'}(q − p), p the mean over D', with ``members`` = "all" of them, K = (1 − a)/n, or only the
    "unseen" ones, K = 1/((1 − a)n).
    """

    kind: ClassVar[str] = "random_shard"
    source: ClassVar[str] = "Lu & Sridharan 2026, Corollary 3.8; Theorem A.1 for a target D'"

    fraction: Annotated[float, Gt(0), Lt(1)] | None = None
    size: Annotated[int, Ge(1)] | None = None
    target: str = "unseen"
    members: Literal["all", "unseen"] | None = None

    def __post_init__(self) -> None:
        check(self)
        if (self.fraction is None) == (self.size is None):
            raise ValueError("random_shard needs fraction or size, one of them: fraction = 0.3, or size = 100")
        if self.members is not None and self.target_expression is None:
            raise ValueError(
                f"random_shard: members = {self.members!r} is for a target that is an expression; target = "
                f"{self.target!r} says itself who is meant"
            )

    def drawn(self, rows: int) -> int:
        """n on a table of N rows: the decimal that was written, times N, rounded to the nearest integer."""
        return self.size if self.size is not None else round(share_of(self.fraction or 0.0) * rows)

    def infeasible(self, rows: int, groups: Groups | None = None) -> str | None:
        n = self.drawn(rows)
        if 1 <= n <= rows - 1:
            return None
        return f"n = {n} of {rows} complete rows is not between 1 and {rows - 1}: some must be seen and some unseen"

    def request(
        self, fitted: HasMoments, groups: Groups | None = None, *, joint: bool = False
    ) -> Request[Moments | MemberSums]:
        if self.target_expression is None:
            return Rows(fitted=fitted, joint=joint)
        return _Members(fitted=fitted, joint=joint)

    def law(self, state: Moments | MemberSums, groups: Groups | None = None) -> Law:
        if isinstance(state, Moments):
            return plain_law(state, factor=state.rows / (state.rows - 1))
        rows, inside = state.everyone.rows, state.members
        if inside is None:
            raise ValueError(f"random_shard: no row is a member of target = {self.target!r}: it has no mean to predict")
        corrected = rows / (rows - 1)
        # g has mean 0 over the table and q − p over the members, so their products need the members' rows alone.
        return assembled(
            inside,
            Parts(
                inside.squares * (corrected * rows / inside.rows**2),
                inside.cross * (corrected / inside.rows),
                state.everyone.gram * (corrected / rows),
                None if inside.joint is None else inside.joint * (corrected * rows / inside.rows**2),
            ),
            members=inside.rows,
            rows=rows,
        )

    def factors(self, law: Law) -> Factors:
        n = self.drawn(law.rows)
        left = 1 - n / law.rows
        unseen = self.target == "unseen" or self.members == "unseen"
        return Factors(n=n, m=n / left, K=1 / (left * n) if unseen else left / n)

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.kind, self.target_expression)
