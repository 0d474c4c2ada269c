"""Hypothesis classes: labelings against brute force, the laws of representatives, losses, bad input."""

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predcube.tasks import hypotheses
from predcube.tasks.hypotheses import KINDS, Cube, HypothesisClass, Table, Thresholds

POINTS = 6
MATRIX = [
    [0, 1, 1, 0, 1, 0],
    [1, 0, 1, 1, 0, 0],
    [0, 1, 1, 0, 1, 0],
    [0, 0, 0, 0, 0, 1],
    [1, 1, 0, 0, 1, 1],
    [0, 0, 0, 0, 0, 0],
]

finite_classes = st.sampled_from(
    [Thresholds(points=POINTS), Cube(points=POINTS), hypotheses.build("table", matrix=MATRIX)]
)
finite_samples = st.lists(st.integers(0, POINTS - 1), max_size=9)


def functions(h: HypothesisClass) -> list[tuple[int, ...]]:
    """The class as a list of label vectors on X, written without the product's code."""
    if isinstance(h, Thresholds):
        return [tuple(int(x >= a) for x in range(POINTS)) for a in range(POINTS + 1)]
    if isinstance(h, Cube):
        return list(itertools.product((0, 1), repeat=POINTS))
    return [tuple(row) for row in MATRIX]


@given(finite_classes, finite_samples)
def test_labelings_are_those_of_brute_force_in_canonical_order(h: HypothesisClass, sample: list[int]) -> None:
    support = sorted(set(sample))
    expected = sorted({tuple(f[v] for v in support) for f in functions(h)})
    found = h.labelings(np.array(sample, dtype=np.int64))
    assert found.dtype == np.uint8
    at_support = [tuple(row[sample.index(v)] for v in support) for row in found.tolist()]
    assert at_support == expected
    assert [list(row) for row in found.tolist()] == [
        [dict(zip(support, e, strict=True))[x] for x in sample] for e in expected
    ]


@given(finite_classes, finite_samples)
def test_representatives_realise_the_labelings(h: HypothesisClass, sample: list[int]) -> None:
    points = np.array(sample, dtype=np.int64)
    np.testing.assert_array_equal(h.predict(h.representatives(points), points), h.labelings(points))


@given(finite_classes, finite_samples, st.randoms(use_true_random=False))
def test_representatives_depend_on_the_set_alone(h: HypothesisClass, sample: list[int], random: Any) -> None:
    again = sample + sample[:3]
    random.shuffle(again)
    one = h.representatives(np.array(sample, dtype=np.int64))
    two = h.representatives(np.array(again, dtype=np.int64))
    np.testing.assert_array_equal(one, two)


@given(st.lists(st.floats(-1e6, 1e6), max_size=12))
def test_thresholds_on_the_line(sample: list[float]) -> None:
    h = Thresholds()
    support = sorted(set(sample))  # 0.0 and −0.0 are equal, so one of them
    labelings = h.labelings(np.array(sample))
    assert len(labelings) == len(support) + 1 == h.growth(len(support))
    assert h.representatives(np.array(sample)).tolist() == [math.inf, *support[::-1]]
    np.testing.assert_array_equal(h.predict(h.representatives(np.array(sample)), np.array(sample)), labelings)


def test_a_threshold_is_cut_at_the_smallest_point_labelled_one() -> None:
    # Were the cut anywhere else between the points, predictions off T would differ.
    h = Thresholds(points=9)
    points = np.array([7, 2, 5])
    for labels, cut in zip(h.labelings(points), h.representatives(points), strict=True):
        ones = points[labels == 1]
        assert cut == (ones.min() if len(ones) else math.inf)


def test_a_cube_is_zero_off_the_points() -> None:
    whole = Cube(points=5).representatives(np.array([1, 4]))
    assert whole.tolist() == [[0, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 1, 0, 0, 0], [0, 1, 0, 0, 1]]


def test_a_table_is_represented_by_its_first_row() -> None:
    h = hypotheses.build("table", matrix=MATRIX)
    assert h.representatives(np.array([1, 4])).tolist() == [1, 0]  # labels 00 first by row 1, 11 by row 0
    assert h.members().tolist() == [5, 3, 0, 2, 1, 4]  # equal rows stay, in table order


@pytest.mark.parametrize("columns", [61, 62, 63, 70])
def test_wide_tables_compare_all_their_columns(columns: int) -> None:
    rows = np.zeros((4, columns), dtype=np.uint8)
    rows[1, 0], rows[2, -1], rows[3, 0] = 1, 1, 1
    h = Table(matrix=rows)  # type: ignore[arg-type]
    assert h.representatives(np.arange(columns)).tolist() == [0, 2, 1]


