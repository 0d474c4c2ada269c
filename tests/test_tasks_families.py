"""Families of queries against closed forms, eigenvalues, brute maxima and draws made apart."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, linalg, stats

from predcube.tasks import families_linear as linear
from predcube.tasks.families import FamilyValue, finite_family, finite_family_bound, worst_process
from predcube.tasks.families_lipschitz import lipschitz_bound, thresholds
from predcube.tasks.seeds import stream

type Array = NDArray[np.float64]


def problem(
    rng: np.random.Generator, queries: int, moments: int, noise: float = 0.0
) -> tuple[Array, Array, Array, Array]:
    """Σ1, C, V and Γ of random rows, with noise·I in the moments' coordinates."""
    rows = rng.standard_normal((queries + moments + 9, queries + moments)) @ rng.standard_normal(
        (queries + moments,) * 2
    )
    covariance = np.cov(rows.T)
    sigma1, cross, variance = (
        covariance[:queries, :queries],
        covariance[:queries, queries:],
        covariance[queries:, queries:],
    )
    gain = cross @ np.linalg.solve(variance + noise * np.eye(moments), cross.T)
    return sigma1, cross, variance, (gain + gain.T) / 2


def largest_square(size: int) -> float:
    """E max of the squares of ``size`` independent standard normals."""
    return float(integrate.quad(lambda t: 1 - stats.chi2(1).cdf(t) ** size, 0, 80, limit=200)[0])


def test_one_query_gains_what_it_gains_alone() -> None:
    found = finite_family(np.array([[3.0]]), np.array([[0.7]]), K=0.01, rng=stream(1, "family", 0))
    assert found.kind == "estimate"
    assert found.draws == 2**16
    assert abs(found.value - 0.007) < 4 * found.standard_error
    assert found.lower < 0.007 < found.upper


@pytest.mark.parametrize("size", [2, 12])
def test_independent_queries_that_are_released_gain_the_largest_square(size: int) -> None:
    found = finite_family(np.eye(size) * 4, np.eye(size) * 4, K=0.5, rng=stream(2, "family", size))
    assert abs(found.value - 2 * largest_square(size)) < 4 * found.standard_error


def test_curvatures_weigh_the_queries() -> None:
    """The worst of two queries released, one of them of no weight: E max(w z², 0·z'²) = w."""
    found = finite_family(np.eye(2), np.eye(2), K=1.0, curvature=[8.0, 0.0], rng=stream(2, "family", "weights"))
    assert abs(found.value - 4.0) < 4 * found.standard_error


def test_a_stream_gives_the_same_bits() -> None:
    rng = np.random.default_rng(3)
    sigma1, _, _, gain = problem(rng, 5, 3)
    first, again = (finite_family(sigma1, gain, K=0.1, rng=stream(3, "family", 1), draws=5000) for _ in range(2))
    assert first == again
    assert first != finite_family(sigma1, gain, K=0.1, rng=stream(3, "family", 2), draws=5000)


def test_intervals_cover_at_their_level() -> None:
    truth, covered = largest_square(3), 0
    for seed in range(400):
        found = finite_family(np.eye(3), np.eye(3), K=1.0, rng=stream(seed, "family"), draws=400)
        covered += found.lower <= truth <= found.upper
    assert 0.91 <= covered / 400 <= 0.98


def test_a_family_lies_between_its_worst_member_and_the_bound() -> None:
    rng = np.random.default_rng(5)
    for trial in range(40):
        queries = int(rng.integers(1, 30))
        sigma1, _, _, gain = problem(rng, queries, int(rng.integers(1, 6)), noise=float(rng.choice([0.0, 1.0, 50.0])))
        found = finite_family(sigma1, gain, K=0.02, rng=stream(5, "family", trial), draws=4000)
        bound = finite_family_bound(np.diag(sigma1), np.diag(gain), K=0.02)
        assert bound.kind == "bound"
        assert found.value > 0.02 * float(np.max(np.diag(gain))) - 4 * found.standard_error
        assert found.value < bound.value


