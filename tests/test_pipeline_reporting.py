"""The page by what it says, that it needs nothing else, and that nothing a user wrote becomes markup; the headline."""

import io
import math
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from predcube.pipeline.cli import asking  # noqa: F401  (registers the commands)
from predcube.pipeline.cli.app import app
from predcube.pipeline.failures import BadInput
from predcube.pipeline.headlines import headlines
from predcube.pipeline.opening import read_surfaces
from predcube.pipeline.pages import listing, paragraph, section
from predcube.pipeline.reporting import completeness, headline, report
from predcube.storage.failures import StoreError
from predcube.tasks.bounds import mixture_stability

type Make = Callable[..., str]


class Reader(HTMLParser):
    """Collects a page's tags, attributes and text, and checks that tags are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [v or "" for k, v in attrs if k in ("src", "href", "srcset", "action")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + " "


@pytest.fixture(scope="module")
def page(store: str) -> Reader:
    return Reader(report(store))


def test_a_page_is_whole_and_needs_nothing_from_elsewhere(page: Reader) -> None:
    assert page.open == []
    assert page.sources
    assert all(s.startswith("data:image/svg+xml;base64,") for s in page.sources)
    assert not {"script", "link", "iframe", "object"} & set(page.tags)


def test_a_page_says_what_was_run_found_and_promised(page: Reader) -> None:
    for words in [
        "4 n × 3 gamma × 2 noise, 24 trials a cell",
        "Pr[excess_error ≤ 0.1] ≥ 0.7",
        "Surfaces",
        "Guarantees beside measurements",
        "learner.gamma",
        "kind = thresholds, points = 5",
        "excess_error ≤ 0.1 with probability 0.7",
        "bound_n_stable_upper",
        "8 done, 0 with failures, 0 missing",
        "12.0",  # core-seconds of 8 tiles
    ]:
        assert words in page.text
    assert page.tags.count("img") == 4


def test_a_page_says_why_cells_are_infeasible(page: Reader) -> None:
    assert "of 576 trials 528 are done; 48 infeasible (8.3%)" in page.text
    assert re.search(r"n = 20, gamma = 0.04, noise = 0.0", page.text)


def test_what_a_user_wrote_is_never_markup(page: Reader, labelled: str) -> None:
    assert "made <b>up</b>" in page.text
    assert "<i>worker</i>" in page.text
    other = Reader(report(labelled))
    assert "[red]stable[/red] <b>" in other.text
    assert "<script>alert(1)</script>" in other.text
    assert not {"b", "i", "script"} & {*page.tags, *other.tags}


def test_pieces_of_a_page_escape_their_texts() -> None:
    bad = '<a href="x">&'
    for piece in (section(bad, ""), paragraph(bad), listing((bad,), [(bad,)])):
        assert "<a" not in piece
        assert "&lt;a href=&quot;x&quot;&gt;&amp;" in piece


def test_a_page_about_a_store_that_is_being_filled_says_how_much_is_missing(make_store: Make) -> None:
    url = make_store(skip=lambda key: key[0] > 0, reduce=False)
    text = Reader(report(url)).text
    assert "432 missing (75.0%)" in text
    assert "2 done, 0 with failures, 6 missing" in text


def test_a_page_about_an_empty_store_is_still_a_page(make_store: Make) -> None:
    text = Reader(report(make_store(skip=lambda key: True, reduce=False))).text
    assert "576 missing (100.0%)" in text
    assert "undecided" in text


def test_guarantees_are_those_of_the_learner_at_each_n(store: str) -> None:
    surfaces = read_surfaces(store)
    for n in (20, 160):
        for gamma in (0.1, 0.2):
            cell = surfaces.sel(n=n, gamma=gamma, noise=0.1)
            promised = mixture_stability(n, round(n * gamma), gamma / 2)
            assert float(cell["bound_stability"]) == pytest.approx(promised)
            assert float(cell["ratio_stability"]) == pytest.approx(float(cell["stability_maximum"]) / promised)
            assert float(cell["bound_privacy_loss"]) == math.inf
            assert math.isnan(float(cell["ratio_privacy_loss"]))
    assert math.isnan(float(surfaces["bound_stability"].sel(n=20, gamma=0.04, noise=0.1)))


def test_sample_complexities_use_the_targets_and_the_guarantees(store: str) -> None:
    surfaces = read_surfaces(store)
    cell = surfaces.sel(n=160, gamma=0.2, noise=0.0)
    expected = (1 + math.log(1 / 0.3)) / 0.1**2
    assert float(cell["bound_n_agnostic_lower"]) == pytest.approx(expected)
    assert "bound_n_private_upper" not in surfaces  # no finite ε is promised anywhere


def test_the_headline_answers_the_targets_with_the_means_at_that_n(store: str) -> None:
    surfaces = read_surfaces(store)
    [found] = headlines(surfaces)
    assert "smallest n with Pr[excess_error ≤ 0.1] ≥ 0.7" in found.title
    for row in found.rows.to_pylist():
        cell = surfaces.sel(gamma=row["gamma"], noise=row["noise"])
        n = row["smallest_n"] if row["smallest_n"] is not None else 160
        assert row["excess_error"] == float(cell["excess_error"].sel(n=n))


def test_without_targets_the_headline_runs_along_n(labelled: str) -> None:
    [found] = headlines(read_surfaces(labelled))
    assert found.rows.column_names == ["learner", "n=10", "n=20"]
    expected = read_surfaces(labelled)["error"].transpose("learner", "n").values
    np.testing.assert_array_equal(np.array([found.rows["n=10"], found.rows["n=20"]]).T, expected)


def test_the_headline_prints_within_any_width(store: str) -> None:
    for width in (60, 100):
        with io.StringIO() as text:
            Console(file=text, width=width).print(headline(store))
            assert max(map(len, text.getvalue().splitlines())) <= width
            assert "infeasible" in text.getvalue()


def test_completeness_is_silent_where_everything_is_done(labelled: str) -> None:
    assert completeness(read_surfaces(labelled)) == "of 16 trials 15 are done; 1 failed (6.2%)"
    whole = read_surfaces(labelled).assign_attrs(trials_done=16, trials_failed=0)
    assert completeness(whole) == ""


# --- commands ---------------------------------------------------------------------------------------------------------


def asked(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_commands_write_what_they_say(store: str, tmp_path: Path) -> None:
    assert asked("report", store, "-o", str(tmp_path / "a.html")).exit_code == 0
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    assert asked("plot", store, "--x", "n", "--y", "stability", "-o", str(tmp_path / "a.svg")).exit_code == 0
    assert (tmp_path / "a.svg").exists()
    result = asked("export", store, str(tmp_path / "a.csv"))
    assert all(Path(line.removeprefix("wrote ")).exists() for line in result.stdout.splitlines())
    assert len(result.stdout.splitlines()) == 3


def test_commands_refuse_what_they_cannot_do(store: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"ends in \.html"):
        asked("report", store, "-o", str(tmp_path / "a.txt"))
    with pytest.raises(BadInput, match="cannot be written"):
        asked("report", store, "-o", str(tmp_path / "nowhere" / "a.html"))
    for command in (["query"], ["report", "-o", "a.html"], ["plot", "--x", "n", "--y", "error", "-o", "a.png"]):
        with pytest.raises(StoreError, match=r"nothing\.zarr"):
            asked(command[0], str(tmp_path / "nothing.zarr"), *command[1:])
