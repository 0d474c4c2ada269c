"""Releases against statsmodels, Newton's method written apart, and differences of the mean moment function."""

import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from predcube.tasks import releases
from predcube.tasks.frames import Frame, Request, State, Total, total_of
from predcube.tasks.releases import Fitted, Release

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the oracle's own imports
    import statsmodels.api as sm

type Floats = NDArray[np.float64]

MEANS = {
    "linear": lambda eta: eta,
    "ridge": lambda eta: eta,
    "squared": lambda eta: eta,
    "logistic": expit,
    "poisson": np.exp,
}
SLOPES: dict[str, Callable[[Floats], Floats]] = {
    "linear": np.ones_like,
    "ridge": np.ones_like,
    "squared": np.ones_like,
    "logistic": lambda eta: expit(eta) * expit(-eta),
    "poisson": np.exp,
}


def total(x: Floats, blocks: int = 3) -> Total:
    cuts = np.array_split(x, blocks)
    return total_of([Frame(queries=np.empty((len(c), 0)), inputs=c) for c in cuts if len(c)])


def table(kind: str, rows: int = 300, p: int = 3, seed: int = 0) -> Floats:
    """(rows, 1 + p): a target that suits the kind, and correlated features."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, p)) @ (np.eye(p) + 0.3 * rng.normal(size=(p, p))) + rng.normal(size=p)
    eta = 0.2 + 0.5 * (x - x.mean(axis=0)) @ rng.uniform(-1, 1, size=p)
    if kind == "logistic":
        y = (rng.uniform(size=rows) < expit(eta)).astype(float)
    elif kind == "poisson":
        y = rng.poisson(np.exp(eta)).astype(float)
    else:
        y = eta + rng.standard_t(5, size=rows)
    return np.column_stack([y, x])


def of(kind: str, data: Floats, **parameters: Any) -> Release:
    return releases.build(kind, target="y", features=[f"x{j}" for j in range(1, data.shape[1])], **parameters)


def newton(kind: str, data: Floats, l2: float = 0.0, weights: Floats | None = None) -> Floats:
    """The weighted minimiser in the units of the data, by plain Newton steps on raw columns."""
    y, x = data[:, 0], np.column_stack([np.ones(len(data)), data[:, 1:]])
    share = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
    penalty = l2 * np.diag([0.0] + [1.0] * (x.shape[1] - 1))
    w = np.zeros(x.shape[1])
    if kind == "poisson":
        w[0] = np.log(share @ y)
    for _ in range(60):
        eta = x @ w
        gradient = x.T @ (share * (MEANS[kind](eta) - y)) + penalty @ w
        w = w - np.linalg.solve(x.T @ (x * (share * SLOPES[kind](eta))[:, None]) + penalty, gradient)
    return w


def raw_gradients(kind: str, data: Floats, w: Floats, l2: float = 0.0) -> tuple[Floats, Floats]:
    """∇ℓ of each row and its mean derivative, on raw columns, from the definition."""
    y, x = data[:, 0], np.column_stack([np.ones(len(data)), data[:, 1:]])
    eta, mask = x @ w, np.array([0.0] + [1.0] * (x.shape[1] - 1))
    rows = x * (MEANS[kind](eta) - y)[:, None] + l2 * mask * w
    return rows, x.T @ (x * SLOPES[kind](eta)[:, None]) / len(y) + l2 * np.diag(mask)


def shared_variance(moments: Floats, query: Floats) -> float:
    """ρ²: the share of the query's variance that a combination of the moments explains, by least squares."""
    scale = moments.std(axis=0)
    g = (moments - moments.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    q = query - query.mean()
    fit = np.linalg.lstsq(g, q, rcond=1e-9)[0]
    return float(np.sum((g @ fit) ** 2) / np.sum(q**2))


REGRESSIONS: list[tuple[str, dict[str, Any]]] = [
    ("linear", {}),
    ("linear", {"l2": 0.3}),
    ("ridge", {"l2": 0.7}),
    ("logistic", {}),
    ("logistic", {"l2": 0.05}),
    ("poisson", {}),
    ("poisson", {"l2": 0.2}),
]
DESCENTS: list[tuple[str, dict[str, Any]]] = [
    ("gradient_descent", {"loss": loss, "steps": 4, "rate": 0.2, "reveal": reveal, "standardise": standardise})
    for loss in ("squared", "logistic", "poisson")
    for reveal in ("trajectory", "last")
    for standardise in (True, False)
]
STATISTICS: list[tuple[str, dict[str, Any]]] = [("mean", {}), ("proportion", {}), ("count", {})]


def example(kind: str, parameters: dict[str, Any], seed: int = 0) -> tuple[Release, Floats]:
    if kind in ("mean", "proportion", "count"):
        data = table("logistic", seed=seed)
        if kind != "mean":
            data = (data > data.mean(axis=0)).astype(float)
        return releases.build(kind, columns=[f"x{j}" for j in range(data.shape[1])], **parameters), data
    data = table(parameters.get("loss", kind), seed=seed)
    return of(kind, data, **parameters), data


ALL = STATISTICS + REGRESSIONS + DESCENTS


@pytest.mark.parametrize(("kind", "parameters"), ALL)
def test_mean_moment_is_zero_and_its_derivative_is_the_jacobian(kind: str, parameters: dict[str, Any]) -> None:
    for seed in range(3):
        release, data = example(kind, parameters, seed)
        fitted = release.bare(total(data))
        d = len(release.names)
        assert fitted.estimate.shape == (d,)
        assert fitted.jacobian.shape == (d, d)
        assert fitted.rows == len(data)
        rows = fitted.moments(data)
        assert rows.shape == (len(data), d)
        assert np.max(np.abs(rows.mean(axis=0)) / rows.std(axis=0)) < 1e-12
        step = 1e-5 * max(1.0, float(np.abs(fitted.estimate).max()))
        for j, e in enumerate(np.eye(d) * step):
            slope = (fitted.moments(data, e).mean(axis=0) - fitted.moments(data, -e).mean(axis=0)) / (2 * step)
            np.testing.assert_allclose(slope, fitted.jacobian[:, j], atol=2e-8)


@pytest.mark.parametrize(("kind", "parameters"), ALL)
def test_any_cut_into_blocks_gives_the_same_release(kind: str, parameters: dict[str, Any]) -> None:
    release, data = example(kind, parameters)
    whole = release.bare(total(data, 1))
    for blocks in (2, 7, 60):
        cut = release.bare(total(data, blocks))
        for name in ("estimate", "curvature", "units"):
            np.testing.assert_allclose(getattr(cut, name), getattr(whole, name), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(cut.moments(data), whole.moments(data), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("kind", "parameters"), [*ALL, ("stack", {})])
def test_a_fitted_release_travels_to_workers(kind: str, parameters: dict[str, Any]) -> None:
    if kind == "stack":
        data = table("logistic")
        release = releases.build("stack", releases=[of("logistic", data), {"kind": "mean", "columns": ["x1"]}])
    else:
        release, data = example(kind, parameters)
    fitted = pickle.loads(pickle.dumps(release)).fit(total(data))
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.moments(data), fitted.moments(data))
    assert sum(fitted.members) == len(fitted.estimate) == len(release.names)


@pytest.mark.parametrize(("kind", "parameters"), REGRESSIONS)
def test_a_minimiser_and_its_gradients_are_those_of_raw_columns(kind: str, parameters: dict[str, Any]) -> None:
    l2 = parameters.get("l2", 0.0)
    for seed in range(4):
        data = table(kind, seed=seed)
        query = (data[:, 0] + np.sin(np.arange(len(data))) > 0.3).astype(float)
        fitted = of(kind, data, **parameters).fit(total(data))
        w = newton(kind, data, l2)
        np.testing.assert_allclose(fitted.estimate, w, rtol=1e-9, atol=1e-10)
        rows, slope = raw_gradients(kind, data, w, l2)
        ours = fitted.moments(data)
        psi, expected = -np.linalg.solve(fitted.jacobian, ours.T).T, -np.linalg.solve(slope, rows.T).T
        np.testing.assert_allclose(psi, expected, rtol=1e-8, atol=1e-9)
        assert shared_variance(ours, query) == pytest.approx(shared_variance(rows, query), rel=1e-9)
        x = np.column_stack([np.ones(len(data)), data[:, 1:]])
        assert fitted.utility is not None
        np.testing.assert_allclose(fitted.utility, x.T @ x / len(x), rtol=1e-11)


def test_minimisers_are_those_of_statsmodels() -> None:
    for seed in range(3):
        for kind, model in (("linear", sm.OLS), ("logistic", sm.Logit), ("poisson", sm.Poisson)):
            data = table(kind, rows=500, seed=seed)
            theirs = model(data[:, 0], sm.add_constant(data[:, 1:]))
            fit = theirs.fit() if kind == "linear" else theirs.fit(method="newton", disp=0, tol=1e-14, maxiter=100)
            ours = of(kind, data).fit(total(data))
            np.testing.assert_allclose(ours.estimate, fit.params, rtol=1e-8, atol=1e-10)
            # the sandwich covariance holds G, V and so every influence
            rows = ours.moments(data)
            inverse = np.linalg.inv(ours.jacobian)
            sandwich = inverse @ (rows.T @ rows / len(rows)) @ inverse.T / len(rows)
            np.testing.assert_allclose(sandwich, robust(fit, data), rtol=1e-7)


def robust(fit: Any, data: Floats) -> Floats:
    """statsmodels' heteroscedasticity-robust covariance (HC0)."""
    if hasattr(fit, "cov_HC0"):
        return np.asarray(fit.cov_HC0)
    again = fit.model.fit(method="newton", disp=0, tol=1e-14, maxiter=100, cov_type="HC0")
    return np.asarray(again.cov_params())


def test_statistics_are_means_and_counts() -> None:
    release, data = example("mean", {})
    np.testing.assert_allclose(release.fit(total(data)).estimate, data.mean(axis=0), rtol=1e-13, atol=1e-14)
    for kind, factor in (("proportion", 1.0), ("count", 300.0)):
        release, data = example(kind, {})
        fitted = release.fit(total(data))
        np.testing.assert_allclose(fitted.estimate, factor * data.mean(axis=0), rtol=1e-13)
        np.testing.assert_allclose(fitted.jacobian, -np.eye(4) / factor)
        np.testing.assert_allclose(fitted.moments(data), data - data.mean(axis=0), atol=1e-15)
        assert fitted.utility is None


def test_an_intercept_alone_is_the_mean_of_the_target() -> None:
    for kind, link in (("linear", lambda m: m), ("logistic", lambda m: np.log(m / (1 - m))), ("poisson", np.log)):
        y = table(kind)[:, :1]
        fitted = of(kind, y).fit(total(y))
        assert fitted.estimate == pytest.approx([link(y.mean())], abs=1e-12)
        assert fitted.rank == 1


def test_a_real_table_gives_the_value_of_theory() -> None:
    frame = sm.datasets.randhie.load_pandas().data
    data = frame[["mdvis", "lncoins", "physlm", "disea"]].to_numpy(float)
    query = frame["hlthp"].to_numpy(float)
    fitted = of("linear", data).fit(total(data, 5))
    assert query.mean() == pytest.approx(0.0150, abs=5e-5)
    assert shared_variance(fitted.moments(data), query) == pytest.approx(0.004797, abs=5e-7)


def test_a_stack_puts_its_members_side_by_side() -> None:
    data = table("logistic")
    own = [
        of("logistic", data[:, :3]),
        releases.build("mean", columns=["x3", "y"]),
        releases.build(
            "stack", releases=[releases.build("mean", columns=["x1"]), releases.build("count", columns=["y"])]
        ),
    ]
    stack = releases.build("stack", releases=[{"kind": own[0].kind, **own[0].parameters()}, *own[1:]])
    assert stack.inputs == ("y", "x1", "x2", "x3")
    assert stack.names == ("1: intercept", "1: x1", "1: x2", "2: x3", "2: y", "3: 1: x1", "3: 2: y")
    assert releases.build("stack", **stack.parameters()) == stack
    fitted = stack.bare(total(data))
    columns = [[0, 1, 2], [3, 0], [1], [0]]
    parts = [own[0], own[1], *own[2].parameters()["releases"][:0]]
    members = [*parts, releases.build("mean", columns=["x1"]), releases.build("count", columns=["y"])]
    alone = [m.bare(total(data[:, c])) for m, c in zip(members, columns, strict=True)]
    assert fitted.members == (3, 2, 1, 1)
    np.testing.assert_allclose(fitted.estimate, np.concatenate([a.estimate for a in alone]), rtol=1e-13)
    rows = np.hstack([a.moments(data[:, c]) for a, c in zip(alone, columns, strict=True)])
    np.testing.assert_allclose(fitted.moments(data), rows, atol=1e-13)
    shift = np.linspace(-0.1, 0.1, 7)
    parted = np.split(shift, [3, 5, 6])
    moved = np.hstack([a.moments(data[:, c], s) for a, c, s in zip(alone, columns, parted, strict=True)])
    np.testing.assert_allclose(fitted.moments(data, shift), moved, atol=1e-13)
    at = 0
    expected = np.zeros((7, 7))
    for a in alone:
        size = len(a.estimate)
        expected[at : at + size, at : at + size] = a.jacobian
        at += size
    np.testing.assert_allclose(fitted.jacobian, expected, atol=1e-13)
    assert fitted.utility is None


def test_a_fit_makes_few_passes() -> None:
    for kind, most in (("mean", 1), ("linear", 1), ("logistic", 9), ("poisson", 9)):
        release, data = example(kind, {})
        made = 0
        under = total(data)

        def counted[S: State](request: Request[S], /, under: Total = under) -> S:
            nonlocal made
            made += 1
            return under(request)

        release.fit(counted)
        assert made <= most


@pytest.mark.parametrize("kind", sorted(releases.KINDS))
def test_every_kind_says_where_it_is_from(kind: str) -> None:
    cls = releases.KINDS[kind]
    assert cls.kind == kind
    assert "P2" in cls.source
    assert cls.__doc__


def test_equal_releases_are_equal_and_hashable() -> None:
    one, other = (releases.build("ridge", target="y", features=["a", "b"], l2=1) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one.parameters() == {"target": "y", "features": ("a", "b"), "l2": 1.0}
    assert isinstance(one.fit(total(table("ridge", p=2))), Fitted)
    assert replace(one, l2=2.0) != one  # type: ignore[type-var]
