"""The lines y = ax + b over a finite field, as functions on its plane."""

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points, Representatives
from predcube.tasks.hypotheses.packing import first_of_each, pack
from predcube.tasks.hypotheses.points import distinct, finite_points, grid, named_numbers
from predcube.tasks.hypotheses.row_charts import LARGEST, RowChart, row_chart
from predcube.tasks.hypotheses.shattering import largest_shattered
from predcube.tasks.parameters import check

LARGEST_FIELD = 1009
"""The largest q: a million lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GfLines(HypothesisClass):
    """The q² functions 1{y = ax + b} on the plane GF(q)², q prime; X = {0, …, q − 1}². Of VC dimension 2.

    Two points of different abscissa are shattered: one line passes through both, and each lies on q − 1 others, which
    miss the other point. Three points are not: 111 wants them on one line, and then 110 does not occur.
    (Dagan & Feldman give 1.)

    A representative is a row (a, b); for a labeling of T it is the first line, in canonical order on X, that has it. A
    concept is named by [a, b].
    """

    q: Annotated[int, Ge(2)]

    kind: ClassVar[str] = "gf_lines"
    source: ClassVar[str] = "Dagan & Feldman 2020, section 1 (lines over a finite field; d is 2, not 1)"

    def __post_init__(self) -> None:
        check(self)
        if self.q > LARGEST_FIELD:
            raise ValueError(
                f"gf_lines: q = {self.q} gives {self.q**2} lines, at most {LARGEST_FIELD**2} are taken; "
                f"lower q to {LARGEST_FIELD} or less"
            )
        factor = next((f for f in range(2, isqrt(self.q) + 1) if self.q % f == 0), None)
        if factor is not None:
            lower = next(p for p in range(self.q - 1, 1, -1) if all(p % f for f in range(2, isqrt(p) + 1)))
            raise ValueError(
                f"gf_lines: q = {self.q} = {factor}·{self.q // factor} is not prime; give a prime such as {lower}"
            )

    @property
    def vc_dimension(self) -> int:
        """Found by search among the lines of a small field; 2 for every q (see the class)."""
        return 2 if self.q > 13 else _searched(self.q)

    @property
    def domain(self) -> Points | None:
        return grid(self.q, 2)

    @property
    def features(self) -> int:
        return 2

    def labelings(self, points: Points) -> Labels:
        values, place = distinct(self._checked(points))
        return self.predict(self.representatives(values), values)[:, place]

    def representatives(self, points: Points) -> Representatives:
        values, _ = distinct(self._checked(points))
        lines = self.members()
        words = np.concatenate(  # a block of lines at a time: all labels of a large field would not fit
            [
                pack(self._predict(block, values))
                for block in np.array_split(lines, 1 + len(lines) * len(values) // 2**26)
            ]
        )
        return lines[first_of_each(words)]

    def predict(self, representatives: Representatives, points: Points) -> Labels:
        return self._predict(np.asarray(representatives, dtype=np.int64), self._checked(points))

    def members(self) -> Representatives:
        """All lines in canonical order: a line that meets the columns x = 0 and x = 1 higher up comes first."""
        at_zero, at_one = np.divmod(np.arange(self.q**2)[::-1], self.q)
        return np.column_stack([(at_one - at_zero) % self.q, at_zero])

    def named(self, value: Any) -> Representatives:
        """[a, b], the line y = ax + b."""
        listed = named_numbers(value)
        if len(listed) != 2 or any(v not in range(self.q) for v in listed):
            raise ValueError(f"{value!r} names no line over GF({self.q}); give [a, b], integers from 0 to {self.q - 1}")
        return np.array([[int(v) for v in listed]])

    def growth(self, m: int) -> int | None:
        """The q² lines on the whole plane; on fewer points at most 1 + m + C(m, 2), since two points fix a line."""
        return self.q**2 if m >= self.q**2 else min(self.q**2, 1 + m + m * (m - 1) // 2)

    def charted(self, k: int, t: int) -> bool:
        return self.q**2 * k <= LARGEST

    def chart(self, points: Points, t: int) -> RowChart | None:
        if not self.charted(len(points), t):
            return None
        lines = self.members()
        return row_chart(lines, self._predict(lines, self._checked(points)))

    def listing(self, k: int, t: int) -> float:
        if self.charted(k, t):
            return 20.0 + self.q**2 * (6.0 + 2.0 * k / 64)
        return HypothesisClass.listing(self, k, t)

    def _checked(self, points: Points) -> NDArray[np.int64]:
        return finite_points(points, self.q, 2)

    def _predict(self, lines: NDArray[np.int64], points: NDArray[np.int64]) -> Labels:
        on = (lines[:, :1] * points[:, 0] + lines[:, 1:] - points[:, 1]) % self.q == 0
        return np.asarray(on, dtype=np.uint8)


@lru_cache(maxsize=8)
def _searched(q: int) -> int:
    lines = GfLines(q=q)
    plane = grid(q, 2)
    found = largest_shattered(lines.predict(lines.members(), plane))
    return 2 if found is None else len(found)
