"""What theory promises each cell, beside what was measured: in go a sweep and its surfaces, out come more surfaces.

Always true: a guarantee is a function of the cell's sections alone, computed once for each distinct learner, class and
n; where nothing is promised it is ∞ (privacy loss) or 1 (stability), where the learner cannot run it is NaN.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from predcube.pipeline.grid import Grid
from predcube.pipeline.spec.sweep import Sweep
from predcube.pipeline.targets import Limit, limits_of
from predcube.tasks.bounds import BOUNDS, delta_bound
from predcube.tasks.hypotheses import HypothesisClass
from predcube.tasks.hypotheses.cube import Cube
from predcube.tasks.lemmas import bound, literal

AIMS = ("excess_error", "expected_excess_error", "error", "expected_error")
"""Targets that are theory's α."""
GUARANTEED = {"stability": "guaranteed_stability", "privacy_loss": "guaranteed_privacy_loss"}
LIKELY = frozenset({"uniform_deviation"})
"""What a bound holds of with the targets' confidence, and not for every sample: no ratio says more than its target."""
BOUNDED = ("swap_ratio", "subset_ratio", "net_failure", *LIKELY)
"""Quantities of lemmas that have a bound."""


def beside(surfaces: xr.Dataset, sweep: Sweep) -> xr.Dataset:
    """The surfaces with what theory promises.

    ``bound_stability`` and ``bound_privacy_loss``: the learner's guarantees. ``ratio_stability`` and
    ``ratio_privacy_loss``: the largest value of the done trials ÷ the guarantee, NaN where that is infinite. With a
    δ(ε) curve ``bound_delta``, the most that δ can be under both guarantees, and ``ratio_delta``; with a lemma's
    quantity its bound and ratio, where there is one.
    Where the spec asks for ``bounds``: ``bound_n_<name>``, the sample complexities of ``tasks.bounds`` at the cell's
    guarantees and at the targets' error and confidence; ``bound_<quantity>_paper`` and its ratio, guarantees as Dagan &
    Feldman state them where sharper ones hold. Those that apply to no cell are left out.
    """
    theory = "bounds" in sweep.quantities
    asked = [q for q in GUARANTEED if q in sweep.quantities or theory]
    curve = "delta" in sweep.quantities
    bounded = [q for q in BOUNDED if q in sweep.quantities]
    if not asked and not curve and not bounded:
        return surfaces
    dims = tuple(a.name for a in sweep.axes)
    names = [*(GUARANTEED if curve else asked), *bounded, *(f"{q}_paper" for q in GUARANTEED if theory)]
    arrays = _arrays(sweep, names)
    units = {q: surfaces[q].attrs.get("units", "1") if q in surfaces else "1" for q in (*GUARANTEED, *bounded)}
    found = {name: xr.Variable(dims, array, _attributes(name, units)) for name, array in arrays.items()}
    axes = {a.name: a.coordinate() for a in sweep.axes}
    made = xr.Dataset(found, coords=axes).reindex({d: surfaces[d].values for d in dims})
    if curve:
        made["bound_delta"] = _delta(made, surfaces["delta_epsilon"])
        made = made.drop_vars([f"bound_{q}" for q in GUARANTEED if q not in asked])
    result = surfaces.assign({str(n): v.variable for n, v in made.data_vars.items()})
    for name in (*names, "delta"):
        quantity = name.removesuffix("_paper")
        if f"bound_{name}" in result and f"{quantity}_maximum" in surfaces and name not in LIKELY:
            result[f"ratio_{name}"] = _ratio(result, name, quantity)
    return result


def _delta(guarantees: xr.Dataset, epsilon: xr.DataArray) -> xr.DataArray:
    """The most that δ(ε) is under the guarantees of stability and privacy loss: dims (axes…, delta_epsilon)."""
    at = epsilon.variable
    made = xr.apply_ufunc(
        lambda g, s, e: math.nan if math.isnan(g) else delta_bound(e, g, s),
        guarantees["bound_privacy_loss"].variable,
        guarantees["bound_stability"].variable,
        at,
        vectorize=True,
        output_dtypes=[np.float64],
    )
    made.attrs = {
        "long_name": "guaranteed δ at given ε",
        "units": "1",
        "description": "the most that δ(ε) of a binary answer is under the guaranteed privacy loss and stability",
    }
    return xr.DataArray(made)


def _ratio(surfaces: xr.Dataset, name: str, quantity: str) -> xr.Variable:
    """The largest measured value of a quantity ÷ the bound of that name."""
    bound, largest = surfaces[f"bound_{name}"].variable, surfaces[f"{quantity}_maximum"].variable
    bound = bound.transpose(*largest.dims)
    usable = np.isfinite(bound.values) & (bound.values > 0)
    ratio = np.where(usable, largest.values / np.where(usable, bound.values, 1.0), np.nan)
    about = {
        "long_name": f"largest measured ÷ guaranteed {name.replace('_', ' ')}",
        "units": "1",
        "description": f"{quantity}_maximum ÷ bound_{name}; NaN where the guarantee is infinite or 0",
    }
    return xr.Variable(largest.dims, ratio, about)


