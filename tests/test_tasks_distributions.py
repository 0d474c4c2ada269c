"""Laws of data: exact errors against sums written out and against samples, tables against brute force, bad input."""

import math
import pickle
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from predcube.tasks import distributions
from predcube.tasks.distributions import Concept, Distribution, Joint, LowerBound, Table, Threshold
from predcube.tasks.hypotheses import Cube, HypothesisClass, Points, Representatives, Thresholds
from predcube.tasks.hypotheses import Table as FiniteClass
from predcube.tasks.seeds import stream

LINE = Thresholds()


def finite_class(rows: list[list[int]]) -> FiniteClass:
    return FiniteClass(matrix=tuple(map(tuple, rows)))  # type: ignore[arg-type]


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("at", [-3, 0, 4, 4.5, 9])
def test_threshold_law_on_points(at: float, noise: float) -> None:
    h = Thresholds(points=9)
    population = Threshold(at=at, noise=noise).draw(h, 1, stream(0, "data")).population
    expected = [
        sum((noise if (x >= a) == (x >= at) else 1 - noise) / 9 for x in range(9))
        for a in (math.inf, *range(8, -1, -1))
    ]
    np.testing.assert_allclose(population.errors(h, h.members()), expected, rtol=1e-14)
    assert population.least_error(h) == pytest.approx(min(expected), rel=1e-14)
    assert population.exact


@pytest.mark.parametrize("at", [-2.0, 0.0, 0.3, 1.0, 5.0])
def test_threshold_law_on_the_line_against_integration(at: float) -> None:
    population = Threshold(at=at, noise=0.2).draw(LINE, 1, stream(0, "data")).population
    cuts = np.array([-1.0, 0.0, 0.3, 0.77, 1.0, 3.0, math.inf])
    x = (np.arange(200_000) + 0.5) / 200_000  # the midpoint rule, exact to 1e-5 for a step
    wrong = (x[None, :] >= cuts[:, None]) != (x >= at)
    np.testing.assert_allclose(population.errors(LINE, cuts), np.where(wrong, 0.8, 0.2).mean(axis=1), atol=1e-5)
    assert population.least_error(LINE) == 0.2


def laws() -> list[tuple[Distribution, HypothesisClass]]:
    rows = [[0, 1, 1], [1, 0, 1], [0, 0, 0]]
    joint = Joint(table=((0.1, 0.2), (0.0, 0.3), (0.4, 0.0)))
    return [
        (Threshold(at=0.35, noise=0.1), LINE),
        (Threshold(at=2, noise=0.1), Thresholds(points=3)),
        (Threshold(at=1, noise=0.1), Cube(points=3)),
        (Concept(hypothesis=0.35, noise=0.3), LINE),
        (Concept(hypothesis="all-zero", noise=0.3), Thresholds(points=3)),
        (Concept(hypothesis="101", noise=0.1), Cube(points=3)),
        (Concept(hypothesis=1, noise=0.1), finite_class(rows)),
        (joint, finite_class(rows)),
        (joint, Cube(points=3)),
        (joint, Thresholds(points=3)),
        (LowerBound(alpha=0.1), Cube(points=3)),
    ]


@pytest.mark.parametrize(("law", "h"), laws())
def test_samples_follow_the_population(law: Distribution, h: HypothesisClass) -> None:
    assert law.unsuitable(h) is None
    assert law.infeasible(1) is None
    n = 40_000
    draw = law.draw(h, n, stream(3, "data", law.kind))
    assert draw.x.shape == draw.y.shape == (n,)
    assert draw.y.dtype == np.uint8
    representatives = h.representatives(draw.x[:50])
    rates = (h.predict(representatives, draw.x) != draw.y).mean(axis=1)
    np.testing.assert_allclose(rates, draw.population.errors(h, representatives), atol=5 * 0.5 / math.sqrt(n))
    assert draw.population.least_error(h) == pytest.approx(min(all_errors(draw.population, h)), abs=1e-12)


def all_errors(population: Any, h: HypothesisClass) -> list[float]:
    every: Representatives = np.linspace(0, 1, 2001) if h.domain is None else h.members()
    return list(population.errors(h, every))