def test_theorem_5_1_as_printed_fails_from_about_forty_queries() -> None:
    """P2's chain bounds H·K·E max|a||a − b|. Where the queries are released that is H·K·s1·E max z²."""

    def printed(size: int) -> FamilyValue:
        return finite_family_bound(np.ones(size), np.ones(size), K=1.0, H=1.0, convention="paper")

    assert largest_square(20) < printed(20).value
    assert largest_square(60) > printed(60).value
    for size in (1, 60, 2000):
        assert largest_square(size) < finite_family_bound(np.ones(size), np.ones(size), K=1.0, H=1.0).value
    more = finite_family_bound(np.ones(3), np.ones(3), K=1.0, processes=5, convention="paper")
    assert more.value == pytest.approx(2 * (1 + math.log(60)))


def test_the_worst_process_is_named_with_an_interval_over_all() -> None:
    estimates = {
        "a": FamilyValue(kind="estimate", value=1.0, standard_error=0.3, lower=0.4, upper=1.6, draws=9),
        "b": FamilyValue(kind="estimate", value=1.1, standard_error=0.1, lower=0.9, upper=1.3, draws=9),
    }
    name, worst = worst_process(estimates)
    assert (name, worst.kind, worst.value, worst.lower, worst.upper) == ("b", "estimate", 1.1, 0.9, 1.6)
    exact = {"a": FamilyValue.known("exact", 1.0), "b": FamilyValue.known("exact", 0.5)}
    assert worst_process(exact) == ("a", exact["a"])
    assert worst_process({**exact, "c": FamilyValue.known("bound", 3.0)})[1].kind == "bound"
    assert worst_process({**estimates, "c": FamilyValue.known("bound", 0.1)})[1].kind == "estimate"
    with pytest.raises(ValueError, match="family of processes is empty"):
        worst_process({})


def test_covariances_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot exceed the variance"):
        finite_family(np.eye(2), 1.1 * np.eye(2), K=1.0, rng=stream(0, "family"))
    with pytest.raises(ValueError, match="must be square and alike"):
        finite_family(np.eye(2), np.eye(3), K=1.0, rng=stream(0, "family"))
    with pytest.raises(ValueError, match="needs at least 2"):
        finite_family(np.eye(2), np.eye(2), K=1.0, rng=stream(0, "family"), draws=1)
    constant = finite_family(np.diag([1.0, 0.0]), np.diag([0.5, 0.0]), K=1.0, rng=stream(0, "family"))
    assert abs(constant.value - linear.ball(np.eye(1), np.eye(1) / 2, radius=1, K=1, rng=stream(0, "x")).value) < 0.03


def test_the_ball_in_one_dimension_is_exact() -> None:
    for share in (1e-9, 0.01, 0.4, 0.999, 1.0):
        found = linear.ball(np.array([[2.0]]), np.array([[2.0 * share]]), radius=3.0, K=0.1, rng=stream(0, "ball"))
        rng = np.random.default_rng(7)
        b = rng.standard_normal(400_000) * math.sqrt(2 * (1 - share))
        a = b + rng.standard_normal(400_000) * math.sqrt(2 * share)
        gains = np.maximum(a**2 - b**2, 0) * 9 * 0.1
        assert found.kind == "exact"
        assert abs(found.value - gains.mean()) < 4 * gains.std() / math.sqrt(len(gains))
    assert linear.ball(np.eye(1), np.zeros((1, 1)), radius=1.0, K=1.0, rng=stream(0, "ball")).value == 0.0


