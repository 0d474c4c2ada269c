"""A predictability sweep against its tables: in goes a sweep whose words are right, out comes one whose columns exist.

Every expression is parsed, looked up and evaluated on some first rows, so that a run does not begin with a typing
error. Always true of the sweep that comes out: each table section has the digest of its bytes, each expression its
canonical text, each query of categories stands for the values that the column has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from predcube.pipeline.grid import Part, part
from predcube.pipeline.spec.feasibility import check_sections, section_place
from predcube.pipeline.spec.mistakes import Mistakes
from predcube.pipeline.spec.sweep import Section, Sweep, SweepAxis
from predcube.storage.expressions import canonical
from predcube.storage.failures import StoreError
from predcube.storage.matrices import categories, columns_read, labels, matrix
from predcube.storage.rows import Rows, batches, open_rows
from predcube.tasks import processes

FIRST = 4096  # rows that expressions are tried on

_opened: dict[str, tuple[tuple[Any, ...], Rows, str]] = {}


def table_of(section: Section, directory: str) -> Rows:
    """The rows of a table section. StoreError says what is wrong with them, and where they are no longer those that the
    section's digest was taken of."""
    rows, digest = _rows(str(Path(directory, section["path"])))
    if section.get("digest", digest) != digest:
        raise StoreError(f"table {section['path']!r} has changed since the sweep was made; restore it, or run it anew")
    return rows


def _rows(path: str) -> tuple[Rows, str]:
    """A table and the digest of its bytes. What lies at a path is looked at again when its files' times change: a CSV
    file has to be read to know its types."""
    signature = _signature(Path(path))
    if path not in _opened or _opened[path][0] != signature:
        rows = open_rows(path)
        if len(_opened) > 16:
            _opened.clear()
        _opened[path] = (signature, rows, rows.digest)
    return _opened[path][1:]


