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


def literal_amplified_privacy_loss(epsilon: float, share: float) -> float:
    """The same as Dagan & Feldman 2020 state it (Lemma amp-by-subs): 2εq for ε < 1; ∞ beyond, of which it is silent."""
    return 2.0 * epsilon * share if epsilon < 1.0 else math.inf


def swap_ratio_bound(records: float, spent: float) -> float:
    """4e^{2ηn(2β + v)}, which is 4e⁶ with β = v = 1/(ηn): the most by which an answer's probability given the drawn
    records I differs from that given I ∖ {j} ∪ {i} in the main private learner, where I ∖ {j} is an η-net of the
    records but j, and ηn ≥ 1. ``records`` is ηn, ``spent`` is 2β + v.

    Hypotheses that agree on a net differ on at most η(n − 1) + 1 ≤ 2ηn records, which move a weight and the normaliser
    by e^β each and a vote by e^v; and a hypothesis has at most two that agree with it, on either side. Dagan & Feldman
    2020, Lemma swap.
    """
    return 4.0 * math.exp(2.0 * records * spent)


def swapped_privacy_loss(
    n: int, subset_size: int, eta: float, alpha: float, delta: float, spent: float | None = None
) -> float:
    """ε of the main private learner by its proof: ln(A + (1 − 2α)δ/α), A = e^{3/(ηn)}(1 + 4e⁶n'/(n − n')).

    ``spent`` is 2β + v where that is not 3/(ηn) (``swap_ratio_bound`` then says what stands for
    4e⁶). δ is the probability that the replaced record is drawn and the others drawn are no η-net of the rest, a
    function of the data. Needs ηn ≥ 1; infinite where n' = n. Dagan & Feldman 2020, Lemmas swap and S-Sp.
    """
    if subset_size == n:
        return math.inf
    moved = 3.0 / (eta * n) if spent is None else spent
    factor = math.exp(moved) * (1.0 + swap_ratio_bound(eta * n, moved) * subset_size / (n - subset_size))
    return math.log(factor + (1.0 - 2.0 * alpha) * delta / alpha)


def relabelled_swap_ratio_bound(n: int, subset_size: int, epsilon: float) -> float:
    """4e³ where n' ≥ εn, else 4e^{2 + εn/n'}: the most by which P_{S,I}(y|x) differs from P_{S′,J}(y|x) in the learner
    that relabels the drawn records alone, where J = I ∖ {j} ∪ {i} and S′ differs from S in record j, or not at all.

    Write W for the records that are not drawn, w for their number, and w·q(h) = min_f (w/n') #{I: h ≠ f} + #{W: f
    wrong}; weights are exp(−ε w q(h)/2). Match h ∈ H_I with the g ∈ H_J that agree with it on I ∖ {j}: at least one and
    at most two, and as many the other way round.

    * For each f, #{J: g ≠ f} ≤ #{I: h ≠ f} + 1 (record i comes in), and #{wrong in W_J, S′} ≤ #{wrong in W_I, S} + 1
      (record j comes in, as S′ has it). So w q(g) ≤ w q(h) + w/n' + 1, and the same the other way round. With
      w = n − n' that is w/n' + 1 = n/n', and the weights of h and g are within e^{εn/(2n')}; so, up to the 2 of the
      matching, are the normalisers.
    * h and g label the same records of I ∖ {j} alike. Record j leaves one chunk and i enters one, wherever they stand
      since a record's chunk is its own: two votes change at most, each the odds by e: the answer by e² at most.
    * Together 2 · 2 · e^{εn/n'} · e². With n' = ⌈εn⌉ the first exponent is at most 1.
    """
    return 4.0 * math.exp(2.0 + max(1.0, epsilon * n / subset_size))


