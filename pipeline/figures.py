"""Pictures of surfaces: in go a store and which axis goes where, out comes a Matplotlib figure.

Always true: what has no number is drawn as what it is (infinite, not reached, infeasible, missing), never left out and
never joined by a line; nothing is averaged over an axis; no global state of Matplotlib is touched.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from predcube.pipeline.columns import Wanted, fix, listing, unknown
from predcube.pipeline.drawing import (
    BOTTOM,
    QUIET,
    SIGNS,
    TOP,
    draw_line,
    draw_signs,
    label,
    scale_x,
    scale_y,
    states_of,
    style_of,
    word,
)
from predcube.pipeline.failures import BadInput
from predcube.pipeline.opening import quantities_of, read_surfaces

FORMATS = (".png", ".svg", ".pdf")
MOST_PANELS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Which axis does what; ``None`` where none does."""

    x: str
    hue: str | None
    facet: str | None
    fixed: tuple[str, ...]


def plot(
    store: str,
    *,
    x: str,
    y: str,
    hue: str | None = None,
    facet: str | None = None,
    at: Mapping[str, Wanted] | None = None,
    bounds: bool = True,
) -> Figure:
    """Draw the surface ``y`` of a store against the axis ``x``, a line for each value of ``hue``, a panel for each of
    ``facet``; the 95% interval as a band, the guarantee as a dashed line, the target as a dotted one.

    An axis that is left over becomes the hue, the next the facet; if more are left, ``BadInput`` asks to fix them with
    ``at``. Where ``y`` is an axis too, the picture is a heat map of the quantity ``hue``.
    """
    return draw(read_surfaces(store), x=x, y=y, hue=hue, facet=facet, at=at, bounds=bounds)


def draw(
    data: xr.Dataset,
    *,
    x: str,
    y: str,
    hue: str | None = None,
    facet: str | None = None,
    at: Mapping[str, Wanted] | None = None,
    bounds: bool = True,
    size: tuple[float, float] | None = None,
) -> Figure:
    """``plot`` for surfaces that are at hand."""
    data = fix(data, at or {})
    if y in data.dims:
        return _heat_map(data, x, y, hue, facet, size)
    _check_quantity(data, y, "--y")
    roles = _roles(data, y, x, hue, facet)
    figure, panels = _panels(data, roles.facet, size)
    signs: set[str] = set()
    seen: set[str] = set()
    for axes, part in panels:
        lines = _split(part, roles.hue)
        rows = {TOP: 0, BOTTOM: 0}
        for i, line in enumerate(lines):
            style = style_of(data, roles.hue, i)
            seen |= draw_line(axes, line, roles.x, y, style, i, len(lines), bounds)
            signs |= draw_signs(axes, line, roles.x, y, style, rows)
        if rows[TOP] and roles.facet is not None:
            axes.set_title(axes.get_title(), fontsize=10, pad=8 + 8 * rows[TOP])
    _finish(figure, [a for a, _ in panels], data, roles, y)
    _legend(figure, data, roles.hue, seen, signs, y)
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write PNG, SVG or PDF by the file's ending. Raises ``BadInput`` for another ending or a place that cannot be
    written."""
    path = Path(path)
    check_format(path)
    try:
        path.write_bytes(_encoded(figure, path.suffix.lower()))
    except OSError as e:
        raise BadInput(f"{path}: cannot be written ({e.strerror or e}); name a file in a folder that exists") from e


def svg(figure: Figure) -> bytes:
    """The picture as SVG."""
    return _encoded(figure, ".svg")


def _encoded(figure: Figure, ending: str) -> bytes:
    """The same surfaces give the same bytes: no dates, and names inside an SVG by a fixed salt."""
    metadata = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}[ending]
    with io.BytesIO() as file, rc_context({"svg.hashsalt": "predcube"}):
        figure.savefig(file, format=ending.removeprefix("."), dpi=160, metadata=metadata)
        return file.getvalue()


def check_format(path: str | Path) -> None:
    """Raise ``BadInput`` unless the ending names a picture's format."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise BadInput(
            f"{path}: {f'ending {suffix!r}' if suffix else 'no ending'}; name a file that ends in .png, .svg or .pdf"
        )


