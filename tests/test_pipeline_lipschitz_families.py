"""The worst Lipschitz query of a column, held to integrals over a fine grid, to single functions, and its refusals."""

from pathlib import Path

import numpy as np
import pytest

from predcube.pipeline import lipschitz_family
from predcube.tasks import predictability

SHARD = {"kind": "random_shard", "fraction": 0.25}
MEAN = {"kind": "mean", "columns": ["x", "z"]}


def people(values: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(values)
    x = rng.integers(0, values, 400) / 4.0
    return {"x": x, "z": x + rng.normal(size=400)}


def written(table: dict[str, np.ndarray], folder: Path) -> str:
    path = folder / "people.csv"
    rows = zip(*table.values(), strict=True)
    path.write_text("\n".join([",".join(table), *(",".join(repr(float(v)) for v in row) for row in rows)]))
    return str(path)


def test_it_is_the_integral_over_thresholds(tmp_path: Path) -> None:
    table = people(9)
    found = lipschitz_family(written(table, tmp_path), "x", MEAN, SHARD, constant=3.0)
    # Midpoints of equal steps that no value of x lies in.
    steps = np.linspace(0.0, 2.0, 801)
    middle = (steps[1:] + steps[:-1]) / 2
    queries = {f"q{i}": (table["x"] > t).astype(float) for i, t in enumerate(middle)}
    got = predictability(table, queries, MEAN, SHARD)
    n, a = 400, 0.25
    K = 1 / ((1 - a) * a * n)
    share = np.array([q.mean() for q in queries.values()])
    spread = np.sqrt(share * (1 - share) * n / (n - 1)).mean() * 2.0
    gains = np.sqrt(got.gain).mean() * 2.0
    assert found.kind == "bound"
    assert found.value == pytest.approx(2 * 9.0 * K * spread * gains, rel=1e-9)
    assert lipschitz_family(table, "x", MEAN, SHARD, constant=3.0).value == pytest.approx(found.value, rel=1e-12)


def test_no_lipschitz_function_gains_more() -> None:
    table = people(12)
    bound = lipschitz_family(table, "x", MEAN, SHARD).value
    x = table["x"]
    for f in (x, np.abs(x - 1), np.sin(x), np.minimum(x, 1.5), np.sqrt(1 + x**2)):
        assert predictability(table, {"f": f}, MEAN, SHARD).sharp[0] <= bound


def test_missing_values_are_dropped_rows_and_no_thresholds(tmp_path: Path) -> None:
    table = people(6)
    whole = lipschitz_family(table, "x", {"kind": "mean", "columns": ["z"]}, SHARD)
    gaps = {name: np.append(v, extra) for (name, v), extra in zip(table.items(), (np.nan, 50.0), strict=True)}
    again = lipschitz_family(gaps, "x", {"kind": "mean", "columns": ["z"]}, SHARD)
    assert again.value == pytest.approx(whole.value, rel=1e-12)


def test_many_values_make_an_estimate(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = {"x": rng.normal(size=1500), "z": rng.normal(size=1500)}
    found = lipschitz_family(written(table, tmp_path), "x", MEAN, SHARD, points=50)
    finer = lipschitz_family(table, "x", MEAN, SHARD, points=400)
    assert (found.kind, finer.kind) == ("estimate", "estimate")
    assert np.isnan(found.standard_error)
    assert found.value == pytest.approx(finer.value, rel=0.1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"column": "w"}, "'w'"),
        ({"constant": -1.0}, "constant = -1.0: give the Lipschitz constant"),
        ({"points": 0}, "points = 0: give at least 1"),
        ({"column": "0 * x"}, "fewer than two values"),
    ],
)
def test_refusals(tmp_path: Path, changed: dict[str, object], message: str) -> None:
    given = {"column": "x", "release": MEAN, "process": SHARD} | changed
    with pytest.raises(ValueError, match=message):
        lipschitz_family(written(people(4), tmp_path), **given)  # type: ignore[arg-type]
