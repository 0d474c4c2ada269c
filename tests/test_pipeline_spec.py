"""Specs that are right: what they become, however they are written."""

import json
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predcube.pipeline.spec import difference, from_resolved, load_spec, problems, resolved, spec_hash
from predcube.pipeline.spec.axes import NEAR

# The example of the contract, word for word.
CONTRACT = """
name   = "stable-thresholds"
kind   = "prediction"                 # or "predictability"
seed   = 7                            # root of every random stream
trials = 64                           # Monte Carlo data sets per cell

[hypotheses]
kind = "thresholds"
points = 9                            # X = {0,…,8}; real-valued X without it

[distribution]                        # or [table] path=…, features=[…], label=…  for real data
kind  = "threshold"
at    = 4
noise = 0.1

[learner]
kind  = "stable"
gamma = 0.1                           # convention = "proof" unless given; n' follows from it,
                                      # or subset_size = 4 (an integer n'), or subset_fraction = 0.1

[measure]
quantities = ["excess_error", "stability", "privacy_loss"]
method = "auto"                       # analytic | laplace | support | enumerate | mc
targets = { excess_error = 0.1, confidence = 0.9 }

[sweep]                               # every key is a dotted path into this file; every value an axis
n = { start = 20, stop = 320, num = 5, spacing = "log" }
"learner.gamma" = [0.05, 0.1, 0.2]
"distribution.noise" = [0.0, 0.1, 0.2]
"""

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


def spec(**changes: Any) -> dict[str, Any]:
    """``SPEC`` with some top-level keys replaced, or left out where None."""
    changed = {**deepcopy(SPEC), **changes}
    return {k: v for k, v in changed.items() if v is not None}


def test_the_contracts_example_loads_as_it_is_written() -> None:
    sweep = load_spec(CONTRACT)
    assert (sweep.name, sweep.seed, sweep.trials, sweep.measure["method"]) == ("stable-thresholds", 7, 64, "auto")
    assert sweep.quantities == ("excess_error", "stability", "privacy_loss")
    assert (sweep.targets.limits, sweep.targets.confidence) == ({"excess_error": 0.1}, 0.9)
    assert [a.name for a in sweep.axes] == ["n", "gamma", "noise"]
    assert sweep.axes[0].values == (20, 40, 80, 160, 320)
    assert [a.dtype for a in sweep.axes] == ["int64", "float64", "float64"]
    cell = sweep.cell((1, 2, 0))
    assert cell.n == 40
    assert cell.sections["learner"]["gamma"] == 0.2
    assert cell.sections["distribution"] == {"kind": "threshold", "at": 4.0, "noise": 0.0}
    assert sweep.text == CONTRACT
    assert sweep.notes == ()


def test_a_path_a_text_and_a_dictionary_say_the_same(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(CONTRACT, encoding="utf-8")
    a, b = load_spec(file), load_spec(CONTRACT)
    assert resolved(a) == resolved(b)
    assert a.directory == str(tmp_path)
    assert spec_hash(load_spec(str(file))) == spec_hash(b)
    import tomllib

    assert spec_hash(load_spec(tomllib.loads(CONTRACT))) == spec_hash(b)


def test_unquoted_dotted_keys_are_the_same_axes() -> None:
    bare = CONTRACT.replace('"learner.gamma"', "learner.gamma").replace('"distribution.noise"', "distribution.noise")
    assert resolved(load_spec(bare)) == resolved(load_spec(CONTRACT))


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("at    = 4", "at    = 4.0"),
        ('method = "auto"', ""),
        ("gamma = 0.1 ", 'gamma = 0.1\nconvention = "proof" '),
        ("gamma = 0.1 ", "gamma = 0.3 "),  # the axis sets it
        ('n = { start = 20, stop = 320, num = 5, spacing = "log" }', "n = [20, 40, 80, 160, 320]"),
    ],
)
def test_one_meaning_has_one_hash(written: str, same: str) -> None:
    assert written in CONTRACT
    assert spec_hash(load_spec(CONTRACT.replace(written, same, 1))) == spec_hash(load_spec(CONTRACT))


@pytest.mark.parametrize(
    ("written", "other", "words"),
    [
        ("seed   = 7", "seed   = 8", "seed: 7 in the store, 8 in the spec"),
        ("at    = 4", "at    = 5", "distribution.at: 4.0 in the store, 5.0 in the spec"),
        ("[0.05, 0.1, 0.2]", "[0.05, 0.1, 0.3]", "sweep.learner.gamma: the spec has the axis without [0.2]"),
        ("[0.05, 0.1, 0.2]", "[0.1, 0.05, 0.2]", "another order"),
        ('"distribution.noise" = [0.0, 0.1, 0.2]', "", "sweep.distribution.noise: an axis in the store alone"),
        ('excess_error", "stab', 'error", "excess_error", "stab', "quantities"),
    ],
)
def test_a_difference_is_said_in_words(written: str, other: str, words: str) -> None:
    a, b = resolved(load_spec(CONTRACT)), resolved(load_spec(CONTRACT.replace(written, other, 1)))
    assert a != b
    assert words in "\n".join(difference(a, b))
    assert difference(a, a) == []


