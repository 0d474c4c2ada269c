"""A disclosure in words, tables and JSON: in goes what was found of one cell, out comes what is read.

Always true: the share of uncertainty comes first; each number says whether it is exact, a bound or an estimate, and an
exact value to first order is never called a bound.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from rich.console import Group, RenderableType
from rich.text import Text

from predcube.pipeline.answering import Worked
from predcube.pipeline.cells import target_of
from predcube.pipeline.disclosures import Disclosure
from predcube.pipeline.frontier import Scheme, cost_label
from predcube.pipeline.printing import number, table
from predcube.pipeline.spec.fields import declared
from predcube.pipeline.spec.grammar import TABULAR
from predcube.tasks.families import FamilyValue
from predcube.tasks.noises import Noise
from predcube.tasks.noises.none import NoNoise
from predcube.tasks.processes import Process

FLAGS = {
    "few_shards": "few_shards: the value is of first order in the number of shards; below 100 of them it is some "
    "percent off (9% at 52), and more the fewer they are",
    "linear_attacker": "linear_attacker: under Laplace noise sharp is what the best linear attacker gains; a Bayes "
    "attacker gains more, up to twice as much where noise dominates",
    "ill_conditioned": "ill_conditioned: released columns are nearly collinear; of the smallest direction few digits "
    "are left",
    "beyond_first_order": "beyond_first_order: what the attacker knows before the release is worth less than guessing "
    "the mean, so that values of first order overstate what a loss can fall by",
    "constant_query": "constant_query: a query that has one value alone leaves nothing to learn; its values are 0",
}
EACH = ("p", "rho2", "r", "sharp", "correlated", "cauchy_schwarz", "paper")


def as_text(found: Disclosure) -> Group:
    """Everything, for a terminal of any width."""
    parts: list[RenderableType] = [Text(line) for line in _subject(found)]
    if len(found.ways) > 1:
        parts += ["", table(_ways(found), title=f"Most is gained under {found.ways[_worst(found)].process}:")]
    parts += ["", *(Text(line) for line in _verdict(found)), ""]
    parts.append(table(_one(found) if len(found.worked.queries) == 1 else _several(found.worked)))
    parts += [Text(f"note: {note}") for note in _notes(found)]
    if found.schemes:
        lead = f"Noise that brings sharp to {number(found.request.target)}; cost: {cost_label(found.worked)}"
        parts += ["", Text(lead, style="italic"), table(_schemes(found))]
        parts += [Text(f"{s.scheme}: {s.reason}") for s in found.schemes if s.reason is not None]
    if found.unneeded is not None:
        parts += ["", Text(f"--target: {found.unneeded}")]
    return Group(*parts)


def _subject(found: Disclosure) -> Iterator[str]:
    worked = found.worked
    sample, values = worked.sample, worked.values
    lost = ", ".join(f"{count:,} by {reason}" for reason, count in sample.dropped.items())
    yield f"{found.request.table}: {sample.rows:,} of {sample.total:,} rows" + (f"; left out: {lost}" if lost else "")
    size = len(worked.release.names)
    yield (
        f"release: {_words(worked, 'release')}: {size} number{'s'[: size != 1]}; noise: {_noise(worked.noise, worked)}"
    )
    yield (
        f"attacker: holds {_rows(values.n)} ({_listed(worked, 'process')}) and predicts the mean over {target(worked)}"
    )


def _words(worked: Worked, role: str) -> str:
    """A section without what it would have by itself."""
    section = worked.section(role)
    fields = declared(TABULAR.kinds(role)[section["kind"]])
    return _section({k: v for k, v in section.items() if k not in fields or v != fields[k].default})


def _listed(worked: Worked, role: str) -> str:
    """The same to stand in parentheses."""
    return _words(worked, role).replace(" (", ", ", 1).removesuffix(")")


def _section(section: Mapping[str, Any]) -> str:
    given = ", ".join(f"{name} = {_short(value)}" for name, value in section.items() if name != "kind" and value != ())
    return f"{section['kind']} ({given})" if given else str(section["kind"])


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return _section(value) if "kind" in value else f"those of {len(value.get('labels', value))} states"
    if isinstance(value, list | tuple):
        words = [_short(v) for v in value]
        return ", ".join(words) if len(words) <= 6 else f"{', '.join(words[:4])} and {len(words) - 4} more"
    return number(value) if isinstance(value, float) else str(value)


def _noise(noise: Noise, worked: Worked) -> str:
    words = _words(worked, "noise")
    if isinstance(noise, NoNoise):
        return words
    covariance = worked.gains.covariance(worked.process, noise, worked.measure)
    return f"{words}, of standard deviation {_sds([math.sqrt(max(v, 0.0)) for v in covariance.diagonal().tolist()])}"


def _rows(n: float) -> str:
    about = "" if float(n).is_integer() else "about "
    return f"{about}{n:,.0f} row{'s'[: n != 1]}"


def target(worked: Worked) -> str:
    """Whose mean is predicted, in words with numbers."""
    process: Process[Any] = worked.process
    words = target_of(process)
    rows = worked.sample.rows
    if words == "unseen rows":
        unseen = max(rows - worked.values.n, 0)
        if worked.gains.law.groups:
            return f"the rows that it has not seen, about {unseen:,.0f}"
        return f"the {_rows(unseen)} that it has not seen"
    if words == "all rows":
        return f"all {rows:,} rows"
    members = worked.gains.law.members
    some = "all" if words == "all members" else "the unseen ones among"
    return f"{some} {members:,} rows where {process.target_expression}"


def _verdict(found: Disclosure) -> Iterator[str]:
    """The answer in plain words: share, size, unit, who is meant, what kind of number it is."""
    worked = found.worked
    values = worked.values
    names = worked.queries
    worst = int(values.sharp.argmax())
    several = len(names) > 1
    about = f"{names[worst]!r}"
    if several:
        yield f"Of {len(names)} queries the release helps most with {about}:"
    if values.constant[worst]:
        yield f"{about} has one value alone: there is nothing to learn of it."
        return
    share, before = float(values.gain[worst] / values.s1[worst]), float(values.K * values.s1[worst])
    after = float(values.K * (values.s1[worst] - values.gain[worst]))
    held = f"an attacker who holds {_rows(values.n)}"
    removes = "is said to remove at most" if worked.measure.convention == "paper" else "removes"
    yield (
        f"The release {removes} {_percent(share)} (r²) of the uncertainty about {about} that {held} has left: its "
        f"standard error for that mean falls from {number(math.sqrt(before))} to "
        f"{number(math.sqrt(max(after, 0.0)))}."
    )
    sharp = float(values.sharp[worst])
    whole = sharp / share if share > 0 else 0.0
    if worked.measure.loss == "log":
        yield (
            f"Its expected log loss falls by sharp = {number(sharp)} nats, out of {number(whole)} that it loses for "
            "not knowing the mean."
        )
    else:
        yield (
            f"Its expected squared error falls by sharp = {number(sharp)} (squared units of the query), out of s1·K = "
            f"{number(before)}."
        )
    if float(values.rho2[worst]) > share * (1 + 1e-9):
        yield f"Without noise it would be {_percent(float(values.rho2[worst]))} (ρ²)."
    if worked.measure.convention == "paper":
        yield (
            "That is by convention = paper: the noise counts as S_tot, as printed, and not as m·S_tot. These are loose "
            "bounds and not what an attacker gains."
        )
    if found.family is not None:
        yield (
            f"Whichever query turns out worst, after the draw: {_estimate(found.family.value)} (estimate, "
            f"{found.family.value.draws:,} draws); at most {number(found.family.bound.value)} (bound)."
        )


def _percent(share: float) -> str:
    """
    >>> _percent(0.03646), _percent(0.00012), _percent(0.99987), _percent(1.0)
    ('3.6%', '0.012%', '99.987%', '100%')
    """
    percent = 100 * share
    if percent >= 99.9:
        return f"{percent:.3f}".rstrip("0").rstrip(".") + "%"
    return f"{percent:.1f}%" if percent >= 1 else f"{percent:.2g}%"


def _estimate(value: FamilyValue) -> str:
    width = (value.upper - value.lower) / 2
    return f"{number(value.value, width)} [{number(value.lower, width)}, {number(value.upper, width)}]"


def _one(found: Disclosure) -> pa.Table:
    """The values of one query, a line each, with what each is."""
    worked, values = found.worked, found.worked.values
    first = "linear attacker's, to first order" if "linear_attacker" in values.flags else "exact to first order"
    if worked.measure.convention == "paper":
        first = "loose bound (convention = paper)"
    unit = "nats" if worked.measure.loss == "log" else "squared units of the query"
    rows: list[tuple[str, float, str]] = [
        ("p", float(values.p[0]), "mean of the query over the target"),
        ("rho2", float(values.rho2[0]), "share removed without noise"),
        ("r²", float(values.r[0] ** 2), "share removed"),
        ("sharp", float(values.sharp[0]), f"{first}, {unit}"),
        ("correlated", float(values.correlated[0]), "upper bound of sharp"),
        ("cauchy_schwarz", float(values.cauchy_schwarz[0]), "upper bound of correlated"),
        ("paper", float(values.paper[0]), "upper bound as printed (Theorem 3.6)"),
    ]
    if found.simulation is not None:
        run = found.simulation
        scale = _per_gain(worked)
        error = scale * float(run.simulated_gain_error[0])
        rows.append(
            (
                "simulated",
                scale * float(run.simulated_gain[0]),
                f"estimate ± {number(error)}, {run.draws:,} attackers; ÷ sharp: {_ratio(found, 0)}",
            )
        )
    if found.exact is not None and not isinstance(found.exact, str):
        exact = found.exact
        if exact.reaches:
            rows.append(
                ("exact", exact.gain, f"at N = {worked.sample.rows:,} and this count; Bayes attacker, uniform prior")
            )
        rows.append(
            ("exact average", exact.average, f"over all counts; ÷ sharp: {number(exact.average / exact.average_sharp)}")
        )
    rows.append(("utility_cost", float(values.utility_cost[0]), cost_label(worked)))
    rows.append(
        ("condition", float(values.condition), f"of the released numbers; rank {values.rank} of {_size(worked)}")
    )
    return pa.table(
        {
            "": [name for name, _, _ in rows],
            "value": pa.array([value for _, value, _ in rows], pa.float64()),
            "what it is": [words for _, _, words in rows],
        }
    )


def _per_gain(worked: Worked) -> float:
    """l''/2 at p: from squared units to units of the loss, for the first query."""
    bend, _, _ = worked.measure.curvatures(worked.gains.law)
    return float(bend[0]) / 2


def _size(worked: Worked) -> int:
    return len(worked.release.names)


def _ratio(found: Disclosure, place: int) -> str:
    run = found.simulation
    assert run is not None
    ratio, error = float(run.simulated_ratio[place]), float(run.simulated_ratio_error[place])
    return f"{number(ratio, error)} ± {number(error, error)}" if math.isfinite(ratio) else "–"


def _several(worked: Worked) -> pa.Table:
    values = worked.values
    return pa.table(
        {
            "query": list(worked.queries),
            **{name: pa.array(getattr(values, name).tolist(), pa.float64()) for name in EACH},
        }
    )


def _notes(found: Disclosure) -> Iterator[str]:
    worked, values = found.worked, found.worked.values
    if len(worked.queries) > 1:
        yield (
            "sharp is exact to first order in the rows held; correlated ≤ cauchy_schwarz ≤ paper are upper bounds of "
            f"it; utility_cost {number(float(values.utility_cost[0]))} ({cost_label(worked)}); rank {values.rank} of "
            f"{_size(worked)}, condition {number(values.condition)}"
        )
        if found.simulation is not None:
            ratios = ", ".join(f"{name} {_ratio(found, i)}" for i, name in enumerate(worked.queries[:12]))
            yield f"simulated ÷ sharp by {found.simulation.draws:,} attackers: {ratios}"
    if found.simulation is not None:
        run = found.simulation
        loose = [
            name
            for name, cross, error in zip(worked.queries, run.cross, run.cross_error, strict=True)
            if abs(cross) > 4 * error
        ]
        if loose:
            yield (
                f"the simulated attacker is not efficient for {', '.join(loose)}: what it corrects and what is left "
                "are correlated"
            )
    if isinstance(found.exact, str):
        yield f"the exact value of this count is {found.exact}"
    if values.rank < _size(worked):
        yield (
            f"{_size(worked)} numbers are released and {values.rank} of them vary freely: constant or collinear ones "
            "change nothing"
        )
    yield from (FLAGS.get(flag, flag) for flag in values.flags)


def _worst(found: Disclosure) -> int:
    return next(i for i, way in enumerate(found.ways) if way.worked is found.worked)


def _ways(found: Disclosure) -> pa.Table:
    """The processes of a family, one a line."""
    of = [way.worked for way in found.ways]
    best = [int(w.values.sharp.argmax()) for w in of]
    columns: dict[str, Any] = {
        "process": [way.process for way in found.ways],
        "held": [_rows(w.values.n) for w in of],
        "predicted": [target_of(w.process) for w in of],
        "r²": pa.array([float(w.values.r[i] ** 2) for w, i in zip(of, best, strict=True)], pa.float64()),
        "sharp": pa.array([float(w.values.sharp[i]) for w, i in zip(of, best, strict=True)], pa.float64()),
    }
    if found.family is not None:
        columns["worst query after the draw"] = [_estimate(way.value) for way in found.ways]
    return pa.table(columns)


def _schemes(found: Disclosure) -> pa.Table:
    """What each scheme that reaches the target takes and costs."""
    reached = [s for s in found.schemes if s.noise is not None]
    least = min((s.utility_cost for s in reached if s.utility_cost is not None), default=math.nan)
    return pa.table(
        {
            "scheme": [s.scheme for s in reached],
            "noise": [_amount(s) for s in reached],
            "sharp": pa.array([s.sharp for s in reached], pa.float64()),
            "cost": pa.array([s.utility_cost for s in reached], pa.float64()),
            "÷ least": pa.array([_over(s.utility_cost, least) for s in reached], pa.float64()),
            "sd on each number": [_sds(s.sds) for s in reached],
        }
    )


def _over(cost: float | None, least: float) -> float | None:
    return None if cost is None or not least > 0 else cost / least


def _amount(scheme: Scheme) -> str:
    assert scheme.noise is not None
    given = {k: v for k, v in scheme.noise.parameters().items() if v is not None and not (k == "delta" and v == 0)}
    return ", ".join(f"{name} = {_short(value)}" for name, value in given.items())


def _sds(sds: Sequence[float]) -> str:
    if len(sds) > 1 and max(sds) - min(sds) <= 1e-12 * max(sds):
        return f"{number(sds[0])} each"
    shown = ", ".join(number(sd) for sd in sds[:6])
    return shown + (f" and {len(sds) - 6} more" if len(sds) > 6 else "")


def as_data(found: Disclosure) -> dict[str, Any]:
    """Everything, as plain values."""
    request, worked, values = found.request, found.worked, found.worked.values
    sample = worked.sample
    data: dict[str, Any] = {
        "table": request.table,
        "rows": {"used": sample.rows, "total": sample.total, "dropped": dict(sample.dropped)},
        "release": dict(worked.section("release")),
        "process": dict(worked.section("process")),
        "noise": dict(worked.section("noise")),
        "loss": worked.measure.loss,
        "convention": worked.measure.convention,
        "target": target_of(worked.process),
        "n": values.n,
        "K": values.K,
        "m": values.m,
        "rank": values.rank,
        "condition": values.condition,
        "utility_cost": float(values.utility_cost[0]),
        "flags": list(values.flags),
        "released": dict(zip(worked.release.names, worked.fitted.estimate.tolist(), strict=True)),
        "queries": [_query(found, i) for i in range(len(worked.queries))],
        "passes": worked.passes,
    }
    if found.family is not None:
        value, bound = found.family.value, found.family.bound
        data["family"] = {
            "gain": value.value,
            "standard_error": value.standard_error,
            "lower": value.lower,
            "upper": value.upper,
            "draws": value.draws,
            "bound": bound.value,
        }
    if len(found.ways) > 1:
        data["processes"] = [
            {
                "process": way.process,
                "n": way.worked.values.n,
                "target": target_of(way.worked.process),
                "sharp": way.worked.values.sharp.tolist(),
                "worst": {"kind": way.value.kind, "value": way.value.value},
            }
            for way in found.ways
        ]
        worst = found.worst
        data["worst_process"] = {
            "process": found.ways[_worst(found)].process,
            "kind": worst.kind,
            "value": worst.value,
            "lower": worst.lower,
            "upper": worst.upper,
        }
    if found.exact is not None:
        exact = found.exact
        data["exact_count"] = (
            {"note": exact}
            if isinstance(exact, str)
            else {
                "ones": exact.ones,
                "gain": exact.gain if exact.reaches else None,
                "sharp": exact.sharp,
                "average": exact.average,
                "average_sharp": exact.average_sharp,
            }
        )
    if request.target is not None:
        data["reach"] = {
            "target": request.target,
            "needed": found.unneeded is None,
            "schemes": [
                {
                    "scheme": s.scheme,
                    "noise": None if s.noise is None else {**s.noise.parameters(), "kind": s.noise.kind},
                    "sharp": s.sharp,
                    "utility_cost": s.utility_cost,
                    "sd": list(s.sds),
                    "reason": s.reason,
                }
                for s in found.schemes
            ],
        }
    data["text"] = " ".join(_verdict(found))
    plain: dict[str, Any] = _plain(data)
    return plain


def _query(found: Disclosure, i: int) -> dict[str, Any]:
    worked, values = found.worked, found.worked.values
    made: dict[str, Any] = {"name": worked.queries[i], "expression": worked.expressions[i]}
    for name in ("p", "s1", "rho2", "gain", "r", "sharp", "correlated", "cauchy_schwarz", "paper"):
        made[name] = float(getattr(values, name)[i])
    made["tau"] = float(values.tau[i]) if worked.measure.loss == "log" else None
    made["constant"] = bool(values.constant[i])
    run = found.simulation
    if run is not None:
        made["simulated"] = {
            "draws": run.draws,
            **{
                name: float(getattr(run, name)[i])
                for name in (
                    "simulated_gain",
                    "simulated_gain_error",
                    "simulated_ratio",
                    "simulated_ratio_error",
                    "cross",
                    "cross_error",
                )
            },
        }
    return made


def _plain(value: Any) -> Any:
    """As JSON has it: no NaN, which stands for what has no value."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
