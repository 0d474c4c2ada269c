"""Gains of releases whose numbers depend on each other, against fractions and longer numbers.

The oracle is the form in ψ, a row's influence on λ, gain = Cov(q', ψ)(Var ψ + m·S)⁺Cov(ψ, q'), in which what no data
move shows the noise by itself.
"""

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from predcube.tasks import noises, predictability, processes, releases
from predcube.tasks.attackers import attack, breach_stream, noise_stream
from predcube.tasks.breaches import draw_breaches
from predcube.tasks.frames import Frame, total_of
from predcube.tasks.gains import Gains, Measure
from predcube.tasks.leakage import factored, sampled
from predcube.tasks.releases.whitening import Whitened

type Rows = list[list[Fraction]]
type Floats = NDArray[np.float64]

IID = {"kind": "iid", "size": 20}


def eliminated(matrix: Rows, right: Rows) -> tuple[Rows, list[int], Rows]:
    """Reduced rows, their pivots, and the right sides with them."""
    a, b = [row[:] for row in matrix], [row[:] for row in right]
    pivots: list[int] = []
    for j in range(len(a[0]) if a else 0):
        at = next((i for i in range(len(pivots), len(a)) if a[i][j]), None)
        if at is None:
            continue
        k = len(pivots)
        a[k], a[at], b[k], b[at] = a[at], a[k], b[at], b[k]
        scale = a[k][j]
        a[k], b[k] = [v / scale for v in a[k]], [v / scale for v in b[k]]
        for i in range(len(a)):
            if i != k and a[i][j]:
                f = a[i][j]
                a[i] = [u - f * v for u, v in zip(a[i], a[k], strict=True)]
                b[i] = [u - f * v for u, v in zip(b[i], b[k], strict=True)]
        pivots.append(j)
    return a, pivots, b


def solved(matrix: Rows, right: Rows) -> Rows:
    """A solution of a consistent system."""
    _, pivots, b = eliminated(matrix, right)
    out = [[Fraction(0)] * len(right[0]) for _ in matrix[0]]
    for row, j in zip(b, pivots, strict=False):
        out[j] = row
    return out


def null_space(matrix: Rows) -> Rows:
    a, pivots, _ = eliminated(matrix, [[Fraction(0)] for _ in matrix])
    size = len(matrix[0])
    out = []
    for j in set(range(size)) - set(pivots):
        v = [Fraction(int(i == j)) for i in range(size)]
        for row, p in zip(a, pivots, strict=False):
            v[p] = -row[j]
        out.append(v)
    return out


def centred(column: Floats) -> list[Fraction]:
    values = [Fraction(float(v)) for v in column]
    mean = sum(values) / len(values)
    return [v - mean for v in values]


def product(a: Rows, b: Rows) -> Rows:
    """aᵀb/N of lists of columns."""
    return [[sum((u * v for u, v in zip(x, y, strict=True)), Fraction(0)) / len(x) for y in b] for x in a]


def influences(table: dict[str, Floats], release: dict[str, Any]) -> tuple[Rows, list[int], Rows]:
    """Columns of ψ, sizes of the members, and M = E[xxᵀ] (of a stack the identity)."""
    if release["kind"] == "stack":
        parts = [influences(table, part) for part in release["releases"]]
        psi = [column for part in parts for column in part[0]]
        return psi, [n for part in parts for n in part[1]], identity(len(psi))
    if release["kind"] in ("mean", "proportion"):
        psi = [centred(table[name]) for name in release["columns"]]
        return psi, [len(psi)], identity(len(psi))
    x = [centred(table[name]) for name in release["features"]]
    y = centred(table[release["target"]])
    means = [sum((Fraction(float(v)) for v in table[n]), Fraction(0)) / len(y) for n in release["features"]]
    gram = product(x, x)
    scale = [gram[j][j] or Fraction(1) for j in range(len(x))]
    null = null_space(gram)
    rules = gram + [[v * s for v, s in zip(row, scale, strict=True)] for row in null]
    empty = [[Fraction(0)]] * len(null)
    slopes = solved(rules, [[v] for v in (row[0] for row in product(x, [y]))] + empty)
    errors = [y[i] - sum((x[j][i] * slopes[j][0] for j in range(len(x))), Fraction(0)) for i in range(len(y))]
    rights = [[x[j][i] * errors[i] for i in range(len(y))] for j in range(len(x))]
    moved = solved(rules, rights + [[Fraction(0)] * len(y) for _ in null])
    first = [errors[i] - sum((means[j] * moved[j][i] for j in range(len(x))), Fraction(0)) for i in range(len(y))]
    raw = [[Fraction(1)] * len(y), *([Fraction(float(v)) for v in table[n]] for n in release["features"])]
    return [first, *moved], [1 + len(x)], product(raw, raw)


