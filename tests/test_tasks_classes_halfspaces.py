"""Halfspaces where floats lie: collinear, coplanar and nearly so; the rule against rational arithmetic; charts."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from predcube.tasks import hypotheses
from predcube.tasks.hypotheses import Halfspaces
from predcube.tasks.hypotheses.orientation import paired_signs, signs

type Point = tuple[Fraction, ...]
type Array = NDArray[np.float64]

PLANE, SPACE = Halfspaces(dimension=2), Halfspaces(dimension=3)


def determinant(tuple_: tuple[Point, ...], x: Point) -> Fraction:
    rows = [[b - a for a, b in zip(tuple_[0], p, strict=True)] for p in (*tuple_[1:], x)]
    if len(rows) == 1:
        return rows[0][0]
    if len(rows) == 2:
        return rows[0][0] * rows[1][1] - rows[0][1] * rows[1][0]
    (a, b, c), (d, e, f), (g, h, i) = rows
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def independent(points: tuple[Point, ...]) -> bool:
    """Affinely independent, by elimination."""
    rows = [[b - a for a, b in zip(points[0], p, strict=True)] for p in points[1:]]
    rank = 0
    for c in range(len(points[0])):
        pivot = next((r for r in range(rank, len(rows)) if rows[r][c] != 0), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for r in range(rank + 1, len(rows)):
            factor = rows[r][c] / rows[rank][c]
            rows[r] = [v - factor * w for v, w in zip(rows[r], rows[rank], strict=True)]
        rank += 1
    return rank == len(rows)


def by_the_rule(labels: dict[Point, int], query: Point) -> int | None:
    """The label of ``query`` by the rule for a labeling of T, written from its statement in rational arithmetic; None
    where no plane separates."""
    values = list(labels.values())
    if not values or min(values) == max(values):
        return values[0] if values else 0
    points = sorted(labels)
    p = len(points[0])
    if p == 1:
        ones = [q for q in points if labels[q]]
        zeros = [q for q in points if not labels[q]]
        if max(zeros) < min(ones):
            return int(2 * query[0] >= max(zeros)[0] + min(ones)[0])
        if max(ones) < min(zeros):
            return int(2 * query[0] <= max(ones)[0] + min(zeros)[0])
        return None
    whole = list(points)
    for i in range(p):
        if any(independent(c) for c in itertools.combinations(whole, p + 1)):
            break
        extra = tuple(v + (j == i) for j, v in enumerate(points[0]))
        rank = max(r for r in range(1, p + 2) if any(independent(c) for c in itertools.combinations(whole, r)))
        if any(independent(c) for c in itertools.combinations([*whole, extra], rank + 1)):
            whole.append(extra)
    for chosen in itertools.combinations(whole, p):
        if not independent(chosen):
            continue
        for sign in (1, -1):
            side = {q: sign * determinant(chosen, q) for q in points}
            if any((s > 0 and not labels[q]) or (s < 0 and labels[q]) for q, s in side.items()):
                continue
            axis = next(
                i for i in range(p) if independent(tuple(tuple(v for j, v in enumerate(q) if j != i) for q in chosen))
            )
            flat = {tuple(v for j, v in enumerate(q) if j != axis): labels[q] for q in points if side[q] == 0}
            inside = by_the_rule(flat, tuple(v for j, v in enumerate(query) if j != axis))
            if inside is None:
                continue
            at = sign * determinant(chosen, query)
            return int(at > 0) if at else inside
    return None


def lattice(dimension: int, size: int, values: list[float]) -> st.SearchStrategy[Array]:
    point = st.tuples(*[st.sampled_from(values)] * dimension)
    return st.lists(point, min_size=1, max_size=size, unique=True).map(lambda p: np.array(p, dtype=np.float64))


NEAR = [0.0, 0.1, 0.2, 0.30000000000000004, 0.3, 1e-9, 1e9]


@pytest.mark.parametrize(("h", "size"), [(PLANE, 5), (SPACE, 4)], ids=["plane", "space"])
@pytest.mark.parametrize("values", [[0.0, 1.0, 2.0], NEAR], ids=["ties", "near ties"])
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_the_rule_in_rational_arithmetic(h: Halfspaces, size: int, values: list[float], data: st.DataObject) -> None:
    points = data.draw(lattice(h.dimension, size, values))
    queries = np.concatenate([points, data.draw(lattice(h.dimension, 4, values)), (points[:1] + points[-1:]) / 2])
    exact = [tuple(map(Fraction, q)) for q in queries.tolist()]
    place = [tuple(map(Fraction, q)) for q in points.tolist()]
    found = {
        tuple(labels): row
        for labels, row in zip(
            h.labelings(points).tolist(), h.predict(h.representatives(points), queries).tolist(), strict=True
        )
    }
    for labels in itertools.product((0, 1), repeat=len(points)):
        expected = [by_the_rule(dict(zip(place, labels, strict=True)), q) for q in exact]
        if labels in found:
            assert found[labels] == expected
        else:
            assert expected[0] is None


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([2, 3]))
def test_signs_are_those_of_rational_arithmetic(data: st.DataObject, p: int) -> None:
    value = st.one_of(
        st.floats(-2, 2, width=64).filter(lambda v: v == 0 or abs(v) > 1e-70),
        st.sampled_from([0.1, 0.2, 0.3, 0.1 + 0.2, 1.0, 2.0**200, 2.0**-200]),
        st.integers(-3, 3).map(float),
    )
    points = np.array(data.draw(st.lists(st.tuples(*[value] * p), min_size=p + 1, max_size=6)))
    # A point on the line or plane but for rounding.
    points = np.concatenate([points, [points[:p].mean(axis=0), 2 * points[1] - points[0]]])
    exact = [tuple(map(Fraction, q)) for q in points.tolist()]
    expected = [int(np.sign(determinant(tuple(exact[:p]), q))) for q in exact]
    assert signs(points[None, :p], points)[0].tolist() == expected
    planes = np.repeat(points[None, :p], len(points), axis=0)
    assert paired_signs(planes, points).tolist() == expected


def test_three_points_that_only_look_collinear() -> None:
    assert len(PLANE.labelings([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]])) == 6
    assert len(PLANE.labelings([[0.1, 0.1], [0.2, 0.2], [0.3, 0.1 + 0.2]])) == 8
    assert len(PLANE.labelings([[0, 0], [1e15, 1e15 + 1], [2e15, 2e15 + 2], [1, 1]])) == 12
    assert len(PLANE.labelings(np.array([[0, 0], [2**52, 2**52 + 1], [1, 1]]))) == 8


def test_coordinates_that_could_not_be_exact_are_refused() -> None:
    for bad in (1e80, 1e-80):
        with pytest.raises(ValueError, match=r"coordinate 1e[+-]80 at position 1 is too large or too small .* rescale"):
            PLANE.labelings(np.array([[0.0, 1.0], [bad, 2.0]]))
    with pytest.raises(ValueError, match=rf"coordinate {2**53 + 1} at position 0 is too large"):
        PLANE.labelings(np.array([[2**53 + 1, 0], [1, 1]]))


def test_a_named_halfspace_is_exact_on_its_boundary() -> None:
    thirds = PLANE.named([3, 1, 1])
    assert PLANE.predict(thirds, np.array([[0.25, 0.25], [0.3, 0.1], [1 / 3, 0], [0.1, 0.7]]))[0].tolist() == [
        1,
        int(3 * Fraction(0.3) + Fraction(0.1) >= 1),
        int(3 * Fraction(1 / 3) >= 1),
        int(3 * Fraction(0.1) + Fraction(0.7) >= 1),
    ]


@pytest.mark.parametrize(
    "sample",
    [
        np.random.default_rng(0).random((14, 2)),
        np.array(list(itertools.product(range(4), range(3))), dtype=np.float64),
        np.random.default_rng(1).integers(0, 3, (9, 2)).astype(np.float64),
        np.round(np.random.default_rng(2).random((14, 2)), 1),
        np.column_stack([np.arange(6.0), 2 * np.arange(6.0)]),
        np.column_stack([np.ones(5), np.arange(5.0)]),
    ],
    ids=["general", "grid", "few values", "decimals", "one line", "one vertical line"],
)
def test_a_chart_lists_the_hypotheses_of_the_rule(sample: Array) -> None:
    points = np.unique(sample, axis=0)
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 4, (len(points), 2))
    chart = PLANE.chart(points, len(points))
    assert chart is not None
    losses = chart.losses(counts)
    queries = np.concatenate([points, rng.random((40, 2)) * 6 - 1, (points[:1] + points) / 2])
    scale = np.exp(-0.1 * losses)
    sets, sums, expected = [], np.zeros(chart.size), np.zeros(chart.size)
    for size in [1, 2, 3, *rng.integers(1, len(points) + 1, 20)]:
        subset = np.sort(rng.choice(len(points), min(size, len(points)), replace=False))
        numbers = chart.listed(subset)
        rows = chart.representatives(numbers)
        rule = PLANE.representatives(points[subset])
        assert len(set(numbers.tolist())) == len(numbers) == len(rule)
        found = {row.tobytes() for row in PLANE.predict(rows, queries)}
        assert found == {row.tobytes() for row in PLANE.predict(rule, queries)}
        assert losses[numbers].tolist() == PLANE.loss(rows, points, counts).tolist()
        sets.append(np.pad(subset, (0, len(points) - len(subset)), constant_values=-1))
        expected[numbers] += 2.0 / scale[numbers].sum()
    sizes = np.zeros(len(sets), dtype=np.int64)
    totals = np.empty(len(sets))
    chart.add(np.array(sets), np.full(len(sets), 2.0), scale, sums, sizes, totals)
    np.testing.assert_allclose(sums, expected, rtol=1e-13)
    assert sizes.tolist() == [len(PLANE.labelings(points[s[s >= 0]])) for s in sets]


def test_a_chart_of_too_much_is_refused() -> None:
    assert PLANE.chart(np.random.default_rng(0).random((1025, 2)), 8) is None
    assert SPACE.chart(np.zeros((1, 3)), 1) is None
    points = np.column_stack([np.arange(70.0), np.arange(70.0) ** 2])
    assert PLANE.chart(points, 65) is None
    chart = PLANE.chart(points, 64)
    assert chart is not None
    with pytest.raises(ValueError, match="subsets of 65 points, at most 64"):
        chart.listed(np.arange(65))
    assert len(chart.listed(np.arange(64))) == PLANE.growth(64)


def test_a_spec_builds_it() -> None:
    assert hypotheses.build("halfspaces", dimension=2, points=4).vc_dimension == 3
