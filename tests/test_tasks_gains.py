"""The algebra of gains against pseudo-inverses, limits, and the laws that values must keep on random problems."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, linalg, stats

from predcube.tasks import noises, processes
from predcube.tasks.gains import Gains, Measure, correlation, values
from predcube.tasks.processes import Law

MEASURE = Measure()
SHARD = processes.build("random_shard", fraction=0.3)


@dataclass(frozen=True)
class Coordinates:
    """A fitted release: K, W, the predictors' second moments, and a stack's sizes."""

    curvature: np.ndarray
    units: np.ndarray
    gram: np.ndarray | None = None
    sizes: tuple[int, ...] | None = None

    stretch, blurred = 1.0, False

    @property
    def released(self):
        return np.linalg.pinv(self.units)

    @property
    def fixed(self):
        return np.zeros((0, len(self.units)))

    @property
    def members(self):
        return self.sizes or (len(self.units),)


def law_of(q, g, factor=1.0):
    """The plain law of columns of rows."""
    q, g = q - q.mean(axis=0), g - g.mean(axis=0)
    size = q.shape[1]
    return Law(
        rows=len(q),
        p=np.zeros(size),
        s1=factor * (q**2).mean(axis=0),
        cross=factor * q.T @ g / len(q),
        variance=factor * g.T @ g / len(q),
        joint=factor * q.T @ q / len(q),
        binary=np.zeros(size, dtype=bool),
        constant=np.zeros(size, dtype=bool),
    )


def problem(rng, d=None, queries=3, rows=60, singular=False):
    """Rows of correlated columns, a random jacobian, and units up to 1e4 apart."""
    d = d or int(rng.integers(1, 7))
    g = rng.normal(size=(rows, d)) @ rng.normal(size=(d, d))
    if singular and d > 1:
        g[:, 0] = g[:, 1:] @ rng.normal(size=d - 1)
    q = g @ rng.normal(size=(d, queries)) * rng.uniform(0, 2) + rng.normal(size=(rows, queries))
    units = np.diag(10.0 ** rng.uniform(-2, 2, d))
    return law_of(q, g), Coordinates(rng.normal(size=(d, d)) @ np.linalg.inv(units), units)


def direct(law, jacobian, noise, m):
    """Cᵀ(V + m·G S Gᵀ)⁺C for each query, by a pseudo-inverse."""
    inverse = np.linalg.pinv(law.variance + m * jacobian @ noise @ jacobian.T, rcond=1e-10)
    return np.einsum("ij,jk,ik->i", law.cross, inverse, law.cross)


SCHEMES = [
    noises.build("none"),
    noises.build("isotropic", sd=0.05),
    noises.build("isotropic", sd=20.0),
    noises.build("calibrated", level=0.7),
    noises.build("gaussian", epsilon=1.0, delta=1e-5, sensitivity=0.05),
    noises.build("laplace", epsilon=0.5, sensitivity=0.05),
]


@pytest.mark.parametrize("noise", SCHEMES, ids=lambda noise: noise.kind)
def test_gains_are_those_of_a_pseudo_inverse(noise):
    rng = np.random.default_rng(1)
    for trial in range(150):
        law, at = problem(rng, singular=trial % 3 == 0)
        gains = Gains(law=law, coordinates=at)
        m = SHARD.factors(law).m
        total = gains.covariance(SHARD, noise, MEASURE)
        found = gains.gain(SHARD, noise, MEASURE)
        assert np.allclose(found, direct(law, at.curvature @ at.units, total, m), rtol=1e-6, atol=1e-12 * law.s1)
        assert np.allclose(np.diag(gains.gain_matrix(SHARD, noise, MEASURE)), found, rtol=1e-9)
        assert gains.rank == len(law.variance) - (trial % 3 == 0 and len(law.variance) > 1)


def test_the_joint_gain_is_that_of_every_combination_of_queries():
    rng = np.random.default_rng(2)
    noise = noises.build("isotropic", sd=0.3)
    for _ in range(50):
        law, at = problem(rng)
        matrix = Gains(law=law, coordinates=at).gain_matrix(SHARD, noise, MEASURE)
        u = rng.normal(size=3)
        mixed = Law(
            rows=law.rows,
            p=np.zeros(1),
            s1=np.array([u @ law.joint @ u]),
            cross=(u @ law.cross)[None],
            variance=law.variance,
            binary=np.zeros(1, dtype=bool),
            constant=np.zeros(1, dtype=bool),
        )
        alone = Gains(law=mixed, coordinates=at).gain(SHARD, noise, MEASURE)[0]
        assert u @ matrix @ u == pytest.approx(alone, rel=1e-9)
        assert np.all(np.linalg.eigvalsh(law.joint - matrix) > -1e-9 * np.trace(law.joint))


def test_calibrated_noise_divides_the_gain():
    """P2 Lemma 4.3: r = ρ/√(1 + σ²), whatever the process's m."""
    rng = np.random.default_rng(3)
    for level in (0.0, 0.5, 3.0, 1e6):
        law, at = problem(rng)
        gains = Gains(law=law, coordinates=at)
        noise = noises.build("calibrated", level=level)
        for process in (SHARD, processes.build("iid", size=17)):
            found = gains.values(process, noise, MEASURE)
            assert np.allclose(found.r, np.sqrt(found.rho2 / (1 + level)), rtol=1e-12)


