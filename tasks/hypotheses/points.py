"""Points of X: in go arrays as users give them, out come checked ones.

Always true afterwards: coordinates are finite, there is one zero (−0.0 is 0.0), and points of a finite X are the
integers 0, …, k − 1.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predcube.tasks.hypotheses.base import Points


def real_points(points: ArrayLike) -> Points:
    """Points on the line, shape (m,); one column (m, 1) is taken as (m,). ValueError on NaN and infinity."""
    array = _numeric(points)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"points of shape {array.shape} have several features; give one number per point")
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ValueError(f"point {array[bad[0]]} at position {bad[0]} is not finite; drop or mend it")
    return array.astype(np.float64) + 0.0


def finite_points(points: ArrayLike, size: int) -> NDArray[np.int64]:
    """Points of X = {0, …, size − 1} as integers; ValueError names the first point outside X."""
    array = real_points(points)
    outside = np.flatnonzero((array < 0) | (array >= size) | (array != np.floor(array)))
    if len(outside):
        raise ValueError(
            f"point {array[outside[0]]} at position {outside[0]} is outside X = {{0, …, {size - 1}}}; "
            "give integers of X or more points"
        )
    return array.astype(np.int64)


def distinct[D: np.generic](points: NDArray[D]) -> tuple[NDArray[D], NDArray[np.int64]]:
    """The distinct points in sorted order (rows lexicographically), and where each of ``points`` stands among
    them: shapes (k,) or (k, features), and (m,)."""
    axis = 0 if points.ndim == 2 else None
    unique, inverse = np.unique(points, return_inverse=True, axis=axis)
    return unique, inverse.reshape(-1).astype(np.int64)


def _numeric(points: ArrayLike) -> NDArray[Any]:
    array = np.asarray(points)
    if array.size == 0 and array.dtype == object:
        array = array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"points of type {array.dtype} are not numbers; give integers or floats")
    return array
