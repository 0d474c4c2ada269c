"""The inverse look-up: in go surfaces, an axis and a condition, out comes the smallest value of the axis that meets it,
for each combination of the other axes.

Always true: "not reached" is an answer of its own and never a number; each answer says in words what weakens it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import xarray as xr
from numpy.typing import NDArray

from predcube.pipeline.columns import check_axis, columns_over, flags, listing, spread, truth, used_by
from predcube.pipeline.failures import BadInput
from predcube.pipeline.opening import INFEASIBLE, status_of
from predcube.pipeline.searches import (
    BRACKETED,
    HAS_VALUE,
    MEANINGS,
    MISSED_AT_END,
    NOT_MONOTONE,
    NOT_REACHED,
    PROVISIONAL,
    REACHED,
    Smallest,
    smallest,
    smallest_for_good,
)

_NAME = r'(?:"([^"]+)"|([A-Za-z_]\w*))'
_NUMBER = r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
_COMPARISON = re.compile(rf"\s*\(?\s*(?:{_NAME}\s*(<=|<|>=|>)\s*{_NUMBER}|{_NUMBER}\s*(<=|<|>=|>)\s*{_NAME})\s*\)?\s*")
SHORT = {NOT_MONOTONE: REACHED, BRACKETED: REACHED, MISSED_AT_END: NOT_REACHED}
"""The plain word of a status whose note says the rest."""
_TURNED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """``name`` ``operator`` ``number``."""

    name: str
    operator: str
    number: float

    def holds(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        compare = {"<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater}[self.operator]
        with np.errstate(invalid="ignore"):
            return np.asarray(compare(values, self.number), dtype=bool)


def comparisons(expression: str, columns: Sequence[str]) -> list[Comparison] | None:
    """The expression as comparisons of one of its ``columns`` with a number, all joined by AND; None where it is
    anything else."""
    folded = {c.casefold(): c for c in columns}
    found = []
    for part in re.split(r"\bAND\b", expression, flags=re.IGNORECASE):
        m = _COMPARISON.fullmatch(part)
        if m is None or part.count("(") != part.count(")"):
            return None
        quoted, plain, operator, number, number2, operator2, quoted2, plain2 = m.groups()
        name = folded.get((quoted or plain or quoted2 or plain2).casefold())
        if name is None:
            return None
        found.append(Comparison(name=name, operator=operator or _TURNED[operator2], number=float(number or number2)))
    return found


def inverse(data: xr.Dataset, axis: str, such_that: str | None = None, where: str | None = None) -> pa.Table:
    """For each combination of the other axes the smallest value of ``axis`` at which ``such_that`` is true.

    Columns: the other axes; ``smallest_<axis>``, ``…_lower`` and ``…_upper`` (null where there is none); ``status``
    (reached, not reached, infeasible, undecided, reached so far); ``note``. The interval is there where the condition
    is comparisons of quantities with numbers: its lower end is the first value at which the favourable ends of the
    quantities' intervals meet it, its upper end the first from which on the unfavourable ends do.
    """
    check_axis(data, axis)
    if data[axis].dtype.kind not in "iuf":
        raise BadInput(f"--smallest {axis}: its values are labels ({listing(data[axis].values)}), which have no order")
    if such_that is None:
        return _stored_smallest(data, axis, where)
    used = used_by(data, such_that)
    simple = comparisons(such_that, [n for n in used if flags(data[n]) is None])
    filtered = used_by(data, where) if where is not None else []
    over = {axis, *(str(d) for n in used + filtered for d in (data[n].dims if n in data.data_vars else (n,)))}
    if set(used) <= {str(d) for d in data.dims}:
        over |= set(map(str, data["status"].dims))
    dims = [str(d) for d in data.dims if d in over and d != axis] + [axis]
    ends_of = {
        c.name: (_bound_of(data, c, favourable=True), _bound_of(data, c, favourable=False)) for c in simple or ()
    }
    statuses = list(dict.fromkeys(status_of(data, n) for n in used if n in data.data_vars)) or ["status"]
    needed = [*statuses, *used, *filtered, *(n for pair in ends_of.values() for n in pair)]
    # Each variable is read once, and nothing else is.
    data = data[[n for n in dict.fromkeys(needed) if n in data.data_vars]].load()
    shape = tuple(data.sizes[d] for d in dims)

    known = np.ones(shape, dtype=bool)
    for name in used:
        values = spread(data, name, dims)
        if values.dtype.kind == "f":
            known &= ~np.isnan(values)
    infeasible = np.zeros(shape, dtype=bool)
    for name in statuses:
        if set(data[name].dims) <= set(dims):
            infeasible |= ~known & (spread(data, name, dims) == INFEASIBLE)
    kept = np.ones(shape, dtype=bool)
    if where is not None:
        kept = truth(columns_over(data, dims, filtered), where, "--where").reshape(shape)
        # What the filter leaves out is no place to look at: neither data nor a gap.
        infeasible = infeasible | ~kept
    if simple is not None:
        holds = np.logical_and.reduce([c.holds(spread(data, c.name, dims)) for c in simple])
    else:
        holds = truth(columns_over(data, dims, used), such_that, "--such-that").reshape(shape)
    point = smallest(holds, known & kept, infeasible)
    ends: dict[str, Smallest] = {}
    if simple is not None and any(low != name for name, (low, _) in ends_of.items()):
        for end, search in (("lower", smallest), ("upper", smallest_for_good)):
            met = [c.holds(spread(data, ends_of[c.name][end == "upper"], dims)) for c in simple]
            ends[end] = search(np.logical_and.reduce(met), known & kept, infeasible)
    return _answers(data, axis, dims[:-1], point, ends, holds, known & kept, kept.any(axis=-1), simple is None)


def _bound_of(data: xr.Dataset, c: Comparison, *, favourable: bool) -> str:
    """The end of the interval of a comparison's quantity that helps it, or that does not."""
    lower, upper = f"{c.name}_lower", f"{c.name}_upper"
    if lower not in data.data_vars or upper not in data.data_vars:
        return c.name
    return lower if favourable == c.operator.startswith("<") else upper


