"""A flood of events: so many a second, whatever the flow makes of them.

The events are sent by a process of their own, which is never slower because the flow is: it knows
beforehand when each event is due, and what is late is sent as soon as there is room, with the time
at which it was due. So the time from there to a result is what somebody outside would measure
(*open loop*).

To find out how much a flow can take, events can also be sent as fast as they are taken (*closed
loop*).
"""

import json
import os
import pkgutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from floodway.bench import ads
from floodway.bench.feeding import CONNECT_SECONDS
from floodway.bench.supplies import (
    PREPARED,
    PROBE_MS,
    PROBES,
    Events,
    Lines,
    Supply,
    lookup,
    probe_name,
)
from floodway.core.errors import EngineError

__all__ = [
    "ADS",
    "BLOCK",
    "PREPARED",
    "PROBES",
    "PROBE_MS",
    "TAKEN",
    "TELL_S",
    "Ending",
    "Events",
    "Lines",
    "Phase",
    "Progress",
    "Sender",
    "Supply",
    "due_by",
    "lookup",
    "plain_limit",
    "probe_name",
    "schedule",
    "send",
    "serve",
]

TELL_S = 0.1
"""How often the sender says how far it is."""

TAKEN = -1
"""The rate of a phase in which events are sent as fast as they are taken."""

BLOCK = 1_000
"""So many events are sent at a time as fast as they are taken."""

ADS = "floodway.bench.supplies:Events"
"""Where the events of ads are."""


class Phase(msgspec.Struct, frozen=True):
    """A stretch of time with a load of its own; `TAKEN` is as much as is taken."""

    name: str
    seconds: float
    per_second: int


def schedule(phases: Sequence[Phase]) -> Iterator[tuple[int, int]]:
    """Return for each millisecond its number, and how many events are due in it.

    Examples
    --------
    >>> list(schedule([Phase("calm", 0.003, 1_500), Phase("flood", 0.002, 4_000)]))
    [(0, 1), (1, 2), (2, 1), (3, 4), (4, 4)]
    """
    first = 0
    for phase in phases:
        length = round(phase.seconds * 1000)
        for ms in range(length):
            due = (ms + 1) * phase.per_second // 1000 - ms * phase.per_second // 1000
            yield first + ms, due
        first += length


def due_by(phases: Sequence[Phase], seconds: float) -> int:
    """Return how many events are due after so many seconds.

    Examples
    --------
    >>> [due_by([Phase("calm", 2, 10), Phase("flood", 1, 100)], t) for t in (0.5, 2, 2.5, 9)]
    [5, 20, 70, 120]
    """
    due = 0
    for phase in phases:
        passed = min(max(seconds, 0.0), phase.seconds)
        due += int(passed * phase.per_second)
        seconds -= phase.seconds
    return due


def plain_limit(rounds: int = 3) -> int:
    """Return how many events a second a plain loop can do on this machine, in round numbers.

    Record by record, the ad pipeline comes to about half of it; see `docs/performance.md`.
    """
    known, lines = lookup(), ads.to_lines(ads.make_events(PREPARED))
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(5):
            ads.plain_count(lines, known)
        times.append(time.perf_counter() - began)
    return int(float(f"{5 * PREPARED / min(times):.2g}"))


class Progress(msgspec.Struct, frozen=True):
    """How far the sender is.

    Attributes
    ----------
    began_ms
        When it began, in milliseconds since 1970.
    sent
        How many events were sent.
    at_ms
        When that was.
    late_ms
        How long the last of them was due before it was taken.
    """

    began_ms: int
    sent: int
    at_ms: int = 0
    late_ms: float = 0.0


class Ending(msgspec.Struct, frozen=True):
    """The last word of the sender: what a plain loop counts."""

    counts: list[tuple[str, int, int]]


