"""The coordinator, as a machine: messages in, messages out, and no task in sight."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Flow
from floodway.core import errors
from floodway.engine.control import (
    Ask,
    Drain,
    Ended,
    Failed,
    Go,
    Hello,
    InputEnded,
    Message,
    Progress,
    Pulse,
    Ready,
    SourceTime,
    Start,
    Stop,
    Warned,
)
from floodway.engine.coordinator import Action, Coordinator
from floodway.engine.datastream.task import Numbering
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan


def simple(dop: int = 1) -> Plan:
    """Two sources that are merged and counted; the sources stand alone."""
    flow = Flow("simple", idle="10s")
    one = flow.source("one", schema=str).isolate()
    two = flow.source("two", schema=str).isolate()
    one.merge(two, name="both").group_by("value AS word").count(name="counts")
    return Plan.of(flow, Configuration(Tuning(dop=dop)))


def preloading() -> Plan:
    flow = Flow("preload", idle="10s")
    prices = flow.table("prices", schema=int, key=str, preload=True)
    orders = flow.source("orders", schema=str)
    orders.join(prices, on="value", joiner=lambda o, p: p, schema=int, name="joined").to("out")
    return Plan.of(flow)


class Fake:
    """The tasks of a plan as far as the coordinator sees them."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.lead = Coordinator(plan, pulse_ms=100)
        self.numbering = Numbering(plan)
        self.now = 0

    def number(self, operator: str, index: int = 0) -> int:
        return self.numbering.number(self.plan.stage_of(operator).name, index)

    def say(self, message: Message) -> list[Action]:
        return self.lead.take(message, self.now)

    def start(self) -> list[Action]:
        """Let all tasks come and be ready; return what they are told then."""
        for task in range(self.numbering.count):
            self.say(Hello(task, f"at {task}", 100 + task, "here"))
        actions: list[Action] = []
        for task in range(self.numbering.count):
            actions += self.say(Ready(task))
        return actions

    def tick(self, by: int = 100) -> list[Action]:
        self.now += by
        return self.lead.tick(self.now)

    def answer(self, **times: tuple[int | None, int, bool] | int | None) -> list[Action]:
        """Answer the question that is due: per source its latest time, silence, whether ended."""
        asked = self.tick()
        told: list[Action] = []
        for task, ask in asked:
            assert isinstance(ask, Ask)
            sources = [
                source_time(name, given)
                for name, given in times.items()
                if self.number(name) == task
            ]
            told += self.say(Progress(task, ask.number, sources))
        return told


def source_time(name: str, given: Any) -> SourceTime:
    latest, silent, ended = given if isinstance(given, tuple) else (given, 0, False)
    return SourceTime(name, latest, silent, ended)


def pulses(actions: list[Action]) -> dict[int, Pulse]:
    return {task: message for task, message in actions if isinstance(message, Pulse)}


# --------------------------------------------------------------------- the start


def test_tasks_start_when_all_have_come_and_read_when_all_are_ready() -> None:
    fake = Fake(simple())
    count = fake.numbering.count
    assert len(fake.lead.missing) == count
    for task in reversed(range(1, count)):
        assert fake.say(Hello(task, f"at {task}", task, "here")) == []
    assert fake.lead.missing == [(fake.plan.stages[0].name, 0)]
    assert fake.tick() == []
    started = fake.say(Hello(0, "at 0", 0, "here"))
    addresses = [f"at {task}" for task in range(count)]
    assert started == [(task, Start(addresses)) for task in range(count)]
    assert fake.lead.state == "opening"
    for task in range(1, count):
        assert fake.say(Ready(task)) == []
    assert fake.say(Ready(0)) == [(task, Go(["one", "two"])) for task in range(count)]
    assert fake.lead.state == "running"
    assert fake.lead.missing == []
    assert fake.lead.address(0) == "at 0"
    assert fake.lead.processes[0] == ("here", count - 1)


def test_message_that_comes_twice_starts_nothing_twice() -> None:
    fake = Fake(simple())
    for _ in range(2):
        assert fake.say(Hello(0, "a", 1, "here")) == []
    assert fake.start()
    assert fake.say(Ready(0)) == []
    assert fake.say(Hello(0, "a", 1, "here")) == []


# --------------------------------------------------------------------- stream time


