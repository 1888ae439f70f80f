"""The coordinator when tasks are lost: who goes back, from where, and who sends what again."""

from typing import Any

import pytest

from floodway.core.errors import EngineError
from floodway.engine.actions import Launch, Tell
from floodway.engine.control import (
    Ask,
    Beat,
    Commit,
    Failed,
    Hello,
    Pause,
    Ready,
    Replay,
    SourceTime,
    Stop,
    Stored,
)
from floodway.engine.coordinator import MOST_TRIES
from tests.engine.leading import (
    EPOCH_MS,
    Fake,
    commits,
    forked,
    goes,
    launches,
    pulses,
    replays,
    starts,
    told,
    writes,
)


def running(dop: int = 1, **options: Any) -> Fake:
    fake = Fake(forked(dop), every_ms=EPOCH_MS, **options)
    fake.start()
    return fake


# --------------------------------------------------------------------- who goes back


@pytest.mark.parametrize(
    ("lost", "affected"),
    [
        ("one", {"one", "aside", "both", "counts"}),
        ("two", {"two", "both", "counts"}),
        ("aside", {"aside"}),
        ("both", {"both", "counts"}),
        ("counts", {"counts"}),
    ],
)
def test_lost_task_and_all_that_come_after_it_begin_anew(lost: str, affected: set[str]) -> None:
    fake = running()
    epoch = fake.commit()
    task, begin = fake.number(lost), fake.numbers(*affected)
    assert fake.lost(task) == [Launch(task, 1)]
    assert fake.lead.state == "recovering"
    assert fake.lead.recoveries == 1
    assert fake.lead.warnings == [f"{lost}/0 was lost (killed); going back to epoch {epoch}"]
    begun = starts(fake.hello(task))
    assert set(begun) == begin
    attempts = [2 if number in begin else 1 for number in range(fake.count)]
    addresses = [f"at {number}/{int(number == task)}" for number in range(fake.count)]
    for number, start in begun.items():
        assert (start.attempts, start.addresses) == (attempts, addresses)
        assert start.epoch == epoch
        assert start.record is not None
        assert start.record.progress == [1, epoch]  # what its first attempt has stored
        assert (start.record.stage, start.record.index) == fake.numbering.names[number]


def test_tasks_of_other_partitions_go_on_where_nothing_crosses() -> None:
    fake = running(dop=2)
    fake.commit()
    fake.lost(fake.number("aside", 1))
    assert set(starts(fake.hello(fake.number("aside", 1)))) == {fake.number("aside", 1)}
    fake = running(dop=2)
    fake.lost(fake.number("both", 0))
    begun = starts(fake.hello(fake.number("both", 0)))
    assert set(begun) == {fake.number("both", 0), fake.number("counts"), fake.number("counts", 1)}


def test_others_send_again_only_when_all_who_begin_are_ready() -> None:
    fake = running()
    epoch = fake.commit()
    both, counts = fake.number("both"), fake.number("counts")
    fake.lost(both)
    fake.hello(both)
    assert fake.ready(counts) == []
    assert fake.tick() == []  # no marks meanwhile
    actions = fake.ready(both)
    others = fake.numbers("one", "two", "aside")
    assert set(replays(actions)) == others
    (again, *_) = replays(actions).values()
    assert again == Replay(
        [f"at {number}/{int(number == both)}" for number in range(fake.count)],
        [fake.attempts[number] for number in range(fake.count)],
        epoch,
    )
    assert goes(actions) == dict.fromkeys((both, counts), ("one", "two"))
    assert fake.lead.state == "running"
    assert set(told(fake.tick(), Ask)) == fake.numbers("one", "two")


def test_flow_that_has_committed_nothing_goes_back_to_its_beginning() -> None:
    fake = running()
    fake.lost(0)
    for start in starts(fake.hello(0)).values():
        assert (start.epoch, start.record) == (0, None)


