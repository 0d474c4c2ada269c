"""The publisher's command: predictability."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer

from predcube.pipeline.cli.app import app


class Shape(StrEnum):
    """How an answer is written."""

    table = "table"
    json = "json"


class Loss(StrEnum):
    """How a prediction is scored."""

    squared = "squared"
    log = "log"


class Convention(StrEnum):
    """Which reading of the paper is computed."""

    corrected = "corrected"
    paper = "paper"


@app.command()
def predictability(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A CSV, Parquet or Arrow file, or a folder of them.")],
    query: Annotated[
        list[str],
        typer.Option(
            metavar="[NAME=]EXPR",
            help="What is sensitive: a column or an SQL expression; repeat for a family. Or a TOML table, such as "
            "'{ state = { categories = \"bpl\" } }'.",
        ),
    ],
    release: Annotated[
        str,
        typer.Option(
            metavar="KIND[:param=value,…]",
            help="What is published: mean, proportion, count (columns=a,b), linear, ridge, logistic, poisson "
            "(target=y,features=a,b), gradient_descent, stack. Or a TOML table.",
        ),
    ],
    process: Annotated[
        list[str],
        typer.Option(
            metavar="KIND[:param=value,…]",
            help="How the attacker came to its rows: random_shard:fraction=0.3, iid:size=100, weighted, poisson, "
            "whole_shards, markov. Repeat, and the one under which most is gained is shown.",
        ),
    ],
    noise: Annotated[
        str,
        typer.Option(
            metavar="KIND[:param=value,…]",
            help="Noise on what is published: isotropic:sd=0.1, calibrated:level=1 (halves r²), rank_one:gain=1e-5, "
            "gaussian:epsilon=1,delta=1e-5,sensitivity=0.01, laplace.",
        ),
    ] = "none",
    loss: Annotated[Loss, typer.Option(help="Squared error, or log loss in nats of a binary query.")] = Loss.squared,
    tau: Annotated[
        float | None, typer.Option(metavar="T", help="Log loss: bounds hold for estimates in [T, 1−T].")
    ] = None,
    convention: Annotated[
        Convention, typer.Option(help="paper: the printed formula, whose noise counts too little.")
    ] = Convention.corrected,
    target: Annotated[
        float | None,
        typer.Option(metavar="GAIN", help="Also: the noise of each scheme that brings sharp down to this."),
    ] = None,
    simulate: Annotated[
        int | None, typer.Option(min=2, metavar="DRAWS", help="Also: run the attacker so many times.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws of --simulate and of families.")] = 0,
    format: Annotated[Shape, typer.Option(help="For people or for programs.")] = Shape.table,
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", metavar="FILE", help="Draw cost against gain of every scheme: .png, .svg or .pdf."),
    ] = None,
) -> None:
    """What a published statistic or model tells someone who already holds part of the table: how much of the
    uncertainty about a sensitive query it removes, and what noise would change that.

    For example: predcube predictability nhefs.csv --query "quit=qsmk = 1" --release mean:columns=age,wt71 --process
    random_shard:fraction=0.3 --target 1e-6"""
    from predcube.pipeline.disclosures import Request, disclose
    from predcube.pipeline.failures import BadInput, Interrupted
    from predcube.pipeline.figures import check_format, save
    from predcube.pipeline.frontier import figure

    if out is not None:
        check_format(out)
    request = Request(
        table=table,
        queries=tuple(query),
        release=release,
        processes=tuple(process),
        noise=noise,
        loss=loss.value,
        tau=tau,
        convention=convention.value,
        target=target,
        simulate=simulate,
        seed=seed,
        curves=out is not None,
    )
    try:
        with _shown(table) as (say, report):
            found = disclose(request, say=say, report=report)
    except KeyboardInterrupt:
        raise Interrupted("stopped; nothing was written") from None
    if format is Shape.json:
        from predcube.pipeline.disclosure_words import as_data

        typer.echo(json.dumps(as_data(found), ensure_ascii=False, allow_nan=False, indent=1))
    else:
        from rich.console import Console

        from predcube.pipeline.disclosure_words import as_text

        Console(highlight=False).print(as_text(found))
    if out is not None:
        if not found.lines:
            raise BadInput(f"{out}: there is nothing to draw, since no query gains anything without noise")
        save(figure(found.worked, found.lines, target), out)
        if format is Shape.table:
            typer.echo(f"drew {out}")


type Reports = tuple[Callable[[str], None], Callable[[int, int], None]]


@contextmanager
def _shown(table: str) -> Iterator[Reports]:
    """What is being read, on standard error while it lasts: a line in a terminal, else nothing."""
    if not sys.stderr.isatty():
        yield (lambda text: None), (lambda done, parts: None)
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(f"{table}: looking at its columns")) as status:
        doing = [""]

        def say(text: str) -> None:
            doing[0] = text
            status.update(Text(text))

        def report(done: int, parts: int) -> None:
            status.update(Text(f"{doing[0]}, {done} of {parts} parts" if parts > 1 else doing[0]))

        yield say, report
