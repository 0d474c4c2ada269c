"""Sample complexity: in goes a store, out come the smallest n that reach targets, beside bounds, and their exponents.

Always true: what was not reached is no number, in the rows and in the exponents alike; an exponent says how many rows
it is from and how many had no number. Other targets than the spec's are answered from the same trials.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import xarray as xr
from numpy.typing import NDArray

from predcube.pipeline.columns import Wanted, fix, spread, truth, unknown
from predcube.pipeline.failures import BadInput
from predcube.pipeline.kinds import kind_of
from predcube.pipeline.lookups import inverse
from predcube.pipeline.opening import surfaces_of
from predcube.pipeline.reduction import surfaces
from predcube.pipeline.searches import HAS_VALUE
from predcube.pipeline.spec.canonical import from_resolved
from predcube.pipeline.spec.sweep import Sweep, Targets
from predcube.pipeline.targets import limits_of
from predcube.storage import damage_named, open_cube
from predcube.tasks.bounds import BOUNDS
from predcube.tasks.slopes import Slopes, log_log_slopes

INVERTED = frozenset({"alpha", "gamma", "epsilon", "eta"})
"""Parameters whose inverse the theorems are powers of."""
BOUND = "bound_n_"
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Complexity:
    """``rows``: for each combination of the axes without n (and of targets, where several were asked for) the smallest
    n, its interval, status and note, and ``ratio_<bound>``, smallest n ÷ bound. ``slopes``: for each combination of
    labels the exponent of the smallest n in each numeric axis, with its standard error and interval, how many rows it
    is from, and ``exponent_<bound>``, that of each bound over the same rows."""

    goal: str
    rows: pa.Table
    slopes: pa.Table


def beside(found: Complexity, bounds: Sequence[str]) -> Complexity:
    """The same with some bounds alone. ``BadInput`` names those that there are."""
    there = [b for b in BOUNDS if f"ratio_{b}" in found.rows.column_names]
    for name in bounds:
        if name not in there:
            raise BadInput(unknown(name, there, "bound"))
    others = {f"{kind}_{b}" for b in there if b not in bounds for kind in ("ratio", "exponent")}
    kept = [t.drop_columns([n for n in t.column_names if n in others]) for t in (found.rows, found.slopes)]
    return replace(found, rows=kept[0], slopes=kept[1])


def terse(rows: pa.Table) -> pa.Table:
    """The rows, or the exponents, of a terminal: without ratios to bounds that are shapes, whose size says nothing, and
    without what is the same in every row of a search; names that wrap."""
    shapes = [f"ratio_{name}" for name, bound in BOUNDS.items() if bound.shape]
    plain: dict[str, set[Any]] = {"note": {"", "by bisection"}, "status": {"reached"}, "without_n": {0}}
    same = [n for n, values in plain.items() if n in rows.column_names and set(rows[n].to_pylist()) <= values]
    kept = rows.drop_columns([n for n in rows.column_names if n in (*shapes, *same)])
    bounds = {f"{kind}_{b}": b.replace("_", " ") for b in BOUNDS for kind in ("ratio", "exponent")}
    words = {n: f"{'÷ ' if n.startswith('ratio') else ''}{bounds[n]}" for n in kept.column_names if n in bounds}
    return kept.rename_columns([words.get(n, n) for n in kept.column_names])


def complexity(
    store: str,
    *,
    targets: Mapping[str, Sequence[float]] | None = None,
    confidence: Sequence[float] | None = None,
    at: Mapping[str, Wanted] | None = None,
    where: str | None = None,
) -> Complexity:
    """The sample complexities that a store answers.

    ``targets`` (quantity → limits) and ``confidence`` replace the spec's; each combination is worked out from the
    trials. ``at`` keeps values of axes, ``where`` (SQL over the rows' columns) keeps rows, for the exponents too.
    Raises ``BadInput`` where there is no axis n, no target, or a name that is not there; StoreError.
    """
    with damage_named(store):
        tree = open_cube(store)
        sweep = from_resolved(tree.attrs["resolved"])
        _check(sweep, targets)
        if "n" in (at or {}):
            raise BadInput("n is what is looked for: leave --at n=… out")
        if targets is None and confidence is None:
            return of_surfaces(fix(surfaces_of(tree), at or {}), sweep, where=where)
        wanted = {q: list(v) for q, v in (targets or {}).items()}
        limits: list[Mapping[str, float | str]] = (
            [dict(zip(wanted, values, strict=True)) for values in product(*wanted.values())]
            if wanted
            else [sweep.targets.limits]
        )
        several = {q for q, v in wanted.items() if len(v) > 1}
        levels = list(confidence or [sweep.targets.confidence])
        parts = []
        for limit, level in product(limits, levels):
            asked = replace(sweep, targets=Targets(limits=limit, confidence=level))
            data = fix(_measured(tree, asked), at or {})
            table = _rows(data, asked)
            for q in several:
                table = table.add_column(0, f"target_{q}", pa.array([float(limit[q])] * len(table)))
            if len(levels) > 1:
                table = table.add_column(0, "confidence", pa.array([level] * len(table)))
            parts.append((table, str(data["smallest_n"].attrs.get("goal", ""))))
        rows = pa.concat_tables([t for t, _ in parts], promote_options="permissive")
        predictors = {**_predictors(sweep), **{f"target_{q}": True for q in several}}
        rows = rows if where is None else rows.filter(pa.array(truth(rows, where, "--where")))
        goal = parts[0][1] if len(parts) == 1 else "the targets of each row"
        return Complexity(goal=goal, rows=_shown(rows), slopes=_slopes(rows, predictors))


def of_surfaces(data: xr.Dataset, sweep: Sweep, *, where: str | None = None) -> Complexity:
    """The same of surfaces that hold ``smallest_n``."""
    rows = _rows(data, sweep)
    if where is not None:
        rows = rows.filter(pa.array(truth(rows, where, "--where")))
    goal = str(data["smallest_n"].attrs.get("goal", "the targets"))
    return Complexity(goal=goal, rows=_shown(rows), slopes=_slopes(rows, _predictors(sweep)))


def _check(sweep: Sweep, targets: Mapping[str, Sequence[float]] | None) -> None:
    if not any(axis.path == "n" for axis in sweep.axes):
        raise BadInput("this store has no axis n, so that no n is the smallest; sweep n in the spec")
    if not sweep.targets.limits and not targets:
        raise BadInput("the spec gives no targets; name them, as in --target excess_error=0.1")
    for q in targets or {}:
        if q not in sweep.quantities:
            raise BadInput(unknown(q, sweep.quantities, "quantity"))


def _measured(tree: xr.DataTree, sweep: Sweep) -> xr.Dataset:
    """The surfaces under other targets."""
    trials = tree.children["trials"].to_dataset(inherit=False)
    found = surfaces(trials, limits=limits_of(sweep), confidence=sweep.targets.confidence)
    return kind_of(sweep).beside(found, sweep)


def _rows(data: xr.Dataset, sweep: Sweep) -> pa.Table:
    """The answers with ``bound_n_<bound>`` and ``ratio_<bound>`` at each row's smallest n (null where it has none)."""
    table = inverse(data, "n")
    dims = [str(d) for d in data.dims if d in data["smallest_n"].dims]
    reached = np.isin(spread(data, "smallest_n_status", dims).ravel(), HAS_VALUE)
    value = spread(data, "smallest_n", dims).ravel()
    grid = data["n"].values
    place = np.searchsorted(grid, np.where(reached, value, grid[-1]))
    columns: dict[str, Any] = {name: table[name] for name in table.column_names}
    for name in (str(v) for v in data.data_vars if str(v).startswith(BOUND)):
        flat = spread(data, name, [*dims, "n"]).reshape(len(reached), len(grid))
        there = np.where(reached, flat[np.arange(len(reached)), place], np.nan)
        if np.isnan(there).all():
            continue
        columns[name] = pa.array(there, mask=np.isnan(there))
        ratio = value / there
        columns[f"ratio_{name.removeprefix(BOUND)}"] = pa.array(ratio, mask=~np.isfinite(ratio))
    return pa.table(columns)


def _shown(rows: pa.Table) -> pa.Table:
    """The rows with ratios in place of bounds, and without columns that say nothing."""
    empty = [n for n in rows.column_names if n in ("note",) and not any(rows[n].to_pylist())]
    return rows.drop_columns([n for n in rows.column_names if n.startswith(BOUND)] + empty)


def _predictors(sweep: Sweep) -> dict[str, bool]:
    """The numeric axes that a power law may have, and whether theorems speak of the inverse."""
    return {
        a.name: a.path.rpartition(".")[2] in INVERTED
        for a in sweep.axes
        if a.path != "n" and a.dtype != "str" and len(a.values) > 1
    }


def _slopes(rows: pa.Table, inverted: Mapping[str, bool]) -> pa.Table:
    """Exponents, one row a predictor and combination of labels."""
    known = {
        name: np.asarray(rows[name].to_numpy(zero_copy_only=False)) for name in inverted if name in rows.column_names
    }
    usable = {name: values for name, values in known.items() if (values > 0).all() and len(np.unique(values)) > 1}
    spoken = {(f"1/{n}" if inverted[n] else n): (1 / v if inverted[n] else v.astype(float)) for n, v in usable.items()}
    answers = [n for n in rows.column_names if n.startswith(("smallest_n", "ratio_", BOUND)) or n in ("status", "note")]
    others = [n for n in rows.column_names if n not in (*usable, *answers)]
    labels = [n for n in others if n not in known]  # numbers that no power law takes are told apart within a fit
    n = _floats(rows, "smallest_n")
    bounds = {name: _floats(rows, name) for name in rows.column_names if name.startswith(BOUND)}
    told = _codes(rows, labels)
    constant = _codes(rows, others)
    found: list[dict[str, object]] = []
    for group in dict.fromkeys(told.tolist()):
        here = told == group
        fitted = _fit(n[here], spoken, here, constant[here])
        beside = {
            name: _fit(np.where(np.isnan(n[here]), np.nan, v[here]), spoken, here, constant[here])
            for name, v in bounds.items()
            if not np.isnan(v[here][~np.isnan(n[here])]).any()
        }
        label = {name: rows[name][int(np.flatnonzero(here)[0])].as_py() for name in labels}
        for i, name in enumerate(fitted.names):
            spans = np.isfinite(fitted.standard_error[i])
            row: dict[str, object] = {
                **label,
                "in": name,
                "exponent": float(fitted.exponent[i]),
                "exponent_lower": float(fitted.lower[i]) if spans else None,
                "exponent_upper": float(fitted.upper[i]) if spans else None,
                "standard_error": float(fitted.standard_error[i]) if spans else None,
                "rows": fitted.used,
                "without_n": fitted.left_out,
            }
            for bound, b in beside.items():
                if name in b.names:
                    own = float(b.exponent[b.names.index(name)])
                    row[f"exponent_{bound.removeprefix(BOUND)}"] = own if abs(own) > ROUNDING else 0.0
            found.append(row)
    names = list(dict.fromkeys(k for row in found for k in row))
    return pa.table({name: [row.get(name) for row in found] for name in names})


def _fit(
    values: NDArray[np.float64],
    predictors: Mapping[str, NDArray[np.float64]],
    here: NDArray[np.bool_],
    constant: NDArray[np.int64],
) -> Slopes:
    return log_log_slopes(values, {name: p[here] for name, p in predictors.items()}, groups=constant)


def _floats(rows: pa.Table, name: str) -> NDArray[np.float64]:
    return np.asarray(rows[name].cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _codes(rows: pa.Table, names: Sequence[str]) -> NDArray[np.int64]:
    """A number for each combination of the values of some columns."""
    found: dict[tuple[object, ...], int] = {}
    keys = zip(*(rows[n].to_pylist() for n in names), strict=True) if names else iter([()] * len(rows))
    return np.array([found.setdefault(key, len(found)) for key in keys], dtype=np.int64)
