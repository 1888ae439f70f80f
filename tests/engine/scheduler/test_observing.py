"""What tasks report becomes loads: of a real plan's tasks, with rows that really went through."""

import pytest

from floodway import Flow
from floodway.engine.datastream.reporting import Reporter
from floodway.engine.datastream.task import ASK_EVERY, Mark
from floodway.engine.metrics.report import TaskReport, decode_report
from floodway.engine.scheduler.loads import Load, Topology
from floodway.engine.scheduler.observing import Observer
from floodway.engine.scheduler.switch_range import magnification, switch_range
from floodway.plan import Plan
from tests.engine.datastream.net import Net
from tests.waiting import pause

TICK_US = 100_000


def branching() -> Plan:
    """One operator makes three records of two, and its two arms go on to stages of their own."""
    flow = Flow("branching")
    words = flow.source("words", schema=str)
    letters = words.flat_map(lambda word: [word] * (1 + (len(word) > 1)), schema=str, name="twice")
    long, short = letters.branch("value like '%long%'", name="kinds")
    loud = long.map("upper(value)", name="loud").isolate()
    loud.map("lower(value)", name="soft").isolate().map("value", name="last").isolate()
    short.map("upper(value)", name="aside").isolate()
    return Plan.of(flow)


class Watched:
    """Tasks that work when told to, and an observer of their reports."""

    def __init__(self, plan: Plan) -> None:
        self.net = Net(plan)
        self.observer = Observer(plan)
        self.now = 0
        self.reporters = {task.number: Reporter(task, 0) for task in self.net.tasks}
        self.report()

    def report(self) -> list[TaskReport]:
        self.now += TICK_US
        found = []
        for task in self.net.tasks:
            data = self.reporters[task.number].report(self.now, "running", None, {}, bad_frames=0)
            found.append(decode_report(data))
            self.observer.take(found[-1])
        return found

    def feed(self, source: str, rows: list[str]) -> None:
        (task,) = self.net.of(source)
        task.feed(source, [(0, None, row) for row in rows], self.now)
        task.flush()
        self.net.settle()
        self.report()

    def loads(self) -> dict[str, Load]:
        return {load.stage: load for load in self.observer.loads()}


def test_records_are_counted_by_the_port_they_leave_through() -> None:
    plan = branching()
    watched, topology = Watched(plan), Topology.of(plan)
    # Twelve words, of which six come twice: 1.5 records for each, all of them on one arm.
    watched.feed("words", ["long", "l"] * 6)
    loads = watched.loads()
    first = topology.stages[0]
    assert loads[first].handed == {"kinds.arm_0": pytest.approx(120), "kinds.arm_1": 60}


def test_flood_on_one_arm_is_followed_as_far_as_it_goes() -> None:
    plan = branching()
    watched, topology = Watched(plan), Topology.of(plan)
    watched.feed("words", ["so long", "too long"] * 50)
    loads, first = watched.loads(), topology.stages[0]
    by_receiver = {
        link.receiver: magnification(topology, loads, link) for link in topology.leaving(first)
    }
    assert by_receiver == {"loud": pytest.approx(2), "aside": 0}
    assert switch_range(topology, loads, first) == (first, "loud", "soft", "last")


def test_rate_of_a_stage_is_that_of_all_its_tasks() -> None:
    flow = Flow("spread")
    words = flow.source("words", schema=str)
    words.group_by("value AS word").count(name="counts").changes(name="updates").to("out")
    plan = Plan.of(flow)
    watched = Watched(plan)
    watched.feed("words", ["a"] * 30)
    load = watched.loads()[plan.stage_of("words").name]
    assert load.arrival_per_s == pytest.approx(300)
    assert load.out_per_in == pytest.approx(1.0)
    (outlet,) = load.outlets
    assert outlet.records_per_s == pytest.approx(300)


def test_hop_is_measured_by_marks_that_come_back() -> None:
    plan = branching()
    watched, topology = Watched(plan), Topology.of(plan)
    first = topology.stages[0]
    watched.feed("words", ["a"])
    assert watched.loads()[first].transmit_data_s is None
    (task,) = watched.net.of("words")
    for epoch in range(1, ASK_EVERY + 1):
        task.pulse(epoch, Mark(stream_time=epoch))
        watched.net.work(task)
        pause()  # the answer has to take some time to be seen
        watched.net.settle()
    watched.report()
    assert task.sampled.hop_us > 0
    assert watched.loads()[first].transmit_data_s == pytest.approx(task.sampled.hop_us / 1e6)


def test_stage_of_which_nothing_was_heard_has_no_load() -> None:
    observer = Observer(branching())
    assert observer.loads() == []
