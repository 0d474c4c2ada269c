"""What a sweep can measure: each quantity's names, unit and source, for specs, cubes and reports alike."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """``built`` is False for quantities that the words of a spec promise and this version does not compute;
    ``per_trial`` is False for those that follow from a cell alone and stand in /surfaces. ``extra``: the dimensions
    after the trial (``pipeline.dimensions`` says what they hold). ``certain``: every trial has the same value, known
    without a sample, so that its interval has no width."""

    long_name: str
    units: str = "1"
    description: str
    per_trial: bool = True
    built: bool = True
    certain: bool = False
    extra: tuple[str, ...] = ()


QUANTITIES: Mapping[str, Quantity] = {
    "error": Quantity(
        long_name="expected error of the randomised prediction",
        description="L_D(A^S) = E|p_S(x) − y|: exact under a known law, the mean over held-out rows for a table. "
        "Dagan & Feldman 2020, section 2.",
    ),
    "excess_error": Quantity(
        long_name="error above the best hypothesis",
        description="L_D(A^S) − inf_H L_D: for a table, against the hypothesis that is best on the whole table, both "
        "on the held-out rows. Dagan & Feldman 2020, section 2.",
    ),
    "stability": Quantity(
        long_name="measured prediction stability",
        description="max over neighbours S' (one example replaced) and x of |p_S(x) − p_S'(x)|; `audit` says whether "
        "all neighbours were visited. Dagan & Feldman 2020, section 2.",
    ),
    "privacy_loss": Quantity(
        long_name="measured prediction privacy loss",
        units="nat",
        description="max over neighbours S', x and y of |ln P_S(y|x) − ln P_S'(y|x)|, infinite where 0 meets a "
        "positive probability; `audit` says whether all neighbours were visited. Dwork & Feldman 2018.",
    ),
    "growth": Quantity(
        long_name="labelings of the sample's points",
        description="|H_S|, the number of ways the class labels the distinct points of the sample.",
    ),
    "bounds": Quantity(
        long_name="theoretical bounds",
        description="The bounds of the papers at each cell, beside the measurements.",
        per_trial=False,
    ),
    "delta": Quantity(
        long_name="measured δ at given ε",
        description="max over neighbours S', x and y of (P_S(y) − e^ε P_S'(y))₊ and of (P_S'(y) − e^ε P_S(y))₊, at "
        "each ε of delta_epsilon; `audit` says whether all neighbours were visited. Dwork & Feldman 2018.",
        extra=("delta_epsilon",),
    ),
    "labelings": Quantity(
        long_name="labelings of the subset's points",
        description="E|H_T| over the learner's random subset T of the sample's points; `subset_sets` says whether all "
        "sets were gone through. Dagan & Feldman 2020, section 3.",
    ),
    "net_probability": Quantity(
        long_name="probability that the subset is a net",
        description="Pr[any two functions that agree on T differ on at most an α share of the sample], T the points of "
        "the learner's random subset, α = measure.net_alpha or the learner's; `subset_sets` says whether all sets were "
        "gone through. Dagan & Feldman 2020, section 2.",
    ),
    "effective_subsets": Quantity(
        long_name="effective number of sampled subsets",
        description="(Σ_I 1/Z_I)²/Σ_I 1/Z_I² over the subsets I that mc drew for a trial's error: how many that bear "
        "equal shares would be as sharp. Infinite where the method is exact. Kish 1965, section 11.7.",
    ),
    "expected_error": Quantity(
        long_name="error expected over samples",
        description="E_S[L_D(A^S)] over samples and the law's random labels: a closed sum over Binomial counts on the "
        "cube (analytic: no Monte Carlo), under lower_bound or agnostic_lower_bound. Dagan & Feldman 2020, Theorem "
        "sta-lb.",
        certain=True,
    ),
    "expected_excess_error": Quantity(
        long_name="error above the best hypothesis, expected over samples",
        description="E_S[L_D(A^S)] − inf_H L_D, in the same closed form.",
        certain=True,
    ),
    "swap_ratio": Quantity(
        long_name="swap ratio",
        description="The ratio of Dagan & Feldman 2020, Lemma S-Sp.",
        built=False,
    ),
}
