"""Passes over the rows of a table: in go what is asked of them, out come sums, added in one fixed binary tree.

A block is some neighbouring rows as numbers; an ask makes an additive state of it. Always true: blocks are cut by
the table and ``longest`` alone, so that the sums are the same bits for any number of workers and any company of asks;
one ask that fails leaves the others as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from predcube.cluster import Fanout, Job, Program, describe
from predcube.cluster.attempts import Stack
from predcube.storage.failures import StoreError
from predcube.storage.matrices import blocks, columns_read, labels
from predcube.storage.rows import Part, Rows, batches
from predcube.tasks.frames import Frame, Groups, State


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What of a table is read, and which rows are complete: those in which none of it is missing.

    inputs, queries: columns or SQL expressions. column: the breach process's own, of labels where ``grouped``. target:
    the expression of D'.
    """

    inputs: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    column: str | None = None
    grouped: bool = False
    target: str | None = None

    @property
    def numbers(self) -> tuple[tuple[str, ...], ...]:
        """The expressions that are read as numbers, those of one use together."""
        own = () if self.column is None or self.grouped else (self.column,)
        target = () if self.target is None else (self.target,)
        return tuple(dict.fromkeys(names for names in (self.inputs, own, target, self.queries) if names))

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that are read as labels."""
        return (self.column,) if self.grouped and self.column is not None else ()


type Names = tuple[str, ...]


class Block:
    """Some neighbouring rows of one part. tables: names → (m, names) values, NaN where missing. codes: column → ((m,)
    codes, −1 where missing; what they stand for). part, start: which rows these are."""

    def __init__(
        self,
        *,
        tables: Mapping[Names, NDArray[np.float64]],
        codes: Mapping[str, tuple[NDArray[np.int64], Names]],
        rows: int,
        part: int,
        start: int,
    ) -> None:
        self.tables, self.codes, self.rows, self.part, self.start = tables, codes, rows, part, start
        self._missing: dict[Names, NDArray[np.bool_] | None] = {}

    def lacks(self, names: Names) -> NDArray[np.bool_] | None:
        """(m, names) what is missing of some numbers; None where nothing is."""
        if names not in self._missing:
            table = self.tables[names]
            self._missing[names] = np.isnan(table) if np.isnan(table.sum()) else None
        return self._missing[names]

    def unlabelled(self, column: str) -> NDArray[np.bool_] | None:
        """(m,) the rows without a label; None where all have one."""
        codes = self.codes[column][0]
        return codes < 0 if codes.size and codes.min() < 0 else None

    def complete(self, view: View) -> NDArray[np.bool_] | None:
        """(m,) the rows that are complete; None where all are."""
        lacking = [found.any(axis=1) for names in view.numbers if (found := self.lacks(names)) is not None]
        lacking += [found for column in view.labels if (found := self.unlabelled(column)) is not None]
        return ~np.logical_or.reduce(lacking) if lacking else None


class Ask(Protocol):
    """What one pass adds up: picklable, and below a few kilobytes."""

    @property
    def view(self) -> View: ...
    def __call__(self, block: Block) -> Any:
        """A state, None where the block has nothing for it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Framed:
    """Asks a request of the complete rows of a view, as frames. ``groups``: the groups whose codes a frame's column
    holds, or a function that gives them; ``bare``: frames of inputs alone."""

    view: View
    request: Callable[[Frame], State]
    groups: Groups | Callable[[], Groups] | None = None
    bare: bool = False

    def __call__(self, block: Block) -> Any:
        kept = block.complete(self.view)
        rows = block.rows if kept is None else int(np.count_nonzero(kept))
        if not rows:
            return None
        view = View(inputs=self.view.inputs) if self.bare else self.view

        def numbers(names: Names) -> NDArray[np.float64]:
            if not names:
                return np.empty((rows, 0))
            table = block.tables[names]
            return table if kept is None else table.T.compress(kept, axis=1).T  # columns lie together

        return self.request(
            Frame(
                queries=numbers(view.queries),
                inputs=numbers(view.inputs),
                column=None
                if view.column is None
                else self._codes(block, view.column, kept)
                if view.grouped
                else numbers((view.column,))[:, 0],
                target=None if view.target is None else members(numbers((view.target,))[:, 0], view.target),
            )
        )

    def _codes(self, block: Block, name: str, kept: NDArray[np.bool_] | None) -> NDArray[np.float64]:
        groups = self.groups() if callable(self.groups) else self.groups
        if groups is None:
            raise ValueError(f"column {name!r}: its groups were not counted")
        codes, found = block.codes[name]
        codes = codes if kept is None else codes[kept]
        # Only labels of complete rows were counted.
        used = np.unique(codes)
        place = np.zeros(len(found), dtype=np.float64)
        place[used] = groups.codes([found[i] for i in used])
        return place[codes]


