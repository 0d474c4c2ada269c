"""Tables for a terminal: in goes an Arrow table, out comes a Rich table that fits the width it is given.

Always true: numbers have the digits that their interval supports; what there is no number for is never printed as one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

MOST_ROWS = 200
ENDLESS = 10_000
MISSING = "–"


def number(value: Any, uncertainty: float | None = None) -> str:
    """A value for people: four significant digits, or as many as make the uncertainty's second digit the last."""
    if value is None:
        return MISSING
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if uncertainty and math.isfinite(uncertainty):
        decimals = 1 - math.floor(math.log10(uncertainty))
        if 0 <= decimals <= 6:
            return f"{value:.{decimals}f}"
    return f"{value:.4g}"


def interval(value: Any, lower: Any, upper: Any, style: str) -> str:
    """A value with its interval: ``full`` "0.03 [0.02, 0.04]", ``half`` "0.03 ±0.01", ``none`` "0.03"."""
    ends = [e for e in (lower, upper) if isinstance(e, (int, float)) and math.isfinite(e)]
    width = (upper - lower) / 2 if len(ends) == 2 and isinstance(upper - lower, float) else None
    text = number(value, width)
    if value is None or style == "none" or (isinstance(value, float) and not math.isfinite(value)):
        return text
    if style == "half" and width is not None:
        decimals = len(text.partition(".")[2])
        return f"{text} ±{width:.{decimals}f}" if decimals and width > 0 else text
    if not ends or (lower == upper and lower == value):
        return text
    low, high = (MISSING if e is None else number(e, width) for e in (lower, upper))
    return f"{text} [{low}, {high}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Rows that Rich prints in the fullest form that fits the width it has."""

    rows: pa.Table
    title: str | None
    most_rows: int | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Full intervals, else half-widths, else the values alone; a caption says what was left out."""
        shown = self.rows if self.most_rows is None else self.rows.slice(0, self.most_rows)
        endless = options.update_width(ENDLESS)
        for style in ("full", "half", "none"):
            made = _made(shown, style)
            if Measurement.get(console, endless, made).maximum <= options.max_width:
                break
        names = self.rows.column_names
        notes = []
        if len(shown) < len(self.rows):
            notes.append(f"the first {len(shown)} of {len(self.rows)} rows; --format csv gives all")
        if style == "none" and any(_is_end(n, names) for n in names):
            notes.append("intervals left out to fit the width; --format csv gives them")
        if self.title:  # by itself: Rich would fold a table's own title to the table's width, in the midst of words
            yield Text(self.title, style="italic")
        yield made
        if notes:
            yield Text("; ".join(notes), style="italic")


def table(rows: pa.Table, *, title: str | None = None, most_rows: int | None = MOST_ROWS) -> Fitted:
    """Rows for a terminal of any width. Where ``q``, ``q_lower`` and ``q_upper`` are all there they become one
    column."""
    return Fitted(rows=rows, title=title, most_rows=most_rows)


def _is_end(name: str, names: Sequence[str]) -> bool:
    """Whether a column is one end of an interval that is shown with its quantity."""
    quantity = name.removesuffix("_lower").removesuffix("_upper")
    return quantity != name and {quantity, f"{quantity}_lower", f"{quantity}_upper"} <= set(names)


def cells(rows: pa.Table, style: str = "full") -> tuple[list[tuple[str, bool]], list[list[str]]]:
    """Heads (with whether the column is of numbers) and lines of texts; ``q`` with its ends is one column."""
    heads, columns = [], []
    for name in rows.column_names:
        if _is_end(name, rows.column_names):
            continue
        values = rows[name].to_pylist()
        kind = rows.schema.field(name).type
        heads.append((name, pa.types.is_integer(kind) or pa.types.is_floating(kind)))
        if f"{name}_lower" in rows.column_names and f"{name}_upper" in rows.column_names:
            lower, upper = (rows[f"{name}_{end}"].to_pylist() for end in ("lower", "upper"))
            columns.append([interval(*v, style) for v in zip(values, lower, upper, strict=True)])
        else:
            columns.append([number(v) for v in values])
    return heads, [list(line) for line in zip(*columns, strict=True)]


def _made(rows: pa.Table, style: str) -> Table:
    made = Table(header_style="bold", box=None, pad_edge=False)
    heads, lines = cells(rows, style)
    # Cells are wrapped as Text: a label may hold what Rich would read as markup.
    for name, is_number in heads:
        made.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for line in lines:
        made.add_row(*map(Text, line))
    return made
