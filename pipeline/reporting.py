"""One page about a store: in goes a store, out comes self-contained HTML (or, for a terminal, its headline).

Always true: the page needs nothing from anywhere else; every text that came from a user is escaped; what is missing,
failed or infeasible is said before any number is shown.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Group
from rich.text import Text

from predcube import __version__
from predcube.pipeline import figures
from predcube.pipeline.complexity import of_surfaces, terse
from predcube.pipeline.failures import BadInput
from predcube.pipeline.headlines import curve_axis, headlines
from predcube.pipeline.kinds import kind_of
from predcube.pipeline.opening import leading_of, quantities_of, read_surfaces, surfaces_of
from predcube.pipeline.pages import Page, listing, paragraph, picture, preformatted, rows_table, section
from predcube.pipeline.printing import table
from predcube.pipeline.queries import rows
from predcube.pipeline.spec.canonical import from_resolved
from predcube.pipeline.spec.sweep import Section, Sweep
from predcube.storage import TileStates, first_errors, open_cube, tile_states

MOST_FIGURES = 8
MOST_RATIOS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """All that a page is made from."""

    store: str
    attributes: dict[str, Any]
    sweep: Sweep
    data: xr.Dataset
    tiles: TileStates


def headline(store: str) -> Group:
    """What a run ends by printing: the answer to the spec's targets, or each quantity along its main axis."""
    data = read_surfaces(store)
    parts: list[Any] = [table(h.rows, title=h.title) for h in headlines(data)]
    if said := completeness(data):
        parts.append(Text(said, style="yellow"))
    return Group(*parts)


def report(store: str) -> str:
    """The page of a store as HTML. Raises ``StoreError`` where there is none."""
    tree = open_cube(store)
    m = Material(
        store=store,
        attributes={str(k): v for k, v in tree.attrs.items()},
        sweep=from_resolved(tree.attrs["resolved"]),
        data=surfaces_of(tree).load(),
        tiles=tile_states(store),
    )
    page = Page(title=m.sweep.name, subtitle=_subtitle(m), notice=completeness(m.data))
    parts = (_headline, _complexity, _surfaces, _guarantees, _what_was_run, _failures, _provenance)
    return page.html("".join(text for part in parts for text in part(m)), f"predcube {__version__}")


def completeness(data: xr.Dataset) -> str:
    """What is missing, failed or infeasible, in words; empty where every trial is done."""
    counts = {w: int(data.attrs.get(f"trials_{w}", 0)) for w in ("done", "missing", "failed", "infeasible")}
    every = sum(counts.values())
    partly = int(data.attrs.get("trials_partly", 0))
    if not every or (counts["done"] == every and not partly):
        return ""
    said = [f"{counts[w]:,} {w} ({counts[w] / every:.1%})" for w in counts if counts[w] and w != "done"]
    done = f"of {every:,} trials {counts['done']:,} are done"
    if partly:
        done += f", {partly:,} of them without quantities that do not apply there"
    return "; ".join([done, *([", ".join(said)] if said else [])])


def _subtitle(m: Material) -> str:
    shape = " × ".join(f"{len(a.values)} {a.name}" for a in m.sweep.axes) or "one cell"
    return f"{shape}, {m.sweep.trials} trials a cell"


def _headline(m: Material) -> Iterator[str]:
    for h in headlines(m.data):
        yield section(h.title, rows_table(h.rows))


def _complexity(m: Material) -> Iterator[str]:
    """The smallest n beside the bounds, and the exponents in which it grows."""
    if "smallest_n" not in m.data:
        return
    found = of_surfaces(m.data, m.sweep)
    if any(name.startswith("ratio_") for name in found.rows.column_names):
        cut = f" (the first {MOST_RATIOS} of {len(found.rows)} rows)" if len(found.rows) > MOST_RATIOS else ""
        said = paragraph("Upper bounds are shapes without constants: compare their ratios with each other, not with 1.")
        yield section(f"Smallest n ÷ bounds{cut}", said + rows_table(found.rows.slice(0, MOST_RATIOS)))
    if found.slopes.num_rows:
        said = paragraph(
            "Least squares of ln n on the logarithms of the numeric axes. The errors are of scatter about a power law "
            "alone; beside each exponent stands that of the bounds over the same cells."
        )
        yield section("Exponents of the smallest n", said + rows_table(terse(found.slopes)))


