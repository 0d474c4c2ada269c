"""Lemmas as measurements: in go the names of some and a sample, out come the numbers that the proofs bound.

Always true: a value is exact, or ``lemma_sets`` and ``supremum`` say that it is not, by counts alone: a maximum over
drawn sets or exchanges, and a supremum over some hypotheses, are no more than the true one; ``net_failure`` over drawn
sets is an estimate, and ``swapped_privacy_loss`` with it.
"""

import math
from collections.abc import Callable, Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from predcube.tasks import bounds, lemmas_choices, lemmas_nets, lemmas_subsets, lemmas_uniform
from predcube.tasks.distributions.base import Population
from predcube.tasks.hypotheses.base import ASKING, HypothesisClass
from predcube.tasks.learners.base import Learner, Occupancy
from predcube.tasks.learners.private import Private
from predcube.tasks.learners.private_lwy import PrivateLwy
from predcube.tasks.learners.records import Records
from predcube.tasks.learners.subsample import Subsample
from predcube.tasks.learners.subsampled import Subsampled
from predcube.tasks.mixture.samples import occupied

EXCHANGES = frozenset({"swap_ratio", "swap_ratio_elsewhere"})
NETS = frozenset({"swap_ratio", "swap_ratio_elsewhere", "net_failure", "swapped_privacy_loss"})
SUBSETS = NETS | {"subset_ratio"}
"""Those that look at the drawn records: ``lemma_sets`` says whether at all of them."""
UNIFORM = frozenset({"uniform_deviation", "relabelling_error"})
"""Suprema over H: ``supremum`` says whether they are exact."""
LEMMAS = SUBSETS | UNIFORM

FEW = 10
"""Up to so many points all sets of them are gone through,"""
VISITED = 2.0**28
"""where that takes no more than about this many operations."""

type Streams = Callable[[str], Callable[[], np.random.Generator]]


def unmeasurable(asked: Collection[str], learner: Learner, hypotheses: HypothesisClass, n: int) -> str | None:
    """Why one of the quantities that are asked for has no meaning for this learner, or cannot be had, or None."""
    h, kind = hypotheses, learner.kind
    mine = LEMMAS.intersection(asked)
    for name in sorted(mine & {"net_failure", "swapped_privacy_loss", "swap_ratio_elsewhere"}):
        if not isinstance(learner, Private):
            return f"{name} is of nets of the learner private, not of {kind}"
    if "swap_ratio" in mine and not isinstance(learner, Private | PrivateLwy):
        return f"swap_ratio is of learners that vote on a relabelled sample (private, private_lwy), not of {kind}"
    if "subset_ratio" in mine and not isinstance(learner, PrivateLwy):
        if lemmas_subsets.given(learner, h, n) is None:
            return f"subset_ratio is of learners that weigh the hypotheses of a drawn set of points, not of {kind}"
        if isinstance(learner, Private):
            return h.unlistable(n + 1 if h.domain is None else len(h.domain))
    if "relabelling_error" in mine:
        inner = lemmas_uniform.realizable(learner, n)
        k = n if h.domain is None else len(h.domain)
        if inner.method(h, k=k, n=n, many=lemmas_uniform.PATTERNS) == "mc":
            return f"relabelling_error needs exact answers, and {kind} has none here: lower n or the points"
        if h.domain is None and h.features > 1:
            return f"relabelling_error needs a finite X, a table or the line, not {h.features} real features"
    if mine & EXCHANGES or (mine & NETS and not h.free):
        return h.unlistable(n if h.domain is None else min(n, len(h.domain)))
    return None


def measure(
    asked: Collection[str],
    learner: Learner,
    hypotheses: HypothesisClass,
    population: Population,
    sample: Occupancy,
    *,
    neighbours: int,
    streams: Streams,
) -> Mapping[str, float]:
    """The quantities that are asked for, with ``lemma_sets`` (all 1, drawn 2) and ``supremum`` (exact 1, lower bound 2)
    where they belong. ``streams`` gives the generator of "neighbours" and of "sets"."""
    found: dict[str, float] = {}
    sets = []
    for mine in _families(asked):
        sets.append(all_sets(mine, learner, hypotheses, sample.n, neighbours))
        found |= _of_subsets(mine, learner, hypotheses, sample, sets[-1], neighbours, streams)
    if sets:
        found["lemma_sets"] = 1.0 if all(sets) else 2.0
    suprema: list[lemmas_uniform.Supremum] = []
    if "uniform_deviation" in asked:
        suprema.append(lemmas_uniform.uniform_deviation(hypotheses, population, occupied(sample)))
        found["uniform_deviation"] = suprema[-1].value
    if "relabelling_error" in asked:
        suprema.append(lemmas_uniform.relabelling_error(learner, hypotheses, population, sample))
        found["relabelling_error"] = suprema[-1].value
    if suprema:
        found["supremum"] = 1.0 if all(s.exact for s in suprema) else 2.0
    return found


