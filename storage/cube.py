"""The cube itself: made once by the driver, filled tile by tile by workers, opened lazily by anyone.

In go a URL and a schema, or a URL, a tile's key and its arrays; out comes a Zarr v3 group that plain Xarray opens.
Always true: a tile's labels and types are checked before any of its bytes are written, its receipt is written last,
and a store that is not ours is never touched.
"""

import json
import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import xarray
import zarr
from numpy.typing import NDArray
from zarr.abc.store import Store

from predcube.storage import place
from predcube.storage.checks import check_arrays, check_key, check_labels
from predcube.storage.digests import digest
from predcube.storage.failures import StoreError
from predcube.storage.layout import (
    ERROR_WIDTH,
    FORMAT,
    GENERATION,
    OWN_ATTRIBUTES,
    ROOT,
    UNFINISHED,
    attributes_of,
    contents,
    root_document,
)
from predcube.storage.receipts import Receipt
from predcube.storage.schema import Axis, CubeSchema, TileKey, Variable, check_attributes

CREATING = "creation"
_ASIDE = ("partials", "moments")  # groups that are for workers


def exists(url: str) -> bool:
    """Whether a cube lies at the URL. False where nothing is, and where a creation was cut short (``create`` then
    starts over). StoreError where something else is."""
    if place.is_vacant(url):
        return False
    return unfinished(root_attributes(url)) != CREATING


def create(url: str, schema: CubeSchema) -> None:
    """Makes an empty cube.

    The root is written first with a mark that says what is under way, and last without it: a creation that was cut
    short is told apart from a cube, and made anew. Raises StoreError, with nothing written, where there already is
    a cube or anything else, or where nothing can be written.
    """
    if exists(url):
        raise StoreError(
            f"store {url!r} already holds a cube; choose another place, or run the same sweep to resume it"
        )
    store = place.open_store(url, read_only=False)
    own = {FORMAT: 1, GENERATION: f"{secrets.token_hex(4)}.0"}
    made = contents(schema, {**schema.attributes, **own})
    with place.refusals(url):
        place.put(store, ROOT, root_document({**own, UNFINISHED: json.dumps({"what": CREATING})}))
        place.remove_orphans(store, "")
        for group in ("trials", "ledger", "surfaces"):  # what an earlier attempt left
            place.delete_prefix(store, group)
        for key in sorted(made.keys() - {ROOT}):
            place.put(store, key, made[key])
        place.put(store, ROOT, made[ROOT])


def read_attributes(url: str) -> dict[str, Any]:
    """The attributes of the root, without the store's own. Raises StoreError where there is no finished cube."""
    return {name: value for name, value in finished_attributes(url).items() if name not in OWN_ATTRIBUTES}


def update_attributes(url: str, attributes: Mapping[str, Any]) -> None:
    """Sets attributes of the root beside those it has, in one write. For the driver alone: two writers would lose
    each other's."""
    new = finished_attributes(url) | check_attributes(attributes, "the cube")
    if taken := sorted(OWN_ATTRIBUTES & attributes.keys()):
        raise ValueError(f"attribute {taken[0]!r} is the store's own; use another name")
    with place.refusals(url):
        place.put(place.open_store(url, read_only=False), ROOT, root_document(new))


def generation(url: str) -> str:
    """The name of the cube's present shape: pass it to workers, so that a handle opened before an extension is never
    used after it."""
    return str(finished_attributes(url)[GENERATION])


def read_schema(url: str) -> CubeSchema:
    """The schema of the cube at a URL, chunk lengths as they are in the store. Raises StoreError where there is no
    finished cube or its documents are damaged."""
    attributes = read_attributes(url)
    with place.refusals(url), place.orphans_ignored():
        try:
            return _schema(_trials(url), attributes)
        except (ValueError, KeyError, TypeError) as e:
            raise StoreError(
                f"store {url!r}: /trials is damaged ({e}); restore it, or run the sweep into another place"
            ) from e


