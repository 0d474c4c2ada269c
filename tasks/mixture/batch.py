"""Many samples on the same points: in go their counts, out come all their log-weights, for audits.

Always true: the samples have one size n, and every log is right to relative precision.
"""

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Points, Representatives
from predcube.tasks.mixture import laplace, support
from predcube.tasks.mixture.analytic import log_marginals
from predcube.tasks.mixture.base import MixtureWeights, Occupancy, evaluate
from predcube.tasks.mixture.choice import choose_method, subset_mixture
from predcube.tasks.mixture.samples import mistakes


def batch_log_weights(
    hypotheses: HypothesisClass,
    points: Points,
    counts: NDArray[np.int64],
    *,
    subset_size: int,
    beta: float,
    method: str = "auto",
    samples: int | None = None,
    seed: int | None = None,
) -> tuple[Representatives, NDArray[np.float64]]:
    """Representatives (M,) or (M, parameters) and log-weights (B, M) of B samples of one size n on the same sorted
    ``points`` (k,): ``counts`` (B, k, 2). A hypothesis that a sample gives no weight has −inf.

    laplace and support share their tables among the samples; other methods go sample by sample, mc with the same
    subsets of examples for all. On a ``free`` class "analytic" is taken as "support": ``batch_log_marginals`` is the
    way for large cubes. Raises ValueError for samples of different sizes and as ``subset_mixture`` does.
    """
    sizes = counts.sum(axis=(1, 2))
    if len(sizes) == 0 or (sizes != sizes[0]).any():
        raise ValueError(f"samples of sizes {sorted(set(sizes.tolist()))} share no batch; give samples of one size n")
    n = int(sizes[0])
    used = counts.any(axis=(0, 2))
    if not used.all():
        points, counts = points[used], counts[:, used]
    if method == "auto":
        method = choose_method(hypotheses, k=len(points), n=n, subset_size=subset_size, beta=beta, weights=True)
    if method == "laplace" and hypotheses.additive:
        representatives = hypotheses.representatives(points)
        losses = mistakes(hypotheses, representatives, points, counts)
        held = counts.sum(axis=2)[:, ::-1]
        logs = laplace.batch_log_weights(losses, held, subset_size=subset_size, beta=beta)
        return representatives, logs
    if method in ("support", "analytic"):
        return support.batch_log_weights(hypotheses, points, counts, subset_size=subset_size, beta=beta)
    found: list[MixtureWeights] = []
    for own in counts:
        workload = subset_mixture(
            hypotheses,
            Occupancy(points=points, counts=own),
            subset_size=subset_size,
            beta=beta,
            method=method,
            samples=samples,
            seed=seed,
            weights=True,
        )
        mixture = evaluate(workload)
        assert isinstance(mixture, MixtureWeights)
        found.append(mixture)
    joined = np.concatenate([mixture.representatives for mixture in found])
    representatives, place = np.unique(joined, axis=0, return_inverse=True)
    logs = np.full((len(found), len(representatives)), -np.inf)
    owner = np.repeat(np.arange(len(found)), [len(mixture.representatives) for mixture in found])
    logs[owner, place.reshape(-1)] = np.concatenate([mixture.log_weights for mixture in found])
    return representatives, logs


def batch_log_marginals(
    hypotheses: HypothesisClass, points: Points, counts: NDArray[np.int64], *, subset_size: int, beta: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(log p_S, log(1 − p_S)) at each of the ``points`` of B samples of one size, for a ``free`` class of any size:
    ``counts`` (B, k, 2) → two arrays (B, k). Off the points p_S = 0. ValueError for other classes."""
    if not hypotheses.free:
        raise ValueError(f"{hypotheses.kind} has no closed marginals; take batch_log_weights")
    return log_marginals(counts, subset_size=subset_size, beta=beta)
