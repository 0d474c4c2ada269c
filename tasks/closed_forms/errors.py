"""Each learner's chance of a wrong answer at one point of the cube: in go the point's law and n, out comes Pr[wrong].

The point has probability w, its records carry its label but for noise η, and its label is 1 or 0 with probability ½.
With c records there, s of them more right than wrong, and the representative "0 off T" (so that a learner which knows
nothing of the point is wrong half of the time):

* `stable`, `stable_flip`: E[½ miss(c) + (1 − miss(c)) σ(−βs)], miss(c) = C(n − c, n')/C(n, n');
* `exponential`: E σ(−βs);  `erm`: Pr[s < 0] + ½ Pr[s = 0];
* learners of r chunks: votes are independent, Pr[vote for 1] = u = Pr[s > 0] in a chunk where the label is 1 and
  l = Pr[s < 0] where it is 0; so two sums of two Binomials each, through the learner's own curve of votes;
* `private`: φ depends on h(x) and J, the number of chunks that hold x, alone: ½(1 − E[hit(c) tanh(βs/2)(g(J) − g(0))]);
* `private_lwy`: the score is a sum over points, so that h(x) is right with probability σ((ε/2)·clip(s_W, −τ, τ)),
  τ = t|W|/n' for t drawn records at x; t and s_W are independent, and J given t is an occupancy number;
* `subsample`: a uniform subset of an i.i.d. sample is an i.i.d. sample, so the inner learner's at n'.

`stable_net` has none (its net is chosen greedily over all of T); `two_point` and `df_thresholds` do not run on the cube
of two points or more.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from predcube.tasks.closed_forms import occupancy
from predcube.tasks.closed_forms.counts import TAIL, Law, binomial, margin, window, wrong_choice
from predcube.tasks.distributions.base import Distribution
from predcube.tasks.distributions.symmetric import Point, Symmetric
from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.hypotheses.cube import Cube
from predcube.tasks.learners.base import Learner
from predcube.tasks.learners.chunks import Chunked
from predcube.tasks.learners.df_realizable import log_vote
from predcube.tasks.learners.exponential import Exponential
from predcube.tasks.learners.private import Private
from predcube.tasks.learners.private_lwy import PrivateLwy
from predcube.tasks.learners.subsample import Subsample
from predcube.tasks.learners.subsampled import Subsampled
from predcube.tasks.mixture.analytic import log_missed

EXPECTED = ("expected_error", "expected_excess_error")
"""What ``expected_errors`` gives."""


def expected_errors(
    learner: Learner, hypotheses: HypothesisClass, distribution: Distribution, n: int
) -> dict[str, float]:
    """E_S[L_D] and E_S[L_D] − inf_H L_D over samples of size n and the random labels of the law.

    Absolute error about 1e-13; without noise (and except for `private`) sums of positive terms throughout. Raises
    ValueError with ``unavailable``'s reason.
    """
    reason = unavailable(learner, hypotheses, distribution, n)
    if reason is not None:
        raise ValueError(reason)
    assert isinstance(distribution, Symmetric)
    found = error = 0.0
    for point in distribution.alike(hypotheses):
        excess = (1.0 - 2.0 * point.noise) * wrong(learner, hypotheses, n, point)
        found += point.times * point.weight * excess
        error += point.times * point.weight * (point.noise + excess)
    return {"expected_error": error, "expected_excess_error": found}


def unavailable(learner: Learner, hypotheses: HypothesisClass, distribution: Distribution, n: int) -> str | None:
    """Why there is no closed form, or no learner, or None."""
    if not hypotheses.free:
        return f"closed forms of the expected error are for the cube, not for {hypotheses.kind}; ask for error"
    if not isinstance(distribution, Symmetric):
        return (
            f"closed forms of the expected error need a law of independent points with random labels, not "
            f"{distribution.kind!r}; take lower_bound or agnostic_lower_bound, or ask for error"
        )
    if _form(learner) is None:
        return f"{learner.kind} has no closed form of its expected error; ask for error"
    # Sizes alone: nothing is listed here, and a large cube would be refused for its lists.
    return learner.infeasible(n, Cube(points=2))


def wrong(learner: Learner, hypotheses: HypothesisClass, n: int, point: Point) -> float:
    """Pr[the answer at the point differs from its label], over samples, labels and the learner's own coins."""
    form = _form(learner)
    assert form is not None
    return (1.0 - 2.0 * learner.flip) * form(learner, hypotheses, n, point) + learner.flip


type Form = Callable[[Any, HypothesisClass, int, Point], float]


def _form(learner: Learner) -> Form | None:
    if isinstance(learner, Subsample):
        return _subsample if _form(learner.learner) is not None else None
    if isinstance(learner, Chunked):
        return _chunked
    return FORMS.get(learner.kind)


