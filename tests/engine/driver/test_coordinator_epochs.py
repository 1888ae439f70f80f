"""The coordinator of a flow with a checkpoint: how epochs begin, and how they are committed."""

from typing import Any

import pytest

from floodway.engine.checkpoint.records import CommitRecord
from floodway.engine.control.messages import Ask, Commit
from floodway.engine.driver.actions import Tell, Write
from floodway.engine.driver.cadence import SLOW_MS
from tests.engine.driver.leading import (
    EPOCH_MS,
    Fake,
    commits,
    goes,
    pulses,
    simple,
    starts,
    told,
    writes,
)


def running(**options: Any) -> Fake:
    fake = Fake(simple(), every_ms=EPOCH_MS, **options)
    fake.start()
    return fake


# --------------------------------------------------------------------- marks that end epochs


def test_mark_ends_an_epoch_when_its_time_has_come() -> None:
    fake = running()
    made = []
    for _ in range(20):
        made += [(fake.now, mark.epoch) for mark in pulses(fake.answer()).values() if mark.commit]
    assert made == [(EPOCH_MS, 10)] * 2  # for both sources; the second epoch waits for the first


def test_first_start_has_nothing_to_go_on_from() -> None:
    fake = Fake(simple(), every_ms=EPOCH_MS)
    for task in range(fake.count - 1):
        fake.hello(task)
    for start in starts(fake.hello(fake.count - 1)).values():
        assert (start.epoch, start.record, start.marks, start.counts) == (0, None, [], {})
        assert start.attempts == [1] * fake.count
    assert fake.lead.committed == 0


def test_epoch_is_written_when_every_task_has_stored_it() -> None:
    fake = running()
    epoch = fake.mark(commit=True)
    for task in range(fake.count - 1):
        assert fake.stored(task, epoch) == []
        assert fake.lead.writing is None
    (write,) = fake.stored(fake.count - 1, epoch)
    parts = {task: fake.part(task, epoch=epoch) for task in range(fake.count)}
    assert write == Write(epoch, parts, finished=False)
    assert fake.lead.writing == epoch
    assert fake.lead.committed == 0  # not before it is durable


def test_acknowledgement_that_comes_twice_writes_nothing_twice() -> None:
    fake = running()
    epoch = fake.mark(commit=True)
    assert writes(fake.store_all(epoch))
    assert fake.store_all(epoch) == []


def test_all_are_told_when_an_epoch_is_committed() -> None:
    fake = running()
    epoch = fake.mark(commit=True)
    actions = fake.written(fake.store_all(epoch))
    assert actions == [Tell(task, Commit(epoch, ended=False)) for task in range(fake.count)]
    assert (fake.lead.committed, fake.lead.writing) == (epoch, None)


@pytest.mark.parametrize("acknowledged", [0, 2, 4])
def test_one_epoch_is_on_its_way_at_a_time(acknowledged: int) -> None:
    fake = running()
    epoch = fake.mark(commit=True)
    for task in range(acknowledged):
        fake.stored(task, epoch)  # the last of them leaves it to be written
    for _ in range(30):
        assert not any(mark.commit for mark in pulses(fake.answer()).values())


def test_next_epoch_follows_at_once_if_the_last_took_long() -> None:
    fake = running()
    epoch = fake.mark(commit=True)
    for _ in range(15):
        fake.mark()
    fake.written(fake.store_all(epoch))
    assert all(mark.commit for mark in pulses(fake.answer()).values())


def test_questions_go_on_while_an_epoch_is_on_its_way() -> None:
    fake = running()
    fake.mark(commit=True)
    assert set(told(fake.tick(), Ask)) == fake.numbers("one", "two")


def test_part_of_another_epoch_does_not_count() -> None:
    fake = running()
    first = fake.commit()
    second = fake.mark(commit=True)
    assert fake.store_all(first) == []
    assert fake.store_all(second + 1) == []
    assert fake.lead.writing is None
    assert writes(fake.store_all(second))


