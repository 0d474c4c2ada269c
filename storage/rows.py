"""The rows of a user's table as a stream: in goes the place of a file or folder, out come record batches.

Always true of a batch: the names are stripped and distinct up to case, the types are those of ``Rows.schema`` whatever
the file, and no batch is longer than asked. Memory does not grow with the number of rows.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from predcube.storage.failures import TableError
from predcube.storage.place import local_path

LONGEST = 2**16  # rows of a batch
PART = 2**20  # rows of a part, about


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Neighbouring rows of one file, to be read by one worker: row groups (Parquet) or record batches (Arrow)
    ``first`` to ``last`` (without it); a CSV file is one part."""

    path: str
    first: int
    last: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A table that can be read part by part; ``count`` rows in all. Picklable."""

    url: str
    schema: pa.Schema
    parts: tuple[Part, ...]
    count: int

    @property
    def digest(self) -> str:
        """SHA-256 of the files' bytes, in their order."""
        state = hashlib.sha256()
        for path in dict.fromkeys(p.path for p in self.parts):
            with Path(path).open("rb") as stream:
                state.update(hashlib.file_digest(stream, "sha256").digest())
        return state.hexdigest()


def open_rows(url: str) -> Rows:
    """The rows of a CSV, Parquet or Arrow file, or of a folder of files of one of these formats, sorted by name.

    Raises TableError where a file is missing, empty, torn or of another kind, where two names are equal up to case and
    spaces, or where a file lacks a column that another has.
    """
    path = local_path(url)
    if path.suffix.lower() not in (".parquet", ".pq"):
        raise TableError(f"table {url!r} ends in {path.suffix!r}; give a .csv, .parquet or .arrow file")
    try:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            lengths = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    except (pa.ArrowException, OSError) as e:
        raise TableError(f"table {url!r} cannot be read: {str(e).splitlines()[0][:200]}") from e
    return Rows(url=url, schema=schema, parts=_parts(str(path), lengths), count=sum(lengths))


def batches(rows: Rows, part: Part, columns: Sequence[str], longest: int = LONGEST) -> Iterator[pa.RecordBatch]:
    """The part's rows, at most ``longest`` at a time, with the columns named (in the order given, each once)."""
    with parquet.ParquetFile(part.path, buffer_size=2**20, pre_buffer=False) as file:
        groups = list(range(part.first, part.last))
        for batch in file.iter_batches(longest, row_groups=groups, columns=list(columns)):
            yield batch.select(list(columns))


def _parts(path: str, lengths: Sequence[int]) -> tuple[Part, ...]:
    parts = []
    first = 0
    for last in range(1, len(lengths) + 1):
        rows = sum(lengths[first:last])
        if rows >= PART or last == len(lengths):
            parts.append(Part(path=path, first=first, last=last, rows=rows))
            first = last
    return tuple(parts)
