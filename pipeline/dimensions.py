"""Dimensions that some quantities have beside the axes of a sweep and the trials: in goes a sweep, out come their axes.

Always true: an extra axis is whole in every tile, and a worker makes its labels from the sweep, as it makes the others.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.pipeline.quantities import QUANTITIES
from predcube.pipeline.spec.sweep import Sweep
from predcube.storage.schema import Axis


def extra_axes(sweep: Sweep) -> tuple[Axis, ...]:
    """The axes that quantities of this sweep have of their own, in the order of the quantities."""
    names = dict.fromkeys(name for q in sweep.quantities for name in QUANTITIES[q].extra)
    made = ((name, VALUES[name](sweep)) for name in names)
    return tuple(Axis(name=n, values=v, chunk=len(v), attributes=ABOUT[n]) for n, v in made)


def _delta_epsilon(sweep: Sweep) -> NDArray[Any]:
    return np.array(sweep.measure["delta_epsilon"], dtype=np.float64)


VALUES: Mapping[str, Callable[[Sweep], NDArray[Any]]] = {"delta_epsilon": _delta_epsilon}
"""What each extra axis holds in a sweep."""

ABOUT: Mapping[str, Mapping[str, str]] = {
    "delta_epsilon": {
        "long_name": "ε at which δ is measured",
        "units": "nat",
        "description": "measure.delta_epsilon of the spec",
    },
}
"""Its attributes."""