def test_points_of_a_finite_law_are_uniform() -> None:
    draw = Threshold(at=4, noise=0.25).draw(Thresholds(points=9), 9000, stream(1, "data"))
    assert stats.chisquare(np.bincount(draw.x.astype(np.int64), minlength=9)).pvalue > 1e-4
    flips = int((draw.y != (draw.x >= 4)).sum())
    assert stats.binomtest(flips, 9000, 0.25).pvalue > 1e-4


def test_joint_law_and_its_cells() -> None:
    table = ((0.1, 0.2), (0.0, 0.3), (0.4, 0.0))
    draw = Joint(table=table).draw(Cube(points=3), 10_000, stream(1, "data"))
    seen = Counter(zip(draw.x.tolist(), draw.y.tolist(), strict=True))
    assert set(seen) == {(0, 0), (0, 1), (1, 1), (2, 0)}
    counts = [seen[x, y] for x, y in ((0, 0), (0, 1), (1, 1), (2, 0))]
    assert stats.chisquare(counts, [1000, 2000, 3000, 4000]).pvalue > 1e-4
    population = draw.population
    assert population.least_error(Cube(points=3)) == pytest.approx(0.1)
    assert population.errors(Cube(points=3), np.array([[1, 1, 0], [0, 0, 1]])).tolist() == pytest.approx([0.1, 0.9])


def test_lower_bound_instance() -> None:
    h, law = Cube(points=5), LowerBound(alpha=0.2)
    labels = []
    for trial in range(400):
        draw = law.draw(h, 30, stream(1, "data", trial))
        population: Any = draw.population
        np.testing.assert_allclose(population.law.sum(axis=1), [0.2, 0.2, 0.2, 0.2, 0.2], rtol=1e-14)
        concept = (population.law[:, 1] > 0).astype(np.uint8)
        np.testing.assert_array_equal(draw.y, concept[draw.x.astype(np.int64)])  # realizable
        assert population.least_error(h) == 0.0
        labels.append(concept)
    assert stats.binomtest(int(np.sum(labels)), 2000, 0.5).pvalue > 1e-4
    assert len({tuple(v) for v in np.array(labels).tolist()}) == 32
    population = LowerBound(alpha=0.1).draw(Cube(points=11), 1, stream(0, "data")).population
    np.testing.assert_allclose(population.law.sum(axis=1), [0.04] * 10 + [0.6], rtol=1e-14)


tables = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 1)), min_size=2, max_size=9)


@given(tables, st.integers(0, 10**6), st.data())
def test_table_errors_against_brute_force(rows: list[tuple[int, int]], seed: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(rows) - 1))
    law = Table(x=np.array([r[0] for r in rows]) / 2, y=np.array([r[1] for r in rows], dtype=np.uint8), digest="d")
    draw = law.draw(LINE, n, stream(seed, "data"))
    held = Counter((x / 2, y) for x, y in rows)
    held.subtract(zip(draw.x.tolist(), draw.y.tolist(), strict=True))
    assert min(held.values()) >= 0
    assert sum(held.values()) == len(rows) - n

    def mistakes(cut: float, counts: Counter[tuple[float, int]]) -> int:
        return sum(c for (x, y), c in counts.items() if (x >= cut) != bool(y))

    cuts = [math.inf, *sorted({x / 2 for x, _ in rows}, reverse=True)]
    whole = Counter((x / 2, y) for x, y in rows)
    expected = [mistakes(c, held) / (len(rows) - n) for c in cuts]
    assert draw.population.errors(LINE, np.array(cuts)).tolist() == pytest.approx(expected, abs=1e-15)
    best = min(cuts, key=lambda c: mistakes(c, whole))  # the first in canonical order
    assert draw.population.least_error(LINE) == pytest.approx(mistakes(best, held) / (len(rows) - n), abs=1e-15)
    assert not draw.population.exact


