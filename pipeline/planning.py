"""The plan of a sweep: in goes a sweep, out come each cell's method, feasibility and cost, and the cube's shape.

Always true: method, feasibility and blocks follow counts of operations, so they are the same on every machine; times
and memory are estimates from a calibration here, and decide chunk lengths (of a new store) and task sizes alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.pipeline.spec.sweep import Sweep
from predcube.storage.schema import CubeSchema, TileKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one trial of a cell takes. Cells with the same numbers share one ``Estimate``."""

    method: str  # analytic | laplace | support | enumerate | mc | exact; "" where infeasible
    infeasible: str | None
    seconds: float  # core-seconds of one trial, 0 where infeasible
    memory: int  # bytes, peak of one worker beyond the interpreter
    blocks: int  # blocks of one trial's workloads, all together
    workloads: int  # how many workloads one trial has; ``blocks > workloads`` can be fanned out


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
    memory: int  # bytes a worker
    bytes: int  # on disk, about
    tasks: int  # tiles, and the leaves of those that are fanned out
    notes: tuple[str, ...]

    def estimate(self, index: tuple[int, ...]) -> Estimate:
        """The estimate of one cell."""
        return self.estimates[int(self.which[index])]

    def cells(self, key: TileKey) -> Iterator[tuple[int, ...]]:
        """The indices of a tile's cells, row-major."""
        raise NotImplementedError

    def trials(self, key: TileKey) -> range:
        """The trials of a tile."""
        raise NotImplementedError

    def seconds(self, key: TileKey) -> float:
        """Core-seconds of a tile, about."""
        raise NotImplementedError

    def level(self, key: TileKey) -> int | None:
        """The height of the subtrees that are a fanned-out tile's leaves (2^level blocks each), or None where the
        tile is one task. Any height gives the same bits."""
        raise NotImplementedError


def plan(sweep: Sweep, *, workers: int | None = None, budget: float | None = None, schema: CubeSchema | None = None) -> Plan:
    """Plan a sweep for ``workers`` (default: the cores this process may use) within ``budget`` core-hours.

    ``schema`` is the one of an existing store, whose chunk lengths are kept. Raises ``OverBudget``.
    """
    raise NotImplementedError


__all__: list[Any] = ["Estimate", "Plan", "plan"]
