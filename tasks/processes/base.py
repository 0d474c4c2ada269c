"""What every breach process offers: in go the sums of one pass over a table, out come the law of the attacker's moments
and the factors that turn it into a gain.

The attacker holds rows drawn by the process. With w the weight to the uniform law, p the mean of q over the target and
λ the release's estimate, q' = w(q − p) and g' = w·g; the law holds V = Var g', C = Cov(g', q') and s1 = Var q'
(long-run covariances where draws depend on each other). A process's law does not depend on how much is drawn: n,
fraction, count and steps enter through ``Factors`` alone, so that a sweep over them reads the table once.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.frames import Groups, Request, State

FEW_SHARDS = 100
"""With fewer groups than this the first-order value of whole shards is flagged: it is 9% off at 52."""


class HasMoments(Protocol):
    """What a process needs of a fitted release: its rows g(z_i, λ)."""

    def moments(self, inputs: NDArray[np.float64], /) -> NDArray[np.float64]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """The law of q' and g' under a process, of a whole table: small, and all that cells need of the rows.

    rows: N. p: (Q,) mean of q over the target. s1: (Q,) Var q'. cross: (Q, d) Cov(q', g'). variance: (d, d) V = Var g'.
    joint: (Q, Q) Var of all q' at once, None unless asked for (families need it). binary, constant: (Q,) whether q
    takes no value but 0 and 1, and whether it takes one value alone (then its s1 and cross are 0). groups: M, 0 without
    groups. inclusion: mean π of Poisson inclusion, else 0. members: N' of a target D', else 0. flags: what a reader of
    the values should know.
    """

    rows: int
    p: NDArray[np.float64]
    s1: NDArray[np.float64]
    cross: NDArray[np.float64]
    variance: NDArray[np.float64]
    joint: NDArray[np.float64] | None = None
    binary: NDArray[np.bool_]
    constant: NDArray[np.bool_]
    groups: int = 0
    inclusion: float = 0.0
    members: int = 0
    flags: tuple[str, ...] = ()

    @property
    def covariance(self) -> NDArray[np.float64]:
        """(Q + d, Q + d) covariance of [q', g']. ValueError where the pass did not ask for ``joint``."""
        if self.joint is None:
            raise ValueError("covariances between queries were not asked for: request them with joint=True")
        return np.block([[self.joint, self.cross], [self.cross.T, self.variance]])

    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and plain JSON values, to be stored; ``unpack`` reads them."""
        arrays: dict[str, NDArray[Any]] = {}
        facts: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                arrays[field.name] = value
            elif value is not None:
                facts[field.name] = list(value) if isinstance(value, tuple) else value
        return arrays, facts

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Self:
        return cls(**{**arrays, **facts, "flags": tuple(facts.get("flags", ()))})


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What the amount that is drawn does: n rows held (expected), S_eff = m·S_tot, and attacker's gain = K·gain."""

    n: float
    m: float
    K: float


class Process[S: State](ABC):
    """A breach process. Concrete ones are frozen, keyword-only dataclasses whose fields are the spec's words."""

    __slots__ = ()

    kind: ClassVar[str]
    source: ClassVar[str]
    needs_groups: ClassVar[bool] = False
    """Whether ``column`` holds labels: then a frame's column holds their codes, and ``Groups`` are counted first."""

    target: str
    """``unseen`` or ``all`` rows, or an expression that says which rows are members of D'."""

    @property
    def reads(self) -> str | None:
        """The column that the process reads, or None."""
        return getattr(self, "column", None)

    @property
    def target_expression(self) -> str | None:
        """The expression of D', None where the target is a word."""
        return None if self.target in ("unseen", "all") else self.target

    @abstractmethod
    def infeasible(self, rows: int, groups: Groups | None = None) -> str | None:
        """Why the process cannot run on a table of N rows (and these groups), or None. Infeasible is not failed."""

    @abstractmethod
    def request(self, fitted: HasMoments, groups: Groups | None = None, *, joint: bool = False) -> Request[S]:
        """What one pass over the table adds up. ``joint`` asks for covariances between queries too, for families."""

    @abstractmethod
    def law(self, state: S, groups: Groups | None = None) -> Law:
        """The law, from the sum of the states of all rows. ValueError where a column's values are refused."""

    @abstractmethod
    def factors(self, law: Law) -> Factors:
        """n, m and K on the law's table."""

    @property
    @abstractmethod
    def key(self) -> tuple[Any, ...]:
        """What of the process the law depends on, as plain JSON values: processes of equal key share a law."""

    def parameters(self) -> Mapping[str, Any]:
        """The parameters, named as in a spec."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]


def aux_moments_of(value: Any, kind: str) -> tuple[str, ...]:
    """The option ``aux_moments`` as a tuple: nothing, or ("w",). Raises ValueError for anything else."""
    names = tuple(value) if isinstance(value, list | tuple) else (value,)
    if any(name != "w" for name in names) or len(names) > 1:
        raise ValueError(f"{kind}: aux_moments = {value!r} must be [] or ['w'], the weight whose mean 1 is known")
    return names


@lru_cache(maxsize=4096)
def share_of(fraction: float) -> Fraction:
    """The decimal that was written, exactly: 0.3 is 3/10."""
    return Fraction(repr(float(fraction)))
