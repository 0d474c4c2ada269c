"""What a release of one table discloses, as a command line asks it: in go texts, out comes everything about one cell.

Beside the values of theory F stand, where they are asked for or make sense, the worst of several queries, the exact
value of a released count, a simulated attacker, and the noise that reaches a target by every scheme. Always true: each
number is called exact, a bound or an estimate.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from predcube.pipeline.answering import NOTHING_SAID, Refused, Worked, work
from predcube.pipeline.failures import BadInput
from predcube.pipeline.frontier import Line, Scheme, lines, schemes_at
from predcube.pipeline.shelf import Shelf
from predcube.pipeline.spec.grammar import TABULAR
from predcube.pipeline.spec.inline import inline
from predcube.pipeline.spec.mistakes import SHOWN
from predcube.pipeline.spec.schemas import table_of
from predcube.pipeline.summaries import Say
from predcube.storage.expressions import columns_of
from predcube.storage.failures import StoreError
from predcube.tasks.attackers import Simulation
from predcube.tasks.families import DRAWS, FamilyValue, finite_family, finite_family_bound, worst_process
from predcube.tasks.finite_counts import CountNoise, FiniteCount, finite_count
from predcube.tasks.noises.laplace import Laplace
from predcube.tasks.processes.random_shard import RandomShard
from predcube.tasks.releases.statistics import Count, Statistic
from predcube.tasks.seeds import stream

COUNTED = 2 * 10**7
"""N·n up to which the exact value of a count is worked out; with noise a twentieth of it."""

FAMILY_WORK = 2**30
"""Draws times squared queries of a family, about, so that many queries take fewer draws."""

_NAMED = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)\s*(\S.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked. queries: texts [NAME=]EXPR or tables {…}; release, processes, noise: KIND:param=value,… . target:
    a sharp value to be reached by noise. simulate: draws of an attacker. ``curves``: whether whole frontiers are
    wanted."""

    table: str
    queries: tuple[str, ...]
    release: str
    processes: tuple[str, ...]
    noise: str = "none"
    loss: str = "squared"
    tau: float | None = None
    convention: str = "corrected"
    target: float | None = None
    simulate: int | None = None
    seed: int = 0
    curves: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The worst of several queries, chosen after the draw."""

    value: FamilyValue
    bound: FamilyValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """A released count of the query itself, at N rows. ones: k of the table; gain, sharp: at it, in units of the loss;
    average, average_sharp: over counts that are all as likely. reaches: whether the gain at k could be worked out."""

    ones: int
    gain: float
    sharp: float
    average: float
    average_sharp: float
    reaches: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One of several processes. value: of the query that gains most, or of the family's worst."""

    process: str
    worked: Worked
    family: Family | None
    value: FamilyValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """Everything, of the process under which most is gained; ``ways`` has all of them, ``worst`` the most.

    ``exact``, or why it is left out where one would expect it; ``schemes``, ``lines``: of a target and of a figure;
    ``unneeded``: why no noise reaches the target because none is needed.
    """

    request: Request
    worked: Worked
    ways: tuple[Way, ...]
    worst: FamilyValue
    family: Family | None
    exact: Exact | str | None
    simulation: Simulation | None
    schemes: tuple[Scheme, ...]
    unneeded: str | None
    lines: tuple[Line, ...]


def disclose(
    request: Request, *, say: Say = NOTHING_SAID, report: Callable[[int, int], None] = lambda done, parts: None
) -> Disclosure:
    """Raises ``BadInput`` with every mistake in the request, or the one that the table or the cell shows."""
    if request.target is not None and not (math.isfinite(request.target) and request.target > 0):
        raise BadInput(f"--target {request.target:g}: give a sharp value above 0")
    shelf = Shelf()
    ways = {}
    for text, spec in _specs(request).items():
        try:
            worked = work(spec, named=_option, say=say, report=report, shelf=shelf)
        except Refused as e:
            raise Refused(f"{text}: {e}" if len(request.processes) > 1 else str(e)) from e
        family = _family(worked, request) if len(worked.queries) > 1 else None
        most = FamilyValue.known("exact", float(np.max(worked.values.sharp)))
        ways[text] = Way(process=text, worked=worked, family=family, value=most if family is None else family.value)
    name, worst = worst_process({text: way.value for text, way in ways.items()})
    worked = ways[name].worked
    if request.simulate is not None:
        say(f"{request.table}: running the attacker {request.simulate:,} times")
    simulation = worked.simulation() if request.simulate is not None else None
    bare = float(np.max(worked.gains.values(worked.process, _no_noise(), worked.measure).sharp))
    schemes: tuple[Scheme, ...] = ()
    unneeded = None
    if request.target is not None and request.target >= bare:
        unneeded = f"without noise the sharp value is {bare:.4g}, not above {request.target:g}: no noise is needed"
    elif request.target is not None:
        schemes = schemes_at(worked, request.target)
    return Disclosure(
        request=request,
        worked=worked,
        ways=tuple(ways.values()),
        worst=worst,
        family=ways[name].family,
        exact=_exact(worked),
        simulation=simulation,
        schemes=schemes,
        unneeded=unneeded,
        lines=lines(worked, bare) if request.curves and bare > 0 else (),
    )


def _no_noise() -> Any:
    return TABULAR.kinds("noise")["none"]()


