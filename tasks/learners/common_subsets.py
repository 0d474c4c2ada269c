"""Sampled subsets that neighbouring samples share: in go many samples on the same points, out come their predictions.

A uniform n'-subset of n records is the n' records of least priority, priorities being independent and uniform. Here the
j-th record at a point has one priority in every sample, so two samples that differ in one record draw subsets that
differ in one record at most, and in none where only a label changed. The predictions of neighbours are then estimated
with nearly the same error, which cancels in their difference. (T does not depend on labels, so records need none.)
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from predcube.tasks.answers import log_probabilities
from predcube.tasks.hypotheses.base import HypothesisClass, Points, Representatives
from predcube.tasks.mixture.samples import mistakes

SAMPLES = 1024
"""Subsets where no number is given."""
CALL = 1e5
"""Operations, about, of handling one of the sets of points that a drawn subset gives among the samples."""

type Answers = Callable[[NDArray[np.intp], Representatives, NDArray[np.float64]], NDArray[np.float64]]
"""Probabilities of both answers, (R, Q, 2), from rows (R,) of samples, candidates (M, …) and log-weights (R, M)."""


def common_subsets(
    hypotheses: HypothesisClass,
    points: Points,
    counts: NDArray[np.int64],
    queries: Points,
    *,
    subset_size: int,
    beta: float,
    samples: int,
    rng: np.random.Generator,
    most: NDArray[np.int64] | None = None,
    answers: Answers | None = None,
) -> NDArray[np.float64]:
    """Estimates of ln Pr[answer y] before any flip: ``counts`` (B, k, 2) → (B, queries, 2). ``most`` (k,) is how many
    records a point may hold in any sample, these or others that are to share their subsets; ``answers`` says what
    else than its own labels a hypothesis answers."""
    held = counts.sum(axis=2)
    most = held.max(axis=0) if most is None else most
    place = np.repeat(np.arange(len(points)), most)  # records: `most` at each point, a sample holding the first of them
    number = np.arange(len(place)) - np.repeat(np.cumsum(most) - most, most)
    layouts, layout = np.unique(held, axis=0, return_inverse=True)
    present = number < layouts[:, place]
    total = np.zeros((len(counts), len(queries), 2))
    for _ in range(samples):
        priority = np.where(present, rng.random(len(place)), np.inf)
        chosen = priority <= np.partition(priority, subset_size - 1, axis=1)[:, subset_size - 1, None]
        drawn = np.zeros(layouts.shape, dtype=bool)
        row, record = np.nonzero(chosen)
        drawn[row, place[record]] = True
        supports, group = np.unique(drawn, axis=0, return_inverse=True)
        for g, support in enumerate(supports):
            rows = np.flatnonzero(group[layout] == g)
            candidates = hypotheses.representatives(points[support])
            log_weights = log_softmax(-beta * mistakes(hypotheses, candidates, points, counts[rows]), axis=1)
            if answers is None:
                total[rows] += np.exp(log_probabilities(log_weights, hypotheses.predict(candidates, queries)))
            else:
                total[rows] += answers(rows, candidates, log_weights)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(total / samples))
