"""How values are encoded outside: JSON, text, bytes, MessagePack.

A format is frozen data. It makes decoders and encoders for a schema once per task; these are the
library's own functions wherever possible, since they run once per record or per block.
"""

import codecs
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from floodway.connectors.encoding import Format
from floodway.core.bounds import bounded, checked
from floodway.core.errors import OptionError, SchemaError
from floodway.core.schema import Schema
from floodway.core.types import BinaryType, StringType

MAX_BYTES = 16 * 1024 * 1024
"""The largest line or item that readers take unless told otherwise, in bytes."""


@dataclass(frozen=True)
class Json(Format):
    """JSON, checked against the schema while it is decoded.

    Types are strict: ``"5"`` is not an integer, and a missing field without a default is an error
    that names the field. Fields that the schema does not have are skipped. A value without a schema
    becomes plain data. In a block of lines, empty lines are skipped.

    Examples
    --------
    >>> from floodway import Record
    >>> class Click(Record):
    ...     page: str
    ...     visitor: int
    >>> decode = Json().decoder(Schema.of(Click))
    >>> decode(b'{"page": "home", "visitor": 7}')
    Click(page='home', visitor=7)
    >>> decode(b'{"page": "home", "visitor": "x"}')
    Traceback (most recent call last):
    msgspec.ValidationError: Expected `int`, got `str` - at `$.visitor`
    >>> Json().encoder(Schema.of(Click))(Click("home", 7))
    b'{"page":"home","visitor":7}'
    """

    def decoder(self, schema: Schema) -> Callable[[Any], Any]:
        """Return the function from JSON text to a value."""
        decode = msgspec.json.Decoder(bounded(schema.python)).decode
        return checked(decode, schema.python)

    def block_decoder(self, schema: Schema) -> Callable[[bytes], list[Any]]:
        """Return the function from lines of JSON to values."""
        decode = msgspec.json.Decoder(bounded(schema.python)).decode_lines
        return checked(decode, list[schema.python])  # type: ignore[name-defined]

    def lines(self, block: bytes) -> list[bytes]:
        r"""Return the lines that are not empty; a ``\r`` is a space between values.

        >>> Json().lines(b'{"n":\r1}\r\n\n2\n')
        [b'{"n":\r1}\r', b'2']
        """
        return [line for line in block.split(b"\n") if line.strip()]

    def encoder(self, schema: Schema) -> Callable[[Any], bytes]:
        """Return the function from a value to JSON text."""
        return msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Msgpack(Format):
    """MessagePack, checked against the schema while it is decoded.

    It has no lines, so it goes with sources and sinks of messages, not with files of lines.

    Examples
    --------
    >>> encode, decode = Msgpack().encoder(Schema.of(int)), Msgpack().decoder(Schema.of(int))
    >>> decode(encode(5))
    5
    """

    def decoder(self, schema: Schema) -> Callable[[Any], Any]:
        """Return the function from MessagePack to a value."""
        decode = msgspec.msgpack.Decoder(bounded(schema.python)).decode
        return checked(decode, schema.python)

    def block_decoder(self, schema: Schema) -> Callable[[bytes], list[Any]]:
        """Refuse: any byte of a message may look like the end of a line."""
        raise no_lines(self)

    def encoder(self, schema: Schema) -> Callable[[Any], bytes]:
        """Return the function from a value to MessagePack."""
        return msgspec.msgpack.Encoder().encode


@dataclass(frozen=True)
class Text(Format):
    r"""Text as it is, for a schema of ``str``.

    Parameters
    ----------
    encoding
        How the text is encoded. Blocks of lines need one in which a line end is one byte.

    Examples
    --------
    >>> Text().block_decoder(Schema.of(str))(b"caf\xc3\xa9\nbar\n")
    ['café', 'bar']
    """

    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise OptionError(
                f"encoding {self.encoding!r} is not known", remedy="use one such as 'utf-8'"
            ) from None

    def decoder(self, schema: Schema) -> Callable[[Any], Any]:
        """Return the function from bytes to text."""
        _require(schema, StringType, self)
        encoding = self.encoding
        return lambda item: str(item, encoding)

    def block_decoder(self, schema: Schema) -> Callable[[bytes], list[Any]]:
        """Return the function from encoded lines to texts."""
        if "\n".encode(self.encoding) != b"\n":
            raise no_lines(self)
        return super().block_decoder(schema)

    def encoder(self, schema: Schema) -> Callable[[Any], bytes]:
        """Return the function from text to bytes."""
        _require(schema, StringType, self)
        encoding = self.encoding
        return lambda value: value.encode(encoding)


@dataclass(frozen=True)
class Bytes(Format):
    r"""Bytes as they are, for a schema of ``bytes``.

    Examples
    --------
    >>> Bytes().block_decoder(Schema.of(bytes))(b"\x00\x01\n\xff\n")
    [b'\x00\x01', b'\xff']
    """

    def decoder(self, schema: Schema) -> Callable[[Any], Any]:
        """Return the function that makes sure of bytes."""
        _require(schema, BinaryType, self)
        return bytes

    def encoder(self, schema: Schema) -> Callable[[Any], bytes]:
        """Return the function that makes sure of bytes."""
        _require(schema, BinaryType, self)
        return bytes


def no_lines(form: Format) -> OptionError:
    """Return the error for a format that does not go with lines."""
    return OptionError(
        f"{form} cannot be split into lines", remedy="use Json(), or Text() in utf-8, for lines"
    )


def _require(schema: Schema, wanted: type, form: Format) -> None:
    if not schema.opaque and not isinstance(schema.type, wanted):
        raise SchemaError(
            f"{type(form).__name__} holds {wanted.__name__.removesuffix('Type').lower()} values, "
            f"and the schema is {schema}",
            remedy="use schema=str with Text, schema=bytes with Bytes, and Json() for records",
        )
