"""Sockets: how frames get from process to process.

Every process that takes part has one inbox, a ZeroMQ PULL socket, and connects to the inboxes of
those it talks to. On one host inboxes are Unix sockets in a folder that nobody else may enter.
Between hosts they are TCP ports with CURVE: every connection is encrypted, and only who has the
flow's key pair, which travels with the Spark job, is let in. Connections between hosts break; what
was on its way then is sent again, see `Links`.

ZeroMQ's own limits are off. What may be on its way is bounded by the tasks themselves, in bytes.
"""

import math
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import zmq
from zmq.auth.thread import ThreadAuthenticator

from floodway.core.errors import EngineError
from floodway.engine.transport.connection import InboxConnection
from floodway.engine.transport.frame import MAX_BYTES, FrameError, Header, parse
from floodway.engine.transport.links import SIZE, Links, unnumbered

LINGER_MS = 1_000
"""How long a process that leaves waits for what it has sent to leave, too. Tasks leave only when
the others have what they sent, so this is for last words."""

HEARTBEAT_MS, SILENT_MS = 1_000, 5_000
"""How often the two ends of a TCP connection tell each other that they are there, and after how
long a silence they give it up and make a new one."""

RECONNECT_MS = 1_000
"""How long to wait, at most, before a connection is tried again."""


MARK = "#"
"""Comes before what tells a process from others that had its port before."""


class CurveKeys(msgspec.Struct, frozen=True):
    """A flow's CURVE key pair. Never shown."""

    public: bytes
    secret: bytes

    @classmethod
    def make(cls) -> "CurveKeys":
        """Return a new pair."""
        public, secret = zmq.curve_keypair()
        return cls(public, secret)

    def __repr__(self) -> str:
        return "CurveKeys(...)"


class Network(msgspec.Struct, frozen=True):
    """Where inboxes are: in a folder of this host, or at TCP ports with keys.

    Attributes
    ----------
    folder
        The folder of the Unix sockets; empty for TCP.
    host
        The address that TCP ports are opened on; empty for the one from which `towards` is
        reached.
    towards
        The driver's host.
    announce
        What others are told is the host of TCP ports; empty for the address they are opened on.
    """

    folder: str = ""
    host: str = ""
    towards: str = "127.0.0.1"
    keys: CurveKeys | None = None
    announce: str = ""

    def inbox(self, name: str) -> str:
        """Return the address to open an inbox at."""
        if self.folder:
            path = Path(self.folder) / f"{name}.sock"
            if len(str(path)) > 100:  # the kernel's limit is 107
                raise EngineError(
                    f"the socket path {path} is too long",
                    remedy="set TMPDIR to a shorter path, e.g. /tmp",
                )
            return f"ipc://{path}"
        return f"tcp://{self.host or own_address(self.towards)}:*"

    def announced(self, address: str) -> str:
        """Return the address of an inbox as others are told.

        Ports are used again, so with TCP it says which process it is, too: after a `MARK`, a name
        made at random.

        >>> told = Network(announce="gate.example").announced("tcp://10.0.0.7:5555")
        >>> told.partition(MARK)[0]
        'tcp://gate.example:5555'
        """
        if self.folder:
            return address
        if self.announce:
            address = f"tcp://{self.announce}:{address.rpartition(':')[2]}"
        return f"{address}{MARK}{secrets.token_hex(8)}"

    def loose(self, frame: bytes) -> bytes:
        """Return a frame as somebody sends it who has no inbox; its loss must do no harm."""
        return frame if self.folder else unnumbered(frame)