def identity(size: int) -> Rows:
    return [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]


def exact(table: dict[str, Floats], release: dict[str, Any], noise: dict[str, Any]) -> tuple[float, float]:
    """(gain, utility cost) for draws of 20 rows with replacement."""
    psi, sizes, cost = influences(table, release)
    m = 20
    variance = product(psi, psi)
    d = len(psi)
    total = [[Fraction(0)] * d for _ in range(d)]
    match noise["kind"]:
        case "isotropic":
            total = [[v * Fraction(noise["sd"]) ** 2 for v in row] for row in identity(d)]
        case "laplace":
            total = [[v * 2 * Fraction(noise["sensitivity"]) ** 2 for v in row] for row in identity(d)]
        case "calibrated":
            at = 0
            for size in sizes:
                for i in range(at, at + size):
                    for j in range(at, at + size):
                        total[i][j] = variance[i][j] * Fraction(noise["level"]) / m
                at += size
    both = [[v + m * s for v, s in zip(a, b, strict=True)] for a, b in zip(variance, total, strict=True)]
    cross = product(psi, [centred(table["q"])])
    found = solved(both, cross)
    gain = sum((c[0] * x[0] for c, x in zip(cross, found, strict=True)), Fraction(0))
    paid = sum((cost[i][j] * total[j][i] for i in range(d) for j in range(d)), Fraction(0))
    return float(gain), float(paid)


def made(seed: int, rows: int = 24) -> dict[str, Floats]:
    """Whole numbers, whose sums are exact: a constant, copies, combinations, a complete set of indicators."""
    rng = np.random.default_rng(seed)
    x, z = rng.integers(0, 9, rows) * 1.0, rng.integers(-20, 20, rows) * 1.0
    q = (x + rng.integers(0, 6, rows) > 6) * 1.0
    q[:2] = 0.0, 1.0
    kind = rng.integers(0, 3, rows)
    return {
        "x": x,
        "z": z,
        "one": np.full(rows, 1.0 if seed % 2 else 37.0),
        "large": 1024.0 * x,
        "small": x / 1024.0,
        "mixed": 2 * x - z,
        **{f"is{k}": (kind == k) * 1.0 for k in range(3)},
        "q": q,
        "b": rng.integers(0, 2, rows) * 1.0,
        "y": x + 3 * q + rng.integers(0, 5, rows),
        "v": z - 2 * q + rng.integers(0, 9, rows),
    }


def linear(*features: str, target: str = "y") -> dict[str, Any]:
    return {"kind": "linear", "target": target, "features": list(features)}


