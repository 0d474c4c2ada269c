"""Mixtures over a whole class, and the point mass of empirical risk minimisation."""

import math

import numpy as np
import pytest

from predcube.tasks.hypotheses.cube import Cube
from predcube.tasks.hypotheses.table import Table
from predcube.tasks.hypotheses.thresholds import Thresholds
from predcube.tasks.mixture import Marginals, MixtureWeights, evaluate, full_mixture, occupancy, point_mass
from predcube.tasks.mixture.base import log_sum


def test_the_exponential_mechanism_at_epsilon_ln_2() -> None:
    """Utilities −nL_S = −0, −1, −2 at ε = ln 2, sensitivity 1."""
    table = Table(matrix=((1, 1), (1, 0), (0, 0)))
    mixture = evaluate(full_mixture(table, occupancy([0, 1], [1, 1]), beta=math.log(2) / 2))
    assert isinstance(mixture, MixtureWeights)
    by_row = dict(zip(mixture.representatives.tolist(), mixture.weights.tolist(), strict=True))
    assert [by_row[i] for i in range(3)] == pytest.approx([0.453082, 0.320377, 0.226541], abs=5e-7)
    monotonic = evaluate(full_mixture(table, occupancy([0, 1], [1, 1]), beta=math.log(2)))
    assert isinstance(monotonic, MixtureWeights)
    assert sorted(monotonic.weights.tolist()) == pytest.approx([1 / 7, 2 / 7, 4 / 7])


def test_functions_listed_twice_count_twice() -> None:
    once, twice = Table(matrix=((0, 1), (1, 1))), Table(matrix=((0, 1), (1, 1), (1, 1)))
    sample = occupancy([0, 1], [1, 1])
    p = [evaluate(full_mixture(t, sample, beta=0.0)).predict(t, np.array([0])).p[0] for t in (once, twice)]
    assert p == pytest.approx([1 / 2, 2 / 3])


def test_the_whole_cube_has_product_form_and_agrees_with_its_functions() -> None:
    cube, sample = Cube(points=4), occupancy([0, 0, 2, 3, 3, 3], [1, 0, 1, 0, 0, 1])
    short = evaluate(full_mixture(cube, sample, beta=0.8))
    long = evaluate(full_mixture(cube, sample, beta=0.8, weights=True))
    assert isinstance(short, Marginals)
    assert isinstance(long, MixtureWeights)
    assert len(long.weights) == 16
    for name in ("p", "log_p1", "log_p0"):
        np.testing.assert_allclose(
            getattr(short.predict(cube, np.arange(4)), name),
            getattr(long.predict(cube, np.arange(4)), name),
            atol=1e-14,
        )
    losses = [cube.loss(m.representatives, sample.points, sample.counts) for m in (short, long)]
    assert short.expectation(losses[0]) == pytest.approx(float(long.expectation(losses[1])))
    assert short.expectation(np.stack([losses[0]] * 2, axis=1)).shape == (2,)
    large = Cube(points=64)
    assert evaluate(full_mixture(large, sample, beta=0.8)).predict(large, np.array([5])).p == pytest.approx([0.5])


def test_losses_of_thousands_neither_overflow_nor_vanish() -> None:
    line = Thresholds(points=3)
    sample = occupancy(np.repeat([0, 1, 2], 1000), np.repeat([0, 1, 1], 1000))
    mixture = evaluate(full_mixture(line, sample, beta=1.0))
    assert isinstance(mixture, MixtureWeights)
    logs = dict(zip(mixture.representatives.tolist(), mixture.log_weights.tolist(), strict=True))
    assert logs == pytest.approx({1.0: 0.0, 0.0: -1000.0, 2.0: -1000.0, np.inf: -2000.0})


def test_erm_is_the_first_minimiser_in_canonical_order() -> None:
    tied = occupancy([0, 1, 2], [1, 0, 1])
    mixture = evaluate(point_mass(Thresholds(points=5), tied))
    assert mixture.representatives.tolist() == [2.0]  # 001 comes before 111
    cube = evaluate(point_mass(Cube(points=4), occupancy([0, 0, 3], [0, 1, 1])))
    assert cube.representatives.tolist() == [[0, 0, 0, 1]]
    prediction = mixture.predict(Thresholds(points=5), np.arange(5))
    assert prediction.p.tolist() == [0, 0, 1, 1, 1]
    assert prediction.log_p1.tolist() == [-np.inf, -np.inf, 0, 0, 0]


def test_an_infinite_class_has_no_whole_mixture() -> None:
    with pytest.raises(ValueError, match="infinitely many"):
        full_mixture(Thresholds(), occupancy([0.5], [1]), beta=1.0)


def test_log_sum_of_nothing_is_minus_infinity() -> None:
    assert log_sum(np.full((3, 2), -np.inf)).tolist() == [-np.inf, -np.inf]
    assert log_sum(np.array([[-5000.0], [-5000.0]])) == pytest.approx([-5000 + math.log(2)])
