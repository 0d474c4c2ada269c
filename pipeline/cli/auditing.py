"""The privacy officer's command: audit."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer

from predcube.pipeline.cli.app import app


class Shape(StrEnum):
    """How a verdict is written."""

    table = "table"
    json = "json"


class Method(StrEnum):
    """How mixtures are computed."""

    auto = "auto"
    analytic = "analytic"
    laplace = "laplace"
    support = "support"
    enumerate = "enumerate"
    mc = "mc"


@app.command()
def audit(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A CSV, Parquet or Arrow file.")],
    features: Annotated[list[str], typer.Option(metavar="A,B", help="The columns to predict from.")],
    label: Annotated[
        str,
        typer.Option(metavar="L", help="The column to predict, of 0 and 1, or an SQL condition such as 'age >= 60'."),
    ],
    hypotheses: Annotated[str, typer.Option(metavar="KIND[:param=value,…]", help="The class; see `predcube classes`.")],
    learner: Annotated[str, typer.Option(metavar="KIND[:param=value,…]", help="The learner; see `predcube learners`.")],
    rows: Annotated[int | None, typer.Option(metavar="N", help="Audit so many rows, drawn by --seed.")] = None,
    method: Annotated[Method, typer.Option(help="How predictions are computed; all but mc are exact.")] = Method.auto,
    samples: Annotated[int | None, typer.Option(min=2, metavar="N", help="Subsets that mc draws.")] = None,
    neighbours: Annotated[
        int, typer.Option(min=1, metavar="N", help="Replacements to try at most, where features are real numbers.")
    ] = 4096,
    seed: Annotated[int, typer.Option(min=0, help="Draws rows, replacements and subsets, where any are drawn.")] = 0,
    delta: Annotated[
        list[float] | None, typer.Option(metavar="EPS", help="Show δ(ε) at this ε; repeat. Default: 0.1, 0.5, 1.")
    ] = None,
    predictions: Annotated[
        list[int] | None, typer.Option(metavar="M", help="Cost of M predictions; repeat. Default: 1, 10, 100, 1000.")
    ] = None,
    slack: Annotated[float, typer.Option(metavar="D", help="δ′ of advanced and optimal composition.")] = 1e-6,
    format: Annotated[Shape, typer.Option(help="For people or for programs.")] = Shape.table,
) -> None:
    """What one row of a table can change: stability, privacy loss ε, δ(ε), the row that shows it, and what many
    predictions cost at most.

    For example: predcube audit nhefs.csv --features age --label "death = 1" --hypotheses thresholds --learner
    stable_flip:epsilon=1,alpha=0.1"""
    from predcube.pipeline.failures import BadInput, Interrupted
    from predcube.pipeline.table_audits import DELTAS, PREDICTIONS, Request, audit_table
    from predcube.pipeline.verdicts import as_data, as_text

    names = tuple(name.strip() for part in features for name in part.split(",") if name.strip())
    if not names:
        raise BadInput(f"--features {','.join(features)!r} names no column; give at least one")
    request = Request(
        table=table,
        features=names,
        label=label,
        hypotheses=hypotheses,
        learner=learner,
        rows=rows,
        method=method.value,
        samples=samples,
        neighbours=neighbours,
        seed=seed,
        deltas=tuple(delta or DELTAS),
        predictions=tuple(predictions or PREDICTIONS),
        slack=slack,
    )
    try:
        with _shown() as progress:
            verdict = audit_table(request, progress=progress)
    except KeyboardInterrupt:
        raise Interrupted("stopped; nothing was written") from None
    if format is Shape.json:
        typer.echo(json.dumps(as_data(verdict), ensure_ascii=False, allow_nan=False, indent=1))
        return
    from rich.console import Console

    Console(highlight=False).print(as_text(verdict))


@contextmanager
def _shown() -> Iterator[Callable[[int, int], None]]:
    """Neighbours tried so far, on standard error: a bar in a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("neighbours"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=2, transient=True) as bar:
        task = bar.add_task("neighbours", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(every: float = 10.0) -> Callable[[int, int], None]:
    """Prints a line every so many seconds, the first after as many, with the time left at the pace so far."""
    from predcube.pipeline.outlook import duration

    start = last = time.monotonic()

    def say(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= every:
            last = now
            left = f", about {duration((total - done) * (now - start) / done)} left" if done else ""
            print(f"{done:,} of {total:,} neighbours tried{left}", file=sys.stderr, flush=True)

    return say
