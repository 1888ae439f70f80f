"""Commands that other packages bring.

A package adds a command to ``floodway`` by an entry point of the group `GROUP`, which names a
function or a Typer application. Those of the laboratory, ``floodway-lab``, are known here by name:
where it is not installed, each says how to get it.
"""

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import NoReturn

import typer

from floodway.core.errors import FloodwayError

GROUP = "floodway.commands"
"""The group of entry points whose objects become commands."""

LAB = {
    "bench": "Measure Floodway on this machine.",
    "chaos": "Run a flow, kill its processes, and see that nothing is lost.",
    "simulate": "Run a cluster in one process, with failures drawn from a seed.",
}
"""The commands of the laboratory, and what each is for."""


def add_commands(app: typer.Typer, points: Iterable[EntryPoint] | None = None) -> None:
    """Add the commands of other packages, and those that say what is missing."""
    found = entry_points(group=GROUP) if points is None else points
    taken = {_name(command) for command in app.registered_commands}
    for point in sorted(found, key=lambda point: point.name):
        if point.name not in taken:
            taken.add(point.name)
            _add(app, point)
    for name, what in LAB.items():
        if name not in taken:
            problem = f"`floodway {name}` is part of floodway-lab, which is not installed"
            remedy = "pip install floodway-lab; in a checkout: pip install -e lab"
            _add_refusal(app, name, f"{what} (needs floodway-lab)", problem, remedy)


def _name(command: typer.models.CommandInfo) -> str:
    called = command.callback.__name__ if command.callback is not None else ""
    return command.name or called.replace("_", "-")


def _add(app: typer.Typer, point: EntryPoint) -> None:
    try:
        command = point.load()
    except Exception as error:  # whatever a package does when it is imported
        package = point.dist.name if point.dist is not None else point.value
        problem = f"`floodway {point.name}` of {package} cannot be loaded: {error}"
        remedy = f"install {package} again, in a version for this Floodway"
        _add_refusal(app, point.name, f"Cannot be loaded from {package}.", problem, remedy)
        return
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=point.name)
    else:
        app.command(point.name)(command)


def _add_refusal(app: typer.Typer, name: str, what: str, problem: str, remedy: str) -> None:
    """Add a command that only says why it cannot be run, whatever it is asked."""
    anything = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    app.command(name, help=what, context_settings=anything)(_refusal(problem, remedy))


def _refusal(problem: str, remedy: str) -> Callable[[], NoReturn]:
    def refuse() -> NoReturn:
        raise FloodwayError(problem, remedy=remedy)

    return refuse
