"""What a tile must be before any of its bytes are written: in go its key, labels and arrays, out comes nothing.

Raises StoreError that names the tile, the axis or variable, and both values.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.storage.failures import StoreError
from predcube.storage.schema import DONE, MISSING, CubeSchema, TileKey, Variable


def check_key(key: TileKey, schema: CubeSchema) -> None:
    """The tile is one of the cube's."""
    # Zarr writes nothing and says nothing where a region lies outside an array.
    if len(key) != len(schema.tiles) or not all(0 <= k < t for k, t in zip(key, schema.tiles, strict=True)):
        raise StoreError(f"tile {key} is outside the cube of {schema.tiles} tiles; read the store's schema again")


def check_labels(key: TileKey, labels: Mapping[str, NDArray[Any]], given: Mapping[str, NDArray[Any]]) -> None:
    """What was computed was computed for the cube's own labels, to the bit."""
    if labels.keys() != given.keys():
        raise StoreError(f"tile {key}: its labels are given for {sorted(given)}; the cube's axes are {sorted(labels)}")
    for name, wanted in labels.items():
        computed = np.asarray(given[name])
        if computed.dtype.kind != wanted.dtype.kind or not np.array_equal(computed, wanted):
            raise StoreError(
                f"tile {key}: axis {name!r} is {wanted.tolist()} in the cube and {computed.tolist()} in what was "
                "computed; nothing was written: run the sweep again from its own spec"
            )


def check_arrays(key: TileKey, schema: CubeSchema, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Every variable is there, in type and shape, with a value exactly where its status says done."""
    names = {variable.name for variable in schema.variables}
    if names != arrays.keys():
        raise StoreError(
            f"tile {key}: missing variables {sorted(names - arrays.keys())}, unknown {sorted(arrays.keys() - names)}"
        )
    for variable in schema.variables:
        array = arrays[variable.name]
        if array.dtype != np.dtype(variable.dtype) or array.shape != schema.shape(variable):
            raise StoreError(
                f"tile {key}: {variable.name!r} is {array.dtype} of shape {array.shape}; "
                f"the cube holds {variable.dtype} in tiles of {schema.shape(variable)}"
            )
    for variable in schema.variables:
        if f"{variable.name}_status" in names:
            _check_status(key, schema, variable, arrays[variable.name], arrays[f"{variable.name}_status"])


def _check_status(
    key: TileKey, schema: CubeSchema, variable: Variable, values: NDArray[Any], status: NDArray[Any]
) -> None:
    wide = status.reshape(status.shape + (1,) * len(variable.extra))
    wrong = (status == MISSING).reshape(wide.shape) | (np.isnan(values) == (wide == DONE))
    if wrong.any():
        place_ = tuple(int(i) for i in np.argwhere(wrong)[0])[: len(schema.axes)]
        labels = schema.coordinates(key)
        cell = ", ".join(f"{a.name}={labels[a.name][i].item()!r}" for a, i in zip(schema.axes, place_, strict=True))
        raise StoreError(
            f"tile {key}: at {cell} {variable.name!r} has the status {int(status[place_])} and the value "
            f"{np.ravel(values[place_])[0]}; a value stands exactly where the status is {DONE}"
        )
