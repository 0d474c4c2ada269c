"""The commands that carry a plan out, and tell how far it is: run, status, clusters."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predcube.pipeline.cli.app import app

if TYPE_CHECKING:
    from predcube.pipeline.execution import Summary

Store = Annotated[str, typer.Option("--store", metavar="URL", help="Where the cube is made, or resumed.")]


@app.command()
def run(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="The sweep, a TOML file.")],
    store: Store,
    cluster: Annotated[str, typer.Option(metavar="NAME", help="The back-end; see `predcube clusters`.")] = "local",
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Worker processes. Default: the cores this process may use.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(metavar="CORE_HOURS", help="Refuse, before anything starts, a plan that costs more.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Compute failed tiles again.")] = False,
    extend: Annotated[
        bool, typer.Option("--extend", help="Append the axis values that the store does not have yet.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Neither progress nor summary; errors only.")] = False,
) -> None:
    """Run a sweep, or go on where it stopped; ends by reducing the surfaces."""
    from predcube.pipeline.failures import Interrupted
    from predcube.pipeline.stopping import stoppable

    try:
        with stoppable(store, last=True):
            _run(spec, store, cluster, workers, budget, retry_failed, extend, quiet)
    except Interrupted as e:
        # At once: libraries that were cut short in the middle of a call have much to say while an interpreter ends.
        sys.stdout.flush()
        print(f"predcube: {e}", file=sys.stderr, flush=True)
        os._exit(e.status)


def _run(
    spec: Path,
    store: str,
    cluster: str,
    workers: int | None,
    budget: float | None,
    retry_failed: bool,
    extend: bool,
    quiet: bool,
) -> None:
    from predcube.pipeline.execution import execute, prepare
    from predcube.pipeline.progress import display

    def say(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    plan = prepare(spec, store, cluster=cluster, workers=workers, budget=budget, extend=extend, say=say)
    if not quiet:
        for note in plan.notes:
            typer.echo(f"note: {note}")
        typer.echo(
            f"{plan.sweep.name}: {plan.cells} cells x {plan.sweep.trials} trials in {plan.tiles} tiles, "
            f"about {_seconds(plan.core_seconds)} of one core, {plan.workers} worker{'s'[: plan.workers != 1]}"
        )
    summary = execute(
        plan,
        store,
        cluster=cluster,
        workers=workers,
        retry_failed=retry_failed,
        extend=extend,
        progress=display(quiet=quiet),
    )
    conclude(summary, store, quiet=quiet)


def conclude(summary: "Summary", store: str, *, quiet: bool) -> None:
    """Says how a run or a search ended; leaves with its status where that is not 0."""
    if not quiet:
        _headline(store)
        typer.echo(summary.line())
    if summary.status:
        _errors(summary.errors, err=True)
        raise typer.Exit(summary.status)


def _headline(store: str) -> None:
    from rich.console import Console

    from predcube.pipeline.headlines import headlines
    from predcube.pipeline.opening import read_surfaces
    from predcube.pipeline.printing import table

    console = Console()
    for headline in headlines(read_surfaces(store)):
        console.print(table(headline.rows, title=headline.title))


@app.command()
def status(
    store: Annotated[str, typer.Argument(metavar="STORE", help="The store of a run, also while it runs.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """How far a run is: tiles done, failed and missing, and the first error of each kind.

    By the receipts alone, which is quick: a tile that lost a chunk afterwards still counts as done.
    """
    from predcube.pipeline.mishaps import error_kinds
    from predcube.storage import read_attributes, tile_states

    attributes = read_attributes(store)
    states = tile_states(store, "listing")
    errors = error_kinds(store) if states.failed else []
    found: dict[str, Any] = {
        "store": store,
        "name": attributes.get("title", ""),
        "tiles": states.total,
        "done": len(states.done),
        "failed": len(states.failed),
        "missing": len(states.missing),
        "started": attributes.get("started"),
        "ended": attributes.get("ended") if not states.missing else None,
        "errors": [{"message": e.message, "tile": list(e.key), "tiles": e.count} for e in errors],
    }
    if as_json:
        typer.echo(json.dumps(found))
        return
    share = (states.total - len(states.missing)) / max(states.total, 1)
    typer.echo(
        f"{found['name']}: {found['done']} of {states.total} tiles done, {found['failed']} failed, "
        f"{found['missing']} missing ({share:.0%}); started {found['started']}"
        + (f", ended {found['ended']}" if found["ended"] else "")
    )
    _errors(errors, err=False)


@app.command()
def clusters() -> None:
    """The back-ends that are built in, and whether they can run here."""
    from predcube.cluster import PROFILES

    for profile in PROFILES.values():
        reason = profile.unavailable()
        typer.echo(f"{profile.name:<8} {profile.description}" + (f"; not here: {reason}" if reason else ""))


def _errors(errors: Any, *, err: bool) -> None:
    for error in errors:
        typer.echo(f"  {error.count} tile{'s'[: error.count != 1]}, first {error.key}: {error.message}", err=err)


def _seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
