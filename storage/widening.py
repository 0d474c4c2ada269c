"""One type for a column that has several: in go Arrow types and arrays, out come the type that holds them all, and the
arrays in it.

Always true: booleans widen to integers, integers to floats, anything else that differs to text; dictionaries and the
several kinds of text are plain text.
"""

from typing import Any

import pyarrow as pa

from predcube.storage.failures import TableError


def plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values: without a dictionary, and one kind of text.

    >>> plain(pa.dictionary(pa.int8(), pa.large_string()))
    DataType(string)
    """
    if pa.types.is_dictionary(kind):
        return plain(kind.value_type)
    return pa.string() if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) else kind


def widened(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type that holds the values of both.

    >>> widened(pa.int16(), pa.uint8()), widened(pa.int32(), pa.float32()), widened(pa.float64(), pa.string())
    (DataType(int64), DataType(double), DataType(string))

    Raises TableError for lists, structures and bytes beside anything else: they cannot be written as text.
    """
    one, other = plain(one), plain(other)
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if _number(one) and _number(other):
        # What is above int64 fits float64 alone.
        whole = all(not _fraction(kind) and kind != pa.uint64() for kind in (one, other))
        return pa.int64() if whole else pa.float64()
    if _moment(one) and _moment(other) and getattr(one, "tz", None) == getattr(other, "tz", None):
        units = {getattr(kind, "unit", "s") for kind in (one, other)}
        return pa.timestamp(next(u for u in ("ns", "us", "ms", "s") if u in units), getattr(one, "tz", None))
    for kind in (one, other):
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise TableError(f"it is {one} in one file and {other} in another")
    return pa.string()


def widen(values: "pa.Array[Any]", kind: pa.DataType) -> "pa.Array[Any]":
    """The values in a type that holds them."""
    if values.type == kind:
        return values
    return values.cast(kind, safe=not pa.types.is_floating(kind))


def _number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_boolean(kind) or _fraction(kind)


def _fraction(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _moment(kind: pa.DataType) -> bool:
    return pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
