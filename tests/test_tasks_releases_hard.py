"""Hard tables: offsets, scales, collinear and constant columns give the right value, all else one clear message."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from predcube.tasks import releases
from predcube.tasks.frames import Frame, Total, total_of
from predcube.tasks.releases import Fitted, minimisation
from predcube.tasks.releases.losses import LOSSES

type Floats = NDArray[np.float64]


def total(x: NDArray[Any], blocks: int = 3) -> Total:
    return total_of([Frame(queries=np.empty((len(c), 0)), inputs=c) for c in np.array_split(x, blocks) if len(c)])


def fit(kind: str, y: NDArray[Any], x: NDArray[Any] | None = None, **parameters: Any) -> tuple[Fitted, NDArray[Any]]:
    x = np.empty((len(y), 0)) if x is None else x
    data = np.column_stack([y, x])
    features = [f"x{j}" for j in range(x.shape[1])]
    return releases.build(kind, target="y", features=features, **parameters).fit(total(data)), data


def shared_variance(fitted: Fitted, data: Floats, query: Floats) -> float:
    """ρ² by least squares of the query on the moments."""
    moments = fitted.moments(np.asarray(data, float))
    scale = moments.std(axis=0)
    g = moments / np.where(scale > 0, scale, 1.0)
    q = query - query.mean()
    return float(np.sum((g @ np.linalg.lstsq(g, q, rcond=1e-9)[0]) ** 2) / np.sum(q**2))


def base(kind: str, rows: int = 400, seed: int = 0) -> tuple[Floats, Floats, Floats]:
    """Target, two features, query."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    eta = 0.3 + x @ [0.5, -0.4]
    y = {
        "linear": lambda: eta + rng.normal(size=rows),
        "ridge": lambda: eta + rng.normal(size=rows),
        "logistic": lambda: (eta + rng.logistic(size=rows) > 0).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
    }[kind]()
    return y, x, (np.abs(y - x[:, 0]) > 1).astype(float)


KINDS = ["linear", "logistic", "poisson"]


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_and_scales_do_not_change_the_answer(kind: str) -> None:
    y, x, query = base(kind)
    x = np.round(x * 2**20) / 2**20  # exact after every move below
    plain, data = fit(kind, y, x)
    rho2 = shared_variance(plain, data, query)
    for scale, offset in [
        ((2.0**20, 2.0**-20), (0, 0)),
        ((1, 1), (2.0**30, -(2.0**31))),
        ((2.0**-20, 1), (0, 2.0**30)),
    ]:
        moved, there = fit(kind, y, x * scale + offset)
        np.testing.assert_allclose(moved.estimate[1:] * scale, plain.estimate[1:], rtol=1e-9)
        assert shared_variance(moved, there, query) == pytest.approx(rho2, rel=1e-9)
        assert moved.rank == 3
        assert moved.gram is not None
        assert plain.gram is not None
        # the rounding of a mean of 2^31 moves the origin of a coordinate by up to 2^-22, and λ and g with it
        np.testing.assert_allclose(moved.gram, plain.gram, atol=2e-7)
        np.testing.assert_allclose(moved.curvature, plain.curvature, atol=2e-7)


def test_a_target_far_from_zero_keeps_its_digits() -> None:
    y, x, _ = base("linear")
    y = np.round(y * 2**20) / 2**20
    plain, data = fit("linear", y, x)
    far, there = fit("linear", y + 2.0**30, x)
    np.testing.assert_allclose(far.estimate, plain.estimate + np.array([2.0**30, 0, 0]), rtol=1e-12)
    np.testing.assert_allclose(far.moments(there), plain.moments(data), atol=1e-9)
    assert np.abs(far.moments(there).mean(axis=0)).max() < 1e-13


@pytest.mark.parametrize("kind", KINDS)
def test_collinear_and_constant_features_say_what_the_reduced_design_says(kind: str) -> None:
    y, x, query = base(kind)
    plain, data = fit(kind, y, x)
    rho2 = shared_variance(plain, data, query)
    ones = np.full(len(y), 0.1)
    for more in (x @ [[1.0], [2.0]], np.c_[ones], np.c_[x[:, :1] / 3, ones, x[:, :1] * 1e9], np.c_[x, x]):
        for order in (np.c_[x, more], np.c_[more, x], np.c_[more + 1e6, x]):
            wide, there = fit(kind, y, order)
            assert wide.rank == 3
            assert np.linalg.matrix_rank(wide.curvature) == 3
            predictions = there[:, 1:] @ wide.estimate[1:] + wide.estimate[0]
            expected = x @ plain.estimate[1:] + plain.estimate[0]
            np.testing.assert_allclose(predictions, expected, atol=1e-6)
            assert shared_variance(wide, there, query) == pytest.approx(rho2, rel=1e-8)
            assert np.all(wide.moments(there)[:, 3:] == 0)


