"""State as bytes and back: as fast as pickle, and nothing that the bytes say is imported or called.

Pickle is what Python has for plain data: nested tuples, lists and dictionaries go through it at
millions of values per second. What makes it dangerous is that bytes may name any function to call.
Here they may name the few things in a fixed list and the flow's own records; everything else is
refused, when it is written and when it is read.

Records go by the name of their class and its fields, not by a number: a flow that has got another
record class since can still read what it wrote before.

What a flow without a checkpoint keeps is for its own tasks alone, in a folder that nobody else can
write to. There, and only there, anything goes that can be pickled at all.
"""

import datetime as dt
import decimal
import io
import pickle
import zlib
from collections.abc import Callable, Sequence
from operator import attrgetter
from types import FunctionType
from typing import Any, ClassVar, NoReturn
from zoneinfo import ZoneInfo

import msgspec

from floodway.core.errors import CorruptError, OperatorError
from floodway.operators.base import row_classes
from floodway.operators.keyed import GONE

PROTOCOL = 5
_CHECK_BYTES = 4

_STANDARD = frozenset({decimal.Decimal, dt.datetime, dt.date, dt.time, dt.timedelta, dt.timezone})
"""Classes of the standard library that pickle themselves. None of them can be changed."""


class Pickling:
    """Turns state into bytes and back, given the record classes of a flow.

    With `trusted`, values that are not plain go through as well, and are read back by calling
    whatever the bytes say: for bytes that this very run has written.

    Examples
    --------
    >>> pickling = Pickling([])
    >>> pickling.loads(pickling.dumps({("a", 1): [None, decimal.Decimal("0.5")]}))
    {('a', 1): [None, Decimal('0.5')]}
    """

    def __init__(self, classes: Sequence[type[msgspec.Struct]], *, trusted: bool = False) -> None:
        self._trusted = trusted
        self._classes = _named(classes)
        self._stands = {
            python: _StandIn(_record, (name, python.__struct_fields__))
            for name, python in self._classes.items()
        }
        rows = row_classes()
        self._rows: _RowStands = {
            python: (_StandIn(_own, (name, python.__slots__)), attrgetter(*python.__slots__))
            for name, python in rows.items()
        }
        # A class of its own: one is made for each row that comes back, without a call of Python.
        makers = _Makers(self._classes, rows, trusted=trusted)
        self._unpickler = type("_BoundUnpickler", (_Unpickler,), {"makers": makers})

    def dumps(self, value: Any) -> bytes:
        """Return a value as bytes; raise OperatorError if it is not plain data."""
        buffer = io.BytesIO()
        try:
            self._pickler(buffer).dump(value)
        except (TypeError, ValueError, RecursionError, pickle.PicklingError) as error:
            raise not_plain(error, trusted=self._trusted) from None
        data = buffer.getbuffer()
        return zlib.crc32(data).to_bytes(_CHECK_BYTES, "little") + data

    def loads(self, data: bytes | memoryview) -> Any:
        """Return what was made into bytes; raise CorruptError for any other bytes.

        The bytes are checked before they are looked at: damage is not left to be found by pickle.
        """
        content = memoryview(data)[_CHECK_BYTES:]
        if zlib.crc32(content).to_bytes(_CHECK_BYTES, "little") != data[:_CHECK_BYTES]:
            raise unreadable("its check sum does not match")
        try:
            return self._unpickler(io.BytesIO(content)).load()
        except CorruptError:
            raise
        except Exception as error:  # pickle may raise anything at all
            raise unreadable(f"{type(error).__name__}: {error}") from None

    def packer(self) -> Callable[[Any], bytes]:
        """Return a faster `dumps` for many small values, whose bytes are not checked."""
        chunks: list[bytes] = []
        pickler = self._pickler(_Chunks(chunks))
        clear, dump = pickler.clear_memo, pickler.dump

        def pack(value: Any) -> bytes:
            chunks.clear()
            clear()
            try:
                dump(value)
            except (TypeError, ValueError, RecursionError, pickle.PicklingError) as error:
                raise not_plain(error, trusted=self._trusted) from None
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)

        return pack

    def _pickler(self, file: Any) -> "_Pickler":
        return _Pickler(file, self._stands, self._rows, trusted=self._trusted)

    def unpack(self, data: bytes) -> Any:
        """Return what a `packer` of this process has packed."""
        return self._unpickler(io.BytesIO(data)).load()


def not_plain(error: Exception, *, trusted: bool = False) -> OperatorError:
    """Return the error for a value that cannot be stored."""
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return OperatorError(
        f"the state cannot be stored: {reason}",
        remedy="state must be plain data: numbers, text, bytes, dates, decimals, tuples, lists, "
        "dictionaries, sets, and records that the flow's streams and tables have"
        + ("; or run the flow with --no-recovery (recovery=False)" if trusted else ""),
    )


def unreadable(reason: str) -> CorruptError:
    """Return the error for bytes that are not what was written."""
    return CorruptError(
        f"a part of the state cannot be read: {reason}",
        remedy="go back to an older checkpoint, or start with an empty folder",
    )


def _named(classes: Sequence[type[msgspec.Struct]]) -> dict[str, type[msgspec.Struct]]:
    """Return the classes by name; of several with one name, the later ones are numbered."""
    named: dict[str, type[msgspec.Struct]] = {}
    for python in dict.fromkeys(classes):
        name, number = python.__name__, 1
        while name in named:
            number += 1
            name = f"{python.__name__}#{number}"
        named[name] = python
    return named


# What follows stands in the bytes by name, in place of what is to be called. The names must never
# change, and the functions are never called: the unpickler has its own for each of them.


