"""What every system under test is given, and where it leaves what it has found.

Only Python's own library is used here: systems run in environments of their own, some without
Floodway. A system is started with the name of a file, its `Task`. It connects to every port, reads
lines until all of them are closed, and hands each result to `Results`, right after the operator
under test, with the time of the latest event that went into it.
"""

import json
import selectors
import socket
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

READ_BYTES = 64 * 1024
"""So much is read from a socket at a time."""

SAVE_S = 1.0
"""How often timings are written down while a system runs."""

Row = tuple[Any, int, Any, int]
"""A result: key, start of the window (0 if there is none), value, time of the latest event."""


@dataclass(frozen=True)
class Task:
    """What a system has to do.

    Attributes
    ----------
    case
        Which workload.
    ports
        Where the events are, on this host.
    folder
        Where results go.
    dop
        How many tasks, workers or processes it should use.
    options
        What the workload, or the system, needs to know besides.
    """

    case: str
    ports: list[int]
    folder: str
    dop: int = 1
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path | None = None) -> "Task":
        """Return the task in a file; without one, that of the first argument."""
        return cls(**json.loads(Path(path or sys.argv[1]).read_text()))

    def write(self, path: str | Path) -> None:
        """Write the task into a file."""
        Path(path).write_text(json.dumps(vars(self)))


class Link:
    """The connection to a data engine: whole lines, as many as there are."""

    def __init__(self, port: int, *, blocking: bool = True) -> None:
        self.socket = socket.socket()
        # What is in here counts as taken, and would hide that nobody reads it for seconds.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, READ_BYTES)
        self.socket.settimeout(30)
        self.socket.connect(("127.0.0.1", port))
        self.socket.settimeout(None if blocking else 0)
        self._rest = b""

    def read(self) -> bytes | None:
        """Return what has come, which may be nothing; None at the end."""
        try:
            data = self.socket.recv(READ_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self.socket.close()
            return None
        whole = self._rest + data
        stop = whole.rfind(b"\n") + 1
        self._rest = whole[stop:]
        return whole[:stop]


def chunks(ports: list[int]) -> Iterator[bytes]:
    """Return the lines of data engines as they come."""
    with selectors.DefaultSelector() as selector:
        for port in ports:
            link = Link(port, blocking=False)
            selector.register(link.socket, selectors.EVENT_READ, link)
        while selector.get_map():
            for ready, _ in selector.select():
                lines = ready.data.read()
                if lines:
                    yield lines
                elif lines is None:
                    selector.unregister(ready.fileobj)


class Results:
    """Takes results: the latest of every key and window, and how long each took.

    Parameters
    ----------
    task, part
        The task, and which of the system's processes this is.
    """

    def __init__(self, task: Task, part: int | str = 0) -> None:
        self._folder, self._part = Path(task.folder), part
        self._last: dict[tuple[Any, int], Any] = {}
        self._times = array("q")
        self._file = (self._folder / f"times-{part}").open("ab", buffering=0)
        self._saved = time.monotonic()

    def put(self, rows: Iterable[Row]) -> None:
        """Take results that come out at this moment."""
        now_us, last, times = time.time_ns() // 1000, self._last, self._times
        for key, window, value, time_ms in rows:
            last[key, window] = value
            times.append(time_ms)
            times.append(now_us)
        if time.monotonic() - self._saved > SAVE_S:
            self._save()

    def _save(self) -> None:
        self._saved = time.monotonic()
        self._file.write(self._times.tobytes())
        del self._times[:]

    def close(self) -> None:
        """Write down what was found at last."""
        self._save()
        self._file.close()
        found = [[key, window, value] for (key, window), value in self._last.items()]
        part = self._folder / f"found-{self._part}.part"
        part.write_text(json.dumps(found))
        part.rename(part.with_suffix(".json"))


def run(start: Callable[[Task], None]) -> None:
    """Run a system for the task in the first argument."""
    start(Task.read())
