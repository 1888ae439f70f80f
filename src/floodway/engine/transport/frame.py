"""Frames: a fixed header and a payload, and nothing that trusts the other side.

A frame's header says what it is (data, a mark, an end, a credit, control, or partials of an
aggregate), on which exchange it travels and from which of the sender's tasks, for which attempt of
the task that receives data, in which epoch, how many records it carries, and when the oldest of
them came into the flow. The payload is msgpack. Whatever bytes arrive, `parse` returns a header or
raises `FrameError`. Headers are plain tuples: at b_out = 1 there is one for every record.
"""

import struct
from enum import IntEnum

from floodway.core.errors import EngineError

VERSION = 1

MAX_BYTES = 64 * 1024 * 1024
"""No frame is larger; a socket drops what is."""

HEADER = struct.Struct("<BBHHHIIQ")
"""version, kind, exchange, sender, attempt, epoch, records, born (microseconds)."""

SIZE = HEADER.size

_KIND_AT, _ATTEMPT_AT = 1, 6
_ATTEMPT = struct.Struct("<H")

pack_header = HEADER.pack
unpack_header = HEADER.unpack_from


def stamp(attempt: int) -> int:
    """Return an attempt as a header has it; those that are alive together differ."""
    return attempt & 0xFFFF


class Kind(IntEnum):
    """What a frame is."""

    DATA = 1
    MARK = 2
    END = 3
    CREDIT = 4
    CONTROL = 5
    PARTIAL = 6


class FrameError(EngineError):
    """Bytes that are not a frame of this version."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, remedy="run the same version of Floodway everywhere")


Header = tuple[int, int, int, int, int, int, int, int]
"""version, kind, exchange, sender, attempt, epoch, records, born."""

KIND, EXCHANGE, SENDER, EPOCH, RECORDS, BORN = 1, 2, 3, 5, 6, 7
"""Where the fields of a header are that are read alone."""


def parse(data: bytes) -> Header:
    """Return the header of a frame; raise `FrameError` if `data` is none."""
    try:
        header = unpack_header(data)
    except struct.error:
        raise FrameError(f"{len(data)} bytes are too few for a frame") from None
    if header[0] != VERSION:
        raise FrameError(f"a frame of version {header[0]} came, and this is version {VERSION}")
    if not 1 <= header[KIND] <= 6:
        raise FrameError(f"a frame of the unknown kind {header[KIND]} came")
    return header


def kind_of(frame: bytes) -> int:
    """Return what a frame is that was made here; nothing is checked."""
    return frame[_KIND_AT]


def with_attempt(frame: bytes, attempt: int) -> bytes:
    """Return a frame as it is for another attempt of its receiver."""
    after = _ATTEMPT_AT + _ATTEMPT.size
    return frame[:_ATTEMPT_AT] + _ATTEMPT.pack(attempt) + frame[after:]


def payload(data: bytes) -> bytes | memoryview:
    """Return a frame's payload; a small one is copied, which is cheaper than a view."""
    return data[SIZE:] if len(data) < 4096 else memoryview(data)[SIZE:]


def make_frame(
    kind: Kind,
    content: bytes = b"",
    *,
    exchange: int = 0,
    sender: int = 0,
    attempt: int = 0,
    epoch: int = 0,
    records: int = 0,
    born: int = 0,
) -> bytes:
    """Return a frame as bytes."""
    return pack_header(VERSION, kind, exchange, sender, attempt, epoch, records, born) + content
