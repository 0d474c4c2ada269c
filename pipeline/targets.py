"""Whether and from which n on the targets of a spec are met: in go surfaces with the share of trials within each limit,
out come ``smallest_n``, its interval and their statuses.
"""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from predcube.pipeline.opening import INFEASIBLE
from predcube.pipeline.quantities import QUANTITIES
from predcube.pipeline.searches import EXPLANATION, MEANINGS, smallest, smallest_for_good
from predcube.tasks.intervals import LEVEL, smallest_reached

AUDITS = frozenset({"stability", "privacy_loss"})
"""Quantities that are a supremum over data sets: their target is met where no trial exceeds it."""


def smallest_n(data: xr.Dataset, limits: Mapping[str, float], confidence: float) -> dict[str, xr.Variable]:
    """Theory's n_min: the smallest n with Pr[error ≤ limit] ≥ confidence for the errors that have a limit and no
    trial beyond the limit for the audits that have one. Closed
    forms are within their limit or not. Dims: the axes without n."""
    dims = tuple(str(d) for d in data["status"].dims)
    order = (*(d for d in dims if d != "n"), "n")
    status = data["status"].transpose(*order).values
    infeasible = status == INFEASIBLE
    known = ~infeasible
    n = data["n"].values
    holds = {end: np.ones(status.shape, dtype=bool) for end in ("", "_lower", "_upper")}
    for name, limit in limits.items():
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
    goal = " and ".join(
        f"no trial's {q} > {limit}"
        if q in AUDITS
        else f"{q} ≤ {limit}"
        if QUANTITIES[q].certain
        else f"Pr[{q} ≤ {limit}] ≥ {confidence}"
        for q, limit in limits.items()
    )
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
