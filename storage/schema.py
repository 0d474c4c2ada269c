"""The shape of a cube before it holds anything: its axes, its variables, its tiles, its attributes.

In go names, values and chunk lengths, out comes a checked description that ``create`` writes once and every later
step reads back. Always true: a chunk length divides its axis, so a tile is one whole chunk of every variable; labels
of an axis are distinct and finite; every attribute survives JSON and NetCDF.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

type TileKey = tuple[int, ...]
"""A tile's place: its index along each dimension of /trials (the axes in order, then the trial)."""

type Attribute = str | int | float | bool | list[str] | list[int] | list[float]

MISSING, DONE, FAILED, INFEASIBLE = 0, 1, 2, 3
"""The values of every ``…status`` variable of /trials."""

STATUS_FLAGS: Mapping[str, Attribute] = {"flag_values": [0, 1, 2, 3], "flag_meanings": "missing done failed infeasible"}

# Words that Xarray's methods take beside dimension names: an axis called so would be taken for the option.
# fmt: off
RESERVED = frozenset(
    {
        "append", "args", "assume_sorted", "axis", "boundary", "center", "chunked_array_type", "chunks",
        "closed", "compute", "consolidated", "constant_values", "coord_func", "coord_names", "coords", "copy",
        "create_index", "create_index_for_new_dim", "ddof", "dim", "dim_order", "dims_dict", "drop",
        "eagerly_compute_group", "encoding", "end_values", "engine", "errors", "filepath", "fill_value",
        "format", "from_array_kwargs", "func", "group", "index_cls", "indexer", "indexers", "indexes",
        "inline_array", "items", "keep_attrs", "keepdims", "kwargs", "label", "labels", "limit", "lock",
        "max_gap", "method", "method_non_numeric", "min_count", "min_periods", "missing_dims", "mode",
        "name_dict", "name_prefix", "new_name_or_name_dict", "numeric_only", "offset", "origin", "pad_width",
        "parser", "queries", "reflect_type", "restore_coord_dims", "roll_coords", "self", "shifts", "side",
        "skipna", "squeeze", "stat_length", "store", "token", "tolerance", "unlimited_dims", "use_coordinate",
        "variables", "window", "window_type", "write_inherited_coords",
    }
)
# fmt: on
"""Names that no axis may bear."""

