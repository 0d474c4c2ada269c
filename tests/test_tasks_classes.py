"""Every hypothesis class: labelings against brute force, the laws of representatives, losses, names, bad input."""

import itertools
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from predcube.tasks import hypotheses
from predcube.tasks.hypotheses import KINDS, HypothesisClass

type Function = Callable[[Any], int]
type Parameters = dict[str, Any]

SIDE = 3
FINITE: dict[str, Parameters] = {
    "points": {"points": 6},
    "intervals": {"points": 6},
    "interval_unions": {"points": 6, "count": 2},
    "boxes": {"points": SIDE, "dimension": 2},
    "stumps": {"points": SIDE, "dimension": 2},
    "halfspaces": {"points": SIDE, "dimension": 2},
    "gf_lines": {"q": 3},
    "complement_pair": {"labels": [0, 1, 1, 0, 1, 0]},
}
REAL: list[tuple[str, Parameters]] = [
    ("points", {}),
    ("intervals", {}),
    ("interval_unions", {"count": 1}),
    ("interval_unions", {"count": 3}),
    ("boxes", {"dimension": 1}),
    ("boxes", {"dimension": 2}),
    ("boxes", {"dimension": 3}),
    ("stumps", {"dimension": 1}),
    ("stumps", {"dimension": 3}),
    ("halfspaces", {"dimension": 2}),
    ("halfspaces", {"dimension": 3}),
    ("complement_pair", {}),
]
EVERY = [*FINITE.items(), *REAL]
BUILT = [hypotheses.build(kind, **p) for kind, p in EVERY]
names = [f"{h.kind}-{'-'.join(map(str, p.values()))}" for h, (_, p) in zip(BUILT, EVERY, strict=True)]
each_class = pytest.mark.parametrize("h", BUILT, ids=names)


def by_linear_program(points: np.ndarray, labels: tuple[int, ...]) -> bool:
    """Whether some w, b have w·x ≥ b + 1 at ones and w·x ≤ b − 1 at zeros. Variables are free, which is not
    linprog's default."""
    sign = np.where(np.array(labels) == 1, -1.0, 1.0)[:, None]
    rows = sign * np.column_stack([points, -np.ones(len(points))])
    found = linprog(np.zeros(rows.shape[1]), A_ub=rows, b_ub=-np.ones(len(points)), bounds=(None, None))
    return bool(found.status == 0)


def realisable(h: HypothesisClass, points: list[Any], labels: tuple[int, ...]) -> bool:
    """Whether the class has a function with these labels at distinct points: by its definition."""
    ones = [p for p, y in zip(points, labels, strict=True) if y]
    zeros = [p for p, y in zip(points, labels, strict=True) if not y]
    match h.kind:
        case "points":
            return len(ones) <= 1
        case "intervals" | "interval_unions":
            runs = [y for y, _ in itertools.groupby(y for _, y in sorted(zip(points, labels, strict=True)))]
            return sum(runs) <= getattr(h, "count", 1)
        case "boxes":
            lo, hi = (np.min(ones, axis=0), np.max(ones, axis=0)) if ones else (0, 0)
            return not ones or not any(np.all(lo <= np.array(z)) and np.all(np.array(z) <= hi) for z in zeros)
        case "stumps":
            if not ones or not zeros:
                return True
            a, b = np.array(ones).reshape(len(ones), -1), np.array(zeros).reshape(len(zeros), -1)
            return bool((a.min(axis=0) > b.max(axis=0)).any() or (a.max(axis=0) < b.min(axis=0)).any())
        case "halfspaces":
            return by_linear_program(np.array(points, dtype=float), labels)
        case "gf_lines":
            q = h.parameters()["q"]
            lines = itertools.product(range(q), repeat=2)
            return any(
                all((y == (a * x + b) % q) == bool(v) for (x, y), v in zip(points, labels, strict=True))
                for a, b in lines
            )
        case _:
            base = h.parameters()["labels"]
            own = [0 if base is None else base[p] for p in points]
            return list(labels) in (own, [1 - v for v in own])


