"""Links: frames that arrive once and in order over connections that break.

ZeroMQ reconnects behind our backs when a connection breaks. What the kernels had buffered is gone
then, and what comes through the new connection may overtake what came through the old one. So
between hosts every process numbers the frames it sends to another, and keeps them until the other
has answered that it has them. Who sees a gap says so, and everything from there on is sent again; a
frame that comes twice is dropped. Who hears nothing asks (*probes*): the last frames may be lost,
and nobody can see a gap behind them.

A pure state machine: bytes and the time go in, bytes to send come out.

Within a host nothing of this is needed: a Unix socket breaks only with one of its two processes.
"""

import secrets
import struct
from collections import deque
from collections.abc import Iterator

PREFIX = struct.Struct("<QQ")
"""Before every frame: the link, and the frame's number in it. Link 0 is for what has no number."""

SIZE = PREFIX.size

UNNUMBERED, ANSWER, PROBE = range(3)
"""What stands in place of the number on link 0."""

_STANDING = struct.Struct("<QQ?")
"""The link, how many of its frames are here, and whether some are missing before others."""

_REACHED = struct.Struct("<QQ")
"""The link, and how many frames were sent on it."""

ANSWER_S = 0.05
"""How long a link waits before it answers: one answer stands for all frames until then."""

ANSWER_FRAMES = 512
"""So many frames are answered at once."""

PROBE_S = 0.5
"""How long somebody waits for an answer before it asks."""

_pack = PREFIX.pack
_unpack = PREFIX.unpack_from


class Outgoing:
    """The link to one other inbox: what was sent, and not yet answered.

    Attributes
    ----------
    again
        Up to which number frames were sent again the last time.
    mended, moving
        How many had come when a gap was last told of, and whether that was more than before.
    """

    __slots__ = (
        "again",
        "first",
        "heard",
        "id",
        "mended",
        "moving",
        "next",
        "probed",
        "unanswered",
    )

    def __init__(self, now: float) -> None:
        self.id = secrets.randbits(63) + 1
        self.first = self.next = 0
        self.unanswered: deque[bytes] = deque()
        self.heard = self.probed = now
        self.again = self.mended = 0
        self.moving = False

    def number(self, frame: bytes) -> bytes:
        """Return a frame with its number, and keep it."""
        data = _pack(self.id, self.next) + frame
        self.next += 1
        self.unanswered.append(data)
        return data

    def answered(self, count: int, now: float) -> None:
        """Forget the frames that have come."""
        self.heard = now
        for _ in range(min(count, self.next) - self.first):
            self.unanswered.popleft()
            self.first += 1

    def missing(self) -> list[bytes]:
        """Return what to send again, now that the other side has told of a gap.

        While what was sent again is on its way the gap is told of again and again. As long as
        frames come nothing need be done. If none has come, one is sent: on a slow link the others
        are still behind what was sent before. If then no more come, the others are lost as well.
        """
        moved, self.mended = self.first > self.mended, self.first
        stopped, self.moving = self.moving and not moved, moved
        if self.first >= self.again or stopped:
            self.again, self.moving = self.next, False
            return list(self.unanswered)
        return [] if moved else [self.unanswered[0]]


class Incoming:
    """The link from one other process: how many of its frames have come.

    Attributes
    ----------
    count, reached
        How many have come, and how many were sent as far as one can see here: if that is more,
        there is a gap.
    answered, repeated, probed
        What the other side knows, and why it should be told all the same.
    """

    __slots__ = ("address", "answered", "count", "probed", "reached", "repeated", "told")

    def __init__(self, address: str) -> None:
        self.address = address
        self.count = self.reached = 1  # the frame that says the address
        self.answered = 0
        self.repeated = self.probed = False
        self.told = -PROBE_S


