"""A user's table: in goes the name of a file, out comes an Arrow table, or what is wrong with the file.

Always true: column names are stripped, not empty, and distinct up to case; text that only looks like a number ("001")
stays text; bytes never come out where text went in.
"""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, feather, parquet

from predcube.storage.failures import TableError
from predcube.storage.place import local_path

_DELIMITERS = ",;\t|"
_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


def read_table(url: str) -> pa.Table:
    """The table in a CSV, Parquet or Arrow (Feather) file, by the name's ending.

    CSV: separated by commas, semicolons, tabs or bars; UTF-8 or UTF-16, or else read as Latin-1. A column of numbers
    that begin with 0 ("001", identifiers) stays text. Raises TableError where the file is missing, empty, of
    another kind, torn, or two of its names are equal up to case and spaces.
    """
    path = _file(url)
    readers: dict[str, Callable[[Path], pa.Table]] = {
        ".csv": _read_csv,
        ".tsv": _read_csv,
        ".txt": _read_csv,
        ".parquet": lambda p: parquet.read_table(p, partitioning=None),
        ".pq": lambda p: parquet.read_table(p, partitioning=None),
        ".arrow": _read_arrow,
        ".feather": _read_arrow,
        ".ipc": _read_arrow,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise TableError(f"table {url!r} ends in {path.suffix!r}; give a .csv, .parquet or .arrow file")
    try:
        table = reader(path)
    except (pa.ArrowException, OSError, UnicodeError) as e:
        reason = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        raise TableError(f"table {url!r} cannot be read as {path.suffix.lower()}: {reason[:200]}") from e
    return table.rename_columns(_names(url, table.column_names))


def column(table: pa.Table, name: str, place: str) -> "pa.ChunkedArray[Any]":
    """A column by its name. ``place`` says where the name stands, for the message. Raises TableError."""
    if name not in table.column_names:
        near = get_close_matches(name, table.column_names, 1, 0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(table.column_names)}"
        raise TableError(f"{place}: the table has no column {name!r}; {hint}")
    return table.column(name)


def numbers(table: pa.Table, name: str, place: str) -> NDArray[np.float64]:
    """A column as float64 (missing: NaN). Raises TableError, with the first value that is no number."""
    found = column(table, name, place)
    kind = found.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return np.asarray(found.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    if pa.types.is_boolean(kind):
        return np.asarray(found.cast(pa.uint8()).cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    present = found.drop_null()
    values = (v.as_py() for v in present)
    example = next((f", for example {v!r}" for v in values if not (isinstance(v, str) and _number(v))), "")
    raise TableError(f"{place}: column {name!r} is {kind}{example}; numbers are needed")


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_matrix(url: str) -> NDArray[np.uint8]:
    """A matrix of labels 0 and 1, one hypothesis a row: a NumPy ``.npy`` file, or a table without other columns, with a
    header or (CSV) without.

    Raises TableError where the file is missing, is not two-dimensional or holds anything but 0 and 1, with the place.
    """
    path = _file(url)
    if path.suffix.lower() == ".npy":
        try:
            matrix = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as e:
            raise TableError(f"matrix {url!r} cannot be read as .npy: {e}") from e
    else:
        table = _without_header(path) or read_table(url)
        matrix = np.stack([numbers(table, name, url) for name in table.column_names], axis=1)
    if matrix.ndim != 2 or not matrix.size:
        raise TableError(f"matrix {url!r} has the shape {matrix.shape}; give one row a hypothesis, one column a point")
    if matrix.dtype.kind not in "biuf":
        raise TableError(f"matrix {url!r} holds {matrix.dtype}, not numbers; give labels 0 and 1")
    bad = np.argwhere(~np.isin(matrix, (0, 1)))
    if len(bad):
        i, j = bad[0]
        raise TableError(
            f"matrix {url!r} has {matrix[i, j]} in row {i}, column {j} (and {len(bad) - 1} more such entries); "
            "every entry must be 0 or 1"
        )
    labels: NDArray[np.uint8] = matrix.astype(np.uint8)
    return labels


def _without_header(path: Path) -> pa.Table | None:
    """The table of a CSV file whose first line is labels already. (0, 1, 2, … are the names that pandas writes.)"""
    if path.suffix.lower() not in (".csv", ".tsv", ".txt"):
        return None
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        first = lines.readline()
    delimiter = _delimiter(first)
    fields = [field.strip() for field in first.strip().split(delimiter)]
    if not set(fields) <= {"0", "1"} or fields == [str(i) for i in range(len(fields))]:
        return None
    names = [f"column_{i}" for i in range(len(fields))]
    try:
        options = csv.ReadOptions(column_names=names)
        return csv.read_csv(path, read_options=options, parse_options=csv.ParseOptions(delimiter=delimiter))
    except pa.ArrowException as e:
        raise TableError(f"matrix {str(path)!r} cannot be read: {str(e).splitlines()[0][:200]}") from e


def _file(url: str) -> Path:
    path = local_path(url)
    if path.is_dir():
        raise TableError(f"table {url!r} is a folder; give a file")
    if not path.exists():
        beside = [p.name for p in path.parent.iterdir() if p.is_file()] if path.parent.is_dir() else []
        near = get_close_matches(path.name, beside, 1)
        hint = f"did you mean {str(path.with_name(near[0]))!r}?" if near else "check the path"
        raise TableError(f"there is no table at {url!r}; {hint}")
    return path


def _names(url: str, names: list[str]) -> list[str]:
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


def _read_arrow(path: Path) -> pa.Table:
    return feather.read_table(path, memory_map=False)


def _read_csv(path: Path) -> pa.Table:
    raw = path.read_bytes()
    encoding = next((name for bom, name in _BOMS.items() if raw.startswith(bom)), "utf-8")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        text = raw.decode("latin-1")  # Arrow would hand out bytes
    if not text.strip():
        raise pa.ArrowInvalid("it is empty")
    delimiter = _delimiter(text)
    data = pa.py_buffer(text.encode())
    table = _parse_csv(data, delimiter)
    if re.search(r'"(NA|N/A|NaN|nan|null|NULL)?"', text):
        # Quoted, a missing value is a word in a column of text, but still missing in a column of numbers.
        table = _exchange(table, _parse_csv(data, delimiter, quoted_null=True), pa.types.is_string, _is_number)
    if re.search(rf'(?:^|[{_DELIMITERS}\n\r])\s*"?[+-]?0[0-9]', text):
        # Some field begins like "001": see which columns, as they were written.
        types = {field.name: pa.string() for field in table.schema if _is_number(field.type)}
        written = _parse_csv(data, delimiter, types)
        for place, name in enumerate(table.column_names):
            if name in types and any(re.match(r"\s*[+-]?0[0-9]", v or "") for v in written.column(place).to_pylist()):
                table = table.set_column(place, name, written.column(place))
    return table


def _parse_csv(
    data: pa.Buffer, delimiter: str, types: Mapping[str, pa.DataType] | None = None, *, quoted_null: bool = False
) -> pa.Table:
    source: Any = pa.BufferReader(data)
    return csv.read_csv(
        source,
        parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=dict(types or {}), strings_can_be_null=True, quoted_strings_can_be_null=quoted_null
        ),
    )


def _exchange(table: pa.Table, other: pa.Table, was: Callable[[Any], bool], becomes: Callable[[Any], bool]) -> pa.Table:
    """The table with those columns of the other that turn one kind into another."""
    for place, field in enumerate(table.schema):
        if was(field.type) and becomes(other.schema.field(place).type):
            table = table.set_column(place, field.name, other.column(place))
    return table


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _delimiter(text: str) -> str:
    """The separator that stands most often in the header, outside quotes."""
    header = re.sub(r'"[^"]*"', "", text.lstrip("\n\r").split("\n", 1)[0])
    return max(_DELIMITERS, key=header.count)
