"""The commands about the smallest n: search, complexity."""

import math
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from predcube.pipeline.cli.app import app
from predcube.pipeline.cli.asking import At, Format, fixed, format_of, write
from predcube.pipeline.failures import BadInput


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


@app.command()
def complexity(
    store: Annotated[str, typer.Argument(metavar="STORE", help="The store that a run or a search filled.")],
    target: Annotated[
        list[str] | None,
        typer.Option("--target", metavar="QUANTITY=LIMIT[,LIMIT…]", help="Limits in place of the spec's; repeat."),
    ] = None,
    confidence: Annotated[
        str | None, typer.Option(metavar="C[,C…]", help="Shares of samples that must keep to the limits.")
    ] = None,
    at: At = None,
    where: Annotated[
        str | None, typer.Option(metavar="EXPR", help="SQL condition over the columns; rows to keep.")
    ] = None,
    bounds: Annotated[
        str | None, typer.Option(metavar="A[,B…]", help="Of the theory's bounds these alone. Default: all that apply.")
    ] = None,
    slopes: Annotated[bool, typer.Option("--slopes", help="The exponents alone.")] = False,
    format: Annotated[Format | None, typer.Option(help="Default: by the ending of --out, else table.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to a file instead of the terminal.")] = None,
) -> None:
    """The smallest n of every combination of axes beside the bounds, and the exponents in which it grows."""
    from predcube.pipeline.complexity import beside, terse
    from predcube.pipeline.complexity import complexity as ask

    levels = None if confidence is None else _numbers("--confidence", confidence)
    if levels is not None and not all(0 < c < 1 for c in levels):
        raise BadInput(f"--confidence {confidence}: a confidence lies between 0 and 1, as in --confidence 0.9")
    found = ask(store, targets=_targets(target), confidence=levels, at=fixed(at), where=where)
    if bounds is not None:
        found = beside(found, [b.strip() for b in bounds.split(",") if b.strip()])
    chosen = format or format_of(out)
    if chosen is Format.table and out is None:
        from rich.console import Console

        from predcube.pipeline.printing import table

        console = Console()
        if not slopes:
            console.print(table(terse(found.rows), title=f"smallest n with {found.goal}"))
        if found.slopes.num_rows:
            console.print(table(terse(found.slopes), title="exponents of the smallest n"))
        return
    write(found.slopes if slopes else found.rows, chosen, out)


def _targets(given: list[str] | None) -> dict[str, list[float]] | None:
    """``--target`` options as quantity → limits."""
    found: dict[str, list[float]] = {}
    for text in given or []:
        name, sign, values = text.partition("=")
        if not sign or not name.strip():
            raise BadInput(f"--target {text!r}: write QUANTITY=LIMIT, as in --target excess_error=0.05,0.1")
        found[name.strip()] = _numbers("--target", values)
    return found or None


def _numbers(option: str, text: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found or not all(math.isfinite(v) and v >= 0 for v in found):
        raise BadInput(f"{option} {text!r}: write numbers, as in 0.05,0.1")
    return found


def _search(
    spec: Path, store: str, cluster: str, workers: int | None, retry_failed: bool, extend: bool, quiet: bool
) -> None:
    from predcube.pipeline import bisection
    from predcube.pipeline.cli.running import conclude
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
    conclude(summary, store, quiet=quiet)
