"""Specs of predictability sweeps: their words as the contract has them; one message with its cure for each mistake."""

from pathlib import Path
from typing import Any

import pytest

from predcube.pipeline.spec import from_resolved, load_spec, problems, resolved, spec_hash
from predcube.pipeline.spec.canonical import difference

TABLE = """seqn,sex,age,weight,gain,died,quit
1,0,42,79.04,-10.1,0,0
2,0,36,58.63,2.6,0,1
3,1,56,56.81,9.41,1,0
4,1,68,59.42,,0,1
5,0,40,87.09,4.9,1,0
6,1,43,99.0,4.4,0,1
"""
CONTRACT = """
name   = "people"
kind   = "predictability"
seed   = 7

table   = { path = "people.csv" }
query   = { stayed = "quit = 0" }
release = { kind = "mean", columns = ["age", "weight"] }
process = { kind = "random_shard", fraction = 0.3 }
noise   = { kind = "none" }
measure = { loss = "squared" }
"""
BASE: dict[str, Any] = {
    "kind": "predictability",
    "table": {"path": "people.csv"},
    "query": {"stayed": "quit = 0"},
    "release": {"kind": "mean", "columns": ["age", "weight"]},
    "process": {"kind": "random_shard", "fraction": 0.3},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "people.csv").write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def changed(**changes: Any) -> dict[str, Any]:
    return {k: v for k, v in {**BASE, **changes}.items() if v is not None}


def test_the_contracts_example_loads_as_it_is_written(folder: Path) -> None:
    (folder / "spec.toml").write_text(CONTRACT)
    sweep = load_spec(folder / "spec.toml")
    assert (sweep.kind, sweep.trials, sweep.seed, sweep.shape) == ("predictability", 1, 7, ())
    cell = sweep.cell(())
    assert cell.sections["query"] == {"names": ["stayed"], "expressions": ["(quit = 0)"]}
    assert cell.sections["process"] == {"kind": "random_shard", "fraction": 0.3, "target": "unseen"}
    assert cell.sections["noise"] == {"kind": "none"}
    assert cell.measure == {
        "loss": "squared",
        "convention": "corrected",
        "draws": 1000,
        "family": "finite",
        "radius": 1.0,
    }
    assert sweep.quantities[:7] == ("n", "p", "rho2", "gain", "r", "sharp", "correlated")
    assert sweep.quantities[7:] == ("cauchy_schwarz", "paper", "utility_cost", "rank", "condition", "dropped_rows")


def test_a_resolved_sweep_comes_back_with_its_queries_in_order() -> None:
    sweep = load_spec(changed(query={"z": "quit = 0", "a": "died = 1"}, noise={"kind": "calibrated", "level": 1}))
    again = from_resolved(resolved(sweep))
    assert spec_hash(again) == spec_hash(sweep)
    assert again.cell(()).sections["query"]["names"] == ["z", "a"]


def test_two_spellings_of_an_expression_are_one_sweep() -> None:
    one, other = (load_spec(changed(query={"q": text})) for text in ("quit=0 and age>40", "quit = 0  AND (age > 40)"))
    assert spec_hash(one) == spec_hash(other)


def test_the_rows_of_a_table_are_part_of_the_sweep(folder: Path) -> None:
    before = load_spec(BASE)
    (folder / "people.csv").write_text(TABLE.replace("42", "43"))
    after = load_spec(BASE)
    assert difference(resolved(before), resolved(after)) == [
        "table: the table is no longer the one that the store was made of"
    ]


def test_categories_are_a_family_of_the_values_there_are() -> None:
    sweep = load_spec(changed(query={"age": {"categories": "sex"}}))
    assert sweep.cell(()).sections["query"] == {
        "names": ["age = 0", "age = 1"],
        "expressions": ["(sex = 0)", "(sex = 1)"],
    }


def test_transitions_may_lie_in_a_file(folder: Path) -> None:
    (folder / "moves.csv").write_text("from,1,0\n0,0.25,0.75\n1,0.5,0.5\n")
    chain = {"kind": "markov", "column": "sex", "steps": 5}
    sweep = load_spec(changed(process={**chain, "transitions": "moves.csv"}))
    written = {"labels": ["0", "1"], "matrix": [[0.75, 0.25], [0.5, 0.5]]}
    assert sweep.cell(()).sections["process"]["transitions"] == written
    assert spec_hash(sweep) == spec_hash(load_spec(changed(process={**chain, "transitions": written})))