def samples(h: HypothesisClass, most: int = 6) -> st.SearchStrategy[list[Any]]:
    """Lists of points, repeated and in any order; on a real X on a small lattice, so that ties are common."""
    domain = h.domain
    if domain is not None:
        return st.lists(st.sampled_from([tuple(p) if domain.ndim == 2 else p for p in domain.tolist()]), max_size=most)
    # A linear program cannot tell halfspaces from each other as closely as floats lie.
    close = h.kind != "halfspaces"
    value = st.sampled_from(
        [-1.5, 0.0, 0.1, 0.2, 0.30000000000000004, 0.3, 2.0] if close else [-1.5, 0.0, 0.5, 1.0, 3.0]
    )
    return st.lists(value if h.features == 1 else st.tuples(*[value] * h.features), max_size=most)


def array(h: HypothesisClass, sample: list[Any]) -> np.ndarray:
    found = np.array(sample, dtype=np.float64)
    return found if h.features == 1 else found.reshape(len(sample), h.features)


@each_class
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_labelings_are_all_that_the_definition_allows_in_canonical_order(
    h: HypothesisClass, data: st.DataObject
) -> None:
    sample = data.draw(samples(h))
    support = sorted(set(sample))
    expected = [y for y in itertools.product((0, 1), repeat=len(support)) if realisable(h, support, y)]
    found = h.labelings(array(h, sample))
    assert found.dtype == np.uint8
    assert [tuple(row[sample.index(v)] for v in support) for row in found.tolist()] == expected
    assert (found == h.predict(h.representatives(array(h, sample)), array(h, sample))).all()
    assert len(found) <= (h.growth(len(support)) or math.inf)
    assert len(found) <= sum(math.comb(len(support), i) for i in range(h.vc_dimension + 1))


@each_class
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_representatives_depend_on_the_set_of_points_alone(h: HypothesisClass, data: st.DataObject) -> None:
    sample = data.draw(samples(h))
    again = data.draw(st.permutations(sample + sample[:3]))
    one, two = h.representatives(array(h, sample)), h.representatives(array(h, list(again)))
    assert one.tobytes() == two.tobytes()
    assert one.dtype.kind in "iuf"
    # Nor do they depend on what else is in the sample: the rows come from nothing but the points that were given.
    h.representatives(array(h, data.draw(samples(h))))
    assert h.representatives(array(h, sample)).tobytes() == one.tobytes()


@each_class
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_loss_and_best_against_counting(h: HypothesisClass, data: st.DataObject) -> None:
    sample = data.draw(samples(h).filter(bool))
    counts = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=len(sample), max_size=len(sample))
    mass = np.array(data.draw(counts))
    other = array(h, data.draw(samples(h)) + sample[:1])  # hypotheses whose cuts are not at the points
    for at in (array(h, sample), other):
        rows = h.representatives(at)
        labels = h.predict(rows, array(h, sample))
        losses = [sum(int(mass[j, 1 - y]) for j, y in enumerate(row)) for row in labels.tolist()]
        assert h.loss(rows, array(h, sample), mass).tolist() == losses
    rows = h.representatives(array(h, sample))
    losses = h.loss(rows, array(h, sample), mass).tolist()
    first = losses.index(min(losses))
    assert h.best(array(h, sample), mass).tobytes() == rows[first : first + 1].tobytes()


@pytest.mark.parametrize(("kind", "parameters"), FINITE.items(), ids=FINITE)
def test_members_are_every_function_of_a_finite_class(kind: str, parameters: Parameters) -> None:
    h = hypotheses.build(kind, **parameters)
    assert h.domain is not None
    rows = h.predict(h.members(), h.domain)
    assert [tuple(r) for r in rows] == sorted({tuple(r) for r in rows})
    assert len(rows) == h.growth(len(h.domain)) == len(h.labelings(h.domain))
    if h.features == 2:
        assert h.domain.tolist() == [[a, b] for a in range(3) for b in range(3)]


