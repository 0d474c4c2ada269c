"""A checked sweep: what ``load_spec`` returns and everything after it uses. Data only.

Always true of a ``Sweep``: every distinct section of its cells builds without error; axis names are unique and legal;
values of an axis are distinct and of the parameter's type (an integer written for a float parameter is a float here).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from predcube.pipeline.spec.formulas import evaluate, is_formula, names

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
    applies: tuple[str, ...] = ()  # the kinds that take the parameter, when not all of them do
    section: str = ""
    """Which part of a cell the axis changes: a role of the sweep's grammar, "n" or "measure"."""

    def __post_init__(self) -> None:
        if not self.section:
            object.__setattr__(self, "section", self.path.partition(".")[0])

    @property
    def parameter(self) -> str | None:
        """The parameter that a dotted axis sets, None for ``n`` and for section axes."""
        return self.path.partition(".")[2] or None

    def coordinate(self) -> NDArray[Any]:
        """The axis's coordinate: int64, float64, or strings (labels; booleans as "true" and "false"; mixed axes)."""
        if self.dtype == "str":
            return np.array([word(v) for v in self.values], dtype=np.str_)
        return np.array(self.values, dtype=self.dtype)


def word(value: Value) -> str:
    """How a value stands in a coordinate of strings."""
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else repr(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """``limits``: quantity → largest value wanted, or the formula that gives it. ``confidence``: 1 − β of theory D."""

    limits: Mapping[str, float | str] = field(default_factory=dict)
    confidence: float = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the grid as plain sections: what the science is built from, and what travels to a worker.

    ``measure`` holds the options that say how, and not what, is measured: ``method``, ``samples``, ``neighbours``.
    """

    index: tuple[int, ...]
    sections: Mapping[str, Section]  # by role; of a table: its path and the digest of its rows
    n: int | None
    measure: Section = field(default_factory=dict)

    def part(self, name: str) -> Any:
        """The section of a role, ``n`` or ``measure``."""
        return self.n if name == "n" else self.measure if name == "measure" else self.sections[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A sweep. ``text`` is the spec verbatim; ``notes`` are things the user should hear (dropped duplicates of a
    rounded log axis, axes that do not apply everywhere, rows dropped from a table)."""

    name: str
    kind: Literal["prediction", "predictability"]
    seed: int
    trials: int
    n: int | None
    sections: Mapping[str, Section]  # those of the whole sweep, by role; what an axis gives whole is not among them
    axes: tuple[SweepAxis, ...]
    quantities: tuple[str, ...]
    targets: Targets
    measure: Mapping[str, Any]  # the options of [measure] that belong to a cell, defaults filled in
    notes: tuple[str, ...]
    text: str
    directory: str  # paths in the spec are relative to it

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis; () for a sweep without axes, which has one cell."""
        return tuple(len(a.values) for a in self.axes)

    def indices(self) -> "product[tuple[int, ...]]":
        """Every cell's index, row-major."""
        return product(*(range(s) for s in self.shape))

    def cell(self, index: tuple[int, ...]) -> Cell:
        """The cell at a place in the grid, its sections put together from the spec and the axes."""
        sections: dict[str, Section] = {**self.sections, "measure": self.measure}
        n = self.n
        chosen = list(zip(self.axes, index, strict=True))
        for axis, i in chosen:
            if axis.sections is not None:
                sections[axis.section] = axis.sections[i]
        # A kind first: which parameters apply depends on it.
        for axis, i in sorted(chosen, key=lambda pair: pair[0].parameter != "kind"):
            if axis.path == "n":
                n = int(axis.values[i])
            elif axis.sections is None and axis.parameter is not None:
                section = sections.get(axis.section, {})
                if not axis.applies or section.get("kind") in axis.applies:
                    sections[axis.section] = {**section, axis.parameter: axis.values[i]}
        measure = sections.pop("measure")
        if any(map(formulas_of, sections.values())):
            known = self._numbers(index, sections, n)
            sections = {role: _filled(section, known) for role, section in sections.items()}
        return Cell(index=tuple(index), sections=sections, n=n, measure=measure)

    def limit(self, index: tuple[int, ...], quantity: str) -> float:
        """The target of a quantity at a cell. ValueError where a formula has no value."""
        wanted = self.targets.limits[quantity]
        if not isinstance(wanted, str):
            return wanted
        cell = self.cell(index)
        return float(evaluate(wanted, self._numbers(index, cell.sections, cell.n)))

    def touching(self, part: str) -> tuple[bool, ...]:
        """Which axes change a part of the cell ("targets" is one): those that set something there, and those that a
        formula there depends on."""
        if part == "targets":
            asked = set[str]().union(*(names(v) for v in self.targets.limits.values() if isinstance(v, str)))
            return tuple(self._named(axis, asked) or self._reaches(axis, asked) for axis in self.axes)
        asked = self._asked(part)
        return tuple(axis.section == part or self._named(axis, asked) for axis in self.axes)

    def _asked(self, part: str) -> set[str]:
        """What the formulas of a section name, in any of its variants."""
        variants = [self.sections.get(part, {})]
        for axis in self.axes:
            variants += axis.sections or () if axis.section == part else ()
        return set[str]().union(*(names(v) for s in variants for v in formulas_of(s).values()))

    def _named(self, axis: SweepAxis, asked: set[str]) -> bool:
        """Whether one of some names is the axis, or a parameter of a section that it may change."""
        return axis.name in asked or any(name.partition(".")[0] == axis.section for name in asked if "." in name)

    def _reaches(self, axis: SweepAxis, asked: set[str]) -> bool:
        """Whether an axis changes, through a formula, a parameter that is named."""
        roles = {name.partition(".")[0] for name in asked if "." in name}
        return any(self._named(axis, self._asked(role)) for role in roles)

    def _numbers(
        self, index: tuple[int, ...], sections: Mapping[str, Section], n: int | None
    ) -> dict[str, int | float]:
        """What a formula may name, as it stands in one cell."""
        known: dict[str, int | float] = {} if n is None else {"n": n}
        for role, section in sections.items():
            for name, value in section.items():
                if _is_number(value):
                    known[f"{role}.{name}"] = value
        for axis, i in zip(self.axes, index, strict=True):
            value = axis.values[i]
            if _is_number(value):
                known[axis.name] = known[axis.path] = value  # type: ignore[assignment]
        return known


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def formulas_of(section: Section, prefix: str = "") -> dict[str, str]:
    """The formulas of a section by their keys, those of a learner inside it (``inner.gamma``) included."""
    found = {f"{prefix}{k}": v for k, v in section.items() if is_formula(v)}
    for key, value in section.items():
        found |= formulas_of(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {}
    return found


def _filled(section: Section, known: Mapping[str, int | float]) -> Section:
    """A section with its formulas' values; itself where it has none."""
    if not formulas_of(section):
        return section
    return {
        k: evaluate(v, known) if is_formula(v) else _filled(v, known) if isinstance(v, Mapping) else v
        for k, v in section.items()
    }
