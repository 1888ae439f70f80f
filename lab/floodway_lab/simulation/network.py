"""The network: frames that travel between processes that may die meanwhile.

Frames of one sender to one receiver arrive in the order in which they were sent, as on a socket,
and late: now and then a way is clogged for a while. Frames of different senders arrive in whatever
order. Messages that control the flow may come twice. A process may be cut off for a while: it works
on, and what it sends and what it is sent comes later. What is under way to a process that is gone
is lost; of what a process had sent when it was killed, the last may be lost.

Between hosts connections break as well. Then some of what is under way is lost, and what is sent
later comes through another connection: it may overtake what was not lost, and a relay in between
may repeat something. There processes have links, which are the real ones, and see which
connections are down: those that let nothing through for a while, perhaps for longer than anybody
waits, those of a process that is cut off, and those to nobody.
"""

from collections.abc import Iterator
from typing import Protocol
from zlib import crc32

from floodway.engine.control.messages import Made, Offer, Stuck, Warned
from floodway.engine.transport.frame import Header, Kind, parse
from floodway.engine.transport.links import SIZE as PREFIX
from floodway.engine.transport.links import Links, unnumbered
from floodway.engine.worker.process import LAST_WORDS_MS
from floodway.engine.worker.runner import DRIVER
from floodway_lab.simulation.timeline import Timeline

CONTROL = int(Kind.CONTROL)

NAMING = tuple(kind.__name__.encode() for kind in (Stuck, Warned, Offer, Made))
"""Messages that name files in a scratch folder, which is another one every time."""

WATCHDOG = " watchdog"
"""A process's second socket has its name, and this."""

RECONNECT_US = 100_000
"""A connection that broke is there again after so long, at most."""

MOST_DOOMED = 5
"""So many frames are sent into a broken connection, at most, before that is noticed."""

LEAVE_US, LOOK_US = LAST_WORDS_MS * 1000, 20_000
"""How long a task that leaves waits for the driver to hear so, and how often it looks."""


class Receiver(Protocol):
    """A process that has an inbox."""

    name: str

    def deliver(self, frame: bytes) -> None:
        """Take a frame into the inbox."""


class Manners(Protocol):
    """How badly a network behaves."""

    @property
    def clogging(self) -> float:
        """How likely a frame is to clog its way."""

    @property
    def doubling(self) -> float:
        """How likely a control message is to come twice."""

    @property
    def hosts(self) -> int:
        """Over how many hosts processes are spread; between hosts there are links."""


class Way:
    """The way from one socket of a process to one inbox.

    Attributes
    ----------
    since, until
        From when to when it lets nothing through.
    """

    def __init__(self, sender: str, address: str) -> None:
        self.sender, self.address = sender, address
        self.sent = self.arrived = 0
        self.last = 0
        self.since = self.until = 0
        self.cut: int | None = None
        self.doomed = 0
        self._lost: list[range] = []

    def lose(self, numbers: range) -> None:
        """Let some of the frames that are under way never arrive."""
        self._lost = [lost for lost in self._lost if lost.stop > self.arrived] + [numbers]

    def loses(self, number: int) -> bool:
        """Return whether a frame does not arrive."""
        lost = any(number in numbers for numbers in self._lost)
        return lost or (self.cut is not None and number > self.cut)


