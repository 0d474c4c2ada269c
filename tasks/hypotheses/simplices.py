"""How much of the unit square or cube two halfspaces disagree on: in go w·x ≥ b, out come areas or volumes.

The cube is cut into p! simplices, those are cut by the concept, and what another halfspace holds of a simplex is a
closed form in the values of w·x − b at its corners, a sum of positive terms. No sampling: errors are those of rounding.
"""

from itertools import permutations

import numpy as np
from numpy.typing import NDArray


def symmetric_difference(
    normals: NDArray[np.float64], offsets: NDArray[np.float64], normal: NDArray[np.float64], offset: float
) -> NDArray[np.float64]:
    """Volume of the part of [0, 1]^p on which w·x ≥ b differs from the concept ``normal``·x ≥ ``offset``: (M, p), (M,)
    → (M,). A halfspace with w = 0 is a constant: 1 where b ≤ 0."""
    cube = _cube(len(normal))
    inside = np.concatenate([_clipped(s, s @ normal - offset) for s in cube])
    outside = np.concatenate([_clipped(s, offset - s @ normal) for s in cube])
    return np.minimum(_held(outside, normals, offsets) + _held(inside, -normals, -offsets), 1.0)


def _cube(p: int) -> NDArray[np.float64]:
    """[0, 1]^p as p! simplices, one for each order of the coordinates: (p!, p + 1, p)."""
    corners = []
    for order in permutations(range(p)):
        simplex = np.zeros((p + 1, p))
        for i, coordinate in enumerate(order):
            simplex[i + 1 :, coordinate] = 1.0
        corners.append(simplex)
    return np.array(corners)


def _held(
    simplices: NDArray[np.float64], normals: NDArray[np.float64], offsets: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Volume that each halfspace holds of some simplices (S, p + 1, p): (M,)."""
    found = np.zeros(len(normals))
    for simplex in simplices:
        edges = simplex[1:] - simplex[0]
        volume = abs(float(np.linalg.det(edges))) / (2.0 if len(edges) == 2 else 6.0)
        found += volume * _fraction(normals @ simplex.T - offsets[:, None])
    return found


def _fraction(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of a simplex on which a linear function is positive, by its values at the corners (M, p + 1): (M,)."""
    v = -np.sort(-values, axis=1)
    p = v.shape[1] - 1
    positive = (v > 0).sum(axis=1)
    found = np.where(positive == 0, 0.0, 1.0)
    found[(v >= 0).all(axis=1)] = 1.0
    one = positive == 1
    found[one] = _corner(v[one, 0], v[one, 1:])
    most = (positive == p) & (v[:, -1] < 0) & (p > 1)
    most &= ~one
    found[most] = 1.0 - _corner(-v[most, -1], -v[most, :-1])
    if p == 3:
        two = (positive == 2) & (v[:, 3] < 0)
        a, b, c, d = (v[two, i] for i in range(4))
        ac, ad, bc, bd = a / (a - c), a / (a - d), b / (b - c), b / (b - d)
        found[two] = ac * ad + ac * (1 - ad) * bd + (1 - ac) * bc * bd
    return found


def _corner(at: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share cut off at the one corner of positive value: Π a/(a − other)."""
    return np.asarray(np.prod(at[:, None] / (at[:, None] - others), axis=1))


def _clipped(simplex: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The part of one simplex where a linear function with these values at its corners is positive, as simplices."""
    order = np.argsort(-values, kind="stable")
    x, v = simplex[order], values[order]
    p = len(v) - 1
    positive = int((v > 0).sum())
    if positive == 0 or bool((v >= 0).all()):
        return simplex[None][: int(positive > 0)]

    def cut(i: int, j: int) -> NDArray[np.float64]:
        return np.asarray(x[i] + (v[i] / (v[i] - v[j])) * (x[j] - x[i]))

    # A prism between the positive corners and the cuts, walked as a staircase.
    if positive == 1:
        return np.array([[x[0], *(cut(0, j) for j in range(1, p + 1))]])
    if p == 2:
        a, b, bc, ac = x[0], x[1], cut(1, 2), cut(0, 2)
        return np.array([[a, b, bc], [a, bc, ac]])
    if positive == 2:
        ac, ad, bc, bd = cut(0, 2), cut(0, 3), cut(1, 2), cut(1, 3)
        return np.array([[x[0], ac, ad, x[1]], [ac, ad, x[1], bd], [ac, x[1], bc, bd]])
    ad, bd, cd = cut(0, 3), cut(1, 3), cut(2, 3)
    return np.array([[x[0], x[1], x[2], ad], [x[1], x[2], ad, bd], [x[2], ad, bd, cd]])
