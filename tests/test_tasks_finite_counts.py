"""A released count against enumerated tables, quadrature by SciPy and the figures of the literature."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from predcube.tasks import information
from predcube.tasks.finite_counts import CountNoise, CountPrior, finite_count, group_information


def enumerated(rows: int, held: int, masses: list[Fraction]) -> list[Fraction]:
    """Gains of squared loss without noise, by listing every table and every set of held rows."""
    number = {k: Fraction(math.comb(rows, k)) for k in range(rows + 1)}
    sets = list(itertools.combinations(range(rows), held))
    weight: dict[int, Fraction] = {}
    towards: dict[int, Fraction] = {}
    seen: list[tuple[int, int, Fraction]] = []
    for table in itertools.product((0, 1), repeat=rows):
        k = sum(table)
        for chosen in sets:
            j = sum(table[i] for i in chosen)
            share = Fraction(k - j, rows - held)
            chance = masses[k] / number[k] / len(sets)
            weight[j] = weight.get(j, Fraction(0)) + chance
            towards[j] = towards.get(j, Fraction(0)) + chance * share
            seen.append((k, j, share))
    gains = [Fraction(0)] * (rows + 1)
    for k, j, share in seen:
        gains[k] += (towards[j] / weight[j] - share) ** 2 / number[k] / len(sets)
    return gains


@pytest.mark.parametrize(("rows", "held"), [(2, 1), (5, 2), (6, 5), (7, 1)])
def test_gains_are_those_of_enumerated_tables(rows: int, held: int) -> None:
    uniform = [Fraction(1, rows + 1)] * (rows + 1)
    exact = finite_count(rows=rows, held=held)
    np.testing.assert_allclose(exact.gain, np.array(enumerated(rows, held, uniform), dtype=float), rtol=1e-12)
    binomial = [Fraction(math.comb(rows, k) * 3**k, 4**rows) for k in range(rows + 1)]
    exact = finite_count(rows=rows, held=held, prior=CountPrior(kind="binomial", p=0.75))
    np.testing.assert_allclose(exact.gain, np.array(enumerated(rows, held, binomial), dtype=float), rtol=1e-12)
    np.testing.assert_allclose(exact.masses, np.array(binomial, dtype=float), rtol=1e-12)


@pytest.mark.parametrize(("rows", "ratio"), [(20, 0.728), (100, 0.930), (500, 0.985), (2000, 0.996)])
def test_the_ratio_to_the_sharp_value_rises_to_one(rows: int, ratio: float) -> None:
    held = round(0.3 * rows)
    assert finite_count(rows=rows, held=held).ratio[held] == pytest.approx(ratio, abs=5e-4)


def test_a_finite_table_can_exceed_the_sharp_value() -> None:
    assert finite_count(rows=20, held=10).ratio[2] == pytest.approx(1.075, abs=5e-4)


def test_theorem_2_5_case_1_a_private_count_is_predictable() -> None:
    rows = 2000
    noise = CountNoise(kind="laplace", scale=math.sqrt(rows))  # ε = 1/√N
    exact = finite_count(rows=rows, held=rows // 2, breach="ones_only", noise=noise)
    assert exact.gain[rows // 2] == pytest.approx(0.24603, abs=5e-6)
    assert float(np.nanmax(exact.gain)) > 0.25 - 8 / rows
    assert np.all(np.isnan(exact.gain[: rows // 2]))
    assert np.all(np.isnan(exact.sharp))
    assert exact.masses[: rows // 2].sum() == 0


def test_theorem_2_5_case_2_an_exact_count_is_hardly_predictable() -> None:
    scaled = [rows * float(np.max(finite_count(rows=rows, held=rows // 2).gain)) for rows in (20, 200, 2000)]
    assert np.all(np.diff(scaled) > 0)
    assert 0.998 < scaled[-1] < 1.0


@pytest.mark.parametrize("loss", ["squared", "log"])
@pytest.mark.parametrize("noise", [CountNoise(kind=k, scale=s) for k in ("laplace", "gaussian") for s in (0.2, 0.9, 4)])
@pytest.mark.parametrize("breach", ["random_shard", "ones_only"])
def test_noise_is_integrated_as_a_fine_grid_does_it(loss: str, noise: CountNoise, breach: str) -> None:
    rows, held = 9, 4
    prior = CountPrior(kind="beta_binomial", a=0.7, b=2.0)
    exact = finite_count(rows=rows, held=held, prior=prior, noise=noise, breach=breach, loss=loss)  # type: ignore[arg-type]
    assert noise.scale is not None
    law = stats.laplace(scale=noise.scale) if noise.kind == "laplace" else stats.norm(scale=noise.scale)
    counts = np.arange(rows + 1)
    masses = stats.betabinom(rows, 0.7, 2.0).pmf(counts)
    nodes, measure = np.polynomial.legendre.leggauss(10)
    reach = (40 if noise.kind == "laplace" else 9) * noise.scale
    cuts = np.union1d(np.linspace(-reach, rows + reach, round((rows + 2 * reach) / min(0.1, noise.scale / 2))), counts)
    half = np.diff(cuts)[:, None] / 2
    y, dy = (cuts[:-1, None] + half * (1 + nodes)).ravel(), (half * measure).ravel()
    for k in (4, 6):
        expected = 0.0
        for j in range(held + 1) if breach == "random_shard" else [held]:
            fit = np.asarray(stats.hypergeom(rows, counts, held).pmf(j) if breach == "random_shard" else counts >= held)
            u = (counts - j) / (rows - held)
            first = (masses * fit) @ u / (masses @ fit)
            density = masses * fit * law.pdf(y[:, None] - counts)
            second, other = density @ u / density.sum(axis=1), density @ (1 - u) / density.sum(axis=1)
            if loss == "squared":
                value = (first - u[k]) ** 2 - (second - u[k]) ** 2
            else:
                value = u[k] * np.log(second / first) + (1 - u[k]) * np.log(other / (1 - first))
            expected += float(fit[k] * np.sum(value * law.pdf(y - k) * dy)) if fit[k] > 0 else 0.0
        assert exact.gain[k] == pytest.approx(expected, abs=1e-12)
    assert exact.error < 1e-11


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_an_average_squared_gain_is_the_variance_that_the_release_takes_away(kind: str) -> None:
    """With the attacker's prior as the law, E[(θ₁ − u)² − (θ₂ − u)²] = E θ₂² − E θ₁² ≥ 0, falling with the noise."""
    averages = [
        finite_count(rows=60, held=20, noise=CountNoise(kind=kind, scale=s)).average  # type: ignore[arg-type]
        for s in (0.001, 0.5, 2.0, 8.0, 32.0, 1000.0)
    ]
    rows, held = 60, 20
    # Uniform prior: u given j is beta-binomial, of mean variance (N + 2)/(6(N − n)(n + 2)).
    assert averages[0] == pytest.approx((rows + 2) / (6 * (rows - held) * (held + 2)), rel=1e-12)
    assert np.all(np.diff(averages) < 0)
    assert 0 < averages[-1] < 1e-5


