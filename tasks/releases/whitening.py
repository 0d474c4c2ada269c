"""Moment functions in coordinates of unit variance, found from rows: in goes a fitted release, out comes one that says
the same of every query.

Factoring the covariance of g squares its condition, and loses every direction below 1e-7 of the others, such as those
in which the iterates of gradient descent bend. Shifted Cholesky factors of two passes over the rows (Fukaya, Kannan,
Nakatsukasa, Yamamoto & Yanagisawa 2020) instead give an invertible T, g' = gT, whose covariance is nearly the identity
down to 1e-14 of the others. Combinations of g that vary by no more than the rounding of their terms are 0 in g', and
what noise does to them is kept: K' = TᵀK.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from predcube.tasks.factorisations import EPS, ordered
from predcube.tasks.frames import Frame, Total
from predcube.tasks.moments import Moments
from predcube.tasks.releases.base import Fitted

type Floats = NDArray[np.float64]

MILD = 1e-4
"""Directions of at least this part of the largest variance need no whitening: their covariance has twelve digits."""

BLURRED = 1e-9
"""A coordinate of g, or a combination of 0, is in no doubt where rounding is at most this part of its terms."""

WIDE = 1024
"""Up to so many coordinates the condition is that of singular values, above it that of the factors' diagonals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whitened(Fitted):
    """The release ``inner`` with g' = g · mixing. mixing: (d, d) T, invertible. silent: (d,) coordinates of g' that are
    0 in every row."""

    inner: Fitted
    mixing: Floats
    silent: NDArray[np.bool_]

    def moments(self, inputs: Floats, shift: Floats | None = None) -> Floats:
        """Rows (m, d): g(z_i, λ + shift) T."""
        out: Floats = self.inner.moments(inputs, shift) @ self.mixing
        silent: Floats | float = 0.0
        if shift is not None and np.any(self.silent):
            silent = out[:, self.silent] - self.inner.moments(inputs) @ self.mixing[:, self.silent]
        out[:, self.silent] = silent
        return out

    @property
    def members(self) -> tuple[int, ...]:
        return self.inner.members


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """The request for the moments of a release's rows, times ``mixing`` (d, k) where it is given."""

    fitted: Fitted
    mixing: Floats | None = None

    def __call__(self, frame: Frame) -> Moments:
        def made(part: slice) -> Floats:
            rows = self.fitted.moments(frame.inputs[part])
            return rows if self.mixing is None else rows @ self.mixing

        return Moments.over(np.empty((frame.rows, 0)), made)


def whitened(fitted: Fitted, total: Total, variance: Floats | None = None) -> Fitted:
    """The release itself where the covariance of its g has twelve digits in every direction, else ``Whitened``.

    variance: (d, d) of g over the table, where it is known; it takes a pass otherwise, and whitening takes another.
    """
    size = fitted.estimate.size
    if size < 2:
        return fitted
    if variance is None:
        variance = _variance(total(Scatter(fitted=fitted)))
    sd = np.sqrt(np.maximum(np.diag(variance), 0.0))
    live = np.flatnonzero(sd > 0)
    if len(live) < 2 or not np.all(np.isfinite(variance)):
        return fitted
    standard = variance[np.ix_(live, live)] / np.outer(sd[live], sd[live])
    grain = fitted.rounding(sd)
    blurred = fitted.blurred or bool(np.any(grain[live] > BLURRED * sd[live]))
    lower, order, least = _shifted(standard)
    if least > MILD:
        return replace(fitted, blurred=blurred)
    order = live[order]
    count = len(order)
    first = solve_triangular(lower, np.eye(count), lower=True).T / sd[order][:, None]
    rounding = grain[order][:, None] * first
    wide = np.zeros((size, count))
    wide[order] = first
    second = _variance(total(Scatter(fitted=fitted, mixing=wide)))
    factor, kept = ordered(second, 16 * count * EPS, rounding)
    mixing = np.eye(size)
    mixing[:, order] = 0.0
    mixing[np.ix_(order, order)] = solve_triangular(factor, first.T, lower=True).T
    silent = np.zeros(size, dtype=np.bool_)
    silent[order] = ~kept
    noise: Floats = np.linalg.norm(grain[:, None] * mixing, axis=0)
    blurred |= bool(np.any(noise[silent] > BLURRED * np.linalg.norm(sd[:, None] * mixing[:, silent], axis=0)))
    return Whitened(
        estimate=fitted.estimate,
        curvature=mixing.T @ fitted.curvature,
        units=fitted.units,
        released=fitted.released,
        fixed=fitted.fixed,
        gram=fitted.gram,
        rank=fitted.rank,
        condition=fitted.condition,
        rows=fitted.rows,
        grain=noise,
        stretch=fitted.stretch * _condition(lower, factor, kept),
        blurred=blurred,
        inner=fitted,
        mixing=mixing,
        silent=silent,
    )


def _variance(found: Moments) -> Floats:
    variance: Floats = found.gram / found.rows
    return variance


def _shifted(standard: Floats) -> tuple[Floats, NDArray[np.int64], float]:
    """(L, order, least): C + shift = L Lᵀ of a correlation matrix C in an order of falling remainders, and the least of
    these less the shift, which is of the size of rounding."""
    shift = 32 * len(standard) * EPS
    while True:
        found, order, rank, _ = dpstrf(standard + shift * np.eye(len(standard)), lower=1, tol=0.0)
        if rank == len(standard):
            break
        shift *= 4
    lower: Floats = np.tril(found)
    return lower, order.astype(np.int64) - 1, float(np.min(np.diag(lower)) ** 2 - shift)


def _condition(lower: Floats, factor: Floats, kept: NDArray[np.bool_]) -> float:
    """Of the standardised g, whose covariance is L F_kept F_keptᵀ Lᵀ."""
    if len(lower) > WIDE:
        sizes = (np.diag(lower) * np.diag(factor))[kept]
    else:
        sizes = np.linalg.svd(lower @ factor[:, kept], compute_uv=False)
    return float(np.max(sizes) / np.min(sizes)) if sizes.size else 1.0
