"""How many examples learners need, to the example, and what that says about the theorems.

    python benchmarks/complexity.py [SECTION …]        (slopes lower privacy plateau constants; all unless given)

Every number is exact: expected errors are closed sums over Binomial counts (no sample is drawn), the smallest n is
found by bisection over the integers, and audits visit every neighbour. Named baselines: averaging over 1/γ chunks for
stability, noisy aggregation of 1/(εα) chunks for privacy.
"""

import argparse
import math
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from predcube.tasks import bounds, distributions, hypotheses, learners, predict, worst_case
from predcube.tasks.closed_forms import expected_errors, unavailable
from predcube.tasks.distributions import Distribution
from predcube.tasks.learners import Learner
from predcube.tasks.slopes import log_log_slopes

LARGEST = 2**24
type Make = Callable[..., Learner]


@cache
def cube(d: int) -> Any:
    return hypotheses.build("cube", points=d)


def smallest(learner: Learner, d: int, law: Distribution, alpha: float) -> float:
    """The smallest n with expected excess error ≤ α, found by doubling and halving; NaN beyond ``LARGEST``."""

    def enough(n: int) -> bool:
        if unavailable(learner, cube(d), law, n) is not None:
            return False
        return expected_errors(learner, cube(d), law, n)["expected_excess_error"] <= alpha

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if high > LARGEST:
            return math.nan
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(high)


def averaging(gamma: float) -> Learner:
    return learners.build("subsample_average", chunks=math.ceil(round(1 / gamma, 9)))


STABLE: Mapping[str, Callable[[float], Learner]] = {
    "averaging": averaging,
    "subsample, erm": lambda g: learners.build("subsample", inner={"kind": "erm"}, subset_fraction=g),
    "stable, outline": lambda g: learners.build("stable", gamma=g, convention="outline"),
    "stable, proof": lambda g: learners.build("stable", gamma=g),
    "stable, sharp": lambda g: learners.build("stable", subset_fraction=g / 2, beta=g),
    "exponential": lambda g: learners.build("exponential", epsilon=4 * math.atanh(g)),
}
"""Learners of stability γ: by their own guarantee, but for "proof", which is 1.25γ-stable."""


def slopes(tiny: bool) -> None:
    d = 8
    alphas = [0.1, 0.05] if tiny else [0.05, 0.025, 0.0125, 0.00625]
    gammas = [0.1, 0.05] if tiny else [0.003, 0.01, 0.03]
    print(f"smallest n with expected excess error ≤ α, coins, d = {d}: n ~ (1/α)^a (1/γ)^b, 95 % intervals")
    print(f"α = {', '.join(map(str, alphas))}; γ = {', '.join(map(str, gammas))}; last, n ÷ averaging's for each α")
    print(f"{'learner':<16} {'a':>20} {'b':>20}  {'n·γα/d':<12} {'n·γα²/d':<15}  ÷ averaging")
    baseline: dict[tuple[float, float], float] = {}
    for name, make in STABLE.items():
        rows = []
        for a in alphas:
            for g in gammas:
                n = smallest(make(g), d, distributions.build("agnostic_lower_bound", alpha=a), a)
                rows.append((a, g, n))
                if name == "averaging":
                    baseline[a, g] = n
        a, g, n = (np.array(column) for column in zip(*rows, strict=True))
        law = log_log_slopes(n, {"1/α": 1 / a, "1/γ": 1 / g})
        ends = [f"{e:.3f} [{lo:.2f}, {hi:.2f}]" for e, lo, hi in zip(law.exponent, law.lower, law.upper, strict=True)]
        one, two = n * g * a / d, n * g * a**2 / d
        ratios = " ".join(f"{np.mean([m / baseline[x, y] for x, y, m in rows if x == alpha]):.2g}" for alpha in alphas)
        spans = (f"{v.min():.3g}–{v.max():.3g}" for v in (one, two))
        first, second = spans
        print(f"{name:<16} {ends[0]:>20} {ends[1]:>20}  {first:<12} {second:<15}  {ratios}")


def lower(tiny: bool) -> None:
    print("smallest n with expected error ≤ α on P1's lower-bound instance ÷ (d − 1)/(8γα), γ the learner's guarantee")
    cases = [(2, 0.1, 0.1)] if tiny else [(d, a, g) for d in (2, 9, 64) for a in (0.1, 0.01) for g in (0.1, 0.01)]
    names = [n for n in STABLE if n != "subsample, erm"]
    print(f"{'d':>3} {'α':>5} {'γ':>5} " + " ".join(f"{n:>16}" for n in names))
    for d, a, g in cases:
        found = []
        for name in names:
            learner = STABLE[name](g)
            n = smallest(learner, d, distributions.build("lower_bound", alpha=a), a)
            kept = learner.guaranteed_stability(int(n)) if math.isfinite(n) else math.nan
            found.append(n / bounds.stability_lower_bound(d, a, kept))
        print(f"{d:>3} {a:>5} {g:>5} " + " ".join(f"{v:>16.3g}" for v in found))


