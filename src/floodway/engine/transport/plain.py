"""Values of which no type is known, as plain data and back.

Where a schema says what a value is, msgpack and the type are enough. Where it does not (an opaque
schema, a field annotated ``Any``), the value itself has to say: tuples, sets, dates and the like
are tagged, and records carry the number of their class in the flow's own list of classes. A class
that is not in the list is refused, on both sides: nothing that a frame says is imported or called.
"""

import datetime as dt
import decimal
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from floodway.core.types import ArrayType, DataType, MapType, StructType

_TUPLE, _SET, _FROZENSET, _STRUCT, _DECIMAL, _DATE, _DATETIME, _DELTA, _INT, _PAIRS = range(1, 11)

_SIMPLE = frozenset({type(None), bool, float, str, bytes})

_MOST_ALIKE = 1000
"""How many values of a set, or keys of a dictionary, may have a hash that others have too.

Whoever chooses integers can choose a hundred thousand with one hash, and each is compared with all
before it. Of integers of 64 bits no more than nine have the same.
"""

_ENCODE = msgspec.msgpack.Encoder().encode


class Plain:
    """Turns values into plain data and back, given the record classes of a flow."""

    def __init__(self, classes: Sequence[type[msgspec.Struct]]) -> None:
        self._classes = tuple(classes)
        self._numbers = {python: number for number, python in enumerate(classes)}
        self._by_name = {c for c in classes if c.__match_args__ != c.__struct_fields__}
        self._decoder = msgspec.msgpack.Decoder(ext_hook=self._unpack)

    def pack(self, value: Any) -> Any:
        """Return plain data for a value; raise TypeError for a type that cannot travel."""
        kind = type(value)
        if kind in _SIMPLE:
            return value
        if kind is int:
            if -(2**63) <= value < 2**64:
                return value
            return msgspec.msgpack.Ext(_INT, str(value).encode())
        if kind is list:
            return [self.pack(item) for item in value]
        return self._tagged(kind, value)

    def _tagged(self, kind: type, value: Any) -> Any:
        if kind is dict:
            _check_hashes(value)
            pairs = [[self.pack(key), self.pack(item)] for key, item in value.items()]
            return self._ext(_PAIRS, pairs)
        if kind is tuple:
            return self._ext(_TUPLE, [self.pack(item) for item in value])
        if kind in (set, frozenset):
            _check_hashes(value)
            items = [self.pack(item) for item in value]
            return self._ext(_SET if kind is set else _FROZENSET, items)
        if kind in self._numbers:
            fields = [self.pack(getattr(value, name)) for name in value.__struct_fields__]
            return self._ext(_STRUCT, [self._numbers[kind], *fields])
        if kind is decimal.Decimal:
            return msgspec.msgpack.Ext(_DECIMAL, str(value).encode())
        if kind is dt.datetime:
            return msgspec.msgpack.Ext(_DATETIME, value.isoformat().encode())
        if kind is dt.date:
            return msgspec.msgpack.Ext(_DATE, value.isoformat().encode())
        if kind is dt.timedelta:
            micros = value // dt.timedelta(microseconds=1)
            return msgspec.msgpack.Ext(_DELTA, str(micros).encode())
        raise TypeError(
            f"a value of type {kind.__module__}.{kind.__qualname__} cannot travel between tasks"
        )

    def _ext(self, code: int, content: Any) -> Any:
        return msgspec.msgpack.Ext(code, _ENCODE(content))

    def unpack(self, data: bytes | memoryview) -> Any:
        """Return what was packed and encoded; raise ValueError for anything else."""
        try:
            return self._decoder.decode(data)
        except (msgspec.DecodeError, RecursionError, ArithmeticError, TypeError) as error:
            raise ValueError(f"not plain data: {error}") from None

    def _unpack(self, code: int, data: memoryview) -> Any:
        match code:
            case 1:
                return tuple(self._sequence(data))
            case 2:
                return set(_check_hashes(self._sequence(data)))
            case 3:
                return frozenset(_check_hashes(self._sequence(data)))
            case 4:
                return self._struct(self._sequence(data))
            case 5:
                return decimal.Decimal(bytes(data).decode())
            case 6:
                return dt.date.fromisoformat(bytes(data).decode())
            case 7:
                return dt.datetime.fromisoformat(bytes(data).decode())
            case 8:
                return dt.timedelta(microseconds=int(bytes(data).decode()))
            case 9:
                return int(bytes(data).decode())
            case 10:
                pairs = self._sequence(data)
                _check_hashes([key for key, _ in pairs])
                return dict(pairs)
        raise ValueError(f"the extension {code} is unknown")

    def _sequence(self, data: memoryview) -> list[Any]:
        found = self._decoder.decode(data)
        if not isinstance(found, list):
            raise ValueError("a sequence was expected")
        return found

    def _struct(self, content: list[Any]) -> Any:
        if not content or type(content[0]) is not int or not 0 <= content[0] < len(self._classes):
            raise ValueError("a record of an unknown class")
        python = self._classes[content[0]]
        if len(content) - 1 != len(python.__struct_fields__):
            raise ValueError(f"a {python.__name__} with {len(content) - 1} fields")
        if python in self._by_name:  # keyword-only fields
            return python(**dict(zip(python.__struct_fields__, content[1:], strict=True)))
        return python(*content[1:])


def _check_hashes(values: Collection[Any]) -> Collection[Any]:
    """Return the values, or raise TypeError if they would take for ever to tell apart.

    Hashes are small integers, which are their own: a set of them has no such trouble.
    """
    if len(values) > _MOST_ALIKE and len(values) - len({*map(hash, values)}) > _MOST_ALIKE:
        raise TypeError(
            f"a set or dictionary of {len(values)} values, most of them with the same hash, cannot "
            "travel between tasks"
        )
    return values


def record_classes(types: Iterable[DataType]) -> tuple[type[msgspec.Struct], ...]:
    """Return the record classes that occur in types, each once, in the order of first mention."""
    found: dict[type[msgspec.Struct], None] = {}
    for data_type in types:
        _collect(data_type, found)
    return tuple(found)


def _collect(data_type: DataType, found: dict[type[msgspec.Struct], None]) -> None:
    match data_type:
        case StructType(fields, python):
            if python is not None:
                found.setdefault(python)
            for field in fields:
                _collect(field.type, found)
        case ArrayType(element, _):
            _collect(element, found)
        case MapType(key, value, _):
            _collect(key, found)
            _collect(value, found)
