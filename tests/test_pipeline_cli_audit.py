"""``predcube audit`` on small tables, against closed forms, the science called directly, and rows counted by hand."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from predcube.pipeline import table_audits
from predcube.pipeline.cli import auditing
from predcube.pipeline.cli.app import app
from predcube.pipeline.failures import BadInput, Interrupted
from predcube.pipeline.spec import load_spec
from predcube.pipeline.spec.inline import inline
from predcube.tasks import audit, hypotheses, learners, predict

# Rows 2 and 4 are incomplete: rows 1, 3, 5, 6, 7, 8 are left, of which 1, 3 and 6 say 1.
TABLE = """x,z,y
0,1.5,1
,,0
0,0.5,1
0,2.5,
0,1.5,0
0,3.5,1
0,0.25,0
0,1.5,0
"""
POINT = ["--features", "x", "--label", "y", "--hypotheses", "cube:points=1"]
LINE = ["--features", "z", "--label", "y = 1", "--hypotheses", "thresholds"]
X, Y, ROWS = [1.5, 0.5, 1.5, 3.5, 0.25, 1.5], [1, 1, 0, 1, 0, 0], [1, 3, 5, 6, 7, 8]


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "people.csv"
    path.write_text(TABLE)
    return str(path)


def asked(table: str, *options: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["audit", table, *options])


def data(table: str, *options: str) -> dict[str, Any]:
    result = asked(table, *options, "--format", "json")
    assert result.exit_code == 0, result.exception
    found: dict[str, Any] = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(name))
    return found


def sigmoid(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))


def test_one_point_has_a_closed_form(table: str) -> None:
    # Three records say 1 and three 0: p = σ(ε(3 − 3)/2) = ½, and σ(±ε) after one of them turned round.
    got = data(table, *POINT, "--learner", "exponential:epsilon=.4", "--delta", "0.1", "--delta", "0")
    assert got["rows"] == {"audited": 6, "usable": 6, "dropped": 2}
    assert got["kind"] == "exhaustive"
    assert got["exhaustive"] is True
    assert got["neighbours"] == {"tried": 2, "possible": 2}
    assert got["stability"]["measured"] == pytest.approx(sigmoid(0.4) - 0.5, abs=1e-14)
    assert got["stability"]["guaranteed"] == pytest.approx(math.tanh(0.1), abs=1e-14)
    assert got["privacy_loss"]["measured"] == pytest.approx(math.log(0.5 / sigmoid(-0.4)), abs=1e-14)
    assert got["privacy_loss"]["guaranteed"] == pytest.approx(0.4, abs=1e-15)
    one, none = got["delta"]
    assert one["measured"] == pytest.approx(max(sigmoid(0.4) - math.exp(0.1) / 2, 0.5 - math.exp(0.1) * sigmoid(-0.4)))
    assert none == {
        "epsilon": 0.0,
        "measured": got["stability"]["measured"],
        "guaranteed": pytest.approx(math.tanh(0.1)),
    }
    bill = got["predictions"][1]
    assert bill["predictions"] == 10
    assert bill["by_measured"]["basic"] == pytest.approx(10 * got["privacy_loss"]["measured"])
    # Ten times the stability, .99 by what was measured, or tanh(10ε/2), which is less there.
    together = math.tanh(5 * math.log(0.5 / sigmoid(-0.4)))
    assert bill["by_measured"]["total_variation"] == pytest.approx(together)
    assert together < 0.81 < 10 * (sigmoid(0.4) - 0.5)
    assert bill["by_guarantee"]["total_variation"] == pytest.approx(math.tanh(2.0))
    # Advanced composition says 8.6 for ten predictions, and basic is less; for a thousand it is the other way round.
    assert bill["by_guarantee"]["advanced"] == pytest.approx(4.0)
    small = data(table, *POINT, "--learner", "exponential:epsilon=.04", "--predictions", "1000")["predictions"][0]
    expected = 0.04 * math.sqrt(2000 * math.log(1e6)) + 40 * math.expm1(0.04)
    assert small["by_guarantee"]["advanced"] == pytest.approx(expected)
    assert small["by_guarantee"]["total_variation"] == 1.0
    assert bill["by_guarantee"]["total_variation"] <= math.tanh(bill["by_guarantee"]["basic"] / 2)
    assert bill["by_guarantee"]["optimal"] < bill["by_guarantee"]["basic"] == pytest.approx(4.0)
    # The first row of the class that moves most, and what it becomes.
    witness = got["witness"]["stability"]
    assert (witness["row"], witness["rows_alike"]) in {(1, 3), (5, 3)}
    assert witness["old"]["label"] == 1 - witness["new"]["label"]


def test_the_line_is_the_audit_of_the_same_arrays(table: str) -> None:
    learner = learners.build("stable", gamma=0.5)
    expected = audit(learner, hypotheses.build("thresholds"), X, Y)
    got = data(table, *LINE, "--learner", "stable:gamma=0.5", "--predictions", "3", "--slack", "0.001")
    assert got["kind"] == "exhaustive over order cells"
    assert got["stability"]["measured"] == expected.stability
    assert got["privacy_loss"] == {"measured": "Infinity", "guaranteed": "Infinity"}
    assert got["derived"] == {"subset_size": 3, "beta": 0.25, "gamma": 0.5}
    assert got["delta"][0]["measured"] == expected.delta(0.1)
    bill = got["predictions"][0]["by_measured"]
    assert bill["basic"] == bill["advanced"] == bill["optimal"] == "Infinity"
    assert bill["total_variation"] == pytest.approx(min(1.0, 3 * expected.stability))
    assert got["slack"] == 0.001


@pytest.mark.parametrize("learner", ["stable:gamma=0.5", "df_agnostic:epsilon=1,chunks=3", "erm"])
@pytest.mark.parametrize("quantity", ["stability", "privacy_loss"])
def test_the_row_that_is_named_shows_the_value(table: str, learner: str, quantity: str) -> None:
    got = data(table, *LINE, "--learner", learner)
    witness = got["witness"][quantity]
    i = ROWS.index(witness["row"])
    assert (X[i], Y[i]) == (witness["old"]["features"]["z"], witness["old"]["label"])
    x, y = list(X), list(Y)
    x[i], y[i] = witness["new"]["features"]["z"], witness["new"]["label"]
    built = learners.build(got["learner"].pop("kind"), **got["learner"])
    logs = []
    for sample in ((X, Y), (x, y)):
        answer = predict(built, hypotheses.build("thresholds"), *sample, [witness["query"]["z"]])
        logs.append(float((answer.log_p1 if witness["answer"] else answer.log_p0)[0]))
    assert [math.exp(v) for v in logs] == pytest.approx([witness["p"], witness["p_neighbour"]], abs=1e-12)
    change = abs(witness["p"] - witness["p_neighbour"]) if quantity == "stability" else abs(logs[0] - logs[1])
    assert change == pytest.approx(float(got[quantity]["measured"]), rel=1e-9)
    assert f"row {witness['row']} (z = {X[i]:g}, label {Y[i]}" in witness["text"]
    assert ("like it" in witness["text"]) == (witness["rows_alike"] > 1)


def test_for_people(table: str) -> None:
    result = asked(table, *LINE, "--learner", "stable:gamma=0.5,subset_size=2")
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    for words in (
        "people.csv: 6 rows (2 with a missing value left out); predicts y = 1 from z",
        "stable (gamma = 0.5, convention = proof, subset_size = 2) over thresholds; here subset_size = 2, beta = 0.25",
        "Exhaustive over order cells",
        "A prediction moves most where row ",
        "ε is infinite, and who sees it knows which it was not.",
        "privacy loss ε ∞ ∞ –",
        "Many predictions on this table cost at most",
        "Many predictions on any table of 6 rows cost at most, by the guarantee",
        "∞ is no gap in the audit",
    ):
        assert words in text
    assert "nan" not in text.lower()


def test_what_is_no_upper_bound_is_not_billed(table: str) -> None:
    few = [*LINE, "--learner", "df_agnostic:epsilon=1,chunks=3", "--neighbours", "5"]
    got = data(table, *few)
    assert (got["kind"], got["exhaustive"]) == ("lower bound", False)
    assert got["neighbours"]["tried"] == 5 < got["neighbours"]["possible"]
    assert all(bill["by_measured"] is None for bill in got["predictions"])
    text = " ".join(asked(table, *few).stdout.split())
    assert "A lower bound: 5 of" in text
    assert "raise --neighbours to try more" in text
    assert "what was measured is no upper bound" in text
    assert "on this table cost" not in text
    estimate = [
        *POINT,
        "--learner",
        "stable_flip:epsilon=1,alpha=0.2,subset_size=2",
        "--method",
        "mc",
        "--samples",
        "64",
    ]
    assert data(table, *estimate)["kind"] == "estimate"
    assert "An estimate from sampled subsets" in asked(table, *estimate).stdout
    plane = ["--features", "x,z", "--label", "y", "--hypotheses", "halfspaces", "--neighbours", "4"]
    text = asked(table, *plane, "--learner", "df_agnostic:epsilon=1,chunks=2").stdout
    assert "halfspaces tell more places apart than can be listed" in " ".join(text.split())


def test_a_prediction_that_nothing_moves(table: str) -> None:
    got = data(table, "--features", "x", "--label", "y", "--hypotheses", "table:matrix=[[1]]", "--learner", "erm")
    assert got["stability"]["measured"] == got["privacy_loss"]["measured"] == 0
    assert got["witness"]["stability"]["text"] == "A prediction moves most: no replacement that was tried changes any."
    assert got["predictions"][-1]["by_measured"]["basic"] == 0


def test_some_rows(table: str) -> None:
    few = [*LINE, "--learner", "erm", "--rows", "4"]
    one, two = data(table, *few, "--seed", "1"), data(table, *few, "--seed", "1")
    assert one == two
    assert one["rows"] == {"audited": 4, "usable": 6, "dropped": 2}
    assert len({json.dumps(data(table, *few, "--seed", str(s))["witness"]) for s in range(6)}) > 1
    assert "4 rows of 6, drawn by seed 1" in asked(table, *few, "--seed", "1").stdout
    assert data(table, *LINE, "--learner", "erm", "--rows", "6")["rows"]["audited"] == 6


def test_boxes_take_their_dimension_from_the_features(table: str) -> None:
    got = data(table, "--features", "x", "--features", "z", "--label", "y", "--hypotheses", "boxes", "--learner", "erm")
    assert got["hypotheses"] == {"kind": "boxes", "dimension": 2}
    assert got["stability"]["measured"] == 1.0
    assert set(got["witness"]["stability"]["query"]) == {"x", "z"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"--features": "zz"}, "--features zz: the table has no column 'zz'; did you mean 'z'?"),
        ({"--features": " , "}, "names no column"),
        ({"--features": "z,z"}, '--features z: "z" stands twice'),
        ({"--features": "x,z"}, "--features names 2 columns (x, z), and thresholds here takes 1 column; give 1"),
        ({"--learner": "two_point"}, "and thresholds here is no such pair; take complement_pair"),
        ({"--learner": "subsample:subset_size=2,inner=erm"}, 'give a table with a kind, as in { kind = "erm" }'),
        ({"--learner": "{gamma=1}"}, "--learner.kind: missing"),
        ({"--learner": "{kind=[1]}"}, "--learner.kind"),
        ({"--label": "z"}, "--label 'z': \"z\" is not binary"),
        ({"--label": "yy = 1"}, "did you mean 'y'?"),
        ({"--hypotheses": "treshold"}, 'unknown kind of hypotheses "treshold"; did you mean "thresholds"?'),
        ({"--hypotheses": "thresholds:points=2"}, "row 1 has z = 1.5 (and 5 more rows), which is outside"),
        ({"--learner": "stabel:gamma=1"}, 'unknown kind of learner "stabel"; did you mean "stable"?'),
        ({"--learner": "stable"}, "stable needs gamma"),
        ({"--learner": "stable_flip:epsilon=1"}, "--learner.alpha: missing"),
        ({"--learner": "stable:gama=1"}, 'unknown parameter of "stable" "gama"; did you mean "gamma"?'),
        ({"--learner": "stable:gamma='0.1'"}, "give a number > 0 without quotes"),
        ({"--learner": "stable:gamma=nan"}, "is not finite"),
        ({"--learner": "stable:gamma=1,gamma=2"}, "gamma stands twice"),
        ({"--learner": "stable:"}, "write for example stable:gamma=0.1"),
        ({"--learner": "stable:gamma"}, "'gamma' in 'stable:gamma' is no param=value"),
        ({"--learner": "subsample:subset_size=2,inner={erm"}, "lacks a closing }"),
        ({"--learner": "subsample:subset_size=2,inner={emr}"}, '--learner.inner.kind: unknown kind of learner "emr"'),
        ({"--learner": "stable:gamma=0.01"}, "stable is infeasible at n = 6: n' = ⌊0.01·6⌋ = 0 is below 1"),
        ({"--learner": "exponential:epsilon=1"}, "infinitely many; give points for a finite X"),
        ({"--method": "analytic"}, "analytic has closed forms for the cube"),
        ({"--rows": "7"}, "--rows 7: the table has 6 usable rows"),
        ({"--delta": "-1"}, "--delta -1: give a finite ε ≥ 0"),
        ({"--predictions": "0"}, "--predictions 0: give a number from 1 to 1000000"),
        ({"--slack": "1"}, "--slack 1: give a probability above 0 and below 1"),
        ({"TABLE": "peple.csv"}, "did you mean"),
    ],
)
def test_wrong_input_gets_one_message(table: str, changed: dict[str, str], message: str) -> None:
    options = {
        "--features": "z",
        "--label": "y",
        "--hypotheses": "thresholds",
        "--learner": "stable:gamma=0.5",
    } | changed
    path = str(Path(table).with_name(options.pop("TABLE"))) if "TABLE" in options else table
    result = asked(path, *(word for option in options.items() for word in option))
    assert result.exit_code != 0
    said = str(result.exception) if isinstance(result.exception, BadInput) else result.output
    assert message in " ".join(said.replace("│", " ").split()) or message in said
    assert "Traceback" not in said


def test_several_mistakes_are_said_together(table: str) -> None:
    result = asked(table, "--features", "z", "--label", "y", "--hypotheses", "boxs", "--learner", "stabel")
    assert isinstance(result.exception, BadInput)
    assert "2 problems" in str(result.exception)
    assert '"boxes"' in str(result.exception)
    assert '"stable"' in str(result.exception)


def test_a_stopped_audit_says_so(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(table_audits, "audit_table", stop)
    result = asked(table, *LINE, "--learner", "erm")
    assert isinstance(result.exception, Interrupted)
    assert result.exception.status == 130


def test_progress_is_said_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditing.time, "monotonic", iter([100.0, 110.0, 200.0, 210.0]).__next__)
    auditing._lines()(1000, 20_000)  # 1,000 in ten seconds: 19,000 more in 190
    assert capsys.readouterr().err == "1,000 of 20,000 neighbours tried, about 3.2 min left\n"
    auditing._lines()(0, 20_000)
    assert capsys.readouterr().err == "0 of 20,000 neighbours tried\n"
    monkeypatch.undo()
    auditing._lines()(1000, 20_000)
    assert capsys.readouterr().err == ""


def test_sections_on_a_command_line() -> None:
    assert inline("table: matrix=[[0,1],[1,1]]") == {"kind": "table", "matrix": [[0, 1], [1, 1]]}
    assert inline("table:path='a,b.csv'") == {"kind": "table", "path": "a,b.csv"}
    assert inline("table:path=folder/a.csv") == {"kind": "table", "path": "folder/a.csv"}
    assert inline("x:a=1e-3,b=-2,c=true,d=1.") == {"kind": "x", "a": 0.001, "b": -2, "c": True, "d": 1.0}
    inner = {"kind": "df_agnostic", "epsilon": 1, "chunks": 2}
    assert inline('s:inner={kind = "df_agnostic", epsilon = 1, chunks = 2}')["inner"] == inner
    assert inline("s:inner={df_agnostic:epsilon=1,chunks=2},n=3") == {"kind": "s", "inner": inner, "n": 3}
    assert inline("s:inner={kind=df_agnostic,epsilon=1,chunks=2},n=3") == {"kind": "s", "inner": inner, "n": 3}
    assert inline("s:inner={epsilon=1, kind = 'df_agnostic', chunks=2}")["inner"] == inner
    assert inline("{kind=erm}") == {"kind": "erm"}


def test_costs_of_nothing_and_everything() -> None:
    (free,) = table_audits.costs(0.0, 0.0, (50,), 1e-6)
    assert (free.total_variation, free.basic, free.advanced, free.optimal) == (0, 0, 0, 0)
    (all_,) = table_audits.costs(1.0, math.inf, (50,), 1e-6)
    assert (all_.total_variation, all_.basic, all_.advanced, all_.optimal) == (1, *[math.inf] * 3)
    assert np.isfinite(table_audits.costs(0.5, 2.0, (10**6,), 1e-6)[0].optimal)


def test_what_stability_bounds_where_nothing_is_private(table: str) -> None:
    said = {
        kind: " ".join(asked(table, *LINE, "--learner", kind).stdout.split()) for kind in ("erm", "stable:gamma=.5")
    }
    assert "stability alone bounds the risk" in said["stable:gamma=.5"]
    assert "stability alone bounds the risk" not in said["erm"]
    assert "stability bounds no risk either" in said["erm"]


def test_what_follows_is_said_in_full(table: str) -> None:
    # β = min(ε/2, d/(αn))/2 with d = 1: it follows from the class.
    outline = "private:epsilon=1,alpha=.5,eta=1,convention=outline,chunks=4"
    got = data(table, *LINE, "--learner", outline)
    assert got["derived"]["beta"] == pytest.approx(min(0.5, 1 / (0.5 * 6)) / 2)
    assert got["derived"].keys() == {"subset_size", "chunks", "beta", "vote_epsilon"}
    inner = data(table, *LINE, "--learner", f"subsample:subset_size=5,inner={{{outline}}}")["derived"]["inner"]
    assert inner["beta"] == pytest.approx(min(0.5, 1 / (0.5 * 5)) / 2)
    for chunks, words in ((4, "chunk_size = 1 or 2"), (3, "chunk_size = 2")):
        text = " ".join(asked(table, *LINE, "--learner", f"df_agnostic:epsilon=1,chunks={chunks}").stdout.split())
        assert f"here chunks = {chunks}, {words}" in text


def test_a_row_is_shown_with_all_its_digits(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("z,y\n14.29118683,1\n14.2911111,0\n")
    witness = data(str(path), *LINE, "--learner", "erm")["witness"]["stability"]
    assert f"z = {witness['old']['features']['z']!r}," in witness["text"]
    assert witness["old"]["features"]["z"] in (14.29118683, 14.2911111)


def test_infinity_is_not_a_missing_value(tmp_path: Path) -> None:
    data = tmp_path / "people.csv"
    data.write_text("age,ill\n10,0\n-inf,1\n,0\n30,1\ninf,0\n")
    with pytest.raises(BadInput, match=r'"age" is -inf in row 2 \(and in 1 more\); leave such rows out'):
        load_spec(
            {
                "trials": 1,
                "n": 2,
                "hypotheses": {"kind": "thresholds"},
                "learner": {"kind": "erm"},
                "table": {"path": str(data), "features": ["age"], "label": "ill"},
            }
        )