PRIVATE: Mapping[str, Callable[[float, float, int], Learner]] = {
    "aggregate": lambda a, e, d: learners.build("df_agnostic", epsilon=e, chunks=math.ceil(round(1 / (e * a), 9))),
    "flip": lambda a, e, d: learners.build("stable_flip", epsilon=e, alpha=a / 2),
    "relabel S": lambda a, e, d: learners.build("private", epsilon=e, alpha=a / 2, eta=_eta(a, d)),
    "relabel T": lambda a, e, d: learners.build("private_lwy", epsilon=e, alpha=a / 2),
    "model": lambda a, e, d: learners.build("exponential", epsilon=e),
}


INSTANCES = {"agnostic_lower_bound": "coins", "lower_bound": "rare"}


def _eta(alpha: float, d: int) -> float:
    """So that a chunk of 1/(6η ln(8/α)) records holds a point of probability 4α/(d − 1) nine times in ten."""
    return alpha / (4 * d * math.log(8 / alpha))


def privacy(tiny: bool) -> None:
    """With the parameters of the papers, then with what is proved of them at most ε."""
    cases = (
        [("lower_bound", 2, 0.2, 0.5)]
        if tiny
        else [
            (kind, 8, a, e)
            for kind in ("agnostic_lower_bound", "lower_bound")
            for a in (0.0125, 0.1)
            for e in (0.1, 0.5)
        ]
    )
    print("smallest n with expected excess error ≤ α, d = 8, and in brackets the privacy loss proved at that n")
    print(f"{'instance':<9}{'α':>6} {'ε':>4} " + " ".join(f"{n:>15}" for n in PRIVATE))
    for kind, d, a, e in cases:
        found = []
        for make in PRIVATE.values():
            learner = make(a, e, d)
            n = smallest(learner, d, distributions.build(kind, alpha=a), a)
            proved = learner.guaranteed_privacy_loss(int(n)) if math.isfinite(n) else math.nan
            found.append(f"{n:.0f} ({proved:.2g})")
        print(f"{INSTANCES[kind]:<8}{a:>7} {e:>4} " + " ".join(f"{v:>15}" for v in found))
    print("the same, each with the parameters that prove ε")
    print(f"{'instance':<9}{'α':>6} {'ε':>4} " + " ".join(f"{n:>15}" for n in PRIVATE))
    for kind, d, a, e in cases:
        law = distributions.build(kind, alpha=a)
        found = []
        for name, make in PRIVATE.items():
            if name == "relabel S":
                n = _proved_private(d, law, a, e)
            elif name == "relabel T":
                n = _proved_lwy(d, law, a, e)
            else:
                n = smallest(make(a, e, d), d, law, a)
            found.append(f"{n:.0f}")
        print(f"{INSTANCES[kind]:<8}{a:>7} {e:>4} " + " ".join(f"{v:>15}" for v in found))


def _proved_private(d: int, law: Distribution, alpha: float, epsilon: float) -> float:
    """Half of e^ε − 1 for drawing the record, at rate q, half for the mechanism: ln(e^{3/(ηn)} + (1 − 2φ)q/φ) ≤ ε with
    flip φ = α/2. No swap is needed then."""
    flip, eta = alpha / 2, _eta(alpha, d)
    half = math.expm1(epsilon) / 2
    share = half * flip / (1 - 2 * flip)
    learner = learners.build("private", epsilon=max(epsilon, 1.0), alpha=flip, eta=eta, subset_fraction=share)
    return max(smallest(learner, d, law, alpha), math.ceil(3 / (eta * math.log1p(half))))


def _proved_lwy(d: int, law: Distribution, alpha: float, epsilon: float) -> float:
    """Run at the largest ε₀ with ln(e^{ε₀} + 4e³ε₀/(1 − ε₀)) ≤ ε, since n' must be ε₀n for the 4e³ to hold."""
    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        kept = math.log(math.exp(middle) + 4 * math.exp(3) * middle / (1 - middle)) <= epsilon
        low, high = (middle, high) if kept else (low, middle)
    return smallest(learners.build("private_lwy", epsilon=float(f"{low:.4g}"), alpha=alpha / 2), d, law, alpha)