def test_epoch_that_takes_very_long_is_worth_one_warning() -> None:
    fake = running()
    epoch = fake.mark(commit=True)
    fake.store_all(epoch, but=fake.numbers("both"))
    fake.now += SLOW_MS
    for _ in range(3):
        fake.mark()
    (warning,) = fake.lead.warnings
    assert warning == f"epoch {epoch} has been on its way for 60 s; waiting for both/0"


def test_record_that_cannot_be_written_for_long_is_worth_a_warning() -> None:
    fake = running()
    fake.store_all(fake.mark(commit=True))
    fake.now += SLOW_MS
    fake.mark()
    assert fake.lead.warnings[0].endswith("waiting for its record to be written")


# --------------------------------------------------------------------- tasks that end


def test_task_that_ended_before_the_mark_is_recorded_as_ended() -> None:
    fake = running()
    fake.commit()
    one = fake.number("one")
    assert fake.stored(one, fake.lead.committed + 1, ended=True) == []
    epoch = fake.mark(commit=True)
    actions = fake.store_all(epoch, but=[one])
    (write,) = writes(actions)
    assert {task for task, record in write.tasks.items() if record.ended} == {one}
    assert not write.finished
    assert commits(fake.written(actions)) == {
        task: Commit(epoch, ended=task == one) for task in range(fake.count)
    }


def test_task_that_ends_while_the_epoch_is_on_its_way_completes_it() -> None:
    fake = running()
    one = fake.number("one")
    epoch = fake.mark(commit=True)
    assert fake.store_all(epoch, but=[one]) == []
    (write,) = writes(fake.stored(one, 1, ended=True))
    assert write.tasks[one].ended


def test_task_that_has_passed_the_mark_is_recorded_as_it_was_there() -> None:
    """Otherwise what it did after the mark would be in the record, and its receivers' not."""
    fake = running()
    one = fake.number("one")
    epoch = fake.mark(commit=True)
    fake.stored(one, epoch)
    fake.stored(one, epoch + 1, ended=True)
    actions = fake.store_all(epoch, but=[one])
    (write,) = writes(actions)
    assert write.tasks[one] == fake.part(one, epoch=epoch)
    assert not commits(fake.written(actions))[one].ended
    following = fake.mark(commit=True)
    actions = fake.store_all(following, but=[one])
    (write,) = writes(actions)
    assert write.tasks[one] == fake.part(one, epoch=epoch + 1, ended=True)
    assert commits(fake.written(actions))[one].ended


def test_task_that_has_left_is_in_every_later_record() -> None:
    fake = running()
    one = fake.number("one")
    fake.stored(one, 1, ended=True)
    epoch = fake.mark(commit=True)
    fake.written(fake.store_all(epoch, but=[one]))
    fake.applied(one, epoch)
    fake.ended(one)
    following = fake.mark(commit=True)
    actions = fake.store_all(following, but=[one])
    (write,) = writes(actions)
    assert write.tasks[one].ended
    assert set(commits(fake.written(actions))) == set(range(fake.count)) - {one}


def test_ends_of_all_tasks_are_an_epoch_of_their_own() -> None:
    """No mark can reach anybody any more, and nobody leaves before its end is committed."""
    fake = running()
    last = fake.mark()
    for task in range(fake.count - 1):
        assert fake.stored(task, 1, ended=True) == []
    (write,) = writes(actions := fake.stored(fake.count - 1, 1, ended=True))
    assert (write.epoch, write.finished) == (last + 1, True)
    assert all(commit.ended for commit in commits(fake.written(actions)).values())
    for task in range(fake.count):
        assert not fake.lead.over
        fake.applied(task, write.epoch)
        fake.ended(task)
    assert fake.lead.state == "ended"


def test_ends_complete_an_epoch_whose_mark_reached_nobody() -> None:
    fake = running()
    epoch = fake.mark(commit=True)
    for task in range(fake.count):
        actions = fake.stored(task, 1, ended=True)
    (write,) = writes(actions)
    assert (write.epoch, write.finished) == (epoch, True)