# --- figures ----------------------------------------------------------------------------------------------------------


def _surfaces(m: Material) -> Iterator[str]:
    """A figure of every quantity, and of the smallest n, over as many axes as a figure has room for."""
    drawn: list[str] = []
    for name in [*(leading_of(m.data) or quantities_of(m.data)), "smallest_n"]:
        if name in m.data and len(drawn) < MOST_FIGURES:
            made = _figure(m.data, name)
            if made is not None:
                figure, said = made
                caption = f"{m.data[name].attrs.get('description', '')} {said}".strip()
                drawn.append(picture(figures.svg(figure), m.data[name].attrs.get("long_name", name), caption))
    if drawn:
        yield section("Surfaces", "".join(drawn))


def _figure(data: xr.Dataset, name: str) -> tuple[Any, str] | None:
    """One quantity along an axis of its own, or n, or its longest numeric axis, or its longest; axes beyond three are
    held."""
    axes = [str(d) for d in data[name].dims if data.sizes[d] > 1]
    if not axes or not np.isfinite(data[name].values).any():
        return None
    numeric = [d for d in axes if data[d].dtype.kind in "iuf"]
    x = curve_axis(data, name) or ("n" if "n" in axes else max(numeric or axes, key=lambda d: data.sizes[d]))
    others = [d for d in axes if d != x]
    # Labels are what is compared: they make the lines; numbers of many values make poor panels.
    others.sort(key=lambda d: (data[d].dtype.kind in "iuf", data.sizes[d]))
    hue = next((d for d in others if data.sizes[d] <= 12), None)
    facet = next((d for d in others if d != hue and data.sizes[d] <= 6), None)
    held = [d for d in others if d not in (hue, facet)]
    at = {d: data[d].values[data.sizes[d] // 2].item() for d in held}
    try:
        figure = figures.draw(data, x=x, y=name, hue=hue, facet=facet, at=at)
    except BadInput:
        return None
    return figure, f"Shown at {', '.join(f'{d} = {v}' for d, v in at.items())}." if at else ""


# --- bounds beside measurements ---------------------------------------------------------------------------------------


def _guarantees(m: Material) -> Iterator[str]:
    parts = [_nearest(m.data, q) for q in ("stability", "privacy_loss", "delta") if f"ratio_{q}" in m.data]
    lines = []
    for name in (str(n) for n in m.data.data_vars if str(n).startswith("bound_n_")):
        low, high = float(m.data[name].min()), float(m.data[name].max())
        spread = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        lines.append((name, spread, str(m.data[name].attrs["description"])))
    if lines:
        parts.append(paragraph("Sample complexities at the cells' guarantees and the targets (examples):"))
        parts.append(listing(("variable", "over the grid", "what it is"), lines))
    if parts:
        yield section("Guarantees beside measurements", "".join(parts))


def _nearest(data: xr.Dataset, quantity: str) -> str:
    """The cells whose largest measured value comes nearest to what is guaranteed."""
    ratio, name = f"ratio_{quantity}", data[quantity].attrs.get("long_name", quantity)
    columns = [f"{quantity}_maximum", f"bound_{quantity}", ratio, *(["audit"] if "audit" in data else [])]
    found = rows(data, select=columns)
    known = found.filter(found[ratio].is_valid()).sort_by([(ratio, "descending")])
    if not known.num_rows:
        return paragraph(f"{name}: no finite guarantee to compare with in any cell.")
    beyond = int((np.asarray(known[ratio].to_numpy()) > 1 + 1e-9).sum())
    shown = known.slice(0, MOST_RATIOS)
    return paragraph(
        f"{name}: the {shown.num_rows} of {known.num_rows} cells nearest to their guarantee; "
        f"{beyond or 'none'} beyond it."
    ) + rows_table(shown)


# --- what was run -----------------------------------------------------------------------------------------------------


def _what_was_run(m: Material) -> Iterator[str]:
    s = m.sweep
    lines = [(a.name, ", ".join(_short(v) for v in a.values), a.path) for a in s.axes]
    lines.append(("trial", f"{s.trials} a cell", f"root seed {s.seed}"))
    yield section("What was run", listing(("axis", "values", "in the spec"), lines) + _facts(m))
    if m.attributes.get("spec"):
        yield section("Spec, as written", preformatted(str(m.attributes["spec"])), folded=True)


def _facts(m: Material) -> str:
    s = m.sweep
    facts = [(name, _in_words(part)) for name, part in s.sections.items()]
    for axis in s.axes:
        for label, part in zip(axis.values, axis.sections or (), strict=False):
            facts.append((f"{axis.name} “{label}”", _in_words(part)))
    facts += kind_of(s).facts(s, m.store)
    facts.append(("quantities", ", ".join(s.quantities)))
    facts += [(f"measure.{name}", _short(value)) for name, value in s.measure.items()]
    if s.targets.limits:
        limits = ", ".join(f"{q} ≤ {str(v).removeprefix('=').strip()}" for q, v in s.targets.limits.items())
        facts.append(("targets", f"{limits} with probability {s.targets.confidence}"))
    known = {"title", "kind", "spec", "resolved"}
    for name, value in m.attributes.items():
        if name not in known:
            facts.append((name.replace("_", " "), _attribute(value)))
    return listing(("what", "value"), facts)


def _in_words(part: Section) -> str:
    return ", ".join(f"{k} = {v}" for k, v in part.items() if v is not None)


def _attribute(value: Any) -> str:
    """An attribute for people: JSON objects as name = value."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            parsed = json.loads(value)
        except ValueError:
            return value
        return _in_words(parsed) if isinstance(parsed, dict) else ", ".join(map(str, parsed))
    return str(value)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- failures and provenance ------------------------------------------------------------------------------------------


def _failures(m: Material) -> Iterator[str]:
    parts = []
    errors = first_errors(m.store)
    if errors:
        lines = [(e.message, str(e.count), _place_of(m, e.key)) for e in errors[:50]]
        parts.append(paragraph("Failed, by error:") + listing(("error", "tiles", "first at"), lines))
    found = kind_of(m.sweep).reasons(m.sweep, m.data, m.store)
    if found:
        parts.append(
            paragraph("Infeasible: the cell, or a quantity of it, cannot be had, which is no failure.")
            + listing(("reason", "cells", "for example"), [(r.reason, str(r.cells), r.example) for r in found])
        )
    yield section("Failures and infeasible cells", "".join(parts) or paragraph("None."))


def _place_of(m: Material, key: tuple[int, ...]) -> str:
    receipt = m.tiles.receipts.get(key)
    if receipt is None or not receipt.coordinates:
        return f"tile {key}"
    return ", ".join(
        f"{k} = {v[0]} … {v[-1]}" if isinstance(v, list) else f"{k} = {v}" for k, v in receipt.coordinates.items()
    )


def _provenance(m: Material) -> Iterator[str]:
    receipts = list(m.tiles.receipts.values())
    workers: dict[str, list[float]] = {}
    for r in receipts:
        entry = workers.setdefault(r.worker, [0.0, 0.0, 0.0])
        for i, value in enumerate((1.0, r.cpu_seconds, r.wall_seconds)):
            entry[i] += value
    again = sum(r.attempt > 1 for r in receipts)
    lines = [
        ("store", m.store),
        ("tiles", f"{len(m.tiles.done)} done, {len(m.tiles.failed)} with failures, {len(m.tiles.missing)} missing"),
        ("core-seconds", f"{sum(r.cpu_seconds for r in receipts):,.1f}"),
        ("tiles that took more than one attempt", str(again)),
    ]
    by_worker = [(w, f"{v[0]:.0f}", f"{v[1]:,.1f}", f"{v[2]:,.1f}") for w, v in sorted(workers.items())]
    body = listing(("what", "value"), lines)
    if by_worker:
        body += listing(("worker", "tiles", "core-seconds", "seconds"), by_worker)
    yield section("Provenance", body)
