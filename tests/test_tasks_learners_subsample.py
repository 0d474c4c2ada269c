"""Subsampling of an inner learner against a loop over all subsets of positions, and the amplification it brings."""

import math
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predcube.pipeline.failures import BadInput
from predcube.pipeline.spec import load_spec
from predcube.tasks import audit, hypotheses, learners, predict, worst_case
from predcube.tasks.bounds import amplified_privacy_loss
from predcube.tasks.learners import Learner
from predcube.tasks.learners.submultisets import choices, count, log_chances

CLASSES = {
    "thresholds": hypotheses.build("thresholds", points=3),
    "cube": hypotheses.build("cube", points=3),
    "table": hypotheses.build("table", matrix=[[0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]]),
}
INNER: list[dict[str, Any]] = [
    {"kind": "erm"},
    {"kind": "exponential", "epsilon": 1.0},
    {"kind": "stable_flip", "epsilon": 1.0, "alpha": 0.2, "subset_size": 1},
    {"kind": "df_realizable", "epsilon": 1.0, "alpha": 0.1, "chunks": 2},
    {"kind": "subsample_average", "chunks": 3},
    {"kind": "subsample", "inner": {"kind": "erm"}, "subset_size": 1},
]


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(sorted(CLASSES)),
    inner=st.sampled_from(INNER),
    s=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=3, max_size=7),
)
def test_predictions_are_means_over_subsets(kind: str, inner: dict[str, Any], s: list[tuple[int, int]]) -> None:
    h, own = CLASSES[kind], learners.build(inner["kind"], **{k: v for k, v in inner.items() if k != "kind"})
    expected = np.zeros((2, 3))
    for chosen in combinations(range(len(s)), 3):
        x, y = zip(*[s[i] for i in chosen], strict=True)
        got = predict(own, h, x, y, range(3))
        expected += np.exp([got.log_p0, got.log_p1]) / math.comb(len(s), 3)
    learner = learners.build("subsample", inner=inner, subset_size=3)
    x, y = zip(*s, strict=True)
    found = predict(learner, h, x, y, range(3))
    assert np.exp([found.log_p0, found.log_p1]) == pytest.approx(expected, abs=1e-12)
    assert found.method == "enumerate"


def test_all_choices_once_with_their_probabilities() -> None:
    most = np.array([2, 0, 3, 1])
    listed = [c for c in product(range(3), range(1), range(4), range(2)) if sum(c) == 3]
    assert count(most, 3) == len(listed)
    assert choices(most, 3, 0, len(listed)).tolist() == [list(c) for c in listed]
    assert choices(most, 3, 2, 4).tolist() == [list(c) for c in listed[2:4]]
    assert np.exp(log_chances(most[None], np.array(listed))).sum() == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize("inner", [INNER[0], INNER[3]], ids=["multiset", "sequence"])
def test_sampled_subsets_agree_within_their_error(inner: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 3, 12), rng.integers(0, 2, 12)
    learner = learners.build("subsample", inner=inner, subset_fraction=0.5)
    exact = predict(learner, CLASSES["cube"], x, y, range(3))
    got = predict(learner, CLASSES["cube"], x, y, range(3), method="mc", samples=2000, seed=3)
    assert (np.abs(got.p - exact.p) <= 5 * got.standard_error + 1e-12).all()
    assert got.standard_error.max() > 0
    estimate = audit(learner, CLASSES["cube"], x, y, method="mc", samples=400, seed=2)
    assert estimate.kind == "estimate"
    assert estimate.stability == pytest.approx(audit(learner, CLASSES["cube"], x, y).stability, abs=0.06)


@pytest.mark.parametrize("inner", INNER, ids=lambda inner: inner["kind"])
def test_guarantees_hold_over_all_data_sets(inner: dict[str, Any]) -> None:
    h = hypotheses.build("thresholds", points=2)
    learner = learners.build("subsample", inner=inner, subset_size=3)
    got = worst_case(learner, h, 5)
    assert got.stability <= learner.guaranteed_stability(5) + 1e-12
    assert got.privacy_loss <= learner.guaranteed_privacy_loss(5) + 1e-12
    if inner["kind"] == "erm":
        assert learner.guaranteed_stability(5) == 0.6
        assert got.stability == pytest.approx(0.6, abs=1e-12)


def test_amplification() -> None:
    assert amplified_privacy_loss(1.0, 0.1) == pytest.approx(0.158565, abs=5e-7)
    h = hypotheses.build("cube", points=1)
    vote = {"kind": "df_realizable", "epsilon": 1.0, "alpha": 0.1, "chunks": 1}
    learner = learners.build("subsample", inner=vote, subset_size=1)
    got = worst_case(learner, h, 10)
    assert learner.guaranteed_privacy_loss(10) == pytest.approx(amplified_privacy_loss(1.0, 0.1))
    # The vote of one record answers σ(±½): a measured loss of ½. Reached by all records alike, and all but one.
    assert worst_case(learners.build(**vote), h, 1).privacy_loss == pytest.approx(0.5, abs=1e-14)
    assert got.privacy_loss == pytest.approx(amplified_privacy_loss(0.5, 0.1), abs=1e-12)


