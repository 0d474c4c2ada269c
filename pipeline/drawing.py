"""The strokes of a picture: in go one panel and one line's data, out come marks on it and what a legend must explain.

Always true: what has no number is drawn as what it is (infinite, not reached, infeasible, failed, missing).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.markers import CARETUP
from matplotlib.ticker import NullFormatter, NullLocator
from numpy.typing import NDArray

from predcube.pipeline.columns import flags
from predcube.pipeline.opening import status_of

# Okabe and Ito's colours, told apart with any colour vision; the pale yellow is left out.
LABEL_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = ("o", "s", "D", "v", "P", "X", "<", ">")
QUIET = "#6b7280"

# What stands in place of a number: where (share of the axis's height), how, and what the legend says.
TOP, BOTTOM, STEP = 1.03, 0.025, 0.042
SIGNS: Mapping[str, tuple[float, dict[str, Any], str]] = {
    "infinite": (TOP, {"marker": "^"}, "∞"),
    "not reached": (TOP, {"marker": "^", "fillstyle": "none"}, "not reached within the grid"),
    "infeasible": (BOTTOM, {"marker": "x"}, "infeasible"),
    "failed": (BOTTOM, {"marker": "$!$"}, "failed"),
    "no data": (BOTTOM, {"marker": "$?$"}, "no data yet"),
}


def style_of(data: xr.Dataset, hue: str | None, i: int) -> dict[str, Any]:
    """Ordered colours for numbers, distinct ones for labels."""
    if hue is None:
        return {"color": LABEL_COLOURS[0], "marker": "o"}
    values = data[hue].values
    marker = MARKERS[i % len(MARKERS)]
    if values.dtype.kind in "iuf":
        return {"color": colormaps["viridis"](0.88 * i / max(len(values) - 1, 1)), "marker": marker}
    return {"color": LABEL_COLOURS[i % len(LABEL_COLOURS)], "marker": marker}


def flat(data: xr.Dataset, x: str, name: str) -> NDArray[Any]:
    """A variable along ``x``; its other axes have one value."""
    variable = data[name]
    if x not in variable.dims:
        return np.repeat(variable.values.reshape(1), data.sizes[x])
    return np.asarray(variable.values).reshape(data.sizes[x])


def positions(data: xr.Dataset, x: str, i: int = 0, lines: int = 1, *, apart: bool = False) -> NDArray[np.float64]:
    """Numbers where they are (or, ``apart``, the lines a hundredth of the axis beside each other); labels at 0, 1, 2,
    …, the lines side by side."""
    values = data[x].values
    aside = i - (lines - 1) / 2
    if values.dtype.kind not in "iuf":
        return np.arange(len(values), dtype=np.float64) + aside * min(0.12, 0.6 / lines)
    at: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    if not apart or len(at) < 2:
        return at
    span = np.array([at.min(), at.max()])
    if is_geometric(values):
        return np.asarray(at * (span[1] / span[0]) ** (0.01 * aside))
    return np.asarray(at + 0.01 * aside * (span[1] - span[0]))


def draw_line(
    axes: Axes, data: xr.Dataset, x: str, y: str, style: dict[str, Any], i: int, lines: int, bounds: bool
) -> set[str]:
    """One line with its band and its guarantee. Returns what a legend has to explain."""
    seen: set[str] = set()
    numeric = data[x].dtype.kind in "iuf"
    on_grid = (
        "largest" in data[y].attrs
    )  # an answer among the values of an axis: ties are common, bands would hide them
    at = positions(data, x, i, lines, apart=on_grid)
    values = flat(data, x, y).astype(np.float64)
    values = np.where(np.isfinite(values), values, np.nan)
    axes.plot(at, values, linestyle="-" if numeric else "none", linewidth=1.6, markersize=4.5, **style)
    if f"{y}_lower" in data and f"{y}_upper" in data:
        lower, upper = (flat(data, x, f"{y}_{end}").astype(np.float64) for end in ("lower", "upper"))
        if on_grid:
            # An upper end beyond the grid: the bar goes as far as the grid, and an arrow says that it goes on.
            beyond = np.isfinite(values) & np.isnan(upper)
            upper = np.where(beyond, float(data[y].attrs["largest"]), upper)
            axes.plot(at[beyond], upper[beyond], linestyle="none", marker=CARETUP, color=style["color"], markersize=6)
        there = np.isfinite(lower) & np.isfinite(upper)
        if numeric and not on_grid:
            axes.fill_between(at, lower, upper, where=list(there), color=style["color"], alpha=0.18, linewidth=0)
        else:
            axes.vlines(at[there], lower[there], upper[there], color=style["color"], linewidth=2.5, alpha=0.4)
        if (there & ((upper > lower) | on_grid)).any():  # an exact value has no width to explain
            seen.add("interval")
    guarantee = f"bound_{y}"
    if bounds and guarantee in data:
        bound = flat(data, x, guarantee).astype(np.float64)
        bound = np.where(np.isfinite(bound), bound, np.nan)
        if np.isfinite(bound).any():
            axes.plot(
                at,
                bound,
                linestyle="--" if numeric else "none",
                marker=None if numeric else "_",
                color=style["color"],
                linewidth=1.1,
            )
            seen.add("bound")
    return seen


def states_of(data: xr.Dataset, x: str, y: str) -> NDArray[Any]:
    """For each place along ``x`` the sign that stands for its value, or ""."""
    values = flat(data, x, y).astype(np.float64)
    states = np.where(np.isposinf(values), "infinite", np.where(np.isnan(values), "no data", "")).astype(object)
    name = f"{y}_status" if f"{y}_status" in data else status_of(data, y)
    if name in data and set(data[name].dims) <= set(data[y].dims):
        codes = flat(data, x, name)
        for k, word in (flags(data[name]) or {}).items():
            word = word.replace("_", " ")
            if word in SIGNS:
                states[(codes == k) & (states == "no data")] = word
    return states


def draw_signs(axes: Axes, data: xr.Dataset, x: str, y: str, style: dict[str, Any], rows: dict[float, int]) -> set[str]:
    """Draw the signs of one line at the panel's edges, each line in a row of its own so that none hides another:
    ``rows`` counts those taken above and below."""
    at = positions(data, x)
    states = states_of(data, x, y)
    found = set()
    for state, (height, look, _) in SIGNS.items():
        here = states == state
        if here.any():
            found.add(state)
            axes.plot(
                at[here],
                np.full(int(here.sum()), height + STEP * rows[height]),
                transform=axes.get_xaxis_transform(),
                linestyle="none",
                markersize=5.5,
                color=style["color"],
                clip_on=False,
                **look,
            )
    for height in rows:
        rows[height] += any(SIGNS[state][0] == height for state in found)
    return found


# --- axes, labels, legend ---------------------------------------------------------------------------------------------


def is_geometric(values: NDArray[Any]) -> bool:
    """Whether ascending numbers are spaced more evenly in their logarithms, over a factor of 4 or more."""
    if values.dtype.kind not in "iuf" or len(values) < 3 or values.min() <= 0 or values.max() < 4 * values.min():
        return False
    steps, ratios = np.diff(values.astype(np.float64)), np.diff(np.log(values.astype(np.float64)))
    return bool(ratios.std() / ratios.mean() < steps.std() / steps.mean())


def word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (float, np.floating)) else str(value)


def label(data: xr.Dataset, name: str) -> str:
    attributes = data[name].attrs
    text = str(attributes.get("long_name", name.replace("_", " ")))
    units = str(attributes.get("units", "1"))
    if name in data.dims:
        # A swept parameter is called by its path; its axis by the last part.
        text = name if "." in text or text == name else f"{text} ({name})"
    return text if units in ("1", "") else f"{text} [{units}]"


def scale_x(axes: Axes, values: NDArray[Any]) -> None:
    if values.dtype.kind not in "iuf":
        _ticks(axes, "x", [word(v) for v in values])
        return
    if is_geometric(values):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    if len(values) <= 6 or (is_geometric(values) and len(values) <= 8):
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(values, [word(v) for v in values])


def _ticks(axes: Axes, which: str, words: Sequence[str]) -> None:
    long = which == "x" and sum(map(len, words)) > 28
    places = list(range(len(words)))
    if which == "x":
        axes.set_xticks(places, words, rotation=25 if long else 0, ha="right" if long else "center")
    else:
        axes.set_yticks(places, words)


def scale_y(panels: Sequence[Axes], data: xr.Dataset, y: str) -> None:
    values = data[y].values.astype(np.float64)
    finite = values[np.isfinite(values)]
    grid = data[y.removeprefix("smallest_")] if y.removeprefix("smallest_") in data.dims else None
    if grid is not None and is_geometric(grid.values):
        panels[0].set_yscale("log")
        panels[0].yaxis.set_minor_locator(NullLocator())
        if grid.size <= 10:
            panels[0].set_yticks(grid.values, [word(v) for v in grid.values])
        panels[0].set_ylim(grid.values[0] / 1.15, grid.values[-1] * 1.15)
        return
    if not len(finite):
        # Only signs to show: the numbers of the axis would mean nothing.
        panels[0].set_ylim(0, 1)
        for axes in panels:
            axes.set_yticks([])
        return
    if finite.min() > 0 and finite.max() > 50 * finite.min():
        panels[0].set_yscale("log")
    else:
        low, high = panels[0].get_ylim()
        if low > 0 and finite.min() < 0.5 * finite.max():
            panels[0].set_ylim(0, high)
