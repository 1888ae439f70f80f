"""Sockets: how frames get from process to process.

Every process that takes part has one inbox, a ZeroMQ PULL socket, and connects to the inboxes of
those it talks to. On one host inboxes are Unix sockets in a folder that nobody else may enter.
Between hosts they are TCP ports with CURVE: every connection is encrypted, and only who has the
flow's key pair, which travels with the Spark job, is let in.

ZeroMQ's own limits are off. What may be on its way is bounded by the tasks themselves, in bytes.
"""

import math
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
from floodway.engine.transport.frame import MAX_BYTES, FrameError, Header, parse


class Keys(msgspec.Struct, frozen=True):
    """A flow's CURVE key pair. Never shown."""

    public: bytes
    secret: bytes

    @classmethod
    def make(cls) -> "Keys":
        """Return a new pair."""
        public, secret = zmq.curve_keypair()
        return cls(public, secret)

    def __repr__(self) -> str:
        return "Keys(...)"


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
    """

    folder: str = ""
    host: str = ""
    towards: str = "127.0.0.1"
    keys: Keys | None = None

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
        self.address = self._inbox.getsockopt_string(zmq.LAST_ENDPOINT)
        self._ways: dict[int, zmq.Socket[bytes]] = {}
        self._towards: dict[int, str] = {}
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
            self._ways[number].close(0)
        self._towards[number] = address
        self._ways[number] = connect_to(self._context, self._network, address)

    def send(self, number: int, frame: bytes) -> None:
        """Send a frame; never waits."""
        self._ways[number].send(frame, zmq.NOBLOCK)

    def drain(self, most: int) -> Iterator[tuple[Header, bytes]]:
        """Return the frames that are there, at most so many; count and drop what is no frame."""
        receive = self._inbox.recv
        for _ in range(most):
            try:
                data = receive(zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                header = parse(data)
            except FrameError:
                self.bad_frames += 1
            else:
                yield header, data

    def watch(self, descriptor: int) -> None:
        """Wake up also when a file descriptor becomes readable."""
        self._poller.register(descriptor, zmq.POLLIN)

    def unwatch(self, descriptor: int) -> None:
        """Wake up for a file descriptor no more."""
        self._poller.unregister(descriptor)

    def wait(self, milliseconds: float) -> None:
        """Wait until there is something, at most so long."""
        if milliseconds < 1:
            # The poller knows whole milliseconds only; what comes meanwhile waits less than one.
            time.sleep(milliseconds / 1000)
            milliseconds = 0
        self._poller.poll(math.floor(milliseconds))

    def close(self, *, linger_ms: int = 0) -> None:
        """Close everything; what was sent has `linger_ms` to leave."""
        for way in getattr(self, "_ways", {}).values():
            way.close(linger_ms)
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
        self.close(linger_ms=1000)


def _configure(sock: "zmq.Socket[bytes]", network: Network, *, server: bool) -> None:
    sock.setsockopt(zmq.LINGER, 0)
    sock.setsockopt(zmq.RCVHWM, 0)
    sock.setsockopt(zmq.SNDHWM, 0)
    sock.setsockopt(zmq.MAXMSGSIZE, MAX_BYTES)
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
    way.connect(address)
    return way


class _OnlyFlow:
    """Lets in who has the flow's own key."""

    def __init__(self, keys: Keys) -> None:
        self._public = keys.public

    def callback(self, domain: str, key: Any) -> bool:
        """Return whether a connection with this public key is let in."""
        known = key if isinstance(key, bytes) else str(key).encode()
        return known == self._public
