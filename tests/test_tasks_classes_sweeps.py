"""Sums over subsets of the plane by a sweep: the same as from the lists of H_T; the order of turns."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from predcube.tasks.hypotheses import planar, sweeps

type Array = NDArray[np.float64]


def compare(points: Array, t: int, seed: int) -> int:
    """Checks sums of some subsets; how many were swept."""
    rng = np.random.default_rng(seed)
    points = np.unique(points, axis=0)
    chart, k = planar.chart(points), len(points)
    t = min(t, k)
    sets = np.array([np.sort(rng.choice(k, t, replace=False)) for _ in range(5)])
    sets[0, t // 2 :] = -1
    times, scale = rng.random(5) + 0.5, rng.random(chart.size) + 1e-3
    expected, z, held = np.zeros(chart.size), [], []
    for subset, often in zip(sets, times, strict=True):
        numbers = chart.listed(subset[subset >= 0])
        held.append(len(numbers))
        z.append(scale[numbers].sum())
        expected[numbers] += often / z[-1]
    sums, sizes, totals = np.zeros(chart.size), np.empty(5, dtype=np.int64), np.empty(5)
    chart.add(sets, times, scale, sums, sizes, totals)
    assert sizes.tolist() == held
    np.testing.assert_allclose(totals, z, rtol=1e-13)
    np.testing.assert_allclose(sums, expected, rtol=1e-13, atol=0)
    sweeps.add(sets, times, chart.order, chart.line, scale, sums, sizes, totals)
    return int((sizes > 0).sum())


@pytest.mark.parametrize(("k", "t"), [(3, 3), (4, 4), (5, 3), (40, 20), (64, 64), (300, 20), (300, 64)])
def test_in_general_position_every_set_is_swept(k: int, t: int) -> None:
    points = np.random.default_rng(k).random((k, 2))
    assert compare(points, t, 1) == (5 if t // 2 >= sweeps.FEWEST else 4)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=2, max_size=30),
    st.integers(2, 12),
    st.integers(0, 2**32 - 1),
)
def test_lines_of_many_points_and_parallel_lines_change_nothing(
    listed: list[tuple[int, int]], t: int, seed: int
) -> None:
    compare(np.array(listed, dtype=np.float64), t, seed)


def test_points_one_above_another_are_swept() -> None:
    points = np.random.default_rng(0).random((24, 2))
    points[:, 0] = np.repeat(np.arange(12.0), 2)
    assert compare(points, 16, 2) == 5


def test_the_order_of_pairs_is_the_turning_order_about_each_point() -> None:
    points = np.unique(np.random.default_rng(3).integers(0, 9, (25, 2)).astype(np.float64), axis=0)
    rank = planar.chart(points).rank
    order = sweeps.turns(rank)
    both = np.maximum(order, order.T)
    for a in range(len(points)):
        others = [m for m in range(len(points)) if m != a]
        for m in others:
            assert (both[a, m] < 0) == (sum(rank[a, other] == rank[a, m] for other in others) > 1)
        for m, other in itertools.permutations([m for m in others if both[a, m] >= 0], 2):
            assert (both[a, m] < both[a, other]) == (rank[a, m] < rank[a, other])
    placed = np.sort(order[order >= 0])
    assert placed.tolist() == list(range(len(placed)))