def _families(asked: Collection[str]) -> list[frozenset[str]]:
    """Those of ``SUBSETS`` that are asked for, by what they go through: whether to go through all of it is decided for
    each apart, so that a value does not depend on what else is measured."""
    mine = (family.intersection(asked) for family in (NETS, frozenset({"subset_ratio"})))
    return [family for family in mine if family]


def _of_subsets(
    asked: Collection[str],
    learner: Learner,
    hypotheses: HypothesisClass,
    sample: Occupancy,
    every: bool,
    neighbours: int,
    streams: Streams,
) -> dict[str, float]:
    found: dict[str, float] = {}
    if isinstance(learner, PrivateLwy):
        assert isinstance(sample, Records)
        for name, of in (("swap_ratio", lemmas_choices.swap_ratio), ("subset_ratio", lemmas_choices.subset_ratio)):
            if name in asked:
                found[name] = of(learner, hypotheses, sample, exact=every, rng=streams("sets"))
        return found
    if "subset_ratio" in asked:
        found["subset_ratio"] = lemmas_subsets.subset_ratio(
            learner,
            hypotheses,
            sample,
            exact=every,
            neighbours=neighbours,
            draws=streams("neighbours"),
            rng=streams("sets"),
        )
    if not NETS.isdisjoint(asked):
        assert isinstance(learner, Private)
        found |= _of_nets(asked, learner, hypotheses, sample, every, streams)
    return found


def _of_nets(
    asked: Collection[str],
    learner: Private,
    hypotheses: HypothesisClass,
    sample: Occupancy,
    every: bool,
    streams: Streams,
) -> dict[str, float]:
    """What the main private learner's proof counts: nets with η the learner's, where ηn ≥ 1."""
    n, size = sample.n, learner._size(sample.n)
    large = learner.eta * n >= 1
    found: dict[str, float] = {}
    ratios: tuple[float, float] | None = None
    swaps = not EXCHANGES.isdisjoint(asked)
    if every:
        k = len(sample.points)
        holds: NDArray[np.bool_] = (
            lemmas_nets.nets_without(hypotheses, sample, learner.eta) if large else np.zeros((k, 2**k), dtype=np.bool_)
        )
        failure = lemmas_nets.net_failure(sample, size, holds)
        ratios = lemmas_subsets.swap_ratios(learner, hypotheses, sample, holds) if swaps else None
    else:
        failure = size / n
        if large and not {"net_failure", "swapped_privacy_loss"}.isdisjoint(asked):
            failure = lemmas_nets.drawn_net_failure(hypotheses, sample, size, learner.eta, streams("sets")())
        if swaps:
            ratios = lemmas_subsets.drawn_swap_ratios(learner, hypotheses, sample, learner.eta, streams("sets")())
    found["net_failure"] = failure
    parts = lemmas_subsets.given(learner, hypotheses, n)
    assert parts is not None
    found["swapped_privacy_loss"] = bounds.swapped_privacy_loss(
        n, size, learner.eta, learner.alpha, failure, parts.spent
    )
    if ratios is not None:
        found["swap_ratio"], found["swap_ratio_elsewhere"] = ratios
    return {name: value for name, value in found.items() if name in asked}


def all_sets(asked: Collection[str], learner: Learner, hypotheses: HypothesisClass, n: int, neighbours: int) -> bool:
    """Whether the drawn records are gone through, and not sampled: by counts alone."""
    h, domain = hypotheses, hypotheses.domain
    k = n if domain is None else min(n, len(domain))
    if isinstance(learner, PrivateLwy):
        choices = lemmas_choices.choices(h, learner, n)
        each = 4.0 * len(domain) ** 2 if domain is not None and "subset_ratio" in asked else 1.0
        return choices <= lemmas_choices.CHOICES and choices * each <= 2.0**15
    if "subset_ratio" in asked:
        if domain is None or len(domain) > FEW:
            return False
        k = len(domain)
    elif k > FEW or (domain is None and h.features > 1):
        return False
    return _sets_operations(asked, learner, h, n, neighbours, 2.0**k) <= VISITED