def _specs(request: Request) -> dict[str, dict[str, Any]]:
    """The request as a spec for each process. Raises ``BadInput`` where a text cannot be read."""
    wrong: list[str] = []

    def read(role: str, text: str) -> dict[str, Any]:
        try:
            return inline(text, TABULAR.kinds(role))
        except ValueError as e:
            wrong.append(f"--{role}: {e}")
            return {}

    release, noise = read("release", request.release), read("noise", request.noise)
    processes = {text: read("process", text) for text in request.processes}
    if wrong:
        raise BadInput("\n".join(wrong))
    measure: dict[str, Any] = {"loss": request.loss, "convention": request.convention, "quantities": ["sharp"]}
    if request.tau is not None:
        measure["tau"] = request.tau
    queries = _queries(request)
    if len(queries) > 1 or any(isinstance(q, Mapping) for q in queries.values()):
        measure["quantities"] += ["family_gain"]
    if request.simulate is not None:
        measure["quantities"] += ["simulated_gain"]
        measure["draws"] = request.simulate
    shared = {
        "kind": "predictability",
        "seed": request.seed,
        "table": {"path": request.table},
        "query": queries,
        "release": release,
        "noise": noise,
        "measure": measure,
    }
    return {text: {**shared, "process": process} for text, process in processes.items()}


def _queries(request: Request) -> dict[str, Any]:
    """Queries by name. A text is NAME=EXPR where NAME is no column and EXPR an expression of some column; else it is an
    expression, and its own name."""
    try:
        columns = {name.casefold() for name in table_of({"path": request.table}, ".").schema.names}
    except StoreError as e:
        raise BadInput(str(e)) from e
    found: dict[str, Any] = {}
    for text in request.queries:
        if text.lstrip().startswith("{"):
            try:
                members = inline(text)
            except ValueError as e:
                raise BadInput(f"--query: {e}") from e
        else:
            match = _NAMED.fullmatch(text)
            named = match is not None and match[1].casefold() not in columns and _reads(match[2])
            members = {match[1]: match[2]} if match is not None and named else {text.strip(): text}
        for name, value in members.items():
            if name in found:
                raise BadInput(f"--query {name!r} stands twice; rename one of them, as in NAME={text}")
            found[name] = value
    return found


def _reads(expression: str) -> bool:
    """Whether a text is an expression of some column."""
    try:
        return bool(columns_of(expression))
    except StoreError:
        return True  # it will be refused by name


def _option(place: str) -> str:
    """A place in a spec as the command line has it."""
    first, _, rest = place.partition(".")
    match first:
        case "table":
            return "TABLE"
        case "query":
            return f"--query {rest if len(rest) <= SHOWN else rest[: SHOWN - 1] + '…'}".rstrip()
        case "measure" if rest == "draws":
            return "--simulate"
        case "measure":
            return f"--{rest}"
        case "release" | "process" | "noise":
            return f"--{first} {rest}".rstrip()
        case _:
            return f"--{place}"


def _family(worked: Worked, request: Request) -> Family:
    """E max over the queries, and the bound of it."""
    law, process = worked.gains.law, worked.process
    gain = worked.gains.gain_matrix(process, worked.noise, worked.measure)
    scale = process.factors(law).K
    bend, smooth, _ = worked.measure.curvatures(law)
    size = len(worked.queries)
    draws = max(min(DRAWS, FAMILY_WORK // size**2), 1000)
    rng = stream(request.seed, "family", json.dumps([process.key, worked.section("noise"), worked.expressions]))
    assert law.joint is not None
    try:
        value = finite_family(law.joint, gain, K=scale, curvature=bend, rng=rng, draws=draws)
    except ValueError as e:
        raise Refused(str(e)) from e
    bound = finite_family_bound(law.s1, np.diag(gain), K=scale, H=float(np.max(smooth)))
    return Family(value=value, bound=bound)


def _exact(worked: Worked) -> Exact | str | None:
    """The exact value where one number is released that is the count, or the share, of the rows where the query
    holds."""
    release, process = worked.release, worked.process
    if not isinstance(release, Statistic) or len(release.columns) != 1 or len(worked.queries) != 1:
        return None
    if not worked.gains.law.binary[0] or not isinstance(process, RandomShard) or process.target != "unseen":
        return None
    if worked.measure.convention != "corrected" or worked.values.constant[0]:
        return None
    law, rows = worked.gains.law, worked.sample.rows
    if worked.values.rho2[0] < 1 - 1e-9:
        return None
    # The released column is then an affine function of the query: so much does one row more change the release.
    slope = abs(float(law.cross[0, 0] / law.s1[0]))
    per_row = slope * (1.0 if isinstance(release, Count) else 1.0 / rows)
    held = round(worked.values.n)
    sd = math.sqrt(float(worked.gains.covariance(process, worked.noise, worked.measure)[0, 0])) / per_row
    noise = CountNoise()
    if sd > 0:
        laplace = isinstance(worked.noise, Laplace)
        noise = CountNoise(kind="laplace" if laplace else "gaussian", scale=sd / math.sqrt(2) if laplace else sd)
    most = COUNTED if noise.negligible else COUNTED // 20
    if rows * held > most:
        return f"left out: N·n = {rows * held:.2g} is more than {most:.0e} steps"
    found: FiniteCount = finite_count(rows=rows, held=held, noise=noise, loss=worked.measure.loss)
    ones = round(float(worked.values.p[0]) * rows)
    return Exact(
        ones=ones,
        gain=float(found.gain[ones]) if found.resolved[ones] else math.nan,
        sharp=float(found.sharp[ones]),
        average=found.average,
        average_sharp=found.average_sharp,
        reaches=bool(found.resolved[ones]),
    )
