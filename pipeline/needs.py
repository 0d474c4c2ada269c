"""What cells of a predictability sweep need of its tables: in goes a sweep, out come samples, fits and laws by name.

A sample is the complete rows of a table, a release, a process and a family of queries; a fit is a release on a sample's
rows, whoever else uses the same rows; a law is that of a fit under a process, for as many families as drop the same
rows. Always true: names follow from the sweep, the tables' digests and the samples, so a worker and the driver agree.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.pipeline.grid import Part, part
from predcube.pipeline.passes import View, longest_block
from predcube.pipeline.samples import Sample
from predcube.pipeline.shelf import Shelf, name_of
from predcube.pipeline.spec.sections import build_section
from predcube.pipeline.spec.sweep import Section, Sweep
from predcube.tasks.gains import Measure
from predcube.tasks.noises import Noise
from predcube.tasks.processes import Process
from predcube.tasks.releases import Release

WIDEST = 256
"""Queries of a law: families that drop the same rows share one pass and one matrix up to here."""

FAMILY = frozenset({"family_gain", "family_bound"})
ROLES = ("table", "query", "release", "process", "noise", "measure")

type Codes = tuple[int, int, int, int, int, int]
"""Which value of each role a cell has, in the order of ``ROLES``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawNeed:
    """A law: of which table, release, process and queries; ``sample`` names one of the samples it stands for."""

    name: str
    fit: str
    sample: str
    table: int
    release: int
    process: int
    view: View


@dataclass(frozen=True, slots=True, kw_only=True)
class FitNeed:
    """A fit: of which table and release, on the complete rows of a view."""

    name: str
    table: int
    release: int
    view: View


