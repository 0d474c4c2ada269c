"""Finished parts of a tile that is still under way: in go a URL, a place and bytes, out come the bytes again.

A part is one array of bytes in a group of its own, /partials/<place>, and goes when its tile has its receipt: whatever
stops a run of a tile of many hours loses the parts under way and no more. Always true: bytes that are given back are
those that were put; a torn, altered or half-written part is as if it were not there.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from predcube.storage import place as places
from predcube.storage.layout import Draft, add_array

GROUP = "partials"
LARGEST = 2**26
"""Bytes of a part at most; a larger one is not kept."""
_SEAL = hashlib.sha256().digest_size


def put_part(url: str, place: str, name: str, value: bytes) -> bool:
    """Keeps a part; False where it is too large. A part that is put twice is the last one."""
    if len(value) > LARGEST:
        return False
    sealed = np.frombuffer(hashlib.sha256(value).digest() + value, dtype=np.uint8)
    draft = Draft()
    draft.root.create_group(GROUP, attributes={"description": "finished parts of tiles under way"}).create_group(place)
    group = draft.root[f"{GROUP}/{place}"]
    add_array(
        group,  # type: ignore[arg-type]
        name,
        shape=sealed.shape,
        chunks=sealed.shape,
        dtype=sealed.dtype,
        dimensions=[f"byte_{name}"],
        attributes={"description": "a partial result, after its SHA-256"},
        data=sealed,
    )
    made = draft.contents
    store = places.open_store(url, read_only=False)
    with places.refusals(url):
        # Documents first: a chunk without one would be no Zarr.
        for key in sorted((k for k in made if k.startswith(GROUP)), key=lambda k: (not k.endswith("zarr.json"), k)):
            places.put(store, key, made[key])
    return True


def get_part(url: str, place: str, name: str) -> bytes | None:
    """The bytes of a part, None where there is none or it is damaged."""
    import zarr

    store = places.open_store(url, read_only=True)
    with places.refusals(url), places.orphans_ignored():
        if places.get(store, f"{GROUP}/{place}/{name}/zarr.json") is None:
            return None
        try:
            array: zarr.Array[Any] = zarr.open_array(store, path=f"{GROUP}/{place}/{name}", mode="r", zarr_format=3)
            sealed = np.asarray(array[...], dtype=np.uint8).tobytes()
        except Exception:  # whatever a codec makes of damaged bytes
            return None
    value = sealed[_SEAL:]
    return value if hashlib.sha256(value).digest() == sealed[:_SEAL] else None


def parts(url: str) -> Mapping[str, tuple[str, ...]]:
    """The names of the parts there are, by place."""
    store = places.open_store(url, read_only=True)
    found: dict[str, list[str]] = {}
    with places.refusals(url):
        for key in places.keys(store, GROUP):
            pieces = key.split("/")
            if len(pieces) > 3 and pieces[3] == "c":
                found.setdefault(pieces[1], []).append(pieces[2])
    return {place: tuple(sorted(set(names))) for place, names in found.items()}


def drop_parts(url: str, place: str | None = None) -> None:
    """Removes the parts of a place, or all of them."""
    store = places.open_store(url, read_only=False)
    with places.refusals(url):
        places.delete_prefix(store, GROUP if place is None else f"{GROUP}/{place}")