@pytest.mark.parametrize("kind", KINDS)
def test_collinear_features_give_the_solution_of_least_norm(kind: str) -> None:
    """In units of standard deviations: against NumPy's pseudo-inverse of the standardised design."""
    y, x, _ = base(kind)
    wide = np.c_[x, x @ [1.0, 2.0], 5 * x[:, 0]]
    fitted, _ = fit(kind, y, wide)
    z = (wide - wide.mean(axis=0)) / wide.std(axis=0)
    eta = wide @ fitted.estimate[1:] + fitted.estimate[0]
    slopes = np.linalg.pinv(z) @ (eta - eta.mean())
    np.testing.assert_allclose(fitted.estimate[1:] * wide.std(axis=0), slopes, atol=1e-10)


@pytest.mark.parametrize("kind", [*KINDS, "ridge"])
def test_a_penalty_settles_collinear_and_constant_features(kind: str) -> None:
    y, x, _ = base(kind)
    wide, data = fit(kind, y, np.c_[x, x[:, :1], np.full(len(y), 3.0)], l2=0.1)
    # two equal slopes share a penalty: the same as one feature times √2
    narrow, _ = fit(kind, y, x * [2**0.5, 1], l2=0.1)
    np.testing.assert_allclose(wide.estimate[[1, 3]], narrow.estimate[1] / 2**0.5, rtol=1e-9)
    np.testing.assert_allclose(wide.estimate[[2, 4]], [narrow.estimate[2], 0], atol=1e-11)
    rows = wide.moments(data)
    assert np.abs(rows.mean(axis=0)).max() < 1e-13


def test_a_column_of_rounding_counts_as_constant() -> None:
    y, x, _ = base("linear")
    rounding = np.where(np.arange(400) % 2, 0.1 + 0.2, 0.3)
    assert np.ptp(rounding) > 0
    fitted, _ = fit("linear", y, np.c_[x, rounding])
    assert fitted.rank == 3
    assert fitted.estimate[3] == 0
    walked, _ = fit("gradient_descent", y, rounding[:, None], loss="squared", steps=2, rate=0.5, reveal="last")
    assert walked.estimate[1] == 0


def test_the_condition_of_a_penalised_design_is_free_of_units() -> None:
    y, x, _ = base("ridge")
    for scale in ([1.0, 1.0], [1e6, 1e-6]):
        assert fit("ridge", y, x * scale, l2=0.1)[0].condition < 1.5


def test_nearly_collinear_features_are_fitted_to_the_end() -> None:
    rng = np.random.default_rng(3)
    y, x, query = base("linear")
    for closeness in (1e-3, 1e-5):
        wide = np.c_[x, x[:, :1] + closeness * rng.normal(size=(len(y), 1))]
        fitted, data = fit("linear", y, wide)
        turned = np.c_[x, wide[:, 2] - x[:, 0]]
        plain, straight = fit("linear", y, turned)
        np.testing.assert_allclose(fitted.estimate[3], plain.estimate[3], rtol=1e-7)
        rho2 = shared_variance(plain, straight, query)
        assert shared_variance(fitted, data, query) == pytest.approx(rho2, rel=1e-7)
        assert fitted.condition > 0.5 / closeness


@pytest.mark.parametrize("kind", KINDS)
def test_float32_columns_are_computed_in_float64(kind: str) -> None:
    y, x, _ = base(kind)
    narrow = x.astype(np.float32)
    one, _ = fit(kind, y.astype(np.float32), narrow)
    other, _ = fit(kind, y.astype(np.float32).astype(float), narrow.astype(float))
    np.testing.assert_array_equal(one.estimate, other.estimate)
    constant = np.full(1_000_000, 0.1, dtype=np.float32)
    mean = releases.build("mean", columns=["x"]).fit(total(constant[:, None], 7))
    assert mean.estimate == np.float64(np.float32(0.1))
    assert np.all(mean.moments(constant[:, None].astype(float)) == 0)


