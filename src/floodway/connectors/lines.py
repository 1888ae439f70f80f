"""Lines: cutting what comes in into blocks of whole ones, and writing rows as such."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from floodway.connectors.base import Format, Raw, Row, Unreadable
from floodway.connectors.formats import MAX_BYTES, Json, no_lines
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema

SHOWN_BYTES = 1000
"""So much of a line that cannot be read is kept, to show what it was."""

_FIRST_GUESS_BYTES = 200.0  # of a line, until one was seen
_SAMPLE_BYTES = 4096
_LEAST_READ_BYTES = 512
_MOST_READ_BYTES = 128 * 1024  # larger blocks are slower: they leave the cache


def about_lines(block: bytes) -> int:
    r"""Return about how many lines there are: exactly, if there are few.

    The first lines tell well enough. Counting them all takes half as long as decoding them.

    >>> about_lines(b"one\ntwo\nthree"), about_lines(b"0123456\n" * 10_000)
    (3, 10000)
    """
    sample = block if len(block) <= _SAMPLE_BYTES else block[:_SAMPLE_BYTES]
    lines = sample.count(b"\n")
    if sample is block:
        return lines + (not block.endswith(b"\n"))
    return max(round(lines * len(block) / len(sample)), 1)


class LineCutter:
    r"""Takes chunks as they come in and gives back blocks of whole lines.

    There is no work per line: a chunk is cut once, behind its last line end. Only what comes with a
    line that is too long is given line by line, with an `Unreadable` in its place. That is said
    as soon as it is known; the rest of the line is passed over as it comes.

    Parameters
    ----------
    where
        What is read, for the error.
    max_bytes
        The longest line that is taken.
    form
        The format of the lines.
    inside
        Whether what comes first is the rest of a line that was too long.

    Examples
    --------
    >>> cutter = LineCutter("a file")
    >>> cutter.feed(b"one\ntwo\nth")
    b'one\ntwo\n'
    >>> cutter.feed(b"ree\n")
    b'three\n'
    """

    def __init__(
        self,
        where: str,
        max_bytes: int = MAX_BYTES,
        *,
        form: Format | None = None,
        inside: bool = False,
    ) -> None:
        self._where = where
        self._max_bytes = max_bytes
        self._lines = (form or Json()).lines
        self._passing = inside
        self._pieces: list[bytes] = []
        self.line_bytes: float = _FIRST_GUESS_BYTES
        """About how long a line is."""
        self.held = 0
        """How many bytes of a line that has not ended yet are kept."""

    @property
    def amid(self) -> bool:
        """Whether a line has begun that has not ended yet."""
        return self.held > 0 or self._passing

    def want(self, limit: int) -> int:
        """Return how many bytes to read for about `limit` lines."""
        wanted = max(limit * self.line_bytes, self.held, _LEAST_READ_BYTES)
        return int(min(wanted, _MOST_READ_BYTES))

    def feed(self, chunk: bytes) -> Raw:
        """Take a chunk and return the lines that are whole by now."""
        if self._passing:
            end = chunk.find(b"\n") + 1
            if not end:
                return b""
            self._passing = False
            chunk = chunk[end:]
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            return self._kept(b"", chunk)
        if self._pieces:
            block = b"".join((*self._pieces, memoryview(chunk)[:cut]))  # copied once, not twice
            self._pieces.clear()
            self.held = 0
        else:
            block = chunk[:cut]
        self.line_bytes = len(block) / max(about_lines(block), 1)
        return self._kept(block, chunk[cut:]) if cut < len(chunk) else self._fitting(block)

    def rest(self) -> Raw:
        """Return the last line, which has no end of its own, as a whole line."""
        block = b"".join((*self._pieces, b"\n")) if self._pieces else b""
        self.drop()
        return block

    def drop(self) -> None:
        """Forget the line that has not ended yet."""
        self._pieces.clear()
        self.held = 0
        self._passing = False

    def _kept(self, block: bytes, piece: bytes) -> Raw:
        """Keep the beginning of a line unless it is too long; return what can be returned now."""
        self._pieces.append(piece)
        self.held += len(piece)
        if self.held <= self._max_bytes:
            return self._fitting(block)
        begun = b"".join(self._pieces)
        self.drop()
        self._passing = True
        return [*self._each(block), self._too_long(begun)]

    def _fitting(self, block: bytes) -> Raw:
        long = len(block) > self._max_bytes and max(map(len, block.split(b"\n"))) > self._max_bytes
        return self._each(block) if long else block

    def _each(self, block: bytes) -> list[Any]:
        most = self._max_bytes
        return [line if len(line) <= most else self._too_long(line) for line in self._lines(block)]

    def _too_long(self, line: bytes) -> Unreadable:
        return Unreadable(
            line[:SHOWN_BYTES],
            f"a line of {self._where} is longer than {self._max_bytes:,} bytes",
            remedy="check that it has lines at all, or give max_bytes= a larger number",
        )


class Envelope(msgspec.Struct, frozen=True):
    """A row as it is written with ``envelope=True``."""

    timestamp: int
    key: Any
    value: Any
    id: Any


def row_encoder(
    form: Format, schema: Schema, *, envelope: bool, sink: str
) -> Callable[[Sequence[Row]], bytes]:
    r"""Return the function from rows to lines.

    Parameters
    ----------
    form
        The format of the values.
    schema
        Their schema.
    envelope
        Whether a line has the whole row instead of the value alone; for JSON.
    sink
        The name of the sink, for the error.

    Examples
    --------
    >>> rows = [(1, "a", 10, None), (2, "b", 20, None)]
    >>> row_encoder(Json(), Schema.of(int), envelope=False, sink="StdoutSink")(rows)
    b'10\n20\n'
    >>> row_encoder(Json(), Schema.of(int), envelope=True, sink="StdoutSink")(rows[:1])
    b'{"timestamp":1,"key":"a","value":10,"id":null}\n'
    """
    if envelope:
        if not isinstance(form, Json):
            raise OptionError(
                f"{sink} has an envelope only in JSON, not in {form}",
                remedy="leave out format= or envelope=",
            )
        lines = msgspec.json.Encoder().encode_lines
        return _explained(lambda rows: lines([Envelope(*row) for row in rows]), sink)
    encode = _values_encoder(form, schema)
    return _explained(lambda rows: encode(bare_values(rows, sink)), sink)


def _explained(
    encode: Callable[[Sequence[Row]], bytes], sink: str
) -> Callable[[Sequence[Row]], bytes]:
    def encode_rows(rows: Sequence[Row]) -> bytes:
        try:
            return encode(rows)
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ConnectorError(
                f"{sink} got a value that its format cannot hold: {error}",
                remedy="turn it into a record, a scalar, a list or a dictionary with map",
            ) from error

    return encode_rows


def bare_values(rows: Sequence[Row], sink: str, *, remedy: str = "pass envelope=True") -> list[Any]:
    """Return the values of rows; refuse updates, which mean nothing without their identity."""
    for _, _, _, identity in rows:
        if identity is not None:
            raise ConnectorError(
                f"{sink} got an update of a record that it wrote before, and writes values alone",
                remedy=f"{remedy}, or let the join send facts, e.g. with emit='lazy'",
            )
    return [row[2] for row in rows]


def _values_encoder(form: Format, schema: Schema) -> Callable[[list[Any]], bytes]:
    if type(form) is Json:
        return msgspec.json.Encoder().encode_lines
    encode = form.encoder(schema)
    form.block_decoder(schema)  # refuses what has no lines

    def encode_values(values: list[Any]) -> bytes:
        lines = [encode(value) for value in values]
        block = b"".join([line + b"\n" for line in lines])
        if block.count(b"\n") != len(lines):
            raise ConnectorError(
                "a value has a line end in it, and would be read as two",
                remedy="use Json(), which escapes line ends",
            )
        return block

    return encode_values


def require_lines(form: Format) -> None:
    """Refuse a format that cannot be read from lines, whatever the schema."""
    try:
        form.block_decoder(Schema.of(object))
    except OptionError:
        raise no_lines(form) from None
