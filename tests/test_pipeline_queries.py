"""Questions to a store against plain loops over its surfaces; wrong questions against their messages."""

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

from predcube.pipeline.cli import asking  # noqa: F401  (registers the commands)
from predcube.pipeline.cli.app import app
from predcube.pipeline.failures import BadInput
from predcube.pipeline.opening import read_surfaces
from predcube.pipeline.printing import interval, number, table
from predcube.pipeline.queries import query
from predcube.storage.failures import StoreError

type Make = Callable[..., str]


def asked(*arguments: str) -> Any:
    """A command run in this process; errors of the user come back as exceptions."""
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


# --- rows -------------------------------------------------------------------------------------------------------------


def test_rows_are_the_surfaces_cell_by_cell(store: str) -> None:
    rows = query(store).to_pylist()
    surfaces = read_surfaces(store)
    assert len(rows) == 4 * 3 * 2
    assert list(rows[0])[:4] == ["n", "gamma", "noise", "excess_error"]
    for row in rows:
        cell = surfaces.sel(n=row["n"], gamma=row["gamma"], noise=row["noise"])
        if row["status"] == "infeasible":
            assert row["excess_error"] is None
            assert row["n"] * row["gamma"] < 1
        else:
            assert row["excess_error"] == float(cell["excess_error"])
            assert row["excess_error_lower"] == float(cell["excess_error_lower"])
    assert {r["status"] for r in rows} == {"done", "infeasible"}


def test_an_infinite_mean_is_infinite_and_not_null(store: str) -> None:
    rows = query(store, select=["privacy_loss"], at={"gamma": 0.2, "n": 20}).to_pylist()
    assert [r["privacy_loss"] for r in rows] == [math.inf, math.inf]


def test_a_variable_without_an_axis_has_rows_without_it(store: str) -> None:
    rows = query(store, select=["smallest_n", "smallest_n_status"])
    assert rows.column_names == ["gamma", "noise", "smallest_n", "smallest_n_status"]
    assert len(rows) == 6


def test_all_columns_of_the_cells_on_request(store: str) -> None:
    rows = query(store, select=["*"])
    assert {"stability_maximum", "bound_stability", "ratio_stability", "excess_error_reached"} <= set(rows.column_names)
    assert "smallest_n" not in rows.column_names


def test_where_keeps_rows_where_it_is_true_and_drops_null(store: str) -> None:
    kept = query(store, select=["excess_error"], where="excess_error > 0.05 and N < 100 and noise = 0").to_pylist()
    every = query(store, select=["excess_error"]).to_pylist()
    expected = [r for r in every if r["excess_error"] and r["excess_error"] > 0.05 and r["n"] < 100 and r["noise"] == 0]
    assert kept == expected
    assert kept
    assert len(query(store, where="status = 'infeasible'")) == 2
    assert len(query(store, where="n > 1000")) == 0


@pytest.mark.parametrize("wanted", [0.1, "0.1", "1e-1", 0.1 * 3 / 3, 0.30000000000000004 / 3])
def test_a_number_on_an_axis_is_found_as_it_is_written(store: str, wanted: float | str) -> None:
    rows = query(store, at={"gamma": wanted}, select=["excess_error"])
    assert set(rows["gamma"].to_pylist()) == {0.1}


