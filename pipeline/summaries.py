"""The tables of a predictability sweep summed up: in go needs and a shelf, out comes the shelf with all of them on it.

First the samples (one pass), then the fits (as many passes as the one that asks for most), then all laws (one pass).
Always true: what is on the shelf is not computed again; whoever reads which part, the bits are the same; what cannot
be computed is on the shelf as an error, and the rest goes on.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from predcube.cluster import Fanout
from predcube.pipeline.failures import BadInput
from predcube.pipeline.needs import FitNeed, LawNeed, Needs
from predcube.pipeline.passes import Ask, Framed, Reader, Sum
from predcube.pipeline.rounds import Fate, Requests, side_by_side
from predcube.pipeline.samples import Sample, Surveyed
from predcube.pipeline.shelf import Broken, Shelf, shelf_at
from predcube.pipeline.spec.schemas import table_of
from predcube.pipeline.spec.sections import build_section
from predcube.pipeline.spec.sweep import Section
from predcube.storage.failures import StoreError
from predcube.storage.rows import Rows
from predcube.tasks.frames import Frame, Groups, State

NO_ROWS = "no complete row is left: every row lacks a value that is used"

type Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRequest:
    """A law's request by name, for a worker: the fit and the groups are taken from the store."""

    url: str
    generation: str
    fit: str
    sample: str
    process: Section
    joint: bool

    def __call__(self, frame: Frame) -> State:
        process = build_section("process", self.process)
        fitted = shelf_at(self.url, self.generation).find(self.fit)
        request: Callable[[Frame], State] = process.request(fitted, self.groups(), joint=self.joint)
        return request(frame)

    def groups(self) -> Groups | None:
        """The groups of the sample."""
        groups: Groups | None = shelf_at(self.url, self.generation).find(self.sample)["groups"]
        return groups


