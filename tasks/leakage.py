"""How much a release helps an attacker, in one call: in go columns in memory, out comes every value of theory F.

The same computation over files, with SQL expressions for columns, is ``predcube.pipeline.predictability``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predcube.tasks import noises, processes, releases
from predcube.tasks.columns import column_of, labelled, memberships, numbers
from predcube.tasks.frames import Frame, Groups, total_of
from predcube.tasks.gains import Gains, Measure, Values
from predcube.tasks.noises import Noise
from predcube.tasks.processes import Process
from predcube.tasks.releases import Fitted, Release

type Array = NDArray[np.float64]

FRAME_ROWS = 1 << 16
"""Rows of a frame: how a table in memory is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictability:
    """What an attacker gains from a release about a query, or about several: floats for one, (Q,) arrays for a mapping.

    n: rows the attacker holds (expected). p: mean of the query over the target. rho2: squared canonical correlation of
    query and release under the process. gain: σ1² − σ2² of the attacker's estimate; r = √(gain/s1). sharp: the
    asymptotic gain in units of the loss; correlated ≤ cauchy_schwarz ≤ paper: bounds above it. utility_cost: mean
    squared error that the noise adds to predictions, or to the released numbers. rank, condition: of the standardised
    moments. dropped_rows: rows left out, of which ``dropped`` says why; rows: those used. s1, K, m, tau, constant,
    flags: as in ``gains.Values``. queries, release_names: what they are of; estimate: the numbers released, before
    noise.
    """

    n: float
    p: Any
    rho2: Any
    gain: Any
    r: Any
    sharp: Any
    correlated: Any
    cauchy_schwarz: Any
    paper: Any
    utility_cost: Any
    rank: int
    condition: float
    dropped_rows: int
    dropped: Mapping[str, int]
    rows: int
    s1: Any
    K: float
    m: float
    tau: Any
    constant: Any
    flags: tuple[str, ...]
    queries: tuple[str, ...]
    release_names: tuple[str, ...]
    estimate: Array


