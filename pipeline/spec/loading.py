"""A sweep spec checked: in goes a path, text or dictionary, out comes a ``Sweep``, or every problem at once.

Always true: nothing is written, and no data set is drawn. Each distinct section is built once, so that what a later
step is given is known to build.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from predcube.pipeline.failures import BadInput
from predcube.pipeline.quantities import QUANTITIES, targeted
from predcube.pipeline.spec import feasibility
from predcube.pipeline.spec.axes import Entry, dtype_of, flatten, name_axes, values_of
from predcube.pipeline.spec.fields import check_table, declared
from predcube.pipeline.spec.mistakes import Mistake, Mistakes, failure, noun, show, unknown
from predcube.pipeline.spec.models import SWEPT_OPTIONS, File, Goals, Measure
from predcube.pipeline.spec.reading import Source, read
from predcube.pipeline.spec.sections import ROLES, kinds, label_key, parse_section, takes
from predcube.pipeline.spec.sweep import Section, Sweep, SweepAxis, Targets, Value
from predcube.pipeline.spec.tables import with_digests

MOST_CELLS = 10**7

_NOT_SWEPT = {
    "seed": "the seed is the root of every random stream of the sweep; raise trials for more data sets",
    "trials": "trials are a dimension of the cube already; set trials to the largest number wanted",
    "name": "a name changes no number; give each sweep its own file and store",
    "kind": "a cube holds one kind of sweep; give each its own file and store",
    "sweep": "an axis names a parameter elsewhere in the file",
}


def load_spec(spec: str | Path | Mapping[str, Any]) -> Sweep:
    """The checked sweep. ``spec`` is a path, TOML text, or the same words as a dictionary.

    Raises ``BadInput`` with every problem, each with its dotted path in the file and a cure.
    """
    source = read(spec)
    mistakes = Mistakes()
    sweep = _Loader(source=source, mistakes=mistakes).load()
    if mistakes.found or sweep is None:
        raise failure(mistakes.found, source.name)
    return sweep


def problems(spec: str | Path | Mapping[str, Any]) -> tuple[Mistake, ...]:
    """Everything that is wrong with a spec; () where ``load_spec`` would take it."""
    try:
        source = read(spec)
    except BadInput as e:
        return (Mistake(path="", message=str(e)),)
    mistakes = Mistakes()
    _Loader(source=source, mistakes=mistakes).load()
    return tuple(mistakes.found)


@dataclass(slots=True, kw_only=True)
class _Loader:
    """One spec on its way to a ``Sweep``: what has been found so far."""

    source: Source
    mistakes: Mistakes
    notes: list[str] = field(default_factory=list)
    bases: dict[str, Section] = field(default_factory=dict)  # role → the section of the whole sweep
    choices: dict[str, SweepAxis] = field(default_factory=dict)  # role → its section axis
    dotted: dict[str, dict[str, Entry]] = field(default_factory=dict)  # role → parameter → its axis as written
    axes: dict[str, SweepAxis] = field(default_factory=dict)  # path → axis

    def load(self) -> Sweep | None:
        raw = self.source.raw
        if raw.get("kind") == "predictability":
            self.mistakes.add(
                "kind", 'this version builds "prediction" sweeps alone; "predictability" is not built in yet'
            )
            return None
        if isinstance(raw.get("n"), list | dict):
            self.mistakes.add("n", f"{show(raw['n'])} is {noun(raw['n'])}; write the values of an axis under [sweep]")
            raw = {k: v for k, v in raw.items() if k != "n"}
        file = check_table(raw, File, "", self.mistakes, what="key")
        measure = check_table(file.get("measure", {}), Measure, "measure", self.mistakes, what="option of [measure]")
        quantities = self._quantities(measure.get("quantities", []))
        targets = self._targets(measure.get("targets", {}), quantities)

        entries = self._entries(file.get("sweep", {}))
        for role in ROLES:
            self._section(role, file, [e for e in entries if _role(e.path) == role])
        for entry in entries:
            self._axis(entry)
        if file.get("n") is None and not any(e.path == "n" for e in entries) and not self.mistakes.at("n"):
            self.mistakes.add("n", "missing; give the sample size as n = 100 at the top of the file, or as an axis")
        ordered = [self.axes[e.path] for e in entries if e.path in self.axes]
        names = name_axes([e.path for e in entries], self.mistakes)
        named = {e.path: name for e, name in zip(entries, names, strict=True)}
        if self.mistakes.found:
            return None

        sweep = Sweep(
            name=file["name"] if "name" in raw else _stem(self.source),
            kind="prediction",
            seed=file["seed"],
            trials=file["trials"],
            n=file.get("n"),
            hypotheses=self.bases.get("hypotheses"),
            distribution=self.bases.get("distribution"),
            learner=self.bases.get("learner"),
            axes=tuple(_renamed(a, named[a.path]) for a in ordered),
            quantities=quantities,
            method=measure["method"],
            targets=targets,
            measure={k: measure[k] for k in SWEPT_OPTIONS if k in measure and k != "method"},
            notes=(),
            text=self.source.text,
            directory=self.source.directory,
        )
        return self._checked(sweep)

    def _checked(self, sweep: Sweep) -> Sweep | None:
        """The sweep with its tables read and each of its sections built."""
        cells = 1
        for length in sweep.shape:
            cells *= length
        if cells > MOST_CELLS:
            self.mistakes.add("sweep", f"the grid has {cells} cells; at most {MOST_CELLS} are planned: shorten an axis")
            return None
        read_in = with_digests(sweep, self.mistakes, self.notes)
        if self.mistakes.found:
            return None
        feasibility.check(read_in, self.mistakes, self.notes)
        return _noted(read_in, tuple(self.notes))

    def _quantities(self, asked: list[str]) -> tuple[str, ...]:
        for i, name in enumerate(asked):
            place = f"measure.quantities[{i}]"
            if name in QUANTITIES and not QUANTITIES[name].built:
                built = ", ".join(q for q, about in QUANTITIES.items() if about.built)
                self.mistakes.add(place, f'"{name}" is not built in yet; there are {built}')
            elif name not in QUANTITIES:
                self.mistakes.add(place, unknown(name, QUANTITIES, "quantity"))
            elif name in asked[:i]:
                self.mistakes.add(place, f'"{name}" stands twice; keep one')
        return tuple(dict.fromkeys(asked))

    def _targets(self, table: Mapping[str, Any], quantities: tuple[str, ...]) -> Targets:
        goals = check_table(table, Goals, "measure.targets", self.mistakes, what="target")
        limits = {k: v for k, v in goals.items() if k != "confidence"}
        for name in limits:
            if name not in quantities:
                self.mistakes.add(
                    f"measure.targets.{name}", f'"{name}" is not measured; add it to measure.quantities or drop the target'
                )
        return Targets(limits=limits, confidence=goals.get("confidence", 0.9))

    def _entries(self, table: Mapping[str, Any]) -> list[Entry]:
        """The axes whose paths lead somewhere."""
        good: list[Entry] = []
        for entry in flatten(table):
            first, _, rest = entry.path.partition(".")
            if any(e.path == entry.path for e in good):
                self.mistakes.add(entry.place, "the axis is given twice, once with and once without quotes; keep one")
            elif first in _NOT_SWEPT:
                self.mistakes.add(entry.place, f"{first} cannot be an axis: {_NOT_SWEPT[first]}")
            elif first == "n" and not rest:
                good.append(entry)
            elif first not in (*ROLES, "table", "measure"):
                self.mistakes.add(entry.place, f"{unknown(first, ['n', *ROLES, 'table', 'measure'], 'path')}")
            elif not rest and (first == "measure" or not entry.is_sections):
                self.mistakes.add(
                    entry.place,
                    f'name the parameter: "{first}.<parameter>" = [...]'
                    + ("" if first == "measure" else f", or give whole sections as [[sweep.{first}]]"),
                )
            elif not rest or "." not in rest:
                good.append(entry)
            else:
                self.mistakes.add(entry.place, f'a path has two parts, as in "{first}.{rest.partition(".")[0]}"')
        return good

    def _section(self, role: str, file: Mapping[str, Any], entries: list[Entry]) -> None:
        """The base section or the section axis of one role, and which dotted axes it has."""
        names = ("distribution", "table") if role == "distribution" else (role,)
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
            table = {"kind": "table", **file[name]} if name == "table" else file[name]
            if name == "table" and "kind" in file[name]:
                self.mistakes.add("table.kind", "[table] takes no kind; remove it")
            elif of_kind:
                self._kind_axis(role, table, of_kind[0])
            else:
                section = parse_section(role, table, name, self.mistakes, elsewhere=frozenset(self.dotted[role]))
                if section is not None:
                    self.bases[role] = section
        elif of_kind:
            self._kind_axis(role, {}, of_kind[0])
        elif not any(self.mistakes.at(n) for n in names):
            instead = ", or [table] with path, features and label for real data" if role == "distribution" else ""
            self.mistakes.add(role, f"missing; give [{role}] with a kind, one of {', '.join(kinds(role))}{instead}")

    def _section_axis(self, role: str, entry: Entry) -> None:
        """``[[sweep.<role>]]``: whole sections, each with the label that is its coordinate."""
        sections: list[Section] = []
        labels: list[str] = []
        wrong = len(self.mistakes.found)
        for i, table in enumerate(entry.written):
            place = f"{entry.place}[{i}]"
            if not isinstance(table, Mapping):
                self.mistakes.add(place, f"{show(table)} is {noun(table)}; give a table with a label and a kind")
                continue
            key = label_key(role, table, entry.path)
            label = table.get(key)
            if not isinstance(label, str) or not label.strip():
                said = "missing" if label is None else f"{show(label)} is no text"
                self.mistakes.add(f"{place}.{key}", f"{said}; give each section a {key} of its own, its coordinate")
            elif label in labels:
                self.mistakes.add(f"{place}.{key}", f'"{label}" stands twice on the axis; give each section its own {key}')
            else:
                labels.append(label)
            rest = {k: v for k, v in table.items() if k != key}
            if entry.path == "table":
                rest = {"kind": "table", **rest}
            section = parse_section(role, rest, place, self.mistakes, elsewhere=frozenset(self.dotted[role]))
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
        known = kinds(role)
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
            section = parse_section(role, table, role, self.mistakes, elsewhere=frozenset(self.dotted[role]))
            sections.append({k: v for k, v in (section or {}).items() if k not in self.dotted[role]})
        if len(self.mistakes.found) == wrong:
            self._choose(role, entry.path, tuple(written), tuple(sections))

    def _choose(self, role: str, path: str, labels: tuple[Value, ...], sections: tuple[Section, ...]) -> None:
        axis = SweepAxis(name=path, path=path, values=labels, dtype="str", sections=sections)
        self.choices[role] = self.axes[path] = axis

    def _axis(self, entry: Entry) -> None:
        """A dotted axis: its values, and to which kinds it applies."""
        if entry.path in self.axes or "." not in entry.path and entry.path != "n":
            return
        first, _, parameter = entry.path.partition(".")
        role = _role(entry.path)
        applies: tuple[str, ...] = ()
        if entry.path == "n":
            fields = [declared(File)["n"]]
        elif role == "measure":
            options = takes("measure", "")
            if parameter not in options:
                said = unknown(parameter, options, "option of a cell")
                if parameter in declared(Measure):
                    said = f"{parameter} is the same for the whole sweep; remove the axis"
                self.mistakes.add(entry.place, said)
                return
            fields = [options[parameter]]
        elif parameter == "kind":
            return
        else:
            sections = self.choices[role].sections if role in self.choices else None
            present = dict.fromkeys(s["kind"] for s in sections or ([self.bases[role]] if role in self.bases else []))
            if not present:
                return
            takers = [k for k in present if parameter in takes(role, k)]
            if not takers or (first == "table" and present.keys() != {"table"}):
                known = dict.fromkeys(p for k in present for p in takes(role, k))
                who = f"{', '.join(present)} {'take' if len(present) > 1 else 'takes'}"
                self.mistakes.add(
                    entry.place, f'no {role} of the sweep takes "{parameter}" ({who} {", ".join(known) or "nothing"})'
                    + _near(parameter, known) + "; remove the axis or add a section that takes it"
                )
                return
            fields = [takes(role, k)[parameter] for k in takers]
            if len(takers) < len(present):
                applies = tuple(takers)
                others = ", ".join(k for k in present if k not in takers)
                self.notes.append(f"{entry.place} applies to {', '.join(takers)}; for {others} the values repeat along it")
        values = values_of(entry, fields, self.mistakes, self.notes)
        if values:
            self.axes[entry.path] = SweepAxis(
                name=entry.path, path=entry.path, values=values, dtype=dtype_of(fields, values), applies=applies
            )


def _near(name: str, known: Mapping[str, Any]) -> str:
    said = unknown(name, known, "parameter")
    return said[said.index(";") :].rstrip("?") + "?" if "did you mean" in said else ""


def _role(path: str) -> str:
    first = path.partition(".")[0]
    return "distribution" if first == "table" else first


def _stem(source: Source) -> str:
    return Path(source.name).stem or "sweep"


def _renamed(axis: SweepAxis, name: str) -> SweepAxis:
    from dataclasses import replace

    return replace(axis, name=name)


def _noted(sweep: Sweep, notes: tuple[str, ...]) -> Sweep:
    from dataclasses import replace

    return replace(sweep, notes=notes)


__all__ = ["load_spec", "problems", "targeted"]
