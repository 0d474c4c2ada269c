"""Draws with replacement: in goes a size n, out come the plain moments of the table."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge

from predcube.tasks.frames import Groups, Request
from predcube.tasks.moments import Moments
from predcube.tasks.parameters import check
from predcube.tasks.processes.base import Factors, HasMoments, Law, Process
from predcube.tasks.processes.plain import Rows, plain_law


@dataclass(frozen=True, slots=True, kw_only=True)
class Iid(Process[Moments]):
    """n rows drawn uniformly with replacement: w = 1, m = n, K = 1/n. The attacker predicts the mean of all rows."""

    kind: ClassVar[str] = "iid"
    source: ClassVar[str] = "Lu & Sridharan 2026, Theorem 3.6"

    size: Annotated[int, Ge(1)]
    target: Literal["all"] = "all"

    def __post_init__(self) -> None:
        check(self)

    def infeasible(self, rows: int, groups: Groups | None = None) -> str | None:
        return None if rows >= 2 else f"the table has {rows} complete rows: at least 2 are needed"

    def request(self, fitted: HasMoments, groups: Groups | None = None, *, joint: bool = False) -> Request[Moments]:
        return Rows(fitted=fitted, joint=joint)

    def law(self, state: Moments, groups: Groups | None = None) -> Law:
        return plain_law(state)

    def factors(self, law: Law) -> Factors:
        return Factors(n=self.size, m=self.size, K=1 / self.size)

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.kind,)
