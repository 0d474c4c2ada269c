"""A plan carried out: in goes a plan and a URL, out comes a filled and reduced cube, and a summary of the work.

Always true: only missing tiles (and failed ones, where asked) are computed; whatever stops a run leaves a store that
the same call completes, with the bytes of a run that nothing stopped.
"""

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from predcube import storage
from predcube.cluster import Fanout, Job, connect
from predcube.pipeline.failures import BadInput
from predcube.pipeline.kinds import kind_of
from predcube.pipeline.kinds.base import Say
from predcube.pipeline.mishaps import error_kinds
from predcube.pipeline.planning import Plan
from predcube.pipeline.planning import plan as make_plan
from predcube.pipeline.progress import Display, Silent, Tally
from predcube.pipeline.reduction import reduce_surfaces
from predcube.pipeline.resuming import grow, reconcile
from predcube.pipeline.spec.loading import load_spec
from predcube.pipeline.spec.sweep import Sweep
from predcube.pipeline.stopping import stoppable
from predcube.pipeline.tiles import Place, Site, places
from predcube.pipeline.working import (
    Leaf,
    Tile,
    give_up,
    place_name,
    prepare_worker,
    program,
    workload_blocks,
)
from predcube.storage import TileKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """How a run ended. Tiles: all there are, computed by this run, failed (by any), missing. ``science`` CPU seconds of
    this run's tiles, ``wall`` seconds with ``workers`` workers up, ``trials_failed`` places that failed in them.
    ``whole``: whether every tile was wanted."""

    url: str
    tiles: int
    computed: int
    failed: int
    missing: int
    trials_failed: int
    science: float
    wall: float
    workers: int
    errors: tuple[storage.TileError, ...] = ()
    whole: bool = True

    @property
    def busy(self) -> float:
        """Share of the workers' time that went into science, by CPU time."""
        return self.science / (self.wall * self.workers) if self.wall > 0 else 0.0

    def line(self) -> str:
        """The summary in words."""
        if self.computed:
            parts = [
                f"{self.computed} of {self.tiles} tiles computed",
                f"{self.wall:.1f} s with {self.workers} workers, {self.busy:.0%} busy with science by CPU time",
            ]
        else:
            parts = [f"all {self.tiles} tiles were there" if self.whole else "every tile that is needed was there"]
        if self.failed:
            parts.append(f"{self.failed} tiles with failures ({self.trials_failed} trials in this run)")
        if self.missing:
            parts.append(f"{self.missing} missing" if self.whole else f"{self.missing} that no answer needs")
        return "; ".join(parts)

    @property
    def status(self) -> int:
        """The exit status."""
        return 1 if self.failed or (self.missing and self.whole) else 0


def run(
    spec: str | Path | Mapping[str, Any] | Sweep,
    store: str | Path,
    *,
    cluster: str = "local",
    workers: int | None = None,
    budget: float | None = None,
    retry_failed: bool = False,
    extend: bool = False,
    progress: Display | None = None,
) -> Summary:
    """Plan a spec and carry it out in ``store``, or go on with what is there.

    ``budget`` is in core-hours. Raises ``BadInput``, ``OtherSweep``, ``OverBudget`` and StoreError before anything is
    written, ``Interrupted`` where Ctrl-C or SIGTERM ended it.
    """
    with stoppable(str(store)):
        return execute(
            prepare(
                spec,
                store,
                cluster=cluster,
                workers=workers,
                budget=budget,
                extend=extend,
                say=progress.say if progress is not None else lambda text: None,
            ),
            str(store),
            cluster=cluster,
            workers=workers,
            retry_failed=retry_failed,
            extend=extend,
            progress=progress,
        )


