"""The input cache: marks are aligned whatever the policy, and its counters are always right."""

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway.engine.datastream.alignment import Alignment, Channel
from floodway.engine.datastream.chosen import Chosen, Way
from floodway.engine.datastream.fifo import Fifo
from floodway.engine.datastream.inbox import Arrived, Inbox
from floodway.engine.datastream.policy import Policy, Queued
from floodway.engine.transport.frame import EXCHANGE, KIND, RECORDS, SENDER, Kind, make_frame, parse
from floodway.testing.strategies import interleavings
from tests.engine.datastream.lifo import Lifo

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


class AtRandom(Policy):
    """Chooses whatever it likes, and drops some of it."""

    def __init__(self, random: Random, *, sees_all: bool, sheds: bool) -> None:
        self.sees_all, self._sheds, self._random = sees_all, sheds, random
        self.waiting: list[Queued] = []

    def put(self, waiting: Queued) -> None:
        self.waiting.append(waiting)

    def next(self, now: int) -> Queued:
        return self.waiting.pop(self._random.randrange(len(self.waiting)))

    def shed(self, now: int, records: int) -> list[Queued]:
        if not self._sheds:
            return []
        gone = [w for w in self.waiting if w.droppable and self._random.random() < 0.2]
        self.waiting = [waiting for waiting in self.waiting if waiting not in gone]
        return gone


WAYS = {0: Way(0, None, stream=True), 1: Way(1, None, stream=False)}
"""Records of a stream come over exchange 0, and updates of a table over exchange 1."""

MakeInbox = Callable[[Alignment], Inbox]


def chosen(policy: Callable[[], Policy]) -> MakeInbox:
    return lambda alignment: Chosen(alignment, policy, WAYS, lambda entries: None)


IN_ORDER = [Inbox, chosen(Fifo)]


class Reader:
    """Takes from an inbox as a task does, and writes down what happened."""

    def __init__(self, channels: list[Channel], make: MakeInbox) -> None:
        self.alignment = Alignment(channels)
        self.inbox = make(self.alignment)
        self.marks = dict.fromkeys(channels, 0)
        self.passed = 0
        self.taken: dict[tuple[int, int], list[Frame]] = {channel: [] for channel in channels}
        self.before: list[tuple[tuple[int, int], Frame, int]] = []

    def step(self, most: int) -> list[Arrived]:
        entries = self.inbox.take(most)
        for header, _, _ in entries:
            channel = header[EXCHANGE], header[SENDER]
            frame = (Kind(header[KIND]), *channel, header[RECORDS])
            self.taken[channel].append(frame)
            self.before.append((channel, frame, self.passed))
        if entries:
            self._act(entries[0])
        return entries

    def _act(self, entry: Arrived) -> None:
        header = entry[0]
        channel = header[EXCHANGE], header[SENDER]
        complete = False
        if header[KIND] == Kind.MARK:
            self.marks[channel] += 1
            complete = self.alignment.marked(channel)
        elif header[KIND] == Kind.END:
            complete = self.alignment.ended(channel)
        if complete:
            self.passed += 1
            self.inbox.release()


class Run:
    """What all channels brought, and what became of it; `dropped` is what the policy dropped."""

    def __init__(self, data: st.DataObject, make: MakeInbox, dropped: list[Arrived]) -> None:
        channels = data.draw(CHANNELS)
        self.brought = [data.draw(channel_frames(*channel)) for channel in channels]
        self.reader = Reader(channels, make)
        self.dropped = dropped
        self._waiting: Counter[Frame] = Counter()
        most = data.draw(st.integers(1, 6))
        for _, frame in data.draw(interleavings(*self.brought)):
            self._put(*frame)
            for _ in range(data.draw(st.integers(0, 2))):
                self._step(most)
        while self._step(most):
            pass
        assert (self.reader.inbox.records, self.reader.inbox.bytes) == (0, 0)
        self._check_marks(channels)

    def _put(self, kind: Kind, exchange: int, sender: int, records: int) -> None:
        content = b"x" * records
        frame = make_frame(kind, content, exchange=exchange, sender=sender, records=records)
        self.reader.inbox.put(parse(frame), frame)
        self._waiting[kind, exchange, sender, records] += 1

    def _step(self, most: int) -> bool:
        inbox, before = self.reader.inbox, len(self.dropped)
        entries = self.reader.step(most)
        for header, _, _ in [*entries, *self.dropped[before:]]:
            self._waiting[
                Kind(header[KIND]), header[EXCHANGE], header[SENDER], header[RECORDS]
            ] -= 1
        assert inbox.records == sum(f[3] * n for f, n in self._waiting.items())
        empty = len(make_frame(Kind.DATA))
        assert inbox.bytes == sum((f[3] + empty) * n for f, n in self._waiting.items())
        assert kinds_together(entries)
        return bool(entries)

    def _check_marks(self, channels: list[Channel]) -> None:
        """What a channel brought between marks n and n+1 was taken while n marks had passed."""
        seen = dict.fromkeys(channels, 0)
        for channel, frame, passed in self.reader.before:
            if frame[0] == Kind.DATA:
                assert passed == seen[channel]
            seen[channel] += frame[0] == Kind.MARK
        assert self.reader.passed == max(self.reader.marks.values())
        assert not self.reader.alignment.open

    @property
    def taken(self) -> list[list[Frame]]:
        return list(self.reader.taken.values())


