"""A cube for other programs: in go a store and a file's name, out come Parquet, Arrow, CSV or NetCDF files.

Always true: a file is whole or not there; labels, integers and booleans keep their types; a value that is missing is
null, never a number; the store is only read.
"""

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xarray
from numpy.typing import NDArray
from pyarrow import csv, parquet

from predcube.storage.cube import open_cube, read_schema
from predcube.storage.failures import StoreError
from predcube.storage.ledger import damage_named, errors, tile_states
from predcube.storage.place import local_path
from predcube.storage.schema import CubeSchema

_ROWS = 1 << 18  # rows held in memory at a time

type Writer = Callable[[pa.Table], None]


def export(url: str, file: str | Path, surfaces: xarray.Dataset | None = None) -> tuple[Path, ...]:
    """Writes the cube beside or as ``file``, replacing what is there, and returns the files written.

    ``.nc``: one NetCDF file with the groups of the cube. ``.parquet``, ``.arrow`` (or ``.feather``), ``.csv``: FILE
    has the surfaces, a row a cell (those without an axis repeated along it); ``NAME.trials.EXT`` the trials;
    ``NAME.ledger.EXT`` a row a tile. Surfaces and trials along an axis of their own (``delta_epsilon``) go to
    ``NAME.AXIS.EXT`` and ``NAME.trials_AXIS.EXT``. ``surfaces`` stand in where the store has none yet.

    Raises StoreError for another ending, a place that cannot be written or lies in the store, and where there are no
    surfaces.
    """
    path = Path(file)
    _check_target(url, path)
    tree = open_cube(url)
    schema = read_schema(url)
    reduced = tree.children["surfaces"].to_dataset(inherit=False) if "surfaces" in tree.children else surfaces
    if reduced is None:
        raise StoreError(f"store {url!r} has no surfaces yet; run its sweep to the end, which reduces them")
    with damage_named(url), ExitStack() as undo:
        try:
            written = (
                _netcdf(tree, reduced, path, undo)
                if path.suffix.lower() == ".nc"
                else _tabular(url, tree.children["trials"].to_dataset(inherit=False), reduced, schema, path, undo)
            )
            # All or nothing, as nearly as a file system allows: names change only once every file is whole.
            for partial, final in written:
                partial.replace(final)
        except OSError as e:
            raise StoreError(f"{str(path)!r} cannot be written: {e.strerror or e}; choose another place") from e
    return tuple(final for _, final in written)


def _check_target(url: str, path: Path) -> None:
    if path.suffix.lower() not in _OPENERS.keys() | {".nc"}:
        raise StoreError(f"file {str(path)!r} ends in {path.suffix!r}; give .parquet, .arrow, .csv or .nc")
    store = local_path(url).resolve()
    if store == path.resolve() or store in path.resolve().parents:
        raise StoreError(f"file {str(path)!r} lies in the store; choose a place outside {url!r}")
    if path.is_dir() or not path.parent.is_dir():
        why = "is a folder" if path.is_dir() else f"stands in {str(path.parent)!r}, which does not exist"
        raise StoreError(f"file {str(path)!r} {why}; choose another place")


def _partial(final: Path, undo: ExitStack) -> Path:
    """A name beside the final one, removed unless it has been renamed."""
    partial = final.with_name(f".{final.name}.{os.getpid()}.{secrets.token_hex(4)}.partial")
    undo.callback(_drop, partial)
    return partial


def _drop(partial: Path) -> None:
    with suppress(OSError):  # a file system that may not be written says so even where there is nothing
        partial.unlink(missing_ok=True)


def _netcdf(tree: xarray.DataTree, reduced: xarray.Dataset, path: Path, undo: ExitStack) -> list[tuple[Path, Path]]:
    groups = {name: child.to_dataset(inherit=False) for name, child in tree.children.items()} | {"surfaces": reduced}
    clean = {f"/{name}": _for_netcdf(data) for name, data in sorted(groups.items())}
    whole = xarray.DataTree.from_dict({"/": xarray.Dataset(attrs=_netcdf_attributes(tree.attrs)), **clean})
    encoding = {
        group: {str(name): _encoding(variable) for name, variable in data.variables.items()}
        for group, data in clean.items()
    }
    partial = _partial(path, undo)
    whole.to_netcdf(partial, engine="h5netcdf", format="NETCDF4", encoding=encoding)
    return [(partial, path)]


def _encoding(variable: xarray.Variable) -> dict[str, Any]:
    compressed = {"zlib": True, "complevel": 4} if variable.dtype.kind in "fiu" and variable.ndim else {}
    return {"_FillValue": None, **compressed}


def _for_netcdf(data: xarray.Dataset) -> xarray.Dataset:
    fresh = data.copy()
    for variable in fresh.variables.values():
        attributes = _netcdf_attributes(variable.attrs)
        if "flag_values" in attributes:
            attributes["flag_values"] = np.asarray(attributes["flag_values"], variable.dtype)
        variable.attrs, variable.encoding = attributes, {}
    fresh.attrs = _netcdf_attributes(data.attrs)
    return fresh


