"""Bytes: the cube's schema, region writes, the ledger, opening, growing, export, tables and SQL expressions.

Knows neither the science nor who runs it. Places are URLs (a path, or ``file://…``). Names are fetched when they are
first used: whoever wants ``failures`` alone does not wait for Xarray and Zarr.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from predcube.storage.cube import (
        create,
        exists,
        generation,
        limit_threads,
        open_cube,
        read_attributes,
        read_schema,
        read_tile,
        update_attributes,
        write_tile,
    )
    from predcube.storage.digests import digest
    from predcube.storage.exporting import export
    from predcube.storage.extension import extend, recover
    from predcube.storage.failures import ExpressionError, StoreError, TableError
    from predcube.storage.ledger import TileError, TileStates, damage_named, errors, first_errors, tile_states
    from predcube.storage.partials import drop_parts, get_part, parts, put_part
    from predcube.storage.receipts import Receipt
    from predcube.storage.schema import (
        DONE,
        FAILED,
        INFEASIBLE,
        MISSING,
        Axis,
        CubeSchema,
        TileKey,
        Variable,
        status_variable,
        worst,
    )
    from predcube.storage.surfaces import read_surfaces, write_surfaces

__all__ = [
    "DONE",
    "FAILED",
    "INFEASIBLE",
    "MISSING",
    "Axis",
    "CubeSchema",
    "ExpressionError",
    "Receipt",
    "StoreError",
    "TableError",
    "TileError",
    "TileKey",
    "TileStates",
    "Variable",
    "create",
    "damage_named",
    "digest",
    "drop_parts",
    "errors",
    "exists",
    "export",
    "extend",
    "first_errors",
    "generation",
    "get_part",
    "limit_threads",
    "open_cube",
    "parts",
    "put_part",
    "read_attributes",
    "read_schema",
    "read_surfaces",
    "read_tile",
    "recover",
    "status_variable",
    "tile_states",
    "update_attributes",
    "worst",
    "write_surfaces",
    "write_tile",
]

_MODULES = (
    "failures",
    "schema",
    "digests",
    "receipts",
    "cube",
    "ledger",
    "partials",
    "extension",
    "surfaces",
    "exporting",
)


def __getattr__(name: str) -> object:
    if name in __all__:
        for module in _MODULES:
            home = import_module(f"{__name__}.{module}")
            if name in vars(home):
                globals()[name] = found = vars(home)[name]
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
