"""The smallest value of an axis at which something holds: in go truth values along the axis, out come answers.

Always true: an answer is a value *and* a status. "Not reached within the grid" is an answer of its own; the value is
then NaN and never stands alone. Nothing is read off an argmax of all-False.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

type Truth = NDArray[np.bool_]

UNDECIDED, REACHED, NOT_REACHED, INFEASIBLE, PROVISIONAL, NOT_MONOTONE, BRACKETED, MISSED_AT_END = range(8)
MEANINGS = (
    "undecided",
    "reached",
    "not_reached",
    "infeasible",
    "reached_so_far",
    "reached_not_monotone",
    "reached_bracketed",
    "not_reached_at_end",
)
HAS_VALUE = (REACHED, PROVISIONAL, NOT_MONOTONE, BRACKETED)
EXPLANATION = (
    "undecided: data are missing that could change the answer; reached; not_reached: nowhere within the grid; "
    "infeasible: no value of the axis is feasible; reached_so_far: smaller values still lack data; "
    "reached_not_monotone: reached here and missed again further on; "
    "reached_bracketed: reached here and missed just below; smaller values that lack data are taken to miss; "
    "not_reached_at_end: missed at the largest value; smaller ones that lack data are taken to miss"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Smallest:
    """``position`` along the axis (−1 where there is none) and ``status``, both of the shape without the axis."""

    position: NDArray[np.intp]
    status: NDArray[np.uint8]

    def values(self, axis: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """The axis's values at the positions, NaN where there is none (the status says why)."""
        return np.where(self.position < 0, np.nan, axis[self.position].astype(np.float64))


def smallest(holds: Truth, known: Truth, infeasible: Truth) -> Smallest:
    """First place along the last axis (ascending values) where ``holds``. All arrays: shape (…, A).

    ``known`` says where there is data at all; a place that is neither known nor infeasible is a gap that data may
    still fill, so an answer beyond a gap is provisional; but for what is monotone along the axis a miss just below the
    answer, or at the largest value, speaks for every gap below.
    """
    hit = holds & known & ~infeasible
    gap = ~known & ~infeasible
    missed = known & ~holds & ~infeasible
    any_hit = hit.any(axis=-1)
    first = np.where(any_hit, hit.argmax(axis=-1), -1)
    place = np.arange(holds.shape[-1])
    before = place < first[..., None]
    after = place > first[..., None]
    status = np.full(any_hit.shape, NOT_REACHED, dtype=np.uint8)
    status[gap.any(axis=-1)] = UNDECIDED
    status[infeasible.all(axis=-1)] = INFEASIBLE
    status[any_hit] = REACHED
    status[any_hit & (missed & after).any(axis=-1)] = NOT_MONOTONE
    beyond_gap = any_hit & (gap & before).any(axis=-1)
    bracketed = _last(missed, ~infeasible & before) & (status != NOT_MONOTONE)
    status[beyond_gap] = np.where(bracketed, BRACKETED, PROVISIONAL)[beyond_gap]
    status[~any_hit & gap.any(axis=-1) & _last(missed, ~infeasible)] = MISSED_AT_END
    return Smallest(position=first.astype(np.intp), status=status)


def _last(holds: Truth, where: Truth) -> Truth:
    """Whether ``holds`` is true at the last place along the axis where ``where`` is."""
    last = where.shape[-1] - 1 - where[..., ::-1].argmax(axis=-1)
    return where.any(axis=-1) & np.take_along_axis(holds, last[..., None], axis=-1)[..., 0]


def smallest_for_good(holds: Truth, known: Truth, infeasible: Truth) -> Smallest:
    """First place along the last axis from which on it ``holds`` wherever there is data.

    The upper end of an interval for the smallest value is taken so: where the truth is monotone, stopping too early
    then takes one particular place (the one just before the true answer) to be wrong, so the interval keeps the level
    of a single place however long the axis is. For the lower end the plain first place has the same property.
    """
    missed = known & ~holds & ~infeasible
    reversed_misses = np.logical_or.accumulate(missed[..., ::-1], axis=-1)[..., ::-1]
    return smallest(holds & ~reversed_misses, known, infeasible)
