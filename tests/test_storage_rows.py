"""Streams of rows: a file gives the same table however it is cut, and a folder is its files one after another."""

import datetime
import decimal
import io
import os
import pickle
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv
from pyarrow import feather, parquet

from predcube.storage import TableError, delimited
from predcube.storage.rows import Rows, batches, open_rows


def whole(rows: Rows, columns: list[str] | None = None, longest: int = 1000) -> pa.Table:
    """All rows, from parts that went through a pickle, as they do on their way to a worker."""
    names = columns or rows.schema.names
    found: list[pa.RecordBatch] = []
    for part in pickle.loads(pickle.dumps(rows)).parts:
        read = list(batches(rows, part, names, longest))
        assert all(batch.num_rows <= longest for batch in read)
        assert sum(batch.num_rows for batch in read) == part.rows
        found += read
    return pa.Table.from_batches(found, pa.schema([rows.schema.field(n) for n in names]))


def folder(tmp_path: Path, **files: str | bytes) -> str:
    """A folder of CSV files."""
    place = tmp_path / "folder"
    place.mkdir()
    for name, text in files.items():
        (place / f"{name}.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    return str(place)


TABLE = pa.table(
    {
        " age ": pa.array([41, None, 3, 4, 5], pa.int16()),
        "wt": pa.array([70.5, float("nan"), 1e-30, None, 0.0], pa.float32()),
        "sex": pa.array(["f", "m", None, "f", "m"]).dictionary_encode(),
        "a.b": [True, None, False, True, True],
        "a": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("0.10"), None, None], pa.decimal128(6, 2)),
        "zip": pa.array(["001", "002", "003", "004", "005"], pa.large_string()),
    }
)


