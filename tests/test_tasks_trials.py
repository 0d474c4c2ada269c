"""One trial of one cell: errors against sums over the law, one stream of data for all learners, any cut the same."""

import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from predcube.tasks import audit, distributions, hypotheses, learners, predict, trials
from predcube.tasks.mixture import base
from predcube.tasks.trials import CODES, Problem, blocks, infeasible, measure, method_of, outputs, prepare

EVERYTHING = ("error", "excess_error", "stability", "privacy_loss", "growth")


def problem(**changes: Any) -> Problem:
    given: dict[str, Any] = {
        "hypotheses": hypotheses.build("thresholds", points=5),
        "distribution": distributions.build("threshold", at=2, noise=0.2),
        "learner": learners.build("stable_flip", epsilon=1.0, alpha=0.2, subset_size=3),
        "n": 9,
        "quantities": EVERYTHING,
        "seed": 11,
    }
    return Problem(**{**given, **changes})


@pytest.mark.parametrize(
    "learner",
    [
        learners.build("stable", gamma=0.5),
        learners.build("stable_flip", epsilon=1.0, alpha=0.2, subset_size=3),
        learners.build("exponential", epsilon=0.8),
        learners.build("erm"),
    ],
    ids=lambda learner: learner.kind,
)
@pytest.mark.parametrize("kind", ["thresholds", "cube"])
def test_errors_are_sums_over_the_law(kind: str, learner: Any) -> None:
    p = problem(hypotheses=hypotheses.build(kind, points=5), learner=learner)
    for trial in range(3):
        got = measure(p, trial)
        draw = prepare(p, trial).draw
        said = predict(learner, p.hypotheses, draw.x, draw.y, range(5)).p
        # x uniform on five points; label 1 with probability .2 below 2 and .8 from there on.
        one = np.where(np.arange(5) >= 2, 0.8, 0.2)
        assert got["error"] == pytest.approx(np.mean(said * (1 - one) + (1 - said) * one), abs=1e-12)
        assert got["excess_error"] == pytest.approx(got["error"] - 0.2, abs=1e-12)
        checked = audit(learner, p.hypotheses, draw.x, draw.y)
        assert got["stability"] == pytest.approx(checked.stability, abs=1e-12)
        assert got["privacy_loss"] == pytest.approx(checked.privacy_loss, rel=1e-11)
        seen = len(set(draw.x.tolist()))
        assert got["growth"] == (seen + 1 if kind == "thresholds" else 2**seen)


def test_what_comes_out_and_its_codes() -> None:
    got = measure(problem(), 0)
    assert tuple(got) == outputs(EVERYTHING) == (*EVERYTHING, "mixture_method", "audit")
    assert got["audit"] == CODES["audit"]["exhaustive"] == 1
    assert got["mixture_method"] == CODES["mixture_method"][method_of(problem())]
    assert tuple(measure(problem(quantities=("excess_error",)), 0)) == ("excess_error", "mixture_method")
    assert tuple(measure(problem(quantities=("growth",)), 0)) == ("growth",)
    exact = measure(problem(learner=learners.build("erm"), quantities=("error",)), 0)
    assert exact["mixture_method"] == CODES["mixture_method"]["exact"]
    sampled = problem(method="mc", samples=200, quantities=("error", "stability"))
    assert measure(sampled, 0)["audit"] == CODES["audit"]["estimate"]
    assert measure(sampled, 0)["mixture_method"] == CODES["mixture_method"]["mc"]
    line = problem(
        hypotheses=hypotheses.build("thresholds"), distribution=distributions.build("threshold", at=0.4), neighbours=10
    )
    assert measure(line, 0)["audit"] == CODES["audit"]["lower bound"]


def test_learners_are_compared_on_the_same_data() -> None:
    one = prepare(problem(), 4).draw
    for other in (
        problem(learner=learners.build("erm"), quantities=("error",)),
        problem(hypotheses=hypotheses.build("cube", points=5)),
        problem(method="support"),
    ):
        assert (prepare(other, 4).draw.x == one.x).all()
        assert (prepare(other, 4).draw.y == one.y).all()
    for other, trial in (
        (problem(), 5),
        (problem(seed=12), 4),
        (problem(n=10), 4),
        (problem(distribution=distributions.build("threshold", at=2, noise=0.3)), 4),
        (problem(hypotheses=hypotheses.build("thresholds", points=6)), 4),
    ):
        draw = prepare(other, trial).draw
        assert len(draw.x) != len(one.x) or (draw.x != one.x).any() or (draw.y != one.y).any()


def test_more_quantities_leave_the_others_alone() -> None:
    everything = measure(problem(), 2)
    for q in EVERYTHING:
        assert measure(problem(quantities=(q,)), 2)[q] == everything[q]


@pytest.mark.parametrize("method", ["enumerate", "mc", "support", "laplace"])
def test_any_cut_of_the_workloads_gives_the_same_bits(method: str) -> None:
    p = problem(n=18, method=method, samples=5000, quantities=("error", "excess_error"))
    prepared = pickle.loads(pickle.dumps(prepare(p, 1)))
    whole = measure(p, 1)
    assert blocks(p) == sum(w.blocks for w in prepared.workloads)
    mixtures = []
    for work in prepared.workloads:
        parts = [work.partial(b) for b in range(work.blocks)]
        while len(parts) > 1:
            parts = [a.add(*b) for a, *b in (parts[i : i + 2] for i in range(0, len(parts) - 1, 2))] + (
                parts[-1:] if len(parts) % 2 else []
            )
        mixtures.append(work.finish(parts[0]))
    assert prepared.finish(tuple(mixtures)) == whole


