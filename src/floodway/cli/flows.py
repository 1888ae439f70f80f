"""How commands are told which flow, and how it is to run."""

from pathlib import Path
from typing import Annotated

import typer

from floodway.model.tuning import Tuning
from floodway.plan import Configuration


def on_command_line(option: str) -> str:
    """Return what an option is called on the command line.

    >>> on_command_line("max_tasks")
    '--max-tasks'
    """
    return f"--{option.replace('_', '-')}"


FlowArgument = Annotated[
    str,
    typer.Argument(
        metavar="FLOW",
        help="The flow: package.module:name or path/to/file.py:name. The name may be that of a "
        "function that returns the flow, and is 'flow' if left out.",
    ),
]

DopOption = Annotated[
    int | None,
    typer.Option("--dop", min=1, envvar="FLOODWAY_DOP", help="Tasks per stage, where not said."),
]
BatchOption = Annotated[
    int | None,
    typer.Option("--b-out", min=1, envvar="FLOODWAY_B_OUT", help="Records per frame at most."),
]
LingerOption = Annotated[
    str | None,
    typer.Option(
        "--linger", envvar="FLOODWAY_LINGER", help="How long a record may wait for a full frame."
    ),
]
ConfigurationOption = Annotated[
    Path | None,
    typer.Option("--configuration", metavar="FILE", help="A TOML file with dop, b_out, linger."),
]


def configuration_of(
    file: Path | None, dop: int | None, b_out: int | None, linger: str | None
) -> Configuration:
    """Return the configuration that the options give; options come before the file."""
    given = Configuration.read(file) if file is not None else Configuration()
    return given.with_default(Tuning(dop=dop, b_out=b_out, linger=linger))
