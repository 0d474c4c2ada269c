"""The audit of one table and one learner: in goes what a command line names, out comes what one row can change.

Always true: a row is known by its number in the file, from 1 and without a header; costs of many predictions follow
from the stability and the privacy loss of one, be they measured on this table or guaranteed for every one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.pipeline.failures import BadInput
from predcube.pipeline.spec.fields import declared
from predcube.pipeline.spec.grammar import PREDICTION
from predcube.pipeline.spec.inline import inline
from predcube.pipeline.spec.mistakes import Mistakes, failure
from predcube.pipeline.spec.sections import build_section, parse_section
from predcube.pipeline.spec.sweep import Section
from predcube.pipeline.spec.tables import BadTable, TableRows, read_rows
from predcube.tasks import audit
from predcube.tasks.audits import Audit, Progress, Witness, written
from predcube.tasks.bounds import delta_bound
from predcube.tasks.compositions import MOST, advanced, basic, optimal, total_variation
from predcube.tasks.hypotheses import HypothesisClass
from predcube.tasks.hypotheses.points import locate
from predcube.tasks.learners import Learner
from predcube.tasks.seeds import stream

DELTAS = (0.1, 0.5, 1.0)
PREDICTIONS = (1, 10, 100, 1000)
SLACK = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to audit. ``hypotheses`` and ``learner`` are texts KIND:param=value,… ; ``rows`` None for all of the table;
    ``slack`` is the δ′ of advanced and optimal composition."""

    table: str
    features: tuple[str, ...]
    label: str
    hypotheses: str
    learner: str
    rows: int | None = None
    method: str = "auto"
    samples: int | None = None
    neighbours: int = 4096
    seed: int = 0
    deltas: tuple[float, ...] = DELTAS
    predictions: tuple[int, ...] = PREDICTIONS
    slack: float = SLACK


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What ``predictions`` predictions cost at most, by one pair (γ, ε). ``advanced`` is ``basic`` where that is
    less."""

    predictions: int
    total_variation: float
    basic: float
    advanced: float
    optimal: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A witness in terms of the table: ``row`` is the number of a row that is replaced (the first of ``alike`` equal
    ones), ``old`` and ``new`` its features and label, ``query`` features of the prediction that moves."""

    row: int
    alike: int
    old: tuple[tuple[float, ...], int]
    new: tuple[tuple[float, ...], int]
    query: tuple[float, ...]
    label: int
    p: float
    p_neighbour: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAudit:
    """``n`` rows were audited of ``usable`` usable ones; ``dropped`` lack a value. ``guaranteed`` has γ and ε for every
    data set of n rows. ``deltas``: ε, measured δ(ε), guaranteed δ(ε). ``cells``: whether the class goes by order
    cells."""

    request: Request
    hypotheses: Section
    learner: Section
    derived: Mapping[str, Any]
    usable: int
    dropped: int
    n: int
    finite: bool
    cells: bool
    found: Audit
    guaranteed: Mapping[str, float]
    changes: Mapping[str, Change]
    deltas: tuple[tuple[float, float, float], ...]
    measured_costs: tuple[Cost, ...]
    guaranteed_costs: tuple[Cost, ...]
    notes: tuple[str, ...]


def audit_table(request: Request, *, directory: str = ".", progress: Progress | None = None) -> TableAudit:
    """Raises ``BadInput`` with every mistake in the request, or the one that the table or the learner shows."""
    notes: list[str] = []
    hypotheses_section, learner_section = _sections(request, directory, notes)
    _check_numbers(request)
    section = {"path": request.table, "features": list(request.features), "label": request.label}
    try:
        rows = read_rows(section, directory)
    except BadTable as e:
        raise BadInput(f"{_option(e.key, request)}: {e}") from None
    hypotheses, learner = _built(hypotheses_section, "hypotheses"), _built(learner_section, "learner")
    _check_points(request, hypotheses, rows)
    chosen = _chosen(request, rows)
    n = len(chosen.y)
    try:
        found = audit(
            learner,
            hypotheses,
            chosen.x,
            chosen.y,
            method=request.method,
            neighbours=request.neighbours,
            samples=request.samples,
            seed=request.seed,
            progress=progress,
        )
    except ValueError as e:
        raise BadInput(str(e)) from e
    guaranteed = {
        "stability": float(learner.guaranteed_stability(n)),
        "privacy_loss": float(learner.guaranteed_privacy_loss(n)),
    }
    return TableAudit(
        request=request,
        hypotheses=hypotheses_section,
        learner=learner_section,
        derived=learner.derived_with(hypotheses, n),
        usable=len(rows.y),
        dropped=rows.dropped,
        n=n,
        finite=hypotheses.domain is not None,
        cells=hypotheses.cellwise,
        found=found,
        guaranteed=guaranteed,
        changes={quantity: _change(witness, chosen) for quantity, witness in found.witness.items()},
        deltas=tuple(
            (e, found.delta(e), delta_bound(e, guaranteed["privacy_loss"], guaranteed["stability"]))
            for e in request.deltas
        ),
        measured_costs=costs(found.stability, found.privacy_loss, request.predictions, request.slack),
        guaranteed_costs=costs(**guaranteed, predictions=request.predictions, slack=request.slack),
        notes=tuple(notes),
    )