@pytest.mark.parametrize("h", [Thresholds(points=POINTS), Cube(points=POINTS)])
def test_members_are_every_function_in_canonical_order(h: HypothesisClass) -> None:
    assert h.domain is not None
    found = [tuple(row) for row in h.predict(h.members(), h.domain).tolist()]
    assert found == sorted(functions(h))


@given(st.lists(st.lists(st.integers(0, 1), min_size=4, max_size=4), min_size=1, max_size=9))
def test_vc_dimension_of_a_table(rows: list[list[int]]) -> None:
    shattered = max(
        size
        for size in range(5)
        for columns in itertools.combinations(range(4), size)
        if len({tuple(row[c] for c in columns) for row in rows}) == 2**size
    )
    assert hypotheses.build("table", matrix=rows).vc_dimension == shattered


def test_vc_dimension_of_a_large_table() -> None:
    assert hypotheses.build("table", matrix=Cube(points=10).members()).vc_dimension == 10
    assert hypotheses.build("table", matrix=np.tri(200, dtype=np.uint8)).vc_dimension == 1
    # One lone bit in each row and column, beside the complement of every column: still one point shattered at most.
    lone = np.eye(150, dtype=np.uint8)
    assert hypotheses.build("table", matrix=np.hstack([lone, 1 - lone])).vc_dimension == 1


@pytest.mark.long
def test_a_vc_dimension_too_costly_to_find_is_said() -> None:
    wide = hypotheses.build("table", matrix=np.random.default_rng(0).integers(0, 2, size=(2000, 64)))
    with pytest.raises(ValueError, match=r"2000 rows and 64 columns was not found .*; use fewer columns"):
        _ = wide.vc_dimension
    assert wide.growth(64) == 2000


def test_growth() -> None:
    assert [Thresholds().growth(m) for m in (0, 1, 10)] == [1, 2, 11]
    assert [Thresholds(points=3).growth(m) for m in (2, 3, 10)] == [3, 4, 4]
    assert [Cube(points=3).growth(m) for m in (2, 3, 10)] == [4, 8, 8]
    assert [hypotheses.build("table", matrix=MATRIX).growth(m) for m in (0, 1, 2, 6, 9)] == [1, 2, 4, 5, 5]