@pytest.mark.parametrize("make", IN_ORDER, ids=["direct", "asked"])
@settings(max_examples=300)
@given(st.data())
def test_marks_are_aligned_and_the_order_of_each_channel_is_kept(
    make: MakeInbox, data: st.DataObject
) -> None:
    run = Run(data, make, [])
    assert run.taken == run.brought


@settings(max_examples=100)
@given(st.data())
def test_marks_are_aligned_with_lifo(data: st.DataObject) -> None:
    run = Run(data, chosen(Lifo), [])
    assert list(map(stretches, run.taken)) == list(map(stretches, run.brought))


@settings(max_examples=200)
@given(st.data(), st.booleans(), st.randoms(use_true_random=False))
def test_marks_are_aligned_whatever_a_policy_does(
    data: st.DataObject, sees_all: bool, random: Random
) -> None:
    dropped: list[Arrived] = []

    def make(alignment: Alignment) -> Inbox:
        policy = AtRandom(random, sees_all=sees_all, sheds=True)
        return Chosen(alignment, lambda: policy, WAYS, dropped.extend)

    run = Run(data, make, dropped)
    gone = Counter((Kind(h[KIND]), h[EXCHANGE], h[SENDER], h[RECORDS]) for h, _, _ in dropped)
    assert {kind for kind, *_ in gone} <= {Kind.DATA}
    assert {exchange for _, exchange, *_ in gone} <= {0}  # updates of a table are never dropped
    for brought, taken in zip(run.brought, run.taken, strict=True):
        lost = Counter(brought)
        lost.subtract(taken)
        assert all(gone[frame] == count for frame, count in lost.items())
        if brought[0][1] == 1 or not sees_all:
            assert is_part(taken, brought)  # in the same order


def stretches(frames: list[Frame]) -> list[tuple[Counter[Frame], Kind]]:
    """Return what one channel brought between marks, in any order, and what closed each stretch."""
    found: list[tuple[Counter[Frame], Kind]] = []
    between: Counter[Frame] = Counter()
    for frame in frames:
        if frame[0] == Kind.DATA and frame[1] == 0:
            between[frame] += 1
        else:
            found.append((between, frame[0]))
            between = Counter()
    return found


def is_part(some: list[Frame], all_of_them: list[Frame]) -> bool:
    """Return whether frames are among others, in the same order."""
    rest = iter(all_of_them)
    return all(any(frame == other for other in rest) for frame in some)


def kinds_together(entries: list[Arrived]) -> bool:
    """Return whether only data of one exchange is taken together."""
    if len(entries) < 2:
        return True
    return {(header[KIND], header[EXCHANGE]) for header, _, _ in entries} == {
        (Kind.DATA, entries[0][0][EXCHANGE])
    }


@pytest.mark.parametrize("make", IN_ORDER, ids=["direct", "asked"])
@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.integers(1, 12))
def test_what_waits_is_taken_together_up_to_a_limit(
    make: MakeInbox, sizes: list[int], most: int
) -> None:
    inbox = make(Alignment([(0, 0)]))
    for size in sizes:
        frame = make_frame(Kind.DATA, records=size)
        inbox.put(parse(frame), frame)
    left = list(sizes)
    while left:
        taken = [header[RECORDS] for header, _, _ in inbox.take(most)]
        assert taken == left[: len(taken)]
        assert sum(taken[:-1]) < most
        assert len(taken) == len(left) or sum(taken) >= most
        del left[: len(taken)]
    assert inbox.take(most) == []


@pytest.mark.parametrize("make", IN_ORDER, ids=["direct", "asked"])
def test_cleared_inbox_has_nothing_and_holds_whom_it_held(make: MakeInbox) -> None:
    alignment = Alignment([(0, 0), (0, 1)])
    inbox = make(alignment)

    def put(kind: Kind, sender: int, records: int) -> None:
        frame = make_frame(kind, b"abc", sender=sender, records=records)
        inbox.put(parse(frame), frame)

    put(Kind.MARK, 0, 0)
    assert [header[KIND] for header, _, _ in inbox.take(10)] == [Kind.MARK]
    alignment.marked((0, 0))
    put(Kind.DATA, 0, 2)
    put(Kind.DATA, 1, 2)
    assert [header[SENDER] for header, _, _ in inbox.take(10)] == [1]
    assert inbox.records == 2
    inbox.clear()
    assert (inbox.records, inbox.bytes, inbox.take(10)) == (0, 0, [])
    put(Kind.DATA, 0, 3)
    assert inbox.take(10) == []
    inbox.release()
    assert [header[RECORDS] for header, _, _ in inbox.take(10)] == [3]
