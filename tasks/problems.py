"""What a trial is asked: in go built objects and names of quantities, out comes which of them can be measured, and how.

Always true: whether a quantity can be had, and by what method, follows from counts, never from the data or a clock; and
for each quantity as if it were the only one that is asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from predcube.tasks import lemmas
from predcube.tasks.audits import audit_size
from predcube.tasks.closed_forms import EXPECTED, unavailable
from predcube.tasks.distributions.base import Distribution
from predcube.tasks.distributions.populations import FINITE
from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.learners.base import Learner

ERRORS = frozenset({"error", "excess_error"})
MIXED = ERRORS | {"effective_subsets"}
"""What the mixture on the sample itself gives, without an audit."""
AUDITS = frozenset({"stability", "privacy_loss", "delta"})
SETS = frozenset({"labelings", "net_probability"})
QUANTITIES = (
    "error",
    "excess_error",
    "stability",
    "privacy_loss",
    "delta",
    "growth",
    "labelings",
    "net_probability",
    "effective_subsets",
    *sorted(lemmas.LEMMAS),
    *EXPECTED,
)
"""What a trial can measure. Those of ``EXPECTED`` are the same in every trial."""

CODES: Mapping[str, Mapping[str, int]] = {
    "mixture_method": {"analytic": 1, "laplace": 2, "support": 3, "enumerate": 4, "mc": 5, "exact": 6},
    "audit": {"exhaustive": 1, "lower bound": 2, "estimate": 3, "exhaustive over order cells": 4},
    "subset_sets": {"all": 1, "drawn": 2},
    "lemma_sets": {"all": 1, "drawn": 2},
    "supremum": {"exact": 1, "lower bound": 2},
}
"""How a value was obtained, as small integers beside it; 0 is kept for missing. ``mixture_method`` is the way the
mixture of an error was computed, or of an audit where no error is measured ("exact": the learner has one way only);
``audit`` says how far stability, privacy loss and delta go; ``subset_sets`` whether labelings and net_probability are
over all sets T or over some that were drawn, ``lemma_sets`` the same of the lemmas about drawn records; ``supremum``
whether those about all hypotheses at once are exact."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """What every trial of a cell shares. Compared by identity, so that what follows from it is worked out once.

    ``samples`` are the subsets of ``mc`` (None: its own default), ``neighbours`` the most that an audit tries where X
    is not finite. ``standard_error``: mc draws until that of a trial's error is this small, ``samples`` being then the
    most it may draw. ``net_alpha``: the α of net_probability (None: the learner's own). ``delta_epsilon``: the ε at
    which delta is measured.
    """

    hypotheses: HypothesisClass
    distribution: Distribution
    learner: Learner
    n: int
    quantities: tuple[str, ...]
    seed: int
    method: str = "auto"
    samples: int | None = None
    neighbours: int = 64
    standard_error: float | None = None
    net_alpha: float | None = None
    delta_epsilon: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for q in self.quantities:
            if q not in QUANTITIES:
                raise ValueError(f"there is no quantity {q!r}: there are {', '.join(QUANTITIES)}")
        if "delta" in self.quantities and not self.delta_epsilon:
            raise ValueError("delta is measured at delta_epsilon, which is empty: give at least one ε")

    @property
    def audited(self) -> bool:
        return not AUDITS.isdisjoint(self.quantities)

    @property
    def closed(self) -> bool:
        """Whether closed forms are all that is wanted: no sample is then looked at."""
        return frozenset(EXPECTED).issuperset(self.quantities)


@lru_cache(maxsize=256)
def outputs(quantities: tuple[str, ...]) -> tuple[str, ...]:
    """The names that ``measure`` returns, in order: the quantities, then the codes of ``CODES`` that go with them."""
    codes = ["mixture_method"] if not (MIXED | AUDITS | set(EXPECTED)).isdisjoint(quantities) else []
    if not AUDITS.isdisjoint(quantities):
        codes.append("audit")
    if not SETS.isdisjoint(quantities):
        codes.append("subset_sets")
    if not lemmas.SUBSETS.isdisjoint(quantities):
        codes.append("lemma_sets")
    if not lemmas.UNIFORM.isdisjoint(quantities):
        codes.append("supremum")
    return (*quantities, *codes)


@lru_cache(maxsize=256)
def inapplicable(problem: Problem) -> Mapping[str, str]:
    """Why each of the quantities that cannot be measured in this cell cannot be; empty where all can. Infeasible is not
    failed."""
    outside = _outside(problem)
    if outside:
        return dict.fromkeys(problem.quantities, outside)
    reasons = {q: _why_not(problem, q) for q in problem.quantities}
    return {q: reason for q, reason in reasons.items() if reason}


@lru_cache(maxsize=256)
def applicable(problem: Problem) -> Problem:
    """The problem of those quantities that can be measured: the same object where all can, of no quantity where none
    can."""
    without = inapplicable(problem)
    if not without:
        return problem
    return replace(problem, quantities=tuple(q for q in problem.quantities if q not in without))


def infeasible(problem: Problem) -> str | None:
    """Why nothing can be measured in this cell, or None."""
    without = inapplicable(problem)
    if len(without) < len(problem.quantities):
        return None
    reasons = dict.fromkeys(without.values())
    # What stops the learner says more than what each quantity would lack besides.
    if len(reasons) > 1 and (unfit := _unrunnable(problem)) in reasons:
        return unfit
    return "; ".join(reasons) or _outside(problem)


def _outside(problem: Problem) -> str | None:
    """Why there is no sample, or None."""
    return problem.distribution.unsuitable(problem.hypotheses) or problem.distribution.infeasible(problem.n)


def _why_not(problem: Problem, quantity: str) -> str | None:
    """Why one quantity cannot be measured, or None."""
    learner, h, n = problem.learner, problem.hypotheses, problem.n
    if quantity in EXPECTED:
        return unavailable(learner, h, problem.distribution, n)
    return (
        _unrunnable(problem)
        or _without_sets(problem, quantity)
        or lemmas.unmeasurable((quantity,), learner, h, n)
        or (_unanswered(problem) if quantity in MIXED else None)
        or _unlistable(problem, whole=quantity in ("growth", "net_probability"))
        or _without_method(problem, audited=quantity in AUDITS)
    )


@lru_cache(maxsize=256)
def _unrunnable(problem: Problem) -> str | None:
    return problem.learner.infeasible(problem.n, problem.hypotheses)


@lru_cache(maxsize=256)
def _without_method(problem: Problem, *, audited: bool) -> str | None:
    """Why the method that was asked for cannot be used on the points that a computation meets, or None."""
    learner, h, n = problem.learner, problem.hypotheses, problem.n
    # An audit's samples share their points.
    shared = audit_size(learner, h, n, problem.neighbours)[1] if audited else 0
    return learner.inapplicable(h, k=max(occupied(problem), shared), n=n, asked=problem.method)


def _without_sets(problem: Problem, quantity: str) -> str | None:
    """Why labelings or net_probability has no meaning here, or None."""
    if quantity in SETS and "subset_size" not in problem.learner.derived(problem.n):
        return f"{quantity} is of a learner's random subset, and {problem.learner.kind} draws none"
    if quantity == "net_probability" and net_alpha(problem) is None:
        return "net_probability needs an alpha, which this learner has not: set measure.net_alpha"
    return None


def net_alpha(problem: Problem) -> float | None:
    """The α of net_probability."""
    own = problem.learner.parameters().get("alpha")
    return problem.net_alpha if problem.net_alpha is not None else own


def _unanswered(problem: Problem) -> str | None:
    """Why the error of a learner that is no mixture of hypotheses cannot be measured, or None."""
    h = problem.hypotheses
    if problem.learner.mixes or h.domain is not None or h.features == 1:
        return None
    if problem.distribution.kind == "table":
        return None
    return (
        f"{problem.learner.kind} is no mixture of hypotheses, and {h.features} real features have no pieces; {FINITE}"
    )


def _unlistable(problem: Problem, *, whole: bool) -> str | None:
    """Why the labelings that a trial lists, of T or of the ``whole`` sample, may not fit memory, or None."""
    h = problem.hypotheses
    if h.free or h.additive:
        return None
    k = occupied(problem)
    return h.unlistable(k if whole else min(k, problem.learner.listed(problem.n)))


def occupied(problem: Problem) -> int:
    """The most distinct points that a sample has."""
    domain = problem.hypotheses.domain
    return problem.n if domain is None else min(problem.n, len(domain))


@lru_cache(maxsize=256)
def method_of(problem: Problem) -> str:
    """How the mixture is computed: analytic, laplace, support, enumerate, mc or exact. By counts alone, with as many
    distinct points as a sample can have."""
    if problem.closed:
        return "analytic"
    k = occupied(problem)
    return problem.learner.method(problem.hypotheses, k=k, n=problem.n, asked=problem.method)


@lru_cache(maxsize=256)
def audit_method_of(problem: Problem) -> str:
    """The same for an audit, whose many samples share their points and so their tables."""
    many, k = audit_size(problem.learner, problem.hypotheses, problem.n, problem.neighbours)
    return problem.learner.method(problem.hypotheses, k=k, n=problem.n, asked=problem.method, many=many)
