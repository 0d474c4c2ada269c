"""A tile while it is filled: in go places and what was measured there, out come its arrays with their statuses.

Always true: a value that is no number is no value, and its status says so; nothing is done until it is put.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.storage import DONE, FAILED, INFEASIBLE, CubeSchema, TileKey, worst

type Place = tuple[tuple[int, ...], int]
"""One trial of one cell: the cell's index in the grid, the trial."""

type Measured = Mapping[str, float | NDArray[np.float64]]
"""What one trial measured, by name: a number, or an array over the quantity's own dimensions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a sweep's cube is. ``generation``: its shape when the run began. ``directory``: what relative paths of the
    spec start from."""

    url: str
    generation: str
    directory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A partial result of a workload with what it took, or the one-line ``error`` that it ended in."""

    value: Any
    error: str | None
    cpu: float
    wall: float


def places(schema: CubeSchema, key: TileKey) -> Iterator[Place]:
    """The cells and trials of a tile, cells row-major, trials fastest."""
    *cells, trial = (range(s.start, s.stop) for s in schema.region(key))
    return ((cell, t) for cell in product(*cells) for t in trial)


class Blank:
    """The arrays of one tile while they are filled."""

    def __init__(self, schema: CubeSchema, key: TileKey) -> None:
        self._offset = tuple(s.start for s in schema.region(key))
        self.arrays: dict[str, NDArray[Any]] = {
            v.name: np.full(schema.shape(v), np.nan if v.dtype == "float64" else 0, dtype=v.dtype)
            for v in schema.variables
        }
        self._quantities = [name for name in self.arrays if f"{name}_status" in self.arrays]
        self._codes = [v.name for v in schema.variables if v.dtype == "uint8" and not v.name.endswith("status")]

    def put(self, place: Place, measured: Measured, without: Collection[str] = ()) -> list[str]:
        """What one trial measured; ``without``: the quantities that do not apply to its cell. Returns what is wrong
        with it."""
        at = self._at(place)
        wrong = []
        for name in self._quantities:
            if name in without:
                self.arrays[f"{name}_status"][at] = INFEASIBLE
                continue
            value = measured[name]
            missing = bool(np.isnan(value).any())
            if missing:
                wrong.append(f"{name} is not a number")
            else:
                self.arrays[name][at] = value
            self.arrays[f"{name}_status"][at] = FAILED if missing else DONE
        for name in self._codes:
            # A code that goes with such quantities alone stays missing.
            if name in measured or not without:
                self.arrays[name][at] = measured[name]
        return wrong

    def mark(self, place: Place, status: int, without: Collection[str] = ()) -> bool:
        """One trial without values; ``without`` as in ``put``. Returns whether any quantity has that status now."""
        for name in self._quantities:
            self.arrays[f"{name}_status"][self._at(place)] = INFEASIBLE if name in without else status
        return any(name not in without for name in self._quantities)

    def finished(self) -> tuple[dict[str, NDArray[Any]], int]:
        """The arrays, and how many places failed."""
        self.arrays["status"][...] = worst(*(self.arrays[f"{name}_status"] for name in self._quantities))
        return self.arrays, int(np.count_nonzero(self.arrays["status"] == FAILED))

    def _at(self, place: Place) -> tuple[int, ...]:
        return tuple(i - o for i, o in zip((*place[0], place[1]), self._offset, strict=True))
