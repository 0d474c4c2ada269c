"""Columns in memory as numbers, memberships and labels: in goes anything that NumPy reads as one column of values.

Missing is NaN, None, NaT, a masked element, or a missing value of a data-frame library. Text is never read as a number.
"""

from collections.abc import Iterable
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray


def column_of(table: Any, name: str, place: str) -> Any:
    """The column called ``name``. ValueError that names the ``place`` and the nearest column where there is none."""
    names = names_of(table)
    if name in names:
        return table[name]
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
    raise ValueError(
        f"{place}: the table has no column {name!r}: {hint}; expressions are for "
        "predcube.pipeline.predictability, which reads files"
    )


def names_of(table: Any) -> list[str]:
    """The names of a table's columns: of a mapping, a data frame, or a structured array. ValueError for others."""
    for attribute in ("column_names", "columns", "keys"):
        found = getattr(table, attribute, None)
        if callable(found):
            found = found()
        if isinstance(found, Iterable):
            names = list(found)
            if all(isinstance(name, str) for name in names):
                return names
    fields = getattr(getattr(table, "dtype", None), "names", None)
    if fields:
        return list(fields)
    raise ValueError(
        f"table of type {type(table).__name__} has no columns with names: give a mapping of name to values"
    )


def numbers(values: Any, place: str) -> NDArray[np.float64]:
    """(N,) float64, NaN where missing. ValueError for text, dates, infinities and what is not one column."""
    array = _one_column(values, place)
    if array.dtype.kind in "biuf":
        out = array.astype(np.float64)
    elif array.dtype.kind == "O":
        out = np.fromiter((_number(value, place) for value in array), dtype=np.float64, count=len(array))
    else:
        raise ValueError(f"{place} holds {_what(array)}, not numbers")
    if np.isinf(out).any():
        row = int(np.argmax(np.isinf(out)))
        raise ValueError(f"{place} holds {out[row]} in row {row + 1}: leave the value missing or make it finite")
    return out


def memberships(values: Any, place: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(N,) whether a row is a member, and whether that is known. ValueError for values other than 0, 1 and missing."""
    found = numbers(values, place)
    known = ~np.isnan(found)
    wrong = known & (found != 0) & (found != 1)
    if wrong.any():
        raise ValueError(f"{place} holds {found[wrong][0]:g}: a membership is true, false, 1 or 0")
    return found == 1, known


def labelled(values: Any, place: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """(N,) codes into the distinct labels, ascending; −1 where missing. Whole numbers are written without a point."""
    array = _one_column(values, place)
    if array.dtype.kind in "biu" or array.dtype.kind == "f":
        distinct, inverse = np.unique(array, return_inverse=True)
        texts = [_text(value) for value in distinct.tolist()]
    elif array.dtype.kind in "OUS":
        seen: dict[Any, int] = {}
        inverse = np.fromiter((seen.setdefault(_key(value), len(seen)) for value in array), np.int64, len(array))
        texts = [_text(value) for value in seen]
    else:
        raise ValueError(f"{place} holds {_what(array)}, not labels")
    labels = tuple(sorted({text for text in texts if text is not None}))
    codes = np.array([labels.index(text) if text is not None else -1 for text in texts], dtype=np.int64)
    return codes[inverse], labels


def _one_column(values: Any, place: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        missing, values = np.ma.getmaskarray(values), values.data.astype(object)
        values[missing] = None
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{place} has shape {array.shape}; a column is one value a row")
    return array


def _missing(value: Any) -> bool:
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _number(value: Any, place: str) -> float:
    if _missing(value):
        return np.nan
    if isinstance(value, bool | int | float | Decimal | np.number | np.bool_):
        return float(value)
    raise ValueError(f"{place} holds {value!r} of type {type(value).__name__}, not a number")


def _key(value: Any) -> Any:
    return None if _missing(value) else _text(value)


def _text(value: Any) -> str | None:
    if _missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _what(array: NDArray[Any]) -> str:
    kinds: dict[str, str] = {"U": "text", "S": "bytes", "M": "dates", "m": "time spans", "c": "complex numbers"}
    return kinds.get(array.dtype.kind, str(array.dtype))
