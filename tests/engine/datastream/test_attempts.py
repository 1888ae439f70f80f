"""Attempts of a task: what was meant for another is dropped, and one goes on where another was."""

import msgspec
import pytest

from floodway import Flow, emit, tumbling
from floodway.core.errors import CorruptError
from floodway.engine.checkpoint.records import TaskRecord, standing_of
from floodway.engine.datastream.task import Task
from floodway.engine.program.mark import Mark
from floodway.engine.program.standing import LOCAL, Standing
from floodway.engine.transport.frame import KIND, FrameError, Kind, make_frame, parse
from floodway.plan import Plan
from tests.engine.datastream.net import Net

COMMIT = Mark(stream_time=5, clock=7, commit=True)


def pair() -> Plan:
    """A source, and a sink in a stage of its own."""
    flow = Flow("pair")
    flow.source("numbers", schema=int).isolate().to("out")
    return Plan.of(flow)


def merged() -> Plan:
    """Two sources, and what they have in common in a stage of its own."""
    flow = Flow("merged")
    one, two = (flow.source(name, schema=int).isolate() for name in ("one", "two"))
    one.merge(two, name="both").to("out")
    return Plan.of(flow)


def windows() -> Plan:
    flow = Flow("windows")
    counts = flow.source("clicks", schema=str).isolate().group_by("value AS page")
    table = counts.window(tumbling(10)).count(name="counts")
    table.changes(emit=emit.final()).to("out")
    return Plan.of(flow)


# --------------------------------------------------------------------- stamps


def test_frames_carry_the_attempt_of_who_receives_them() -> None:
    net = Net(pair(), attempts=[3, 0x1_0008])
    (source,), (out,) = net.of("numbers"), net.of("out")
    assert (source.attempt, out.attempt) == (3, 0x1_0008)
    source.feed("numbers", [(0, None, 1)], 0)
    source.pulse(1, COMMIT)
    net.work(source, steps=5)
    assert {parse(frame)[4] for _, frame in net.sent} == {8}
    net.work(out, steps=5)
    assert (out.records_in, out.epoch) == (1, 1)


@pytest.mark.parametrize("kind", [Kind.DATA, Kind.MARK, Kind.END])
def test_frame_for_an_earlier_attempt_is_dropped(kind: Kind) -> None:
    net = Net(pair(), attempts=[1, 2])
    (out,) = net.of("out")
    frame = make_frame(kind, b"\x90", attempt=1, records=1)
    out.receive(parse(frame), frame)
    assert (out.frames_in, out.inbox.records) == (0, 0)
    assert not out.step(0)


def test_credit_of_an_earlier_attempt_is_dropped() -> None:
    net = Net(pair(), attempts=[1, 2])
    (source,) = net.of("numbers")
    source.feed("numbers", [(0, None, 1)], 0)
    source.flush()
    (lane,) = source.lanes
    sent = lane.outstanding
    assert sent > 0
    for attempt, left in ((1, sent), (2, sent - 5)):
        frame = make_frame(Kind.CREDIT, attempt=attempt, records=5)
        source.receive(parse(frame), frame)
        assert lane.outstanding == left


def test_credit_names_the_attempt_that_gives_it() -> None:
    net = Net(pair(), attempts=[1, 2])
    (source,), (out,) = net.of("numbers"), net.of("out")
    (lane,) = source.lanes
    while not source.blocked:
        source.feed("numbers", [(0, None, 2**60)] * 1000, 0)
        source.flush()
    net.work(out, steps=1000)
    (credit, *_) = (parse(f) for _, f in net.sent if parse(f)[KIND] == Kind.CREDIT)
    assert credit[4] == 2
    full = lane.outstanding
    net.deliver(source)
    assert lane.outstanding < full


# --------------------------------------------------------------------- the end of an epoch


def test_epoch_ends_after_its_mark_is_sent_and_before_anything_that_follows() -> None:
    net = Net(pair())
    (source,), (out,) = net.of("numbers"), net.of("out")
    seen: list[tuple[int, list[int]]] = []
    source.on_commit = lambda epoch, _: seen.append((epoch, [parse(f)[KIND] for _, f in net.sent]))
    taken: list[tuple[int, int]] = []
    out.on_commit = lambda epoch, _: taken.append((epoch, out.records_in))
    source.feed("numbers", [(0, None, 1), (0, None, 2)], 0)
    source.pulse(4, COMMIT)
    net.work(source, steps=5)
    source.feed("numbers", [(0, None, 3)], 0)
    source.flush()
    assert seen == [(4, [Kind.DATA, Kind.MARK])]
    net.work(out, steps=9)
    assert taken == [(4, 2)]
    assert out.records_in == 3


def test_mark_that_ends_no_epoch_is_not_told() -> None:
    net = Net(pair())
    (source,) = net.of("numbers")
    told: list[int] = []
    source.on_commit = lambda epoch, _: told.append(epoch)
    source.pulse(1, Mark(stream_time=5))
    source.pulse(2, COMMIT)
    net.work(source, steps=5)
    assert told == [2]