def _arrays(sweep: Sweep, promised: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Every guarantee and bound over the grid."""
    grid = Grid(sweep)
    parts = [grid.parts[name] for name in ("hypotheses", "learner", "n")]
    alphas, alpha = np.unique(_alpha(sweep), return_inverse=True)
    codes = np.broadcast_arrays(*(np.broadcast_to(p.codes, sweep.shape) for p in parts), alpha.reshape(sweep.shape))
    sizes = (*(len(p.values) for p in parts), len(alphas))
    flat = np.ravel_multi_index(tuple(codes), sizes)
    distinct, which = np.unique(flat, return_inverse=True)
    unlikely = 1 - sweep.targets.confidence
    beta = unlikely if sweep.targets.limits else None
    complexities = list(BOUNDS) if "bounds" in sweep.quantities else []
    rows: dict[str, list[float]] = {
        n: [] for n in [f"bound_{q}" for q in promised] + [f"bound_n_{b}" for b in complexities]
    }
    for code in distinct:
        h, a, s, goal = (int(i) for i in np.unravel_index(code, sizes))
        hypotheses, learner, n = grid.hypotheses[h], grid.learners[a], int(parts[2].values[s])
        # Sizes alone: a cube too large to list has closed forms all the same.
        runs = learner.infeasible(n, Cube(points=2) if hypotheses.free else hypotheses) is None
        given = {q: float(getattr(learner, m)(n)) if runs else math.nan for q, m in GUARANTEED.items()}
        for name in promised:
            q = name.removesuffix("_paper")
            if not runs:
                value = math.nan
            elif name in given:
                value = given[name]
            else:
                value = literal(q, learner, n) if name != q else bound(q, learner, hypotheses, n, unlikely)
            rows[f"bound_{name}"].append(value)
        cell: dict[str, float | None] = {
            "alpha": None if math.isnan(alphas[goal]) else float(alphas[goal]),
            "beta": beta,
            "d": float(hypotheses.vc_dimension),
            "log_size": log_size(hypotheses),
            "gamma": given["stability"],
            "epsilon": given["privacy_loss"],
        }
        for b in complexities:
            size = BOUNDS[b].value(**cell) if runs else None
            rows[f"bound_n_{b}"].append(math.nan if size is None else size)
    arrays = {name: np.array(values)[which].reshape(sweep.shape) for name, values in rows.items()}
    always = {f"bound_{q}" for q in GUARANTEED}
    return {n: a for n, a in arrays.items() if n in always or not np.isnan(a).all()}


def _alpha(sweep: Sweep) -> NDArray[np.float64]:
    """The error that each cell aims at: that of the first target of ``AIMS`` there is; NaN where there is none."""
    limits = limits_of(sweep)
    limit = next((limits[q] for q in AIMS if q in limits), math.nan)
    return np.broadcast_to(limit.values if isinstance(limit, Limit) else np.float64(limit), sweep.shape)


def log_size(hypotheses: HypothesisClass) -> float:
    """ln|H|, ∞ where H is infinite. (A finite X of k points has at most growth(k) functions.)"""
    domain = hypotheses.domain
    if domain is not None and (count := hypotheses.growth(len(domain))) is not None:
        return math.log(count)
    try:
        return math.log(len(hypotheses.members()))
    except ValueError:
        return math.inf


def _attributes(name: str, units: dict[str, str]) -> dict[str, Any]:
    size = BOUNDS.get(name.removeprefix("bound_n_"))
    if name.startswith("bound_n_") and size is not None:
        return {
            "long_name": f"{size.side} bound on n, {name.removeprefix('bound_n_').replace('_', ' ')}",
            "units": "examples",
            "description": f"{size.description} ({size.source})",
        }
    quantity = name.removeprefix("bound_").removesuffix("_paper")
    said = "what the learner is proved to satisfy for every data set"
    if name.endswith("_paper"):
        said = "what Dagan & Feldman 2020 state for every data set, where a sharper guarantee is known"
    elif quantity in BOUNDED:
        said = "what a lemma says for every data set"
    if quantity in LIKELY:
        said = "what holds with the probability that the targets name as confidence"
    return {
        "long_name": f"guaranteed {quantity.replace('_', ' ')}{' as stated' if name.endswith('_paper') else ''}",
        "units": units[quantity],
        "description": f"{said}; {quantity} is measured beside it",
    }
