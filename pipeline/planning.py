"""The plan of a sweep: in goes a sweep, out come each cell's method, feasibility and cost, and the cube's shape.

Always true: method, feasibility and blocks follow counts of operations, so they are the same on every machine; times
and memory are estimates from a calibration here, and decide chunk lengths (of a new store) and task sizes alone.
"""

import math
import os
import platform
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import product

import numpy as np
from numpy.typing import NDArray

from predcube.pipeline.costs import Costs, calibrate
from predcube.pipeline.failures import BadInput, OverBudget
from predcube.pipeline.kinds import kind_of
from predcube.pipeline.kinds.base import Counts, Preparation, Say, Work
from predcube.pipeline.shaping import blueprint, bytes_on_disk, chunk_lengths, tile_seconds
from predcube.pipeline.spec.sweep import Sweep
from predcube.storage.schema import CubeSchema, TileKey

LEAF_SECONDS = 5.0  # of a piece of a tile that is fanned out, about
COUNTED = 1.0  # seconds of a trial's workloads above which their blocks are counted
LONG_SECONDS = 30.0  # a tile above this is fanned out where its cells have blocks
IDLE_SECONDS = 4.0  # the same where there are fewer tiles than workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one trial of a cell takes. Cells with the same numbers share one ``Estimate``."""

    method: str  # analytic | laplace | support | enumerate | mc | exact; "" where infeasible
    infeasible: str | None  # why nothing can be measured
    without: Mapping[str, str]  # why each quantity that is not measured is not; all of them where infeasible
    seconds: float  # core-seconds of one trial, 0 where infeasible
    shared: float  # how many of them are the blocks', which can be fanned out; 0, unknown, where a trial is short
    memory: int  # bytes, peak of one worker beyond the interpreter
    blocks: int  # blocks of one trial's workloads; 1, uncounted, where those are short


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``which[index]`` is the place in ``estimates`` of the cell's estimate; ``schema`` is the cube to be made (or,
    where a store exists, the store's own)."""

    sweep: Sweep
    schema: CubeSchema
    estimates: tuple[Estimate, ...]
    which: NDArray[np.int32]  # shape sweep.shape
    workers: int
    core_seconds: float
    memory: int  # bytes a worker, interpreter included
    bytes: int  # on disk, about
    tasks: int  # tiles that are one task, and the leaves of those that are fanned out
    tile_seconds: NDArray[np.float64]  # shape schema.tiles
    notes: tuple[str, ...]
    preparation: Preparation | None = None

    @property
    def tiles(self) -> int:
        return math.prod(self.schema.tiles)

    @property
    def cells(self) -> int:
        return int(self.which.size)

    def estimate(self, index: tuple[int, ...]) -> Estimate:
        """The estimate of one cell."""
        return self.estimates[int(self.which[index])]

    def tile_cells(self, key: TileKey) -> Iterator[tuple[int, ...]]:
        """The indices of a tile's cells, row-major."""
        *region, _ = self.schema.region(key)
        return product(*(range(s.start, s.stop) for s in region))

    def tile_trials(self, key: TileKey) -> range:
        """The trials of a tile."""
        trials = self.schema.region(key)[-1]
        return range(trials.start, trials.stop)

    def level(self, key: TileKey) -> int | None:
        """The height of the subtrees that are a fanned-out tile's leaves (2^level blocks each, of every workload), or
        None where the tile is one task. Any height gives the same bits."""
        if self.tile_seconds[key] <= self.threshold:
            return None
        cells = [self.estimate(i) for i in self.tile_cells(key)]
        longest = max((e for e in cells if e.blocks > 1), key=lambda e: e.shared / e.blocks, default=None)
        if longest is None or len(self.tile_trials(key)) * sum(e.shared for e in cells) <= self.threshold:
            return None
        per_block = max(longest.shared / longest.blocks, 1e-9)
        return max(0, math.floor(math.log2(max(LEAF_SECONDS / per_block, 1.0))))

    @property
    def threshold(self) -> float:
        """Seconds above which a tile is fanned out."""
        return LONG_SECONDS if self.tiles >= self.workers else IDLE_SECONDS