# --- who does what ----------------------------------------------------------------------------------------------------


def _check_quantity(data: xr.Dataset, name: str, option: str) -> None:
    drawable = [str(n) for n, v in data.data_vars.items() if "flag_meanings" not in v.attrs]
    if name in data.data_vars and name not in drawable:
        raise BadInput(f"{option} {name}: a code, not a quantity; there are: {', '.join(quantities_of(data))}")
    if name not in drawable:
        raise BadInput(f"{option} {name}: {unknown(name, [*drawable, *map(str, data.dims)], 'quantity')}")


def _check_axis(data: xr.Dataset, name: str | None, option: str) -> None:
    if name is not None and name not in data.dims:
        raise BadInput(f"{option} {name}: {unknown(name, map(str, data.dims), 'axis')}")


def _roles(data: xr.Dataset, quantity: str, x: str, hue: str | None, facet: str | None, y: str | None = None) -> Roles:
    """Give the axes that are left over a role, in the order of the store."""
    given = [("--x", x), ("--y", y), ("--hue", hue), ("--facet", facet)]
    for option, name in given:
        _check_axis(data, name, option)
    used = [name for _, name in given if name is not None]
    for option, name in given:
        if name is not None and used.count(name) > 1:
            raise BadInput(f"{option} {name}: the axis has two roles; give each axis one")
        if name is not None and name not in data[quantity].dims:
            raise BadInput(
                f"{option} {name}: {quantity} does not run over it, "
                f"only over {', '.join(map(str, data[quantity].dims))}"
            )
    left = [str(d) for d in data[quantity].dims if d not in used and data.sizes[d] > 1]
    if hue is None and y is None and left:
        hue = left.pop(0)
    if facet is None and left:
        facet = left.pop(0)
    if left:
        cures = " ".join(f"--at {d}={data[d].values[0]}" for d in left)
        held = "; ".join(f"{d} has {listing(data[d].values)}" for d in left)
        raise BadInput(f"{quantity} also runs over {' and '.join(left)}: choose one value each, as in {cures} ({held})")
    fixed = tuple(str(d) for d in data[quantity].dims if d not in (x, y, hue, facet))
    return Roles(x=x, hue=hue, facet=facet, fixed=fixed)


def _split(data: xr.Dataset, axis: str | None) -> list[xr.Dataset]:
    return [data] if axis is None else [data.isel({axis: slice(i, i + 1)}) for i in range(data.sizes[axis])]


