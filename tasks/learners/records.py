"""Samples whose order matters: in go points and labels as they stand, out comes the sample with each record's place.

A record's *type* is 2·place + label, where place numbers the sample's points in sorted order.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import Points
from predcube.tasks.hypotheses.points import distinct, locate
from predcube.tasks.mixture.base import Occupancy


@dataclass(frozen=True, slots=True, kw_only=True)
class Records(Occupancy):
    """A sample as a multiset and as a sequence: ``order`` (n,) holds the type of each record."""

    order: NDArray[np.int64]

    def over(self, points: Points) -> "Records":
        """The same sample over sorted distinct ``points`` that include its own."""
        where = locate(points, self.points)
        order = 2 * where[self.order // 2] + self.order % 2
        return Records(points=points, counts=counted(order[None], len(points))[0], order=order)


def records(points: Points, labels: NDArray[np.uint8]) -> Records:
    """The sample of checked ``points`` (n,) or (n, features) and ``labels`` (n,)."""
    values, place = distinct(points)
    order = 2 * place + labels.astype(np.int64)
    return Records(
        points=values,  # type: ignore[arg-type]
        counts=counted(order[None], len(values))[0],
        order=order,
    )


def counted(types: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """How often each type stands in each of B rows: ``types`` (B, m) over k points → (B, k, 2)."""
    rows = len(types)
    flat = (np.arange(rows)[:, None] * (2 * k) + types).ravel()
    return np.bincount(flat, minlength=rows * 2 * k).reshape(rows, k, 2)