def own_address(towards: str) -> str:
    """Return this host's address as another host sees it.

    >>> own_address("127.0.0.1")
    '127.0.0.1'
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((towards, 9))  # sends nothing: it only chooses the way
        address: str = probe.getsockname()[0]
        return address


class Mailbox:
    """A process's inbox, and its ways to the inboxes of others."""

    def __init__(self, network: Network, name: str) -> None:
        wanted = network.inbox(name)
        self._network = network
        self._context = zmq.Context()
        self._authenticator = self._guard()
        self._inbox = self._context.socket(zmq.PULL)
        _configure(self._inbox, network, server=True)
        try:
            self._inbox.bind(wanted)
        except zmq.ZMQError as error:
            self.close()
            raise EngineError(
                f"the inbox {wanted} cannot be opened: {error}",
                remedy="see that the folder can be written, or choose another address",
            ) from None
        self.address = network.announced(self._inbox.getsockopt_string(zmq.LAST_ENDPOINT))
        self._ways: dict[int, zmq.Socket[bytes]] = {}
        self._towards: dict[int, str] = {}
        self._connections: dict[int, InboxConnection] = {}
        self._links: Links | None = None
        if not network.folder:
            self._links = Links(self.address, now=time.monotonic())
        self._poller = zmq.Poller()
        self._poller.register(self._inbox, zmq.POLLIN)
        self.bad_frames = 0

    def _guard(self) -> ThreadAuthenticator | None:
        keys = self._network.keys
        if keys is None:
            return None
        guard = ThreadAuthenticator(self._context)
        guard.start()
        guard.configure_curve_callback("*", credentials_provider=_OnlyFlow(keys))
        return guard

    def connect(self, number: int, address: str) -> None:
        """Make a way to the inbox of a task, or of the driver (-1), instead of any former one."""
        if self._towards.get(number) == address:
            return
        if number in self._ways:
            self._close_way(number, 0)
        self._towards[number] = address
        way = self._ways[number] = connect_to(self._context, self._network, address)
        if self._links is not None:
            self._connections[number] = InboxConnection(way, time.monotonic())
            for data in self._links.open(number, address, now=time.monotonic()):
                way.send(data, zmq.NOBLOCK)

    def _close_way(self, number: int, linger_ms: int) -> None:
        connection = self._connections.pop(number, None)
        if connection is not None:
            connection.close()
        self._ways.pop(number).close(linger_ms)

    def send(self, number: int, frame: bytes) -> None:
        """Send a frame; never waits."""
        if len(frame) > MAX_BYTES:
            raise _too_large(frame, self._towards[number])
        if self._links is not None:
            frame = self._links.number(number, frame)
        self._ways[number].send(frame, zmq.NOBLOCK)

    def drain(self, most: int) -> Iterator[tuple[Header, bytes]]:
        """Return the frames that are there, at most so many; count and drop what is no frame."""
        receive, links = self._inbox.recv, self._links
        now = time.monotonic() if links is not None else 0.0
        for _ in range(most):
            if links is not None and links.ready:
                data = links.ready.popleft()
            else:
                try:
                    data = receive(zmq.NOBLOCK)
                except zmq.Again:
                    break
                if links is not None:
                    frame = links.take(data, now=now)
                    if frame is None:
                        continue
                    data = frame
            try:
                header = parse(data)
            except FrameError:
                self.bad_frames += 1
            else:
                yield header, data
        if links is not None:
            self._see_to(links, now)

    def _see_to(self, links: Links, now: float) -> None:
        """Answer, ask, and send again, as the links want it."""
        for number, connection in self._connections.items():
            if connection.look(now):  # it is back: ask at once what was lost
                self._ways[number].send(links.probe(number, now=now), zmq.NOBLOCK)
        for to, data in links.turn(now=now):
            if isinstance(to, int):
                self._ways[to].send(data, zmq.NOBLOCK)
            else:
                self._answer(to, data)

    def _answer(self, address: str, data: bytes) -> None:
        """Answer somebody to whom there is no way."""
        try:
            way = connect_to(self._context, self._network, address)
        except zmq.ZMQError:
            return  # no address: who asks like that is not answered
        way.send(data, zmq.NOBLOCK)
        way.close(HEARTBEAT_MS)

    def settled(self, number: int | None = None) -> bool:
        """Return whether the other side, or every other side, has all that was sent there."""
        return self._links is None or self._links.settled(number)

    def pending(self, number: int) -> bool:
        """Return whether the other side misses something of us: frames, or an answer."""
        return self._links is not None and self._links.pending(number, now=time.monotonic())

    def settle(self, number: int, milliseconds: int) -> None:
        """Wait until the other side has all that was sent there, at most so long."""
        deadline = time.monotonic() + milliseconds / 1000
        while not self.settled(number) and time.monotonic() < deadline:
            for _ in self.drain(1000):
                pass  # nobody is interested any more
            self.wait(10)

    def down(self) -> dict[int, float]:
        """Return to whom there is no connection now, and for how many seconds there was none.

        One that leads to somebody else is none.
        """
        now, links = time.monotonic(), self._links
        found = {n: connection.down_s(now) for n, connection in self._connections.items()}
        if links is not None:
            found = {n: max(down, links.refused_s(n, now=now)) for n, down in found.items()}
        return {number: seconds for number, seconds in found.items() if seconds > 0}

    @property
    def sent_again(self) -> int:
        """How many frames had to be sent again."""
        return 0 if self._links is None else self._links.again

    def watch(self, descriptor: int) -> None:
        """Wake up also when a file descriptor becomes readable."""
        self._poller.register(descriptor, zmq.POLLIN)

    def unwatch(self, descriptor: int) -> None:
        """Wake up for a file descriptor no more."""
        self._poller.unregister(descriptor)

    def wait(self, milliseconds: float) -> None:
        """Wait until there is something, at most so long."""
        if self._links is not None and self._links.ready:
            return
        if milliseconds < 1:
            # The poller knows whole milliseconds only; what comes meanwhile waits less than one.
            time.sleep(milliseconds / 1000)
            milliseconds = 0
        self._poller.poll(math.floor(milliseconds))

    def close(self, *, linger_ms: int = 0) -> None:
        """Close everything; what was sent has `linger_ms` to leave."""
        for number in list(getattr(self, "_ways", ())):
            self._close_way(number, linger_ms)
        self._inbox.close(0)
        if self._authenticator is not None:
            self._authenticator.stop()
        self._context.term()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(linger_ms=LINGER_MS)


