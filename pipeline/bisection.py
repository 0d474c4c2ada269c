"""The smallest n by a search: in go a spec with targets and an axis n, out comes a cube in which as few cells as the
answers need are done.

A cell's n goes up by doubling until the targets are met, then the gap to the last miss is halved; so do both ends of
the answer's interval. Always true: every cell that is looked at is the ordinary cell of the sweep, with its own
streams, so that its numbers are those of a full run, which may follow in the same store; the answers are those of
``targets.smallest_n``, whose statuses say where a miss speaks for smaller n that were not looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube import storage
from predcube.pipeline.execution import Summary, execute, prepare
from predcube.pipeline.failures import BadInput
from predcube.pipeline.planning import Plan
from predcube.pipeline.progress import Display
from predcube.pipeline.reduction import surfaces
from predcube.pipeline.spec.sweep import Sweep
from predcube.pipeline.stopping import stoppable
from predcube.pipeline.targets import AUDITS, ENDS, Truths, limits_of, truths
from predcube.storage import TileKey, open_cube
from predcube.tasks.intervals import LEVEL, clopper_pearson

type Places = NDArray[np.int64]


def search(
    spec: str | Path | Mapping[str, Any] | Sweep,
    store: str | Path,
    *,
    cluster: str = "local",
    workers: int | None = None,
    retry_failed: bool = False,
    extend: bool = False,
    progress: Display | None = None,
) -> Summary:
    """The smallest n that reaches the spec's targets, for every combination of the other axes, computed in ``store``
    with as few cells as it takes; a store that a search or a run has begun is gone on with.

    Raises ``BadInput`` where the spec has no targets or n is no axis, and what ``run`` raises.
    """
    with stoppable(str(store)):
        plan = prepare(spec, store, cluster=cluster, workers=workers, extend=extend)
        check(plan.sweep)
        chooser = _Chooser(plan=plan, url=str(store), retry=retry_failed)
        return execute(
            plan,
            str(store),
            cluster=cluster,
            workers=workers,
            retry_failed=retry_failed,
            extend=extend,
            progress=progress,
            choose=chooser.batch,
        )


def check(sweep: Sweep) -> None:
    """Raises ``BadInput`` for a sweep that has no smallest n."""
    if not any(axis.path == "n" for axis in sweep.axes):
        raise BadInput("a search needs n as an axis: give [sweep] n = { start, stop, num, spacing }")
    if not sweep.targets.limits:
        raise BadInput(
            "a search needs targets: give [measure] targets, as in targets = { excess_error = 0.1, confidence = 0.9 }"
        )


def unattainable(sweep: Sweep) -> str | None:
    """Why no interval of this sweep can have an upper end, however well a learner does, or None."""
    most = float(clopper_pearson(sweep.trials, sweep.trials, level=LEVEL)[0])
    wanted = sweep.targets.confidence
    certain = all(q in AUDITS or q.startswith("expected_") for q in sweep.targets.limits)
    if certain or most >= wanted:
        return None
    enough = next(t for t in range(1, 10**6) if clopper_pearson(t, t, level=LEVEL)[0] >= wanted)
    return (
        f"{sweep.trials} trials, were they all within the targets, do not show a confidence of {wanted}: the answers "
        f"have no upper end; raise trials to {enough} for one"
    )


def next_places(n: NDArray[np.int64], holds: NDArray[np.bool_], *, last_miss: bool, state: "State") -> Places:
    """Where each row is to be looked at next, −1 where it is done: (rows,). ``holds``: (rows, n).

    The row lies between the last miss below the first hit (``last_miss``: the very last miss) and the first hit above
    that. With a hit: the open place in the middle of both. Without: the first open place of at least twice the n of
    the last miss, else the last one there is.
    """
    place = np.arange(len(n))
    hit = state.known & holds & ~state.infeasible
    miss = state.known & ~holds & ~state.infeasible
    first = np.where(hit.any(axis=1), hit.argmax(axis=1), len(n))
    below = miss if last_miss else miss & (place < first[:, None])
    low = np.where(below.any(axis=1), len(n) - 1 - below[:, ::-1].argmax(axis=1), -1)
    above = hit & (place > low[:, None])
    high = np.where(above.any(axis=1), above.argmax(axis=1), len(n))
    free = state.open & (place > low[:, None]) & (place < high[:, None])
    middle = np.abs(2 * place - (low + high)[:, None])
    least = np.where(low >= 0, 2 * n[np.maximum(low, 0)], 0)
    doubled = free & (n >= least[:, None])
    upwards = np.where(doubled.any(axis=1), doubled.argmax(axis=1), len(n) - 1 - free[:, ::-1].argmax(axis=1))
    between = np.where(free, middle, 4 * len(n)).argmin(axis=1)
    return np.where(free.any(axis=1), np.where(high < len(n), between, upwards), -1)


def _spoken_for(hit: NDArray[np.bool_], state: "State") -> NDArray[np.bool_]:
    """Where an infeasible place is to be recorded as such, which costs next to nothing: below a hit that no miss lies
    below of, since a place without data there would leave the answer open, and where a row has no feasible place."""
    first = np.where(hit.any(axis=1), hit.argmax(axis=1), 0)
    below = np.arange(hit.shape[1]) < first[:, None]
    alone = ~(below & ~state.infeasible).any(axis=1)
    return np.asarray((below & alone[:, None]) | state.infeasible.all(axis=1)[:, None])


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What is known of each row of cells along n: (rows, n) each. ``open``: may be computed."""

    known: NDArray[np.bool_]
    infeasible: NDArray[np.bool_]
    open: NDArray[np.bool_]


