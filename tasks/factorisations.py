"""Factors that keep the small beside the large: in go covariances and roots of noise, out come triangles and bases.

Directions of a release can differ in size by 1e10 and more. What is done here loses no digits of the small ones where
rows, or columns, differ in size: elimination in a given order, the complement of a span with entries that are right
each by itself, and singular values of rows in falling order.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu, solve_triangular

type Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)

ROUNDING = 1e-12
"""A sum is rounding where it is below this part of the absolute values of its terms."""


def ordered(matrix: Array, floor: float, grain: Array | None = None) -> tuple[Array, NDArray[np.bool_]]:
    """(L, kept): L (d, d) lower triangular and invertible, A = L_kept L_keptᵀ for a positive semidefinite A (d, d).

    Coordinates are taken in their order. One is not kept where what those before it leave of its variance is at most
    ``floor``, or 4 times |N n|², the rounding of that combination n, for N = ``grain`` (m, d): its column of L is then
    a unit vector, and its row of L⁻¹ the combination n.
    """
    size = len(matrix)
    much = 0.1 * float(np.max(np.diag(matrix), initial=0.0))
    lower = np.zeros((size, size))
    kept = np.zeros(size, dtype=np.bool_)
    for j in range(size):
        left = matrix[j:, j] - lower[j:, :j] @ lower[j, :j]
        least = floor
        if grain is not None and left[0] < much:
            given = solve_triangular(lower[:j, :j], lower[j, :j], trans="T", lower=True) if j else np.zeros(0)
            least = max(floor, 4 * float(np.sum((grain[:, j] - grain[:, :j] @ given) ** 2)))
        if left[0] > least:
            kept[j] = True
            lower[j:, j] = left / np.sqrt(left[0])
        else:
            lower[j, j] = 1.0
    return lower, kept


def complement(seen: Array, terms: Array, rounding: float = ROUNDING) -> Array:
    """(l, l − c) an orthonormal basis of what c independent rows of ``seen`` (·, l) do not show.

    terms: (·, l) the absolute values that each entry of ``seen`` is a sum of: a row below the part ``rounding`` of
    them shows nothing, and neither does one that the others show.
    """
    size = seen.shape[1]
    norms, sizes = np.linalg.norm(seen, axis=1), np.linalg.norm(terms, axis=1)
    real = norms > rounding * sizes
    if not np.any(real):
        return np.eye(size)
    rows, limits = seen[real] / norms[real][:, None], rounding * sizes[real] / norms[real]
    order, ratios = _eliminated(rows, limits)
    rank = len(ratios)
    basis = np.zeros((size, size - rank))
    basis[order[:rank]], basis[order[rank:]] = -ratios, np.eye(size - rank)
    if rank == size:
        return basis
    root = np.linalg.cholesky(np.eye(size - rank) + ratios.T @ ratios)
    orthonormal: Array = solve_triangular(root, basis.T, lower=True).T
    return orthonormal


def _eliminated(rows: Array, limits: Array) -> tuple[NDArray[np.int64], Array]:
    """(order, X): with its columns in that order, the span of unit ``rows`` is that of the rows [I, X], (rank, l)."""
    if len(rows) <= rows.shape[1]:
        place, lower, upper = _triangles(rows)
        if np.all(np.abs(np.diag(upper)) > np.maximum(limits, 1e-8)):
            square = lower[: len(rows)]
            ratios = solve_triangular(square, lower[len(rows) :].T, trans="T", lower=True, unit_diagonal=True)
            return np.argsort(place), ratios
    rows, limits = rows.copy(), np.maximum(limits, 64 * EPS)
    pivots: list[int] = []
    used: list[int] = []
    free = np.ones(len(rows), dtype=np.bool_)
    while np.any(free):
        largest = np.where(free, np.max(np.abs(rows), axis=1) / limits, 0.0)
        i = int(np.argmax(largest))
        if largest[i] <= 1.0:
            break
        j = int(np.argmax(np.abs(rows[i])))
        rows[i] /= rows[i, j]
        factors = rows[:, j].copy()
        factors[i] = 0.0
        rows -= np.outer(factors, rows[i])
        rows[:, j] = 0.0
        rows[i, j] = 1.0
        free[i] = False
        used.append(i)
        pivots.append(j)
    others = np.setdiff1d(np.arange(rows.shape[1]), pivots)
    return np.concatenate([np.array(pivots, dtype=np.int64), others]), rows[np.ix_(used, others)]


def _triangles(rows: Array) -> tuple[NDArray[np.int64], Array, Array]:
    place, lower, upper = lu(rows.T, p_indices=True)
    return place.astype(np.int64), lower, upper


def left_singular(matrix: Array) -> tuple[Array, Array]:
    """(W, s): left vectors (k, k) and singular values (k,), zeros where there are fewer, of a matrix (k, l) whose rows
    may differ in size as they like: small values are right to relative precision (triangles of falling rows keep it in
    Householder's reflections: Barlow & Demmel 1990)."""
    size, width = matrix.shape
    values = np.zeros(size)
    if not size or not width:
        return np.eye(size), values
    order = np.argsort(-np.linalg.norm(matrix, axis=1), kind="stable")
    triangle = np.linalg.qr(matrix[order].T, mode="r").T
    turned, singular, _ = np.linalg.svd(triangle)
    values[: singular.size] = singular
    left = np.empty_like(turned)
    left[order] = turned
    return left, values
