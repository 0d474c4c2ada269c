"""Sample complexities of a store: rows beside bounds, exponents beside theirs, other targets from the same trials."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from typer.testing import CliRunner

from predcube.pipeline import query, run, search
from predcube.pipeline.cli.app import app
from predcube.pipeline.complexity import complexity, terse
from predcube.pipeline.failures import BadInput
from predcube.pipeline.reporting import report
from predcube.storage import open_cube

CERTAIN: dict[str, Any] = {
    "trials": 1,
    "hypotheses": {"kind": "cube", "points": 4},
    "distribution": {"kind": "agnostic_lower_bound"},
    "measure": {"quantities": ["expected_excess_error", "bounds"], "targets": {"expected_excess_error": "= alpha"}},
    "sweep": {
        "n": {"start": 40, "stop": 200000, "num": 38, "spacing": "log"},
        "distribution.alpha": [0.02, 0.04, 0.08],
        "learner.gamma": [0.01, 0.1],
        "learner": [
            {"label": "stable", "kind": "stable"},
            {"label": "average", "kind": "subsample_average", "chunks": "= ceil(1 / gamma)"},
        ],
    },
}
SAMPLED: dict[str, Any] = {
    "trials": 16,
    "hypotheses": {"kind": "thresholds", "points": 5},
    "distribution": {"kind": "threshold", "at": 2, "noise": 0.1},
    "learner": {"kind": "stable", "gamma": 0.2},
    "measure": {"quantities": ["excess_error"], "targets": {"excess_error": 0.1, "confidence": 0.75}},
    "sweep": {"n": [6, 12, 25, 50, 100], "distribution.noise": [0.0, 0.2]},
}


@pytest.fixture(scope="module")
def certain(tmp_path_factory: pytest.TempPathFactory) -> str:
    store = str(tmp_path_factory.mktemp("certain") / "s.zarr")
    search(CERTAIN, store, cluster="serial")
    return store


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> str:
    store = str(tmp_path_factory.mktemp("sampled") / "s.zarr")
    run(SAMPLED, store, cluster="serial")
    return store


def test_rows_are_the_answers_of_the_query_with_ratios_to_bounds(certain: str) -> None:
    rows = complexity(certain).rows
    expected = query(certain, smallest="n")
    for name in ("alpha", "gamma", "learner", "smallest_n", "status"):
        assert rows[name].equals(expected[name])
    for row in rows.to_pylist():
        # A learner of stability γ_g: (d − 1)/(8γ_gα) with d = 4.
        gamma = 1 / np.ceil(1 / row["gamma"]) if row["learner"] == "average" else None
        if gamma is None:
            n = row["smallest_n"]
            size = int(row["gamma"] * n + 1e-9)
            gamma = size / n + (1 - size / n) * np.tanh(row["gamma"] / 4)
        bound = 3 / (8 * gamma * row["alpha"])
        assert row["ratio_stability_lower"] == pytest.approx(row["smallest_n"] / bound, rel=1e-9)
        assert row["ratio_stability_lower"] > 1


def test_exponents_are_those_of_a_regression_of_the_rows(certain: str) -> None:
    found = complexity(certain)
    rows, slopes = found.rows.to_pandas(), found.slopes.to_pandas()
    assert list(slopes["in"]) == ["1/alpha", "1/gamma"] * 2
    for learner, own in slopes.groupby("learner"):
        mine = rows[rows["learner"] == learner]
        design = np.column_stack([-np.log(mine["alpha"]), -np.log(mine["gamma"]), np.ones(len(mine))])
        b = np.linalg.lstsq(design, np.log(mine["smallest_n"]), rcond=None)[0]
        np.testing.assert_allclose(own["exponent"], b[:2], rtol=1e-9)
        assert (own["rows"] == len(mine)).all()
        bound = np.log(mine["smallest_n"] / mine["ratio_averaging_upper"])
        np.testing.assert_allclose(
            own["exponent_averaging_upper"], np.linalg.lstsq(design, bound, rcond=None)[0][:2], rtol=1e-9
        )


def test_averaging_pays_a_second_power_of_one_over_alpha_and_the_stable_learner_does_not(certain: str) -> None:
    """Dagan & Feldman's introduction: d/(γα²) against d/(γα), on labels hardly better than coins."""
    slopes = complexity(certain).slopes.to_pylist()
    for learner, of, theirs in (
        ("average", "1/alpha", 2),
        ("average", "1/gamma", 1),
        ("stable", "1/alpha", 1),
        ("stable", "1/gamma", 1),
    ):
        found = next(r for r in slopes if (r["learner"], r["in"]) == (learner, of))
        assert found["exponent_lower"] <= theirs <= found["exponent_upper"]
        assert found["exponent"] == pytest.approx(theirs, abs=0.2)