def _record(name: str, fields: tuple[str, ...]) -> NoReturn:
    raise AssertionError


def _own(name: str, slots: tuple[str, ...]) -> NoReturn:
    raise AssertionError


def _gone() -> NoReturn:
    raise AssertionError


def _zone(key: str) -> NoReturn:
    raise AssertionError


def _anything(data: bytes) -> NoReturn:
    raise AssertionError


_TOKENS = frozenset({_record, _own, _gone, _zone, _anything})
_astuple = msgspec.structs.astuple


class _StandIn:
    """Stands for a class in the bytes: comes once per class, and then by reference."""

    __slots__ = ("reduced",)

    def __init__(self, token: Callable[..., NoReturn], arguments: tuple[Any, ...]) -> None:
        self.reduced = (token, arguments)

    def __call__(self) -> NoReturn:
        """Look like a function to pickle."""
        raise AssertionError


_RowStands = dict[type[Any], tuple[_StandIn, Callable[[Any], tuple[Any, ...]]]]
"""For each class of rows what stands for it, and what takes the values out of a row."""


class _Chunks:
    """A file that hands what is written to a list."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.write = chunks.append


class _Pickler(pickle.Pickler):
    """Asked about everything that is not plain: in C, it would take any class."""

    def __init__(
        self,
        file: Any,
        stands: dict[type[msgspec.Struct], _StandIn],
        rows: _RowStands,
        *,
        trusted: bool,
    ) -> None:
        super().__init__(file, PROTOCOL)
        self._stands, self._rows, self._trusted = stands, rows, trusted

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind in self._stands:
            return self._stands[kind], _astuple(obj)
        if kind in self._rows:
            stand, values = self._rows[kind]
            return stand, values(obj)
        if kind in _STANDARD:
            return NotImplemented
        if kind is _StandIn:
            return obj.reduced
        if obj is GONE:
            return _gone, ()
        if kind is ZoneInfo and obj.key is not None:
            return _zone, (obj.key,)
        if kind in (type, FunctionType) and (obj in _STANDARD or obj in _TOKENS):
            return NotImplemented
        if self._trusted:
            from pyspark import cloudpickle  # as functions and classes travel to the tasks

            return _anything, (cloudpickle.dumps(obj),)  # type: ignore[no-untyped-call]
        raise TypeError(f"a value of type {kind.__module__}.{kind.__qualname__} is not plain data")


class _Unpickler(pickle.Unpickler):
    """Finds nothing but what is in its list.

    Bytes can also set attributes of whatever they get hold of. So they never get a class that could
    be changed: in its place they get something that makes an instance, and cannot be changed.

    An unpickler remembers all that it has made. So nothing of that may lead back to it: in a
    circle, state that was long forgotten would stay until the garbage collector comes by.
    """

    makers: ClassVar["_Makers"]

    def find_class(self, module: str, name: str) -> Any:
        found = _ADMITTED.get((module, name))
        if found is None:
            raise unreadable(f"it names {module}.{name}, which is no part of any state")
        return found if isinstance(found, type) else getattr(self.makers, name)


class _Makers:
    """What the tokens in the bytes stand for."""

    def __init__(
        self,
        classes: dict[str, type[msgspec.Struct]],
        rows: dict[str, type[Any]],
        *,
        trusted: bool,
    ) -> None:
        self._classes, self._rows, self._trusted = classes, rows, trusted

    def _record(self, name: str, fields: tuple[str, ...]) -> Callable[..., Any]:
        python = self._classes.get(name)
        if python is None:
            raise unreadable(f"it has records of a class {name}, which the flow does not have")
        if python.__struct_fields__ != fields:
            raise _other_fields(name, fields, python.__struct_fields__)
        if python.__match_args__ != fields:  # keyword-only fields
            return _Named(python).make
        # What the class does when it is called, without the class; in C, as there may be many.
        maker: Callable[..., Any] = type(python).__call__.__get__(python)
        return maker

    def _own(self, name: str, slots: tuple[str, ...]) -> Callable[..., Any]:
        python = self._rows.get(name)
        if python is None:
            raise unreadable(f"it has a {name}, which is no part of any state")
        if python.__slots__ != slots:
            raise _other_fields(name, slots, python.__slots__)
        return _Slotted(python).make

    def _gone(self) -> Any:
        return GONE

    def _zone(self, key: str) -> ZoneInfo:
        return ZoneInfo(key)

    def _anything(self, data: bytes) -> Any:
        if not self._trusted:
            raise unreadable("it has a value that is not plain, and nobody vouches for it")
        return pickle.loads(data)


def _other_fields(name: str, theirs: tuple[str, ...], ours: tuple[str, ...]) -> CorruptError:
    return unreadable(f"a {name} has {', '.join(theirs)} there, and {', '.join(ours)} here")


_PARTS: tuple[Any, ...] = (*_STANDARD, *_TOKENS)
_ADMITTED = {(part.__module__, part.__qualname__): part for part in _PARTS}


class _Named:
    """Makes records whose fields must be given by name."""

    __slots__ = ("_python",)

    def __init__(self, python: type[msgspec.Struct]) -> None:
        self._python = python

    def make(self, *values: Any) -> msgspec.Struct:
        return self._python(**dict(zip(self._python.__struct_fields__, values, strict=True)))


class _Slotted:
    """Makes instances of the kernels' own classes."""

    __slots__ = ("_python",)

    def __init__(self, python: type[Any]) -> None:
        self._python = python

    def make(self, *values: Any) -> Any:
        made = object.__new__(self._python)
        for slot, value in zip(self._python.__slots__, values, strict=True):
            setattr(made, slot, value)
        return made
