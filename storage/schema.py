"""The shape of a cube before it holds anything: its axes, its variables, its tiles, its attributes.

In go names, values and chunk lengths, out comes a checked description that ``create`` writes once and every later
step reads back. Always true: a chunk length divides its axis, so a tile is one whole chunk of every variable.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from numpy.typing import NDArray

type TileKey = tuple[int, ...]
"""A tile's place: its index along each dimension of /trials (the axes in order, then the trial)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One dimension with its coordinate. ``values`` is int64, float64 or ``<U…`` (labels, mixed axes)."""

    name: str
    values: NDArray[Any]
    chunk: int
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.chunk < 1 or len(self.values) % self.chunk:
            raise ValueError(
                f"axis {self.name!r}: chunk length {self.chunk} does not divide its {len(self.values)} values; "
                "choose a divisor"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One array of /trials over all dimensions. Floats are filled with NaN; u1 statuses with 0 (missing)."""

    name: str
    dtype: str  # "float64" or "uint8"
    attributes: Mapping[str, Any] = field(default_factory=dict)
    extra: tuple[str, ...] = ()  # dimensions after the trial (``delta_epsilon``, ``query``), one chunk each


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeSchema:
    """Everything that is fixed when a store is made. ``axes`` ends with the axis called ``trial``; ``extra`` are the
    axes that only some variables have (never cut)."""

    axes: tuple[Axis, ...]
    variables: tuple[Variable, ...]
    attributes: Mapping[str, Any]
    extra: tuple[Axis, ...] = ()

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