def test_stream_time_is_that_of_the_slowest_source() -> None:
    fake = Fake(simple())
    fake.start()
    told = pulses(fake.answer(one=500, two=300))
    assert set(told) == {fake.number("one"), fake.number("two")}
    assert {pulse.stream_time for pulse in told.values()} == {300}
    assert {pulse.epoch for pulse in told.values()} == {1}
    assert {pulse.clock for pulse in told.values()} == {fake.now}
    assert (fake.lead.stream_time, fake.lead.epoch) == (300, 1)


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        (500, None, None),  # two has brought nothing yet
        (500, (None, 10_000, False), 500),  # and is idle
        (500, (300, 9_999, False), 300),  # not idle yet
        (500, (300, 10_000, False), 500),
        (500, (300, 0, True), 500),  # ended
        ((500, 10_000, False), (300, 0, True), 500),  # nobody is left: the largest
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


def test_no_question_before_the_last_is_answered_by_all() -> None:
    fake = Fake(simple())
    fake.start()
    asked = fake.tick()
    assert [message for _, message in asked] == [Ask(1), Ask(1)]
    (first, _), (second, _) = asked
    assert fake.say(Progress(first, 1, [])) == []
    assert fake.tick() == []
    assert len(pulses(fake.say(Progress(second, 1, [])))) == 2
    assert fake.tick(by=100)[0][1] == Ask(2)
    assert fake.say(Progress(first, 1, [])) == []  # an answer to an old question


def test_slow_source_is_waited_for_although_an_ended_one_has_answered() -> None:
    """Each further question would make the answer that is on its way worthless."""
    fake = Fake(simple())
    fake.start()
    fake.tick()
    one, two = fake.number("one"), fake.number("two")
    fake.say(Progress(one, 1, [SourceTime("one", 5, 0, ended=True)]))
    fake.say(Ended(one))
    assert fake.tick() == []
    assert fake.tick() == []
    told = pulses(fake.say(Progress(two, 1, [SourceTime("two", 9, 0, ended=False)])))
    assert told == {two: Pulse(1, 9, fake.now)}


def test_end_of_the_last_that_had_not_answered_makes_the_mark() -> None:
    fake = Fake(simple())
    fake.start()
    fake.tick()
    one, two = fake.number("one"), fake.number("two")
    fake.say(Progress(one, 1, [SourceTime("one", 5, 0, ended=False)]))
    assert pulses(fake.say(Ended(two))) == {one: Pulse(1, 5, fake.now)}


def test_questions_come_at_the_pulse_and_not_before() -> None:
    fake = Fake(simple())
    assert fake.tick() == []
    fake.start()
    assert fake.tick(by=99) == []
    assert len(fake.tick(by=1)) == 2


# --------------------------------------------------------------------- preloaded tables


def test_other_sources_wait_for_preloaded_tables() -> None:
    fake = Fake(preloading())
    assert {message.sources[0] for _, message in fake.start()} == {"prices.changelog"}  # type: ignore[union-attr]
    plan = fake.plan
    loading = [e for e in plan.exchanges if e.number in plan.fed_by(plan.preloaded)]
    assert loading
    for exchange in loading[:-1]:
        task = fake.numbering.number(exchange.receiver, 0)
        assert fake.say(InputEnded(task, exchange.number)) == []
    last = loading[-1]
    told = fake.say(InputEnded(fake.numbering.number(last.receiver, 0), last.number))
    assert told == [(task, Go(["orders"])) for task in range(fake.numbering.count)]
    assert fake.say(InputEnded(0, last.number)) == []


def test_source_that_has_to_wait_is_not_idle() -> None:
    """A table that loads for long must not let stream time run ahead of who waits for it."""
    fake = Fake(preloading())
    fake.start()
    times: dict[str, Any] = {"prices.changelog": 99_000, "orders": (None, 60_000, False)}
    assert {pulse.stream_time for pulse in pulses(fake.answer(**times)).values()} == {None}
    for exchange in fake.plan.exchanges:
        fake.say(InputEnded(fake.numbering.number(exchange.receiver, 0), exchange.number))
    times = {"prices.changelog": (99_000, 0, True), "orders": 500}
    assert {pulse.stream_time for pulse in pulses(fake.answer(**times)).values()} == {500}


# --------------------------------------------------------------------- the end


def test_flow_has_ended_when_all_tasks_have() -> None:
    fake = Fake(simple())
    fake.start()
    for task in range(fake.numbering.count):
        assert not fake.lead.over
        fake.say(Ended(task))
    assert fake.lead.state == "ended"
    assert fake.lead.over
    assert fake.tick() == []
    assert fake.lead.stop() == []
    assert fake.lead.lost("one", "killed") == []


