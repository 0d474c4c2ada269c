"""Noise schemes against the definitions of differential privacy, and against the lemmas that name them."""

import numpy as np
import pytest
from scipy import integrate, linalg, stats

from predcube.tasks import noises, releases
from predcube.tasks.frames import Frame, total_of
from predcube.tasks.noises import Setting
from predcube.tasks.noises.accuracy import ResidualsOf, cost_bounds
from predcube.tasks.noises.gaussian import profile


def hockey_stick(epsilon, density):
    """∫(f(x) − e^ε f(x − 1))₊ dx, of a density of noise and numbers that differ by 1."""
    value, _ = integrate.quad(
        lambda x: max(density(x) - np.exp(epsilon) * density(x - 1), 0.0),
        -60,
        60,
        limit=2000,
        points=[-1, 0, 0.5, 1, 2],
    )
    return value


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-2), (0.5, 1e-3), (1.0, 1e-5), (3.0, 1e-4), (8.0, 0.2)])
def test_gaussian_noise_is_exactly_private(epsilon, delta):
    sd = noises.build("gaussian", epsilon=epsilon, delta=delta, sensitivity=1.0).unit_sd
    assert hockey_stick(epsilon, lambda x: stats.norm.pdf(x, scale=sd)) == pytest.approx(delta, rel=1e-5)
    assert profile(epsilon, sd) <= delta
    assert profile(epsilon, sd * (1 - 1e-9)) > delta


def test_gaussian_noise_of_balle_and_wang():
    """The value that their published program prints for ε = 1, δ = 1e-5."""
    assert noises.build("gaussian", epsilon=1, delta=1e-5, sensitivity=1).unit_sd == pytest.approx(3.730631634944469)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.3, 5.0, 50.0, 1e3])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-3, 0.5, 0.999])
def test_gaussian_noise_is_found_for_any_budget_on_the_safe_side(epsilon, delta):
    sd = noises.build("gaussian", epsilon=epsilon, delta=delta, sensitivity=1.0).unit_sd
    assert 0 < sd < np.inf
    assert profile(epsilon, sd) <= delta
    assert profile(epsilon, sd * (1 - 1e-6)) > delta


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_laplace_noise_is_exactly_private(epsilon):
    noise = noises.build("laplace", epsilon=epsilon, sensitivity=1.0)
    scale = noise.unit_sd / np.sqrt(2)
    assert scale == pytest.approx(1 / epsilon)

    def density(x):
        return stats.laplace.pdf(x, scale=scale)

    assert hockey_stick(epsilon * (1 + 1e-9), density) == pytest.approx(0, abs=1e-9)
    assert hockey_stick(epsilon * 0.9, density) > 1e-3
    assert noise.linear_attacker
    assert not noises.build("gaussian", epsilon=epsilon, delta=1e-5, sensitivity=1.0).linear_attacker


def setting_of(rng, members, rank=None):
    d = sum(members)
    root = rng.normal(size=(d, rank or d))
    units = rng.uniform(0.5, 2, d)
    return Setting(
        curvature=linalg.block_diag(*(rng.normal(size=(size, size)) for size in members)),
        units=np.diag(units),
        released=np.diag(1 / units),
        fixed=np.zeros((0, d)),
        root=root,
        members=members,
    )


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("none", {}),
        ("isotropic", {"sd": 0.3}),
        ("calibrated", {"level": 2.0}),
        ("gaussian", {"epsilon": 1.0, "delta": 1e-5, "sensitivity": 0.1}),
        ("gaussian", {"epsilon": 1.0, "delta": 1e-5, "sensitivity": [0.1, 0.7]}),
        ("laplace", {"epsilon": 1.0, "sensitivity": (0.1, 0.7)}),
    ],
)
def test_a_shape_is_the_same_noise_in_three_coordinates(kind, more):
    setting = setting_of(np.random.default_rng(0), (2, 3))
    shape = noises.build(kind, **more).shape(setting)
    assert np.allclose(shape.scaled, setting.units @ shape.released, rtol=1e-10)
    assert np.allclose(shape.moments, setting.curvature @ shape.scaled, rtol=1e-9, atol=1e-12)


