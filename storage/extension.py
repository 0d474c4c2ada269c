"""Growth: in go an axis's new values, out comes a longer cube whose old chunks are as they were.

Everything that will be written is recorded in the root first, as bytes. What follows only copies that record into
place, so it may be cut short anywhere and done again; the record goes last. Always true: no chunk of a variable of
/trials is touched, and old values keep their places.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.storage import place
from predcube.storage.cube import finished_attributes, read_schema, root_attributes, unfinished
from predcube.storage.failures import StoreError
from predcube.storage.layout import GENERATION, ROOT, UNFINISHED, contents, root_document
from predcube.storage.schema import Axis, CubeSchema, check_attributes

EXTENDING = "extension"
_GROUPS = ("trials", "ledger")


def extend(url: str, values: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any] | None = None) -> None:
    """Appends values to axes of a cube, several axes at once if need be, and sets attributes of the root with them.

    ``values`` are the new values alone, of the axis's type, a whole number of its chunks; new tiles are missing
    until they are written. /surfaces stays as it was (on its own coordinates) until it is written again. An
    extension that was cut short is finished first; asking for the same values again then changes nothing.

    While it runs, or after it was cut short, plain Xarray may refuse to open /trials ("conflicting sizes"); ``recover``
    or the same call ends that. Raises StoreError, with nothing changed, for an unknown axis, a value of another type
    or already there, or a length that is no multiple.
    """
    resumed = recover(url)
    schema = read_schema(url)
    if resumed and all(_is_tail(schema, name, new) for name, new in values.items()):
        return
    unknown = values.keys() - {axis.name for axis in schema.axes}
    if unknown:
        raise StoreError(
            f"store {url!r} has no axis {min(unknown)!r} that can grow; its axes are "
            f"{', '.join(a.name for a in schema.axes)}"
        )
    grown = [_grown(url, a, np.asarray(values[a.name])) if a.name in values else a for a in schema.axes]
    target = replace(schema, axes=tuple(grown))
    now = finished_attributes(url)
    name, count = str(now[GENERATION]).rsplit(".", 1)
    record = {
        "what": EXTENDING,
        "write": {key: base64.b64encode(value).decode() for key, value in _changes(url, schema, target).items()},
        "attributes": check_attributes(attributes or {}, "the cube"),
        GENERATION: f"{name}.{int(count) + 1}",
    }
    with place.refusals(url):
        place.put(place.open_store(url, read_only=False), ROOT, root_document({**now, UNFINISHED: json.dumps(record)}))
    recover(url)


def recover(url: str) -> bool:
    """Finishes an extension that was cut short, and removes what killed writers left beside groups and documents.

    For the driver, before anything else and before its workers write. True if there was something to finish.
    """
    attributes = root_attributes(url)
    what = unfinished(attributes)
    store = place.open_store(url, read_only=False)
    with place.refusals(url):
        if what == EXTENDING:
            record = json.loads(attributes[UNFINISHED])
            for key in sorted(record["write"]):
                place.put(store, key, base64.b64decode(record["write"][key]))
            done = {name: value for name, value in attributes.items() if name != UNFINISHED}
            place.put(store, ROOT, root_document({**done, **record["attributes"], GENERATION: record[GENERATION]}))
        place.remove_orphans(store, "")
        for group in (*_GROUPS, "surfaces"):
            arrays = [f"{group}/{name}" for name in place.names(store, group) if "." not in name]
            place.remove_orphans(store, group, *arrays, *(f"{array}/c" for array in arrays))
    return what == EXTENDING


def _grown(url: str, axis: Axis, new: NDArray[Any]) -> Axis:
    if new.ndim != 1 or new.dtype.kind != axis.values.dtype.kind:
        raise StoreError(
            f"store {url!r}: axis {axis.name!r} holds {axis.values.dtype.name}; "
            f"{new.tolist()!r} cannot be appended to it"
        )
    if len(new) % axis.chunk:
        below, above = len(new) - len(new) % axis.chunk, len(new) + axis.chunk - len(new) % axis.chunk
        counts = f"{below} or {above}" if below else str(above)
        raise StoreError(
            f"store {url!r}: axis {axis.name!r} is cut in chunks of {axis.chunk}, and {len(new)} new values are no "
            f"multiple of that; append {counts}, or run the sweep into another place"
        )
    if twice := [v for v in new.tolist() if v in set(axis.values.tolist())]:
        raise StoreError(f"store {url!r}: axis {axis.name!r} already holds {twice[0]!r}; append new values only")
    try:
        return replace(axis, values=np.concatenate([axis.values, new]))
    except ValueError as e:
        raise StoreError(f"store {url!r}: {e}") from e


def _changes(url: str, schema: CubeSchema, target: CubeSchema) -> dict[str, bytes]:
    """The documents and coordinate chunks that tell the target from what is there."""
    store = place.open_store(url, read_only=True)
    grown = {old.name for old, new in zip(schema.axes, target.axes, strict=True) if len(old.values) != len(new.values)}
    coordinates = grown | {f"tile_{name}" for name in grown}
    changes: dict[str, bytes] = {}
    for key, value in contents(target, {}).items():
        group, _, rest = key.partition("/")
        name = rest.split("/")[0]
        if group not in _GROUPS or rest == ROOT:
            continue
        if name in coordinates:
            changes[key] = value
        elif set(_dimensions(value)) & coordinates:
            # The document that is there, but for its shape: its chunks were written under its codecs.
            with place.refusals(url):
                there = place.get(store, key)
            document = json.loads(there or value)
            document["shape"] = json.loads(value)["shape"]
            changes[key] = json.dumps(document, indent=2).encode()
    return changes


def _dimensions(document: bytes) -> list[str]:
    try:
        return list(json.loads(document).get("dimension_names") or ())
    except ValueError:  # a chunk
        return []


def _is_tail(schema: CubeSchema, name: str, new: NDArray[Any]) -> bool:
    for axis in schema.axes:
        if axis.name == name:
            return bool(axis.values.tolist()[-len(new) :] == np.asarray(new).tolist())
    return False
