"""Which rows of a table a sweep uses: in go views, out come how many rows are complete, and why the others are not.

A row is dropped iff a release input, the process's column, the target's value or any query's result is missing; it is
counted under the first of these that it lacks. Two views with the same ``mask`` drop the same rows, so that what was
fitted for one serves the other. Always true: a sample does not depend on how the table was cut.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from predcube.pipeline.passes import Block, View
from predcube.tasks.frames import Frame, Groups
from predcube.tasks.releases.surveys import Marginals

_SEEDS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)
_PART = np.uint64(40)  # bits of a row's place in its part


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The complete rows of a view. rows: N. total: with the dropped ones. dropped: reason → rows. mask: names the rows
    that are dropped. groups: of the process's column of labels. queries: of their values, where asked for."""

    rows: int
    total: int
    dropped: Mapping[str, int]
    mask: str
    groups: Groups | None = None
    queries: Marginals | None = None

    @property
    def lost(self) -> int:
        """Rows that were dropped."""
        return self.total - self.rows

    def as_data(self) -> dict[str, Any]:
        """What ``stored`` can keep."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A sample of some rows, additive."""

    rows: int
    total: int
    lost: tuple[int, ...]
    mask: tuple[int, ...]
    groups: Groups | None
    queries: Marginals | None  # None too where no row is complete

    def add(self, other: Self) -> Self:
        groups = self.groups if self.groups is None or other.groups is None else self.groups.add(other.groups)
        queries = self.queries or other.queries
        if self.queries is not None and other.queries is not None:
            queries = self.queries.add(other.queries)
        return type(self)(
            rows=self.rows + other.rows,
            total=self.total + other.total,
            lost=tuple(a + b for a, b in zip(self.lost, other.lost, strict=True)),
            mask=tuple((a + b) % 2**64 for a, b in zip(self.mask, other.mask, strict=True)),
            groups=groups,
            queries=queries,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """Asks for the sample of a view. ``names``: of its queries, for the reasons; ``valued``: whether the queries' means
    and limits are wanted."""

    view: View
    names: tuple[str, ...]
    valued: bool = False

    def __call__(self, block: Block) -> Counted:
        kept = np.ones(block.rows, dtype=np.bool_)
        lost = []
        for _, lacking in self._reasons(block):
            if lacking is None:
                lost.append(0)
                continue
            lost.append(int(np.count_nonzero(kept & lacking)))
            kept &= ~lacking
        rows = block.rows - sum(lost)
        whole = rows == block.rows
        groups = self._groups(block, kept)
        queries = None
        if self.valued and rows:
            values = block.tables[self.view.queries]
            values = values if whole else values[kept]
            queries = Marginals.of(Frame(queries=np.empty((rows, 0)), inputs=values))
        dropped = np.empty(0, np.uint64) if whole else np.flatnonzero(~kept).astype(np.uint64)
        place = (np.uint64(block.part) << _PART) + np.uint64(block.start) + dropped
        return Counted(
            rows=rows,
            total=block.rows,
            lost=tuple(lost),
            mask=tuple(_hashed(place, seed) for seed in _SEEDS),
            groups=groups,
            queries=queries,
        )

    def _reasons(self, block: Block | None) -> list[tuple[str, NDArray[np.bool_] | None]]:
        """The reasons in the order in which they are asked, with the rows that have them."""
        view = self.view

        def each(names: tuple[str, ...], words: list[str]) -> list[tuple[str, NDArray[np.bool_] | None]]:
            lacking = None if block is None or not names else block.lacks(names)
            return [(w, None if lacking is None else lacking[:, i]) for i, w in enumerate(words)]

        found = each(view.inputs, [f"release input {e}" for e in view.inputs])
        if view.column is not None:
            words = [f"process column {view.column}"]
            if view.grouped:
                found.append((words[0], None if block is None else block.unlabelled(view.column)))
            else:
                found += each((view.column,), words)
        if view.target is not None:
            found += each((view.target,), ["target"])
        return found + each(view.queries, [f"query {name}" for name in self.names])

    def _groups(self, block: Block, kept: NDArray[np.bool_]) -> Groups | None:
        if not self.view.grouped or self.view.column is None:
            return None
        codes, labels = block.codes[self.view.column]
        counts = np.bincount(codes[kept], minlength=len(labels))
        present = sorted((labels[i], int(counts[i])) for i in np.flatnonzero(counts))
        return Groups(labels=tuple(n for n, _ in present), counts=np.array([c for _, c in present], dtype=np.int64))

    def finished(self, found: Counted | None) -> Sample:
        """The sample, from the sum over all rows."""
        words = [reason for reason, _ in self._reasons(None)]
        if found is None:
            return Sample(rows=0, total=0, dropped={}, mask="0-0")
        dropped = {reason: count for reason, count in zip(words, found.lost, strict=True) if count}
        return Sample(
            rows=found.rows,
            total=found.total,
            dropped=dropped,
            mask="-".join(f"{part:x}" for part in found.mask),
            groups=found.groups,
            queries=found.queries,
        )


def _hashed(places: NDArray[np.uint64], seed: int) -> int:
    """Σ of a mixed form (splitmix64) of the places, modulo 2^64."""
    with np.errstate(over="ignore"):
        x = places + np.uint64(seed)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return int((x ^ (x >> np.uint64(31))).sum(dtype=np.uint64))
