"""Composition against Kairouz, Oh & Viswanath's own formula in exact arithmetic, and against randomised response."""

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predcube.tasks.compositions import MOST, advanced, basic, optimal, total_variation


def slack_of(growth: Fraction, m: int, i: int) -> Fraction:
    """δ_i of their theorem, e^ε = ``growth``: m answers are ((m − 2i)ε, δ_i)-private and no better."""
    terms = (math.comb(m, j) * (growth ** (m - j) - growth ** (m - 2 * i + j)) for j in range(i))
    return sum(terms, Fraction(0)) / (1 + growth) ** m


@pytest.mark.parametrize("growth", [Fraction(11, 10), Fraction(3, 2), Fraction(4)])
@pytest.mark.parametrize("m", [1, 2, 5, 24, 61])
def test_optimal_composition_is_the_published_formula(growth: Fraction, m: int) -> None:
    epsilon = math.log(growth)
    for i in range(1, m // 2 + 1):
        slack = slack_of(growth, m, i)
        if slack > 0.999:  # 1 − δ′ has lost its digits as a float
            continue
        assert optimal(epsilon, m, float(slack)) == pytest.approx((m - 2 * i) * epsilon, rel=1e-9, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(m=st.integers(1, 9), epsilon=st.floats(0.01, 3.0), slack=st.floats(1e-9, 0.5))
def test_optimal_composition_is_what_randomised_response_costs(m: int, epsilon: float, slack: float) -> None:
    kept, turned = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))

    def delta(total: float) -> float:
        pairs = [
            (math.prod(kept if b else turned for b in bits), math.prod(turned if b else kept for b in bits))
            for bits in product((0, 1), repeat=m)
        ]
        return sum(max(p - math.exp(total) * q, 0.0) for p, q in pairs)

    found = optimal(epsilon, m, slack)
    assert 0 <= found <= basic(epsilon, m)
    assert delta(found) <= slack * (1 + 1e-9) + 1e-14
    if found > 1e-6:
        assert delta(found - 1e-6) > slack * (1 - 1e-12) - 1e-14
    assert found <= advanced(epsilon, m, slack) + 1e-12


def test_closed_forms() -> None:
    # One answer: p − e^{ε′}(1 − p) = δ′ with p = e^ε/(1 + e^ε).
    assert optimal(1.0, 1, 0.01) == pytest.approx(math.log(math.e - 0.01 * (1 + math.e)), rel=1e-14)
    expected = 0.1 * math.sqrt(200 * math.log(1e6)) + 10 * math.expm1(0.1)
    assert advanced(0.1, 100, 1e-6) == pytest.approx(expected, rel=1e-14)
    assert basic(0.1, 7) == pytest.approx(0.7, rel=1e-15)
    assert (total_variation(0.125, 4), total_variation(0.125, 9)) == (0.5, 1.0)


def test_many_answers() -> None:
    # A sum of a million small losses is nearly normal: mε²/2 and a deviation of ε√m, exceeded with chance δ′.
    found = optimal(1e-3, 10**6, 1e-6)
    assert 0.5 + 3.0 < found < 0.5 + 4.8
    assert found < advanced(1e-3, 10**6, 1e-6)
    assert optimal(0.1, 100, 1e-6) < advanced(0.1, 100, 1e-6) < basic(0.1, 100)
    values = [optimal(0.05, m, 1e-6) for m in (1, 10, 100, 1000, 10_000)]
    assert values == sorted(values)
    assert optimal(800.0, 3, 1e-6) == pytest.approx(2400.0, abs=1e-3)


def test_nothing_and_everything() -> None:
    assert optimal(math.inf, 5, 1e-6) == advanced(math.inf, 5, 1e-6) == basic(math.inf, 5) == math.inf
    assert optimal(0.0, 5, 1e-6) == advanced(0.0, 5, 1e-6) == basic(0.0, 5) == 0.0
    assert optimal(0.1, 1, 0.5) == 0.0
    assert advanced(1000.0, 2, 0.1) == math.inf
    with pytest.raises(ValueError, match="at most 1000000"):
        optimal(0.1, MOST + 1, 1e-6)
