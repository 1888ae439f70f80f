"""The coordinator when tasks are lost: who goes back, from where, and who sends what again."""

from typing import Any

import pytest

from floodway.engine.control.messages import (
    Ask,
    Commit,
    Replay,
)
from floodway.engine.driver.actions import Launch, Tell
from tests.engine.driver.leading import (
    EPOCH_MS,
    Fake,
    forked,
    goes,
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
    assert fake.lead.roster.missing == [("one", 0)]
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
