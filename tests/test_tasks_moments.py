"""Additive moments against extended precision, for any cut into blocks."""

from functools import reduce

import numpy as np
import pytest

from predcube.tasks.frames import Frame, Groups, total_of
from predcube.tasks.moments import GroupSums, Moments


def exact(x, weights):
    """Weighted mean and scatter about it, and plain mean, in two passes of extended precision."""
    x, w = x.astype(np.longdouble), weights.astype(np.longdouble)
    mean = (w[:, None] * x).sum(axis=0) / w.sum()
    centred = x - mean
    return mean, (w[:, None] * centred).T @ centred, x.mean(axis=0)


def rows_of(rng, m=1500, queries=3, moments=4):
    """Rows with offsets of 1e9 and scales 1e12 apart, correlated."""
    base = rng.normal(size=(m, queries + moments)) @ rng.normal(size=(queries + moments, queries + moments))
    x = base * 10.0 ** rng.integers(-6, 7, queries + moments)
    x[:, 1] += np.round(rng.normal(0, 3, m)) + 1e9
    x[:, 1] = np.round(x[:, 1])
    return x[:, :queries], x[:, queries:]


def cut(rng, m):
    edges = np.sort(rng.choice(np.arange(1, m), size=rng.integers(0, 12), replace=False))
    return np.split(np.arange(m), edges)


