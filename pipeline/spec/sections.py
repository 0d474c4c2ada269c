"""The sections a cell is made of, checked against the science's own declarations.

In go tables of a spec, out come canonical sections: kind first, every parameter of the declared type, defaults filled
in. A law may also be ``table`` (real data), whose declaration stands in ``models``: the science takes its rows.
"""

from collections.abc import Mapping
from typing import Any

from predcube.pipeline.spec.fields import Declared, check_table, declared
from predcube.pipeline.spec.formulas import is_formula, names
from predcube.pipeline.spec.grammar import Grammar
from predcube.pipeline.spec.mistakes import Mistakes, noun, show, unknown
from predcube.pipeline.spec.sweep import Section
from predcube.pipeline.spec.tables import BadTable, read_class
from predcube.pipeline.spec.tabular import parse_queries, parse_transitions
from predcube.tasks import distributions, hypotheses, learners, noises, processes, releases


def parse_section(
    grammar: Grammar,
    role: str,
    table: Mapping[str, Any],
    path: str,
    mistakes: Mistakes,
    *,
    directory: str,
    elsewhere: frozenset[str] = frozenset(),
    notes: list[str] | None = None,
) -> dict[str, Any] | None:
    """The canonical section, or None where its kind is not known. Parameters in ``elsewhere`` come from an axis; files
    are looked for in ``directory``. What was done to a file's rows is added to ``notes``."""
    known = grammar.kinds(role)
    if role == "query":
        return parse_queries(table, path, mistakes)
    if role in grammar.kindless:
        return check_table(table, known[""], path, mistakes, what="key", elsewhere=elsewhere)
    if "kind" not in table:
        mistakes.add(f"{path}.kind", f"missing; give one of {', '.join(known)}")
        return None
    kind = table["kind"]
    if not isinstance(kind, str):
        mistakes.add(f"{path}.kind", f"{show(kind)} is {noun(kind)}; give one of {', '.join(known)}")
        return None
    if kind not in known:
        mistakes.add(f"{path}.kind", unknown(kind, known, f"kind of {role}"))
        return None
    rest = {k: v for k, v in table.items() if k != "kind"}
    if role == "hypotheses" and kind == "table" and "path" in rest:
        rest["matrix"] = _class_file(rest.pop("path"), "matrix" in rest, path, directory, mistakes, notes)
        if rest["matrix"] is None:
            return None
    if role == "learner" and "inner" in declared(known[kind]) and isinstance(rest.get("inner"), Mapping):
        rest["inner"] = parse_section(grammar, role, rest["inner"], f"{path}.inner", mistakes, directory=directory)
        if rest["inner"] is None:
            return None
    fields = declared(known[kind])
    ready = _ready(grammar, role, rest, fields, path, mistakes, directory)
    formulas = taken_out(rest, fields, path, mistakes)
    parameters = check_table(
        {k: v for k, v in rest.items() if k not in formulas and k not in ready},
        known[kind],
        path,
        mistakes,
        what=f'parameter of "{kind}"',
        elsewhere=(elsewhere & fields.keys()) | formulas.keys() | ready.keys(),
    )
    both = parameters | formulas | ready
    return {"kind": kind, **{name: both[name] for name in fields if name in both}}


def _ready(
    grammar: Grammar,
    role: str,
    table: Mapping[str, Any],
    fields: Mapping[str, Declared],
    path: str,
    mistakes: Mistakes,
    directory: str,
) -> dict[str, Any]:
    """The values that are more than a type can say: the members of a stack, a table of transitions."""
    ready: dict[str, Any] = {}
    if role == "release" and "releases" in fields and isinstance(table.get("releases"), list):
        members = []
        for i, member in enumerate(table["releases"]):
            place = f"{path}.releases[{i}]"
            if isinstance(member, Mapping):
                members.append(parse_section(grammar, role, member, place, mistakes, directory=directory))
            else:
                mistakes.add(place, f"{show(member)} is {noun(member)}; give a table with a kind and its parameters")
        if not table["releases"]:
            mistakes.add(f"{path}.releases", "empty; give at least one release")
        ready["releases"] = members
    if role == "process" and "transitions" in fields and "transitions" in table:
        ready["transitions"] = parse_transitions(table["transitions"], f"{path}.transitions", directory, mistakes)
    return ready


def taken_out(
    table: Mapping[str, Any], fields: Mapping[str, Declared], path: str, mistakes: Mistakes
) -> dict[str, str]:
    """The formulas of a table: texts that begin with "=" where a field takes a number and no text."""
    found = {}
    for key, value in table.items():
        if (
            key in fields
            and is_formula(value)
            and fields[key].scalars & {int, float}
            and str not in fields[key].scalars
        ):
            found[key] = value
            try:
                names(value)
            except ValueError as e:
                mistakes.add(f"{path}.{key}", str(e))
    return found


def _class_file(
    file: Any, doubled: bool, path: str, directory: str, mistakes: Mistakes, notes: list[str] | None
) -> Any:
    """The matrix in a file that [hypotheses] names, repeated rows merged, or None."""
    if doubled:
        mistakes.add(f"{path}.path", "matrix and path both give the class; keep one")
    elif not isinstance(file, str):
        mistakes.add(f"{path}.path", f"{show(file)} is {noun(file)}; give the path of a file of 0 and 1")
    else:
        try:
            matrix, repeats = read_class(file, directory)
            if repeats and notes is not None:
                notes.append(
                    f"{path}.path: {repeats} of {repeats + len(matrix)} rows of {file} repeat others and were merged; "
                    f"{len(matrix)} functions are left (rows of matrix = [...] would count as often as they stand)"
                )
            return matrix
        except BadTable as e:
            mistakes.add(f"{path}.path", str(e))
    return None


def label_key(grammar: Grammar, role: str, table: Mapping[str, Any], path: str) -> str:
    """The key that holds a section's coordinate on a section axis: ``label``, or ``name`` where ``label`` is a
    parameter of the kind (the column a table's rows are labelled by)."""
    kind = "table" if path == "table" else table.get("kind")
    known = grammar.kinds(role)
    return "name" if isinstance(kind, str) and kind in known and "label" in declared(known[kind]) else "label"


def build_section(role: str, section: Section) -> Any:
    """The object of ``tasks`` that a section describes; ValueError as the science words it. Not for real data, whose
    rows are read by ``rows``."""
    parameters = {k: v for k, v in section.items() if k != "kind"}
    match role:
        case "hypotheses":
            return hypotheses.build(section["kind"], **parameters)
        case "distribution":
            return distributions.build(section["kind"], **parameters)
        case "release":
            return releases.build(section["kind"], **parameters)
        case "process":
            return processes.build(section["kind"], **parameters)
        case "noise":
            return noises.build(section["kind"], **parameters)
        case _:
            return learners.build(section["kind"], **parameters)