class Needs:
    """The parts of a sweep, built, and what their combinations need."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.parts: Mapping[str, Part] = {role: part(sweep, role) for role in ROLES}
        self._sample_names: dict[tuple[int, int, int, int], str] = {}
        self.joint = not FAMILY.isdisjoint(sweep.quantities)
        self.valued = any(m.loss == "log" for m in self.measures)

    def _sections(self, role: str) -> tuple[Section, ...]:
        return self.parts[role].values

    @property
    def tables(self) -> tuple[Section, ...]:
        return self._sections("table")

    @property
    def queries(self) -> tuple[Section, ...]:
        return self._sections("query")

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        return tuple(build_section("release", s) for s in self._sections("release"))

    @cached_property
    def processes(self) -> tuple[Process[Any], ...]:
        return tuple(build_section("process", s) for s in self._sections("process"))

    @cached_property
    def noises(self) -> tuple[Noise, ...]:
        return tuple(build_section("noise", s) for s in self._sections("noise"))

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(measure_of(s) for s in self._sections("measure"))

    @cached_property
    def _grids(self) -> tuple[NDArray[np.int32], ...]:
        return tuple(np.broadcast_to(self.parts[role].codes, self.sweep.shape) for role in ROLES)

    def codes(self, index: tuple[int, ...]) -> Codes:
        """Which value of each role a cell has."""
        t, q, r, p, n, m = self._grids
        return int(t[index]), int(q[index]), int(r[index]), int(p[index]), int(n[index]), int(m[index])

    @cached_property
    def _law_keys(self) -> tuple[str, ...]:
        """By process, what of it a law depends on."""
        return tuple(json.dumps(p.key, sort_keys=True) for p in self.processes)

    @cached_property
    def leaders(self) -> tuple[int, ...]:
        """By process, the first one that shares its law."""
        first: dict[str, int] = {}
        return tuple(first.setdefault(key, i) for i, key in enumerate(self._law_keys))

    def view(self, query: int, release: int, process: int) -> View:
        """What a cell reads of its table."""
        of = self.processes[process]
        return View(
            inputs=self.releases[release].inputs,
            queries=tuple(self.queries[query]["expressions"]),
            column=of.reads,
            grouped=of.needs_groups,
            target=of.target_expression,
        )

    def sample_name(self, table: int, query: int, release: int, process: int) -> str:
        """What the complete rows of a cell are called."""
        key = (table, query, release, self.leaders[process])
        if key not in self._sample_names:
            self._sample_names[key] = self._sample_name(*key)
        return self._sample_names[key]

    def _sample_name(self, table: int, query: int, release: int, process: int) -> str:
        view = self.view(query, release, process)
        read = [view.inputs, view.queries, view.column, view.grouped, view.target, self.valued]
        return self._named("sample", self.tables[table]["digest"], read)

    def samples(self) -> Iterator[tuple[str, int, View, tuple[str, ...]]]:
        """Every sample once: its name, table, view, and the names of its queries."""
        seen = set()
        for t in range(len(self.tables)):
            for r in range(len(self.releases)):
                for p in sorted(set(self.leaders)):
                    for q, section in enumerate(self.queries):
                        name = self.sample_name(t, q, r, p)
                        if name not in seen:
                            seen.add(name)
                            yield name, t, self.view(q, r, p), tuple(section["names"])

    def sample(self, shelf: Shelf, table: int, query: int, release: int, process: int) -> Sample | None:
        """A sample that is known already."""
        found = shelf.find(self.sample_name(table, query, release, process))
        return None if found is None else Sample(**found)

    def longest(self, table: int) -> int:
        """Rows of a block of a table: by how many expressions the sweep reads."""
        used = {e for section in self.queries for e in section["expressions"]}
        used |= {e for release in self.releases for e in release.inputs}
        used |= {p.reads for p in self.processes if p.reads is not None}
        return longest_block(len(used))

    def needed(self, shelf: Shelf) -> "Needed":
        """The fits and laws of the samples on a shelf, which must be there."""
        fits: dict[str, FitNeed] = {}
        laws: dict[str, LawNeed] = {}
        places: dict[tuple[int, int, int, int], tuple[str, int]] = {}
        for t, table in enumerate(self.tables):
            for r, release in enumerate(self._sections("release")):
                for p in sorted(set(self.leaders)):
                    for chunk in self._chunks(shelf, t, r, p):
                        sample = self.sample(shelf, t, chunk[0], r, p)
                        if sample is None:
                            raise AssertionError("a sample that was counted is gone")
                        fit = self._named("fit", table["digest"], release, sample.mask, sample.rows)
                        fits.setdefault(fit, FitNeed(name=fit, table=t, release=r, view=self.view(chunk[0], r, p)))
                        expressions = tuple(e for q in chunk for e in self.queries[q]["expressions"])
                        law = self._named("law", fit, self._law_keys[p], expressions, self.joint)
                        of = self.view(chunk[0], r, p)
                        laws[law] = LawNeed(
                            name=law,
                            fit=fit,
                            sample=self.sample_name(t, chunk[0], r, p),
                            table=t,
                            release=r,
                            process=p,
                            view=View(
                                inputs=of.inputs,
                                queries=expressions,
                                column=of.column,
                                grouped=of.grouped,
                                target=of.target,
                            ),
                        )
                        at = 0
                        for q in chunk:
                            places[t, q, r, p] = (law, at)
                            at += len(self.queries[q]["expressions"])
        return Needed(fits=fits, laws=laws, places=places)

    def _chunks(self, shelf: Shelf, table: int, release: int, process: int) -> Iterator[list[int]]:
        """Families that drop the same rows, as many together as a law takes; those that a process cannot run on left
        out."""
        alike: dict[str, list[int]] = {}
        runs = [self.processes[i] for i, leader in enumerate(self.leaders) if leader == process]
        for q in range(len(self.queries)):
            sample = self.sample(shelf, table, q, release, process)
            if sample is not None and any(p.infeasible(sample.rows, sample.groups) is None for p in runs):
                alike.setdefault(f"{sample.mask} {sample.rows}", []).append(q)
        for families in alike.values():
            chunk: list[int] = []
            width = 0
            for q in families:
                size = len(self.queries[q]["expressions"])
                if chunk and width + size > WIDEST:
                    yield chunk
                    chunk, width = [], 0
                chunk.append(q)
                width += size
            yield chunk

    def _named(self, what: str, *identity: Any) -> str:
        return name_of(what, *identity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """fits, laws: by name. places: (table, query, release, leading process) → its law and where its queries begin."""

    fits: Mapping[str, FitNeed]
    laws: Mapping[str, LawNeed]
    places: Mapping[tuple[int, int, int, int], tuple[str, int]]


def measure_of(section: Section) -> Measure:
    """How a cell's predictions are scored. τ is of the log loss alone."""
    tau = section.get("tau") if section["loss"] == "log" else None
    return Measure(loss=section["loss"], tau=tau, convention=section["convention"])
