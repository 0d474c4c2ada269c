"""The values and names of axes: in goes what stands under [sweep], out come paths, checked values and legal names.

Always true of the values: finite, distinct, of the parameter's type, in the order written.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from predcube.pipeline.spec.fields import Declared, check, check_table
from predcube.pipeline.spec.grammar import Grammar
from predcube.pipeline.spec.mistakes import Mistakes, show
from predcube.pipeline.spec.models import Range
from predcube.pipeline.spec.sweep import Value, word
from predcube.storage.schema import RESERVED as WORDS

DIGITS = 12
"""Significant digits of the values between the ends of a range: 0.3 and not 0.30000000000000004, on every machine."""

NEAR = 1e-12  # relative distance below which two floats of one axis are the same number written twice

_RESERVED_PREFIXES = ("bound_", "smallest_", "tile_")
_RANGE_KEYS = frozenset({"start", "stop", "num", "spacing"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One axis as written: a dotted path and either a list of values, a range, or a list of sections. ``role``: the
    part of a cell that it changes."""

    path: str
    role: str
    written: Any

    @property
    def place(self) -> str:
        return f"sweep.{self.path}"

    @property
    def is_sections(self) -> bool:
        return isinstance(self.written, list) and any(isinstance(v, Mapping) for v in self.written)


def flatten(table: Mapping[str, Any], grammar: Grammar, prefix: str = "") -> list[Entry]:
    """Axes in the order written. An unquoted dotted key has been parsed as nested tables, which are undone here; a
    table that holds ``start``, ``stop`` or ``num`` is a range."""
    entries: list[Entry] = []
    for key, value in table.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and not (_RANGE_KEYS & value.keys()) and value:
            entries += flatten(value, grammar, f"{path}.")
        else:
            entries.append(Entry(path=path, role=grammar.role_of(path.partition(".")[0]), written=value))
    return entries


def values_of(entry: Entry, declared: Iterable[Declared], mistakes: Mistakes, notes: list[str]) -> tuple[Value, ...]:
    """The axis's values, each checked against every declaration of the parameter; () where there is a mistake."""
    fields = list(declared)
    before = len(mistakes.found)
    if isinstance(entry.written, Mapping):
        raw = _spread(entry, all(f.scalars == {int} for f in fields), mistakes, notes)
    elif not isinstance(entry.written, list):
        mistakes.add(
            entry.place,
            f"{show(entry.written)} is one value; an axis is a list of values, or {{ start, stop, num, spacing }}",
        )
        return ()
    else:
        raw = entry.written
        if not raw:
            mistakes.add(entry.place, "the axis is empty; give at least one value, or remove the axis")
    values: list[Value] = []
    for i, value in enumerate(raw):
        checked = value
        for field in fields:
            checked = check(value, field, f"{entry.place}[{i}]", mistakes)
        if isinstance(checked, bool | int | float | str):
            values.append(checked)
        elif len(mistakes.found) == before:
            mistakes.add(f"{entry.place}[{i}]", f"{show(value)} cannot stand on an axis; give numbers or strings")
    if len(mistakes.found) > before:
        return ()
    _refuse_duplicates(entry.place, values, mistakes)
    return tuple(values) if len(mistakes.found) == before else ()


def dtype_of(declared: Iterable[Declared], values: Iterable[Value]) -> Literal["int64", "float64", "str"]:
    """The coordinate's type: the parameter's, whatever numbers are written; strings for text, booleans and mixtures."""
    if any(isinstance(v, bool | str) for v in values):
        return "str"
    takes = frozenset[type]().union(*(f.scalars for f in declared))
    return "float64" if float in takes else "int64"


def _spread(entry: Entry, integral: bool, mistakes: Mistakes, notes: list[str]) -> list[Any]:
    """The values of a range: the ends as written, the values between to ``DIGITS`` significant digits."""
    before = len(mistakes.found)
    table = check_table(entry.written, Range, entry.place, mistakes, what="key of a range")
    if len(mistakes.found) > before:
        return []
    start, stop, num, log = table["start"], table["stop"], table["num"], table["spacing"] == "log"
    if num == 1 and start != stop:
        mistakes.add(
            entry.place, f"one value cannot reach from {start} to {stop}; give num ≥ 2, or a list of one value"
        )
    elif num > 1 and start == stop:
        mistakes.add(entry.place, f"start and stop are both {start}; give two ends, or num = 1")
    elif log and min(start, stop) <= 0:
        mistakes.add(entry.place, f'a log axis needs ends > 0, not {min(start, stop)}; use spacing = "linear"')
    elif integral and not (isinstance(start, int) and isinstance(stop, int)):
        mistakes.add(
            entry.place, f"the parameter is an integer; write start = {start:g} and stop = {stop:g} without a point"
        )
    elif num > 10**6:
        mistakes.add(entry.place, f"num = {num} is too many; give at most 1000000")
    if len(mistakes.found) > before:
        return []
    between = np.geomspace(start, stop, num) if log else np.linspace(start, stop, num)
    spread: list[Any] = [float(f"{v:.{DIGITS}g}") for v in between]
    spread[0], spread[-1] = start, stop
    if not integral:
        return spread
    broken = [v for v in spread if v != int(v)]
    if broken and not log:
        mistakes.add(
            entry.place,
            f"{num} equal steps from {start} to {stop} pass through {broken[0]:g}, and the parameter is an integer; "
            'choose num so that the steps are whole, use spacing = "log", or give a list',
        )
        return []
    whole = [math.floor(v + 0.5) for v in spread]
    kept = list(dict.fromkeys(whole))
    if len(kept) < len(whole):
        notes.append(
            f"{entry.place}: {len(whole) - len(kept)} of {num} values were the same after rounding and were dropped; "
            f"{len(kept)} are left"
        )
    return kept


def _refuse_duplicates(place: str, values: list[Value], mistakes: Mistakes) -> None:
    counts = Counter(word(v) for v in values)
    twice = [w for w, c in counts.items() if c > 1]
    if twice:
        listed = ", ".join(twice[:5])
        mistakes.add(place, f"{listed} stands {counts[twice[0]]} times on the axis; keep one of each")
        return
    numbers = sorted(float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool))
    for a, b in pairwise(numbers):
        if b - a <= NEAR * max(abs(a), abs(b)):
            mistakes.add(place, f"{a!r} and {b!r} are one number but for rounding; keep one of them")
            return


def name_axes(paths: list[str], grammar: Grammar, mistakes: Mistakes) -> list[str]:
    """Each axis's name: the path's last part, or the whole path joined by ``_`` where that is taken or reserved."""
    last = Counter(p.rpartition(".")[2] for p in paths)
    reserved = grammar.reserved | WORDS
    names = []
    for path in paths:
        short = path.rpartition(".")[2]
        taken = last[short] > 1 or short in reserved or short.startswith(_RESERVED_PREFIXES)
        names.append(path.replace(".", "_") if taken else short)
    for name, count in Counter(names).items():
        if count > 1:
            mistakes.add("sweep", f'{count} axes would be called "{name}"; rename or remove one')
    return names
