"""Questions to a cube: in go a store and what to ask, out comes an Arrow table of rows of its surfaces.

Always true: only the variables, and the places on the axes, that the question needs are read; a cell without a number
is a row with a null and a status that says why; an unknown name or value is an error that names the nearest.
"""

import json
from collections.abc import Container, Mapping, Sequence

import pyarrow as pa
import xarray as xr

from predcube.pipeline.columns import Wanted, columns_over, fix, truth, unknown, used_by
from predcube.pipeline.failures import BadInput
from predcube.pipeline.lookups import inverse
from predcube.pipeline.opening import quantities_of, read_surfaces


def query(
    store: str,
    *,
    select: Sequence[str] | None = None,
    where: str | None = None,
    at: Mapping[str, Wanted] | None = None,
    smallest: str | None = None,
    such_that: str | None = None,
) -> pa.Table:
    """Rows of the surfaces of ``store``, one a cell, the axes first.

    ``select``: variables (default: mean and interval of each quantity, and the status; ``["*"]``: all of them). The
    rows run over the axes that the selected variables have. Quantities along an axis of their own (``delta`` over
    ``delta_epsilon``) are selected by default where ``at`` fixes that axis, or where every quantity has one.
    ``where``: an SQL expression over axes and variables; rows where it is true are kept.
    ``at``: axis → the value, or values, to keep. ``smallest`` and ``such_that``: see ``inverse``; without
    ``such_that`` the targets of the spec are used.

    The schema's metadata holds under ``predcube`` a JSON object: how many trials are ``missing``, ``failed``,
    ``infeasible`` and ``done``; under ``predcube_partly`` how many of those done lack quantities that do not apply
    there; and under ``predcube_aside`` the quantities left out by default, each with its axis.
    Raises ``BadInput`` for what the surfaces do not have, ``StoreError`` for a store
    that cannot be read.
    """
    data = read_surfaces(store)
    totals = {w: int(data.attrs.get(f"trials_{w}", 0)) for w in ("missing", "done", "failed", "infeasible")}
    data = fix(data, at or {})
    if smallest is not None:
        table = inverse(data, smallest, such_that, where)
    elif such_that is not None:
        raise BadInput(
            "--such-that needs --smallest AXIS: the axis whose smallest value is wanted (to filter rows use --where)"
        )
    else:
        table = rows(data, select, where, fixed=frozenset(at or ()))
    aside = {} if smallest is not None or select is not None else _aside(data, frozenset(at or ()))
    partly = str(int(data.attrs.get("trials_partly", 0)))
    return table.replace_schema_metadata(
        {"predcube": json.dumps(totals), "predcube_aside": json.dumps(aside), "predcube_partly": partly}
    )


def _shown(data: xr.Dataset, fixed: Container[str]) -> set[str]:
    """The axes that rows run over unless told otherwise: the cells', and those of quantities' own that are names of
    things (queries), are fixed, have one value, or without which there is no quantity."""
    cells = set(map(str, data["status"].dims)) if "status" in data.data_vars else set(map(str, data.dims))
    own = {str(d) for q in quantities_of(data) for d in data[q].dims} - cells
    if all(set(data[q].dims) - cells for q in quantities_of(data)):
        return cells | own
    return cells | {d for d in own if d in fixed or data.sizes[d] == 1 or data[d].dtype.kind not in "iuf"}


def _aside(data: xr.Dataset, fixed: Container[str]) -> dict[str, list[str]]:
    shown = _shown(data, fixed)
    left = {q: [str(d) for d in data[q].dims if d not in shown] for q in quantities_of(data)}
    return {q: dims for q, dims in left.items() if dims}


def _default_columns(data: xr.Dataset, fixed: Container[str]) -> list[str]:
    shown = _shown(data, fixed)
    quantities = [q for q in quantities_of(data) if set(data[q].dims) <= shown]
    columns = [q + end for q in quantities for end in ("", "_lower", "_upper")]
    cells = {d for q in quantities for d in data[q].dims}
    return columns + [s for s in ("status",) if s in data.data_vars and set(data[s].dims) <= cells]


def rows(
    data: xr.Dataset,
    select: Sequence[str] | None = None,
    where: str | None = None,
    *,
    fixed: Container[str] = frozenset(),
) -> pa.Table:
    """One row a combination of the axes that the selected variables (and those in ``where``) have; the axes first.
    ``fixed``: the axes that the question chose values of."""
    names = (
        _default_columns(data, fixed)
        if select is None
        else _all_columns(data, fixed)
        if list(select) == ["*"]
        else list(select)
    )
    axes = [str(d) for d in data.dims]
    for name in names:
        if name not in data.data_vars and name not in axes:
            raise BadInput(unknown(name, [*axes, *map(str, data.data_vars)], "column"))
    used = used_by(data, where) if where is not None else []
    dims = [
        d for d in axes if any(d == name or (name in data.data_vars and d in data[name].dims) for name in names + used)
    ]
    keep = None
    if where is not None:
        keep = truth(columns_over(data, dims, used), where, "--where")
    variables = [n for n in dict.fromkeys(names) if n not in axes]
    return columns_over(data, dims, variables, keep)


def _all_columns(data: xr.Dataset, fixed: Container[str]) -> list[str]:
    """Every variable that has all the axes of the cells, and no other but those shown."""
    cells, shown = set(data["status"].dims), _shown(data, fixed)
    return [str(n) for n, v in data.data_vars.items() if cells <= set(v.dims) <= shown]
