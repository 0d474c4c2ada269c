"""What a sweep can measure: each quantity's names, unit and source, for specs, cubes and reports alike."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """``per_trial`` is False for those that follow from a cell alone and stand in /surfaces. ``extra``: the dimensions
    after the trial (``pipeline.dimensions`` says what they hold). ``certain``: every trial has the same value, known
    without a sample, so that its interval has no width. ``infinite``: a trial may give ∞, and surfaces count those."""

    long_name: str
    units: str = "1"
    description: str
    per_trial: bool = True
    certain: bool = False
    infinite: bool = False
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
        infinite=True,
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
        description="max over x, y and exchanges J = I ∖ {j} ∪ {i} of P_{S,I}(y|x)/P_{S,J}(y|x), answers given the "
        "drawn records: for private over those where I ∖ {j} is an η-net of the records but j and ηn ≥ 1 (1 where "
        "there is none), for private_lwy over all; `lemma_sets` says whether all were visited. Dagan & Feldman 2020, "
        "Lemma swap.",
    ),
    "swap_ratio_elsewhere": Quantity(
        long_name="swap ratio where the others drawn are no net",
        description="The same over the exchanges of private that Lemma swap says nothing of; 1 where there is none.",
    ),
    "subset_ratio": Quantity(
        long_name="ratio of answers with the subset held fixed",
        description="max over neighbours S', x, y and sets T of n' points of P_{S,T}(y|x)/P_{S',T}(y|x), either way "
        "round; for private_lwy over S' with another record outside the drawn ones. `lemma_sets` says whether all were "
        "visited. Dagan & Feldman 2020, Lemma S-Sp.",
    ),
    "net_failure": Quantity(
        long_name="δ of the private learner's proof",
        description="max over records j of Pr[j ∈ I and I ∖ {j} is no η-net of the other records], n'/n where ηn < 1; "
        "`lemma_sets` says whether over all subsets I (else it is an estimate). Dagan & Feldman 2020, Lemma main.",
    ),
    "swapped_privacy_loss": Quantity(
        long_name="privacy loss by the private learner's proof",
        units="nat",
        description="ln(A + (1 − 2α)δ/α), A = e^{3/(ηn)}(1 + 4e⁶n'/(n − n')), δ = net_failure: what the proof promises "
        "of this sample, to be compared with privacy_loss. Infinite where n' = n. Dagan & Feldman 2020, Lemma main.",
        infinite=True,
    ),
    "uniform_deviation": Quantity(
        long_name="uniform deviation",
        description="sup over H of |L_D(h) − L_S(h)|, L_D on the held-out rows for a table; `supremum` says whether it "
        "is exact. Dagan & Feldman 2020, Lemma uniform-conv.",
    ),
    "relabelling_error": Quantity(
        long_name="error on the worst relabelling",
        description="sup over H of E|h(x) − φ_S(h)(x)|, φ_S(h) what the vote of private, or the learner itself, "
        "answers of S relabelled by h; `supremum` says whether it is exact. Dagan & Feldman 2020, Remark priv-real.",
    ),
}

_SHARP = "Lu & Sridharan 2026, Theorem 3.6 with the corrections of tasks.gains"


def _per_query(long_name: str, description: str, *, units: str = "1", certain: bool = True) -> Quantity:
    return Quantity(long_name=long_name, units=units, description=description, certain=certain, extra=("query",))


PREDICTABILITY: Mapping[str, Quantity] = {
    "n": Quantity(
        long_name="rows the attacker holds",
        units="rows",
        description="The number of rows that the breach process shows, or its expectation.",
        certain=True,
    ),
    "p": _per_query("mean of the query", "The query's mean over the rows whose mean the attacker predicts."),
    "rho2": _per_query(
        "squared correlation of query and release",
        "ρ² = CᵀV⁺C/s1 of the attacker's moments, without noise: the share of the query's variance that the release "
        "explains.",
    ),
    "gain": _per_query("gain without scale", f"σ1² − σ2² = Cᵀ(V + G S_eff Gᵀ)⁺C. {_SHARP}."),
    "r": _per_query("correlation after noise", "r = √(gain/s1): |ρ| as the noise leaves it."),
    "sharp": _per_query(
        "loss that the release saves the attacker",
        "(l''(p)/2)·K·gain: by how much the release lowers the attacker's expected loss, to first order in the rows "
        f"held. {_SHARP}.",
    ),
    "correlated": _per_query(
        "bound by correlation", "H·K·s1·r·k(r), k(r) = (2/π)(√(1 − r²) + r·asin r): an upper bound of sharp."
    ),
    "cauchy_schwarz": _per_query("bound by Cauchy–Schwarz", "H·K·s1·r: an upper bound of correlated."),
    "paper": _per_query("bound as printed", "H(1 + log 4)·K·s1·r. Lu & Sridharan 2026, Theorem 3.6."),
    "utility_cost": Quantity(
        long_name="cost of the noise in accuracy",
        description="tr(M·S_tot), what the noise adds to the mean squared prediction, or tr(S_tot) of a release that "
        "predicts nothing. Lu & Sridharan 2026, Theorem 4.4.",
        certain=True,
    ),
    "rank": Quantity(
        long_name="directions in which the release varies",
        description="Rank of the released moments: below their number where columns are constant or collinear.",
        certain=True,
    ),
    "condition": Quantity(
        long_name="condition of the released moments",
        description="Of the standardised moments, over the directions that count in rank.",
        certain=True,
    ),
    "dropped_rows": Quantity(
        long_name="rows left out",
        units="rows",
        description="Rows that lack a release input, the process's column, the target's value or a query's result.",
        certain=True,
    ),
    "rows": Quantity(
        long_name="complete rows", units="rows", description="N: the rows that the values are of.", certain=True
    ),
    "s1": _per_query("variance of the attacker's moment", "s1 = Var q', q' = w(q − p)."),
    "tau": _per_query("bound of the estimate", "τ of Lemma 2.9: the estimate lies in [τ, 1 − τ]; 0 for squared loss."),
    "K": Quantity(
        long_name="scale of the gain", description="K: the attacker's gain in squared error is K·gain.", certain=True
    ),
    "m": Quantity(long_name="weight of the noise", description="m: the noise counts as S_eff = m·S_tot.", certain=True),
    "simulated_gain": _per_query(
        "simulated gain",
        "Mean of (θ₁ − θ₂)² over measure.draws breaches and noises drawn, the efficient attacker run; to be compared "
        "with K·gain. `tasks.attackers`.",
        certain=False,
    ),
    "simulated_ratio": _per_query(
        "simulated ÷ predicted gain", "simulated_gain ÷ (K·gain), infinite where no gain is predicted.", certain=False
    ),
    "family_gain": Quantity(
        long_name="gain of the worst query of the family",
        description="E max_q (l''_q/2)·K·(a_q² − b_q²) over the family, the query chosen after the draw; by draws, or "
        "exact for one query in a ball. Lu & Sridharan 2026, Theorem 3.4 and section 5.",
    ),
    "family_bound": Quantity(
        long_name="bound of the family's gain",
        description="2(1 + ln 4|Q|)·H·K·max_q √(s1·gain); H·B²·K·√(tr Σ1·tr Γ) over a ball; by Gaussian complexity "
        "over an L1 ball. Lu & Sridharan 2026, Theorems 5.1 and A.21, corrected.",
        certain=True,
    ),
}
"""What a predictability sweep can measure. Those with the dimension ``query`` lose it where queries are an axis."""

DEFAULT_PREDICTABILITY = tuple(PREDICTABILITY)[: tuple(PREDICTABILITY).index("rows")]
"""What is measured unless a spec says otherwise."""