class Network:
    """Carries frames from process to process."""

    def __init__(self, timeline: Timeline, manners: Manners) -> None:
        self._timeline = timeline
        self._manners = manners
        self._inboxes: dict[str, Receiver] = {}
        self._ways: dict[tuple[str, str], Way] = {}
        self._cut_off: dict[str, tuple[int, int]] = {}
        self._closed: dict[str, int] = {}
        self._opened = 0
        self.linked = manners.hosts > 1
        self._prefix = PREFIX if self.linked else 0

    def open(self, receiver: Receiver) -> str:
        """Open an inbox, and return its address, which nobody has had before."""
        self._opened += 1
        address = f"sim://{self._opened}"
        self._inboxes[address] = receiver
        return address

    def close(self, address: str) -> None:
        """Close an inbox: what is under way to it is lost."""
        if self._inboxes.pop(address, None) is not None:
            self._closed[address] = self._timeline.now

    def cut_off(self, name: str, until: int) -> None:
        """Let nothing reach a process, and nothing come from it, until a time."""
        for end in (name, f"{name}{WATCHDOG}"):
            self._cut_off[end] = (self._timeline.now, until)

    def carry(self, sender: str, address: str, frame: bytes, sent_at: int) -> None:
        """Carry a frame from a sender's socket to an inbox."""
        way = self._ways.setdefault((sender, address), Way(sender, address))
        self._put(way, frame, sent_at)
        if self._control(frame) and self._timeline.chance(self._manners.doubling):
            self._put(way, frame, sent_at)
        elif self.linked and self._timeline.chance(self._manners.doubling / 4):
            self._repeat(way, frame)

    def _control(self, frame: bytes) -> bool:
        if self._of_links(frame):
            return False
        return len(frame) > self._prefix + 1 and frame[self._prefix + 1] == CONTROL

    def _of_links(self, frame: bytes) -> bool:
        """Return whether a frame is an answer or a question; their names are made at random."""
        return bool(self._prefix) and not any(frame[:8]) and any(frame[8:PREFIX])

    def _put(self, way: Way, frame: bytes, sent_at: int) -> None:
        timeline = self._timeline
        late = timeline.between(20, 1_500)
        if timeline.chance(self._manners.clogging):
            late += timeline.between(1_000, 400_000)
        ends = [until for _, until in self._cuts(way.sender, way.address)]
        way.last = max(way.last + 1, sent_at + late, way.until, *ends)
        way.sent += 1
        number = way.sent
        if way.doomed:
            way.doomed -= 1
            way.lose(range(number, number + 1))
        timeline.at(way.last, lambda: self._arrive(way, number, frame))

    def _arrive(self, way: Way, number: int, frame: bytes) -> None:
        way.arrived = max(number, way.arrived)
        receiver = self._inboxes.get(way.address)
        if receiver is None or way.loses(number):
            return
        self._timeline.note(way.sender, receiver.name, self._content(frame))
        receiver.deliver(frame)

    def _content(self, frame: bytes) -> int:
        """Return a digest of what is the same every time: not the names of links and folders."""
        if self._of_links(frame):
            return 0
        names = self._control(frame) and any(word in frame for word in NAMING)
        return 0 if names else crc32(frame[self._prefix :])

    def _cuts(self, sender: str, address: str) -> list[tuple[int, int]]:
        """Return from when to when the two ends of a way were cut off last."""
        receiver = self._inboxes.get(address)
        ends = (sender, "" if receiver is None else receiver.name)
        return [self._cut_off[end] for end in ends if end in self._cut_off]

    def down_since(self, sender: str, address: str, now: int) -> int | None:
        """Return since when there is no connection from a process to an inbox; None if there is."""
        if address not in self._inboxes:
            return self._closed.get(address, now)
        times = self._cuts(sender, address)
        way = self._ways.get((sender, address))
        if way is not None:
            times.append((way.since, way.until))
        return min((since for since, until in times if until > now), default=None)

    def died(self, sender: str) -> None:
        """Lose some of the last frames of a process that was killed."""
        for way in self._ways.values():
            if way.sender == sender and way.cut is None:
                way.cut = self._timeline.random.randint(way.arrived, way.sent)

    # ------------------------------------------------------------------ connections that break

    def between(self, name: str) -> list[Way]:
        """Return the ways from and to a process whose other end is there."""
        return [
            way
            for way in self._ways.values()
            if (receiver := self._inboxes.get(way.address)) is not None
            if name in (way.sender, receiver.name)
        ]

    def reset(self, way: Way) -> int:
        """Break a connection: return how many frames are lost.

        Some of those that are under way are, and some more: the sender finds out only later.
        """
        random = self._timeline.random
        way.doomed = random.randint(0, MOST_DOOMED)
        first = random.randint(way.arrived, way.sent)
        last = random.randint(first, way.sent)
        way.lose(range(first + 1, last + 1))
        soon = self._timeline.now + self._timeline.between(1_000, RECONNECT_US)
        # What is not lost may still be in the receiver's socket when the new connection is there.
        way.last = soon if self._timeline.chance(0.5) else max(way.last, soon)
        return last - first + way.doomed

    def block(self, way: Way, until: int) -> None:
        """Let nothing through for a while."""
        if way.until <= self._timeline.now:
            way.since = self._timeline.now
        way.until = max(way.until, until)

    def part(self, way: Way, until: int) -> None:
        """Let nothing through from one process to another, beats neither."""
        beats = (f"{way.sender}{WATCHDOG}", way.address)
        for each in (way, self._ways.setdefault(beats, Way(*beats))):
            self.block(each, until)

    def ends(self, way: Way) -> set[str]:
        """Return the names of the processes at both ends of a way."""
        receiver = self._inboxes.get(way.address)
        return {way.sender} if receiver is None else {way.sender, receiver.name}

    def _repeat(self, way: Way, frame: bytes) -> None:
        """Let a frame come once more, later."""
        later = self._timeline.now + self._timeline.between(100, 300_000)
        self._timeline.at(later, lambda: self._arrive(way, 0, frame))


