"""Writing lines over TCP, and keeping them until the other machine has them."""

import select
import socket
import termios
import time
from collections.abc import Callable, Sequence

from floodway.connectors.base import Row, Unavailable, Writer
from floodway.connectors.tcp_client import host_and_port, waiting

_CONNECT_S = 0.5  # how long a writer waits for a connection before it says that there is none
_SEND_S = 0.5  # how long a writer waits for a slow receiver before it says so
_HELD_BYTES = 4 * 1024 * 1024  # sent and not known to have arrived: asked for above this
_CONFIRM_S = 0.5
_CONFIRM_POLL_S = 0.0005


class TcpWriter(Writer):
    """Sends lines and keeps them until they are acknowledged."""

    def __init__(self, host: str, port: int, encode: Callable[[Sequence[Row]], bytes]) -> None:
        self._address = host, port
        self._name = host_and_port(host, port)
        self._encode = encode
        self._socket: socket.socket | None = None
        self._held = bytearray()
        self._sent = 0

    def write(self, rows: Sequence[Row]) -> None:
        """Send rows as lines, after those that are held."""
        if len(self._held) > _HELD_BYTES:
            self.flush()
        self._held += self._encode(rows)
        try:
            self._send()
        except Unavailable as away:
            # The lines are kept here, so nobody else has to.
            raise Unavailable(away.reason, taken=len(rows)) from away

    def flush(self) -> None:
        """Wait until everything is acknowledged, for a moment."""
        self._send()
        if self._socket is None or not self._held:
            return
        give_up = time.monotonic() + _CONFIRM_S
        while (left := unacknowledged(self._socket)) and time.monotonic() < give_up:
            self._check_open()
            time.sleep(_CONFIRM_POLL_S)
        if left:
            raise Unavailable(f"{self._name} does not take the last {left:,} bytes")
        self._check_open()
        self._held.clear()
        self._sent = 0

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self) -> None:
        if not self._held:
            return
        if self._socket is None:
            self._socket = self._connected()
        self._check_open()
        try:
            while self._sent < len(self._held):
                with memoryview(self._held) as held, held[self._sent :] as left:
                    self._sent += self._socket.send(left)
        except TimeoutError:
            raise Unavailable(f"{self._name} does not take more now") from None
        except OSError as error:
            raise self._broken(error.strerror or str(error)) from error

    def _connected(self) -> socket.socket:
        try:
            opened = socket.create_connection(self._address, timeout=_CONNECT_S)
        except OSError as error:
            raise Unavailable(f"{self._name} cannot be reached ({error})") from error
        opened.settimeout(_SEND_S)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return opened

    def _check_open(self) -> None:
        """See whether the receiver has closed: what is sent after that is lost without a word."""
        if self._socket is None or not select.select([self._socket], [], [], 0)[0]:
            return
        try:
            said = self._socket.recv(4096)
        except OSError as error:
            raise self._broken(error.strerror or str(error)) from error
        if not said:
            raise self._broken("closed by the receiver")

    def _broken(self, reason: str) -> Unavailable:
        self.close()
        self._sent = 0
        return Unavailable(f"the connection to {self._name} broke ({reason})")


def unacknowledged(connection: socket.socket) -> int:
    """Return how many bytes were sent that the other machine has not acknowledged."""
    return waiting(connection, termios.TIOCOUTQ)
