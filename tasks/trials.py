"""One trial of one cell: in go built objects and a trial's number, out come the numbers that were measured.

Always true: the result is a function of the problem and the trial alone. Data are drawn from a stream of (distribution,
X, n, trial), so learners are compared on the same data; subsets of ``mc`` from one of (n, n', trial); neighbours from
one of their own. Methods follow counts, never the data or a clock.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.tasks import lemmas, nets
from predcube.tasks.audits import audit_sample, audit_size
from predcube.tasks.closed_forms import EXPECTED, expected_errors
from predcube.tasks.distributions.base import Draw
from predcube.tasks.distributions.table import Table
from predcube.tasks.hypotheses.base import HypothesisClass, Representatives
from predcube.tasks.learners.answering import Answers
from predcube.tasks.learners.base import Occupancy, Workload
from predcube.tasks.learners.records import records
from predcube.tasks.mixture import Functional, Means, aimed, evaluate, tally
from predcube.tasks.mixture.base import Mixture
from predcube.tasks.moves import HELD, QUERIES, rows_together
from predcube.tasks.problems import (
    CODES,
    ERRORS,
    MIXED,
    QUANTITIES,
    SETS,
    Problem,
    applicable,
    audit_method_of,
    inapplicable,
    infeasible,
    method_of,
    net_alpha,
    occupied,
    outputs,
)
from predcube.tasks.seeds import Identity, streams

type Measured = Mapping[str, float | NDArray[np.float64]]
"""What one trial gives: a number for each name, or an array over the dimensions that a quantity has of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A trial whose sample is drawn. ``workloads`` are to be evaluated, here or elsewhere, and handed to ``finish``."""

    problem: Problem
    trial: int
    draw: Draw
    sample: Occupancy
    workloads: tuple[Workload, ...]
    functional: Functional

    def finish(self, mixtures: tuple[Mixture, ...]) -> Measured:
        """Every quantity of the problem, with the codes of ``outputs``. Raises ArithmeticError on a NaN."""
        problem = self.problem
        found: dict[str, float | NDArray[np.float64]] = {}
        if self.workloads:
            found |= _errors(problem, self.draw, self.sample, self.functional, mixtures[0])
            # An answer that is no mixture is a plain mean over its subsets: all bear equal shares.
            drawn = getattr(mixtures[0], "effective_subsets", mixtures[0].subsets)
            found["effective_subsets"] = float(drawn) if method_of(problem) == "mc" else math.inf
        if problem.audited:
            found |= _audit(problem, self.trial, self.sample)
        if "growth" in problem.quantities:
            found["growth"] = _growth(problem.hypotheses, self.sample)
        if not SETS.isdisjoint(problem.quantities):
            found |= _sets(problem, self.trial, self.sample)
        if not lemmas.LEMMAS.isdisjoint(problem.quantities):
            found |= _lemmas(problem, self.trial, self.draw, self.sample)
        if not set(EXPECTED).isdisjoint(problem.quantities):
            found |= _expected(problem)
        method = self._method
        found["mixture_method"] = CODES["mixture_method"][method]
        for name, value in found.items():
            if np.isnan(value).any():
                raise ArithmeticError(
                    f"{name} is NaN: {problem.learner.kind} on {problem.hypotheses.kind}, n = {problem.n}, "
                    f"trial {self.trial}, method {method}"
                )
        return {name: found[name] for name in outputs(problem.quantities)}

    @property
    def _method(self) -> str:
        """Of an error's mixture, or of an audit's where no error is measured; closed forms alone are analytic."""
        if self.workloads:
            return method_of(self.problem)
        return audit_method_of(self.problem) if self.problem.audited else "analytic"


@lru_cache(maxsize=256)
def _expected(problem: Problem) -> dict[str, float]:
    """The closed forms, kept for the problem's next trial."""
    return expected_errors(problem.learner, problem.hypotheses, problem.distribution, problem.n)


@lru_cache(maxsize=256)
def _streams(problem: Problem, purpose: str) -> Callable[[int], np.random.Generator]:
    """The streams of a draw for each trial. Data and neighbours go by the law, the X it lives on (a table brings its
    own) and n; subsets by n and n', not by the data."""
    if purpose in ("subsets", "sets"):
        return streams(problem.seed, purpose, problem.n, problem.learner.derived(problem.n).get("subset_size"))
    law: dict[str, Identity] = {"kind": problem.distribution.kind, **problem.distribution.parameters()}
    domain = problem.hypotheses.domain
    x: Identity = None
    if problem.distribution.kind != "table":
        x = {"points": None if domain is None else len(domain), "features": problem.hypotheses.features}
    return streams(problem.seed, purpose, law, x, problem.n)