def test_task_that_is_lost_before_all_have_come_is_waited_for() -> None:
    fake = Fake(forked(), every_ms=EPOCH_MS)
    fake.hello(0)
    assert fake.lost(0) == [Launch(0, 1)]
    for task in range(1, fake.count):
        assert fake.hello(task) == []
    assert fake.lead.missing == [("one", 0)]
    assert set(starts(fake.hello(0))) == set(range(fake.count))
    actions = fake.all_ready(range(fake.count))
    assert set(goes(actions)) == set(range(fake.count))
    assert not replays(actions)  # nobody has sent anything


def test_task_that_is_lost_while_all_open_begins_with_all_others() -> None:
    fake = Fake(forked(), every_ms=EPOCH_MS)
    for task in range(fake.count):
        fake.hello(task)
    fake.all_ready(range(fake.count - 1))
    fake.lost(0)
    assert set(starts(fake.hello(0))) == set(range(fake.count))
    assert fake.all_ready(range(1, fake.count)) == []  # they have to be ready again
    assert set(goes(fake.ready(0))) == set(range(fake.count))
    assert fake.lead.state == "running"


# --------------------------------------------------------------------- marks that come again


def test_source_that_goes_back_makes_the_marks_again_that_others_have_made() -> None:
    fake = running()
    counts = {"one": 5, "two": 6}
    fake.commit(one=100, two=100, counts=counts)
    later = [pulses(fake.answer(one=t, two=t, counts={"one": t, "two": 9}))[0] for t in (200, 300)]
    fake.lost(fake.number("one"))
    begun = starts(fake.hello(fake.number("one")))
    assert begun[fake.number("one")].marks == later
    assert begun[fake.number("one")].counts == {"one": 300}
    for name in ("aside", "both", "counts"):
        start = begun[fake.number(name)]
        assert (start.marks, start.counts) == ([], {})  # they get them from those before them


def test_source_that_is_lost_again_before_it_caught_up_still_has_to() -> None:
    """A mark made too early would call records late that were in time before."""
    fake = running()
    fake.commit(one=100, two=100, counts={"one": 10, "two": 10})
    fake.mark(one=900, two=900, counts={"one": 90, "two": 90})
    one = fake.number("one")
    fake.recover(one)
    fake.mark(one=300, two=950, counts={"one": 30, "two": 95})  # asked while it catches up
    fake.lost(one)
    start = starts(fake.hello(one))[one]
    assert [mark.stream_time for mark in start.marks] == [900, 900]
    assert start.counts == {"one": 90}


def test_marks_are_asked_for_anew_after_going_back() -> None:
    fake = running()
    fake.tick()
    assert fake.progress(fake.number("one"), 1) == []
    fake.recover(fake.number("counts"))
    assert fake.progress(fake.number("two"), 1) == []  # the old question does not count
    assert set(told(fake.tick(), Ask)) == fake.numbers("one", "two")


def test_stream_time_does_not_go_back_with_a_source() -> None:
    fake = running()
    fake.mark(one=900, two=900)
    fake.recover(fake.number("one"))
    (mark, _) = pulses(fake.answer(one=10, two=900)).values()
    assert mark.stream_time == 900


# --------------------------------------------------------------------- epochs and losses


def test_epoch_on_its_way_goes_on_with_who_came_back() -> None:
    """Those who have not gone back need not store it again."""
    fake = running()
    epoch = fake.mark(commit=True)
    fake.store_all(epoch, but=fake.numbers("counts"))
    fake.recover(fake.number("both"))
    assert fake.stored(fake.number("counts"), epoch) == []
    (write,) = writes(fake.stored(fake.number("both"), epoch))
    assert write.epoch == epoch
    attempts = {number: record.progress[0] for number, record in write.tasks.items()}
    assert attempts == fake.attempts


def test_what_a_lost_task_has_stored_does_not_count() -> None:
    fake = running()
    epoch = fake.mark(commit=True)
    fake.store_all(epoch, but=fake.numbers("one"))
    fake.recover(fake.number("aside"))
    assert fake.stored(fake.number("one"), epoch) == []
    assert writes(fake.stored(fake.number("aside"), epoch))