def test_perfect_fits_have_no_gradient() -> None:
    """The released value does not move with any row, so rounding must not pose as a direction."""
    _, x, _ = base("linear")
    for y in (np.full(400, 0.1), x @ [1.0, 2.0] + 0.1, x @ [1e-6, 1e6] + 1e9):
        fitted, data = fit("linear", y, x)
        assert np.all(fitted.moments(data) == 0)
    fitted, data = fit("linear", np.arange(3.0) ** 2, np.c_[np.arange(3.0), [1.0, 0, 5]])
    assert np.all(fitted.moments(data) == 0)
    group = (x[:, 0] > 0).astype(float)
    for y in (np.full(400, 3.0), 3.0 + 2.0 * group):
        fitted, data = fit("poisson", y, group[:, None])
        assert np.all(fitted.moments(data) == 0)
        np.testing.assert_allclose(np.exp(fitted.estimate[0] + fitted.estimate[1] * group), y, rtol=1e-12)


def test_large_counts_and_heavy_tails_converge() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(500, 2))
    for eta, features in ((13 + x[:, 0], x), (3 + 4 * x[:, 0], x), (x[:, 1] * 0.3, np.exp(3 * x))):
        fitted, data = fit("poisson", rng.poisson(np.exp(eta)).astype(float), features)
        rows = fitted.moments(data)
        assert np.max(np.abs(rows.mean(axis=0)) / rows.std(axis=0)) < 1e-11
    rare = (x[:, 0] - 5 + rng.logistic(size=500) > 0).astype(float)
    rare[0] = 1.0
    fitted, data = fit("logistic", rare, np.exp(x[:, :1]))
    rows = fitted.moments(data)
    assert np.max(np.abs(rows.mean(axis=0)) / rows.std(axis=0)) < 1e-11


def no_finite_fit(kind: str, y: Floats, x: Floats) -> bool:
    """Whether the likelihood rises for ever along some direction, by a linear program (Albert & Anderson 1984)."""
    scale = x.std(axis=0)
    u = np.c_[np.ones(len(x)), (x - x.mean(axis=0)) / np.where(scale > 0, scale, 1.0)]
    if kind == "logistic":
        margins, level = u * np.where(y > 0, 1.0, -1.0)[:, None], None
    else:
        margins, level = -u[y == 0], u[y > 0]
    if not len(margins):
        return False
    found = linprog(
        -margins.sum(axis=0),
        A_ub=-margins,
        b_ub=np.zeros(len(margins)),
        A_eq=level,
        b_eq=None if level is None else np.zeros(len(level)),
        bounds=(-1, 1),
    )
    assert found.status == 0
    return bool(-found.fun > 1e-7)


@pytest.mark.parametrize("kind", ["logistic", "poisson"])
def test_exactly_the_separated_tables_are_refused(kind: str) -> None:
    rng = np.random.default_rng(6)
    seen = {True: 0, False: 0}
    for i in range(90):
        rows, p = int(rng.integers(4, 16)), int(rng.integers(1, 4))
        x = rng.integers(-1, 2, size=(rows, p)).astype(float) if i % 3 else rng.normal(size=(rows, p))
        y = rng.integers(0, 2, size=rows).astype(float)
        if kind == "poisson":
            y *= rng.integers(0, 3, size=rows)
        expected = no_finite_fit(kind, y, x)
        seen[expected] += 1
        if i % 5 == 0:
            x[:, 0] = 1e6 * x[:, 0] + 1e9
        if expected:
            with pytest.raises(ValueError, match=f"^{kind}: .*no finite fit exists"):
                fit(kind, y, x)
            if 0 < y.mean() < 1 or y.max() > 1:
                assert np.all(np.isfinite(fit(kind, y, x, l2=0.1)[0].estimate))
        else:
            fit(kind, y, x)
    assert min(seen.values()) > 12


@pytest.mark.parametrize("kind", ["logistic", "poisson"])
def test_a_fit_that_stops_early_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    y, x, _ = base(kind)
    monkeypatch.setattr(minimisation, "PASSES", 1)
    monkeypatch.setattr(minimisation, "POLISHES", 1)
    message = rf"^{kind}: the fit did not converge: a mean gradient is .* of its standard deviation.*l2 above 0$"
    with pytest.raises(ValueError, match=message):
        fit(kind, y, 3 * x)


