"""Frames: whatever bytes come, the answer is a header, a message, or a `FrameError`."""

from contextlib import suppress

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from floodway.engine.checkpoint.records import SinkRecord, TaskRecord
from floodway.engine.checkpoint.vault import FileRef
from floodway.engine.control import messages as control
from floodway.engine.control.messages import Message, from_frame, to_frame
from floodway.engine.transport.frame import (
    KIND,
    MAX_BYTES,
    SIZE,
    VERSION,
    FrameError,
    Kind,
    kind_of,
    make_frame,
    parse,
    payload,
    with_attempt,
)

SHORT = st.integers(0, 2**16 - 1)
LONG = st.integers(0, 2**32 - 1)
TEXT = st.text(max_size=8)

PULSE = control.Pulse(9, None, 1000, commit=True)
FILE = FileRef("state/counts-0/000000000009-3.delta", 5, b"\x00\xff")
RECORD = TaskRecord(
    "counts", 0, [FILE], {"clicks": [7, 3]}, {"out": SinkRecord({"end": 4}, [(9, FILE)])}, b"", True
)

MESSAGES: list[Message] = [
    control.Hello(3, 0, "ipc:///somewhere", 7, "here"),
    control.Start(["a", "b"], [4, 5], 8, RECORD, [PULSE], {"clicks": 3}),
    control.Ready(1, 4),
    control.Go(["clicks"]),
    control.Ask(4),
    control.SourceTimes(1, 4, 2, [control.SourceTime("clicks", None, 5, ended=False, count=9)]),
    PULSE,
    control.Replay(["a", "b"], [4, 5], 8),
    control.Tune("counts", 5, None),
    control.Throttle("clicks", 0.5),
    control.Stored(1, 4, 9, RECORD),
    control.Commit(9, ended=True),
    control.Applied(1, 4, 9),
    control.Restoring(1, 4, 10, 100),
    control.Beat(1, 2, 3),
    control.PauseReading(),
    control.Drain(),
    control.Stop(),
    control.InputEnded(1, 4, 2),
    control.Ended(2, 4),
    control.Stuck(0, 0, "has been in one call for 5 s: a.py:3"),
    control.Warned(0, "slow"),
    control.Wait(),
    control.Unreachable(1, 4, 2),
    control.Reached(1, 4, 2),
    control.Failed(1, 0, "OperatorError", "it broke", "mend it", "counts", "flow.py", 3),
    control.Report(1, b"\x00\xff"),
    control.Switch("counts", "operation"),
    control.Switched(1, 4, "data", 1500),
    control.Offer(1, 4, 2, "blocks/2.block", [(0, 0), (400, 3)], b"\x91\xc0"),
    control.Made(4, 2, ["blocks/2.0"], 10, 20, ""),
]


@given(
    kind=st.sampled_from(Kind),
    content=st.binary(max_size=5000),
    exchange=SHORT,
    sender=SHORT,
    attempt=SHORT,
    epoch=LONG,
    records=LONG,
    born=st.integers(0, 2**64 - 1),
)
def test_frame_says_what_it_was_made_with(
    kind: Kind, content: bytes, exchange: int, sender: int, attempt: int, epoch: int,
    records: int, born: int,
) -> None:  # fmt: skip
    frame = make_frame(
        kind, content, exchange=exchange, sender=sender, attempt=attempt, epoch=epoch,
        records=records, born=born,
    )  # fmt: skip
    assert parse(frame) == (VERSION, kind, exchange, sender, attempt, epoch, records, born)
    assert bytes(payload(frame)) == content
    assert kind_of(frame) == kind


@given(content=st.binary(max_size=20), attempt=SHORT, other=SHORT)
def test_frame_for_another_attempt_is_otherwise_the_same(
    content: bytes, attempt: int, other: int
) -> None:
    frame = make_frame(Kind.DATA, content, sender=3, attempt=attempt, epoch=4, records=5)
    again = make_frame(Kind.DATA, content, sender=3, attempt=other, epoch=4, records=5)
    assert with_attempt(frame, other) == again


@given(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(lambda b: b"\x01" + b)))
def test_any_bytes_are_a_header_or_an_error(data: bytes) -> None:
    with suppress(FrameError):
        header = parse(data)
        assert len(data) >= SIZE
        assert header[0] == VERSION
        assert Kind(header[KIND])


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_control_message_comes_back(message: Message) -> None:
    assert from_frame(to_frame(message)) == message


def test_every_kind_of_message_is_tried_here() -> None:
    assert {type(message) for message in MESSAGES} == set(control.Message.__args__)


def readable(frame: bytes) -> None:
    """Read a control frame and see that nothing but a message or a `FrameError` comes of it."""
    with suppress(FrameError):
        assert isinstance(from_frame(frame), msgspec.Struct)


@given(st.data(), st.sampled_from(MESSAGES))
def test_flipped_bits_in_the_header_are_a_message_or_an_error(
    data: st.DataObject, message: Message
) -> None:
    frame = bytearray(to_frame(message))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, SIZE - 1))] ^= 1 << data.draw(st.integers(0, 7))
    readable(bytes(frame))


@given(st.data(), st.sampled_from(MESSAGES))
def test_cut_message_is_an_error(data: st.DataObject, message: Message) -> None:
    frame = to_frame(message)
    with pytest.raises(FrameError):
        from_frame(frame[: data.draw(st.integers(0, len(frame) - 1))])


@given(st.sampled_from(list(set(Kind) - {Kind.CONTROL})), st.binary(max_size=20))
def test_data_is_not_control(kind: Kind, content: bytes) -> None:
    with pytest.raises(FrameError, match="not control"):
        from_frame(make_frame(kind, content))


UNREADABLE = {
    "text that is not UTF-8": b"\x82\xa4type\xa5Hello\xa4host\xa3\xff\xfe\xff",
    "an unknown field that nests deeply": b"\x82\xa4type\xa5Drain\xa1x"
    + b"\x91" * 100_000
    + b"\x01",
}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_control_frame_that_cannot_be_decoded_is_an_error(content: bytes) -> None:
    with pytest.raises(FrameError):
        from_frame(make_frame(Kind.CONTROL, content))


@given(st.binary(max_size=80))
def test_any_control_payload_is_a_message_or_an_error(content: bytes) -> None:
    readable(make_frame(Kind.CONTROL, content))


@given(st.sampled_from(MESSAGES), st.integers(0, 200), st.integers(0, 7))
@example(MESSAGES[0], 7, 7)  # in the text that says what kind of message it is
def test_flipped_bit_in_the_payload_is_a_message_or_an_error(
    message: Message, place: int, bit: int
) -> None:
    frame = bytearray(to_frame(message))
    frame[SIZE + place % (len(frame) - SIZE)] ^= 1 << bit
    readable(bytes(frame))


def test_largest_frame_is_the_same_for_who_sends_and_who_receives() -> None:
    from floodway.engine.transport.batching import MAX_PAYLOAD

    assert MAX_PAYLOAD + SIZE == MAX_BYTES