def test_end_that_was_not_committed_has_to_come_again() -> None:
    fake = running()
    counts = fake.number("counts")
    fake.commit()
    fake.stored(counts, fake.lead.committed + 1, ended=True)
    fake.recover(counts)
    epoch = fake.mark(commit=True)
    assert fake.store_all(epoch, but=[counts]) == []
    (write,) = writes(fake.stored(counts, epoch))
    assert not write.tasks[counts].ended


def test_loss_while_a_record_is_written_takes_the_record_back() -> None:
    fake = running()
    epoch = fake.mark(commit=True)
    assert writes(fake.store_all(epoch))
    assert fake.lead.writing == epoch
    counts = fake.number("counts")
    fake.lost(counts)
    assert fake.lead.writing is None
    fake.hello(counts)
    assert not writes(fake.ready(counts))
    assert fake.lead.committed == 0
    (write,) = writes(fake.stored(counts, epoch))
    assert write.tasks[counts].progress == [2, epoch]


def with_one_ended() -> Fake:
    """Return a flow with a task that has ended for good, and has not left yet."""
    fake = running()
    one = fake.number("one")
    fake.stored(one, 1, ended=True)
    epoch = fake.mark(commit=True)
    fake.written(fake.store_all(epoch, but=[one]))
    return fake


def test_task_whose_end_is_committed_takes_nobody_with_it() -> None:
    fake = with_one_ended()
    one, epoch = fake.number("one"), fake.lead.committed
    fake.lost(one)
    begun = starts(fake.hello(one))
    assert set(begun) == {one}
    assert begun[one].record is not None
    assert begun[one].record.ended
    assert set(replays(fake.ready(one))) == set(range(fake.count)) - {one}
    assert fake.stored(one, epoch + 1, ended=True) == [Tell(one, Commit(epoch, ended=True))]


def test_epoch_that_was_complete_meanwhile_is_written_when_a_task_that_had_ended_is_back() -> None:
    fake = with_one_ended()
    one = fake.number("one")
    epoch = fake.mark(commit=True)
    fake.lost(one)
    assert fake.store_all(epoch, but=[one]) == []  # not while somebody begins anew
    fake.hello(one)
    (write,) = writes(fake.ready(one))
    assert (write.epoch, write.tasks[one].ended) == (epoch, True)


def test_record_that_was_taken_back_for_a_task_that_had_ended_is_written_afterwards() -> None:
    fake = with_one_ended()
    one = fake.number("one")
    epoch = fake.mark(commit=True)
    assert writes(fake.store_all(epoch, but=[one]))
    fake.lost(one)
    assert fake.lead.writing is None
    fake.hello(one)
    (write,) = writes(fake.ready(one))
    assert write.epoch == epoch


def test_task_that_has_left_is_neither_lost_nor_begun() -> None:
    fake = with_one_ended()
    one = fake.number("one")
    fake.applied(one, fake.lead.committed)
    fake.ended(one)
    assert fake.lost(one) == []
    both, counts = fake.number("both"), fake.number("counts")
    fake.lost(both)
    begun = starts(fake.hello(both))
    assert set(begun) == {both, counts}
    assert begun[both].addresses[one] == "at 0/0"
    assert set(replays(fake.all_ready(begun))) == fake.numbers("two", "aside")


# --------------------------------------------------------------------- more than one loss


def test_second_loss_lets_all_begin_again_who_were_about_to() -> None:
    fake = running()
    both, counts, aside = fake.number("both"), fake.number("counts"), fake.number("aside")
    fake.lost(both)
    fake.hello(both)
    fake.ready(counts)
    assert fake.lost(aside) == [Launch(aside, 1)]
    begun = starts(fake.hello(aside))
    assert set(begun) == {both, counts, aside}
    assert {fake.attempts[task] for task in begun} == {3}
    assert fake.all_ready([both, counts]) == []
    actions = fake.ready(aside)
    assert set(replays(actions)) == fake.numbers("one", "two")
    assert set(goes(actions)) == {both, counts, aside}