def write_tile(
    url: str,
    key: TileKey,
    *,
    coordinates: Mapping[str, NDArray[Any]],
    arrays: Mapping[str, NDArray[Any]],
    receipt: Receipt,
    error: str | None = None,
    generation: str | None = None,
) -> Receipt:
    """Writes one tile: the whole chunk of every variable of /trials, then its error, then its receipt.

    ``coordinates`` are the labels that ``arrays`` were computed for, one array per axis of the cube (extra axes
    too); they must equal the cube's labels in this region. ``arrays`` holds every variable, with the tile's shape
    and the variable's dtype. Where a variable ``q`` has ``q_status``: done and NaN together, or not done and a
    value, or missing, are refused. ``receipt`` needs no key, coordinates or digest: they are filled in, and the
    receipt as written is returned. ``error`` goes with ``receipt.failed``, and is cut to 2048 characters.
    ``generation`` is what the driver read (``None`` reads it now).

    Raises StoreError before anything is written if anything does not fit. A tile that is written again (a retry)
    loses its old receipt first.
    """
    handle = _handle(url, generation if generation is not None else _generation(url))
    schema = handle.schema
    check_key(key, schema)
    labels = schema.coordinates(key)
    check_labels(key, labels, coordinates)
    check_arrays(key, schema, arrays)
    if bool(error) != bool(receipt.failed):
        raise StoreError(f"tile {key}: {receipt.failed} places failed and the error is {error!r}; give both or neither")
    signed = receipt.signed(key, labels, digest(arrays, labels))
    region = schema.region(key)
    with place.refusals(url):
        receipt_key = f"ledger/receipt/c/{'/'.join(map(str, key))}"
        place.delete(handle.store, receipt_key)
        for variable in schema.variables:
            handle.arrays[variable.name][(*region, *(slice(None) for _ in variable.extra))] = arrays[variable.name]
        handle.arrays["/error"][key] = (error or "")[:ERROR_WIDTH]
        handle.arrays["/receipt"][key] = signed.to_text()
    return signed


def read_tile(url: str, key: TileKey) -> dict[str, NDArray[Any]]:
    """Every variable's chunk of one tile. Raises StoreError naming the tile where a chunk cannot be decoded; a tile
    that was never written reads as missing."""
    handle = _handle(url, _generation(url))
    check_key(key, handle.schema)
    region = handle.schema.region(key)
    read: dict[str, NDArray[Any]] = {}
    for variable in handle.schema.variables:
        try:
            read[variable.name] = np.asarray(
                handle.arrays[variable.name][(*region, *(slice(None) for _ in variable.extra))]
            )
        except Exception as e:  # whatever a codec makes of damaged bytes
            raise StoreError(
                f"store {url!r}, tile {key}: the chunk of {variable.name!r} is damaged ({e}); recompute the tile"
            ) from e
    return read


def limit_threads(count: int = 1) -> None:
    """How many threads this process encodes and writes chunks with. For a worker, before its first tile: one tile is
    a few small chunks, and more threads would only wait for its one core."""
    zarr.config.set({"threading.max_workers": count})


def open_cube(url: str) -> xarray.DataTree:
    """The cube as a lazy tree with the groups ``trials``, ``ledger`` and, once reduced, ``surfaces`` (left out where
    their writing was cut short or they are damaged).

    The same as ``xarray.open_datatree(url, engine="zarr", consolidated=False)``, with variables in the order of their
    names and our messages: StoreError where there is no cube, or an extension was cut short.
    """
    finished_attributes(url)
    store = place.open_store(url, read_only=True)
    with place.refusals(url), place.orphans_ignored():
        try:
            tree = xarray.open_datatree(store, engine="zarr", consolidated=False)  # type: ignore[arg-type]
        except (ValueError, KeyError):
            tree = _without_surfaces(url, store)
    groups = {name: child.to_dataset(inherit=False) for name, child in tree.children.items() if name not in _ASIDE}
    if UNFINISHED in groups.get("surfaces", xarray.Dataset()).attrs:
        del groups["surfaces"]
    ordered = {f"/{name}": _ordered(groups[name]) for name in sorted(groups)}
    return xarray.DataTree.from_dict({"/": xarray.Dataset(attrs=tree.attrs), **ordered})


def _ordered(data: xarray.Dataset) -> xarray.Dataset:
    """The data set with its variables by name and its coordinates as they follow each other in the widest variable:
    Zarr lists arrays in an order that differs from one opening to the next."""
    widest = max(data.data_vars.values(), key=lambda v: v.ndim, default=None)
    dims = [] if widest is None else list(widest.dims)
    coordinates = sorted(data.coords, key=lambda c: (dims.index(c) if c in dims else len(dims), str(c)))
    return xarray.Dataset(
        {name: data.variables[name] for name in sorted(data.data_vars, key=str)},
        coords={name: data.variables[name] for name in coordinates},
        attrs=data.attrs,
    )


