"""Sweeps of predictability: a cell is a table, queries, a release, a breach process, noise and a loss.

The tables are summed up once for all cells; after that a cell is algebra of the size of the release.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from predcube.cluster import Fanout, describe
from predcube.pipeline.cells import (
    TARGETS,
    Cells,
    Infeasible,
    caution_meanings,
    query_dimension,
    refusal,
    unmeasurable,
)
from predcube.pipeline.failures import BadInput
from predcube.pipeline.kinds.base import (
    Bench,
    Code,
    Counts,
    Groups,
    Kind,
    Preparation,
    Reason,
    Say,
    infeasible_places,
    sorted_reasons,
    worded,
)
from predcube.pipeline.needs import ROLES, Needs
from predcube.pipeline.samples import Sample
from predcube.pipeline.shelf import Shelf, shelf_at
from predcube.pipeline.spec import schemas
from predcube.pipeline.spec.mistakes import Mistakes
from predcube.pipeline.spec.sweep import Sweep
from predcube.pipeline.summaries import Tables
from predcube.pipeline.tiles import Blank, Measured, Part, Place, Site
from predcube.storage import FAILED, INFEASIBLE
from predcube.storage.schema import Axis
from predcube.tasks.frames import Frame, total_of
from predcube.tasks.gains import Gains, Measure
from predcube.tasks.mixture.base import Workload
from predcube.tasks.noises import build as noise_of
from predcube.tasks.processes import Process
from predcube.tasks.processes import build as process_of
from predcube.tasks.releases import Release
from predcube.tasks.releases import build as release_of
from predcube.tasks.releases.gradient_descent import GradientDescent
from predcube.tasks.releases.stack import Stack

SIMULATED = frozenset({"simulated_gain", "simulated_ratio"})
"""Quantities for which the attacker is run."""

WIDEST_TIMED = 256
"""Numbers of a release whose algebra is timed when a sweep is planned."""

ITERATED = {"logistic": 8, "poisson": 8}
"""About how many passes a fit takes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Trial:
    """A cell's trial as planning sees it. queries, moments: Q and d. draws: of a family's errors. breaches: draws times
    the rows of a breach, where the attacker is run; rows: of the table that is then held. shared_by: how many cells,
    about, share a factored law."""

    reason: str | None
    without: Mapping[str, str]
    queries: int
    moments: int
    draws: int
    breaches: float
    rows: int
    shared_by: float

    def infeasible(self) -> str | None:
        return self.reason

    def inapplicable(self) -> Mapping[str, str]:
        return self.without

    def method(self) -> str:
        return "exact and drawn" if self.draws or self.breaches else "exact"

    def operations(self) -> Counts:
        found = {"values": float(self.queries * self.moments), "factors": 2.0 * self.moments**3 / self.shared_by}
        if self.draws:
            found["draws"] = float(self.draws) * self.queries * (2 * self.queries + 10)
        if self.breaches:
            found["breaches"] = self.breaches * (self.queries + self.moments + 1)
        return found

    def shared(self) -> Counts:
        return {}

    def memory(self) -> int:
        held = 32 * self.rows * (self.queries + 2 * self.moments) if self.breaches else 0
        return 2**24 + 64 * self.moments**2 + 64 * self.queries * (self.moments + self.queries) + held

    def blocks(self) -> int:
        return 1

    def measure(self, trial: int) -> object:
        """The values of a made-up table with this many queries and columns: no row of the sweep's has to be read."""
        if self.draws or self.breaches or self.moments > WIDEST_TIMED:
            raise ValueError("draws, and matrices that take seconds to factor, are not timed")
        return _made_up(self.queries, self.moments).values(
            process_of("iid", size=100), noise_of("isotropic", sd=0.1), Measure()
        )

    def longest(self) -> tuple[Callable[[int], object], int] | None:
        return None


@lru_cache(maxsize=4)
def _made_up(queries: int, moments: int) -> Gains:
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((moments + 100, moments))
    frame = Frame(queries=rng.integers(0, 2, (len(inputs), queries)).astype(np.float64), inputs=inputs)
    total = total_of([frame])
    fitted = release_of("mean", columns=[f"column {i}" for i in range(moments)]).fit(total)
    process = process_of("iid", size=100)
    return Gains(law=process.law(total(process.request(fitted))), coordinates=fitted)