def combined(states):
    """Added in a tree of random depth."""
    states = list(states)
    while len(states) > 1:
        states = [reduce(lambda a, b: a.add(b), states[i : i + 2]) for i in range(0, len(states), 2)]
    return states[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_any_cut_gives_the_moments_of_extended_precision(seed, weighted):
    rng = np.random.default_rng(seed)
    q, g = rows_of(rng)
    weights = rng.lognormal(0, 2, len(q)) if weighted else np.ones(len(q))
    mean, scatter, plain = exact(np.hstack([q, g]), weights)
    scale = np.sqrt(np.diag(scatter))
    for _ in range(3):
        parts = cut(rng, len(q))
        found = combined(Moments.of(q[p], g[p], weights[p] if weighted else None, joint=True) for p in parts)
        whole = np.block([[found.joint, found.cross], [found.cross.T, found.gram]])
        assert np.abs((whole - scatter) / np.outer(scale, scale)).max() < 1e-12
        assert np.abs(found.squares / np.diag(scatter)[:3] - 1).max() < 1e-12
        spread = scale / np.sqrt(weights.sum())
        assert np.all(np.abs(found.shift + found.mean - mean) < 1e-12 * spread + 4e-16 * np.abs(mean))
        assert np.all(np.abs(found.average - plain) < 1e-12 * spread + 4e-16 * np.abs(plain))
        apart = combined(Moments.of(q[p], g[p], weights[p] if weighted else None) for p in parts)
        assert np.abs(apart.squares / found.squares - 1).max() < 1e-12
        assert np.abs((apart.cross - found.cross) / np.outer(scale[:3], scale[3:])).max() < 1e-12


def test_moments_about_plain_means():
    rng = np.random.default_rng(3)
    q, g = rows_of(rng, 400)
    weights = rng.lognormal(0, 1, 400)
    found = Moments.of(q, g, weights, joint=True)
    x = np.hstack([q, g]).astype(np.longdouble)
    x -= x.mean(axis=0)
    second = (weights[:, None] * x).T @ x
    scale = np.sqrt(np.diag(second))
    squares, cross, gram, joint = found.about_plain()
    whole = np.block([[joint, cross], [cross.T, gram]])
    assert np.abs((whole - second) / np.outer(scale, scale)).max() < 1e-12
    assert np.abs(squares / np.diag(second)[:3] - 1).max() < 1e-12
    first = (weights[:, None] * x).sum(axis=0)
    assert np.abs((found.first_about_plain() - first) / (scale * np.sqrt(weights.sum()))).max() < 1e-12


def test_a_first_row_far_out_costs_no_digits():
    rng = np.random.default_rng(0)
    q = rng.normal(size=(5000, 1))
    q[0] = 1e6
    found = Moments.of(q, q)
    _, scatter, _ = exact(q, np.ones(5000))
    assert abs(found.squares[0] / scatter[0, 0] - 1) < 1e-12
    assert abs(found.cross[0, 0] / scatter[0, 0] - 1) < 1e-12


@pytest.mark.parametrize("weighted", [False, True])
def test_columns_that_stand_still_in_a_part_of_the_rows(weighted):
    """Sorted indicators, a column near 0 and a rare one, which are summed as they are."""
    rng = np.random.default_rng(2)
    m = 6000
    steps = np.arange(m)
    q = np.stack([steps >= 1500, steps >= 5999, 0.1 + 0.7 * (steps < 4000), rng.normal(2, 1, m)], axis=1)
    g = np.stack([steps / m, rng.normal(size=m)], axis=1)
    weights = rng.lognormal(0, 1, m) if weighted else np.ones(m)
    mean, scatter, _ = exact(np.hstack([q, g]), weights)
    scale = np.sqrt(np.diag(scatter))
    for parts in (np.array_split(np.arange(m), 7), [np.arange(m)]):
        found = combined(Moments.of(q[p], g[p], weights[p] if weighted else None) for p in parts)
        assert np.abs(found.squares / np.diag(scatter)[:4] - 1).max() < 1e-12
        assert np.abs((found.cross - scatter[:4, 4:]) / np.outer(scale[:4], scale[4:])).max() < 1e-12
        assert np.allclose(found.shift + found.mean, mean.astype(float), rtol=1e-13, atol=1e-15)
        assert found.binary.tolist() == [True, True, False, False]
    made = Moments.over(q, lambda part: g[part], weights if weighted else None)
    assert np.allclose(made.cross, found.cross, rtol=1e-11, atol=1e-12)
    assert np.allclose(made.gram, found.gram, rtol=1e-12)


def test_a_slice_is_centred_about_its_heaviest_row():
    """About a row of weight 1e-12 that lies 1e7 away, 14 digits would go."""
    rng = np.random.default_rng(0)
    q = rng.normal(size=(200, 1))
    q[0] = 1e7
    weights = np.ones(200)
    weights[0] = 1e-14
    _, scatter, _ = exact(q, weights)
    assert abs(Moments.of(q, q, weights).squares[0] / scatter[0, 0] - 1) < 1e-12


def test_a_constant_column_scatters_by_nothing():
    q = np.full((3001, 2), [0.1, 1e9 + 0.1])
    parts = [Moments.of(q[i : i + 700], q[i : i + 700]) for i in range(0, 3001, 700)]
    found = reduce(lambda a, b: a.add(b), parts)
    assert np.all(found.squares == 0)
    assert np.all(found.gram == 0)
    assert found.constant.tolist() == [True, True]
    assert np.all(found.average == [*q[0], *q[0]])


def test_a_constant_is_judged_by_the_size_of_its_values():
    q = np.array([[1e9, 1e-30], [1e9 + 1e-7, 2e-30], [1e9, 1e-30]])
    assert Moments.of(q, q).constant.tolist() == [True, False]


def test_a_row_of_weight_zero_is_no_row_of_the_weighted_moments_and_one_of_the_plain():
    rng = np.random.default_rng(1)
    q, g = rng.normal(size=(50, 1)), rng.normal(size=(50, 2))
    weights = rng.random(50)
    weights[:20] = 0
    found, kept = Moments.of(q, g, weights), Moments.of(q[20:], g[20:], weights[20:])
    assert np.allclose(found.gram, kept.gram, rtol=1e-13)
    assert np.allclose(found.average, np.hstack([q, g]).mean(axis=0), rtol=1e-13)
    parts = Moments.of(q[:20], g[:20], weights[:20]).add(Moments.of(q[20:], g[20:], weights[20:]))
    assert np.allclose(parts.gram, kept.gram, rtol=1e-13)
    assert np.allclose(parts.shift + parts.mean, kept.shift + kept.mean, rtol=1e-13)
    assert Moments.of(q, g, np.zeros(50)).add(Moments.of(q, g, np.zeros(50))).gram.sum() == 0


def test_weights_below_zero_are_refused():
    q = np.ones((3, 1))
    with pytest.raises(ValueError, match="at least 0; the least is -1"):
        Moments.of(q, q, np.array([1.0, -1.0, 2.0]))


def test_binary_queries_are_told_from_all_others():
    rng = np.random.default_rng(5)
    m = 100_000
    binary = (rng.random(m) < 0.3).astype(float)
    nearly = binary.copy()
    nearly[77] = 0.5
    columns = np.stack([binary, nearly, np.zeros(m), np.ones(m), np.full(m, 0.5), 2 * binary, rng.random(m)], axis=1)
    parts = [Moments.of(columns[i : i + 40_000], columns[i : i + 40_000, :1]) for i in range(0, m, 40_000)]
    found = reduce(lambda a, b: a.add(b), parts)
    assert found.binary.tolist() == [True, False, True, True, False, False, False]
    weights = rng.lognormal(0, 1, m)
    assert Moments.of(columns, columns[:, :1], weights).binary.tolist() == found.binary.tolist()
    spread = columns[:, 6:] * 3 - 1  # values outside [0, 1] whose variance happens to be p(1 − p)
    p = spread.mean()
    spread = p + (spread - p) * np.sqrt(p * (1 - p) / spread.var())
    assert not Moments.of(spread, spread).binary[0]


@pytest.mark.parametrize("seed", range(4))
def test_group_sums_of_any_cut(seed):
    rng = np.random.default_rng(seed)
    q, g = rows_of(rng)
    x = np.hstack([q, g]).astype(np.longdouble)
    codes = rng.integers(0, 40, len(q)).astype(float)
    codes[codes == 17] = 3
    centred = x - x.mean(axis=0)
    found = combined(GroupSums.of(codes[p], q[p], g[p]) for p in cut(rng, len(q)))
    assert found.codes.tolist() == sorted(set(codes.astype(int).tolist()))
    scale = np.sqrt((centred**2).mean(axis=0))
    for code, count, total in zip(found.codes, found.counts, found.totals, strict=True):
        assert count == np.count_nonzero(codes == code)
        assert np.all(np.abs(total - centred[codes == code].sum(axis=0)) < 1e-11 * count * scale)
    assert np.all(np.abs(found.spread / scale**2 - 1) < 1e-9)


def test_a_frame_refuses_what_is_missing_or_of_another_length():
    ones = np.ones((3, 1))
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="queries hold a missing or infinite value"):
            Frame(queries=np.array([[1.0], [bad], [2.0]]), inputs=ones)
    with pytest.raises(ValueError, match="column hold a missing"):
        Frame(queries=ones, inputs=ones, column=np.array([1.0, np.nan, 2.0]))
    with pytest.raises(ValueError, match="inputs of shape"):
        Frame(queries=ones, inputs=np.ones((2, 1)))
    with pytest.raises(ValueError, match="target of shape"):
        Frame(queries=ones, inputs=ones, target=np.ones(2, dtype=bool))
    assert Frame(queries=np.full((3, 1), 1.7e308), inputs=ones).rows == 3
    assert Frame(queries=np.ones((3, 1), dtype=np.int16), inputs=ones).queries.dtype == np.float64


def test_groups_add_by_label_and_code_their_rows():
    one, two = Groups.of(["b", "a", "b"]), Groups.of(["c", "a"])
    both = one.add(two)
    assert both.labels == ("a", "b", "c")
    assert both.counts.tolist() == [2, 2, 1]
    assert both.rows == 5
    assert both.codes(["c", "a", "b"]).tolist() == [2, 0, 1]
    with pytest.raises(ValueError, match="group 'd' was not counted"):
        both.codes(["d"])
    with pytest.raises(ValueError, match="distinct and ascending"):
        Groups(labels=("b", "a"), counts=np.array([1, 1]))


def test_a_total_of_no_frames_is_refused():
    with pytest.raises(ValueError, match="no complete row is left"):
        total_of([])
