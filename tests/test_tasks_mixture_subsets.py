"""Enumeration by ranks and sampled subsets: blocks, trees, and what a sample's spread promises."""

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predcube.tasks.hypotheses.cube import Cube
from predcube.tasks.hypotheses.thresholds import Thresholds
from predcube.tasks.mixture import (
    MixtureWeights,
    enumeration,
    evaluate,
    full_mixture,
    height,
    montecarlo,
    occupancy,
    subset_mixture,
    subsets,
    subtree,
)
from predcube.tasks.seeds import stream

X = [0, 0, 1, 2, 2, 2, 3, 4, 5, 5, 6]
Y = [0, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1]


@settings(deadline=None)
@given(st.integers(1, 9), st.data())
def test_ranks_follow_the_order_of_combinations(n: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, n))
    expected = list(itertools.combinations(range(n), size))
    assert subsets.count(n, size) == len(expected)
    start = data.draw(st.integers(0, len(expected) - 1))
    assert [tuple(r) for r in subsets.ranked(start, len(expected) - start, n, size).tolist()] == expected[start:]


def test_ranks_beyond_machine_integers_are_refused() -> None:
    assert subsets.count(66, 33) < 2**63
    with pytest.raises(ValueError, match=r"C\(1000, 100\) is about 10\^140 subsets, beyond 2\^63 ranks"):
        subsets.count(1000, 100)
    with pytest.raises(ValueError, match="2\\^63 subsets; take laplace"):
        subset_mixture(Thresholds(), occupancy(np.arange(99.0), [1] * 99), subset_size=40, beta=1, method="enumerate")
    assert subsets.unrank(math.comb(66, 33) - 1, 66, 33).tolist() == list(range(33, 66))


def workloads() -> list[Any]:
    made = []
    for hypotheses in (Thresholds(points=7), Cube(points=7)):
        for method in ("enumerate", "mc"):
            made.append(
                subset_mixture(
                    hypotheses, occupancy(X, Y), subset_size=4, beta=0.3, method=method, samples=2000, seed=3
                )
            )
        made.append(full_mixture(hypotheses, occupancy(X, Y), beta=0.3, weights=True))
    return made


def equal(a: Any, b: Any) -> bool:
    return (
        np.array_equal(a.representatives, b.representatives)
        and np.array_equal(a.log_weights, b.log_weights)
        and (a.batches is None or np.array_equal(a.batches, b.batches))
    )


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration, "ADDITIVE_BLOCK", 37)
    monkeypatch.setattr(enumeration, "LARGEST_BLOCK", 41)
    monkeypatch.setattr(montecarlo, "BLOCK", 600)
    monkeypatch.setattr("predcube.tasks.mixture.full.LEAF_OPERATIONS", 300)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("number", range(6))
def test_any_cover_of_the_tree_gives_the_same_bits(number: int) -> None:
    workload = pickle.loads(pickle.dumps(workloads()[number]))
    if workload.blocks == 1:
        assert number == 2  # eight thresholds fit a block
        return
    whole = evaluate(workload)
    assert whole.log_weights.size
    for level in range(height(workload.blocks) + 1):
        nodes = [subtree(workload, level, i) for i in range(-(-workload.blocks >> level) or 1)]
        nodes = nodes[: -(-workload.blocks // 2**level)]
        while len(nodes) > 1:
            pairs = [nodes[i : i + 2] for i in range(0, len(nodes), 2)]
            nodes = [pair[0].add(pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
        assert equal(workload.finish(nodes[0]), whole)


@pytest.mark.parametrize("number", [0, 3])
def test_the_block_length_changes_no_weight_beyond_rounding(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate(workloads()[number])
    for length in (1, 2, 5, 64):
        monkeypatch.setattr(enumeration, "ADDITIVE_BLOCK", length)
        monkeypatch.setattr(enumeration, "LARGEST_BLOCK", length)
        cut = evaluate(workloads()[number])
        assert isinstance(cut, MixtureWeights)
        assert isinstance(whole, MixtureWeights)
        assert np.array_equal(cut.representatives, whole.representatives)
        np.testing.assert_allclose(cut.log_weights, whole.log_weights, atol=1e-13)
        assert whole.subsets == math.comb(11, 4)


@pytest.mark.parametrize("block", [600, 2**20])
def test_a_batch_draws_what_its_number_says(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block's cut follows from n' and the number of samples alone; batches are equal and all different."""
    monkeypatch.setattr(montecarlo, "BLOCK", block)
    workload = workloads()[1]
    drawn = [workload._drawn(b) for b in range(workload.blocks)]
    rows, groups = (np.concatenate([d[i] for d in drawn]) for i in (0, 1))
    assert np.bincount(groups).tolist() == [workload.each] * montecarlo.BATCHES
    assert len({rows[groups == g].tobytes() for g in range(montecarlo.BATCHES)}) == montecarlo.BATCHES
    again = subsets.sampled(stream(3, "subsets", 11, 4, 0, 5, 0), workload.each, 11, 4)
    assert np.array_equal(rows[groups == 5], again)


def test_samples_larger_than_a_block_are_cut_within_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(montecarlo, "BLOCK", 50)
    workload = workloads()[1]
    assert workload.blocks == montecarlo.BATCHES * 3  # 32 subsets of 4 in pieces of 11, 11 and 10
    mixture = evaluate(workload)
    assert isinstance(mixture, MixtureWeights)
    assert mixture.batches is not None
    np.testing.assert_allclose(mixture.batches.sum(axis=1), 1.0, atol=1e-12)
    assert mixture.subsets == 32 * 64


@pytest.mark.parametrize("size", [1, 3, 6])
def test_sampled_subsets_are_uniform(size: int) -> None:
    rows = np.sort(subsets.sampled(np.random.default_rng(1), 60000, 6, size), axis=1)
    found, counts = np.unique(rows, axis=0, return_counts=True)
    expected = 60000 / math.comb(6, size)
    assert len(found) == math.comb(6, size)
    assert ((counts - expected) ** 2 / expected).sum() < len(found) + 5 * math.sqrt(2 * len(found))


@pytest.mark.parametrize("hypotheses", [Thresholds(), Cube(points=7)])
def test_sampled_predictions_lie_within_their_errors(hypotheses: Any) -> None:
    sample, queries = occupancy(X, Y), np.arange(7)
    exact = evaluate(subset_mixture(hypotheses, sample, subset_size=4, beta=0.3)).predict(hypotheses, queries)
    z = []
    for seed in range(60):
        mixture = evaluate(
            subset_mixture(hypotheses, sample, subset_size=4, beta=0.3, method="mc", samples=512, seed=seed)
        )
        assert not mixture.exact
        found = mixture.predict(hypotheses, queries)
        losses = hypotheses.loss(mixture.representatives, sample.points, sample.counts)
        assert mixture.functional_standard_error(losses) > 0
        z.append((found.p - exact.p) / found.standard_error)
    scores = np.array(z)
    assert np.abs(scores).max() < 4.5
    assert 0.8 < scores.std() < 1.2
    assert (np.abs(scores) < 1.96).mean() == pytest.approx(0.95, abs=0.04)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_sampled_weights_sum_to_one_however_extreme(seed: int) -> None:
    for beta in (0.0, 1.0, 400.0):
        mixture = evaluate(
            subset_mixture(Thresholds(), occupancy(X, Y), subset_size=3, beta=beta, method="mc", samples=128, seed=seed)
        )
        assert isinstance(mixture, MixtureWeights)
        assert mixture.weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert mixture.standard_error.shape == mixture.log_weights.shape
