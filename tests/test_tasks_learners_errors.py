"""Errors of every learner on each kind of law, by trials, against sums over points, rows and pieces written apart."""

import math
from typing import Any

import numpy as np
import pytest

from predcube.tasks import distributions, hypotheses, learners, predict
from predcube.tasks.learners import KINDS, Learner
from predcube.tasks.mixture import evaluate
from predcube.tasks.trials import Problem, blocks, infeasible, measure, memory, operations, outputs, prepare

PARAMETERS: dict[str, dict[str, Any]] = {
    "stable": {"gamma": 0.4},
    "stable_net": {"gamma": 0.4, "alpha": 0.3},
    "stable_flip": {"epsilon": 2.0, "alpha": 0.4},
    "private": {"epsilon": 0.9, "alpha": 0.2, "eta": 0.3, "chunks": 3, "subset_size": 2},
    "private_lwy": {"epsilon": 0.3, "alpha": 0.2, "chunks": 2},
    "df_realizable": {"epsilon": 1.0, "alpha": 0.2, "chunks": 3},
    "df_agnostic": {"epsilon": 1.0, "chunks": 3},
    "df_thresholds": {"epsilon": 1.0, "alpha": 0.1},
    "subsample_average": {"chunks": 3},
    "subsample": {"inner": {"kind": "df_realizable", "epsilon": 1.0, "alpha": 0.1, "chunks": 2}, "subset_size": 3},
    "exponential": {"epsilon": 1.0},
    "erm": {},
    "two_point": {},
}


def learner_of(kind: str) -> Learner:
    return learners.build(kind, **PARAMETERS[kind])


def suited(kind: str, real: bool) -> hypotheses.HypothesisClass:
    if kind == "two_point":
        return hypotheses.build("complement_pair", **({} if real else {"points": 4}))
    return hypotheses.build("thresholds", **({} if real else {"points": 4}))


def problem(kind: str, h: hypotheses.HypothesisClass, law: Any, **options: Any) -> Problem:
    return Problem(
        hypotheses=h,
        distribution=law,
        learner=learner_of(kind),
        n=8,
        quantities=("error", "excess_error", "stability", "privacy_loss", "growth"),
        seed=3,
        **options,
    )


def test_every_learner_is_here() -> None:
    assert PARAMETERS.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_errors_on_a_finite_law(kind: str) -> None:
    h = suited(kind, real=False)
    law = np.array([[0.2, 0.05], [0.1, 0.1], [0.05, 0.2], [0.1, 0.2]])
    cell = problem(kind, h, distributions.build("joint", table=law.tolist()))
    assert infeasible(cell) is None
    draw = prepare(cell, 1).draw
    p = predict(cell.learner, h, draw.x, draw.y, range(4)).p
    expected = sum(p[x] * law[x, 0] + (1 - p[x]) * law[x, 1] for x in range(4))
    got = measure(cell, 1)
    assert got["error"] == pytest.approx(expected, abs=1e-12)
    best = min(sum(law[x, 1 - row[x]] for x in range(4)) for row in h.predict(h.members(), np.arange(4)))
    assert got["excess_error"] == pytest.approx(expected - best, abs=1e-12)
    assert got["stability"] <= cell.learner.guaranteed_stability(8) + 1e-12
    assert got["privacy_loss"] <= cell.learner.guaranteed_privacy_loss(8) + 1e-12
    assert tuple(got) == outputs(cell.quantities)
    assert all(count > 0 for count in operations(cell).values())
    assert memory(cell) > 0
    assert blocks(cell) >= 1


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"exponential"}))
def test_errors_on_the_line_are_integrals(kind: str) -> None:
    h = suited(kind, real=True)
    named = 0 if kind == "two_point" else 0.37
    cell = problem(kind, h, distributions.build("concept", hypothesis=named, noise=0.1), neighbours=12)
    assert infeasible(cell) is None
    draw = prepare(cell, 0).draw
    grid = (np.arange(20_000) + 0.5) / 20_000
    p = predict(cell.learner, h, draw.x, draw.y, grid).p
    right = h.predict(h.named(named), grid)[0]
    wrong = np.where(right == 1, 1 - p, p).mean()
    got = measure(cell, 0)
    assert got["error"] == pytest.approx(0.1 + 0.8 * wrong, abs=1e-3)
    assert got["audit"] == 2


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"exponential"}))
def test_errors_on_held_out_rows(kind: str) -> None:
    rng = np.random.default_rng(9)
    x, y = rng.integers(0, 6, 30) / 5, rng.integers(0, 2, 30)
    h = suited(kind, real=True)
    cell = problem(kind, h, distributions.Table(x=x, y=y, digest="made"), neighbours=12)
    assert infeasible(cell) is None
    draw = prepare(cell, 2).draw
    left = list(zip(x.tolist(), y.tolist(), strict=True))
    for record in zip(draw.x.tolist(), draw.y.tolist(), strict=True):
        left.remove(record)
    p = predict(cell.learner, h, draw.x, draw.y, [v for v, _ in left]).p
    expected = np.mean([1 - v if label else v for v, (_, label) in zip(p, left, strict=True)])
    assert measure(cell, 2)["error"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["df_realizable", "private", "subsample", "private_lwy", "subsample_average"])
def test_votes_over_several_features(kind: str) -> None:
    h = hypotheses.build("boxes", dimension=2)
    law = distributions.build("concept", hypothesis=[0.2, 0.7, 0.1, 0.9])
    cell = Problem(
        hypotheses=h, distribution=law, learner=learner_of(kind), n=8, quantities=("error",), seed=1, method="auto"
    )
    if cell.learner.mixes:
        assert 0 < measure(cell, 0)["error"] < 1
    else:
        assert "take a finite X or a table" in str(infeasible(cell))
    rng = np.random.default_rng(2)
    table = distributions.Table(x=rng.random((20, 2)), y=rng.integers(0, 2, 20), digest="made")
    held = Problem(hypotheses=h, distribution=table, learner=cell.learner, n=8, quantities=("error",), seed=1)
    assert 0 < measure(held, 0)["error"] < 1


@pytest.mark.parametrize("kind", ["private", "private_lwy", "subsample"])
def test_a_trial_is_the_sum_of_its_blocks(kind: str) -> None:
    h = hypotheses.build("thresholds", points=2)
    cell = problem(kind, h, distributions.build("threshold", at=1, noise=0.1), method="mc", samples=256)
    prepared = prepare(cell, 0)
    assert blocks(cell) > 1
    (work,) = prepared.workloads
    assert prepared.finish((evaluate(work),)) == measure(cell, 0)
    assert math.isfinite(measure(cell, 0)["error"])
    assert measure(cell, 0)["audit"] == 3