def members(values: NDArray[np.float64], expression: str) -> NDArray[np.bool_]:
    """Whether rows belong to D'. ValueError for values other than 0 and 1."""
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        raise ValueError(f"target {expression!r} is {values[wrong][0]:g}: a membership is true, false, 1 or 0")
    inside: NDArray[np.bool_] = values == 1
    return inside


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """A state of some rows (None: there was nothing), or the one-line ``error`` that it ended in."""

    state: Any = None
    error: str | None = None

    def add(self, other: "Sum") -> "Sum":
        if self.error is not None or (other.state is None and other.error is None):
            return self
        if other.error is not None or self.state is None:
            return other
        try:
            return Sum(state=self.state.add(other.state))
        except Exception as e:
            return Sum(error=_message(e))


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """The payload of one part of a table."""

    rows: Rows
    part: int
    asks: tuple[Ask, ...]
    longest: int


def longest_block(expressions: int) -> int:
    """Rows of a block where so many expressions of a table are used: some 8 to 80 MB. In few steps, so that another
    query more does not cut a table anew."""
    return 2**16 if expressions <= 16 else 2**14 if expressions <= 128 else 2**12


def read_part(leaf: Leaf) -> tuple[Sum, ...]:
    """What every ask adds up over one part, in the order of the asks. Where the part cannot be read as numbers, each
    has the error."""
    try:
        return _read_part(leaf)
    except StoreError as e:
        return (Sum(error=str(e)),) * len(leaf.asks)


def _read_part(leaf: Leaf) -> tuple[Sum, ...]:
    groups = tuple(dict.fromkeys(names for ask in leaf.asks for names in ask.view.numbers))
    labelled = tuple(dict.fromkeys(c for ask in leaf.asks for c in ask.view.labels))
    numbers = columns_read(leaf.rows.schema, [e for names in groups for e in names])
    trees: list[Stack] = [Stack(Sum.add) for _ in leaf.asks]
    failed: dict[int, str] = {}
    start = 0
    part: Part = leaf.rows.parts[leaf.part]
    for batch in batches(leaf.rows, part, tuple(dict.fromkeys([*numbers, *labelled])), 2**16):
        coded = {column: labels(batch, column) for column in labelled}
        at = 0
        for tables in blocks(batch, groups, leaf.longest):
            rows = len(tables[0]) if tables else min(leaf.longest, batch.num_rows - at)
            for table in tables:
                table.flags.writeable = False  # asks share them
            codes = {column: (c[at : at + rows], names) for column, (c, names) in coded.items()}
            block = Block(
                tables=dict(zip(groups, tables, strict=True)), codes=codes, rows=rows, part=leaf.part, start=start + at
            )
            at += rows
            for i, (ask, tree) in enumerate(zip(leaf.asks, trees, strict=True)):
                if i in failed:
                    continue
                try:
                    tree.push(Sum(state=ask(block)))
                except Exception as e:
                    failed[i] = _message(e)
        start += batch.num_rows
    if not start:
        return (Sum(),) * len(leaf.asks)
    return tuple(Sum(error=failed[i]) if i in failed else tree.root() for i, tree in enumerate(trees))


def _message(error: Exception) -> str:
    """What the science says of a table is meant for its owner; anything else keeps its name."""
    return str(error) if isinstance(error, ValueError) else describe(error)


def _join(left: tuple[Sum, ...], right: tuple[Sum, ...]) -> tuple[Sum, ...]:
    return tuple(a.add(b) for a, b in zip(left, right, strict=True))


def _finish(payload: Any, roots: tuple[tuple[Sum, ...], ...]) -> tuple[Sum, ...]:
    return roots[0]


PROGRAM = Program(leaf=read_part, combine=_join, finish=_finish)


@dataclass(slots=True, kw_only=True)
class Reader:
    """Reads one table. ``fanout``: where its parts are read, an entered fan-out, or None for this process.
    ``longest``: rows of a block. ``passes`` counts them; ``report(done, parts)`` is called as parts are read."""

    rows: Rows
    longest: int
    fanout: Fanout | None = None
    report: Callable[[int, int], None] = lambda done, parts: None
    passes: int = field(default=0, init=False)

    def read(self, asks: Sequence[Ask]) -> tuple[Sum, ...]:
        """One pass. Raises ``PassFailed`` where a worker is lost."""
        if not asks:
            return ()
        self.passes += 1
        leaves = [
            Leaf(rows=self.rows, part=i, asks=tuple(asks), longest=self.longest) for i in range(len(self.rows.parts))
        ]
        if not leaves:
            return (Sum(),) * len(asks)
        if self.fanout is None or len(leaves) == 1:
            tree = Stack(_join)
            # One thread, as a worker has: a long product on two has another last bit.
            with threadpool_limits(limits=1, user_api="blas"):
                for i, leaf in enumerate(leaves):
                    tree.push(read_part(leaf))
                    self.report(i + 1, len(leaves))
            whole: tuple[Sum, ...] = tree.root()
            return whole
        for outcome in self.fanout.run(PROGRAM, [Job(key="pass", payload=None, leaves=(tuple(leaves),))]):
            if outcome.error is not None:
                raise PassFailed(outcome.error)
            if outcome.result is not None:
                found: tuple[Sum, ...] = outcome.result
                return found
            self.report(outcome.leaves_done or 0, len(leaves))
        raise PassFailed("the pass over the table did not end")


class PassFailed(Exception):
    """A pass that was cut short; the message is what the worker said."""
