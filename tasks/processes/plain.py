"""The laws that are plain or weighted moments of rows: in go sums over rows, out comes a ``Law``.

Shared by the processes whose draws do not depend on each other beyond a known factor.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.frames import Frame
from predcube.tasks.moments import Moments
from predcube.tasks.processes.base import HasMoments, Law

type Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Asks a pass for the moments of [q, g], every row counting once."""

    fitted: HasMoments
    joint: bool

    def __call__(self, frame: Frame) -> Moments:
        return Moments.over(frame.queries, lambda part: self.fitted.moments(frame.inputs[part]), joint=self.joint)


class Parts(NamedTuple):
    """Covariances of [q', g']: s1 (Q,), cross (Q, d), variance (d, d), joint (Q, Q) or None."""

    s1: Array
    cross: Array
    variance: Array
    joint: Array | None

    def scaled(self, factor: float) -> "Parts":
        joint = None if self.joint is None else self.joint * factor
        return Parts(self.s1 * factor, self.cross * factor, self.variance * factor, joint)

    def given(self, known: Array, spread: float) -> "Parts":
        """What is left when a further moment of mean 0 is known: ``known`` (Q + d,) its covariances with [q', g'],
        ``spread`` its variance."""
        if not spread > 0:
            return self
        q, g = known[: self.s1.size], known[self.s1.size :]
        return Parts(
            np.maximum(self.s1 - q**2 / spread, 0.0),
            self.cross - np.outer(q, g) / spread,
            self.variance - np.outer(g, g) / spread,
            None if self.joint is None else self.joint - np.outer(q, q) / spread,
        )


def plain_law(moments: Moments, *, factor: float = 1.0) -> Law:
    """The law of q' = q − p and g' = g under the uniform law, covariances × ``factor``."""
    sums = Parts(moments.squares, moments.cross, moments.gram, moments.joint)
    return assembled(moments, sums.scaled(factor / moments.rows))


def assembled(
    moments: Moments,
    parts: Parts,
    *,
    groups: int = 0,
    inclusion: float = 0.0,
    members: int = 0,
    rows: int | None = None,
    flags: tuple[str, ...] = (),
) -> Law:
    """A law whose p and facts about the queries come from ``moments``; what a constant query moves with is set to 0.

    Raises ValueError where a covariance overflowed.
    """
    s1, cross, variance, joint = parts
    for name, array in (("queries", s1), ("moments", variance)):
        if not np.all(np.isfinite(array)):
            raise ValueError(
                f"the variance of the {name} overflows: their values are beyond 1e150 in size; divide the columns by a "
                "power of ten"
            )
    constant = moments.constant
    return Law(
        rows=moments.rows if rows is None else rows,
        p=moments.average[: constant.size],
        s1=np.where(constant, 0.0, s1),
        cross=np.where(constant[:, None], 0.0, cross),
        variance=(variance + variance.T) / 2,
        joint=None if joint is None else np.where(constant[:, None] | constant, 0.0, (joint + joint.T) / 2),
        binary=moments.binary,
        constant=constant,
        groups=groups,
        inclusion=inclusion,
        members=members,
        flags=flags,
    )