def test_same_task_may_be_lost_twice_in_a_row() -> None:
    fake = running()
    counts = fake.number("counts")
    assert fake.lost(counts) == [Launch(counts, 1)]
    fake.hello(counts)
    assert fake.lost(counts) == [Launch(counts, 2)]
    assert starts(fake.hello(counts))[counts].attempts[counts] == 3
    assert fake.ready(counts)
    assert fake.lead.state == "running"


def test_two_tasks_that_are_lost_together_begin_together() -> None:
    fake = running()
    aside, counts = fake.number("aside"), fake.number("counts")
    assert launches(fake.lost(aside) + fake.lost(counts)) == [Launch(aside, 1), Launch(counts, 1)]
    assert starts(fake.hello(counts)) == {}
    assert set(starts(fake.hello(aside))) == {aside, counts}


def test_too_many_losses_without_an_epoch_are_a_failure() -> None:
    fake = running()
    counts = fake.number("counts")
    for _ in range(MOST_TRIES):
        fake.recover(counts)
    assert told(fake.lost(counts), Stop)
    assert fake.lead.state == "failed"
    assert f"{MOST_TRIES} times since epoch 0" in str(fake.lead.failure)
    assert "what is committed is safe" in str(fake.lead.failure)


def test_losses_are_counted_anew_after_each_epoch() -> None:
    fake = running()
    for _ in range(3):
        for _ in range(MOST_TRIES):
            fake.recover(fake.number("counts"))
        fake.commit()
    assert fake.lead.state == "running"
    assert fake.lead.recoveries == 3 * MOST_TRIES


# --------------------------------------------------------------------- words from before


def test_what_old_attempts_say_is_not_heard() -> None:
    fake = running()
    counts = fake.number("counts")
    epoch = fake.mark(commit=True)
    fake.store_all(epoch, but=[counts])
    late = Stored(counts, fake.attempts[counts], epoch, fake.part(counts, epoch=epoch))
    old = fake.attempts[counts]
    fake.lost(counts)
    fake.hello(counts)
    assert fake.say(Ready(counts, old)) == []
    assert fake.lead.state == "recovering"
    fake.ready(counts)
    assert fake.say(late) == []
    assert fake.lead.writing is None


def test_what_old_launches_say_is_not_heard() -> None:
    fake = running()
    counts = fake.number("counts")
    fake.lost(counts)
    assert fake.say(Hello(counts, 0, "old", 1, "here")) == []
    assert fake.lead.address(counts) is None
    assert fake.say(Failed(counts, 0, "EngineError", "no", "yes")) == []
    assert fake.lead.failure is None
    assert fake.lead.lost(counts, 0, "said twice") == []
    assert fake.lead.recoveries == 1


def test_failure_of_the_new_process_is_a_failure() -> None:
    fake = running()
    fake.lost(0)
    assert told(fake.failed(0, "EngineError", "no", "yes"), Stop)
    assert fake.lead.state == "failed"


# --------------------------------------------------------------------- silence


def test_task_of_which_nothing_is_heard_is_lost() -> None:
    fake = running(silent_ms=5000)
    counts = fake.number("counts")
    fake.quiet = {counts}
    assert not launches(fake.tick(by=5000))
    assert launches(fake.tick(by=100)) == [Launch(counts, 1)]
    assert "silent for 5 s" in fake.lead.warnings[0]


def test_new_process_has_as_long_as_the_old_one() -> None:
    fake = running(silent_ms=5000)
    counts = fake.number("counts")
    fake.quiet = {counts}
    fake.tick(by=5001)
    fake.hello(counts)
    fake.ready(counts)
    fake.say(Beat(counts, 0))  # of the old one, which lives after all
    assert not launches(fake.tick(by=4999))
    assert launches(fake.tick(by=101)) == [Launch(counts, 2)]