def test_rank_one_noise_leaves_the_gain_that_was_asked_for():
    rng = np.random.default_rng(4)
    for trial in range(60):
        law, at = problem(rng, queries=1, singular=trial % 4 == 0)
        gains = Gains(law=law, coordinates=at)
        bare = gains.values(SHARD, noises.build("none"), MEASURE)
        for share in (0.999, 0.5, 1e-3):
            noise = noises.build("rank_one", gain=share * bare.sharp[0])
            found = gains.values(SHARD, noise, MEASURE)
            assert found.sharp[0] == pytest.approx(share * bare.sharp[0], rel=1e-12)
            total = gains.covariance(SHARD, noise, MEASURE)
            if trial % 4:
                left = direct(law, at.curvature @ at.units, total, SHARD.factors(law).m)[0]
                assert left == pytest.approx(found.gain[0], rel=1e-5)
            assert np.linalg.matrix_rank(total, tol=1e-10 * np.linalg.norm(total)) == 1
            assert found.utility_cost[0] == pytest.approx(np.trace(total), rel=1e-6)


def test_rank_one_noise_that_is_not_needed_or_is_for_a_family_is_infeasible():
    rng = np.random.default_rng(5)
    law, at = problem(rng, queries=1)
    gains = Gains(law=law, coordinates=at)
    bare = float(gains.values(SHARD, noises.build("none"), MEASURE).sharp[0])
    for gain in (bare, 2 * bare):
        with pytest.raises(ValueError, match="no noise is needed"):
            gains.values(SHARD, noises.build("rank_one", gain=gain), MEASURE)
    law, at = problem(rng, queries=2)
    reason = Gains(law=law, coordinates=at).infeasible(SHARD, noises.build("rank_one", gain=1e-9), MEASURE)
    assert reason == "rank_one noise hides one query, and there are 2: take calibrated or isotropic noise"
    assert Gains(law=law, coordinates=at).infeasible(SHARD, noises.build("none"), MEASURE) is None