def test_a_bayes_attacker_gains_more_from_laplace_noise_than_a_linear_one() -> None:
    """Where S_eff = 4·V the excess tends to that of a normal mean under Laplace noise, 1.20; under normal noise there
    is none."""
    rows, held = 1000, 300
    variance = 4 * 0.25 * rows**2 * (1 - held / rows) / held
    laplace = finite_count(rows=rows, held=held, noise=CountNoise(kind="laplace", scale=math.sqrt(variance / 2)))
    gaussian = finite_count(rows=rows, held=held, noise=CountNoise(kind="gaussian", scale=math.sqrt(variance)))
    middle = rows // 2
    x, y = np.linspace(-7, 7, 281), np.linspace(-40, 40, 8001)
    density = stats.laplace(scale=math.sqrt(2)).pdf(y[:, None] - x) * stats.norm.pdf(x)
    taken = np.sum((density @ x) ** 2 / density.sum(axis=1)) * (x[1] - x[0]) * (y[1] - y[0])  # Var E[X | X + Δ]
    assert taken / 0.2 == pytest.approx(1.2036, abs=5e-4)
    assert laplace.ratio[middle] == pytest.approx(taken / 0.2, rel=0.02)
    assert gaussian.ratio[middle] == pytest.approx(1.0, abs=0.025)


