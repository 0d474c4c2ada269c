"""Surfaces as columns: in go a data set, names and values as a user wrote them, out come places on axes, Arrow columns
and truth values.

Always true: an unknown name or value is an error that names the nearest; NaN becomes null and codes become their words.
"""

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import xarray as xr
from numpy.typing import NDArray

from predcube.pipeline.failures import BadInput
from predcube.storage.expressions import columns_of, evaluate

type Wanted = str | int | float | bool | Sequence[str | int | float | bool]

TOLERANCE = 1e-9
"""Two numbers on an axis are the same where they differ by no more than this share (0.3 and 0.1 + 0.2)."""


def fix(data: xr.Dataset, at: Mapping[str, Wanted]) -> xr.Dataset:
    """The part of the data at the given values of the given axes; no axis is dropped. Raises ``BadInput``."""
    places: dict[str, slice | NDArray[np.intp]] = {}
    for axis, wanted in at.items():
        check_axis(data, axis)
        values = wanted if isinstance(wanted, Sequence) and not isinstance(wanted, str) else [wanted]
        found = {_place(axis, data[axis].values, v) for v in values}
        first, last = min(found), max(found)
        # A slice reads the chunks it needs; an array of places is looked up element by element.
        neighbours = len(found) == last - first + 1
        places[axis] = slice(first, last + 1) if neighbours else np.array(sorted(found), dtype=np.intp)
    return data.isel(places)


def check_axis(data: xr.Dataset, axis: str) -> None:
    if axis in data.dims:
        return
    axes = [str(d) for d in data.dims]
    if axis in data.data_vars:
        raise BadInput(
            f"{axis!r} is a variable, not an axis (the axes are {', '.join(axes)}); to filter rows by it use --where"
        )
    raise BadInput(unknown(axis, axes, "axis"))


def unknown(name: str, known: Iterable[str], what: str) -> str:
    """The message for a name that is not known: the nearest one, else all of them."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    cure = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names) or 'none'}"
    return f"no {what} {name!r} in this store; {cure}"


def _place(axis: str, values: NDArray[Any], wanted: str | int | float | bool) -> int:
    """Where ``wanted`` stands on an axis: labels by equality, numbers within the tolerance."""
    if values.dtype.kind not in "iuf":
        labels = [str(v) for v in values]
        word = str(wanted).lower() if isinstance(wanted, bool) else str(wanted)
        if word in labels:
            return labels.index(word)
        number = _number(wanted)
        for i, label in enumerate(labels):
            other = _number(label)
            if number is not None and other is not None and math.isclose(number, other, rel_tol=TOLERANCE):
                return i
        near = difflib.get_close_matches(word, labels, n=1, cutoff=0.4)
        nearest = f"the nearest is {near[0]!r}; " if near else ""
        raise BadInput(f"{axis}={word}: no such label; {nearest}the axis has {listing(labels)}")
    number = _number(wanted)
    if number is None:
        raise BadInput(f"{axis}={wanted}: not a number; the axis has {listing(values)}")
    nearest_place = int(np.argmin(np.abs(values.astype(np.float64) - number)))
    if math.isclose(number, float(values[nearest_place]), rel_tol=TOLERANCE):
        return nearest_place
    raise BadInput(
        f"{axis}={wanted}: not on the axis; the nearest is {values[nearest_place].item()!r}; "
        f"the axis has {listing(values)}"
    )


def _number(value: str | int | float | bool) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def listing(values: Iterable[Any]) -> str:
    """Values in a message: all of up to 12, else the first and last few."""
    words = [str(v.item() if isinstance(v, np.generic) else v) for v in values]
    return (
        ", ".join(words)
        if len(words) <= 12
        else f"{', '.join(words[:5])}, …, {', '.join(words[-3:])} ({len(words)} values)"
    )


def used_by(data: xr.Dataset, expression: str) -> list[str]:
    """The columns that an expression uses. Raises ``BadInput`` for one that is unknown, naming the nearest."""
    known = [*map(str, data.dims), *map(str, data.data_vars)]
    folded = {k.casefold(): k for k in known}  # SQL takes names without regard to case
    used = [name if name in known else folded.get(name.casefold(), name) for name in columns_of(expression)]
    for name in used:
        if name not in known:
            raise BadInput(unknown(name, known, "column"))
    return used


def truth(table: pa.Table, expression: str, option: str) -> NDArray[np.bool_]:
    """Where an expression is true (not where it is null). Raises ``BadInput`` where it is no condition."""
    result = evaluate(expression, table)
    if not pa.types.is_boolean(result.type):
        raise BadInput(
            f"{option} {expression!r} is {result.type}, not a condition; compare it, as in {expression} <= 0.1"
        )
    values: NDArray[Any] = result.to_numpy()  # of objects where there are nulls
    return np.asarray(values == np.True_, dtype=np.bool_)


def spread(data: xr.Dataset, name: str, dims: Sequence[str]) -> NDArray[Any]:
    """A variable, or an axis, over the product of ``dims``, repeated along those that it has not."""
    variable = data[name].variable
    # Read first, turn then: turning a lazy array makes Zarr look up every element by itself.
    values = np.asarray(variable.values)
    order = [d for d in dims if d in variable.dims]
    values = values.transpose([variable.dims.index(d) for d in order])
    values = values.reshape([data.sizes[d] if d in order else 1 for d in dims])
    return np.broadcast_to(values, tuple(data.sizes[d] for d in dims))


def columns_over(
    data: xr.Dataset, dims: Sequence[str], variables: Sequence[str], keep: NDArray[np.bool_] | None = None
) -> pa.Table:
    """Columns over the product of ``dims`` (row-major): the axes, then the variables; rows ``keep`` only."""
    columns: dict[str, pa.Array[Any]] = {d: _arrow(spread(data, d, dims).ravel(), keep) for d in dims}
    for name in variables:
        if name in columns:
            continue
        columns[name] = _arrow(spread(data, name, dims).ravel(), keep, flags(data[name]))
    if not columns:
        return pa.table({})
    fields = [pa.field(n, c.type, metadata=_field_metadata(data[n])) for n, c in columns.items()]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def _field_metadata(variable: xr.DataArray) -> dict[str, str]:
    return {k: str(variable.attrs[k]) for k in ("long_name", "units") if k in variable.attrs}


def flags(variable: xr.DataArray) -> dict[int, str] | None:
    """The words of a variable of codes, or None."""
    if "flag_meanings" not in variable.attrs:
        return None
    values = np.atleast_1d(variable.attrs["flag_values"])
    return {int(v): w for v, w in zip(values, str(variable.attrs["flag_meanings"]).split(), strict=True)}


def _arrow(
    values: NDArray[Any], keep: NDArray[np.bool_] | None, words: Mapping[int, str] | None = None
) -> "pa.Array[Any]":
    """One column: NaN becomes null, codes become their words."""
    if keep is not None:
        values = values[keep]
    if words is not None:
        dictionary = [words.get(i, str(i)) for i in range(max(words, default=0) + 1)]
        return pa.array(np.array(dictionary, dtype=object)[values], type=pa.string())
    column: pa.Array[Any] = (
        pa.array(values, from_pandas=True)
        if values.dtype.kind in "iufb"
        else pa.array(values.astype(object), type=pa.string())
    )
    return column
