"""The sections a sweep is made of and the axes over them: in go tables as written, out come canonical ones.

A role of the grammar (a learner, a release) has either one section for the whole sweep or an axis of sections: those
of ``[[sweep.learner]]``, one for each kind of ``"learner.kind"``, one for each value of ``"table.label"``. Any other
dotted axis sets one parameter of the kinds that take it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from unicodedata import category

from predcube.pipeline.spec.axes import Entry, dtype_of, values_of
from predcube.pipeline.spec.fields import declared
from predcube.pipeline.spec.grammar import Grammar
from predcube.pipeline.spec.mistakes import Mistakes, noun, show, unknown
from predcube.pipeline.spec.sections import label_key, parse_section
from predcube.pipeline.spec.sweep import Section, SweepAxis, Value, formulas_of

UNSEEN = frozenset({"Cc", "Zl", "Zp"})
"""Categories of characters that a label has none of: a terminal would obey them."""


@dataclass(slots=True, kw_only=True)
class Choices:
    """What has been found so far; ``section`` is called for each role, then ``axis`` for each entry."""

    grammar: Grammar
    mistakes: Mistakes
    directory: str
    notes: list[str] = field(default_factory=list)
    bases: dict[str, Section] = field(default_factory=dict)  # role → the section of the whole sweep
    sections: dict[str, tuple[Section, ...]] = field(default_factory=dict)  # role → those of its section axis
    dotted: dict[str, dict[str, Entry]] = field(default_factory=dict)  # role → parameter → its axis as written
    axes: dict[str, SweepAxis] = field(default_factory=dict)  # path → axis

    def section(self, role: str, file: Mapping[str, Any], entries: list[Entry]) -> None:
        """The base section or the section axis of one role, and which dotted axes it has."""
        names = self.grammar.names_of(role)
        whole = [e for e in entries if "." not in e.path]
        of_kind = [e for e in entries if e.path == f"{role}.kind"]
        self.dotted[role] = {e.path.partition(".")[2]: e for e in entries if e not in whole and e not in of_kind}
        sources = [(f"[{n}]", n) for n in names if file.get(n) is not None]
        if len(sources) + len(whole) > 1:
            given = [s for s, _ in sources] + [f"[[sweep.{e.path}]]" for e in whole]
            self.mistakes.add(
                whole[0].place if whole else sources[1][1],
                f"{' and '.join(given)} both give the {role}; sections replace it whole: keep one",
            )
        elif whole:
            self._section_axis(role, whole[0])
        elif sources:
            name = sources[0][1]
            table = {"kind": name, **file[name]} if name in self.grammar.alias else file[name]
            if "kind" in file[name] and (name in self.grammar.alias or role in self.grammar.kindless):
                self.mistakes.add(f"{name}.kind", f"[{name}] takes no kind; remove it")
            elif of_kind:
                self._kind_axis(role, table, of_kind[0])
            elif self.dotted[role] and self._is_rows(role, table.get("kind", "")):
                self._rows_axis(role, name, table)
            else:
                section = self._parse(role, table, name)
                if section is not None:
                    self.bases[role] = {k: v for k, v in section.items() if k not in self.dotted[role]}
        elif of_kind:
            self._kind_axis(role, {}, of_kind[0])
        elif not any(self.mistakes.at(n) for n in names):
            self.mistakes.add(role, f"missing; give {self._wanted(role)}")

    def _wanted(self, role: str) -> str:
        """What a section of a role looks like, in words."""
        if role in self.grammar.kindless:
            return self.grammar.kindless[role]
        others = [w for w in self.grammar.names_of(role) if w != role]
        instead = f", or [{others[0]}] with path, features and label for real data" if others else ""
        return f"[{role}] with a kind, one of {', '.join(self.grammar.kinds(role))}{instead}"

    def _is_rows(self, role: str, kind: str) -> bool:
        """Whether a section stands for rows that have to be read."""
        return kind in self.grammar.alias or role == "table"

    def _section_axis(self, role: str, entry: Entry) -> None:
        """``[[sweep.<role>]]``: whole sections, each with the label that is its coordinate."""
        sections: list[Section] = []
        labels: list[str] = []
        wrong = len(self.mistakes.found)
        for i, table in enumerate(entry.written):
            place = f"{entry.place}[{i}]"
            if not isinstance(table, Mapping):
                self.mistakes.add(
                    place, f"{show(table)} is {noun(table)}; give a table with a label{self._and_kind(role)}"
                )
                continue
            key = label_key(self.grammar, role, table, entry.path)
            label = table.get(key)
            if not isinstance(label, str) or not label.strip():
                said = "missing" if label is None else f"{show(label)} is no text"
                self.mistakes.add(f"{place}.{key}", f"{said}; give each section a {key} of its own, its coordinate")
            elif any(category(c) in UNSEEN for c in label):
                self.mistakes.add(f"{place}.{key}", f"{label!r} has control characters; give one line of text")
            elif label in labels:
                self.mistakes.add(f"{place}.{key}", f'"{label}" stands twice; give each section a {key} of its own')
            else:
                labels.append(label)
            rest = {k: v for k, v in table.items() if k != key}
            if entry.path in self.grammar.alias:
                rest = {"kind": entry.path, **rest}
            section = self._parse(role, rest, place)
            if section is None:
                continue
            for parameter in self.dotted[role].keys() & rest.keys():
                self.mistakes.add(
                    f"{place}.{parameter}",
                    f"set here and by the axis {self.dotted[role][parameter].place}; keep one",
                )
            sections.append({k: v for k, v in section.items() if k not in self.dotted[role]})
        if len(self.mistakes.found) == wrong:
            self._choose(role, entry.path, tuple(labels), tuple(sections))

    def _kind_axis(self, role: str, base: Mapping[str, Any], entry: Entry) -> None:
        """``"<role>.kind" = [...]``: the base section with each kind, which takes of its parameters what it knows."""
        if "kind" in base and base["kind"] != "table":
            self.mistakes.add(f"{role}.kind", f"set here and by the axis {entry.place}; keep one")
            return
        known = self.grammar.kinds(role)
        written = entry.written if isinstance(entry.written, list) else []
        if not written:
            self.mistakes.add(entry.place, f"give a list of kinds, some of {', '.join(known)}")
            return
        wrong = len(self.mistakes.found)
        for i, kind in enumerate(written):
            if kind not in known:
                said = unknown(kind, known, f"kind of {role}") if isinstance(kind, str) else f"{show(kind)} is no kind"
                self.mistakes.add(f"{entry.place}[{i}]", said)
            elif kind in written[:i]:
                self.mistakes.add(f"{entry.place}[{i}]", f'"{kind}" stands twice on the axis; keep one')
        if len(self.mistakes.found) > wrong:
            return
        for parameter in base:
            takers = [k for k in written if parameter in declared(known[k])]
            if not takers:
                everything = [p for k in written for p in declared(known[k])]
                self.mistakes.add(f"{role}.{parameter}", unknown(parameter, dict.fromkeys(everything), "parameter"))
            elif len(takers) < len(written):
                self.notes.append(f"{role}.{parameter} is taken by {', '.join(takers)} alone")
        sections = []
        for kind in written:
            table = {"kind": kind, **{p: v for p, v in base.items() if p in declared(known[kind])}}
            section = self._parse(role, table, role)
            sections.append({k: v for k, v in (section or {}).items() if k not in self.dotted[role]})
        if len(self.mistakes.found) == wrong:
            self._choose(role, entry.path, tuple(written), tuple(sections))

    def _rows_axis(self, role: str, name: str, base: Mapping[str, Any]) -> None:
        """A dotted axis over a key of [table]: whole sections, since each value stands for other rows."""
        parameter, *others = self.dotted[role]
        entry = self.dotted[role][parameter]
        if others:
            second = self.dotted[role][others[0]]
            self.mistakes.add(second.place, "a table takes one dotted axis; give whole sections as [[sweep.table]]")
            return
        wrong = len(self.mistakes.found)
        known = declared(self.grammar.kinds(role)[base.get("kind", "")])
        if parameter not in known:
            self.mistakes.add(entry.place, unknown(parameter, known, "parameter", "table"))
        elif not isinstance(entry.written, list) or not entry.written:
            self.mistakes.add(entry.place, f"{show(entry.written)} is no list of values; give at least one value")
        if len(self.mistakes.found) > wrong:
            return
        sections, labels = [], []
        for i, value in enumerate(entry.written):
            table = {**base, parameter: value}
            found = Mistakes()
            section = parse_section(self.grammar, role, table, name, found, directory=self.directory)
            for m in found.found:
                self.mistakes.add(m.path.replace(f"{name}.{parameter}", f"{entry.place}[{i}]"), m.message)
            label = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            if label in labels:
                self.mistakes.add(f"{entry.place}[{i}]", f"{show(value)} stands twice on the axis; keep one")
            sections.append(section or {})
            labels.append(label)
        if len(self.mistakes.found) == wrong:
            self._choose(role, entry.path, tuple(labels), tuple(sections))

    def _parse(self, role: str, table: Mapping[str, Any], place: str) -> dict[str, Any] | None:
        """A section as the whole sweep has it; the parameters that have an axis may be missing."""
        elsewhere = frozenset(self.dotted[role])
        return parse_section(
            self.grammar,
            role,
            table,
            place,
            self.mistakes,
            directory=self.directory,
            elsewhere=elsewhere,
            notes=self.notes,
        )

    def _and_kind(self, role: str) -> str:
        return "" if role in self.grammar.kindless else " and a kind"

    def _choose(self, role: str, path: str, labels: tuple[Value, ...], sections: tuple[Section, ...]) -> None:
        axis = SweepAxis(name=path, path=path, values=labels, dtype="str", sections=sections, section=role)
        self.axes[path] = axis
        self.sections[role] = sections
        if "." in path:
            self.dotted[role].pop(path.partition(".")[2], None)

    def axis(self, entry: Entry) -> None:
        """A dotted axis: its values, and to which kinds it applies."""
        if entry.path in self.axes or ("." not in entry.path and entry.path != "n"):
            return
        first, _, parameter = entry.path.partition(".")
        role = entry.role
        applies: tuple[str, ...] = ()
        if entry.path == "n":
            fields = [declared(self.grammar.file)["n"]]
        elif role == "measure":
            options = self.grammar.takes("measure", "")
            if parameter not in options:
                said = unknown(parameter, options, "option of a cell")
                if parameter in declared(self.grammar.measure):
                    said = f"{parameter} is the same for the whole sweep; remove the axis"
                self.mistakes.add(entry.place, said)
                return
            fields = [options[parameter]]
        elif parameter == "kind":
            return
        else:
            whole = self.sections.get(role) or ((self.bases[role],) if role in self.bases else ())
            present = dict.fromkeys(s.get("kind", "") for s in whole)
            if not present:
                return
            if role in self.grammar.whole:
                self.mistakes.add(entry.place, f"a {role} is an axis as a whole: give sections as [[sweep.{role}]]")
                return
            takers = [k for k in present if parameter in self.grammar.takes(role, k)]
            if not takers or (first in self.grammar.alias and present.keys() != {first}):
                known = dict.fromkeys(p for k in present for p in self.grammar.takes(role, k))
                who = f"{', '.join(k or f'[{role}]' for k in present)} {'take' if len(present) > 1 else 'takes'}"
                self.mistakes.add(
                    entry.place,
                    f'no {role} of the sweep takes "{parameter}" ({who} {", ".join(known) or "nothing"})'
                    + _near(parameter, known)
                    + "; remove the axis or add a section that takes it",
                )
                return
            if any(self._is_rows(role, k) for k in takers):
                # Each value stands for other rows, so a section for each has to be read.
                self.mistakes.add(entry.place, f"give each section a {parameter} of its own and remove the axis")
                return
            fields = [self.grammar.takes(role, k)[parameter] for k in takers]
            if len(takers) < len(present):
                applies = tuple(takers)
                following = {s.get("kind", "") for s in whole if formulas_of(s)}  # may go along by a formula
                if others := [k for k in present if k not in takers and k not in following]:
                    self.notes.append(
                        f"{entry.place} applies to {', '.join(takers)}; for {', '.join(others)} the values repeat "
                        "along it"
                    )
        values = values_of(entry, fields, self.mistakes, self.notes)
        if values:
            self.axes[entry.path] = SweepAxis(
                name=entry.path,
                path=entry.path,
                values=values,
                dtype=dtype_of(fields, values),
                applies=applies,
                section=role,
            )


def _near(name: str, known: Mapping[str, Any]) -> str:
    said = unknown(name, known, "parameter")
    return said[said.index(";") :] if "did you mean" in said else ""
