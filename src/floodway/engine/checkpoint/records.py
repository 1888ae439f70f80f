"""Commit records: all that a flow needs to go on after an epoch, and what the flow looked like.

Positions of sources, tokens of sinks and the progress of tasks are *plain data*: None, bool, int of
64 bits, float, str, bytes, lists, and dicts (keys may be ints). What would not come back as it went
in is refused when the record is written. Tuples are the exception: they come back as lists.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from floodway.core.errors import EngineError
from floodway.engine.checkpoint.shape import FlowShape, OperatorShape, StageShape
from floodway.engine.checkpoint.vault import FileRef, damaged
from floodway.engine.program.standing import Standing, read_standing

__all__ = [
    "VERSION",
    "CommitRecord",
    "FlowShape",
    "OperatorShape",
    "SinkRecord",
    "StageShape",
    "TaskRecord",
    "decode",
    "encode",
    "standing_of",
]

VERSION = 1
"""The version of records that this program writes, and the newest it reads."""

_SCALARS = (type(None), bool, float, str, bytes)
_INTEGERS = range(-(2**63), 2**64)


class SinkRecord(msgspec.Struct):
    """A sink of one task.

    Attributes
    ----------
    token
        Where the target is when all epochs up to this one are applied; the writer's own.
    logs
        Epochs that are not known to be applied, in order, and the files that hold their rows.
    """

    token: Any
    logs: list[tuple[int, FileRef]]


class TaskRecord(msgspec.Struct):
    """A task at the end of an epoch.

    Attributes
    ----------
    files
        The files that make up its state, in the order in which they are applied.
    positions
        For each of its sources, where to go on.
    progress
        How far it has come: stream time, inputs that have ended.
    """

    stage: str
    index: int
    files: list[FileRef]
    positions: dict[str, Any]
    sinks: dict[str, SinkRecord]
    progress: Any
    ended: bool


class CommitRecord(msgspec.Struct):
    """A flow at the end of an epoch: once this is durable, the epoch is committed.

    Attributes
    ----------
    attempt
        Grows with every recovery of the flow.
    clock_ms
        What the clock showed; it must not seem to go back.
    finished
        Whether nothing is left to do.
    """

    version: int
    flow: str
    shape: FlowShape
    epoch: int
    attempt: int
    stream_time: int | None
    clock_ms: int
    finished: bool
    tasks: list[TaskRecord]

    @property
    def files(self) -> Iterator[FileRef]:
        """Every file that the record needs."""
        for task in self.tasks:
            yield from task.files
            for sink in task.sinks.values():
                yield from (ref for _, ref in sink.logs)


class _Versioned(msgspec.Struct):
    version: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(CommitRecord)
_version = msgspec.msgpack.Decoder(_Versioned)


def standing_of(record: TaskRecord) -> Standing:
    """Return how far a task was."""
    return read_standing(record.progress, f"{record.stage}/{record.index}")


def encode(record: CommitRecord) -> bytes:
    """Return a record as bytes; refuse it if it would not come back the same."""
    for task in record.tasks:
        where = f"task {task.index} of the stage {task.stage}"
        _require_plain(task.progress, f"the progress of {where}")
        for name, position in task.positions.items():
            _require_plain(position, f"the position of the source {name} in {where}")
        for name, sink in task.sinks.items():
            _require_plain(sink.token, f"the token of the sink {name} in {where}")
    try:
        return _encoder.encode(record)
    except UnicodeEncodeError as error:
        raise EngineError(
            f"the commit record cannot be written: {error.object!r} is not valid text",
            remedy="rename the file or key that it is the name of",
        ) from None


def decode(data: bytes, *, name: str = "the record") -> CommitRecord:
    """Return the record that bytes hold; `name` says in errors where they come from."""
    try:
        version = _version.decode(data).version
        if version <= VERSION:
            return _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise damaged(name, f"it is not a commit record: {error}") from None
    raise EngineError(
        f"{name} is a commit record of version {version}, and this is version {VERSION}",
        remedy="run the version of Floodway that wrote it, or a newer one",
    )


def _require_plain(value: Any, what: str) -> None:
    kind = type(value)
    if kind in _SCALARS:
        return
    if kind is int and value in _INTEGERS:
        return
    if kind in (list, tuple):
        for item in value:
            _require_plain(item, what)
    elif kind is dict:
        for key, item in value.items():
            _require_plain(key, what)
            _require_plain(item, what)
    else:
        raise EngineError(
            f"{what} cannot be kept in a commit record: {value!r} is a {kind.__name__}",
            remedy="make it of None, bool, int of 64 bits, float, str, bytes, list and dict",
        )