def write(path: Path, table: pa.Table, rows: int) -> str:
    """The table as a file of the format that the name ends in, in units of a few rows."""
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=rows)
    elif path.suffix == ".feather":
        feather.write_feather(table, str(path), chunksize=rows, compression="zstd")
    else:
        new = pa.ipc.new_stream if path.suffix == ".ipc" else pa.ipc.new_file
        with pa.OSFile(str(path), "wb") as sink, new(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
    return str(path)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrow", "t.ipc"])
@pytest.mark.parametrize("unit", [2, 100])
def test_formats_agree(tmp_path: Path, name: str, unit: int) -> None:
    rows = open_rows(write(tmp_path / name, TABLE, unit))
    assert rows.count == 5
    assert rows.schema.names == ["age", "wt", "sex", "a.b", "a", "zip"]
    assert [str(t) for t in rows.schema.types] == ["int16", "float", "string", "bool", "decimal128(6, 2)", "string"]
    assert str(whole(rows).to_pylist()) == str(TABLE.rename_columns(rows.schema.names).to_pylist())
    assert whole(rows, ["a", "age"], longest=2).column_names == ["a", "age"]
    assert whole(rows, ["a"]).to_pydict()["a"][0] == decimal.Decimal("1.25")  # not mistaken for "a.b"
    [batch, *_] = batches(rows, rows.parts[0], ())
    assert batch.num_columns == 1  # a batch without columns would have no rows
    with pytest.raises(TableError, match="no column 'agee'; did you mean 'age'"):
        next(batches(rows, rows.parts[0], ["agee"]))


def test_large_files_have_several_parts(tmp_path: Path) -> None:
    big = pa.table({"x": np.arange(2_500_000), "y": np.zeros(2_500_000)})
    for name in ("t.parquet", "t.arrow"):
        rows = open_rows(write(tmp_path / name, big, 300_000))
        assert [part.rows for part in rows.parts] == [1_200_000, 1_200_000, 100_000]
        read = [batch.column(0).to_numpy() for part in rows.parts for batch in batches(rows, part, ["x"])]
        assert max(map(len, read)) == 2**16
        np.testing.assert_array_equal(np.concatenate(read), np.arange(2_500_000))
    one = open_rows(write(tmp_path / "one.arrow", big, 10**7))  # a table that was written as a single batch
    assert sum(batch.num_rows for batch in batches(one, one.parts[0], ["y"])) == 2_500_000


def test_a_reading_that_is_given_up_leaves_no_thread(tmp_path: Path) -> None:
    rows = open_rows(write(tmp_path / "t.parquet", pa.table({"x": np.arange(300_000)}), 300_000))
    reading = batches(rows, rows.parts[0], ["x"])
    next(reading)
    assert any(thread.name.startswith("decoding") for thread in threading.enumerate())
    del reading
    assert not any(thread.name.startswith("decoding") for thread in threading.enumerate())


def test_digests_are_of_bytes_in_order(tmp_path: Path) -> None:
    one = open_rows(write(tmp_path / "1.parquet", TABLE, 2))
    other = open_rows(write(tmp_path / "2.parquet", TABLE, 3))
    assert one.digest == open_rows(str(tmp_path / "1.parquet")).digest != other.digest
    together = open_rows(str(tmp_path)).digest
    assert len({one.digest, other.digest, together}) == 3
    (tmp_path / "1.parquet").rename(tmp_path / "3.parquet")
    assert open_rows(str(tmp_path)).digest != together


# What different files say, and what the table then says: integer, float, text.
WIDENED: list[tuple[Any, Any, pa.DataType, list[Any], list[Any]]] = [
    (pa.array([1], pa.int8()), pa.array([300], pa.int32()), pa.int64(), [1], [300]),
    (pa.array([True, None]), pa.array([2]), pa.int64(), [1, None], [2]),
    (pa.array([2**63], pa.uint64()), pa.array([-1]), pa.float64(), [2.0**63], [-1.0]),
    (pa.array([1]), pa.array([0.5], pa.float32()), pa.float64(), [1.0], [0.5]),
    (pa.array([decimal.Decimal("0.10")]), pa.array([1]), pa.float64(), [0.1], [1.0]),
    (pa.array([1]), pa.array(["x"]), pa.string(), ["1"], ["x"]),
    (pa.array([0.5]), pa.array(["x"]), pa.string(), ["0.5"], ["x"]),
    (pa.array(["u"]).dictionary_encode(), pa.array(["v"]).dictionary_encode(), pa.string(), ["u"], ["v"]),
    (pa.array(["u"]).dictionary_encode(), pa.array([1]), pa.string(), ["u"], ["1"]),
    (pa.nulls(1), pa.array(["x"]), pa.string(), [None], ["x"]),
    (pa.array([1.5]), pa.nulls(1), pa.float64(), [1.5], [None]),
    (
        pa.array([datetime.date(2020, 1, 2)]),
        pa.array([datetime.datetime(2020, 1, 2, 3)], pa.timestamp("ms")),
        pa.timestamp("ms"),
        [datetime.datetime(2020, 1, 2)],
        [datetime.datetime(2020, 1, 2, 3)],
    ),
    (pa.array([datetime.date(2020, 1, 2)]), pa.array([1]), pa.string(), ["2020-01-02"], ["1"]),
]


@pytest.mark.parametrize(("one", "other", "kind", "left", "right"), WIDENED)
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_types_that_differ_between_files(
    tmp_path: Path, suffix: str, one: Any, other: Any, kind: pa.DataType, left: list[Any], right: list[Any]
) -> None:
    for number, (arrays, values) in enumerate((((one, other), left + right), ((other, one), right + left))):
        place = tmp_path / str(number)
        place.mkdir()
        for name, array in zip("ab", arrays, strict=True):
            write(place / f"{name}.{suffix}", pa.table({"x": array}), 10)
        rows = open_rows(str(place))
        assert rows.schema.types == [kind]
        assert whole(rows).to_pydict()["x"] == values


def test_a_folder_of_csv_files_is_their_concatenation(tmp_path: Path) -> None:
    place = folder(
        tmp_path,
        b='X;y;code;n\n1;;7;"NA"\n2;;"8";3\n',
        a="x|code|y|n\n0.5|1|a|2\n",
        c="größe;x;n;y;code\n1;7;1;b;001\n".replace("größe;", "").replace("1;7", "7", 1).encode("utf-16"),
        d="x;y;code;n\nNA;é;9;\n".encode("latin-1"),
    )
    Path(place, ".hidden.csv").write_text("nonsense")
    Path(place, "_SUCCESS").touch()
    rows = open_rows(place)
    assert [str(t) for t in rows.schema.types] == ["double", "string", "string", "int64"]
    assert whole(rows).to_pydict() == {
        "x": [0.5, 1.0, 2.0, 7.0, None],
        "code": ["1", "7", "8", "001", "9"],
        "y": ["a", None, None, "b", "é"],
        "n": [2, None, 3, 1, None],
    }


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"a": "x,y\n1,2\n", "b": "x\n1\n"}, "'a.csv' has a column 'y' that 'b.csv' has not"),
        ({"a": "x\n1\n", "b": "x,z\n1,2\n"}, "'b.csv' has a column 'z' that 'a.csv' has not"),
        ({"a": "x\n1\n", "b": "x, X\n1,2\n"}, "b.csv' has the columns 'x' and ' X'; rename one"),
        ({"a": "x\n1\n", "b": ""}, "b.csv' cannot be read as .csv: it is empty"),
        ({"a": "x\n1\n", "b": "x,y\n1,2\n3\n"}, "b.csv' cannot be read as .csv: CSV parse error"),
        ({}, "is an empty folder"),
    ],
)
def test_folders_that_are_no_table(tmp_path: Path, files: dict[str, str], says: str) -> None:
    with pytest.raises(TableError) as e:
        open_rows(folder(tmp_path, **files))
    assert says in str(e.value)
    assert "\n" not in str(e.value)


