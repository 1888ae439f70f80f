"""Standard input and output."""

import os
import select
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from floodway.connectors.base import (
    ConnectorPlace,
    Format,
    Raw,
    Reader,
    Row,
    SinkConnector,
    SourceConnector,
    Split,
    Writer,
)
from floodway.connectors.formats import MAX_BYTES, Json
from floodway.connectors.lines import LineCutter, require_lines, row_encoder
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema

_STDIN = 0
_JSON = Json()


@dataclass(frozen=True)
class StdinSource(SourceConnector):
    """Reads lines from standard input, in the process that started the flow.

    The stream ends with the input. What was read cannot be read again: not replayable.

    Parameters
    ----------
    format
        What a line is.
    max_bytes
        The longest line that is taken.

    Examples
    --------
    >>> StdinSource().place
    'driver'
    """

    place: ClassVar[ConnectorPlace] = "driver"

    format: Format = _JSON
    _: KW_ONLY
    max_bytes: int = MAX_BYTES

    def check(self) -> None:
        """Refuse a format without lines."""
        require_lines(self.format)

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader of standard input."""
        return DescriptorReader(_STDIN, self.max_bytes, "standard input", form=self.format)


class DescriptorReader(Reader):
    """Reads lines from a file descriptor that somebody else opened and will close.

    The descriptor is asked before it is read and never made non-blocking: a terminal or pipe shares
    that flag with every process that has it.

    Parameters
    ----------
    descriptor
        The file descriptor.
    max_bytes
        The longest line that is taken.
    where
        What it is, for errors.
    form
        The format of the lines.
    """

    def __init__(
        self, descriptor: int, max_bytes: int, where: str, *, form: Format = _JSON
    ) -> None:
        self._descriptor = descriptor
        self._cutter = LineCutter(where, max_bytes, form=form)
        self._where = where
        self._ended = False

    @property
    def amid(self) -> bool:  # type: ignore[override]
        """Whether the rest of a line is on its way."""
        return self._cutter.amid

    def poll(self, limit: int) -> Raw | None:
        """Return what is there, up to the last line end."""
        if self._ended:
            return None
        try:
            if not select.select([self._descriptor], [], [], 0)[0]:
                return []
            chunk = os.read(self._descriptor, self._cutter.want(limit))
        except (OSError, ValueError) as error:
            raise ConnectorError(
                f"{self._where} cannot be read: {error}",
                remedy="pipe or redirect something into it",
            ) from error
        if chunk:
            return self._cutter.feed(chunk)
        self._ended = True
        return self._cutter.rest() or None

    def fileno(self) -> int | None:
        """Return the descriptor if it can be waited for; a regular file is always ready."""
        if self._ended:
            return None
        mode = os.fstat(self._descriptor).st_mode
        waitable = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(self._descriptor)
        return self._descriptor if waitable else None

    def close(self) -> None:
        """Stop reading; the descriptor stays open."""
        self._ended = True


@dataclass(frozen=True)
class StdoutSink(SinkConnector):
    r"""Writes lines to standard output, in the process that started the flow.

    Parameters
    ----------
    format
        What a line is.
    envelope
        Whether to write whole rows as JSON instead of values alone; see `JsonLinesSink`.

    Examples
    --------
    >>> from floodway.connectors.formats import Text
    >>> writer = StdoutSink(Text()).open(Split(), Schema.of(str))
    >>> writer.write([(1, None, "hello", None)])
    hello
    """

    place: ClassVar[ConnectorPlace] = "driver"
    most = 1

    format: Format = _JSON
    _: KW_ONLY
    envelope: bool = False

    def check(self) -> None:
        """Refuse a format without lines."""
        require_lines(self.format)

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer to standard output."""
        encode = row_encoder(self.format, schema, envelope=self.envelope, sink="StdoutSink")
        return _StdoutWriter(encode)


class _StdoutWriter(Writer):
    def __init__(self, encode: Callable[[Sequence[Row]], bytes]) -> None:
        self._encode = encode

    def write(self, rows: Sequence[Row]) -> None:
        lines = self._encode(rows)
        try:
            _print(lines)
        except (OSError, ValueError) as error:
            raise ConnectorError(
                f"standard output cannot be written: {error}",
                remedy="keep whoever reads it running, or write to a file with JsonLinesSink",
            ) from error


def _print(lines: bytes) -> None:
    """Write to whatever is standard output now; in a notebook that takes only text."""
    sys.stdout.flush()
    raw = getattr(sys.stdout, "buffer", None)
    if raw is None:
        sys.stdout.write(lines.decode(errors="backslashreplace"))
        sys.stdout.flush()
    else:
        raw.write(lines)
        raw.flush()
