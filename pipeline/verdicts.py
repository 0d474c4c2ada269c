"""An audit of a table in words, tables and JSON: in goes a ``TableAudit``, out comes what a person or a program reads.

Always true: ∞ is said and never a number; what is a lower bound or an estimate is never called a bound on the cost.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from rich.console import Group, RenderableType
from rich.text import Text

from predcube.pipeline.printing import number, table
from predcube.pipeline.table_audits import Change, Cost, TableAudit
from predcube.tasks.audits import written

QUANTITIES = {"stability": "stability", "privacy_loss": "privacy loss ε"}


def as_text(verdict: TableAudit) -> Group:
    """Everything, for a terminal of any width."""
    parts: list[RenderableType] = [Text(line) for line in _subject(verdict)]
    parts += [Text(f"note: {note}") for note in verdict.notes]
    parts += ["", Text(_reach(verdict)), "", table(_values(verdict)), ""]
    parts += [Text(_sentence(verdict, quantity)) for quantity in QUANTITIES]
    parts += ["", *_bills(verdict), ""]
    parts += [Text(line, style="italic") for line in _legend(verdict)]
    return Group(*parts)


def as_data(verdict: TableAudit) -> dict[str, Any]:
    """Everything, as plain values. The string "Infinity" stands for ∞, which JSON lacks and float() reads."""
    request, found = verdict.request, verdict.found
    data = {
        "table": request.table,
        "features": list(request.features),
        "label": request.label,
        "rows": {"audited": verdict.n, "usable": verdict.usable, "dropped": verdict.dropped},
        "hypotheses": dict(verdict.hypotheses),
        "learner": dict(verdict.learner),
        "derived": dict(verdict.derived),
        "method": found.method,
        "kind": found.kind,
        "exhaustive": found.exhaustive,
        "neighbours": {"tried": found.neighbours, "possible": found.possible},
        "seed": request.seed,
        "stability": {"measured": found.stability, "guaranteed": verdict.guaranteed["stability"]},
        "privacy_loss": {"measured": found.privacy_loss, "guaranteed": verdict.guaranteed["privacy_loss"]},
        "delta": [{"epsilon": e, "measured": d, "guaranteed": g} for e, d, g in verdict.deltas],
        "witness": {quantity: _witness(verdict, quantity) for quantity in QUANTITIES},
        "slack": request.slack,
        "predictions": [
            {
                "predictions": own.predictions,
                "by_measured": _without_count(own) if found.exhaustive else None,
                "by_guarantee": _without_count(promised),
            }
            for own, promised in zip(verdict.measured_costs, verdict.guaranteed_costs, strict=True)
        ],
        "notes": list(verdict.notes),
    }
    return {name: _plain(value) for name, value in data.items()}


def _without_count(cost: Cost) -> dict[str, float]:
    return {name: value for name, value in asdict(cost).items() if name != "predictions"}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _witness(verdict: TableAudit, quantity: str) -> dict[str, Any]:
    change, names = verdict.changes[quantity], verdict.request.features

    def record(features: tuple[float, ...]) -> dict[str, float]:
        return dict(zip(names, features, strict=True))

    return {
        "row": change.row,
        "rows_alike": change.alike,
        "old": {"features": record(change.old[0]), "label": change.old[1]},
        "new": {"features": record(change.new[0]), "label": change.new[1]},
        "query": record(change.query),
        "answer": change.label,
        "p": change.p,
        "p_neighbour": change.p_neighbour,
        "text": _sentence(verdict, quantity),
    }


def _subject(verdict: TableAudit) -> Iterator[str]:
    request = verdict.request
    rows = f"{verdict.n:,} row{'s'[: verdict.n != 1]}"
    if verdict.n < verdict.usable:
        rows += f" of {verdict.usable:,}, drawn by seed {request.seed}"
    if verdict.dropped:
        rows += f" ({verdict.dropped:,} with a missing value left out)"
    yield f"{request.table}: {rows}; predicts {request.label} from {', '.join(request.features)}"
    derived = _follows(verdict.derived, verdict.n)
    yield f"{_section(verdict.learner)} over {_section(verdict.hypotheses)}" + (f"; here {derived}" if derived else "")


def _follows(derived: Mapping[str, Any], n: int) -> str:
    """The parameters that follow from n records; chunks of two sizes with both."""
    shown = []
    for name, value in derived.items():
        if isinstance(value, Mapping):
            inner = _follows(value, derived.get("subset_size", n))
            shown.append(f"{name} ({inner})" if inner else "")
        elif name == "chunk_size" and n % derived["chunks"]:
            shown.append(f"{name} = {n // derived['chunks']} or {value}")
        elif value is not None:
            shown.append(f"{name} = {_short(value)}")
    return ", ".join(filter(None, shown))


def _section(section: Mapping[str, Any]) -> str:
    given = ", ".join(f"{name} = {_short(value)}" for name, value in section.items() if name != "kind")
    return f"{section['kind']} ({given})" if given else str(section["kind"])


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return _section(value) if "kind" in value else ", ".join(f"{k} = {_short(v)}" for k, v in value.items())
    if isinstance(value, list | tuple) and len(str(value)) > 40:
        return f"a list of {len(value)}"
    return number(value) if isinstance(value, float) else str(value)


def _reach(verdict: TableAudit) -> str:
    """How far the audit goes, in words."""
    found = verdict.found
    tried, possible = f"{found.neighbours:,}", f"{found.possible:,}"
    method = f"predictions by {found.method}"
    match found.kind:
        case "exhaustive":
            return (
                f"Exhaustive: each of the {tried} tables that differ in one row, as this learner tells them apart, was "
                f"tried; {method}."
            )
        case "exhaustive over order cells":
            return (
                f"Exhaustive over order cells: {tried} replacements of a row were tried, one for each place that the "
                f"order of the values tells apart; no other one shows more; {method}."
            )
        case "estimate":
            return (
                f"An estimate from sampled subsets over {tried} of {possible} replacements of a row: the largest of "
                "noisy values errs upwards, and what no subset showed counts as never answered. No bound follows."
            )
        case _:
            why = (
                "raise --neighbours to try more"
                if verdict.cells or verdict.finite
                else f"{verdict.hypotheses['kind']} tell more places apart than can be listed"
            )
            return (
                f"A lower bound: {tried} of {possible} replacements of a row were tried, drawn by seed "
                f"{verdict.request.seed}; a worse one may exist ({why}); {method}."
            )


def _values(verdict: TableAudit) -> pa.Table:
    found = verdict.found
    rows = [
        (QUANTITIES["stability"], found.stability, verdict.guaranteed["stability"]),
        (QUANTITIES["privacy_loss"], found.privacy_loss, verdict.guaranteed["privacy_loss"]),
        *((f"δ(ε = {number(e)})", d, g) for e, d, g in verdict.deltas),
    ]
    ratios = [m / g if 0 < g < math.inf and m < math.inf else None for _, m, g in rows]
    return pa.table(
        {
            "": [name for name, _, _ in rows],
            "measured": pa.array([m for _, m, _ in rows], pa.float64()),
            "guaranteed": pa.array([g for _, _, g in rows], pa.float64()),
            "measured ÷ guaranteed": pa.array(ratios, pa.float64()),
        }
    )


def _sentence(verdict: TableAudit, quantity: str) -> str:
    """The witness in plain words."""
    change, names = verdict.changes[quantity], verdict.request.features
    lead = {"stability": "A prediction moves most", "privacy_loss": "A row is told best"}[quantity]
    value = {"stability": verdict.found.stability, "privacy_loss": verdict.found.privacy_loss}[quantity]
    if value == 0:
        return f"{lead}: no replacement that was tried changes any."
    where = ", ".join(f"{name} = {written(v)}" for name, v in zip(names, change.query, strict=True))
    text = (
        f"{lead} where row {change.row} ({_record(names, change.old)}{_alike(change)}) is replaced by "
        f"({_record(names, change.new)}): the answer {change.label} at {where} has probability "
        f"{number(change.p_neighbour)} instead of {number(change.p)}."
    )
    if math.isinf(value):
        text += " One of the two tables never gives this answer: ε is infinite, and who sees it knows which it was not."
    return text


def _alike(change: Change) -> str:
    others = change.alike - 1
    return f"; {others:,} other{'s'[: others != 1]} like it" if others else ""


def _record(names: tuple[str, ...], record: tuple[tuple[float, ...], int]) -> str:
    features, label = record
    return ", ".join([*(f"{name} = {written(v)}" for name, v in zip(names, features, strict=True)), f"label {label}"])


def _costs(rows: tuple[Cost, ...]) -> pa.Table:
    names = {"total_variation": "total variation", "basic": "ε basic", "advanced": "ε advanced", "optimal": "ε optimal"}
    columns = {head: pa.array([getattr(c, name) for c in rows], pa.float64()) for name, head in names.items()}
    return pa.table({"predictions": pa.array([c.predictions for c in rows], pa.int64()), **columns})


def _bills(verdict: TableAudit) -> Iterator[RenderableType]:
    """What many predictions cost: by what was measured where that is an upper bound, and by the guarantee."""
    if verdict.found.exhaustive:
        yield Text("Many predictions on this table cost at most:")
        yield table(_costs(verdict.measured_costs))
        yield ""
    every = f"Many predictions on any table of {verdict.n:,} rows cost at most, by the guarantee"
    if not verdict.found.exhaustive:
        every += " (what was measured is no upper bound)"
    yield Text(f"{every}:")
    yield table(_costs(verdict.guaranteed_costs))


def _legend(verdict: TableAudit) -> Iterator[str]:
    yield (
        f"Rows are counted from 1, a header not counted. ε for m predictions: m·ε (basic); but for an event of "
        f"probability δ′ = {number(verdict.request.slack)} by Dwork, Rothblum & Vadhan (advanced; m·ε where that is "
        "less) and by Kairouz, Oh & Viswanath (optimal)."
    )
    if math.isinf(verdict.found.privacy_loss):
        stability = verdict.guaranteed["stability"]
        if verdict.found.exhaustive:
            stability = min(stability, verdict.found.stability)
        sure = "an answer may turn from sure to impossible: stability bounds no risk either"
        bounded = "stability alone bounds the risk" if stability < 1 else sure
        yield f"∞ is no gap in the audit: an answer may give a row away, and {bounded}."
