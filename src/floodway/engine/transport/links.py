"""Links: frames that arrive once and in order over connections that break.

ZeroMQ reconnects behind our backs when a connection breaks. What the kernels had buffered is gone
then, and what comes through the new connection may overtake what came through the old one. So
between hosts every process numbers the frames it sends to another, and keeps them until the other
has answered that it has them. A frame that comes twice is dropped, one that comes before its turn
is held until those before it are there.

What is late is not lost, so nothing is sent again because time has passed. Who hears nothing, or
has a new connection, asks (*probes*). A question travels behind all that was sent before it; what
has not come when it comes was lost, and that alone is sent again, once for a question.

The address that a link leads to says which process is meant (see `Network.announced`). Whoever has
its port now takes nothing of it and refuses.

A pure state machine: bytes and the time go in, bytes to send come out.

Within a host nothing of this is needed: a Unix socket breaks only with one of its two processes.
"""

import secrets
import struct
from collections import deque
from collections.abc import Iterator
from itertools import islice

PREFIX = struct.Struct("<QQ")
"""Before every frame: the link, and the frame's number in it. Link 0 is for what has no number."""

SIZE = PREFIX.size

UNNUMBERED, ANSWER, PROBE, REFUSAL = range(4)
"""What stands in place of the number on link 0."""

_STANDING = struct.Struct("<QQQQ")
"""The link, how many of its frames are here, up to which number they are missing from there on, and
which question this answers, or 0."""

_REACHED = struct.Struct("<QQQ")
"""The link, how many frames were sent on it, and the number of the question."""

