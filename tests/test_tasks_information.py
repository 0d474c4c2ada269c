"""Identities between predictability and information, on random small worlds."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from predcube.tasks import information
from predcube.tasks.finite_counts import CountNoise
from predcube.tasks.information import World, all_datasets, log_gain


def random_world(rng: np.random.Generator, *, rows: int, values: int, releases: int = 4) -> World:
    datasets = all_datasets(rows, values)
    prior = rng.dirichlet(np.full(len(datasets), 0.5))
    return World(
        datasets=datasets,
        prior=prior / prior.sum(),
        chances=rng.dirichlet(np.full(releases, 0.8), size=len(datasets)),
    )


def by_hand(world: World, query: NDArray[np.int64], known: list[int]) -> tuple[NDArray[np.float64], float]:
    """Gains by data set and I(q(x); A | C), written apart: dictionaries and Bayes' rule, one state at a time."""
    rows = world.datasets.shape[1]
    hidden = [i for i in range(rows) if i not in known]
    table: dict[tuple[tuple[int, ...], int, int], float] = {}
    for s, prior, chances in zip(world.datasets, world.prior, world.chances, strict=True):
        for a, chance in enumerate(chances):
            for i in hidden:
                key = (tuple(s[known]), a, int(query[s[i]]))
                table[key] = table.get(key, 0.0) + prior * chance / len(hidden)

    def total(c: tuple[int, ...] | None = None, a: int | None = None, y: int | None = None) -> float:
        wanted = (c, a, y)
        return sum(m for key, m in table.items() if all(w is None or w == v for w, v in zip(wanted, key, strict=True)))

    gains = []
    for s, chances in zip(world.datasets, world.chances, strict=True):
        c, gain = tuple(s[known]), 0.0
        for a, chance in enumerate(chances):
            for i in hidden:
                y = int(query[s[i]])
                ratio = (total(c, a, y) / total(c, a)) / (total(c, None, y) / total(c))
                gain += chance / len(hidden) * math.log(ratio)
        gains.append(gain)
    told = sum(
        m * math.log(m * total(c) / (total(c, a) * total(c, None, y))) for (c, a, y), m in table.items() if m > 0
    )
    return np.array(gains), told


def test_theorem_2_4_average_divergence_and_information_are_equal() -> None:
    rng = np.random.default_rng(4)
    for _ in range(12):
        values = int(rng.integers(2, 4))
        world = random_world(rng, rows=3, values=values)
        query = rng.integers(0, 3, values)
        known = [int(rng.integers(3))] if rng.random() < 0.5 else [0, 2]
        gain = log_gain(world, query, known)
        gains, told = by_hand(world, query, known)
        np.testing.assert_allclose(gain.by_dataset, gains, atol=1e-12)
        np.testing.assert_allclose([gain.average, gain.divergence, gain.information], told, atol=1e-12)
        assert gain.by_dataset.max() >= told


def test_theorem_2_7_the_worst_gain_of_binary_queries_bounds_the_information() -> None:
    rng = np.random.default_rng(5)
    for values in (2, 3, 3, 4):
        world = random_world(rng, rows=2, values=values)
        assert information.worst_gain(world) >= information.known_rest_information(world) - 1e-12


