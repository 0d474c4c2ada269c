"""Well-scaled coordinates of a linear predictor: in goes a survey of the features, out comes the map from x to u.

With m the means, s the scales and K = E[z zᵀ] + l2·diag(1/s²), z = (x − m)/s, the Cholesky factor of K taken feature by
feature gives z = F u with u = L⁻¹ z on the features that are kept. A feature is dropped where what the ones before it
do not explain is no more than rounding: it is a combination of them, or constant. A prediction is then

    λ_0 + xᵀw = γ_0 + uᵀγ,      γ_0 = λ_0 + mᵀw,      γ = Fᵀ diag(s) w,

and w is the solution of least norm in units of s. Features at an offset of 1e9, or a factor of 1e12 apart in scale,
lose no digits; collinear features change neither γ nor the gradient in its coordinates.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from predcube.tasks.factorisations import EPS
from predcube.tasks.releases.surveys import Survey

type Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """p features, of which r are kept.

    kept: (r,) their positions. centre: (r,) their means. transform: (r, r) u = (x_kept − centre) transform.
    units: (1 + p, 1 + p) W with (γ_0, γ) = Wλ in its first 1 + r rows, and zeros below.
    back: (p, r) w = back · γ. fixed: (p − r, 1 + p) combinations of λ that are 0 whatever γ: what a feature that is
    not kept has, in units of s, less what the kept ones make of it. means: (p,). gram: (1 + r, 1 + r) E[(1, u)(1, u)ᵀ].
    grain: (1 + r,) what rounding makes of (1, u). condition: of the standardised
    features that are kept.
    """

    kept: NDArray[np.int64]
    centre: Floats
    transform: Floats
    units: Floats
    back: Floats
    fixed: Floats
    means: Floats
    gram: Floats
    grain: Floats
    condition: float

    @classmethod
    def of(cls, survey: Survey, features: slice, l2: float = 0.0) -> Self:
        """The design of the surveyed columns ``features``, with the penalty (l2/2)|w|²."""
        means = survey.means[features]
        deviations = survey.deviations[features]
        scales = np.sqrt(np.square(deviations) + l2)
        scales = np.where(scales == 0, 1.0, scales)
        varying = np.where(deviations == 0, 0.0, 1.0)
        covariance = survey.covariance[features, features] * np.outer(varying / scales, varying / scales)
        lower, kept = _factor(covariance + np.diag(l2 / np.square(scales)), _rounding(survey, features, scales))
        square = lower[kept]
        transform = solve_triangular(square, np.diag(1 / scales[kept]), lower=True).T
        back = transform if len(kept) == len(means) else np.linalg.pinv(lower.T) / scales[:, None]
        size = 1 + len(means)
        left = np.setdiff1d(np.arange(len(means)), kept)
        fixed = np.zeros((len(left), size))
        fixed[:, 1 + left] = np.diag(scales[left])
        fixed[:, 1 + kept] = -solve_triangular(square, lower[left].T, trans="T", lower=True).T * scales[kept]
        units = np.zeros((size, size))
        units[0, 0], units[0, 1:] = 1.0, means
        units[1 : 1 + len(kept), 1:] = lower.T * scales
        half = solve_triangular(square, covariance[np.ix_(kept, kept)], lower=True)
        gram = np.eye(1 + len(kept))
        gram[1:, 1:] = solve_triangular(square, half.T, lower=True)
        gram[0, 1:] = gram[1:, 0] = survey.remainders[features][kept] @ transform
        singular = np.linalg.svd(square, compute_uv=False)
        return cls(
            kept=kept,
            centre=means[kept],
            transform=transform,
            units=units,
            back=back,
            fixed=fixed,
            means=means,
            gram=(gram + gram.T) / 2,
            grain=8 * EPS * np.concatenate([[1.0], deviations[kept] @ np.abs(transform)]),
            condition=float(singular[0] / singular[-1]) if len(kept) else 1.0,
        )

    @property
    def size(self) -> int:
        """1 + p, the coordinates of λ."""
        return len(self.units)

    @property
    def rank(self) -> int:
        """1 + r, the coordinates of γ."""
        return 1 + len(self.kept)

    def predictors(self, features: Floats, out: Floats | None = None) -> Floats:
        """(m, p) features as (m, 1 + r) rows (1, u), in ``out`` where it is given."""
        out = np.empty((len(features), self.rank)) if out is None else out
        out[:, 0] = 1.0
        whole = len(self.kept) == features.shape[1]
        np.matmul((features if whole else features[:, self.kept]) - self.centre, self.transform, out=out[:, 1:])
        return out

    def coefficients(self, gamma: Floats, centre: float = 0.0) -> Floats:
        """(1 + p,) λ = (intercept, w) of (1 + r,) coordinates γ, γ_0 measured from ``centre``."""
        slopes = self.back @ gamma[1:]
        return np.concatenate([[centre + gamma[0] - self.means @ slopes], slopes])

    def coordinates(self, coefficients: Floats) -> Floats:
        """(1 + r,) γ = Wλ."""
        return self.units[: self.rank] @ coefficients

    def padded(self, matrix: Floats) -> Floats:
        """A (1 + r, 1 + r) matrix in coordinates γ with zeros for the coordinates that the data do not determine."""
        out = np.zeros((self.size, self.size))
        out[: self.rank, : self.rank] = matrix
        return out

    @property
    def released(self) -> Floats:
        """(1 + p, 1 + p) λ = released · γ up to a constant, with zeros for coordinates that are not determined."""
        out = np.zeros((self.size, self.size))
        out[0, 0] = 1.0
        out[0, 1 : self.rank] = -self.means @ self.back
        out[1:, 1 : self.rank] = self.back
        return out

    @property
    def penalty(self) -> Floats:
        """(1 + r, 1 + r) P with |w|² = γᵀPγ."""
        out = np.zeros((self.rank, self.rank))
        out[1:, 1:] = self.back.T @ self.back
        return out


def _rounding(survey: Survey, features: slice, scales: Floats) -> Floats:
    """(p,) what the rounding of a column's own values leaves of its variance, in units of its scale."""
    return np.square(2 * EPS * survey.marginals.reach[features] / scales) + 64 * EPS * (len(scales) + 1)


def _factor(matrix: Floats, floor: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """F (p, r), lower triangular on the r rows ``kept``, with matrix = F Fᵀ up to the floor."""
    p = len(matrix)
    lower = np.zeros((p, p))
    kept: list[int] = []
    for j in range(p):
        left = matrix[j:, j] - lower[j:, : len(kept)] @ lower[j, : len(kept)]
        if left[0] > floor[j]:
            lower[j:, len(kept)] = left / np.sqrt(left[0])
            kept.append(j)
    return lower[:, : len(kept)].copy(), np.array(kept, dtype=np.int64)
