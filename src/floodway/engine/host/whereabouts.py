"""Which process is which: a number alone does not tell, on several hosts and after a while.

Hosts may have the same name, containers on one host the same numbers, and a number is given away
again when its process has ended. A process is the one that was meant if it is on the same machine,
has the same number, and began at the same moment.
"""

import contextlib
import os
import time
import uuid
from functools import cache
from pathlib import Path

import msgspec
import psutil

KILL_SECONDS = 5.0
"""How long a killed process may take to be gone."""


class Whereabouts(msgspec.Struct, frozen=True):
    """A process that can be told from all others.

    Attributes
    ----------
    machine
        The machine, as it was started, and the part of it that has its own numbers of processes.
    pid, began
        Its number, and when it began, in the machine's own count.

    Examples
    --------
    >>> Whereabouts.here() == Whereabouts.here()
    True
    """

    machine: str
    pid: int
    began: int

    @classmethod
    def here(cls) -> "Whereabouts":
        """Return those of this process."""
        return cls(_machine(), os.getpid(), _began(os.getpid()))

    @property
    def near(self) -> bool:
        """Whether it is another process, on this machine."""
        return self.machine == _machine() and self.pid != os.getpid()

    def kill(self) -> None:
        """Kill the process if it is on this machine, and see that it is gone.

        One that is gone already, and another one that has its number by now, are left alone.
        """
        if not self.near:
            return
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(self.pid)
            if _began(self.pid) == self.began:
                process.kill()
                _see_off(process)


def _see_off(process: psutil.Process) -> None:
    """Wait until a killed process does nothing more; it need not be buried."""
    deadline = time.monotonic() + KILL_SECONDS
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return
        time.sleep(0.002)


@cache
def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:  # not Linux
        return f"{os.uname().nodename}/{uuid.getnode()}"


def _began(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return int(stat.rpartition(b")")[2].split()[19])  # in ticks since the machine started
    except FileNotFoundError:
        return int(psutil.Process(pid).create_time())