def _without_surfaces(url: str, store: Store) -> xarray.DataTree:
    """A store with torn documents: surfaces can be written again from what must be whole."""
    groups: dict[str, xarray.Dataset] = {"/": xarray.Dataset(attrs=root_attributes(url))}
    for name in ("trials", "ledger"):
        try:
            groups[f"/{name}"] = xarray.open_zarr(store, group=name, consolidated=False, chunks=None)
        except (ValueError, KeyError) as e:
            raise StoreError(f"store {url!r}: /{name} is damaged ({e}); restore it, or choose another place") from e
    return xarray.DataTree.from_dict(groups)


class _Handle:
    """A worker's open store: arrays by name (the ledger's begin with a slash), never used across generations."""

    __slots__ = ("arrays", "schema", "store")

    def __init__(self, url: str) -> None:
        self.store: Store = place.open_store(url, read_only=False)
        self.schema = read_schema(url)
        self.arrays: dict[str, zarr.Array[Any]] = {}
        for variable in self.schema.variables:
            self.arrays[variable.name] = self._open(f"trials/{variable.name}", empty=True)
        self.arrays["/receipt"] = self._open("ledger/receipt", empty=True)
        self.arrays["/error"] = self._open("ledger/error", empty=False)  # its chunks are the list of failures

    def _open(self, path: str, *, empty: bool) -> zarr.Array[Any]:
        # Whether empty chunks are written is not kept in the store: every opener has to say it again.
        return zarr.open_array(self.store, path=path, mode="r+", zarr_format=3, config={"write_empty_chunks": empty})


@lru_cache(maxsize=8)
def _handle(url: str, generation: str) -> _Handle:
    """A fresh open costs some ten milliseconds; an open handle of an older generation would write nothing at all."""
    return _Handle(url)


def _trials(url: str) -> zarr.Group:
    return zarr.open_group(place.open_store(url, read_only=True), path="trials", mode="r", use_consolidated=False)


def _schema(trials: zarr.Group, attributes: Mapping[str, Any]) -> CubeSchema:
    arrays = dict(sorted(trials.arrays()))  # the file system's own order differs between stores
    dims = {name: tuple(str(d) for d in array.metadata.dimension_names or ()) for name, array in arrays.items()}  # type: ignore[union-attr]
    variables = [name for name in arrays if dims[name] != (name,)]
    if not variables:
        raise ValueError("it has no variables")
    if lost := [v for name in variables if (v := name.removesuffix("_status")) not in (name, *variables)]:
        raise ValueError(f"the array {lost[0]!r} is gone")
    spine = dims[variables[0]][: dims[variables[0]].index("trial") + 1]
    cuts = dict(zip(dims[variables[0]], arrays[variables[0]].chunks, strict=True))

    def axis(name: str) -> Axis:
        values = np.asarray(arrays[name][...])
        return Axis(name=name, values=values, chunk=cuts.get(name, len(values)), attributes=dict(arrays[name].attrs))

    extra = sorted({d for name in variables for d in dims[name]} - set(spine))
    return CubeSchema(
        axes=tuple(axis(name) for name in spine),
        extra=tuple(axis(name) for name in extra),
        variables=tuple(
            Variable(
                name=name,
                dtype=str(arrays[name].dtype),
                attributes=dict(arrays[name].attrs),
                extra=dims[name][len(spine) :],
            )
            for name in variables
        ),
        attributes=attributes,
    )


def root_attributes(url: str) -> dict[str, Any]:
    """The attributes of a root that is ours, the store's own among them."""
    store = place.open_store(url, read_only=True)
    with place.refusals(url):
        document = place.get(store, ROOT)
    if document is None:
        raise StoreError(f"{url!r} is not a predcube store and is not empty; choose another place")
    try:
        attributes = attributes_of(document)
    except ValueError as e:
        raise StoreError(f"store {url!r}: its {ROOT} is damaged ({e}); restore it, or choose another place") from e
    if attributes.get(FORMAT) != 1:
        raise StoreError(f"{url!r} holds a Zarr group that predcube did not make; choose another place")
    return attributes


def unfinished(attributes: Mapping[str, Any]) -> str | None:
    mark = attributes.get(UNFINISHED)
    return None if mark is None else str(json.loads(mark)["what"])


def finished_attributes(url: str) -> dict[str, Any]:
    """The root's attributes, where nothing was cut short."""
    if place.is_vacant(url):
        raise StoreError(f"there is no store at {url!r}; make one with `predcube run SPEC --store {url}`")
    attributes = root_attributes(url)
    if (what := unfinished(attributes)) is not None:
        raise StoreError(f"store {url!r}: its {what} was cut short; run the same command again to finish it")
    return attributes


def _generation(url: str) -> str:
    return generation(url)
