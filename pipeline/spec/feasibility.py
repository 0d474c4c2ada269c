"""Whether a sweep can be run at all: in goes a sweep whose words are right, out come what does not build or fit.

Each distinct section is built once. A grid none of whose cells is feasible is a mistake, and so is a quantity that no
cell has; single infeasible cells, and quantities of them, are not: they are recorded with their reason.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import Any

from predcube.pipeline.building import distribution_of
from predcube.pipeline.grid import Grid, Part
from predcube.pipeline.spec.formulas import names
from predcube.pipeline.spec.grammar import PREDICTION
from predcube.pipeline.spec.mistakes import Mistakes, show, unknown
from predcube.pipeline.spec.sections import build_section
from predcube.pipeline.spec.sweep import Section, Sweep, formulas_of
from predcube.tasks.problems import inapplicable, infeasible

REASONS = 3  # of each kind that a message lists


def check(sweep: Sweep, mistakes: Mistakes) -> None:
    """Adds a mistake for each section that does not build, and one where no cell is feasible or has a quantity."""
    grid = Grid(sweep)
    for role in PREDICTION.roles:
        check_sections(sweep, grid.parts[role], role, mistakes)
    if mistakes.found:
        return
    reasons: Counter[str] = Counter()
    rows, which = grid.groups
    if not which.size:
        return
    lacking: dict[str, list[str]] = {}
    measured: set[str] = set()
    feasible = False
    for row in rows:
        problem, outside = grid.problem(row), grid.outside(row)
        without = dict.fromkeys(problem.quantities, outside) if outside else inapplicable(problem)
        for quantity, why in without.items():
            lacking.setdefault(quantity, []).append(why)
        measured |= set(problem.quantities) - without.keys()
        reason = outside or infeasible(problem)
        feasible = feasible or reason is None
        if feasible and len(measured) == len(problem.quantities):
            return
        if reason is not None:
            reasons[reason] += 1
    if feasible:
        for quantity in sorted(lacking.keys() - measured):
            said = f"{quantity} applies to no cell; leave it out: {_listed(lacking[quantity])}"
            mistakes.add("measure.quantities", said)
        return
    unsuitable = [r for row in grid.unsuitable for r in row]
    if all(unsuitable):
        mistakes.add(_place(sweep, "distribution"), _listed(r for r in unsuitable if r))
        return
    cells = "the cell is" if which.size == 1 else f"all {which.size} cells are"
    mistakes.add(_place(sweep, "n"), f"{cells} infeasible, nothing would be run: {_listed(reasons)}")


def check_formulas(sweep: Sweep, mistakes: Mistakes) -> None:
    """Adds a mistake for each formula that names what is not there, and where one has no value at a cell."""
    roles = [*sweep.sections, *(a.section for a in sweep.axes if a.sections is not None)]
    variants = {role: _variants(sweep, role) for role in dict.fromkeys(roles)}
    known = {a.name for a in sweep.axes if a.dtype != "str"} | {a.path for a in sweep.axes if a.dtype != "str"}
    known |= {f"{role}.{name}" for role, found in variants.items() for s in found.values() for name in s} | {"n"}
    places = {
        f"{place}.{key}": text
        for f in variants.values()
        for place, s in f.items()
        for key, text in formulas_of(s).items()
    }
    places |= {f"measure.targets.{q}": v for q, v in sweep.targets.limits.items() if isinstance(v, str)}
    for place, text in places.items():
        for name in sorted(names(text) - known):
            mistakes.add(place, unknown(name, sorted(known), "axis or parameter"))
    if mistakes.found or not places:
        return
    for part in [*variants, "targets"]:
        touching = sweep.touching(part)
        for index in product(*(range(s if t else 1) for s, t in zip(sweep.shape, touching, strict=True))):
            try:
                sweep.cell(index)
                if part == "targets" and any(sweep.limit(index, q) < 0 for q in sweep.targets.limits):
                    mistakes.add("measure.targets", "a formula is below 0; a target is at least 0")
            except ValueError as e:
                mistakes.add("measure.targets" if part == "targets" else section_place(sweep, part, index), str(e))
            if mistakes.found:
                return


def _variants(sweep: Sweep, role: str) -> dict[str, Section]:
    """Every section that a role has in the sweep, by its place in the file."""
    found = {role: sweep.sections[role]} if role in sweep.sections else {}
    for axis in sweep.axes:
        if axis.section == role and axis.sections is not None:
            found |= {f"sweep.{axis.path}[{i}]": s for i, s in enumerate(axis.sections)}
    return found


def check_sections(sweep: Sweep, part: Part, role: str, mistakes: Mistakes) -> None:
    """Builds each distinct section of one role; the parameters that vary are named in the message."""
    said: dict[tuple[str, str], list[str]] = {}
    for section, origin in zip(part.values, part.origins, strict=True):
        try:
            if role == "distribution" and section["kind"] == "table":
                distribution_of(section, sweep.directory)
            else:
                build_section(role, section)
        except ValueError as e:
            at = ", ".join(
                f"{axis.path} = {show(axis.values[i])}"
                for axis, i in zip(sweep.axes, origin, strict=True)
                if axis.section == role
            )
            said.setdefault((section_place(sweep, role, origin), str(e)), []).append(at)
    for (place, message), places in said.items():
        where = f" (at {places[0]}" + (f" and {len(places) - 1} more)" if len(places) > 1 else ")") if places[0] else ""
        mistakes.add(place, message + where)


def section_place(sweep: Sweep, role: str, index: tuple[int, ...]) -> str:
    """Where in the file the section of a role at a cell stands."""
    for axis, i in zip(sweep.axes, index, strict=True):
        if axis.sections is not None and axis.section == role:
            return f"sweep.{axis.path}[{i}]"
    return _place(sweep, role)


def _place(sweep: Sweep, part: str) -> str:
    """Where in the file a part of every cell stands."""
    for axis in sweep.axes:
        if axis.section == part and (axis.sections is not None or part == "n"):
            return f"sweep.{axis.path}"
    section = sweep.sections.get("distribution") if part == "distribution" else None
    return "table" if section is not None and section["kind"] == "table" else part


def _listed(reasons: Iterable[Any]) -> str:
    distinct = list(dict.fromkeys(str(r) for r in reasons))
    more = f"; and {len(distinct) - REASONS} more reasons" if len(distinct) > REASONS else ""
    return "; ".join(distinct[:REASONS]) + more