def _panels(
    data: xr.Dataset, facet: str | None, size: tuple[float, float] | None
) -> tuple[Figure, list[tuple[Axes, xr.Dataset]]]:
    parts = _split(data, facet)
    if len(parts) > MOST_PANELS:
        raise BadInput(
            f"--facet {facet} has {len(parts)} values, more than {MOST_PANELS} panels; choose some with --at {facet}=…"
        )
    columns = min(len(parts), 3)
    rows = -(-len(parts) // columns)
    figure = Figure(
        figsize=size or (2.2 + 3.4 * columns + (1.0 if columns == 1 else 0), 0.7 + 3.0 * rows), layout="constrained"
    )
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for unused in grid.ravel()[len(parts) :]:
        unused.set_visible(False)
    panels = list(zip(grid.ravel(), parts, strict=False))
    if facet is not None:
        for axes, part in panels:
            axes.set_title(f"{facet} = {word(part[facet].values[0])}", fontsize=10)
    return figure, panels


def _finish(figure: Figure, panels: Sequence[Axes], data: xr.Dataset, roles: Roles, y: str) -> None:
    limit = _target(data, y)
    for axes in panels:
        axes.grid(True, color="#d1d5db", linewidth=0.6, alpha=0.7)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.tick_params(labelsize=9)
        scale_x(axes, data[roles.x].values)
        if limit is not None:
            axes.axhline(limit, color=QUIET, linewidth=1.1, linestyle=":")
    scale_y(panels, data, y)
    figure.supxlabel(label(data, roles.x), fontsize=10)
    figure.supylabel(label(data, y), fontsize=10)
    _title(figure, data, roles.fixed)


def _target(data: xr.Dataset, y: str) -> float | None:
    """The target of a quantity, where all that is drawn has one: that of a formula may differ between cells."""
    if f"{y}_limit" in data:
        several = np.unique(data[f"{y}_limit"].values)
        return float(several[0]) if len(several) == 1 else None
    limit = data[f"{y}_reached"].attrs.get("limit") if f"{y}_reached" in data else None
    return None if limit is None else float(limit)


def _title(figure: Figure, data: xr.Dataset, fixed: Sequence[str]) -> None:
    if fixed:
        figure.suptitle(", ".join(f"{d} = {word(data[d].values[0])}" for d in fixed), fontsize=10, color=QUIET)


def _legend(figure: Figure, data: xr.Dataset, hue: str | None, seen: set[str], signs: set[str], y: str) -> None:
    handles: list[Line2D | Patch] = []
    if hue is not None:
        handles.append(Line2D([], [], linestyle="none", label=label(data, hue)))
        for i, value in enumerate(data[hue].values):
            handles.append(Line2D([], [], linewidth=1.6, markersize=4.5, label=word(value), **style_of(data, hue, i)))
    if "interval" in seen:
        handles.append(Patch(facecolor=QUIET, alpha=0.25, label="95% interval"))
    if "bound" in seen:
        handles.append(Line2D([], [], linestyle="--", color=QUIET, label="guaranteed"))
    if (limit := _target(data, y)) is not None:
        handles.append(Line2D([], [], linestyle=":", color=QUIET, label=f"target {limit:g}"))
    for state, (_, look, words) in SIGNS.items():
        if state in signs:
            handles.append(Line2D([], [], linestyle="none", color=QUIET, markersize=5.5, label=words, **look))
    if handles:
        figure.legend(handles=handles, loc="outside right upper", fontsize=9, frameon=False)


# --- heat maps --------------------------------------------------------------------------------------------------------


def _heat_map(
    data: xr.Dataset, x: str, y: str, quantity: str | None, facet: str | None, size: tuple[float, float] | None
) -> Figure:
    """``quantity`` as colour over the product of two axes, each value a cell of equal size."""
    if quantity is None:
        raise BadInput(
            f"--y {y} is an axis: for a heat map name the quantity as --hue, one of {', '.join(quantities_of(data))}"
        )
    _check_quantity(data, quantity, "--hue")
    roles = _roles(data, quantity, x, None, facet, y)
    figure, panels = _panels(data, roles.facet, size)
    finite = data[quantity].values[np.isfinite(data[quantity].values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    mesh = None
    for axes, part in panels:
        values = part[quantity].transpose(y, x, ...).values.reshape(part.sizes[y], part.sizes[x]).astype(np.float64)
        axes.set_facecolor("#e5e7eb")
        mesh = axes.pcolormesh(np.where(np.isfinite(values), values, np.nan), cmap="viridis", vmin=low, vmax=high)
        states = np.array([states_of(part.isel({y: slice(j, j + 1)}), x, quantity) for j in range(part.sizes[y])])
        small = values.size <= 120
        for j, i in np.ndindex(*values.shape):
            sign = "∞" if np.isposinf(values[j, i]) else str(states[j, i])
            if sign or small:
                bright = np.isfinite(values[j, i]) and (values[j, i] - low) > 0.6 * (high - low)
                colour = QUIET if sign else "black" if bright else "white"
                axes.text(
                    i + 0.5, j + 0.5, sign or f"{values[j, i]:.3g}", ha="center", va="center", fontsize=7, color=colour
                )
        axes.set_xticks(np.arange(part.sizes[x]) + 0.5, [word(v) for v in part[x].values])
        axes.set_yticks(np.arange(part.sizes[y]) + 0.5, [word(v) for v in part[y].values])
        axes.tick_params(labelsize=8, length=0)
    if mesh is not None:
        figure.colorbar(mesh, ax=[a for a, _ in panels], label=label(data, quantity), shrink=0.9)
    figure.supxlabel(label(data, x), fontsize=10)
    figure.supylabel(label(data, y), fontsize=10)
    _title(figure, data, roles.fixed)
    return figure


__all__ = ["check_format", "draw", "plot", "save", "svg"]
