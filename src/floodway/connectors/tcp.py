"""Lines over TCP: as a client, reading and writing."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from floodway.connectors.base import Format, Reader, SinkConnector, SourceConnector, Split, Writer
from floodway.connectors.formats import MAX_BYTES, Json
from floodway.connectors.lines import require_lines, row_encoder
from floodway.connectors.tcp_client import check_port, resolve
from floodway.connectors.tcp_reader import TcpReader
from floodway.connectors.tcp_writer import TcpWriter
from floodway.core.duration import Duration, to_ms
from floodway.core.errors import OptionError
from floodway.core.schema import Schema

_JSON = Json()


@dataclass(frozen=True)
class TcpSource(SourceConnector):
    """Connects to a server and reads lines.

    What is in flight when a connection breaks is lost: not replayable. Half a line at an orderly
    end is handed over as the last line; half a line before a broken connection is dropped.

    Parameters
    ----------
    host, port
        Where to connect to.
    format
        What a line is.
    on_close
        What to do when the server closes the connection: take it for the ``"end"`` of the stream,
        or ``"reconnect"``.
    patience
        How long the server may be unavailable before the flow fails.
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
        check_port(self.port)
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
        resolve(self.host, self.port)

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader; it connects when it is polled."""
        return TcpReader(self)


@dataclass(frozen=True)
class TcpSink(SinkConnector):
    """Connects to a server and writes lines.

    At least once, up to the receiving machine: lines are kept until its operating system has
    acknowledged them, and are sent again over a new connection if the old one breaks before. A
    receiver that reads them and then fails has to be noticed by other means, since TCP does not
    report it. A connection that breaks may end with half a line; the whole one comes again. The
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
        check_port(self.port)

    def check(self) -> None:
        """Refuse a host that is not known and a format without lines."""
        require_lines(self.format)
        resolve(self.host, self.port)

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer with a connection of its own, made when there is something to write."""
        encode = row_encoder(self.format, schema, envelope=self.envelope, sink="TcpSink")
        return TcpWriter(self.host, self.port, encode)
