"""The rows of a user's table as a stream: in goes the place of a file or folder, out come record batches.

Always true of a batch: the names are stripped and distinct up to case, the types are those of ``Rows.schema`` whatever
the file, and no batch is longer than asked. Memory does not grow with the number of rows.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa

from predcube.storage.delimited import Column
from predcube.storage.failures import StoreError, TableError
from predcube.storage.formats import FORMATS, File, Opened, open_file, read_file, reading
from predcube.storage.place import local_path
from predcube.storage.widening import widen, widened

LONGEST = 2**16  # rows of a batch
PART = 2**20  # rows of a part, about


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Neighbouring rows of one file (by its number), to be read by one worker: row groups (Parquet) or record batches
    (Arrow) ``first`` to ``last`` (without it); a CSV file is one part."""

    file: int
    first: int
    last: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A table that can be read part by part; ``count`` rows in all. Picklable."""

    url: str
    schema: pa.Schema
    files: tuple[File, ...]
    parts: tuple[Part, ...]
    count: int

    @property
    def digest(self) -> str:
        """SHA-256 of the files' bytes, in their order. Reads them."""
        state = hashlib.sha256()
        for file in self.files:
            with reading(file.path), Path(file.path).open("rb") as stream:
                state.update(hashlib.file_digest(stream, "sha256").digest())
        return state.hexdigest()


def open_rows(url: str) -> Rows:
    """The rows of a CSV, Parquet or Arrow (Feather) file, or of a folder of files of one of these formats, in the order
    of their names. Hidden files (``.…``, ``_…``) are passed over.

    A column that has several types is widened: integer, float, text. A CSV file is read once to know its types.
    Raises TableError where a file is missing, empty, torn or of another kind, where two names are equal up to case and
    spaces, or where a file lacks a column that another has.
    """
    opened = [open_file(path) for path in _paths(url)]
    names = _names(url, opened[0].names)
    if not names:
        raise TableError(f"table {url!r} has no columns")
    orders = [_order(url, names, opened[0].path, file) for file in opened]
    joined: tuple[Column, ...] = ()
    if opened[0].written is not None:
        known = [[o.written.columns[i] for i in order] for o, order in zip(opened, orders, strict=True) if o.written]
        joined = tuple(reduce(Column.join, columns) for columns in zip(*known, strict=True))
        types = [column.type for column in joined]
    else:
        types = [
            _type(url, name, [o.types[order[i]] for o, order in zip(opened, orders, strict=True)])
            for i, name in enumerate(names)
        ]
    files = tuple(
        File(
            path=file.path,
            format=file.format,
            names=tuple(file.names[i] for i in order),
            written=file.written,
            columns=joined,
        )
        for file, order in zip(opened, orders, strict=True)
    )
    return Rows(
        url=url,
        schema=pa.schema(list(zip(names, types, strict=True))),
        files=files,
        parts=tuple(part for number, file in enumerate(opened) for part in _parts(number, file.lengths)),
        count=sum(sum(file.lengths) for file in opened),
    )


def batches(rows: Rows, part: Part, columns: Sequence[str], longest: int = LONGEST) -> Iterator[pa.RecordBatch]:
    """The part's rows, at most ``longest`` at a time, with the columns named (in the order given, each once), or with
    the first one where none is named: a batch without columns would have no rows.

    Raises TableError where there is no such column or the file is torn.
    """
    names = list(columns) or rows.schema.names[:1]
    for name in names:
        if name not in rows.schema.names:
            raise TableError(f"table {rows.url!r} has no column {name!r}; {nearest(name, rows.schema.names)}")
    schema = pa.schema([rows.schema.field(name) for name in names])
    file = rows.files[part.file]
    places = [rows.schema.get_field_index(name) for name in names]
    for batch in read_file(file, part.first, part.last, places):
        values = [_column(file, batch, i, schema.field(at).type) for at, i in enumerate(places)]
        found = pa.RecordBatch.from_arrays(values, schema=schema)
        # Slices of a long batch are no copies.
        for start in range(0, found.num_rows, longest):
            yield found.slice(start, longest)


def _column(file: File, batch: pa.RecordBatch, place: int, kind: pa.DataType) -> "pa.Array[Any]":
    with reading(file.path):  # changed since it was opened, or text that is no UTF-8
        return widen(batch.column(file.names[place]), kind)