@pytest.mark.parametrize(
    ("kind", "parameters", "d"),
    [
        ("points", {}, 1),
        ("intervals", {}, 2),
        ("intervals", {"points": 1}, 1),
        ("interval_unions", {"count": 3}, 6),
        ("interval_unions", {"count": 3, "points": 4}, 4),
        ("boxes", {"dimension": 2}, 4),
        ("boxes", {"dimension": 2, "points": 2}, 2),
        ("boxes", {"dimension": 2, "points": 3}, 4),
        ("boxes", {"dimension": 1, "points": 2}, 2),
        ("boxes", {"dimension": 3, "points": 2}, 3),
        ("stumps", {"dimension": 1}, 2),
        ("stumps", {"dimension": 2}, 3),
        ("stumps", {"dimension": 3}, 4),
        ("stumps", {"dimension": 10}, 6),
        ("stumps", {"dimension": 2, "points": 2}, 2),
        ("stumps", {"dimension": 3, "points": 3}, 3),
        ("stumps", {"dimension": 2, "points": 3}, 3),
        ("halfspaces", {"dimension": 2}, 3),
        ("halfspaces", {"dimension": 3}, 4),
        ("halfspaces", {"dimension": 2, "points": 2}, 3),
        ("halfspaces", {"dimension": 3, "points": 2}, 4),
        ("halfspaces", {"dimension": 3, "points": 1}, 1),
        ("complement_pair", {}, 1),
    ],
)
def test_vc_dimension_by_formula_and_by_search(kind: str, parameters: Parameters, d: int) -> None:
    h = hypotheses.build(kind, **parameters)
    assert h.vc_dimension == d
    if h.domain is not None:
        assert hypotheses.build("table", matrix=h.labelings(h.domain)).vc_dimension == d


@pytest.mark.parametrize("q", [2, 3, 5, 7, 11])
def test_lines_over_a_field_have_vc_dimension_two_and_not_one(q: int) -> None:
    h = hypotheses.build("gf_lines", q=q)
    assert h.domain is not None
    assert h.vc_dimension == hypotheses.build("table", matrix=h.predict(h.members(), h.domain)).vc_dimension == 2
    assert len(h.labelings(np.array([[0, 0], [1, 1]]))) == 4  # different abscissas
    assert len(h.labelings(np.array([[0, 0], [0, 1]]))) == min(q, 3)  # one abscissa: no line holds both


def test_counts_of_labelings() -> None:
    line = np.arange(7.0)
    assert [len(hypotheses.build(k, **p).labelings(line)) for k, p in REAL[:4]] == [8, 29, 29, 1 + 28 + 70 + 28]
    plane = hypotheses.build("halfspaces", dimension=2)
    assert len(plane.labelings([[0, 0], [1, 1], [2, 2]])) == 6
    assert len(plane.labelings([[0, 0], [0, 1], [1, 0], [1, 1]])) == 14
    assert len(plane.labelings([[0, 0], [3, 1], [1, 5], [3, 1]])) == 8
    space = hypotheses.build("halfspaces", dimension=3)
    assert len(space.labelings(list(itertools.product((0, 1), repeat=3)))) == 104  # threshold functions of three bits
    assert len(space.labelings([[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]])) == 14  # coplanar: as in the plane
    rng = np.random.default_rng(0)
    for h, n in ((plane, 40), (space, 14)):
        general = 2 * sum(math.comb(n - 1, k) for k in range(h.features + 1))
        assert len(h.labelings(rng.random((n, h.features)))) == general == h.growth(n)


@pytest.mark.parametrize("side", [1, 2, 3, 4])
def test_a_grid_of_halfspaces_is_counted_in_closed_form(side: int) -> None:
    h = hypotheses.build("halfspaces", dimension=2, points=side)
    assert h.domain is not None
    assert h.growth(side**2) == len(h.labelings(h.domain))


def test_growth_of_stumps_and_boxes_is_never_exceeded() -> None:
    rng = np.random.default_rng(3)
    for dimension in (1, 2, 3):
        for kind in ("stumps", "boxes"):
            h = hypotheses.build(kind, dimension=dimension)
            for m in (1, 2, 3, 5, 8):
                most = max(len(h.labelings(rng.random((m, dimension)))) for _ in range(20))
                assert most <= (h.growth(m) or 0)
                if kind == "stumps" or dimension == 1 or m < 3:
                    assert most == h.growth(m) or m > 3