def test_priors_give_their_conjugate_answers() -> None:
    """Without noise the gain at k is Σ_j Pr[j | k] (θ₁ − u)², with θ₁ = (j + a)/(n + a + b)."""
    rows, held, k = 12, 5, 7
    j = np.arange(held + 1)
    chance = stats.hypergeom(rows, k, held).pmf(j)
    u = (k - j) / (rows - held)
    for prior, a, b in (
        (CountPrior(), 1.0, 1.0),
        (CountPrior(kind="jeffreys"), 0.5, 0.5),
        (CountPrior(kind="beta_binomial", a=3.0, b=0.2), 3.0, 0.2),
    ):
        expected = chance @ ((j + a) / (held + a + b) - u) ** 2
        assert finite_count(rows=rows, held=held, prior=prior).gain[k] == pytest.approx(expected, rel=1e-12)
        assert not prior.knows_proportion
    assert CountPrior(kind="binomial", p=0.3).knows_proportion


def test_counts_that_the_prior_excludes_are_not_given_a_number() -> None:
    """A binomial prior at p = 1e-9 leaves a count of 60 no mass that a double holds beside noise this small."""
    exact = finite_count(
        rows=60, held=20, prior=CountPrior(kind="binomial", p=1e-9), noise=CountNoise(kind="gaussian", scale=0.2)
    )
    assert not exact.resolved[60]
    assert np.isnan(exact.gain[60])
    assert exact.resolved[0]
    assert np.isfinite(exact.average)


def test_log_loss_at_one_unknown_row_is_information() -> None:
    """P2 Theorem A.9 and Definition 2.6: at n = N − 1 the value is I(x_i; A | rest), at most ε and at most the
    capacity of the count; with more unknown rows the group's information exceeds what is gained of one."""
    for epsilon in (0.1, 1.0, 4.0):
        noise = CountNoise(kind="laplace", scale=1 / epsilon)
        for prior in (CountPrior(), CountPrior(kind="jeffreys"), CountPrior(kind="beta_binomial", a=9.0, b=1.0)):
            value = finite_count(rows=8, held=7, prior=prior, noise=noise, loss="log")
            told = group_information(rows=8, held=7, prior=prior, noise=noise)
            assert value.average == pytest.approx(told, abs=1e-11)
            assert 0 < told <= information.count_privacy(noise) + 1e-12 <= epsilon
            assert float(np.nanmax(value.gain)) <= epsilon
        group = group_information(rows=60, held=20, noise=noise)
        assert finite_count(rows=60, held=20, noise=noise, loss="log").average < group
        assert group <= information.group_privacy_loss(noise, 40) == pytest.approx(40 * epsilon)


def test_log_loss_is_that_of_enumerated_worlds() -> None:
    """An exchangeable world of 5 rows whose count is released: the average gain and the group's information."""
    rows = 5
    datasets = information.all_datasets(rows)
    count = datasets.sum(axis=1)
    prior = (1 / (rows + 1)) / np.array([math.comb(rows, k) for k in count])
    world = information.World(datasets=datasets, prior=prior, chances=np.eye(rows + 1)[count])
    for held in (1, 3, 4):
        listed = information.log_gain(world, [0, 1], range(held))
        assert finite_count(rows=rows, held=held, loss="log").average == pytest.approx(listed.average, abs=1e-13)
        seen = datasets[:, :held].sum(axis=1)
        joint = np.zeros((held + 1, rows + 1))
        np.add.at(joint, (seen, count), prior)
        entropy = stats.entropy(joint.ravel()) - stats.entropy(joint.sum(axis=1))
        assert group_information(rows=rows, held=held) == pytest.approx(entropy, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"held": 0}, "at least one row"),
        ({"held": 10}, "not all"),
        ({"held": 3, "breach": "ones"}, "breach = 'ones' is not one of"),
        ({"held": 3, "loss": "hinge"}, "loss = 'hinge' is not one of"),
    ],
)
def test_bad_arguments_get_one_message(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        finite_count(rows=10, **arguments)  # type: ignore[arg-type]


def test_bad_priors_and_noises_get_one_message() -> None:
    with pytest.raises(ValueError, match="needs p"):
        CountPrior(kind="binomial")
    with pytest.raises(ValueError, match="takes no a"):
        CountPrior(kind="uniform", a=1.0)
    with pytest.raises(ValueError, match="must be above 0"):
        CountPrior(kind="beta_binomial", a=0.0, b=1.0)
    with pytest.raises(ValueError, match="needs a scale"):
        CountNoise(kind="laplace")
    with pytest.raises(ValueError, match="takes no scale"):
        CountNoise(scale=1.0)