@pytest.mark.parametrize("dimension", [2, 5])
def test_the_ball_is_the_largest_eigenvalue_of_a_draw(dimension: int) -> None:
    sigma1, _, _, gain = problem(np.random.default_rng(dimension), dimension, 2, noise=0.5)
    found = linear.ball(sigma1, gain, radius=2.0, K=0.3, rng=stream(8, "ball", dimension))
    rng = np.random.default_rng(8)
    b = rng.multivariate_normal(np.zeros(dimension), sigma1 - gain, 40_000, check_valid="ignore")
    a = b + rng.multivariate_normal(np.zeros(dimension), gain, 40_000, check_valid="ignore")
    squares = a[:, :, None] * a[:, None, :] - b[:, :, None] * b[:, None, :]
    values = 0.3 * 4 * np.linalg.eigvalsh(squares)[:, -1]
    error = math.hypot(found.standard_error, float(values.std()) / 200)
    assert abs(found.value - values.mean()) < 4 * error
    assert found.value < linear.ball_bound(sigma1, gain, radius=2.0, K=0.3).value


def test_a_ball_that_is_released_gains_the_trace() -> None:
    sigma1 = problem(np.random.default_rng(9), 4, 1)[0]
    found = linear.ball(sigma1, sigma1, radius=1.5, K=0.1, rng=stream(9, "ball"))
    assert abs(found.value - 0.1 * 2.25 * np.trace(sigma1)) < 4 * found.standard_error
    assert linear.ball_bound(sigma1, sigma1, radius=1.5, K=0.1, H=1.0).value == pytest.approx(0.225 * np.trace(sigma1))


def test_complexities_have_their_closed_forms() -> None:
    one = linear.gaussian_complexity(np.array([[2.0, 0.0]]), np.eye(2), rng=stream(10, "complexity", 1))
    assert abs(one.value - 2 * math.sqrt(2 / math.pi)) < 4 * one.standard_error
    two = linear.gaussian_complexity(np.eye(2), np.eye(2), rng=stream(10, "complexity", 2))
    assert abs(two.value - 2 / math.sqrt(math.pi)) < 4 * two.standard_error
    covariance = problem(np.random.default_rng(10), 6, 1)[0]
    corners = linear.gaussian_complexity(3 * np.eye(6), covariance, rng=stream(10, "complexity", 3))
    assert corners.value < linear.l1_complexity(covariance, 3.0).value
    assert linear.l1_complexity(np.eye(1), 1.0).value > math.sqrt(2 / math.pi)
    round_set = np.random.default_rng(11).standard_normal((500, 6))
    round_set *= 3 / np.linalg.norm(round_set, axis=1, keepdims=True)
    ball = linear.gaussian_complexity(round_set, covariance, rng=stream(10, "complexity", 4))
    assert ball.value < linear.ball_complexity(covariance, 3.0).value
    assert linear.diameter(round_set, covariance) < linear.ball_diameter(covariance, 3.0)
    assert linear.ball_diameter(np.diag([1.0, 5.0]), 2.0) == pytest.approx(20.0)


def test_theorem_a_23_suprema_exceed_their_bound_as_rarely_as_it_says() -> None:
    covariance = problem(np.random.default_rng(12), 3, 1)[0]
    members = np.random.default_rng(13).standard_normal((7, 3))
    complexity = linear.gaussian_complexity(members, covariance, rng=stream(12, "complexity"))
    rng = np.random.default_rng(14)
    suprema = np.abs(rng.multivariate_normal(np.zeros(3), covariance, 20_000) @ members.T).max(axis=1)
    for delta in (0.5, 0.1, 0.01):
        limit = linear.supremum_bound(complexity.value, linear.diameter(members, covariance), delta)
        assert np.mean(suprema > limit) <= delta
    with pytest.raises(ValueError, match=r"delta = 1\.0 must lie strictly between"):
        linear.supremum_bound(1.0, 1.0, 1.0)


