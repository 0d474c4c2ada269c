"""What theory promises: guarantees of learners, and how many examples suffice or are needed.

In go plain numbers, out come plain numbers. Guarantees are proved inequalities, to be set beside what an audit
measures. A sample complexity is a number of examples; where its theorem hides the constant or logarithms, the value
is the formula inside O(·) or Ω(·) without them: a shape, to be compared by its slopes and never by its size.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


def mixture_stability(n: int, subset_size: int, beta: float) -> float:
    """γ of a mixture over hypotheses of a random subset, weights exp(−β n L_S): n'/n + (1 − n'/n) tanh(β/2).

    With probability 1 − n'/n the replaced example is not in the subset, so H_T stays and every log-weight moves by at
    most β: the odds of label 1 by e^{2β}, the probability by tanh(β/2). Sharper than Dagan & Feldman 2020, Lemma
    stable-main. ``subset_size`` = n gives 1: nothing is promised.
    """
    share = subset_size / n
    return share + (1.0 - share) * math.tanh(beta / 2)


def paper_stability(n: int, subset_size: int, gamma: float, convention: Literal["proof", "outline"] = "proof") -> float:
    """γ as Dagan & Feldman 2020 state it: n'/n + 2γ (Lemma stable-main), or γ for the outline's parameters."""
    return subset_size / n + 2.0 * gamma if convention == "proof" else gamma


def flip_privacy_loss(gamma: float, alpha: float) -> float:
    """ε after a γ-stable label is flipped with probability α ≤ ½: ln(1 + (1 − 2α) γ/α).

    Both probabilities are at least α and move by at most (1 − 2α)γ: an upper bound, not the exact loss. Infinite for
    α = 0 unless γ = 0. Dagan & Feldman 2020, Corollary sta-to-pri.
    """
    if gamma == 0.0:
        return 0.0
    return math.inf if alpha == 0.0 else math.log1p((1.0 - 2.0 * alpha) * gamma / alpha)


def private_stability(epsilon: float) -> float:
    """γ of an ε-private prediction: tanh(ε/2), reached by p = 1/(1 + e^ε) against its complement."""
    return math.tanh(epsilon / 2)


def delta_bound(epsilon: float, privacy_loss: float, stability: float = 1.0) -> float:
    """δ(ε) of a binary answer that is g-private (g = ``privacy_loss``) and γ-stable: at most
    (e^g − e^ε)₊ · min(1/(e^g + 1), γ/(e^g − 1)).

    The most that p − e^ε q can be where p ≤ e^g q, 1 − q ≤ e^g(1 − p) and p − q ≤ γ. Reached, so it is tight: without γ
    by p = e^g/(1 + e^g) against its complement, else by q = γ/(e^g − 1), p = q + γ. Where nothing is private
    (g = ∞) it is γ.

    >>> round(delta_bound(0.0, math.log(3)), 12), delta_bound(2.0, 1.5), delta_bound(0.5, math.inf, 0.1)
    (0.5, 0.0, 0.1)
    """
    if epsilon >= privacy_loss:
        return 0.0
    # Divided by e^g, which may be beyond a float.
    left = -math.expm1(epsilon - privacy_loss)
    private = left / (1.0 + math.exp(-privacy_loss))
    return min(private, stability * left / -math.expm1(-privacy_loss))


def amplified_privacy_loss(epsilon: float, share: float) -> float:
    """ε of an ε-private learner run on a uniform subset of a ``share`` q of the records: ln(1 + q(e^ε − 1)).

    With probability 1 − q the replaced record is not drawn. q = 1 amplifies nothing. Dagan & Feldman 2020, Lemma
    amp-by-subs, says 2εq for ε < 1.

    >>> round(amplified_privacy_loss(1.0, 0.1), 6)
    0.158565
    """
    if epsilon > 700.0:
        return epsilon + math.log(share)
    return math.log1p(share * math.expm1(epsilon))


def drawn_privacy_loss(share: float, spent: float, alpha: float) -> float:
    """ε of an answer that is turned round with probability α, of a learner that is ``spent``-private unless the
    replaced record is drawn, which has probability q = ``share``: ln(e^spent + (1 − 2α)q/α).

    P_S ≤ e^spent·P_S′ + q before the flip; after it no answer is rarer than α.
    """
    return math.log(math.exp(spent) + (1.0 - 2.0 * alpha) * share / alpha)


def swapped_privacy_loss(n: int, subset_size: int, eta: float, alpha: float, delta: float) -> float:
    """ε of the main private learner by its proof: ln(A + (1 − 2α)δ/α), A = e^{3/(ηn)}(1 + 4e⁶n'/(n − n')).

    δ is the probability that the replaced record is drawn and the others drawn are no η-net of the rest, a function of
    the data. Needs ηn ≥ 1; infinite where n' = n. Dagan & Feldman 2020, Lemmas swap and S-Sp.
    """
    if subset_size == n:
        return math.inf
    factor = math.exp(3.0 / (eta * n)) * (1.0 + 4.0 * math.exp(6.0) * subset_size / (n - subset_size))
    return math.log(factor + (1.0 - 2.0 * alpha) * delta / alpha)


def relabelled_subset_privacy_loss(n: int, subset_size: int, epsilon: float) -> float:
    """ε of a learner that relabels the drawn records alone and votes at privacy 1: ln(e^ε + 4e³n'/(n − n')).

    Derived from the proof of Li, Wang & Ye (COLT 2025); infinite where n' = n.
    """
    if subset_size == n:
        return math.inf
    return math.log(math.exp(epsilon) + 4.0 * math.exp(3.0) * subset_size / (n - subset_size))


def exponential_stability(epsilon: float) -> float:
    """γ of the exponential mechanism with weights exp(−ε n L_S/2): tanh(ε/4), as the odds move by at most e^ε."""
    return math.tanh(epsilon / 4)


def exponential_sample_size(log_size: float, alpha: float, epsilon: float) -> float:
    """Examples from which the exponential mechanism over |H| = e^``log_size`` functions has empirical excess error at
    most α: 2 ln|H|/(εα). Dagan & Feldman 2020, Lemma exp-weights."""
    return 2.0 * log_size / (epsilon * alpha)


def agnostic_lower_bound(d: int, alpha: float, beta: float) -> float:
    """Shape of what any agnostic learner needs: (d + ln(1/β))/α²."""
    return (d + math.log(1.0 / beta)) / alpha**2


def stability_lower_bound(d: int, alpha: float, gamma: float) -> float:
    """Examples that any γ-stable learner with expected error ≤ α ≤ ¼ on realizable laws needs: (d − 1)/(8γα)."""
    return (d - 1) / (8.0 * gamma * alpha)


def small_class_stability_lower_bound(alpha: float, gamma: float) -> float:
    """Shape of the same for classes of VC dimension 1 with more than two functions: 1/(γα)."""
    return 1.0 / (gamma * alpha)


def stable_sample_complexity(d: int, alpha: float, gamma: float, beta: float) -> float:
    """Shape of what the γ-stable learner needs: d ln(1/α)/(γα) + (d + ln(1/β))/α²."""
    return d * math.log(1.0 / alpha) / (gamma * alpha) + agnostic_lower_bound(d, alpha, beta)


def stable_flip_sample_complexity(d: int, alpha: float, epsilon: float, beta: float) -> float:
    """Shape of what the stable learner with a flipped label needs: the γ-stable learner's at γ = εα/2."""
    return stable_sample_complexity(d, alpha, epsilon * alpha / 2, beta)


