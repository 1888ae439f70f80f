"""The input cache: marks are aligned, and its counters are right at each moment."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from floodway.engine.datastream.inbox import Entry, Inbox
from floodway.engine.transport.frame import Kind, make_frame, parse
from floodway.testing.strategies import interleavings

Frame = tuple[Kind, int, int, int]
"""A frame as the tests draw it: kind, exchange, sender, records."""


def channel_frames(exchange: int, sender: int) -> st.SearchStrategy[list[Frame]]:
    """Draw what one channel brings: data cut by three marks, and possibly an end early on."""
    data = st.builds(lambda n: (Kind.DATA, exchange, sender, n), st.integers(1, 4))
    parts = st.lists(st.lists(data, max_size=3), min_size=4, max_size=4)

    def assemble(drawn: tuple[list[list[Frame]], int]) -> list[Frame]:
        pieces, marks = drawn
        frames: list[Frame] = []
        for piece in pieces[:marks]:
            frames += [*piece, (Kind.MARK, exchange, sender, 0)]
        return [*frames, *pieces[marks], (Kind.END, exchange, sender, 0)]

    return st.tuples(parts, st.integers(0, 3)).map(assemble)


CHANNELS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=4, unique=True
)


class Reader:
    """Takes from an inbox as a task does, and writes down what happened."""

    def __init__(self, channels: list[tuple[int, int]]) -> None:
        self.inbox = Inbox(channels)
        self.marks = dict.fromkeys(channels, 0)
        self.passed = 0
        self.taken: dict[tuple[int, int], list[Frame]] = {channel: [] for channel in channels}
        self.before: list[tuple[tuple[int, int], Frame, int]] = []

    def step(self, most: int) -> list[Entry]:
        entries = self.inbox.take(most)
        for header, _, _ in entries:
            channel = header[2], header[3]
            frame = (Kind(header[1]), *channel, header[6])
            self.taken[channel].append(frame)
            self.before.append((channel, frame, self.passed))
        if entries:
            self._act(entries[0])
        return entries

    def _act(self, entry: Entry) -> None:
        header = entry[0]
        channel = header[2], header[3]
        complete = False
        if header[1] == Kind.MARK:
            self.marks[channel] += 1
            complete = self.inbox.marked(channel)
        elif header[1] == Kind.END:
            complete = self.inbox.ended(channel)
        if complete:
            self.passed += 1
            self.inbox.release()


@settings(max_examples=300)
@given(st.data(), CHANNELS, st.integers(1, 6))
def test_marks_are_aligned(data: st.DataObject, channels: list[Any], most: int) -> None:
    brought = [data.draw(channel_frames(*channel)) for channel in channels]
    reader = Reader(channels)
    waiting_records = waiting_bytes = 0
    for _, (kind, exchange, sender, records) in data.draw(interleavings(*brought)):
        frame = make_frame(kind, b"x" * records, exchange=exchange, sender=sender, records=records)
        reader.inbox.put(parse(frame), frame)
        waiting_records, waiting_bytes = waiting_records + records, waiting_bytes + len(frame)
        for _ in range(data.draw(st.integers(0, 2))):
            entries = reader.step(most)
            waiting_records -= sum(header[6] for header, _, _ in entries)
            waiting_bytes -= sum(len(taken) for _, taken, _ in entries)
            assert (reader.inbox.records, reader.inbox.bytes) == (waiting_records, waiting_bytes)
            assert kinds_together(entries)
    while reader.step(most):
        pass
    assert (reader.inbox.records, reader.inbox.bytes) == (0, 0)
    # Nothing is lost, and each channel's order is kept.
    assert list(reader.taken.values()) == brought
    # What a channel brought between its marks n and n+1 was taken while n marks had passed.
    seen = dict.fromkeys(channels, 0)
    for channel, frame, passed in reader.before:
        if frame[0] == Kind.DATA:
            assert passed == seen[channel]
        seen[channel] += frame[0] == Kind.MARK
    assert reader.passed == max(reader.marks.values())


def kinds_together(entries: list[Entry]) -> bool:
    """Return whether only data of one exchange is taken together."""
    if len(entries) < 2:
        return True
    return {(header[1], header[2]) for header, _, _ in entries} == {(Kind.DATA, entries[0][0][2])}


@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.integers(1, 12))
def test_what_waits_is_taken_together_up_to_a_limit(sizes: list[int], most: int) -> None:
    inbox = Inbox([(0, 0)])
    for size in sizes:
        frame = make_frame(Kind.DATA, records=size)
        inbox.put(parse(frame), frame)
    left = list(sizes)
    while left:
        taken = [header[6] for header, _, _ in inbox.take(most)]
        assert taken == left[: len(taken)]
        assert sum(taken[:-1]) < most
        assert len(taken) == len(left) or sum(taken) >= most
        del left[: len(taken)]
    assert inbox.take(most) == []


def test_end_completes_a_mark_that_the_others_have_brought() -> None:
    inbox = Inbox([(0, 0), (0, 1)])
    assert not inbox.marked((0, 0))
    assert inbox.holds((0, 0))
    assert inbox.ended((0, 1))
    inbox.release()
    assert not inbox.holds((0, 0))
    assert not inbox.ended_exchange(0)
    assert not inbox.ended((0, 0))  # no mark waits
    assert inbox.ended_exchange(0)


def test_cleared_inbox_has_nothing() -> None:
    inbox = Inbox([(0, 0), (0, 1)])
    inbox.marked((0, 0))
    for sender in (0, 1):
        frame = make_frame(Kind.DATA, b"abc", sender=sender, records=2)
        inbox.put(parse(frame), frame)
    assert [header[3] for header, _, _ in inbox.take(10)] == [1]
    assert (inbox.records, inbox.bytes) == (2, len(frame))
    inbox.clear()
    assert (inbox.records, inbox.bytes, inbox.take(10)) == (0, 0, [])
