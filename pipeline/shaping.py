"""How a sweep is cut: in go the seconds of each cell's trial, out come chunk lengths and the cube's schema.

Always true: a chunk length divides its axis, and is 1 along ``n`` and along axes of sections, so that those can grow by
single values.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from predcube.pipeline.kinds import kind_of
from predcube.pipeline.kinds.base import Code
from predcube.pipeline.spec.canonical import resolved, spec_hash
from predcube.pipeline.spec.sweep import Sweep, SweepAxis
from predcube.storage.schema import Attribute, Axis, CubeSchema, Variable, status_variable

SHORTEST, WANTED, LONGEST = 2.0, 10.0, 30.0  # seconds of work in a tile
TILES_PER_WORKER = 16  # wanted, so that the last tiles do not leave workers idle; a quarter of it is the least
BLOCK = 4096  # bytes: a file or a folder takes whole ones
SURFACES = 10  # arrays of /surfaces for each quantity
MOST_VALUES = 2**20  # of one variable in a tile


def chunk_lengths(sweep: Sweep, seconds: NDArray[np.float64], workers: int) -> tuple[int, ...]:
    """Chunk lengths along the axes and the trials. ``seconds`` is of one trial of each cell, in the sweep's shape.

    A tile is to hold 2 to 30 s of work, and there are to be several tiles a worker; where both cannot be had, tiles are
    short. Starting from one cell with all its trials, the trials are cut where that is too long, and axes are joined,
    the last one first, where it is too short.
    """
    trials = sweep.trials
    total = float(seconds.sum()) * trials
    wanted = min(WANTED, max(total / (TILES_PER_WORKER * workers), SHORTEST))
    wanted = min(wanted, max(total / (TILES_PER_WORKER / 4 * workers), 1e-9))
    widest = math.prod(len(a.values) for a in kind_of(sweep).extra_axes(sweep))
    lengths = [1] * seconds.ndim
    along_trials = trials
    longest = float(seconds.max(initial=0.0))
    if longest * trials > LONGEST or _typical(seconds * trials) > 2 * wanted:
        fitting = [d for d in divisors(trials) if longest * d <= LONGEST and _typical(seconds * d) <= wanted]
        along_trials = max(fitting, default=1)
    for axis in reversed(range(seconds.ndim)):
        if not _may_be_cut(sweep.axes[axis]):
            continue
        for length in reversed(divisors(seconds.shape[axis])):
            tried = [*lengths[:axis], length, *lengths[axis + 1 :]]
            sums = block_sums(seconds, tried) * along_trials
            small = math.prod(tried) * along_trials * widest <= MOST_VALUES
            if length == 1 or (small and float(sums.max(initial=0.0)) <= LONGEST and _typical(sums) <= wanted):
                lengths = tried
                break
    return (*lengths, along_trials)


def divisors(n: int) -> list[int]:
    """All divisors in ascending order.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})


def block_sums(values: NDArray[np.float64], lengths: Sequence[int]) -> NDArray[np.float64]:
    """Sums over blocks of these lengths, which divide the shape.

    >>> block_sums(np.arange(4.0), [2])
    array([1., 5.])
    """
    for axis, length in enumerate(lengths):
        values = np.add.reduceat(values, np.arange(0, values.shape[axis], length), axis=axis)
    return values


def tile_seconds(seconds: NDArray[np.float64], schema: CubeSchema) -> NDArray[np.float64]:
    """Core-seconds of each tile: shape ``schema.tiles``. An axis that a store has longer or shorter than the sweep is
    not this function's: ``seconds`` has the schema's shape."""
    *axes, trial = schema.axes
    sums = block_sums(seconds, [a.chunk for a in axes]) * trial.chunk
    return np.broadcast_to(sums[..., None], schema.tiles)


