"""Charts and the engine on them: H_T of the rule, sums against brute force, all methods and classes alike."""

import itertools
from typing import Any

import numpy as np
import pytest

from predcube.tasks.hypotheses import HypothesisClass, build
from predcube.tasks.hypotheses.points import distinct
from predcube.tasks.mixture import Labels, Means, MixtureWeights, aimed, evaluate, occupancy, subset_mixture
from predcube.tasks.mixture.montecarlo import MonteCarlo
from predcube.tasks.mixture.visits import Visitor, listings

RNG = np.random.default_rng(5)
ROWS = RNG.integers(0, 2, (40, 9)).tolist()
CLASSES: list[tuple[str, dict[str, Any], Any]] = [
    ("thresholds", {}, RNG.random(9)),
    ("points", {"points": 6}, RNG.integers(0, 6, 9)),
    ("intervals", {}, RNG.random(9)),
    ("interval_unions", {"count": 1}, RNG.integers(0, 5, 9).astype(float)),
    ("interval_unions", {"count": 2}, RNG.random(7)),
    ("boxes", {"dimension": 1}, RNG.random((9, 1))),
    ("boxes", {"dimension": 2}, RNG.random((7, 2))),
    ("stumps", {"dimension": 1}, RNG.random((9, 1))),
    ("stumps", {"dimension": 3}, RNG.random((9, 3))),
    ("stumps", {"dimension": 2, "points": 3}, RNG.integers(0, 3, (9, 2))),
    ("halfspaces", {"dimension": 2}, RNG.random((9, 2))),
    ("halfspaces", {"dimension": 2, "points": 3}, RNG.integers(0, 3, (9, 2))),
    ("halfspaces", {"dimension": 3}, RNG.random((7, 3))),
    ("gf_lines", {"q": 5}, RNG.integers(0, 5, (9, 2))),
    ("table", {"matrix": ROWS}, RNG.integers(0, 9, 9)),
    ("complement_pair", {"labels": [0, 1, 1, 0, 1]}, RNG.integers(0, 5, 9)),
    ("cube", {"points": 5}, RNG.integers(0, 5, 9)),
]
NAMES = [f"{kind} {' '.join(f'{k}={v}' for k, v in p.items() if k != 'matrix')}" for kind, p, _ in CLASSES]


def case(number: int) -> tuple[HypothesisClass, Any, Any]:
    kind, parameters, x = CLASSES[number]
    return build(kind, **parameters), x, np.random.default_rng(number).integers(0, 2, len(x))


def brute(h: HypothesisClass, x: Any, y: Any, size: int, beta: float, queries: Any) -> Any:
    """p_S by the definition: every subset, every representative, one by one."""
    p, sets, subsets = np.zeros(len(queries)), 0, 0
    for chosen in itertools.combinations(range(len(x)), size):
        rows = h.representatives(x[list(chosen)])
        wrong = (h.predict(rows, x) != y).sum(axis=1)
        weights = np.exp(-beta * (wrong - wrong.min()))
        p += weights @ h.predict(rows, queries) / weights.sum()
        sets += len(rows)
        subsets += 1
    return p / subsets, sets / subsets


@pytest.mark.parametrize("number", range(len(CLASSES)), ids=NAMES)
def test_enumeration_and_support_are_the_definition(number: int) -> None:
    h, x, y = case(number)
    sample = occupancy(x, y)
    expected, held = brute(h, x, y, 4, 0.7, x)
    for method in ("enumerate", "support", *(["laplace"] if h.additive else [])):
        mixture = evaluate(subset_mixture(h, sample, subset_size=4, beta=0.7, method=method))
        assert isinstance(mixture, MixtureWeights)
        assert mixture.weights.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(mixture.predict(h, x).p, expected, atol=1e-12)
    total = subset_mixture(h, sample, subset_size=4, beta=0.7, method="mc", samples=64).partial(0)
    assert 0 < total.spread[0] / 64 <= held * 2