_REFUSED = struct.Struct("<Q")
"""The link."""

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
    asked, replied
        How many questions were sent, and which of them was answered last.
    mended
        How many had been when something was last sent again: the answers to those know nothing
        of it.
    lost
        Up to which number frames have to be sent again.
    wanted
        Whether to ask at once.
    refused
        Since when somebody else is there.
    """

    __slots__ = (
        "asked",
        "first",
        "heard",
        "hello",
        "id",
        "lost",
        "mended",
        "next",
        "probed",
        "refused",
        "replied",
        "unanswered",
        "wanted",
    )

    def __init__(self, hello: bytes, now: float) -> None:
        self.id = secrets.randbits(63) + 1
        self.hello = hello
        self.first = self.next = 0
        self.unanswered: deque[bytes] = deque()
        self.heard = self.probed = now
        self.asked = self.replied = self.mended = self.lost = 0
        self.wanted = False
        self.refused: float | None = None

    def number(self, frame: bytes) -> bytes:
        """Return a frame with its number, and keep it."""
        data = _pack(self.id, self.next) + frame
        self.next += 1
        self.unanswered.append(data)
        return data

    def answered(self, count: int, until: int, question: int, now: float) -> None:
        """Forget the frames that have come, and see which are lost."""
        self.heard, self.refused = now, None
        for _ in range(min(count, self.next) - self.first):
            self.unanswered.popleft()
            self.first += 1
        if question > self.mended:
            self.lost = max(self.lost, min(until, self.next))
        elif not question and until > count and self.replied == self.asked:
            self.wanted = True  # there is a gap; the answer to a question tells how large it is
        self.replied = max(self.replied, min(question, self.asked))

    def missing(self) -> list[bytes]:
        """Return what to send again: what was lost before a question that was sent since."""
        found = list(islice(self.unanswered, max(0, self.lost - self.first)))
        self.lost = 0
        if found:
            self.mended, self.wanted = self.asked, True
        return found


class Incoming:
    """The link from one other process: how many of its frames have come.

    Attributes
    ----------
    count, held
        How many have come, and those that came before their turn.
    question, reached
        What was asked last and is not yet answered, and how many had been sent by then.
    answered, repeated, told
        What the other side knows, why it should be told all the same, and how many had come when
        it was told of a gap.
    before
        How many had come when we last looked.
    """

    __slots__ = (
        "address",
        "answered",
        "before",
        "count",
        "held",
        "question",
        "reached",
        "repeated",
        "told",
    )

    def __init__(self, address: str) -> None:
        self.address = address
        self.count = 1  # the frame that says the address
        self.held: dict[int, bytes] = {}
        self.question = self.reached = 0
        self.answered = self.told = self.before = 0
        self.repeated = False

    def standing(self) -> tuple[int, int, int] | None:
        """Return what to answer now, if anything: how many came, up to where some are missing, why.

        When a new connection has overtaken an old one, much of what seems to be missing is in the
        socket already. So nobody is told of a gap while frames of the link come.
        """
        moved, self.before = self.count != self.before, self.count
        until = min(self.held, default=self.count)
        if self.question:
            until = min(until, self.reached) if self.held else max(self.count, self.reached)
        gap = until > self.count and not moved
        question = self.question if gap or until <= self.count else 0
        untold = gap and self.told != self.count
        if not (question or untold or self.repeated or self.count != self.answered):
            return None
        self.answered, self.repeated = self.count, False
        self.question = 0 if question else self.question
        self.told = self.count if gap else self.told
        return self.count, until if gap else self.count, question


class Links:
    """All links of a process.

    `address` is that of its own inbox: others answer there.

    Attributes
    ----------
    again
        How many frames had to be sent again.
    ready
        Frames that had come before their turn, which is now, in order. They come after the frame
        that `take` has returned last, and before all others.

    Examples
    --------
    A frame is lost, and a question shows that it is:

    >>> one, other = Links("one", now=0), Links("other", now=0)
    >>> sent = [*one.open(1, "other", now=0), *(one.number(1, text) for text in (b"a", b"b"))]
    >>> other.open(0, "one", now=0) and [other.take(data, now=0) for data in (sent[0], sent[2])]
    [None, None]
    >>> other.take(one.probe(1, now=0), now=0)
    >>> answers = [*other.turn(now=0), *other.turn(now=1)]
    >>> {one.take(answer, now=1) for _, answer in answers}
    {None}
    >>> [frame for _, data in one.turn(now=1) if (frame := other.take(data, now=1))], *other.ready
    ([b'a'], b'b')
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
        self._strangers: dict[int, tuple[str, int, int]] = {}
        self._mistaken: dict[int, str] = {}
        self._resend: set[int] = set()
        self._asked: dict[str, float] = {}
        self._next_answers = now
        self.again = 0
        self.ready: deque[bytes] = deque()

    # ------------------------------------------------------------------ sending

    def open(self, number: int, address: str, *, now: float) -> list[bytes]:
        """Make a link to an inbox, instead of any former one; return what to send first."""
        self._forget(number)
        hello = f"{self._address} {address}".encode()
        link = self._out[number] = Outgoing(hello, now)
        self._by_id[link.id] = number
        self._towards[number] = address
        self._numbers[address] = number
        return [link.number(hello)]

    def _forget(self, number: int) -> None:
        """Let go of both links with the process that was there before."""
        former = self._out.pop(number, None)
        if former is None:
            return
        del self._by_id[former.id]
        self._resend.discard(number)
        address = self._towards.pop(number)
        self._numbers.pop(address, None)
        self._asked.pop(address, None)
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

    def pending(self, number: int, *, now: float) -> bool:
        """Return whether the other side misses something of us: frames, or an answer.

        Who has sent something and hears nothing asks again and again. Its frames may be lost, and
        it cannot send them again before it knows.
        """
        asked = self._asked.get(self._towards[number])
        return not self.settled(number) or (asked is not None and now - asked < 2 * PROBE_S)

    def refused_s(self, number: int, *, now: float) -> float:
        """Return for how many seconds somebody else has been where a link leads; 0 if not so."""
        since = self._out[number].refused
        return 0.0 if since is None else max(now - since, 1e-9)

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
            if link.held:
                self._release(link)
            return data[SIZE:]
        return self._special(key, number, link, data[SIZE:], now)

    def _release(self, link: Incoming) -> None:
        while (frame := link.held.pop(link.count, None)) is not None:
            link.count += 1
            self._owed += 1
            self.ready.append(frame)

    def _special(
        self, key: int, number: int, link: Incoming | None, content: bytes, now: float
    ) -> bytes | None:
        if key == 0:
            if number == UNNUMBERED:
                return content
            if number == ANSWER:
                self._answered(content, now)
            elif number == PROBE:
                self._probed(content, now)
            elif number == REFUSAL:
                self._refused(content, now)
        elif link is None:
            if number == 0 and key not in self._over:
                self._greeted(key, content)
        elif number > link.count:
            link.held[number] = content  # no more than the other side may have on its way
        else:
            link.repeated = True  # the answer to it was lost, perhaps
        return None

    def _greeted(self, key: int, hello: bytes) -> None:
        address = self._sender(key, hello)
        if address is not None:
            self._in[key] = Incoming(address)
            self._owed += 1

    def _sender(self, key: int, hello: bytes) -> str | None:
        """Return the address of who sends on a link, or None if it means another than us."""
        address, _, meant = hello.decode(errors="replace").partition(" ")
        if meant == self._address:
            return address
        self._mistaken[key] = address
        return None

    def _answered(self, content: bytes, now: float) -> None:
        if len(content) % _STANDING.size:
            return
        for key, count, until, question in _STANDING.iter_unpack(content):
            number = self._by_id.get(key)
            if number is None:
                continue  # of a link that is no more
            link = self._out[number]
            link.answered(count, until, question, now)
            if link.lost or link.wanted:
                self._resend.add(number)

    def _probed(self, content: bytes, now: float) -> None:
        if len(content) < _REACHED.size:
            return
        key, reached, question = _REACHED.unpack_from(content)
        if key in self._over:
            return  # of a process that was given up
        link = self._in.get(key)
        if link is None:  # its first frame was lost, and with it where it comes from
            address = self._sender(key, content[_REACHED.size :])
            if address is not None:
                self._asked[address] = now
                self._strangers[key] = (address, reached, question)
            return
        self._asked[link.address] = now
        if question > link.question:
            link.question, link.reached = question, reached

    def _refused(self, content: bytes, now: float) -> None:
        if len(content) % _REFUSED.size:
            return
        for (key,) in _REFUSED.iter_unpack(content):
            number = self._by_id.get(key)
            if number is not None and self._out[number].refused is None:
                self._out[number].refused = now

    # ------------------------------------------------------------------ time

    def turn(self, *, now: float) -> Iterator[tuple[int | str, bytes]]:
        """Return what there is to send beside the frames themselves, and to whom.

        Somebody who has asked, and to whom there is no link yet, is named by its address.
        """
        if now >= self._next_answers or self._owed >= ANSWER_FRAMES:
            self._next_answers = now + ANSWER_S
            self._owed = 0
            yield from self._answers()
            yield from self._probes(now)
        while self._resend:
            number = self._resend.pop()
            link = self._out[number]
            for data in link.missing():
                self.again += 1
                yield number, data
            if link.wanted and link.unanswered:
                yield number, self.probe(number, now=now)

    def _answers(self) -> Iterator[tuple[int | str, bytes]]:
        found: dict[int | str, list[bytes]] = {}
        for key, (address, reached, question) in self._strangers.items():
            to = self._numbers.get(address, address)
            found.setdefault(to, []).append(_STANDING.pack(key, 0, reached, question))
        self._strangers.clear()
        for key, link in self._in.items():
            to = self._numbers.get(link.address, link.address)
            if to == link.address and not link.question:
                continue
            standing = link.standing()
            if standing is not None:
                found.setdefault(to, []).append(_STANDING.pack(key, *standing))
        for to, answers in found.items():
            yield to, _pack(0, ANSWER) + b"".join(answers)
        for key, address in self._mistaken.items():
            yield self._numbers.get(address, address), _pack(0, REFUSAL) + _REFUSED.pack(key)
        self._mistaken.clear()

    def _probes(self, now: float) -> Iterator[tuple[int | str, bytes]]:
        for number, link in self._out.items():
            if link.unanswered and now >= max(link.heard, link.probed) + PROBE_S:
                yield number, self.probe(number, now=now)

    def probe(self, number: int, *, now: float) -> bytes:
        """Return the question how much of what was sent has come; to be sent behind all that."""
        link = self._out[number]
        link.probed, link.wanted = now, False
        link.asked += 1
        return _pack(0, PROBE) + _REACHED.pack(link.id, link.next, link.asked) + link.hello


def unnumbered(frame: bytes) -> bytes:
    """Return a frame as somebody sends it who has no inbox, and to whom its loss does no harm."""
    return _pack(0, UNNUMBERED) + frame