def _too_large(frame: bytes, towards: str) -> EngineError:
    """Return the error for a frame that the other side would drop, and the connection with it."""
    return EngineError(
        f"a message of {len(frame):,} bytes to {towards.partition(MARK)[0]} is larger than "
        f"{MAX_BYTES:,}",
        remedy="make records smaller, use more tasks, or let a source read fewer files",
    )


def _configure(sock: "zmq.Socket[bytes]", network: Network, *, server: bool) -> None:
    sock.setsockopt(zmq.LINGER, 0)
    sock.setsockopt(zmq.RCVHWM, 0)
    sock.setsockopt(zmq.SNDHWM, 0)
    sock.setsockopt(zmq.MAXMSGSIZE, MAX_BYTES + SIZE)
    if not network.folder:
        sock.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
        sock.setsockopt(zmq.HEARTBEAT_TIMEOUT, SILENT_MS)
        sock.setsockopt(zmq.HANDSHAKE_IVL, SILENT_MS)
        sock.setsockopt(zmq.RECONNECT_IVL_MAX, RECONNECT_MS)
    keys = network.keys
    if keys is not None:
        sock.curve_publickey, sock.curve_secretkey = keys.public, keys.secret
        if server:
            sock.curve_server = True
        else:
            sock.curve_serverkey = keys.public


def connect_to(
    context: "zmq.Context[zmq.Socket[bytes]]", network: Network, address: str
) -> "zmq.Socket[bytes]":
    """Return a socket that leads to an inbox."""
    way = context.socket(zmq.PUSH)
    _configure(way, network, server=False)
    way.connect(address.partition(MARK)[0])
    return way


class _OnlyFlow:
    """Lets in who has the flow's own key."""

    def __init__(self, keys: CurveKeys) -> None:
        self._public = keys.public

    def callback(self, domain: str, key: Any) -> bool:
        """Return whether a connection with this public key is let in."""
        known = key if isinstance(key, bytes) else str(key).encode()
        return known == self._public