def test_theorem_2_7_does_not_follow_from_one_query_for_all_data_sets() -> None:
    """The proof's last step: one record of three values, released as it is. No binary query is told more than ln 2,
    yet the record itself is told ln 3; queries chosen for the data set do reach that."""
    world = World(datasets=all_datasets(1, 3), prior=np.full(3, 1 / 3), chances=np.eye(3))
    queries = [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert max(log_gain(world, q, []).information for q in queries) < math.log(2)
    assert information.known_rest_information(world) == pytest.approx(math.log(3))
    assert information.mutual_information_privacy(world) == pytest.approx(math.log(3))
    assert information.worst_gain(world) == pytest.approx(math.log(3))


def test_theorem_a_9_a_private_mechanism_moves_no_answer_by_more_than_its_epsilon() -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        world = random_world(rng, rows=3, values=2)
        epsilon = information.privacy_loss(world)
        for row in range(3):
            gain = log_gain(world, [0, 1], [i for i in range(3) if i != row])
            assert gain.largest_ratio <= epsilon + 1e-12
            assert gain.by_dataset.max() <= epsilon + 1e-12
            assert gain.average <= information.mutual_information_privacy(world) + 1e-10 <= epsilon + 1e-9


def test_randomised_response_has_its_closed_forms() -> None:
    """Each of 3 bits is told with probability e^ε/(1 + e^ε): ε-private, and a binary symmetric channel of each."""
    epsilon, rows = 0.8, 3
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    datasets = all_datasets(rows)
    same = (datasets[:, None] == datasets[None]).sum(axis=2)
    world = World(datasets=datasets, prior=np.full(8, 1 / 8), chances=truth**same * (1 - truth) ** (rows - same))
    symmetric = math.log(2) - float(stats.entropy([truth, 1 - truth]))
    assert information.privacy_loss(world) == pytest.approx(epsilon)
    assert information.mutual_information_privacy(world) == pytest.approx(symmetric, abs=1e-12)
    assert information.known_rest_information(world) == pytest.approx(symmetric, abs=1e-12)
    assert log_gain(world, [0, 1], [0, 1]).largest_ratio == pytest.approx(-math.log(2 * (1 - truth)))
    # Cuff & Yu: ε of mutual information gives (0, √(2ε))-privacy.
    assert 2 * truth - 1 <= math.sqrt(2 * symmetric)


def test_capacity_is_that_of_known_channels() -> None:
    assert information.capacity(np.eye(5)) == pytest.approx(math.log(5))
    assert information.capacity(np.full((3, 2), 0.5)) == pytest.approx(0.0, abs=1e-12)
    erasure = np.array([[0.7, 0.3, 0.0], [0.0, 0.3, 0.7]])
    assert information.capacity(erasure) == pytest.approx(0.7 * math.log(2))
    z = np.array([[1.0, 0.0], [0.5, 0.5]])
    assert information.capacity(z) == pytest.approx(math.log(1.25), abs=1e-11)


@pytest.mark.parametrize("scale", [0.02, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_mutual_information_privacy_of_a_count_is_a_divergence(kind: str, scale: float) -> None:
    law = stats.laplace(scale=scale) if kind == "laplace" else stats.norm(scale=scale)

    reach = (40 if kind == "laplace" else 9) * scale
    cuts = np.union1d(np.linspace(-reach, reach, 801), [0.0, 1.0])
    nodes, measure = np.polynomial.legendre.leggauss(10)
    half = np.diff(cuts)[:, None] / 2
    y = cuts[:-1, None] + half * (1 + nodes)
    f, g = law.logpdf(y), law.logpdf(y - 1)
    expected = np.sum(half * measure * np.exp(f) * (math.log(2) + f - np.logaddexp(f, g)))
    found = information.count_privacy(CountNoise(kind=kind, scale=scale))  # type: ignore[arg-type]
    assert found == pytest.approx(expected, abs=1e-11)
    if kind == "laplace":
        assert found <= 1 / scale


def test_a_group_has_no_privacy_where_a_row_is_hardly_predictable() -> None:
    assert information.group_privacy_loss(CountNoise(kind="laplace", scale=2.0), 40) == 20.0
    assert information.group_privacy_loss(CountNoise(kind="gaussian", scale=2.0), 40) == math.inf
    assert information.group_privacy_loss(CountNoise(), 1) == math.inf
    assert information.count_privacy(CountNoise()) == math.log(2)


def test_a_release_that_rules_a_value_out_has_no_finite_ratio() -> None:
    world = World(datasets=all_datasets(2), prior=np.full(4, 0.25), chances=np.eye(3)[all_datasets(2).sum(axis=1)])
    assert log_gain(world, [0, 1], [0]).largest_ratio == math.inf
    assert information.privacy_loss(world) == math.inf


def test_worlds_that_are_none_are_refused() -> None:
    datasets = all_datasets(2)
    with pytest.raises(ValueError, match="prior must sum to 1"):
        World(datasets=datasets, prior=np.ones(4), chances=np.full((4, 2), 0.5))
    with pytest.raises(ValueError, match="must not be negative"):
        World(datasets=datasets, prior=np.full(4, 0.25), chances=np.tile([1.5, -0.5], (4, 1)))
    with pytest.raises(ValueError, match="one row of datasets"):
        World(datasets=datasets, prior=np.full(3, 1 / 3), chances=np.full((4, 2), 0.5))
    world = World(datasets=datasets, prior=np.full(4, 0.25), chances=np.full((4, 2), 0.5))
    with pytest.raises(ValueError, match="every row is known"):
        log_gain(world, [0, 1], [0, 1])