class Sender:
    """The flood, seen from the process that wants it: starts the sender and listens to it.

    A context manager. When it is left, the sender ends.

    Parameters
    ----------
    phases
        When how much is due.
    supply
        Which events: the name of a `Supply` that can be made without arguments.

    Attributes
    ----------
    port
        Where a flow has to connect to; the first event is due when it does.
    progress
        How far the sender is; None before the flow has come.
    history
        How far it was, ten times a second.
    """

    def __init__(self, phases: Sequence[Phase], supply: str = ADS) -> None:
        self.phases = tuple(phases)
        self.supply = supply
        self.port = 0
        self.progress: Progress | None = None
        self.history: list[Progress] = []
        self._counts: Counter[tuple[str, int]] | None = None
        self._done = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        phases = msgspec.json.encode(self.phases).decode()
        command = [sys.executable, "-m", __name__, phases, self.supply]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        said = self._process.stdout
        first = said.readline() if said is not None else b""
        if said is None or not first:
            raise EngineError("the sender of events did not start", remedy="try again")
        self.port = json.loads(first)
        threading.Thread(target=self._listen, args=(said,), daemon=True).start()
        return self

    def _listen(self, said: IO[bytes]) -> None:
        for line in said:
            told = json.loads(line)
            if "counts" in told:
                ending = msgspec.convert(told, Ending)
                self._counts = Counter({(name, start): n for name, start, n in ending.counts})
            else:
                self.progress = msgspec.convert(told, Progress)
                self.history.append(self.progress)
        self._done.set()

    def counts(self, timeout: float = 60.0) -> Counter[tuple[str, int]]:
        """Wait for what the flow has to find, as a plain loop counts it."""
        self._done.wait(timeout)
        if self._counts is None:
            raise EngineError("the sender of events has not come to its end", remedy="try again")
        return self._counts

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()  # which is how it learns that nobody wants it any more
            self._process.wait(10)
            self._done.wait(5)
            if self._process.stdout is not None:
                self._process.stdout.close()


# ---------------------------------------------------------------- in the process of the sender


def serve(phases: Sequence[Phase], tell: Any, supply: Supply) -> None:
    """Wait for a client, send it everything, and say how far that is."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(CONNECT_SECONDS)
        tell(server.getsockname()[1])
        client, _ = server.accept()
    with client:
        client.settimeout(None)
        send(phases, client, supply, tell)
    tell(Ending([(name, start, n) for (name, start), n in supply.counts().items()]))


def send(phases: Sequence[Phase], client: socket.socket, supply: Supply, tell: Any) -> None:
    """Send every event as soon as it is due."""
    sending = _Sending(client, supply, tell)
    for phase in phases:
        if phase.per_second == TAKEN:
            sending.pour(phase)
        else:
            sending.keep_to(phase)
    sending.say(late_ms=0.0)


class _Sending:
    """What has been sent, and what comes next."""

    def __init__(self, client: socket.socket, supply: Supply, tell: Any) -> None:
        self._client, self._supply, self._tell = client, supply, tell
        self._began, self._began_ms = time.monotonic(), time.time_ns() // 1_000_000
        self._told = self._began
        self._first_ms = self._sent = 0  # where the phase begins; how many events were sent
        self.say(late_ms=0.0)

    def keep_to(self, phase: Phase) -> None:
        """Send what is due, not before and whenever there is room."""
        for ms, due in schedule([phase]):
            at_ms = self._first_ms + ms
            ahead = self._began + at_ms / 1000 - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
            if due:
                self._client.sendall(self._supply.due(at_ms, due, self._began_ms + at_ms))
                self._sent += due
            self._say_at_times(at_ms)
        self._first_ms += round(phase.seconds * 1000)

    def pour(self, phase: Phase) -> None:
        """Send as much as is taken."""
        last_ms = self._first_ms + round(phase.seconds * 1000)
        probed_ms = at_ms = self._first_ms
        while at_ms < last_ms:
            probe = at_ms >= probed_ms + PROBE_MS
            if probe:
                probed_ms = at_ms
            self._client.sendall(self._supply.take(BLOCK, self._began_ms + at_ms, probe=probe))
            self._sent += BLOCK
            self._say_at_times(at_ms)
            at_ms = max(at_ms, int((time.monotonic() - self._began) * 1000))
        self._first_ms = at_ms

    def _say_at_times(self, due_ms: int) -> None:
        now = time.monotonic()
        if now >= self._told + TELL_S:
            self._told = now
            self.say(late_ms=max((now - self._began) * 1000 - due_ms, 0.0))

    def say(self, *, late_ms: float) -> None:
        """Tell how far it is."""
        at_ms = self._began_ms + int((time.monotonic() - self._began) * 1000)
        self._tell(Progress(self._began_ms, self._sent, at_ms, round(late_ms, 1)))


def main() -> None:
    """Serve the phases and the supply of the arguments, and end when standard input does."""

    def wait_for_the_end() -> None:
        os.read(0, 1)  # not sys.stdin, whose lock this thread would hold at the end
        os._exit(0)  # what else is going on is of no use to anybody

    def tell(what: Any) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(what) + b"\n")
        sys.stdout.buffer.flush()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    phases = msgspec.json.decode(sys.argv[1], type=tuple[Phase, ...])
    try:
        serve(phases, tell, pkgutil.resolve_name(sys.argv[2])())
    except OSError as error:  # the flow was stopped, or never came
        sys.exit(f"the sender of events was left alone: {error}")


if __name__ == "__main__":
    main()
