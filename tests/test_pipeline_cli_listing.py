"""``predcube classes``, ``distributions``, ``learners``: complete, true to the declarations, quick to be asked."""

import json
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

from predcube.pipeline.cli import listing
from predcube.pipeline.cli.app import app
from predcube.tasks import distributions, hypotheses, learners, noises, processes, releases


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("classes", hypotheses.KINDS),
        ("distributions", distributions.KINDS),
        ("learners", learners.KINDS),
        ("releases", releases.KINDS),
        ("processes", processes.KINDS),
        ("noises", noises.KINDS),
    ],
)
def test_every_kind_is_listed_with_its_parameters(command: str, kinds: dict[str, type]) -> None:
    as_json = CliRunner().invoke(app, [command, "--json"])
    assert as_json.exit_code == 0
    entries = json.loads(as_json.stdout)
    assert [e["kind"] for e in entries] == list(kinds)
    printed = CliRunner(env={"COLUMNS": "1000"}).invoke(app, [command]).stdout
    for entry in entries:
        assert entry["description"]
        assert entry["source"]
        assert entry["kind"] in printed
        assert all(f"{p['name']}: {p['value']}" in printed for p in entry["parameters"])


def test_a_parameter_shows_its_type_its_limits_and_whether_it_must_be_given() -> None:
    entries = {e["kind"]: e for e in listing.describe(distributions.KINDS)}
    at, noise = entries["threshold"]["parameters"]
    assert at == {"name": "at", "value": "a number", "required": True, "default": None}
    assert noise == {"name": "noise", "value": "a number ≥ 0 and ≤ 0.5", "required": False, "default": 0.0}
    printed = CliRunner(env={"COLUMNS": "1000"}).invoke(app, ["distributions"]).stdout
    assert "noise: a number ≥ 0 and ≤ 0.5 (default 0.0)" in printed
    assert "[0, 1] where X is the line" in printed


def test_every_class_says_how_a_concept_is_named() -> None:
    entries = {e["kind"]: e for e in listing.describe(hypotheses.KINDS)}
    assert all(e["named_by"] for e in entries.values())
    assert entries["halfspaces"]["named_by"] == '[w_1, …, w_p, b], or "all-zero" or "all-one"'
    printed = CliRunner(env={"COLUMNS": "1000"}).invoke(app, ["classes"]).stdout
    assert "A concept is named by its bounds [lo, hi], or" in printed
    assert "named_by" not in listing.describe(learners.KINDS)[0]


def test_brackets_are_text_and_not_style(capsys: pytest.CaptureFixture[str]) -> None:
    @dataclass
    class Odd:
        """Odd."""

        source = "[bold]a paper[/bold]"

    listing._show("Odd", {"odd": Odd}, False)
    assert "[bold]a paper[/bold]" in capsys.readouterr().out
