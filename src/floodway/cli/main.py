"""The ``floodway`` command."""

import signal
import threading
from importlib.metadata import version
from types import FrameType
from typing import Annotated

import typer

from floodway.cli.check_upgrade import check_upgrade
from floodway.cli.demo import demo
from floodway.cli.doctor import doctor
from floodway.cli.errors import ErrorReportingGroup
from floodway.cli.explain import explain
from floodway.cli.extensions import add_commands
from floodway.cli.plan import plan
from floodway.cli.prepare import prepare
from floodway.cli.rescale import rescale
from floodway.cli.run import run
from floodway.cli.story import story
from floodway.cli.top import top
from floodway.cli.walkthrough import walkthrough

app = typer.Typer(
    name="floodway",
    cls=ErrorReportingGroup,
    help="Stream processing in Python on Apache Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
"""The command line application; each command registers itself here."""

app.command()(check_upgrade)
app.command()(demo)
app.command()(doctor)
app.command()(explain)
app.command()(plan)
app.command()(prepare)
app.command()(rescale)
app.command()(run)
app.command()(story)
app.command()(top)
app.command()(walkthrough)
add_commands(app)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - the signature of a click callback
    if wanted:
        typer.echo(f"floodway {version('floodway')}")
        raise typer.Exit


@app.callback()
def main(
    *,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="FLOODWAY_DEBUG", help="Show the traceback of errors."),
    ] = False,
) -> None:
    """Stream processing in Python on Apache Spark."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, _frame: FrameType | None) -> None:
    """End in good order when asked to: what a command has started ends with it."""
    raise SystemExit(128 + number)
