"""The commands about the smallest n: search."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from predcube.pipeline.cli.app import app


@app.command()
def search(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="The sweep, a TOML file with targets and an axis n.")],
    store: Annotated[str, typer.Option("--store", metavar="URL", help="Where the cube is made, or gone on with.")],
    cluster: Annotated[str, typer.Option(metavar="NAME", help="The back-end; see `predcube clusters`.")] = "local",
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Worker processes. Default: the cores this process may use.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Compute failed tiles again.")] = False,
    extend: Annotated[
        bool, typer.Option("--extend", help="Append the axis values that the store does not have yet.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Neither progress nor summary; errors only.")] = False,
) -> None:
    """The smallest n that reaches the targets, by doubling and halving: a run of the cells that the answer needs alone.

    Every cell is the one that `run` would compute; `run` with the same store computes the others."""
    from predcube.pipeline.failures import Interrupted
    from predcube.pipeline.stopping import stoppable

    try:
        with stoppable(store, last=True):
            _search(spec, store, cluster, workers, retry_failed, extend, quiet)
    except Interrupted as e:
        # At once: libraries that were cut short in the middle of a call have much to say while an interpreter ends.
        sys.stdout.flush()
        print(f"predcube: {e}", file=sys.stderr, flush=True)
        os._exit(e.status)


def _search(
    spec: Path, store: str, cluster: str, workers: int | None, retry_failed: bool, extend: bool, quiet: bool
) -> None:
    from predcube.pipeline import bisection
    from predcube.pipeline.cli.running import _errors, _headline
    from predcube.pipeline.progress import display
    from predcube.pipeline.spec import load_spec

    sweep = load_spec(spec)
    if not quiet:
        for note in (*sweep.notes, bisection.unattainable(sweep)):
            if note:
                typer.echo(f"note: {note}")
    summary = bisection.search(
        sweep,
        store,
        cluster=cluster,
        workers=workers,
        retry_failed=retry_failed,
        extend=extend,
        progress=display(quiet=quiet),
    )
    if not quiet:
        _headline(store)
        typer.echo(summary.line())
    if summary.status:
        _errors(summary.errors, err=True)
        raise typer.Exit(summary.status)