def prepare(
    spec: str | Path | Mapping[str, Any] | Sweep,
    store: str | Path,
    *,
    cluster: str = "local",
    workers: int | None = None,
    budget: float | None = None,
    extend: bool = False,
    say: Say = lambda text: None,
) -> Plan:
    """The plan of a spec for a store, whose chunks are kept where it is there already. ``say`` hears of what takes
    long."""
    sweep = spec if isinstance(spec, Sweep) else load_spec(spec)
    standing = reconcile(sweep, str(store), extend=extend)
    made = make_plan(
        standing.sweep,
        workers=_connect(cluster, workers).workers,
        budget=budget,
        schema=standing.schema,
        url=None if standing.schema is None else str(store),
        say=say,
    )
    return replace(made, notes=(*made.notes, *standing.notes))


def execute(
    plan: Plan,
    url: str,
    *,
    cluster: str = "local",
    workers: int | None = None,
    retry_failed: bool = False,
    extend: bool = False,
    progress: Display | None = None,
    choose: Callable[[], list[TileKey]] | None = None,
) -> Summary:
    """Carry out a plan: make the cube at ``url`` (or resume, or with ``extend`` let it grow), compute what is missing,
    reduce. The plan's schema must be the store's where there is one (``prepare`` sees to it). ``choose`` says which
    tiles to compute next, round after round, until it names none."""
    progress = progress or Silent()
    with stoppable(url):
        fanout = _connect(cluster, workers)
        _make(plan, url, extend=extend)
        states = storage.tile_states(url)
        todo = [*states.missing, *(states.failed if retry_failed else ())]
        # The longest first: what is left for the end is short, and workers end together.
        todo.sort(key=lambda key: -float(plan.tile_seconds[key]))
        attempts = {key: states.receipts[key].attempt + 1 for key in states.failed}
        kept = 0 if retry_failed else len(states.failed)
        tally = Tally(tiles=states.total, done=len(states.done), failed=kept, planned_left=0.0)
        work = _Work(plan=plan, url=url, attempts=attempts, progress=progress)
        with progress:
            batch = choose() if choose else todo
            if batch:
                with fanout:
                    site = Site(url=url, generation=storage.generation(url), directory=plan.sweep.directory)
                    kind_of(plan.sweep).before(
                        plan.sweep, site, plan.preparation, fanout, progress.say, retry=retry_failed
                    )
                    while batch:
                        work.run(fanout, batch, tally)
                        batch = choose() if choose else []
            storage.drop_parts(url)  # of tiles whose worker was killed after the receipt and before it dropped them
            progress.say("reducing the surfaces")
            with storage.damage_named(url):
                reduce_surfaces(url)
        storage.update_attributes(url, {"ended": _now()})
        after = storage.tile_states(url, "listing")
        return Summary(
            url=url,
            tiles=after.total,
            computed=work.computed,
            failed=len(after.failed),
            missing=len(after.missing),
            trials_failed=work.trials_failed,
            science=work.science,
            wall=work.wall,
            workers=fanout.workers,
            errors=tuple(error_kinds(url)) if after.failed else (),
            whole=choose is None,
        )


