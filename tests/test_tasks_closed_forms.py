"""Expected errors in closed form against sums over every sample, against Monte Carlo, and their laws against SciPy."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from predcube.tasks import distributions, hypotheses, learners
from predcube.tasks.closed_forms import counts, expected_errors, occupancy, unavailable
from predcube.tasks.learners.records import counted
from predcube.tasks.trials import CODES, Problem, inapplicable, infeasible, measure, memory

LEARNERS: dict[str, dict[str, Any]] = {
    "stable": {"gamma": 0.45},
    "stable of beta": {"kind": "stable", "subset_size": 4, "beta": 1.3},
    "stable_flip": {"epsilon": 1.0, "alpha": 0.2, "subset_size": 3},
    "exponential": {"epsilon": 0.9},
    "erm": {},
    "df_realizable": {"epsilon": 1.0, "alpha": 0.3, "chunks": 3},
    "df_agnostic": {"epsilon": 0.7, "chunks": 2},
    "subsample_average": {"chunks": 3},
    "private": {"epsilon": 1.0, "alpha": 0.1, "eta": 0.5, "chunks": 3, "subset_size": 2},
    "private outline": {
        "kind": "private", "epsilon": 1.0, "alpha": 0.1, "eta": 0.5, "convention": "outline", "chunks": 2,
        "subset_size": 3,
    },
    "private of singles": {"kind": "private", "epsilon": 1.0, "alpha": 0.1, "eta": 0.5, "chunks": 5, "subset_size": 3},
    "private_lwy": {"epsilon": 0.5, "alpha": 0.2, "chunks": 2},
    "private_lwy of three": {"kind": "private_lwy", "epsilon": 2.0, "alpha": 0.2, "chunks": 3, "subset_size": 3},
    "subsample": {"inner": {"kind": "erm"}, "subset_size": 2},
    "subsample of votes": {
        "kind": "subsample", "inner": {"kind": "df_realizable", "epsilon": 1.0, "alpha": 0.3, "chunks": 2},
        "subset_size": 3,
    },
    "subsample of flips": {
        "kind": "subsample", "inner": {"kind": "stable_flip", "epsilon": 1.0, "alpha": 0.2, "subset_size": 2},
        "subset_size": 4,
    },
}  # fmt: skip


def learner(name: str) -> Any:
    return learners.build(**{"kind": name, **LEARNERS[name]})


def over_all_samples(a: Any, d: int, weights: NDArray[np.float64], noise: float, n: int) -> float:
    """E_S E_h Pr[A^S(x) ≠ h(x)] by going through every labelling h and every sequence of records."""
    h = hypotheses.build("cube", points=d)
    x = np.arange(d)
    sequences = np.array(list(product(range(d), (0, 1), repeat=n))).reshape(-1, n, 2)  # (point, is the label wrong)
    chance = np.prod(weights[sequences[:, :, 0]] * np.where(sequences[:, :, 1] == 1, noise, 1 - noise), axis=1)
    sequences, chance = sequences[chance > 0], chance[chance > 0]
    total = 0.0
    for labels in product((0, 1), repeat=d):
        types = 2 * sequences[:, :, 0] + (np.array(labels)[sequences[:, :, 0]] ^ sequences[:, :, 1])
        sample = types if a.ordered else counted(types, d)
        said = np.exp(a.batch(h, x, sample, x, method=a.method(h, k=d, n=n, many=2)))
        said = (1 - 2 * a.flip) * said + a.flip
        total += float(chance @ (said[:, x, 1 - np.array(labels)] @ weights)) / 2**d
    return total


@pytest.mark.parametrize("name", LEARNERS)
def test_the_realizable_instance_against_every_sample(name: str) -> None:
    n = 4 if "lwy" in name else 5
    found = expected_errors(
        learner(name), hypotheses.build("cube", points=3), distributions.build("lower_bound", alpha=0.2), n
    )
    expected = over_all_samples(learner(name), 3, np.array([0.4, 0.4, 0.2]), 0.0, n)
    assert found["expected_error"] == pytest.approx(expected, rel=1e-11)
    assert found["expected_excess_error"] == found["expected_error"]


@pytest.mark.parametrize("name", LEARNERS)
def test_the_agnostic_instance_against_every_sample(name: str) -> None:
    n = 4 if "lwy" in name else 5
    found = expected_errors(
        learner(name), hypotheses.build("cube", points=2), distributions.build("agnostic_lower_bound", alpha=0.07), n
    )
    wrong = over_all_samples(learner(name), 2, np.array([0.5, 0.5]), 0.22, n)
    assert found["expected_excess_error"] == pytest.approx(0.56 * wrong, rel=1e-11)
    assert found["expected_error"] == pytest.approx(0.22 + 0.56 * wrong, rel=1e-12)


@pytest.mark.parametrize("law", [("lower_bound", 0.2), ("agnostic_lower_bound", 0.05)], ids=lambda law: law[0])
@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "stable", "gamma": 0.1},
        {"kind": "private", "epsilon": 0.5, "alpha": 0.1, "eta": 0.05, "chunks": 23},
        {"kind": "df_agnostic", "epsilon": 0.5, "chunks": 11},
    ],
    ids=lambda p: p["kind"],
)
def test_moderate_sizes_against_monte_carlo(parameters: dict[str, Any], law: tuple[str, float]) -> None:
    many = 200
    p = Problem(
        hypotheses=hypotheses.build("cube", points=4),
        distribution=distributions.build(law[0], alpha=law[1]),
        learner=learners.build(**parameters),
        n=200,
        quantities=("excess_error",),
        seed=5,
    )
    expected = expected_errors(p.learner, p.hypotheses, p.distribution, p.n)["expected_excess_error"]
    found = np.array([measure(p, trial)["excess_error"] for trial in range(many)])
    assert abs(found.mean() - expected) < 4.5 * found.std(ddof=1) / math.sqrt(many)


def test_the_largest_sizes_against_a_sum_over_scipy_s_binomial() -> None:
    n, d, gamma = 10**6, 64, 0.001
    found = expected_errors(
        learners.build("stable", gamma=gamma),
        hypotheses.build("cube", points=d),
        distributions.build("lower_bound", alpha=0.1),
        n,
    )["expected_error"]
    total = 0.0
    for times, weight in ((d - 1, 0.4 / (d - 1)), (1, 0.6)):
        c = np.arange(n + 1)
        miss = np.concatenate([[0.0], np.cumsum(np.log1p(-gamma * n / (n - np.arange(n - int(gamma * n)))))])
        miss = np.exp(np.pad(miss, (0, n + 1 - len(miss)), constant_values=-np.inf))
        wrong = miss / 2 + (1 - miss) / (1 + np.exp(np.minimum(gamma / 2 * c, 700)))
        total += times * weight * float(stats.binom.pmf(c, n, weight) @ wrong)
    assert found == pytest.approx(total, rel=1e-8)
    assert 1e-3 < found < 0.1


@pytest.mark.parametrize("name", ["stable", "exponential", "df_realizable", "private_lwy"])
def test_more_records_do_not_hurt_at_large_n(name: str) -> None:
    a = {
        "stable": learners.build("stable", gamma=0.01),
        "exponential": learners.build("exponential", epsilon=0.1),
        "df_realizable": learners.build("df_realizable", epsilon=0.5, alpha=0.1),
        "private_lwy": learners.build("private_lwy", epsilon=0.05, alpha=0.1),
    }[name]
    h, law = hypotheses.build("cube", points=16), distributions.build("lower_bound", alpha=0.1)
    found = [expected_errors(a, h, law, n)["expected_error"] for n in (10**4, 10**5, 10**6)]
    assert found[0] > found[1] >= found[2] >= 0


def test_nobody_beats_the_lower_bound() -> None:
    """Theorem sta-lb at work: a γ-stable learner with n < (d − 1)/(8γα) errs on more than α."""
    h, rng = hypotheses.build("cube", points=9), np.random.default_rng(2)
    for _ in range(60):
        alpha, gamma = float(rng.uniform(0.02, 0.25)), float(rng.uniform(0.002, 0.2))
        n = math.ceil(8 / (8 * gamma * alpha)) - 1
        if n < 1:
            continue
        for a in (
            learners.build("stable", gamma=gamma, convention="outline"),
            learners.build("subsample_average", chunks=math.ceil(1 / gamma)),
            learners.build("exponential", epsilon=4 * math.atanh(gamma)),
        ):
            if a.infeasible(n, h) is None and a.guaranteed_stability(n) <= gamma:
                assert (
                    expected_errors(a, h, distributions.build("lower_bound", alpha=alpha), n)["expected_error"] > alpha
                )


# --- what has none ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hypotheses": hypotheses.build("thresholds", points=5)}, "for the cube, not for thresholds"),
        ({"distribution": distributions.build("joint", table=[[0.1, 0.4], [0.2, 0.3]])}, "not 'joint'"),
        ({"learner": learners.build("stable_net", gamma=0.5, alpha=0.2)}, "stable_net has no closed form"),
        (
            {"learner": learners.build("subsample", inner={"kind": "two_point"}, subset_size=2)},
            "subsample has no closed form",
        ),
        ({"learner": learners.build("stable", gamma=0.01)}, "below 1"),
    ],
)
def test_a_reason_where_there_is_none(change: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {
        "learner": learners.build("erm"),
        "hypotheses": hypotheses.build("cube", points=2),
        "distribution": distributions.build("lower_bound", alpha=0.2),
        **change,
    }
    assert words in str(unavailable(**given, n=20))
    with pytest.raises(ValueError, match=r"closed form|below 1|cube"):
        expected_errors(**given, n=20)


# --- the laws ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "p"), [(0, 0.3), (1, 0.5), (7, 0.0), (7, 1.0), (40, 0.02), (3000, 0.9), (10**6, 0.25)])
def test_binomial_law(n: int, p: float) -> None:
    law = counts.binomial(n, p)
    assert math.fsum(law.p) == pytest.approx(1.0, abs=1e-13)
    np.testing.assert_allclose(law.p, stats.binom.pmf(law.values, n, p), rtol=1e-8, atol=1e-280)
    assert law.mean(law.values.astype(float)) == pytest.approx(n * p, rel=1e-12)


def test_margin_law_against_convolution() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 40):
        w, noise = float(rng.uniform(0.05, 1)), float(rng.uniform(0.01, 0.5))
        one = np.array([w * noise, 1 - w, w * (1 - noise)])
        whole = np.ones(1)
        for _ in range(n):
            whole = np.convolve(whole, one)
        law = counts.margin(n, w, noise)
        np.testing.assert_allclose(whole[law.start + n : law.start + n + len(law.p)], law.p, atol=1e-15)
        assert math.fsum(law.p) == pytest.approx(1.0, abs=1e-14)


def test_margin_law_of_many_records_has_the_moments_of_a_sum() -> None:
    n, w, noise = 10**6, 0.3, 0.4
    law = counts.margin(n, w, noise)
    mean = law.mean(law.values.astype(float))
    assert mean == pytest.approx(n * w * 0.2, rel=1e-11)
    assert law.mean((law.values - mean) ** 2) == pytest.approx(n * (w - (w * 0.2) ** 2), rel=1e-9)


@pytest.mark.parametrize(("n", "chunks"), [(6, 1), (7, 3), (7, 7), (9, 4), (30, 11)])
def test_joint_law_of_count_and_chunks(n: int, chunks: int) -> None:
    """Against the chunks taken one by one: a table over (c, J)."""
    rng, w = np.random.default_rng(n), 0.37
    table = np.zeros((n + 1, chunks + 1))
    table[0, 0] = 1.0
    for length in [len(part) for part in np.array_split(range(n), chunks)]:
        after = np.zeros_like(table)
        for c in range(length + 1):
            p = math.comb(length, c) * w**c * (1 - w) ** (length - c)
            after[c:, int(c > 0) :] += p * table[: n + 1 - c, : chunks + 1 - int(c > 0)]
        table = after
    f, g = rng.normal(size=n + 1), rng.normal(size=chunks + 1)
    found = occupancy.with_count(n, chunks, w, counts.Law(start=0, p=f), g)
    assert found == pytest.approx(float(f @ table @ g), abs=1e-13)


def test_joint_law_of_many_records_passes_no_mass_over() -> None:
    n, chunks, w = 200_000, 45_000, 0.02
    held = counts.window(counts.binomial(n, w))
    one = counts.Law(start=held.start, p=np.ones(len(held.p)))
    assert occupancy.with_count(n, chunks, w, one, np.ones(chunks + 1)) == pytest.approx(1.0, abs=1e-12)
    count = counts.Law(start=held.start, p=held.values / (n * w))
    assert occupancy.with_count(n, chunks, w, count, np.ones(chunks + 1)) == pytest.approx(1.0, abs=1e-12)
    lengths = np.array([len(part) for part in np.array_split(range(n), chunks)])
    mean = float((1 - (1 - w) ** lengths).sum())
    found = occupancy.with_count(n, chunks, w, one, np.arange(chunks + 1.0))
    assert found == pytest.approx(mean, rel=1e-12)
    # Σ_j Pr[j holds x]·E[c | …] = nw of which a chunk that holds x has all its own: E[c·J] by pairs of chunks.
    inside = lengths * w
    cross = float((inside * (1 + (mean - (1 - (1 - w) ** lengths)))).sum())
    count = counts.Law(start=held.start, p=held.values.astype(float))
    assert occupancy.with_count(n, chunks, w, count, np.arange(chunks + 1.0)) == pytest.approx(cross, rel=1e-12)


@pytest.mark.parametrize(("n", "chunks"), [(5, 1), (7, 3), (12, 5), (40, 9)])
def test_occupancy_given_the_count(n: int, chunks: int) -> None:
    """Against inclusion and exclusion over the chunks left empty, in fractions."""
    lengths = [len(range(j, n, chunks)) for j in range(chunks)]
    most = min(n, 14)
    g = np.random.default_rng(3).normal(size=chunks + 1)
    found = occupancy.given_count(n, chunks, most, g)
    (long, more), (short, fewer) = occupancy.sizes(n, chunks)
    assert sorted(lengths, reverse=True) == [long] * more + [short] * fewer
    for t in range(most + 1):
        law = [Fraction(0)] * (chunks + 1)
        for i in range(more + 1):
            for j in range(fewer + 1):
                inside = sum(
                    (-1) ** (i - a + j - b) * math.comb(i, a) * math.comb(j, b) * math.comb(a * long + b * short, t)
                    for a in range(i + 1)
                    for b in range(j + 1)
                )
                law[i + j] += Fraction(math.comb(more, i) * math.comb(fewer, j) * inside, math.comb(n, t))
        assert found[t] == pytest.approx(sum(float(p) * v for p, v in zip(law, g, strict=True)), abs=1e-13)


# --- as quantities of a trial -----------------------------------------------------------------------------------------


def problem(**changes: Any) -> Problem:
    given: dict[str, Any] = {
        "hypotheses": hypotheses.build("cube", points=64),
        "distribution": distributions.build("lower_bound", alpha=0.1),
        "learner": learners.build("private_lwy", epsilon=0.1, alpha=0.1),
        "n": 10**5,
        "quantities": ("expected_error", "expected_excess_error"),
        "seed": 1,
    }
    return Problem(**{**given, **changes})


def test_closed_forms_are_the_same_in_every_trial_and_list_nothing() -> None:
    """The learner itself cannot run on a cube of 64 points, whose labelings do not fit memory."""
    p = problem()
    assert infeasible(p) is None
    both = inapplicable(problem(quantities=("expected_error", "error")))
    assert list(both) == ["error"]
    assert "labelings" in both["error"]
    assert measure(p, 0) == measure(p, 7)
    expected = expected_errors(p.learner, p.hypotheses, p.distribution, p.n)
    assert measure(p, 0) == {**expected, "mixture_method": CODES["mixture_method"]["analytic"]}
    assert memory(p) < 2**25


def test_closed_forms_beside_measured_errors() -> None:
    small = problem(
        hypotheses=hypotheses.build("cube", points=4),
        learner=learners.build("erm"),
        n=12,
        quantities=("error", "expected_error"),
    )
    found = [measure(small, trial) for trial in range(300)]
    assert len({f["expected_error"] for f in found}) == 1
    errors = np.array([f["error"] for f in found])
    assert abs(errors.mean() - found[0]["expected_error"]) < 4.5 * errors.std() / math.sqrt(300)


def test_no_closed_form_is_infeasible_and_not_failed() -> None:
    assert "closed form" in str(infeasible(problem(learner=learners.build("stable_net", gamma=0.1, alpha=0.1))))
    line = problem(
        hypotheses=hypotheses.build("thresholds", points=5), distribution=distributions.build("threshold", at=2)
    )
    assert "for the cube" in str(infeasible(line))
