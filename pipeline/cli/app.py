"""The one Typer application; each module beside this one adds its commands to it."""

import shlex
import sys
from typing import Annotated

import typer

from predcube import __version__
from predcube.cluster.failures import ClusterError
from predcube.pipeline.failures import UserError
from predcube.storage.failures import StoreError

app = typer.Typer(
    name="predcube",
    help="Exact costs of stable and private predictions, and of data releases, as labelled cubes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"predcube {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    _state["debug"] = debug


_state = {"debug": False}


def main() -> None:
    """Entry point: runs the command; a mistake of the user's becomes one message and its exit status."""
    from predcube.pipeline.cli import commands  # noqa: F401  (registers every command)

    try:
        app()
    except (UserError, StoreError, ClusterError) as e:
        if _state["debug"]:
            raise
        print(f"predcube: {e}", file=sys.stderr)
        sys.exit(e.status)
    except Exception as e:
        if _state["debug"]:
            raise
        # Nobody's mistake but ours: still one message, and a way to the rest.
        print(f"predcube: internal error: {type(e).__name__}: {e}", file=sys.stderr)
        print(f"show the whole of it with: predcube --debug {shlex.join(sys.argv[1:])}", file=sys.stderr)
        sys.exit(1)