def test_theorem_a_21_bounds_a_finite_set_of_directions() -> None:
    rng = np.random.default_rng(15)
    for trial in range(10):
        sigma1, _, _, gain = problem(rng, 4, 2, noise=float(rng.choice([0.0, 3.0])))
        members = rng.standard_normal((int(rng.integers(1, 12)), 4))
        found = finite_family(
            members @ sigma1 @ members.T, members @ gain @ members.T, K=0.1, rng=stream(15, "family", trial), draws=4000
        )
        complexities = [
            linear.gaussian_complexity(members, c, rng=stream(15, "complexity", trial), draws=4000).value
            for c in (sigma1, gain)
        ]
        diameters = [linear.diameter(members, c) for c in (sigma1, gain)]
        bound = linear.complexity_bound((complexities[0], complexities[1]), (diameters[0], diameters[1]), K=0.1)
        assert found.value < bound.value
    corners = finite_family(sigma1, gain, K=0.1, rng=stream(15, "family", "corners"))
    assert corners.value < linear.l1_bound(sigma1, gain, radius=1.0, K=0.1).value


def test_the_first_canonical_correlation_is_a_generalised_eigenvalue() -> None:
    rng = np.random.default_rng(16)
    for _ in range(10):
        sigma1, cross, variance, gain = problem(rng, int(rng.integers(1, 5)), int(rng.integers(1, 5)))
        expected = math.sqrt(float(linalg.eigh(gain, sigma1, eigvals_only=True)[-1]))
        assert linear.first_canonical_correlation(sigma1, cross, variance) == pytest.approx(expected, rel=1e-9)
        scale, twice = 10.0 ** rng.integers(-6, 6, len(variance)), np.vstack([np.eye(len(variance))] * 2)
        mixed = twice * scale
        assert linear.first_canonical_correlation(sigma1, cross @ mixed.T, mixed @ variance @ mixed.T) == pytest.approx(
            expected, rel=1e-6
        )
    assert linear.first_canonical_correlation(np.zeros((2, 2)), np.zeros((2, 1)), np.eye(1)) == 0.0


def test_theorem_5_2_needs_the_square_of_the_radius_and_a_trace() -> None:
    rng = np.random.default_rng(17)
    sigma1, cross, variance, gain = problem(rng, 3, 3, noise=2.0)
    noiseless = cross @ np.linalg.solve(variance, cross.T)
    correlation = linear.first_canonical_correlation(sigma1, cross, variance)

    def printed(size: float, convention: str = "paper", noisy: Array = gain) -> float:
        value = linear.paper_bound(
            sigma1,
            noisy,
            noiseless,
            correlation=correlation,
            size=size,
            K=0.1,
            convention=convention,  # type: ignore[arg-type]
        )
        assert value.kind == "bound"
        return value.value

    def worst(size: float) -> float:
        return linear.ball(sigma1, gain, radius=size, K=0.1, rng=stream(17, "ball")).value

    assert printed(1.0) == pytest.approx(printed(1.0, "corrected"))
    assert worst(1.0) < printed(1.0)
    assert worst(1000.0) > printed(1000.0)  # erratum 8
    assert worst(1000.0) < printed(1000.0, "corrected")
    # Erratum 9: one moment against three coordinates, and noise that drowns it.
    single, drowned = np.outer(cross[:, 0], cross[:, 0]) / variance[0, 0], 1e-9
    silent = linear.paper_bound(sigma1, drowned * single, single, correlation=correlation, size=1.0, K=0.1)
    loud = linear.paper_bound(sigma1, single, single, correlation=correlation, size=1.0, K=0.1)
    assert silent.value == pytest.approx(loud.value)
    assert linear.ball_bound(sigma1, drowned * single, radius=1.0, K=0.1).value < 1e-3 * silent.value
    assert linear.paper_bound(0 * sigma1, 0 * gain, 0 * gain, correlation=0.0, size=1.0, K=0.1).value == 0.0