def test_task_that_falls_silent_while_others_come_back_is_lost_too() -> None:
    fake = running(silent_ms=5000)
    both, counts = fake.number("both"), fake.number("counts")
    fake.lost(both)
    fake.hello(both)
    fake.ready(both)
    fake.quiet = {counts}
    for _ in range(3):
        if found := launches(fake.tick(by=2600)):
            break
    assert found == [Launch(counts, 1)]


def test_tasks_that_have_left_may_be_silent() -> None:
    fake = with_one_ended()
    one = fake.number("one")
    fake.ended(one)
    fake.quiet = {one}
    assert not launches(fake.tick(by=100_000))


# --------------------------------------------------------------------- Spark's own retry


def test_process_that_spark_has_replaced_goes_back_like_a_lost_one() -> None:
    fake = running()
    fake.commit()
    both = fake.number("both")
    fake.pids[both] = 999
    begun = starts(fake.hello(both))
    assert set(begun) == fake.numbers("both", "counts")
    assert fake.lead.state == "recovering"
    assert fake.lead.process(both) == ("here", 999)
    assert set(replays(fake.all_ready(begun))) == fake.numbers("one", "two", "aside")


def test_process_that_spark_replaces_before_it_is_ready_is_told_to_start_as_well() -> None:
    fake = running()
    both = fake.number("both")
    fake.lost(both)
    fake.hello(both)
    fake.pids[both] = 999
    begun = starts(fake.hello(both))
    assert set(begun) == fake.numbers("both", "counts")
    assert goes(fake.all_ready(begun))
    assert fake.lead.state == "running"


def test_process_that_is_replaced_again_and_again_is_a_failure() -> None:
    fake = running()
    both = fake.number("both")
    for attempt in range(MOST_TRIES + 1):
        fake.pids[both] = 1000 + attempt
        fake.hello(both)
    assert fake.lead.state == "failed"
    assert isinstance(fake.lead.failure, EngineError)


# --------------------------------------------------------------------- while it is about to stop


def test_flow_that_is_drained_while_tasks_come_back_stops_afterwards() -> None:
    fake = running()
    fake.commit()
    one = fake.number("one")
    fake.lost(one)
    assert fake.lead.drain() == [Tell(fake.number("two"), Pause())]
    begun = starts(fake.hello(one))
    actions = fake.all_ready(begun)
    assert fake.lead.state == "draining"
    assert set(told(actions, Pause)) == {one}
    order = [type(action.message) for action in actions if action.task == one]  # type: ignore[union-attr]
    assert [kind.__name__ for kind in order] == ["Go", "Pause"]  # it reads again what it had read
    (mark, _) = pulses(fake.answer()).values()
    assert mark.commit
    fake.written(fake.store_all(mark.epoch))
    for task in range(fake.count):
        fake.applied(task, mark.epoch)
    assert fake.lead.state == "stopping"


def test_task_that_is_lost_after_the_last_epoch_has_to_say_that_it_is_applied() -> None:
    fake = running()
    fake.lead.drain()
    (mark, _) = pulses(fake.answer()).values()
    actions = fake.written(fake.store_all(mark.epoch))
    assert set(commits(actions)) == set(range(fake.count))
    counts = fake.number("counts")
    for task in range(fake.count):
        if task != counts:
            assert fake.applied(task, mark.epoch) == []
    fake.recover(counts)
    assert fake.lead.state == "draining"
    following = fake.mark(commit=True)
    fake.written(fake.store_all(following))
    for task in range(fake.count):
        assert fake.lead.state == "draining"
        fake.applied(task, following)
    assert fake.lead.state == "stopping"


@pytest.mark.parametrize("end", ["stop", "fail"])
def test_nobody_is_launched_any_more_once_it_is_over(end: str) -> None:
    fake = running()
    if end == "stop":
        fake.lead.stop()
    else:
        fake.lead.fail(EngineError("no", remedy="yes"))
    assert fake.lost(0) == []
    assert fake.hello(0) == []
    assert fake.progress(0, 1, [SourceTime("one", 1, 0, ended=False)]) == []
