"""A finite class given as a matrix: one row a hypothesis, one column a point."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Integral
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import MinLen
from numpy.typing import NDArray

from predcube.tasks.hypotheses import shattering
from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points, Representatives
from predcube.tasks.hypotheses.points import distinct, finite_points
from predcube.tasks.hypotheses.row_charts import LARGEST, RowChart, row_chart

type Matrix = tuple[tuple[Literal[0, 1], ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(HypothesisClass):
    """The rows of ``matrix`` as functions on X = {0, …, columns − 1}; equal rows count as often as they stand.

    A representative is a row's index; for a labeling of T it is the first row that realises it. A concept is named by
    its row's index.
    """

    matrix: Annotated[Matrix, MinLen(1)]

    kind: ClassVar[str] = "table"
    source: ClassVar[str] = "any finite class; give matrix, or path to a file of 0 and 1"
    _rows: Labels = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows = _checked_matrix(self.matrix)
        object.__setattr__(self, "matrix", tuple(map(tuple, rows.tolist())))
        object.__setattr__(self, "_rows", rows)

    @property
    def vc_dimension(self) -> int:
        """Found by search; ValueError where the table is too large to tell within ``SEARCH_STEPS``."""
        found = _vc_dimension(self)
        if found is None:
            raise ValueError(
                f"the VC dimension of a table of {self._rows.shape[0]} rows and {self._rows.shape[1]} columns was not "
                f"found in {shattering.SEARCH_STEPS} steps; use fewer columns"
            )
        return found

    @property
    def domain(self) -> Points | None:
        return np.arange(self._rows.shape[1])

    def labelings(self, points: Points) -> Labels:
        values, place = self._distinct(points)
        return self._rows[self._first_rows(values)][:, values][:, place]

    def representatives(self, points: Points) -> Representatives:
        return self._first_rows(self._distinct(points)[0])

    def predict(self, representatives: Representatives, points: Points) -> Labels:
        columns = finite_points(points, self._rows.shape[1])
        return self._rows[np.asarray(representatives, dtype=np.int64)][:, columns]

    def growth(self, m: int) -> int | None:
        """Found by search, the number of distinct rows on the whole X; where a search takes too long, the least of 2^m,
        the distinct rows and Sauer–Shelah's bound."""
        return _growth(self, min(m, self._rows.shape[1]))

    def members(self) -> Representatives:
        """Every row's index in lexicographic order of the rows, equal rows in table order."""
        return np.lexsort(self._rows.T[::-1]).astype(np.int64)

    def named(self, value: Any) -> Representatives:
        """The row's index."""
        if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < len(self._rows):
            raise ValueError(f"{value!r} names no row of the table; give an index from 0 to {len(self._rows) - 1}")
        return np.array([int(value)])

    def charted(self, k: int, t: int) -> bool:
        return len(self._rows) * k <= LARGEST

    def chart(self, points: Points, t: int) -> RowChart | None:
        if not self.charted(len(points), t):
            return None
        return row_chart(np.arange(len(self._rows)), self._rows[:, finite_points(points, self._rows.shape[1])])

    def listing(self, k: int, t: int) -> float:
        if self.charted(k, t):
            return 20.0 + len(self._rows) * (6.0 + 2.0 * k / 64)
        return HypothesisClass.listing(self, k, t)

    def _distinct(self, points: Points) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return distinct(finite_points(points, self._rows.shape[1]))

    def _first_rows(self, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each distinct restriction to ``columns``, in lexicographic order, the first row that has it."""
        part = self._rows[:, columns]
        if part.shape[1] <= 62:
            codes = part @ (1 << np.arange(part.shape[1] - 1, -1, -1, dtype=np.int64))
            first = np.unique(codes, return_index=True)[1]
        else:
            first = np.unique(np.packbits(part, axis=1), axis=0, return_index=True)[1]
        return first.astype(np.int64)


def _checked_matrix(matrix: Any) -> Labels:
    rows = [np.asarray(row) for row in matrix] if isinstance(matrix, Iterable) else []
    if len(rows) == 0 or rows[0].ndim != 1 or len(rows[0]) == 0:
        raise ValueError("table: matrix must have at least one row and one column; give rows of 0 and 1")
    for i, row in enumerate(rows):
        if row.shape != rows[0].shape:
            raise ValueError(f"table: row {i} of matrix has {row.size} entries and row 0 has {len(rows[0])}")
    array = np.asarray(rows)
    bad = np.argwhere((array != 0) & (array != 1))
    if len(bad):
        i, j = bad[0]
        raise ValueError(f"table: matrix has {array[i, j]} in row {i}, column {j}; every entry must be 0 or 1")
    return array.astype(np.uint8)


@lru_cache(maxsize=64)
def _vc_dimension(table: Table) -> int | None:
    found = shattering.largest_shattered(table._rows)
    return None if found is None else len(found)


@lru_cache(maxsize=1024)
def _growth(table: Table, m: int) -> int:
    return shattering.most_labelings(table._rows, m, _vc_dimension(table))[0]
