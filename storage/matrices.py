"""Numbers of a record batch: in go a batch and expressions, out come float64 matrices; or the labels of a column.

Always true of a matrix: one column for each expression, NaN where a value is missing, nothing infinite. It is one
array in which each column lies together (Fortran's order): columns are copied as they come, in a fifth of the time that
laying out row after row takes, and products over the rows are no slower.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from predcube.storage.expressions import columns_of_each, evaluate_all
from predcube.storage.failures import ExpressionError, TableError
from predcube.storage.rows import Rows, batches, nearest
from predcube.storage.tables import numbers

CATEGORIES = 1000  # of one column
_VALUES = 2**19  # of a block: 4 MB
_VECTOR, _MOST = 2**11, 2**16  # rows of a block; DuckDB counts in vectors of the first
_NOTHING = pa.RecordBatch.from_pydict({"": []})


def columns_read(schema: pa.Schema, expressions: Sequence[str]) -> tuple[str, ...]:
    """The columns that a batch must have for the matrix of these expressions, each once, as the schema spells them.

    An expression that is the name of a column means that column, whatever else it could mean. Raises ExpressionError
    where there is no such column, or an expression is not one value per row.
    """
    names = set(schema.names)
    known = {name.casefold(): name for name in schema.names}
    found: dict[str, None] = {}
    asked = [e for e in expressions if e not in names]
    used = dict(zip(asked, columns_of_each(asked), strict=True))
    for expression in expressions:
        for name in used.get(expression, (expression,)):
            if name.casefold() not in known:
                hint = nearest(name, schema.names)
                raise ExpressionError(f"expression {expression!r}: there is no column {name!r}; {hint}")
            found[name if name in names else known[name.casefold()]] = None
    return tuple(found)


def matrix(batch: pa.RecordBatch, expressions: Sequence[str]) -> NDArray[np.float64]:
    """(rows, expressions) values of the whole batch; as ``blocks``."""
    pieces = [piece for (piece,) in blocks(batch, (expressions,), max(batch.num_rows, 1))]
    return pieces[0] if pieces else np.empty((0, len(expressions)))


def blocks(
    batch: pa.RecordBatch, groups: Sequence[Sequence[str]], longest: int | None = None
) -> Iterator[tuple[NDArray[np.float64], ...]]:
    """For ``longest`` rows after another (the last block may be shorter) a matrix (rows, expressions) for each group of
    expressions. Columns are taken as they stand, everything else as SQL, of which one question is asked for the whole
    batch; truth values are 0 and 1. Without ``longest``, blocks are as long as suits a processor's cache.

    Raises ExpressionError where an expression is not one number per row, or is infinite; TableError where a column is.
    """
    every = list(dict.fromkeys(e for group in groups for e in group))
    if longest is None:
        longest = min(max(_VALUES // max(len(every), 1), _VECTOR), _MOST) // _VECTOR * _VECTOR
    table = pa.Table.from_batches([batch])
    names = set(table.column_names)
    columns = {e: _column(table, e) for e in every if e in names}
    asked = [e for e in every if e not in columns]
    with closing(evaluate_all(asked, table, longest)) as answers:
        answer, used = _NOTHING, 0
        if not batch.num_rows and asked:
            next(answers, None)  # what is no number is refused for no rows, too
        for start in range(0, batch.num_rows, longest):
            rows = min(longest, batch.num_rows - start)
            found = tuple(np.empty((len(group), rows)).T for group in groups)
            filled = 0
            while filled < rows:
                if asked and used == answer.num_rows:
                    answer, used = next(answers), 0
                # DuckDB answers in whole vectors, which need not end where a block does.
                taken = min(rows - filled, answer.num_rows - used) if asked else rows
                values = {e: column[start + filled :][:taken] for e, column in columns.items()}
                values |= {e: _values(answer.column(i).slice(used, taken)) for i, e in enumerate(asked)}
                for group, out in zip(groups, found, strict=True):
                    for place, expression in enumerate(group):
                        out[filled : filled + taken, place] = values[expression]
                filled += taken
                used += taken
            for group, out in zip(groups, found, strict=True):
                _refuse_infinite(out, group, batch, start)
            yield found


def labels(batch: pa.RecordBatch, column: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """A group column as codes (rows,) and the distinct labels they stand for, in the order of appearance in the batch;
    the code of a missing label is -1. Whole numbers are written without a point, whatever their type."""
    found = batch.column(column)
    if pa.types.is_floating(found.type):
        found = pc.if_else(pc.is_nan(found), pa.scalar(None, found.type), found)
    try:
        encoded = found.cast(pa.string()).dictionary_encode()
    except pa.ArrowException as e:
        raise TableError(f"column {column!r} is {found.type}; labels are text, numbers, dates or booleans") from e
    codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    return codes, tuple(str(label) for label in encoded.dictionary.to_pylist())


def categories(rows: Rows, column: str) -> dict[str, str]:
    """The expressions that are true for each value of a column (its one-hot family), by the values as text, sorted.

    Reads the column once. Raises TableError where there is no such column, it is of fractions, or it has more than
    1,000 values.
    """
    seen: set[Any] = set()
    for part in rows.parts:
        for batch in batches(rows, part, (column,)):
            values = batch.column(0)
            if not (
                pa.types.is_string(values.type)
                or pa.types.is_integer(values.type)
                or pa.types.is_boolean(values.type)
                or pa.types.is_date(values.type)
            ):
                raise TableError(
                    f"column {column!r} is {values.type}; categories are text, integers, dates or booleans"
                )
            seen.update(pc.unique(values.drop_null()).to_pylist())
            if len(seen) > CATEGORIES:
                raise TableError(f"column {column!r} has more than {CATEGORIES} values; give conditions on it instead")
    name = '"' + column.replace('"', '""') + '"'
    return {_label(value): f"{name} = {_literal(value)}" for value in sorted(seen)}


def _column(table: pa.Table, name: str) -> NDArray[np.float64]:
    found = table.column(name)
    if found.type == pa.float64() and found.num_chunks == 1 and not found.null_count:
        return np.asarray(found.chunk(0).to_numpy())  # as it lies there
    return numbers(table, name, f"expression {name!r}")


def _values(column: "pa.Array[Any]") -> NDArray[np.float64]:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _refuse_infinite(block: NDArray[np.float64], expressions: Sequence[str], batch: pa.RecordBatch, start: int) -> None:
    with np.errstate(invalid="ignore", over="ignore"):
        if np.isfinite(block.sum()):  # then every value is, and nothing is missing
            return
    infinite = np.isinf(block)
    if not infinite.any():
        return
    place = int(infinite.any(axis=0).argmax())
    row = int(infinite[:, place].argmax())
    expression = expressions[place]
    if expression in batch.schema.names:
        raise TableError(f"column {expression!r} has the value {block[row, place]}; leave such rows out of the table")
    used = columns_read(batch.schema, (expression,))
    where = ", ".join(f"{name} = {batch.column(name)[start + row].as_py()!r}" for name in used)
    raise ExpressionError(
        f"expression {expression!r} is {block[row, place]}{f' where {where}' if where else ''}; make it NULL there, "
        "with NULLIF or CASE"
    )


def _label(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _literal(value: Any) -> str:
    """The value as SQL writes it."""
    match value:
        case bool() | int():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return f"DATE '{value}'"