def test_mean_least_error_of_held_out_rows_is_that_of_the_table() -> None:
    rng = np.random.default_rng(5)
    law = Table(x=rng.integers(0, 4, 12), y=rng.integers(0, 2, 12).astype(np.uint8), digest="d")
    h = Cube(points=4)
    exact = float(h.loss(h.best(law.points, law.counts), law.points, law.counts)[0]) / 12
    found = [law.draw(h, 5, stream(2, "data", t)).population.least_error(h) for t in range(3000)]
    assert np.mean(found) == pytest.approx(exact, abs=5 * np.std(found) / math.sqrt(3000))


def test_every_row_is_as_likely_to_be_drawn() -> None:
    law = Table(x=np.arange(10.0), y=np.zeros(10, dtype=np.uint8), digest="d")
    seen = np.zeros(10, dtype=int)
    for t in range(2000):
        x = law.draw(LINE, 3, stream(2, "data", t)).x
        assert len(set(x.tolist())) == 3
        seen[x.astype(int)] += 1
    assert stats.chisquare(seen).pvalue > 1e-4


def test_table_of_one_column_and_of_both_zeros() -> None:
    law = Table(x=np.array([[0.0], [-0.0], [1.0]]), y=np.array([0, 1, 1], dtype=np.uint8), digest="d")
    assert law.x.shape == (3,)
    assert law.points.tolist() == [0.0, 1.0]
    assert law.counts.tolist() == [[1, 1], [0, 1]]
    assert law.parameters() == {"digest": "d"}


def test_table_that_does_not_fit_the_class() -> None:
    y = np.array([0, 1], dtype=np.uint8)
    two = Table(x=np.zeros((2, 2)), y=y, digest="d")
    assert "has 2 features and 'thresholds' takes 1" in str(two.unsuitable(LINE))
    wide = Table(x=np.array([0, 7]), y=y, digest="d")
    assert "point 7 at position 1 is outside X" in str(wide.unsuitable(Thresholds(points=3)))
    assert wide.unsuitable(Thresholds(points=8)) is None
    assert wide.unsuitable(LINE) is None
    assert wide.infeasible(1) is None
    for n in (0, 2):
        assert "samples of 1 to 1, one row held out" in str(wide.infeasible(n))
        with pytest.raises(ValueError, match="a table of 2 rows"):
            wide.draw(LINE, n, stream(0, "data"))


