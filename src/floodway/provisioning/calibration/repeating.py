"""A sample again and again, with its event times moved on: as if it had been so much longer.

Event time has to go on, or windows would stand still and everything but the first time be late. So
each lap the one field that the source's timestamp is made of is moved by as much as the sample
lasts. All else stays, fields that the flow does not know among them: they have to be read, too.
"""

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from floodway.connectors.base import Exact, Format, Raw, Values
from floodway.connectors.formats import Json
from floodway.core.errors import OptionError
from floodway.operators.source import Source, event_time
from floodway.provisioning.calibration.sampling import SourceSample

_TRY = 1000
"""By so much a field is moved, to see if the event time follows."""

_plain_lines = msgspec.json.Encoder().encode_lines


class Mover(msgspec.Struct, frozen=True):
    """The field of a value that its event time is made of, and by how much time it moves one."""

    field: str
    written: str
    ms: float

    def moved(self, value: Any, ms: float) -> Any:
        """Return what the field is after so many milliseconds more."""
        old = value[self.field] if isinstance(value, dict) else getattr(value, self.field)
        steps = round(ms / self.ms)
        return (
            old + dt.timedelta(milliseconds=steps) if isinstance(old, dt.datetime) else old + steps
        )


def repeated(source: Source, sample: SourceSample) -> Iterator[Raw]:
    """Yield the pieces of a sample, again and again."""
    if source.timestamp is not None:
        shape = getattr(source.connector, "format", None) or Values()
        yield from _Laps(source, shape, sample)
    elif sample.keyed:
        yield from _keyed(sample)
    else:
        yield from _same(sample)


def _same(sample: SourceSample) -> Iterator[Raw]:
    while sample.pieces:
        yield from sample.pieces


def _keyed(sample: SourceSample) -> Iterator[Raw]:
    """Move the times that items bring along themselves."""
    times = [t for piece in sample.pieces for t, _, _ in piece if t is not None]  # type: ignore[misc]
    lasts = _lasts(times) if times else 0
    moved = 0
    while sample.pieces:
        for piece in sample.pieces:
            yield [(None if t is None else t + moved, k, raw) for t, k, raw in piece]  # type: ignore[misc]
        moved += lasts


class _Laps:
    """The laps of a sample whose event times are in its values."""

    def __init__(self, source: Source, shape: Format, sample: SourceSample) -> None:
        assert source.timestamp is not None
        self._source, self._shape, self._sample = source, shape, sample
        schema = source.outputs["main"].schema
        time = source.timestamp.call()
        self._time: Callable[[Any], int] = lambda value: event_time(time(value, None))
        self._lines, self._item = shape.block_decoder, shape.decoder(schema)
        self._schema = schema

    def __iter__(self) -> Iterator[Raw]:
        values = [self._values(piece) for piece in self._sample.pieces]
        flat = [value for piece in values for value in piece]
        if not flat:
            return
        lasts = _lasts([self._time(value) for value in flat])
        mover = mover_of(self._source, flat[0], self._time)
        pieces = [
            self._maker(piece, read, mover)
            for piece, read in zip(self._sample.pieces, values, strict=True)
        ]
        moved = 0
        while True:
            yield from (make(moved) for make in pieces)
            moved += lasts

    def _values(self, piece: Raw) -> list[Any]:
        if isinstance(piece, bytes):
            return self._lines(self._schema)(piece)
        items = [item[2] for item in piece] if self._sample.keyed else piece
        return [self._item(item) for item in items if item is not None]

    def _maker(self, piece: Raw, values: list[Any], mover: Mover) -> Callable[[float], Raw]:
        """Return what makes a piece after some time."""
        if isinstance(piece, bytes) and isinstance(self._shape, Json):
            plain = msgspec.json.Decoder().decode_lines(piece)
            return lambda ms: _plain_lines(_patched(plain, values, mover, ms))
        encode = self._encoder()

        def make(ms: float) -> Raw:
            items = [encode(_with(value, mover, ms)) for value in values]
            if isinstance(piece, bytes):
                return b"".join(item + b"\n" for item in items)
            if not self._sample.keyed:
                return items
            given = [item for item in piece if item[2] is not None]
            return [(t, k, raw) for (t, k, _), raw in zip(given, items, strict=True)]

        return make

    def _encoder(self) -> Callable[[Any], Any]:
        if isinstance(self._shape, Exact | Values):
            return lambda value: value
        try:
            return self._shape.encoder(self._schema)
        except TypeError:
            raise _fixed(self._source, f"{type(self._shape).__name__} only reads") from None


def mover_of(source: Source, value: Any, time: Callable[[Any], int]) -> Mover:
    """Return the field of a value that its event time is made of."""
    found = []
    for field, written in _fields(value):
        try:
            ms = (time(_with(value, Mover(field, written, 1.0), _TRY)) - time(value)) / _TRY
        except Exception:  # a field that cannot be moved is not it, whatever goes wrong
            continue
        if ms > 0:
            found.append(Mover(field, written, ms))
    if len(found) != 1:
        raise _fixed(source, "its event time is not made of one field with a number or a time")
    return found[0]


def _fields(value: Any) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [(field, field) for field in value]
    if isinstance(value, msgspec.Struct):
        return [(field.name, field.encode_name) for field in msgspec.structs.fields(value)]
    return []


def _with(value: Any, mover: Mover, ms: float) -> Any:
    new = {mover.field: mover.moved(value, ms)}
    return value | new if isinstance(value, dict) else msgspec.structs.replace(value, **new)


def _patched(plain: list[Any], values: list[Any], mover: Mover, ms: float) -> list[Any]:
    """Move the field in plain data, which has all that the lines had."""
    for one, value in zip(plain, values, strict=True):
        one[mover.written] = msgspec.to_builtins(mover.moved(value, ms))
    return plain


def _lasts(times: list[int]) -> int:
    """Return how long a sample lasts, its last record included."""
    whole = max(times) - min(times)
    return whole + max(whole // max(len(times) - 1, 1), 1)


def _fixed(source: Source, why: str) -> OptionError:
    return OptionError(
        f"a sample of the source cannot be repeated: {why}",
        remedy="let the timestamp be a column, or one column times a number, or write down the "
        "costs in a file (floodway plan FILE.toml)",
        operator=source.name,
        place=source.place,
    )
