"""The one Typer application; each module beside this one adds its commands to it."""

import re
import shlex
import sys
from typing import Annotated, Any

import typer

from predcube import __version__
from predcube.cluster.failures import ClusterError
from predcube.pipeline.failures import BadInput, UserError
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
        status = app(prog_name="predcube", standalone_mode=False)
    except (UserError, StoreError, ClusterError) as e:
        if _state["debug"]:
            raise
        print(f"predcube: {e}", file=sys.stderr)
        sys.exit(e.status)
    except _Misuse as e:
        message = _misuse(e)
        print(f"predcube: {message}" if message else e.format_message(), file=sys.stderr)
        sys.exit(BadInput.status)
    except Exception as e:
        if _state["debug"]:
            raise
        # Nobody's mistake but ours: still one message, and a way to the rest.
        print(f"predcube: internal error: {type(e).__name__}: {e}", file=sys.stderr)
        print(f"show the whole of it with: predcube --debug {shlex.join(sys.argv[1:])}", file=sys.stderr)
        sys.exit(1)
    sys.exit(status if isinstance(status, int) else 0)


# What every mistake in options and arguments is: the library keeps the class itself private.
_Misuse: Any = typer.BadParameter.__base__


def _misuse(error: Any) -> str:
    """What is wrong with options and arguments as this program says it: the value, its place, where to look. Empty
    where there were none at all, which asks for help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""
    text = error.format_message().strip().rstrip(".")
    cause = error.__cause__ or error.__context__
    if hasattr(cause, "errors"):
        [detail, *_] = cause.errors()
        option = getattr(error.param, "opts", [error.param.name])[-1]
        reason = re.sub("^(Value error, |Input )", "", detail["msg"]).partition(", unable to")[0].rstrip(".")
        text = f"{option} {detail['input']}: {reason.replace(repr(detail['input']) + ' is not', 'must be')}"
    command = getattr(error.ctx, "command_path", None) or "predcube"
    return f"{text[:1].lower()}{text[1:]}; see {command} --help"