def test_theorem_5_4_is_false_for_functions_that_are_not_affine() -> None:
    """x uniform on ±1, ±2 and the mean of |x| released: the printed bound is 0, and f = |x| gains 1.2e-3."""
    x = np.repeat([-2.0, -1.0, 1.0, 2.0], 250)
    g = np.abs(x) - 1.5
    K = 1 / (0.7 * 0.3 * len(x))
    sigma1, cross, variance = np.array([[x.var()]]), np.array([[np.mean(x * g)]]), np.array([[g.var()]])
    correlation = linear.first_canonical_correlation(sigma1, cross, variance)
    zero = np.zeros((1, 1))
    assert linear.paper_bound(sigma1, zero, zero, correlation=correlation, size=1.0, K=K).value == 0.0
    gained = K * float(np.mean(np.abs(x) * g)) ** 2 / g.var()
    assert gained == pytest.approx(1.2e-3, rel=0.02)
    family = thresholds(x)
    queries = family.queries(x)
    s1 = queries.var(axis=0)
    gain = (queries.T @ g / len(x)) ** 2 / g.var()
    bound = lipschitz_bound(family, s1, gain, constant=1.0, K=K)
    assert bound.kind == "bound"
    assert bound.value > gained
    # By hand: √(F(1 − F)) is √3/4, ½, √3/4 and the gains are 1/16, 0, 1/16 on lengths 1, 2, 1.
    assert bound.value == pytest.approx(2 * K * (math.sqrt(3) / 2 + 1) * 0.5)


def test_the_lipschitz_bound_holds_for_the_worst_of_many_functions() -> None:
    rng = np.random.default_rng(19)
    for trial in range(4):
        x = np.sort(rng.choice(np.round(rng.standard_normal(12) * 4, 2), 300))
        g = np.column_stack([np.cos(x), rng.standard_normal(300)])
        g -= g.mean(axis=0)
        family = thresholds(x)
        slopes = rng.choice([-0.7, 0.7], (60, len(family.at)))
        functions = np.cumsum(np.column_stack([np.zeros(60), slopes * family.widths]), axis=1)
        values = functions[:, np.searchsorted(np.unique(x), x)].T
        centred, queries = values - values.mean(axis=0), family.queries(x)
        weights = np.linalg.solve(np.cov(g.T, ddof=0) + trial * np.eye(2), g.T @ centred / 300)
        worst = finite_family(
            np.cov(values.T, ddof=0),
            (g.T @ centred / 300).T @ weights,
            K=0.05,
            rng=stream(19, "family", trial),
            draws=4000,
        )
        cross = g.T @ (queries - queries.mean(axis=0)) / 300
        gain = np.sum(cross * np.linalg.solve(np.cov(g.T, ddof=0) + trial * np.eye(2), cross), axis=0)
        bound = lipschitz_bound(family, queries.var(axis=0), gain, constant=0.7, K=0.05)
        assert worst.value < bound.value


def test_thresholds_stand_for_the_whole_line() -> None:
    family = thresholds([3.0, 1.0, 1.0, 7.5])
    assert family.complete
    np.testing.assert_array_equal(family.at, [1.0, 3.0])
    np.testing.assert_array_equal(family.widths, [2.0, 4.5])
    np.testing.assert_array_equal(family.queries(np.array([1.0, 3.0, 7.5])), [[0, 0], [1, 0], [1, 1]])
    coarse = thresholds([3.0, 1.0, 1.0, 7.5], grid=[0.0, 4.0, 8.0])
    assert not coarse.complete
    rough = lipschitz_bound(coarse, np.ones(2), np.ones(2), constant=1.0, K=1.0)
    assert rough.kind == "estimate"
    assert math.isnan(rough.standard_error)
    assert thresholds([2.0]).at.size == 0
    assert lipschitz_bound(thresholds([2.0]), np.empty(0), np.empty(0), constant=1.0, K=1.0).value == 0.0
    with pytest.raises(ValueError, match="column of finite values"):
        thresholds([1.0, math.nan])
    with pytest.raises(ValueError, match="the grid must ascend and hold 1 … 3"):
        thresholds([1.0, 3.0], grid=[0.0, 2.0])


def test_remark_3_7_limits_of_the_printed_bound() -> None:
    limits = linear.noise_limits(0.25, -0.4, K=0.01)
    assert limits == {"noiseless": pytest.approx(2 * (1 + math.log(4)) * 0.01 * 0.25 * 0.4), "noisy": 0.0}
    assert linear.noise_limits(0.25, 0.0, K=0.01)["noiseless"] == 0.0