def test_several_values_of_an_axis_may_be_kept(store: str) -> None:
    rows = query(store, at={"n": [160, "20"]}, select=["excess_error"])
    assert list(dict.fromkeys(rows["n"].to_pylist())) == [20, 160]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"at": {"gamma": 99}}, r"gamma=99: not on the axis; the nearest is 0.2; the axis has 0.04, 0.1, 0.2"),
        ({"at": {"gamma": 0.11}}, r"gamma=0.11: not on the axis; the nearest is 0.1"),
        ({"at": {"gamma": "high"}}, r"gamma=high: not a number"),
        ({"at": {"gama": 0.1}}, r"no axis 'gama' in this store; did you mean 'gamma'\?"),
        ({"at": {"stability": 0.1}}, r"'stability' is a variable, not an axis .* use --where"),
        ({"select": ["exces_error"]}, r"no column 'exces_error' in this store; did you mean 'excess_error'\?"),
        ({"where": "stabilty < 1"}, r"no column 'stabilty' in this store; did you mean 'stability'\?"),
        ({"where": "n"}, r"--where 'n' is int64, not a condition"),
        ({"smallest": "gama", "such_that": "n > 1"}, r"no axis 'gama'"),
        ({"smallest": "gamma"}, r"--smallest gamma needs --such-that"),
        ({"such_that": "n > 1"}, r"--such-that needs --smallest AXIS"),
    ],
)
def test_a_question_that_makes_no_sense_names_the_cure(store: str, question: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        query(store, **question)


def test_expressions_cannot_do_more_than_compare(store: str) -> None:
    with pytest.raises(StoreError):
        query(store, where="(select count(*) from read_csv('/etc/passwd')) > 0")


# --- the inverse look-up ----------------------------------------------------------------------------------------------


def test_the_smallest_n_of_each_combination_agrees_with_a_loop(store: str) -> None:
    surfaces = read_surfaces(store)
    rows = query(store, smallest="n", such_that="excess_error <= 0.1").to_pylist()
    assert len(rows) == 6
    for row in rows:
        cell = surfaces.sel(gamma=row["gamma"], noise=row["noise"])

        def first(name: str) -> int | None:
            return next((int(n) for n in cell["n"].values if float(cell[name].sel(n=n)) <= 0.1), None)  # noqa: B023

        assert row["smallest_n"] == first("excess_error")
        assert row["smallest_n_lower"] == first("excess_error_lower")
        assert row["smallest_n_upper"] == first("excess_error_upper")  # the upper ends fall with n here
        assert row["status"] == ("reached" if row["smallest_n"] else "not reached")


def test_not_reached_is_a_status_and_never_a_number(store: str) -> None:
    rows = query(store, smallest="n", such_that="excess_error <= 1e-9").to_pylist()
    assert {r["status"] for r in rows} == {"not reached"}
    assert {r["smallest_n"] for r in rows} == {None}


def test_the_other_direction_turns_the_ends_of_the_interval(store: str) -> None:
    below = query(store, smallest="n", such_that="excess_error <= 0.1")
    assert query(store, smallest="n", such_that="0.1 >= excess_error") == below
    rows = query(store, smallest="n", such_that="excess_error_reached >= 0.7").to_pylist()
    for row in rows:
        if row["smallest_n"] is not None and row["smallest_n_upper"] is not None:
            assert row["smallest_n_lower"] <= row["smallest_n"] <= row["smallest_n_upper"]


def test_conditions_joined_by_and_keep_an_interval_and_others_say_there_is_none(store: str) -> None:
    both = query(store, smallest="n", such_that="excess_error <= 0.1 AND stability < 0.09").to_pylist()
    assert [r["status"] for r in both if r["gamma"] == 0.1] == ["reached", "reached"]
    assert all(r["smallest_n_lower"] is not None for r in both if r["gamma"] == 0.1)
    total = query(store, smallest="n", such_that="excess_error + stability <= 0.2").to_pylist()
    assert any(r["status"] == "reached" for r in total)
    assert {r["smallest_n_lower"] for r in total} == {None}
    assert all("no interval" in r["note"] for r in total if r["status"] == "reached")


def test_a_sequence_that_comes_back_is_said_to_be_not_monotone(make_store: Make) -> None:
    def bump(arrays: dict[str, Any]) -> None:
        arrays["stability"][2, 1] = 0.9

    rows = query(make_store(change=bump), smallest="n", such_that="stability <= 0.5", at={"gamma": 0.1}).to_pylist()
    assert [(r["smallest_n"], r["status"]) for r in rows] == [(20, "reached")] * 2
    assert all("not monotone: missed again at n=80" in r["note"] for r in rows)
    assert [r["smallest_n_upper"] for r in rows] == [160, 160]


def test_a_filter_restricts_where_the_smallest_is_looked_for(store: str) -> None:
    rows = query(store, smallest="n", such_that="excess_error <= 0.5", where="n >= 80 and gamma > 0.05").to_pylist()
    assert {r["smallest_n"] for r in rows} == {80}
    assert {r["gamma"] for r in rows} == {0.1, 0.2}
    assert {r["status"] for r in rows} == {"reached"}  # what is left out is no gap that data could fill
    assert all("no smaller n was looked at" in r["note"] for r in rows)


def test_the_targets_of_the_spec_are_the_default_condition(store: str) -> None:
    rows = query(store, smallest="n").to_pylist()
    surfaces = read_surfaces(store)
    for row in rows:
        stored = float(surfaces["smallest_n"].sel(gamma=row["gamma"], noise=row["noise"]))
        assert (row["smallest_n"] == stored) if row["smallest_n"] is not None else math.isnan(stored)


def test_another_axis_can_be_looked_up(store: str) -> None:
    rows = query(store, smallest="gamma", such_that="excess_error <= 0.1", at={"noise": 0.0}).to_pylist()
    assert [r["n"] for r in rows] == [20, 40, 80, 160]
    assert rows[-1]["smallest_gamma"] == 0.04


def test_labels_have_no_smallest_and_are_found_as_they_are_written(labelled: str) -> None:
    with pytest.raises(BadInput, match="have no order"):
        query(labelled, smallest="learner", such_that="error < 1")
    assert (
        query(labelled, at={"learner": "[red]stable[/red] <b>"})["learner"].to_pylist() == ["[red]stable[/red] <b>"] * 2
    )
    with pytest.raises(BadInput, match="learner=erms: no such label; the nearest is 'erm'"):
        query(labelled, at={"learner": "erms"})


def test_a_cell_with_a_failed_trial_says_so_and_uses_the_others(labelled: str) -> None:
    row = query(labelled, where="status = 'failed'", select=["error", "error_count"]).to_pylist()
    assert [(r["n"], r["learner"], r["error_count"]) for r in row] == [(20, "erm", 3)]


# --- stores that are not whole ----------------------------------------------------------------------------------------


def test_a_store_that_is_being_filled_answers_with_what_is_there(make_store: Make) -> None:
    url = make_store(skip=lambda key: key[0] == 1 or (key[0] == 2 and key[3] == 1), reduce=False)
    rows = query(url)
    by_n = {r["n"]: r for r in rows.to_pylist() if (r["gamma"], r["noise"]) == (0.1, 0.1)}
    assert {n: r["status"] for n, r in by_n.items()} == {20: "done", 40: "missing", 80: "partial", 160: "done"}
    assert by_n[40]["excess_error"] is None
    assert by_n[80]["excess_error"] is not None
    totals = json.loads(rows.schema.metadata[b"predcube"])
    assert totals["missing"] == 24 * 6 + 12 * 6
    found = query(url, smallest="n", such_that="excess_error <= 0.1", at={"gamma": 0.1}).to_pylist()
    assert {r["status"] for r in found} <= {"reached so far", "undecided"}


def test_surfaces_from_before_are_not_taken_for_those_of_now(make_store: Make) -> None:
    url = make_store(skip=lambda key: key[0] == 1)
    assert query(url, where="status = 'missing'").num_rows == 6
    make_store(skip=lambda key: key[0] != 1, create=False, reduce=False)
    assert query(url, where="status = 'missing'").num_rows == 0


# --- the command line -------------------------------------------------------------------------------------------------


def test_every_format_holds_the_same_rows(store: str, tmp_path: Path) -> None:
    rows = query(store, at={"gamma": 0.2})
    files = {e: tmp_path / f"rows.{e}" for e in ("csv", "json", "arrow")}
    for file in files.values():
        assert asked("query", store, "--at", "gamma=0.2", "--out", str(file)).exit_code == 0
    assert pa.ipc.open_file(files["arrow"]).read_all().equals(rows)
    records = json.loads(files["json"].read_text())
    assert [r["n"] for r in records] == rows["n"].to_pylist()
    assert {r["privacy_loss"] for r in records} == {"Infinity"}
    lines = files["csv"].read_text().splitlines()
    assert len(lines) == len(rows) + 1
    assert lines[0].replace('"', "") == ",".join(rows.column_names)


def test_the_command_says_what_is_missing_and_when_nothing_is_found(store: str) -> None:
    result = asked("query", store, "--where", "n > 1000")
    assert "no rows" in result.stderr
    assert "48 infeasible" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--at", "n"], "write AXIS=VALUE"),
        (["--out", "rows.xyz"], "cannot tell the format"),
        (["--smallest", "n", "--select", "n"], "does not go with"),
        (["--format", "csv", "--out", "/nowhere/rows.csv"], "cannot be written"),
    ],
)
def test_options_that_do_not_fit_are_refused(store: str, arguments: list[str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        asked("query", store, *arguments)


# --- printing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "uncertainty", "text"),
    [
        (0.123456, None, "0.1235"),
        (0.123456, 0.012, "0.123"),
        (0.123456, 0.00034, "0.12346"),
        (0.0, None, "0"),
        (math.inf, None, "∞"),
        (None, None, "–"),
        (math.nan, None, "–"),
        (320, None, "320"),
        (True, None, "True"),
    ],
)
def test_numbers_have_the_digits_that_their_uncertainty_supports(value: Any, uncertainty: Any, text: str) -> None:
    assert number(value, uncertainty) == text


def test_intervals_are_printed_in_three_lengths() -> None:
    assert interval(0.5, 0.45, 0.55, "full") == "0.500 [0.450, 0.550]"
    assert interval(0.5, 0.45, 0.55, "half") == "0.500 ±0.050"
    assert interval(0.5, 0.45, 0.55, "none") == "0.500"
    assert interval(80, 40, None, "full") == "80 [40, –]"
    assert interval(math.inf, math.inf, math.inf, "full") == "∞"


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_table_fits_its_terminal_and_keeps_markup_as_text(store: str, width: int) -> None:
    rows = query(store, select=["excess_error", "excess_error_lower", "excess_error_upper", "stability"])
    labelled = rows.append_column("label", pa.array(["[red]x[/red]"] * len(rows)))
    with io.StringIO() as text:
        Console(file=text, width=width).print(table(labelled))
        printed = text.getvalue()
    assert max(map(len, printed.splitlines())) <= width
    assert "[red]x[/red]" in printed
    assert ("[" in printed.splitlines()[8].replace("[red]", "").replace("[/red]", "")) == (width >= 80)


def test_a_long_table_says_how_many_rows_it_leaves_out() -> None:
    with io.StringIO() as text:
        Console(file=text, width=100).print(table(pa.table({"n": np.arange(1000)})))
        assert "the first 200 of 1000 rows" in text.getvalue()


def test_a_selection_of_nothing_is_refused(store: str) -> None:
    with pytest.raises(BadInput, match=r"--select '' names no variable"):
        asked("query", store, "--select", "")


def test_a_title_is_wider_than_its_table_without_breaking_a_word() -> None:
    title = "privacy loss by the private learner's proof, swapped_privacy_loss"
    text = io.StringIO()
    Console(width=40, file=text).print(table(pa.table({"n": [1]}), title=title))
    lines = [line.strip() for line in text.getvalue().splitlines()]
    assert " ".join(lines) == f"{title} n 1"
    assert len(lines) == 4