class Tables:
    """The tables of a sweep while they are summed up. ``fanout``: an entered fan-out, or None for this process;
    ``generation``: of the store, where there is one. ``say`` is told of every pass, ``report`` of the parts it has
    read."""

    def __init__(
        self,
        needs: Needs,
        shelf: Shelf,
        *,
        directory: str,
        fanout: Fanout | None = None,
        generation: str = "",
        say: Say = lambda text: None,
        report: Callable[[int, int], None] = lambda done, parts: None,
    ) -> None:
        self.needs, self.shelf, self._report = needs, shelf, report
        self._directory, self._fanout, self._generation, self._say = directory, fanout, generation, say
        self._rows: dict[int, Rows] = {}
        self.seconds = 0.0  # of reading, by the wall
        self.passes = 0

    def count(self) -> None:
        """The samples that are not on the shelf. Raises ``BadInput`` where a table cannot be read."""
        missing: dict[int, list[tuple[str, Surveyed]]] = {}
        for name, table, view, names in self.needs.samples():
            if not self.shelf.has(name):
                asked = Surveyed(view=view, names=names, valued=self.needs.valued)
                missing.setdefault(table, []).append((name, asked))
        for table, asks in missing.items():
            sums = self._read(table, [ask for _, ask in asks], "counting complete rows")
            samples = {}
            for (name, ask), found in zip(asks, sums, strict=True):
                if found.error is not None:
                    raise BadInput(f"{self._path(table)}: {found.error}")
                samples[name] = ask.finished(found.state).as_data()
            self.shelf.put_together(samples)

    def sum_up(self, *, retry: bool = False) -> None:
        """The fits and laws that are not on the shelf; with ``retry``, those that failed too."""
        needed = self.needs.needed(self.shelf)
        if retry:
            self.shelf.forget_errors([*needed.fits, *needed.laws])
        for table in range(len(self.needs.tables)):
            fits = [f for f in needed.fits.values() if f.table == table and not self.shelf.has(f.name)]
            laws = [w for w in needed.laws.values() if w.table == table and not self.shelf.has(w.name)]
            if fits:
                self._fit(table, fits)
            if laws:
                self._laws(table, laws)
        self._unchanged()

    def _fit(self, table: int, fits: Iterable[FitNeed]) -> None:
        asked = {f.name: f for f in fits}

        def read(requests: Requests) -> Mapping[str, Sum]:
            names = list(requests)
            asks = [Framed(view=asked[n].view, request=requests[n], bare=True) for n in names]
            return dict(zip(names, self._read(table, asks, "fitting releases"), strict=True))

        releases = {name: self.needs.releases[f.release].fit for name, f in asked.items()}
        with threadpool_limits(limits=1, user_api="blas"):
            fates = side_by_side(releases, read)
        for name, fate in fates.items():
            self._keep(name, fate)

    def _laws(self, table: int, laws: Iterable[LawNeed]) -> None:
        asked: list[tuple[LawNeed, Framed]] = []
        for law in laws:
            try:
                asked.append((law, self._framed(law)))
            except Broken as e:
                self.shelf.fail(law.name, str(e))
        if not asked:
            return
        sums = self._read(table, [ask for _, ask in asked], "summing up laws")
        with threadpool_limits(limits=1, user_api="blas"):
            for (law, _), found in zip(asked, sums, strict=True):
                self._keep(law.name, self._law(law, found))

    def _law(self, law: LawNeed, found: Sum) -> Fate:
        if found.error is not None or found.state is None:
            return Fate(error=found.error or NO_ROWS)
        try:
            return Fate(result=self.needs.processes[law.process].law(found.state, self._groups(law)))
        except ValueError as e:
            return Fate(error=str(e))

    def _framed(self, law: LawNeed) -> Framed:
        """What a law asks of its table. Raises ``Broken`` where its fit is an error."""
        fitted = self.shelf.find(law.fit)
        if self.shelf.url is None or self._fanout is None:
            process = self.needs.processes[law.process]
            try:
                request = process.request(fitted, self._groups(law), joint=self.needs.joint)
            except ValueError as e:
                raise Broken(str(e)) from e
            return Framed(view=law.view, request=request, groups=self._groups(law))
        stored = StoredRequest(
            url=self.shelf.url,
            generation=self._generation,
            fit=law.fit,
            sample=law.sample,
            process=self.needs.parts["process"].values[law.process],
            joint=self.needs.joint,
        )
        return Framed(view=law.view, request=stored, groups=stored.groups)  # type: ignore[arg-type]

    def _groups(self, law: LawNeed) -> Groups | None:
        return Sample(**self.shelf.find(law.sample)).groups

    def _keep(self, name: str, fate: Fate) -> None:
        if fate.error is not None:
            self.shelf.fail(name, fate.error)
        else:
            self.shelf.put(name, fate.result)

    def _read(self, table: int, asks: list[Any], doing: str) -> tuple[Sum, ...]:
        rows = self.rows(table)
        self.passes += 1
        self._say(f"{self._path(table)}: {doing} ({rows.count:,} rows, pass {self.passes})")
        asked: list[Ask] = asks
        reader = Reader(rows=rows, longest=self.needs.longest(table), fanout=self._fanout, report=self._report)
        begun = time.monotonic()
        found = reader.read(asked)
        self.seconds += time.monotonic() - begun
        return found

    def rows(self, table: int) -> Rows:
        """A table, opened. Raises ``BadInput`` where it is not the one that the sweep was checked against."""
        if table not in self._rows:
            try:
                self._rows[table] = table_of(self.needs.tables[table], self._directory)
            except StoreError as e:
                raise BadInput(str(e)) from e
        return self._rows[table]

    def _unchanged(self) -> None:
        """Raises ``BadInput`` where a table was written to while it was read."""
        for table in self._rows:
            try:
                table_of(self.needs.tables[table], self._directory)
            except StoreError as e:
                raise BadInput(f"{e} (it changed while it was read)") from e

    def _path(self, table: int) -> str:
        return str(self.needs.tables[table]["path"])
