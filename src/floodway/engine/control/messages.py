"""What the driver and the tasks say to each other.

Every message is a control frame with one of these as its payload. A task introduces itself, is
told where the others are and what to go on from, answers when asked how far its sources are, makes
a mark when told to, acknowledges epochs, and says when it has ended or failed.

What a task says of itself has the number of its *attempt*: after the flow has gone back, what was
meant before does not count.
"""

import traceback
from typing import Any

import msgspec

from floodway.core import errors
from floodway.core.errors import EngineError, FloodwayError
from floodway.core.place import Place
from floodway.engine.checkpoint.records import TaskRecord
from floodway.engine.transport.frame import KIND, FrameError, Kind, make_frame, parse, payload
from floodway.model.tuning import Paradigm


class Hello(msgspec.Struct, frozen=True, tag=True):
    """A process for a task is there, the one that was launched as `launch`.

    Attributes
    ----------
    machine, began
        What tells the process from others with its number; see `Whereabouts`.
    sees
        Whether it sees the folder in which the flow keeps what it goes back to.
    """

    task: int
    launch: int
    address: str
    pid: int
    host: str
    machine: str = ""
    began: int = 0
    sees: bool = True


class Wait(msgspec.Struct, frozen=True, tag=True):
    """The driver is there, and others are not yet: go on waiting."""


class Pulse(msgspec.Struct, frozen=True, tag=True):
    """Make a mark; with `commit`, an epoch ends there."""

    epoch: int
    stream_time: int | None
    clock: int
    commit: bool = False


class Start(msgspec.Struct, frozen=True, tag=True):
    """Begin an attempt.

    Attributes
    ----------
    addresses, attempts
        Where each task listens, and in which attempt it is, by number.
    epoch
        The committed epoch to go on from; 0 for the beginning.
    record
        What the task was at that epoch; None for nothing.
    marks
        Marks that others have made since then and the task's sources have to make again.
    counts
        How many records each of its sources had brought in before the last of those marks.
    recovers
        Whether the flow goes back when a task is lost, and so has to keep what that takes.
    """

    addresses: list[str]
    attempts: list[int]
    epoch: int = 0
    record: TaskRecord | None = None
    marks: list[Pulse] = []
    counts: dict[str, int] = {}
    recovers: bool = True


class Ready(msgspec.Struct, frozen=True, tag=True):
    """A task has opened its connectors and takes frames."""

    task: int
    attempt: int


class Replay(msgspec.Struct, frozen=True, tag=True):
    """Some tasks begin a new attempt: send them again what came after the epoch."""

    addresses: list[str]
    attempts: list[int]
    epoch: int


class Go(msgspec.Struct, frozen=True, tag=True):
    """All tasks are ready: these sources may read."""

    sources: list[str]


class Ask(msgspec.Struct, frozen=True, tag=True):
    """Asks how far the sources are."""

    number: int


class SourceTime(msgspec.Struct, frozen=True):
    """How far a source is.

    Attributes
    ----------
    latest
        Its latest event time; None if nothing has come, or if it has none.
    silent_ms
        For how long it was asked and had nothing to give.
    ended, count
        Whether it has ended, and how many records it has brought in.
    back
        How far it was when it had read something for the first time after it was idle.
    """

    source: str
    latest: int | None
    silent_ms: int
    ended: bool
    count: int = 0
    back: int | None = None