def costs(stability: float, privacy_loss: float, predictions: Sequence[int], slack: float) -> tuple[Cost, ...]:
    """What each number of predictions costs at most."""
    return tuple(
        Cost(
            predictions=m,
            total_variation=total_variation(stability, m, privacy_loss),
            basic=basic(privacy_loss, m),
            advanced=min(advanced(privacy_loss, m, slack), basic(privacy_loss, m)),
            optimal=optimal(privacy_loss, m, slack),
        )
        for m in predictions
    )


def _sections(request: Request, directory: str, notes: list[str]) -> tuple[Section, Section]:
    """The class and the learner as canonical sections."""
    mistakes, found = Mistakes(), []
    for role, text in (("hypotheses", request.hypotheses), ("learner", request.learner)):
        option = f"--{role}"
        try:
            table = inline(text)
        except ValueError as e:
            mistakes.add(option, str(e))
            continue
        kind = PREDICTION.kinds(role).get(str(table.get("kind")))
        if kind is not None and "dimension" in declared(kind) and "dimension" not in table:
            table["dimension"] = len(request.features)  # what else could it be
        section = parse_section(PREDICTION, role, table, option, mistakes, directory=directory, notes=notes)
        if section is not None:
            found.append(section)
    if mistakes.found:
        raise failure(mistakes.found, "audit")
    hypotheses, learner = found
    return hypotheses, learner


def _built(section: Section, role: str) -> Any:
    try:
        return build_section(role, section)
    except ValueError as e:
        raise BadInput(f"--{role}: {e}") from e


def _check_numbers(request: Request) -> None:
    for epsilon in request.deltas:
        if not 0 <= epsilon < math.inf:
            raise BadInput(f"--delta {epsilon:g}: give a finite ε ≥ 0")
    for m in request.predictions:
        if not 1 <= m <= MOST:
            raise BadInput(f"--predictions {m}: give a number from 1 to {MOST}")
    if not 0 < request.slack < 1:
        raise BadInput(f"--slack {request.slack:g}: give a probability above 0 and below 1")


def _option(key: str, request: Request) -> str:
    """Which option a table's mistake is about."""
    if key.startswith("features["):
        return f"--features {request.features[int(key[9:-1])]}"
    return f"--label {request.label!r}" if key == "label" else "TABLE"


def _check_points(request: Request, hypotheses: HypothesisClass, rows: TableRows) -> None:
    """BadInput where the class has other features than the table, or a row lies outside a finite X."""
    features = hypotheses.features
    if features != len(request.features):
        raise BadInput(
            f"--features names {_columns(len(request.features))} ({', '.join(request.features)}), and "
            f"{hypotheses.kind} here takes {_columns(features)}; give {_columns(features)}, or another class (boxes, "
            "stumps and halfspaces take several)"
        )
    domain = hypotheses.domain
    if domain is None:
        return
    outside = np.flatnonzero(locate(domain.astype(np.float64), rows.x) < 0)
    if len(outside):
        first = rows.x[outside[0]].reshape(-1)
        top = int(domain.max())
        held = ", ".join(f"{name} = {written(value)}" for name, value in zip(request.features, first, strict=True))
        more = f" (and {len(outside) - 1} more rows)" if len(outside) > 1 else ""
        raise BadInput(
            f"row {rows.numbers[outside[0]]} has {held}{more}, which is outside the class's X: the integers 0 to "
            f"{top}; leave points out for a class on all numbers, or use another column"
        )


def _columns(count: int) -> str:
    return f"{count} column{'s'[: count != 1]}"


def _chosen(request: Request, rows: TableRows) -> TableRows:
    """All rows, or as many as were asked for, drawn by the seed and left in the file's order."""
    wanted, there = request.rows, len(rows.y)
    if wanted is None or wanted == there:
        return rows
    if not 1 <= wanted < there:
        raise BadInput(f"--rows {wanted}: the table has {there} usable rows; give a number from 1 to {there}")
    kept = np.sort(stream(request.seed, "rows", there, wanted).choice(there, wanted, replace=False))
    return replace(rows, x=rows.x[kept], y=rows.y[kept], numbers=rows.numbers[kept])


def _change(witness: Witness, rows: TableRows) -> Change:
    x = rows.x.reshape(len(rows.y), -1)
    if witness.position is None:
        alike: NDArray[np.intp] = np.flatnonzero(
            (x == np.array(_features(witness.old[0]))).all(axis=1) & (rows.y == witness.old[1])
        )
    else:
        alike = np.array([witness.position])
    return Change(
        row=int(rows.numbers[alike[0]]),
        alike=len(alike),
        old=(_features(witness.old[0]), witness.old[1]),
        new=(_features(witness.new[0]), witness.new[1]),
        query=_features(witness.query),
        label=witness.label,
        p=witness.p,
        p_neighbour=witness.p_neighbour,
    )


def _features(place: float | tuple[float, ...]) -> tuple[float, ...]:
    return tuple(float(v) for v in place) if isinstance(place, tuple) else (float(place),)


__all__ = ["Change", "Cost", "Learner", "Request", "TableAudit", "audit_table", "costs"]
