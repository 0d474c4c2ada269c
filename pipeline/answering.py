"""One answer without a sweep: in go a table's path, queries in SQL, a release, a process and noise, out come the values
of theory F and all that further questions about the same cell need.

It is a sweep of one cell, read and summed up as every other is, in this process and with nothing stored.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from numpy.typing import ArrayLike

from predcube import tasks
from predcube.pipeline.cells import Cells, Infeasible
from predcube.pipeline.failures import BadInput
from predcube.pipeline.needs import Needs
from predcube.pipeline.samples import Sample
from predcube.pipeline.shelf import Shelf
from predcube.pipeline.spec import load_spec
from predcube.pipeline.spec.loading import problems
from predcube.pipeline.spec.sweep import Section, Sweep
from predcube.pipeline.summaries import Say, Tables
from predcube.storage.failures import StoreError
from predcube.tasks.attackers import Simulation
from predcube.tasks.gains import Gains, Measure, Values
from predcube.tasks.leakage import Predictability, answer
from predcube.tasks.noises import Noise
from predcube.tasks.processes import Process
from predcube.tasks.processes.markov import Transitions
from predcube.tasks.releases import Fitted, Release

CELL = (0, 0, 0, 0, 0, 0)
"""The codes of the only cell."""

NOTHING_SAID: Say = lambda text: None  # noqa: E731


class Refused(BadInput, ValueError):
    """What cannot be answered: bad input to the command line, a ValueError to Python."""


def predictability(
    table: Any,
    query: str | ArrayLike | Mapping[str, Any],
    release: Mapping[str, Any] | Release,
    process: Mapping[str, Any] | Process[Any],
    noise: Mapping[str, Any] | Noise | None = None,
    loss: str | Mapping[str, Any] | Measure = "squared",
) -> Predictability:
    """What a release of a table tells an attacker, who holds some of its rows, about a query on the others.

    table: the path of a CSV, Parquet or Arrow file or of a folder of them, or ``{"path": …}``; columns in memory go to
    ``predcube.tasks.predictability``, which has the same signature and result. query: a column or an SQL expression, or
    a mapping of name → either, or → ``{"categories": column}``, one query a value. Release inputs and a target may be
    expressions, too. release, process, noise, loss: as there.

    The rows are read in batches, about three times: memory does not grow with them. Raises ValueError (``BadInput``)
    with every problem, each with its place and a cure. Source: Lu & Sridharan 2026, Theorem 3.6, with the corrections
    that ``predcube.tasks.gains`` names.
    """
    path = path_of(table)
    if path is None:
        return tasks.predictability(table, query, release, process, noise, loss)
    if not isinstance(query, str | Mapping):
        raise Refused(f"query is {type(query).__name__}: of a file give a column, an SQL expression, or name → either")
    spec = {
        "kind": "predictability",
        "table": {"path": path},
        "query": dict(query) if isinstance(query, Mapping) else {query: query},
        "release": section_of(release, "release"),
        "process": section_of(process, "process"),
        "noise": section_of(noise or {"kind": "none"}, "noise"),
        "measure": _measure(loss),
    }
    if isinstance(query, Mapping):
        return work(spec).answer(single=False)
    # A text is both name and expression: in a message once is enough.
    return work(spec, named=lambda place: "query" if place.startswith("query.") else place).answer(single=True)


def section_of(value: Any, role: str) -> dict[str, Any]:
    """A section from a mapping or a built object."""
    if isinstance(value, Release | Process | Noise):
        found = {"kind": value.kind, **value.parameters()}
        return {name: _plain(v) for name, v in found.items() if v is not None}
    if not isinstance(value, Mapping):
        raise Refused(f"{role} = {value!r} must be a table with a kind: {{'kind': …}}, and its parameters")
    return {str(name): _plain(v) for name, v in value.items()}


def _plain(value: Any) -> Any:
    """As a spec writes it."""
    match value:
        case Transitions():
            return {"labels": list(value.labels), "matrix": [list(row) for row in value.matrix]}
        case Release():
            return section_of(value, "release")
        case Mapping():
            return {str(k): _plain(v) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v) for v in value]
        case _ if hasattr(value, "tolist"):  # NumPy's scalars and arrays
            return value.tolist()
        case _:
            return value


def _measure(loss: Any) -> dict[str, Any]:
    if isinstance(loss, Mapping):
        return {str(k): _plain(v) for k, v in loss.items()}
    if isinstance(loss, Measure):
        found = {"loss": loss.loss, "convention": loss.convention}
        return found if loss.tau is None else {**found, "tau": loss.tau}
    return {"loss": loss}


def path_of(table: Any) -> str | None:
    """The path that a table is, or None where it is columns."""
    if isinstance(table, Mapping) and table.keys() == {"path"} and isinstance(table["path"], str | PathLike):
        table = table["path"]
    return fspath(table) if isinstance(table, str | PathLike) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What an answer says of its rows."""

    rows: int
    dropped: Mapping[str, int]
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """A cell that was summed up: its values, and what further questions are asked of. ``passes`` over the table."""

    needs: Needs
    cells: Cells
    values: Values
    gains: Gains
    fitted: Fitted
    sample: Sample
    passes: int

    @property
    def sweep(self) -> Sweep:
        return self.needs.sweep

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of the queries, categories written out."""
        return tuple(self.needs.queries[0]["names"])

    @property
    def expressions(self) -> tuple[str, ...]:
        """What they are: columns, or canonical SQL."""
        return tuple(self.needs.queries[0]["expressions"])

    @property
    def release(self) -> Release:
        return self.needs.releases[0]

    @property
    def process(self) -> Process[Any]:
        return self.needs.processes[0]

    @property
    def noise(self) -> Noise:
        return self.needs.noises[0]

    @property
    def measure(self) -> Measure:
        return self.needs.measures[0]

    def section(self, role: str) -> Section:
        """A canonical section of the cell."""
        section: Section = self.needs.parts[role].values[0]
        return section

    def answer(self, *, single: bool) -> Predictability:
        """The values as an answer, of one query as plain numbers where ``single``."""
        counts = Counts(rows=self.sample.rows, dropped=self.sample.dropped, queries=self.queries)
        return answer(self.values, self.fitted, counts, self.release, single=single)

    def simulation(self) -> Simulation:
        """The attacker run, measure.draws times. Raises ``Refused`` where a breach leaves nothing to estimate."""
        try:
            return self.cells.simulated(CELL, 0)
        except ValueError as e:
            raise Refused(f"simulation: {e}") from e


def work(
    spec: Mapping[str, Any],
    *,
    named: Callable[[str], str] = lambda place: place,
    say: Say = NOTHING_SAID,
    report: Callable[[int, int], None] = lambda done, parts: None,
    shelf: Shelf | None = None,
) -> Worked:
    """A spec of one cell, summed up. ``named`` says how a place in the spec is called in messages; ``say`` is told of
    every pass, ``report`` of every part of the table that a pass has read. ``shelf`` holds what other cells have summed
    up, and is added to.

    Raises ``Refused`` with every problem, or with why the cell cannot be.
    """
    sweep = _checked(spec, named)
    if sweep.shape:
        raise Refused("one answer has no axes; run a sweep for several")
    needs, shelf = Needs(sweep), Shelf() if shelf is None else shelf
    tables = Tables(needs, shelf, directory=sweep.directory, say=say, report=report)
    try:
        tables.count()
        sample = needs.sample(shelf, 0, 0, 0, 0)
        assert sample is not None
        tables.sum_up()
        cells = Cells(needs, shelf, sweep.directory)
        values, gains = cells.values(CELL), cells.gains(CELL)
        [need] = needs.needed(shelf).fits.values()
        fitted: Fitted = shelf.find(need.name)
    except (Infeasible, StoreError, BadInput, ValueError) as e:
        raise Refused(str(e)) from e
    return Worked(
        needs=needs, cells=cells, values=values, gains=gains, fitted=fitted, sample=sample, passes=tables.passes
    )


def _checked(spec: Mapping[str, Any], named: Callable[[str], str]) -> Sweep:
    """The sweep, or ``Refused`` with its problems, each at the place that the asker knows."""
    try:
        return load_spec(spec)
    except BadInput as e:
        found = [f"{named(m.path)}: {m.message}" if m.path else m.message for m in problems(spec)]
        if len(found) < 2:
            raise Refused(found[0] if found else str(e)) from None
        raise Refused("\n".join([f"{len(found)} problems", *(f"  {line}" for line in found)])) from None