def _netcdf_attributes(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """NetCDF has no booleans."""
    return {str(k): np.int8(v) if isinstance(v, bool) else v for k, v in attributes.items()}


def _tabular(
    url: str, trials: xarray.Dataset, reduced: xarray.Dataset, schema: CubeSchema, path: Path, undo: ExitStack
) -> list[tuple[Path, Path]]:
    written: list[tuple[Path, Path]] = []
    extra = [axis.name for axis in schema.extra]
    order = [axis.name for axis in schema.axes]
    parts = [(own, _of(reduced, own, extra), own) for own in _families(reduced, extra)]
    trial_parts = [(own, _of(trials, own, extra)) for own in _families(trials, extra)]
    parts += [(f"trials_{own}" if own else "trials", data, own) for own, data in trial_parts]
    for name, data, own in parts:
        final = path.with_name(f"{path.stem}.{name}{path.suffix}") if name else path
        dims = [d for d in (*order, own) if d in data.dims] + sorted(set(map(str, data.dims)) - {*order, own})
        written.append((_partial(final, undo), final))
        _write(written[-1][0], path.suffix, _rows(data, dims))
    final = path.with_name(f"{path.stem}.ledger{path.suffix}")
    written.append((_partial(final, undo), final))
    _write(written[-1][0], path.suffix, iter([_ledger(url, schema)]))
    return written


def _families(data: xarray.Dataset, extra: Sequence[str]) -> list[str]:
    """The extra axes that variables have, '' for those without one first."""
    found = {next((str(d) for d in v.dims if d in extra), "") for v in data.data_vars.values()}
    return sorted(found | {""})


def _of(data: xarray.Dataset, own: str, extra: Sequence[str]) -> xarray.Dataset:
    wanted = {own} - {""}
    names = [str(n) for n, v in data.data_vars.items() if {d for d in v.dims if d in extra} == wanted]
    return data[sorted(names)]


def _rows(data: xarray.Dataset, dims: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of a data set over the product of its dimensions, in row-major order, a slab at a time."""
    if not dims:
        yield _slab(data, dims)
        return
    per_step = int(np.prod([data.sizes[d] for d in dims[1:]], dtype=np.int64))
    steps = max(1, _ROWS // max(1, per_step))
    for start in range(0, data.sizes[dims[0]], steps):
        yield _slab(data.isel({dims[0]: slice(start, start + steps)}), dims)


def _slab(data: xarray.Dataset, dims: Sequence[str]) -> pa.Table:
    shape = tuple(data.sizes[d] for d in dims)
    columns: dict[str, pa.Array[Any]] = {}
    for name in (*dims, *map(str, data.data_vars)):
        array = data[name] if name in data.variables else xarray.DataArray(np.arange(data.sizes[name]), dims=[name])
        present = [d for d in dims if d in array.dims]
        values = array.variable.transpose(*present).values
        values = values.reshape(tuple(array.sizes[d] if d in present else 1 for d in dims))
        columns[name] = _arrow(np.broadcast_to(values, shape).ravel())
    fields = [pa.field(n, c.type, metadata=_field_metadata(data, n)) for n, c in columns.items()]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def _arrow(values: NDArray[Any]) -> "pa.Array[Any]":
    if values.dtype.kind == "f":
        numbers: pa.Array[Any] = pa.array(values, mask=np.isnan(values))
        return numbers
    if values.dtype.kind in "UOT":
        return pa.array(values.tolist(), pa.string())
    column: pa.Array[Any] = pa.array(values)
    return column


def _field_metadata(data: xarray.Dataset, name: str) -> dict[str, str]:
    attributes = data[name].attrs if name in data.variables else {}
    return {str(k): v if isinstance(v, str) else json.dumps(v) for k, v in attributes.items()}


def _ledger(url: str, schema: CubeSchema) -> pa.Table:
    states = tile_states(url)
    said = errors(url)
    word = dict.fromkeys(states.done, "done") | dict.fromkeys(states.failed, "failed")
    tiles = list(schema.keys())
    receipts = [states.receipts.get(key) for key in tiles]
    columns: dict[str, Any] = {
        f"tile_{axis.name}": pa.array([key[i] for key in tiles], pa.int64()) for i, axis in enumerate(schema.axes)
    }
    columns["state"] = pa.array([word.get(key, "missing") for key in tiles], pa.string())
    for name, kind in (
        ("digest", pa.string()),
        ("cpu_seconds", pa.float64()),
        ("wall_seconds", pa.float64()),
        ("worker", pa.string()),
        ("attempt", pa.int64()),
        ("failed", pa.int64()),
    ):
        columns[name] = pa.array([getattr(r, name) if r else None for r in receipts], kind)
    columns["error"] = pa.array([said.get(key) for key in tiles], pa.string())
    return pa.table(columns)


def _write(path: Path, suffix: str, slabs: Iterator[pa.Table]) -> None:
    first = next(slabs)
    with ExitStack() as stack:
        write = _OPENERS[suffix.lower()](path, first.schema, stack)
        write(first)
        for slab in slabs:
            write(slab)


def _open_parquet(path: Path, schema: pa.Schema, stack: ExitStack) -> Writer:
    return stack.enter_context(parquet.ParquetWriter(path, schema, compression="zstd")).write_table


def _open_arrow(path: Path, schema: pa.Schema, stack: ExitStack) -> Writer:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    return stack.enter_context(pa.ipc.new_file(str(path), schema, options=options)).write_table


def _open_csv(path: Path, schema: pa.Schema, stack: ExitStack) -> Writer:
    return stack.enter_context(csv.CSVWriter(str(path), schema)).write_table


_OPENERS: Mapping[str, Callable[[Path, pa.Schema, ExitStack], Writer]] = {
    ".parquet": _open_parquet,
    ".arrow": _open_arrow,
    ".feather": _open_arrow,
    ".csv": _open_csv,
}
