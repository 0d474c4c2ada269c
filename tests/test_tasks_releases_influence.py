"""Influences ψ = −G⁻¹g against the definition: every release computed again on reweighted rows, in plain NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from predcube.tasks import releases
from predcube.tasks.frames import Frame, Total, total_of
from predcube.tasks.releases import Release

type Floats = NDArray[np.float64]
type Value = Callable[[Floats], Floats]

MEAN: dict[str, Callable[[Floats], Floats]] = {"squared": lambda e: e, "logistic": expit, "poisson": np.exp}
CURVE: dict[str, Callable[[Floats], Floats]] = {
    "squared": np.ones_like,
    "logistic": lambda e: expit(e) * expit(-e),
    "poisson": np.exp,
}


def total(x: Floats) -> Total:
    return total_of([Frame(queries=np.empty((len(c), 0)), inputs=c) for c in np.array_split(x, 2)])


def table(loss: str, rows: int, p: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, p)) @ (np.eye(p) + 0.3 * rng.normal(size=(p, p))) + 0.5
    eta = 0.2 + 0.6 * x @ rng.uniform(-1, 1, size=p)
    y = {
        "squared": lambda: eta + rng.normal(size=rows),
        "logistic": lambda: (rng.uniform(size=rows) < expit(eta)).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
    }[loss]()
    return np.column_stack([y, x])


def minimiser(loss: str, data: Floats, l2: float) -> Value:
    """shares (m,) → λ on raw columns."""
    y, x = data[:, 0], np.column_stack([np.ones(len(data)), data[:, 1:]])
    penalty = l2 * np.diag([0.0] + [1.0] * (x.shape[1] - 1))

    def value(share: Floats) -> Floats:
        w = np.zeros(x.shape[1])
        w[0] = np.log(share @ y) if loss == "poisson" else 0.0
        for _ in range(1 if loss == "squared" else 25):
            eta = x @ w
            gradient = x.T @ (share * (MEAN[loss](eta) - y)) + penalty @ w
            w = w - np.linalg.solve(x.T @ (x * (share * CURVE[loss](eta))[:, None]) + penalty, gradient)
        return w

    return value


def descent(loss: str, data: Floats, steps: int, rate: float, standardise: bool, last: bool) -> Value:
    """shares (m,) → iterates, on features standardised by the unweighted table."""
    y, x = data[:, 0], data[:, 1:]
    if standardise:
        x = (x - x.mean(axis=0)) / x.std(axis=0)
    z = np.column_stack([np.ones(len(x)), x])

    def value(share: Floats) -> Floats:
        w, seen = np.zeros(z.shape[1]), []
        for _ in range(steps):
            w = w - rate * (z.T @ (share * (MEAN[loss](z @ w) - y)))
            seen.append(w)
        return seen[-1] if last else np.concatenate(seen)

    return value


def influences(value: Value, rows: int, step: float = 3e-5) -> Floats:
    """(m, d) the derivative of the value in the share of each row, by central differences."""
    even = np.full(rows, 1 / rows)
    out = []
    for e in np.eye(rows):
        ahead, behind = ((1 - h) * even + h * e for h in (step, -step))
        out.append((value(ahead) - value(behind)) / (2 * step))
    return np.array(out)


def held(release: Release, data: Floats, value: Value, tolerance: float) -> None:
    fitted = release.fit(total(data))
    expected = value(np.full(len(data), 1 / len(data)))
    np.testing.assert_allclose(fitted.estimate, expected, rtol=1e-9, atol=1e-10)
    psi = -np.linalg.solve(fitted.jacobian, fitted.moments(data).T).T
    reference = influences(value, len(data))
    scale = np.abs(reference).max(axis=0)
    np.testing.assert_allclose(psi / scale, reference / scale, atol=tolerance)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize(("kind", "loss"), [("linear", "squared"), ("logistic", "logistic"), ("poisson", "poisson")])
def test_minimisers_move_with_a_row_as_refitting_says(kind: str, loss: str, l2: float, seed: int) -> None:
    data = table(loss, 40, 2, seed)
    release = releases.build(kind, target="y", features=["a", "b"], l2=l2)
    held(release, data, minimiser(loss, data, l2), 1e-5)
    if kind == "linear" and l2:
        held(releases.build("ridge", target="y", features=["a", "b"], l2=l2), data, minimiser(loss, data, l2), 1e-5)


@pytest.mark.parametrize("reveal", ["trajectory", "last"])
@pytest.mark.parametrize("standardise", [True, False])
@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_iterates_move_with_a_row_as_running_again_says(loss: str, standardise: bool, reveal: Any) -> None:
    for seed, (steps, rate) in enumerate([(1, 0.3), (3, 0.3), (25, 0.1)]):
        data = table(loss, 30, 2, seed)
        release = releases.build(
            "gradient_descent",
            loss=loss,
            target="y",
            features=["a", "b"],
            steps=steps,
            rate=rate,
            reveal=reveal,
            standardise=standardise,
        )
        held(release, data, descent(loss, data, steps, rate, standardise, reveal == "last"), 1e-5)


def test_many_steps_reach_the_minimiser_and_its_influences() -> None:
    for loss, kind in (("squared", "linear"), ("logistic", "logistic"), ("poisson", "poisson")):
        data = table(loss, 60, 2, 5)
        x = data[:, 1:]
        data[:, 1:] = (x - x.mean(axis=0)) / x.std(axis=0)
        common = {"target": "y", "features": ["a", "b"]}
        steps = {"squared": 400, "logistic": 1500, "poisson": 800}[loss]
        walked = releases.build("gradient_descent", loss=loss, steps=steps, rate=0.3, reveal="last", **common)
        there, minimum = walked.fit(total(data)), releases.build(kind, **common).fit(total(data))
        np.testing.assert_allclose(there.estimate, minimum.estimate, atol=1e-10)
        psi = -np.linalg.solve(minimum.jacobian, minimum.moments(data).T).T
        np.testing.assert_allclose(there.moments(data), psi, atol=1e-9)


def test_a_trajectory_says_what_the_conditions_of_the_paper_say() -> None:
    """P2 A.1's g = (w_t − w_{t+1} − η∇ℓ(z, w_t))_t and its block Jacobian give the same influences."""
    rate, steps = 0.2, 3
    for loss in MEAN:
        data = table(loss, 50, 2, 1)
        y, z = data[:, 0], np.column_stack([np.ones(50), data[:, 1:]])
        release = releases.build(
            "gradient_descent", loss=loss, target="y", features=["a", "b"], steps=steps, rate=rate, standardise=False
        )
        fitted = release.bare(total(data))
        w = np.vstack([np.zeros(3), fitted.estimate.reshape(steps, 3)])
        rows, jacobian = [], -np.eye(3 * steps)
        for t in range(steps):
            eta = z @ w[t]
            rows.append(w[t] - w[t + 1] - rate * z * (MEAN[loss](eta) - y)[:, None])
            if t:
                hessian = z.T @ (z * CURVE[loss](eta)[:, None]) / 50
                jacobian[3 * t : 3 * t + 3, 3 * t - 3 : 3 * t] = np.eye(3) - rate * hessian
        g = np.hstack(rows)
        np.testing.assert_allclose(g.mean(axis=0), 0, atol=1e-13)
        np.testing.assert_allclose(fitted.moments(data), -np.linalg.solve(jacobian, g.T).T, atol=1e-11)


def test_the_last_iterate_is_the_end_of_the_trajectory() -> None:
    for loss in MEAN:
        data = table(loss, 50, 3, 2)
        common = {"loss": loss, "target": "y", "features": ["a", "b", "c"], "steps": 7, "rate": 0.15}
        path = releases.build("gradient_descent", reveal="trajectory", **common).bare(total(data))
        last = releases.build("gradient_descent", reveal="last", **common).bare(total(data))
        np.testing.assert_allclose(last.estimate, path.estimate[-4:], rtol=1e-12)
        np.testing.assert_allclose(last.moments(data), path.moments(data)[:, -4:], atol=1e-12)
