"""Classes of several features where learners use them: predictions, audits and trials on grids and real tables."""

from typing import Any

import numpy as np
import pytest

from predcube.tasks import audit, distributions, hypotheses, learners, predict, worst_case
from predcube.tasks.hypotheses.points import grid, locate
from predcube.tasks.trials import Problem, inapplicable, infeasible, measure

GRIDS: list[tuple[str, dict[str, Any]]] = [
    ("boxes", {"dimension": 2, "points": 2}),
    ("stumps", {"dimension": 2, "points": 2}),
    ("halfspaces", {"dimension": 2, "points": 2}),
    ("gf_lines", {"q": 2}),
]


@pytest.mark.parametrize(("kind", "parameters"), GRIDS, ids=[k for k, _ in GRIDS])
def test_a_grid_is_audited_as_its_table_of_labels_is(kind: str, parameters: dict[str, Any]) -> None:
    # The exponential mechanism knows no representatives: a class and the table of its functions must agree.
    h = hypotheses.build(kind, **parameters)
    table = hypotheses.build("table", matrix=h.predict(h.members(), grid(2, 2)))
    learner = learners.build("exponential", epsilon=1.0)
    x, y = np.array([[0, 1], [1, 1], [1, 1], [1, 0]]), [0, 1, 1, 0]
    one = audit(learner, h, x, y)
    two = audit(learner, table, 2 * x[:, 0] + x[:, 1], y)
    assert one.exhaustive
    assert (one.stability, one.privacy_loss) == pytest.approx((two.stability, two.privacy_loss), rel=1e-12)
    assert isinstance(one.witness["stability"].query, tuple)
    assert "at x = (" in str(one.witness["stability"])
    assert not audit(learner, h, x, y, queries=[[0, 1]]).exhaustive
    assert worst_case(learner, h, 2).stability == pytest.approx(worst_case(learner, table, 2).stability, rel=1e-12)
    np.testing.assert_allclose(
        predict(learner, h, x, y, grid(2, 2)).p, predict(learner, table, 2 * x[:, 0] + x[:, 1], y, range(4)).p
    )


def test_real_features_are_audited() -> None:
    problem = Problem(
        hypotheses=hypotheses.build("boxes", dimension=2),
        distribution=distributions.build("concept", hypothesis=[0.2, 0.7, 0.1, 0.8]),
        learner=learners.build("stable", gamma=0.5, subset_size=2),
        n=6,
        quantities=("error", "stability"),
        seed=0,
    )
    assert inapplicable(problem) == {}
    assert measure(problem, 0)["stability"] <= problem.learner.guaranteed_stability(6)


def test_labelings_that_would_not_fit_are_infeasible_with_the_number() -> None:
    h = hypotheses.build("boxes", dimension=2)
    law = distributions.build("concept", hypothesis=[0.2, 0.7, 0.1, 0.8])
    for learner, quantities, fits in (
        (learners.build("erm"), ("error",), False),
        (learners.build("stable", gamma=0.5, subset_size=4), ("error",), True),
        (learners.build("stable", gamma=0.5, subset_size=4), ("error", "growth"), False),
    ):
        problem = Problem(hypotheses=h, distribution=law, learner=learner, n=300, quantities=quantities, seed=0)
        reason = inapplicable(problem).get(quantities[-1])
        assert fits == (reason is None)
        assert fits or "boxes may have 335,291,426 labelings of 300 points, 93.7 GiB, and at most 1 GiB" in str(reason)


@pytest.mark.parametrize(
    ("kind", "parameters", "name"),
    [
        ("points", {}, 0.5),
        ("intervals", {}, [0.2, 0.6]),
        ("interval_unions", {"count": 2}, [0.1, 0.3, 0.5, 0.9]),
        ("boxes", {"dimension": 2}, [0.2, 0.7, 0.1, 0.8]),
        ("stumps", {"dimension": 2}, [1, 0.4, 1]),
        ("halfspaces", {"dimension": 2}, [1, 1, 1]),
        ("halfspaces", {"dimension": 3}, [1, 1, 1, 1.5]),
        ("complement_pair", {}, 1),
    ],
)
def test_a_concept_on_the_unit_cube_is_its_own_best(kind: str, parameters: dict[str, Any], name: Any) -> None:
    h = hypotheses.build(kind, **parameters)
    for learner in (learners.build("stable", gamma=0.5, subset_size=2), learners.build("erm")):
        problem = Problem(
            hypotheses=h,
            distribution=distributions.build("concept", hypothesis=name, noise=0.1),
            learner=learner,
            n=8,
            quantities=("error", "excess_error", "growth"),
            seed=3,
        )
        found = measure(problem, 0)
        assert infeasible(problem) is None
        assert 0.1 - 1e-12 <= found["error"] <= 0.9
        assert found["excess_error"] == pytest.approx(found["error"] - 0.1)
        assert 1 <= found["growth"] <= (h.growth(8) or 0)


def test_a_table_of_two_features_is_learned_by_halfspaces() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, (60, 2)).astype(float)
    y = (x.sum(axis=1) > 5).astype(np.uint8)
    law = distributions.build("table", x=x, y=y, digest="d")
    h = hypotheses.build("halfspaces", dimension=2)
    problem = Problem(
        hypotheses=h, distribution=law, learner=learners.build("erm"), n=40, quantities=("excess_error",), seed=1
    )
    assert 0.0 <= measure(problem, 0)["excess_error"] <= 0.3
    assert h.loss(h.best(x, np.eye(2)[y]), x, np.eye(2)[y]).tolist() == [0.0]


def test_locate() -> None:
    assert locate(np.array([1, 3, 5]), np.array([5, 2, 1, 5])).tolist() == [2, -1, 0, 2]
    assert locate(grid(3, 2), np.array([[2, 1], [0, 0], [3, 0]])).tolist() == [7, 0, -1]