def _signature(path: Path) -> tuple[Any, ...]:
    files = sorted(path.iterdir()) if path.is_dir() else [path] if path.exists() else []
    return tuple((str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in files if f.exists())


def check(sweep: Sweep, mistakes: Mistakes, notes: list[str]) -> Sweep:
    """The sweep with digests, canonical expressions and categories; what is wrong is a mistake each."""
    for role in ("release", "process", "noise"):
        check_sections(sweep, part(sweep, role), role, mistakes)
    tables = _Tables(sweep, mistakes)
    if mistakes.found and not tables.rows:
        return sweep
    asked: list[tuple[str, Any, bool]] = []
    for place, section in _variants(sweep, "query"):
        named = zip(section["names"], section["expressions"], strict=True)
        asked += [(f"{place}.{name}", expression, True) for name, expression in named]
    for role in ("release", "process"):
        found = part(sweep, role)
        for section, origin in zip(found.values, found.origins, strict=True):
            mentions = _mentions(role, section)
            asked += [(_key_place(sweep, role, origin, key), text, number) for key, text, number in mentions]
    tables.try_out(asked)
    if mistakes.found:
        return sweep
    made = _changed(sweep, "table", tables.digested)
    made = _changed(made, "query", lambda s: tables.settled(s, mistakes))
    return made if mistakes.found else _named(made, mistakes)


def _variants(sweep: Sweep, role: str) -> Iterator[tuple[str, Section]]:
    """Every section of a role with its place in the file."""
    if role in sweep.sections:
        yield role, sweep.sections[role]
    for axis in sweep.axes:
        if axis.section == role and axis.sections is not None:
            yield from ((f"sweep.{axis.path}[{i}]", s) for i, s in enumerate(axis.sections))


def _changed(sweep: Sweep, role: str, change: Any) -> Sweep:
    """The sweep with every section of a role changed."""
    sections = {r: change(s) if r == role else s for r, s in sweep.sections.items()}
    axes = tuple(
        replace(a, sections=tuple(map(change, a.sections))) if a.section == role and a.sections is not None else a
        for a in sweep.axes
    )
    return replace(sweep, sections=sections, axes=axes)


def _mentions(role: str, section: Section, prefix: str = "") -> Iterator[tuple[str, str, bool]]:
    """The columns and expressions that a section names: its key, the text, whether numbers are wanted."""
    for key, value in section.items():
        if role == "release" and key in ("columns", "features"):
            yield from ((f"{prefix}{key}[{i}]", text, True) for i, text in enumerate(value))
        elif role == "release" and key == "target":
            yield f"{prefix}{key}", value, True
        elif role == "release" and key == "releases":
            for i, member in enumerate(value):
                yield from _mentions(role, member, f"{prefix}releases[{i}].")
    if role == "process":
        if "column" in section:
            yield "column", section["column"], not processes.KINDS[section["kind"]].needs_groups
        if section.get("target", "all") not in ("all", "unseen"):
            yield "target", section["target"], True


def _key_place(sweep: Sweep, role: str, origin: tuple[int, ...], key: str) -> str:
    """Where a key of a section stands, be it set by an axis or in the section itself."""
    for axis, i in zip(sweep.axes, origin, strict=True):
        if axis.section == role and axis.parameter == key.partition("[")[0]:
            return f"sweep.{axis.path}[{i}]"
    return f"{section_place(sweep, role, origin)}.{key}"


class _Tables:
    """The tables of a sweep, opened, and some first rows of each."""

    def __init__(self, sweep: Sweep, mistakes: Mistakes) -> None:
        self._mistakes = mistakes
        self.rows: dict[str, tuple[Rows, str]] = {}
        self._heads: dict[str, pa.RecordBatch] = {}
        for place, section in _variants(sweep, "table"):
            path = section["path"]
            if path in self.rows:
                continue
            try:
                found = _rows(str(Path(sweep.directory, path)))
                self.rows[path] = found
                head = next(
                    (b for p in found[0].parts for b in batches(found[0], p, found[0].schema.names, FIRST)), None
                )
                if head is None:
                    mistakes.add(f"{place}.path", f"{path}: the table has no rows")
                else:
                    self._heads[path] = head
            except StoreError as e:
                mistakes.add(f"{place}.path", str(e))

    def try_out(self, asked: Sequence[tuple[str, Any, bool]]) -> None:
        """Adds a mistake for each place whose expression is none of a table's, or gives no numbers on its first rows
        where numbers are wanted."""
        together = dict.fromkeys(e for _, e, number in asked if number and isinstance(e, str))
        try:  # all at once is faster than one by one, which says who is wrong
            for head in self._heads.values():
                matrix(head.select(columns_read(head.schema, tuple(together))), tuple(together))
        except StoreError:
            together.clear()
        for place, expression, number in asked:
            if not (number and isinstance(expression, str) and expression in together):
                self._try_out(place, expression, number=number)

    def _try_out(self, place: str, expression: Any, *, number: bool) -> None:
        for path, head in self._heads.items():
            try:
                if isinstance(expression, Mapping):
                    _one_column(head.schema, expression["categories"])
                elif number:
                    matrix(head.select(columns_read(head.schema, (expression,))), (expression,))
                else:
                    labels(head, _one_column(head.schema, expression))
            except StoreError as e:
                several = f"{path}: " if len(self.rows) > 1 else ""
                self._mistakes.add(place, f"{several}{e}")
                return

    def digested(self, section: Section) -> Section:
        """A table section with the digest of its bytes."""
        return {**section, "digest": self.rows[section["path"]][1]}

    def settled(self, section: Section, mistakes: Mistakes) -> Section:
        """A query section with its expressions canonical and its categories written out."""
        names, expressions = [], []
        for name, expression in zip(section["names"], section["expressions"], strict=True):
            if isinstance(expression, Mapping):
                found = self._categories(expression["categories"], name, mistakes)
                names += [f"{name} = {value}" for value in found]
                expressions += [canonical(text) for text in found.values()]
            else:
                column = all(expression in rows.schema.names for rows, _ in self.rows.values())
                names.append(name)
                expressions.append(expression if column else canonical(expression))
        for i, name in enumerate(names):
            if name in names[:i]:
                mistakes.add("query", f'two queries are called "{name}"; rename one of them')
        return {"names": names, "expressions": expressions}

    def _categories(self, column: str, name: str, mistakes: Mistakes) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for rows, _ in self.rows.values():
            try:
                found |= categories(rows, _one_column(rows.schema, column))
            except StoreError as e:
                mistakes.add(f"query.{name}", str(e))
        return found


def _one_column(schema: pa.Schema, column: str) -> str:
    """A column as the schema spells it. StoreError where there is none of that name."""
    known = {name.casefold(): name for name in schema.names}
    if column in schema.names:
        return column
    if column.casefold() in known:
        return known[column.casefold()]
    columns_read(schema, (column,))
    raise StoreError(f"{column!r} is an expression; groups are those of one column")


def _named(sweep: Sweep, mistakes: Mistakes) -> Sweep:
    """The sweep with its axis of queries called after what its sections are: each one query, or each a family."""
    axes: list[SweepAxis] = []
    for axis in sweep.axes:
        if axis.section == "query" and axis.sections is not None:
            families = [tuple(s["names"]) for s in axis.sections]
            if any(len(f) > 1 for f in families):
                _alike(f"sweep.{axis.path}", families, mistakes)
                axis = replace(axis, name="family")
        axes.append(axis)
    return replace(sweep, axes=tuple(axes))


def _alike(place: str, families: Sequence[tuple[str, ...]], mistakes: Mistakes) -> None:
    for i, family in enumerate(families):
        if family != families[0]:
            mistakes.add(
                f"{place}[{i}]",
                f"its queries are called {', '.join(family)} and those of the first section {', '.join(families[0])}; "
                "give every section the same names in the same order, or one query each",
            )


__all__ = ["Part", "check", "table_of"]