@pytest.mark.parametrize("number", range(len(CLASSES)), ids=NAMES)
def test_a_chart_has_the_hypotheses_of_the_rule(number: int) -> None:
    h, x, y = case(number)
    sample = occupancy(x, y)
    k = len(sample.points)
    chart = h.chart(sample.points, k)
    assert (chart is not None) == h.charted(k, k)
    if chart is None:
        return
    losses = chart.losses(sample.counts)
    named = np.flatnonzero(np.isfinite(losses))
    rows = chart.representatives(named)
    assert losses[named].tolist() == h.loss(rows, sample.points, sample.counts).tolist()
    scale = np.exp(-0.2 * losses)
    rng = np.random.default_rng(1)
    for _ in range(25):
        t = int(rng.integers(1, k + 1))
        subset = np.sort(rng.choice(k, t, replace=False))
        padded = np.pad(subset, (0, k - t), constant_values=-1)[None]
        sums, sizes, totals = np.zeros(chart.size), np.empty(1, dtype=np.int64), np.empty(1)
        chart.add(padded, np.array([3.0]), scale, sums, sizes, totals)
        found = chart.representatives(np.flatnonzero(sums))
        rule = h.representatives(sample.points[subset])
        assert sizes[0] == len(found) == len(rule)
        queries = sample.points if h.domain is None else h.domain
        assert sorted(map(bytes, h.predict(found, queries))) == sorted(map(bytes, h.predict(rule, queries)))
        assert totals[0] == pytest.approx(scale[np.flatnonzero(sums)].sum(), rel=1e-13)
        np.testing.assert_allclose(sums[sums > 0], 3.0 / totals[0], rtol=1e-13)


@pytest.mark.parametrize("number", range(len(CLASSES)), ids=NAMES)
def test_without_the_chart_sums_are_the_same(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    h, x, y = case(number)
    sample = occupancy(x, y)
    expected = evaluate(subset_mixture(h, sample, subset_size=3, beta=0.4, method="mc", samples=256)).predict(h, x)
    monkeypatch.setattr("predcube.tasks.mixture.visits.RANGE", -1.0)  # no λ fits: every class is asked T by T
    monkeypatch.setattr(listings, "LISTED", 40)
    monkeypatch.setattr(listings, "AVERAGED", 40)
    work = subset_mixture(h, sample, subset_size=3, beta=0.4, method="mc", samples=256)
    assert isinstance(work, MonteCarlo)
    assert work.visitor.chart is None
    means = evaluate(aimed(work, Labels(hypotheses=h, queries=x)))
    assert isinstance(means, Means)
    for found in (evaluate(work), means):
        again = found.predict(h, x)
        np.testing.assert_allclose(again.p, expected.p, atol=1e-13)
        np.testing.assert_allclose(again.standard_error, expected.standard_error, atol=1e-12)
    with pytest.raises(ValueError, match="weights were not kept"):
        _ = means.representatives


def test_weights_beyond_floats_are_kept() -> None:
    """β·n = 4000: λ spans e^4000, so the chart stands back; the exact methods still agree to relative precision."""
    x = np.arange(4).repeat([1000, 1000, 999, 1001])
    y = (np.arange(4000) % 3 == 0).astype(int)
    h, sample = build("intervals"), occupancy(x, y)
    assert Visitor(hypotheses=h, sample=sample, size=2, beta=1.0).chart is None
    by_support = evaluate(subset_mixture(h, sample, subset_size=2, beta=1.0, method="support"))
    assert isinstance(by_support, MixtureWeights)
    work = subset_mixture(h, sample, subset_size=2, beta=1.0, method="mc", samples=2048)
    found = evaluate(work)
    assert isinstance(found, MixtureWeights)
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)
    sampled = dict(zip(map(bytes, found.representatives), found.weights, strict=True))
    errors = dict(zip(map(bytes, found.representatives), found.standard_error, strict=True))
    for row, log_weight in zip(by_support.representatives, by_support.log_weights, strict=True):
        assert abs(sampled[bytes(row)] - np.exp(log_weight)) <= 5 * errors[bytes(row)] + 1e-12


