"""Reading lines over TCP, one connection after the other."""

import errno
import os
import select
import socket
import termios
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from floodway.connectors.backoff import Backoff
from floodway.connectors.base import Lag, Raw, Reader, Unavailable
from floodway.connectors.lines import LineCutter
from floodway.connectors.tcp_client import host_and_port, resolve, waiting
from floodway.core.duration import show_ms, to_ms
from floodway.core.errors import ConnectorError

if TYPE_CHECKING:
    from floodway.connectors.tcp import TcpSource

FULL_SHARE = 0.2
"""A socket's buffer is full when that much of it is text: the rest is the system's own."""


class TcpReader(Reader):
    """Reads lines of one connection after the other, and never waits.

    Parameters
    ----------
    source
        What to read.
    clock
        Seconds, for the patience and the waits between attempts.
    """

    def __init__(self, source: "TcpSource", clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._addresses = resolve(source.host, source.port)
        self._address = 0
        self._name = host_and_port(source.host, source.port)
        self._cutter = LineCutter(self._name, source.max_bytes, form=source.format)
        self._patience_s = to_ms(source.patience, what="patience", zero=True) / 1000
        self._backoff = Backoff(first_ms=20, most_ms=1_000)
        self._away_since = self._next_attempt = clock()
        self._reason = ""
        self._socket: socket.socket | None = None
        self._connected = False
        self._ended = False

    @property
    def there(self) -> bool:  # type: ignore[override]
        """Whether there is a connection."""
        return self._connected

    @property
    def amid(self) -> bool:  # type: ignore[override]
        """Whether the rest of a line is on its way."""
        return self._cutter.amid

    def poll(self, limit: int) -> Raw | None:
        """Return what was received, up to the last line end."""
        if self._ended:
            return None
        if not self._connected and not self._connect():
            return []
        if self._socket is None:
            return []
        try:
            chunk = self._socket.recv(self._cutter.want(limit))
        except (BlockingIOError, InterruptedError):
            return []
        except OSError as error:
            return self._broken(error)
        return self._cutter.feed(chunk) if chunk else self._closed_by_server()

    def fileno(self) -> int | None:
        """Return the socket's descriptor, once it is connected."""
        return self._socket.fileno() if self._socket is not None and self._connected else None

    def lag(self) -> Lag:
        """Return how many lines wait in the socket; those that wait at the sender nobody knows."""
        if self._socket is None or not self._connected:
            return Lag()
        there = waiting(self._socket, termios.FIONREAD)
        room = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        full = there >= room * FULL_SHARE
        return Lag(records=int(there / self._cutter.line_bytes), full=full)

    def close(self) -> None:
        """Close the connection."""
        self._ended = True
        self._disconnect()

    def _connect(self) -> bool:
        """Go one step further; return whether there is a connection."""
        if self._socket is None:
            if self._clock() < self._next_attempt:
                raise Unavailable(self._reason)
            family, address = self._addresses[self._address % len(self._addresses)]
            self._socket = socket.socket(family, socket.SOCK_STREAM)
            self._socket.settimeout(0)
            code = self._socket.connect_ex(address)
        elif not select.select([], [self._socket], [], 0)[1]:
            code = errno.EINPROGRESS
        else:
            code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code == 0:
            self._connected = True
            self._backoff.reset()
        elif code == errno.ECONNRESET:  # there was a connection, and it is gone already
            self._broken(OSError(code, os.strerror(code)))
        elif code not in (errno.EINPROGRESS, errno.EAGAIN, errno.EALREADY):
            self._failed(errno.errorcode.get(code, str(code)))
        elif self._clock() - self._away_since > self._patience_s:
            self._failed("no answer")
        return self._connected

    def _failed(self, reason: str) -> None:
        """Note that nobody is there, and give up when patience is over."""
        self._disconnect()
        self._address += 1
        self._reason = f"{self._name} cannot be reached ({reason})"
        now = self._clock()
        if self._address % len(self._addresses):
            raise Unavailable(self._reason)  # the host has other addresses, to be tried at once
        if now - self._away_since >= self._patience_s:
            waited = show_ms(round(self._patience_s * 1000))
            raise ConnectorError(
                f"{self._reason} for {waited}",
                remedy="start the server, correct host and port, or give a longer patience=",
            )
        self._next_attempt = now + self._backoff.next_ms() / 1000
        raise Unavailable(self._reason)

    def _closed_by_server(self) -> Raw | None:
        last = self._cutter.rest()
        self._disconnect()
        if self._source.on_close == "end":
            self._ended = True
            return last or None
        self._away("closed by the server")
        return last

    def _broken(self, error: OSError) -> Raw:
        self._cutter.drop()
        self._disconnect()
        if self._source.on_close == "reconnect":
            self._away(str(error))
            return []
        raise ConnectorError(
            f"the connection to {self._name} broke: {error}",
            remedy="see why the server broke it off, or pass on_close='reconnect'",
        ) from error

    def _away(self, reason: str) -> None:
        self._reason = f"{self._name} is away ({reason})"
        self._away_since = self._clock()
        # Not at once: a server that closes every connection must not be asked without a pause.
        self._next_attempt = self._away_since + self._backoff.next_ms() / 1000

    def _disconnect(self) -> None:
        self._connected = False
        if self._socket is not None:
            self._socket.close()
            self._socket = None
