"""The loop around a task: what it is told, what it says, and one attempt after another."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import pytest

from floodway import Flow
from floodway.connectors.base import ConnectorPlace
from floodway.core.errors import EngineError
from floodway.engine.checkpoint.records import TaskRecord
from floodway.engine.control.messages import (
    Applied,
    Ask,
    Commit,
    Drain,
    Ended,
    Failed,
    Go,
    Hello,
    PauseReading,
    Pulse,
    Reached,
    Ready,
    Replay,
    Report,
    Restoring,
    SourceTimes,
    Stop,
    Stored,
    Unreachable,
    Wait,
    Warned,
)
from floodway.engine.control.report import decode_report
from floodway.engine.datastream.fifo import Fifo
from floodway.engine.datastream.policy import Queued
from floodway.engine.datastream.task import Task
from floodway.engine.host.whereabouts import Whereabouts
from floodway.engine.transport.frame import EXCHANGE, KIND, Kind, make_frame, parse
from floodway.engine.worker.runner import DRIVER, Orphaned
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan
from floodway.testing import ListSink
from tests.engine.datastream.desk import Desk
from tests.engine.datastream.fakes import Feed, Shelf, Shown, straight


def pair(feed: Feed, shown: Shown) -> Plan:
    """A source and a sink, each in a stage of its own."""
    flow = Flow("pair")
    flow.source("numbers", feed, schema=int).isolate().to(shown, name="out")
    return Plan.of(flow)


def mark(epoch: int, *, commit: bool = True) -> Pulse:
    return Pulse(epoch, None, 0, commit)


# --------------------------------------------------------------------- the beginning


def test_hello_says_which_launch_it_is(tmp_path: Path) -> None:
    desk = Desk(tmp_path, straight(Feed(), Shown()), launch=3)
    desk.runner.hello()
    own, host = Whereabouts.here(), os.uname().nodename
    hello = Hello(0, 3, "here", own.pid, host, own.machine, own.began, sees=True)
    assert desk.said(Hello) == [hello]


def test_hello_says_that_the_folder_is_not_there(tmp_path: Path) -> None:
    desk = Desk(tmp_path, straight(Feed(), Shown()))
    desk.around.sees = False
    desk.runner.hello()
    assert [hello.sees for hello in desk.said(Hello)] == [False]


def test_task_opens_when_told_and_reads_when_all_may(tmp_path: Path) -> None:
    feed, shown = Feed([1, 2]), Shown()
    desk = Desk(tmp_path, straight(feed, shown), vault=Shelf())
    desk.tell(Go(["numbers"]), Ask(1), Commit(1))  # of an attempt that has not begun
    assert (feed.opened, desk.post.sent) == ([], [])
    desk.start(4, go=False)
    assert feed.opened == [None]
    assert feed.by_epochs == 1
    assert desk.said(Ready) == [Ready(0, 4)]
    assert desk.runner.attempt == 4
    assert desk.runner.task is not None
    assert desk.runner.task.records_in == 0
    desk.tell(Go(["numbers"]))
    assert desk.runner.task.records_in == 2
    desk.tell(Ask(7))
    (progress,) = desk.said(SourceTimes)
    assert (progress.attempt, progress.number, progress.sources[0].count) == (4, 7, 2)


def test_task_is_connected_to_all_others(tmp_path: Path) -> None:
    desk = Desk(tmp_path, pair(Feed(), Shown()), vault=Shelf())
    desk.start()
    assert desk.post.ways == {1: "at 1"}


def test_start_that_is_said_twice_is_heard_once(tmp_path: Path) -> None:
    feed = Feed()
    desk = Desk(tmp_path, straight(feed, Shown()), vault=Shelf())
    for _ in range(2):
        desk.start(4)
    assert feed.opened == [None]
    assert desk.said(Ready) == [Ready(0, 4)]


def test_start_of_an_earlier_attempt_is_not_heard(tmp_path: Path) -> None:
    feed = Feed()
    desk = Desk(tmp_path, straight(feed, Shown()), vault=Shelf())
    desk.start(4)
    desk.start(3)
    assert (desk.runner.attempt, feed.opened) == (4, [None])


def test_process_that_the_flow_has_left_behind_opens_nothing(tmp_path: Path) -> None:
    """Its sinks would take back what others have shown since."""
    feed, shown, vault = Feed(), Shown(), Shelf()
    vault.files["commits/000000000009"] = b""
    desk = Desk(tmp_path, straight(feed, shown), vault=vault)
    desk.start(4, epoch=8)
    assert desk.runner.over
    assert (feed.opened, shown.opened, desk.said(Ready)) == ([], [], [])


def test_task_that_is_never_told_to_start_gives_up(tmp_path: Path) -> None:
    desk = Desk(tmp_path, straight(Feed(), Shown()), patience_s=10.0)
    desk.around.clock += 30_000_000
    with pytest.raises(EngineError, match="the driver did not answer"):
        desk.turn()


def test_task_that_has_opened_waits_for_the_others_however_long_it_takes(tmp_path: Path) -> None:
    """Others may have much more state to read."""
    desk = Desk(tmp_path, straight(Feed([1]), Shown()), vault=Shelf(), patience_s=10.0)
    desk.start(go=False)
    for _ in range(10):
        desk.around.clock += 30_000_000
        desk.turn()
    desk.tell(Go(["numbers"]))
    assert desk.runner.task is not None
    assert desk.runner.task.records_in == 1


def test_task_that_hears_of_the_driver_waits_however_long_it_takes(tmp_path: Path) -> None:
    """Another one may have to wait for a slot."""
    desk = Desk(tmp_path, straight(Feed([1]), Shown()), vault=Shelf(), patience_s=10.0)
    for _ in range(20):
        desk.around.clock += 15_000_000
        desk.tell(Wait())
    desk.start()
    assert desk.runner.task is not None
    assert desk.runner.task.records_in == 1


def test_orphan_is_lost_and_no_failure_of_the_flow(tmp_path: Path) -> None:
    feed = Feed()
    desk = Desk(tmp_path, straight(feed, Shown()), vault=Shelf())
    desk.start()
    desk.around.alone = True
    desk.around.clock += 1_000_000
    with pytest.raises(Orphaned):
        desk.runner.run(lambda _: None)
    assert desk.said(Failed) == []
    assert feed.closed == 1


def test_source_that_is_drained_reads_again_what_it_had_read(tmp_path: Path) -> None:
    feed = Feed([1], [2], [3])
    desk = Desk(tmp_path, straight(feed, Shown()), vault=Shelf())
    desk.start(2, go=False, marks=[Pulse(5, None, 0)], counts={"numbers": 3})
    desk.tell(Go(["numbers"]), Drain())
    assert desk.runner.task is not None
    assert desk.runner.task.records_in == 3
    assert desk.runner.task.ended


# --------------------------------------------------------------------- one attempt after another


def stored(desk: Desk, epoch: int) -> TaskRecord:
    (found,) = (message for message in desk.said(Stored) if message.epoch == epoch)
    return found.record


def test_next_attempt_goes_on_from_the_record(tmp_path: Path) -> None:
    feed, shown, vault = Feed([1, 2], [3]), Shown(), Shelf()
    desk = Desk(tmp_path, straight(feed, shown), vault=vault)
    desk.start(1)
    desk.tell(mark(5))
    record = stored(desk, 5)
    feed.batches += [[4]]
    desk.turn()
    desk.start(2, go=False, epoch=5, record=record)
    assert (feed.closed, shown.closed) == (1, 1)  # of the first attempt
    assert all(hands.closed for hands in desk.around.hands[:2])
    assert feed.opened[1] == record.positions["numbers"][0]
    assert shown.opened[1] == ("straight.out_0.0", {"epoch": 5, "rows": 3})
    assert desk.said(Ready)[-1] == Ready(0, 2)
    desk.tell(Go(["numbers"]))
    assert shown.applied == [(5, [1, 2, 3])]  # committed, and perhaps not shown
    desk.tell(mark(6), Commit(5))
    desk.tell(Commit(6))
    assert shown.values == [1, 2, 3, 4]
    assert [message.attempt for message in desk.said(Stored)] == [1, 2]


# --------------------------------------------------------------------- sinks that do not wait


class Here(ListSink):
    """Fills its list in the task that has the source."""

    place: ClassVar[ConnectorPlace] = "task"


def test_without_a_checkpoint_sinks_show_rows_at_once_and_take_them_back(tmp_path: Path) -> None:
    feed, sink = Feed([1, 2]), Here()
    sink.records.append("of before")  # type: ignore[arg-type]
    desk = Desk(tmp_path, straight(feed, sink), vault=Shelf(), lasting=False)
    desk.start(1)
    desk.tell(mark(5))
    record = stored(desk, 5)
    feed.batches += [[3], [4]]
    desk.turn()
    assert [row.value for row in sink.records[1:]] == [1, 2, 3, 4]
    desk.start(2, go=False, epoch=5, record=record)
    assert [row.value for row in sink.records[1:]] == [1, 2]
    desk.tell(Go(["numbers"]))
    assert [row.value for row in sink.records[1:]] == [1, 2, 3, 4]
    assert sink.records[0] == "of before"


def test_sink_takes_rows_back_even_before_the_first_epoch(tmp_path: Path) -> None:
    feed, sink = Feed([1, 2]), Here()
    desk = Desk(tmp_path, straight(feed, sink), vault=Shelf(), lasting=False)
    desk.start(1)
    assert sink.values == [1, 2]
    desk.start(2, go=False)
    assert sink.values == []
    desk.tell(Go(["numbers"]))
    assert sink.values == [1, 2]


@pytest.mark.parametrize("lasting", [True, False])
def test_flow_that_is_stopped_shows_what_its_sinks_have(tmp_path: Path, *, lasting: bool) -> None:
    """With a checkpoint it will, when it goes on."""
    feed, shown = Feed([1]), Shown()
    desk = Desk(tmp_path, straight(feed, shown), vault=Shelf(), lasting=lasting)
    desk.start(1)
    desk.tell(mark(5))
    desk.tell(Commit(5))
    feed.batches += [[2]]
    desk.tell(mark(6))  # which is not committed
    feed.batches += [[3]]
    desk.turn()
    desk.tell(Stop())
    desk.runner.close()
    assert dict(shown.applied) == ({5: [1]} if lasting else {5: [1], 6: [2], 7: [3]})


def test_orphan_shows_nothing_that_its_successor_will(tmp_path: Path) -> None:
    shown = Shown()
    desk = Desk(tmp_path, straight(Feed([1]), shown), vault=Shelf(), lasting=False)
    desk.start(1)
    desk.around.alone = True
    desk.around.clock += 1_000_000
    with pytest.raises(Orphaned):
        desk.runner.run(lambda _: None)
    assert shown.applied == []


def test_flow_that_does_not_recover_keeps_nothing(tmp_path: Path) -> None:
    vault, sink = Shelf(), Here()
    desk = Desk(tmp_path, straight(Feed([1, 2]), sink), vault=vault, lasting=False)
    desk.start(1, recovers=False)
    desk.tell(mark(5))
    assert (sink.values, vault.files, desk.said(Stored)) == ([1, 2], {}, [])


def test_messages_of_the_next_attempt_carry_its_number(tmp_path: Path) -> None:
    desk = Desk(tmp_path, straight(Feed([1], None), Shown()), vault=Shelf())
    desk.start(1)
    desk.start(2)
    desk.tell(Commit(0, ended=True))
    assert {message.attempt for message in desk.said(Applied)} == {2}


def test_state_that_is_read_is_told(tmp_path: Path) -> None:
    flow = Flow("counting")
    words = flow.source("numbers", Feed(), schema=int).isolate()
    words.group_by("value AS word").count(name="counts")
    plan = Plan.of(flow)
    vault = Shelf()
    desk = Desk(tmp_path, plan, task=1, vault=vault)
    desk.start(1)
    frames = Desk(tmp_path, plan, vault=Shelf())
    frames.start(1)
    frames.tell(mark(1))
    desk.post.inbox += [frame for number, frame in frames.post.sent if number == 1]
    desk.turn()
    record = stored(desk, 1)
    assert record.files
    desk.start(2, epoch=1, record=record)
    total = sum(ref.size for ref in record.files)
    assert desk.said(Restoring)[-1] == Restoring(1, 2, total, total)


# --------------------------------------------------------------------- marks


def test_marks_that_others_have_made_are_made_when_as_much_is_read_again(tmp_path: Path) -> None:
    feed = Feed([1, 2], [])
    desk = Desk(tmp_path, pair(feed, Shown()), vault=Shelf())
    desk.start(marks=[mark(4, commit=False), mark(5)], counts={"numbers": 3}, epoch=3)
    assert desk.frames(1) == [(Kind.DATA, 1)]
    desk.tell(mark(6, commit=False))  # the next one has to wait as well
    assert (Kind.MARK, 1) not in desk.frames(1)
    feed.batches += [[3]]
    desk.turn()
    kinds = [kind for kind, _ in desk.frames(1)]
    assert kinds == [Kind.DATA, Kind.DATA, Kind.MARK, Kind.MARK, Kind.MARK]
    assert stored(desk, 5).positions["numbers"][1] == 3


def test_marks_are_made_at_once_if_nothing_has_to_be_read_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, pair(Feed([1]), Shown()), vault=Shelf())
    desk.start(marks=[mark(4)], counts={"numbers": 0}, epoch=3)
    assert stored(desk, 4)


def test_mark_that_is_said_twice_is_made_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path, pair(Feed(), Shown()), vault=Shelf())
    desk.start(marks=[mark(4)], epoch=3)
    desk.tell(mark(4), mark(5), mark(5), mark(4))
    assert [kind for kind, _ in desk.frames(1)] == [Kind.MARK, Kind.MARK]
    assert [message.epoch for message in desk.said(Stored)] == [4, 5]


def test_paused_source_reads_no_more_and_makes_marks(tmp_path: Path) -> None:
    feed = Feed([1])
    desk = Desk(tmp_path, pair(feed, Shown()), vault=Shelf())
    desk.start()
    desk.tell(PauseReading())
    feed.batches += [[2]]
    desk.tell(mark(1))
    assert stored(desk, 1).positions["numbers"][1] == 1


def test_paused_source_that_went_back_catches_up_first(tmp_path: Path) -> None:
    """The marks that are due cannot be made before, and the last epoch not without them."""
    feed = Feed([1], [2], [3], [4], [5])
    desk = Desk(tmp_path, pair(feed, Shown()), vault=Shelf())
    desk.start(marks=[mark(4)], counts={"numbers": 3}, epoch=3, go=False)
    desk.tell(Go(["numbers"]), PauseReading())
    assert stored(desk, 4).positions["numbers"][1] == 3
    desk.tell(mark(5))
    assert stored(desk, 5).positions["numbers"][1] == 3


# --------------------------------------------------------------------- sending again


def test_others_that_begin_anew_are_sent_again_what_came_after_the_epoch(tmp_path: Path) -> None:
    feed = Feed([1])
    desk = Desk(tmp_path, pair(feed, Shown()), vault=Shelf())
    desk.start(1)
    desk.tell(mark(1))
    feed.batches += [[2], [3]]
    desk.turn()
    before = desk.frames(1)
    assert before == [(Kind.DATA, 1), (Kind.MARK, 1), (Kind.DATA, 1), (Kind.DATA, 1)]
    desk.tell(Commit(1))
    desk.post.sent.clear()
    desk.tell(Replay(["at 0", "elsewhere"], [1, 2], 1))
    assert desk.post.ways[1] == "elsewhere"
    assert desk.frames(1) == [(Kind.DATA, 2), (Kind.DATA, 2)]
    desk.tell(Replay(["at 0", "elsewhere"], [1, 2], 1))  # said twice
    assert desk.frames(1) == [(Kind.DATA, 2), (Kind.DATA, 2)]
    feed.batches += [[4]]
    desk.turn()
    assert desk.frames(1)[2:] == [(Kind.DATA, 2)]


def test_others_that_do_not_begin_anew_are_left_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, pair(Feed([1]), Shown()), vault=Shelf())
    desk.start(1)
    desk.post.sent.clear()
    desk.tell(Replay(["at 0", "at 1"], [1, 1], 0))
    assert desk.frames(1) == []


# --------------------------------------------------------------------- the end


def test_task_leaves_when_its_end_is_committed(tmp_path: Path) -> None:
    shown = Shown()
    desk = Desk(tmp_path, straight(Feed([1], None), shown), vault=Shelf())
    desk.start(1)
    (last,) = desk.said(Stored)
    assert last.record.ended
    assert not desk.runner.over
    desk.tell(Commit(7, ended=False))  # one that its end is no part of
    assert not desk.runner.over
    desk.tell(Commit(8, ended=True))
    assert desk.runner.over
    desk.runner.close()
    assert shown.values == [1]
    (end,) = desk.said(Ended)
    assert (end.task, end.attempt) == (0, 1)
    (source,) = end.sources  # it may have brought more since it was last asked
    assert (source.count, source.ended) == (1, True)
    assert [message.epoch for message in desk.said(Applied)] == [7, 8]


def test_task_without_a_checkpoint_leaves_when_all_that_it_sent_is_processed(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, pair(Feed([1], None), Shown()))
    desk.start(1)
    sent = [frame for number, frame in desk.post.sent if number == 1]
    headers = [parse(frame) for frame in sent]
    assert [Kind(header[KIND]) for header in headers] == [Kind.DATA, Kind.END]
    for header, frame in zip(headers, sent, strict=True):
        assert not desk.runner.over
        given = {"exchange": header[EXCHANGE], "sender": 0, "attempt": header[4]}
        desk.post.inbox.append(make_frame(Kind.CREDIT, records=len(frame), **given))
        desk.turn()
    assert desk.runner.over
    desk.runner.close()
    assert [(end.task, end.attempt) for end in desk.said(Ended)] == [(0, 1)]


def test_link_that_is_down_is_told_of_once_and_in_the_end_its_receiver_is_given_up(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, pair(Feed([1]), Shown()), silent_s=30.0)
    desk.start(1)

    def look(seconds: float | None) -> None:
        desk.post.broken = {} if seconds is None else {1: seconds}
        desk.around.clock += 100_000
        desk.turn()

    look(1.0)
    assert not desk.said(Unreachable)
    for seconds in (5.0, 20.0, 31.0, 32.0):
        look(seconds)
    assert desk.said(Unreachable) == [Unreachable(0, 1, 1, lost=False), Unreachable(0, 1, 1)]
    assert not desk.said(Reached)
    look(None)
    assert desk.said(Reached) == [Reached(0, 1, 1)]


def test_receiver_that_was_given_up_in_a_former_attempt_is_given_up_again(tmp_path: Path) -> None:
    """The driver does not take what a former attempt says, and this one would wait for ever."""
    desk = Desk(tmp_path, pair(Feed([1]), Shown()), vault=Shelf(), silent_s=30.0)
    desk.post.broken = {1: 31.0}
    for attempt in (1, 2):
        desk.start(attempt)
        desk.around.clock += 100_000
        desk.turn()
        assert desk.said(Unreachable)[-1] == Unreachable(0, attempt, 1)


def test_frames_that_were_sent_again_count_for_the_attempt_in_which_they_were(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, straight(Feed([1]), Shown()), vault=Shelf(), metrics=True)
    for attempt, before, after in ((1, 0, 3), (2, 5, 6)):
        desk.post.sent_again = before
        desk.start(attempt)
        desk.post.sent_again = after
        desk.around.clock += 100_000
        desk.turn()
        report = decode_report(desk.said(Report)[-1].data)
        assert (report.attempt, report.frames_again) == (attempt, after - before)


def test_link_to_a_sender_is_watched_as_well_and_that_to_the_driver_is_not(tmp_path: Path) -> None:
    """Who gets no credit stands still, and nobody else would know why."""
    desk = Desk(tmp_path, pair(Feed([1]), Shown()), task=1, vault=Shelf(), silent_s=30.0)
    desk.start(1)
    desk.post.broken = {0: 31.0, DRIVER: 31.0}
    desk.around.clock += 100_000
    desk.turn()
    assert desk.said(Unreachable) == [Unreachable(1, 1, 0, lost=False), Unreachable(1, 1, 0)]


def test_task_that_is_stopped_has_not_ended(tmp_path: Path) -> None:
    feed = Feed([1])
    desk = Desk(tmp_path, straight(feed, Shown()), vault=Shelf())
    desk.start(1)
    desk.tell(Stop())
    assert desk.runner.over
    desk.runner.close()
    assert desk.said(Ended) == []
    assert feed.closed == 1


def test_failure_says_which_launch_it_was(tmp_path: Path) -> None:
    desk = Desk(tmp_path, straight(Feed(), Shown()), launch=2, patience_s=1.0)
    desk.around.clock += 30_000_000
    desk.runner.run(lambda milliseconds: None)
    (failed,) = desk.said(Failed)
    assert (failed.task, failed.launch, failed.problem) == (0, 2, "the driver did not answer")


def test_person_is_told_once_what_is_in_the_way_and_once_that_it_is_not(tmp_path: Path) -> None:
    vault = Shelf()
    desk = Desk(tmp_path, straight(Feed([1]), Shown()), vault=vault, metrics=True)
    desk.start(1)
    vault.full = 1
    desk.tell(mark(1))
    stage = desk.runner.stage
    assert desk.said(Warned) == [Warned(0, f"{stage}/0: the shelf is full")]
    desk.around.clock += 60_000_000
    desk.turn()
    assert desk.said(Warned)[1:] == [Warned(0, f"{stage}/0: goes on")]
    assert stored(desk, 1)
    assert decode_report(desk.said(Report)[-1].data).state_keys == 0  # there is none to be kept


class Impatient(Fifo):
    """Drops all that waits if it is more than a record."""

    def shed(self, now: int, records: int) -> Iterable[Queued]:
        while records > 1 and self.waiting:
            records -= self.waiting[-1].records
            yield self.waiting.pop()


def test_policy_sheds_while_the_task_cannot_work(tmp_path: Path) -> None:
    # It was asked before each step, and there is none while those after the task have enough.
    flow = Flow("three")
    middle = flow.source("numbers", schema=int).isolate().map("value", name="middle").isolate()
    middle.to(Shown(), name="out")
    plan = Plan.of(flow, Configuration(Tuning(b_out=1)))
    desk = Desk(tmp_path, plan, task=1, policy=Impatient)
    sender = Task(plan, plan.stages[0], 0, lambda _, frame: desk.post.inbox.append(frame))
    desk.start(0)
    task = desk.runner.task
    assert task is not None
    (lane,) = task.lanes
    lane.window = 1
    for number in (1, 2, 3, 4, 5):
        sender.feed("numbers", [(0, None, number)], 0)
        desk.turn()
    assert task.blocked  # by the first, which nobody has taken yet
    assert (task.records_in, task.dropped, task.inbox.records) == (1, 3, 1)