@each_class
def test_one_representative_predicts_as_its_name(h: HypothesisClass) -> None:
    name: dict[str, Any] = {
        "points": 2,
        "intervals": [1, 3],
        "interval_unions": [1, 1],
        "boxes": [0, 1] * h.features,
        "stumps": [0, 1, -1],
        "halfspaces": [1, *[2] * (h.features - 1), 2],
        "gf_lines": [2, 1],
        "complement_pair": 1,
    }
    points = h.domain if h.domain is not None else array(h, list(itertools.product((0, 1, 2), repeat=h.features)))
    points = points[:, 0] if h.features == 1 and points.ndim == 2 else points
    labels = h.predict(h.named(name[h.kind]), points)[0].tolist()
    rows = [p if isinstance(p, list) else [p] for p in points.tolist()]
    expected = {
        "points": [p[0] == 2 for p in rows],
        "intervals": [1 <= p[0] <= 3 for p in rows],
        "interval_unions": [p[0] == 1 for p in rows],
        "boxes": [all(v <= 1 for v in p) for p in rows],
        "stumps": [p[0] < 1 for p in rows],
        "halfspaces": [p[0] + 2 * sum(p[1:]) >= 2 for p in rows],
        "gf_lines": [p[-1] == (2 * p[0] + 1) % 3 for p in rows],
        "complement_pair": [v == 0 for v in (h.parameters().get("labels") or [0] * len(rows))],
    }
    assert labels == expected[h.kind]


