"""What every system under test is given, and where it leaves what it has found.

Only Python's own library is used here: systems run in environments of their own, some without
Floodway. A system is started with the name of a file, its `Task`. It reads lines until there are no
more, from sockets (`Link`) or from a Kafka topic (`Signal`), and hands each result to
`Results`, right after the operator under test, with the time of the latest event that went into it.
"""

import json
import os
import signal
import socket
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

READ_BYTES = 64 * 1024
"""So much is read from a socket at a time."""

SAVE_S = 1.0
"""How often timings are written down while a system runs."""

QUIET_S = 3.0
"""A system that is not told of the end is at its end when no result has come for so long."""

FIRST_S = 30.0
"""The first result may take so long after the last event."""

TALLY_MS = 1_000
"""Results that are not told one by one are counted for each second of event time."""

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
        Where data engines are, on this host.
    folder
        Where results go.
    dop
        How many tasks, workers or processes it should use.
    options
        What the workload, or the system, needs to know besides.
    link
        Where events are: ``"tcp"``, at the ports, or ``"kafka"``, in the topic.
    servers, topic
        The Kafka brokers, and the topic; it has as many partitions as there are ports.
    redis
        The port of a Redis in which results are to be stored; 0 if they are not.
    """

    case: str
    ports: list[int]
    folder: str
    dop: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    link: str = "tcp"
    servers: str = ""
    topic: str = ""
    redis: int = 0

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


class Signal:
    """Lets data engines begin to fill a topic, and knows when they have sent everything.

    To be made when the system is ready to read: events are due from this moment on.
    """

    def __init__(self, task: Task) -> None:
        self._folder = Path(task.folder)
        self._links = [socket.create_connection(("127.0.0.1", port)) for port in task.ports]

    def wait(self) -> None:
        """Wait until everything was sent, and then until no result has come for a while."""
        for link in self._links:
            while link.recv(READ_BYTES):
                pass
            link.close()
        seen, since = self._size(), time.monotonic()
        while time.monotonic() - since < (QUIET_S if seen else FIRST_S):
            time.sleep(0.1)
            size = self._size()
            if size != seen:
                seen, since = size, time.monotonic()

    def _size(self) -> int:
        """Return how much all parts of the system have written down."""
        return sum(path.stat().st_size for path in self._folder.glob("times-*"))


class Redis:
    """Stores results in a Redis: a hash for each key, with a field for each window."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._replies = self._socket.makefile("rb")

    def store(self, rows: Iterable[Row]) -> None:
        """Store results, and wait until that is done."""
        commands = [("HSET", key, window, value) for key, window, value, _ in rows]
        self._socket.sendall(b"".join(map(_command, commands)))
        for _ in commands:
            reply = self._replies.readline()
            if not reply.startswith(b":"):
                raise OSError(f"Redis answers {reply.decode(errors='replace').strip()!r}")

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def _command(words: Iterable[Any]) -> bytes:
    parts = [str(word).encode() for word in words]
    texts = [b"$%d\r\n%s\r\n" % (len(part), part) for part in parts]
    return b"*%d\r\n" % len(parts) + b"".join(texts)


class Results:
    """Takes results, and notes how long each took.

    `put` takes those of which there is a last one for every key and window; `tally` those that all
    count by themselves.

    Parameters
    ----------
    task, part
        The task, and which of the system's processes this is.
    """

    def __init__(self, task: Task, part: int | str = 0) -> None:
        self._folder, self._part = Path(task.folder), part
        self._last: dict[tuple[Any, int], Any] = {}
        self._tally: dict[int, list[int]] = {}
        self._times = array("q")
        self._file = (self._folder / f"times-{part}").open("ab", buffering=0)
        self._saved = time.monotonic()
        self._redis = Redis(task.redis) if task.redis else None

    def put(self, rows: Iterable[Row], at_us: int = 0) -> None:
        """Take results that come out at this moment, or came out at another."""
        if self._redis is not None:
            rows = list(rows)
            self._redis.store(rows)
        out_us, last, times = at_us or time.time_ns() // 1000, self._last, self._times
        for key, window, value, time_ms in rows:
            last[key, window] = value
            times.append(time_ms)
            times.append(out_us)
        self._look()

    def tally(self, rows: Iterable[tuple[int, int]], at_us: int = 0) -> None:
        """Take results, each an amount and a time: how many there are, and what they add up to."""
        out_us, tally, times = at_us or time.time_ns() // 1000, self._tally, self._times
        for amount, time_ms in rows:
            second = time_ms - time_ms % TALLY_MS
            held = tally.get(second)
            if held is None:
                tally[second] = [1, amount]
            else:
                held[0] += 1
                held[1] += amount
            times.append(time_ms)
            times.append(out_us)
        self._look()

    def _look(self) -> None:
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
        if self._redis is not None:
            self._redis.close()
        found = [[key, window, value] for (key, window), value in self._last.items()]
        tally = [[second, *held] for second, held in self._tally.items()]
        part = self._folder / f"found-{self._part}.part"
        part.write_text(json.dumps({"found": found, "tally": tally}))
        part.rename(part.with_suffix(".json"))


def run(start: Callable[[Task], None]) -> None:
    """Run a system for the task in the first argument; it ends with whoever has started it."""

    def end_together() -> None:
        while os.read(0, 4096):
            pass
        os.killpg(0, signal.SIGKILL)

    if os.getpgid(0) == os.getpid():  # a group of its own: nobody else is in it
        threading.Thread(target=end_together, daemon=True).start()
    start(Task.read())