def privacy_lower_bound(d: int, alpha: float, epsilon: float, beta: float) -> float:
    """Shape of what any learner with ε-private predictions needs: d/(εα) + (d + ln(1/β))/α²."""
    return d / (epsilon * alpha) + agnostic_lower_bound(d, alpha, beta)


def private_sample_complexity(d: int, alpha: float, epsilon: float) -> float:
    """Shape, without logarithms, of what the private learner needs: d²/(εα) + d/α²."""
    return d**2 / (epsilon * alpha) + d / alpha**2


def private_lwy_sample_complexity(d: int, alpha: float, epsilon: float) -> float:
    """Shape, without logarithms, of what the learner that closed the gap in d needs: d/(εα) + d/α²."""
    return d / (epsilon * alpha) + d / alpha**2


def private_model_sample_complexity(d: int, log_size: float, alpha: float, epsilon: float) -> float:
    """Shape of learning a whole ε-private model of a finite class: ln|H|/(εα) + d/α²."""
    return log_size / (epsilon * alpha) + d / alpha**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One bound on the number of examples.

    ``needs`` names the numbers its function takes: ``d`` the VC dimension; ``log_size`` = ln|H| (+∞ where H is
    infinite); ``alpha`` the excess error aimed at and 1 − ``beta`` the confidence; ``gamma`` the stability and
    ``epsilon`` the privacy loss promised. ``shape`` says that constants (and logarithms) are left out.
    """

    function: Callable[..., float]
    needs: tuple[str, ...]
    side: Literal["lower", "upper"]
    shape: bool
    description: str
    source: str
    applies: Callable[[dict[str, float]], bool] = lambda numbers: True

    def value(self, **numbers: float | None) -> float | None:
        """The bound in examples, or None where a number is missing, not in the theorem's range, or not finite."""
        given = {name: v for name in self.needs if (v := numbers.get(name)) is not None}
        if len(given) < len(self.needs) or not all(0.0 < v < math.inf for v in given.values()):
            return None
        probabilities = (given[name] for name in ("alpha", "beta", "gamma") if name in given)
        if not all(v < 1.0 for v in probabilities) or not self.applies({**given, **_known(numbers)}):
            return None
        return self.function(**given)