SETS = [
    ("x", "one"),
    ("one", "x"),
    ("x", "large"),
    ("large", "small", "x"),
    ("x", "z", "mixed"),
    ("z", "is0", "is1", "is2"),
    ("one", "x", "mixed", "z", "small"),
]
NOISES: list[dict[str, Any]] = [
    {"kind": "none"},
    {"kind": "isotropic", "sd": 0.01},
    {"kind": "isotropic", "sd": 1.0},
    {"kind": "isotropic", "sd": 100.0},
    {"kind": "calibrated", "level": 1.0},
    {"kind": "calibrated", "level": 100.0},
    {"kind": "laplace", "epsilon": 1.0, "sensitivity": 0.25},
]


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: "-".join(str(v) for v in noise.values()))
@pytest.mark.parametrize("features", SETS, ids="-".join)
def test_dependent_features_gain_what_fractions_say(features: tuple[str, ...], noise: dict[str, Any]) -> None:
    for seed in range(3):
        table = made(seed)
        found = predictability(table, "q", linear(*features), IID, noise)
        gain, cost = exact(table, linear(*features), noise)
        assert found.gain == pytest.approx(gain, rel=1e-9)
        assert found.utility_cost == pytest.approx(cost, rel=1e-9)
        if noise["kind"] == "calibrated":
            assert found.r**2 == pytest.approx(found.rho2 / (1 + noise["level"]), rel=1e-12)
        assert "ill_conditioned" not in found.flags


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: "-".join(str(v) for v in noise.values()))
def test_stacks_in_every_order_gain_what_fractions_say(noise: dict[str, Any]) -> None:
    share = {"kind": "proportion", "columns": ["b"]}
    members = [
        [linear("x", "one"), share],
        [linear("x"), linear("x", "one"), share],
        [linear("x", "large"), linear("z", "one", target="v"), share],
        [linear("x"), linear("x")],
        [{"kind": "mean", "columns": ["x", "large", "one"]}, {"kind": "mean", "columns": ["x", "z"]}],
        [{"kind": "stack", "releases": [linear("one", "x"), share]}, linear("z", "is0", "is1", "is2", target="v")],
    ]
    for number, parts in enumerate(members):
        table = made(number)
        release = {"kind": "stack", "releases": parts}
        gain, cost = exact(table, release, noise)
        for order in permutations(parts):
            found = predictability(table, "q", {"kind": "stack", "releases": list(order)}, IID, noise)
            assert found.gain == pytest.approx(gain, rel=1e-9), order
            assert found.utility_cost == pytest.approx(cost, rel=1e-9)
            assert "ill_conditioned" not in found.flags


def test_a_number_more_never_lowers_the_gain() -> None:
    """P2 A.10: an attacker may ignore it. A constant feature changes nothing, and a copy released with noise helps."""
    for seed in range(8):
        table = made(seed)
        for sd in (0.01, 1.0, 100.0):
            noise = {"kind": "isotropic", "sd": sd}
            alone = predictability(table, "q", linear("x"), IID, noise).gain
            assert predictability(table, "q", linear("x", "one"), IID, noise).gain == pytest.approx(alone, rel=1e-10)
            share = {"kind": "proportion", "columns": ["b"]}
            for member in (linear("x", "one"), linear("x", "mixed", "z")):
                one = predictability(table, "q", member, IID, noise).gain
                for order in ([member, share], [share, member]):
                    both = predictability(table, "q", {"kind": "stack", "releases": order}, IID, noise).gain
                    assert both >= one * (1 - 1e-10)


def test_rank_one_noise_lies_along_what_is_released() -> None:
    """S_tot = (1/t − 1/κ)CCᵀ/m with C = Cov(ψ, q), ψ the influence on the released λ."""
    table = made(3)
    for features in SETS:
        release = linear(*features)
        bare = predictability(table, "q", release, IID)
        noise = {"kind": "rank_one", "gain": bare.sharp / 3}
        found = predictability(table, "q", release, IID, noise)
        assert found.gain == pytest.approx(bare.gain / 3, rel=1e-12)
        psi, _, cost = influences(table, release)
        c = np.array([float(v[0]) for v in product(psi, [centred(table["q"])])])
        m = np.array([[float(v) for v in row] for row in cost])
        assert found.utility_cost == pytest.approx(2 / bare.gain / 20 * c @ m @ c, rel=1e-9)


def test_the_attacker_uses_numbers_that_carry_noise_alone() -> None:
    """Of x and a copy 1,024 times as large, and of a constant feature: the run attacker reaches the gain."""
    table = made(5, rows=400)
    process, noise = processes.build("iid", size=50), noises.build("isotropic", sd=0.05)
    release = releases.build(**linear("x", "small", "one"))
    sample = sampled(table, "q", release, process)
    gains, fitted = factored(sample, release, process)
    [frame] = sample.frames
    breaches = draw_breaches(
        frame, fitted.moments(frame.inputs), process, groups=None, draws=4000, rng=breach_stream(0, process, 400, 0)
    )
    run = attack(breaches, gains, process, noise, rng=noise_stream(0, process, noise, 400, 0))
    assert abs(run.simulated_ratio[0] - 1) < 4 * run.simulated_ratio_error[0]
    assert run.simulated_ratio_error[0] < 0.04


