"""Codecs: rows of an output port to a frame's payload, and back.

A payload is one msgpack array of rows. Where schema and key say what everything is, rows are
encoded as they are and decoded straight into their types, by msgspec alone. Where something is
opaque it is packed first (`plain.Plain`).
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from floodway.core.errors import OperatorError
from floodway.core.schema import Schema
from floodway.core.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    OpaqueType,
    StructType,
    struct_fields,
    to_annotation,
)
from floodway.engine.transport.plain import Plain
from floodway.operators.base import Edge, Key, Output

_encode = msgspec.msgpack.Encoder().encode

Rows = Sequence[Any]

_UNFIT = (TypeError, ValueError, OverflowError, RecursionError, msgspec.EncodeError)
"""What encoding raises for a value that cannot travel; the last but one if it nests too deeply."""


class Codec:
    """Encodes and decodes the rows of one output port."""

    def __init__(self, edge: Edge, plain: Plain, *, windowed: bool) -> None:
        self._edge = edge
        output = edge.output
        key, value = _key_of(output.key, windowed=windowed), _value_of(output.schema)
        self._plain = plain
        self.typed = key is not None and value is not None
        self._encode: Callable[[Rows], bytes]
        self._decode: Callable[[Any], list[Any]]
        if key is None or value is None:
            self._encode, self._decode = self._packed, self._unpacked
        else:
            self._encode, self._decode = _encode, _typed(output, key, value)

    def encode(self, rows: Rows) -> bytes:
        """Return the payload for rows."""
        try:
            return self._encode(rows)
        except _UNFIT as error:
            raise self._unfit(rows, error) from None

    def decode(self, payload: Any) -> list[Any]:
        """Return the rows of a payload; raise if they are not what the schema says."""
        try:
            return self._decode(payload)
        except (ValueError, msgspec.DecodeError) as error:
            raise OperatorError(
                f"a value sent by the operator is not what its schema says: {error}",
                remedy=f"make its function return {self._edge.output.schema}, or say what it "
                "returns with schema=",
                operator=self._edge.operator.name,
                place=self._edge.operator.place,
            ) from None

    def _packed(self, rows: Rows) -> bytes:
        pack = self._plain.pack
        return _encode([pack(row) for row in rows])

    def _unpacked(self, payload: Any) -> list[Any]:
        rows = self._plain.unpack(payload)
        if not isinstance(rows, list):
            raise ValueError("rows were expected")
        return rows

    def _unfit(self, rows: Rows, error: Exception) -> OperatorError:
        culprit = next((row for row in rows if not self._fits(row)), rows)
        return OperatorError(
            f"the record {_shown(culprit)} cannot be sent to another task: {error}",
            remedy="send plain data or records: numbers within 64 bits, text, lists, dicts, "
            "tuples, dates; or give the operator schema= with a Record type",
            operator=self._edge.operator.name,
            place=self._edge.operator.place,
        )

    def too_large(self, row: Any, size: int, most: int) -> OperatorError:
        """Return the error for a record that is larger than a frame."""
        return OperatorError(
            f"the record {_shown(row)} has {size} bytes, and a frame has at most {most}",
            remedy="send less in one record: split it, or send a path or address instead",
            operator=self._edge.operator.name,
            place=self._edge.operator.place,
        )

    def _fits(self, row: Any) -> bool:
        try:
            self._encode([row])
        except _UNFIT:
            return False
        return True


def _shown(row: Any) -> str:
    try:
        return repr(row)[:200]
    except Exception as error:  # a deep value, or somebody's own __repr__
        return f"that cannot be shown ({type(error).__name__})"


def _typed(output: Output, key: Any, value: Any) -> Callable[[Any], list[Any]]:
    fact: Any = tuple[int, key, value]
    match output.kind:
        case "records":
            decode: Callable[[Any], list[Any]] = msgspec.msgpack.Decoder(list[fact]).decode
            return decode
        case "changes":
            changed: Any = tuple[int, key, value | None, value | None, int | None]
            decode = msgspec.msgpack.Decoder(list[changed]).decode
            return decode
    revised = msgspec.msgpack.Decoder(list[tuple[Any, fact | None, fact | None]]).decode
    return lambda payload: [(_identity(i), old, new) for i, old, new in revised(payload)]


def _identity(found: Any) -> Any:
    """Return an update's identity: numbers, and tuples of them, which arrive as lists."""
    return tuple(map(_identity, found)) if type(found) is list else found


def _value_of(schema: Schema) -> Any:
    """Return the annotation that decodes values, or None if they have to be packed."""
    # A deletion in a changelog, or a retraction, has no value, whatever the schema says.
    return to_annotation(schema.type, nullable=True) if native(schema.type) else None


def _key_of(key: Key | None, *, windowed: bool) -> Any:
    if key is None:
        # Nobody looks at the key, but there may be one: merge passes on what it gets, and a dead
        # letter of a source has the key that came with it.
        group: Any = Any
    elif not all(native(field.type) for field in key.fields):
        return None
    else:
        # An outer join, or a key expression, may give null where the column says it does not.
        parts = [to_annotation(field.type, nullable=True) for field in key.fields]
        group = parts[0] if len(parts) == 1 else (tuple[tuple(parts)] | None)  # type: ignore[misc]
    return tuple[group, int, int] if windowed else group


def native(data_type: DataType) -> bool:
    """Return whether msgspec can restore values of a type from the annotation alone."""
    match data_type:
        case OpaqueType() | NullType():
            return False
        case ArrayType(element, _):
            return native(element)
        case MapType(key, value, _):
            return native(key) and native(value) and not isinstance(key, StructType)
        case StructType(fields, python):
            if python is None or not all(native(field.type) for field in fields):
                return False
            own = struct_fields(python)
            return [f.type for f in own] == [f.type for f in fields]
    return True