def test_noise_belongs_to_each_member_of_a_stack():
    setting = setting_of(np.random.default_rng(1), (2, 3))
    sizes = [0.1, 0.7]
    for kind, unit in (("laplace", 2.0), ("gaussian", 3.730631634944469**2)):
        more = {"delta": 1e-5} if kind == "gaussian" else {}
        noise = noises.build(kind, epsilon=1.0, sensitivity=sizes, **more)
        shape = noise.shape(setting)
        total = noise.amount(7.0) / 7.0 * shape.released @ shape.released.T
        assert np.allclose(total, np.diag(np.repeat(sizes, [2, 3]) ** 2 * unit))
    calibrated = noises.build("calibrated", level=2.0)
    shape = calibrated.shape(setting)
    variance = setting.root @ setting.root.T
    apart = np.zeros((5, 5))
    apart[:2, :2], apart[2:, 2:] = variance[:2, :2], variance[2:, 2:]
    assert np.allclose(shape.moments @ shape.moments.T, apart)
    assert calibrated.amount(7.0) == 2.0


def test_isotropic_noise_and_one_sensitivity_for_all_share_a_shape():
    shared = {
        noises.build("isotropic", sd=2.0).key,
        noises.build("laplace", epsilon=1.0, sensitivity=3.0).key,
        noises.build("gaussian", epsilon=1.0, delta=0.1, sensitivity=3.0).key,
    }
    assert shared == {("isotropic",)}
    one, two = (noises.build("laplace", epsilon=e, sensitivity=[1.0, s]) for e, s in ((1, 2.0), (2, 2.0)))
    assert one.key == two.key != noises.build("laplace", epsilon=1, sensitivity=[1.0, 3.0]).key
    assert noises.build("laplace", epsilon=1.0, sensitivity=3.0).amount(5.0) == pytest.approx(5 * 2 * 9)


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("isotropic", {"sd": -1.0}, "sd = -1.0 must be at least 0"),
        ("isotropic", {}, "needs sd"),
        ("calibrated", {"level": -0.1}, "must be at least 0"),
        ("rank_one", {"gain": 0.0}, "gain = 0.0 must be above 0"),
        ("gaussian", {"epsilon": 1.0, "sensitivity": 1.0}, "needs delta"),
        ("gaussian", {"epsilon": 1.0, "delta": 0.0, "sensitivity": 1.0}, "delta = 0.0 must be above 0"),
        ("gaussian", {"epsilon": 0.0, "delta": 0.1, "sensitivity": 1.0}, "epsilon = 0.0 must be above 0"),
        ("laplace", {"epsilon": 1.0, "delta": 0.1, "sensitivity": 1.0}, "delta = 0.1 must be at most 0"),
        ("laplace", {"epsilon": 1.0, "sensitivity": 0.0}, "must be a number above 0"),
        ("laplace", {"epsilon": 1.0, "sensitivity": [1.0, -1.0]}, "must be numbers above 0, one a member"),
        ("laplace", {"epsilon": 1.0, "sensitivity": True}, "must be a number above 0"),
        ("isotopic", {}, "did you mean 'isotropic'"),
    ],
)
def test_refusals(kind, more, message):
    with pytest.raises(ValueError, match=message):
        noises.build(kind, **more)


def test_sensitivities_are_as_many_as_members():
    setting = setting_of(np.random.default_rng(2), (2, 3))
    with pytest.raises(ValueError, match="lists 3 numbers for a release of 2 members"):
        noises.build("laplace", epsilon=1.0, sensitivity=[1.0, 2.0, 3.0]).shape(setting)
    with pytest.raises(ValueError, match="ask the gains"):
        noises.build("rank_one", gain=0.1).shape(setting)


@pytest.mark.parametrize("seed", range(5))
def test_both_terms_of_theorem_44_bound_the_cost(seed):
    """The cost σ²·E[e²·xᵀE[xxᵀ]⁻¹x] by hand, each bound above it and one of them near it where its inequality is."""
    rng = np.random.default_rng(seed)
    x = np.hstack([np.ones((200, 1)), rng.normal(size=(200, 2)) * [3.0, 1.0]])
    y = x @ rng.normal(size=3) + rng.normal(size=200)
    frame = Frame(queries=np.zeros((200, 1)), inputs=np.hstack([y[:, None], x[:, 1:]]))
    total = total_of([frame, frame])
    fitted = releases.build("linear", target="y", features=["a", "b"]).fit(total)
    residuals = total(ResidualsOf(coefficients=fitted.estimate))
    e = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    second = x.T @ x / 200
    cost = 0.7 * np.mean(e**2 * np.einsum("ij,jk,ik->i", x, np.linalg.inv(second), x))
    first, other = cost_bounds(residuals, fitted.utility, 0.7)
    assert first == pytest.approx(
        0.7 * (x**2).sum(axis=1).max() / np.linalg.eigvalsh(second)[0] * np.mean(e**2), rel=1e-9
    )
    assert other == pytest.approx(0.7 * 3 * np.max(e**2), rel=1e-9)
    assert cost < min(first, other)
    assert residuals.rows == 400