@pytest.mark.parametrize(
    ("law", "h", "message"),
    [
        (Threshold(at=1), finite_class([[0, 1]]), None),
        (Concept(hypothesis=5), finite_class([[0, 1]]), "names no row"),
        (Concept(hypothesis="01"), LINE, "names no threshold"),
        (Joint(table=((0.5, 0.5),)), LINE, "needs a finite X"),
        (Joint(table=((0.5, 0.5),)), Thresholds(points=3), "1 rows and X has 3 points"),
        (LowerBound(alpha=0.1), LINE, "use the cube"),
        (LowerBound(alpha=0.1), Thresholds(points=3), "VC dimension 1 on 3 points"),
        (LowerBound(alpha=0.1), Cube(points=1), "at least 2 points"),
        (LowerBound(alpha=0.1), finite_class([[0, 0], [0, 1], [1, 0], [1, 1]]), None),
    ],
)
def test_which_law_fits_which_class(law: Distribution, h: HypothesisClass, message: str | None) -> None:
    reason = law.unsuitable(h)
    assert reason is None if message is None else message in str(reason)


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("treshold", {"at": 1}, "did you mean 'threshold'"),
        ("threshold", {"at": 1, "nois": 0.1}, "did you mean 'noise'"),
        ("threshold", {}, "needs at"),
        ("threshold", {"at": 1, "noise": 0.6}, "must be at most 0.5"),
        ("threshold", {"at": math.nan}, "must be finite"),
        ("threshold", {"at": "4"}, "must be a number"),
        ("concept", {"hypothesis": None}, "must be a finite number, text or a list"),
        ("concept", {"hypothesis": [0, math.nan]}, "must be a finite number, text or a list"),
        ("concept", {"hypothesis": math.inf}, "must be a finite number, text or a list"),
        ("lower_bound", {"alpha": 0.0}, "must be above 0"),
        ("lower_bound", {"alpha": 0.3}, "must be at most 0.25"),
        ("joint", {"table": [[0.5, 0.4]]}, "sum to 0.9"),
        ("joint", {"table": [[0.5, 0.6], [0.0, -0.1]]}, "row 1 of table has -0.1"),
        ("joint", {"table": [[0.5, math.nan]]}, "row 0 of table has nan"),
        ("joint", {"table": [[0.5, 0.25, 0.25]]}, "3 entries"),
        ("joint", {"table": [1.0]}, "1 entries"),
        ("joint", {"table": [["0.5", 0.5]]}, "no probability"),
        ("joint", {"table": []}, "sum to 0"),
        ("table", {"x": [1.0, math.nan], "y": [0, 1], "digest": "d"}, "row 1 has the feature nan"),
        ("table", {"x": [1.0, 2.0], "y": [0, 2], "digest": "d"}, "row 1 has the label 2"),
        ("table", {"x": [1.0, 2.0], "y": [0, 1, 1], "digest": "d"}, "2 points and 3 labels"),
        ("table", {"x": [1.0], "y": [0], "digest": "d"}, "at least 2 rows"),
        ("table", {"x": ["a", "b"], "y": [0, 1], "digest": "d"}, "give .* numbers"),
        ("table", {"x": [1.0, 2.0], "y": ["a", "b"], "digest": "d"}, "labels of 0 and 1"),
        ("table", {"x": [1.0, 2.0], "y": [0, 1], "digest": ""}, "digest is empty"),
    ],
)
def test_bad_parameters(kind: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        distributions.build(kind, **parameters)


def test_equal_laws_name_one_stream() -> None:
    """4 and 4.0, and a list and a tuple, are one value: their draws must be the same draws."""
    pairs = [
        (Threshold(at=4), Threshold(at=4.0)),
        (Threshold(at=0.0), Threshold(at=-0.0)),
        (Concept(hypothesis=4), Concept(hypothesis=4.0)),
        (Concept(hypothesis=[0, 1]), Concept(hypothesis=(0, 1))),  # type: ignore[arg-type]
        (Joint(table=[[1, 0]]), Joint(table=((1.0, -0.0),))),  # type: ignore[arg-type]
    ]
    for one, two in pairs:
        assert one == two
        draws = [stream(1, "data", dict(law.parameters()), 5, 0).random() for law in (one, two)]
        assert draws[0] == draws[1]


def test_draws_follow_the_stream_alone() -> None:
    law, h = Threshold(at=4, noise=0.1), Thresholds(points=9)
    one, two = (law.draw(h, 20, stream(1, "data", 20, 0)) for _ in range(2))
    np.testing.assert_array_equal(one.x, two.x)
    np.testing.assert_array_equal(one.y, two.y)
    assert one.population is two.population  # so the least error is found once for all trials
    assert not np.array_equal(one.x, law.draw(h, 20, stream(1, "data", 20, 1)).x)


def test_laws_travel() -> None:
    for law, h in laws():
        again = pickle.loads(pickle.dumps(law))
        assert again == law
        one, two = (v.draw(h, 9, stream(1, "data")) for v in (law, again))
        np.testing.assert_array_equal(one.x, two.x)
    table = Table(x=np.arange(5.0), y=np.array([0, 1, 0, 1, 1], dtype=np.uint8), digest="d")
    again = pickle.loads(pickle.dumps(table))
    np.testing.assert_array_equal(table.draw(LINE, 3, stream(1, "x")).x, again.draw(LINE, 3, stream(1, "x")).x)


def test_a_joint_law_in_exact_arithmetic() -> None:
    """Errors of thresholds by prefix sums equal rational sums to the last digits, also for many points."""
    weights = np.random.default_rng(0).integers(1, 10, size=(1000, 2))
    law = Joint(table=tuple(map(tuple, (weights / weights.sum()).tolist())))
    h = Thresholds(points=1000)
    total = int(weights.sum())
    cuts: Points = np.array([0, 1, 500, 999])
    expected = [
        float(Fraction(int(weights[:c, 1].sum() + weights[c:, 0].sum()), total)) for c in cuts.astype(int).tolist()
    ]
    population = law.draw(h, 1, stream(0, "data")).population
    np.testing.assert_allclose(population.errors(h, cuts), expected, rtol=1e-13)
