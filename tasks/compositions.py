"""What m predictions cost together: in go the stability γ or the privacy loss ε of one, out come bounds for all.

The predictions are fresh runs on one data set, at queries that may be chosen after the answers before. Between a data
set and its neighbour each costs γ or ε at most; then m of them cost at most

* in total variation  m·γ (the triangle inequality), and tanh(mε/2), which is less than 1;
* as privacy loss     m·ε (basic composition);
* as privacy loss but for an event of probability δ′, less: by Dwork, Rothblum & Vadhan 2010 (Theorem III.3)
  ε√(2m ln(1/δ′)) + mε(e^ε − 1), and by Kairouz, Oh & Viswanath 2015 (Theorem 3.3) a bound that no other one valid for
  all ε-private answers improves, as randomised response attains it.

An infinite ε stays infinite: where one answer gives a data set away, many do.
"""

import math

import numpy as np
from scipy.special import expit
from scipy.stats import binom

MOST = 10**6
"""The most predictions that ``optimal`` counts."""


def total_variation(gamma: float, predictions: int, epsilon: float = math.inf) -> float:
    """min(m·γ, tanh(mε/2), 1): m answers tell the two data sets apart with no more advantage than this. The second
    holds as all of them together are mε-private, and no event of an ε-private answer moves by more than tanh(ε/2).

    >>> total_variation(0.125, 4), total_variation(0.125, 9), round(total_variation(0.2, 9, 0.1), 6)
    (0.5, 1.0, 0.421899)
    """
    return min(1.0, predictions * gamma, math.tanh(basic(epsilon, predictions) / 2))


def basic(epsilon: float, predictions: int) -> float:
    """m·ε.

    >>> basic(0.1, 10)
    1.0
    """
    return predictions * epsilon


def advanced(epsilon: float, predictions: int, slack: float) -> float:
    """ε√(2m ln(1/δ′)) + mε(e^ε − 1), 0 < δ′ = ``slack`` < 1. Above m·ε where m is small or ε large."""
    if math.isinf(epsilon):
        return math.inf
    spread = epsilon * math.sqrt(2.0 * predictions * math.log(1.0 / slack))
    return spread + predictions * epsilon * math.expm1(epsilon) if epsilon < 700.0 else math.inf


def optimal(epsilon: float, predictions: int, slack: float) -> float:
    """The least ε′ such that m answers, each ε-private, are always (ε′, δ′)-private together, δ′ = ``slack``.

    Randomised response decides it: with l of m answers turned round, l is binomial with chance q = 1/(1 + e^ε) on one
    side and 1 − q on the other, and the ratio falls with l. So δ(ε′) = max_j (A_j − e^{ε′} B_j)₊ with A_j, B_j the two
    chances of l ≤ j, and δ(ε′) ≤ δ′ says e^{ε′} ≥ (A_j − δ′)/B_j for every j. Sums of logs: B_j may underflow.

    Raises ValueError for more than ``MOST`` predictions. Source: Kairouz, Oh & Viswanath 2015, Theorem 3.3.
    """
    if predictions > MOST:
        raise ValueError(f"predictions = {predictions} must be at most {MOST} for the optimal bound")
    if math.isinf(epsilon) or epsilon == 0.0:
        return epsilon
    turned = np.arange(predictions // 2 + 1)  # beyond half, A_j < B_j e^{ε′} for any ε′ ≥ 0 that half allows
    log_chance = binom.logpmf(turned, predictions, expit(-epsilon))
    first = np.exp(np.logaddexp.accumulate(log_chance))
    log_second = np.logaddexp.accumulate(log_chance - (predictions - 2 * turned) * epsilon)
    telling = first > slack
    if not telling.any():
        return 0.0
    found = (np.log(first[telling] - slack) - log_second[telling]).max()
    return float(min(max(found, 0.0), basic(epsilon, predictions)))
