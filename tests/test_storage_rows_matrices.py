"""Matrices of batches: every kind of column and expression against plain Python, and what is refused."""

import datetime
import decimal
import math
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from predcube.storage import ExpressionError, TableError, matrices
from predcube.storage.matrices import blocks, categories, columns_read, labels, matrix
from predcube.storage.rows import batches, open_rows

NAN = math.nan
BATCH = pa.RecordBatch.from_pydict(
    {
        "age": pa.array([30000, None, 3], pa.int16()),
        "wt": pa.array([70.5, NAN, None], pa.float32()),
        "big": pa.array([10**9 + 0.25, 10**9 + 0.5, 10**9 + 0.75]),
        "quit": [True, None, False],
        "fee": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("0.10")], pa.decimal128(6, 2)),
        "sex": ["f", "m", None],
        "none": pa.nulls(3),
        "day": [datetime.date(2020, 2, 29), None, datetime.date(2021, 1, 1)],
        "a-b": [1.0, 2.0, 3.0],
        "a": [10, 20, 30],
        "b": [1, 1, 0],
    }
)

VALUES: dict[str, list[float]] = {
    "age": [30000, NAN, 3],
    "wt": [70.5, NAN, NAN],
    "big": [10**9 + 0.25, 10**9 + 0.5, 10**9 + 0.75],
    "quit": [1, NAN, 0],
    "fee": [1.25, NAN, 0.1],
    "none": [NAN] * 3,
    "a-b": [1, 2, 3],  # the column, not the difference
    "a - b": [9, 19, 30],
    "AGE": [30000, NAN, 3],
    "age * age": [9e8, NAN, 9],  # int16 would wrap
    "wt > 70": [1, NAN, NAN],
    "not quit": [0, NAN, 1],
    "quit is null": [0, 1, 0],
    "sex = 'f'": [1, 0, NAN],
    "year(day)": [2020, NAN, 2021],
    "fee * 2": [2.5, NAN, 0.2],
    "a / nullif(b, 0)": [10, 20, NAN],
    "sqrt(b - a)": [NAN] * 3,
    "none > 1": [NAN] * 3,
    "null": [NAN] * 3,
    "1 = 1": [1, 1, 1],
    "9223372036854775807 + 1.0": [2.0**63] * 3,
    "case when a > 10 then 0.5 else a end": [10, 0.5, 0.5],
}


@pytest.mark.parametrize("longest", [None, 1, 2, 10**6])
def test_matrices_against_values_worked_by_hand(longest: int | None) -> None:
    names = list(VALUES)
    groups = (names, names[::-1], ["wt"], [])
    found = [np.concatenate(part) for part in zip(*blocks(BATCH, groups, longest), strict=True)]
    for group, part in zip(groups, found, strict=True):
        assert part.shape == (3, len(group))
        for place, name in enumerate(group):
            np.testing.assert_array_equal(part[:, place], VALUES[name], err_msg=name)
    one = matrix(BATCH, names)
    assert one.dtype == np.float64
    assert one.flags.f_contiguous
    assert one.base is not None
    assert one.base.shape == (len(names), 3)  # one array, not a stack of columns
    np.testing.assert_array_equal(one, found[0])
    assert matrix(BATCH.slice(0, 0), names).shape == (0, len(names))
    assert matrix(BATCH, []).shape == (3, 0)