class _Bench:
    """See ``Bench``."""

    def __init__(self, site: Site, sweep: Sweep) -> None:
        self._needs = Needs(sweep)
        self._cells = Cells(self._needs, shelf_at(site.url, site.generation), site.directory)

    def inapplicable(self, index: tuple[int, ...]) -> Mapping[str, str]:
        return self._cells.inapplicable(self._needs.codes(index))

    def workloads(self, place: Place) -> Sequence[Workload]:
        return ()

    def fill(
        self, blank: Blank, places: Iterable[Place], parts: Mapping[Place, Mapping[int, Part]]
    ) -> Iterator[tuple[Place, str]]:
        for place in places:
            codes = self._needs.codes(place[0])
            without = unmeasurable(self._needs, codes)
            if len(without) == len(self._needs.sweep.quantities):
                blank.mark(place, INFEASIBLE)
                continue
            try:
                measured: Measured = self._cells.measure(codes, place[1])
                wrong = blank.put(place, measured, without)
            except Infeasible:
                blank.mark(place, INFEASIBLE)
                continue
            except Exception as e:
                blank.mark(place, FAILED, without)
                wrong = [str(e) if isinstance(e, ValueError) else describe(e)]
            for text in wrong:
                yield place, text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Preparation(Preparation):
    """The samples of a sweep, counted; ``new``: those that the store has not."""

    shelf: Shelf
    new: Mapping[str, Any]


