"""Linear queries uᵀx: in go the covariances of the attacker's errors about the mean of x, out come the value of the
worst u of a ball, and bounds.

Σ1 and Γ are (D, D), of the queries x_1 … x_D themselves; a, b as in ``families``, so that a query's errors are uᵀa and
uᵀb. Bounds go by sup|uᵀa|·|uᵀ(a − b)|, hence by the Gaussian complexities of U ∪ −U: pass sets without their mirror
images, the functions add them.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.families import BLOCK, DRAWS, FamilyValue, covariance_root, error_draws

CUTOFF = 1e-10
"""Eigenvalue of a correlation matrix, relative to the largest, below which a direction is constant."""


def ball(
    sigma1: NDArray[np.float64],
    gain: NDArray[np.float64],
    *,
    radius: float,
    K: float,
    curvature: float = 2.0,
    rng: np.random.Generator,
    draws: int = DRAWS,
) -> FamilyValue:
    """(l''/2)·K·B²·E[(A − b²)/2 + √((A + b²)²/4 − (a·b)²)], A = |a|², b² = |b|², over |u| ≤ B = ``radius``.

    The bracket is the largest eigenvalue of aaᵀ − bbᵀ, which is what the best u of the ball gains on the draw. Exact in
    one dimension, by the positive part of a product of two normals; else an estimate by draws. ValueError as for
    ``finite_family``.
    """
    factor = curvature / 2 * K * radius**2
    if np.size(sigma1) == 1:
        return FamilyValue.known("exact", factor * _positive_part(float(np.sum(sigma1)), float(np.sum(gain))))
    if draws < 2:
        raise ValueError(f"draws = {draws}: a standard error needs at least 2")
    values = np.empty(draws)
    for place, after, taken in error_draws(sigma1, gain, rng, draws):
        half = np.sum(taken * (taken + 2 * after), axis=1) / 2
        # (A + b²)²/4 − (a·b)² is the square of half of A − b² and that of the area of a and b, or of b and a − b.
        lengths = np.sum(after**2, axis=1) * np.sum(taken**2, axis=1)
        area = np.sqrt(np.maximum(lengths - np.sum(after * taken, axis=1) ** 2, 0.0))
        values[place] = half + np.hypot(half, area)
    return FamilyValue.estimated(factor * values)


def ball_bound(
    sigma1: NDArray[np.float64], gain: NDArray[np.float64], *, radius: float, K: float, H: float = 2.0
) -> FamilyValue:
    """H·B²·K·√(tr Σ1·tr Γ): E|a||a − b| over the ball. Falls with the noise whatever the dimensions, which P2 Theorem
    5.2 does not where g has fewer coordinates than x."""
    product = float(np.trace(np.atleast_2d(sigma1)) * np.trace(np.atleast_2d(gain)))
    return FamilyValue.known("bound", H * radius**2 * K * math.sqrt(max(product, 0.0)))


def complexity_bound(
    complexities: tuple[float, float], diameters: tuple[float, float], *, K: float, H: float = 2.0
) -> FamilyValue:
    """P2 Theorem A.21: H·K·(G_1 + √(2(1 + ln 2)D_1))(G_2 + √(2(1 + ln 2)D_2)).

    G and D are Gaussian complexity and diameter of U ∪ −U under Σ1 (first) and Γ (second).
    """
    terms = [g + math.sqrt(2 * (1 + math.log(2)) * d) for g, d in zip(complexities, diameters, strict=True)]
    return FamilyValue.known("bound", H * K * terms[0] * terms[1])


def gaussian_complexity(
    members: NDArray[np.float64], covariance: NDArray[np.float64], *, rng: np.random.Generator, draws: int = DRAWS
) -> FamilyValue:
    """E sup ⟨u, ξ⟩ over the ``members`` u (M, D) and their mirror images, ξ ~ N(0, Σ) (P2 Definition A.20 of Σ^½U): an
    estimate."""
    if draws < 2:
        raise ValueError(f"draws = {draws}: a standard error needs at least 2")
    root = covariance_root(covariance, np.sqrt(np.diag(covariance)))
    loadings = members @ root
    values = np.empty(draws)
    for start in range(0, draws, BLOCK):
        normal = rng.standard_normal((min(BLOCK, draws - start), root.shape[1]))
        values[start : start + BLOCK] = np.max(np.abs(normal @ loadings.T), axis=1)
    return FamilyValue.estimated(values)


def ball_complexity(covariance: NDArray[np.float64], radius: float) -> FamilyValue:
    """B√tr Σ, which bounds the complexity of a Euclidean ball (P2 after Theorem A.23 writes =)."""
    return FamilyValue.known("bound", radius * math.sqrt(float(np.trace(covariance))))


def l1_complexity(covariance: NDArray[np.float64], radius: float) -> FamilyValue:
    """B√(2 ln 2D)·max_i √Σ_ii, which bounds the complexity of an L1 ball: a maximum over 2D normals (P2 after Theorem
    A.23 writes √(ln D), which is too small, and 0 for D = 1)."""
    largest = math.sqrt(float(np.max(np.diag(covariance))))
    return FamilyValue.known("bound", radius * math.sqrt(2 * math.log(2 * len(covariance))) * largest)


def diameter(members: NDArray[np.float64], covariance: NDArray[np.float64]) -> float:
    """sup uᵀΣu over the ``members`` (M, D)."""
    return float(np.max(np.einsum("ij,jk,ik->i", members, covariance, members)))


def ball_diameter(covariance: NDArray[np.float64], radius: float) -> float:
    """B²·λ_max(Σ)."""
    return radius**2 * float(np.linalg.eigvalsh(covariance)[-1])


def l1_bound(
    sigma1: NDArray[np.float64], gain: NDArray[np.float64], *, radius: float, K: float, H: float = 2.0
) -> FamilyValue:
    """``complexity_bound`` for the L1 ball of this radius, whose diameter is B²·max_i Σ_ii."""
    both = (sigma1, gain)
    complexities = [l1_complexity(covariance, radius).value for covariance in both]
    diameters = [radius**2 * float(np.max(np.diag(covariance))) for covariance in both]
    return complexity_bound((complexities[0], complexities[1]), (diameters[0], diameters[1]), K=K, H=H)


def supremum_bound(complexity: float, diameter: float, delta: float) -> float:
    """G + √(2 ln(1/δ)·D), exceeded by sup ⟨u, ξ⟩ with probability at most δ (P2 Theorem A.23). ValueError unless
    0 < δ < 1."""
    if not 0 < delta < 1:
        raise ValueError(f"delta = {delta} must lie strictly between 0 and 1")
    return complexity + math.sqrt(2 * math.log(1 / delta) * diameter)


def first_canonical_correlation(
    sigma1: NDArray[np.float64], cross: NDArray[np.float64], variance: NDArray[np.float64]
) -> float:
    """ρ¹_cc, the root of λ_max(Σ1⁻¹ C V⁻¹ Cᵀ), of Σ1 (D, D), C (D, d), V (d, d) of whatever rank (P2 Definition 5.3).
    0 where either side is constant."""
    left, right = _whitening(sigma1), _whitening(variance)
    if left.shape[1] == 0 or right.shape[1] == 0:
        return 0.0
    return min(1.0, float(np.linalg.norm(left.T @ cross @ right, 2)))


def paper_bound(
    sigma1: NDArray[np.float64],
    gain: NDArray[np.float64],
    noiseless: NDArray[np.float64],
    *,
    correlation: float,
    size: float,
    K: float,
    H: float = 2.0,
    convention: Literal["corrected", "paper"] = "corrected",
) -> FamilyValue:
    """4·H·B²(2 + ln 2)·K·tr Σ1·√(ρ² − λ_min(c0)/tr Σ1): P2 Theorem 5.2, and Theorem 5.4 with B = L for affine f alone.

    ``noiseless`` is Γ without noise, so c0 = noiseless − gain; ``correlation`` is ρ¹_cc without noise. ``paper`` prints
    B for B². λ_min(c0) is 0 where g has fewer coordinates than x, whatever the noise: ``ball_bound`` has no such flaw.
    Theorem 5.4 is false for Lipschitz f that are not affine: see ``families_lipschitz``.
    """
    total = float(np.trace(sigma1))
    if total <= 0:
        return FamilyValue.known("bound", 0.0)
    attenuation = max(0.0, float(np.linalg.eigvalsh(noiseless - gain)[0])) / total
    scale = size**2 if convention == "corrected" else size
    inside = math.sqrt(max(0.0, correlation**2 - attenuation))
    return FamilyValue.known("bound", 4 * H * scale * (2 + math.log(2)) * K * total * inside)


def noise_limits(s1: float, correlation: float, *, K: float, H: float = 2.0) -> dict[str, float]:
    """What P2 Remark 3.7 says of the printed bound: ``noiseless`` H(1 + ln 4)·K·s1·|ρ| as the noise vanishes, ``noisy``
    0 as it grows; both are 0 where query and release are uncorrelated."""
    return {"noiseless": H * (1 + math.log(4)) * K * s1 * abs(correlation), "noisy": 0.0}


def _whitening(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """W with WᵀΣW = I on the directions that are not constant, by the correlation matrix: (D, rank)."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    unit = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(unit, unit))
    kept = values > CUTOFF * max(float(values[-1]), 0.0)
    whitening: NDArray[np.float64] = (vectors[:, kept] / np.sqrt(values[kept])) / unit[:, None]
    return whitening


def _positive_part(sigma1: float, gain: float) -> float:
    """E(a² − b²)⁺ in one dimension: a² − b² = (a − b)(a + b), normals of variances Γ and 4Σ1 − 3Γ and covariance Γ."""
    if gain <= 0:
        return 0.0
    if gain >= sigma1:
        return sigma1
    other = 4 * sigma1 - 3 * gain
    c = math.sqrt(gain / other)
    return math.sqrt(gain * other) / math.pi * (math.sqrt(1 - c * c) + c * (math.pi / 2 + math.asin(c)))