class _Work:
    """The tiles of one run, and what they took."""

    def __init__(self, *, plan: Plan, url: str, attempts: Mapping[TileKey, int], progress: Display) -> None:
        self._plan = plan
        self._site = Site(url=url, generation=storage.generation(url), directory=plan.sweep.directory)
        self._todo: list[TileKey] = []
        self._attempts = attempts
        self._progress = progress
        self._kept = storage.parts(url)  # what an earlier run had finished inside its tiles
        self._leaves: dict[TileKey, int] = {}
        self.computed = self.trials_failed = 0
        self.science = self.wall = 0.0

    def run(self, fanout: Fanout, todo: list[TileKey], tally: Tally) -> None:
        """Computes some tiles on workers that are up."""
        plan, before = self._plan, self.wall
        self._todo = todo
        tally.planned_left = sum(self._seconds(key) for key in self._todo)
        share = _cells_in_a_tile(plan)
        counted: dict[TileKey, float] = {}  # planned seconds of a tile that are counted as done
        begun = time.monotonic()
        if not self.computed:
            tally.begun = begun
        tally.tiles = tally.done + tally.failed + len(todo)
        self._progress.begin(tally)
        with closing(fanout.run(program(self._site), self._jobs())) as outcomes:
            for outcome in outcomes:
                key: TileKey = outcome.key  # type: ignore[assignment]
                if outcome.leaves_done is not None:
                    reached = self._seconds(key) * outcome.leaves_done / (self._leaves[key] + 1)
                else:
                    receipt = outcome.result
                    if outcome.error is not None:
                        receipt = give_up(self._site, self._tile(key), outcome.error)
                    reached = self._seconds(key)
                    self.computed += 1
                    self.science += receipt.cpu_seconds
                    self.trials_failed += receipt.failed
                    tally.failed += bool(receipt.failed)
                    tally.done += not receipt.failed
                    tally.cells += share
                step = reached - counted.get(key, 0.0)
                counted[key] = reached
                tally.planned_done += step
                tally.planned_left -= step
                self.wall = before + time.monotonic() - begun
                self._progress.update(tally)

    def _height(self, place: Place, workload: int, level: int) -> int:
        """The height of a workload's leaves: that of the parts that an earlier run kept, where there are any, since
        only they can be used again; any height gives the same bits."""
        kept = [name.split("_") for name in self._kept.get(place_name(place), ())]
        heights = [int(pieces[1][1:]) for pieces in kept if pieces[0] == f"w{workload}"]
        return max(set(heights), key=heights.count) if heights else level

    def _seconds(self, key: TileKey) -> float:
        return max(float(self._plan.tile_seconds[key]), 1e-6)

    def _tile(self, key: TileKey, groups: tuple[tuple[Place, int], ...] = ()) -> Tile:
        return Tile(key=key, attempt=self._attempts.get(key, 1), groups=groups)

    def _jobs(self) -> Iterator[Job]:
        for key in self._todo:
            level = self._plan.level(key)
            if level is None and any(place_name(p) in self._kept for p in places(self._plan.schema, key)):
                level = 0  # an earlier run fanned it out
            if level is None:
                yield Job(key=key, payload=self._tile(key))
                continue
            groups: list[tuple[Place, int]] = []
            leaves: list[tuple[Leaf, ...]] = []
            for place in places(self._plan.schema, key):
                for number, blocks in enumerate(workload_blocks(self._site, place)):
                    if blocks > 1:
                        groups.append((place, number))
                        height = self._height(place, number, level)
                        nodes = range(-(-blocks // 2**height))
                        leaves.append(tuple(Leaf(place=place, workload=number, level=height, index=i) for i in nodes))
            self._leaves[key] = sum(map(len, leaves))
            yield Job(key=key, payload=self._tile(key, tuple(groups)), leaves=tuple(leaves))


def _make(plan: Plan, url: str, *, extend: bool) -> None:
    """The store as the plan wants it."""
    standing = reconcile(plan.sweep, url, extend=extend)
    if standing.schema is None:
        begun = {"started": _now(), "command_line": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])}
        storage.create(url, replace(plan.schema, attributes={**plan.schema.attributes, **begun}))
    elif standing.schema.tiles != plan.schema.tiles or standing.sweep.axes != plan.sweep.axes:
        raise ValueError(f"store {url!r} is cut otherwise than the plan; plan with schema = the store's")
    elif standing.appended:
        grow(url, standing)


def _connect(cluster: str, workers: int | None) -> Fanout:
    try:
        return connect(cluster, workers=workers, initialise=prepare_worker)
    except ValueError as e:
        raise BadInput(str(e)) from e


def _cells_in_a_tile(plan: Plan) -> float:
    *axes, trial = plan.schema.axes
    cells = trial.chunk / len(trial.values)
    for axis in axes:
        cells *= axis.chunk
    return cells


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