class Predictability(Kind):
    """Sweeps of predictability."""

    name = "predictability"
    leading = ("sharp", "utility_cost", "simulated_ratio", "family_gain")

    def check(self, sweep: Sweep, mistakes: Mistakes, notes: list[str]) -> Sweep:
        found = schemas.check(sweep, mistakes, notes)
        if (
            not mistakes.found
            and found.measure.get("tau") is not None
            and not any(m.loss == "log" for m in Needs(found).measures)
        ):
            mistakes.add("measure.tau", 'τ is of the log loss, and none is measured; set loss = "log" or drop it')
        return found

    def prepare(self, sweep: Sweep, url: str | None, say: Say) -> Preparation:
        needs, stored = Needs(sweep), Shelf(url)
        shelf = Shelf()  # planning writes nothing
        known = {n: found for n, *_ in needs.samples() if (found := stored.find(n)) is not None}
        shelf.put_together(known)
        tables = Tables(needs, shelf, directory=sweep.directory, say=say)
        tables.count()
        needed = needs.needed(shelf)
        lines = tuple(_lines(needs, shelf))
        seconds = 0.0
        left = 0
        for t in range(len(needs.tables)):
            fits = [f for f in needed.fits.values() if f.table == t]
            laws = [w for w in needed.laws.values() if w.table == t]
            rounds = max((passes_of(needs.releases[f.release]) for f in fits if not stored.has(f.name)), default=0)
            rounds += any(not stored.has(w.name) for w in laws)
            left += rounds
            width = sum(len(w.view.queries) + len(w.view.inputs) for w in laws)
            rows = tables.rows(t).count if rounds else 0
            seconds += rounds * rows * (len(needs.queries) + 4) * 2e-8 + rows * width * 5e-9
        seconds = max(seconds, tables.seconds * left)
        new = {n: shelf.find(n) for n, *_ in needs.samples() if n not in known}
        return _Preparation(lines=lines, seconds=seconds, passes=left, memory=_memory(needs), shelf=shelf, new=new)

    def groups(self, sweep: Sweep, preparation: Preparation | None) -> Groups:
        if not isinstance(preparation, _Preparation):
            raise AssertionError("a predictability sweep is planned after its rows are counted")
        return _groups(Needs(sweep), preparation.shelf)

    def before(
        self, sweep: Sweep, site: Site, preparation: Preparation | None, fanout: Fanout, say: Say, *, retry: bool
    ) -> None:
        if not isinstance(preparation, _Preparation):
            raise AssertionError("a predictability sweep is run after its rows are counted")
        shelf = Shelf(site.url)
        if any(not shelf.has(name) for name in preparation.new):
            shelf.put_together(preparation.new)
        tables = Tables(
            Needs(sweep), shelf, directory=site.directory, fanout=fanout, generation=site.generation, say=say
        )
        tables.count()
        tables.sum_up(retry=retry)

    def bench(self, site: Site, sweep: Sweep) -> Bench:
        return _Bench(site, sweep)

    def codes(self, sweep: Sweep) -> tuple[Code, ...]:
        return (
            Code(
                name="cautions",
                meanings=caution_meanings(),
                description="few_shards: first order in the number of shards; linear_attacker: a Bayes attacker gains "
                "more; ill_conditioned: few digits are left of the smallest direction; beyond_first_order: the "
                "attacker is so uncertain before the release that first-order values overstate it; constant_query: "
                "it is 0",
            ),
            Code(name="target_rows", meanings=TARGETS, description="whose mean the attacker predicts"),
        )

    def dimensions(self, sweep: Sweep) -> Mapping[str, tuple[str, ...]]:
        if not query_dimension(Needs(sweep)):
            return {}
        known = self.grammar.quantities
        found = {q: known[q].extra for q in self.measured(sweep) if known[q].extra}
        return {**found, "cautions": ("query",)}

    def extra_axes(self, sweep: Sweep) -> tuple[Axis, ...]:
        needs = Needs(sweep)
        if not query_dimension(needs):
            return ()
        names = np.array(needs.queries[0]["names"], dtype=np.str_)
        about = {"long_name": "query", "description": "names of the queries of the spec"}
        return (Axis(name="query", values=names, chunk=len(names), attributes=about),)

    def facts(self, sweep: Sweep, store: str) -> tuple[tuple[str, str], ...]:
        needs, shelf = Needs(sweep), Shelf(store)
        if not all(shelf.has(name) for name, *_ in needs.samples()):
            return ()
        return tuple(("rows", line) for line in _lines(needs, shelf))

    def beside(self, surfaces: xr.Dataset, sweep: Sweep) -> xr.Dataset:
        return surfaces

    def reasons(self, sweep: Sweep, surfaces: xr.Dataset, store: str) -> tuple[Reason, ...]:
        needs = Needs(sweep)
        whole, parts = infeasible_places(sweep, surfaces)
        marked = np.argwhere(np.logical_or.reduce([whole, *parts.values()]))
        if not len(marked):
            return ()
        cells = Cells(needs, Shelf(store))
        found: dict[str, NDArray[np.bool_]] = {}
        for row in marked:
            index = tuple(int(i) for i in row)
            lacking = [q for q, here in parts.items() if here[index]]
            try:
                without = cells.inapplicable(needs.codes(index))
            except KeyError:
                without = {}
            reasons = [worded(q, without.get(q, "not known")) for q in lacking]
            for reason in reasons or ["; ".join(dict.fromkeys(without.values())) or "not known"]:
                found.setdefault(reason, np.zeros(sweep.shape, dtype=np.bool_))[index] = True
        return sorted_reasons(sweep, found)


def passes_of(release: Release) -> int:
    """About how many passes a fit takes."""
    if isinstance(release, Stack):
        return sum(map(passes_of, release.releases))
    if isinstance(release, GradientDescent):
        return 1 if release.loss == "squared" else 2 + release.steps
    return ITERATED.get(release.kind, 1)


def held(process: Process[Any], sample: Sample) -> float:
    """About how many rows a breach shows."""
    for amount in ("size", "steps"):
        if getattr(process, amount, None) is not None:
            return float(getattr(process, amount))
    if getattr(process, "fraction", None) is not None:
        return float(process.fraction * sample.rows)  # type: ignore[attr-defined]
    shards = 1 if sample.groups is None else len(sample.groups.labels)
    return sample.rows * min(1.0, getattr(process, "count", shards) / shards)