def test_all_of_the_records_amplify_nothing() -> None:
    # A claim of ln(1 + (1 − (1 − 1/n)^n)(e^ε − 1)) with n' = n, as if records were drawn with replacement.
    h = hypotheses.build("cube", points=1)
    vote = {"kind": "df_realizable", "epsilon": 1.0, "alpha": 0.1, "chunks": 8}
    learner = learners.build("subsample", inner=vote, subset_size=8)
    claimed = amplified_privacy_loss(1.0, 1 - (1 - 1 / 8) ** 8)
    got = worst_case(learner, h, 8)
    assert got.privacy_loss > 1.1 * claimed
    assert got.privacy_loss <= learner.guaranteed_privacy_loss(8) + 1e-12
    assert learner.guaranteed_privacy_loss(8) == pytest.approx(1.0)


SPEC = """
trials = 3
n = 12
[hypotheses]
kind = "thresholds"
points = 4
[distribution]
kind = "threshold"
at = 2
[learner]
kind = "subsample"
inner = {inner}
subset_size = 4
[measure]
quantities = ["error", "stability"]
"""


def test_a_spec_holds_the_inner_learner_as_a_table() -> None:
    sweep = load_spec(SPEC.format(inner='{ kind = "df_realizable", epsilon = 1, alpha = 0.1, chunks = 2 }'))
    assert sweep.sections["learner"]["inner"] == {"kind": "df_realizable", "epsilon": 1.0, "alpha": 0.1, "chunks": 2}


@pytest.mark.parametrize(
    ("inner", "place", "message"),
    [
        ('{ kind = "emr" }', "learner.inner.kind", "erm"),
        ('{ kind = "erm", gamma = 1.0 }', "learner.inner.gamma", "gamma"),
        ('{ kind = "exponential", epsilon = -1 }', "learner.inner.epsilon", "> 0"),
        ('{ kind = "exponential" }', "learner.inner.epsilon", "missing"),
        ('"erm"', "learner.inner", "table"),
        ("{ }", "learner.inner.kind", "missing"),
    ],
)
def test_wrong_inner_learners_are_told_where(inner: str, place: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_spec(SPEC.format(inner=inner))
    assert place in str(caught.value)
    assert message in str(caught.value)


def test_infeasible_and_wrong_parameters() -> None:
    erm = {"kind": "erm"}
    learner: Learner = learners.build("subsample", inner=erm, subset_fraction=0.05)
    assert "below 1" in str(learner.infeasible(10, CLASSES["cube"]))
    assert "above n = 2" in str(learners.build("subsample", inner=erm, subset_size=3).infeasible(2, CLASSES["cube"]))
    vote = {"kind": "df_realizable", "epsilon": 1.0, "alpha": 0.1}
    assert "inner df_realizable at n' = 3: 23 chunks" in str(
        learners.build("subsample", inner=vote, subset_size=3).infeasible(9, CLASSES["cube"])
    )
    for parameters in ({}, {"subset_size": 2, "subset_fraction": 0.1}):
        with pytest.raises(ValueError, match="exactly one"):
            learners.build("subsample", inner=erm, **parameters)
    with pytest.raises(ValueError, match="did you mean 'erm'"):
        learners.build("subsample", inner={"kind": "emr"}, subset_size=2)
    with pytest.raises(ValueError, match="table with a kind"):
        learners.build("subsample", inner="erm", subset_size=2)
    assert hash(learner) == hash(learners.build("subsample", inner=erm, subset_fraction=0.05))


def test_a_few_hundred_subsets_are_visited_and_not_sampled() -> None:
    # C(10, 5) = 252 subsets for 1,591 neighbours: sampling 1,024 of them would cost more and show less.
    h = hypotheses.build("thresholds", points=80)
    learner = learners.build("subsample", inner=INNER[3], subset_size=5)
    assert learner.method(h, k=80, n=10, many=1591) == "enumerate"
    exact, sampled = (learner.operations(h, m, k=80, n=10, many=1591)[1] for m in ("enumerate", "mc"))
    assert exact < sampled


@pytest.mark.parametrize("points", [4, 20, 300])
@pytest.mark.parametrize("n", [8, 12, 40, 400])
@pytest.mark.parametrize("many", [1, 2, 100, 10**6])
@pytest.mark.parametrize(
    "own",
    [
        {"kind": "subsample", "inner": INNER[3], "subset_size": 5},
        {"kind": "subsample", "inner": INNER[0], "subset_size": 5},
        {"kind": "private_lwy", "epsilon": 0.9, "alpha": 0.3, "chunks": 2},
        {"kind": "stable_net", "gamma": 0.5, "alpha": 0.2},
        {"kind": "stable_net", "gamma": 0.5, "alpha": 0.2, "convention": "paper"},
        {"kind": "stable", "gamma": 0.5},
    ],
    ids=lambda own: own["kind"],
)
def test_auto_samples_only_where_that_is_cheaper(points: int, n: int, many: int, own: dict[str, Any]) -> None:
    h = hypotheses.build("intervals", points=points)
    learner = learners.build(**own)
    k = min(points, n)
    if learner.infeasible(n, h) is None and learner.method(h, k=k, n=n, many=many) == "mc":
        exact = [
            learner.operations(h, m, k=k, n=n, many=many)[1]
            for m in ("enumerate", "support")
            if learner.inapplicable(h, k=k, n=n, asked=m) is None
        ]
        sampled = learner.operations(h, "mc", k=k, n=n, many=many)[1]
        assert all(sampled < e for e in exact)
