"""A flood of ad events: so many a second, whatever the flow makes of them.

The events are sent by a process of their own, which is never slower because the flow is: it knows
beforehand when each event is due, and what is late is sent as soon as there is room, with the time
at which it was due. So the time from there to a result is what somebody outside would measure
(*open loop*).

Making events takes longer than a flow takes to process them. So their lines are made beforehand,
cut where the time belongs, and joined with the time when they are sent.

Some events are *probes*: each is a view of an ad of its own, whose campaign has no other view in
its window. The result that it leads to is about it alone, and tells how long it took.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from floodway.bench import ads
from floodway.bench.feeding import CONNECT_SECONDS
from floodway.core.errors import EngineError

PREPARED = 20_000
"""So many events are made beforehand, and sent again and again."""

PROBE_MS = 5
"""How often a probe is sent: 200 a second."""

PROBES = 2_500
"""So many probes there are: more than are sent in one window."""

TELL_S = 0.1
"""How often the sender says how far it is."""

_MARK = 9_999_999_999_999  # stands where the time belongs; as long as any time from 2001 to 2286


class Phase(msgspec.Struct, frozen=True):
    """A stretch of time with a load of its own."""

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


def probe_name(number: int) -> str:
    """Return the ad of a probe, which is also its campaign."""
    return f"probe-{number % PROBES:04}"


def lookup() -> dict[str, str]:
    """Return the campaign of every ad, those of the probes among them."""
    return ads.campaigns() | {probe_name(n): probe_name(n) for n in range(PROBES)}


class Lines:
    """Lines of JSON without their time, and how often each was sent in which window.

    Examples
    --------
    >>> lines = Lines(ads.make_events(3))
    >>> text = lines.stamped(2, 1_700_000_000_000) + lines.stamped(2, 1_700_000_012_345)
    >>> [event.event_time for event in msgspec.json.Decoder(ads.AdSeen).decode_lines(text)]
    [1700000000000, 1700000000000, 1700000012345, 1700000012345]
    >>> lines.counts(ads.campaigns()) == ads.plain_count(text, ads.campaigns())
    True
    """

    def __init__(self, events: Sequence[ads.AdEvent]) -> None:
        marked = [msgspec.structs.replace(event, event_time=_MARK) for event in events]
        cut = [msgspec.json.encode(event).split(b"%d" % _MARK) for event in marked]
        self._heads = [head for head, _ in cut]
        self._tails = [tail + b"\n" for _, tail in cut]
        self._between = [
            tail + head for tail, head in zip(self._tails, self._heads[1:], strict=False)
        ]
        self._next = 0
        self._times: dict[int, list[int]] = {}

    def stamped(self, count: int, time_ms: int) -> bytes:
        """Return the next lines, all with the same time."""
        blocks = []
        while count > 0:
            first = self._next
            last = min(first + count, len(self._heads)) - 1
            pieces = [self._heads[first], *self._between[first:last], self._tails[last]]
            blocks.append((b"%d" % time_ms).join(pieces))
            self._note(first, last + 1, time_ms)
            self._next = (last + 1) % len(self._heads)
            count -= last + 1 - first
        return b"".join(blocks)

    def _note(self, first: int, stop: int, time_ms: int) -> None:
        # Differences: that a thousand lines were sent is two additions.
        window = time_ms - time_ms % ads.WINDOW_MS
        times = self._times.setdefault(window, [0] * (len(self._heads) + 1))
        times[first] += 1
        times[stop] -= 1

    def counts(self, campaigns: dict[str, str]) -> Counter[tuple[str, int]]:
        """Return the views of each campaign and window, by a loop over the lines."""
        decode = msgspec.json.Decoder(ads.AdSeen).decode
        stamp = b"%d" % ads.START_MS
        events = [decode(h + stamp + t) for h, t in zip(self._heads, self._tails, strict=True)]
        counts: Counter[tuple[str, int]] = Counter()
        for window, changes in self._times.items():
            for event, times in zip(events, accumulate(changes), strict=False):
                if times and event.event_type == "view" and event.ad_id in campaigns:
                    counts[campaigns[event.ad_id], window] += times
        return counts


class Events:
    """All events of the demonstration: those made beforehand, and the probes between them."""

    def __init__(self) -> None:
        self._lines = Lines(ads.make_events(PREPARED))
        viewed = msgspec.structs.replace(ads.make_events(1)[0], event_type="view")
        self._probes = [
            Lines([msgspec.structs.replace(viewed, ad_id=probe_name(number))])
            for number in range(PROBES)
        ]
        self._probed = 0

    def due(self, ms: int, count: int, time_ms: int) -> bytes:
        """Return the events that are due in a millisecond."""
        if ms % PROBE_MS or not count:
            return self._lines.stamped(count, time_ms)
        probe = self._probes[self._probed % PROBES]
        self._probed += 1
        return probe.stamped(1, time_ms) + self._lines.stamped(count - 1, time_ms)

    def counts(self) -> Counter[tuple[str, int]]:
        """Return the views of each campaign and window."""
        known = lookup()
        counts = self._lines.counts(known)
        for probe in self._probes[: self._probed]:
            counts.update(probe.counts(known))
        return counts


class Progress(msgspec.Struct, frozen=True):
    """How far the sender is.

    Attributes
    ----------
    began_ms
        When it began, in milliseconds since 1970.
    sent
        How many events were sent.
    """

    began_ms: int
    sent: int


class Ending(msgspec.Struct, frozen=True):
    """The last word of the sender: what a plain loop counts."""

    counts: list[tuple[str, int, int]]


class Sender:
    """The flood, seen from the process that wants it: starts the sender and listens to it.

    A context manager. When it is left, the sender ends.

    Attributes
    ----------
    port
        Where a flow has to connect to; the first event is due when it does.
    progress
        How far the sender is; None before the flow has come.
    """

    def __init__(self, phases: Sequence[Phase]) -> None:
        self.phases = tuple(phases)
        self.port = 0
        self.progress: Progress | None = None
        self._counts: Counter[tuple[str, int]] | None = None
        self._done = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", __name__, msgspec.json.encode(self.phases).decode()]
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
        self._done.set()

    def counts(self, timeout: float = 60.0) -> Counter[tuple[str, int]]:
        """Wait for the views of each campaign and window, as a plain loop counts them."""
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


def serve(phases: Sequence[Phase], tell: Any) -> None:
    """Wait for a client, send it everything, and say how far that is."""
    events = Events()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(CONNECT_SECONDS)
        tell(server.getsockname()[1])
        client, _ = server.accept()
    with client:
        client.settimeout(None)
        send(phases, client, events, tell)
    tell(Ending([(name, start, n) for (name, start), n in events.counts().items()]))


def send(phases: Sequence[Phase], client: socket.socket, events: Events, tell: Any) -> None:
    """Send every event as soon as it is due."""
    began, began_ms = time.monotonic(), time.time_ns() // 1_000_000
    told = began
    sent = 0
    tell(Progress(began_ms, sent))
    for ms, due in schedule(phases):
        ahead = began + ms / 1000 - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
        if due:
            client.sendall(events.due(ms, due, began_ms + ms))
            sent += due
        now = time.monotonic()
        if now >= told + TELL_S:
            told = now
            tell(Progress(began_ms, sent))
    tell(Progress(began_ms, sent))


def main() -> None:
    """Serve the phases named in the first argument, and end when standard input does."""

    def wait_for_the_end() -> None:
        os.read(0, 1)  # not sys.stdin, whose lock this thread would hold at the end
        os._exit(0)  # what else is going on is of no use to anybody

    def tell(what: Any) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(what) + b"\n")
        sys.stdout.buffer.flush()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    phases = msgspec.json.decode(sys.argv[1], type=tuple[Phase, ...])
    try:
        serve(phases, tell)
    except OSError as error:  # the flow was stopped, or never came
        sys.exit(f"the sender of events was left alone: {error}")


if __name__ == "__main__":
    main()
