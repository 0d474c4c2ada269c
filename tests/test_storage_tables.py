"""Users' tables: every shape in which files have gone wrong elsewhere."""

import decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from predcube.storage import TableError
from predcube.storage.tables import column, numbers, read_matrix, read_table


def csv(tmp_path: Path, text: str | bytes, name: str = "t.csv") -> str:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


TABLE = pa.table(
    {
        "age": pa.array([41, None, 3], pa.int64()),
        "wt": [70.5, float("nan"), 1e-300],
        "sex": ["f", "m", None],
        "quit": [True, None, False],
    }
)


def test_three_formats_agree(tmp_path: Path) -> None:
    parquet.write_table(TABLE, tmp_path / "t.parquet")
    feather.write_feather(TABLE, str(tmp_path / "t.feather"))
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink, pa.ipc.new_file(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    for name in ("t.parquet", "t.feather", "t.arrow"):
        assert str(read_table(str(tmp_path / name)).to_pydict()) == str(TABLE.to_pydict())
    url = csv(tmp_path, "age,wt,sex,quit\n41,70.5,f,true\n,,m,\n3,1e-300,,false\n")
    read = read_table(url)
    assert read.schema.types == TABLE.schema.types
    assert numbers(read, "wt", "here").tolist()[::2] == [70.5, 1e-300]
    assert np.isnan(numbers(read, "age", "here")[1])
    assert column(read, "sex", "here").to_pylist() == ["f", "m", None]


def test_identifiers_keep_their_zeros(tmp_path: Path) -> None:
    """ "001" read as 1."""
    read = read_table(csv(tmp_path, 'id,q,zero,half\n001,"002",0,0.5\n10,"3",0,00.5\n'))
    assert read.to_pydict()["id"] == ["001", "10"]
    assert read.to_pydict()["q"] == ["002", "3"]
    assert read.to_pydict()["zero"] == [0, 0]
    assert read.to_pydict()["half"] == ["0.5", "00.5"]


def test_quoted_nulls(tmp_path: Path) -> None:
    """Quoted nulls: a word in text, missing in numbers."""
    read = read_table(csv(tmp_path, '"country","x","y"\n"NA","1","2"\n"DE","NA",""\n"","3","4"\nNA,5,6\n'))
    assert read.to_pydict() == {"country": ["NA", "DE", "", None], "x": [1, None, 3, 5], "y": [2, None, 4, 6]}


@pytest.mark.parametrize("header", ["a, A", "a,a ", " b,b", '"x","X"'])
def test_headers_equal_up_to_case(tmp_path: Path, header: str) -> None:
    """Duplicate or space-padded headers."""
    with pytest.raises(TableError, match="rename one"):
        read_table(csv(tmp_path, f"{header}\n1,2\n"))


def test_headers_are_stripped_and_named(tmp_path: Path) -> None:
    assert read_table(csv(tmp_path, ",  age ,\twt\n0,1,2\n")).column_names == ["column_1", "age", "wt"]


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("größe,x\nä,1\n".encode(), "größe"),
        ("größe,x\nä,1\n".encode("utf-8-sig"), "größe"),
        ("größe,x\nä,1\n".encode("latin-1"), "größe"),
        ("größe,x\nä,1\n".encode("utf-16"), "größe"),
    ],
)
def test_encodings(tmp_path: Path, raw: bytes, name: str) -> None:
    """Latin-1 silently binary."""
    read = read_table(csv(tmp_path, raw))
    assert read.to_pydict() == {name: ["ä"], "x": [1]}
    assert read.schema.field(0).type == pa.string()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(tmp_path: Path, delimiter: str) -> None:
    text = delimiter.join(['"a,;|b"', "x", "y"]) + "\r\n" + delimiter.join(['"line\nbreak"', "1", "2"]) + "\r\n"
    assert read_table(csv(tmp_path, text)).to_pydict() == {"a,;|b": ["line\nbreak"], "x": [1], "y": [2]}