def test_no_noise_and_no_end_of_noise():
    """P2 Remark 3.7: σ² → 0 and σ² → ∞, approached from every scale."""
    rng = np.random.default_rng(6)
    law, at = problem(rng, d=4)
    gains = Gains(law=law, coordinates=at)
    bare = gains.values(SHARD, noises.build("none"), MEASURE)
    assert np.allclose(gains.gain(SHARD, noises.build("isotropic", sd=0.0), MEASURE), bare.gain, rtol=1e-13)
    tiny = gains.gain(SHARD, noises.build("isotropic", sd=1e-160), MEASURE)
    assert np.allclose(tiny, bare.gain, rtol=1e-12)
    huge = gains.gain(SHARD, noises.build("isotropic", sd=1e150), MEASURE)
    assert np.all(huge < 1e-200)
    uncorrelated = law_of(np.array([[1.0], [-1.0], [1.0], [-1.0]]), np.array([[1.0], [1.0], [-1.0], [-1.0]]))
    free = values(uncorrelated, Coordinates(-np.eye(1), np.eye(1)), SHARD, noises.build("none"), MEASURE)
    assert free.sharp == free.paper == 0


def test_a_release_that_is_the_query_gives_all_of_it():
    rng = np.random.default_rng(7)
    q = rng.normal(size=(80, 1))
    law = law_of(q, np.hstack([q * 1e-12, rng.normal(size=(80, 2)) * 1e12]))
    found = values(law, Coordinates(-np.eye(3), np.eye(3)), SHARD, noises.build("none"), MEASURE)
    assert found.rho2[0] == pytest.approx(1, abs=1e-12)
    assert found.r[0] <= 1
    assert found.sharp[0] == pytest.approx(found.K * law.s1[0], rel=1e-12)
    assert found.correlated[0] == pytest.approx(found.cauchy_schwarz[0], rel=1e-6)


