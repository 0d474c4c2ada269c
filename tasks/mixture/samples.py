"""Samples as multisets: in go x and y, out come the occupied points with their counts, and what hypotheses lose there.

Always true: losses are whole numbers of examples, exact below 2^53.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Points, Representatives
from predcube.tasks.mixture.base import Occupancy


def occupancy(x: ArrayLike, y: ArrayLike, domain: Points | None = None) -> Occupancy:
    """The sample (x, y) as a multiset: x (n,) or (n, features), y (n,) of 0 and 1.

    Its points are those of ``domain`` (sorted, distinct) where one is given, with zero counts at those that do not
    occur; else the distinct x in sorted order. Raises ValueError for labels that are not 0 or 1, lengths that differ
    and points outside the domain.
    """
    points, labels = np.asarray(x), np.asarray(y)
    if labels.ndim != 1 or len(points) != len(labels):
        raise ValueError(f"x has shape {points.shape} and y has shape {labels.shape}; give one label for each point")
    binary = (labels == 0) | (labels == 1)
    if not binary.all():
        raise ValueError(f"label {labels[~binary][0]} is not 0 or 1; recode the labels")
    if domain is None:
        return tally(points, labels)
    joined, where = np.unique(
        np.concatenate([domain, points]), return_inverse=True, axis=0 if points.ndim == 2 else None
    )
    if len(joined) != len(domain):
        outside = next(p for p in points.tolist() if p not in domain.tolist())
        raise ValueError(f"point {outside} is outside X; give points of X only")
    return Occupancy(points=domain, counts=_counted(where.reshape(-1)[len(domain) :], labels, len(domain)))


def tally(points: Points, labels: NDArray[Any]) -> Occupancy:
    """``occupancy`` over the distinct points of a sample that is known to be one."""
    distinct: Points
    distinct, place = np.unique(points, return_inverse=True, axis=0 if points.ndim == 2 else None)  # type: ignore[assignment]
    return Occupancy(points=distinct, counts=_counted(place.reshape(-1), labels, len(distinct)))


def _counted(place: NDArray[np.intp], labels: NDArray[Any], k: int) -> NDArray[np.int64]:
    return np.bincount(2 * place + labels.astype(np.int64), minlength=2 * k).reshape(k, 2).astype(np.int64)


def occupied(sample: Occupancy) -> Occupancy:
    """The same sample without the points that do not occur."""
    held = (sample.counts[:, 0] | sample.counts[:, 1]) > 0
    return sample if held.all() else Occupancy(points=sample.points[held], counts=sample.counts[held])


def mistakes(
    hypotheses: HypothesisClass, representatives: Representatives, points: Points, counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """n·L_S(h), the number of examples each representative gets wrong in each of B samples on the same points:
    ``counts`` (B, k, 2) → (B, M)."""
    if len(counts) == 1:
        return hypotheses.loss(representatives, points, counts[0])[None, :]
    labels = hypotheses.predict(representatives, points).astype(np.float64)
    zeros, ones = counts[..., 0].astype(np.float64), counts[..., 1].astype(np.float64)
    # Whole numbers, so that a product by BLAS is exact in whatever order it adds.
    return np.asarray(ones.sum(axis=1, keepdims=True) + (zeros - ones) @ labels.T)