# Trajectories of gradient descent, in long doubles.

LONG = np.longdouble


def walked(x: Floats, y: Floats, loss: str, rate: float, steps: int) -> Any:
    """(N, 2·steps) influences of rows on the iterates of a descent on (1, x standardised)."""
    x, y = x.astype(LONG), y.astype(LONG)
    z = np.stack([np.ones_like(x), (x - x.mean()) / np.sqrt(((x - x.mean()) ** 2).mean())], axis=1)
    w, psi, out = np.zeros(2, LONG), np.zeros_like(z), []
    for _ in range(steps):
        eta = z @ w
        mean = {"logistic": 1 / (1 + np.exp(-eta)), "poisson": np.exp(eta), "squared": eta}[loss]
        bend = {"logistic": mean * (1 - mean), "poisson": mean, "squared": np.ones_like(eta)}[loss]
        slopes = z * (mean - y)[:, None]
        hessian = z.T @ (z * bend[:, None]) / len(y)
        psi = psi - LONG(rate) * (psi @ hessian + slopes - slopes.mean(axis=0))
        w = w - LONG(rate) * slopes.mean(axis=0)
        out.append(psi)
    return np.concatenate(out, axis=1)


def shared(rows: Any, q: Floats, least: float = 1e-13) -> tuple[float, int]:
    """ρ² and rank by Gram–Schmidt on standardised columns, twice over, a pivot at a time."""
    a = rows - rows.mean(axis=0)
    a = a / np.sqrt((a**2).mean(axis=0))
    of = (q - q.mean()).astype(LONG)
    left, basis = list(range(a.shape[1])), []
    while left:
        j = max(left, key=lambda k: float((a[:, k] ** 2).sum()))
        if (a[:, j] ** 2).mean() <= least**2:
            break
        e = a[:, j] / np.sqrt((a[:, j] ** 2).sum())
        for b in basis:
            e = e - b * (b @ e)
        basis.append(e / np.sqrt((e**2).sum()))
        left.remove(j)
        for _ in range(2):
            for k in left:
                a[:, k] = a[:, k] - basis[-1] * (basis[-1] @ a[:, k])
    return float(sum((b @ of) ** 2 for b in basis) / (of @ of)), len(basis)


def descents() -> dict[str, Floats]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    b = ((x + rng.logistic(size=200)) > 0) * 1.0
    q = ((x + rng.normal(size=200)) > 0) * 1.0
    return {"x": x, "b": b, "q": q, "cnt": rng.poisson(np.exp(0.3 * x)) * 1.0, "y": x + q + rng.normal(size=200)}


@pytest.mark.skipif(np.finfo(LONG).eps > 1e-18, reason="this machine has no longer numbers than double precision")
@pytest.mark.parametrize("loss", ["logistic", "poisson", "squared"])
def test_trajectories_keep_the_directions_in_which_iterates_bend(loss: str) -> None:
    table = descents()
    target = {"logistic": "b", "poisson": "cnt", "squared": "y"}[loss]
    ranks = set()
    for rate, steps in ((0.5, 1), (0.5, 2), (0.5, 4), (0.5, 6), (0.1, 3), (0.01, 2), (0.01, 3), (0.01, 4)):
        release = {
            "kind": "gradient_descent",
            "loss": loss,
            "target": target,
            "features": ["x"],
            "rate": rate,
            "steps": steps,
        }
        found = predictability(table, "q", release, IID)
        rows = walked(table["x"], table[target], loss, rate, steps)
        rho2, rank = shared(rows, table["q"])
        if "ill_conditioned" not in found.flags:
            assert found.rho2 == pytest.approx(rho2, rel=1e-15 * found.condition + 1e-11)
            ranks.add(found.rank)
        assert abs(found.rank - rank) <= ("ill_conditioned" in found.flags)
        sizes = np.linalg.svd(((rows - rows.mean(0)) / rows.std(0)).astype(float), compute_uv=False)
        assert found.condition == pytest.approx(sizes[0] / sizes[found.rank - 1], rel=0.3)
        for sd in (1e-4, 1e-2, 1.0):  # noise on every number makes a sum that long numbers can invert
            noise = {"kind": "isotropic", "sd": sd}
            variance = np.asarray(rows.T @ rows / len(rows) + 20 * LONG(sd) ** 2 * np.eye(2 * steps))
            cross = rows.T @ (table["q"] - table["q"].mean()) / len(rows)
            gain = float(cross @ cholesky_solved(variance, cross))
            assert predictability(table, "q", release, IID, noise).gain == pytest.approx(gain, rel=1e-7)
    assert max(ranks) == {"logistic": 12, "poisson": 8, "squared": 4}[loss]


