"""``predcube classes``, ``learners``, ``releases`` …: what is built in, read off the declarations themselves."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from predcube.pipeline.cli.app import app

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command()
def classes(as_json: AsJson = False) -> None:
    """Hypothesis classes: their parameters, limits, defaults and source."""
    from predcube.tasks.hypotheses import KINDS

    _show("Hypothesis classes", KINDS, as_json)


@app.command()
def distributions(as_json: AsJson = False) -> None:
    """Laws of synthetic data: their parameters, limits, defaults and source."""
    from predcube.tasks.distributions import KINDS

    _show("Distributions", KINDS, as_json)


@app.command()
def learners(as_json: AsJson = False) -> None:
    """Learners: their parameters, limits, defaults and source."""
    from predcube.tasks.learners import KINDS

    _show("Learners", KINDS, as_json)


@app.command()
def releases(as_json: AsJson = False) -> None:
    """Releases of a table: their parameters, limits, defaults and source."""
    from predcube.tasks.releases import KINDS

    _show("Releases", KINDS, as_json)


@app.command()
def processes(as_json: AsJson = False) -> None:
    """Breach processes: their parameters, limits, defaults and source."""
    from predcube.tasks.processes import KINDS

    _show("Breach processes", KINDS, as_json)


@app.command()
def noises(as_json: AsJson = False) -> None:
    """Noise schemes of a release: their parameters, limits, defaults and source."""
    from predcube.tasks.noises import KINDS

    _show("Noise schemes", KINDS, as_json)


def describe(kinds: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry a kind of a registry: ``kind``, ``description``, ``source``, ``parameters`` (``name``, ``value`` in
    words, ``required``, ``default``) and, for a class, ``named_by``: how a concept of it is named."""
    from predcube.pipeline.spec.fields import declared

    return [
        {
            "kind": kind,
            "description": " ".join((cls.__doc__ or "").split("\n\n")[0].replace("`", "").split()),
            "source": cls.source,
            **_named_by(" ".join((cls.__doc__ or "").replace("`", "").split())),
            "parameters": [
                {"name": f.name, "value": f.wanted, "required": f.required, "default": f.default}
                for f in declared(cls).values()
            ],
        }
        for kind, cls in kinds.items()
    ]


def _named_by(text: str) -> dict[str, str]:
    found = re.search(r"A concept is named by (.+?)\.(?: |$)", text)
    return {"named_by": found[1]} if found else {}


def _show(title: str, kinds: Mapping[str, Any], as_json: bool) -> None:
    entries = describe(kinds)
    if as_json:
        import json

        typer.echo(json.dumps(entries, indent=2, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", show_lines=True)
    for heading in ("kind", "parameters", "what it is", "source"):
        table.add_column(heading, overflow="fold")
    for entry in entries:
        parameters = "\n".join(_parameter(p) for p in entry["parameters"]) or "none"
        # Text, not markup: an interval such as [0, 1] is no style.
        named = f"\nA concept is named by {entry['named_by']}." if "named_by" in entry else ""
        cells = (entry["kind"], parameters, entry["description"] + named, entry["source"])
        table.add_row(*(Text(cell) for cell in cells))
    Console().print(table)


def _parameter(parameter: Mapping[str, Any]) -> str:
    default = parameter["default"]
    ending = "optional" if default is None else f"default {default}"
    if parameter["required"]:
        ending = "required"
    return f"{parameter['name']}: {parameter['value']} ({ending})"
