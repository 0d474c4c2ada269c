"""Points of X: in go arrays as users give them, out come checked ones.

Always true afterwards: coordinates are finite, there is one zero (−0.0 is 0.0), and points of a finite X are integers:
0, …, k − 1 on a line, those of a grid {0, …, k − 1}^dimension otherwise.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predcube.tasks.hypotheses.base import Points

LARGEST_GRID = 2**20
"""The most points of a grid."""


def real_points(points: ArrayLike, dimension: int = 1) -> Points:
    """Points of R^dimension: shape (m,) on the line (one column (m, 1) is taken as such), else (m, dimension).
    ValueError on NaN, infinity and another number of features."""
    array = _numeric(points)
    if array.ndim == 2 and array.shape[1] == 1 and dimension == 1:
        array = array[:, 0]
    if array.ndim == 1 and array.size == 0 and dimension > 1:
        array = array.reshape(0, dimension)
    if dimension == 1 and array.ndim != 1:
        raise ValueError(f"points of shape {array.shape} have several features; give one number per point")
    if dimension > 1 and (array.ndim != 2 or array.shape[1] != dimension):
        features = 1 if array.ndim == 1 else array.shape[-1]
        raise ValueError(
            f"points of shape {array.shape} have {features} feature{'s' if features != 1 else ''}, not {dimension}; "
            f"give {dimension} numbers per point, shape (m, {dimension}), or change dimension"
        )
    if array.dtype.kind in "iub":
        return array.astype(np.int64, copy=False)
    if not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))
        where = f"at position {bad[0][0]}" + (f", feature {bad[0][1]}," if dimension > 1 else "")
        raise ValueError(f"point {array[tuple(bad[0])]} {where} is not finite; drop or mend it")
    return np.asarray(array, dtype=np.float64) + 0.0  # one zero


def finite_points(points: ArrayLike, size: int, dimension: int = 1) -> NDArray[np.int64]:
    """Points of X = {0, …, size − 1}^dimension as integers; ValueError names the first point outside X."""
    array = real_points(points, dimension)
    if array.dtype == np.int64 and array.size and array.view(np.uint64).max() < size:  # below 0 is very large
        return np.asarray(array)
    wrong = (array < 0) | (array >= size) | (array != np.floor(array))
    outside = np.flatnonzero(wrong if dimension == 1 else wrong.any(axis=1))
    if len(outside):
        power = "" if dimension == 1 else f"^{dimension}"
        point = array[outside[0]]
        shown = point if dimension == 1 else tuple(point.tolist())
        raise ValueError(
            f"point {shown} at position {outside[0]} is outside X = {{0, …, {size - 1}}}{power}; "
            "give integers of X or more points"
        )
    return array.astype(np.int64)


def grid(side: int, dimension: int) -> NDArray[np.int64]:
    """{0, …, side − 1}^dimension in sorted order: (side,) on the line, else (side^dimension, dimension)."""
    if dimension == 1:
        return np.arange(side)
    return np.stack(np.unravel_index(np.arange(side**dimension), (side,) * dimension), axis=1).astype(np.int64)


def check_grid(kind: str, side: int | None, dimension: int) -> None:
    """ValueError where a grid has more than ``LARGEST_GRID`` points."""
    if side is not None and dimension > 1 and side**dimension > LARGEST_GRID:
        raise ValueError(
            f"{kind}: points = {side} with dimension = {dimension} is a grid of {side**dimension} points, at most "
            f"{LARGEST_GRID} are taken; lower points, or leave it out for a real X"
        )


def distinct[D: np.generic](points: NDArray[D]) -> tuple[NDArray[D], NDArray[np.int64]]:
    """The distinct points in sorted order (rows lexicographically), and where each of ``points`` stands among
    them: shapes (k,) or (k, features), and (m,)."""
    if points.ndim == 1 and np.greater(points[1:], points[:-1]).all():
        return points, np.arange(len(points))
    axis = 0 if points.ndim == 2 else None
    unique, inverse = np.unique(points, return_inverse=True, axis=axis)
    return unique, inverse.reshape(-1).astype(np.int64)


def locate(values: NDArray[Any], points: NDArray[Any]) -> NDArray[np.int64]:
    """Where each of ``points`` stands among sorted distinct ``values``, −1 where it is none of them: (m,)."""
    joined, place = distinct(np.concatenate([values, points]))
    where = np.full(len(joined), -1, dtype=np.int64)
    where[place[: len(values)]] = np.arange(len(values))
    return where[place[len(values) :]]


def named_numbers(value: Any) -> list[float]:
    """The finite numbers that a name lists; [] where it lists none, or anything else."""
    listed = list(value) if isinstance(value, list | tuple | np.ndarray) else []
    good = all(isinstance(v, int | float | np.integer | np.floating) and not isinstance(v, bool) for v in listed)
    numbers = [float(v) for v in listed] if good else []
    return numbers if all(map(math.isfinite, numbers)) else []


def _numeric(points: ArrayLike) -> NDArray[Any]:
    array = np.asarray(points)
    if array.size == 0 and array.dtype == object:
        array = array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"points of type {array.dtype} are not numbers; give integers or floats")
    return array
