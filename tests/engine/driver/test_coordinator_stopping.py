"""The coordinator of a flow with a checkpoint: tables that come first, and stopping in order."""

from typing import Any

from floodway.engine.control.messages import Applied, Go, PauseReading, Stop
from floodway.engine.driver.actions import Tell
from tests.engine.driver.leading import (
    EPOCH_MS,
    Fake,
    goes,
    preloading,
    pulses,
    shown,
    simple,
    told,
)


def running() -> Fake:
    fake = Fake(simple(), every_ms=EPOCH_MS)
    fake.start()
    return fake


# --------------------------------------------------------------------- preloaded tables


def loading(fake: Fake) -> list[tuple[int, int]]:
    plan = fake.plan
    return [
        (fake.numbering.number(exchange.receiver, 0), exchange.number)
        for exchange in plan.exchanges
        if exchange.number in plan.fed_by(plan.preloaded)
    ]


def preloaded() -> Fake:
    fake = Fake(preloading(), every_ms=EPOCH_MS)
    assert set(goes(fake.start()).values()) == {("prices.changelog",)}
    return fake


def load(fake: Fake) -> list[Any]:
    return [action for pair in loading(fake) for action in fake.input_ended(*pair)]


def test_other_sources_read_when_the_tables_are_committed() -> None:
    fake = preloaded()
    assert load(fake) == []
    assert fake.lead.committed == 0
    (mark, *_) = pulses(fake.answer()).values()
    assert mark.commit  # at once: others wait for it
    actions = fake.written(fake.store_all(mark.epoch))
    assert goes(actions) == dict.fromkeys(range(fake.count), ("orders",))
    assert goes(fake.written(fake.store_all(fake.mark(commit=True)))) == {}  # once


def test_epoch_that_was_on_its_way_before_the_tables_were_complete_does_not_count() -> None:
    fake = preloaded()
    before = fake.mark(commit=True)
    load(fake)
    assert goes(fake.written(fake.store_all(before))) == {}
    (mark, *_) = pulses(fake.answer()).values()
    assert mark.commit
    assert goes(fake.written(fake.store_all(mark.epoch)))


def test_tables_are_waited_for_again_after_going_back_while_they_load() -> None:
    fake = preloaded()
    load(fake)
    ((task, _), *_) = loading(fake)
    assert set(goes(fake.recover(task)).values()) == {("prices.changelog",)}
    epoch = fake.mark(commit=True)
    assert goes(fake.written(fake.store_all(epoch))) == {}
    load(fake)
    assert goes(fake.written(fake.store_all(fake.mark(commit=True))))


def test_tables_are_not_waited_for_again_once_others_have_read() -> None:
    fake = preloaded()
    load(fake)
    fake.written(fake.store_all(fake.mark(commit=True)))
    ((task, _), *_) = loading(fake)
    for sources in goes(fake.recover(task)).values():
        assert sorted(sources) == ["orders", "prices.changelog"]


# --------------------------------------------------------------------- stopping in order


def test_flow_stops_when_the_checkpoint_knows_that_everything_is_out_of_all_sinks() -> None:
    fake = running()
    fake.commit()
    one, two = fake.number("one"), fake.number("two")
    assert fake.lead.drain() == [Tell(one, PauseReading()), Tell(two, PauseReading())]
    assert fake.lead.state == "draining"
    assert fake.lead.drain() == []
    assert shown(fake) == []  # although its time has not come
    assert shown(fake) == [Tell(task, Stop()) for task in range(fake.count)]
    assert fake.lead.state == "stopping"


def test_epoch_that_began_before_the_sources_were_stopped_is_not_the_last() -> None:
    fake = running()
    before = fake.mark(commit=True)
    fake.lead.drain()
    fake.written(fake.store_all(before))
    for task in range(fake.count):
        assert fake.applied(task, before) == []
    assert shown(fake) == []
    assert shown(fake)
    assert fake.lead.state == "stopping"


def test_what_was_applied_by_another_attempt_does_not_let_a_flow_stop() -> None:
    fake = running()
    fake.lead.drain()
    (mark, _) = pulses(fake.answer()).values()
    fake.written(fake.store_all(mark.epoch))
    counts = fake.number("counts")
    for task in set(range(fake.count)) - {0}:
        fake.applied(task, mark.epoch)
    old = fake.attempts[counts]
    fake.recover(counts)
    assert fake.say(Applied(counts, old, mark.epoch)) == []
    assert fake.applied(0, mark.epoch) == []
    assert not pulses(fake.answer()).popitem()[1].commit  # not shown yet, so no hurry
    assert fake.applied(counts, mark.epoch) == []
    assert shown(fake) == [Tell(task, Stop()) for task in range(fake.count)]


def test_drained_flow_whose_sources_have_left_ends_by_itself() -> None:
    fake = running()
    one, two = fake.number("one"), fake.number("two")
    for task in (one, two):
        fake.stored(task, 1, ended=True)
    epoch = fake.mark(commit=True)
    fake.written(fake.store_all(epoch, but=[one, two]))
    for task in (one, two):
        fake.applied(task, epoch)
        fake.ended(task)
    assert fake.lead.drain() == []
    for task in set(range(fake.count)) - {one, two}:
        actions = fake.stored(task, epoch + 1, ended=True)
    fake.written(actions)
    for task in set(range(fake.count)) - {one, two}:
        fake.applied(task, fake.lead.committed)
        fake.ended(task)
    assert fake.lead.state in ("ended", "stopping")


def test_drained_flow_reads_nothing_more_although_its_tables_are_complete() -> None:
    fake = preloaded()
    load(fake)
    fake.lead.drain()
    (mark, *_) = pulses(fake.answer()).values()
    assert told(fake.written(fake.store_all(mark.epoch)), Go) == {}


def test_flow_that_is_still_opening_is_stopped_instead_of_drained() -> None:
    fake = Fake(simple(), every_ms=EPOCH_MS)
    for task in range(fake.count):
        fake.hello(task)
    assert fake.lead.drain() == [Tell(task, Stop()) for task in range(fake.count)]
    assert fake.ready(0) == []
