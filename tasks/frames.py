"""Blocks of complete rows, and sums over them: what a table looks like to the science.

In go columns of numbers, out comes a ``Frame`` in which nothing is missing or infinite; a ``Request`` turns a frame
into an additive ``State``, and a ``Total`` adds the states of all frames of a table in one fixed binary tree.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

type Request[S: State] = Callable[[Frame], S]
"""What one pass adds up. Picklable: a frozen dataclass with ``__call__``, or a partial of a module's function."""


class State(Protocol):
    """Anything additive: ``a.add(b)`` is the state of both sets of rows, a's first."""

    def add(self, other: Self) -> Self: ...


class Total(Protocol):
    """One pass over all rows of a table: the states of its frames added in one fixed binary tree."""

    def __call__[S: State](self, request: Request[S], /) -> S: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """m complete rows z_i of a table: nothing in them is missing or infinite.

    queries: (m, Q) values q(z_i). inputs: (m, P) what the release reads, in the order of ``release.inputs``.
    column: (m,) the process's own column (weights c_i, inclusion probabilities π_i, or codes of groups 0…M−1), None
    where the process has none. target: (m,) membership of D', None where the target is not an expression.
    Matrices lie in either order, a row's values together or a column's.

    Raises ValueError where lengths differ, or where a value is missing or infinite.
    """

    queries: NDArray[np.float64]
    inputs: NDArray[np.float64]
    column: NDArray[np.float64] | None = None
    target: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        for name in ("queries", "inputs"):
            array = np.asarray(getattr(self, name), dtype=np.float64)
            if not (array.flags.c_contiguous or array.flags.f_contiguous):
                array = np.ascontiguousarray(array)
            if array.ndim != 2 or array.shape[0] != self.queries.shape[0]:
                raise ValueError(f"{name} of shape {array.shape} must have one row for each of {len(self.queries)}")
            object.__setattr__(self, name, array)
        for name in ("column", "target"):
            array = getattr(self, name)
            if array is not None and array.shape != (self.rows,):
                raise ValueError(f"{name} of shape {array.shape} must have one value for each of {self.rows} rows")
        for name in ("queries", "inputs", "column"):
            array = getattr(self, name)
            if array is not None and not _finite(array):
                raise ValueError(f"{name} hold a missing or infinite value: drop such rows before they are framed")

    @property
    def rows(self) -> int:
        return len(self.queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The groups of a table's rows (shards, states) and how many rows each has: what a first, counting pass finds.

    labels: M distinct texts, ascending; a row's code is its label's position. counts: (M,) rows of each, positive.
    """

    labels: tuple[str, ...]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        if any(a >= b for a, b in zip(self.labels, self.labels[1:], strict=False)):
            raise ValueError("labels of groups must be distinct and ascending")
        if self.counts.shape != (len(self.labels),) or np.any(self.counts < 1):
            raise ValueError(f"each of {len(self.labels)} groups needs a count of at least one row")

    @classmethod
    def of(cls, labels: Iterable[str]) -> Self:
        """The groups of some rows, a label each."""
        names, counts = np.unique(np.asarray(list(labels), dtype=object), return_counts=True)
        return cls(labels=tuple(str(name) for name in names), counts=counts.astype(np.int64))

    def add(self, other: Self) -> Self:
        both = dict(zip(self.labels, self.counts.tolist(), strict=True))
        for label, count in zip(other.labels, other.counts.tolist(), strict=True):
            both[label] = both.get(label, 0) + count
        labels = tuple(sorted(both))
        return type(self)(labels=labels, counts=np.array([both[label] for label in labels], dtype=np.int64))

    def codes(self, labels: Iterable[str]) -> NDArray[np.float64]:
        """The code of each label, as a frame's ``column``. ValueError where a label is not one of the groups."""
        found: dict[str, int] = {}
        codes = []
        for label in labels:
            code = found.get(label)
            if code is None:
                code = bisect_left(self.labels, label)
                if code == len(self.labels) or self.labels[code] != label:
                    raise ValueError(f"group {label!r} was not counted: the table changed between two passes")
                found[label] = code
            codes.append(code)
        return np.array(codes, dtype=np.float64)

    @property
    def rows(self) -> int:
        return int(self.counts.sum())


def _finite(values: NDArray[np.float64]) -> bool:
    # A sum is finite unless a term is not, or finite terms overflow it: only then is every term looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return True
    return bool(np.all(np.isfinite(values)))


def total_of(frames: Iterable[Frame]) -> Total:
    """The total over frames that are in memory.

    >>> one, two = (Frame(queries=np.ones((m, 1)), inputs=np.ones((m, 1))) for m in (3, 4))
    >>> total_of([one, two])(lambda frame: Groups(labels=("a",), counts=np.array([frame.rows]))).rows
    7
    """
    held = list(frames)
    if not held:
        raise ValueError("no complete row is left: every row lacks a value that is used")

    def total[S: State](request: Request[S], /) -> S:
        states = [request(frame) for frame in held]
        while len(states) > 1:
            pairs = [a.add(b) for a, b in zip(states[::2], states[1::2], strict=False)]
            states = pairs + states[2 * len(pairs) :]
        return states[0]

    return total
