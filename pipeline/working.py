"""What a worker runs: in goes the place of a store and a tile's key, out comes the tile, written, and its receipt.

A tile is whole (``compute_tile``) or fanned out: each of its large computations is cut into subtrees of the fixed tree
(``compute_leaf``), which are joined two by two (``join``) and end in the tile (``finish_tile``). Always true: either
way the bits are the same; what is wrong with one trial of one cell is recorded at its place, and the rest goes on.

A worker takes the sweep from the store itself, so what travels is a key and some integers, and two workers cannot work
on different sweeps.
"""

import os
import socket
import time
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.cluster import Program, describe
from predcube.pipeline.kinds import kind_of
from predcube.pipeline.kinds.base import Bench
from predcube.pipeline.parts import packed, unpacked
from predcube.pipeline.spec.canonical import from_resolved
from predcube.pipeline.spec.sweep import Sweep, word
from predcube.pipeline.tiles import Blank, Part, Place, Site, places
from predcube.storage import (
    FAILED,
    CubeSchema,
    Receipt,
    TileKey,
    drop_parts,
    get_part,
    limit_threads,
    put_part,
    read_attributes,
    read_schema,
    write_tile,
)
from predcube.tasks.mixture.base import Workload, subtree


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """The payload of a tile. ``groups``: the place and the number in its trial of each workload that was fanned out,
    in the order of the job's groups of leaves."""

    key: TileKey
    attempt: int = 1
    groups: tuple[tuple[Place, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """The payload of node ``index`` at height ``level`` of one workload's tree."""

    place: Place
    workload: int
    level: int
    index: int

    @property
    def name(self) -> str:
        """What its result is kept under while its tile is under way."""
        return f"w{self.workload}_l{self.level}_{self.index}"


class Clock:
    """CPU and wall seconds of the science. The thread's time, not the process's: a worker's process also talks to
    the scheduler, which is overhead."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.thread_time(), time.perf_counter()

    def read(self) -> tuple[float, float]:
        return time.thread_time() - self._cpu, time.perf_counter() - self._wall


def program(site: Site) -> Program:
    """The functions of a run over the cube at ``site``."""
    return Program(leaf=partial(compute_leaf, site), combine=join, finish=partial(finish_tile, site))


def compute_leaf(site: Site, leaf: Leaf) -> Part:
    """One subtree of one workload, kept in the store until its tile is written: a run that is killed inside a tile goes
    on there."""
    kept = _kept(site, leaf)
    if kept is not None:
        return kept
    clock = Clock()
    value, error = None, None
    try:
        value = subtree(_workloads(site, leaf.place)[leaf.workload], leaf.level, leaf.index)
    except Exception as e:
        error = describe(e)
    cpu, wall = clock.read()
    if error is None:
        content = packed(value, {"site": _tag(site), "cpu": cpu, "wall": wall})
        if content is not None:
            put_part(site.url, place_name(leaf.place), leaf.name, content)
    return Part(value=value, error=error, cpu=cpu, wall=wall)


def _kept(site: Site, leaf: Leaf) -> Part | None:
    content = get_part(site.url, place_name(leaf.place), leaf.name)
    found = None if content is None else unpacked(content)
    if found is None or found[1].get("site") != _tag(site):
        return None
    return Part(value=found[0], error=None, cpu=float(found[1]["cpu"]), wall=float(found[1]["wall"]))


@lru_cache(maxsize=4)
def _tag(site: Site) -> list[str]:
    """What a kept part must have been computed under: the sweep, and the versions that its last digits follow."""
    sweep = str(read_attributes(site.url)["spec_hash"])
    return [sweep, *(f"{p} {version(p)}" for p in ("predcube", "numpy", "numba", "scipy"))]


def place_name(place: Place) -> str:
    """A place as a name: c2_0_t5."""
    return f"c{'_'.join(map(str, place[0]))}_t{place[1]}"


def join(left: Part, right: Part) -> Part:
    """Two neighbours of a tree as one."""
    clock = Clock()
    error = left.error or right.error
    value = None
    if error is None:
        try:
            value = left.value.add(right.value)
        except Exception as e:
            error = describe(e)
    cpu, wall = clock.read()
    return Part(value=value, error=error, cpu=left.cpu + right.cpu + cpu, wall=left.wall + right.wall + wall)


def finish_tile(site: Site, tile: Tile, roots: tuple[Part, ...]) -> Receipt:
    """Everything of a tile that its leaves have not computed; writes it.

    StoreError where it cannot be written, or the store's labels are not the sweep's.
    """
    sweep, schema = opened(site)
    clock = Clock()
    blank = Blank(schema, tile.key)
    fanned: dict[Place, dict[int, Part]] = {}
    for (place, workload), part in zip(tile.groups, roots, strict=True):
        fanned.setdefault(place, {})[workload] = part
    errors = [_at(sweep, *wrong) for wrong in _bench(site).fill(blank, places(schema, tile.key), fanned)]
    arrays, failed = blank.finished()
    cpu, wall = clock.read()
    receipt = Receipt(
        cpu_seconds=round(cpu + sum(p.cpu for p in roots), 6),
        wall_seconds=round(wall + sum(p.wall for p in roots), 6),
        worker=f"{socket.gethostname()}:{os.getpid()}",
        attempt=tile.attempt,
        failed=failed,
    )
    written = _write(site, tile.key, arrays, receipt, errors[0] if errors else None)
    for place in fanned:
        drop_parts(site.url, place_name(place))
    return written


def give_up(site: Site, tile: Tile, error: str) -> Receipt:
    """Writes a tile that could not be computed as a whole: whatever is feasible in it failed, for one reason."""
    sweep, schema = opened(site)
    blank = Blank(schema, tile.key)
    lost = None
    for place in places(schema, tile.key):
        if blank.mark(place, FAILED, _bench(site).inapplicable(place[0])):
            lost = lost or place
    arrays, failed = blank.finished()
    receipt = Receipt(cpu_seconds=0.0, wall_seconds=0.0, worker="none", attempt=tile.attempt, failed=failed)
    return _write(site, tile.key, arrays, receipt, None if lost is None else _at(sweep, lost, error))


def prepare_worker() -> None:
    """Readies a worker process before its first tile."""
    # One tile at a time writes a few small chunks: more threads would only wait for the one core.
    limit_threads(1)


def workload_blocks(site: Site, place: Place) -> tuple[int, ...]:
    """Into how many blocks each workload of one trial is cut; () where it cannot be laid out."""
    try:
        return tuple(w.blocks for w in _workloads(site, place))
    except Exception:  # the worker that meets it records it
        return ()


@lru_cache(maxsize=4)
def opened(site: Site) -> tuple[Sweep, CubeSchema]:
    """The sweep and the schema that a store holds."""
    return from_resolved(read_attributes(site.url)["resolved"], directory=site.directory), read_schema(site.url)


@lru_cache(maxsize=4)
def _bench(site: Site) -> Bench:
    sweep, _ = opened(site)
    return kind_of(sweep).bench(site, sweep)


@lru_cache(maxsize=8)
def _workloads(site: Site, place: Place) -> tuple[Workload, ...]:
    """Those of a trial that several leaves share."""
    return tuple(_bench(site).workloads(place))


def _at(sweep: Sweep, place: Place, error: str) -> str:
    return f"{_cell_name(sweep, place[0])}, trial {place[1]}: {error}"


def _cell_name(sweep: Sweep, index: tuple[int, ...]) -> str:
    """The cell's key in words."""
    values = (f"{a.name}={word(a.values[i])}" for a, i in zip(sweep.axes, index, strict=True))
    return f"cell ({', '.join(values)})"


def _write(site: Site, key: TileKey, arrays: dict[str, NDArray[Any]], receipt: Receipt, error: str | None) -> Receipt:
    """The labels come from the sweep, and not from the cube that they are checked against."""
    sweep, schema = opened(site)
    coordinates = {a.name: a.coordinate() for a in sweep.axes} | {"trial": np.arange(sweep.trials, dtype=np.int64)}
    labels = {a.name: coordinates[a.name][s] for a, s in zip(schema.axes, schema.region(key), strict=True)}
    labels |= {a.name: a.values for a in kind_of(sweep).extra_axes(sweep)}
    return write_tile(
        site.url,
        key,
        coordinates=labels,
        arrays=arrays,
        receipt=receipt,
        error=error,
        generation=site.generation,
    )