def test_margins_are_non_negative_along_separating_directions_alone() -> None:
    y = np.array([0.0, 0, 1, 2])
    for along, separates in (([-1.0, 0, 0, 0], True), ([-1.0, 0, 0, 1], False), ([1.0, 0, 0, 0], False)):
        assert np.all(LOSSES["poisson"].margins(np.array(along), y) >= 0) == separates
    y = np.array([0.0, 0, 1, 1])
    for along, separates in (([-1.0, 0, 0, 2], True), ([-1.0, 0, -1, 1], False), ([1.0, 0, 0, 0], False)):
        assert np.all(LOSSES["logistic"].margins(np.array(along), y) >= 0) == separates
    assert not np.any(LOSSES["squared"].margins(np.ones(4), y) >= 0)


def test_one_separated_row_of_many_is_found() -> None:
    y, x, _ = base("logistic", rows=50_000)
    mark = (np.arange(len(y)) == np.argmax(y)).astype(float)
    with pytest.raises(ValueError, match=r"separation.*give an l2 above 0"):
        fit("logistic", y, np.c_[x, mark])
    y, x, _ = base("poisson", rows=50_000)
    mark = (np.arange(len(y)) == np.argmin(y)).astype(float)
    with pytest.raises(ValueError, match=r"separation.*zeros of the target"):
        fit("poisson", y, np.c_[x, mark])


def test_nearly_separated_tables_are_fitted() -> None:
    x = np.linspace(-1, 1, 401)
    y = (x > 0).astype(float)
    y[200] = 1.0
    y[201] = 0.0
    fitted, data = fit("logistic", y, x[:, None])
    assert fitted.estimate[1] > 100
    rows = fitted.moments(data)
    assert np.max(np.abs(rows.mean(axis=0)) / rows.std(axis=0)) < 1e-10


def test_descent_says_when_it_diverges_and_what_to_do() -> None:
    y, x, _ = base("linear")
    common: dict[str, Any] = {"loss": "squared", "steps": 60, "reveal": "last"}
    z = np.c_[np.ones(len(x)), (x - x.mean(axis=0)) / x.std(axis=0)]
    limit = 2 / np.linalg.eigvalsh(z.T @ z / len(z))[-1]
    fit("gradient_descent", y, x, rate=0.99 * limit, **common)
    with pytest.raises(ValueError, match=rf"rate = .* diverges at step \d+: take a rate below {limit:.3g}$"):
        fit("gradient_descent", y, x, rate=1.1 * limit, **common)
    with pytest.raises(ValueError, match=r"diverges at step 1: take a rate below .*, or standardise"):
        fit("gradient_descent", y, 1e9 + x, rate=0.1, standardise=False, **common)
    counts, x, _ = base("poisson")
    for rate in (3.0, 1e6):
        with pytest.raises(ValueError, match="diverges at step"):
            fit("gradient_descent", 1000 * counts, x, loss="poisson", steps=20, rate=rate)
    binary, x, _ = base("logistic")
    with pytest.raises(ValueError, match="diverges at step"):
        fit("gradient_descent", binary, x, loss="logistic", steps=20, rate=1e5)