@given(
    st.sampled_from([Thresholds(), Thresholds(points=POINTS), Cube(points=POINTS), Table(matrix=MATRIX)]),  # type: ignore[arg-type]
    st.lists(st.tuples(st.integers(0, POINTS - 1), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8),
)
def test_loss_and_best_against_counting(h: HypothesisClass, rows: list[tuple[int, int, int]]) -> None:
    points = np.array([r[0] for r in rows])  # repeated and unsorted points are allowed
    mass = np.array([r[1:] for r in rows])
    representatives = h.representatives(points)
    losses = [
        sum(row[2 - label] for row, label in zip(rows, labels, strict=True))
        for labels in h.predict(representatives, points).tolist()
    ]
    assert h.loss(representatives, points, mass).tolist() == losses
    best = h.best(points, mass)
    first = losses.index(min(losses))
    np.testing.assert_array_equal(best, representatives[first : first + 1])


def test_loss_of_thresholds_between_points() -> None:
    mass = np.array([[1, 2], [4, 8]])
    found = Thresholds().loss(np.array([-1.0, 0.5, 3.0, math.inf]), np.array([0.0, 1.0]), mass)
    assert found.tolist() == [5, 6, 10, 10]


def test_named() -> None:
    assert Thresholds().named(2).tolist() == [2.0]
    assert Thresholds().named("all-zero").tolist() == [math.inf]
    assert Thresholds(points=4).named(1.5).tolist() == [2.0]  # the same function on X
    assert Thresholds(points=4).named(-7).tolist() == [0.0]
    assert Thresholds(points=4).named(3.5).tolist() == [math.inf]
    assert Cube(points=3).named("011").tolist() == Cube(points=3).named([0, 1, 1]).tolist() == [[0, 1, 1]]
    assert Table(matrix=((0, 1), (1, 1))).named(1).tolist() == [1]


@pytest.mark.parametrize(
    ("h", "name"),
    [
        (Thresholds(), "two"),
        (Thresholds(), math.nan),
        (Thresholds(), True),
        (Cube(points=3), "01"),
        (Cube(points=3), "012"),
        (Cube(points=3), 3),
        (Table(matrix=((0, 1),)), 1),
        (Table(matrix=((0, 1),)), -1),
        (Table(matrix=((0, 1),)), 0.0),
    ],
)
def test_names_that_name_nothing(h: HypothesisClass, name: object) -> None:
    with pytest.raises(ValueError, match=r"names no .*; give"):
        h.named(name)


@pytest.mark.parametrize("h", [Thresholds(points=3), Cube(points=3), Table(matrix=((0, 1, 1),))])
@pytest.mark.parametrize("point", [3, -1, 0.5])
def test_points_outside_x_are_named(h: HypothesisClass, point: float) -> None:
    points = np.array([1, point])
    calls = (h.labelings, h.representatives, lambda p: h.predict(h.members(), p))
    for call in calls:
        with pytest.raises(ValueError, match=rf"point {point} at position 1 is outside X = {{0, …, 2}}"):
            call(points)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_points_that_are_not_finite_are_named(bad: float) -> None:
    for h in (Thresholds(), Thresholds(points=3), Cube(points=3)):
        with pytest.raises(ValueError, match=r"at position 1 is not finite"):
            h.labelings(np.array([1.0, bad]))


def test_one_column_is_points_on_the_line_and_two_are_not() -> None:
    assert Thresholds().labelings(np.array([[1.0], [2.0]])).shape == (3, 2)
    with pytest.raises(ValueError, match="several features"):
        Thresholds().labelings(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="not numbers"):
        Thresholds().labelings(np.array(["1"]))


def test_both_zeros_are_one_point() -> None:
    for zeros in ([0.0, -0.0], [-0.0, 0.0], [-0.0]):
        cuts = Thresholds().representatives(np.array(zeros))
        assert cuts.tolist() == [math.inf, 0.0]
        assert not np.signbit(cuts).any()  # bit for bit one cut, whichever zero came first


def test_no_points_have_one_labeling() -> None:
    none = np.array([], dtype=np.int64)
    for h in (Thresholds(), Thresholds(points=3), Cube(points=3), Table(matrix=((0, 1, 1), (1, 1, 1)))):
        assert h.labelings(none).shape == (1, 0)
        assert len(h.representatives(none)) == 1


def test_too_many_to_list() -> None:
    h = Cube(points=64)  # itself no problem: learners have closed forms on it
    assert h.vc_dimension == 64
    for call in (h.members, lambda: h.labelings(np.arange(30))):
        with pytest.raises(ValueError, match=r"too many to list .*; use the analytic method or fewer points"):
            call()
    assert h.best(np.arange(64), np.tile([1, 2], (64, 1))).tolist() == [[1] * 64]
    with pytest.raises(ValueError, match="infinitely many; give points"):
        Thresholds().members()


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("treshold", {}, "did you mean 'thresholds'"),
        ("cube", {"pionts": 3}, "did you mean 'points'"),
        ("cube", {}, "needs points"),
        ("cube", {"points": 0}, "points = 0 must be at least 1"),
        ("thresholds", {"points": 2.0}, "must be an integer"),
        ("thresholds", {"points": True}, "must be an integer"),
        ("table", {"matrix": []}, "at least one row"),
        ("table", {"matrix": [[]]}, "at least one row"),
        ("table", {"matrix": [[0, 1], [1]]}, "row 1 of matrix has 1 entries and row 0 has 2"),
        ("table", {"matrix": [[0, 1], [1, 2]]}, "has 2 in row 1, column 1"),
        ("table", {"matrix": [[0.0, math.nan]]}, "has nan in row 0, column 1"),
        ("table", {"matrix": [["0", "1"]]}, "must be 0 or 1"),
        ("table", {"matrix": 3}, "rows of 0 and 1"),
    ],
)
def test_bad_parameters(kind: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hypotheses.build(kind, **parameters)


def test_classes_are_values() -> None:
    for h in (Thresholds(), Thresholds(points=3), Cube(points=3), Table(matrix=((0, 1), (1, 1)))):
        assert pickle.loads(pickle.dumps(h)) == h
        assert hash(hypotheses.build(h.kind, **h.parameters())) == hash(h)
        assert KINDS[h.kind] is type(h)
    rows = np.array([[0, 1]])
    h = Table(matrix=rows)  # type: ignore[arg-type]
    rows[0, 0] = 1
    assert h.matrix == ((0, 1),)
    assert h.predict(np.array([0]), np.array([0])).tolist() == [[0]]
