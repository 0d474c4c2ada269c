"""Surfaces as every reader gets them: in goes a store, out come its surfaces, lazy, numeric axes ascending.

Light on purpose: a query needs neither the science nor statistics unless no surfaces were written yet.
"""

import json

import numpy as np
import xarray as xr

from predcube.storage import damage_named, open_cube

MISSING, DONE, FAILED, INFEASIBLE, PARTIAL = range(5)
CELL_STATUSES = ("missing", "done", "failed", "infeasible", "partial")
"""What the trials of a cell share, by the code in the surface ``status``."""


def read_surfaces(store: str) -> xr.Dataset:
    """The surfaces of a store. Where none were written yet (the sweep is running, or was interrupted) they are reduced
    here, in memory, from the trials that are there; nothing is written. Raises ``StoreError``."""
    with damage_named(store):
        return surfaces_of(open_cube(store))


def surfaces_of(tree: xr.DataTree) -> xr.Dataset:
    """``read_surfaces`` for a cube that is open already."""
    if "surfaces" in tree.children:
        stored = tree.children["surfaces"].to_dataset(inherit=False)
        sizes = tree.children["trials"].sizes
        # Surfaces written before an extension, or while trials were missing, may be behind the trials by now.
        if not stored.attrs.get("trials_missing") and all(sizes[d] == stored.sizes[d] for d in stored["status"].dims):
            return ascending(arranged(stored))
    from predcube.pipeline.reduction import reduced

    return arranged(reduced(tree))


def arranged(data: xr.Dataset) -> xr.Dataset:
    """The status first (so that the axes come in the cube's order), then each quantity, in the spec's order, with what
    was derived from it, then the rest."""
    names = ["status"]
    for quantity in quantities_of(data):
        names += [quantity, *(str(n) for n in data.data_vars if str(n).startswith(f"{quantity}_"))]
    names += [str(n) for n in data.data_vars]
    return data[list(dict.fromkeys(names))]


def quantities_of(data: xr.Dataset) -> list[str]:
    """The measured quantities among the surfaces, in the spec's order."""
    return [q for q in json.loads(data.attrs["quantities"]) if q in data.data_vars]


def leading_of(data: xr.Dataset) -> list[str]:
    """The quantities that a kind of sweep is about; nothing where all are."""
    found: list[str] = json.loads(data.attrs.get("leading", "[]"))
    return found


def status_of(data: xr.Dataset, name: str) -> str:
    """The variable that says how a surface's cells ended: the status of the quantity that it is of, where there is one,
    else the cells'."""
    known = (q for q in json.loads(data.attrs.get("quantities", "[]")) if f"{q}_status" in data.data_vars)
    own = max((q for q in known if name == q or name.startswith(f"{q}_")), key=len, default=None)
    return "status" if own is None else f"{own}_status"


def ascending(data: xr.Dataset) -> xr.Dataset:
    """The same data with every numeric axis in ascending order (extension appends); labels keep their order."""
    order = {
        d: np.argsort(c.values, kind="stable")
        for d, c in data.coords.items()
        if d in data.dims and c.dtype.kind in "iuf" and (c.values[1:] < c.values[:-1]).any()
    }
    return data.isel(order) if order else data
