"""What a sweep keeps of its tables: in go named entries (an array of numbers and a text about it), out come they again.

Entries lie in the group /moments of the store and are Zarr like the rest. Always true: an entry that is given back is
the one that was put; a torn, altered or half-written one is as if it were not there. Written by the driver alone.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from predcube.storage import place
from predcube.storage.layout import ROOT, Draft, add_array
from predcube.storage.schema import check_name

GROUP = "moments"
_CHUNK = 2**21  # numbers: 16 MB


def put_entry(url: str, name: str, values: NDArray[np.float64], about: str) -> None:
    """Keeps an entry: ``values`` (length,) and a JSON text. One of the same name is replaced."""
    check_name(name, "entry")
    sealed = np.ascontiguousarray(values, dtype=np.float64)
    draft = Draft()
    group = draft.root.create_group(GROUP, attributes={"description": "sums over tables, fits and laws: see `about`"})
    add_array(
        group,
        name,
        shape=sealed.shape,
        chunks=(max(1, min(len(sealed), _CHUNK)),),
        dtype=sealed.dtype,
        dimensions=[f"value_{name}"],
        attributes={"long_name": name, "units": "1", "about": about, "sha256": _seal(sealed, about)},
        data=sealed,
    )
    store = place.open_store(url, read_only=False)
    with place.refusals(url):
        made = draft.contents
        # Documents first: a chunk without one would be no Zarr. What is not whole yet has another digest.
        for key in sorted((k for k in made if k.startswith(GROUP)), key=lambda k: (not k.endswith(ROOT), k)):
            place.put(store, key, made[key])


def get_entry(url: str, name: str) -> tuple[NDArray[np.float64], str] | None:
    """The values and the text of an entry, None where there is none or it is damaged."""
    store = place.open_store(url, read_only=True)
    with place.refusals(url), place.orphans_ignored():
        if place.get(store, f"{GROUP}/{name}/{ROOT}") is None:
            return None
        try:
            array: zarr.Array[Any] = zarr.open_array(store, path=f"{GROUP}/{name}", mode="r", zarr_format=3)
            values = np.asarray(array[...], dtype=np.float64)
            about, seal = str(array.attrs["about"]), array.attrs["sha256"]
        except Exception:  # whatever a codec makes of damaged bytes
            return None
    return (values, about) if _seal(values, about) == seal else None


def entry_names(url: str) -> tuple[str, ...]:
    """The entries there are, whole or not, sorted."""
    store = place.open_store(url, read_only=True)
    with place.refusals(url):
        return tuple(n for n in place.names(store, GROUP) if n != ROOT and not n.endswith(place.ORPHAN))


def drop_entries(url: str, names: Iterable[str]) -> None:
    """Removes entries."""
    store = place.open_store(url, read_only=False)
    with place.refusals(url):
        for name in names:
            place.remove(store, f"{GROUP}/{name}")


def _seal(values: NDArray[np.float64], about: str) -> str:
    head = json.dumps([about, len(values)]).encode()
    return hashlib.sha256(head + values.astype("<f8").tobytes()).hexdigest()
