"""On which side of a line or plane a point lies, exactly: in go floats, out come signs of determinants.

Floats are dyadic rationals, so the determinant has an exact sign. It is computed in floats with a bound on the error;
the few signs that the bound leaves open are computed in integers. Always true: equal to the sign in rational arithmetic
for coordinates whose magnitude is 0 or between 1/``RANGE`` and ``RANGE``, where no product over- or underflows.
"""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

RANGE = 2.0**255
_UNSURE = 2
# Shewchuk 1997: (3 + 16ε)ε in the plane and (7 + 56ε)ε in space, ε = 2^-53, times the sum of magnitudes; rounded up.
_ERROR = {2: 4.0 * 2.0**-53, 3: 8.0 * 2.0**-53}
# Integers of so many bits have determinants that floats hold exactly.
_EXACT_BITS = {2: 24, 3: 15}


def exact_coordinates(points: NDArray[Any]) -> NDArray[np.float64]:
    """Points as floats; ValueError for a coordinate that no sign could be computed of, or no float holds."""
    found = points.astype(np.float64)
    size = np.abs(found)
    bad = np.argwhere((size > RANGE) | ((size > 0) & (size < 1 / RANGE)))
    if len(bad) == 0 and points.dtype.kind in "iu":
        bad = np.argwhere((points > 2**53) | (points < -(2**53)))
    if len(bad):
        raise ValueError(
            f"coordinate {points[tuple(bad[0])]} at position {bad[0][0]} is too large or too small for exact "
            "halfspaces (2^-255 to 2^255, integers to 2^53); rescale the points"
        )
    return found


def signs(planes: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.int8]:
    """Sign of det(a_2 − a_1, …, x − a_1) for each plane (a_1, …, a_p) and point x: (L, p, p), (K, p) → (L, K) of −1, 0,
    1. In the plane 1 is left of the line from a_1 to a_2."""
    found = np.empty((len(planes), len(points)), dtype=np.int8)
    p = points.shape[1]
    kernel = _lines if p == 2 else _planes
    kernel(planes, points, _error(p, planes, points), found)
    unsure = np.nonzero(found == _UNSURE)
    if len(unsure[0]):
        found[unsure] = _exact(planes[unsure[0]], points[unsure[1]])
    return found


def paired_signs(planes: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.int8]:
    """The same for the i-th plane and the i-th point: (L, p, p), (L, p) → (L,)."""
    found = np.empty(len(points), dtype=np.int8)
    p = points.shape[1]
    kernel = _each_line if p == 2 else _each_plane
    kernel(planes, points, _error(p, planes, points), found)
    unsure = np.flatnonzero(found == _UNSURE)
    if len(unsure):
        found[unsure] = _exact(planes[unsure], points[unsure])
    return found


def _error(p: int, *arrays: NDArray[np.float64]) -> float:
    """The bound on the relative error of a determinant, 0 where all coordinates are small integers over one power of
    2."""
    largest = max((float(np.abs(a).max(initial=0.0)) for a in arrays), default=0.0)
    if largest == 0.0:
        return 0.0
    scale = 2.0 ** (_EXACT_BITS[p] - np.frexp(largest)[1])
    whole = all(bool((a * scale == np.rint(a * scale)).all()) for a in arrays)
    return 0.0 if whole else _ERROR[p]


def _exact(planes: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.int8]:
    integers = _integers(np.concatenate([planes, points[:, None, :]], axis=1))
    d = integers[:, 1:] - integers[:, :1]
    if points.shape[1] == 2:
        value = d[:, 0, 0] * d[:, 1, 1] - d[:, 0, 1] * d[:, 1, 0]
    else:
        value = (
            d[:, 2, 0] * (d[:, 0, 1] * d[:, 1, 2] - d[:, 0, 2] * d[:, 1, 1])
            + d[:, 2, 1] * (d[:, 0, 2] * d[:, 1, 0] - d[:, 0, 0] * d[:, 1, 2])
            + d[:, 2, 2] * (d[:, 0, 0] * d[:, 1, 1] - d[:, 0, 1] * d[:, 1, 0])
        )
    return np.asarray(value > 0, dtype=np.int8) - np.asarray(value < 0, dtype=np.int8)


def _integers(values: NDArray[np.float64]) -> NDArray[Any]:
    """Floats times one power of 2, as Python's integers."""
    mantissa, exponent = np.frexp(values)
    exponent = np.where(values == 0.0, exponent.max(initial=0), exponent)
    shift = (exponent - exponent.min(initial=0)).astype(object)
    return np.asarray((mantissa * 2.0**53).astype(np.int64).astype(object) << shift)


@numba.njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _line(ax: float, ay: float, bx: float, by: float, x: float, y: float, error: float) -> int:
    one, two = (bx - ax) * (y - ay), (by - ay) * (x - ax)
    det = one - two
    bound = error * (abs(one) + abs(two))
    if det > bound:
        return 1
    if -det > bound:
        return -1
    # Most zeros are the points that the line is given by.
    through = (x == ax and y == ay) or (x == bx and y == by)
    return 0 if bound == 0.0 or through else _UNSURE


@numba.njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _plane(a: NDArray[np.float64], x: NDArray[np.float64], error: float) -> int:
    b0, b1, b2 = a[1, 0] - a[0, 0], a[1, 1] - a[0, 1], a[1, 2] - a[0, 2]
    c0, c1, c2 = a[2, 0] - a[0, 0], a[2, 1] - a[0, 1], a[2, 2] - a[0, 2]
    x0, x1, x2 = x[0] - a[0, 0], x[1] - a[0, 1], x[2] - a[0, 2]
    det = x0 * (b1 * c2 - b2 * c1) + x1 * (b2 * c0 - b0 * c2) + x2 * (b0 * c1 - b1 * c0)
    bound = error * (
        abs(x0) * (abs(b1 * c2) + abs(b2 * c1))
        + abs(x1) * (abs(b2 * c0) + abs(b0 * c2))
        + abs(x2) * (abs(b0 * c1) + abs(b1 * c0))
    )
    if det > bound:
        return 1
    if -det > bound:
        return -1
    if bound == 0.0:
        return 0
    for i in range(3):  # most zeros are the points that the plane is given by
        if x[0] == a[i, 0] and x[1] == a[i, 1] and x[2] == a[i, 2]:
            return 0
    return _UNSURE


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _lines(planes: NDArray[np.float64], points: NDArray[np.float64], error: float, found: NDArray[np.int8]) -> None:
    for i in range(len(planes)):
        ax, ay, bx, by = planes[i, 0, 0], planes[i, 0, 1], planes[i, 1, 0], planes[i, 1, 1]
        for j in range(len(points)):
            found[i, j] = _line(ax, ay, bx, by, points[j, 0], points[j, 1], error)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _each_line(planes: NDArray[np.float64], points: NDArray[np.float64], error: float, found: NDArray[np.int8]) -> None:
    for i in range(len(planes)):
        ax, ay, bx, by = planes[i, 0, 0], planes[i, 0, 1], planes[i, 1, 0], planes[i, 1, 1]
        found[i] = _line(ax, ay, bx, by, points[i, 0], points[i, 1], error)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _planes(planes: NDArray[np.float64], points: NDArray[np.float64], error: float, found: NDArray[np.int8]) -> None:
    for i in range(len(planes)):
        for j in range(len(points)):
            found[i, j] = _plane(planes[i], points[j], error)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _each_plane(
    planes: NDArray[np.float64], points: NDArray[np.float64], error: float, found: NDArray[np.int8]
) -> None:
    for i in range(len(planes)):
        found[i] = _plane(planes[i], points[i], error)