class Links:
    """All links of a process.

    `address` is that of its own inbox: others answer there.

    Attributes
    ----------
    again
        How many frames had to be sent again.

    Examples
    --------
    A frame is lost, and the one after it shows that it is:

    >>> one, other = Links("one", now=0), Links("other", now=0)
    >>> sent = [*one.open(1, "other", now=0), *(one.number(1, text) for text in (b"a", b"b"))]
    >>> other.open(0, "one", now=0) and [other.take(data, now=0) for data in (sent[0], sent[2])]
    [None, None]
    >>> [(number, answer)] = other.turn(now=0)
    >>> number, one.take(answer, now=0)
    (0, None)
    >>> [other.take(data, now=0) for _, data in one.turn(now=0)]
    [b'a', b'b']
    """

    def __init__(self, address: str, *, now: float) -> None:
        self._address = address
        self._out: dict[int, Outgoing] = {}
        self._by_id: dict[int, int] = {}
        self._in: dict[int, Incoming] = {}
        self._numbers: dict[str, int] = {}
        self._towards: dict[int, str] = {}
        self._owed = 0
        self._over: set[int] = set()
        self._strangers: dict[int, str] = {}
        self._resend: set[int] = set()
        self._next_answers = now
        self.again = 0

    # ------------------------------------------------------------------ sending

    def open(self, number: int, address: str, *, now: float) -> list[bytes]:
        """Make a link to an inbox, instead of any former one; return what to send first."""
        self._forget(number)
        link = self._out[number] = Outgoing(now)
        self._by_id[link.id] = number
        self._towards[number] = address
        self._numbers[address] = number
        return [link.number(self._address.encode())]

    def _forget(self, number: int) -> None:
        """Let go of both links with the process that was there before."""
        former = self._out.pop(number, None)
        if former is None:
            return
        del self._by_id[former.id]
        self._resend.discard(number)
        address = self._towards.pop(number)
        self._numbers.pop(address, None)
        over = [key for key, link in self._in.items() if link.address == address]
        for key in over:
            del self._in[key]
        self._over.update(over)

    def number(self, number: int, frame: bytes) -> bytes:
        """Return a frame as it is sent on the link to an inbox."""
        return self._out[number].number(frame)

    def settled(self, number: int | None = None) -> bool:
        """Return whether the other side, or every other side, has all that was sent.

        On a link on which nothing but its first frame was sent there is nothing to miss.
        """
        links = self._out.values() if number is None else [self._out[number]]
        return not any(link.unanswered and link.next > 1 for link in links)

    # ------------------------------------------------------------------ receiving

    def take(self, data: bytes, *, now: float) -> bytes | None:
        """Take what came; return the frame in it if it is the next one of its link."""
        try:
            key, number = _unpack(data)
        except struct.error:
            return data  # too short for anything: who reads it says so
        link = self._in.get(key)
        if link is not None and number == link.count:
            link.count += 1
            self._owed += 1
            return data[SIZE:]
        return self._special(key, number, link, data[SIZE:], now)

    def _special(
        self, key: int, number: int, link: Incoming | None, content: bytes, now: float
    ) -> bytes | None:
        if key == 0:
            if number == UNNUMBERED:
                return content
            if number == ANSWER:
                self._answered(content, now)
            elif number == PROBE:
                self._probed(content)
        elif link is None:
            if number == 0 and key not in self._over:
                self._in[key] = Incoming(content.decode(errors="replace"))
                self._owed += 1
        elif number > link.count:
            link.reached = max(link.reached, number + 1)
        else:
            link.repeated = True  # the answer to it was lost, perhaps
        return None

    def _answered(self, content: bytes, now: float) -> None:
        if len(content) % _STANDING.size:
            return
        for key, count, gap in _STANDING.iter_unpack(content):
            number = self._by_id.get(key)
            if number is None:
                continue  # of a link that is no more
            self._out[number].answered(count, now)
            if gap:
                self._resend.add(number)

    def _probed(self, content: bytes) -> None:
        if len(content) < _REACHED.size:
            return
        key, reached = _REACHED.unpack_from(content)
        if key in self._over:
            return  # of a process that was given up
        link = self._in.get(key)
        if link is None:  # its first frame was lost, and with it where it comes from
            self._strangers[key] = content[_REACHED.size :].decode(errors="replace")
            return
        link.probed = True
        link.reached = max(link.reached, reached)

    # ------------------------------------------------------------------ time

    def turn(self, *, now: float) -> Iterator[tuple[int | str, bytes]]:
        """Return what there is to send beside the frames themselves, and to whom.

        Somebody who has asked, and to whom there is no link yet, is named by its address.
        """
        if now >= self._next_answers or self._owed >= ANSWER_FRAMES:
            self._next_answers = now + ANSWER_S
            self._owed = 0
            yield from self._answers(now)
            yield from self._probes(now)
        while self._resend:
            number = self._resend.pop()
            link = self._out[number]
            if not link.unanswered:
                continue
            missing = link.missing()
            self.again += len(missing)
            link.probed = now
            for data in missing:
                yield number, data

    def _answers(self, now: float) -> Iterator[tuple[int | str, bytes]]:
        found: dict[int | str, list[bytes]] = {}
        for key, address in self._strangers.items():
            to = self._numbers.get(address, address)
            found.setdefault(to, []).append(_STANDING.pack(key, 0, 1))
        self._strangers.clear()
        for key, link in self._in.items():
            # Of a gap it is enough to speak now and then: what is sent again takes its time.
            gap = link.reached > link.count and (link.probed or now >= link.told + PROBE_S)
            if not (gap or link.probed or link.repeated or link.count != link.answered):
                continue
            to = self._numbers.get(link.address, link.address)
            if to == link.address and not link.probed:
                continue
            found.setdefault(to, []).append(_STANDING.pack(key, link.count, gap))
            link.answered, link.probed, link.repeated = link.count, False, False
            link.told = now if gap else link.told
        for to, answers in found.items():
            yield to, _pack(0, ANSWER) + b"".join(answers)

    def _probes(self, now: float) -> Iterator[tuple[int | str, bytes]]:
        for number, link in self._out.items():
            if link.unanswered and now >= max(link.heard, link.probed) + PROBE_S:
                yield number, self.probe(number, now=now)

    def probe(self, number: int, *, now: float) -> bytes:
        """Return the question how much of what was sent has come."""
        link = self._out[number]
        link.probed = now
        return _pack(0, PROBE) + _REACHED.pack(link.id, link.next) + self._address.encode()


def unnumbered(frame: bytes) -> bytes:
    """Return a frame as somebody sends it who has no inbox, and to whom its loss does no harm."""
    return _pack(0, UNNUMBERED) + frame
