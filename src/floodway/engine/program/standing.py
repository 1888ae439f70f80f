"""How far a task is, besides what its kernels remember: which of its inputs have ended."""

import msgspec

from floodway.core.errors import CorruptError
from floodway.engine.transport.batching import senders
from floodway.plan.stages import Plan, Stage

Channel = tuple[int, int]
"""An exchange, and the index of the sending task."""

LOCAL: Channel = (0xFFFF, 0)
"""The channel that stands for a task's own sources."""


def channels_of(plan: Plan, stage: Stage, index: int) -> set[Channel]:
    """Return where marks and ends come from to a task: every sender of every exchange.

    The task's own sources are one more channel: their marks come from the driver.
    """
    found = {
        (exchange.number, sender)
        for exchange in plan.inputs(stage)
        for sender in senders(exchange.partitioning, index, plan.stage(exchange.sender).dop)
    }
    return found | ({LOCAL} if stage.sources else set())


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


def read_standing(progress: bytes, task: str) -> Standing:
    """Return how far a task was, as it is stored; `task` is what errors call it."""
    try:
        return _DECODER.decode(progress)
    except (msgspec.DecodeError, TypeError) as error:
        raise CorruptError(
            f"the commit record says nothing sensible about {task}: {error}",
            remedy="start from another checkpoint",
        ) from None
