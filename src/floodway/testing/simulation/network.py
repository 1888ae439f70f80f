"""The network: frames that travel between processes that may die meanwhile.

Frames of one sender to one receiver arrive in the order in which they were sent, as on a socket,
and late: now and then a way is clogged for a while. Frames of different senders arrive in whatever
order. Messages that control the flow may come twice. A process may be cut off for a while: it works
on, and what it sends and what it is sent comes later. What is under way to a process that is gone
is lost; of what a process had sent when it was killed, the last may be lost.
"""

from collections.abc import Iterator
from typing import Protocol
from zlib import crc32

from floodway.engine.control import Made, Offer, Warned
from floodway.engine.transport.frame import Header, Kind, parse
from floodway.testing.simulation.timeline import Timeline

CONTROL = int(Kind.CONTROL)

NAMING = tuple(kind.__name__.encode() for kind in (Warned, Offer, Made))
"""Messages that name files in a scratch folder, which is another one every time."""

WATCHDOG = " watchdog"
"""A process's second socket has its name, and this."""


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


class Way:
    """The way from one socket of a process to one inbox."""

    def __init__(self) -> None:
        self.sent = self.arrived = 0
        self.last = 0
        self.cut: int | None = None


class Network:
    """Carries frames from process to process."""

    def __init__(self, timeline: Timeline, manners: Manners) -> None:
        self._timeline = timeline
        self._manners = manners
        self._inboxes: dict[str, Receiver] = {}
        self._ways: dict[tuple[str, str], Way] = {}
        self._cut_off: dict[str, int] = {}
        self._opened = 0

    def open(self, receiver: Receiver) -> str:
        """Open an inbox, and return its address, which nobody has had before."""
        self._opened += 1
        address = f"sim://{self._opened}"
        self._inboxes[address] = receiver
        return address

    def close(self, address: str) -> None:
        """Close an inbox: what is under way to it is lost."""
        self._inboxes.pop(address, None)

    def cut_off(self, name: str, until: int) -> None:
        """Let nothing reach a process, and nothing come from it, until a time."""
        for end in (name, f"{name}{WATCHDOG}"):
            self._cut_off[end] = until

    def carry(self, sender: str, address: str, frame: bytes, sent_at: int) -> None:
        """Carry a frame from a sender's socket to an inbox."""
        way = self._ways.setdefault((sender, address), Way())
        self._put(way, sender, address, frame, sent_at)
        if frame[1] == CONTROL and self._timeline.chance(self._manners.doubling):
            self._put(way, sender, address, frame, sent_at)

    def _put(self, way: Way, sender: str, address: str, frame: bytes, sent_at: int) -> None:
        timeline = self._timeline
        late = timeline.between(20, 1_500)
        if timeline.chance(self._manners.clogging):
            late += timeline.between(1_000, 400_000)
        receiver = self._inboxes.get(address)
        ends = (sender, "" if receiver is None else receiver.name)
        way.last = max(way.last + 1, sent_at + late, *(self._cut_off.get(end, 0) for end in ends))
        way.sent += 1
        number = way.sent
        timeline.at(way.last, lambda: self._arrive(way, number, sender, address, frame))

    def _arrive(self, way: Way, number: int, sender: str, address: str, frame: bytes) -> None:
        way.arrived = number
        receiver = self._inboxes.get(address)
        if receiver is None or (way.cut is not None and number > way.cut):
            return
        names = frame[1] == CONTROL and any(word in frame for word in NAMING)
        content = 0 if names else crc32(frame)
        self._timeline.note(sender, receiver.name, content)
        receiver.deliver(frame)

    def died(self, sender: str) -> None:
        """Lose some of the last frames of a process that was killed."""
        for (name, _), way in self._ways.items():
            if name == sender and way.cut is None:
                way.cut = self._timeline.random.randint(way.arrived, way.sent)


class Mailbox:
    """A process's inbox, and its ways to those of others."""

    def __init__(self, network: Network, owner: Receiver, clock: "Clock") -> None:
        self._network, self._owner, self._clock = network, owner, clock
        self.address = network.open(owner)
        self.bad_frames = 0
        self.frames: list[bytes] = []
        self._towards: dict[int, str] = {}
        self.carried = 0

    def connect(self, number: int, address: str) -> None:
        """Make a way to the inbox of a task, or of the driver."""
        self._towards[number] = address

    def send(self, number: int, frame: bytes) -> None:
        """Send a frame; never waits."""
        self.carried += 1
        self._network.carry(self._owner.name, self._towards[number], frame, self._clock.time)

    def drain(self, most: int) -> Iterator[tuple[Header, bytes]]:
        """Return the frames that are there."""
        taken, self.frames = self.frames[:most], self.frames[most:]
        self.carried += len(taken)
        for frame in taken:
            yield parse(frame), frame

    def watch(self, descriptor: int) -> None:
        """Nothing here has a descriptor."""

    def unwatch(self, descriptor: int) -> None:
        """Nothing here has a descriptor."""

    def close(self) -> None:
        """Open no more."""
        self._network.close(self.address)


class Clock(Protocol):
    """Says what time it is for a process, which may be in the middle of something."""

    @property
    def time(self) -> int:
        """The time, in microseconds."""