class _Chooser:
    """Which tiles to compute next."""

    def __init__(self, *, plan: Plan, url: str, retry: bool) -> None:
        self._plan = plan
        self._url = url
        self._again = set(storage.tile_states(url).failed) if retry and storage.exists(url) else set()
        names = [axis.name for axis in plan.schema.axes[:-1]]
        self._along = names.index("n")
        self._n = np.asarray(plan.schema.axes[self._along].values, dtype=np.int64)
        self._order = np.argsort(self._n)  # a store's n may have grown out of order; a search goes upwards
        self._sought = [e for e in ENDS if e != "_upper" or unattainable(plan.sweep) is None]
        sought = plan.sweep.targets.limits
        impossible = np.array([not e.without.keys().isdisjoint(sought) for e in plan.estimates])[plan.which]
        self._infeasible = self._rows(impossible)

    def batch(self) -> list[TileKey]:
        """The tiles of the next round, the longest first."""
        states = storage.tile_states(self._url)
        done = np.zeros(self._plan.schema.tiles, dtype=bool)
        for key in (*states.done, *states.failed):
            done[key] = key not in self._again
        looked_at = self._rows(self._spread(done.all(axis=-1)))
        found = self._truths()
        state = State(known=found.known, infeasible=self._infeasible, open=~looked_at & ~self._infeasible)
        wanted = np.zeros(state.open.shape, dtype=bool)
        for end in self._sought:
            at = next_places(self._n[self._order], found.holds[end], last_miss=end == "_upper", state=state)
            rows = np.flatnonzero(at >= 0)
            wanted[rows, at[rows]] = True
        wanted |= self._infeasible & ~looked_at & _spoken_for(found.holds[""] & found.known, state)
        cells = np.argwhere(self._cells(wanted))
        chunks = [axis.chunk for axis in self._plan.schema.axes[:-1]]
        tiles = {tuple(int(i) // c for i, c in zip(cell, chunks, strict=True)) for cell in cells}
        keys = [(*tile, t) for tile, t in product(tiles, range(self._plan.schema.tiles[-1]))]
        keys = sorted((k for k in keys if not done[k]), key=lambda k: -float(self._plan.tile_seconds[k]))
        self._again -= set(keys)  # a failed tile is tried once more, not for ever
        return keys

    def _truths(self) -> Truths:
        """Where the targets are met, in the plan's order of axes: (rows, n ascending)."""
        sweep = self._plan.sweep
        trials = open_cube(self._url).children["trials"].to_dataset(inherit=False)
        limits = limits_of(sweep)
        trials = trials[["status", *(name for q in limits for name in (q, f"{q}_status"))]]
        data = surfaces(trials, limits=limits, confidence=sweep.targets.confidence)
        found = truths(data, limits, sweep.targets.confidence)
        order = []
        for axis in self._plan.schema.axes[:-1]:
            if axis.name != "n":
                sorted_values = data[axis.name].values
                order.append(np.array([int(np.flatnonzero(sorted_values == v)[0]) for v in axis.values]))
        grid = np.ix_(*order, np.arange(len(self._n)))

        def rows(array: NDArray[np.bool_]) -> NDArray[np.bool_]:
            return np.asarray(array[grid].reshape(-1, len(self._n)))

        return Truths(
            dims=found.dims,
            holds={end: rows(array) for end, array in found.holds.items()},
            known=rows(found.known),
            infeasible=rows(found.infeasible),
        )

    def _rows(self, cells: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Cells in the schema's axes → (rows, n ascending)."""
        moved = np.moveaxis(cells, self._along, -1)[..., self._order]
        return moved.reshape(-1, len(self._n))

    def _cells(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The way back."""
        shape = [len(a.values) for i, a in enumerate(self._plan.schema.axes[:-1]) if i != self._along]
        moved = np.empty((*shape, len(self._n)), dtype=bool)
        moved[..., self._order] = rows.reshape(*shape, len(self._n))
        return np.moveaxis(moved, -1, self._along)

    def _spread(self, tiles: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """A truth of tiles (without trials) as one of their cells."""
        for i, axis in enumerate(self._plan.schema.axes[:-1]):
            tiles = np.repeat(tiles, axis.chunk, axis=i)
        return tiles