def test_noise_that_is_seen_where_the_release_does_not_vary():
    """Two coordinates of one column: their difference shows the difference of their noises, whatever its size."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(100, 1))
    q = x + rng.normal(size=(100, 1))
    law = law_of(q, np.hstack([x, x]))
    for sd in (1e-3, 1.0, 1e4):
        twice = values(law, Coordinates(-np.eye(2), np.eye(2)), SHARD, noises.build("isotropic", sd=sd), MEASURE)
        half = noises.build("isotropic", sd=sd / np.sqrt(2))  # the mean of both is all that they say
        once = values(law_of(q, x), Coordinates(-np.eye(1), np.eye(1)), SHARD, half, MEASURE)
        assert twice.gain[0] == pytest.approx(once.gain[0], rel=1e-9)
        assert (twice.rank, once.rank) == (1, 1)
        noise = noises.build("isotropic", sd=sd)  # on copies with noise of 1, 2 and 3: as one of √(1/(1 + ¼ + 1/9))
        three = Gains(
            law=law_of(q, np.hstack([x, x, 7 * x])), coordinates=Coordinates(np.diag([1.0, 2, 21]), np.eye(3))
        )
        best = np.sqrt(1 / (1 + 1 / 4 + 1 / 9))
        third = Gains(law=law_of(q, x), coordinates=Coordinates(best * np.eye(1), np.eye(1)))
        assert np.allclose(three.gain(SHARD, noise, MEASURE), third.gain(SHARD, noise, MEASURE), rtol=1e-9)
    # Noise common to both a varying and a constant coordinate is read off the constant one.
    law = law_of(q, np.hstack([x, np.zeros((100, 1))]))
    mixed = Coordinates(np.array([[1.0, 1.0], [0.0, 1e-9]]), np.eye(2))
    common = noises.build("gaussian", epsilon=1.0, delta=1e-5, sensitivity=0.3)
    total = Gains(law=law, coordinates=mixed).covariance(SHARD, common, MEASURE)
    exact = law.cross[0, 0] ** 2 / (law.variance[0, 0] + SHARD.factors(law).m * total[0, 0])
    assert values(law, mixed, SHARD, common, MEASURE).gain[0] == pytest.approx(exact, rel=1e-9)


def test_noise_of_very_different_sizes_hides_what_it_hides_and_no_more():
    """Noise of 1e12 standard deviations on one number, none on another: the other gives what it gives alone."""
    rng = np.random.default_rng(9)
    g = rng.normal(size=(100, 2))
    q = g @ [[1.0], [1.0]] + rng.normal(size=(100, 1))
    units = np.array([[1e12, 0.0], [0.0, 0.0]])
    found = Gains(law=law_of(q, g), coordinates=Coordinates(np.eye(2), units)).gain(
        SHARD, noises.build("isotropic", sd=1.0), MEASURE
    )
    alone = Gains(law=law_of(q, g[:, 1:]), coordinates=Coordinates(np.eye(1), np.eye(1))).gain0
    assert found[0] == pytest.approx(alone[0], rel=1e-9)
    # the same along a direction that is no coordinate, and beyond what a sum of squares could hold
    turn = stats.ortho_group.rvs(2, random_state=rng)
    turned = Gains(law=law_of(q, g @ turn.T), coordinates=Coordinates(np.eye(2), turn @ (units * 1e8) @ turn.T))
    assert turned.gain(SHARD, noises.build("isotropic", sd=1.0), MEASURE)[0] == pytest.approx(alone[0], rel=1e-9)


@pytest.mark.parametrize("noise", SCHEMES, ids=lambda noise: noise.kind)
def test_values_keep_their_laws_on_random_problems(noise):
    """sharp ≤ correlated ≤ cauchy_schwarz ≤ paper, 0 ≤ gain ≤ s1, r ≤ ρ ≤ 1: 10,000 problems over the six schemes."""
    rng = np.random.default_rng(10)
    slack = 1 + 1e-12
    for trial in range(420):
        law, at = problem(rng, rows=12, singular=trial % 5 == 0)
        found = values(law, at, SHARD, noise, MEASURE)
        assert np.all(found.sharp <= found.correlated * slack)
        assert np.all(found.correlated <= found.cauchy_schwarz * slack)
        assert np.allclose(found.paper, (1 + np.log(4)) * found.cauchy_schwarz, rtol=1e-13)
        assert np.all((found.gain >= 0) & (found.gain <= law.s1))
        assert np.all((found.r <= np.sqrt(found.rho2) * slack) & (found.rho2 <= 1))
        binary = law_of((rng.random((12, 1)) < 0.4) + 0.0, at.units[:1, :1] * rng.normal(size=(12, 1)))
        p = rng.uniform(0.01, 0.99)
        logged = Law(
            **{
                **{name: getattr(binary, name) for name in Law.__slots__},
                "p": np.array([p]),
                "s1": np.array([p * (1 - p)]),
                "cross": binary.cross * np.sqrt(p * (1 - p) / (binary.s1 + 1e-300)),
                "binary": np.ones(1, dtype=bool),
                "constant": np.zeros(1, dtype=bool),
            }
        )
        one = Coordinates(np.eye(1), np.eye(1))
        tau = None if trial % 2 else rng.uniform(0.01, 1) * min(p, 1 - p)
        nats = values(logged, one, SHARD, noise, Measure(loss="log", tau=tau))
        assert nats.sharp[0] <= nats.correlated[0] * slack
        assert nats.correlated[0] <= nats.cauchy_schwarz[0] * slack <= nats.paper[0] * slack
        assert nats.sharp[0] == pytest.approx(nats.r[0] ** 2 / 2 * nats.K, rel=1e-12)


def test_the_gain_falls_with_noise():
    rng = np.random.default_rng(11)
    for _ in range(100):
        law, at = problem(rng)
        gains = Gains(law=law, coordinates=at)
        for kind, name in (("isotropic", "sd"), ("calibrated", "level")):
            ladder = [gains.gain(SHARD, noises.build(kind, **{name: s}), MEASURE) for s in (0, 1e-6, 1e-2, 1, 30, 1e5)]
            assert all(np.all(b <= a) for a, b in pairwise(ladder))
            assert np.all(ladder[-1] < ladder[0])


def test_the_gain_is_the_same_for_every_invertible_map_of_the_release():
    """Of the released numbers, noise mapped with them, and of the moment function alone."""
    rng = np.random.default_rng(12)
    for _ in range(100):
        law, at = problem(rng, d=4)
        a = np.diag(10.0 ** rng.uniform(-6, 6, 4)) @ stats.ortho_group.rvs(4, random_state=rng)
        noise = noises.build("isotropic", sd=0.1)
        plain = Gains(law=law, coordinates=at).gain(SHARD, noise, MEASURE)
        turned = law_of_map(law, a)
        moved = Coordinates(a @ at.curvature, at.units)
        assert np.allclose(Gains(law=turned, coordinates=moved).gain(SHARD, noise, MEASURE), plain, rtol=1e-6)
        assert np.allclose(Gains(law=turned, coordinates=moved).gain0, Gains(law=law, coordinates=at).gain0, rtol=1e-6)


def law_of_map(law, a):
    fields = {name: getattr(law, name) for name in Law.__slots__}
    return Law(**{**fields, "cross": law.cross @ a.T, "variance": a @ law.variance @ a.T})


def test_composition_and_post_processing():
    """P2 A.10, A.11: what is computed from a noisy release gains no more than it, and two gain no less than either."""
    rng = np.random.default_rng(13)
    for _ in range(100):
        rows, d = 60, 4
        g = rng.normal(size=(rows, d)) @ rng.normal(size=(d, d))
        q = g @ rng.normal(size=(d, 1)) + rng.normal(size=(rows, 1))
        noise = noises.build("isotropic", sd=rng.uniform(0, 1))
        both = Gains(law=law_of(q, g), coordinates=Coordinates(-np.eye(d), np.eye(d), None, (2, 2)))
        one = Gains(law=law_of(q, g[:, :2]), coordinates=Coordinates(-np.eye(2), np.eye(2)))
        two = Gains(law=law_of(q, g[:, 2:]), coordinates=Coordinates(-np.eye(2), np.eye(2)))
        whole, first, second = (x.gain(SHARD, noise, MEASURE)[0] for x in (both, one, two))
        slack = 1 + 1e-9
        assert max(first, second) <= whole * slack
        # a function of the noisy release: its noise is mapped with it, here as the root of a covariance
        a = rng.normal(size=(2, d))
        inner = g @ a.T
        mapped = direct(law_of(q, inner), a, np.eye(d) * noise.sd**2, SHARD.factors(law_of(q, g)).m)[0]
        assert mapped <= whole * slack


def test_paper_convention_is_looser_for_random_shards():
    """Erratum 1: the printed formula counts the noise once, though it is drawn once for all n rows."""
    rng = np.random.default_rng(14)
    for noise in SCHEMES:
        law, at = problem(rng)
        gains = Gains(law=law, coordinates=at)
        right = gains.values(SHARD, noise, MEASURE)
        printed = gains.values(SHARD, noise, Measure(convention="paper"))
        assert np.all(printed.sharp >= right.sharp)
        assert np.allclose(
            printed.gain,
            direct(law, at.curvature @ at.units, gains.covariance(SHARD, noise, Measure(convention="paper")), 1.0),
            rtol=1e-6,
            atol=1e-12 * law.s1,
        )
        if noise.kind in ("isotropic", "gaussian", "laplace"):
            assert np.all(printed.sharp > right.sharp)


def test_an_attacker_who_believes_the_printed_noise_does_worse_than_one_who_ignores_the_release():
    """Erratum 1, drawn: breaches of 600 of 2,000 rows, noise of twice the sample's own error."""
    rng = np.random.default_rng(15)
    size, n = 2000, 600
    x = rng.normal(size=size)
    q = 0.8 * x + 0.6 * rng.normal(size=size)
    law = law_of(q[:, None], x[:, None], size / (size - 1))
    process = processes.build("random_shard", size=n, target="all")
    sd = 2 * np.sqrt(law.variance[0, 0] / process.factors(law).m)
    weights = {
        "ignores": 0.0,
        "believes": law.cross[0, 0] / (law.variance[0, 0] + sd**2),
        "knows": law.cross[0, 0] / (law.variance[0, 0] + process.factors(law).m * sd**2),
    }
    errors = {name: [] for name in weights}
    for _ in range(3000):
        seen = rng.choice(size, n, replace=False)
        released = x.mean() + rng.normal(0, sd)
        for name, weight in weights.items():
            errors[name].append((q[seen].mean() - weight * (x[seen].mean() - released) - q.mean()) ** 2)
    mean = {name: np.mean(values) for name, values in errors.items()}
    error = {name: np.std(values) / np.sqrt(3000) for name, values in errors.items()}
    assert mean["knows"] < mean["ignores"] - 4 * error["ignores"]
    assert mean["believes"] > mean["ignores"] + 4 * error["believes"]
    gain = values(law, Coordinates(-np.eye(1), np.eye(1)), process, noises.build("isotropic", sd=sd), MEASURE).sharp[0]
    assert abs(mean["ignores"] - mean["knows"] - gain) < 4 * np.hypot(error["ignores"], error["knows"])


