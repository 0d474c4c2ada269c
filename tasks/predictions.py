"""One learner on one sample: in go x, y and queries, out come the mixture's weights and the predictions p_S.

Always true: log p and log(1 − p) are each a sum of their own hypotheses' weights, so neither is lost where the other
is near 1; a prediction that no hypothesis makes has log-probability −∞ exactly.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predcube.tasks import mixture
from predcube.tasks.answers import flipped
from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.hypotheses.points import finite_points, real_points
from predcube.tasks.learners.answering import Answers
from predcube.tasks.learners.base import Learner, MixtureWeights, Occupancy, Points, Prediction
from predcube.tasks.learners.records import records


def mixture_weights(
    learner: Learner,
    hypotheses: HypothesisClass,
    x: ArrayLike,
    y: ArrayLike,
    method: str = "auto",
    samples: int | None = None,
    seed: int | None = None,
) -> MixtureWeights:
    """The weights w_h of ``learner`` on the sample (x, y), before any flip; w ≥ 0, Σ w = 1.

    ``x`` (n,) or (n, features) of points of X, ``y`` (n,) of 0 and 1. ``method`` is auto, analytic, laplace, support,
    enumerate or mc; ``samples`` and ``seed`` are for mc, whose weights carry standard errors. The closed form
    ``analytic`` knows p_S and no weights: where it is asked for they come by ``support``, as the result's ``method``
    says.

    Raises ValueError for a malformed sample, a learner that is infeasible at this n (with the reason) and a method
    that does not apply to the class. Source: Dagan & Feldman 2020, section 3.
    """
    if not learner.mixes:
        raise ValueError(f"{learner.kind} is no mixture of hypotheses, so there are no weights; ask for predictions")
    sample = checked_sample(hypotheses, x, y, ordered=learner.ordered)
    check_feasible(learner, hypotheses, sample.n)
    asked = "support" if method == "analytic" and hypotheses.free else method
    work = learner.workload(hypotheses, sample, method=asked, samples=samples, seed=seed, weights=True)
    found = mixture.evaluate(work)
    assert isinstance(found, MixtureWeights)
    return found


def predict(
    learner: Learner,
    hypotheses: HypothesisClass,
    x: ArrayLike,
    y: ArrayLike,
    queries: ArrayLike,
    method: str = "auto",
    samples: int | None = None,
    seed: int | None = None,
) -> Prediction:
    """p_S(q) = Pr[A^S(q) = 1] at each of ``queries`` (Q,) or (Q, features), with its log-probabilities.

    Arguments and errors as for ``mixture_weights``. ``standard_error`` is of p, and 0 where the method is exact.
    """
    at = checked_points(hypotheses, queries)
    sample = checked_sample(hypotheses, x, y, ordered=learner.ordered)
    check_feasible(learner, hypotheses, sample.n)
    if not learner.mixes:
        return _answered(learner, hypotheses, sample, at, method, samples, seed)
    work = learner.workload(hypotheses, sample, method=method, samples=samples, seed=seed)
    aimed = mixture.aimed(work, mixture.Labels(hypotheses=hypotheses, queries=at))
    plain = mixture.evaluate(aimed).predict(hypotheses, at)
    logs = flipped(np.stack([plain.log_p0, plain.log_p1], axis=-1), learner.flip)
    return Prediction(
        p=np.exp(logs[:, 1]),
        log_p1=logs[:, 1],
        log_p0=logs[:, 0],
        standard_error=(1 - 2 * learner.flip) * plain.standard_error,
        method=plain.method,
    )


def _answered(
    learner: Learner,
    hypotheses: HypothesisClass,
    sample: Occupancy,
    queries: Points,
    method: str,
    samples: int | None,
    seed: int | None,
) -> Prediction:
    """``predict`` of a learner that is no mixture."""
    check_applicable(learner, hypotheses, len(sample.points), sample.n, method)
    work = learner.answering(hypotheses, sample, queries, method=method, samples=samples, seed=seed)
    found: Any = mixture.evaluate(work)
    assert isinstance(found, Answers)
    logs = flipped(found.log_p, learner.flip)
    return Prediction(
        p=np.exp(logs[:, 1]),
        log_p1=logs[:, 1],
        log_p0=logs[:, 0],
        standard_error=(1 - 2 * learner.flip) * found.standard_error,
        method=found.method,
    )


def check_feasible(learner: Learner, hypotheses: HypothesisClass, n: int) -> None:
    """Raises ValueError with the reason where the learner cannot run at n."""
    reason = learner.infeasible(n, hypotheses)
    if reason is not None:
        raise ValueError(f"{learner.kind} is infeasible at n = {n}: {reason}")


def check_applicable(learner: Learner, hypotheses: HypothesisClass, k: int, n: int, method: str) -> None:
    """Raises ValueError with the reason where the method asked for cannot be used on k points."""
    reason = learner.inapplicable(hypotheses, k=k, n=n, asked=method)
    if reason is not None:
        raise ValueError(f"{learner.kind}, n = {n}, {k} points: {reason}")


def checked_points(hypotheses: HypothesisClass, points: ArrayLike) -> Points:
    """Points of this class's X as an array, one zero, no NaN. Raises ValueError that names the first wrong one."""
    domain = hypotheses.domain
    if domain is not None:
        return finite_points(points, int(domain[-1].max()) + 1, hypotheses.features)  # a grid, or {0, …, k − 1}
    return real_points(points, hypotheses.features)


def checked_sample(hypotheses: HypothesisClass, x: ArrayLike, y: ArrayLike, *, ordered: bool = False) -> Occupancy:
    """The sample as a multiset, or as a ``Records`` where it is ``ordered``. Raises ValueError for points outside X,
    labels other than 0 and 1, different lengths and an empty sample."""
    points, labels = checked_points(hypotheses, x), checked_labels(y)
    if len(points) != len(labels):
        raise ValueError(f"x has {len(points)} examples and y has {len(labels)}: give one label an example")
    return records(points, labels) if ordered else mixture.occupancy(points, labels)


def checked_labels(y: ArrayLike) -> NDArray[np.uint8]:
    """Labels (n,) as 0 and 1; booleans and the floats 0.0 and 1.0 are taken. Raises ValueError for anything else."""
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(f"y of shape {labels.shape} must be one label for each of n ≥ 1 examples")
    if labels.dtype.kind not in "biuf":
        raise ValueError(f"y of type {labels.dtype} must be 0 and 1")
    wrong = np.flatnonzero((labels != 0) & (labels != 1))  # NaN is neither
    if len(wrong):
        raise ValueError(f"label {labels[wrong[0]]} at position {wrong[0]} must be 0 or 1")
    return labels.astype(np.uint8)
