"""Families of queries and of processes: in go covariances of the attacker's errors, out comes the expected gain of the
worst member, each number labelled exact, estimate or bound.

The attacker's errors about Q queries are √K·a before the release and √K·b after it; a ~ N(0, Σ1), b ~ N(0, Σ1 − Γ) and
a − b ~ N(0, Γ) is independent of b (P2 Theorem 3.4). Σ1 is the law's ``joint`` and Γ = C(V + G S_eff Gᵀ)⁺Cᵀ its gain,
whose diagonal holds the gains of single queries. The worst member is chosen after the draw, so that a family gains
more than its worst member alone: E max, not max E.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predcube.tasks.intervals import LEVEL, student_t

type Kind = Literal["exact", "estimate", "bound"]

DRAWS = 2**16
"""Draws of an estimate unless asked otherwise: a standard error of about half a percent."""
BLOCK = 2**12
"""Draws made at once; a constant, since the order of additions depends on it."""
INDEFINITE = 1e-8
"""Negative eigenvalue, relative to the largest, from which a covariance is refused rather than rounded up to 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyValue:
    """A value and what it is. ``lower`` and ``upper`` are the value itself unless it is an estimate: then an interval
    of the nominal level ``LEVEL``, from ``draws`` draws with this ``standard_error``."""

    kind: Kind
    value: float
    standard_error: float = 0.0
    lower: float
    upper: float
    draws: int = 0

    @classmethod
    def known(cls, kind: Literal["exact", "bound"], value: float) -> Self:
        return cls(kind=kind, value=value, lower=value, upper=value)

    @classmethod
    def estimated(cls, sample: NDArray[np.float64], *, level: float = LEVEL) -> Self:
        """The mean of independent draws."""
        mean, draws = float(np.mean(sample)), len(sample)
        error = float(np.std(sample, ddof=1)) / math.sqrt(draws)
        lower, upper = student_t(mean, error, draws, level=level)
        return cls(
            kind="estimate", value=mean, standard_error=error, lower=float(lower), upper=float(upper), draws=draws
        )


def finite_family(
    sigma1: NDArray[np.float64],
    gain: NDArray[np.float64],
    *,
    K: float,
    curvature: ArrayLike = 2.0,
    rng: np.random.Generator,
    draws: int = DRAWS,
) -> FamilyValue:
    """E max_q (l''_q/2)·K·(a_q² − b_q²), by draws of (a, b): an estimate.

    sigma1, gain: (Q, Q) Σ1 and Γ. ``curvature``: l'' at p, (Q,) or one number; 2 for squared loss, 1/(p(1 − p)) for log
    loss. ``rng``: a stream of ``seeds``; the same stream gives the same bits. ValueError where Σ1, Γ or Σ1 − Γ is no
    covariance, or with fewer than two draws. Replaces P2 Theorem 5.1 by the quantity that it bounds.
    """
    half = np.broadcast_to(np.asarray(curvature, dtype=np.float64) / 2, len(sigma1)) * K
    values = np.empty(_enough(draws))
    for place, after, taken in error_draws(sigma1, gain, rng, draws):
        values[place] = np.max(half * taken * (taken + 2 * after), axis=1)  # a² − b² without cancellation
    return FamilyValue.estimated(values)


def finite_family_bound(
    s1: NDArray[np.float64],
    gain: NDArray[np.float64],
    *,
    K: float,
    H: float = 2.0,
    processes: int = 1,
    convention: Literal["corrected", "paper"] = "corrected",
) -> FamilyValue:
    """2(1 + ln 4|Q|)·H·K·max_q √(s1_q·gain_q), from the queries' own variances and gains (Q,).

    P2 Theorem 5.1 has (1 + ln(4|Q||W|)) in front (``paper``, W the ``processes``), which is too small from about 40
    independent queries on: each of the two errors has a maximum of its own over the family. |W| is not needed, as the
    worst process is chosen before the draw.
    """
    size = len(s1)
    constant = 2 * (1 + math.log(4 * size)) if convention == "corrected" else 1 + math.log(4 * size * processes)
    return FamilyValue.known("bound", constant * H * K * float(np.max(np.sqrt(np.maximum(s1 * gain, 0.0)))))


def worst_process(values: Mapping[str, FamilyValue]) -> tuple[str, FamilyValue]:
    """The process of a family of which the value is largest: its name, and the largest value.

    Exact where all values are, a bound where each is exact or a bound, else an estimate, whose interval covers the
    largest of the true values where every interval covers its own. ValueError where there is none.
    """
    if not values:
        raise ValueError("the family of processes is empty: give at least one")
    name = max(values, key=lambda key: values[key].value)
    kinds = {value.kind for value in values.values()}
    kind: Kind = "exact" if kinds == {"exact"} else "estimate" if "estimate" in kinds else "bound"
    worst = values[name]
    return name, FamilyValue(
        kind=kind,
        value=worst.value,
        standard_error=worst.standard_error,
        lower=max(value.lower for value in values.values()),
        upper=max(value.upper for value in values.values()),
        draws=worst.draws,
    )


type Block = tuple[slice, NDArray[np.float64], NDArray[np.float64]]


def error_draws(
    sigma1: NDArray[np.float64], gain: NDArray[np.float64], rng: np.random.Generator, draws: int
) -> Iterator[Block]:
    """``draws`` of (b, a − b) in blocks: the block's place, b and a − b, each (block, Q). Σ1 and Γ are (Q, Q)."""
    sigma1, gain = np.atleast_2d(sigma1), np.atleast_2d(gain)
    if sigma1.shape != gain.shape or sigma1.shape[0] != sigma1.shape[1]:
        raise ValueError(f"covariances of shapes {sigma1.shape} and {gain.shape} must be square and alike")
    scale = np.sqrt(np.diag(sigma1))
    left, taken = covariance_root(sigma1 - gain, scale), covariance_root(gain, scale)
    for start in range(0, draws, BLOCK):
        count = min(BLOCK, draws - start)
        normal = rng.standard_normal((2, count, len(scale)))
        yield slice(start, start + count), normal[0] @ left.T, normal[1] @ taken.T


def covariance_root(covariance: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """R with R Rᵀ the covariance, (Q, Q), by eigenvalues in units of ``scale`` (Q,); an element of scale 0 is constant.

    ValueError where an eigenvalue is negative beyond rounding.
    """
    unit = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(unit, unit))
    if values.size and values[0] < -INDEFINITE * max(1.0, float(values[-1])):
        raise ValueError(
            f"a covariance of the family has the eigenvalue {values[0]:.3g} in units of the queries' variance: a gain "
            "cannot exceed the variance that there was"
        )
    root: NDArray[np.float64] = unit[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def _enough(draws: int) -> int:
    if draws < 2:
        raise ValueError(f"draws = {draws}: a standard error needs at least 2")
    return draws
