"""How commands find a flow: ``package.module:flow`` or ``folder/file.py:flow``."""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from floodway.core.errors import FloodwayError
from floodway.model.flow import Flow
from floodway.model.tuning import Tuning
from floodway.plan import Configuration

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


class LoadError(FloodwayError):
    """A flow cannot be found or loaded."""


def load_flow(where: str) -> Flow:
    """Return the flow that `where` names."""
    module_name, _, attribute = where.partition(":")
    found = getattr(_module(module_name), attribute or "flow", None)
    if callable(found) and not isinstance(found, Flow):
        found = found()
    if not isinstance(found, Flow):
        what = "nothing" if found is None else f"a {type(found).__name__}"
        raise LoadError(
            f"{where} is {what}, not a flow",
            remedy="name a Flow or a function that returns one, e.g. flows/ads.py:flow",
        )
    return found


def _module(name: str) -> Any:
    if name.endswith(".py"):
        return _from_file(Path(name))
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise
        raise LoadError(
            f"there is no module {name!r}",
            remedy="run the command in the folder that holds it, or name the file: path/to/file.py",
        ) from None


def _from_file(path: Path) -> Any:
    if not path.is_file():
        raise LoadError(f"there is no file {path}", remedy="name an existing file")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(path.stem)


def configuration_of(
    file: Path | None, dop: int | None, b_out: int | None, linger: str | None
) -> Configuration:
    """Return the configuration that the options give; options come before the file."""
    given = Configuration.read(file) if file is not None else Configuration()
    default = Tuning(dop=dop, b_out=b_out, linger=linger).over(given.default)
    return Configuration(default, given.operators)