def _known(numbers: dict[str, float | None]) -> dict[str, float]:
    return {name: v for name, v in numbers.items() if v is not None}


_P1 = "Dagan & Feldman 2020"

BOUNDS: dict[str, Bound] = {
    "stability_lower": Bound(
        function=stability_lower_bound,
        needs=("d", "alpha", "gamma"),
        side="lower",
        shape=False,
        description="examples any γ-stable learner needs for error α on realizable laws, (d − 1)/(8γα)",
        source=f"{_P1}, Theorem sta-lb",
        applies=lambda numbers: numbers["d"] >= 2 and numbers["alpha"] <= 0.25,
    ),
    "stability_lower_small": Bound(
        function=small_class_stability_lower_bound,
        needs=("alpha", "gamma"),
        side="lower",
        shape=True,
        description="examples any γ-stable learner needs when d = 1 and |H| > 2, Ω(1/(γα)) without its constant",
        source=f"{_P1}, Lemma VC-1",
        applies=lambda numbers: numbers.get("d") == 1 and numbers.get("log_size", 0.0) > math.log(2),
    ),
    "agnostic_lower": Bound(
        function=agnostic_lower_bound,
        needs=("d", "alpha", "beta"),
        side="lower",
        shape=True,
        description="examples any agnostic learner needs, Ω((d + ln(1/β))/α²) without its constant",
        source=f"{_P1}, section 1",
    ),
    "privacy_lower": Bound(
        function=privacy_lower_bound,
        needs=("d", "alpha", "epsilon", "beta"),
        side="lower",
        shape=True,
        description="examples any ε-private predictor needs, Ω(d/(εα) + (d + ln(1/β))/α²) without its constant",
        source="Dwork & Feldman 2018, Theorem 2.2",
    ),
    "stable_upper": Bound(
        function=stable_sample_complexity,
        needs=("d", "alpha", "gamma", "beta"),
        side="upper",
        shape=True,
        description="examples the γ-stable learner needs, O(d ln(1/α)/(γα) + (d + ln(1/β))/α²) without its constant",
        source=f"{_P1}, Theorem main-stability",
    ),
    "stable_flip_upper": Bound(
        function=stable_flip_sample_complexity,
        needs=("d", "alpha", "epsilon", "beta"),
        side="upper",
        shape=True,
        description="examples the stable learner with a flipped label needs, the stable one's at γ = εα/2",
        source=f"{_P1}, Corollary sta-to-pri",
    ),
    "private_upper": Bound(
        function=private_sample_complexity,
        needs=("d", "alpha", "epsilon"),
        side="upper",
        shape=True,
        description="examples the private learner needs, Õ(d²/(εα) + d/α²) without constant and logarithms",
        source=f"{_P1}, Theorem main",
    ),
    "private_lwy_upper": Bound(
        function=private_lwy_sample_complexity,
        needs=("d", "alpha", "epsilon"),
        side="upper",
        shape=True,
        description="examples ε-private prediction needs, Õ(d/(εα) + d/α²) without constant and logarithms",
        source="Li, Wang & Ye, COLT 2025",
    ),
    "private_model_upper": Bound(
        function=private_model_sample_complexity,
        needs=("d", "log_size", "alpha", "epsilon"),
        side="upper",
        shape=True,
        description="examples a whole ε-private model needs, O(ln|H|/(εα) + d/α²) without its constant",
        source="Kasiviswanathan et al. 2011",
    ),
    "exponential_upper": Bound(
        function=exponential_sample_size,
        needs=("log_size", "alpha", "epsilon"),
        side="upper",
        shape=False,
        description="examples from which the exponential mechanism over H has empirical excess ≤ α, 2 ln|H|/(εα)",
        source=f"{_P1}, Lemma exp-weights",
    ),
}
"""Every bound of a sweep, by the name after ``bound_``."""
