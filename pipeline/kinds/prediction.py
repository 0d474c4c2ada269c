"""Sweeps of predictions: a cell is a class of hypotheses, a law of data, a learner and a sample size; a trial is one
sample drawn, one predictor computed and measured.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from predcube.cluster import describe
from predcube.pipeline import dimensions
from predcube.pipeline.building import build_problem
from predcube.pipeline.grid import Grid
from predcube.pipeline.kinds.base import (
    Bench,
    Code,
    Counts,
    Groups,
    Kind,
    Preparation,
    Reason,
    infeasible_places,
    sorted_reasons,
    worded,
)
from predcube.pipeline.spec.mistakes import Mistakes
from predcube.pipeline.spec.sweep import Sweep
from predcube.pipeline.tiles import Blank, Measured, Part, Place, Site
from predcube.storage import FAILED, INFEASIBLE
from predcube.storage.schema import Axis
from predcube.tasks import trials
from predcube.tasks.mixture.base import Workload, evaluate

_CODES = {
    "mixture_method": "how the weights of the learner's mixture were computed",
    "audit": "how far stability, privacy loss and delta go: over all neighbours, over some of them, or estimated",
    "subset_sets": "the sets T that labelings and net_probability are means over",
    "lemma_sets": "the sets of drawn records that ratios of answers and net_failure are over",
    "supremum": "whether uniform_deviation and relabelling_error are over the whole class",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Trial:
    """A cell's trial as planning sees it; ``outside``: why it has no sample at all."""

    whole: trials.Problem
    outside: str | None = None

    @property
    def problem(self) -> trials.Problem:
        """What of it can be measured."""
        return trials.applicable(self.whole)

    def infeasible(self) -> str | None:
        return self.outside or trials.infeasible(self.whole)

    def inapplicable(self) -> Mapping[str, str]:
        if self.outside:
            return dict.fromkeys(self.whole.quantities, self.outside)
        return trials.inapplicable(self.whole)

    def method(self) -> str:
        return trials.method_of(self.problem)

    def operations(self) -> Counts:
        return trials.operations(self.problem)

    def shared(self) -> Counts:
        """The operations of a trial's workloads alone."""
        errors = tuple(q for q in self.problem.quantities if q in trials.MIXED)
        return trials.operations(replace(self.problem, quantities=errors)) if errors else {}

    def memory(self) -> int:
        return trials.memory(self.problem)

    def blocks(self) -> int:
        return trials.blocks(self.problem)

    def measure(self, trial: int) -> object:
        return trials.measure(self.problem, trial)

    def longest(self) -> tuple[Callable[[int], object], int] | None:
        work = max(trials.prepare(self.problem, 0).workloads, key=lambda w: w.cost, default=None)
        return None if work is None else (work.partial, work.blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """A built cell: the problem of what can be measured, None where nothing can; ``without`` says why the rest cannot
    be, ``broken`` why the cell could not be built."""

    problem: trials.Problem | None = None
    without: Mapping[str, str] = field(default_factory=dict)
    broken: str | None = None


class _Bench:
    """See ``Bench``."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._cell: Callable[[tuple[int, ...]], _Cell] = lru_cache(maxsize=1024)(self._built)

    def inapplicable(self, index: tuple[int, ...]) -> Mapping[str, str]:
        return self._cell(index).without

    def workloads(self, place: Place) -> tuple[Workload, ...]:
        return self._prepared(place).workloads

    def fill(
        self, blank: Blank, places: Iterable[Place], parts: Mapping[Place, Mapping[int, Part]]
    ) -> Iterator[tuple[Place, str]]:
        for place in places:
            cell = self._cell(place[0])
            if cell.problem is None and cell.broken is None:
                blank.mark(place, INFEASIBLE)
                continue
            try:
                wrong = blank.put(place, self._measure(place, parts.get(place, {})), cell.without)
            except Exception as e:
                blank.mark(place, FAILED, cell.without)
                wrong = [describe(e)]
            for text in wrong:
                yield place, text

    def _built(self, index: tuple[int, ...]) -> _Cell:
        try:
            whole = build_problem(self._sweep.cell(index), self._sweep)
            problem = None if trials.infeasible(whole) else trials.applicable(whole)
            return _Cell(problem=problem, without=trials.inapplicable(whole))
        except Exception as e:
            return _Cell(broken=describe(e))

    def _prepared(self, place: Place) -> trials.Prepared:
        cell = self._cell(place[0])
        if cell.problem is None:
            raise ValueError(cell.broken or "; ".join(dict.fromkeys(cell.without.values())))
        return trials.prepare(cell.problem, place[1])

    def _measure(self, place: Place, parts: Mapping[int, Part]) -> Measured:
        """One trial of one cell, with the workloads in ``parts`` already computed."""
        prepared = self._prepared(place)
        mixtures = []
        for number, workload in enumerate(prepared.workloads):
            part = parts.get(number)
            if part is None:
                mixtures.append(evaluate(workload))
            elif part.error is not None:
                raise ValueError(part.error)
            else:
                mixtures.append(workload.finish(part.value))
        return prepared.finish(tuple(mixtures))


class Prediction(Kind):
    """Sweeps of predictions."""

    name = "prediction"

    def check(self, sweep: Sweep, mistakes: Mistakes, notes: list[str]) -> Sweep:
        from predcube.pipeline.spec import feasibility
        from predcube.pipeline.spec.tables import with_digests

        read = with_digests(sweep, mistakes, notes)
        if not mistakes.found:
            feasibility.check(read, mistakes)
        return read

    def groups(self, sweep: Sweep, preparation: Preparation | None = None) -> Groups:
        grid = Grid(sweep)
        rows, which = grid.groups
        works = tuple(_Trial(whole=grid.problem(row), outside=grid.outside(row)) for row in rows)
        return Groups(works=works, which=which)

    def bench(self, site: Site, sweep: Sweep) -> Bench:
        return _Bench(sweep)

    def codes(self, sweep: Sweep) -> tuple[Code, ...]:
        return tuple(
            Code(name=name, meanings=trials.CODES[name], description=_CODES[name])
            for name in trials.outputs(self.measured(sweep))
            if name in trials.CODES
        )

    def dimensions(self, sweep: Sweep) -> Mapping[str, tuple[str, ...]]:
        known = self.grammar.quantities
        return {q: known[q].extra for q in self.measured(sweep) if known[q].extra}

    def extra_axes(self, sweep: Sweep) -> tuple[Axis, ...]:
        return dimensions.extra_axes(sweep)

    def beside(self, surfaces: xr.Dataset, sweep: Sweep) -> xr.Dataset:
        # Theory is imported where it is asked for: the surfaces alone do without.
        from predcube.pipeline.guarantees import beside

        return beside(surfaces, sweep)

    def reasons(self, sweep: Sweep, surfaces: xr.Dataset, store: str = "") -> tuple[Reason, ...]:
        """The learner is asked first, since it needs no data: the law, which may be a table that lies elsewhere by now,
        only about cells that the learner has nothing against."""
        marked, parts_of = infeasible_places(sweep, surfaces)
        found: dict[str, NDArray[np.bool_]] = {}

        def add(reason: str, here: NDArray[np.bool_]) -> None:
            found[reason] = found.get(reason, np.zeros_like(marked)) | here

        grid = Grid(sweep)
        parts = [grid.parts[name] for name in ("hypotheses", "learner", "n")]
        codes = np.stack([np.broadcast_to(p.codes, marked.shape)[marked] for p in parts], axis=-1)
        for h, a, s in np.unique(codes, axis=0):
            if reason := grid.learners[a].infeasible(int(parts[2].values[s]), grid.hypotheses[h]):
                here = np.zeros_like(marked)
                here[marked] = (codes == (h, a, s)).all(axis=-1)
                add(reason, here)
        rest = marked & ~np.logical_or.reduce([*found.values(), np.zeros_like(marked)])
        partly = np.logical_or.reduce([*parts_of.values(), np.zeros_like(marked)])
        if rest.any() or partly.any():
            try:
                rows, which = grid.groups
                for group in np.unique(which[rest | partly]):
                    here, problem = which == group, grid.problem(rows[group])
                    if (rest & here).any():
                        add(grid.outside(rows[group]) or trials.infeasible(problem) or "not known", rest & here)
                    for quantity, where in parts_of.items():
                        if (where & here).any():
                            reason = trials.inapplicable(problem).get(quantity, "not known")
                            add(worded(quantity, reason), where & here)
            except (ValueError, OSError) as e:
                add(f"cannot be told here: {e}", rest | partly)
        return sorted_reasons(sweep, found)