@each_class
def test_errors_under_the_uniform_law_against_a_grid(h: HypothesisClass) -> None:
    if h.domain is not None:
        named = h.members()[:1]
        with pytest.raises(ValueError, match=r"leave points|use a finite X"):
            h.disagreement(named, named)
        return
    rng = np.random.default_rng(5)
    points = rng.random((5, h.features))
    rows = h.representatives(points[:, 0] if h.features == 1 else points)
    queries = rng.random((20000, h.features))
    labels = h.predict(rows, queries[:, 0] if h.features == 1 else queries).astype(float)
    for concept in rows[:: max(1, len(rows) // 6)]:
        at = concept[None]
        against = h.predict(at, queries[:, 0] if h.features == 1 else queries)[0]
        exact = h.disagreement(rows, at)
        assert np.abs(exact - (labels != against).mean(axis=1)).max() < 0.02  # > 5 standard errors
        assert h.disagreement(at, at).tolist() == [pytest.approx(0.0, abs=1e-12)]


def test_areas_and_volumes_in_closed_form() -> None:
    plane, space = (hypotheses.build("halfspaces", dimension=p) for p in (2, 3))
    none, every = plane.named("all-zero"), plane.named("all-one")
    half = plane.named([1, 1, 1])  # x + y ≥ 1
    for rows, concept, area in [
        (none, every, 1),
        (half, none, 0.5),
        (half, every, 0.5),
        (plane.named([1, 0, 0.25]), half, 0.3125),
    ]:
        assert plane.disagreement(rows, concept).tolist() == [pytest.approx(area, abs=1e-15)]
    corner = space.named([1, 1, 1, 2.5])
    assert space.disagreement(corner, space.named("all-zero")).tolist() == [pytest.approx(0.5**3 / 6, abs=1e-15)]
    middle = space.named([1, 1, 1, 1.5])
    assert space.disagreement(middle, space.named("all-one")).tolist() == [pytest.approx(0.5, abs=1e-15)]
    assert space.disagreement(middle, corner).tolist() == [pytest.approx(0.5 - 0.5**3 / 6, abs=1e-15)]
    boxes = hypotheses.build("boxes", dimension=2)
    assert boxes.disagreement(boxes.named([0, 0.5, 0, 0.5]), boxes.named([0.25, 1, 0.25, 2])).tolist() == [
        pytest.approx(0.25 + 0.75**2 - 2 * 0.0625)
    ]


def test_additive_point_functions_list_null_then_the_points_downwards() -> None:
    h = hypotheses.build("points")
    assert h.additive
    assert h.representatives(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [math.inf, 3.0, 2.0, 1.0]


def test_best_of_many_points_needs_no_list() -> None:
    rng = np.random.default_rng(2)
    x, y = np.arange(2000.0), rng.integers(0, 2, 2000)
    mass = np.column_stack([1 - y, y])
    h = hypotheses.build("interval_unions", count=5)
    with pytest.raises(ValueError, match=r"labelings of 2000 points, .* GiB, and at most 1 GiB are listed; use fewer"):
        h.labelings(x)
    best = h.best(x, mass)
    flips = int((np.diff(h.predict(best, x)[0].astype(int)) != 0).sum())
    assert flips <= 10
    assert (
        h.loss(best, x, mass)[0]
        <= hypotheses.build("intervals").loss(hypotheses.build("intervals").best(x, mass), x, mass)[0]
    )


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("boxes", {}, "needs dimension"),
        ("boxes", {"dimension": 0}, "dimension = 0 must be at least 1"),
        ("boxes", {"dimension": 17}, "dimension = 17 must be at most 16"),
        ("boxes", {"dimension": 8, "points": 10}, r"points = 10 with dimension = 8 is a grid of 100000000 points"),
        ("halfspaces", {"dimension": 1}, "dimension = 1 must be at least 2"),
        ("halfspaces", {"dimension": 4}, "dimension = 4 must be at most 3"),
        ("interval_unions", {}, "needs count"),
        ("interval_unions", {"count": 0}, "count = 0 must be at least 1"),
        ("intervals", {"points": 0}, "points = 0 must be at least 1"),
        ("intervals", {"count": 2}, "takes no parameter 'count'"),
        ("gf_lines", {"q": 9}, r"q = 9 = 3·3 is not prime; give a prime such as 7"),
        ("gf_lines", {"q": 1}, "q = 1 must be at least 2"),
        ("gf_lines", {"q": 10007}, "at most 1018081 are taken; lower q"),
        ("complement_pair", {"labels": [0, 2]}, "must be a list of 0 and 1"),
        ("complement_pair", {"labels": []}, "must be a list of 0 and 1"),
        ("complement_pair", {"labels": [0, 1], "points": 3}, "points = 3 and 2 labels"),
        ("interval", {}, "did you mean 'intervals'"),
    ],
)
def test_bad_parameters(kind: str, parameters: Parameters, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hypotheses.build(kind, **parameters)


@each_class
def test_bad_points(h: HypothesisClass) -> None:
    wrong = np.zeros((2, h.features + 1)) if h.features > 1 else np.zeros((2, 2))
    for call in (h.labelings, h.representatives, lambda p: h.predict(h.representatives(array(h, [])), p)):
        with pytest.raises(ValueError, match=r"points of shape \(2, \d\) have (several|\d) features"):
            call(wrong)
        bad = np.zeros((2, h.features))
        bad[1, -1] = math.nan
        with pytest.raises(ValueError, match=r"point nan at position 1.* is not finite; drop or mend it"):
            call(bad)
        if h.domain is not None:
            bad[1, -1] = 7.0
            with pytest.raises(ValueError, match=r"at position 1 is outside X = \{0, …"):
                call(bad)


@each_class
@pytest.mark.parametrize("name", ["middle", None, True, [], [1, "2"], [math.nan], [0.5] * 40, [[1, 2]]])
def test_names_that_name_nothing(h: HypothesisClass, name: object) -> None:
    with pytest.raises(ValueError, match=r"names no .*; give"):
        h.named(name)


@pytest.mark.parametrize(
    ("kind", "parameters", "name"),
    [
        ("intervals", {}, [3, 1]),
        ("interval_unions", {"count": 2}, [1, 2, 2, 3]),
        ("interval_unions", {"count": 1}, [1, 2, 3, 4]),
        ("boxes", {"dimension": 2}, [0, 1]),
        ("boxes", {"dimension": 2}, [0, 1, 1, 0]),
        ("stumps", {"dimension": 2}, [2, 0.5, 1]),
        ("stumps", {"dimension": 2}, [0, 0.5, 0]),
        ("halfspaces", {"dimension": 2}, [0, 0, 1]),
        ("gf_lines", {"q": 3}, [3, 0]),
        ("gf_lines", {"q": 3}, [0.5, 0]),
        ("complement_pair", {}, 2),
    ],
)
def test_names_of_another_shape(kind: str, parameters: Parameters, name: object) -> None:
    with pytest.raises(ValueError, match=r"names no .*; give"):
        hypotheses.build(kind, **parameters).named(name)


@each_class
def test_no_points_have_one_labeling(h: HypothesisClass) -> None:
    none = np.array([], dtype=np.int64)
    assert h.labelings(none).shape == (1, 0)
    assert len(h.representatives(none)) == 1 == h.growth(0)
    assert h.predict(h.representatives(none), none).shape == (1, 0)


@each_class
def test_classes_are_values(h: HypothesisClass) -> None:
    assert pickle.loads(pickle.dumps(h)) == h
    again = hypotheses.build(h.kind, **h.parameters())
    assert again == h
    assert hash(again) == hash(h)
    assert KINDS[h.kind] is type(h)
    if h.domain is None and h.kind != "complement_pair":
        with pytest.raises(ValueError, match="infinitely many; give points for a finite X"):
            h.members()