def cholesky_solved(a: Any, b: Any) -> Any:
    size = len(a)
    low = np.zeros_like(a)
    for j in range(size):
        low[j, j] = np.sqrt(a[j, j] - low[j, :j] @ low[j, :j])
        for i in range(j + 1, size):
            low[i, j] = (a[i, j] - low[i, :j] @ low[j, :j]) / low[j, j]
    x = np.array(b)
    for j in range(size):
        x[j] = (x[j] - low[j, :j] @ x[:j]) / low[j, j]
    for j in range(size - 1, -1, -1):
        x[j] = (x[j] - low[j + 1 :, j] @ x[j + 1 :]) / low[j, j]
    return x


def test_members_that_are_nearly_equal_keep_their_difference() -> None:
    """y and y plus 2⁻²⁰ of a query: the difference of two regressions tells of the query as its own regression does."""
    table = made(7, rows=200)
    table["near"] = table["y"] + 2.0**-20 * table["v"]
    table["apart"] = table["v"]
    parts = [linear("x"), linear("x", target="near")]
    found = predictability(table, "q", {"kind": "stack", "releases": parts}, IID)
    even = predictability(table, "q", {"kind": "stack", "releases": [linear("x"), linear("x", target="apart")]}, IID)
    assert found.rank == even.rank == 4
    assert found.rho2 == pytest.approx(even.rho2, rel=1e-7)
    columns = {"kind": "mean", "columns": ["y", "near"]}
    assert predictability(table, "q", columns, IID).rho2 == pytest.approx(
        predictability(table, "q", {"kind": "mean", "columns": ["y", "apart"]}, IID).rho2, rel=1e-8
    )


def test_whitening_is_another_basis_of_the_same_moments() -> None:
    """Rows, Jacobian and noise are mapped together; combinations that are 0 stay 0, and move with λ."""
    table = descents()
    release = releases.build(
        "stack",
        releases=[
            releases.build("gradient_descent", loss="logistic", target="b", features=["x"], steps=3, rate=0.1),
            releases.build("mean", columns=["x", "y"]),
            releases.build("mean", columns=["x"]),
        ],
    )
    inputs = np.stack([table[name] for name in release.inputs], axis=1)
    total = total_of([Frame(queries=table["q"][:, None], inputs=inputs)])
    bare, fitted = release.bare(total), release.fit(total)
    assert isinstance(fitted, Whitened)
    assert np.count_nonzero(fitted.silent) == 1
    rows = fitted.moments(inputs)
    assert np.all(rows[:, fitted.silent] == 0)
    varying = rows[:, ~fitted.silent]
    assert np.allclose(np.cov(varying.T, bias=True), np.eye(8), atol=1e-4)
    assert np.allclose(fitted.jacobian, fitted.mixing.T @ bare.jacobian)
    shift = 1e-3 * np.arange(9.0)
    moved = bare.moments(inputs, shift).mean(axis=0) @ fitted.mixing
    assert np.allclose(fitted.moments(inputs, shift).mean(axis=0), moved, rtol=1e-6)
    assert fitted.members == bare.members == (6, 2, 1)
    process = processes.build("iid", size=20)
    for noise in (noises.build("isotropic", sd=0.1), noises.build("calibrated", level=2.0)):
        gain = [
            Gains(law=process.law(total(process.request(f)), None), coordinates=f).gain(process, noise, Measure())[0]
            for f in (bare, fitted)
        ]
        assert gain[1] == pytest.approx(gain[0], rel=1e-5)  # the bare moments have lost as much