def test_links_to_nothing_and_pipes_are_no_files_of_a_table(tmp_path: Path) -> None:
    place = Path(folder(tmp_path, a="x\n1\n"))
    (place / "b.csv").symlink_to(place / "gone.csv")
    with pytest.raises(TableError, match=r"'b\.csv' is a pipe, or a link to nothing; take it out of the folder"):
        open_rows(str(place))
    with pytest.raises(TableError, match=r"there is no table at '.*b\.csv'; did you mean"):
        open_rows(str(place / "b.csv"))
    (place / "b.csv").unlink()
    os.mkfifo(place / "b.csv")
    for url in (place, place / "b.csv"):  # reading would wait for a writer
        with pytest.raises(TableError, match="is a pipe"):
            open_rows(str(url))


def test_folders_hold_one_format_and_nothing_else(tmp_path: Path) -> None:
    place = folder(tmp_path, a="x\n1\n")
    write(Path(place, "b.parquet"), pa.table({"x": [1]}), 1)
    with pytest.raises(TableError, match=r"has 'a\.csv' and 'b\.parquet' in it"):
        open_rows(place)
    Path(place, "b.parquet").rename(Path(place, "b.csv.gz"))
    with pytest.raises(TableError, match=r"has 'b\.csv\.gz' in it"):
        open_rows(place)
    Path(place, "b.csv.gz").unlink()
    Path(place, "year=2020").mkdir()
    with pytest.raises(TableError, match="has 'year=2020' in it"):
        open_rows(place)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "the table's path is empty"),
        ("s3://bucket/t.parquet", "table 's3://bucket/t.parquet': a 's3' place is not built in"),
        ("~nobody-at-all/t.csv", "no such home folder"),
        ("x" * 300 + ".csv", "cannot be looked for: File name too long"),
        ("nul\0.csv", "there is no table"),
    ],
)
def test_places_that_are_none(url: str, says: str) -> None:
    with pytest.raises(TableError) as e:
        open_rows(url)
    assert says in str(e.value)
    assert "store" not in str(e.value)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrow", "t.ipc"])
def test_torn_files_say_so(tmp_path: Path, name: str) -> None:
    table = pa.table({"x": np.random.default_rng(1).normal(size=50_000), "s": ["text"] * 50_000})
    path = Path(write(tmp_path / name, table, 1000))
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(TableError, match="cannot be read") as e:
        whole(open_rows(str(path)))
    assert "\n" not in str(e.value)
    path.write_bytes(raw)
    rows = open_rows(str(path))  # torn after it was opened
    path.write_bytes(raw[:1000])
    with pytest.raises(TableError, match="cannot be read"):
        whole(rows)
    Path(tmp_path / "old.feather").write_bytes(b"FEA1 and so on")
    with pytest.raises(TableError, match="version 2"):
        open_rows(str(tmp_path / "old.feather"))


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    place = tmp_path / "mixed"
    place.mkdir()
    write(place / "a.arrow", pa.table({"x": pa.array([[1]])}), 1)
    write(place / "b.arrow", pa.table({"x": ["y"]}), 1)
    with pytest.raises(TableError, match=r"column 'x': it is list.* in one file and string in another"):
        open_rows(str(place))


def test_empty_tables(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n")
    for url in (str(tmp_path / "t.csv"), write(tmp_path / "t.parquet", TABLE.slice(0, 0), 5)):
        rows = open_rows(url)
        assert rows.count == 0
        assert whole(rows).num_rows == 0
    parquet.write_table(pa.table({}), tmp_path / "no.parquet")
    with pytest.raises(TableError, match="no columns"):
        open_rows(str(tmp_path / "no.parquet"))


TOKENS = st.one_of(
    st.integers(-(2**64), 2**64).map(str),
    st.floats(allow_nan=False).map(repr),
    st.sampled_from(
        ["0", "1", " 2 ", "", "NA", "nan", "true", "false", "-0", "007", "0.5", "-00.5", " 08", "é", "a b"]
    ),
    st.dates().map(str),
    st.datetimes().map(lambda d: str(d.replace(microsecond=0))),
)
FIELD = st.tuples(TOKENS, st.booleans())


def inferred(fields: list[tuple[str, bool]], quoted_null: bool) -> Any:
    """Arrow's own reading of one column as a whole."""
    text = "x\n" + "".join(f'"{token}"\n' if quoted else f"{token}\n" for token, quoted in fields)
    options = arrow_csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=quoted_null)
    parse = arrow_csv.ParseOptions(ignore_empty_lines=False)
    return arrow_csv.read_csv(io.BytesIO(text.encode()), convert_options=options, parse_options=parse).column(0)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(FIELD, min_size=3, max_size=3), min_size=1, max_size=30), st.integers(1, 3), st.data())
