"""Questions to a cube: in go a store and what to ask, out comes an Arrow table of rows of its surfaces.

Always true: only the variables, and the places on the axes, that the question needs are read; a cell without a number
is a row with a null and a status that says why; an unknown name or value is an error that names the nearest.
"""

import json
from collections.abc import Mapping, Sequence

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
    rows run over the axes that the selected variables have.
    ``where``: an SQL expression over axes and variables; rows where it is true are kept.
    ``at``: axis → the value, or values, to keep. ``smallest`` and ``such_that``: see ``inverse``; without
    ``such_that`` the targets of the spec are used.

    The schema's metadata holds under ``predcube`` a JSON object: how many trials are ``missing``, ``failed``,
    ``infeasible`` and ``done``. Raises ``BadInput`` for what the surfaces do not have, ``StoreError`` for a store
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
        table = rows(data, select, where)
    return table.replace_schema_metadata({"predcube": json.dumps(totals)})


def _default_columns(data: xr.Dataset) -> list[str]:
    cells = {d for q in quantities_of(data) for d in data[q].dims}
    columns = [q + end for q in quantities_of(data) for end in ("", "_lower", "_upper")]
    return columns + [s for s in ("status",) if s in data.data_vars and set(data[s].dims) <= cells]


def rows(data: xr.Dataset, select: Sequence[str] | None = None, where: str | None = None) -> pa.Table:
    """One row a combination of the axes that the selected variables (and those in ``where``) have; the axes first."""
    names = _default_columns(data) if select is None else _all_columns(data) if list(select) == ["*"] else list(select)
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


def _all_columns(data: xr.Dataset) -> list[str]:
    """Every variable that has all the axes of the cells."""
    cells = set(data["status"].dims)
    return [str(n) for n, v in data.data_vars.items() if set(v.dims) == cells]
