"""The few rows that a run ends with: in go surfaces, out come titled tables that answer the question the spec asked.

Always true: nothing is averaged over an axis; what is left out for length is said in the title.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import xarray as xr
from numpy.typing import NDArray

from predcube.pipeline.columns import spread
from predcube.pipeline.lookups import inverse
from predcube.pipeline.opening import leading_of, quantities_of
from predcube.pipeline.queries import rows
from predcube.pipeline.searches import HAS_VALUE

MOST_ROWS = 40
MOST_COLUMNS = 7
MOST_CELLS = 5
ENDS = ("", "_lower", "_upper")


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """A table with what it says."""

    title: str
    rows: pa.Table


def headlines(data: xr.Dataset) -> tuple[Headline, ...]:
    """Where there are targets, the smallest n that reaches them, with every quantity's mean at that n; otherwise each
    quantity along n (or the longest numeric axis), one row a combination of the other axes. Of a kind of sweep in which
    some quantities lead, the cells where the first of them is largest, and those alone."""
    if "smallest_n" in data:
        return (_smallest_n(data),)
    leading = [q for q in leading_of(data) if q in data]
    if leading:
        shown = (_thinned(data, q) for q in leading)
        return (*_largest(data, leading), *(h for d, q in shown for h in _along_the_longest(d, [q])))
    return _along_the_longest(data, quantities_of(data))


def _along_the_longest(data: xr.Dataset, names: Sequence[str]) -> tuple[Headline, ...]:
    numeric = [d for d in map(str, data.dims) if data[d].dtype.kind in "iuf" and d in data["status"].dims]
    along = "n" if "n" in numeric else max(numeric, key=lambda d: data.sizes[d], default=None)
    curves = {q: own for q in names if (own := curve_axis(data, q)) is not None}
    quantities = [q for q in names if q not in curves]
    found = tuple(_along(data, q, own) for q, own in curves.items())
    if along is None or data.sizes[along] < 2:
        if not quantities and found:
            return found
        title = "means with 95% intervals" if quantities else "no quantity was measured"
        shown = rows(data, [*(q + end for q in quantities for end in ENDS if q + end in data), "status"])
        return (Headline(title=title, rows=shown.slice(0, MOST_ROWS)), *found)
    return (*(_along(data, q, along) for q in quantities), *found)


def _largest(data: xr.Dataset, leading: Sequence[str]) -> tuple[Headline, ...]:
    """The cells where the first of some quantities is largest, with the others there, and two more that run over the
    same axes."""
    first = leading[0]
    more = [q for q in quantities_of(data) if q not in leading and data[q].dims == data[first].dims]
    found = rows(data, select=[*leading, *more[:2]])
    found = found.filter(found[first].is_valid())
    if not len(found):
        return ()
    top = found.sort_by([(first, "descending")]).slice(0, MOST_CELLS)
    name = data[first].attrs.get("long_name", first)
    cut = f" (of {len(found)})" if len(found) > len(top) else ""
    return (Headline(title=f"where {name} is largest{cut}", rows=top),)


def _thinned(data: xr.Dataset, quantity: str) -> tuple[xr.Dataset, str]:
    """The data without axes that change nothing of a quantity, and with three values of numeric axes where its rows
    would be too many; its attribute ``said`` says so."""
    said, idle = [], []
    numeric = [d for d in map(str, data[quantity].dims) if data[d].dtype.kind in "iuf"]
    along = max(numeric, key=lambda d: data.sizes[d], default=None)
    for d in map(str, data[quantity].dims):
        values = data[quantity].values
        place = data[quantity].dims.index(d)
        if d != along and data.sizes[d] > 1 and _constant(values, place):
            data = data.isel({d: 0}, drop=True)
            idle.append(d)
    if idle:
        said.append(f"the same at every {' and '.join(idle)}")
    count = math.prod(data.sizes[d] for d in data[quantity].dims if d != along)
    for d in numeric:
        if count > MOST_ROWS and d != along and d in data.dims and data.sizes[d] > 3:
            data = data.isel({d: [0, data.sizes[d] // 2, data.sizes[d] - 1]})
            said.append(f"3 values of {d}")
    return data.assign(
        {quantity: data[quantity].assign_attrs(said=" (" + ", ".join(said) + ")" if said else "")}
    ), quantity


def _constant(values: NDArray[Any], axis: int) -> bool:
    first = np.take(values, [0], axis=axis)
    return bool(np.all(np.isclose(values, first, rtol=1e-9, atol=0.0, equal_nan=True)))


def curve_axis(data: xr.Dataset, quantity: str) -> str | None:
    """The axis of its own along which a quantity is a curve: numbers, at least two."""
    own = (str(d) for d in data[quantity].dims if d not in data["status"].dims)
    return next((d for d in own if data[d].dtype.kind in "iuf" and data.sizes[d] > 1), None)


def _smallest_n(data: xr.Dataset) -> Headline:
    answer = inverse(data, "n")
    dims = [d for d in map(str, data.dims) if d in data["smallest_n"].dims]
    status = spread(data, "smallest_n_status", dims).ravel()
    value = spread(data, "smallest_n", dims).ravel()
    reached = np.isin(status, HAS_VALUE)
    grid = data["n"].values
    place = np.searchsorted(grid, np.where(reached, value, grid[-1]))
    columns: dict[str, Any] = {name: answer[name] for name in answer.column_names if name != "note"}
    for q in quantities_of(data):
        if set(data[q].dims) != {*dims, "n"}:
            continue
        for end in ("", "_lower", "_upper"):
            flat = spread(data, q + end, [*dims, "n"]).reshape(len(reached), len(grid))
            there = flat[np.arange(len(reached)), place]
            columns[q + end] = pa.array(there, mask=np.isnan(there))
    notes = answer["note"]
    if any(notes.to_pylist()):
        columns["note"] = notes
    table = pa.table(columns)
    goal = data["smallest_n"].attrs.get("goal", "the targets")
    cut = f" (the first {MOST_ROWS} of {len(table)} rows)" if len(table) > MOST_ROWS else ""
    where = (
        "that n"
        if reached.all()
        else "that n (at the largest n where none is reached)"
        if reached.any()
        else "the largest n"
    )
    return Headline(title=f"smallest n with {goal}; means at {where}{cut}", rows=table.slice(0, MOST_ROWS))


def _along(data: xr.Dataset, quantity: str, along: str) -> Headline:
    """One quantity with the values of an axis as columns."""
    others = [d for d in map(str, data[quantity].dims) if d != along]
    places = np.unique(np.linspace(0, data.sizes[along] - 1, MOST_COLUMNS).round().astype(int))
    first = rows(data.isel({along: [int(places[0])]}), select=[quantity])
    columns: dict[str, Any] = {d: first[d] for d in others}
    for place in places:
        label = f"{along}={data[along].values[place].item():g}"
        columns[label] = rows(data.isel({along: [int(place)]}), select=[quantity])[quantity]
    table = pa.table(columns)
    name = data[quantity].attrs.get("long_name", quantity)
    cut = f" (the first {MOST_ROWS} of {len(table)} rows)" if len(table) > MOST_ROWS else ""
    said = data[quantity].attrs.get("said", "")
    return Headline(title=f"{name}, {quantity}{said}{cut}", rows=table.slice(0, MOST_ROWS))
