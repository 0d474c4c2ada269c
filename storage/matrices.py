"""Numbers of a record batch: in go a batch and expressions, out comes one float64 matrix; or the labels of a column.

Always true of a matrix: C order, NaN where a value is missing, nothing infinite.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from predcube.storage.expressions import columns_of, evaluate
from predcube.storage.failures import ExpressionError
from predcube.storage.tables import numbers


def columns_read(schema: pa.Schema, expressions: Sequence[str]) -> tuple[str, ...]:
    """The columns that a batch must have for ``matrix`` of these expressions, each once, as the schema spells them.

    Raises ExpressionError where there is no such column, or an expression is not one value per row.
    """
    known = {name.casefold(): name for name in schema.names}
    found: dict[str, None] = {}
    for expression in expressions:
        for name in (expression,) if expression in schema.names else columns_of(expression):
            if name.casefold() not in known:
                raise ExpressionError(f"expression {expression!r}: there is no column {name!r}")
            found[name if name in schema.names else known[name.casefold()]] = None
    return tuple(found)


def matrix(batch: pa.RecordBatch, expressions: Sequence[str]) -> NDArray[np.float64]:
    """(rows, expressions) values: column names as they stand, everything else as SQL; booleans are 0 and 1.

    Raises ExpressionError (TableError for a column) where a result is text, a date, or infinite.
    """
    out = np.empty((batch.num_rows, len(expressions)))
    table = pa.Table.from_batches([batch])
    for place, expression in enumerate(expressions):
        if expression not in table.column_names:
            table = table.append_column(expression, evaluate(expression, table))
        out[:, place] = numbers(table, expression, "here")
    return out


def labels(batch: pa.RecordBatch, column: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """A group column as codes (rows,) and the distinct labels they stand for, in the order of appearance in the batch;
    the code of a missing label is -1. Whole numbers are written without a point, whatever their type."""
    found = batch.column(column)
    if pa.types.is_dictionary(found.type):
        found = found.cast(found.type.value_type)
    encoded = found.dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    return codes, tuple(str(v) for v in encoded.dictionary.to_pylist())