def test_the_printed_total_covariance_of_calibrated_noise_misses_its_own_claim():
    """Erratum 2: S_tot = σ²·Var ψ leaves r = ρ/√(1 + mσ²), not ρ/√(1 + σ²)."""
    law, at = problem(np.random.default_rng(16), d=3)
    gains = Gains(law=law, coordinates=at)
    m = SHARD.factors(law).m
    inverse = np.linalg.inv(at.curvature @ at.units)
    printed = 0.7 * inverse @ law.variance @ inverse.T
    left = direct(law, at.curvature @ at.units, printed, m)
    assert np.allclose(left, gains.gain0 / (1 + 0.7 * m), rtol=1e-6)
    assert np.allclose(gains.covariance(SHARD, noises.build("calibrated", level=0.7), MEASURE), printed / m, rtol=1e-6)


def test_the_printed_bound_of_a_statistic_can_be_negative():
    """Erratum 3: ρ for |ρ| in Theorem 4.1."""
    x = np.random.default_rng(17).normal(size=(100, 1))
    law = law_of(-x, x)
    found = values(law, Coordinates(-np.eye(1), np.eye(1)), SHARD, noises.build("none"), MEASURE)
    rho = law.cross[0, 0] / np.sqrt(law.s1[0] * law.variance[0, 0])
    assert found.K * law.s1[0] * rho < 0 < found.sharp[0]


