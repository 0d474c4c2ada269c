"""The commands that read a store and change nothing in it: query, export, plot, report."""

import io
import json
import math
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predcube.pipeline.cli.app import app
from predcube.pipeline.failures import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

Store = Annotated[str, typer.Argument(metavar="STORE", help="The store that a run filled (or is filling).")]
At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="AXIS=VALUE", help="Keep one value of an axis; repeat for more values or axes."),
]


class Format(StrEnum):
    """How rows are written."""

    table = "table"
    csv = "csv"
    json = "json"
    arrow = "arrow"


@app.command()
def query(
    store: Store,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Variables to show; '*' for all. Default: means, intervals and the status."),
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="EXPR", help="SQL condition over axes and variables; rows to keep.")
    ] = None,
    at: At = None,
    smallest: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS",
            help="Look up the smallest value of AXIS where --such-that holds, or n where the spec's targets do.",
        ),
    ] = None,
    such_that: Annotated[
        str | None,
        typer.Option(
            metavar="EXPR",
            help="SQL condition on the means over trials, as in 'excess_error <= 0.1'. Without it: the targets, with "
            "their confidence.",
        ),
    ] = None,
    format: Annotated[Format | None, typer.Option(help="Default: by the ending of --out, else table.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to a file instead of the terminal.")] = None,
) -> None:
    """Rows of the surfaces, or the smallest value of an axis that reaches a condition."""
    from predcube.pipeline.queries import query as ask

    chosen = format or format_of(out)
    if chosen is Format.arrow and out is None and sys.stdout.isatty():
        raise BadInput("--format arrow writes bytes: name a file with --out FILE, or redirect the output")
    if smallest is not None and select:
        raise BadInput("--select does not go with --smallest, whose columns are fixed; leave one of the two out")
    names = [n.strip() for part in select for n in part.split(",") if n.strip()] if select else None
    if names == []:
        raise BadInput(f"--select {','.join(select or [])!r} names no variable; leave it out, or give '*' for all")
    rows = ask(store, select=names, where=where, at=fixed(at), smallest=smallest, such_that=such_that)
    write(rows, chosen, out)
    _say_what_is_missing(rows)
    _say_what_is_aside(rows)
    if rows.num_rows == 0:
        typer.echo("no rows: no cell satisfies the condition", err=True)


@app.command()
def export(
    store: Store,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Ends in .parquet, .arrow, .csv or .nc.")],
) -> None:
    """The surfaces, the trials and the ledger as Parquet, Arrow, CSV or NetCDF, by the file's ending."""
    from predcube.pipeline.opening import read_surfaces
    from predcube.storage import export as write

    # A store that is being filled has no surfaces yet: those of the trials that are there stand in.
    for path in write(store, file, read_surfaces(store)):
        typer.echo(f"wrote {path}")


@app.command()
def plot(
    store: Store,
    x: Annotated[str, typer.Option(metavar="AXIS", help="Axis from left to right.")],
    y: Annotated[str, typer.Option(metavar="QUANTITY", help="Quantity to draw; an axis for a heat map of --hue.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Ends in .png, .svg or .pdf.")],
    hue: Annotated[str | None, typer.Option(metavar="AXIS", help="One line for each of its values.")] = None,
    facet: Annotated[str | None, typer.Option(metavar="AXIS", help="One panel for each of its values.")] = None,
    at: At = None,
    bounds: Annotated[bool, typer.Option(help="Draw what theory guarantees as dashed lines.")] = True,
) -> None:
    """A picture of a surface as PNG, SVG or PDF."""
    from predcube.pipeline import figures

    figures.check_format(out)
    figures.save(figures.plot(store, x=x, y=y, hue=hue, facet=facet, at=fixed(at), bounds=bounds), out)
    typer.echo(f"wrote {out}")


@app.command()
def report(
    store: Store,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE.html", help="Where to write the page.")],
) -> None:
    """One self-contained page: what was run, surfaces, bounds beside measurements, failures, provenance."""
    from predcube.pipeline.reporting import report as page

    if out.suffix.lower() not in (".html", ".htm"):
        raise BadInput(f"{out}: a report is a web page; name a file that ends in .html")
    _to_file(out, page(store).encode())
    typer.echo(f"wrote {out}")


