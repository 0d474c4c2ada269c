"""What noise costs at equal predictability: in goes a cell, out come the noise of every scheme and a picture.

Always true: schemes are compared at the same sharp value and never at the same σ²; where a scheme cannot reach a value,
its line has a gap and its row a reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from predcube.pipeline.answering import Worked
from predcube.pipeline.drawing import LABEL_COLOURS, MARKERS, QUIET
from predcube.tasks.frontiers import noise_for
from predcube.tasks.noises import Noise
from predcube.tasks.noises.gaussian import Gaussian
from predcube.tasks.noises.laplace import Laplace

SCHEMES = ("calibrated", "rank_one", "isotropic")

POINTS = 48
"""Targets of a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """What one scheme takes to reach a target: its noise, what it costs, the noise's sd on each released number; or the
    ``reason`` why it does not reach it."""

    scheme: str
    noise: Noise | None = None
    sharp: float | None = None
    utility_cost: float | None = None
    sds: tuple[float, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A scheme's frontier: ``costs`` at sharp values, NaN where out of reach."""

    scheme: str
    sharps: tuple[float, ...]
    costs: tuple[float, ...]


def schemes_at(worked: Worked, target: float) -> tuple[Scheme, ...]:
    """Every scheme at one target, which is below the value without noise."""
    return tuple(_scheme(worked, target, scheme) for scheme in _compared(worked))


def lines(worked: Worked, most: float) -> tuple[Line, ...]:
    """Every scheme from a thousandth of the value without noise, ``most``, up to it."""
    shares = 1 - np.geomspace(1e-3, 1 - 1e-3, POINTS)
    sharps = most * np.sort(np.unique(np.concatenate([np.geomspace(1e-3, 0.5, POINTS), shares[shares > 0.5]])))
    made = []
    for scheme in _compared(worked):
        found = [_scheme(worked, float(s), scheme).utility_cost for s in sharps]
        costs = tuple(float("nan") if c is None else c for c in found)
        if not np.all(np.isnan(costs)):
            name = scheme if isinstance(scheme, str) else scheme.kind
            made.append(Line(scheme=name, sharps=tuple(map(float, sharps)), costs=costs))
    return tuple(made)


def _compared(worked: Worked) -> Sequence[str | Noise]:
    """The schemes that need nothing but a target, and the cell's own where its ε can be chosen."""
    own = [worked.noise] if isinstance(worked.noise, Gaussian | Laplace) else []
    return (*SCHEMES, *own)


def _scheme(worked: Worked, target: float, scheme: str | Noise) -> Scheme:
    name = scheme if isinstance(scheme, str) else scheme.kind
    try:
        found = noise_for(worked.gains, worked.process, worked.measure, target, scheme)
    except ValueError as e:
        return Scheme(scheme=name, reason=str(e))
    covariance = worked.gains.covariance(worked.process, found.noise, worked.measure)
    return Scheme(
        scheme=name,
        noise=found.noise,
        sharp=found.sharp,
        utility_cost=found.utility_cost,
        sds=tuple(float(v) for v in np.sqrt(np.maximum(np.diag(covariance), 0.0))),
    )


def cost_label(worked: Worked) -> str:
    """What a cost in accuracy is of, with its unit."""
    if worked.fitted.gram is None:
        return "summed variance of the noise on the released numbers"
    return "mean squared error that the noise adds to predictions"


def figure(worked: Worked, made: Sequence[Line], target: float | None = None, *, title: str = "") -> Figure:
    """Accuracy cost against the sharp value, a line a scheme; a dotted line at the target."""
    picture = Figure(figsize=(5.6, 3.8), layout="constrained")
    axes = picture.subplots()
    for i, line in enumerate(made):
        axes.plot(
            line.sharps,
            line.costs,
            color=LABEL_COLOURS[i % len(LABEL_COLOURS)],
            marker=MARKERS[i % len(MARKERS)],
            markersize=4,
            markevery=8,
            linewidth=1.6,
            label=line.scheme,
        )
    if target is not None:
        axes.axvline(target, color=QUIET, linewidth=1.1, linestyle=":", label=f"target {target:.3g}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(True, color="#d1d5db", linewidth=0.6, alpha=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=9)
    unit = "nats" if worked.measure.loss == "log" else "squared units of the query"
    most = "; the largest of the queries" if len(worked.queries) > 1 else ""
    axes.set_xlabel(f"loss that the release saves the attacker (sharp, {unit}{most})", fontsize=9)
    axes.set_ylabel(cost_label(worked), fontsize=9)
    if title:
        axes.set_title(title, fontsize=10)
    axes.legend(fontsize=9, frameon=False)
    return picture