def plan(
    sweep: Sweep,
    *,
    workers: int | None = None,
    budget: float | None = None,
    schema: CubeSchema | None = None,
    costs: Costs | None = None,
    url: str | None = None,
    say: Say = lambda text: None,
) -> Plan:
    """Plan a sweep for ``workers`` (default: the cores this process may use) within ``budget`` core-hours.

    ``schema`` is that of an existing store, whose chunk lengths are kept, and ``url`` its place; ``costs`` (default:
    calibrated here) are the speeds of this machine; ``say`` hears of what takes long. Raises ``OverBudget``, before
    anything starts.
    """
    if budget is not None and not budget >= 0:
        raise BadInput(f"budget {budget:g}: must be at least 0; give core-hours, as in --budget 0.5")
    workers = workers or len(os.sched_getaffinity(0))
    preparation = kind_of(sweep).prepare(sweep, url, say)
    groups = kind_of(sweep).groups(sweep, preparation)
    which = groups.which
    estimates = _estimates(groups.works, costs)
    seconds = np.array([e.seconds for e in estimates])[which]
    core_seconds = float(seconds.sum()) * sweep.trials + (preparation.seconds if preparation else 0.0)
    if schema is None:
        lengths = chunk_lengths(sweep, seconds, workers)
        schema = blueprint(sweep, lengths, _versions())
    per_tile = tile_seconds(seconds, schema)
    made = Plan(
        sweep=sweep,
        schema=schema,
        estimates=estimates,
        which=which,
        workers=workers,
        core_seconds=core_seconds,
        memory=_interpreter() + max([preparation.memory if preparation else 0, *(e.memory for e in estimates)]),
        bytes=bytes_on_disk(schema),
        tasks=0,
        tile_seconds=per_tile,
        notes=sweep.notes,
        preparation=preparation,
    )
    if budget is not None and core_seconds > budget * 3600:
        raise OverBudget(_over(made, seconds, budget))
    return replace(made, tasks=_tasks(made))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """A feasible group: what follows from counts."""

    work: Work
    without: Mapping[str, str]
    method: str
    operations: Counts
    memory: int


def _estimates(works: Sequence[Work], costs: Costs | None) -> tuple[Estimate, ...]:
    """One estimate per group, the machine's speeds taken from the feasible ones."""
    groups = [_counted(work) for work in works]
    if costs is None:
        costs = calibrate([(g.work, g.operations) for g in groups if isinstance(g, _Counted)])
    return tuple(_estimate(group, costs) for group in groups)


def _counted(work: Work) -> _Counted | Estimate:
    """The counts of a group, or what is said of an infeasible one. All at once, while the science still knows its
    method."""
    reason, without = work.infeasible(), work.inapplicable()
    if reason is not None:
        return Estimate(method="", infeasible=reason, without=without, seconds=0.0, shared=0.0, memory=0, blocks=0)
    return _Counted(
        work=work, without=without, method=work.method(), operations=work.operations(), memory=work.memory()
    )


def _estimate(group: _Counted | Estimate, costs: Costs) -> Estimate:
    if isinstance(group, Estimate):
        return group
    seconds = costs.seconds(group.operations)
    shared = costs.work(group.work.shared()) if seconds > COUNTED else 0.0
    return Estimate(
        method=group.method,
        infeasible=None,
        without=group.without,
        seconds=seconds,
        shared=shared,
        memory=group.memory,
        # Counting blocks draws a sample, which is worth it only where a trial is long enough to be cut.
        blocks=group.work.blocks() if shared > COUNTED else 1,
    )


def _tasks(made: Plan) -> int:
    """Tiles that are one task, and the leaves of the others."""
    long = made.tile_seconds > made.threshold
    count = int((~long).sum())
    for key in np.argwhere(long):
        place = tuple(int(i) for i in key)
        level = made.level(place)
        if level is None:
            count += 1
            continue
        trials = len(made.tile_trials(place))
        leaves = sum(-(-e.blocks // 2**level) for e in map(made.estimate, made.tile_cells(place)))
        count += max(1, trials * leaves)
    return count


def _over(made: Plan, seconds: NDArray[np.float64], budget: float) -> str:
    """The refusal with its numbers, and which value of an axis to give up first."""
    hours = made.core_seconds / 3600
    cures = []
    trials = int(made.sweep.trials * budget / hours)
    if trials >= 1:
        cures.append(f"lower trials from {made.sweep.trials} to {trials}")
    for d, axis in enumerate(made.sweep.axes):
        if len(axis.values) < 2:
            continue
        along = seconds.sum(axis=tuple(i for i in range(seconds.ndim) if i != d))
        worst = int(along.argmax())
        share = float(along[worst] / along.sum())
        if share >= 1.5 / len(axis.values):
            cures.append(f"leave out {axis.path} = {axis.values[worst]} ({share:.0%} of it)")
    cures.append(f"raise the budget to {_rounded_up(hours)}")
    return f"the plan takes about {hours:.3g} core-hours, above the budget of {budget:g}: {', '.join(cures[:-1])}" + (
        f", or {cures[-1]}" if len(cures) > 1 else cures[-1]
    )


def _rounded_up(hours: float) -> str:
    digits = 1 - math.floor(math.log10(hours))
    return f"{math.ceil(hours * 10**digits) / 10**digits:g}"


def _interpreter() -> int:
    """Bytes of a process that has imported what a worker imports: this one's peak."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)


def _versions() -> Mapping[str, str]:
    packages = ("predcube", "numpy", "scipy", "numba", "dask", "distributed", "xarray", "zarr")
    return {"python": platform.python_version(), **{p: version(p) for p in packages}}
