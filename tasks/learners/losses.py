"""Empirical losses of many samples at once: in go labels and counts, out come numbers of mistakes, exactly."""

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import Labels


def mistakes(labels: Labels, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """n·L_S(h) of each hypothesis on each sample: ``labels`` (M, k) and ``counts`` (B, k, 2) → (B, M)."""
    zeros, ones = counts[:, :, 0].astype(np.float64), counts[:, :, 1].astype(np.float64)
    # BLAS is exact on integers below 2^53, so the order in which it sums does not show.
    return np.asarray(ones.sum(axis=1)[:, None] + (zeros - ones) @ labels.astype(np.float64).T)
