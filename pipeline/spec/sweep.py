"""A checked sweep: what ``load_spec`` returns and everything after it uses. Data only.

Always true of a ``Sweep``: every cell's sections build without error; axis names are unique and legal; values of an
axis are distinct and of one type.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

type Value = bool | int | float | str
type Section = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepAxis:
    """One axis of the grid. A dotted axis sets the parameter at ``path`` to each of ``values``; a section axis
    (``path`` of one part, ``sections`` given) replaces the whole section, and ``values`` are its labels."""

    name: str
    path: str
    values: tuple[Value, ...]
    dtype: Literal["int64", "float64", "str"]
    sections: tuple[Section, ...] | None = None
    applies: tuple[str, ...] = ()  # the kinds (or labels) the parameter applies to, when not to all


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """``limits``: quantity → largest value wanted. ``confidence``: 1 − β of theory D."""

    limits: Mapping[str, float] = field(default_factory=dict)
    confidence: float = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the grid as plain sections: what the science is built from, and what travels to a worker."""

    index: tuple[int, ...]
    hypotheses: Section
    distribution: Section  # {"kind": "table", "path": …, "features": […], "label": …} for real data
    learner: Section
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A prediction sweep. ``text`` is the spec verbatim; ``notes`` are things the user should hear (dropped
    duplicates of a rounded log axis, axes that do not apply everywhere)."""

    name: str
    kind: Literal["prediction"]
    seed: int
    trials: int
    n: int | None
    hypotheses: Section | None
    distribution: Section | None
    learner: Section | None
    axes: tuple[SweepAxis, ...]
    quantities: tuple[str, ...]
    method: str
    targets: Targets
    measure: Mapping[str, Any]  # the remaining options of [measure] with defaults filled in
    notes: tuple[str, ...]
    text: str
    directory: str  # paths in the spec are relative to it

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(a.values) for a in self.axes)

    def indices(self) -> "product[tuple[int, ...]]":
        """Every cell's index, row-major."""
        return product(*(range(s) for s in self.shape))