def prepare(problem: Problem, trial: int) -> Prepared:
    """Draws the sample of a trial and lays out its computations."""
    n = 1 if problem.closed else problem.n
    draw = problem.distribution.draw(problem.hypotheses, n, _streams(problem, "data")(trial))
    sample = records(draw.x, draw.y) if problem.learner.ordered else tally(draw.x, draw.y)
    functional = _ErrorOf(hypotheses=problem.hypotheses, draw=draw)
    workloads: tuple[Workload, ...] = ()
    if not MIXED.isdisjoint(problem.quantities):
        method = method_of(problem)
        seed = _subset_seed(problem, trial) if method == "mc" else None
        if not problem.learner.mixes:
            queries, _ = draw.population.quadrature(problem.hypotheses, sample.points)
            answering = problem.learner.answering(
                problem.hypotheses, sample, queries, method=method, samples=problem.samples, seed=seed
            )
            workloads = (answering,)
        else:
            workload = problem.learner.workload(
                problem.hypotheses,
                sample,
                method=method,
                relative=False,
                samples=problem.samples,
                seed=seed,
            )
            workloads = (aimed(workload, functional, standard_error=problem.standard_error, samples=problem.samples),)
    return Prepared(problem=problem, trial=trial, draw=draw, sample=sample, workloads=workloads, functional=functional)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ErrorOf:
    """L_D(h) as a functional: (M, 1)."""

    hypotheses: HypothesisClass
    draw: Draw

    def __call__(self, representatives: Representatives) -> NDArray[np.float64]:
        return self.draw.population.errors(self.hypotheses, representatives)[:, None]


def measure(problem: Problem, trial: int) -> Measured:
    """All of a trial in this process: the same bits as any fan-out of its workloads. Raises ValueError where a quantity
    cannot be measured here; ``applicable`` leaves those out."""
    without = inapplicable(problem)
    if without:
        reasons: dict[str, list[str]] = {}
        for quantity, reason in without.items():
            reasons.setdefault(reason, []).append(quantity)
        said = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
        raise ValueError(f"cannot be measured here: {said}. Measure applicable(problem), or ask for other quantities")
    prepared = prepare(problem, trial)
    return prepared.finish(tuple(evaluate(w) for w in prepared.workloads))


def operations(problem: Problem) -> Mapping[str, float]:
    """Elementary operations of one trial by kernel: the mixture's under the name of the code that runs, an audit's
    under "audit" and that name, the listing of labelings under "growth". For estimates of cost alone."""
    n, h = problem.n, problem.hypotheses
    k = occupied(problem)
    found: dict[str, float] = {}
    if not set(EXPECTED).isdisjoint(problem.quantities):
        found[f"expected {problem.learner.kind}"] = 2e5 + 50.0 * n  # of a cell's first trial; the others have it then
    if not MIXED.isdisjoint(problem.quantities):
        kernel, count = problem.learner.operations(
            h, method_of(problem), k=k, n=n, relative=False, samples=problem.samples
        )
        found[kernel] = count
        if method_of(problem) in ("enumerate", "mc") and not h.additive:
            found["errors"] = _judged(problem)
    if problem.audited:
        many, points = audit_size(problem.learner, h, n, problem.neighbours)
        kernel, count = problem.learner.operations(
            h, audit_method_of(problem), k=points, n=n, many=many, samples=problem.samples
        )
        found[kernel] = count + 4.0 * many * points * (1 if h.domain is None else points)
    if not lemmas.LEMMAS.isdisjoint(problem.quantities):
        found["lemmas"] = lemmas.operations(problem.quantities, problem.learner, h, n, problem.neighbours)
    if "growth" in problem.quantities:
        found["growth"] = float(k if h.free else k * (h.growth(k) or k**h.vc_dimension + 1))
    if not SETS.isdisjoint(problem.quantities):
        size = min(k, problem.learner.listed(n))
        visited = 2.0**k if nets.exact(k) else float(nets.DRAWN)
        found["labelings"] = visited * h.listing(k, size)
        if "net_probability" in problem.quantities and not h.free:
            rows = float(h.growth(k) or k**h.vc_dimension + 1)
            groups = float(h.growth(size) or size**h.vc_dimension + 1)
            found["nets"] = visited * rows * (20.0 + n / 64 * min(rows, 4.0 * rows / groups))
    return found


def _judged(problem: Problem) -> float:
    """Labels, about, that the error of every hypothesis with weight asks for: most of a short trial on a table."""
    n, h = problem.n, problem.hypotheses
    k = occupied(problem)
    size = min(k, problem.learner.listed(n))
    one, whole = (float(h.growth(m) or m**h.vc_dimension + 1) for m in (size, k))
    visited = problem.samples or 2.0**14
    if method_of(problem) == "enumerate":
        visited = float(math.comb(n, size))
    points = len(problem.distribution.points) if isinstance(problem.distribution, Table) else k
    return min(visited * one, 4.0 * whole) * points