def test_the_effective_number_is_kishs() -> None:
    h, x, y = case(2)
    sample = occupancy(x, y)
    work = subset_mixture(h, sample, subset_size=4, beta=2.0, method="mc", samples=128, seed=3)
    assert isinstance(work, MonteCarlo)
    rows, _ = work._drawn(0)
    place = np.repeat(np.arange(len(sample.points)), sample.counts.sum(axis=1))
    z = [
        np.exp(-2.0 * h.loss(h.representatives(sample.points[r]), sample.points, sample.counts)).sum()
        for r in place[rows]
    ]
    share = 1.0 / np.array(z)
    found = evaluate(work)
    assert isinstance(found, MixtureWeights)
    assert found.effective_subsets == pytest.approx(share.sum() ** 2 / (share**2).sum(), rel=1e-10)
    assert 1 <= found.effective_subsets <= found.subsets
    assert distinct(x)[0].shape == sample.points.shape


@pytest.mark.parametrize("number", [2, 6, 10])
def test_sampling_stops_at_the_standard_error(number: int) -> None:
    h, x, y = case(number)
    sample = occupancy(x, y)
    labels = Labels(hypotheses=h, queries=x)
    work = subset_mixture(h, sample, subset_size=3, beta=0.5, method="mc", seed=1)
    goal = 0.006
    stopped = aimed(work, labels, standard_error=goal)
    assert stopped.blocks == 1
    found = evaluate(stopped)
    assert found.mean_standard_error(labels).max() <= goal
    assert found.subsets >= 1024
    exact = evaluate(subset_mixture(h, sample, subset_size=3, beta=0.5, method="enumerate")).predict(h, x)
    assert np.abs(found.predict(h, x).p - exact.p).max() <= 4.5 * goal
    again = evaluate(aimed(work, labels, standard_error=goal))
    assert np.array_equal(again.mean(labels), found.mean(labels))
    with pytest.raises(ArithmeticError, match="after 1,024 subsets"):
        evaluate(aimed(work, labels, standard_error=1e-9, samples=1500))


@pytest.mark.long
def test_intervals_of_sampling_cover_at_their_level() -> None:
    """Over 500 seeds: 95 % intervals of a fixed number of subsets, and of one that stops by itself; and four standard
    errors hold 99.9 % of the time."""
    h, x, y = case(10)
    sample = occupancy(x, y)
    labels = Labels(hypotheses=h, queries=x[:3])
    exact = evaluate(subset_mixture(h, sample, subset_size=3, beta=0.5, method="enumerate")).mean(labels)
    for error in (None, 0.006):
        scores = []
        for seed in range(500):
            work = subset_mixture(h, sample, subset_size=3, beta=0.5, method="mc", samples=512, seed=seed)
            found = evaluate(aimed(work, labels, standard_error=error))
            scores.append(((found.mean(labels) - exact) / found.mean_standard_error(labels))[:3])
        z = np.abs(np.array(scores))
        # 1.998 is the 97.5 % point of Student's law with 63 degrees of freedom.
        assert (z < 1.998).mean(axis=0) == pytest.approx(0.95, abs=0.03)
        assert (z <= 4).mean() >= 0.999


@pytest.mark.parametrize(("kind", "parameters"), [("halfspaces", {"dimension": 2}), ("intervals", {})])
def test_supports_of_many_points_go_by_the_chart(kind: str, parameters: dict[str, int]) -> None:
    # 18 points of which four stand twice: 2^18 supports, those of at most 4 points possible.
    rng = np.random.default_rng(3)
    points = rng.permutation([(i, j) for i in range(6) for j in range(6)])[:18] if parameters else np.arange(18.0)
    x = np.concatenate([points, points[:4]]).astype(float)
    y = rng.integers(0, 2, len(x))
    given: dict[str, Any] = {
        "hypotheses": build(kind, **parameters),
        "sample": occupancy(x, y),
        "subset_size": 4,
        "beta": 0.7,
    }
    summed = evaluate(subset_mixture(**given, method="support", weights=True))
    visited = evaluate(subset_mixture(**given, method="enumerate", weights=True))
    queries = x[:18]
    one, other = (m.predict(given["hypotheses"], queries) for m in (summed, visited))
    np.testing.assert_allclose(one.log_p1, other.log_p1, rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.log_p0, other.log_p0, rtol=0, atol=1e-12)
    assert np.exp(summed.log_weights).sum() == pytest.approx(1, abs=1e-12)