@pytest.mark.parametrize(
    ("expression", "error", "says"),
    [
        ("sex", TableError, "expression 'sex': column 'sex' is string, for example 'f'; numbers are needed"),
        ("day", TableError, "column 'day' is date32"),
        ("lower(sex)", ExpressionError, "expression 'lower(sex)': it is VARCHAR, not a number"),
        ("'1'", ExpressionError, "it is VARCHAR, not a number"),
        ("day::date", ExpressionError, "it is DATE, not a number"),
        ("a / b", ExpressionError, "expression 'a / b' is inf where a = 30, b = 0; make it NULL there"),
        ("ln(b)", ExpressionError, "expression 'ln(b)' is -inf where b = 0"),
        ("1e308 * 10", ExpressionError, "is inf; make it NULL there"),
        ("agee", ExpressionError, "no column 'agee'; did you mean 'age'"),
        ("sum(a)", ExpressionError, "the function sum is not allowed"),
        ("read_csv('x.csv')", ExpressionError, "the function read_csv is not allowed"),
        ("(select 1)", ExpressionError, "subqueries are not allowed"),
        ("a * 9223372036854775807", ExpressionError, "expression 'a * 9223372036854775807': "),
        ("sex::double", ExpressionError, "expression 'sex::double': "),
    ],
)
def test_what_is_no_number_has_one_message(expression: str, error: type[Exception], says: str) -> None:
    for others in ([], ["a"], ["a + 1", "b > 0"]):
        with pytest.raises(error) as e:
            matrix(BATCH, [*others, expression, *others])
        assert says in str(e.value)
        assert "\n" not in str(e.value)
        assert matrix(BATCH, ["a + 1"]).tolist() == [[11], [21], [31]]  # the error spoils nothing
    if "not a number" in says or "column" in says or "allowed" in says:  # then no row is needed to know it
        with pytest.raises(error):
            matrix(BATCH.slice(0, 0), [expression])


def test_infinite_columns_are_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1.0, NAN, -math.inf], "y": [1e308, 1e308, 1e308]})
    with pytest.raises(TableError, match="column 'x' has the value -inf"):
        matrix(batch, ["x"])
    assert matrix(batch, ["y", "x > 0"]).tolist()[0] == [1e308, 1.0]  # a sum that overflows is no infinite value
    assert matrix(batch, ["x > 0"])[2, 0] == 0


def test_columns_read() -> None:
    assert columns_read(BATCH.schema, ["A + a-b", "a-b", "AGE", "1 = 1", "age"]) == ("a", "b", "a-b", "age")
    with pytest.raises(ExpressionError, match="no column 'agee'; did you mean 'age'"):
        columns_read(BATCH.schema, ["a", "agee > 1"])