def operations(asked: Collection[str], learner: Learner, hypotheses: HypothesisClass, n: int, neighbours: int) -> float:
    """Elementary operations, about, of what is asked for."""
    h, domain = hypotheses, hypotheses.domain
    k = n if domain is None else len(domain)
    found = 0.0
    if not UNIFORM.isdisjoint(asked):
        m = 3 * k + 8 if domain is None else k
        labelings = float(h.growth(m) or m**h.vc_dimension + 1)
        found += 1e6 + min(m * labelings, float(lemmas_uniform.LABELS))
        if "relabelling_error" in asked:
            inner = lemmas_uniform.realizable(learner, n)
            patterns = int(min(labelings, lemmas_uniform.PATTERNS))
            method = inner.method(h, k=k, n=n, many=patterns)
            found += inner.operations(h, method, k=k, n=n, many=patterns)[1]
    for mine in _families(asked):
        every = all_sets(mine, learner, h, n, neighbours)
        if isinstance(learner, PrivateLwy):
            choices = lemmas_choices.choices(h, learner, n) if every else float(lemmas_subsets.EXCHANGES)
            found += 20_000.0 * choices * (4.0 * k * k if "subset_ratio" in mine else 1.0)
            continue
        sets = 2.0 ** min(k, n) if every else float(lemmas_subsets.DRAWN)
        found += _sets_operations(mine, learner, h, n, neighbours, sets)
    return found


def _sets_operations(
    asked: Collection[str], learner: Learner, hypotheses: HypothesisClass, n: int, neighbours: int, sets: float
) -> float:
    """Of answers given each of so many sets, and of exchanges between them."""
    h, domain = hypotheses, hypotheses.domain
    k = n if domain is None else len(domain)
    few = min(k, n)
    labelings = float(h.growth(few) or few**h.vc_dimension + 1)
    samples = 1.0
    if "subset_ratio" in asked:
        groups = np.bincount(learner.exchangeable(n))
        samples += float(np.minimum(groups, 2 * k).sum()) * (2 * k - 1) if domain is not None else neighbours
    found = sets * (ASKING + samples * labelings * (3.0 * k + 20.0))
    if not NETS.isdisjoint(asked):
        found += labelings**2 * k + sets * k * k * 4.0 * k
    return found


def bound(name: str, learner: Learner, hypotheses: HypothesisClass, n: int, beta: float) -> float:
    """What is proved of a quantity, NaN where nothing is; of ``uniform_deviation`` with probability 1 − β."""
    if name == "uniform_deviation":
        return _deviation(hypotheses, n, beta)
    if isinstance(learner, PrivateLwy):
        if name == "swap_ratio":
            return bounds.relabelled_swap_ratio_bound(n, learner._size(n), learner.epsilon)
        return math.exp(learner.epsilon) if name == "subset_ratio" else math.nan
    parts = lemmas_subsets.given(learner, hypotheses, n)
    if parts is None:
        return math.nan
    if name == "subset_ratio":
        return math.exp(parts.spent)
    if not isinstance(learner, Private):
        return math.nan
    if name == "swap_ratio":
        return bounds.swap_ratio_bound(learner.eta * n, parts.spent)
    return parts.size / n if name == "net_failure" else math.nan


def _deviation(hypotheses: HypothesisClass, n: int, beta: float) -> float:
    domain = hypotheses.domain
    functions = math.inf
    if domain is not None and (count := hypotheses.growth(len(domain))) is not None:
        functions = math.log(count)
    growth = hypotheses.growth(2 * n)
    if growth is None:
        growth = sum(math.comb(2 * n, i) for i in range(min(2 * n, hypotheses.vc_dimension) + 1))
    return bounds.uniform_deviation_bound(n, beta, functions, min(math.log(growth), functions))


def literal(quantity: str, learner: Learner, n: int) -> float:
    """Stability or privacy loss as Dagan & Feldman 2020 state it, NaN where they do not: n'/n + 2γ of `stable` (Lemma
    stable-main), 2εn'/n of `subsample` over an ε-private learner (Lemma amp-by-subs)."""
    if quantity == "stability" and isinstance(learner, Subsampled) and learner._gamma is not None and not learner.flip:
        gamma = float(learner._gamma)
        return bounds.paper_stability(n, learner._size(n), gamma, "outline" if learner._outline else "proof")
    if quantity == "privacy_loss" and isinstance(learner, Subsample):
        size = learner._size(n)
        inner = learner.learner.guaranteed_privacy_loss(size)
        return bounds.literal_amplified_privacy_loss(inner, size / n) if inner < 1.0 else math.nan
    return math.nan


__all__ = ["LEMMAS", "SUBSETS", "UNIFORM", "all_sets", "bound", "literal", "measure", "operations", "unmeasurable"]
