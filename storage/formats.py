"""The formats of a user's files: in goes a path, out come what the file says of itself and its record batches.

Always true: memory does not grow with the number of rows, and whatever is wrong with a file is a TableError that names
it.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from predcube.storage import delimited
from predcube.storage.delimited import Column, Delimited
from predcube.storage.failures import TableError
from predcube.storage.widening import plain

_DECODED = 2**16  # rows that are decoded at once: more take more memory, fewer more time
_BUFFER = 2**16  # bytes of each column that wait to be decoded
_MAPPED = 2**20  # rows of a record batch from which on it is mapped, not read

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What a file says of itself: the names of its columns as they stand, their types, and the rows of each unit that
    can be read by itself (row groups of Parquet, record batches of Arrow, the whole of a CSV file or Arrow stream)."""

    path: str
    format: str
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    lengths: tuple[int, ...]
    written: Delimited | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file of a table: the names of its columns as they stand, in the table's order; for CSV, how it is written
    and what each column is to be read as."""

    path: str
    format: str
    names: tuple[str, ...]
    written: Delimited | None = None
    columns: tuple[Column, ...] = ()


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turns what is wrong with a file into a message that names it."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError, KeyError) as e:
        reason = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        kind = f" as {Path(path).suffix.lower()}" if FORMATS.get(Path(path).suffix.lower()) else ""
        raise TableError(f"table {path!r} cannot be read{kind}: {reason[:200]}") from e


def open_file(path: Path) -> Opened:
    """What a file says of itself. A CSV file is read to its end. Raises TableError."""
    with reading(str(path)):
        return {"csv": _open_csv, "parquet": _open_parquet, "arrow": _open_arrow}[FORMATS[path.suffix.lower()]](path)


def read_file(file: File, first: int, last: int, places: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """The rows of the units ``first`` to ``last`` (without it), in batches of the file's own lengths and types, with at
    least the columns at ``places``, under the names they have in the file. Raises TableError."""
    names = [file.names[i] for i in places]
    with reading(file.path):
        match file.format:
            case "csv" if file.written is not None:
                yield from delimited.stream(file.written, {file.names[i]: file.columns[i] for i in places})
            case "parquet":
                yield from _ahead(_read_parquet(file.path, range(first, last), names))
            case "arrow":
                yield from _ahead(_read_arrow(file.path, range(first, last), names))
            case _:
                with pa.OSFile(file.path, "rb") as source, pa.ipc.open_stream(source) as stream:
                    yield from stream


def _ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same, each decoded while the one before is worked on. (Arrow's reader of CSV does so by itself.)"""
    with ThreadPoolExecutor(1, "decoding") as decoder:
        coming = decoder.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = decoder.submit(next, batches, None)
            yield batch


def _open_csv(path: Path) -> Opened:
    written = delimited.settle(path)
    return Opened(
        path=str(path),
        format="csv",
        names=written.names,
        types=tuple(column.type for column in written.columns),
        lengths=(written.count,),
        written=written,
    )


def _open_parquet(path: Path) -> Opened:
    with parquet.ParquetFile(path) as file:
        return Opened(
            path=str(path),
            format="parquet",
            names=tuple(file.schema_arrow.names),
            types=tuple(plain(kind) for kind in file.schema_arrow.types),
            lengths=tuple(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)),
        )


def _read_parquet(path: str, groups: range, names: list[str]) -> Iterator[pa.RecordBatch]:
    # Not pyarrow.dataset: its scanner holds whole row groups, a million rows by pyarrow's own default.
    with parquet.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False) as source:
        yield from source.iter_batches(_DECODED, row_groups=list(groups), columns=names)


def _open_arrow(path: Path) -> Opened:
    with pa.memory_map(str(path)) as source:
        magic = source.read(8)
        source.seek(0)
        if magic.startswith(b"FEA1"):
            raise pa.ArrowInvalid("it is of the old version 1 of Feather; write it again as version 2")
        if magic.startswith(b"ARROW1"):
            # One column of a batch tells how many rows it has; the others are not touched.
            narrow = _arrow(source, [0])
            lengths = [narrow.get_batch(i).num_rows for i in range(narrow.num_record_batches)]
            schema = pa.ipc.open_file(source).schema
        else:
            with pa.ipc.open_stream(source) as stream:
                schema = stream.schema
                lengths = [sum(batch.num_rows for batch in stream)]
    return Opened(
        path=str(path),
        format="arrow" if magic.startswith(b"ARROW1") else "stream",
        names=tuple(schema.names),
        types=tuple(plain(kind) for kind in schema.types),
        lengths=tuple(lengths),
    )


def _read_arrow(path: str, units: range, names: list[str]) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(path, "rb") as file, pa.memory_map(path) as memory:
        schema = pa.ipc.open_file(memory).schema
        fields = sorted(schema.get_field_index(name) for name in names)
        read, mapped = (_arrow(source, fields) for source in (file, memory))
        narrow = _arrow(memory, fields[:1])
        for i in units:
            # A table written as one batch is looked at where it lies, and never copied whole.
            yield (read if narrow.get_batch(i).num_rows < _MAPPED else mapped).get_batch(i)


def _arrow(source: Any, fields: list[int]) -> pa.RecordBatchFileReader:
    return pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=fields))