def test_subsets_of_mc_do_not_follow_the_data() -> None:
    kinds = ({"noise": 0.0}, {"noise": 0.4})
    seeds = {
        trials._subset_seed(problem(method="mc", distribution=distributions.build("threshold", at=2, **k)), 3)
        for k in kinds
    }
    assert len(seeds) == 1
    assert trials._subset_seed(problem(method="mc"), 4) not in seeds


def test_table_errors_are_on_held_out_rows() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 6, 40).astype(float), rng.integers(0, 2, 40).astype(np.uint8)
    table = distributions.build("table", x=x, y=y, digest="forty rows")
    p = problem(
        hypotheses=hypotheses.build("thresholds"),
        distribution=table,
        learner=learners.build("erm"),
        n=12,
        quantities=("error", "excess_error"),
    )
    cuts = [math.inf, *sorted(set(x.tolist()), reverse=True)]
    finite = replace(p, hypotheses=hypotheses.build("thresholds", points=6))
    assert (prepare(finite, 0).draw.x == prepare(p, 0).draw.x).all()  # rows do not follow the class's X
    best = min(cuts, key=lambda a: int(((x >= a) != y).sum()))
    for trial in range(5):
        got, draw = measure(p, trial), prepare(p, trial).draw
        left = list(zip(x.tolist(), y.tolist(), strict=True))
        for row in zip(draw.x.tolist(), draw.y.tolist(), strict=True):
            left.remove(row)
        assert len(left) == 28
        said = predict(p.learner, p.hypotheses, draw.x, draw.y, [v for v, _ in left]).p
        error = np.mean([s != label for s, (_, label) in zip(said, left, strict=True)])
        least = np.mean([(v >= best) != label for v, label in left])
        assert got["error"] == pytest.approx(error, abs=1e-12)
        assert got["excess_error"] == pytest.approx(error - least, abs=1e-12)


def test_infeasible_cells_have_a_reason_and_no_blocks() -> None:
    small = problem(learner=learners.build("stable", gamma=0.1), n=9)
    assert "below 1" in str(infeasible(small))
    assert blocks(small) == 0
    assert infeasible(problem()) is None
    assert blocks(problem()) >= 1
    off = problem(
        distribution=distributions.build("concept", hypothesis=9), hypotheses=hypotheses.build("cube", points=5)
    )
    assert infeasible(off) is not None


def test_unknown_quantities_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no quantity 'regret': there are error"):
        problem(quantities=("error", "regret"))


def test_a_nan_is_an_error_that_says_where() -> None:
    class Broken:
        exact = True

        def errors(self, h: Any, representatives: Any) -> Any:
            return np.full(len(representatives), math.nan)

        def least_error(self, h: Any) -> float:
            return 0.0

    prepared = prepare(problem(), 6)
    broken = replace(prepared, draw=replace(prepared.draw, population=Broken()))
    with pytest.raises(ArithmeticError, match="error is NaN: stable_flip on thresholds, n = 9, trial 6"):
        broken.finish(tuple(base.evaluate(w) for w in broken.workloads))


def test_subsets_of_equal_shares_all_count_and_an_exact_method_has_no_number() -> None:
    # Distinct points and β = 0: every subset of 3 has the same 4 labelings, so the same Z.
    given = {
        "hypotheses": hypotheses.build("thresholds"),
        "distribution": distributions.build("threshold", at=0.4, noise=0.2),
        "learner": learners.build("stable", subset_size=3, beta=0.0),
        "quantities": ("effective_subsets",),
    }
    assert measure(problem(**given), 0)["effective_subsets"] == math.inf
    drawn = measure(problem(**given, method="mc", samples=2048), 0)["effective_subsets"]
    assert drawn == pytest.approx(2048, rel=1e-9)
    uneven = {**given, "learner": learners.build("stable", subset_size=3, beta=1.0)}
    assert measure(problem(**uneven, method="mc", samples=2048), 0)["effective_subsets"] < 2000


@pytest.mark.parametrize(
    ("lacking", "reason"),
    [
        ("net_failure", "net_failure is of nets of the learner private, not of stable_flip"),
        ("subset_ratio", "of learners that weigh the hypotheses of a drawn set"),
        ("net_probability", "net_probability needs an alpha"),
        ("labelings", "random subset, and erm draws none"),
        ("expected_error", "closed forms of the expected error are for the cube"),
    ],
)
def test_a_quantity_that_is_lacking_is_named_with_its_reason(lacking: str, reason: str) -> None:
    kinds = {"net_probability": ("stable", {"gamma": 0.5}), "labelings": ("erm", {}), "subset_ratio": ("erm", {})}
    kind, own = kinds.get(lacking, ("stable_flip", {"epsilon": 1.0, "alpha": 0.2, "subset_size": 3}))
    p = problem(learner=learners.build(kind, **own), quantities=("stability", lacking))
    with pytest.raises(ValueError, match=f"cannot be measured here: {lacking}: .*{reason}.*applicable"):
        measure(p, 0)
    assert set(measure(trials.applicable(p), 0)) == {"stability", "audit", "mixture_method"}
    assert blocks(p) == 0  # of an audit alone there is no mixture to cut
