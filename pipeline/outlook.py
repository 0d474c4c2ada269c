"""A plan for people and for programs: in goes a plan, out comes a table for a terminal or plain data for JSON."""

import math
from collections import Counter
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from predcube.pipeline.kinds.base import worded
from predcube.pipeline.planning import Plan

REASONS = 8  # reasons for infeasible cells that are listed


def as_data(plan: Plan) -> dict[str, Any]:
    """Everything of a plan as JSON's own types; one entry a cell, in row-major order."""
    axes = plan.sweep.axes
    cells = []
    for index in plan.sweep.indices():
        estimate = plan.estimate(index)
        cells.append(
            {
                **{a.name: a.values[i] for a, i in zip(axes, index, strict=True)},
                "method": estimate.method or None,
                "infeasible": estimate.infeasible,
                "quantities_infeasible": dict(estimate.without),
                "seconds_per_trial": estimate.seconds,
                "memory_bytes": estimate.memory,
                "blocks_per_trial": estimate.blocks,
            }
        )
    return {
        "name": plan.sweep.name,
        "axes": {a.name: list(a.values) for a in axes},
        "trials": plan.sweep.trials,
        "cells": plan.cells,
        "infeasible_cells": sum(c["infeasible"] is not None for c in cells),
        "partly_infeasible_cells": sum(c["infeasible"] is None and bool(c["quantities_infeasible"]) for c in cells),
        "tiles": plan.tiles,
        "tile_shape": {a.name: a.chunk for a in plan.schema.axes},
        "tasks": plan.tasks,
        "workers": plan.workers,
        "core_seconds": plan.core_seconds,
        "memory_bytes_per_worker": plan.memory,
        "disk_bytes": plan.bytes,
        "notes": list(plan.notes),
        "tables": [] if plan.preparation is None else list(plan.preparation.lines),
        "passes": 0 if plan.preparation is None else plan.preparation.passes,
        "grid": cells,
    }


def as_text(plan: Plan) -> RenderableType:
    """A summary of a plan."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    counts = np.bincount(plan.which.ravel(), minlength=len(plan.estimates))
    methods: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    for estimate, count in zip(plan.estimates, counts.tolist(), strict=True):
        if estimate.infeasible is None:
            methods[estimate.method] += count
            for reason in {worded(quantity, reason) for quantity, reason in estimate.without.items()}:
                parts[reason] += count
        else:
            reasons[estimate.infeasible] += count
    sweep = plan.sweep
    axes = " × ".join(f"{len(a.values)} {a.name}" for a in sweep.axes)
    table.add_row("sweep", sweep.name)
    table.add_row("cells", f"{plan.cells}" + (f" ({axes})" if axes else "") + f", {sweep.trials} trials each")
    busy = plan.tile_seconds[plan.tile_seconds > 0]
    span = f", {duration(float(busy.min()))} to {duration(float(busy.max()))} of work each" if busy.size else ""
    shape = " × ".join(f"{a.chunk} {a.name}" for a in plan.schema.axes)
    table.add_row("tiles", f"{plan.tiles} of {shape}{span}")
    table.add_row("tasks", f"{plan.tasks}")
    if plan.preparation is not None:
        for i, line in enumerate(plan.preparation.lines):
            table.add_row("" if i else "tables", line)
        passes = plan.preparation.passes
        table.add_row("passes", f"{passes} over the tables, {duration(plan.preparation.seconds)} of core time")
    table.add_row("methods", ", ".join(f"{m}: {c} cells" for m, c in methods.most_common()))
    if reasons:
        table.add_row("infeasible", f"{sum(reasons.values())} of {plan.cells} cells")
        for reason, count in reasons.most_common(REASONS):
            table.add_row("", f"{count}: {reason}")
        if len(reasons) > REASONS:
            table.add_row("", f"and {len(reasons) - REASONS} more reasons; all of them with --json")
    if parts:
        lacking = np.array([e.infeasible is None and bool(e.without) for e in plan.estimates])[plan.which]
        table.add_row("partly", f"{int(lacking.sum())} of {plan.cells} cells lack quantities that do not apply there")
        for reason, count in parts.most_common(REASONS):
            table.add_row("", f"{count}: {reason}")
        if len(parts) > REASONS:
            table.add_row("", f"and {len(parts) - REASONS} more; all of them with --json")
    wall = duration(plan.core_seconds / plan.workers)
    table.add_row("time", f"{duration(plan.core_seconds)} of core time; about {wall} on {plan.workers} workers")
    table.add_row("memory", f"{size(plan.memory)} a worker")
    table.add_row("on disk", size(plan.bytes))
    notes = [Text(f"note: {n}", style="yellow") for n in plan.notes]
    return Group(table, *notes)


def duration(seconds: float) -> str:
    """Seconds for people.

    >>> duration(0.25), duration(100), duration(7300)
    ('0.25 s', '1.7 min', '2 h')
    """
    for limit, unit, name in ((90, 1, "s"), (5400, 60, "min"), (172800, 3600, "h"), (math.inf, 86400, "days")):
        if seconds < limit:
            return f"{seconds / unit:.2g} {name}"
    return "∞"


def size(count: int) -> str:
    """Bytes for people, in powers of 1000.

    >>> size(999), size(157200)
    ('999 B', '157 kB')
    """
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"
