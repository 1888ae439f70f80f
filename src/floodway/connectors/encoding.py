"""What a format is: how values are encoded outside. The formats for bytes are in `formats`."""

from collections.abc import Callable
from typing import Any

import msgspec

from floodway.core.bounds import bounded, checked
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema


class Unreadable(msgspec.Struct, frozen=True):
    """Stands for an item that a reader could not make from what it has read.

    No decoder accepts it, so it fails like any single record, with this problem and remedy.

    Attributes
    ----------
    raw
        What was there, or the beginning of it, as plain data: for dead letters.
    problem, remedy
        What is wrong with it, and what to do about it.
    """

    raw: Any
    problem: str
    remedy: str

    def error(self) -> ConnectorError:
        """Return what is wrong as an error."""
        return ConnectorError(self.problem, remedy=self.remedy)


class Format:
    """How values are encoded outside: from raw item to value, and from value to raw item.

    Attributes
    ----------
    decodes
        Whether items need decoding at all.
    """

    decodes: bool = True

    def decoder(self, schema: Schema) -> Callable[[Any], Any]:
        """Return the function from one raw item to a value of `schema`; it raises on bad input."""
        raise TypeError(f"{type(self).__name__} does not read")  # pragma: no cover

    def block_decoder(self, schema: Schema) -> Callable[[bytes], list[Any]]:
        """Return the function from a block of whole lines to values; it raises if any is bad."""
        decode, lines = self.decoder(schema), self.lines
        return lambda block: [decode(line) for line in lines(block)]

    def lines(self, block: bytes) -> list[bytes]:
        r"""Return the lines of a block one by one, as `block_decoder` takes them.

        >>> Format().lines(b"one\r\n\ntwo\rthree\n")
        [b'one', b'', b'two', b'three']
        """
        return block.splitlines()

    def encoder(self, schema: Schema) -> Callable[[Any], bytes]:
        """Return the function from a value to bytes, without a line end."""
        raise TypeError(f"{type(self).__name__} does not write")  # pragma: no cover


class Exact(Format):
    """Items that already are values of the schema. That is not checked."""

    decodes = False

    def decoder(self, schema: Schema) -> Callable[[Any], Any]:
        """Return the function that returns its argument."""
        return _itself


class Values(Format):
    """Items that are values, or plain data that can become one."""

    def decoder(self, schema: Schema) -> Callable[[Any], Any]:
        """Return the function that turns plain data into the schema's type where it is not."""
        if schema.opaque:
            return _read
        python = bounded(schema.python)
        return checked(lambda item: msgspec.convert(item, python), python)


def _itself(item: Any) -> Any:
    return item


def _read(item: Any) -> Any:
    if type(item) is Unreadable:
        raise item.error()
    return item