def relabelled_subset_privacy_loss(n: int, subset_size: int, epsilon: float) -> float:
    """ε of a learner that relabels the drawn records alone and votes at privacy 1: ln(e^ε + R n'/(n − n')), with R =
    4e³ where n' ≥ εn (``relabelled_swap_ratio_bound``). Infinite where n' = n.

    Let S and S′ differ in record 1; I runs over the sets of n' records. Where 1 ∉ I the same records are relabelled
    and vote, and w·q(h) moves by at most 1, since each f is wrong once more or less in W: weights and normaliser by
    e^{ε/2} each, so P_{S,I} ≤ e^ε P_{S′,I}. Where 1 ∈ I put in turn each of the n − n' other records in its place:
    P_{S,I} ≤ R · mean over i of P_{S′, I∖1∪i}. Each J without 1 is reached from n' such I. Summed over all I,

        P_S ≤ (e^ε + R n'/(n − n')) · (1/C(n, n')) Σ_{J∌1} P_{S′,J} ≤ (e^ε + R n'/(n − n')) P_S′.

    From the proof of Li, Wang & Ye (COLT 2025), with the constants worked out for this project.
    """
    if subset_size == n:
        return math.inf
    swap = relabelled_swap_ratio_bound(n, subset_size, epsilon)
    return math.log(math.exp(epsilon) + swap * subset_size / (n - subset_size))


def walk_stability(step: float, alpha: float) -> float:
    """γ of the walk of ``walk_privacy_loss``: tanh(s/2), or 1 − 2α where one step leads from one end to the other.

    The log-odds of S and S′ are at most 2s apart, within [−L, L], and the gap of the probabilities is widest about ½.
    """
    return min(math.tanh(step / 2), 1.0 - 2.0 * alpha)


def walk_privacy_loss(step: float, alpha: float) -> float:
    """Exact ε of private thresholds whose log-odds move by ±``step`` at each example and are kept within ±L, the
    log-odds of α and 1 − α: 2s − ln(1 + α(e^{2s} − 1)) where s < L, else L.

    A clipped step moves two walks no further apart. Replacing an example takes a step of one walk away and gives it
    another (or turns it round), so that the log-odds are at most 2s apart; ln P(y) then moves most where the smaller
    probability is α itself. It is reached: down to −L, one step up, then down again against up, n ≥ L/s + 2 examples.
    Leaving an example out, or adding one, moves the log-odds by s alone: a step s = ε is ε-private for that adjacency,
    and for replace-one only where α ≥ 1/(1 + e^ε).
    """
    limit = math.log1p(-alpha) - math.log(alpha)
    if step >= limit:
        return limit
    return 2.0 * step - math.log1p(alpha * math.expm1(2.0 * step))


def uniform_deviation_bound(n: int, beta: float, log_functions: float, log_growth: float) -> float:
    """α with Pr[sup_H |L_D − L_S| ≤ α] ≥ 1 − β for every law: the smaller of √(ln(2|H|/β)/(2n)) (Hoeffding, ``log_
    functions`` = ln of the number of different functions on X) and √(8 ln(4 τ(2n)/β)/n) (Vapnik & Chervonenkis 1971,
    ``log_growth`` = ln τ(2n), labelings of 2n points), and 1.
    """
    finite = math.sqrt((math.log(2.0 / beta) + log_functions) / (2.0 * n))
    general = math.sqrt(8.0 * (math.log(4.0 / beta) + log_growth) / n)
    return min(1.0, finite, general)


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


def averaging_sample_complexity(d: int, alpha: float, gamma: float) -> float:
    """Shape of what averaging over 1/γ chunks needs, each large enough to learn from alone: d/(γα²)."""
    return d / (gamma * alpha**2)


def aggregation_sample_complexity(d: int, alpha: float, epsilon: float) -> float:
    """Shape of what a noisy mean of 1/(εα) chunks needs, as many as let the noise add α to the error: d/(εα³)."""
    return d / (epsilon * alpha**3)


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
    "averaging_upper": Bound(
        function=averaging_sample_complexity,
        needs=("d", "alpha", "gamma"),
        side="upper",
        shape=True,
        description="examples averaging over disjoint chunks needs for stability γ, O(d/(γα²)) without its constant",
        source=f"{_P1}, introduction (Shalev-Shwartz et al. 2010)",
    ),
    "aggregation_upper": Bound(
        function=aggregation_sample_complexity,
        needs=("d", "alpha", "epsilon"),
        side="upper",
        shape=True,
        description="examples private aggregation of chunks needs, Õ(d/(εα³)) without constant and logarithms",
        source=f"{_P1}, introduction (Dwork & Feldman 2018; Bassily, Thakurta & Thakkar 2018)",
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