def test_drained_flow_reads_no_more_and_ends() -> None:
    fake = Fake(simple())
    fake.start()
    one, two = fake.number("one"), fake.number("two")
    fake.say(Ended(two))
    assert fake.lead.drain() == [(one, Drain())]
    assert fake.lead.drain() == []
    assert fake.lead.state == "draining"
    assert pulses(fake.answer(one=700))  # time goes on until the end
    for task in range(fake.numbering.count):
        fake.say(Ended(task))
    assert fake.lead.state == "ended"


def test_flow_that_has_not_started_is_stopped_instead_of_drained() -> None:
    fake = Fake(simple())
    fake.say(Hello(1, "a", 1, "here"))
    assert fake.lead.drain() == [(1, Stop())]
    assert fake.lead.state == "stopping"


def test_stop_reaches_who_is_there() -> None:
    fake = Fake(simple())
    fake.start()
    fake.say(Ended(0))
    count = fake.numbering.count
    assert fake.lead.stop() == [(task, Stop()) for task in range(1, count)]
    assert fake.lead.lost("counts", "gone") == []  # no loss while stopping
    for task in range(1, count):
        fake.say(Ended(task))
    assert fake.lead.state == "ended"


def test_first_failure_is_kept_and_stops_all_others() -> None:
    fake = Fake(simple())
    fake.start()
    told = fake.say(Failed(0, "OperatorError", "it broke", "mend it", "counts", "flow.py", 3))
    assert told == [(task, Stop()) for task in range(fake.numbering.count)]
    fake.say(Failed(1, "EngineError", "then this", "too"))
    failure = fake.lead.failure
    assert type(failure) is errors.OperatorError
    assert (failure.problem, failure.remedy, failure.operator) == ("it broke", "mend it", "counts")
    assert str(failure.place).endswith("flow.py:3")
    for task in range(fake.numbering.count):
        fake.say(Ended(task))
    assert fake.lead.state == "failed"


@pytest.mark.parametrize("kind", ["Place", "Iterator", "nothing", "__name__", "locating"])
def test_failure_of_a_kind_that_is_no_error_is_an_engine_error(kind: str) -> None:
    fake = Fake(simple())
    fake.start()
    fake.say(Failed(0, kind, "it broke", "mend it"))
    assert type(fake.lead.failure) is errors.EngineError


def test_lost_stage_is_a_failure_unless_it_had_ended() -> None:
    fake = Fake(simple())
    fake.start()
    fake.say(Ended(fake.number("one")))
    assert fake.lead.lost("one", "its job is over") == []
    assert fake.lead.state == "running"
    assert fake.lead.lost("two", "killed")
    assert fake.lead.state == "failed"
    assert "a task of the stage two was lost: killed" in str(fake.lead.failure)


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
    names = st.sampled_from([source.name for source in plan.graph.sources])
    times = st.builds(
        SourceTime, names, st.none() | st.integers(0, 99), st.integers(0, 20_000), st.booleans()
    )
    exchanges = st.integers(0, len(plan.exchanges))
    return st.one_of(
        st.builds(Hello, tasks, st.just("a"), st.just(1), st.just("here")),
        st.builds(Ready, tasks),
        st.builds(Progress, tasks, st.integers(0, 5), st.lists(times, max_size=2)),
        st.builds(InputEnded, tasks, exchanges),
        st.builds(Ended, tasks),
        st.builds(Warned, tasks, st.just("hm")),
        st.builds(Failed, tasks, st.just("EngineError"), st.just("no"), st.just("yes")),
    )


Event = tuple[str, Any]


@settings(max_examples=150)
@given(st.data(), st.sampled_from(PLANS))
def test_any_order_of_messages_ends(data: st.DataObject, plan: Plan) -> None:
    lead = Coordinator(plan, pulse_ms=10)
    count = Numbering(plan).count
    calls: dict[str, Callable[[], list[Action]]] = {
        "drain": lead.drain,
        "stop": lead.stop,
        "lost": lambda: lead.lost(plan.stages[0].name, "gone"),
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
        assert all(0 <= task < count for task, _ in actions)
        marks = {(p.epoch, p.stream_time) for p in pulses(actions).values()}
        assert len(marks) <= 1  # a mark carries the same time everywhere
        for number, stream_time in marks:
            assert number == epoch + 1
            assert time is None or (stream_time is not None and stream_time >= time)
            epoch, time = number, stream_time
        assert (lead.failure is not None) == (lead.state == "failed")
    for task in range(count):
        lead.take(Ended(task), now)
    assert lead.over
    assert lead.tick(now + 1000) == []
