"""What the driver and the tasks say to each other.

Every message is a control frame with one of these as its payload. A task introduces itself, is
told where the others are, answers when asked how far its sources are, makes a mark when told to,
and says when it has ended or failed.
"""

from typing import Any

import msgspec

from floodway.engine.transport.frame import FrameError, Kind, make_frame, parse, payload


class Hello(msgspec.Struct, frozen=True, tag=True):
    """A task is there, and listens at `address`."""

    task: int
    address: str
    pid: int
    host: str


class Start(msgspec.Struct, frozen=True, tag=True):
    """All tasks are there: this is where they listen, by number."""

    addresses: list[str]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """A task has opened its connectors and takes frames."""

    task: int


class Go(msgspec.Struct, frozen=True, tag=True):
    """All tasks are ready: these sources may read."""

    sources: list[str]


class Ask(msgspec.Struct, frozen=True, tag=True):
    """Asks how far the sources are."""

    number: int


class SourceTime(msgspec.Struct, frozen=True):
    """A source's latest event time, since when it is silent, and whether it has ended."""

    source: str
    latest: int | None
    silent_ms: int
    ended: bool


class Progress(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Ask`."""

    task: int
    number: int
    sources: list[SourceTime]


class Pulse(msgspec.Struct, frozen=True, tag=True):
    """Make a mark."""

    epoch: int
    stream_time: int | None
    clock: int


class Tune(msgspec.Struct, frozen=True, tag=True):
    """Batch an operator's output differently from now on."""

    operator: str
    b_out: int | None
    linger_us: int | None


class Throttle(msgspec.Struct, frozen=True, tag=True):
    """Let a source bring in at most so many records a second; None: as many as there are."""

    source: str
    per_second: float | None


class Drain(msgspec.Struct, frozen=True, tag=True):
    """Read no more; process and hand on what is there."""


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Stop now."""


class InputEnded(msgspec.Struct, frozen=True, tag=True):
    """A task has processed the end of an exchange."""

    task: int
    exchange: int


class Ended(msgspec.Struct, frozen=True, tag=True):
    """A task has done all it had to do."""

    task: int


class Warned(msgspec.Struct, frozen=True, tag=True):
    """Something a person should know: a call that does not return, a sink that is away."""

    task: int
    message: str


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A task cannot go on."""

    task: int
    kind: str
    problem: str
    remedy: str
    operator: str | None = None
    file: str | None = None
    line: int | None = None


class Report(msgspec.Struct, frozen=True, tag=True):
    """A task's metrics, encoded."""

    task: int
    data: bytes


Message = (
    Hello
    | Start
    | Ready
    | Go
    | Ask
    | Progress
    | Pulse
    | Tune
    | Throttle
    | Drain
    | Stop
    | InputEnded
    | Ended
    | Warned
    | Failed
    | Report
)

_encode = msgspec.msgpack.Encoder().encode
_DECODER: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Message)


def to_frame(message: Message) -> bytes:
    """Return a message as a frame."""
    return make_frame(Kind.CONTROL, _encode(message))


def from_frame(data: bytes) -> Message:
    """Return the message of a control frame; raise `FrameError` if it is none."""
    if parse(data)[1] != Kind.CONTROL:
        raise FrameError("a frame that is not control came where only control is taken")
    try:
        message: Message = _DECODER.decode(payload(data))
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a control frame cannot be read: {error}") from None
    return message
