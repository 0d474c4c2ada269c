"""Specs that are wrong: one clear message with the place, the value and the cure; nothing is written."""

import json
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from predcube.pipeline.cli.app import main
from predcube.pipeline.failures import BadInput
from predcube.pipeline.spec import load_spec, problems
from predcube.storage import StoreError
from predcube.storage.place import local_path

SPEC: dict[str, Any] = {
    "name": "small",
    "kind": "prediction",
    "seed": 7,
    "trials": 4,
    "hypotheses": {"kind": "thresholds", "points": 9},
    "distribution": {"kind": "threshold", "at": 4, "noise": 0.1},
    "learner": {"kind": "stable", "gamma": 0.1},
    "measure": {"quantities": ["excess_error"]},
    "sweep": {"n": [20, 40]},
}
EXPONENTIAL = {"kind": "exponential", "label": "exponential", "epsilon": 1.0}
ROWS = "weight,sex,died,note\n70,0,1,a\n80,1,0,b\n60,0,2,d\n90,1,1,e\n"


def changed(path: str, value: Any) -> dict[str, Any]:
    """``SPEC`` with the value at a dotted path replaced, or taken out where it is ``...``."""
    whole = deepcopy(SPEC)
    *parents, last = path.split("/")
    table = whole
    for parent in parents:
        table = table.setdefault(parent, {})
    if value is ...:
        del table[last]
    else:
        table[last] = value
    return whole


