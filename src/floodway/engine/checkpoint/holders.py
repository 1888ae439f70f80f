"""Who holds a lock: what the kernel says, and what the lock's file says if the kernel does not."""

import os
import re
from pathlib import Path

import psutil

LOCKS = Path("/proc/locks")

_SAID = re.compile(r"([0-9]+) on (.+)")


def holder_of(found: os.stat_result, said: str) -> str:
    """Return in words who has locked a file.

    Parameters
    ----------
    found
        The file.
    said
        What is written in it: the process and the host of the last driver. That one may be gone,
        and somebody else may hold the lock.
    """
    match = _SAID.fullmatch(said)
    pid = locked_by(found, LOCKS.read_text() if LOCKS.exists() else "")
    here = os.uname().nodename
    if match and (pid is None or (int(match[1]), here) == (pid, match[2])):
        there = match[2] != here or psutil.pid_exists(int(match[1]))
        if there:
            return f"another driver: process {said}"
    if pid is not None:
        return f"process {pid} on {here}, {_described(pid)}, which is not its driver"
    last = f"; its last driver was process {said}" if match else ""
    return f"a process that cannot be seen from {here}{last}"


def locked_by(found: os.stat_result, locks: str) -> int | None:
    """Return which process has locked a whole file; None if the kernel does not tell.

    >>> found = os.stat_result((0, 77, os.makedev(8, 1), *[0] * 7))
    >>> locked_by(found, "3: FLOCK  ADVISORY  WRITE 4711 08:01:77 0 EOF")
    4711
    """
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    for line in locks.splitlines():
        fields = line.split()
        # A line with an arrow is about one who waits; 0 is a process of another container.
        if len(fields) == 8 and fields[1] == "FLOCK" and fields[5] == device and int(fields[4]) > 0:
            return int(fields[4])
    return None


def _described(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        return f"{process.name()!r} of the user {process.username()}"
    except psutil.Error:
        return "which has ended and left the lock to a child"
