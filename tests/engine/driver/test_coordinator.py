"""The coordinator, as a machine: messages in, messages out, and no task in sight."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway.core import errors
from floodway.engine.control.messages import (
    Ask,
    Beat,
    Drain,
    Ended,
    Failed,
    Go,
    Hello,
    InputEnded,
    Message,
    Pulse,
    Ready,
    Restoring,
    SourceTime,
    SourceTimes,
    Start,
    Stop,
    Stuck,
    Wait,
    Warned,
)
from floodway.engine.driver.actions import Action, Tell
from floodway.engine.driver.coordinator import Coordinator
from floodway.engine.transport.numbering import Numbering
from floodway.plan import Plan
from tests.engine.driver.leading import Fake, goes, preloading, pulses, simple, source_time, told

# --------------------------------------------------------------------- the start


def test_tasks_start_when_all_have_come_and_read_when_all_are_ready() -> None:
    fake = Fake(simple())
    count = fake.count
    assert len(fake.lead.roster.missing) == count
    for task in reversed(range(1, count)):
        assert fake.hello(task) == []
    assert fake.lead.roster.missing == [(fake.plan.stages[0].name, 0)]
    assert told(fake.tick(), Wait).keys() == {*range(1, count)}  # the driver is there
    assert fake.tick() == []
    started = fake.hello(0)
    start = Start([f"at {task}/0" for task in range(count)], [1] * count, recovers=False)
    assert started == [Tell(task, start) for task in range(count)]
    assert fake.lead.state == "opening"
    for task in range(1, count):
        assert fake.ready(task) == []
    assert fake.ready(0) == [Tell(task, Go(["one", "two"])) for task in range(count)]
    assert fake.lead.state == "running"
    assert fake.lead.roster.missing == []
    assert fake.lead.roster.address(0) == "at 0/0"
    assert fake.lead.roster.processes[0] == ("here", 100 + count - 1)
    assert fake.lead.roster.process(0) == ("here", 100)


def test_nothing_is_known_of_a_task_that_has_not_come() -> None:
    roster = Fake(simple()).lead.roster
    assert (roster.address(0), roster.process(0), roster.processes) == (None, None, [])


def test_message_that_comes_twice_starts_nothing_twice() -> None:
    fake = Fake(simple())
    for _ in range(2):
        assert fake.hello(0) == []
    assert fake.start()
    assert fake.ready(0) == []
    assert fake.hello(0) == []


def test_state_that_is_read_is_shown_until_the_task_is_ready() -> None:
    fake = Fake(simple())
    for task in range(fake.count):
        fake.hello(task)
    fake.say(Restoring(1, fake.attempts[1], 30, 100))
    fake.say(Restoring(1, fake.attempts[1], 60, 100))
    assert fake.lead.restoring == {1: (60, 100)}
    fake.ready(1)
    assert fake.lead.restoring == {}


# --------------------------------------------------------------------- stream time


def test_stream_time_is_that_of_the_slowest_source() -> None:
    fake = Fake(simple())
    fake.start()
    told = pulses(fake.answer(one=500, two=300))
    assert set(told) == {fake.number("one"), fake.number("two")}
    assert {pulse.stream_time for pulse in told.values()} == {300}
    assert {pulse.epoch for pulse in told.values()} == {1}
    assert {pulse.clock for pulse in told.values()} == {fake.now}
    assert not any(pulse.commit for pulse in told.values())  # without a checkpoint
    assert (fake.lead.stream_time, fake.lead.epoch) == (300, 1)


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        (500, None, None),  # two has brought nothing yet
        (500, (None, 10_000, False), 500),  # and is idle
        (500, (300, 9_999, False), 300),  # not idle yet
        (500, (300, 10_000, False), 500),
        (500, (300, 0, True), 500),  # ended
        ((500, 10_000, False), (300, 0, True), 500),  # idle, and no further than this one is
        ((300, 10_000, False), (500, 0, True), 300),
        ((300, 10_000, False), (500, 10_000, False), 300),  # all idle: no further than the first
        ((300, 0, True), (500, 0, True), 500),  # all have ended: the largest
        ((None, 10_000, False), (None, 10_000, False), None),
    ],
)
def test_idle_and_ended_sources_hold_nothing_back(one: Any, two: Any, expected: int | None) -> None:
    fake = Fake(simple())
    fake.start()
    told = pulses(fake.answer(one=one, two=two))
    assert [pulse.stream_time for pulse in told.values()] == [expected] * 2


def test_stream_time_never_goes_back() -> None:
    fake = Fake(simple())
    fake.start()
    fake.answer(one=500, two=(None, 10_000, False))
    told = pulses(fake.answer(one=600, two=100))
    assert {(pulse.epoch, pulse.stream_time) for pulse in told.values()} == {(2, 500)}


def test_people_are_told_that_a_source_came_back_behind_stream_time() -> None:
    fake = Fake(simple())
    fake.start()
    fake.answer(one=90_000, two=(1_000, 10_000, False))
    assert fake.lead.warnings == []
    fake.answer(one=90_000, two=1_000)  # asked anew, and nothing has come
    assert fake.lead.warnings == []
    fake.answer(one=90_000, two=1_000, counts={"two": 1})
    fake.answer(one=90_000, two=1_000, counts={"two": 2})
    assert fake.lead.returns == {"two": 1}
    (warning,) = fake.lead.warnings
    assert warning.startswith("two was idle and is back: what it brings is 89.0 s behind")


def test_no_question_before_the_last_is_answered_by_all() -> None:
    fake = Fake(simple())
    fake.start()
    one, two = fake.number("one"), fake.number("two")
    assert fake.tick() == [Tell(one, Ask(1)), Tell(two, Ask(1))]
    assert fake.progress(one, 1) == []
    assert fake.tick() == []
    assert len(pulses(fake.progress(two, 1))) == 2
    assert fake.tick(by=100)[0] == Tell(one, Ask(2))
    assert fake.progress(one, 1) == []  # an answer to an old question


def test_slow_source_is_waited_for_although_an_ended_one_has_answered() -> None:
    """Each further question would make the answer that is on its way worthless."""
    fake = Fake(simple())
    fake.start()
    fake.tick()
    one, two = fake.number("one"), fake.number("two")
    fake.progress(one, 1, [SourceTime("one", 5, 0, ended=True)])
    fake.ended(one)
    assert fake.tick() == []
    assert fake.tick() == []
    told = pulses(fake.progress(two, 1, [SourceTime("two", 9, 0, ended=False)]))
    assert told == {two: Pulse(1, 9, fake.now)}


def test_end_of_the_last_that_had_not_answered_makes_the_mark() -> None:
    fake = Fake(simple())
    fake.start()
    fake.tick()
    one, two = fake.number("one"), fake.number("two")
    fake.progress(one, 1, [SourceTime("one", 5, 0, ended=False)])
    assert pulses(fake.ended(two)) == {one: Pulse(1, 5, fake.now)}


def test_questions_come_at_the_pulse_and_not_before() -> None:
    fake = Fake(simple())
    assert fake.tick() == []
    fake.start()
    assert fake.tick(by=99) == []
    assert len(fake.tick(by=1)) == 2


# --------------------------------------------------------------------- preloaded tables


def test_other_sources_wait_for_preloaded_tables() -> None:
    fake = Fake(preloading())
    assert {sources[0] for sources in goes(fake.start()).values()} == {"prices.changelog"}
    plan = fake.plan
    loading = [e for e in plan.exchanges if e.number in plan.fed_by(plan.preloaded)]
    assert loading
    for exchange in loading[:-1]:
        task = fake.numbering.number(exchange.receiver, 0)
        assert fake.input_ended(task, exchange.number) == []
    last = loading[-1]
    told = fake.input_ended(fake.numbering.number(last.receiver, 0), last.number)
    assert told == [Tell(task, Go(["orders"])) for task in range(fake.count)]
    assert fake.input_ended(0, last.number) == []


def test_source_that_has_to_wait_is_not_idle() -> None:
    """A table that loads for long must not let stream time run ahead of who waits for it."""
    fake = Fake(preloading())
    fake.start()
    times: dict[str, Any] = {"prices.changelog": 99_000, "orders": (None, 60_000, False)}
    assert {pulse.stream_time for pulse in pulses(fake.answer(**times)).values()} == {None}
    for exchange in fake.plan.exchanges:
        fake.input_ended(fake.numbering.number(exchange.receiver, 0), exchange.number)
    times = {"prices.changelog": (99_000, 0, True), "orders": 500}
    assert {pulse.stream_time for pulse in pulses(fake.answer(**times)).values()} == {500}


# --------------------------------------------------------------------- the end


def test_flow_has_ended_when_all_tasks_have() -> None:
    fake = Fake(simple())
    fake.start()
    for task in range(fake.count):
        assert not fake.lead.over
        fake.ended(task)
    assert fake.lead.state == "ended"
    assert fake.lead.over
    assert fake.tick() == []
    assert fake.lead.stop() == []
    assert fake.lost(0) == []


def test_drained_flow_reads_no_more_and_ends() -> None:
    fake = Fake(simple())
    fake.start()
    one, two = fake.number("one"), fake.number("two")
    fake.ended(two)
    assert fake.lead.drain() == [Tell(one, Drain())]
    assert fake.lead.drain() == []
    assert fake.lead.state == "draining"
    assert pulses(fake.answer(one=700))  # time goes on until the end
    for task in range(fake.count):
        fake.ended(task)
    assert fake.lead.state == "ended"


def test_flow_that_has_not_started_is_stopped_instead_of_drained() -> None:
    fake = Fake(simple())
    fake.hello(1)
    assert fake.lead.drain() == [Tell(1, Stop())]
    assert fake.lead.state == "stopping"


def test_stop_reaches_who_is_there() -> None:
    fake = Fake(simple())
    fake.start()
    fake.ended(0)
    assert fake.lead.stop() == [Tell(task, Stop()) for task in range(1, fake.count)]
    assert fake.lost(fake.number("counts")) == []  # no loss while stopping
    for task in range(1, fake.count):
        fake.ended(task)
    assert fake.lead.state == "ended"


def test_first_failure_is_kept_and_stops_all_others() -> None:
    fake = Fake(simple())
    fake.start()
    told = fake.failed(0, "OperatorError", "it broke", "mend it", "counts", "flow.py", 3)
    assert told == [Tell(task, Stop()) for task in range(fake.count)]
    fake.failed(1, "EngineError", "then this", "too")
    failure = fake.lead.failure
    assert type(failure) is errors.OperatorError
    assert (failure.problem, failure.remedy, failure.operator) == ("it broke", "mend it", "counts")
    assert str(failure.place).endswith("flow.py:3")
    for task in range(fake.count):
        fake.ended(task)
    assert fake.lead.state == "failed"


@pytest.mark.parametrize("kind", ["Place", "Iterator", "nothing", "__name__", "locating"])
def test_failure_of_a_kind_that_is_no_error_is_an_engine_error(kind: str) -> None:
    fake = Fake(simple())
    fake.start()
    fake.failed(0, kind, "it broke", "mend it")
    assert type(fake.lead.failure) is errors.EngineError


def test_lost_task_is_a_failure_unless_it_had_ended() -> None:
    fake = Fake(simple())
    fake.start()
    fake.ended(fake.number("one"))
    assert fake.lost(fake.number("one"), "its job is over") == []
    assert fake.lead.state == "running"
    told = fake.lost(fake.number("two"), "killed")
    assert told == [Tell(task, Stop()) for task in range(1, fake.count)]
    assert fake.lead.state == "failed"
    assert "task 0 of the stage two was lost: killed" in str(fake.lead.failure)
    assert "--checkpoint" in str(fake.lead.failure)


def test_loss_of_another_launch_is_none_of_ours() -> None:
    fake = Fake(simple())
    fake.start()
    assert fake.lead.lost(0, 1, "killed") == []
    assert fake.lead.state == "running"


def test_process_that_was_replaced_is_a_loss_without_a_checkpoint() -> None:
    """Spark may run a task again by itself; what it had taken is gone all the same."""
    fake = Fake(simple())
    fake.start()
    fake.pids[0] = 999
    assert fake.hello(0) == [Tell(task, Stop()) for task in range(fake.count)]
    assert fake.lead.state == "failed"
    assert "task 0 of the stage one was lost" in str(fake.lead.failure)


def test_silence_is_no_loss_without_a_checkpoint() -> None:
    fake = Fake(simple())
    fake.start()
    fake.say(Beat(0, 0, 100))
    assert fake.tick(by=1_000_000) == [Tell(0, Ask(1)), Tell(1, Ask(1))]


def test_error_of_the_driver_stops_all() -> None:
    fake = Fake(simple())
    fake.start()
    error = errors.EngineError("no", remedy="yes")
    assert fake.lead.fail(error)
    assert fake.lead.failure is error
    assert fake.lead.fail(errors.EngineError("again", remedy="no")) == []


def test_warnings_are_kept() -> None:
    fake = Fake(simple())
    assert fake.say(Warned(0, "slow")) == []
    assert fake.lead.warnings == ["slow"]


# --------------------------------------------------------------------- any order

PLANS: list[Plan] = [simple(), simple(2), preloading()]


def messages(plan: Plan) -> st.SearchStrategy[Message]:
    count = Numbering(plan).count
    tasks = st.integers(0, count - 1)
    numbers = st.just(1) | st.integers(0, 2)  # attempts, of which the first is the right one
    launches = st.just(0) | st.integers(0, 1)
    names = st.sampled_from([source.name for source in plan.graph.sources])
    times = st.builds(
        source_time, names, st.tuples(st.none() | st.integers(0, 99), st.integers(0, 20_000),
        st.booleans())
    )  # fmt: skip
    exchanges = st.integers(0, len(plan.exchanges))
    return st.one_of(
        st.builds(Hello, tasks, launches, st.just("a"), st.just(1), st.just("here")),
        st.builds(Ready, tasks, numbers),
        st.builds(SourceTimes, tasks, numbers, st.integers(0, 5), st.lists(times, max_size=2)),
        st.builds(InputEnded, tasks, numbers, exchanges),
        st.builds(Ended, tasks, numbers),
        st.builds(Warned, tasks, st.just("hm")),
        st.builds(Stuck, tasks, st.integers(0, 2), st.sampled_from(["is stuck", ""])),
        st.builds(Failed, tasks, launches, st.just("EngineError"), st.just("no"), st.just("yes")),
    )


@settings(max_examples=150)
@given(st.data(), st.sampled_from(PLANS))
def test_any_order_of_messages_ends(data: st.DataObject, plan: Plan) -> None:
    lead = Coordinator(plan, pulse_ms=10)
    count = Numbering(plan).count
    calls: dict[str, Callable[[], list[Action]]] = {
        "drain": lead.drain,
        "stop": lead.stop,
        "lost": lambda: lead.lost(0, 0, "gone"),
    }
    events = data.draw(
        st.lists(
            st.one_of(messages(plan), st.integers(1, 30), st.sampled_from(sorted(calls))),
            max_size=40,
        )
    )
    now, time, epoch = 0, None, 0
    for event in events:
        if isinstance(event, int):
            now += event
            actions = lead.tick(now)
        elif isinstance(event, str):
            actions = calls[event]()
        else:
            actions = lead.take(event, now)
        assert all(isinstance(action, Tell) for action in actions)  # nothing is begun again
        assert all(0 <= action[0] < count for action in actions)
        marks = {(p.epoch, p.stream_time) for p in pulses(actions).values()}
        assert len(marks) <= 1  # a mark carries the same time everywhere
        for number, stream_time in marks:
            assert number == epoch + 1
            assert time is None or (stream_time is not None and stream_time >= time)
            epoch, time = number, stream_time
        assert (lead.failure is not None) == (lead.state == "failed")
    for task in range(count):
        lead.take(Ended(task, 1), now)
    assert lead.over
    assert lead.tick(now + 1000) == []
