"""A wall clock of its own for every Python process, which can be set from outside.

A copy of this file, named ``sitecustomize.py`` and on the path of an interpreter, makes
``time.time`` and ``time.time_ns`` read it; so whoever reads the wall clock, in whichever library,
is told a wrong time. Every process has a file of its number in a folder, with the nanoseconds by
which its clock is wrong. It begins with those of the machine.

It imports nothing of Floodway: every process of a flow begins with it, Spark's too.
"""

import mmap
import os
import struct
import time
from pathlib import Path

VARIABLE = "FLOODWAY_CHAOS_CLOCKS"
"""The environment variable with the folder."""

MACHINE = "machine"
"""The file of the machine's clock: with it begins whoever begins."""

_NS = struct.Struct("<q")


def wrong_by(folder: Path, name: str) -> int:
    """Return by how many nanoseconds the clock of a process is wrong, or that of the machine."""
    try:
        return int(_NS.unpack((folder / name).read_bytes())[0])
    except FileNotFoundError:
        return 0


def set_clock(folder: Path, name: str, by_ns: int) -> None:
    """Set the clock of a process that is there, or that of the machine, forward or back."""
    now = _NS.pack(wrong_by(folder, name) + by_ns)
    with open(folder / name, "r+b" if (folder / name).exists() else "wb") as file:
        file.write(now)


class _Clock:
    """The clock of this process, and after a fork that of the new one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        own = self._folder / str(os.getpid())
        own.write_bytes(_NS.pack(wrong_by(self._folder, MACHINE)))
        with open(own, "rb") as file:
            self._wrong = mmap.mmap(file.fileno(), _NS.size, access=mmap.ACCESS_READ)

    def install(self) -> None:
        """Let everybody in this process read this clock."""
        right, right_ns, unpack = time.time, time.time_ns, _NS.unpack_from
        time.time = lambda: right() + unpack(self._wrong)[0] / 1e9
        time.time_ns = lambda: right_ns() + unpack(self._wrong)[0]


if __name__ == "sitecustomize" and os.environ.get(VARIABLE):
    _Clock(Path(os.environ[VARIABLE])).install()