def bytes_on_disk(schema: CubeSchema) -> int:
    """What the cube will take on disk, about: whole blocks of files and folders, doubles that hardly compress, statuses
    that do. A tile is a file of each variable and its receipt; a surface is one file."""
    floats = [v for v in schema.variables if v.dtype == "float64"]
    widths = [math.prod(len(a.values) for a in schema.dimensions(v)[len(schema.axes) :]) for v in floats]
    cells = math.prod(len(a.values) for a in schema.axes[:-1])
    tile = math.prod(a.chunk for a in schema.axes)
    tiles = math.prod(schema.tiles)
    arrays = len(schema.variables) + 1  # the ledger's receipts are cut like the trials
    # A tile's place is a path of folders, one an axis.
    folders = 2 + sum(math.prod(schema.tiles[: i + 1]) for i in range(len(schema.axes) - 1))
    surfaces = SURFACES * sum(_blocks(8 * cells * w) + (2 + len(schema.axes)) * BLOCK for w in widths)
    values = sum(_blocks(8 * tile * w) for w in widths)
    return tiles * (values + (arrays - len(floats)) * BLOCK) + arrays * (folders + 1) * BLOCK + surfaces


def _blocks(count: int) -> int:
    return -(-count // BLOCK) * BLOCK


def _typical(sums: NDArray[np.float64]) -> float:
    """The length of the tile in which a second of work is spent on average: cheap tiles count little."""
    total = float(sums.sum())
    return float((sums * sums).sum()) / total if total > 0 else 0.0


def _may_be_cut(axis: SweepAxis) -> bool:
    return axis.path != "n" and axis.sections is None


def blueprint(sweep: Sweep, lengths: Sequence[int], versions: Mapping[str, str]) -> CubeSchema:
    """The cube of a sweep, cut by ``lengths`` (one an axis, then the trials)."""
    axes = [
        Axis(name=a.name, values=a.coordinate(), chunk=length, attributes=_about_axis(a))
        for a, length in zip(sweep.axes, lengths, strict=False)
    ]
    trial = Axis(
        name="trial",
        values=np.arange(sweep.trials, dtype=np.int64),
        chunk=lengths[-1],
        attributes={"long_name": "trial", "units": "1", "description": "number of the Monte Carlo data set of a cell"},
    )
    return CubeSchema(
        axes=(*axes, trial),
        extra=kind_of(sweep).extra_axes(sweep),
        variables=tuple(_variables(sweep)),
        attributes={
            "title": sweep.name,
            "kind": sweep.kind,
            "spec": sweep.text,
            "resolved": resolved(sweep),
            "spec_hash": spec_hash(sweep),
            "versions": json.dumps(versions),
        },
    )


def _about_axis(axis: SweepAxis) -> dict[str, str]:
    about = {"long_name": axis.path, "description": f"{axis.path} of the spec"}
    if axis.path == "n":
        return {"long_name": "sample size", "units": "examples", "description": "n of the spec"}
    if axis.sections is not None:
        about["description"] = f"labels of the sections under sweep.{axis.path} of the spec"
    elif axis.applies:
        about["description"] += f"; repeats for kinds other than {', '.join(axis.applies)}"
    return about if axis.dtype == "str" else {**about, "units": "1"}


def _variables(sweep: Sweep) -> Iterable[Variable]:
    kind = kind_of(sweep)
    dimensions = kind.dimensions(sweep)
    for name in kind.measured(sweep):
        about = kind.grammar.quantities[name]
        yield Variable(
            name=name,
            dtype="float64",
            attributes={"long_name": about.long_name, "units": about.units, "description": about.description},
            extra=dimensions.get(name, ()),
        )
        yield status_variable(f"{name}_status", f"how the trial of {name} ended")
    for code in kind.codes(sweep):
        yield Variable(name=code.name, dtype="uint8", attributes=_about_code(code), extra=dimensions.get(code.name, ()))
    yield status_variable("status", "the worst of the trial's statuses")


def _about_code(code: Code) -> dict[str, Attribute]:
    meanings = {0: "missing", **{number: meaning.replace(" ", "_") for meaning, number in code.meanings.items()}}
    return {
        "long_name": code.name.replace("_", " "),
        "units": "1",
        "description": code.description,
        "flag_values": list(meanings),
        "flag_meanings": " ".join(meanings.values()),
    }