def test_stacks_axes_and_sections_of_every_role() -> None:
    members = [{"kind": "mean", "columns": ["age"]}, {"kind": "linear", "target": "gain", "features": ["age"]}]
    sweep = load_spec(
        changed(
            release=None,
            process=None,
            noise=None,
            sweep={
                "release": [
                    {"label": "both", "kind": "stack", "releases": members},
                    {"label": "line", "kind": "ridge", "target": "gain", "features": ["age"]},
                ],
                "release.l2": [0.1, 1],
                "process": [
                    {"label": "iid", "kind": "iid", "size": 3},
                    {"label": "shard", "kind": "random_shard"},
                ],
                "process.fraction": [0.2, 0.4],
                "noise.kind": ["calibrated", "isotropic"],
                "noise.level": [0.5],
                "noise.sd": [1, 2],
                "measure.loss": ["squared", "log"],
            },
        )
    )
    assert [a.name for a in sweep.axes] == [
        "release",
        "l2",
        "process",
        "fraction",
        "kind",
        "level",
        "sd",
        "loss",
    ]
    cell = sweep.cell((1, 1, 1, 0, 1, 0, 1, 1))
    assert cell.sections["release"]["l2"] == 1.0
    assert cell.sections["process"] == {"kind": "random_shard", "fraction": 0.2, "target": "unseen"}
    assert cell.sections["noise"] == {"kind": "isotropic", "sd": 2.0}
    assert cell.measure["loss"] == "log"
    assert sweep.cell((0, 0, 0, 0, 0, 0, 0, 0)).sections["release"]["releases"][0]["columns"] == ("age",)
    assert any("release.l2 applies to ridge" in note for note in sweep.notes)


