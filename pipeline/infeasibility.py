"""Why cells are infeasible: in go a sweep and its surfaces, out come the reasons, each with its number of cells."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

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
    """The reasons of the cells that the surfaces call infeasible, the most frequent first.

    The learner is asked first, since it needs no data: the law, which may be a table that lies elsewhere by now, only
    about cells that the learner has nothing against.
    """
    dims = tuple(a.name for a in sweep.axes)
    axes = {a.name: a.coordinate() for a in sweep.axes}
    marked = surfaces["status"].reindex(axes, fill_value=np.uint8(0)).transpose(*dims).values == INFEASIBLE
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
    if rest.any():
        try:
            rows, which = grid.groups
            for group in np.unique(which[rest]):
                reason = grid.outside(rows[group]) or infeasible(grid.problem(rows[group])) or "not known"
                add(reason, rest & (which == group))
        except (ValueError, OSError) as e:
            add(f"cannot be told here: {e}", rest)
    places = {reason: tuple(int(i) for i in np.argwhere(here)[0]) for reason, here in found.items()}
    return tuple(
        Reason(
            reason=reason,
            cells=int(here.sum()),
            example=", ".join(f"{a.name} = {a.values[i]}" for a, i in zip(sweep.axes, places[reason], strict=True)),
        )
        for reason, here in sorted(found.items(), key=lambda item: -int(item[1].sum()))
    )
