"""The coordinator when tasks are lost again and again, fall silent, or come back by themselves."""

from typing import Any

import pytest

from floodway.core.errors import EngineError
from floodway.engine.control.messages import (
    Beat,
    Failed,
    Hello,
    PauseReading,
    Reached,
    Ready,
    SourceTime,
    Stop,
    Stored,
    Stuck,
    Unreachable,
    Wait,
)
from floodway.engine.driver.actions import Launch, Tell
from floodway.engine.driver.losses import MOST_TRIES, START_MS
from tests.engine.driver.leading import (
    EPOCH_MS,
    Fake,
    commits,
    forked,
    goes,
    launches,
    pulses,
    replays,
    shown,
    starts,
    told,
)


def running(**options: Any) -> Fake:
    fake = Fake(forked(), every_ms=EPOCH_MS, **options)
    fake.start()
    return fake


# --------------------------------------------------------------------- calls that do not return


def test_task_that_is_lost_in_a_long_call_is_named_with_that_call() -> None:
    fake = running()
    both = fake.number("both")
    fake.say(Stuck(both, 0, "has been in one call for 5 s: mine, at the record 7"))
    assert fake.lead.warnings == [
        "task 0 of both has been in one call for 5 s: mine, at the record 7"
    ]
    fake.lead.lost(both, 0, "its process died")
    told = "its process died; it has been in one call for 5 s: mine, at the record 7"
    assert told in fake.lead.warnings[1]
    fake.lead.lost(both, 1, "its process died")  # its successor was in no such call
    assert "one call" not in fake.lead.warnings[-1]


def test_task_that_went_on_after_a_long_call_is_lost_without_it() -> None:
    fake = running()
    both = fake.number("both")
    fake.say(Stuck(both, 0, "has been in one call for 5 s: mine"))
    fake.say(Stuck(both, 0, ""))
    fake.lead.lost(both, 0, "its process died")
    assert len(fake.lead.warnings) == 2
    assert "one call" not in fake.lead.warnings[1]


# --------------------------------------------------------------------- links that are down


def test_task_that_another_cannot_reach_is_given_up() -> None:
    fake = running()
    both, counts = fake.number("both"), fake.number("counts")
    actions = fake.lead.take(Unreachable(both, fake.attempts[both], counts), fake.now)
    assert launches(actions) == [Launch(counts, 1)]
    assert "the link both/0 -> counts/0 is down" in fake.lead.warnings[-1]
    outdated = Unreachable(both, fake.attempts[both] + 7, counts)
    assert fake.lead.take(outdated, fake.now) == []


def test_flow_without_recovery_fails_with_the_name_of_the_link_that_is_down() -> None:
    fake = Fake(forked())
    fake.start()
    both, counts = fake.number("both"), fake.number("counts")
    fake.lead.take(Unreachable(both, fake.attempts[both], counts), fake.now)
    with pytest.raises(EngineError, match="the link both/0 -> counts/0 is down"):
        raise fake.lead.failure or AssertionError


def test_link_that_is_down_for_a_moment_is_told_of_and_so_is_that_it_is_back() -> None:
    fake = running()
    both, counts = fake.number("both"), fake.number("counts")
    down = Unreachable(both, fake.attempts[both], counts, lost=False)
    assert fake.lead.take(down, fake.now) == []
    assert fake.lead.take(Reached(both, fake.attempts[both], counts), fake.now) == []
    assert fake.lead.warnings == [
        "the link both/0 -> counts/0 is down; trying again",
        "the link both/0 -> counts/0 is up again",
    ]


def test_task_that_has_left_is_not_missed() -> None:
    fake = running()
    one, both = fake.number("one"), fake.number("both")
    fake.ended(one)
    for lost in (False, True):
        assert fake.lead.take(Unreachable(both, fake.attempts[both], one, lost), fake.now) == []
    assert fake.lead.take(Reached(both, fake.attempts[both], one), fake.now) == []
    assert fake.lead.warnings == []


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
    assert fake.lead.roster.address(counts) is None
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