def test_a_sweep_comes_back_from_its_resolved_form() -> None:
    sweep = load_spec(spec(sweep={"n": [20, 40], "learner": [{"label": "a", "kind": "erm"}]}, learner=None))
    again = from_resolved(resolved(sweep))
    assert resolved(again) == resolved(sweep)
    assert [again.cell(i) for i in again.indices()] == [sweep.cell(i) for i in sweep.indices()]


def test_tuples_in_a_dictionary_are_lists() -> None:
    listed, tupled = spec(sweep={"n": [20, 40]}), spec(sweep={"n": (20, 40)})
    assert spec_hash(load_spec(tupled)) == spec_hash(load_spec(listed))


def test_no_sweep_is_one_cell() -> None:
    sweep = load_spec(spec(n=20, sweep=None))
    assert sweep.shape == ()
    assert list(sweep.indices()) == [()]
    assert sweep.cell(()).n == 20


def test_sections_are_an_axis_and_a_dotted_axis_applies_where_it_is_taken() -> None:
    sections = [{"label": "stable", "kind": "stable"}, {"label": "exp", "kind": "exponential", "epsilon": 1}]
    sweep = load_spec(spec(learner=None, sweep={"n": [20], "learner": sections, "learner.gamma": [0.1, 0.2]}))
    assert [a.name for a in sweep.axes] == ["n", "learner", "gamma"]
    assert sweep.axes[1].values == ("stable", "exp")
    assert sweep.axes[1].coordinate().dtype.kind == "U"
    assert sweep.cell((0, 0, 1)).sections["learner"] == {"kind": "stable", "convention": "proof", "gamma": 0.2}
    repeated = [sweep.cell((0, 1, i)).sections["learner"] for i in (0, 1)]
    assert repeated == [{"kind": "exponential", "epsilon": 1.0}] * 2
    assert any("applies to stable; for exponential the values repeat" in n for n in sweep.notes)


def test_laws_of_several_kinds_on_one_axis() -> None:
    laws = [
        {"label": "noisy", "kind": "threshold", "at": 4, "noise": 0.2},
        {"label": "any", "kind": "joint", "table": [[1 / 18, 1 / 18]] * 9},
    ]
    sweep = load_spec(spec(distribution=None, sweep={"n": [20], "distribution": laws}))
    assert [sweep.cell((0, i)).sections["distribution"]["kind"] for i in (0, 1)] == ["threshold", "joint"]


def test_a_kind_is_an_axis_of_sections() -> None:
    sweep = load_spec(
        spec(learner={"gamma": 0.1, "epsilon": 0.5}, sweep={"n": [20], "learner.kind": ["stable", "exponential"]})
    )
    assert sweep.cell((0, 0)).sections["learner"] == {"kind": "stable", "gamma": 0.1, "convention": "proof"}
    assert sweep.cell((0, 1)).sections["learner"] == {"kind": "exponential", "epsilon": 0.5}
    assert len(sweep.notes) == 2


def test_words_of_xarray_and_of_the_cube_are_never_axis_names() -> None:
    sweep = load_spec(spec(sweep={"n": [20], "measure.method": ["laplace", "support"]}))
    assert [a.name for a in sweep.axes] == ["n", "measure_method"]
    assert [sweep.cell((0, i)).measure["method"] for i in (0, 1)] == ["laplace", "support"]


def test_names_that_are_not_unique_are_whole_paths() -> None:
    sweep = load_spec(
        spec(
            distribution={"kind": "concept", "hypothesis": 4},
            sweep={"n": [20], "hypotheses.kind": ["thresholds"], "learner.kind": ["erm"]},
            learner={},
            hypotheses={"points": 9},
        )
    )
    assert [a.name for a in sweep.axes] == ["n", "hypotheses_kind", "learner_kind"]


@pytest.mark.parametrize(
    ("written", "values", "dtype"),
    [
        ([0, 0.5], (0.0, 0.5), "float64"),
        ([0], (0.0,), "float64"),
        ({"start": 0, "stop": 0.4, "num": 5}, (0.0, 0.1, 0.2, 0.3, 0.4), "float64"),
        ({"start": 0.001, "stop": 0.1, "num": 3, "spacing": "log"}, (0.001, 0.01, 0.1), "float64"),
        ({"start": 0.4, "stop": 0, "num": 3}, (0.4, 0.2, 0.0), "float64"),
        ({"start": 0.3, "stop": 0.3, "num": 1}, (0.3,), "float64"),
    ],
)
def test_a_coordinates_type_follows_the_parameter(written: Any, values: tuple[float, ...], dtype: str) -> None:
    axis = load_spec(spec(sweep={"n": [20], "distribution.noise": written})).axes[1]
    assert axis.values == values
    assert [type(v) for v in axis.values] == [float] * len(values)
    assert axis.coordinate().dtype == np.dtype(dtype)