def test_descent_keeps_constant_features_at_zero_and_offsets_out() -> None:
    for loss, kind in (("squared", "linear"), ("logistic", "logistic"), ("poisson", "poisson")):
        y, x, query = base(kind)
        x = np.round(x * 2**20) / 2**20
        common: dict[str, Any] = {"loss": loss, "steps": 5, "rate": 0.2}
        plain, data = fit("gradient_descent", y, x, **common)
        wide, there = fit(
            "gradient_descent", y, np.c_[x * [2.0**-20, 2.0**20] + [0, 2.0**30], np.full(400, 0.1)], **common
        )
        np.testing.assert_allclose(wide.estimate.reshape(5, 4)[:, :3], plain.estimate.reshape(5, 3), rtol=1e-7)
        assert np.all(wide.estimate.reshape(5, 4)[:, 3] == 0)
        assert np.all(wide.moments(there)[:, 3::4] == 0)
        rho2 = shared_variance(plain, data, query)
        assert shared_variance(wide, there, query) == pytest.approx(rho2, rel=1e-6)


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"kind": "mean", "columns": []}, r"mean: columns is empty: name at least 1 column"),
    ({"kind": "mean", "columns": "age"}, r"mean: columns = 'age' must be a list of names"),
    ({"kind": "mean", "columns": ["a", "a"]}, r"mean: columns: 'a' is named twice"),
    ({"kind": "mean", "columns": ["a", 3]}, r"mean: columns: 3 must be the name of a column"),
    ({"kind": "mean"}, r"release 'mean' needs columns"),
    ({"kind": "median", "columns": ["a"]}, r"release kind 'median' is not known"),
    ({"kind": "linear", "target": "y", "feature": ["a"]}, r"takes no parameter 'feature': did you mean 'features'"),
    ({"kind": "linear", "target": "y", "features": ["y"]}, r"linear: 'y' is the target and a feature"),
    ({"kind": "linear", "target": "y", "l2": -1.0}, r"linear: l2 = -1.0 must be at least 0"),
    ({"kind": "ridge", "target": "y"}, r"release 'ridge' needs l2"),
    ({"kind": "ridge", "target": "y", "l2": 0}, r"ridge: l2 = 0.0 must be above 0"),
    ({"kind": "gradient_descent", "target": "y", "loss": "log", "steps": 3, "rate": 1}, r"loss = 'log' is not one of"),
    (
        {"kind": "gradient_descent", "target": "y", "loss": "squared", "steps": 0, "rate": 1},
        r"steps = 0 must be at least 1",
    ),
    (
        {"kind": "gradient_descent", "target": "y", "loss": "squared", "steps": 3, "rate": 0},
        r"rate = 0.0 must be above 0",
    ),
    (
        {"kind": "gradient_descent", "target": "y", "loss": "squared", "steps": 5000, "rate": 1},
        r"5000 numbers, more than",
    ),
    ({"kind": "stack", "releases": []}, r"stack: releases is empty"),
    ({"kind": "stack", "releases": {"kind": "mean"}}, r"must be a list of releases"),
    ({"kind": "stack", "releases": [{"columns": ["a"]}]}, r"releases\[0\] = .* must be a table with a kind"),
    (
        {"kind": "stack", "releases": [{"kind": "mean", "columns": ["a"]}, {"kind": "ridge", "target": "a"}]},
        r"stack: releases\[1\]: release 'ridge' needs l2",
    ),
]


@pytest.mark.parametrize(("parameters", "message"), REFUSALS)
def test_unfit_parameters_get_one_message(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        releases.build(**parameters)


@pytest.mark.parametrize(
    ("kind", "y", "message"),
    [
        ("logistic", [0, 1, 2, 1], "logistic: target 'y' must be 0 or 1 in every row, and its values go from 0 to 2"),
        ("logistic", [0, 1, 0.5, 1], "logistic: target 'y' must be 0 or 1 in every row"),
        ("logistic", [1, 1, 1, 1], "target 'y' is 1 in every row, so that no finite fit exists"),
        ("poisson", [0, 1, -1, 1], "poisson: target 'y' must be at least 0, and its smallest value is -1"),
        ("poisson", [0, 0, 0, 0], "target 'y' is 0 in every row, so that no finite fit exists"),
        ("linear", [1e300, 0, 1, 2], "linear: squares of 'y' overflow: measure it in a larger unit"),
    ],
)
def test_unfit_targets_get_one_message(kind: str, y: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(kind, np.array(y, float), np.arange(4.0)[:, None])
    if kind != "linear":
        with pytest.raises(ValueError, match=message.replace(f"{kind}: ", "gradient_descent: ")):
            fit("gradient_descent", np.array(y, float), np.arange(4.0)[:, None], loss=kind, steps=1, rate=0.1)
    stack = releases.build(
        "stack", releases=[{"kind": "mean", "columns": ["x"]}, {"kind": kind, "target": "y", "features": ["x"]}]
    )
    with pytest.raises(ValueError, match=rf"stack: releases\[1\]: .*{message[-30:]}"):
        stack.fit(total(np.column_stack([np.arange(4.0), y])))


def test_proportions_and_counts_want_zeros_and_ones() -> None:
    for kind in ("proportion", "count"):
        for bad in (2.0, 0.5, -1.0):
            data = np.array([[0.0, 1], [1, bad], [0, 0]])
            with pytest.raises(ValueError, match=rf"{kind}: column 'b' must be 0 or 1 in every row.*expression"):
                releases.build(kind, columns=["a", "b"]).fit(total(data))
