"""Which way to the weights: in go counts alone, out come operations, a method, and the workload it makes.

Always true: nothing here looks at a clock or at the labels, so a choice is the same on every machine and in a plan as
in a run.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.mixture import analytic, laplace, support
from predcube.tasks.mixture.base import Mixture, Occupancy, Workload
from predcube.tasks.mixture.enumeration import Enumeration
from predcube.tasks.mixture.full import Single
from predcube.tasks.mixture.montecarlo import SAMPLES, MonteCarlo
from predcube.tasks.mixture.samples import occupied
from predcube.tasks.mixture.subsets import countable

type Method = Literal["analytic", "laplace", "support", "enumerate", "mc"]
METHODS: tuple[Method, ...] = get_args(Method.__value__)

EXACT_BUDGET = float(2**33)
"""Elementary operations (about a nanosecond each) that an exact method may take for one data set before ``auto``
samples instead."""
START = 5e4
"""Operations of a mixture besides its sums, when these are few."""


def inapplicable(
    hypotheses: HypothesisClass, method: str, *, k: int, n: int, subset_size: int, weights: bool = False
) -> str | None:
    """Why ``method`` cannot be used on a sample of n examples at k distinct points, or None."""
    if method not in METHODS:
        return f"method {method!r} is unknown; take one of auto, {', '.join(METHODS)}"
    if method == "analytic" and not hypotheses.free:
        return f"analytic has closed forms for the cube, not for {hypotheses.kind}; take auto"
    if method == "analytic" and weights:
        return "analytic gives predictions and errors, not the weight of each function; take support or enumerate"
    if method == "laplace" and not hypotheses.additive:
        return f"laplace needs a class with one hypothesis a point, which {hypotheses.kind} is not; take auto"
    if method == "support" and k > support.LARGEST:
        return f"support sums over 2^{k} sets of points, at most 2^{support.LARGEST}; take another method"
    if method == "enumerate" and not countable(n, subset_size):
        return f"enumerate would visit C({n}, {subset_size}) > 2^63 subsets; take laplace or support, or mc"
    return None


def kernel(hypotheses: HypothesisClass, method: str) -> str:
    """The name of the code that a method runs for this class: operations of one kernel take one time each, so that
    seconds per operation can be measured kernel by kernel."""
    if method not in ("enumerate", "mc", "support"):
        return method
    return f"{method}_{'additive' if hypotheses.additive else hypotheses.kind}"


def operations(
    hypotheses: HypothesisClass,
    method: str,
    *,
    k: int,
    n: int,
    subset_size: int,
    beta: float,
    relative: bool = True,
    samples: int | None = None,
    shared: bool = False,
) -> float:
    """Elementary operations of one mixture on k distinct points by ``method``: a count for choosing and planning, inf
    where the method does not apply. ``shared``: it is the first of many on these points, which keep one list."""
    if inapplicable(hypotheses, method, k=k, n=n, subset_size=subset_size) is not None:
        return math.inf
    if method == "analytic":
        return 16.0 * k
    if method == "laplace":
        return _laplace(k, n, subset_size, beta, relative)
    if method == "support":
        chances = 0.4 * 2.0 ** (k - k // 2) * subset_size * min(subset_size, math.ceil(n / k))
        chances += 2.0**k * 0.12 * subset_size
        if hypotheses.additive:
            return START / 2 + chances + 8.0 * 2.0**k
        most = min(k, subset_size)
        # Many samples share one list of what each set tells apart; one sample goes by the chart where there is one.
        charted = hypotheses.charted(k, most) and not shared
        each = hypotheses.listing if charted else partial(HypothesisClass.listing, hypotheses)
        asking = sum(math.comb(k, t) * each(k, t) for t in range(1, (most if charted else k) + 1))
        if charted:
            return 2e5 + 5000.0 * k * k + chances + 10.0 * k * 2.0**k + asking
        return 2e5 + chances + 10.0 * k * 2.0**k + asking
    visited = float(math.comb(n, subset_size)) if method == "enumerate" else float(samples or SAMPLES)
    if hypotheses.additive and method == "enumerate":
        return START + 4.0 * visited
    listing = hypotheses.listing(k, min(k, subset_size))
    # A chart's tables and the arrays of sums over its numbers, however few subsets there are.
    tables = 5000.0 * k * k if not hypotheses.additive and hypotheses.charted(k, min(k, subset_size)) else 0.0
    return tables + visited * (20.0 * subset_size + listing * _distinct_share(hypotheses, visited, k, subset_size))


def _distinct_share(hypotheses: HypothesisClass, visited: float, k: int, subset_size: int) -> float:
    """Of the sets of points that are visited together, how many are listed: one of each, where repetitions are met."""
    if k > 64 and hypotheses.charted(k, min(k, subset_size)):
        return 1.0
    sets = sum(math.comb(k, j) for j in range(1, min(k, subset_size) + 1)) if k < 64 else math.inf
    return min(1.0, sets / min(visited, 2.0**14))


def _laplace(k: int, n: int, subset_size: int, beta: float, relative: bool) -> float:
    # Losses of different hypotheses are taken to differ by up to n/2: log Z ranges over β·n/2.
    nodes = 32.0 + 4.0 * (beta * n / 2 + math.log1p(subset_size))
    if not relative:
        nodes = min(nodes, 250.0)
    if subset_size <= laplace.SMALL:
        return START + nodes * (8.0 * k + 1.2 * n * subset_size)
    angles = 15.0 if k > n / 2 else 9.0 + 4.3 * math.sqrt(subset_size)
    # Points of equal loss and count are merged: about a third is left where all points are distinct.
    merged = k / 3 if k > n / 2 else float(k)
    between = min(merged, 43.0 / beta) if beta > 0 else merged
    return START + nodes * (3000.0 + between * angles * (6.0 if k > n / 2 else 10.0))


def affordable(exact: float, sampled: float) -> bool:
    """Whether ``auto`` takes an exact method of so many operations for samples that are predicted together: within
    ``EXACT_BUDGET``, or no more than sampling would take.

    >>> affordable(1e9, 1e6), affordable(1e12, 1e13), affordable(1e12, 1e11), affordable(math.inf, math.inf)
    (True, True, False, False)
    """
    return exact < math.inf and exact <= max(EXACT_BUDGET, sampled)


def choose_method(
    hypotheses: HypothesisClass, *, k: int, n: int, subset_size: int, beta: float, weights: bool = False
) -> str:
    """The cheapest exact method for n examples at k distinct points within ``EXACT_BUDGET`` operations, else "mc".

    ``weights``: the weight of every function is wanted, so that marginals (analytic) will not do.
    """
    exact = [m for m in METHODS if m != "mc" and not (weights and m == "analytic")]
    cost = {m: operations(hypotheses, m, k=k, n=n, subset_size=subset_size, beta=beta) for m in exact}
    best = min(exact, key=cost.__getitem__)
    return best if cost[best] <= EXACT_BUDGET else "mc"


def subset_mixture(
    hypotheses: HypothesisClass,
    sample: Occupancy,
    *,
    subset_size: int,
    beta: float,
    method: str = "auto",
    relative: bool = True,
    samples: int | None = None,
    seed: int | None = None,
    weights: bool = False,
) -> Workload:
    """The mixture of theory's central object: draw I of n' = ``subset_size`` examples uniformly without replacement, T
    their set of points, then h ∈ H_T with probability ∝ exp(−β·n·L_S(h)); w_h = E_I[1{h ∈ H_T}·λ_h/Z_I].

    ``method`` is auto or one of ``METHODS``; ``relative=False`` lets ``laplace`` keep absolute accuracy of the weights
    only (10 to 50 % faster, not for logs); ``samples`` and ``seed`` are for mc (defaults ``SAMPLES`` and 0), ``seed``
    being the root of the subsets' streams: give another for each trial. ``weights`` as for ``choose_method``.

    Raises ValueError where n' is not in [1, n], β < 0, or the method does not apply. Source: Dagan & Feldman 2020,
    section 3.
    """
    sample = occupied(sample)
    k, n = len(sample.points), sample.n
    if not 1 <= subset_size <= n:
        raise ValueError(f"subset size {subset_size} must lie in [1, n] with n = {n}; change it or n")
    if not 0.0 <= beta < math.inf:
        raise ValueError(f"beta {beta} must be finite and not negative")
    if method == "auto":
        method = choose_method(hypotheses, k=k, n=n, subset_size=subset_size, beta=beta, weights=weights)
    reason = inapplicable(hypotheses, method, k=k, n=n, subset_size=subset_size, weights=weights)
    if reason is not None:
        raise ValueError(reason)
    if method == "mc":
        return MonteCarlo(
            hypotheses=hypotheses,
            sample=sample,
            subset_size=subset_size,
            beta=beta,
            samples=SAMPLES if samples is None else samples,
            seed=0 if seed is None else seed,
        )
    if method == "enumerate":
        return Enumeration(hypotheses=hypotheses, sample=sample, subset_size=subset_size, beta=beta)
    cost = operations(hypotheses, method, k=k, n=n, subset_size=subset_size, beta=beta, relative=relative)
    compute: Callable[[], Mixture]
    if method == "analytic":
        compute = partial(analytic.subset_marginals, hypotheses, sample, subset_size=subset_size, beta=beta)
    elif method == "laplace":
        compute = partial(laplace.weights, hypotheses, sample, subset_size=subset_size, beta=beta, relative=relative)
    else:
        compute = partial(support.weights, hypotheses, sample, subset_size=subset_size, beta=beta)
    return Single(compute=compute, cost=cost)