def test_a_log_axis_of_integers_rounds_and_says_what_it_dropped() -> None:
    sweep = load_spec(spec(n=20, sweep={"n": {"start": 10, "stop": 20, "num": 30, "spacing": "log"}}))
    assert sweep.axes[0].values == tuple(range(10, 21))
    assert sweep.axes[0].coordinate().dtype == np.int64
    assert sweep.notes == ("sweep.n: 19 of 30 values were the same after rounding and were dropped; 11 are left",)


def test_labels_may_be_mixed_where_the_parameter_takes_both() -> None:
    axis = load_spec(
        spec(
            distribution={"kind": "concept", "noise": 0.1},
            sweep={"n": [20], "distribution.hypothesis": ["all-zero", 4]},
        )
    ).axes[1]
    assert axis.values == ("all-zero", 4)
    assert axis.coordinate().tolist() == ["all-zero", "4"]
    numbers = load_spec(
        spec(distribution={"kind": "concept"}, sweep={"n": [20], "distribution.hypothesis": [2, 4]})
    ).axes[1]
    assert (numbers.values, numbers.dtype) == ((2, 4), "float64")


@settings(deadline=None)  # the machine may be busy
@given(
    st.lists(st.floats(0.001, 0.5), min_size=1, max_size=6), st.lists(st.integers(20, 10**6), min_size=1, max_size=6)
)
def test_values_stay_those_that_were_written(noises: list[float], sizes: list[int]) -> None:
    ordered = sorted(noises)
    near = any(b - a <= NEAR * b for a, b in pairwise(ordered))
    written = spec(sweep={"n": sizes, "distribution.noise": noises})
    if near or len(set(sizes)) < len(sizes):
        assert problems(written)
        return
    sweep = load_spec(written)
    assert [sweep.cell(i).n for i in sweep.indices()] == [n for n in sizes for _ in noises]
    assert [sweep.cell(i).sections["distribution"]["noise"] for i in sweep.indices()] == noises * len(sizes)
    assert json.loads(resolved(sweep))["axes"][1]["values"] == noises


ROWS = """weight,sex,died,note
70,0,1,a
80,1,0,b
,1,1,c
60,0,0,d
90,1,1,e
75,1,,f
"""


def test_a_table_is_read_its_gaps_counted_and_its_rows_known_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS, encoding="utf-8")
    file = tmp_path / "sweep.toml"
    text = """
        trials = 2
        n = 2
        [hypotheses]
        kind = "thresholds"
        [table]
        path = "rows.csv"
        features = ["weight"]
        label = "died = 1"
        [learner]
        kind = "erm"
        """
    file.write_text(text, encoding="utf-8")
    sweep = load_spec(file)
    assert sweep.notes == ("table: 2 of 6 rows of rows.csv lack a value of weight or died = 1 and were dropped",)
    law = sweep.cell(()).sections["distribution"]
    assert (law["kind"], law["path"], law["features"]) == ("table", "rows.csv", ["weight"])
    assert len(law["digest"]) == 64
    # The same rows in another file are the same data; other rows are not.
    (tmp_path / "again.tsv").write_text(ROWS.replace(",", "\t"), encoding="utf-8")
    file.write_text(text.replace("rows.csv", "again.tsv"), encoding="utf-8")
    assert load_spec(file).cell(()).sections["distribution"]["digest"] == law["digest"]
    (tmp_path / "again.tsv").write_text(ROWS.replace(",", "\t").replace("70", "71"), encoding="utf-8")
    assert load_spec(file).cell(()).sections["distribution"]["digest"] != law["digest"]


def test_tables_and_their_keys_are_axes(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS, encoding="utf-8")
    base = {"path": str(tmp_path / "rows.csv"), "features": ["weight"]}
    common = {"distribution": None, "hypotheses": {"kind": "thresholds"}, "learner": {"kind": "erm"}}
    dotted = load_spec(spec(**common, table=base, sweep={"n": [2], "table.label": ["sex", "died = 1"]}))
    whole = load_spec(
        spec(
            **common,
            sweep={
                "n": [2],
                "table": [{**base, "name": "sex", "label": "sex"}, {**base, "name": "died", "label": "died = 1"}],
            },
        )
    )
    assert [a.name for a in dotted.axes] == ["n", "table_label"]
    assert [a.name for a in whole.axes] == ["n", "table"]
    assert whole.axes[1].values == ("sex", "died")
    for i in (0, 1):
        assert dotted.cell((0, i)).sections["distribution"] == whole.cell((0, i)).sections["distribution"]


def test_a_class_may_be_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "class.npy", np.eye(3, dtype=np.uint8))
    sweep = load_spec(
        spec(
            hypotheses={"kind": "table", "path": str(tmp_path / "class.npy")},
            distribution={"kind": "concept", "hypothesis": 1},
        )
    )
    assert sweep.sections["hypotheses"] == {"kind": "table", "matrix": ((1, 0, 0), (0, 1, 0), (0, 0, 1))}