MARKOV = {"kind": "markov", "column": "sex", "steps": 5}
BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no table": ({"table": None}, "table: missing; give table = {", "CSV"),
    "no query": ({"query": None}, "query: missing; give query = {", "SQL"),
    "an empty query": ({"query": {}}, "query: empty", "smoker"),
    "no release": ({"release": None}, "release: missing", "linear"),
    "no process": ({"process": None}, "process: missing", "random_shard"),
    "no such file": ({"table": {"path": "peple.csv"}}, "table.path: there is no table", "did you mean 'people.csv'?"),
    "a key too many": ({"table": {"path": "people.csv", "rows": 3}}, 'table.rows: unknown key "rows"', "path"),
    "a table with a kind": ({"table": {"kind": "csv", "path": "people.csv"}}, "table.kind: [table]", "remove it"),
    "a misspelt column": ({"query": {"a": "qiut = 1"}}, "query.a: expression 'qiut = 1'", "did you mean 'quit'?"),
    "two statements": ({"query": {"a": "quit; drop table x"}}, "query.a: expression", "syntax error"),
    "a subquery": ({"query": {"a": "(select 1)"}}, "query.a: expression", "subqueries are not allowed"),
    "a text": ({"query": {"a": "'b'"}}, "query.a: expression", "compare it"),
    "a number for an expression": ({"query": {"a": 3}}, "query.a: 3 is an integer", "in quotes"),
    "an infinite value": ({"query": {"a": "age / 0"}}, "query.a: expression 'age / 0' is inf", "make it NULL"),
    "categories of a fraction": ({"query": {"a": {"categories": "gain"}}}, "query.a: column 'gain'", "integers"),
    "a column of a release": (
        {"release": {"kind": "mean", "columns": ["age", "wieght"]}},
        "release.columns[1]: expression 'wieght'",
        "did you mean 'weight'?",
    ),
    "a kind of release": ({"release": {"kind": "means"}}, 'release.kind: unknown kind of release "means"', '"mean"?'),
    "a target among the features": (
        {"release": {"kind": "linear", "target": "age", "features": ["age"]}},
        "release: linear: 'age' is the target and a feature",
        "take it out",
    ),
    "a member of a stack": (
        {"release": {"kind": "stack", "releases": [{"kind": "mean", "columns": ["ag"]}]}},
        "release.releases[0].columns[0]: expression 'ag'",
        "did you mean 'age'?",
    ),
    "a kind in a stack": (
        {"release": {"kind": "stack", "releases": [{"kind": "linaer"}]}},
        'release.releases[0].kind: unknown kind of release "linaer"',
        'did you mean "linear"?',
    ),
    "an amount left out": ({"process": {"kind": "random_shard"}}, "process: random_shard needs", "fraction = 0.3"),
    "a fraction above 1": (
        {"process": {"kind": "random_shard", "fraction": 1.5}},
        "process.fraction: 1.5 is out of range",
        "< 1",
    ),
    "a column of weights": (
        {"process": {"kind": "weighted", "column": "wieght", "size": 3}},
        "process.column: expression 'wieght'",
        "did you mean 'weight'?",
    ),
    "groups of an expression": (
        {"process": {"kind": "whole_shards", "column": "age > 40", "count": 1}},
        "process.column: 'age > 40' is an expression",
        "one column",
    ),
    "unseen rows of draws with replacement": (
        {"process": {"kind": "iid", "size": 3, "target": "unseen"}},
        'process.target: unknown target "unseen"',
        "all",
    ),
    "members of a column that is not there": (
        {"process": {"kind": "random_shard", "fraction": 0.5, "target": "sexx = 1"}},
        "process.target: expression 'sexx = 1'",
        "did you mean 'sex'?",
    ),
    "transitions that do not sum to 1": (
        {"process": {**MARKOV, "transitions": {"labels": ["0", "1"], "matrix": [[0.5, 0.6], [0.5, 0.5]]}}},
        "process: markov: the transitions of state '0' sum to 1.1",
        "not to 1",
    ),
    "transitions that are not there": (
        {"process": {**MARKOV, "transitions": "moves.csv"}},
        "process.transitions: there is no table at 'moves.csv'",
        "check the path",
    ),
    "no sensitivity": (
        {"noise": {"kind": "laplace", "epsilon": 1}},
        "noise.sensitivity: missing",
        "give a value",
    ),
    "negative noise": ({"noise": {"kind": "isotropic", "sd": -1}}, "noise.sd: -1 is out of range", "≥ 0"),
    "τ of the squared loss": ({"measure": {"tau": 0.1}}, "measure.tau: τ is of the log loss", 'loss = "log"'),
    "a quantity": (
        {"measure": {"quantities": ["shrap"]}},
        'measure.quantities[0]: unknown quantity "shrap"',
        '"sharp"?',
    ),
    "an option of the other kind": ({"measure": {"method": "mc"}}, 'measure.method: unknown option "method"', "loss"),
    "a sample size": ({"n": 3}, 'n: unknown key "n"', "table"),
    "an axis of n": ({"sweep": {"n": [1, 2]}}, 'sweep.n: unknown path "n"', "table, query, release"),
    "an axis that nothing takes": (
        {"sweep": {"noise.sd": [0.1]}},
        'sweep.noise.sd: no noise of the sweep takes "sd"',
        "remove the axis",
    ),
    "an axis of one query": (
        {"sweep": {"query.stayed": ["quit = 0"]}},
        "sweep.query.stayed: a query is an axis as a whole",
        "[[sweep.query]]",
    ),
    "families of other names": (
        {
            "query": None,
            "sweep": {"query": [{"label": "a", "x": "quit", "y": "died"}, {"label": "b", "x": "quit", "z": "died"}]},
        },
        "sweep.query[1]: its queries are called x, z",
        "the same names",
    ),
    "a table of an axis": (
        {"table": {}, "sweep": {"table.path": ["people.csv", "nobody.csv"]}},
        "sweep.table.path[1].path: there is no table at 'nobody.csv'",
        "check the path",
    ),
    "a column of an axis": (
        {"release": {"kind": "linear", "features": ["age"]}, "sweep": {"release.target": ["gain", "gian"]}},
        "sweep.release.target[1]: expression 'gian'",
        "did you mean 'gain'?",
    ),
    "a kind of sweep": ({"kind": "predictabilty"}, 'kind: unknown kind of sweep "predictabilty"', '"predictability"?'),
}


@pytest.mark.parametrize("what", BAD)
def test_one_mistake_is_one_message_with_its_place_and_its_cure(what: str) -> None:
    changes, start, cure = BAD[what]
    [mistake] = problems(changed(**changes))
    assert str(mistake).startswith(start)
    assert cure in str(mistake)


@pytest.mark.parametrize("kind", [{}, {"kind": "prediction"}, {"kind": 5}])
def test_the_words_of_the_other_kind_are_one_mistake(kind: dict[str, Any]) -> None:
    spec = {k: v for k, v in changed().items() if k != "kind"} | kind
    (mistake,) = problems(spec)
    assert mistake.path == "kind"
    assert mistake.message.endswith('give kind = "predictability"')


def test_every_column_that_is_not_there_is_named_at_once() -> None:
    found = problems(
        changed(
            query={"a": "qiut = 1", "b": "died = 1", "c": "aeg"},
            release={"kind": "linear", "target": "gian", "features": ["age", "wieght"]},
            process={"kind": "weighted", "column": "sx", "size": 2},
        )
    )
    assert [m.path for m in found] == [
        "query.a",
        "query.c",
        "release.target",
        "release.features[1]",
        "process.column",
    ]
