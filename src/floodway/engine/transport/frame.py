"""Frames: a fixed header and a payload, and nothing that trusts the other side.

A frame's header says what it is (data, a mark, an end, a credit, control), on which exchange it
travels and from which of the sender's tasks, in which attempt and epoch, how many records it
carries, and when the oldest of them came into the flow. The payload is msgpack. Whatever bytes
arrive, `Frame.parse` returns a frame or raises `FrameError`.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from floodway.core.errors import EngineError

VERSION = 1

MAX_BYTES = 64 * 1024 * 1024
"""No frame is larger; a socket drops what is."""

HEADER = struct.Struct("<BBHHHIIQ")
"""version, kind, exchange, sender, attempt, epoch, records, born (microseconds)."""

SIZE = HEADER.size
pack_header = HEADER.pack
unpack_header = HEADER.unpack_from


class Kind(IntEnum):
    """What a frame is."""

    DATA = 1
    MARK = 2
    END = 3
    CREDIT = 4
    CONTROL = 5


class FrameError(EngineError):
    """Bytes that are not a frame of this version."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, remedy="run the same version of Floodway everywhere")


class Frame(NamedTuple):
    """A frame, taken apart; the payload is not decoded yet."""

    kind: int
    exchange: int
    sender: int
    attempt: int
    epoch: int
    records: int
    born: int
    payload: memoryview
    size: int

    @classmethod
    def parse(cls, data: bytes) -> "Frame":
        """Return the frame that `data` is."""
        size = len(data)
        if size < SIZE:
            raise FrameError(f"{size} bytes are too few for a frame")
        if size > MAX_BYTES:
            raise FrameError(f"a frame of {size} bytes is larger than {MAX_BYTES}")
        version, kind, exchange, sender, attempt, epoch, records, born = unpack_header(data)
        if version != VERSION:
            raise FrameError(f"a frame of version {version} came, and this is version {VERSION}")
        if not 1 <= kind <= 5:
            raise FrameError(f"a frame of the unknown kind {kind} came")
        return cls(
            kind, exchange, sender, attempt, epoch, records, born, memoryview(data)[SIZE:], size
        )


def make_frame(
    kind: Kind,
    payload: bytes = b"",
    *,
    exchange: int = 0,
    sender: int = 0,
    attempt: int = 0,
    epoch: int = 0,
    records: int = 0,
    born: int = 0,
) -> bytes:
    """Return a frame as bytes."""
    return pack_header(VERSION, kind, exchange, sender, attempt, epoch, records, born) + payload
