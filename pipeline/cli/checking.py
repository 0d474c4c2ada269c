"""The commands that look at a spec and start nothing: check, plan."""

import json
from typing import Annotated

import typer

from predcube.pipeline.cli.app import app

Spec = Annotated[str, typer.Argument(metavar="SPEC", help="The sweep spec, a TOML file.")]


@app.command()
def check(spec: Spec) -> None:
    """Parse and validate a spec: prints every problem with its path in the file and a cure."""
    from pathlib import Path

    from predcube.pipeline.spec import load_spec

    sweep = load_spec(Path(spec))
    cells = 1
    for length in sweep.shape:
        cells *= length
    axes = " × ".join(f"{len(a.values)} {a.name}" for a in sweep.axes) or "no axes"
    for note in sweep.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"{spec}: good; {cells} cells ({axes}) × {sweep.trials} trials")


@app.command()
def plan(
    spec: Spec,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole plan, cell by cell, as JSON.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Plan for this many workers (default: all cores).")] = None,
    budget: Annotated[
        float | None, typer.Option(min=0, metavar="CORE_HOURS", help="Refuse a plan that takes more core-hours.")
    ] = None,
) -> None:
    """Dry run: cells, tiles, tasks, methods, infeasible cells with the reason, core-seconds, memory, bytes on disk."""
    from pathlib import Path

    from predcube.pipeline.outlook import as_data, as_text
    from predcube.pipeline.planning import plan as make
    from predcube.pipeline.spec import load_spec

    made = make(load_spec(Path(spec)), workers=workers, budget=budget, say=lambda text: typer.echo(text, err=True))
    if as_json:
        typer.echo(json.dumps(as_data(made), indent=1, ensure_ascii=False))
        return
    from rich.console import Console

    Console(highlight=False).print(as_text(made))
