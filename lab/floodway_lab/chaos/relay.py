"""A relay that breaks the connections it carries.

With ``transport="tcp"`` and ``Settings(announce=relay.host)`` the processes of a flow listen on
127.0.0.1 as ever, but tell each other that they are at an address of the relay's. The relay stands
there, at every port at which somebody listens on 127.0.0.1, and carries what comes to it. It can
reset all connections, as a firewall or a router that has forgotten them does; let nothing through
for a while, to one port or to all, and then go on; and delay what it carries. It needs no
privileges.

It carries bytes, and a connection that somebody could put the same frame into twice would not be
TCP: frames come twice in the simulation.
"""

import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

CHUNK = 64 * 1024

LOOK_S = 0.1
"""How often it looks where somebody listens: among the thousands of connections of thirty tasks
that takes ten milliseconds, which the flow would not have."""

_LOOPBACK, _LISTENS = "0100007F", "0A"
"""127.0.0.1, and the state of a socket that listens, as the kernel shows them."""

_RESET = struct.pack("ii", 1, 0)
"""With this as its linger a socket is closed by a reset, and what it had buffered is gone."""


class Relay:
    """Carries connections, badly if asked to, while it is open.

    Attributes
    ----------
    host
        Its address, of the loopback interface: as ``Settings(announce=...)`` wants it.
    delay_s
        How long everything takes.
    resets
        How many connections were reset.
    """

    def __init__(self) -> None:
        self.host = (
            f"127.{random.randint(2, 250)}.{random.randint(2, 250)}.{random.randint(2, 250)}"
        )
        self.delay_s = 0.0
        self.resets = 0
        self._listeners: dict[int, socket.socket] = {}
        self._gate = threading.Condition()
        self._parted, self._shut = False, frozenset[int]()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._watch = threading.Thread(target=self._look, name="relay", daemon=True)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._watch.join()
        for port in list(self._listeners):
            self._leave(port)
        self.join()
        self.reset()

    @property
    def connections(self) -> int:
        """How many connections it carries now."""
        with self._lock:
            return len(self._pairs)

    def reset(self) -> int:
        """Reset all connections; what was on its way is lost. Return how many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                _close(end)
        self.resets += len(pairs)
        return len(pairs)

    def part(self, *ports: int) -> None:
        """Let nothing through, and no new connection come about, until `join`.

        If ports are named, that holds for who listens there, and for nobody else.
        """
        with self._gate:
            self._parted, self._shut = not ports, frozenset(ports)

    def join(self) -> None:
        """Let everything through again."""
        with self._gate:
            self._parted, self._shut = False, frozenset()
            self._gate.notify_all()

    def _pass(self, port: int) -> None:
        """Wait until what belongs to a port is let through."""
        with self._gate:
            while self._parted or port in self._shut:
                self._gate.wait()

    # ------------------------------------------------------------------ where to listen

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            there = _listening()
            for port in self._listeners.keys() - there:
                self._leave(port)
            for port in there - self._listeners.keys():
                with contextlib.suppress(OSError):  # somebody else has that address
                    listener = socket.create_server((self.host, port), backlog=128)
                    self._listeners[port] = listener
                    self._start(self._accept, listener, port)

    def _leave(self, port: int) -> None:
        listener = self._listeners.pop(port)
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept
        listener.close()

    # ------------------------------------------------------------------ carrying

    def _start(self, work: Callable[..., None], *arguments: socket.socket | int) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self, listener: socket.socket, port: int) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            self._start(self._carry, near, port)

    def _carry(self, near: socket.socket, port: int) -> None:
        self._pass(port)
        try:
            far = socket.create_connection(("127.0.0.1", port))
        except OSError:
            near.close()
            return
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._pairs.append((near, far))
        self._start(self._pump, near, far, port)
        self._pump(far, near, port)

    def _pump(self, origin: socket.socket, target: socket.socket, port: int) -> None:
        with contextlib.suppress(OSError):
            while data := origin.recv(CHUNK):
                self._pass(port)
                if self.delay_s:
                    time.sleep(self.delay_s)
                target.sendall(data)
        with self._lock:
            self._pairs = [pair for pair in self._pairs if origin not in pair]
        for end in (origin, target):
            _close(end)


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RD)  # wakes who waits in recv
    end.close()


def _listening() -> set[int]:
    """Return the ports at which somebody listens on 127.0.0.1."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ends = [row[1].split(":") for row in rows if row[3] == _LISTENS]
    return {int(port, 16) for address, port in ends if address == _LOOPBACK}