def test_other_targets_are_answered_from_the_same_trials(sampled: str, tmp_path: Path) -> None:
    asked = complexity(sampled, targets={"excess_error": [0.05, 0.2]}, confidence=[0.6, 0.9]).rows.to_pylist()
    assert len(asked) == 8
    trials = open_cube(sampled)["trials"].to_dataset()
    for row in asked:
        within = trials["excess_error"].sel(noise=row["noise"]) <= row["target_excess_error"]
        rate = within.mean("trial").values
        fitted = isotonic_regression(rate).x + 1e-12
        reached = np.flatnonzero(fitted >= row["confidence"])
        expected = int(trials["n"].values[reached[0]]) if len(reached) else None
        assert row["smallest_n"] == expected
        assert row["status"] == ("reached" if expected else "not reached")
    one = complexity(sampled, targets={"excess_error": [0.2]}).rows
    again = str(tmp_path / "again.zarr")
    run(
        {**SAMPLED, "measure": {"quantities": ["excess_error"], "targets": {"excess_error": 0.2, "confidence": 0.75}}},
        again,
        cluster="serial",
    )
    assert one.equals(complexity(again).rows)


def test_an_axis_with_zeros_is_no_predictor_but_tells_rows_apart(sampled: str) -> None:
    found = complexity(sampled, targets={"excess_error": [0.05, 0.1, 0.2]}).slopes
    assert set(found["in"].to_pylist()) <= {"1/target_excess_error", "target_excess_error"}
    assert set(found["rows"].to_pylist()) <= {4, 5, 6}


def test_a_slope_counts_what_has_no_n(sampled: str) -> None:
    found = complexity(sampled, targets={"excess_error": [1e-9, 0.1, 0.2, 0.3]})
    assert found.rows["status"].to_pylist().count("not reached") == 2
    assert found.rows["smallest_n"].null_count == 2
    assert found.slopes["without_n"].to_pylist() == [2]
    assert found.slopes["rows"].to_pylist() == [6]


def test_what_a_terminal_shows_leaves_out_shapes(certain: str) -> None:
    names = terse(complexity(certain).rows).column_names
    assert "÷ stability lower" in names
    assert not any("averaging" in n for n in names)
    assert "averaging upper" in terse(complexity(certain).slopes).column_names


def test_a_report_shows_ratios_and_exponents(certain: str, sampled: str) -> None:
    page = report(certain)
    assert "Exponents of the smallest n" in page
    assert "Smallest n ÷ bounds" in page
    assert "1/gamma" in page
    assert "Exponents" not in report(sampled)  # one axis, with a zero


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"targets": {"excess_eror": [0.1]}}, "did you mean 'excess_error'"),
        ({"where": "noise"}, "not a condition"),
        ({"at": {"noise": 0.7}}, "not on the axis"),
        ({"at": {"n": 12}}, "what is looked for"),
    ],
)
def test_bad_questions_get_one_message(sampled: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        complexity(sampled, **options)


def test_a_store_without_n_or_targets_is_refused(tmp_path: Path) -> None:
    store = str(tmp_path / "s.zarr")
    run({**SAMPLED, "n": 9, "trials": 2, "sweep": {"distribution.noise": [0.1]}}, store, cluster="serial")
    with pytest.raises(BadInput, match="no axis n"):
        complexity(store)
    without = str(tmp_path / "t.zarr")
    run({**SAMPLED, "trials": 2, "measure": {"quantities": ["excess_error"]}}, without, cluster="serial")
    with pytest.raises(BadInput, match="no targets"):
        complexity(without)
    assert complexity(without, targets={"excess_error": [0.3]}).rows.num_rows == 2


def test_the_command(certain: str, tmp_path: Path) -> None:
    from predcube.pipeline.cli import commands  # noqa: F401

    def ask(*options: str) -> Any:
        return CliRunner().invoke(app, ["complexity", certain, *options])

    shown = ask()
    assert shown.exit_code == 0, shown.output
    assert "exponents of the smallest n" in shown.output
    slopes = json.loads(ask("--slopes", "--format", "json").stdout)
    assert {r["learner"] for r in slopes} == {"stable", "average"}
    rows = json.loads(ask("--format", "json", "--where", "learner = 'stable'").stdout)
    assert {r["learner"] for r in rows} == {"stable"}
    few = json.loads(ask("--format", "json", "--bounds", "stability_lower").stdout)[0]
    assert {n for n in few if n.startswith("ratio_")} == {"ratio_stability_lower"}
    for bad in (
        ("--bounds", "stable_uper"),
        ("--target", "excess_error"),
        ("--target", "excess_error=x"),
        ("--confidence", "1.5"),
    ):
        found = ask(*bad)
        assert isinstance(found.exception, BadInput), found.output
