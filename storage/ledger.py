"""What has been done: in goes a URL, out come the tiles that are done, failed and missing, and their receipts.

Always true: a tile counts only if its receipt is there and names it; whatever else is found (torn files, leftovers of
killed writers, receipts that do not parse) leaves it missing, so that it is computed again.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import zarr
from zarr.abc.store import Store

from predcube.storage import place
from predcube.storage.cube import read_schema, read_tile
from predcube.storage.digests import digest
from predcube.storage.failures import StoreError
from predcube.storage.receipts import Receipt
from predcube.storage.schema import CubeSchema, TileKey

_AT_ONCE = 4096  # texts in memory: 4 kB each

type Check = Literal["listing", "receipts", "digests"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TileStates:
    """The tiles of a cube, each list in row-major order. ``failed`` tiles were written too, with at least one failed
    place in them; ``receipts`` is empty after a listing."""

    done: tuple[TileKey, ...]
    failed: tuple[TileKey, ...]
    missing: tuple[TileKey, ...]
    receipts: dict[TileKey, Receipt]

    @property
    def total(self) -> int:
        return len(self.done) + len(self.failed) + len(self.missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class TileError:
    """An error as the worker wrote it, the first tile that has it, and how many tiles have the same."""

    message: str
    key: TileKey
    count: int


def tile_states(url: str, check: Check = "receipts") -> TileStates:
    """Which tiles are done, failed and missing.

    ``listing`` looks at the ledger's file names alone (half a second for 10,000 tiles: for ``status``, while it runs).
    ``receipts`` parses every receipt and sees that every variable's chunk is there (for resuming). ``digests`` reads
    every tile as well and compares it with its receipt (after a crash of the machine, and to verify).
    """
    schema = read_schema(url)
    store = place.open_store(url, read_only=True)
    with place.refusals(url):
        written = _listed(store, "ledger/receipt", schema)
        broken = _listed(store, "ledger/error", schema)
        receipts: dict[TileKey, Receipt] = {}
        if check != "listing":
            for variable in schema.variables:
                written &= _listed(store, f"trials/{variable.name}", schema)
            receipts = dict(_receipts(store, schema, written))
            if check == "digests":
                receipts = {key: r for key, r in receipts.items() if _agrees(url, schema, key, r)}
            written = set(receipts)
            broken = {key for key, receipt in receipts.items() if receipt.failed}
    everything = tuple(schema.keys())
    return TileStates(
        done=tuple(k for k in everything if k in written and k not in broken),
        failed=tuple(k for k in everything if k in written and k in broken),
        missing=tuple(k for k in everything if k not in written),
        receipts=receipts,
    )


@contextmanager
def damage_named(url: str) -> Iterator[None]:
    """Where what is inside fails on a cube with damaged tiles, says so: StoreError with the first of them and the cure.
    Tiles are read and compared with their receipts only then."""
    try:
        yield
    except StoreError:
        raise
    except Exception as e:  # whatever a codec makes of damaged bytes
        damaged = sorted(tile_states(url, "receipts").receipts.keys() - tile_states(url, "digests").receipts.keys())
        if not damaged:
            raise
        some = f"{len(damaged)} tiles are damaged, the first {damaged[0]}" if damaged[1:] else f"tile {damaged[0]} is"
        receipts = "/".join(("ledger/receipt/c", *map(str, damaged[0])))
        raise StoreError(
            f"store {url!r}: {some}{'' if damaged[1:] else ' damaged'} ({e}); delete {receipts} in the store "
            "and run its sweep again, which computes the tile anew"
        ) from e


def errors(url: str) -> dict[TileKey, str]:
    """The error of every tile that has one, in row-major order."""
    schema = read_schema(url)
    store = place.open_store(url, read_only=True)
    with place.refusals(url):
        listed = sorted(_listed(store, "ledger/error", schema))
        return dict(sorted((key, text) for key, text in _texts(store, "ledger/error", listed) if text))


def first_errors(url: str) -> tuple[TileError, ...]:
    """Every distinct error in the ledger with the first tile that has it, the most frequent first."""
    found: dict[str, list[TileKey]] = {}
    for key, text in errors(url).items():
        found.setdefault(text, []).append(key)
    counted = [TileError(message=text, key=keys[0], count=len(keys)) for text, keys in found.items()]
    return tuple(sorted(counted, key=lambda e: (-e.count, e.key)))


def _listed(store: Store, array: str, schema: CubeSchema) -> set[TileKey]:
    """The tiles whose chunk of an array is there. Extra dimensions, never cut, end a chunk's name in zeros."""
    rank, prefix = len(schema.tiles), f"{array}/c/"
    found: set[TileKey] = set()
    for name in place.keys(store, f"{array}/c"):
        parts = name.removeprefix(prefix).split("/")
        if len(parts) >= rank and all(p.isdecimal() for p in parts):
            key = tuple(int(p) for p in parts[:rank])
            if all(k < t for k, t in zip(key, schema.tiles, strict=True)):
                found.add(key)
    return found


def _texts(store: Store, path: str, keys: list[TileKey]) -> Iterator[tuple[TileKey, str]]:
    """The texts of an array at some tiles; a chunk that does not decode is left out."""
    array: zarr.Array[Any] = zarr.open_array(store, path=path, mode="r", zarr_format=3)
    yield from _block(array, keys, tuple((0, length) for length in array.shape))


def _block(
    array: zarr.Array[Any], keys: list[TileKey], bounds: tuple[tuple[int, int], ...]
) -> Iterator[tuple[TileKey, str]]:
    """The texts inside some bounds: read at once where they are few and whole, otherwise half by half."""
    if not keys:
        return
    lengths = [stop - start for start, stop in bounds]
    if math.prod(lengths) <= _AT_ONCE:
        try:
            texts = np.asarray(array[tuple(slice(*b) for b in bounds)])  # one call reads chunks side by side
        except Exception:  # a damaged chunk, of whatever kind: it is found by halving
            if max(lengths) == 1:
                return
        else:
            for key in keys:
                yield key, str(texts[tuple(k - start for k, (start, _) in zip(key, bounds, strict=True))])
            return
    dim = lengths.index(max(lengths))
    start, stop = bounds[dim]
    middle = (start + stop) // 2
    for half in ((start, middle), (middle, stop)):
        inside = [key for key in keys if half[0] <= key[dim] < half[1]]
        yield from _block(array, inside, (*bounds[:dim], half, *bounds[dim + 1 :]))


def _receipts(store: Store, schema: CubeSchema, written: set[TileKey]) -> Iterator[tuple[TileKey, Receipt]]:
    for key, text in _texts(store, "ledger/receipt", sorted(written)):
        try:
            receipt = Receipt.from_text(text)
        except ValueError:
            continue
        if receipt.key == key:
            yield key, receipt


def _agrees(url: str, schema: CubeSchema, key: TileKey, receipt: Receipt) -> bool:
    try:
        return digest(read_tile(url, key), schema.coordinates(key)) == receipt.digest
    except StoreError:
        return False