BAD = {
    "an unknown key": ("trails", 3, "trails: ", 'did you mean "trials"?'),
    "an unknown key in a section": ("learner/gama", 0.1, "learner.gama: ", 'did you mean "gamma"?'),
    "an unknown option": ("measure/neighbors", 5, "measure.neighbors: ", 'did you mean "neighbours"?'),
    "an unknown kind": ("learner/kind", "stabel", "learner.kind: ", 'did you mean "stable"?'),
    "no kind": ("learner/kind", ..., "learner.kind: missing; give one of ", "stable"),
    "a kind that is no text": ("learner/kind", 3, "learner.kind: 3 is an integer; give one of ", "stable"),
    "an unknown quantity": ("measure/quantities", ["stabilty"], "measure.quantities[0]: ", 'did you mean "stability"?'),
    "a quantity twice": ("measure/quantities", ["error", "error"], "measure.quantities[1]: ", "stands twice"),
    "no quantities": ("measure/quantities", [], "measure.quantities: ", "empty"),
    "an unknown method": ("measure/method", "laplce", "measure.method: ", 'did you mean "laplace"?'),
    "an unknown target": ("measure/targets", {"excess": 0.1}, "measure.targets.excess: ", "excess_error"),
    "a target not measured": ("measure/targets", {"stability": 0.1}, "measure.targets.stability: ", "is not measured"),
    "a confidence of 1": ("measure/targets", {"confidence": 1}, "measure.targets.confidence: 1 is out of range", "< 1"),
    "a number in quotes": ("learner/gamma", "0.1", 'learner.gamma: "0.1" is a string', "without quotes"),
    "a boolean for a number": ("learner/gamma", True, "learner.gamma: true is a boolean", "number > 0"),
    "a boolean for an integer": ("trials", True, "trials: true is a boolean", "an integer ≥ 1"),
    "a float for an integer": ("trials", 4.0, "trials: 4.0 is a float", "an integer ≥ 1"),
    "no trials": ("trials", 0, "trials: 0 is out of range", "an integer ≥ 1"),
    "trials left out": ("trials", ..., "trials: missing", "an integer ≥ 1"),
    "γ = 0": ("learner/gamma", 0, "learner.gamma: 0 is out of range", "number > 0"),
    "γ < 0": ("learner/gamma", -0.1, "learner.gamma: -0.1 is out of range", "number > 0"),
    "γ not a number": ("learner/gamma", float("nan"), "learner.gamma: nan is not finite", "number > 0"),
    "no γ": ("learner/gamma", ..., "learner: ", "gamma"),
    "n' given twice": (
        "learner",
        {"kind": "stable", "gamma": 0.1, "subset_size": 2, "subset_fraction": 0.1},
        "learner: ",
        "give one of them",
    ),
    "a section that is no table": ("learner", "stable", 'learner: "stable" is a string', "give a table"),
    "no learner": ("learner", ..., "learner: missing; give [learner]", "stable"),
    "no law": ("distribution", ..., "distribution: missing; give [distribution]", "[table]"),
    "a law and a table": (
        "table",
        {"path": "rows.csv", "features": ["weight"], "label": "sex"},
        "table: [distribution] and [table] both give the distribution",
        "keep one",
    ),
    "noise above ½": ("distribution/noise", 0.6, "distribution.noise: 0.6 is out of range", "≤ 0.5"),
    "a law that does not fit X": (
        "distribution",
        {"kind": "joint", "table": [[0.5, 0.5]]},
        "distribution: ",
        "9 points",
    ),
    "probabilities that do not sum to 1": (
        "distribution",
        {"kind": "joint", "table": [[0.5, 0.4]] * 9},
        "distribution: ",
        "sum to 8.1",
    ),
    "no n": ("sweep", {}, "n: missing; give the sample size", "n = 100"),
    "n in place": ("n", [20, 40], "n: [20, 40] is a list", "under [sweep]"),
    "an empty axis": ("sweep/n", [], "sweep.n: the axis is empty", "at least one value"),
    "a value twice": ("sweep/n", [20, 40, 20], "sweep.n: 20 stands 2 times", "keep one"),
    "a value twice but for its type": ("sweep/learner.gamma", [1, 1.0], "sweep.learner.gamma: 1.0 stands", "keep one"),
    "a value twice but for rounding": (
        "sweep/learner.gamma",
        [0.3, 0.1 + 0.2],
        "sweep.learner.gamma: 0.3 and 0.30000000000000004 are one number",
        "keep one",
    ),
    "NaN on an axis": ("sweep/learner.gamma", [0.1, float("nan")], "sweep.learner.gamma[1]: nan is not finite", "give"),
    "infinity on an axis": ("sweep/n", [20, float("inf")], "sweep.n[1]: inf is not finite", "an integer ≥ 1"),
    "a bad value on an axis": ("sweep/learner.gamma", [0.1, -1], "sweep.learner.gamma[1]: -1 is out of range", "> 0"),
    "types mixed on an axis": (
        "sweep/learner.gamma",
        ["auto", 0.1],
        'sweep.learner.gamma[0]: "auto" is a string; give a number > 0',
        "0",
    ),
    "a float on an integer axis": ("sweep/n", [20, 40.0], "sweep.n[1]: 40.0 is a float", "an integer ≥ 1"),
    "booleans on an axis": ("sweep/n", [True], "sweep.n[0]: true is a boolean", "an integer ≥ 1"),
    "a list on an axis": ("sweep/n", [[20]], "sweep.n[0]: [20] is a list", "an integer ≥ 1"),
    "one value": ("sweep/n", 20, "sweep.n: 20 is one value", "a list of values"),
    "an unknown key of a range": (
        "sweep/n",
        {"start": 20, "stop": 80, "nun": 3},
        "sweep.n.nun: ",
        'did you mean "num"?',
    ),
    "a log axis through 0": (
        "sweep/distribution.noise",
        {"start": 0, "stop": 0.4, "num": 3, "spacing": "log"},
        "sweep.distribution.noise: a log axis needs ends > 0",
        "linear",
    ),
    "steps between integers": (
        "sweep/n",
        {"start": 20, "stop": 25, "num": 3},
        "sweep.n: 3 equal steps from 20 to 25 pass through 22.5",
        "choose num",
    ),
    "one step of a range": (
        "sweep/n",
        {"start": 20, "stop": 25, "num": 1},
        "sweep.n: one value cannot reach",
        "num ≥ 2",
    ),
    "an unknown path": ("sweep/lerner.gamma", [0.1], "sweep.lerner.gamma: ", 'did you mean "learner"?'),
    "a path too long": ("sweep/learner.gamma.x", [0.1], "sweep.learner.gamma.x: ", '"learner.gamma"'),
    "a section for a path": ("sweep/learner", [0.1], "sweep.learner: ", '"learner.<parameter>"'),
    "a parameter no learner takes": (
        "sweep/learner.epsilon",
        [0.1],
        'sweep.learner.epsilon: no learner of the sweep takes "epsilon"',
        "remove the axis",
    ),
    "a parameter no learner takes, nearly": (
        "sweep/learner.gama",
        [0.1],
        "sweep.learner.gama: ",
        'did you mean "gamma"?',
    ),
    "the seed as an axis": ("sweep/seed", [1, 2], "sweep.seed: seed cannot be an axis", "raise trials"),
    "trials as an axis": ("sweep/trials", [1, 2], "sweep.trials: trials cannot be an axis", "dimension"),
    "the name as an axis": ("sweep/name", ["a"], "sweep.name: name cannot be an axis", "its own file"),
    "quantities as an axis": ("sweep/measure.quantities", [["error"]], "sweep.measure.quantities: ", "whole sweep"),
    "a section and an axis of sections": (
        "sweep/learner",
        [EXPONENTIAL],
        "sweep.learner: [learner] and [[sweep.learner]] both give the learner",
        "keep one",
    ),
    "n' above n in every cell": (
        "learner",
        {"kind": "stable", "gamma": 0.1, "subset_size": 50},
        "sweep.n: all 2 cells are infeasible, nothing would be run: ",
        "subset_size = 50 is above n = 20",
    ),
    "a method that the class has not": (
        "measure/method",
        "analytic",
        "sweep.n: all 2 cells are infeasible, nothing would be run: ",
        "analytic",
    ),
    "nothing measured": ("measure/quantities", ["bounds"], "measure.quantities: ", "add error"),
    "far too many trials": ("trials", 10**9, "trials: 1000000000 is out of range", "≤ 10000000"),
    "a grid too large": (
        "sweep",
        {
            "n": {"start": 1, "stop": 10000, "num": 10000},
            "learner.gamma": {"start": 0.0001, "stop": 0.5, "num": 5000},
        },
        "sweep: the grid has 50000000 cells",
        "shorten an axis",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_one_mistake_is_one_message_with_its_place_and_its_cure(what: str) -> None:
    path, value, start, cure = BAD[what]
    spec = changed(path, value)
    with pytest.raises(BadInput) as caught:
        load_spec(spec)
    message = str(caught.value)
    assert caught.value.status == 2
    assert message.startswith("spec: ")
    assert "problems" not in message, message
    assert start in message
    assert cure in message
    [problem] = problems(spec)
    assert message == f"spec: {problem}"


SECTIONS = {
    "no label": ([{"kind": "erm"}], "sweep.learner[0].label: missing", "give each section a label"),
    "a label twice": (
        [{"label": "a", "kind": "erm"}, {"label": "a", "kind": "stable", "gamma": 0.1}],
        'sweep.learner[1].label: "a" stands twice',
        "its own",
    ),
    "a value among tables": ([EXPONENTIAL, 3], "sweep.learner[1]: 3 is an integer", "give a table"),
    "an unknown key": ([{**EXPONENTIAL, "epsilom": 1}], "sweep.learner[0].epsilom: ", 'did you mean "epsilon"?'),
    "a section that does not build": ([{"label": "a", "kind": "stable"}], "sweep.learner[0]: ", "gamma"),
    "a value that stands wrong": (
        [{**EXPONENTIAL, "epsilon": -1}],
        "sweep.learner[0].epsilon: -1 is out of range",
        "number > 0",
    ),
}


@pytest.mark.parametrize("what", SECTIONS)
def test_a_section_axis_says_which_section_is_wrong(what: str) -> None:
    written, start, cure = SECTIONS[what]
    spec = {**SPEC, "sweep": {"n": [20], "learner": written}}
    del spec["learner"]
    [problem] = problems(spec)
    assert str(problem).startswith(start)
    assert cure in str(problem)


def test_a_section_that_sets_what_an_axis_sets_is_refused() -> None:
    sections = [{"label": "a", "kind": "stable", "gamma": 0.1}, EXPONENTIAL]
    spec = {**SPEC, "sweep": {"n": [20], "learner": sections, "learner.gamma": [0.1, 0.2]}}
    del spec["learner"]
    [problem] = problems(spec)
    assert str(problem) == "sweep.learner[0].gamma: set here and by the axis sweep.learner.gamma; keep one"


def test_every_mistake_is_reported_at_once() -> None:
    spec = {
        "trails": 4,
        "seed": "7",
        "hypotheses": {"kind": "tresholds"},
        "distribution": {"kind": "threshold", "noise": 0.7},
        "learner": {"kind": "stable", "gamma": 0},
        "measure": {"quantities": ["eror"], "method": "fast"},
        "sweep": {"n": [], "learner.epsilon": [1], "seed": [1]},
    }
    paths = [p.path for p in problems(spec)]
    assert paths == [
        "trails",
        "seed",
        "measure.method",
        "measure.quantities[0]",
        "sweep.seed",
        "hypotheses.kind",
        "distribution.noise",
        "distribution.at",
        "learner.gamma",
        "sweep.n",
        "sweep.learner.epsilon",
    ]
    with pytest.raises(BadInput, match=f"spec: {len(paths)} problems\n  trails: "):
        load_spec(spec)


TABLES = {
    "a missing file": ({"path": "nowhere.csv"}, "table.path: ", "nowhere.csv"),
    "a missing column": ({"features": ["wieght"]}, "table.features[0]: ", "'weight'"),
    "a column of text": ({"features": ["note"]}, "table.features[0]: ", "numbers are needed"),
    "a label that is not there": ({"label": "dead"}, "table.label: ", "'died'"),
    "a label that is not binary": (
        {"label": "died"},
        'table.label: "died" is not binary: it has 3 values (1, 0, 2)',
        "died = 1",
    ),
    "a label of text": ({"label": "note"}, 'table.label: "note" is not binary', "note = 'a'"),
    "a label that reads a file": ({"label": "(select 1)"}, "table.label: ", "not allowed"),
    "no features": ({"features": []}, "table.features: ", "empty"),
    "a table of a kind": ({"kind": "csv"}, "table.kind: ", "remove it"),
}


@pytest.mark.parametrize("what", TABLES)
def test_what_is_wrong_with_a_table(what: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS, encoding="utf-8")
    change, start, cure = TABLES[what]
    table = {"path": "rows.csv", "features": ["weight"], "label": "sex", **change}
    table["path"] = str(tmp_path / table["path"])
    spec = {
        **SPEC,
        "hypotheses": {"kind": "thresholds"},
        "learner": {"kind": "erm"},
        "sweep": {"n": [2]},
        "table": table,
    }
    del spec["distribution"]
    [problem] = problems(spec)
    assert str(problem).startswith(start)
    assert cure in str(problem)


def test_a_sample_larger_than_the_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS, encoding="utf-8")
    spec = {**SPEC, "hypotheses": {"kind": "thresholds"}, "sweep": {"n": [50]}}
    spec["table"] = {"path": str(tmp_path / "rows.csv"), "features": ["weight"], "label": "sex"}
    del spec["distribution"]
    [problem] = problems(spec)
    assert "sweep.n: the cell is infeasible" in str(problem)
    assert "4 rows" in str(problem)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[sweep]\nn = [1]\nlearner.gamma = [1]",
            "line 3: learner.gamma without quotes is read as nested tables; quote",
        ),
        ('[sweep]\nlearner.gamma = [1]\n[[sweep.learner]]\nlabel = "a"', 'quote the path: "learner.gamma" = …'),
        ("trials = 3\ntrials = 4\n", 'line 2: "trials = 4" is already set above'),
        ("name = stable\n", 'text is written in quotes: "stable"'),
        ("n = [1, 2\ntrials = 3\n", "line 2: not TOML, unclosed array"),
    ],
)
def test_what_toml_refuses_is_said_with_its_line_and_a_cure(text: str, words: str) -> None:
    if text.startswith("[sweep]\nn = [1]"):
        text = text.replace("n = [1]", "learner = 1")
    with pytest.raises(BadInput) as caught:
        load_spec(text)
    assert words in str(caught.value)