class SourceTimes(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Ask`."""

    task: int
    attempt: int
    number: int
    sources: list[SourceTime]


class Tune(msgspec.Struct, frozen=True, tag=True):
    """Batch an operator's output differently from now on."""

    operator: str
    b_out: int | None
    linger_us: int | None


class Throttle(msgspec.Struct, frozen=True, tag=True):
    """Let a source bring in at most so many records a second; None: as many as there are."""

    source: str
    per_second: float | None


class Stored(msgspec.Struct, frozen=True, tag=True):
    """A task's part of an epoch is durable; `record` says whether the task has ended in it."""

    task: int
    attempt: int
    epoch: int
    record: TaskRecord


class Commit(msgspec.Struct, frozen=True, tag=True):
    """An epoch is committed; `ended` if that includes the end of the task that is told."""

    epoch: int
    ended: bool = False


class Applied(msgspec.Struct, frozen=True, tag=True):
    """A task's sinks have shown everything up to an epoch."""

    task: int
    attempt: int
    epoch: int


class Restoring(msgspec.Struct, frozen=True, tag=True):
    """A task is reading its state: so many bytes of so many."""

    task: int
    attempt: int
    done: int
    total: int


class Beat(msgspec.Struct, frozen=True, tag=True):
    """A task's process is alive, whatever its thread does.

    Only that of the process which was the last to say hello counts: another one of the same launch
    may live on, or have been replaced by Spark.
    """

    task: int
    launch: int
    pid: int


class PauseReading(msgspec.Struct, frozen=True, tag=True):
    """Read no more for now: the flow is about to stop, and will go on later."""


class Drain(msgspec.Struct, frozen=True, tag=True):
    """Read no more; process and hand on what is there."""


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Stop now."""


class InputEnded(msgspec.Struct, frozen=True, tag=True):
    """A task has processed the end of an exchange."""

    task: int
    attempt: int
    exchange: int


class Ended(msgspec.Struct, frozen=True, tag=True):
    """A task has done all it had to do; `sources` is how far its sources came."""

    task: int
    attempt: int
    sources: list[SourceTime] = []


class Stuck(msgspec.Struct, frozen=True, tag=True):
    """A task has been in one call for long, and where; nowhere if it goes on."""

    task: int
    launch: int
    where: str


class Warned(msgspec.Struct, frozen=True, tag=True):
    """Something a person should know, such as a sink that is away."""

    task: int
    message: str


class Unreachable(msgspec.Struct, frozen=True, tag=True):
    """What a task sends to another one does not come through; `lost` if that is so for long."""

    task: int
    attempt: int
    target: int
    lost: bool = True


class Reached(msgspec.Struct, frozen=True, tag=True):
    """What a task sends to another one comes through again."""

    task: int
    attempt: int
    target: int


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A task cannot go on."""

    task: int
    launch: int
    kind: str
    problem: str
    remedy: str
    operator: str | None = None
    file: str | None = None
    line: int | None = None


class Switch(msgspec.Struct, frozen=True, tag=True):
    """Let the tasks of a stage work in a paradigm from now on."""

    stage: str
    paradigm: Paradigm


class Switched(msgspec.Struct, frozen=True, tag=True):
    """A task works in a paradigm, after it has stood still for `pause_us`."""

    task: int
    attempt: int
    paradigm: Paradigm
    pause_us: int


class Offer(msgspec.Struct, frozen=True, tag=True):
    """A task has closed a block, to be processed on Spark.

    Attributes
    ----------
    batch
        Numbers the task's blocks within its attempt.
    path, cuts
        Where the block is, and where it can be cut: offsets, and the records before each.
    context
        What the remote half has to know; only it can read that.
    """

    task: int
    attempt: int
    batch: int
    path: str
    cuts: list[tuple[int, int]]
    context: bytes


class Made(msgspec.Struct, frozen=True, tag=True):
    """A block has been processed: the results of its pieces, in order, or why there are none.

    `waited_us` passed before the job began, `ran_us` while it ran.
    """

    attempt: int
    batch: int
    results: list[str]
    waited_us: int = 0
    ran_us: int = 0
    problem: str = ""


class Report(msgspec.Struct, frozen=True, tag=True):
    """A task's metrics, encoded."""

    task: int
    data: bytes


Message = (
    Hello
    | Wait
    | Start
    | Ready
    | Go
    | Ask
    | SourceTimes
    | Pulse
    | Replay
    | Tune
    | Throttle
    | Stored
    | Commit
    | Applied
    | Restoring
    | Beat
    | PauseReading
    | Drain
    | Stop
    | InputEnded
    | Ended
    | Stuck
    | Warned
    | Unreachable
    | Reached
    | Failed
    | Report
    | Switch
    | Switched
    | Offer
    | Made
)

_encode = msgspec.msgpack.Encoder().encode
_DECODER: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Message)


def to_frame(message: Message) -> bytes:
    """Return a message as a frame."""
    return make_frame(Kind.CONTROL, _encode(message))


def from_frame(data: bytes) -> Message:
    """Return the message of a control frame; raise `FrameError` if it is none."""
    if parse(data)[KIND] != Kind.CONTROL:
        raise FrameError("a frame that is not control came where only control is taken")
    try:
        message: Message = _DECODER.decode(payload(data))
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a control frame cannot be read: {error}") from None
    return message


def error_of(message: Failed) -> FloodwayError:
    """Return the error that a task reports."""
    kind = getattr(errors, message.kind, EngineError)
    if not (isinstance(kind, type) and issubclass(kind, FloodwayError)):
        kind = EngineError
    place = Place(message.file, message.line or 0) if message.file else None
    error: FloodwayError = kind(
        message.problem, remedy=message.remedy, operator=message.operator, place=place
    )
    return error


def failure_message(task: int, launch: int, error: BaseException) -> Failed:
    """Return what to tell the driver about an error."""
    if isinstance(error, FloodwayError):
        return Failed(
            task,
            launch,
            type(error).__name__,
            error.problem,
            error.remedy,
            error.operator,
            error.place.file if error.place else None,
            error.place.line if error.place else None,
        )
    trace = "".join(traceback.format_exception(error))[-4000:]
    return Failed(
        task,
        launch,
        "EngineError",
        f"the task failed: {type(error).__name__}: {error}\n{trace}",
        "report this as a fault of Floodway, with the traceback",
    )
