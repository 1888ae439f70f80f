"""What tasks report becomes loads: of a real plan's tasks, with rows that really went through."""

import pytest

from floodway import Flow
from floodway.engine.control.report import BatchCounts, SourceProgress, TaskReport, decode_report
from floodway.engine.datastream.reporting import Reporter
from floodway.engine.datastream.task import ASK_EVERY
from floodway.engine.metrics.window import ReportWindows
from floodway.engine.program.mark import Mark
from floodway.engine.scheduler.loads import StageLoad, Topology
from floodway.engine.scheduler.observing import Observer
from floodway.engine.scheduler.switch_range import magnification, switch_range
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan
from tests.engine.control.reports import Said, report
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
        self.windows = ReportWindows()
        self.observer = Observer(plan, self.windows, Said())
        self.now = 0
        self.reporters = {task.number: Reporter(task, 0) for task in self.net.tasks}
        self.report()

    def report(self) -> list[TaskReport]:
        self.now += TICK_US
        found = []
        for task in self.net.tasks:
            data = self.reporters[task.number].report(self.now, "running", None, {}, bad_frames=0)
            found.append(decode_report(data))
            self.windows.of(task.stage.name, task.index).take(found[-1])
        return found

    def feed(self, source: str, rows: list[str]) -> None:
        (task,) = self.net.of(source)
        task.feed(source, [(0, None, row) for row in rows], self.now)
        task.flush()
        self.net.settle()
        self.report()

    def loads(self) -> dict[str, StageLoad]:
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
    observer = Observer(branching(), ReportWindows(), Said())
    assert observer.loads() == []


def single() -> Plan:
    flow = Flow("single")
    flow.source("views", schema=str).map("upper(value)", name="loud")
    return Plan.of(flow)


def loaded(*reports: TaskReport, paradigms: Said) -> StageLoad:
    """Return the load of a stage whose only task has reported this."""
    windows = ReportWindows()
    for each in reports:
        windows.of("views", 0).take(each)
    (load,) = Observer(single(), windows, paradigms).loads()
    return load


def test_paradigm_of_a_load_is_that_of_its_owner() -> None:
    seen = [report(at=at, records_in=int(100 * at), busy_s=at) for at in (1.0, 1.1)]
    assert loaded(*seen, paradigms=Said()).paradigm == "data"
    assert loaded(*seen, paradigms=Said(views=["operation"])).paradigm == "operation"


def test_what_was_measured_in_micro_batches_is_no_rate_of_the_data_paradigm() -> None:
    """Even if the task has gone back since."""
    seen = [
        report(
            at=at,
            records_in=int(1000 * at),
            busy_s=at,
            paradigm="operation",
            batches=BatchCounts(int(10 * at), int(1000 * at), processed_us=int(500_000 * at)),
        )
        for at in (1.0, 1.1)
    ]
    load = loaded(*seen, paradigms=Said())
    assert load.data_per_s is None
    assert load.operation_per_s == pytest.approx(2000)


def test_what_an_attempt_says_that_was_replaced_is_no_load() -> None:
    new = [report(at=at, attempt=2, records_in=int(100 * at)) for at in (1.0, 1.1)]
    late = report(at=1.2, attempt=1, records_in=1_000_000)
    assert loaded(*new, late, paradigms=Said()) == loaded(*new, paradigms=Said())


def sources(*tasks: list[TaskReport]) -> Observer:
    """Return what is seen of a stage with several tasks that have reported this."""
    flow = Flow("several")
    flow.source("views", schema=str).map("upper(value)", name="loud")
    windows = ReportWindows()
    for index, reports in enumerate(tasks):
        for each in reports:
            windows.of("views", index).take(each)
    plan = Plan.of(flow, Configuration(Tuning(dop=len(tasks))))
    return Observer(plan, windows, Said())


def test_task_that_has_ended_is_no_part_of_the_load() -> None:
    # What it had read at last was added for the rest of the run.
    ended = [report("views", 0, at=at, records_in=int(5000 * at)) for at in (1.0, 1.1)]
    ended.append(report("views", 0, at=1.15, records_in=6000, state="ended"))
    there = [report("views", 1, at=at, records_in=int(100 * at), busy_s=at) for at in (1.0, 1.1)]
    (load,) = sources(ended, there).loads()
    assert load.arrival_per_s == pytest.approx(100)
    assert load.tasks == 1
    assert sources(ended).loads() == []


def test_what_micro_batches_carry_is_not_counted_across_attempts() -> None:
    # The successor counts from zero: for two seconds the rate was below zero, and the flood sent
    # back to where it could not be carried.
    def saturated(attempt: int, at: float, records: int) -> TaskReport:
        return report(
            "views",
            0,
            at=at,
            attempt=attempt,
            busy_s=at,
            paradigm="operation",
            batches=BatchCounts(int(10 * at), records, processed_us=1),
            source=SourceProgress(None, None, None, ended=False, behind=True),
        )

    windows = ReportWindows()
    window = windows.of("views", 0)
    observer = Observer(single(), windows, Said(views=["operation"]))
    rates = []
    for tick in range(80):
        attempt, at = (1, tick / 20) if tick < 40 else (2, tick / 20)
        window.take(saturated(attempt, at, int(1000 * (at if attempt == 1 else at - 1.95))))
        rates += [load.operation_per_s for load in observer.loads()]
    known = [rate for rate in rates if rate is not None]
    assert min(known[-20:]) == pytest.approx(1000, rel=0.1)
    assert min(known) > 0