def test_the_variance_of_a_weighted_query_is_not_that_of_its_deviation():
    """Erratum 4: Var[wq] in place of Var[w(q − p)] fails for a query of nearly one value."""
    rng = np.random.default_rng(18)
    c = rng.lognormal(0, 1, 200)
    w = c.sum() / (200 * c)
    q = 1.0 - (rng.random(200) < 0.02)
    chance = c / c.sum()
    deviation = chance @ (w * (q - q.mean())) ** 2
    printed = chance @ (w * q) ** 2 - (chance @ (w * q)) ** 2
    assert printed > 10 * deviation


def test_the_printed_tail_is_too_small_and_its_expectation_is_not():
    """Erratum 6: P(|Z| ≥ t) exceeds 2exp(−t²) at t = 2, and P(XY > ln(4/δ)) exceeds δ at r = 1 from δ = .0233 down;
    E|XY| is at most 1 all the same, so 1 + log 4 still bounds it."""
    assert 2 * stats.norm.sf(2) > 2 * np.exp(-4)
    assert 2 * stats.norm.sf(2) < 2 * np.exp(-4 / 2)

    def chance(delta):
        return 2 * stats.norm.sf(np.sqrt(np.log(4 / delta)))

    assert chance(0.0232) > 0.0232
    assert chance(0.0234) < 0.0234
    for r in (0.0, 0.3, 0.9, 1.0):
        assert correlation(np.array(r)) <= 1