def fixed(at: list[str] | None) -> dict[str, list[str]]:
    """``--at`` options as axis → values. Raises ``BadInput``."""
    found: dict[str, list[str]] = {}
    for text in at or []:
        axis, sign, value = text.partition("=")
        if not sign or not axis.strip() or not value.strip():
            raise BadInput(f"--at {text!r}: write AXIS=VALUE, as in --at n=80")
        found.setdefault(axis.strip(), []).append(value.strip())
    return found


def format_of(out: Path | None) -> Format:
    if out is None:
        return Format.table
    ending = out.suffix.lower().removeprefix(".")
    by_ending = {
        "csv": Format.csv,
        "json": Format.json,
        "arrow": Format.arrow,
        "feather": Format.arrow,
        "txt": Format.table,
    }
    if ending not in by_ending:
        raise BadInput(f"--out {out}: cannot tell the format from its ending; add --format table, csv, json or arrow")
    return by_ending[ending]


def write(rows: "pa.Table", chosen: Format, out: Path | None) -> None:
    if chosen is Format.table:
        _write_table(rows, out)
        return
    data = {Format.csv: _csv, Format.json: _json, Format.arrow: _arrow}[chosen](rows, out is None)
    if out is not None:
        _to_file(out, data)
        typer.echo(f"wrote {rows.num_rows} rows to {out}", err=True)
        return
    _to_stdout(data)


def _write_table(rows: "pa.Table", out: Path | None) -> None:
    from rich.console import Console

    from predcube.pipeline.printing import ENDLESS, table

    console = Console()
    # A file or a pipe has no width to fit, unless the user sets one.
    narrow = out is None and (console.is_terminal or "COLUMNS" in os.environ)
    if narrow:
        console.print(table(rows))
        return
    with io.StringIO() as text:
        Console(file=text, width=ENDLESS).print(table(rows, most_rows=None))
        lines = "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())
    if out is None:
        _to_stdout(lines.encode())
    else:
        _to_file(out, lines.encode())
        typer.echo(f"wrote {rows.num_rows} rows to {out}", err=True)


def _csv(rows: "pa.Table", stream: bool) -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    sink = pa.BufferOutputStream()
    csv.write_csv(rows, sink, csv.WriteOptions(quoting_style="needed"))
    return sink.getvalue().to_pybytes()


def _json(rows: "pa.Table", stream: bool) -> bytes:
    """An array of objects. The string "Infinity" stands for ∞, which JSON lacks and float() reads."""

    def plain(value: Any) -> Any:
        if isinstance(value, float) and math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return value

    records = [{k: plain(v) for k, v in row.items()} for row in rows.to_pylist()]
    return (json.dumps(records, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def _arrow(rows: "pa.Table", stream: bool) -> bytes:
    """Arrow's stream format to a pipe, its file format to a file."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def _to_file(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as e:
        raise BadInput(f"{path}: cannot be written ({e.strerror or e}); name a file in a folder that exists") from e


def _to_stdout(data: bytes) -> None:
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough: nothing to say, also not when Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say_what_is_aside(rows: "pa.Table") -> None:
    """One line on standard error about quantities that have an axis of their own and were not asked for."""
    aside = json.loads((rows.schema.metadata or {}).get(b"predcube_aside", b"{}"))
    for name, axes in aside.items():
        typer.echo(f"{name} runs over {' and '.join(axes)} too: --select {name}, or --at {axes[0]}=VALUE", err=True)


def _say_what_is_missing(rows: "pa.Table") -> None:
    """One line on standard error about trials without a number, where there are any."""
    totals = json.loads((rows.schema.metadata or {}).get(b"predcube", b"{}"))
    every = sum(totals.values())
    said = [f"{totals[w]:,} {w}" for w in ("missing", "failed", "infeasible") if totals.get(w)]
    if said:
        typer.echo(f"of {every:,} trials: {', '.join(said)} (see predcube status)", err=True)
    partly = int((rows.schema.metadata or {}).get(b"predcube_partly", b"0"))
    if partly:
        typer.echo(
            f"{partly:,} trials are infeasible in part, their other quantities are done: each has a status of its own, "
            "as in --select '*'",
            err=True,
        )
