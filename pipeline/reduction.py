"""From trials to surfaces: in go /trials and the root attributes of a cube, out come one value a cell and its interval.

Always true: a surface is a function of the stored trials alone, and its bits do not depend on how the cube is cut. A
cell's trials are summed along one contiguous axis of their whole number, after a shift by the first of them (so equal
trials have exactly their own value as mean and a spread of exactly 0).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from predcube.pipeline.opening import CELL_STATUSES, DONE, FAILED, INFEASIBLE, MISSING, PARTIAL, ascending
from predcube.pipeline.quantities import PREDICTABILITY, QUANTITIES
from predcube.pipeline.targets import Limit, limits_of, smallest_n
from predcube.storage import StoreError, open_cube, write_surfaces
from predcube.tasks.intervals import LEVEL, clopper_pearson, student_t

type Floats = NDArray[np.float64]
type Codes = NDArray[np.uint8]

BLOCK_BYTES = 2**26
"""About how many bytes of one variable are read at a time."""

RANGES: Mapping[str, tuple[float, float]] = {
    "error": (0.0, 1.0),
    "excess_error": (-1.0, 1.0),
    "expected_error": (0.0, 1.0),
    "expected_excess_error": (0.0, 1.0),
    "stability": (0.0, 1.0),
    "privacy_loss": (0.0, np.inf),
    "delta": (0.0, 1.0),
    "swap_ratio": (1.0, np.inf),
    "swap_ratio_elsewhere": (1.0, np.inf),
    "subset_ratio": (1.0, np.inf),
    "net_failure": (0.0, 1.0),
    "swapped_privacy_loss": (0.0, np.inf),
    "uniform_deviation": (0.0, 1.0),
    "relabelling_error": (0.0, 1.0),
}
"""What a mean can be at all: an interval is cut to it."""

CERTAIN = frozenset(name for known in (QUANTITIES, PREDICTABILITY) for name, about in known.items() if about.certain)
INFINITE = frozenset(name for known in (QUANTITIES, PREDICTABILITY) for name, about in known.items() if about.infinite)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Of each cell's done trials; every array has the shape of the cells."""

    mean: Floats
    standard_error: Floats
    lower: Floats
    upper: Floats
    count: NDArray[np.int64]
    maximum: Floats
    infinite: NDArray[np.int64]


