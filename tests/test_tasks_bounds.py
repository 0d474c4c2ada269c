"""Bounds: theory's values, guarantees against extreme predictors, and when a bound is silent."""

import inspect
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predcube.tasks import bounds
from predcube.tasks.bounds import BOUNDS

NUMBERS = {"d": 11.0, "log_size": math.log(2**11), "alpha": 0.1, "beta": 0.05, "gamma": 0.1, "epsilon": 0.5}


def test_values_of_theory() -> None:
    assert bounds.stability_lower_bound(11, 0.1, 0.1) == pytest.approx(125, rel=1e-14)
    assert BOUNDS["stability_lower"].value(**NUMBERS) == pytest.approx(125, rel=1e-14)
    assert bounds.flip_privacy_loss(1 * 0.1 / 2, 0.1) == pytest.approx(0.336472, abs=5e-7)
    assert bounds.mixture_stability(4, 4, 0.25) == 1.0
    # H = {0, 1} at γ = 1 keeps H_T whatever is drawn, so the second term alone is its stability: theory, n odd.
    assert bounds.mixture_stability(3, 0, 0.5) == pytest.approx(0.244919, abs=5e-7)
    assert bounds.paper_stability(10, 1, 0.1) == pytest.approx(0.3)
    assert bounds.paper_stability(10, 1, 0.1, "outline") == 0.1
    assert bounds.exponential_sample_size(math.log(8), 0.1, 0.5) == pytest.approx(2 * math.log(8) / 0.05)


@given(st.integers(1, 200), st.data(), st.floats(0.001, 0.99))
def test_the_sharp_guarantee_is_never_above_the_papers(n: int, data: st.DataObject, gamma: float) -> None:
    subset_size = data.draw(st.integers(0, n))
    sharp = bounds.mixture_stability(n, subset_size, gamma / 2)
    assert sharp <= min(1.0, bounds.paper_stability(n, subset_size, gamma)) + 1e-15
    outlined = math.floor(gamma * n / 2)
    assert bounds.mixture_stability(n, outlined, gamma / 8) <= bounds.paper_stability(n, outlined, gamma, "outline")


@given(st.floats(0.001, 0.499), st.floats(0.0, 1.0))
def test_flip_against_the_worst_pair(alpha: float, gamma: float) -> None:
    """The bound is attained by p = 0 against p = γ, and never passed by another pair of γ-near predictors."""
    p = np.linspace(0.0, 1.0 - gamma, 101)
    low, high = (1 - 2 * alpha) * p + alpha, (1 - 2 * alpha) * (p + gamma) + alpha
    worst = max(np.log(high / low).max(), np.log((1 - low) / (1 - high)).max())
    assert worst == pytest.approx(bounds.flip_privacy_loss(gamma, alpha), rel=1e-9, abs=1e-12)


def test_flip_at_its_ends() -> None:
    assert bounds.flip_privacy_loss(0.1, 0.0) == math.inf
    assert bounds.flip_privacy_loss(0.0, 0.0) == 0.0
    assert bounds.flip_privacy_loss(0.1, 0.5) == 0.0
    assert bounds.flip_privacy_loss(1e-18, 0.1) == pytest.approx(8e-18, rel=1e-12, abs=0)  # not rounded to 0


@given(st.floats(0.01, 8.0))
def test_private_predictions_are_stable(epsilon: float) -> None:
    """Over a grid of pairs (p, q) within e^ε of each other both ways, the largest gap is tanh(ε/2)."""
    p = np.linspace(0.0, 1.0, 2001)
    q_least = np.maximum(p * math.exp(-epsilon), 1 - math.exp(epsilon) * (1 - p))
    assert (p - q_least).max() <= bounds.private_stability(epsilon) + 1e-12
    best = 1 / (1 + math.exp(-epsilon))
    assert best - best * math.exp(-epsilon) == pytest.approx(bounds.private_stability(epsilon), rel=1e-9)
    # Odds that move by e^ε move a probability most about ½.
    odds = math.exp(epsilon / 2)
    gap = odds / (1 + odds) - 1 / (1 + odds)
    assert bounds.exponential_stability(epsilon) == pytest.approx(gap, rel=1e-9)


def test_every_bound_names_what_its_function_takes() -> None:
    for name, bound in BOUNDS.items():
        assert set(bound.needs) == set(inspect.signature(bound.function).parameters), name
        assert bound.side in name
        assert ("without" in bound.description or name == "stable_flip_upper") is bound.shape, name
        assert bound.source


def test_shapes_have_the_slopes_of_their_theorems() -> None:
    """Where one term rules, doubling a number multiplies the shape by the power the theorem names."""

    def slope(name: str, number: str, at: dict[str, float]) -> float:
        one, two = (BOUNDS[name].value(**{**at, number: at[number] * f}) for f in (1.0, 1.01))
        assert one is not None
        assert two is not None
        return math.log(two / one) / math.log(1.01)

    at = {**NUMBERS, "gamma": 1e-9, "epsilon": 1e-9}
    assert slope("stable_upper", "gamma", at) == pytest.approx(-1, abs=1e-4)
    assert slope("stable_upper", "d", at) == pytest.approx(1, abs=1e-4)
    assert slope("stable_flip_upper", "epsilon", at) == pytest.approx(-1, abs=1e-4)
    assert slope("private_upper", "d", at) == pytest.approx(2, abs=1e-4)
    assert slope("private_lwy_upper", "d", at) == pytest.approx(1, abs=1e-4)
    assert slope("private_model_upper", "log_size", at) == pytest.approx(1, abs=1e-4)
    assert slope("privacy_lower", "alpha", at) == pytest.approx(-1, abs=1e-4)
    assert slope("agnostic_lower", "alpha", at) == pytest.approx(-2, abs=1e-4)
    # α enters the flipped learner through γ too.
    assert slope("stable_flip_upper", "alpha", {**at, "alpha": 1e-4}) == pytest.approx(-2 - 1 / math.log(1e4), abs=1e-2)


