"""How a cube lies in a Zarr store: in goes a schema, out come the documents and chunks that make it, as bytes.

Everything a driver writes outside tiles is made here in memory first, so that it can be written key by key, in a
chosen order, again after a kill, with the same bytes each time.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BytesCodec, ZstdCodec
from zarr.storage import MemoryStore

from predcube.storage.schema import Axis, CubeSchema

ROOT = "zarr.json"
FORMAT = "predcube_format"  # root attribute: which layout this is; what makes a store ours
GENERATION = "generation"  # root attribute: changes whenever the cube's shape does
UNFINISHED = "unfinished"  # root attribute: what the driver was in the middle of, as JSON; absent otherwise
OWN_ATTRIBUTES = frozenset({FORMAT, GENERATION, UNFINISHED})

RECEIPT_WIDTH, ERROR_WIDTH = 1024, 2048

type Contents = dict[str, bytes]
"""Store keys and their bytes."""


class Draft:
    """A Zarr group in memory that ends as ``contents``."""

    def __init__(self) -> None:
        self._store: dict[str, Any] = {}
        self.root = zarr.open_group(MemoryStore(self._store), mode="w", zarr_format=3)

    @property
    def contents(self) -> Contents:
        return {key: value.to_bytes() for key, value in sorted(self._store.items())}


def add_array(
    group: zarr.Group,
    name: str,
    *,
    shape: Sequence[int],
    chunks: Sequence[int],
    dtype: np.dtype[Any],
    dimensions: Sequence[str],
    attributes: Mapping[str, Any],
    data: NDArray[Any] | None = None,
) -> None:
    """One array as every array of a cube is: zstd with a checksum (the default codec returns wrong numbers for a
    flipped bit), floats filled with NaN, empty chunks stored (their absence then says that nobody wrote them)."""
    dtype = dtype.newbyteorder("<")
    fill: Any = float("nan") if dtype.kind == "f" else "" if dtype.kind == "U" else 0
    array = group.create_array(
        name,
        shape=tuple(shape),
        chunks=tuple(chunks),
        dtype=dtype,
        fill_value=fill,
        serializer=BytesCodec(endian="little"),
        compressors=[ZstdCodec(level=3, checksum=True)],
        dimension_names=list(dimensions),
        attributes=dict(attributes),
        config={"write_empty_chunks": True},
    )
    if data is not None:
        array[...] = data.astype(dtype)


def add_coordinate(group: zarr.Group, axis: Axis) -> None:
    """An axis as a coordinate of a group, in one chunk."""
    add_array(
        group,
        axis.name,
        shape=axis.values.shape,
        chunks=axis.values.shape,
        dtype=axis.values.dtype,
        dimensions=[axis.name],
        attributes=axis.attributes,
        data=axis.values,
    )


def tile_axes(schema: CubeSchema) -> tuple[str, ...]:
    """The ledger's dimensions. Not the axes' own names: their lengths differ from those in /trials."""
    return tuple(f"tile_{axis.name}" for axis in schema.axes)


def contents(schema: CubeSchema, root_attributes: Mapping[str, Any]) -> Contents:
    """Everything that a new cube consists of before its first tile."""
    draft = Draft()
    draft.root.update_attributes(dict(root_attributes))
    trials = draft.root.create_group("trials", attributes={"description": "one value per cell and trial"})
    for axis in (*schema.axes, *schema.extra):
        add_coordinate(trials, axis)
    for variable in schema.variables:
        axes = schema.dimensions(variable)
        add_array(
            trials,
            variable.name,
            shape=[len(a.values) for a in axes],
            chunks=[a.chunk for a in axes],
            dtype=np.dtype(variable.dtype),
            dimensions=[a.name for a in axes],
            attributes=variable.attributes,
        )
    ledger = draft.root.create_group("ledger", attributes={"description": "one receipt per tile: its commit"})
    for name, tiles in zip(tile_axes(schema), schema.tiles, strict=True):
        add_coordinate(ledger, Axis(name=name, values=np.arange(tiles), chunk=tiles))
    for name, width, text in (
        ("receipt", RECEIPT_WIDTH, "JSON: key, coordinates, digest, seconds, worker, attempt, failed; empty: missing"),
        ("error", ERROR_WIDTH, "the first error of a tile; empty where there was none"),
    ):
        add_array(
            ledger,
            name,
            shape=schema.tiles,
            chunks=[1] * len(schema.tiles),
            dtype=np.dtype(f"<U{width}"),
            dimensions=tile_axes(schema),
            attributes={"long_name": name, "description": text},
        )
    return draft.contents


def root_document(attributes: Mapping[str, Any]) -> bytes:
    """The root group's document with these attributes."""
    draft = Draft()
    draft.root.update_attributes(dict(attributes))
    return draft.contents[ROOT]


def attributes_of(document: bytes) -> dict[str, Any]:
    """The attributes in a node's document. Raises ValueError on a torn one."""
    parsed = json.loads(document)
    if not isinstance(parsed, dict) or parsed.get("zarr_format") != 3:
        raise ValueError("it is not a Zarr v3 document")
    return dict(parsed.get("attributes") or {})