def memory(problem: Problem) -> int:
    """Bytes that one trial takes at its peak, about and rather too many than too few."""
    if problem.closed:
        return 2**22 + 64 * problem.n
    n, h = problem.n, problem.hypotheses
    k = occupied(problem)
    free = h.free and method_of(problem) in ("analytic", "exact")
    labelings = k if free else h.growth(k) or k**h.vc_dimension + 1
    taken = 2**20 + 64 * n + 24 * k * min(labelings, 2**20) + 64 * labelings
    if problem.audited:
        many, points = audit_size(problem.learner, h, n, problem.neighbours)
        queries = points if h.domain is not None else 2 * points + 1
        if h.domain is None and h.features > 1:
            queries = max(QUERIES, 4 * problem.neighbours)
        together = min(many, rows_together(h, points, queries))
        taken += together * (16 * points + 96 * queries) + 32 * min(HELD, together * labelings)
        if audit_method_of(problem) == "support":
            taken += 48 * min(2**21, many * 2**points * labelings)  # the tables of its supports, in its own blocks
    if method_of(problem) in ("enumerate", "mc"):
        # A block of subsets at a time; each batch's sums on a chart, of some k² numbers for the plane.
        size = min(k, problem.learner.listed(n))
        numbers = min(h.growth(k) or k**h.vc_dimension + 1, 2**22) * 4 if h.charted(k, size) else 2**17
        taken += 2**26 + 24 * min(64 * numbers, 2**26)
    return int(taken)


def blocks(problem: Problem) -> int:
    """Blocks of one trial's workloads, all together; 0 where the cell is infeasible. More than there are workloads
    means that a trial can be fanned out."""
    return 0 if infeasible(problem) else sum(w.blocks for w in prepare(applicable(problem), 0).workloads)


def _subset_seed(problem: Problem, trial: int) -> int:
    """The root of a trial's stream of subsets."""
    return int(_streams(problem, "subsets")(trial).integers(2**63))


def _growth(hypotheses: HypothesisClass, sample: Occupancy) -> float:
    """|H_S|: labelings of the sample's distinct points. Those of a free class are not listed."""
    return 2.0 ** len(sample.points) if hypotheses.free else float(len(hypotheses.labelings(sample.points)))


def _sets(problem: Problem, trial: int, sample: Occupancy) -> dict[str, float]:
    """labelings and net_probability over one list of sets T."""
    h = problem.hypotheses
    size = int(problem.learner.derived(problem.n)["subset_size"])
    sets = nets.drawn_sets(sample, size, _streams(problem, "sets")(trial), occupied(problem))
    found = {"subset_sets": float(CODES["subset_sets"]["all" if nets.exact(occupied(problem)) else "drawn"])}
    if "labelings" in problem.quantities:
        found["labelings"] = nets.mean_labelings(h, sample, sets)
    alpha = net_alpha(problem)
    if "net_probability" in problem.quantities and alpha is not None:
        found["net_probability"] = nets.net_probability(h, sample, sets, alpha)
    return found


def _lemmas(problem: Problem, trial: int, draw: Draw, sample: Occupancy) -> Mapping[str, float]:
    """The lemmas' numbers, from streams of their own."""
    return lemmas.measure(
        problem.quantities,
        problem.learner,
        problem.hypotheses,
        draw.population,
        sample,
        neighbours=problem.neighbours,
        streams=lambda purpose: lambda: _streams(problem, purpose)(trial),
    )


def _errors(problem: Problem, draw: Draw, sample: Occupancy, functional: Functional, found_by: Any) -> dict[str, float]:
    """L_D of the randomised prediction, Σ_h w_h L_D(h) (or its sum over answers) and then the flip, and what it has
    above the best of H. ``found_by`` is a ``Mixture`` or ``Answers``."""
    if isinstance(found_by, Answers):
        plain = found_by.error(draw.population.quadrature(problem.hypotheses, sample.points)[1])
    else:
        named = _ErrorOf(hypotheses=problem.hypotheses, draw=draw)
        plain = float(found_by.mean(functional if isinstance(found_by, Means) else named)[0])
    flip = problem.learner.flip
    error = (1 - 2 * flip) * plain + flip
    found = {"error": error}
    if "excess_error" in problem.quantities:
        found["excess_error"] = error - draw.population.least_error(problem.hypotheses)
    return found


def _audit(problem: Problem, trial: int, sample: Occupancy) -> dict[str, float | NDArray[np.float64]]:
    method = audit_method_of(problem)
    found = audit_sample(
        problem.learner,
        problem.hypotheses,
        sample,
        None,
        method=method,
        neighbours=problem.neighbours,
        samples=problem.samples,
        seed=_subset_seed(problem, trial) if method == "mc" else None,
        rng=lambda: _streams(problem, "neighbours")(trial),
    )
    measured: dict[str, float | NDArray[np.float64]] = {
        "stability": found.stability,
        "privacy_loss": found.privacy_loss,
        "audit": CODES["audit"][found.kind],
    }
    if "delta" in problem.quantities:
        measured["delta"] = np.array([found.delta(epsilon) for epsilon in problem.delta_epsilon])
    return measured


__all__ = [
    "CODES",
    "ERRORS",
    "MIXED",
    "QUANTITIES",
    "Measured",
    "Prepared",
    "Problem",
    "applicable",
    "audit_method_of",
    "blocks",
    "inapplicable",
    "infeasible",
    "measure",
    "memory",
    "method_of",
    "operations",
    "outputs",
    "prepare",
]
