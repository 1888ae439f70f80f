"""What the commands share when they write results for machines.

A command that has something to report takes ``JsonOption`` and hands its document to
``write_json``. ``-`` stands for standard output; a command then prints nothing else there, so
that the output can be piped.
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from floodway.core.errors import FloodwayError
from floodway.core.files import write_whole

STDOUT = "-"
"""The target that stands for standard output."""

JsonOption = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the result as JSON to FILE, or to standard output if FILE is '-'.",
    ),
]
"""The type of a command's ``--json FILE`` parameter."""


class OutputError(FloodwayError):
    """A result cannot be written where the user wants it."""


def to_json(document: Any) -> str:
    """Return ``document`` as indented JSON that ends with a newline.

    Parameters
    ----------
    document
        Anything msgspec can encode: structs, dictionaries, lists and scalars.

    Examples
    --------
    >>> print(to_json({"status": "ok", "cores": 2}), end="")
    {
      "status": "ok",
      "cores": 2
    }
    """
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def write_json(document: Any, target: str) -> None:
    """Write ``document`` as JSON to a file or to standard output.

    Parameters
    ----------
    document
        Anything msgspec can encode.
    target
        A file name, or ``STDOUT``.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    text = to_json(document)
    if target == STDOUT:
        sys.stdout.write(text)
        return
    try:
        write_whole(Path(target), text.encode())
    except OSError as error:
        raise OutputError(
            f"cannot write {target!r}: {error.strerror or error}",
            remedy="name a file in a folder that exists and that you may write to, or '-'",
        ) from error