def plateau(tiny: bool) -> None:
    print("expected error of `private` (ε = .1, α = .05, d = 16, P1's lower-bound instance of α = .1) by n, η held")
    sizes = [2000, 4000] if tiny else [10**4, 10**5, 10**6]
    print(f"{'η':>10} {'records a chunk':>16} " + " ".join(f"n = {n:<8}" for n in sizes))
    for eta in (0.01, 0.003, 0.001, 0.0003):
        learner = learners.build("private", epsilon=0.1, alpha=0.05, eta=eta)
        law, found = distributions.build("lower_bound", alpha=0.1), []
        for n in sizes:
            runs = unavailable(learner, cube(16), law, n) is None
            found.append(f"{expected_errors(learner, cube(16), law, n)['expected_error']:.5f}" if runs else "–")
        print(f"{eta:>10} {1 / (6 * eta * math.log(4 / 0.05)):>16.2f} " + " ".join(f"{v:<12}" for v in found))


def constants(tiny: bool) -> None:
    line = hypotheses.build("thresholds", points=3)
    print("worst case over every data set, thresholds on {0, 1, 2}, γ = ½")
    for n in (3, 4):
        a = learners.build("stable", gamma=0.5, subset_size=1)
        found = worst_case(a, line, n)
        print(
            f"  n = {n}, n' = 1: stability {found.stability:.6f}, sharper bound {a.guaranteed_stability(n):.6f}, "
            f"paper {bounds.paper_stability(n, 1, 0.5):.4f}; privacy loss {found.privacy_loss}"
        )
    print("stability in units of γ, γ → 0: proof 1.25 of the paper's 3, outline 0.5625 of the paper's 1")
    for g in (0.1, 0.01):
        n = round(100 / g)
        kept = [
            learners.build("stable", gamma=g, convention=c).guaranteed_stability(n) / g for c in ("proof", "outline")
        ]
        print(f"  γ = {g}: {kept[0]:.4f} and {kept[1]:.4f}")
    print("flip at ε = .1, α = .01: what each inner learner proves, in units of ε")
    for convention in ("outline", "proof", "introduction"):
        a = learners.build("stable_flip", epsilon=0.1, alpha=0.01, convention=convention)
        print(f"  {convention:<13} {a.guaranteed_privacy_loss(10**6) / 0.1:.3f}")
    print(f"  proof, by 3γ   {bounds.flip_privacy_loss(3 * 0.0005, 0.01) / 0.1:.3f}")
    print(
        f"an ε-private binary answer is tanh(ε/2)-stable: {math.tanh(0.5):.3f} at ε = 1, "
        f"where e^ε − 1 is {math.expm1(1):.3f}"
    )
    print(
        f"amplification at ε = 1⁻, q = .1: ln(1 + q(e^ε − 1)) = {math.log1p(0.1 * math.expm1(1)):.4f}, paper 2εq = .2"
    )
    largest = math.expm1(1) / (4 * math.exp(6) + math.expm1(1))
    print(f"Lemma swap: ε = 1 needs n'/n below {largest:.5f}, since 4e⁶ = {4 * math.exp(6):.0f}")
    q = np.linspace(0, 0.5, 501)
    excess = q * (1 - 2 * q)
    print(f"two_point: excess error q(1 − 2q), largest {excess.max():.4f} at q = {q[excess.argmax()]:.3f}")
    print(f"lines over GF(5): VC dimension {hypotheses.build('gf_lines', q=5).vc_dimension}, the paper says 1")
    a = learners.build("df_realizable", epsilon=1.0, alpha=0.1, chunks=2)
    orders = [
        predict(a, hypotheses.build("thresholds", points=2), x, y, [1]).p[0]
        for x, y in (([0, 1, 0, 1], [0, 1, 0, 1]), ([0, 0, 1, 1], [0, 0, 1, 1]))
    ]
    print(f"one data set, two orders, one query: {orders[0]:.3f} and {orders[1]:.3f}")
    chart = learners.build("df_thresholds", epsilon=0.5, alpha=0.1, convention="paper")
    loss = worst_case(chart, hypotheses.build("thresholds", points=2), 3 if tiny else 5).privacy_loss
    print(f"thresholds' walk with steps of ε = .5: measured loss {loss:.4f} where a record is replaced")


SECTIONS: Mapping[str, Callable[[bool], None]] = {
    "slopes": slopes,
    "lower": lower,
    "privacy": privacy,
    "plateau": plateau,
    "constants": constants,
}


def main(sections: list[str], *, tiny: bool = False, clock: bool = True) -> None:
    for i, name in enumerate(sections):
        if i:
            print()
        begun = time.process_time()
        SECTIONS[name](tiny)
        if clock:
            print(f"({name}: {time.process_time() - begun:.1f} s of one core)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("section", nargs="*", choices=[[], *SECTIONS], help="all unless given")
    parser.add_argument("--tiny", action="store_true", help="a few cells of each, to see that it runs")
    parser.add_argument("--no-clock", action="store_true", help="leave out how long it took, so that output repeats")
    given = parser.parse_args()
    main(given.section or list(SECTIONS), tiny=given.tiny, clock=not given.no_clock)
