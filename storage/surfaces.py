"""The reduced surfaces: in goes a data set over the axes, out comes the group /surfaces, and back.

Written by the driver alone, any number of times. Always true: equal data gives equal bytes; a reader never sees arrays
that do not fit together; a group whose writing was cut short says so and is written again by the next reduction.
"""

from typing import Any

import numpy as np
import xarray
from numpy.typing import NDArray

from predcube.storage import place
from predcube.storage.cube import finished_attributes, open_cube
from predcube.storage.layout import ROOT, UNFINISHED, Contents, Draft, add_array
from predcube.storage.schema import check_array_attributes, check_attributes, check_name

GROUP = "surfaces"
WRITING = "surfaces"
_LARGEST_CHUNK = 1 << 24  # bytes: larger surfaces are cut, never along n, so that an inverse look-up reads one chunk


def write_surfaces(url: str, dataset: xarray.Dataset) -> None:
    """Replaces /surfaces by ``dataset`` (float64, integers, booleans and text over labelled dimensions).

    Only bytes that differ are written: first a mark, then chunks, then documents, then the group without the mark.
    Meanwhile a reader finds fewer variables, and one that insists on warnings as errors is told that some are not
    recognised. Raises StoreError where there is no finished cube, ValueError for what cannot be stored.
    """
    finished_attributes(url)
    new = _contents(dataset)
    store = place.open_store(url, read_only=False)
    with place.refusals(url):
        old = {key: value for key in place.keys(store, GROUP) if (value := place.get(store, key)) is not None}
        wanted = {key.split("/")[1] for key in new}
        if old == new and wanted >= set(place.names(store, GROUP)):
            return
        group = f"{GROUP}/{ROOT}"
        place.put(store, group, _marked())
        # An array without a document is no array: what remains visible always fits together.
        documents = {key for key in old.keys() | new.keys() if key.endswith(f"/{ROOT}") and key != group}
        changed = {key for key in documents if old.get(key) != new.get(key)}
        for key in sorted(changed & old.keys()):
            place.delete(store, key)
        for name in place.names(store, GROUP):
            if name not in wanted:  # a surface that is gone, or what a killed writer left: even as an empty folder
                place.remove(store, f"{GROUP}/{name}")
        for key in sorted(old.keys() - new.keys() - documents):
            place.delete(store, key)
        for key in sorted(new.keys() - documents - {group}):
            if old.get(key) != new[key]:
                place.put(store, key, new[key])
        for key in sorted(changed & new.keys()):
            place.put(store, key, new[key])
        place.put(store, group, new[group])


def read_surfaces(url: str) -> xarray.Dataset | None:
    """The surfaces, lazy; None where there are none yet, or their writing was cut short."""
    tree = open_cube(url)
    return tree[GROUP].to_dataset() if GROUP in tree.children else None


def _marked() -> bytes:
    draft = Draft()
    draft.root.create_group(GROUP, attributes={UNFINISHED: WRITING})
    return draft.contents[f"{GROUP}/{ROOT}"]


def _contents(dataset: xarray.Dataset) -> Contents:
    draft = Draft()
    group = draft.root.create_group(GROUP, attributes=check_attributes(dataset.attrs, f"/{GROUP}"))
    for name in sorted(map(str, dataset.variables)):
        variable = dataset.variables[name]
        check_name(name, "surface")
        values = _plain(name, variable.values)
        coordinate = name in dataset.coords
        add_array(
            group,
            name,
            shape=values.shape,
            chunks=values.shape if coordinate else _chunks(variable.sizes, values.dtype.itemsize),
            dtype=values.dtype,
            dimensions=[str(d) for d in variable.dims],
            attributes=check_array_attributes(variable.attrs, f"surface {name!r}"),
            data=values,
        )
    return {key: value for key, value in draft.contents.items() if key.startswith(f"{GROUP}/")}


def _plain(name: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind in "OT":
        if not all(isinstance(v, str) for v in values.ravel().tolist()):
            raise ValueError(f"surface {name!r} holds objects that are not text; give numbers, booleans or text")
        return values.astype(str)
    if values.dtype.kind not in "fiubU":
        raise ValueError(f"surface {name!r} is {values.dtype}; give numbers, booleans or text")
    return values


def _chunks(sizes: Any, itemsize: int) -> tuple[int, ...]:
    lengths = {dim: max(1, length) for dim, length in sizes.items()}
    while itemsize * int(np.prod(list(lengths.values()), dtype=np.int64)) > _LARGEST_CHUNK:
        dim, longest = max(((d, n) for d, n in lengths.items() if d != "n"), key=lambda item: item[1], default=("", 1))
        if longest == 1:
            break
        lengths[dim] = -(-longest // 2)
    return tuple(lengths.values())
