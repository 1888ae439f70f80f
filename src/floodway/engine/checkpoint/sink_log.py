"""What a sink got in an epoch, as a file: kept until the sink has shown it."""

from typing import Any

import msgspec

from floodway.core.errors import CorruptError
from floodway.engine.checkpoint.vault import FileRef, Vault


class Log(msgspec.Struct):
    """What a sink got in one epoch: blocks of rows, and the writer's token after them."""

    epoch: int
    token: Any
    blocks: list[bytes]


_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(Log).decode


def write_log(vault: Vault, name: str, log: Log) -> FileRef:
    """Make a log durable."""
    return vault.write(name, _ENCODE(log))


def read_log(vault: Vault, ref: FileRef) -> Log:
    """Return the log that a record names."""
    try:
        return _DECODE(vault.fetch(ref))
    except msgspec.DecodeError as error:
        raise CorruptError(
            f"the sink log {ref.name} cannot be read: {error}",
            remedy="start from another checkpoint",
        ) from None