def _mixture(learner: Subsampled, hypotheses: HypothesisClass, n: int, point: Point) -> float:
    """E[½ miss(c) + (1 − miss(c)) σ(−βs)]."""
    derived = learner.derived(n)
    beta = derived["beta"]
    held = binomial(n, point.weight, *(() if point.noise == 0.0 else (TAIL,)))
    miss = np.exp(log_missed(n, derived["subset_size"], int(held.values[-1])))[held.values]
    if point.noise == 0.0:
        return held.mean(miss / 2 + (1.0 - miss) * wrong_choice(held.values, 0.0, beta))
    # The law of s for the whole, and that of (c, s) only where x may be missed.
    whole = margin(n, point.weight, point.noise)
    last = int(np.searchsorted(-miss, -TAIL))  # miss falls with c
    near = Law(start=held.start, p=held.p[:last])
    away = miss[:last] * (0.5 - wrong_choice(near.values, point.noise, beta))
    return whole.mean(expit(-beta * whole.values)) + near.mean(away)


def _exponential(learner: Exponential, hypotheses: HypothesisClass, n: int, point: Point) -> float:
    law = margin(n, point.weight, point.noise)
    return law.mean(expit(-learner.derived(n)["beta"] * law.values))


def _erm(learner: Learner, hypotheses: HypothesisClass, n: int, point: Point) -> float:
    against, in_favour = _signs(n, point)
    return (1.0 + against - in_favour) / 2 if point.noise else math.exp(n * math.log1p(-point.weight)) / 2


def _signs(n: int, point: Point) -> tuple[float, float]:
    """(Pr[s < 0], Pr[s > 0]) among n records."""
    if point.noise == 0.0:
        return 0.0, occupancy.holding(n, point.weight)
    law = margin(n, point.weight, point.noise)
    return float(law.p[law.values < 0].sum()), float(law.p[law.values > 0].sum())


def _chunked(learner: Chunked, hypotheses: HypothesisClass, n: int, point: Point) -> float:
    r = int(learner.derived(n)["chunks"])
    signs = [_signs(length, point) for (length, _) in occupancy.sizes(n, r)]
    found = 0.0
    for label in (0, 1):
        law = occupancy.votes(n, r, (signs[0][label], signs[1][label]))
        found += law.mean(np.exp(learner._log_answers(law.values)[:, 1 - label])) / 2
    return found


def _private(learner: Private, hypotheses: HypothesisClass, n: int, point: Point) -> float:
    inner = learner._inner(n, hypotheses)
    chunks = learner._chunks(n)
    held = window(binomial(n, point.weight))
    hit = -np.expm1(log_missed(n, inner._size(n), int(held.values[-1])))[held.values]
    # tanh(βs/2) = 1 − 2σ(−βs)
    swayed = hit * (1.0 - 2.0 * wrong_choice(held.values, point.noise, inner._beta))
    curve = np.exp(log_vote(np.arange(chunks + 1), chunks, learner._vote(n))[:, 1])
    gained = occupancy.with_count(n, chunks, point.weight, Law(start=held.start, p=swayed), curve - curve[0])
    return (1.0 - gained) / 2


def _private_lwy(learner: PrivateLwy, hypotheses: HypothesisClass, n: int, point: Point) -> float:
    size, chunks = learner._size(n), learner._chunks
    drawn = window(binomial(size, point.weight))
    curve = np.exp(log_vote(np.arange(chunks + 1), chunks, 1.0)[:, 1])
    gain = occupancy.given_count(n, chunks, int(drawn.values[-1]), curve - curve[0])[drawn.values]
    rest = margin(n - size, point.weight, point.noise)
    sway = _clipped_tanh(rest, learner.epsilon / 2, np.float64((n - size) / size) * drawn.values)
    return (1.0 - drawn.mean(gain * sway)) / 2


def _clipped_tanh(law: Law, beta: float, most: NDArray[np.float64]) -> NDArray[np.float64]:
    """E tanh(β·clip(s, −τ, τ)/2) for each τ of ``most`` ≥ 0."""
    s = law.values
    below = np.concatenate([[0.0], np.cumsum(law.p)])  # Pr[s < start + i]
    inside = np.concatenate([[0.0], np.cumsum(law.p * np.tanh(beta / 2 * s))])
    low, high = np.searchsorted(s, -most, side="left"), np.searchsorted(s, most, side="right")
    beyond = (below[-1] - below[high]) - below[low]
    return np.asarray(inside[high] - inside[low] + beyond * np.tanh(beta / 2 * most))


def _subsample(learner: Subsample, hypotheses: HypothesisClass, n: int, point: Point) -> float:
    return wrong(learner.learner, hypotheses, learner._size(n), point)


FORMS: Mapping[str, Form] = {
    "stable": _mixture,
    "stable_flip": _mixture,
    "exponential": _exponential,
    "erm": _erm,
    "private": _private,
    "private_lwy": _private_lwy,
}
