"""The leader: what the coordinator wants is done, in order, and records are written or given up."""

from pathlib import Path
from typing import Any

import pytest

from floodway.core.errors import DiskFullError, EngineError
from floodway.engine.control.messages import (
    Applied,
    Beat,
    Commit,
    Ended,
    Go,
    Hello,
    Offer,
    Ready,
    Report,
    Start,
    Stop,
    Throttle,
    Tune,
    Warned,
    to_frame,
)
from floodway.engine.control.report import encode_report
from floodway.engine.driver.actions import Launch, Tell
from floodway.engine.driver.leader import RETRY_MS
from floodway.engine.transport.frame import Kind, make_frame
from tests.engine.control.reports import report
from tests.engine.driver.leading import EPOCH_MS
from tests.engine.driver.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def full() -> DiskFullError:
    return DiskFullError("no room on the disk", remedy="make some")


# --------------------------------------------------------------------- messages


def test_tasks_are_told_where_they_listen(stage: Stage) -> None:
    stage.start()
    told = stage.told(Go)
    assert [to for to, _ in told] == [f"at {task}/0" for task in stage.tasks]
    stage.lose(3)
    stage.hello(3)
    ((to, start),) = stage.told(Start)
    assert to == "at 3/1"
    assert start.addresses[3] == "at 3/1"


def test_task_that_is_not_there_is_told_nothing(stage: Stage) -> None:
    stage.leader.carry_out([Tell(0, Stop())], 0)
    assert stage.post.sent == []


def test_lost_task_is_launched_again(stage: Stage) -> None:
    stage.start()
    stage.lose(3)
    assert stage.launched == [(3, 1)]
    stage.leader.carry_out([Launch(2, 7)], 0)
    assert stage.launched[1:] == [(2, 7)]