def test_nothing_is_written_again_after_the_last_epoch() -> None:
    fake = running()
    for task in range(fake.count):
        actions = fake.stored(task, 1, ended=True)
    fake.written(actions)
    for _ in range(30):
        assert not writes(fake.answer())
    for task in range(fake.count):
        assert fake.stored(task, 1, ended=True) == [
            Tell(task, Commit(fake.lead.committed, ended=True))
        ]


# --------------------------------------------------------------------- started again


def stopped(fake: Fake, *ended: int) -> CommitRecord:
    """Commit one more epoch, in which some tasks have ended, and return its record."""
    for task in ended:
        fake.stored(task, 1, ended=True)
    epoch = fake.mark(commit=True, one=700, two=800)
    (write,) = writes(fake.store_all(epoch, but=ended))
    return fake.record(write)


def test_flow_that_is_started_again_goes_on_from_its_record() -> None:
    before = running()
    record = stopped(before)
    fake = Fake(simple(), every_ms=EPOCH_MS, record=record)
    assert (fake.lead.committed, fake.lead.epoch) == (record.epoch, record.epoch)
    assert fake.lead.stream_time == 700
    for task in range(fake.count - 1):
        fake.hello(task)
    begun = starts(fake.hello(fake.count - 1))
    for task, start in begun.items():
        assert (start.epoch, start.record) == (record.epoch, before.part(task, epoch=record.epoch))
        assert start.marks == []
    assert goes(fake.all_ready(range(fake.count))) == dict.fromkeys(begun, ("one", "two"))
    assert fake.mark() == record.epoch + 1
    assert fake.commit() > record.epoch


def test_attempts_of_a_new_run_are_nobody_elses() -> None:
    before = running()
    for _ in range(3):
        before.recover(0)
    record = stopped(before)
    assert record.attempt == 4
    for begins_after, first in ((0, 5), (3, 5), (2000, 2001)):
        again = Fake(simple(), every_ms=EPOCH_MS, record=record, attempts=begins_after)
        again.start()
        assert set(again.attempts.values()) == {first}
        assert again.lead.attempt == first


def test_clock_and_stream_time_do_not_go_back_with_a_new_run() -> None:
    before = running()
    before.now = 50_000
    record = stopped(before)
    fake = Fake(simple(), every_ms=EPOCH_MS, record=record)
    fake.start()
    (mark, _) = pulses(fake.answer(one=100, two=100)).values()
    assert (mark.stream_time, mark.clock) == (700, record.clock_ms)


def test_flow_goes_on_committing_after_a_start_with_tasks_that_had_ended() -> None:
    before = running()
    one = before.number("one")
    record = stopped(before, one)
    fake = Fake(simple(), every_ms=EPOCH_MS, record=record)
    fake.start()
    # It goes through its end again, and hears that it is known.
    assert fake.stored(one, record.epoch + 1, ended=True) == [
        Tell(one, Commit(record.epoch, ended=True))
    ]
    fake.applied(one, record.epoch)
    fake.ended(one)
    epoch = fake.mark(commit=True)
    (write,) = writes(fake.store_all(epoch, but=[one]))
    assert write.tasks[one] == before.part(one, epoch=1, ended=True)


def test_finished_flow_that_is_started_again_ends_at_once() -> None:
    before = running()
    for task in range(before.count):
        actions = before.stored(task, 1, ended=True)
    (write,) = writes(actions)
    record = before.record(write)
    assert record.finished
    fake = Fake(simple(), every_ms=EPOCH_MS, record=record)
    fake.start()
    for task in range(fake.count):
        told = fake.stored(task, record.epoch + 1, ended=True)
        assert told == [Tell(task, Commit(record.epoch, ended=True))]
        fake.applied(task, record.epoch)
        fake.ended(task)
    assert fake.lead.state == "ended"
    assert fake.lead.committed == record.epoch