class Counted(Protocol):
    """What an answer says of the rows that it is of: how many are used, why others are not, the queries' names."""

    @property
    def rows(self) -> int: ...
    @property
    def dropped(self) -> Mapping[str, int]: ...
    @property
    def queries(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The complete rows of a table in memory, as frames, with their groups and what was dropped."""

    frames: tuple[Frame, ...]
    groups: Groups | None
    queries: tuple[str, ...]
    dropped: Mapping[str, int]

    @property
    def rows(self) -> int:
        return sum(frame.rows for frame in self.frames)


def predictability(
    table: Any,
    query: str | ArrayLike | Mapping[str, str | ArrayLike],
    release: Mapping[str, Any] | Release,
    process: Mapping[str, Any] | Process[Any],
    noise: Mapping[str, Any] | Noise | None = None,
    loss: str | Mapping[str, Any] | Measure = "squared",
) -> Predictability:
    """What a release of a table tells an attacker, who holds some of its rows, about a query on the others.

    table: name → column of N values (a mapping, a data frame, a structured array); a path is refused. query: a column's
    name, N values, or a mapping of name → either, for several at once. release, process, noise: as in a spec,
    ``{"kind": "mean", "columns": [...]}``, or built objects. loss: "squared", "log", or ``{"loss": …, "tau": …,
    "convention": …}``.

    A row is left out iff a release input, the process's column, its target or any query is missing.

    Raises ValueError, one message, for whatever cannot be computed: an unknown column, an infinite value, a weight that
    is not above 0, an infeasible process or noise, a fit without a finite optimum, the log loss of a query that is not
    binary. Source: Lu & Sridharan 2026, Theorem 3.6, with the corrections that ``gains`` and ``processes`` name.

    >>> rng = np.random.default_rng(0)
    >>> table = {"age": rng.normal(50, 10, 500), "smoker": rng.random(500) < 0.3}
    >>> found = predictability(table, "smoker", {"kind": "mean", "columns": ["smoker"]},
    ...                        {"kind": "random_shard", "fraction": 0.2})
    >>> round(found.rho2, 12), round(found.sharp * 500 * 0.2 * 0.8 / found.s1, 12)
    (1.0, 1.0)
    """
    built_release = release if isinstance(release, Release) else releases.build(**_kinded(release, "release"))
    built_process = process if isinstance(process, Process) else processes.build(**_kinded(process, "process"))
    built_noise = noise if isinstance(noise, Noise) else noises.build(**_kinded(noise or {"kind": "none"}, "noise"))
    if isinstance(loss, Mapping):
        measure = Measure(**loss)
    else:
        measure = loss if isinstance(loss, Measure) else Measure(loss=loss)  # type: ignore[arg-type]
    sample = sampled(table, query, built_release, built_process)
    gains, fitted = factored(sample, built_release, built_process)
    values = gains.values(built_process, built_noise, measure)
    return answer(values, fitted, sample, built_release, single=not isinstance(query, Mapping))


def factored(sample: Sample, release: Release, process: Process[Any], *, joint: bool = False) -> tuple[Gains, Fitted]:
    """The gains of a release under a process on a sample, for any noise, loss and amount drawn."""
    reason = process.infeasible(sample.rows, sample.groups)
    if reason is not None:
        raise ValueError(f"process {process.kind!r}: {reason}")
    total = total_of(sample.frames)
    fitted = release.fit(total)
    law = process.law(total(process.request(fitted, sample.groups, joint=joint)), sample.groups)
    return Gains(law=law, coordinates=fitted, names=sample.queries), fitted


def answer(values: Values, fitted: Fitted, sample: Counted, release: Release, *, single: bool) -> Predictability:
    """Values as an answer; of one query as plain numbers where ``single``."""

    def shown(array: NDArray[Any]) -> Any:
        return array[0].item() if single else array

    each = ("p", "rho2", "gain", "r", "sharp", "correlated", "cauchy_schwarz", "paper", "utility_cost")
    return Predictability(
        **{name: shown(getattr(values, name)) for name in (*each, "s1", "tau", "constant")},
        **{name: getattr(values, name) for name in ("n", "rank", "condition", "K", "m", "flags")},
        dropped_rows=sum(sample.dropped.values()),
        dropped=sample.dropped,
        rows=sample.rows,
        queries=sample.queries,
        release_names=release.names,
        estimate=fitted.estimate,
    )


def sampled(
    table: Any, query: str | ArrayLike | Mapping[str, str | ArrayLike], release: Release, process: Process[Any]
) -> Sample:
    """The complete rows of a table in memory. Raises ValueError where a column is missing, unfit, or of another length,
    and where no complete row is left."""
    if isinstance(table, str | bytes | PathLike):
        raise ValueError(f"table = {table!r} is a path: files and SQL are read by predcube.pipeline.predictability")
    asked: Mapping[str, Any] = (
        query if isinstance(query, Mapping) else {query if isinstance(query, str) else "query": query}
    )
    if not asked:
        raise ValueError("query is empty: give at least one")
    queries = [
        numbers(column_of(table, value, f"query {name!r}") if isinstance(value, str) else value, f"query {name!r}")
        for name, value in asked.items()
    ]
    inputs = [numbers(column_of(table, name, "release"), f"column {name!r}") for name in release.inputs]
    rows = len(queries[0])
    for name, array in [*zip(asked, queries, strict=True), *zip(release.inputs, inputs, strict=True)]:
        if len(array) != rows:
            raise ValueError(f"column {name!r} has {len(array)} values where query {next(iter(asked))!r} has {rows}")
    reasons = {f"release input {name}": np.isnan(array) for name, array in zip(release.inputs, inputs, strict=True)}
    codes: Array | None = None
    labels: tuple[str, ...] = ()
    if process.reads is not None:
        column = column_of(table, process.reads, "process")
        if process.needs_groups:
            found, labels = labelled(column, f"column {process.reads!r}")
            codes, missing = found.astype(np.float64), found < 0
        else:
            codes = numbers(column, f"column {process.reads!r}")
            missing = np.isnan(codes)
        reasons[f"process column {process.reads}"] = missing
    inside: NDArray[np.bool_] | None = None
    if process.target_expression is not None:
        inside, known = memberships(column_of(table, process.target, "target"), f"target {process.target!r}")
        reasons["target"] = ~known
    reasons |= {f"query {name}": np.isnan(array) for name, array in zip(asked, queries, strict=True)}
    complete = np.ones(rows, dtype=np.bool_)
    dropped: dict[str, int] = {}
    for reason, missing in reasons.items():
        if len(missing) != rows:
            raise ValueError(f"{reason} has {len(missing)} values where query {next(iter(asked))!r} has {rows}")
        lost = int(np.count_nonzero(complete & missing))
        if lost:
            dropped[reason] = lost
        complete &= ~missing
    if not complete.any():
        raise ValueError(f"no complete row is left of {rows}: {dropped or 'the table is empty'}")
    groups = None
    if codes is not None and process.needs_groups:
        codes, groups = _counted(codes[complete], labels)
    elif codes is not None:
        codes = codes[complete]
    q = np.stack([array[complete] for array in queries], axis=1)
    z = np.stack([array[complete] for array in inputs], axis=1)
    member = None if inside is None else inside[complete]
    cuts = [slice(start, start + FRAME_ROWS) for start in range(0, len(q), FRAME_ROWS)]
    frames = [
        Frame(
            queries=q[cut],
            inputs=z[cut],
            column=None if codes is None else codes[cut],
            target=None if member is None else member[cut],
        )
        for cut in cuts
    ]
    return Sample(frames=tuple(frames), groups=groups, queries=tuple(str(name) for name in asked), dropped=dropped)


def _counted(codes: Array, labels: tuple[str, ...]) -> tuple[Array, Groups]:
    """Codes among the labels that are left, and how many rows each has."""
    counts = np.bincount(codes.astype(np.int64), minlength=len(labels))
    kept = np.flatnonzero(counts)
    groups = Groups(labels=tuple(labels[i] for i in kept), counts=counts[kept].astype(np.int64))
    place = np.cumsum(counts > 0) - 1
    return place[codes.astype(np.int64)].astype(np.float64), groups


def _kinded(value: Any, section: str) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
        raise ValueError(f"{section} = {value!r} must be a table with a kind: {{'kind': …}}, and its parameters")
    return dict(value)
