"""Additive moments of rows: in go blocks of queries q and moment rows g with weights, out come means and scatters.

Chan, Golub and LeVeque's pairwise update, kept about rows of the data: a state holds a row that was seen (``shift``)
and the distance of its means from it, so that a mean of 1e9 with a spread of 1 loses nothing, a constant column
scatters by exactly 0, and any cut into blocks gives the same numbers to 1e-12. A block is taken in slices that stay in
the cache.

A slice is centred about one of its own rows, of the greatest weight a_max: then (mean − shift)² is at most Σa/a_max
times the variance, so that products about the shift keep their digits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

type Array = NDArray[np.float64]

SLICE_ELEMENTS = 1 << 17
"""Numbers in a slice: 1 MB, so that a slice is read from memory once and from the cache afterwards."""
SLICE_ROWS = 512
"""Fewest rows of a slice: a product over fewer is bound by its result, not by its rows."""
MADE_ROWS = 1 << 12
"""Rows of moments that are made at once, so that they are read from the cache too."""
FAR = 64.0
"""A column whose mean is this many variances, squared, from the slice's shift is centred once more."""

NEAR = 8.0
"""Values of a slice within this many ranges from 0 are summed as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Weighted moments of N rows [q, g] of Q queries and d moments, D = Q + d.

    rows: N. weight: Σa. shift: (D,) a row's values. mean: (D,) weighted mean − shift. plain: (D,) unweighted mean −
    shift. low, high: (Q,) range of each query. squares: (Q,) Σa(q − q̄)². cross: (Q, d) Σa(q − q̄)(g − ḡ)ᵀ. gram: (d, d)
    Σa(g − ḡ)(g − ḡ)ᵀ. joint: (Q, Q) Σa(q − q̄)(q − q̄)ᵀ, None unless asked for. Bars are weighted means.
    """

    rows: int
    weight: float
    shift: Array
    mean: Array
    plain: Array
    low: Array
    high: Array
    squares: Array
    cross: Array
    gram: Array
    joint: Array | None

    @classmethod
    def of(cls, queries: Array, moments: Array, weights: Array | None = None, *, joint: bool = False) -> Self:
        """The moments of one block: queries (m, Q), moments (m, d), weights (m,) ≥ 0 (1 unless given), m ≥ 1."""
        if weights is not None and not np.all(weights >= 0):
            raise ValueError(f"weights must be numbers of at least 0; the least is {np.min(weights)}")
        total: Self | None = None
        with np.errstate(over="ignore", invalid="ignore"):  # what overflowed is refused where a law is made of it
            for part in slices(len(queries), queries.shape[1] + moments.shape[1]):
                piece = cls._slice(queries[part], moments[part], None if weights is None else weights[part], joint)
                total = piece if total is None else total._take(piece)
        if total is None:
            raise ValueError("moments of a block without rows: leave empty blocks out")
        return total

    @classmethod
    def over(
        cls,
        queries: Array,
        moments: Callable[[slice], Array],
        weights: Array | None = None,
        *,
        joint: bool = False,
    ) -> Self:
        """As ``of``, with the moments' rows made a few at a time: ``moments(part)`` gives those of a slice of rows."""
        total: Self | None = None
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(queries), MADE_ROWS):
                part = slice(start, start + MADE_ROWS)
                piece = cls.of(queries[part], moments(part), None if weights is None else weights[part], joint=joint)
                total = piece if total is None else total._take(piece)
        if total is None:
            raise ValueError("moments of a block without rows: leave empty blocks out")
        return total

    @classmethod
    def _slice(cls, queries: Array, moments: Array, weights: Array | None, joint: bool) -> Self:
        rows = len(queries)
        first = 0 if weights is None else int(np.argmax(weights))
        low, high = queries.min(axis=0), queries.max(axis=0)
        still = low == high
        near = still | (np.maximum(-low, high) <= NEAR * (high - low))
        if weights is None and not joint and np.all(near):  # no copy: sums about 0 keep their digits
            origin, q = np.where(still, low, 0.0), queries
        else:
            origin, q = queries[first], queries - queries[first]
        shift = np.concatenate([origin, moments[first]])
        g = moments - moments[first]
        ones = np.ones(rows)
        plain = np.concatenate([ones @ q, ones @ g]) / rows
        if weights is None:
            weight, mean = float(rows), plain
        else:
            weight = float(weights.sum())
            mean = np.concatenate([weights @ q, weights @ g]) / weight if weight else np.zeros_like(plain)
        if q is queries:
            mean[: still.size][still] = 0.0
        at, of = mean[: q.shape[1]], mean[q.shape[1] :]
        g -= of
        if joint:
            q -= at
        if weights is not None:
            root = np.sqrt(weights)[:, None]
            q *= root
            g *= root
        squares = np.einsum("ij,ij->j", q, q)
        if not joint:  # the slice's shift stands in for the mean: Σa(q − shift)(g − ḡ) is Σa(q − q̄)(g − ḡ)
            far = weight * at**2
            squares -= far
            for j in np.flatnonzero(far > FAR * squares):
                centred = q[:, j] - (at[j] if weights is None else root[:, 0] * at[j])
                squares[j] = centred @ centred
        cross = (g.T @ q).T
        if np.any(still):  # what does not vary varies with nothing, to the last digit
            squares[still], cross[still] = 0.0, 0.0
        return cls(
            rows=rows,
            weight=weight,
            shift=shift,
            mean=mean,
            plain=plain,
            low=low,
            high=high,
            squares=squares,
            cross=cross,
            gram=g.T @ g,
            joint=q.T @ q if joint else None,
        )

    def add(self, other: Self) -> Self:
        own = {name: getattr(self, name).copy() for name in ("squares", "cross", "gram")}
        joint = None if self.joint is None else self.joint.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            return replace(self, joint=joint, **own)._take(other)

    def _take(self, other: Self) -> Self:
        """The sum, in this state's arrays, which are lost."""
        rows, weight = self.rows + other.rows, self.weight + other.weight
        between = other.shift - self.shift  # exact or nearly: both are rows of the data
        apart = between + (other.mean - self.mean)  # of no consequence where either weighs nothing
        share = other.weight / weight if weight else 0.0
        mean = self.mean + share * apart if self.weight else between + other.mean
        q, g = apart[: self.low.size], apart[self.low.size :]
        pull = self.weight * share
        squares, cross, gram, joint = self.squares, self.cross, self.gram, self.joint
        squares += other.squares
        squares += pull * q**2
        cross += other.cross
        cross += np.outer(pull * q, g)
        gram += other.gram
        gram += np.outer(pull * g, g)
        if joint is not None:
            if other.joint is None:
                raise ValueError("one block's moments hold covariances between queries and another's do not")
            joint += other.joint
            joint += np.outer(pull * q, q)
        return replace(
            self,
            rows=rows,
            weight=weight,
            mean=mean,
            plain=self.plain + (other.rows / rows) * (between + (other.plain - self.plain)),
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
        )

    @property
    def average(self) -> Array:
        """(D,) unweighted means."""
        return self.shift + self.plain

    @property
    def constant(self) -> NDArray[np.bool_]:
        """(Q,) whether a query takes one value alone, up to the rounding of its own computation."""
        size = np.maximum(np.abs(self.high), np.abs(self.low))
        constant: NDArray[np.bool_] = self.high - self.low <= 4 * np.finfo(np.float64).eps * size
        return constant

    @property
    def binary(self) -> NDArray[np.bool_]:
        """(Q,) whether a query takes no value but 0 and 1.

        Within [0, 1] the variance is at most p(1 − p), with equality for these queries alone; one row of N at ½ is
        missing 1/(4N).
        """
        p = self.shift[: self.low.size] + self.mean[: self.low.size]
        full = self.weight * p * (1.0 - p)
        either = (self.low == self.high) & ((self.low == 0.0) | (self.low == 1.0))
        full_range = (self.low == 0.0) & (self.high == 1.0)
        binary: NDArray[np.bool_] = either | (full_range & (full - self.squares <= 1e-10 * full))
        return binary

    def about_plain(self) -> tuple[Array, Array, Array, Array | None]:
        """(squares, cross, gram, joint) of Σa about the unweighted means in place of the weighted ones."""
        apart = self.mean - self.plain if self.weight else np.zeros_like(self.plain)
        q, g = apart[: self.low.size], apart[self.low.size :]
        joint = None if self.joint is None else self.joint + self.weight * np.outer(q, q)
        return (
            self.squares + self.weight * q**2,
            self.cross + self.weight * np.outer(q, g),
            self.gram + self.weight * np.outer(g, g),
            joint,
        )

    def first_about_plain(self) -> Array:
        """(D,) Σa(x − x̄) about the unweighted means x̄."""
        return self.weight * (self.mean - self.plain) if self.weight else np.zeros_like(self.plain)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSums:
    """Sums of rows by group: codes (k,) ascending, counts (k,), sums (k, D) of x − shift, squares (D,) Σ(x − shift)².

    shift is a row's values (D,). Only groups that occurred are held.
    """

    shift: Array
    codes: NDArray[np.int64]
    counts: NDArray[np.int64]
    sums: Array
    squares: Array

    @classmethod
    def of(cls, codes: Array, queries: Array, moments: Array) -> Self:
        """The sums of one block: codes (m,) of groups, queries (m, Q), moments (m, d), m ≥ 1."""
        if not len(codes):
            raise ValueError("sums of a block without rows: leave empty blocks out")
        found, place = np.unique(codes.astype(np.int64), return_inverse=True)
        shift = np.concatenate([queries[0], moments[0]])
        sums = np.zeros((found.size, shift.size))
        squares = np.zeros(shift.size)
        for part in slices(len(queries), queries.shape[1] + moments.shape[1]):
            x = np.concatenate([queries[part], moments[part]], axis=1)
            x -= shift
            m = len(x)
            member = sparse.csr_array((np.ones(m), (place[part], np.arange(m))), shape=(found.size, m))
            sums += member @ x
            squares += np.einsum("ij,ij->j", x, x)
        return cls(shift=shift, codes=found, counts=np.bincount(place), sums=sums, squares=squares)

    def add(self, other: Self) -> Self:
        codes = np.union1d(self.codes, other.codes)
        counts = np.zeros(codes.size, dtype=np.int64)
        sums = np.zeros((codes.size, self.shift.size))
        between = other.shift - self.shift
        for state, move in ((self, None), (other, between)):
            at = np.searchsorted(codes, state.codes)
            counts[at] += state.counts
            sums[at] += state.sums if move is None else state.sums + state.counts[:, None] * move
        rows = int(other.counts.sum())
        squares = self.squares + other.squares + 2 * between * other.sums.sum(axis=0) + rows * between**2
        return type(self)(shift=self.shift, codes=codes, counts=counts, sums=sums, squares=squares)

    @property
    def totals(self) -> Array:
        """(k, D) Σ(x − x̄) over each group, x̄ the mean over all rows."""
        mean = self.sums.sum(axis=0) / self.counts.sum()
        totals: Array = self.sums - self.counts[:, None] * mean
        return totals

    @property
    def spread(self) -> Array:
        """(D,) variance over all rows: the scale that rounding is measured against."""
        rows = self.counts.sum()
        spread: Array = np.maximum(self.squares / rows - (self.sums.sum(axis=0) / rows) ** 2, 0.0)
        return spread


def slices(rows: int, width: int) -> Iterator[slice]:
    """How a block of ``rows`` is cut: by its shape alone, so that the same block gives the same bits anywhere."""
    step = max(SLICE_ROWS, SLICE_ELEMENTS // max(1, width))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))
