"""How far a task is, besides what its kernels remember: which of its inputs have ended."""

import msgspec

from floodway.core.errors import CorruptError
from floodway.engine.rud.records import TaskRecord

LOCAL = (0xFFFF, 0)
"""The channel that stands for a task's own sources."""


class Standing(msgspec.Struct, frozen=True):
    """How far a task is, besides what its kernels remember.

    Attributes
    ----------
    channels
        The channels that have not ended: exchange and sender.
    drained
        The exchanges whose end was not the end of their stream.
    nodes
        For each node its inputs that are open, whether it is closed, whether its end is final.
    scalars
        What the kernels of a task without state per key remember: too little for a file.
    """

    channels: list[tuple[int, int]]
    drained: list[int]
    nodes: dict[str, tuple[list[int], bool, bool]]
    stream_time: int | None
    epoch: int
    scalars: bytes = b""


_DECODER = msgspec.msgpack.Decoder(Standing)


def standing_of(record: TaskRecord) -> Standing:
    """Return how far a task was."""
    try:
        return _DECODER.decode(record.progress)
    except (msgspec.DecodeError, TypeError) as error:
        raise CorruptError(
            f"the commit record says nothing sensible about {record.stage}/{record.index}: {error}",
            remedy="start from another checkpoint",
        ) from None