def _stored_smallest(data: xr.Dataset, axis: str, where: str | None) -> pa.Table:
    """The answer to the spec's own targets, which the surfaces hold."""
    name = f"smallest_{axis}"
    if name not in data.data_vars:
        raise BadInput(
            f'--smallest {axis} needs --such-that EXPR, as in --such-that "excess_error <= 0.1", '
            "because the spec gives no targets for it"
        )
    dims = [str(d) for d in data.dims if d in data[name].dims]
    names = [f"{name}_lower", f"{name}_upper"]
    values = [spread(data, n, dims) for n in [name, *names]]
    codes = [spread(data, f"{n}_status", dims) for n in [name, *names]]
    grid = data[axis].values
    answers = []
    for value, code in zip(values, codes, strict=True):
        there = np.isin(code, HAS_VALUE)
        place = np.where(there, np.searchsorted(grid, np.where(there, value, grid[0])), -1)
        answers.append(Smallest(position=np.minimum(place, len(grid) - 1), status=code))
    keep = np.ones(answers[0].status.shape, dtype=bool)
    if where is not None:
        used = used_by(data, where)
        if any(n == axis or (n in data.data_vars and axis in data[n].dims) for n in used):
            raise BadInput(
                f"--where over {axis} with --smallest {axis} needs --such-that: the stored answer is for the whole axis"
            )
        keep = truth(columns_over(data, dims, used), where, "--where").reshape(keep.shape)
    sought = {status_of(data, str(n)) for n in data.data_vars if str(n).endswith("_reached")} or {"status"}
    looked = np.logical_and.reduce([spread(data, s, [*dims, axis]) != INFEASIBLE for s in sought])
    return _answers(data, axis, dims, answers[0], {"lower": answers[1], "upper": answers[2]}, None, looked, keep, False)


def _answers(
    data: xr.Dataset,
    axis: str,
    dims: Sequence[str],
    point: Smallest,
    ends: Mapping[str, Smallest],
    holds: NDArray[np.bool_] | None,
    looked: NDArray[np.bool_],
    keep: NDArray[np.bool_],
    complex_condition: bool,
) -> pa.Table:
    """The rows of an inverse look-up. ``holds`` and ``looked`` (is there data): shape (…dims, axis)."""
    grid = data[axis].values
    table = columns_over(data, dims, [], keep.ravel())
    columns: dict[str, Any] = {str(n): table[n] for n in table.column_names}
    keep = keep.ravel()

    def column(answer: Smallest | None) -> Any:
        place = np.full(int(keep.sum()), -1) if answer is None else answer.position.ravel()[keep]
        return pa.array(grid[np.maximum(place, 0)], mask=place < 0)

    columns[f"smallest_{axis}"] = column(point)
    for end in ("lower", "upper"):
        columns[f"smallest_{axis}_{end}"] = column(ends.get(end))
    status = point.status.ravel()[keep]
    place = point.position.ravel()[keep]
    upper = ends["upper"].position.ravel()[keep] if "upper" in ends else None
    rows_held = holds.reshape(-1, len(grid))[keep] if holds is not None else None
    rows_looked = looked.reshape(-1, len(grid))[keep]
    first_looked = rows_looked.argmax(axis=-1)
    words, notes = [], []
    for i, code in enumerate(status):
        words.append(MEANINGS[SHORT.get(int(code), int(code))].replace("_", " "))
        said = []
        if code == NOT_MONOTONE:
            again = ""
            if rows_held is not None:
                after = slice(place[i] + 1, None)
                later = np.flatnonzero(rows_looked[i, after] & ~rows_held[i, after])
                again = f" at {axis}={grid[place[i] + 1 + later[0]].item()}" if len(later) else ""
            said.append(f"not monotone: missed again{again}")
        if code == PROVISIONAL:
            said.append(f"smaller {axis} lack data")
        if code in (BRACKETED, MISSED_AT_END):
            said.append("by bisection")
        if code in HAS_VALUE and place[i] <= first_looked[i]:
            said.append(f"no smaller {axis} was looked at")
        if code in HAS_VALUE and upper is not None and upper[i] < 0:
            said.append("upper end beyond the grid")
        if code in HAS_VALUE and complex_condition:
            said.append("no interval for this form of condition")
        notes.append("; ".join(said))
    columns["status"] = pa.array(words, type=pa.string())
    columns["note"] = pa.array(notes, type=pa.string())
    return pa.table(columns)
