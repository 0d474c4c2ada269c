"""Why cells are infeasible: in go a sweep and its surfaces, out come the reasons, each with its number of cells."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from predcube.pipeline.grid import Grid
from predcube.pipeline.opening import INFEASIBLE
from predcube.pipeline.spec.sweep import Sweep
from predcube.tasks.trials import infeasible


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A reason, how many cells have it, and one of them in words."""

    reason: str
    cells: int
    example: str


def reasons(sweep: Sweep, surfaces: xr.Dataset) -> tuple[Reason, ...]:
    """The reasons of the cells that the surfaces call infeasible, the most frequent first. A table that cannot be read
    any more leaves its cells with no more than their number."""
    dims = tuple(a.name for a in sweep.axes)
    axes = {a.name: a.coordinate() for a in sweep.axes}
    status = surfaces["status"].reindex(axes, fill_value=np.uint8(0)).transpose(*dims).values
    marked = status == INFEASIBLE
    if not marked.any():
        return ()
    found: dict[str, tuple[int, tuple[int, ...]]] = {}
    try:
        grid = Grid(sweep)
        rows, which = grid.groups
        for group in np.unique(which[marked]):
            here = marked & (which == group)
            place = tuple(int(i) for i in np.argwhere(here)[0])
            reason = grid.outside(rows[group]) or infeasible(grid.problem(rows[group])) or "not known"
            count, first = found.get(reason, (0, place))
            found[reason] = (count + int(here.sum()), first)
    except (ValueError, OSError) as e:
        found = {f"cannot be told here: {e}": (int(marked.sum()), tuple(int(i) for i in np.argwhere(marked)[0]))}
    return tuple(
        Reason(
            reason=reason,
            cells=count,
            example=", ".join(f"{a.name} = {a.values[i]}" for a, i in zip(sweep.axes, place, strict=True)),
        )
        for reason, (count, place) in sorted(found.items(), key=lambda item: -item[1][0])
    )