_DECODED = frozenset(
    {"_FillValue", "missing_value", "scale_factor", "add_offset", "dtype", "_Unsigned", "coordinates", "calendar"}
)
_TIMES = frozenset({"days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"})

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def check_name(name: str, what: str) -> None:
    """Raises ValueError unless ``name`` can name an array of a group ("a/b" would become a nested group)."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{what} {name!r}: a name is letters, digits and _, and begins with a letter")


def check_attributes(attributes: Mapping[str, Any], place: str) -> dict[str, Attribute]:
    """The attributes as plain JSON values that NetCDF takes too: text, numbers, booleans and lists of one of them.

    NumPy scalars and arrays become Python's. Raises ValueError on anything else: None, NaN, infinity, sets, paths
    and nested structures (write those as a JSON string).
    """
    checked: dict[str, Attribute] = {}
    for name, value in attributes.items():
        plain = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        items = list(plain) if isinstance(plain, list | tuple) else [plain]
        for item in items:
            if not isinstance(item, str | bool | int | float):
                raise ValueError(
                    f"{place}: attribute {name!r} is {value!r}; write structures and nothing-at-all as a JSON string"
                )
            if isinstance(item, float) and not math.isfinite(item):
                raise ValueError(f"{place}: attribute {name!r} is {value!r}, which JSON cannot hold; write it as text")
        checked[name] = items if isinstance(plain, list | tuple) else plain
    return checked


def check_array_attributes(attributes: Mapping[str, Any], place: str) -> dict[str, Attribute]:
    """The attributes of an array, checked as above and for words that make Xarray change the array as it opens it.

    Raises ValueError on those too: ``_FillValue`` would turn counts into floats, units of "seconds" floats into
    time spans, with a warning.
    """
    checked = check_attributes(attributes, place)
    if decoded := sorted(_DECODED & checked.keys()):
        raise ValueError(f"{place}: attribute {decoded[0]!r} would make Xarray change the values; leave it out")
    units = str(checked.get("units", ""))
    if units in _TIMES or " since " in units:
        raise ValueError(f"{place}: units {units!r} would make Xarray read times; write an abbreviation such as 's'")
    return checked


def _check_values(name: str, values: NDArray[Any]) -> None:
    if values.ndim != 1 or not len(values):
        raise ValueError(f"axis {name!r}: its values are an array of shape {values.shape}; give a list of at least one")
    if values.dtype.kind != "U" and values.dtype not in (np.dtype("int64"), np.dtype("float64")):
        raise ValueError(f"axis {name!r}: its values are {values.dtype}; give int64, float64 or text")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"axis {name!r}: {values[~np.isfinite(values)][0]} is not a place on an axis; drop it")
    if values.dtype.kind == "U" and any("\0" in v for v in values.tolist()):
        raise ValueError(f"axis {name!r}: a label contains the character 0; drop it")
    seen: set[Any] = set()
    for value in values.tolist():
        if value in seen:
            raise ValueError(f"axis {name!r}: {value!r} stands in it twice; drop one")
        seen.add(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One dimension with its coordinate. ``values`` is int64, float64 or ``<U…`` (labels, mixed axes)."""

    name: str
    values: NDArray[Any]
    chunk: int
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(self.name, "axis")
        if self.name in RESERVED:
            raise ValueError(f"axis {self.name!r}: Xarray's methods take that word for an option; use another name")
        _check_values(self.name, self.values)
        if self.chunk < 1 or len(self.values) % self.chunk:
            raise ValueError(
                f"axis {self.name!r}: chunk length {self.chunk} does not divide its {len(self.values)} values; "
                "choose a divisor"
            )
        object.__setattr__(self, "attributes", check_array_attributes(self.attributes, f"axis {self.name!r}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One array of /trials over all dimensions. Floats are filled with NaN; u1 statuses with 0 (missing)."""

    name: str
    dtype: str  # "float64" or "uint8"
    attributes: Mapping[str, Any] = field(default_factory=dict)
    extra: tuple[str, ...] = ()  # dimensions after the trial (``delta_epsilon``, ``query``), one chunk each

    def __post_init__(self) -> None:
        check_name(self.name, "variable")
        if self.dtype not in ("float64", "uint8"):
            raise ValueError(f"variable {self.name!r}: its type is {self.dtype!r}; use float64 or uint8")
        object.__setattr__(self, "attributes", check_array_attributes(self.attributes, f"variable {self.name!r}"))


def status_variable(name: str, description: str) -> Variable:
    """A status over the dimensions of /trials, with its flag attributes.

    >>> status_variable("error_status", "how the trial of error ended").dtype
    'uint8'
    """
    return Variable(
        name=name,
        dtype="uint8",
        attributes={"long_name": name.replace("_", " "), "units": "1", "description": description, **STATUS_FLAGS},
    )


def worst(*statuses: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The worst of several statuses, place by place: failed, then missing, then infeasible, then done.

    >>> worst(np.array([1, 1, 3], np.uint8), np.array([1, 2, 1], np.uint8)).tolist()
    [1, 2, 3]
    """
    rank = np.array([2, 0, 3, 1], np.uint8)  # MISSING, DONE, FAILED, INFEASIBLE
    value = np.array([DONE, INFEASIBLE, MISSING, FAILED], np.uint8)
    return value[np.max(np.stack([rank[s] for s in statuses]), axis=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeSchema:
    """Everything that is fixed when a store is made. ``axes`` ends with the axis called ``trial``; ``extra`` are the
    axes that only some variables have (never cut)."""

    axes: tuple[Axis, ...]
    variables: tuple[Variable, ...]
    attributes: Mapping[str, Any]
    extra: tuple[Axis, ...] = ()

    def __post_init__(self) -> None:
        if not self.axes or self.axes[-1].name != "trial" or self.axes[-1].values.dtype != np.int64:
            raise ValueError("the last axis of a cube is 'trial', of int64")
        taken: set[str] = set()
        parts: tuple[Axis | Variable, ...] = (*self.axes, *self.extra, *self.variables)
        for part in parts:
            # A file system that ignores case would keep both in one folder.
            if part.name.lower() in taken:
                raise ValueError(
                    f"{part.name!r} names two things of the cube (case does not tell names apart); rename one"
                )
            taken.add(part.name.lower())
        known = {axis.name for axis in self.extra}
        for axis in self.extra:
            if axis.chunk != len(axis.values):
                raise ValueError(
                    f"axis {axis.name!r}: chunk length {axis.chunk}; it is never cut, so {len(axis.values)}"
                )
        for variable in self.variables:
            if unknown := [d for d in variable.extra if d not in known]:
                raise ValueError(f"variable {variable.name!r}: there is no axis {unknown[0]!r} among the extra ones")
        object.__setattr__(self, "attributes", check_attributes(self.attributes, "the cube"))

    @property
    def tiles(self) -> tuple[int, ...]:
        """Number of tiles along each dimension."""
        return tuple(len(a.values) // a.chunk for a in self.axes)

    def keys(self) -> Iterator[TileKey]:
        """Every tile in row-major order."""
        return product(*(range(t) for t in self.tiles))

    def region(self, key: TileKey) -> tuple[slice, ...]:
        """The cells of a tile: one slice per dimension."""
        return tuple(slice(i * a.chunk, (i + 1) * a.chunk) for i, a in zip(key, self.axes, strict=True))

    def dimensions(self, variable: Variable) -> tuple[Axis, ...]:
        """The axes of a variable, in order."""
        extra = {axis.name: axis for axis in self.extra}
        return (*self.axes, *(extra[name] for name in variable.extra))

    def coordinates(self, key: TileKey) -> dict[str, NDArray[Any]]:
        """The labels of a tile: what a worker hands back to ``write_tile`` with what it computed for them."""
        cut = {a.name: a.values[s] for a, s in zip(self.axes, self.region(key), strict=True)}
        return cut | {axis.name: axis.values for axis in self.extra}

    def shape(self, variable: Variable) -> tuple[int, ...]:
        """The shape of one tile of a variable."""
        return tuple(axis.chunk for axis in self.dimensions(variable))
