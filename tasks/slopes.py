"""Exponents of a law n ≈ C·∏ x_j^{b_j} from some of its values: in go numbers, out come b_j with standard errors.

Ordinary least squares of ln n on ln x_j, with a constant of its own for each group of observations (each learner, each
class). Always true: what was not reached is no number and is left out, and how much was left out is said.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from predcube.tasks.intervals import LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Slopes:
    """``exponent`` b_j of each predictor in ``names``, with its standard error and interval (Student t at level
    ``LEVEL``; infinite where no observation is left over). ``used`` observations, ``left_out`` ones without a value,
    ``residual`` the standard deviation of ln n about the law. ``dropped``: predictors that do not vary within groups,
    or that follow from the others."""

    names: tuple[str, ...]
    exponent: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    used: int
    left_out: int
    residual: float
    dropped: tuple[str, ...]


def log_log_slopes(
    values: ArrayLike, predictors: Mapping[str, ArrayLike], groups: ArrayLike | None = None, *, level: float = LEVEL
) -> Slopes:
    """The exponents of ``values`` (N,) in each of ``predictors`` (N,), all of them positive where they are finite.

    ``groups`` (N,): observations of equal group share a constant factor, those of different groups need not. A value
    of NaN was not reached. The errors describe the scatter about the power law alone (a logarithm bends it, a grid of n
    rounds it), not that of the values themselves. ValueError where a value or predictor is not positive, or lengths
    differ.

    >>> x = np.array([1.0, 2.0, 4.0, 8.0])
    >>> log_log_slopes(3 * x**2, {"x": x}).exponent.round(12).tolist()
    [2.0]
    """
    y = np.asarray(values, dtype=np.float64)
    x = {name: np.asarray(p, dtype=np.float64) for name, p in predictors.items()}
    group = (
        np.zeros(len(y), dtype=np.int64) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    )
    if any(len(p) != len(y) for p in x.values()) or len(group) != len(y):
        raise ValueError(f"{len(y)} values need as many of every predictor and group")
    kept = np.isfinite(y)
    if np.any(y[kept] <= 0) or any(np.any(~(p[kept] > 0)) for p in x.values()):
        raise ValueError("a power law is of positive numbers: drop zero, negative and missing predictors")
    centred = {name: _within(np.log(p[kept]), group[kept]) for name, p in x.items()}
    names = _independent(centred)
    constants = len(np.unique(group[kept]))
    target = _within(np.log(y[kept]), group[kept])
    design = np.column_stack([centred[n] for n in names]) if names else np.empty((len(target), 0))
    exponent = np.linalg.lstsq(design, target, rcond=None)[0] if names else np.empty(0)
    spare = len(target) - constants - len(names)
    rest = target - design @ exponent
    variance = float(rest @ rest) / spare if spare > 0 else np.inf
    spread = np.diag(np.linalg.inv(design.T @ design)) if names else np.empty(0)
    error = np.sqrt(variance * spread)
    half = stats.t.isf((1 - level) / 2, max(spare, 1)) * error
    return Slopes(
        names=names,
        exponent=exponent,
        standard_error=error,
        lower=exponent - half,
        upper=exponent + half,
        used=int(kept.sum()),
        left_out=int((~kept).sum()),
        residual=float(np.sqrt(variance)),
        dropped=tuple(n for n in x if n not in names),
    )


def _within(values: NDArray[np.float64], group: NDArray[np.int64]) -> NDArray[np.float64]:
    """Values minus the mean of their group."""
    if not len(values):
        return values
    count = np.bincount(group)
    return np.asarray(values - (np.bincount(group, weights=values) / np.maximum(count, 1))[group])


def _independent(centred: Mapping[str, NDArray[np.float64]]) -> tuple[str, ...]:
    """Predictors, in order, each of which varies and does not follow from those before it."""
    chosen: list[str] = []
    for name, column in centred.items():
        before = [centred[n] for n in chosen]
        rest = column
        if before:
            design = np.column_stack(before)
            rest = column - design @ np.linalg.lstsq(design, column, rcond=None)[0]
        if np.linalg.norm(rest) > 1e-9 * max(1.0, float(np.linalg.norm(column))):
            chosen.append(name)
    return tuple(chosen)
