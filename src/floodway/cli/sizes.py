"""Sizes of memory, as users write them: bytes, or ``512MB``."""

import re
from typing import Annotated

import typer

from floodway.core.errors import OptionError

_UNITS = {"": 1, "b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")

MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--state-memory",
        metavar="SIZE",
        help="State that each task keeps in memory, e.g. 512MB; the rest goes to disk.",
    ),
]
"""The type of a command's ``--state-memory SIZE`` parameter."""


def memory_of(size: str | None) -> int | None:
    """Return a size in bytes; None if none is given.

    >>> memory_of("512MB"), memory_of("1.5 GiB"), memory_of("4096"), memory_of(None)
    (536870912, 1610612736, 4096, None)
    """
    if size is None:
        return None
    found = _SIZE.fullmatch(size.lower().replace("ib", "b"))
    unit = found[2] if found else None
    if found is None or unit not in _UNITS or not float(found[1]):
        raise OptionError(
            f"--state-memory {size!r} is not a size",
            remedy="write a number of bytes, or one with KB, MB or GB, such as 512MB",
        )
    return int(float(found[1]) * _UNITS[unit])