@pytest.mark.parametrize("r", [0.0, 0.2, 0.5, 0.9, 0.999])
def test_k_is_the_mean_of_a_product_of_correlated_normals(r):
    """Y given X = x is normal with mean rx: a folded normal."""
    found, _ = integrate.quad(
        lambda x: 2 * x * stats.norm.pdf(x) * stats.foldnorm.mean(r * x / np.sqrt(1 - r**2), scale=np.sqrt(1 - r**2)),
        0,
        12,
    )
    assert correlation(np.array(r)) == pytest.approx(found, rel=1e-7)


def test_costs_are_traces():
    """Of the noise on predictions, tr(M S_tot), where the release predicts; else of the noise itself."""
    rng = np.random.default_rng(19)
    law, at = problem(rng, d=3)
    x = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3))
    gram = x.T @ x / 50
    predicts = Coordinates(at.curvature, at.units, gram)
    for noise in SCHEMES:
        for coordinates in (at, predicts):
            gains = Gains(law=law, coordinates=coordinates)
            total = gains.covariance(SHARD, noise, MEASURE)
            m = np.eye(3) if coordinates is at else at.units.T @ gram @ at.units
            found = gains.values(SHARD, noise, MEASURE).utility_cost
            assert np.allclose(found, np.trace(m @ total), rtol=1e-6)
            assert found.shape == (3,)
    # P2 Lemma 4.5
    found = values(law, Coordinates(np.eye(3), np.eye(3), gram), SHARD, noises.build("isotropic", sd=0.3), MEASURE)
    assert found.utility_cost[0] == pytest.approx(0.09 * np.mean((x**2).sum(axis=1)), rel=1e-12)


def binary_law(p, constant=False, binary=True):
    return Law(
        rows=100,
        p=np.array([p]),
        s1=np.array([p * (1 - p)]),
        cross=np.array([[0.0 if constant else 0.5 * np.sqrt(p * (1 - p))]]),
        variance=np.eye(1),
        binary=np.array([binary]),
        constant=np.array([constant]),
    )


def test_log_loss():
    at, none = Coordinates(-np.eye(1), np.eye(1)), noises.build("none")
    found = values(binary_law(0.2), at, SHARD, none, Measure(loss="log"))
    assert found.sharp[0] == pytest.approx(0.25 / 2 * found.K)
    assert found.tau[0] == pytest.approx(0.1)
    assert found.cauchy_schwarz[0] == pytest.approx(found.K * 0.16 * 0.5 / 0.1**2)
    given = values(binary_law(0.2), at, SHARD, none, Measure(loss="log", tau=0.2))
    assert given.cauchy_schwarz[0] == pytest.approx(found.cauchy_schwarz[0] / 4)
    for p in (1e-12, 1 - 1e-12):
        near = values(binary_law(p), at, SHARD, none, Measure(loss="log"))
        assert near.sharp[0] == pytest.approx(0.25 / 2 * near.K, rel=1e-3)
    with pytest.raises(ValueError, match=r"tau = 0.21 is above min\(p, 1 − p\) = 0.2 of query 1"):
        values(binary_law(0.2), at, SHARD, none, Measure(loss="log", tau=0.21))
    with pytest.raises(ValueError, match="query 1 of 1 takes values other than 0 and 1"):
        values(binary_law(0.2, binary=False), at, SHARD, none, Measure(loss="log"))
    with pytest.raises(ValueError, match="is for the log loss"):
        Measure(tau=0.1)
    with pytest.raises(ValueError, match="loss = 'logg' is not one of"):
        Measure(loss="logg")


