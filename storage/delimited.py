"""A CSV file as a stream: a first reading settles how it is written and what its columns are, later ones give batches.

Always true: a column's type is the first of integer, truth value, date, time stamp, float and text that every one of
its values is; numbers written with leading zeros ("001") are text; a missing value in quotes is a word in a column of
text, but missing in any other. None of it depends on where blocks of the file end.
"""

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

_DELIMITERS = ",;\t|"
_BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_BLOCK = 2**22  # bytes that are parsed at once; a record must be shorter
_HEAD = 2**16  # bytes in which the header ends

# What a column may be, in order of preference; bit i of a set of kinds is the i-th.
_LADDER: tuple[pa.DataType, ...] = (
    pa.int64(),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("s"),
    pa.timestamp("ns"),
    pa.timestamp("s", "UTC"),
    pa.timestamp("ns", "UTC"),
    pa.float64(),
    pa.string(),
)
_ALL = 2 ** len(_LADDER) - 1
_TEXT = 2 ** (len(_LADDER) - 1)
_INTEGER = 1
_NUMBERS = _INTEGER | _TEXT >> 1
_NULLS = pa.array(csv.ConvertOptions().null_values or [], pa.string())


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What is known of a column's values: the kinds that all of them are (bits of the ladder) as written, and with
    quoted missing values taken for missing; whether any is there at all, and whether a number begins with 0."""

    kinds: int = _ALL
    unquoted: int = _ALL
    present: bool = False
    zeros: bool = False

    def join(self, other: Self) -> Self:
        """What is known of both columns' values together."""
        return replace(
            self,
            kinds=self.kinds & other.kinds,
            unquoted=self.unquoted & other.unquoted,
            present=self.present or other.present,
            zeros=self.zeros or other.zeros,
        )

    @property
    def quoted_null(self) -> bool:
        """Whether a missing value in quotes is missing."""
        return self.kinds == _TEXT and self.unquoted not in (_TEXT, _ALL) and not self.zeros

    @property
    def type(self) -> pa.DataType:
        if not self.present:
            return pa.null()
        kinds = self.unquoted if self.quoted_null else self.kinds
        if self.zeros and kinds & _NUMBERS:
            return pa.string()
        return _LADDER[(kinds & -kinds).bit_length() - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delimited:
    """How a CSV file is written, its header as it stands, what is known of its columns, and how many rows it has."""

    path: str
    delimiter: str
    encoding: str
    skipped: int
    names: tuple[str, ...]
    columns: tuple[Column, ...]
    count: int


def settle(path: Path) -> Delimited:
    """Reads a CSV file once. Raises pa.ArrowException, OSError or UnicodeError where it is empty or torn."""
    encoding, head = _encoding(path)
    if not head.strip():
        raise pa.ArrowInvalid("it is empty")
    delimiter, skipped = separator(head)
    found = Delimited(
        path=str(path), delimiter=delimiter, encoding=encoding, skipped=skipped, names=(), columns=(), count=0
    )
    with _reader(found, {}, ()) as header:
        names = tuple(header.schema.names)
    columns = [Column()] * len(names)
    count = 0
    if len(set(names)) == len(names):  # otherwise it will be refused: Arrow cannot tell the columns apart
        with _reader(found, dict.fromkeys(names, pa.string()), names) as reader:
            for batch in reader:
                count += batch.num_rows
                columns = [_seen(known, values) for known, values in zip(columns, batch.columns, strict=True)]
    return replace(found, names=names, columns=tuple(columns), count=count)


def stream(file: Delimited, columns: Mapping[str, Column]) -> Iterator[pa.RecordBatch]:
    """The file's rows, block by block: these columns of its header, in the types that ``columns`` says."""
    names = list(columns)
    direct = {name: columns[name].type for name in names}
    as_text = {
        name
        for name, kind in direct.items()
        if columns[name].quoted_null or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)
    }
    types = {name: pa.string() if name in as_text else kind for name, kind in direct.items()}
    with _reader(file, types, names) as reader:
        for batch in reader:
            values = [
                _convert(column, direct[name], columns[name].quoted_null) if name in as_text else column
                for name, column in zip(names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(values, names=names)


def _reader(file: Delimited, types: Mapping[str, pa.DataType], names: Sequence[str]) -> csv.CSVStreamingReader:
    source: Any = pa.OSFile(file.path, "rb")  # by its name, Arrow would unpack it first
    return csv.open_csv(
        source,
        read_options=csv.ReadOptions(block_size=_BLOCK, encoding=file.encoding, skip_rows=file.skipped),
        parse_options=csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=dict(types),
            include_columns=list(names),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _seen(known: Column, values: "pa.Array[Any]") -> Column:
    """What is known of a column after one more block of it, as text."""
    if values.null_count == len(values):
        return known
    present = values.drop_null() if values.null_count else values
    quoted = pc.is_in(present, _NULLS)
    kinds = _kinds(present, known.kinds)
    if pc.any(quoted).as_py():
        unquoted = _kinds(present.filter(pc.invert(quoted)), known.unquoted)
    else:
        unquoted = kinds if known.kinds == known.unquoted else _kinds(present, known.unquoted)
    numeric = (kinds | unquoted) & _NUMBERS
    zeros = known.zeros or (bool(numeric) and _begins_with_zero(present))
    return Column(kinds=kinds, unquoted=unquoted, present=True, zeros=zeros)


def _kinds(values: "pa.Array[Any]", candidates: int) -> int:
    """Those of the candidates that every value is."""
    if not len(values):
        return candidates
    whole = bool(candidates & _INTEGER) and _is(values, _LADDER[0])
    found: int = candidates & (_NUMBERS | _TEXT if whole else _TEXT)  # a whole number is a float as well, and no date
    for place, kind in enumerate(_LADDER):
        bit = 1 << place
        if candidates & bit & ~found & ~_INTEGER and not (whole and pa.types.is_temporal(kind)) and _is(values, kind):
            found |= bit
    return found


def _is(values: "pa.Array[Any]", kind: pa.DataType) -> bool:
    try:
        _parsed(values, kind)
    except pa.ArrowInvalid:
        return False
    return True


def _parsed(values: "pa.Array[Any]", kind: pa.DataType) -> "pa.Array[Any]":
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        if pa.types.is_boolean(kind):
            raise
        return pc.utf8_trim(values, " \t").cast(kind)


def _convert(values: "pa.Array[Any]", kind: pa.DataType, quoted_null: bool) -> "pa.Array[Any]":
    if quoted_null:
        values = pc.if_else(pc.is_in(values, _NULLS), pa.scalar(None, pa.string()), values)
    return _parsed(values, kind)


def _begins_with_zero(values: "pa.Array[Any]") -> bool:
    """Whether any text begins like "001" (or "0x1f"), after spaces and a sign."""
    _, offsets, content = values.buffers()
    if content is None or offsets is None or not content.size:  # nothing but empty texts
        return False
    bounds: NDArray[np.int32] = np.frombuffer(offsets, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    text = np.frombuffer(content, dtype=np.uint8)
    at, end = bounds[:-1].copy(), bounds[1:]

    def here(places: NDArray[np.int32], characters: bytes) -> NDArray[np.bool_]:
        wanted = np.zeros(256, dtype=np.bool_)
        wanted[list(characters)] = True
        inside = places < end
        found: NDArray[np.bool_] = inside & wanted[text[np.where(inside, places, 0)]]
        return found

    while (spaces := here(at, b" \t")).any():
        at += spaces
    at += here(at, b"+-")
    return bool((here(at, b"0") & here(at + 1, b"0123456789xX")).any())


def _encoding(path: Path) -> tuple[str, str]:
    """The encoding of a file and the text at its beginning."""
    with path.open("rb") as source:
        start = source.read(_HEAD)
        encoding = next((name for bom, name in _BOMS.items() if start.startswith(bom)), "utf-8")
        if b"\0" in start and encoding == "utf-8":
            encoding = "utf-16-le" if start[1::2].count(0) > start[::2].count(0) else "utf-16-be"
        if encoding == "utf-8":
            decoder = codecs.getincrementaldecoder(encoding)()
            block = start
            try:
                while block:
                    decoder.decode(block)
                    block = source.read(2**20)
                decoder.decode(b"", final=True)
            except UnicodeDecodeError:
                encoding = "latin-1"  # Arrow would hand out bytes
    head = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)().decode(start)
    return encoding, head


def separator(head: str) -> tuple[str, int]:
    """The separator that stands most often in the header, outside quotes; and how many lines come before the header."""
    bare = re.sub(r'"[^"]*"', "", head).lstrip("\r\n")
    if said := re.match(r"sep=([,;\t|])\r?\n", bare):  # as spreadsheets write it
        return said[1], 1
    header = re.split(r"[\r\n]", bare, maxsplit=1)[0]
    return max(_DELIMITERS, key=header.count), 0