class Mailbox:
    """A process's inbox, and its ways to those of others; with links, if they may break."""

    def __init__(self, network: Network, owner: Receiver, clock: "Clock") -> None:
        self._network, self._owner, self._clock = network, owner, clock
        self.address = network.open(owner)
        self.bad_frames = 0
        self.frames: list[bytes] = []
        self._towards: dict[int, str] = {}
        self.carried = 0
        self._links = Links(self.address, now=self._now) if network.linked else None

    @property
    def _now(self) -> float:
        return self._clock.time / 1e6

    def connect(self, number: int, address: str) -> None:
        """Make a way to the inbox of a task, or of the driver."""
        if self._towards.get(number) == address:
            return
        self._towards[number] = address
        if self._links is not None:
            for data in self._links.open(number, address, now=self._now):
                self._carry(address, data)

    def send(self, number: int, frame: bytes) -> None:
        """Send a frame; never waits."""
        self.carried += 1
        data = frame if self._links is None else self._links.number(number, frame)
        self._carry(self._towards[number], data)

    def _carry(self, address: str, data: bytes) -> None:
        self._network.carry(self._owner.name, address, data, self._clock.time)

    def drain(self, most: int) -> Iterator[tuple[Header, bytes]]:
        """Return the frames that are there."""
        taken, self.frames = self.frames[:most], self.frames[most:]
        for data in taken:
            frame = data if self._links is None else self._links.take(data, now=self._now)
            if frame is None:
                continue
            self.carried += 1
            yield parse(frame), frame
            while self._links is not None and self._links.ready:
                frame = self._links.ready.popleft()
                self.carried += 1
                yield parse(frame), frame
        self._see_to_links()

    def _see_to_links(self) -> None:
        if self._links is None:
            return
        for to, data in self._links.turn(now=self._now):
            self._carry(self._towards[to] if isinstance(to, int) else to, data)

    def down(self) -> dict[int, float]:
        """Return to whom there is no connection now, and for how many seconds there was none."""
        if self._links is None:
            return {}
        now, name = self._clock.time, self._owner.name
        found = {n: self._network.down_since(name, to, now) for n, to in self._towards.items()}
        return {n: max(now - at, 1) / 1e6 for n, at in found.items() if at is not None}

    @property
    def sent_again(self) -> int:
        """How many frames had to be sent again."""
        return 0 if self._links is None else self._links.again

    def pending(self, number: int) -> bool:
        """Return whether the other side misses something of us: frames, or an answer."""
        return self._links is not None and self._links.pending(number, now=self._now)

    def watch(self, descriptor: int) -> None:
        """Nothing here has a descriptor."""

    def unwatch(self, descriptor: int) -> None:
        """Nothing here has a descriptor."""

    def close(self) -> None:
        """Open no more."""
        self._network.close(self.address)

    def leave(self, timeline: Timeline) -> None:
        """Open no more, once the driver has all that it was sent, or after a while."""
        self._leave(timeline, timeline.now + LEAVE_US)

    def _leave(self, timeline: Timeline, until: int) -> None:
        links = self._links if DRIVER in self._towards else None
        if links is None or links.settled(DRIVER) or timeline.now >= until:
            self.close()
            return
        for _ in self.drain(len(self.frames)):
            pass
        timeline.after(LOOK_US, lambda: self._leave(timeline, until))


def beating(network: Network, frame: bytes) -> bytes:
    """Return a frame as a watchdog sends it, which has a socket and no inbox."""
    return unnumbered(frame) if network.linked else frame


class Clock(Protocol):
    """Says what time it is for a process, which may be in the middle of something."""

    @property
    def time(self) -> int:
        """The time, in microseconds."""