def test_a_bound_is_silent_where_it_does_not_hold() -> None:
    lower = BOUNDS["stability_lower"]
    assert lower.value(**{**NUMBERS, "alpha": 0.26}) is None
    assert lower.value(**{**NUMBERS, "d": 1.0}) is None
    assert lower.value(**{**NUMBERS, "gamma": None}) is None
    assert lower.value(d=11.0, alpha=0.1) is None
    assert lower.value(**{**NUMBERS, "gamma": 1.0}) is None  # nothing is asked of the learner
    assert BOUNDS["private_upper"].value(**{**NUMBERS, "epsilon": math.inf}) is None
    assert BOUNDS["private_model_upper"].value(**{**NUMBERS, "log_size": math.inf}) is None
    small = BOUNDS["stability_lower_small"]
    assert small.value(**{**NUMBERS, "d": 1.0, "log_size": math.inf}) == pytest.approx(100)
    assert small.value(**{**NUMBERS, "d": 1.0, "log_size": math.log(2)}) is None
    assert small.value(**{**NUMBERS, "d": 1.0, "log_size": None}) is None
    assert small.value(**NUMBERS) is None
    assert all(b.value(**NUMBERS) for name, b in BOUNDS.items() if name != "stability_lower_small")


def walked(labels: tuple[int, ...], step: float, alpha: float) -> float:
    """The answer right of all examples, by the definition: odds times e^{±s}, the probability brought back."""
    p = 0.5
    for y in labels:
        odds = p / (1 - p) * math.exp(step if y else -step)
        p = min(max(odds / (1 + odds), alpha), 1 - alpha)
    return p


@pytest.mark.parametrize(
    ("step", "alpha", "n"), [(0.5, 0.3, 4), (0.5, 0.1, 7), (1.0, 0.1, 5), (1.0, 0.3, 3), (4, 0.1, 3)]
)
def test_the_walks_loss_is_reached_and_never_passed(step: float, alpha: float, n: int) -> None:
    """Every sequence of n labels left of the query, and every replacement: another label, another place, or away."""
    assert n >= math.log((1 - alpha) / alpha) / step + 2 - 1e-9 or step > math.log((1 - alpha) / alpha)
    loss = gap = 0.0
    for sequence in itertools.product((0, 1), repeat=n):
        rests = {sequence[:i] + sequence[i + 1 :] for i in range(n)}
        others = rests | {(*r[:j], y, *r[j:]) for r in rests for j in range(n) for y in (0, 1)}
        p = walked(sequence, step, alpha)
        for q in {walked(o, step, alpha) for o in others}:
            loss, gap = max(loss, abs(math.log(p / q)), abs(math.log((1 - p) / (1 - q)))), max(gap, abs(p - q))
    assert loss == pytest.approx(bounds.walk_privacy_loss(step, alpha), rel=1e-9)
    assert gap <= bounds.walk_stability(step, alpha) + 1e-12
    assert bounds.walk_privacy_loss(step, alpha) < 2 * step
    assert bounds.walk_privacy_loss(step, alpha) <= step + 1e-12 or alpha < 1 / (1 + math.exp(step))


def test_amplification_as_the_paper_states_it_is_never_the_smaller() -> None:
    for epsilon in (1e-3, 0.3, 0.999):
        for share in (0.01, 0.5, 1.0):
            literal = bounds.literal_amplified_privacy_loss(epsilon, share)
            assert bounds.amplified_privacy_loss(epsilon, share) <= literal == 2 * epsilon * share
    assert bounds.literal_amplified_privacy_loss(1.0, 0.1) == math.inf


def test_the_guarantee_that_relabels_the_subset_alone() -> None:
    assert bounds.relabelled_subset_privacy_loss(100, 10, 0.1) == pytest.approx(
        math.log(math.exp(0.1) + 4 * math.exp(3) * 10 / 90)
    )
    # A smaller subset than the proof takes: n/n' records' worth of score for one record of T.
    assert bounds.relabelled_subset_privacy_loss(100, 5, 0.1) == pytest.approx(
        math.log(math.exp(0.1) + 4 * math.exp(4) * 5 / 95)
    )
    assert bounds.relabelled_subset_privacy_loss(5, 5, 0.1) == math.inf


def test_uniform_deviation_of_a_coin_and_of_all_functions() -> None:
    """One function: Hoeffding's interval; too many: Vapnik and Chervonenkis'; never above 1."""
    assert bounds.uniform_deviation_bound(200, 0.1, 0.0, 0.0) == pytest.approx(math.sqrt(math.log(20) / 400))
    general = math.sqrt(8 * (math.log(40) + 3.0) / 5000)
    assert bounds.uniform_deviation_bound(5000, 0.1, math.inf, 3.0) == pytest.approx(general)
    assert bounds.uniform_deviation_bound(3, 0.1, math.inf, 3.0) == 1.0
