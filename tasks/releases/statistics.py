"""Means, proportions and counts as releases: λ a mean of Γ(z) over the table, g = Γ(z) − λ (P2 section 4.1)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.frames import Total
from predcube.tasks.releases.base import Fitted, Release, names_of
from predcube.tasks.releases.surveys import Marginals, Survey
from predcube.tasks.releases.whitening import whitened

type Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedStatistic(Fitted):
    """means: (d,) of Γ. factor: λ = factor · mean Γ, so that G = −1/factor."""

    means: Floats
    factor: float

    def moments(self, inputs: Floats, shift: Floats | None = None) -> Floats:
        """Rows (m, d): g = Γ(z) − (λ + shift)/factor."""
        rows = inputs - self.means
        return rows if shift is None else rows - shift / self.factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic(Release):
    """One number for each of ``columns`` (names or expressions)."""

    source: ClassVar[str] = "P2 section 4.1, Theorem 4.1"

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names_of(self.columns, f"{self.kind}: columns"))

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.columns

    @property
    def names(self) -> tuple[str, ...]:
        return self.columns

    def fit(self, total: Total) -> Fitted:
        if len(self.columns) == 1:
            return self.bare(total)
        survey = total(Survey.of)
        return whitened(self._of(survey.marginals), total, survey.covariance)

    def bare(self, total: Total) -> FittedStatistic:
        return self._of(total(Marginals.of))

    def _of(self, found: Marginals) -> FittedStatistic:
        self.check(found)
        factor = self.factor(found.rows)
        size = len(self.columns)
        spread = found.high - found.low
        return FittedStatistic(
            estimate=factor * found.mean,
            curvature=-np.eye(size) / factor,
            units=np.eye(size),
            released=np.eye(size),
            fixed=np.zeros((0, size)),
            # A column is right to the rounding of its own values, whatever its offset.
            grain=4 * np.finfo(np.float64).eps * found.reach / np.where(spread > 0, spread, np.inf),
            rank=size,
            condition=1.0,
            rows=found.rows,
            means=found.mean,
            factor=factor,
        )

    def factor(self, rows: int) -> float:
        """λ = factor · mean."""
        return 1.0

    def check(self, found: Marginals) -> None:
        """Raises ValueError where a column cannot be released so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(Statistic):
    """λ = (1/N) Σ x_i of each column."""

    kind: ClassVar[str] = "mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion(Statistic):
    """λ = (1/N) Σ x_i of columns that hold 0 and 1; anything else is refused."""

    kind: ClassVar[str] = "proportion"

    def check(self, found: Marginals) -> None:
        for j, column in enumerate(self.columns):
            if not found.binary[j]:
                raise ValueError(
                    f"{self.kind}: column {column!r} must be 0 or 1 in every row, and its values go from "
                    f"{found.low[j]:g} to {found.high[j]:g}: make it 0/1 by an expression, or release its mean"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Proportion):
    """λ = Σ x_i, the number of ones of each column; N is public, so that G = −1/N."""

    kind: ClassVar[str] = "count"

    def factor(self, rows: int) -> float:
        return float(rows)