def _groups(needs: Needs, shelf: Shelf) -> Groups:
    """Cells by what their feasibility and cost depend on: the sample's counts, not which queries they are of."""
    sweep = needs.sweep
    codes = {role: np.broadcast_to(needs.parts[role].codes, sweep.shape) for role in ROLES}
    signatures: dict[object, int] = {}
    examples: list[tuple[Sample, int, int]] = []  # a sample, Q, d
    shape = tuple(len(needs.parts[r].values) for r in ("table", "query", "release", "process"))
    which = np.zeros(shape, dtype=np.int64)
    for t, q, r, p in np.ndindex(*shape):
        sample = needs.sample(shelf, t, q, r, needs.leaders[p])
        if sample is None:
            raise AssertionError("a sample that was counted is gone")
        width = len(needs.queries[q]["names"])
        size = len(needs.releases[r].names)
        groups = None if sample.groups is None else (sample.groups.labels, sample.groups.counts.tobytes())
        binary = sample.queries is None or bool(sample.queries.binary.all())
        key = (sample.rows, hash(groups), width, size, binary, p)
        if key not in signatures:
            signatures[key] = len(examples)
            examples.append((sample, width, size))
        which[t, q, r, p] = signatures[key]
    flat = which[codes["table"], codes["query"], codes["release"], codes["process"]]
    kinds = [noise.kind for noise in needs.noises]
    schemes = np.array([kinds.index(k) for k in kinds])
    for extra, count in (
        (codes["process"], shape[3]),
        (schemes[codes["noise"]], len(kinds)),
        (codes["measure"], len(needs.measures)),
    ):
        flat = flat * count + extra
    _, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
    works = []
    simulated = not SIMULATED.isdisjoint(sweep.quantities)
    for place in first:
        index = np.unravel_index(place, sweep.shape) if sweep.shape else ()
        t, q, r, p, n, m = needs.codes(tuple(int(i) for i in index))
        sample, width, size = examples[which[t, q, r, p]]
        options = needs.parts["measure"].values[m]
        reason = refusal(sample, needs.processes[p], needs.noises[n], needs.measures[m], width)
        without = unmeasurable(needs, (t, q, r, p, n, m)) if reason is None else dict.fromkeys(sweep.quantities, reason)
        if len(without) == len(sweep.quantities):
            reason = "; ".join(dict.fromkeys(without.values()))
        drawn = "family_gain" in sweep.quantities and "family_gain" not in without
        works.append(
            _Trial(
                reason=reason,
                without=without,
                queries=width,
                moments=size,
                draws=options["draws"] if drawn else 0,
                breaches=options["draws"] * held(needs.processes[p], sample) if simulated else 0.0,
                rows=sample.rows,
                shared_by=max(1.0, flat.size / (shape[0] * shape[1] * shape[2] * len(set(needs.leaders)))),
            )
        )
    for quantity in sweep.quantities if any(w.reason is None for w in works) else ():
        if all(quantity in w.without for w in works):
            reasons = list(dict.fromkeys(w.without[quantity] for w in works if w.reason is None))
            raise BadInput(f"measure.quantities: {quantity} applies to no cell; leave it out: {'; '.join(reasons[:3])}")
    if works and all(w.reason is not None for w in works):
        reasons = list(dict.fromkeys(str(w.reason) for w in works))
        cells = "the cell is" if flat.size == 1 else f"all {flat.size} cells are"
        raise BadInput(f"{cells} infeasible, nothing would be run: {'; '.join(reasons[:3])}")
    return Groups(works=tuple(works), which=inverse.reshape(sweep.shape).astype(np.int32))


def _lines(needs: Needs, shelf: Shelf) -> Iterator[str]:
    """What the tables' samples are, in words."""
    for t, section in enumerate(needs.tables):
        found: Counter[tuple[int, int, str]] = Counter()
        for name, table, _, _ in needs.samples():
            if table == t:
                sample = Sample(**shelf.find(name))
                lost = ", ".join(f"{count:,} by {reason}" for reason, count in sample.dropped.items())
                found[sample.rows, sample.total, lost] += 1
        for (rows, total, lost), count in found.most_common(4):
            said = f"{section['path']}: N = {rows:,} of {total:,} rows" + (f" (dropped: {lost})" if lost else "")
            yield said + (f", for {count} of {sum(found.values())} samples" if len(found) > 1 else "")


def _memory(needs: Needs) -> int:
    """Bytes of one worker that reads: blocks of every expression, sums of every law."""
    width = sum(len(s["expressions"]) for s in needs.queries) + sum(len(r.inputs) for r in needs.releases)
    rows = max(needs.longest(t) for t in range(len(needs.tables)))
    size = max(len(r.names) for r in needs.releases)
    return math.ceil(3 * 8 * rows * width + 64 * width * size + 2**26)


__all__ = ["Predictability"]
