"""A user's table: in goes the name of a file, out comes an Arrow table, or what is wrong with the file.

Always true: column names are stripped, not empty, and distinct up to case; text that only looks like a number ("001")
stays text; bytes never come out where text went in.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from predcube.storage.delimited import separator
from predcube.storage.failures import TableError
from predcube.storage.rows import batches, existing, nearest, open_rows


def read_table(url: str) -> pa.Table:
    """The table in a CSV, Parquet or Arrow (Feather) file, by the name's ending, or in a folder of such files.

    CSV: separated by commas, semicolons, tabs or bars; UTF-8 or UTF-16, or else read as Latin-1. A column of numbers
    that begin with 0 ("001", identifiers) stays text. Raises TableError where the file is missing, empty, of
    another kind, torn, or two of its names are equal up to case and spaces. What does not fit memory is read by
    ``rows.batches``, from which this table is put together.
    """
    rows = open_rows(url)
    found = (batch for part in rows.parts for batch in batches(rows, part, rows.schema.names))
    return pa.Table.from_batches(found, rows.schema)


def column(table: pa.Table, name: str, place: str) -> "pa.ChunkedArray[Any]":
    """A column by its name. ``place`` says where the name stands, for the message. Raises TableError."""
    if name not in table.column_names:
        raise TableError(f"{place}: the table has no column {name!r}; {nearest(name, table.column_names)}")
    return table.column(name)


def numbers(table: pa.Table, name: str, place: str) -> NDArray[np.float64]:
    """A column as float64 (missing: NaN). Raises TableError, with the first value that is no number, and for integers
    beyond 2^53, of which several would become one number."""
    found = column(table, name, place)
    kind = found.type
    if pa.types.is_integer(kind):
        try:
            return np.asarray(found.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
        except pa.ArrowInvalid:
            large = max(abs(pc.min(found).as_py()), abs(pc.max(found).as_py()))
            raise TableError(
                f"{place}: column {name!r} has integers up to {large} in size, and beyond 2^53 double precision merges "
                "neighbours; subtract an offset, or leave the column out if it only names rows"
            ) from None
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return np.asarray(found.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    if pa.types.is_boolean(kind):
        return np.asarray(found.cast(pa.uint8()).cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    present = found.drop_null()
    values = (v.as_py() for v in present)
    example = next((f", for example {v!r}" for v in values if not (isinstance(v, str) and _number(v))), "")
    comma = "; write decimals with a point" if re.fullmatch(r", for example '[+-]?[0-9.]*,[0-9]+'", example) else ""
    raise TableError(f"{place}: column {name!r} is {kind}{example}; numbers are needed{comma}")


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
    path = existing(url)
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
    if path.suffix.lower() not in (".csv", ".tsv", ".txt") or path.is_dir():
        return None
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        first = lines.readline()
    delimiter, _ = separator(first)
    fields = [field.strip() for field in first.strip().split(delimiter)]
    if not set(fields) <= {"0", "1"} or fields == [str(i) for i in range(len(fields))]:
        return None
    names = [f"column_{i}" for i in range(len(fields))]
    try:
        options = csv.ReadOptions(column_names=names)
        return csv.read_csv(path, read_options=options, parse_options=csv.ParseOptions(delimiter=delimiter))
    except pa.ArrowException as e:
        raise TableError(f"matrix {str(path)!r} cannot be read: {str(e).splitlines()[0][:200]}") from e