def test_a_thousand_expressions_are_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values by NumPy; the parsed question is kept from batch to batch."""
    from predcube.storage import expressions, sandbox

    rng = np.random.default_rng(3)
    batch = pa.RecordBatch.from_pydict({f"c{i}": rng.normal(size=5000) for i in range(5)})
    limits = [float(limit) for limit in rng.normal(size=1000)]
    asked = [f"c{i % 5} > {limit!r}" for i, limit in enumerate(limits)]
    first = matrix(batch, asked)
    columns = [batch.column(i % 5).to_numpy() for i in range(1000)]
    np.testing.assert_array_equal(first, np.column_stack(columns) > limits)
    idle = len(sandbox._idle)
    assert idle  # connections are kept
    made = []
    monkeypatch.setattr(expressions, "ask", lambda *a: made.append(a))
    pieces = [piece for (piece,) in blocks(batch, (asked,))]
    assert not made
    assert [len(piece) for piece in pieces] == [2048, 2048, 904]
    np.testing.assert_array_equal(np.concatenate(pieces), first)
    assert len(sandbox._idle) == len(set(map(id, sandbox._idle))) == idle


def test_blocks_are_as_long_as_asked_whatever_the_answers_are(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.RecordBatch.from_pydict({"x": np.arange(100.0)})

    def cut(asked: list[str], table: pa.Table, longest: int) -> Generator[pa.RecordBatch]:
        for start in range(0, 100, 7):
            yield pa.RecordBatch.from_pydict({"0": np.arange(start, min(start + 7, 100)) + 0.5})

    monkeypatch.setattr(matrices, "evaluate_all", cut)
    pieces = [piece for (piece,) in blocks(batch, (["x", "x + 0.5"],), 30)]
    assert [len(piece) for piece in pieces] == [30, 30, 30, 10]
    found = np.concatenate(pieces)
    np.testing.assert_array_equal(found[:, 1], found[:, 0] + 0.5)
    np.testing.assert_array_equal(found[:, 0], np.arange(100))


def test_two_streams_of_blocks_may_be_open_at_once() -> None:
    batch = pa.RecordBatch.from_pydict({"x": np.arange(10_000.0)})
    one, other = (blocks(batch, ([f"x + {i}"],), 2048) for i in (1, 2))
    for (a,), (b,) in zip(one, other, strict=True):
        np.testing.assert_array_equal(a + 1, b)


NUMBER = st.one_of(st.none(), st.just(NAN), st.floats(-1e6, 1e6), st.integers(-100, 100).map(float))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=1, max_size=40), st.floats(-5, 5), st.integers(1, 50))
def test_missing_is_missing_however_it_is_written(rows: list[tuple[Any, Any]], limit: float, longest: int) -> None:
    batch = pa.RecordBatch.from_pydict(
        {name: pa.array([row[i] for row in rows], pa.float64()) for i, name in enumerate("xy")}
    )
    x, y = (np.array([NAN if row[i] is None else row[i] for row in rows]) for i in range(2))
    missing = np.isnan(x)
    wanted = [x, x + y, np.where(missing, NAN, x > limit), missing, np.where(missing, y, x)]
    asked = ["x", "x + y", f"x > {limit!r}::double", "x is null", "coalesce(x, y)"]
    pieces = [piece for (piece,) in blocks(batch, (asked,), longest)]
    np.testing.assert_array_equal(np.concatenate(pieces), np.column_stack(wanted))


def test_labels() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "s": ["b", None, "a", "b"],
            "i": pa.array([3, 3, None, 1], pa.int8()),
            "f": [3.0, NAN, None, 1.5],
            "t": [True, False, None, True],
            "l": [[1], [2], [3], [4]],
        }
    )
    wanted = {
        "s": ["b", None, "a", "b"],
        "i": ["3", "3", None, "1"],
        "f": ["3", None, None, "1.5"],
        "t": ["true", "false", None, "true"],
    }
    for name, values in wanted.items():
        codes, names = labels(batch, name)
        assert [None if code < 0 else names[code] for code in codes] == values
        assert len(set(names)) == len(names) == len({*values} - {None})
    with pytest.raises(TableError, match="column 'l' is list"):
        labels(batch, "l")


def test_categories_are_conditions(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    names = np.array(["", "it's", 'say "x"', "é; drop table rows_ --", "NULL", "1"], dtype=object)
    table = pa.table(
        {
            'c"1': pa.array(names[rng.integers(0, 6, 1000)], mask=rng.random(1000) < 0.1),
            "i": pa.array(rng.integers(-1, 3, 1000), pa.int8()),
            "b": rng.random(1000) < 0.5,
            "d": [datetime.date(2020, 1, int(d)) for d in rng.integers(1, 4, 1000)],
            "many": np.arange(1000),
            "f": rng.random(1000),
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=100)
    rows = open_rows(str(tmp_path / "t.parquet"))
    batch = next(batches(rows, rows.parts[0], rows.schema.names))
    for name in ('c"1', "i", "b", "d"):
        family = categories(rows, name)
        values = batch.column(name).to_pylist()
        spelled = {str(v).lower() if isinstance(v, bool) else str(v): v for v in values if v is not None}
        assert set(family) == set(spelled)
        hot = matrix(batch, list(family.values()))
        wanted = [[NAN if v is None else float(v == spelled[label]) for label in family] for v in values]
        np.testing.assert_array_equal(hot, wanted)
    assert list(categories(rows, "i")) == ["-1", "0", "1", "2"]
    assert len(categories(rows, "many")) == 1000
    with pytest.raises(TableError, match="column 'f' is double; categories are text"):
        categories(rows, "f")
    with pytest.raises(TableError, match="no column 'ff'"):
        categories(rows, "ff")
    parquet.write_table(pa.table({"x": np.arange(1001)}), tmp_path / "many.parquet")
    with pytest.raises(TableError, match="'x' has more than 1000 values"):
        categories(open_rows(str(tmp_path / "many.parquet")), "x")
