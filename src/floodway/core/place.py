"""Where in the user's source something was written.

Errors that arise long after a flow was built still point at the line that built it, so every
operator remembers its place: the nearest frame on the stack that is not Floodway's own.
"""

import contextlib
import os
import sys
from typing import Self

import msgspec

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# A context manager of ours is entered through contextlib, which is not the user's either.
_OURS = (_PACKAGE, contextlib.__file__)


class Place(msgspec.Struct, frozen=True):
    """A file and a line of the user's program.

    >>> str(Place("flows/ads.py", 12))
    'flows/ads.py:12'
    """

    file: str
    line: int

    @classmethod
    def here(cls) -> Self:
        """Return the place of the nearest caller outside Floodway."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
            frame = frame.f_back
        return cls.of(frame.f_code.co_filename, frame.f_lineno)

    @classmethod
    def of(cls, file: str, line: int) -> Self:
        """Return the place of a line; a file below the current folder is named as seen from there.

        That is settled here and now: in another process, where the current folder is another, the
        place is still called the same.
        """
        relative = os.path.relpath(file) if os.path.isabs(file) else file
        return cls(file if relative.startswith("..") else relative, line)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"
