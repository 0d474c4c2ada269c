"""E|H_T| and the chance of a net, by the definition: every subset, every pair of functions."""

import itertools
from typing import Any

import numpy as np
import pytest

from predcube.tasks import nets
from predcube.tasks.distributions import build as law
from predcube.tasks.hypotheses import build
from predcube.tasks.learners import build as learner
from predcube.tasks.mixture import occupancy
from predcube.tasks.trials import Problem, inapplicable, measure

CLASSES: list[tuple[str, dict[str, Any], Any]] = [
    ("thresholds", {}, np.array([1.0, 2, 2, 3, 5, 5, 5, 8])),
    ("intervals", {"points": 6}, np.array([0, 1, 1, 2, 3, 4, 5, 5])),
    ("cube", {"points": 6}, np.array([0, 0, 0, 1, 2, 3, 4, 5])),
    ("halfspaces", {"dimension": 2}, np.random.default_rng(0).random((8, 2))),
    ("boxes", {"dimension": 2}, np.random.default_rng(1).integers(0, 3, (8, 2)).astype(float)),
]


@pytest.mark.parametrize(("kind", "parameters", "x"), CLASSES, ids=[c[0] for c in CLASSES])
@pytest.mark.parametrize("alpha", [0.125, 0.3, 0.5])
def test_nets_and_labelings_are_the_definition(kind: str, parameters: dict[str, Any], x: Any, alpha: float) -> None:
    h = build(kind, **parameters)
    rows = h.labelings(x)
    held, hits, count = 0.0, 0, 0
    for chosen in itertools.combinations(range(8), 4):
        held += len(h.labelings(x[list(chosen)]))
        part = rows[:, list(chosen)]
        agree = (part[:, None] == part[None]).all(axis=2)
        apart = (rows[:, None] != rows[None]).mean(axis=2)
        hits += not bool((agree & (apart > alpha)).any())
        count += 1
    sample = occupancy(x, np.zeros(8, dtype=int))
    sets = nets.drawn_sets(sample, 4, np.random.default_rng(0))
    assert sets.chances.sum() == pytest.approx(1.0, abs=1e-12)
    assert nets.mean_labelings(h, sample, sets) == pytest.approx(held / count, abs=1e-10)
    found = nets.net_probability(h, sample, sets, alpha)
    assert found == pytest.approx(hits / count, abs=1e-12)
    drawn = nets.drawn_sets(sample, 4, np.random.default_rng(1), most_points=50)
    sampled = nets.net_probability(h, sample, drawn, alpha)
    assert abs(sampled - found) <= 4.5 * np.sqrt(max(found * (1 - found), 1e-3) / nets.DRAWN)


def test_a_trial_measures_them_or_says_why_not() -> None:
    def problem(**change: Any) -> Problem:
        cell: dict[str, Any] = {
            "hypotheses": build("intervals", points=7),
            "distribution": law("concept", hypothesis=[2, 4], noise=0.1),
            "learner": learner("stable", gamma=0.3),
            "n": 20,
            "quantities": ("growth", "labelings", "net_probability"),
            "seed": 1,
            "net_alpha": 0.25,
        }
        return Problem(**cell | change)

    found = measure(problem(), 0)
    assert 1 <= found["labelings"] <= found["growth"]
    assert 0 <= found["net_probability"] <= 1
    assert found["subset_sets"] == 1
    large = problem(hypotheses=build("intervals"), distribution=law("concept", hypothesis=[0.2, 0.4], noise=0.1))
    assert measure(large, 0) == measure(large, 0)
    assert measure(large, 0)["labelings"] == 6 * 7 / 2 + 1  # n' = 6 distinct points
    assert measure(large, 0)["subset_sets"] == 2
    assert "set measure.net_alpha" in inapplicable(problem(net_alpha=None))["net_probability"]
    assert "erm draws none" in inapplicable(problem(learner=learner("erm")))["labelings"]


def test_a_standard_error_is_kept_or_the_trial_fails() -> None:
    cell = Problem(
        hypotheses=build("halfspaces", dimension=2),
        distribution=law("concept", hypothesis=[1.0, 1.0, 1.0], noise=0.1),
        learner=learner("stable", gamma=0.2),
        n=30,
        quantities=("error",),
        seed=3,
        method="mc",
        standard_error=0.002,
    )
    exact = measure(Problem(**{f: getattr(cell, f) for f in cell.__slots__} | {"method": "enumerate"}), 0)
    assert abs(measure(cell, 0)["error"] - exact["error"]) <= 4.5 * 0.002
    few = Problem(**{f: getattr(cell, f) for f in cell.__slots__} | {"standard_error": 1e-9, "samples": 1200})
    with pytest.raises(ArithmeticError, match="raise samples"):
        measure(few, 0)