def test_csv_agrees_with_arrow_s_reading_of_the_whole_however_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, records: list[list[tuple[str, bool]]], kinds: int, data: st.DataObject
) -> None:
    # Columns in which few kinds of fields meet: among all kinds, nearly every column would be text.
    for column in range(3):
        few = data.draw(st.lists(FIELD, min_size=kinds, max_size=kinds))
        for record in records[: data.draw(st.integers(0, len(records)))]:
            record[column] = data.draw(st.sampled_from(few))
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    lines = [",".join(f'"{t}"' if q else t for t, q in record) for record in records]
    path.write_text("a,b,c\n" + "\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "_BLOCK", data.draw(st.integers(220, 500)))
        found = whole(open_rows(str(path)))
    assert found.num_rows == len(records)
    for place, name in enumerate("abc"):
        fields = [record[place] for record in records]
        wanted = inferred(fields, quoted_null=False)
        if pa.types.is_string(wanted.type):
            other = inferred(fields, quoted_null=True)
            wanted = wanted if pa.types.is_null(other.type) else other if not pa.types.is_string(other.type) else wanted
        number = pa.types.is_integer(wanted.type) or pa.types.is_floating(wanted.type)
        if number and any(re.match(r"\s*[+-]?0[0-9]", token) for token, _ in fields):
            wanted = pa.chunked_array([[None if t in NULLS and not q else t for t, q in fields]], pa.string())
        assert found.column(name).type == wanted.type
        assert str(found.column(name).to_pylist()) == str(wanted.to_pylist())


NULLS = arrow_csv.ConvertOptions().null_values or []


def test_csv_blocks_may_cut_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A type that only the last row widens, and values with line breaks, in blocks of a few records."""
    monkeypatch.setattr(delimited, "_BLOCK", 64)
    path = tmp_path / "t.csv"
    path.write_text("i,f,s,t\n" + '1,1,1,"a\nb"\n' * 500 + '2,0.5,x,""\n')
    rows = open_rows(str(path))
    assert [str(t) for t in rows.schema.types] == ["int64", "double", "string", "string"]
    found = whole(rows).to_pydict()
    assert found["s"] == ["1"] * 500 + ["x"]  # as it was written, not as numbers are
    assert found["t"] == ["a\nb"] * 500 + [""]


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        (b"sep=;\r\nx;y\r\n1;2\r\n", {"x": [1], "y": [2]}),
        ("x,y\n1,é\n".encode("utf-16-le"), {"x": [1], "y": ["é"]}),
        ("x,y\n1,é\n".encode("utf-16-be"), {"x": [1], "y": ["é"]}),
        (b"x,y\r1,2\r3,4", {"x": [1, 3], "y": [2, 4]}),
        (b"\n\nx,y\n1,2\n\n3,4\n\n", {"x": [1, 3], "y": [2, 4]}),
        (b'"a,b";"c;d,,,"\n1;2\n', {"a,b": [1], "c;d,,,": [2]}),
        (b'x,y\n1,5" pipe\n', {"x": [1], "y": ['5" pipe']}),
        (b"x,y\n0x1F,12:30\n", {"x": ["0x1F"], "y": ["12:30"]}),
        (b"x,y\n1," + b"long" * 10**6 + b"\n", {"x": [1], "y": ["long" * 10**6]}),
    ],
    ids=["sep", "le", "be", "cr", "blank", "quoted", "inch", "hex", "long"],
)
def test_dialects(tmp_path: Path, raw: bytes, values: dict[str, list[Any]]) -> None:
    (tmp_path / "t.csv").write_bytes(raw)
    assert whole(open_rows(str(tmp_path / "t.csv"))).to_pydict() == values


def test_a_csv_is_as_long_in_memory_as_its_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's own account of memory: neither reading holds the file."""
    monkeypatch.setattr(delimited, "_BLOCK", 2**16)
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "0.123456789,text\n" * 1_200_000)
    pool = pa.default_memory_pool()
    before, most = pool.bytes_allocated(), 0
    rows = open_rows(str(path))
    for batch in batches(rows, rows.parts[0], ["x", "y"]):
        most = max(most, pool.bytes_allocated() - before)
        assert batch.num_rows
    assert most < path.stat().st_size / 4
