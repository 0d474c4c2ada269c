"""Whether and from which n on the targets of a spec are met: in go surfaces with the share of trials within each limit,
out come ``smallest_n``, its interval and their statuses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from predcube.pipeline.opening import INFEASIBLE, status_of
from predcube.pipeline.quantities import QUANTITIES
from predcube.pipeline.searches import EXPLANATION, MEANINGS, Truth, smallest, smallest_for_good
from predcube.pipeline.spec.sweep import Sweep
from predcube.tasks.intervals import LEVEL, smallest_reached

AUDITS = frozenset({"stability", "privacy_loss"})
"""Quantities that are a supremum over data sets: their target is met where no trial exceeds it."""


ENDS = ("", "_lower", "_upper")
"""The answer itself and both ends of its interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit that differs between cells: ``values`` over the axes of a sweep, ``words`` the formula."""

    values: NDArray[np.float64]
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Truths:
    """Over the axes without n, then n (ascending), whether the targets are met (``holds``, for each of ``ENDS``),
    where there is data, and where there can be none."""

    dims: tuple[str, ...]
    holds: Mapping[str, Truth]
    known: Truth
    infeasible: Truth


def limits_of(sweep: Sweep) -> dict[str, float | Limit]:
    """The limits of a sweep's targets, formulas worked out for every cell."""
    found: dict[str, float | Limit] = {}
    touching = sweep.touching("targets")
    for quantity, wanted in sweep.targets.limits.items():
        if not isinstance(wanted, str):
            found[quantity] = wanted
            continue
        few = np.empty([s if t else 1 for s, t in zip(sweep.shape, touching, strict=True)])
        for index in product(*map(range, few.shape)):
            few[index] = sweep.limit(index, quantity)
        values = np.broadcast_to(few, sweep.shape)
        found[quantity] = Limit(values=values, words=wanted.lstrip().removeprefix("=").strip())
    return found


def truths(data: xr.Dataset, limits: Mapping[str, float | Limit], confidence: float) -> Truths:
    """Where the targets are met: Pr[error ≤ limit] ≥ confidence for the errors that have a limit, no trial beyond the
    limit for the audits that have one. Closed forms are within their limit or not."""
    dims = tuple(str(d) for d in data["status"].dims)
    order = (*(d for d in dims if d != "n"), "n")
    statuses = [data[name].transpose(*order).values for name in {status_of(data, q) for q in limits}]
    infeasible = np.logical_or.reduce([status == INFEASIBLE for status in statuses])
    known = ~infeasible
    n = data["n"].values
    holds = {end: np.ones(infeasible.shape, dtype=bool) for end in ENDS}
    for name, given in limits.items():
        limit = data[f"{name}_limit"].transpose(*order).values if isinstance(given, Limit) else given
        known = known & (data[f"{name}_count"].transpose(*order).values > 0)
        if name in AUDITS or QUANTITIES[name].certain:
            within = data[f"{name}_maximum"].transpose(*order).values <= limit
            for end in holds:
                holds[end] &= within
        else:
            count = data[f"{name}_count"].transpose(*order).values
            successes = np.rint(np.nan_to_num(data[f"{name}_reached"].transpose(*order).values) * count).astype(
                np.int64
            )
            # The isotonic fit of the rates: one lucky small n is not taken when larger ones fall short.
            fitted = smallest_reached(n, successes, count, confidence, level=LEVEL).n
            holds[""] &= n >= np.where(np.isnan(fitted), np.inf, fitted)[..., None]
            # The lower end of the answer goes with the most that the probability may be, and the other way round.
            for end, of in (("_lower", "_reached_upper"), ("_upper", "_reached_lower")):
                holds[end] &= data[name + of].transpose(*order).values >= confidence
    return Truths(dims=order, holds=holds, known=known, infeasible=infeasible)


def _goal(limits: Mapping[str, float | Limit], confidence: float) -> str:
    """The targets in words."""
    said = []
    for q, limit in limits.items():
        most = limit.words if isinstance(limit, Limit) else limit
        if q in AUDITS:
            said.append(f"no trial's {q} > {most}")
        else:
            said.append(f"{q} ≤ {most}" if QUANTITIES[q].certain else f"Pr[{q} ≤ {most}] ≥ {confidence}")
    return " and ".join(said)


def smallest_n(data: xr.Dataset, limits: Mapping[str, float | Limit], confidence: float) -> dict[str, xr.Variable]:
    """Theory's n_min: the smallest n at which the targets are met, and its interval. Dims: the axes without n. ``data``
    holds ``q_limit`` for each limit that differs between cells."""
    found_true = truths(data, limits, confidence)
    holds, known, infeasible = found_true.holds, found_true.known, found_true.infeasible
    order, n = found_true.dims, data["n"].values
    goal = _goal(limits, confidence)
    words = {
        "": (
            "smallest n that reaches the targets",
            f"smallest n on the grid with {goal}, probabilities fitted as non-decreasing in n",
        ),
        "_lower": (
            "lower end of the 95% interval of the smallest n",
            "first n that the Clopper–Pearson intervals do not rule out",
        ),
        "_upper": (
            "upper end of the 95% interval of the smallest n",
            "first n from which on the Clopper–Pearson intervals are within the targets",
        ),
    }
    found: dict[str, xr.Variable] = {}
    for end, (long_name, description) in words.items():
        search = smallest_for_good if end == "_upper" else smallest
        answer = search(holds[end], known, infeasible)
        name = f"smallest_n{end}"
        found[name] = xr.Variable(
            order[:-1],
            answer.values(n),
            {
                "long_name": long_name,
                "units": "examples",
                "description": f"{description}; see {name}_status",
                "goal": goal,
                "largest": int(n[-1]),
            },
        )
        found[f"{name}_status"] = xr.Variable(
            order[:-1],
            answer.status,
            {
                "long_name": f"how {name} ended",
                "flag_values": list(range(len(MEANINGS))),
                "flag_meanings": " ".join(MEANINGS),
                "description": EXPLANATION,
            },
        )
    return found
