"""Finding a flow by its name: ``package.module:flow`` or ``folder/file.py:flow``."""

import importlib
import sys
from pathlib import Path
from typing import Any

from floodway.core.errors import FloodwayError
from floodway.model.flow import Flow


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