def statistics(values: Floats, done: NDArray[np.bool_], limits: tuple[float, float] = (-np.inf, np.inf)) -> Statistics:
    """Mean, its standard error and 95% interval (Student t), count and maximum over the last axis, where ``done``.

    One infinite trial makes the mean, and both ends of its interval, infinite: it shows that infinity has positive
    probability. The standard error is NaN there, and where fewer than two trials are done.
    """
    count = done.sum(axis=-1, dtype=np.int64)
    infinite = done & np.isposinf(values)
    usable = done & np.isfinite(values)
    n = usable.sum(axis=-1, dtype=np.int64)
    some = n > 0
    first = np.take_along_axis(values, usable.argmax(axis=-1)[..., None], axis=-1)
    shift = np.where(some[..., None], first, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        around = np.where(usable, values - shift, 0.0)
        offset = around.sum(axis=-1) / n
        mean = shift[..., 0] + offset
        spread = np.where(usable, around - np.where(some, offset, 0.0)[..., None], 0.0)
        error = np.sqrt((spread * spread).sum(axis=-1) / (n - 1) / n)
    error = np.where(n >= 2, error, np.nan)
    lower, upper = student_t(mean, error, n, level=LEVEL)
    maximum = np.where(done, values, -np.inf).max(axis=-1, initial=-np.inf)
    has_infinite = infinite.any(axis=-1)

    def settled(array: Floats) -> Floats:
        return np.where(count == 0, np.nan, np.where(has_infinite, np.inf, array))

    return Statistics(
        mean=settled(mean),
        standard_error=np.where(has_infinite, np.nan, error),
        lower=settled(np.clip(lower, *limits)),
        upper=settled(np.clip(upper, *limits)),
        count=count,
        maximum=np.where(count == 0, np.nan, maximum),
        infinite=infinite.sum(axis=-1, dtype=np.int64),
    )


def cell_status(trials: Codes) -> Codes:
    """One status a cell from its trials' statuses (last axis): the one they share; ``failed`` where any failed;
    otherwise ``partial``."""
    status = np.full(trials.shape[:-1], PARTIAL, dtype=np.uint8)
    for code in (MISSING, DONE, INFEASIBLE):
        status[(trials == code).all(axis=-1)] = code
    status[(trials == FAILED).any(axis=-1)] = FAILED
    return status


def surfaces(
    trials: xr.Dataset, *, limits: Mapping[str, float | Limit], confidence: float, block_bytes: int = BLOCK_BYTES
) -> xr.Dataset:
    """The measured surfaces of a cube's /trials: see ``reduce_surfaces`` for the variables.

    ``limits`` and ``confidence`` are the sweep's targets; a limit that differs between cells has the trials' axes, and
    stands in the result as ``q_limit``. Numeric axes come out ascending; labels keep their order.
    Raises ``StoreError`` where a value is NaN though its status says done.
    """
    axes = tuple(str(d) for d in trials["status"].dims if d != "trial")
    quantities = [str(name) for name in trials.data_vars if f"{name}_status" in trials.data_vars]
    found: dict[str, xr.Variable] = {}
    status = _reduce(trials, ["status"], axes, block_bytes, lambda s: {"status": cell_status(s)})
    found["status"] = xr.Variable(axes, status["status"], _flags("status of the cell"))
    for name in quantities:
        found.update(_quantity(trials, name, axes, limits.get(name), block_bytes))
    found.update(_own_statuses(trials, quantities, axes, status["status"], block_bytes))
    for name, variable in ((str(n), v) for n, v in trials.data_vars.items()):
        # Codes that say how a cell was measured are the same in all its trials; 0 (missing) gives way.
        if variable.dtype == np.uint8 and name != "status" and not name.endswith("_status"):
            codes = _reduce(trials, [name], axes, block_bytes, lambda c: {"code": c.max(axis=-1)})
            own = (str(d) for d in variable.dims if d not in axes and d != "trial")
            found[name] = xr.Variable((*axes, *own), codes["code"], dict(variable.attrs))
    coordinates = {d: xr.Variable(d, trials[d].values, trials[d].attrs) for d in trials.coords if d != "trial"}
    result = ascending(xr.Dataset(found, coords=coordinates))
    result.attrs = {"quantities": json.dumps(quantities), **_totals(trials, quantities, axes, block_bytes)}
    if "n" in axes and limits:
        result = result.assign(smallest_n(result, limits, confidence))
    return result


def _own_statuses(
    trials: xr.Dataset, quantities: Sequence[str], axes: tuple[str, ...], whole: Codes, block_bytes: int
) -> dict[str, xr.Variable]:
    """``q_status`` of each quantity, where some quantity does not apply in a cell in which others do; nothing where the
    status of the cell is enough."""
    if not np.isin(whole, (INFEASIBLE, FAILED)).any():
        return {}
    names = [f"{q}_status" for q in quantities]
    found = {n: _reduce(trials, [n], axes, block_bytes, lambda s: {"status": cell_status(s)})["status"] for n in names}
    if not any(((codes == INFEASIBLE) != (whole == INFEASIBLE)).any() for codes in found.values()):
        return {}
    return {
        name: xr.Variable(axes, codes, _flags(f"status of {name.removesuffix('_status')} in the cell"))
        for name, codes in found.items()
    }


def _flags(long_name: str) -> dict[str, Any]:
    return {
        "long_name": long_name,
        "flag_values": list(range(len(CELL_STATUSES))),
        "flag_meanings": " ".join(CELL_STATUSES),
        "description": "what the trials share; failed where any failed, partial where some are missing",
    }


def _quantity(
    trials: xr.Dataset, name: str, axes: tuple[str, ...], limit: float | Limit | None, block_bytes: int
) -> dict[str, xr.Variable]:
    """The surfaces of one quantity."""
    said = limit.words if isinstance(limit, Limit) else str(limit)
    given = () if limit is None else (np.asarray(limit.values if isinstance(limit, Limit) else limit),)
    attributes = trials[name].attrs
    long_name, units = attributes.get("long_name", name.replace("_", " ")), attributes.get("units", "1")
    description = attributes.get("description", "")
    dims = (*axes, *(str(d) for d in trials[name].dims if d not in axes and d != "trial"))

    def reduce(values: Floats, status: Codes, *limits: Floats) -> dict[str, NDArray[Any]]:
        done = np.broadcast_to(_widen(status, values.ndim), values.shape) == DONE
        if (bad := done & np.isnan(values)).any():
            raise NotANumber(tuple(int(i) for i in np.argwhere(bad)[0]))
        s = statistics(values, done, RANGES.get(name, (-np.inf, np.inf)))
        if name in CERTAIN:
            s = replace(s, standard_error=np.where(s.count > 0, 0.0, np.nan), lower=s.mean, upper=s.mean)
        out: dict[str, NDArray[Any]] = {
            "": s.mean,
            "_standard_error": s.standard_error,
            "_lower": s.lower,
            "_upper": s.upper,
            "_count": s.count,
            "_maximum": s.maximum,
        }
        if name in INFINITE:
            out["_infinite"] = s.infinite
        for most in limits:
            reached = (done & (values <= _widen(most[..., None], values.ndim))).sum(axis=-1, dtype=np.int64)
            with np.errstate(invalid="ignore"):
                out["_reached"] = reached / np.where(s.count > 0, s.count, np.nan)
            ends = clopper_pearson(reached, s.count, level=LEVEL) if name not in CERTAIN else (out["_reached"],) * 2
            out["_reached_lower"], out["_reached_upper"] = ends
            for end in ("_reached_lower", "_reached_upper"):
                out[end] = np.where(s.count > 0, out[end], np.nan)
        return out

    words = {
        "": (long_name, units, description)
        if name in CERTAIN
        else (f"mean {long_name}", units, f"mean over the done trials. {description}".strip()),
        "_standard_error": (
            f"standard error of the mean {long_name}",
            units,
            "sample standard deviation ÷ √count; NaN where the mean is infinite or fewer than two trials are done",
        ),
        "_lower": (f"lower end of the 95% interval of the mean {long_name}", units, "Student t, cut to the range"),
        "_upper": (f"upper end of the 95% interval of the mean {long_name}", units, "Student t, cut to the range"),
        "_count": (f"done trials of {long_name}", "1", "number of trials that the other surfaces use"),
        "_maximum": (f"largest {long_name} of the done trials", units, f"maximum over trials. {description}".strip()),
        "_infinite": (f"trials with infinite {long_name}", "1", "number of done trials whose value is ∞"),
        "_reached": (f"share of trials with {long_name} ≤ {said}", "1", f"Pr[{name} ≤ {said}] over the done trials"),
        "_reached_lower": (f"lower end of Pr[{long_name} ≤ {said}]", "1", "95% Clopper–Pearson interval"),
        "_reached_upper": (f"upper end of Pr[{long_name} ≤ {said}]", "1", "95% Clopper–Pearson interval"),
    }
    try:
        found = _reduce(trials, [name, f"{name}_status"], axes, block_bytes, reduce, given)
    except NotANumber as e:
        place = ", ".join(f"{d}={trials[d].values[i].item()!r}" for d, i in zip((*dims, "trial"), e.place, strict=True))
        raise StoreError(
            f"{name} is NaN at {place} though its status says done: the store is damaged; run the sweep into a new one"
        ) from None
    result = {}
    for suffix, array in found.items():
        about: dict[str, Any] = dict(zip(("long_name", "units", "description"), words[suffix], strict=True))
        if suffix == "_reached":
            about["limit"] = said if isinstance(limit, Limit) else limit
        result[name + suffix] = xr.Variable(dims, array, about)
    if isinstance(limit, Limit):
        about = {"long_name": f"target of {long_name}", "units": units, "description": f"{said}, at the cell"}
        result[f"{name}_limit"] = xr.Variable(axes, limit.values, about)
    return result


class NotANumber(Exception):
    """A NaN that counts as done, at ``place``."""

    def __init__(self, place: tuple[int, ...]) -> None:
        super().__init__(place)
        self.place = place


def _widen(status: NDArray[Any], ndim: int) -> NDArray[Any]:
    """Statuses (…axes, trial) beside values (…axes, …extra, trial)."""
    extra = ndim - status.ndim
    return status.reshape(*status.shape[:-1], *(1,) * extra, status.shape[-1])


def _reduce(
    trials: xr.Dataset,
    names: Sequence[str],
    axes: tuple[str, ...],
    block_bytes: int,
    reduce: Any,
    given: Sequence[Floats] = (),
) -> dict[str, NDArray[Any]]:
    """Apply ``reduce`` to blocks of whole cells of some variables, trial axis last and contiguous, and put the
    results together. ``given``: further arguments, a number a cell or one for all."""
    whole: dict[str, NDArray[Any]] = {}
    lead = trials[names[0]]
    extra = tuple(str(d) for d in lead.dims if d not in axes and d != "trial")
    sizes = tuple(lead.sizes[a] for a in axes)
    for block in _blocks(lead, axes, block_bytes):
        place = dict(zip(axes, block, strict=True))
        arrays = []
        for name in names:
            variable = trials[name].variable.isel(place)
            order = (*axes, *(d for d in extra if d in variable.dims), "trial")
            # Read first, turn then: turning a lazy array makes Zarr look up every element by itself.
            turned = np.asarray(variable.values).transpose([variable.dims.index(d) for d in order])
            arrays.append(np.ascontiguousarray(turned))
        try:
            part = reduce(*arrays, *(np.broadcast_to(g, sizes)[block] for g in given))
        except NotANumber as e:
            raise NotANumber(
                tuple(i + (s.start or 0) for i, s in zip(e.place, block, strict=False)) + e.place[len(block) :]
            ) from None
        for suffix, array in part.items():
            if suffix not in whole:
                whole[suffix] = np.empty((*sizes, *array.shape[len(axes) :]), dtype=array.dtype)
            whole[suffix][block] = array
    return whole


def _blocks(variable: xr.DataArray, axes: tuple[str, ...], block_bytes: int) -> Iterator[tuple[slice, ...]]:
    """Slices along the axes that hold whole chunks and about ``block_bytes``."""
    chunks = dict(zip(variable.dims, variable.encoding.get("chunks") or variable.shape, strict=True))
    lengths = {a: min(int(chunks[a]), variable.sizes[a]) for a in axes}
    rest = variable.dtype.itemsize * int(np.prod([s for d, s in variable.sizes.items() if d not in axes], dtype=int))
    room = max(block_bytes // max(rest, 1), 1)
    for axis in reversed(axes):
        others = int(np.prod([lengths[a] for a in axes if a != axis], dtype=int))
        times = max(room // max(others * lengths[axis], 1), 1)
        lengths[axis] = min(lengths[axis] * times, variable.sizes[axis])
    return product(*([slice(i, i + lengths[a]) for i in range(0, variable.sizes[a], lengths[a])] for a in axes))


def _totals(trials: xr.Dataset, quantities: Sequence[str], axes: tuple[str, ...], block_bytes: int) -> dict[str, Any]:
    """How many trials are missing, done, failed and infeasible: what a reader of a partial store needs to hear. A trial
    in which some quantity is done and the others do not apply is done; ``trials_partly`` counts those, where there are
    any."""
    counts = np.zeros(4, dtype=np.int64)
    partly = 0

    def count(status: Codes) -> dict[str, NDArray[Any]]:
        counts[:] += np.bincount(status.ravel(), minlength=4)[:4]
        return {}

    def look(status: Codes, *own: Codes) -> dict[str, NDArray[Any]]:
        nonlocal partly
        partly += int(np.count_nonzero((status == INFEASIBLE) & np.logical_or.reduce([o == DONE for o in own])))
        return {}

    _reduce(trials, ["status"], axes, block_bytes, count)
    if counts[INFEASIBLE]:
        _reduce(trials, ["status", *(f"{q}_status" for q in quantities)], axes, block_bytes, look)
    counts[DONE] += partly
    counts[INFEASIBLE] -= partly
    totals = {f"trials_{word}": int(c) for word, c in zip(CELL_STATUSES[:4], counts, strict=True)}
    return totals | ({"trials_partly": partly} if partly else {})


def reduce_surfaces(url: str) -> xr.Dataset:
    """Reduce /trials of the cube at ``url`` and write the result as /surfaces; the driver alone may call this.

    Reads /trials and the root attributes and nothing else. For each quantity q: ``q`` (mean), ``q_standard_error``,
    ``q_lower``, ``q_upper`` (95%), ``q_count``, ``q_maximum``, and with a target ``q_reached`` = Pr[q ≤ limit] with
    its Clopper–Pearson ``q_reached_lower`` and ``_upper``. ``status`` says what each cell's trials share, ``q_status``
    the same of one quantity: it is there where some quantity does not apply in a cell in which others do. With an
    axis n and targets: ``smallest_n``, its interval and their statuses, over the axes without n. The guarantees:
    see ``guarantees.beside``. The attributes ``trials_missing``, ``trials_done``, … count trials.
    """
    result = reduced(open_cube(url))
    write_surfaces(url, result)
    return result


def reduced(tree: xr.DataTree) -> xr.Dataset:
    """The surfaces of an open cube, in memory: those of its trials and what theory promises beside them."""
    # The science is imported where it is needed: a test of the statistics alone does without.
    from predcube.pipeline.kinds import kind_of
    from predcube.pipeline.spec.canonical import from_resolved

    sweep = from_resolved(tree.attrs["resolved"])
    targets = sweep.targets
    trials = tree.children["trials"].to_dataset(inherit=False)
    measured = surfaces(trials, limits=limits_of(sweep), confidence=targets.confidence)
    if leading := kind_of(sweep).leading:
        measured.attrs["leading"] = json.dumps([q for q in leading if q in sweep.quantities])
    measured.attrs["quantities"] = json.dumps([q for q in sweep.quantities if q in measured])
    return kind_of(sweep).beside(measured, sweep)