def test_a_spec_that_is_not_there_is_said() -> None:
    with pytest.raises(BadInput, match=r"nowhere\.toml: no such file"):
        load_spec("nowhere.toml")
    assert "no such file" in str(problems("nowhere.toml")[0])


@pytest.fixture
def predcube(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Runs the command line in an empty folder: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["predcube", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


TEXT = """
trials = 4
n = 20
[hypotheses]
kind = "thresholds"
points = 9
[distribution]
kind = "threshold"
at = 4
[learner]
kind = "stable"
gamma = 0.1
"""


def test_check_prints_every_problem_and_writes_nothing(predcube: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(TEXT.replace("gamma = 0.1", "gama = 0.1").replace("= 4", '= "4"'))
    status, out, err = predcube("check", "bad.toml")
    assert (status, out) == (2, "")
    assert err.splitlines()[0] == "predcube: bad.toml: 3 problems"
    assert [line.split(":")[0].strip() for line in err.splitlines()[1:]] == [
        "trials",
        "distribution.at",
        "learner.gama",
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["bad.toml"]


def test_check_and_plan_of_a_good_spec(predcube: Any, tmp_path: Path) -> None:
    (tmp_path / "good.toml").write_text(TEXT + '[sweep]\n"distribution.noise" = [0, 0.1]\n')
    assert predcube("check", "good.toml") == (0, "good.toml: good; 2 cells (2 noise) × 4 trials\n", "")
    status, out, err = predcube("plan", "good.toml", "--json")
    assert (status, err) == (0, "")
    plan = json.loads(out)
    assert (plan["cells"], plan["infeasible_cells"]) == (2, 0)
    assert [c["noise"] for c in plan["grid"]] == [0.0, 0.1]
    status, out, err = predcube("plan", "good.toml")
    assert (status, err) == (0, "")
    assert "2 (2 noise), 4 trials each" in out
    assert [p.name for p in tmp_path.iterdir()] == ["good.toml"]


def test_a_plan_over_budget_is_refused_with_its_status(predcube: Any, tmp_path: Path) -> None:
    (tmp_path / "good.toml").write_text(TEXT.replace("trials = 4", "trials = 100000"))
    status, out, err = predcube("plan", "good.toml", "--budget", "0.000001")
    assert (status, out) == (4, "")
    assert "core-hours, above the budget of 1e-06" in err
    assert "raise the budget" in err
    assert [p.name for p in tmp_path.iterdir()] == ["good.toml"]


def test_a_traceback_is_never_shown(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from predcube.pipeline.cli.app import main; main()", "check", "nowhere.toml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "predcube: nowhere.toml: no such file; give the path of a sweep spec (TOML)\n"


MISTYPED = {
    "a bare decimal": ("noise = .7", "a number begins with a digit: 0.7"),
    "a bare decimal in a list": ("noise = [.7, 1]", "a number begins with a digit: 0.7"),
    "a decimal comma": ("gamma = 0,1  # γ", "a decimal point is a point: 0.1"),
}


@pytest.mark.parametrize(("line", "cure"), MISTYPED.values(), ids=MISTYPED)
def test_a_number_that_toml_does_not_read_is_written_out(line: str, cure: str) -> None:
    with pytest.raises(BadInput, match="line 2: not TOML") as refused:
        load_spec(f"n = 3\n{line}\n")
    assert cure in str(refused.value)


@pytest.mark.parametrize("entry", [2, 0.5, "a"])
def test_an_entry_of_a_matrix_that_is_no_label_is_said(entry: Any) -> None:
    spec = changed("hypotheses", {"kind": "table", "matrix": [[0, 1], [0, entry]]})
    [mistake] = [m for m in problems(spec) if m.path.startswith("hypotheses")]
    assert mistake.path == "hypotheses.matrix[1][1]"
    assert mistake.message.endswith("give a list of lists of 0 or 1")


DEGENERATE = {
    "a label that never varies": ({"features": ["weight"], "label": "sex = 2"}, "table.label", "is 0 in every row"),
    "a feature twice": ({"features": ["weight", "weight"], "label": "sex"}, "table.features[1]", "stands twice"),
}


@pytest.mark.parametrize(("given", "place", "said"), DEGENERATE.values(), ids=DEGENERATE)
def test_a_table_with_nothing_to_learn_from_is_refused(
    given: dict[str, Any], place: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    spec = changed("distribution", ...) | {"table": {"path": str(tmp_path / "rows.csv"), **given}, "sweep": {"n": [2]}}
    [mistake] = problems(spec | {"hypotheses": {"kind": "thresholds"}})
    assert (mistake.path, said in mistake.message) == (place, True)


@pytest.mark.parametrize("path", ["n", "hypotheses/points"])
def test_a_size_that_no_memory_holds_is_refused_before_anything_is_drawn(path: str) -> None:
    spec = changed(path, 10**12)
    [mistake] = problems(spec | {"sweep": {}} if path == "n" else spec)
    assert (mistake.path, "is out of range" in mistake.message) == (path.replace("/", "."), True)


MISUSED = {
    "a word for a number": (["plan", "s.toml", "--workers", "two"], "--workers two: should be a valid integer"),
    "a number out of range": (
        ["plan", "s.toml", "--budget", "-1"],
        "--budget -1: should be greater than or equal to 0",
    ),
    "an unknown format": (["query", "s", "--format", "xml"], "--format xml: must be one of 'table', 'csv'"),
    "an unknown option": (["run", "s.toml", "--extnd"], "no such option: --extnd"),
    "a missing option": (["run", "s.toml"], "missing option '--store'"),
    "an unknown command": (["runn"], "no such command 'runn'"),
}


@pytest.mark.parametrize(("arguments", "said"), MISUSED.values(), ids=MISUSED)
def test_misused_options_get_one_line(predcube: Any, arguments: list[str], said: str) -> None:
    status, out, err = predcube(*arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"predcube: {said}")
    assert "--help" in err


@pytest.mark.parametrize("budget", ["nan", "-1"])
def test_a_budget_that_is_none_is_refused(predcube: Any, tmp_path: Path, budget: str) -> None:
    (tmp_path / "good.toml").write_text(TEXT)
    status, out, err = predcube("run", "good.toml", "--store", "s.zarr", "--cluster", "serial", "--budget", budget)
    assert (status, out) == (2, "")
    assert err == f"predcube: budget {budget}: must be at least 0; give core-hours, as in --budget 0.5\n"
    assert [p.name for p in tmp_path.iterdir()] == ["good.toml"]


def test_a_home_folder_in_a_store_is_the_users_and_not_a_new_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_path("~/cube.zarr") == tmp_path / "cube.zarr"
    with pytest.raises(StoreError, match="no such home folder"):
        local_path("~nobody-of-that-name/cube.zarr")