def test_the_cost_of_a_descent_is_that_of_its_predictions() -> None:
    """P2 Lemma 4.5: isotropic noise costs sd²·E|z|² for every iterate that is released."""
    table = descents()
    release = {"kind": "gradient_descent", "loss": "squared", "target": "y", "features": ["x"], "rate": 0.3, "steps": 4}
    square = np.mean(table["x"] ** 2)
    for standardise, size in ((True, 2.0), (False, 1 + square)):
        for reveal, times in (("last", 1), ("trajectory", 4)):
            more = {**release, "standardise": standardise, "reveal": reveal}
            found = predictability(table, "q", more, IID, {"kind": "isotropic", "sd": 0.3})
            assert found.utility_cost == pytest.approx(0.09 * size * times, rel=1e-12)


def test_noise_of_unlike_sizes_keeps_the_digits_of_the_smaller() -> None:
    """Two correlated numbers with noise of 1 and of 10¹⁴ standard deviations: the first hides by its own noise."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=500)
    other = x + rng.normal(size=500)
    table = {"a": x * 1e3, "c": other * 1e-11, "q": (x + rng.normal(size=500) > 0) * 1.0}
    noise = {"kind": "isotropic", "sd": 1e3}
    both = predictability(table, "q", {"kind": "mean", "columns": ["c", "a"]}, IID, noise)
    alone = predictability(table, "q", {"kind": "mean", "columns": ["a"]}, IID, noise)
    assert both.gain == pytest.approx(alone.gain, rel=1e-11)


def test_values_past_the_range_of_first_order_say_so() -> None:
    """One inclusion of 1e-9 makes an estimate of a share worse than a guess; all but one row seen do not."""
    rng = np.random.default_rng(2)
    table = {"x": rng.normal(size=50), "q": (rng.random(50) < 0.4) * 1.0, "pi": np.full(50, 0.5)}
    table["pi"][3] = 1e-9
    mean = {"kind": "mean", "columns": ["x"]}
    found = predictability(table, "q", mean, {"kind": "poisson", "column": "pi"})
    assert found.K * found.s1 > found.p * (1 - found.p)
    assert "beyond_first_order" in found.flags
    for size in (1, 10, 49):
        assert predictability(table, "q", mean, {"kind": "random_shard", "size": size}).flags == ()


def test_noise_beyond_numbers_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"sd = 1e\+160 must be at most 1e\+150"):
        noises.build("isotropic", sd=1e160)
    with pytest.raises(ValueError, match="take a larger epsilon"):
        noises.build("laplace", epsilon=1e-200, sensitivity=1.0)
    table = descents()
    largest = {"kind": "isotropic", "sd": 1e150}
    assert predictability(table, "q", {"kind": "mean", "columns": ["x", "y"]}, IID, largest).gain < 1e-200


def test_messages_call_a_query_by_its_name_and_m_is_that_of_the_process() -> None:
    table = descents()
    mean = {"kind": "mean", "columns": ["x"]}
    with pytest.raises(ValueError, match="query 'cnt' takes values other than 0 and 1"):
        predictability(table, "cnt", mean, IID, None, "log")
    with pytest.raises(ValueError, match="of query 'q'"):
        predictability(table, "q", mean, IID, None, {"loss": "log", "tau": 0.5})
    printed = predictability(table, "q", mean, IID, None, {"loss": "squared", "convention": "paper"})
    assert printed.m == 20


def test_a_penalty_too_small_for_collinear_features_is_flagged() -> None:
    """An l2 of 1e-12 of a variance makes coefficients of what rounding left of a combination; one of 1e-3 does not."""
    rng = np.random.default_rng(3)
    table = descents()
    table["other"] = rng.normal(size=200)
    table["sum"] = table["x"] / 3 + table["other"] / 7
    for l2, blurred in ((1e-16, True), (1e-12, True), (1e-3, False)):
        release = {"kind": "ridge", "target": "y", "features": ["x", "other", "sum"], "l2": l2}
        found = predictability(table, "q", release, IID)
        assert ("ill_conditioned" in found.flags) is blurred
        if not blurred:
            assert found.rank == 3
