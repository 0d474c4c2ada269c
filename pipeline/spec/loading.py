"""A sweep spec checked: in goes a path, text or dictionary, out comes a ``Sweep``, or every problem at once.

Always true: nothing is written, and no data set is drawn. Each distinct section is built once, so that what a later
step is given is known to build.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from predcube.pipeline.failures import BadInput
from predcube.pipeline.spec.axes import NEAR, Entry, flatten, name_axes
from predcube.pipeline.spec.choices import Choices
from predcube.pipeline.spec.fields import check_table, declared
from predcube.pipeline.spec.grammar import GRAMMARS, PREDICTION, Grammar
from predcube.pipeline.spec.mistakes import Mistake, Mistakes, failure, noun, show, unknown
from predcube.pipeline.spec.models import DELTA_EPSILON
from predcube.pipeline.spec.reading import Source, read
from predcube.pipeline.spec.sections import build_section, taken_out
from predcube.pipeline.spec.sweep import Sweep, Targets, formulas_of

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

    def load(self) -> Sweep | None:
        raw = self.source.raw
        kind = raw.get("kind", PREDICTION.kind)
        grammar = GRAMMARS.get(kind, PREDICTION) if isinstance(kind, str) else PREDICTION
        if isinstance(kind, str) and kind not in GRAMMARS:
            # Every word of the file is another kind's, and would be refused too.
            self.mistakes.add("kind", unknown(kind, GRAMMARS, "kind of sweep"))
            return None
        other = next((g.kind for g in GRAMMARS.values() if g is not grammar and g.alone(grammar) & raw.keys()), None)
        if other is not None and not grammar.alone(GRAMMARS[other]) & raw.keys():
            said = f"{show(kind)}, but the file is" if "kind" in raw else "missing, and the file is"
            self.mistakes.add("kind", f'{said} written in the words of the other kind; give kind = "{other}"')
            return None
        if isinstance(raw.get("n"), list | dict):
            self.mistakes.add("n", f"{show(raw['n'])} is {noun(raw['n'])}; write the values of an axis under [sweep]")
            raw = {k: v for k, v in raw.items() if k != "n"}
        file = check_table(raw, grammar.file, "", self.mistakes, what="key")
        measure = check_table(file.get("measure", {}), grammar.measure, "measure", self.mistakes, what="option")
        quantities = self._quantities(grammar, measure.get("quantities", []))
        targets = self._targets(grammar, measure.get("targets", {}), quantities)
        curve = self._curve(measure.get("delta_epsilon"), quantities)

        entries = self._entries(grammar, file.get("sweep", {}))
        choices = Choices(grammar=grammar, mistakes=self.mistakes, directory=self.source.directory)
        for role in grammar.roles:
            own = [e for e in entries if e.role == role]
            given = file.get(role) is not None or any(e.path in (role, f"{role}.kind") for e in own)
            if role in grammar.defaults and not given:
                file[role] = dict(grammar.defaults[role])
            choices.section(role, file, own)
        for entry in entries:
            choices.axis(entry)
        if (
            grammar.sized
            and file.get("n") is None
            and not any(e.path == "n" for e in entries)
            and not self.mistakes.at("n")
        ):
            self.mistakes.add("n", "missing; give the sample size as n = 100 at the top of the file, or as an axis")
        ordered = [choices.axes[e.path] for e in entries if e.path in choices.axes]
        names = name_axes([e.path for e in entries], grammar, self.mistakes)
        named = {e.path: name for e, name in zip(entries, names, strict=True)}
        if self.mistakes.found:
            self._build(grammar, choices)
            return None

        sweep = Sweep(
            name=file["name"] if "name" in raw else _stem(self.source),
            kind=file["kind"],
            seed=file["seed"],
            trials=file["trials"],
            n=None if "n" in choices.axes else file.get("n"),
            sections={role: choices.bases[role] for role in grammar.roles if role in choices.bases},
            axes=tuple(replace(a, name=named[a.path]) for a in ordered),
            quantities=quantities,
            targets=targets,
            measure={k: measure[k] for k in grammar.options if k in measure} | curve,
            notes=(),
            text=self.source.text,
            directory=self.source.directory,
        )
        return self._checked(sweep, choices.notes)

    def _build(self, grammar: Grammar, choices: Choices) -> None:
        """What is wrong elsewhere hides no section that is right word by word and does not build: those that no axis
        changes are built here. (Of the others each combination is, once the words are right.)"""
        places = [(role, role, section) for role, section in choices.bases.items()]
        for axis in choices.axes.values():
            places += [(axis.section, f"sweep.{axis.path}[{i}]", s) for i, s in enumerate(axis.sections or ())]
        for role, place, section in places:
            ready = role in PREDICTION.roles and not choices.dotted.get(role) and not formulas_of(section)
            if grammar is PREDICTION and ready and section["kind"] != "table" and not self.mistakes.at(place):
                try:
                    build_section(role, section)
                except ValueError as e:
                    self.mistakes.add(place, str(e))

    def _checked(self, sweep: Sweep, notes: list[str]) -> Sweep | None:
        """The sweep with its tables read and each of its sections built."""
        cells = 1
        for length in sweep.shape:
            cells *= length
        if cells > MOST_CELLS:
            self.mistakes.add("sweep", f"the grid has {cells} cells; at most {MOST_CELLS} are planned: shorten an axis")
            return None
        # Here and not above: kinds build on the cells that this package describes.
        from predcube.pipeline.kinds import kind_of
        from predcube.pipeline.spec import feasibility

        feasibility.check_formulas(sweep, self.mistakes)
        if self.mistakes.found:
            return None
        return replace(kind_of(sweep).check(sweep, self.mistakes, notes), notes=tuple(notes))

    def _quantities(self, grammar: Grammar, asked: list[str]) -> tuple[str, ...]:
        known = grammar.quantities
        for i, name in enumerate(asked):
            place = f"measure.quantities[{i}]"
            if name not in known:
                self.mistakes.add(place, unknown(name, known, "quantity"))
            elif name in asked[:i]:
                self.mistakes.add(place, f'"{name}" stands twice; keep one')
        if asked and not any(q not in known or known[q].per_trial for q in asked):
            self.mistakes.add("measure.quantities", f"{show(asked)}: nothing is measured; add error or excess_error")
        return tuple(dict.fromkeys(asked))

    def _targets(self, grammar: Grammar, table: Mapping[str, Any], quantities: tuple[str, ...]) -> Targets:
        fields = declared(grammar.goals)
        limited = {k: v for k, v in table.items() if k != "confidence"}
        formulas = taken_out(limited, fields, "measure.targets", self.mistakes)
        rest = {k: v for k, v in table.items() if k not in formulas}
        goals = check_table(rest, grammar.goals, "measure.targets", self.mistakes, what="target") | formulas
        limits = {k: v for k, v in goals.items() if k != "confidence"}
        for name in limits:
            if name not in quantities:
                self.mistakes.add(
                    f"measure.targets.{name}",
                    f'"{name}" is not measured; add it to measure.quantities, or drop it',
                )
        return Targets(limits=limits, confidence=goals.get("confidence", 0.9))

    def _curve(self, given: list[float] | None, quantities: tuple[str, ...]) -> dict[str, list[float]]:
        """The ε of a δ(ε) curve, ascending; nothing where none is measured."""
        place = "measure.delta_epsilon"
        if "delta" not in quantities:
            if given is not None:
                self.mistakes.add(place, '"delta" is not measured; add it to measure.quantities, or drop this')
            return {}
        values = sorted(DELTA_EPSILON if given is None else given)
        twice = next((a for a, b in pairwise(values) if b - a <= NEAR * b), None)
        if twice is not None:
            self.mistakes.add(place, f"{twice!r} stands twice; keep one")
        return {"delta_epsilon": values}

    def _entries(self, grammar: Grammar, table: Mapping[str, Any]) -> list[Entry]:
        """The axes whose paths lead somewhere."""
        good: list[Entry] = []
        firsts = [*(["n"] if grammar.sized else []), *grammar.roles, *grammar.alias, "measure"]
        for entry in flatten(table, grammar):
            first, _, rest = entry.path.partition(".")
            if any(e.path == entry.path for e in good):
                self.mistakes.add(entry.place, "the axis is given twice, once with and once without quotes; keep one")
            elif first in _NOT_SWEPT:
                self.mistakes.add(entry.place, f"{first} cannot be an axis: {_NOT_SWEPT[first]}")
            elif first == "n" and not rest and grammar.sized:
                good.append(entry)
            elif first not in firsts or first == "n":
                self.mistakes.add(entry.place, f"{unknown(first, firsts, 'path')}")
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


def _stem(source: Source) -> str:
    return Path(source.name).stem or "sweep"
