"""Lines over TCP: as a client, reading and writing."""

import errno
import fcntl
import os
import select
import socket
import struct
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from floodway.connectors.backoff import Backoff
from floodway.connectors.base import (
    Format,
    Lag,
    Raw,
    Reader,
    Row,
    SinkConnector,
    SourceConnector,
    Split,
    Unavailable,
    Writer,
)
from floodway.connectors.formats import MAX_BYTES, Json
from floodway.connectors.lines import LineCutter, require_lines, row_encoder
from floodway.core.duration import Duration, show_ms, to_ms
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema

_JSON = Json()
_CONNECT_S = 0.5  # how long a writer waits for a connection before it says that there is none
_SEND_S = 0.5  # how long a writer waits for a slow receiver before it says so
_HELD_BYTES = 4 * 1024 * 1024  # sent and not known to have arrived: asked for above this
_CONFIRM_S = 0.5
_CONFIRM_POLL_S = 0.0005


@dataclass(frozen=True)
class TcpSource(SourceConnector):
    """Connects to a server and reads lines.

    What is under way when a connection breaks is gone: not replayable. The half line at an orderly
    end is handed over as the last line; that of a connection that broke is dropped.

    Parameters
    ----------
    host, port
        Where to connect to.
    format
        What a line is.
    on_close
        What it means that the server closes the connection: the ``"end"`` of the stream, or a
        reason to ``"reconnect"``.
    patience
        How long the server may be away before the flow fails.
    max_bytes
        The longest line that is taken.

    Examples
    --------
    >>> TcpSource("localhost", 7000, on_close="reconnect", patience="1m").port
    7000
    """

    host: str
    port: int
    _: KW_ONLY
    format: Format = _JSON
    on_close: Literal["end", "reconnect"] = "end"
    patience: Duration = "30s"
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        _check_port(self.port)
        to_ms(self.patience, what="patience", zero=True)
        if self.on_close not in ("end", "reconnect"):
            raise OptionError(
                f"on_close is {self.on_close!r}", remedy="choose one of: 'end', 'reconnect'"
            )

    @property
    def bounded(self) -> bool | None:
        """It has no end if it connects again; otherwise the server knows."""
        return False if self.on_close == "reconnect" else None

    def check(self) -> None:
        """Refuse a host that is not known and a format without lines."""
        require_lines(self.format)
        _resolve(self.host, self.port)

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader; it connects when it is polled."""
        return TcpReader(self)


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

    def __init__(self, source: TcpSource, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._addresses = _resolve(source.host, source.port)
        self._address = 0
        name = _name(source.host, source.port)
        self._cutter = LineCutter(name, source.max_bytes, form=source.format)
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
        waiting = _waiting(self._socket, termios.FIONREAD)
        room = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        full = waiting >= room * FULL_SHARE
        return Lag(records=int(waiting / self._cutter.line_bytes), full=full)

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
        where = _name(self._source.host, self._source.port)
        self._reason = f"{where} cannot be reached ({reason})"
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
            f"the connection to {_name(self._source.host, self._source.port)} broke: {error}",
            remedy="see why the server broke it off, or pass on_close='reconnect'",
        ) from error

    def _away(self, reason: str) -> None:
        self._reason = f"{_name(self._source.host, self._source.port)} is away ({reason})"
        self._away_since = self._clock()
        # Not at once: a server that closes every connection must not be asked without a pause.
        self._next_attempt = self._away_since + self._backoff.next_ms() / 1000

    def _disconnect(self) -> None:
        self._connected = False
        if self._socket is not None:
            self._socket.close()
            self._socket = None


@dataclass(frozen=True)
class TcpSink(SinkConnector):
    """Connects to a server and writes lines.

    At least once, as far as the receiving machine: lines are kept until its operating system has
    acknowledged them, and are sent again over a new connection if the old one breaks before. A
    receiver that reads them and then fails has to be told apart by other means, since TCP has no
    word for it. A connection that breaks may end with half a line; the whole one comes again. The
    receiver must keep its own direction open while it reads: closing it means that it is done.

    Parameters
    ----------
    host, port
        Where to connect to.
    format
        What a line is.
    envelope
        Whether to write whole rows as JSON instead of values alone; see `JsonLinesSink`.

    Examples
    --------
    >>> TcpSink("localhost", 7001, envelope=True).envelope
    True
    """

    host: str
    port: int
    _: KW_ONLY
    format: Format = _JSON
    envelope: bool = False

    def __post_init__(self) -> None:
        _check_port(self.port)

    def check(self) -> None:
        """Refuse a host that is not known and a format without lines."""
        require_lines(self.format)
        _resolve(self.host, self.port)

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer with a connection of its own, made when there is something to write."""
        encode = row_encoder(self.format, schema, envelope=self.envelope, sink="TcpSink")
        return _TcpWriter(self.host, self.port, encode)


class _TcpWriter(Writer):
    """Sends lines and keeps them until they are acknowledged."""

    def __init__(self, host: str, port: int, encode: Callable[[Sequence[Row]], bytes]) -> None:
        self._host = host
        self._port = port
        self._encode = encode
        self._socket: socket.socket | None = None
        self._held = bytearray()
        self._sent = 0

    def write(self, rows: Sequence[Row]) -> None:
        if len(self._held) > _HELD_BYTES:
            self.flush()
        self._held += self._encode(rows)
        try:
            self._send()
        except Unavailable as away:
            # The lines are kept here, so nobody else has to.
            raise Unavailable(away.reason, taken=len(rows)) from away

    def flush(self) -> None:
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
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    @property
    def _name(self) -> str:
        return _name(self._host, self._port)

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
            opened = socket.create_connection((self._host, self._port), timeout=_CONNECT_S)
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
    return _waiting(connection, termios.TIOCOUTQ)


def _waiting(connection: socket.socket, question: int) -> int:
    answer = fcntl.ioctl(connection.fileno(), question, struct.pack("i", 0))
    return int(struct.unpack("i", answer)[0])


def _resolve(host: str, port: int) -> list[tuple[int, Any]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConnectorError(
            f"host {host!r} of {_name(host, port)} is not known: {error.strerror or error}",
            remedy="correct the name, or use an address",
        ) from error
    return [(family, address) for family, _, _, _, address in found]


def _name(host: str, port: int) -> str:
    return f"{host}:{port}"


def _check_port(port: int) -> None:
    if not 0 < port < 65_536:
        raise OptionError(f"there is no port {port}", remedy="use a number from 1 to 65535")