@pytest.mark.parametrize("measure", [MEASURE, Measure(loss="log"), Measure(loss="log", tau=0.3)])
def test_a_constant_query_is_worth_nothing_and_says_so(measure):
    for noise in SCHEMES:
        found = values(binary_law(0.0, constant=True), Coordinates(-np.eye(1), np.eye(1)), SHARD, noise, measure)
        for name in ("gain", "r", "rho2", "sharp", "correlated", "cauchy_schwarz", "paper"):
            assert getattr(found, name).tolist() == [0.0], name
        assert found.constant.tolist() == [True]
        assert found.tau.tolist() == [0.0]
        assert "constant_query" in found.flags


def test_a_release_of_constants_says_nothing():
    law = law_of(np.random.default_rng(20).normal(size=(30, 2)), np.zeros((30, 2)))
    for noise in SCHEMES:
        found = values(law, Coordinates(-np.eye(2), np.eye(2)), SHARD, noise, MEASURE)
        assert found.gain.tolist() == [0.0, 0.0]
        assert found.rank == 0


def test_collinear_coordinates_are_counted_once():
    rng = np.random.default_rng(21)
    g = rng.normal(size=(200, 3))
    q = g @ rng.normal(size=(3, 1)) + rng.normal(size=(200, 1))
    more = np.hstack([g, 1e12 * g[:, :1] - 3 * g[:, 1:2], np.ones((200, 1)), 1e-12 * g[:, 2:]])
    plain = values(law_of(q, g), Coordinates(-np.eye(3), np.eye(3)), SHARD, noises.build("none"), MEASURE)
    found = values(law_of(q, more), Coordinates(-np.eye(6), np.eye(6)), SHARD, noises.build("none"), MEASURE)
    assert found.rank == 3
    assert found.rho2[0] == pytest.approx(plain.rho2[0], rel=1e-9)
    assert plain.condition == pytest.approx(
        np.linalg.cond(g / g.std(axis=0) - g.mean(axis=0) / g.std(axis=0)), rel=0.02
    )


def test_nearly_collinear_coordinates_are_flagged_and_still_right():
    """A number and the same number plus the query, 1e-4 of its spread: their difference is the query."""
    rng = np.random.default_rng(22)
    x = rng.normal(size=(1000, 1))
    q = (rng.random((1000, 1)) < 0.3) + 0.0
    for small, flagged in ((1e-4, False), (1e-6, True)):
        law = law_of(q, np.hstack([x, x + small * q]))
        found = values(law, Coordinates(-np.eye(2), np.eye(2)), SHARD, noises.build("none"), MEASURE)
        assert found.rho2[0] == pytest.approx(1, abs=1e-14 / small**2)
        assert ("ill_conditioned" in found.flags) is flagged


def test_flags_of_the_law_and_the_noise_reach_the_values():
    law, at = problem(np.random.default_rng(23))
    flagged = Law(**{**{name: getattr(law, name) for name in Law.__slots__}, "flags": ("few_shards",)})
    found = values(flagged, at, SHARD, noises.build("laplace", epsilon=1.0, sensitivity=1.0), MEASURE)
    assert found.flags == ("few_shards", "linear_attacker")
    assert values(law, at, SHARD, noises.build("none"), MEASURE).flags == ()


def test_a_stack_calibrated_member_by_member():
    rng = np.random.default_rng(24)
    law, _ = problem(rng, d=5)
    at = Coordinates(linalg.block_diag(rng.normal(size=(2, 2)), rng.normal(size=(3, 3))), np.eye(5), None, (2, 3))
    gains = Gains(law=law, coordinates=at)
    m = SHARD.factors(law).m
    inverse = np.linalg.inv(at.curvature)
    whole = 0.7 / m * inverse @ law.variance @ inverse.T
    whole[:2, 2:] = whole[2:, :2] = 0
    noise = noises.build("calibrated", level=0.7)
    assert np.allclose(gains.covariance(SHARD, noise, MEASURE), whole, rtol=1e-9)
    assert np.allclose(gains.gain(SHARD, noise, MEASURE), direct(law, at.curvature, whole, m), rtol=1e-8)