def test_a_later_row_widens_a_column(tmp_path: Path) -> None:
    """Categories or types that differ further down: integer, then float, then text."""
    rows = "\n".join("1,1,1" for _ in range(300_000))
    read = read_table(csv(tmp_path, f"i,f,s\n{rows}\n2,0.5,x\n"))
    assert [str(t) for t in read.schema.types] == ["int64", "double", "string"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.csv", "", "empty"),
        ("t.csv", "\n\n", "empty"),
        ("t.csv", "a,b\n1,2\n1\n", "cannot be read as .csv"),
        ("t.parquet", "no", "cannot be read as .parquet"),
        ("t.arrow", "no", "cannot be read as .arrow"),
        ("t.xlsx", "no", "give a .csv"),
        ("t", "a\n1\n", "give a .csv"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: str, says: str) -> None:
    with pytest.raises(TableError, match=says) as e:
        read_table(csv(tmp_path, content, name))
    assert name in str(e.value)
    assert "\n" not in str(e.value)


def test_missing_files_and_columns(tmp_path: Path) -> None:
    url = csv(tmp_path, "age,wt71\n1,x\n", "nhefs.csv")
    with pytest.raises(TableError, match=r"no table at .*did you mean .*nhefs\.csv"):
        read_table(str(tmp_path / "nhef.csv"))
    with pytest.raises(TableError, match="no table"):
        read_table(str(tmp_path / "nowhere" / "x.csv"))
    read = read_table(url)
    assert read_table(str(tmp_path)).equals(read)  # a folder of one file
    with pytest.raises(TableError, match=r"table\.label: the table has no column 'wt7'; did you mean 'wt71'"):
        column(read, "wt7", "table.label")
    with pytest.raises(TableError, match="there are age, wt71"):
        column(read, "zzz", "here")
    with pytest.raises(TableError, match="'wt71' is string, for example 'x'"):
        numbers(read, "wt71", "here")


def test_numbers_of_every_kind() -> None:
    """Bool and nullable integers become object; decimals become object."""
    table = pa.table(
        {
            "i": pa.array([1, None], pa.int8()),
            "d": pa.array([decimal.Decimal("1.25"), None], pa.decimal128(5, 2)),
            "b": [True, None],
            "f": pa.array([1.5, None], pa.float32()),
            "n": pa.nulls(2),
        }
    )
    for name, first in {"i": 1.0, "d": 1.25, "b": 1.0, "f": 1.5, "n": np.nan}.items():
        values = numbers(table, name, "here")
        assert values.dtype == np.float64
        np.testing.assert_array_equal(values, [first, np.nan])


def test_pandas_files_come_back(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1.5, 2.5], "c": pd.Categorical(["a", "b"])}, index=[3, 4])
    frame.to_csv(tmp_path / "t.csv")
    frame.to_parquet(tmp_path / "t.parquet")
    assert read_table(str(tmp_path / "t.csv")).column_names == ["column_1", "x", "c"]
    assert column(read_table(str(tmp_path / "t.parquet")), "c", "here").to_pylist() == ["a", "b"]


def test_matrices(tmp_path: Path) -> None:
    matrix = np.array([[0, 1, 1], [1, 0, 0]], np.uint8)
    np.save(tmp_path / "m.npy", matrix.astype(bool))
    np.savetxt(tmp_path / "m.csv", matrix, delimiter=",", fmt="%d", header="x0,x1,x2", comments="")
    np.savetxt(tmp_path / "bare.csv", matrix, delimiter=";", fmt="%d")  # a first line of labels is no header
    pd.DataFrame(matrix).to_csv(tmp_path / "numbered.csv", index=False)
    pd.DataFrame(matrix, columns=list("abc")).to_parquet(tmp_path / "m.parquet")
    for name in ("m.npy", "m.csv", "bare.csv", "numbered.csv", "m.parquet"):
        read = read_matrix(str(tmp_path / name))
        assert read.dtype == np.uint8
        assert read.tolist() == matrix.tolist()
    for bad in (np.array([0, 1]), np.array([[0, 2]]), np.array([[0.5, 1.0]]), np.zeros((0, 3)), np.array([["0"]])):
        np.save(tmp_path / "bad.npy", bad)
        with pytest.raises(TableError, match=r"bad\.npy"):
            read_matrix(str(tmp_path / "bad.npy"))
    np.save(tmp_path / "bad.npy", np.array([[0, 1], [1, 3], [2, 1]]))
    with pytest.raises(TableError, match=r"has 3 in row 1, column 1 \(and 1 more such entries\); every entry must be"):
        read_matrix(str(tmp_path / "bad.npy"))
    np.save(tmp_path / "bad.npy", np.array([[{}]]), allow_pickle=True)  # would run a stranger's code
    with pytest.raises(TableError, match="cannot be read"):
        read_matrix(str(tmp_path / "bad.npy"))


def test_the_value_that_is_no_number_is_shown() -> None:
    table = pa.table({"age": ["61", "1e3", None, "sixty", "70"]})
    with pytest.raises(TableError, match=r"for example 'sixty'; numbers are needed$"):
        numbers(table, "age", "here")
    with pytest.raises(TableError, match=r"for example '-1\.024,5'; numbers are needed; write decimals with a point"):
        numbers(pa.table({"x": ["1", "-1.024,5"]}), "x", "here")


@pytest.mark.parametrize("values", [[2**62, 2**62 + 1], [-(2**63), None, 0], [2**53 + 1, 1]])
def test_integers_that_would_merge_are_refused(values: list[int | None]) -> None:
    size = max(abs(v) for v in values if v is not None)
    with pytest.raises(TableError, match=rf"features\[0\]: column 'id' has integers up to {size} in size"):
        numbers(pa.table({"id": values}), "id", "features[0]")
