"""Bytes: the cube's schema, region writes, the ledger, opening, growing, export, tables and SQL expressions.

Knows neither the science nor who runs it. Places are URLs (a path, or ``file://…``).
"""

from predcube.storage.cube import (
    create,
    exists,
    generation,
    open_cube,
    read_attributes,
    read_schema,
    read_tile,
    update_attributes,
    write_tile,
)
from predcube.storage.digests import digest
from predcube.storage.failures import StoreError
from predcube.storage.ledger import TileError, TileStates, first_errors, tile_states
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

__all__ = [
    "DONE",
    "FAILED",
    "INFEASIBLE",
    "MISSING",
    "Axis",
    "CubeSchema",
    "Receipt",
    "StoreError",
    "TileError",
    "TileKey",
    "TileStates",
    "Variable",
    "create",
    "digest",
    "exists",
    "first_errors",
    "generation",
    "open_cube",
    "read_attributes",
    "read_schema",
    "read_tile",
    "status_variable",
    "tile_states",
    "update_attributes",
    "worst",
    "write_tile",
]