@pytest.mark.parametrize("first", ["one", "two"])
def test_epoch_ends_once_although_a_source_ends_while_its_mark_waits(first: str) -> None:
    """A mark behind an end must not be taken for that of a channel which is open."""
    net = Net(merged())
    (both,) = net.of("both")
    told: list[int] = []
    both.on_commit = lambda epoch, _: told.append(epoch)
    tasks = {name: net.of(name)[0] for name in ("one", "two")}
    second = next(name for name in tasks if name != first)
    tasks[second].pulse(1, COMMIT)
    tasks[first].pulse(1, COMMIT)
    tasks[first].end_source(first, 0)  # before it has looked at the mark
    for task in tasks.values():
        net.work(task, steps=5)
    net.work(both, steps=9)
    assert told == [1]
    tasks[second].end_source(second, 0)
    for task in (tasks[second], both):
        net.work(task, steps=9)
    assert told == [1]
    assert both.ended


def test_marks_that_do_not_belong_together_are_noticed() -> None:
    """To pass one for the other would mix two epochs."""
    net = Net(merged())
    (one,), (two,), (both,) = net.of("one"), net.of("two"), net.of("both")
    one.pulse(1, COMMIT)
    two.pulse(2, COMMIT)
    for task in (one, two):
        net.work(task, steps=5)
    with pytest.raises(FrameError, match="mark 2 came where 1 was due"):
        net.work(both, steps=9)


def test_end_of_a_channel_lets_an_epoch_end_that_the_others_have_ended() -> None:
    net = Net(merged())
    (one,), (two,), (both,) = net.of("one"), net.of("two"), net.of("both")
    at: list[Standing] = []
    both.on_commit = lambda epoch, _: at.append(both.standing())
    one.pulse(1, COMMIT)
    net.work(one, steps=5)
    two.end_source("two", 0)
    net.work(two, steps=5)
    net.work(both, steps=9)
    (standing,) = at
    assert len(standing.channels) == 1  # the end is part of the epoch
    assert standing.epoch == 1


# --------------------------------------------------------------------- standing


def record_of(task: Task) -> TaskRecord:
    progress = msgspec.msgpack.encode(task.standing())
    return TaskRecord(task.stage.name, task.index, [], {}, {}, progress, task.ended)


def resumed(task: Task) -> Task:
    """Return a task that goes on where another was, as its record says."""
    again = Task(task.plan, task.stage, task.index, lambda number, frame: None)
    again.resume(standing_of(record_of(task)))
    return again


def test_task_goes_on_with_the_time_and_the_mark_it_had() -> None:
    net = Net(pair())
    (source,), (out,) = net.of("numbers"), net.of("out")
    source.pulse(4, COMMIT)
    net.work(source, steps=5)
    net.work(out, steps=5)
    for task in (source, out):
        again = resumed(task)
        assert (again.stream_time, again.epoch) == (5, 4)
        assert again.standing() == task.standing()
        assert again.ended_exchanges == []
        assert [outlet.epoch for outlet in again.outlets] == [4] * len(task.outlets)


def test_task_goes_on_without_the_channels_that_had_ended() -> None:
    net = Net(merged())
    (one,), (both,) = net.of("one"), net.of("both")
    one.end_source("one", 0)
    net.work(one)
    net.work(both, steps=5)
    (exchange,) = both.ended_exchanges
    again = resumed(both)
    assert again.alignment.open == both.alignment.open
    assert again.ended_exchanges == [exchange]  # the driver is told again
    assert not again.ended
    assert resumed(one).ended
    assert LOCAL not in resumed(one).alignment.open


@pytest.mark.parametrize("final", [True, False])
def test_task_remembers_whether_an_end_was_that_of_the_stream(final: bool) -> None:
    net = Net(merged())
    (one,), (both,) = net.of("one"), net.of("both")
    one.end_source("one", 0, final=final)
    net.work(one)
    net.work(both, steps=5)
    again = resumed(both)
    assert again.standing() == both.standing()
    assert (again.standing().drained == []) == final


def test_task_that_had_ended_has_still_ended() -> None:
    net = Net(windows())
    (source,), (counts,) = net.of("clicks"), net.of("counts")
    source.feed("clicks", [(1, None, "home")], 0)
    source.end_source("clicks", 0)
    net.work(source)
    net.work(counts, steps=9)
    assert counts.ended
    again = resumed(counts)
    assert again.ended
    assert again.standing() == counts.standing()


@pytest.mark.parametrize("progress", [b"", b"\xc1", msgspec.msgpack.encode([1, 2]), None, 7])
def test_progress_that_makes_no_sense_is_noticed(progress: object) -> None:
    record = TaskRecord("counts", 3, [], {}, {}, progress, False)
    with pytest.raises(CorruptError, match="counts/3"):
        standing_of(record)