def nearest(name: str, names: Sequence[str]) -> str:
    """What the user may have meant, for a message."""
    known = {n.casefold(): n for n in names}
    near = get_close_matches(name.casefold(), known, 1, 0.5)
    return f"did you mean {known[near[0]]!r}?" if near else f"there are {', '.join(names)}"


def existing(url: str) -> Path:
    """The file or folder at a URL. Raises TableError, with a name like it, where there is none."""
    if not url.strip():
        raise TableError("the table's path is empty; give a .csv, .parquet or .arrow file, or a folder of them")
    try:
        path = local_path(url)
        if path.exists():
            return path
        beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    except StoreError as e:
        raise TableError(str(e).replace("store", "table")) from None
    except (OSError, ValueError) as e:
        raise TableError(f"table {url!r} cannot be looked for: {getattr(e, 'strerror', None) or e}") from None
    near = get_close_matches(path.name, beside, 1)
    hint = f"did you mean {str(path.with_name(near[0]))!r}?" if near else "check the path"
    raise TableError(f"there is no table at {url!r}; {hint}")


def _paths(url: str) -> list[Path]:
    """The table's files, all of one format."""
    path = existing(url)
    if not path.is_dir():
        if path.suffix.lower() not in FORMATS:
            raise TableError(f"table {url!r} ends in {path.suffix!r}; give a .csv, .parquet or .arrow file")
        if not path.is_file():  # a pipe would be waited for, for ever
            raise TableError(f"table {url!r} is a pipe or a device; write it to a file first")
        return [path]
    with reading(url):
        paths = sorted(p for p in path.iterdir() if not p.name.startswith((".", "_")))
    if not paths:
        raise TableError(f"table {url!r} is an empty folder; give a file, or a folder of files of one format")
    for p in paths:
        if p.is_dir() or p.suffix.lower() not in FORMATS:
            raise TableError(
                f"table {url!r} has {p.name!r} in it; a folder holds .csv, .parquet or .arrow files and nothing else"
            )
        if not p.is_file():
            raise TableError(f"table {url!r}: {p.name!r} is a pipe, or a link to nothing; take it out of the folder")
        if FORMATS[p.suffix.lower()] != FORMATS[paths[0].suffix.lower()]:
            raise TableError(
                f"table {url!r} has {paths[0].name!r} and {p.name!r} in it; a folder holds files of one format"
            )
    return paths


def _parts(number: int, lengths: Sequence[int]) -> Iterator[Part]:
    """Parts of about a million rows: the fewest neighbouring units that have so many."""
    first = rows = 0
    for last, length in enumerate(lengths, 1):
        rows += length
        if rows >= PART or (last == len(lengths) and rows):
            yield Part(file=number, first=first, last=last, rows=rows)
            first, rows = last, 0


def _names(url: str, names: Sequence[str]) -> list[str]:
    """The names, stripped; TableError where two are equal up to case."""
    taken: dict[str, str] = {}
    stripped = []
    for place, name in enumerate(names, 1):
        bare = name.strip() or f"column_{place}"  # the index that pandas writes without a name
        if bare.casefold() in taken:
            raise TableError(
                f"table {url!r} has the columns {taken[bare.casefold()]!r} and {name!r}; rename one of them"
            )
        taken[bare.casefold()] = name
        stripped.append(bare)
    return stripped


def _order(url: str, names: Sequence[str], first: str, file: Opened) -> list[int]:
    """Where each of the table's columns stands in the file."""
    places = {name.casefold(): place for place, name in enumerate(_names(file.path, file.names))}
    known = {name.casefold(): name for name in names}
    for here, there, lacking in ((places, known, file.path), (known, places, first)):
        for name in there:
            if name not in here:
                has = first if lacking == file.path else file.path
                raise TableError(
                    f"table {url!r}: {Path(has).name!r} has a column {name!r} that {Path(lacking).name!r} has not; "
                    "give every file the same columns"
                )
    return [places[name.casefold()] for name in names]


def _type(url: str, name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    try:
        return reduce(widened, types[1:], types[0])
    except TableError as e:
        raise TableError(f"table {url!r}: column {name!r}: {e}; write both files alike") from None
