"""Sums over drawn rows against draws made one by one from the same uniforms, and against the laws they follow."""

import numpy as np
import pytest
from numpy.typing import NDArray

from predcube.tasks import sampling
from predcube.tasks.seeds import stream

type Array = NDArray[np.float64]

ROWS = np.random.default_rng(0).standard_normal((9, 3))


def test_draws_without_replacement_are_a_partial_shuffle() -> None:
    found = sampling.without_replacement(ROWS, 4, 50, stream(1, "rows"))
    uniforms, order = stream(1, "rows").random((50, 4)), list(range(9))
    for r in range(50):
        for i in range(4):
            j = i + int(uniforms[r, i] * (9 - i))
            order[i], order[j] = order[j], order[i]
        np.testing.assert_allclose(found[r], ROWS[order[:4]].sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("cached", [2**16, 4])
@pytest.mark.parametrize("size", [1, 2, 4, 7, 8])
def test_every_set_of_rows_is_as_likely_as_another(monkeypatch: pytest.MonkeyPatch, size: int, cached: int) -> None:
    """By either way of drawing, ``size`` different rows; pairs are held together as often as theory says."""
    monkeypatch.setattr(sampling, "CACHED", cached)
    held = sampling.without_replacement(np.eye(9), size, 20_000, stream(2, "rows", size))
    np.testing.assert_array_equal(np.unique(held.round(9)), [0, 1])
    np.testing.assert_allclose(held.sum(axis=1), size)
    together = held.T @ held / len(held)
    np.testing.assert_allclose(np.diag(together), size / 9, atol=5 * np.sqrt(size / 9 / 20_000))
    pairs = together[np.triu_indices(9, 1)]
    chance = size * (size - 1) / 72
    np.testing.assert_allclose(pairs, chance, atol=5 * np.sqrt(chance / 20_000) + 1e-12)


def test_a_draw_does_not_depend_on_how_many_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    masses, chances = np.arange(1.0, 10.0), np.linspace(0.1, 0.9, 9)
    states = np.repeat([0, 1, 2], 3)
    transitions = np.array([[0.2, 0.5, 0.3], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]])

    def all_of_them() -> list[Array]:
        return [
            sampling.without_replacement(ROWS, 4, 31, stream(3, "rows", 1)),
            sampling.with_replacement(ROWS, 6, 31, stream(3, "rows", 2), masses),
            sampling.inclusions(ROWS, chances, 31, stream(3, "rows", 3)),
            sampling.chain(ROWS, states, transitions, np.full(3, 1 / 3), 7, 31, stream(3, "rows", 4)),
        ]

    at_once = all_of_them()
    monkeypatch.setattr(sampling, "UNIFORMS", 20)
    for whole, pieces in zip(at_once, all_of_them(), strict=True):
        np.testing.assert_array_equal(whole, pieces)


def test_aliases_keep_the_masses_exactly() -> None:
    rng = np.random.default_rng(4)
    for size in (1, 2, 7, 300):
        masses = rng.gamma(0.3, size=size) + 1e-9
        keep, alias = sampling.aliases(masses)
        share = keep.copy()
        np.add.at(share, alias, 1 - keep)
        np.testing.assert_allclose(share / size, masses / masses.sum(), atol=1e-12)
        assert np.all((keep >= 0) & (keep <= 1))


def test_draws_with_replacement_follow_their_masses() -> None:
    masses = np.array([1.0, 5.0, 0.5, 2.0])
    counts = sampling.with_replacement(np.eye(4), 40, 5000, stream(5, "rows"), masses)
    np.testing.assert_allclose(counts.sum(axis=1), 40)
    law = masses / masses.sum()
    np.testing.assert_allclose(counts.mean(axis=0) / 40, law, atol=5 * np.sqrt(0.25 / 200_000))
    covariance = 40 * (np.diag(law) - np.outer(law, law))
    np.testing.assert_allclose(np.cov(counts.T), covariance, atol=0.05 * covariance.max() + 0.1)
    even = sampling.with_replacement(np.eye(4), 40, 5000, stream(5, "rows", 2))
    np.testing.assert_allclose(even.mean(axis=0), 10.0, atol=5 * np.sqrt(7.5 / 5000))


def test_rows_are_included_where_their_uniform_is_below_their_chance() -> None:
    chances = np.array([0.1, 1.0, 0.5, 0.9, 0.3, 0.2, 0.7, 0.6, 0.05])
    found = sampling.inclusions(ROWS, chances, 40, stream(6, "rows"))
    taken = stream(6, "rows").random((40, 9)) < chances
    np.testing.assert_allclose(found, taken @ ROWS, atol=1e-12)


def test_a_chain_walks_by_its_transitions() -> None:
    """States of 2, 1 and 3 rows: one that alternates, and one whose visits have the covariance of theory."""
    states = np.array([2, 0, 2, 0, 2, 1])
    turns = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    seen = sampling.chain(np.eye(6), states, turns, np.array([1.0, 0.0, 0.0]), 7, 300, stream(7, "rows"))
    by_state = np.stack([seen[:, states == s].sum(axis=1) for s in range(3)], axis=1)
    np.testing.assert_array_equal(by_state, np.tile([3.0, 2.0, 2.0], (300, 1)))
    np.testing.assert_allclose(seen.mean(axis=0), [2 / 3, 1.5, 2 / 3, 1.5, 2 / 3, 2.0], atol=0.25)

    transitions = np.array([[0.2, 0.5, 0.3], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]])
    pi = np.linalg.matrix_power(transitions, 100)[0]
    steps = 30
    seen = sampling.chain(np.eye(6), states, transitions, pi, steps, 20_000, stream(7, "rows", 2))
    visits = np.stack([seen[:, states == s].sum(axis=1) for s in range(3)], axis=1)
    np.testing.assert_allclose(visits.mean(axis=0), steps * pi, atol=5 * visits.std() / np.sqrt(20_000))
    expected = steps * (np.diag(pi) - np.outer(pi, pi))
    for lag in range(1, steps):
        later = pi[:, None] * (np.linalg.matrix_power(transitions, lag) - pi)
        expected += (steps - lag) * (later + later.T)
    np.testing.assert_allclose(np.cov(visits.T), expected, atol=0.04 * expected.max())
