"""The curve δ(ε) of pairs of probabilities: in go pairs (ln p, ln q), out comes the part of them that decides it.

δ(ε) = max (p − e^ε q)₊ over the pairs grows with p and falls with q. A pair that another one beats in both is never the
maximum, whatever ε ≥ 0 is, and no pair with p ≤ q ever counts. What is left, a staircase of few pairs, is kept in
place of all.
"""

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.answers import hockey_stick


def staircase(log_p: NDArray[np.float64], log_q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of pairs (ln p, ln q), in two arrays of one shape, those with p > q that no other beats: (F, 2), p falling and
    q falling.

    >>> staircase(np.log([0.5, 0.4, 0.3]), np.log([0.2, 0.3, 0.1])).round(3).tolist()
    [[-0.693, -1.609], [-1.204, -2.303]]
    """
    p, q = log_p.ravel(), log_q.ravel()
    telling = p > q
    p, q = p[telling], q[telling]
    order = np.lexsort((q, -p))
    p, q = p[order], q[order]
    before = np.concatenate([[np.inf], np.minimum.accumulate(q)[:-1]]) if len(q) else q
    kept = q < before
    return np.stack([p[kept], q[kept]], axis=1)


def delta(pairs: NDArray[np.float64], epsilon: float) -> float:
    """δ(ε) of the pairs (F, 2), one direction only: 0 where there are none. ValueError for a negative ε."""
    return hockey_stick(pairs[:, 0], pairs[:, 1], epsilon)
