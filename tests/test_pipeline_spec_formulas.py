"""Formulas in specs: their arithmetic against Python's, what they refuse, and cells as if the numbers were written."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predcube.pipeline import run
from predcube.pipeline.failures import BadInput
from predcube.pipeline.grid import Grid
from predcube.pipeline.spec import load_spec
from predcube.pipeline.spec.canonical import from_resolved, resolved
from predcube.pipeline.spec.formulas import evaluate, is_formula, names
from predcube.storage import open_cube

SPEC: dict[str, Any] = {
    "trials": 2,
    "hypotheses": {"kind": "cube"},
    "distribution": {"kind": "agnostic_lower_bound"},
    "measure": {
        "quantities": ["excess_error"],
        "targets": {"excess_error": "= 2 * distribution.alpha", "confidence": 0.8},
    },
    "sweep": {
        "n": [40, 80],
        "hypotheses.points": [2, 3],
        "distribution.alpha": [0.05, 0.1],
        "learner.gamma": [0.1, 0.3],
        "learner": [
            {"label": "stable", "kind": "stable"},
            {"label": "average", "kind": "subsample_average", "chunks": "= ceil(1 / gamma)"},
            {
                "label": "private",
                "kind": "private",
                "epsilon": 0.9,
                "alpha": "= alpha",
                "chunks": 2,
                "eta": "= alpha / points",
            },
            {
                "label": "part",
                "kind": "subsample",
                "subset_size": "= floor(n / 4)",
                "inner": {"kind": "exponential", "epsilon": "= 3 * alpha"},
            },
        ],
    },
}


def changed(**parts: Any) -> dict[str, Any]:
    spec = {**SPEC, **parts}
    spec["sweep"] = {**SPEC["sweep"], **parts.get("sweep", {})}
    return spec


# --- the language -----------------------------------------------------------------------------------------------------


@given(st.integers(1, 50), st.floats(0.01, 10), st.floats(0.01, 10))
def test_arithmetic_is_python_s_to_twelve_digits(k: int, a: float, b: float) -> None:
    values = {"k": k, "a": a, "part.b": b}
    for text, expected in (
        ("= k + a * part.b - 2", k + a * b - 2),
        ("= -a / (k * part.b) ** 2", -a / (k * b) ** 2),
        ("= sqrt(a) * log(k + part.b)", math.sqrt(a) * math.log(k + b)),
        ("= min(a, part.b) + max(a, part.b, k)", min(a, b) + max(a, b, k)),
        ("=exp(-a)", math.exp(-a)),
    ):
        assert evaluate(text, values) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(1, 999), st.integers(1, 9))
def test_values_are_the_decimals_that_they_stand_for(cents: int, times: int) -> None:
    assert evaluate("= x * k", {"x": cents / 100, "k": times}) == float(f"{cents * times / 100:.12g}")
    assert evaluate("= ceil(k / (x / 1))", {"x": 1 / 10, "k": times}) == 10 * times


def test_ceil_and_floor_make_integers() -> None:
    assert isinstance(evaluate("= ceil(1 / gamma)", {"gamma": 0.3}), int)
    assert evaluate("= ceil(1 / gamma)", {"gamma": 0.3}) == 4
    assert isinstance(evaluate("= 2 * n", {"n": 3}), int)
    assert isinstance(evaluate("= n / 3", {"n": 3}), float)


@pytest.mark.parametrize(
    "text",
    [
        "= __import__('os')",
        "= a.b.c",
        "= [1, 2]",
        "= a if b else c",
        "= lambda: 1",
        "= open(a)",
        "= 'x'",
        "= True",
        "= a < b",
        "= a; b",
        "=",
        "= 1 +",
        "= (x for x in a)",
        "= f(a)(b)",
        "= ceil()",
        "= ceil(a, key=b)",
        "= a[0]",
        "= " + "1 + " * 400 + "1",
        "= x := 3",
    ],
)
def test_nothing_but_arithmetic(text: str) -> None:
    assert is_formula(text)
    with pytest.raises(ValueError, match=r"arithmetic|formula"):
        names(text)


@pytest.mark.parametrize(
    "text", ["= 1 / x", "= log(x)", "= 9 ** 9 ** 9", "= exp(1e6)", "= 1e300 * 1e300", "= (0 - 1) ** 0.5"]
)
def test_no_value_is_an_error_with_the_place(text: str) -> None:
    with pytest.raises(ValueError, match=r"no value|no finite number"):
        evaluate(text, {"x": 0})


# --- in a spec --------------------------------------------------------------------------------------------------------


def test_a_cell_is_as_if_its_numbers_were_written() -> None:
    sweep = load_spec(SPEC)
    for index in sweep.indices():
        at = {a.name: a.values[i] for a, i in zip(sweep.axes, index, strict=True)}
        learner = sweep.cell(index).sections["learner"]
        match at["learner"]:
            case "stable":
                assert learner == {"kind": "stable", "gamma": at["gamma"], "convention": "proof"}
            case "average":
                assert learner == {"kind": "subsample_average", "chunks": math.ceil(1 / at["gamma"])}
            case "private":
                assert learner["alpha"] == at["alpha"]
                assert learner["eta"] == float(f"{at['alpha'] / at['points']:.12g}")
            case "part":
                assert learner["subset_size"] == at["n"] // 4
                assert learner["inner"]["epsilon"] == float(f"{3 * at['alpha']:.12g}")
        assert sweep.limit(index, "excess_error") == 2 * at["alpha"]


def test_the_distinct_parts_of_a_grid_are_those_of_its_cells() -> None:
    sweep = load_spec(SPEC)
    part = Grid(sweep).parts["learner"]
    for index in sweep.indices():
        place = tuple(i if n > 1 else 0 for i, n in zip(index, part.codes.shape, strict=True))
        assert part.values[part.codes[place]] == sweep.cell(index).sections["learner"]
    assert sweep.touching("distribution") == tuple(a.name == "alpha" for a in sweep.axes)
    assert sweep.touching("targets") == tuple(a.name == "alpha" for a in sweep.axes)


def test_a_target_may_name_what_a_formula_gives() -> None:
    spec = changed(measure={"quantities": ["excess_error"], "targets": {"excess_error": "= learner.alpha"}})
    del spec["sweep"]["learner"]
    del spec["sweep"]["learner.gamma"]
    spec["learner"] = {"kind": "stable_flip", "epsilon": 1, "alpha": "= distribution.alpha / 2"}
    sweep = load_spec(spec)
    assert sweep.touching("targets") == tuple(a.name == "alpha" for a in sweep.axes)
    assert {sweep.limit(i, "excess_error") for i in sweep.indices()} == {0.025, 0.05}


def test_what_a_store_remembers_gives_the_same_cells() -> None:
    sweep = load_spec(SPEC)
    again = from_resolved(resolved(sweep))
    assert [again.cell(i) for i in again.indices()] == [sweep.cell(i) for i in sweep.indices()]
    assert resolved(again) == resolved(sweep)


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        (
            {"kind": "subsample_average", "chunks": "= ceil(1 / gama)"},
            'unknown axis or parameter "gama"; did you mean "gamma"',
        ),
        ({"kind": "subsample_average", "chunks": "= open(gamma)"}, "is no arithmetic"),
        ({"kind": "subsample_average", "chunks": "= 1 / gamma"}, "must be an integer"),
        ({"kind": "subsample_average", "chunks": "= log(gamma - 0.3)"}, "has no value"),
        ({"kind": "exponential", "epsilon": "= 0 - alpha"}, "must be above 0"),
        ({"kind": "stable", "convention": "= gamma"}, 'unknown convention "= gamma"'),
        ({"kind": "exponential", "epsilon": "= learner.epsilon"}, "learner.epsilon is not known"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(learner: dict[str, Any], words: str) -> None:
    spec = changed()
    spec["sweep"]["learner"] = [{"label": "good", "kind": "stable"}, {"label": "bad", **learner}]
    with pytest.raises(BadInput) as e:
        load_spec(spec)
    assert words in str(e.value)
    assert "learner" in str(e.value)


def test_a_target_below_zero_or_of_nothing() -> None:
    for target, words in (("= alpha - 1", "below 0"), ("= alfa", 'did you mean "alpha"')):
        with pytest.raises(BadInput, match=words):
            load_spec(changed(measure={"quantities": ["excess_error"], "targets": {"excess_error": target}}))


# --- through a run ----------------------------------------------------------------------------------------------------


def test_a_target_that_follows_the_instance_is_reached_cell_by_cell(tmp_path: Path) -> None:
    spec = changed(trials=12)
    spec["measure"]["quantities"] = ["excess_error", "bounds"]
    store = str(tmp_path / "s.zarr")
    run(spec, store, cluster="serial")
    tree = open_cube(store)
    trials, surfaces = tree["trials"].to_dataset(), tree["surfaces"].to_dataset()
    within = (trials["excess_error"] <= 2 * trials["alpha"]).where(trials["status"] == 1)
    expected = within.sum("trial") / (trials["status"] == 1).sum("trial")
    reached = surfaces["excess_error_reached"].transpose(*expected.dims)
    np.testing.assert_array_equal(reached.values, expected.values)
    limit = surfaces["excess_error_limit"]
    np.testing.assert_array_equal(
        limit.transpose("alpha", ...).values,
        np.broadcast_to(2 * surfaces["alpha"].values[:, None, None, None, None], limit.transpose("alpha", ...).shape),
    )
    assert surfaces["smallest_n"].attrs["goal"] == "Pr[excess_error ≤ 2 * distribution.alpha] ≥ 0.8"
    # The bounds are at the cell's own α: d ln|H|… falls by its square between α and 2α.
    shape = surfaces["bound_n_agnostic_lower"].isel(n=0, learner=1, gamma=0)
    np.testing.assert_allclose(shape.sel(alpha=0.05) / shape.sel(alpha=0.1), 4.0)