def test_what_cannot_be_read_is_dropped_with_a_warning(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.post.inbox.append(make_frame(Kind.CONTROL, b"\xc1"))
    stage.hello(0)
    assert "a message was dropped" in caplog.text
    assert stage.lead.roster.address(0) == "at 0/0"  # and what follows is heard


def test_reports_go_to_the_board(stage: Stage) -> None:
    numbers = report("one", records_in=7, attempt=1)
    stage.say(Report(0, encode_report(numbers)))
    assert stage.reports == [numbers]


def test_who_was_replaced_says_nothing_that_counts(stage: Stage) -> None:
    # A process that was stopped, and woke before its successor had said anything, was believed.
    stage.start()
    offer = Offer(0, 1, 1, "a block", [(0, 0)], b"")
    stage.say(offer)
    stage.lose(0)
    stage.say(Report(0, encode_report(report("one", records_in=7, attempt=1))), offer)
    assert stage.reports == []
    assert stage.offers == [offer]


def test_warnings_are_logged_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.say(Warned(0, "it is slow"))
    stage.turn()
    assert [record.message for record in caplog.records] == ["it is slow"]


def test_orders_from_outside_are_carried_out(stage: Stage) -> None:
    stage.start()
    stage.told(Go)
    stage.leader.orders.append(lambda leader: leader.coordinator.stop())
    stage.turn()
    assert len(stage.told(Stop)) == 4


def test_latecomers_are_told_to_stop(stage: Stage) -> None:
    for task in (0, 1):
        stage.hello(task)
    stage.lead.stop()
    stage.post.sent.clear()
    stage.post.inbox += [to_frame(Hello(2, 0, "at 2/0", 2, "here")), to_frame(Beat(0, 0, 0))]
    stage.leader.hear_the_rest(0)
    assert stage.post.sent == [("at 2/0", Stop())]


# --------------------------------------------------------------------- wishes


def test_wishes_reach_all_and_later_those_who_begin_anew(stage: Stage) -> None:
    stage.start()
    stage.told(Go)
    wish = Tune("counts", 5, None)
    stage.leader.orders.append(lambda leader: leader.wish(wish))
    stage.turn()
    assert [message for _, message in stage.told(Tune)] == [wish] * 4
    stage.lose(3)
    stage.hello(3)
    stage.post.sent.clear()
    stage.say(Ready(3, 2))
    to_lost = [message for to, message in stage.post.sent if to == "at 3/1"]
    assert to_lost == [wish, Go(["one", "two"])]


WISHES = {
    "throttled again": [Throttle("one", 0.5), Throttle("one", None), Throttle("one", 0.7)],
    "not throttled any more": [Throttle("one", 0.5), Throttle("one", 0.7), Throttle("one", None)],
    "tuned in parts": [Tune("counts", 5, None), Tune("counts", 7, 3), Tune("counts", 9, None)],
    "tuned apart": [Tune("counts", 5, None), Tune("counts", None, 3), Tune("both", 1, None)],
}


@pytest.mark.parametrize("wishes", WISHES.values(), ids=WISHES)
def test_last_wish_counts_for_those_who_begin_anew(
    stage: Stage, wishes: list[Tune | Throttle]
) -> None:
    for wish in wishes:
        stage.leader.wish(wish)
    stage.start()
    heard = [m for to, m in stage.post.sent if to == "at 0/0" and isinstance(m, Tune | Throttle)]
    assert settings_of(heard) == settings_of(wishes)
    assert len(heard) <= len(wishes)


def settings_of(wishes: list[Any]) -> dict[Any, Any]:
    """Return what a task has in the end that hears these wishes in this order."""
    found: dict[Any, Any] = {}
    for wish in wishes:
        if isinstance(wish, Throttle):
            found[wish.source] = wish.per_second
        else:
            given = {"b_out": wish.b_out, "linger": wish.linger_us}
            found |= {(wish.operator, k): v for k, v in given.items() if v is not None}
    return found


# --------------------------------------------------------------------- records


def test_epoch_that_all_have_stored_is_written_and_then_committed(stage: Stage) -> None:
    stage.start()
    pulse = stage.mark(by=EPOCH_MS, latest=70)
    assert pulse.commit
    stage.store(pulse.epoch)
    record = stage.commits.latest()
    assert record is not None
    assert (record.flow, record.epoch, record.attempt) == ("simple", pulse.epoch, 1)
    assert (record.stream_time, record.clock_ms, record.finished) == (70, stage.now, False)
    assert [(task.stage, task.index) for task in record.tasks] == list(stage.lead.names.values())
    assert [message for _, message in stage.told(Commit)] == [Commit(pulse.epoch)] * 4


def test_record_has_the_stream_time_of_its_own_mark(stage: Stage) -> None:
    """Sources that go on from there have not read yet what later marks came after."""
    stage.start()
    pulse = stage.mark(by=EPOCH_MS, latest=70)
    stage.store(pulse.epoch, 0, 1, 2)
    assert stage.mark(latest=9000).stream_time == 9000
    stage.store(pulse.epoch, 3)
    record = stage.commits.latest()
    assert record is not None
    assert (record.epoch, record.stream_time) == (pulse.epoch, 70)


def test_record_that_finds_no_room_is_written_later(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.start()
    pulse = stage.mark(by=EPOCH_MS)
    stage.vault.errors = [full(), full()]
    stage.store(pulse.epoch)
    assert stage.lead.writing == pulse.epoch
    assert (stage.told(Commit), stage.vault.tried) == ([], 1)
    stage.turn(by=RETRY_MS - 1)
    assert stage.vault.tried == 1
    stage.turn(by=1)
    assert stage.vault.tried == 2
    assert stage.lead.committed == 0
    stage.turn(by=RETRY_MS)
    assert stage.lead.committed == pulse.epoch
    assert len(stage.told(Commit)) == 4
    assert caplog.text.count("no room") == 1


def test_full_disk_is_warned_of_again_after_it_had_room(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.start()
    for _ in range(2):
        pulse = stage.mark(by=EPOCH_MS)
        stage.vault.errors = [full()]
        stage.store(pulse.epoch)
        stage.turn(by=RETRY_MS)
        stage.told(Commit)
    assert len([record for record in caplog.records if "no room" in record.message]) == 2


def test_record_that_was_given_up_meanwhile_is_not_written(stage: Stage) -> None:
    stage.start()
    pulse = stage.mark(by=EPOCH_MS)
    stage.vault.errors = [full()]
    stage.store(pulse.epoch)
    stage.lose(3)
    stage.turn(by=RETRY_MS)
    assert stage.vault.tried == 1
    assert stage.commits.latest() is None
    stage.hello(3)
    stage.attempts[3] = 2
    stage.say(Ready(3, 2))
    stage.turn(by=RETRY_MS)
    assert stage.lead.committed == 0
    stage.store(pulse.epoch, 3)  # the new attempt has got there
    record = stage.commits.latest()
    assert record is not None
    assert (record.epoch, record.attempt) == (pulse.epoch, 2)


def test_record_that_is_to_be_written_anew_replaces_the_one_that_waited(stage: Stage) -> None:
    stage.start()
    pulse = stage.mark(by=EPOCH_MS)
    stage.vault.errors = [full(), full()]
    stage.store(pulse.epoch)
    stage.lose(3)
    stage.hello(3)
    stage.attempts[3] = 2
    stage.say(Ready(3, 2))
    stage.store(pulse.epoch, 3)
    assert stage.lead.writing == pulse.epoch
    stage.turn(by=RETRY_MS)
    assert stage.lead.committed == pulse.epoch
    assert stage.vault.tried == 4  # the last is the note that there is a record
    record = stage.commits.latest()
    assert record is not None
    assert record.attempt == 2
    assert len(stage.told(Commit)) == 4


def test_record_that_cannot_be_written_at_all_fails_the_flow(stage: Stage) -> None:
    stage.start()
    stage.vault.errors = [EngineError("the disk is read-only", remedy="let it be written")]
    stage.store(stage.mark(by=EPOCH_MS).epoch)
    assert stage.lead.state == "failed"
    assert "read-only" in str(stage.lead.failure)
    assert len(stage.told(Stop)) == 4
    assert stage.lead.committed == 0


def test_flow_that_was_drained_stops_when_its_last_epoch_is_written(stage: Stage) -> None:
    stage.start()
    stage.leader.orders.append(lambda leader: leader.coordinator.drain())
    stage.turn()
    for _ in range(2):  # the second knows that the first is shown
        assert stage.told(Stop) == []
        pulse = stage.mark()
        assert pulse.commit
        stage.vault.errors = [full()]
        stage.store(pulse.epoch)
        stage.turn(by=RETRY_MS)
        stage.say(*(Applied(task, 1, pulse.epoch) for task in stage.tasks))
    assert stage.lead.state == "stopping"
    assert len(stage.told(Stop)) == 4


def test_driver_that_stood_still_takes_nobody_for_silent(stage: Stage) -> None:
    """What the tasks have said meanwhile may come a moment later than the driver wakes up."""
    stage.start()
    stage.mark()
    stage.turn(by=100_000)
    assert stage.launched == []
    for _ in range(400):
        stage.turn(by=100)
    assert len(stage.launched) > 0  # now they are silent


# --------------------------------------------------------------------- links that are down


def cut(stage: Stage, task: int, seconds: float) -> None:
    """Let nothing have reached a task for so long, and all tasks be heard of nevertheless."""
    stage.post.broken = {task: seconds}
    stage.now += 1000
    stage.say(*(Beat(each, n, 100 * n + each) for each, n in stage.launches.items()))


def test_task_that_the_driver_cannot_reach_is_told_of_once_and_in_the_end_replaced(
    stage: Stage,
) -> None:
    """It hears no orders and gets no credits, and says all the time that it is well."""
    stage.start()
    cut(stage, 3, 1.0)
    assert stage.lead.warnings == []
    for seconds in (5.0, 20.0):
        cut(stage, 3, seconds)
    name = "{}/{}".format(*stage.lead.names[3])
    assert stage.lead.warnings == [f"the link driver -> {name} is down; trying again"]
    assert stage.launched == []
    for seconds in (31.0, 32.0):
        cut(stage, 3, seconds)
    assert stage.launched == [(3, 1)]
    assert f"the link driver -> {name} is down" in stage.lead.warnings[1]


def test_flow_without_recovery_fails_if_the_driver_cannot_reach_a_task(tmp_path: Path) -> None:
    stage = Stage(tmp_path, recovery=False)
    stage.start()
    for seconds in (5.0, 31.0):
        cut(stage, 3, seconds)
    with pytest.raises(EngineError, match=r"the link driver -> .*/0 is down"):
        raise stage.lead.failure or AssertionError


def test_successor_that_cannot_be_reached_either_is_given_up_in_its_turn(stage: Stage) -> None:
    stage.start()
    cut(stage, 3, 31.0)
    stage.launches[3] = 1
    stage.hello(3)
    for seconds in (3.0, 31.0):
        cut(stage, 3, seconds)
    assert stage.launched == [(3, 1), (3, 2)]


def test_task_that_has_left_need_not_be_reached(stage: Stage) -> None:
    stage.start()
    stage.say(Ended(3, 1))
    for seconds in (5.0, 31.0):
        cut(stage, 3, seconds)
    assert (stage.lead.warnings, stage.launched) == ([], [])


def test_driver_that_stood_still_gives_connections_time_to_come_back(stage: Stage) -> None:
    stage.start()
    stage.turn(by=100)
    stage.post.broken = {3: 100.0}
    stage.turn(by=100_000)
    assert stage.launched == []
    for _ in range(8):
        cut(stage, 3, 100.0)
    assert stage.launched == [(3, 1)]
