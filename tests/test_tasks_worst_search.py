"""The search for a worst data set against the exhaustive one, on random small cases, and beyond what can be listed."""

import math
from typing import Any

import numpy as np
import pytest

from predcube.tasks import audit, hypotheses, learners, worst_case
from predcube.tasks.hypotheses import HypothesisClass
from predcube.tasks.learners import Learner
from predcube.tasks.learners.records import Records
from predcube.tasks.worst import WorstCase

CASES = 40


def data_sets(learner: Learner, h: HypothesisClass, n: int) -> int:
    assert h.domain is not None
    types = 2 * len(h.domain)
    return math.prod(math.comb(m + types - 1, m) for m in np.bincount(learner.exchangeable(n)).tolist())


def random_case(rng: np.random.Generator) -> tuple[Learner, HypothesisClass, int]:
    """A learner, a class on up to 3 points, and n ≤ 23, with between 800 and 12,000 data sets."""
    while True:
        k, n = int(rng.integers(1, 4)), int(rng.integers(2, 24))
        kind = str(rng.choice(["thresholds", "cube", "points", "intervals", "table"]))
        own: dict[str, Any] = {"points": k}
        if kind == "table":
            own = {"matrix": rng.integers(0, 2, (int(rng.integers(2, 6)), k)).tolist()}
        size, chunks = int(rng.integers(1, n + 1)), int(rng.integers(1, min(n, 4) + 1))
        a, b = rng.uniform(0.1, 4), rng.uniform(0.02, 0.4)
        family: dict[str, dict[str, Any]] = {
            "stable": {"gamma": a, "subset_size": size},
            "stable_flip": {"epsilon": a, "alpha": b, "subset_size": size},
            "exponential": {"epsilon": a},
            "df_agnostic": {"epsilon": a, "chunks": chunks},
            "private": {"epsilon": 4.0, "alpha": b, "eta": 1 + a, "chunks": min(chunks, 3), "subset_size": size},
        }
        name = str(rng.choice(sorted(family)))
        learner, h = learners.build(name, **family[name]), hypotheses.build(kind, **own)
        if learner.infeasible(n, h) is None and 800 < data_sets(learner, h, n) < 12_000:
            return learner, h, n


def witnessed(got: WorstCase, learner: Learner, h: HypothesisClass, quantity: str) -> float:
    """The same quantity by an audit of the data set that the witness shows."""
    sample = got.witness[quantity].sample
    if isinstance(sample, Records):
        types = sample.order
    else:
        types = np.repeat(np.arange(2 * len(sample.points)), sample.counts.ravel())
    return float(getattr(audit(learner, h, types // 2, types % 2), quantity))


def test_the_search_finds_the_worst_of_nearly_all_small_cases() -> None:
    # A search that takes the worst step in place of the best finds about 5 in 6 of the values.
    rng = np.random.default_rng(11)
    found = 0
    for case in range(CASES):
        learner, h, n = random_case(rng)
        whole = worst_case(learner, h, n)
        got = worst_case(learner, h, n, limit=whole.samples // 2, seed=case)
        assert (whole.kind, got.kind) == ("exhaustive", "lower bound by search")
        assert got.samples < whole.samples == got.possible
        for quantity in ("stability", "privacy_loss"):
            worst, value = getattr(whole, quantity), getattr(got, quantity)
            assert value <= worst * (1 + 1e-9) + 1e-12
            found += bool(value == worst or math.isclose(value, worst, rel_tol=1e-9))
            assert witnessed(got, learner, h, quantity) >= value * (1 - 1e-9)
        for epsilon in (0.0, 0.5, math.inf):
            assert got.delta(epsilon) <= whole.delta(epsilon) + 1e-12
        assert got.delta(0.0) == pytest.approx(got.stability, abs=1e-12)
    assert found >= 0.95 * 2 * CASES


def test_beyond_what_can_be_listed() -> None:
    learner = learners.build("stable", gamma=0.5, subset_size=1)
    h = hypotheses.build("thresholds", points=20)
    told: list[tuple[int, int]] = []
    got = worst_case(learner, h, 10, limit=4000, seed=3, progress=lambda *at: told.append(at))
    assert got.possible == math.comb(49, 10)
    assert not got.exhaustive
    assert got.samples <= 4000
    assert told[-1] == (got.samples, 4000)
    assert got.privacy_loss == math.inf
    # Twenty points hold whatever three do, and a short search finds nearly all of that.
    few = worst_case(learner, hypotheses.build("thresholds", points=3), 10)
    assert 0.98 * few.stability < got.stability <= learner.guaranteed_stability(10) + 1e-12
    again = worst_case(learner, h, 10, limit=4000, seed=3)
    assert (again.stability, again.samples) == (got.stability, got.samples)
    assert str(again.witness["stability"]) == str(got.witness["stability"])


def test_a_search_over_sequences_keeps_to_the_guarantee() -> None:
    learner = learners.build("df_agnostic", epsilon=1.0, chunks=6)
    h = hypotheses.build("thresholds", points=4)
    got = worst_case(learner, h, 18, limit=3000)
    assert got.kind == "lower bound by search"
    assert 0 < got.stability <= learner.guaranteed_stability(18) + 1e-12
    assert 0 < got.privacy_loss <= learner.guaranteed_privacy_loss(18) + 1e-12
    assert witnessed(got, learner, h, "privacy_loss") >= got.privacy_loss - 1e-12


def test_the_worst_case_of_the_line_is_that_of_n_plus_2_points() -> None:
    for learner in (
        learners.build("stable", gamma=0.8, subset_size=1),
        learners.build("df_agnostic", epsilon=1.0, chunks=2),
    ):
        values = [worst_case(learner, hypotheses.build("thresholds", points=k), 2).stability for k in range(1, 7)]
        assert (np.diff(values) >= -1e-12).all()
        assert values[3] == pytest.approx(values[5], abs=1e-12)
        rng = np.random.default_rng(1)
        for _ in range(6):
            x, y = rng.integers(0, 3, 2) / 2, rng.integers(0, 2, 2)
            on_line = audit(learner, hypotheses.build("thresholds"), x, y)
            assert on_line.exhaustive
            assert on_line.stability <= values[3] + 1e-12