def test_flow_without_recovery_fails_when_nothing_is_heard_of_a_task() -> None:
    fake = Fake(forked())
    fake.start()
    fake.quiet = {fake.number("counts")}
    assert not told(fake.tick(by=30_000), Stop)
    assert told(fake.tick(by=100), Stop)
    failure = fake.lead.failure
    assert failure is not None
    assert "task 0 of the stage counts was lost: silent for 30 s" in failure.problem
    assert "recovery" in failure.remedy


def test_new_process_has_as_long_as_the_old_one() -> None:
    fake = running(silent_ms=5000)
    counts = fake.number("counts")
    fake.quiet = {counts}
    fake.tick(by=5001)
    fake.hello(counts)
    fake.ready(counts)
    fake.say(Beat(counts, 0, 100 + counts))  # of the old one, which lives after all
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


def test_successor_that_never_says_hello_gets_a_successor() -> None:
    fake = running()
    counts = fake.number("counts")
    assert launches(fake.lost(counts)) == [Launch(counts, 1)]
    assert not launches(fake.tick(by=START_MS // 2))
    assert not launches(fake.tick(by=START_MS // 2 + 100))
    assert launches(fake.tick(by=START_MS // 2)) == [Launch(counts, 2)]


def test_successor_that_waits_for_a_slot_is_not_given_up() -> None:
    fake = running()
    counts = fake.number("counts")
    fake.lost(counts)
    for _ in range(5):
        fake.lead.queue([counts], fake.now)
        assert not launches(fake.tick(by=START_MS // 2))
    assert fake.lead.queued == [f"{fake.plan.stage_of('counts').name}/0"]
    assert sum("waits for a free slot" in text for text in fake.lead.warnings) == 1
    fake.lead.queue([], fake.now)  # it has one, and as long as anybody to come
    assert not launches(fake.tick(by=START_MS - 1))
    assert launches(fake.tick(by=2)) == [Launch(counts, 2)]


def test_those_who_wait_for_a_successor_hear_of_the_driver() -> None:
    fake = running()
    one = fake.number("one")
    fake.lost(one)
    after = fake.numbers("aside", "both", "counts")
    assert told(fake.tick(by=1000), Wait).keys() == after
    assert not told(fake.tick(by=100), Wait)
    assert told(fake.tick(by=1000), Wait).keys() == after


def test_loss_of_many_tasks_at_once_is_one_loss_of_each() -> None:
    fake = Fake(forked(dop=4), every_ms=EPOCH_MS)
    fake.start()
    assert fake.count > MOST_TRIES
    for task in range(fake.count):
        fake.lost(task)
    assert fake.lead.state == "recovering"
    fake.start()
    assert fake.lead.state == "running"


def test_tasks_that_have_left_may_be_silent() -> None:
    fake = running()
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
    assert fake.lead.roster.process(both) == ("here", 999)
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


def test_process_that_is_replaced_before_anybody_has_begun_is_as_good_as_the_first() -> None:
    for options in ({"every_ms": EPOCH_MS}, {}):
        fake = Fake(forked(), **options)
        fake.hello(0)
        fake.pids[0] = 999
        for task in range(fake.count):
            begun = starts(fake.hello(task))
        assert set(begun) == set(range(fake.count))
        assert fake.lead.roster.process(0) == ("here", 999)
        assert fake.lead.recoveries == 0


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
    assert fake.lead.drain() == [Tell(fake.number("two"), PauseReading())]
    begun = starts(fake.hello(one))
    actions = fake.all_ready(begun)
    assert fake.lead.state == "draining"
    assert set(told(actions, PauseReading)) == {one}
    order = [type(action.message) for action in actions if action.task == one]  # type: ignore[union-attr]
    assert [kind.__name__ for kind in order] == [
        "Go",
        "PauseReading",
    ]  # it reads again what it had read
    assert shown(fake) == []
    assert shown(fake)
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
    fake.now += EPOCH_MS
    assert shown(fake) == []
    assert shown(fake)
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
