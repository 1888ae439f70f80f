"""Policies: what they can go by, what they can change, and what they cannot."""

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway.core.errors import EngineError
from floodway.engine.control.report import decode_report
from floodway.engine.datastream.chosen import Chosen
from floodway.engine.datastream.fifo import Fifo
from floodway.engine.datastream.inbox import Inbox
from floodway.engine.datastream.policy import Policy, Queued
from floodway.engine.datastream.reporting import Reporter
from floodway.engine.datastream.task import Task
from floodway.engine.metrics.board import Board, StageInfo
from floodway.engine.metrics.prometheus import exposition
from floodway.engine.metrics.summary import summarize
from floodway.engine.program.mark import Mark
from floodway.engine.transport.frame import parse
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan
from floodway.testing import Driver
from floodway.testing.micro_batches import MicroBatches
from tests.engine.datastream.lifo import Lifo
from tests.engine.datastream.net import Net

COMMIT = Mark(commit=True)
PAGE = Path(__file__).parents[3] / "docs" / "extending" / "policy.md"


def counting() -> fw.Flow:
    """Words are counted, and words by their count; the changes of that go to another stage."""
    flow = fw.Flow("counting")
    words = flow.source("words", schema=str).isolate()
    counts = words.group_by("value AS word").count(name="counts")
    sizes = counts.group_by("count AS size").count(name="sizes")
    sizes.changes(name="changes").isolate().to("out")
    return flow


def numbers(dop: int = 1) -> Plan:
    """Numbers go to a sink in another stage."""
    flow = fw.Flow("numbers")
    flow.source("numbers", schema=int).isolate().map("value", schema=int, name="out").to("sink")
    return Plan.of(flow, Configuration(Tuning(dop=dop, b_out=1)))


# --------------------------------------------------------------------- the order of work


@pytest.mark.parametrize(("policy", "expected"), [(Fifo, [1, 2, 3, 4]), (Lifo, [4, 3, 2, 1])])
def test_policy_says_in_which_order_frames_are_worked_on(
    policy: Callable[[], Policy], expected: list[int]
) -> None:
    net = Net(numbers(), policy=policy)
    (source,), (out,) = net.of("numbers"), net.of("sink")
    source.feed("numbers", [(0, None, number) for number in (1, 2, 3, 4)], 0)
    net.work(out)
    assert [row[2] for row in out.program.sinks["sink"].collect()] == expected


def test_default_is_the_order_of_arrival_and_nobody_is_asked() -> None:
    (out,) = Net(numbers()).of("sink")
    assert type(out.inbox) is Inbox
    (out,) = Net(numbers(), policy=type("Other", (Fifo,), {})).of("sink")
    assert type(out.inbox) is Chosen


class Flowing:
    """All tasks of the counting flow, which work when they like, in the paradigm of the moment."""

    def __init__(self, policy: Callable[[], Policy], paradigm: str, random: Random) -> None:
        self.plan = Plan.of(counting(), Configuration(Tuning(dop=2, b_out=1)))
        self.net, self._random = Net(self.plan, policy=policy), random
        self.jobs = None if paradigm == "data" else MicroBatches(self.plan, paradigm)
        self.at_end: dict[tuple[str, int], dict[Any, int]] = {}
        for task in self.net.tasks:
            if self.jobs is not None:
                self.jobs.adopt(task)
        for name in ("counts", "sizes"):
            for task in self.net.of(name):
                task.on_commit = self._noting(task, name)

    def _noting(self, task: Task, name: str) -> Callable[[int, Any], None]:
        node = task.program.node(name)
        (operator,) = node.operators

        def note(epoch: int, positions: Any) -> None:
            rows = operator.view(node.kernel, [None]).rows()
            found = {key: value for key, (_, value) in rows.items()}
            self.at_end.setdefault((name, epoch), {}).update(found)

        return note

    def feed(self, source: int, word: str) -> None:
        task = self.net.of("words")[source]
        self._form(task).feed("words", [(0, None, word)], 0)
        task.flush()
        self.some_work()

    def end_epoch(self, epoch: int) -> None:
        for task in self.net.of("words"):
            self._form(task).pulse(epoch, COMMIT)
            while task.inbox.bytes:  # what is fed once the mark is taken comes after it
                self._work(task)
            self.some_work()

    def some_work(self) -> None:
        """Let some tasks work, and others not: what waits grows, and is there to choose from."""
        for task in self.net.tasks:
            if self._random.random() < 0.3:
                self._work(task)

    def finish(self) -> None:
        while any(self.net.post.values()) or any(map(self._busy, self.net.tasks)):
            for task in self.net.tasks:
                self._work(task)

    def _busy(self, task: Task) -> bool:
        return self._work(task) or bool(task.inbox.bytes)

    def _work(self, task: Task) -> bool:
        self.net.deliver(task)
        if self.jobs is not None:
            self.jobs.switch_at_random(task)
            self.jobs.turn(task)
        worked = self._form(task).step(0)
        task.flush()
        return worked or (self.jobs is not None and self.jobs.run())

    def _form(self, task: Task) -> Any:
        return task if self.jobs is None else self.jobs.form(task)

    def shown(self) -> dict[int, int]:
        """Return the sizes as the sinks have them: what came last of each."""
        rows = [r for task in self.net.of("out") for r in task.program.sinks["out"].collect()]
        found = {change.key: change.value for _, _, change, *_ in rows}
        return {key: value for key, value in found.items() if value is not None}


@pytest.mark.parametrize("paradigm", ["data", "operation", "switching"])
@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 1), st.sampled_from("abc")), max_size=12), max_size=4
    ),
    st.randoms(use_true_random=False),
)
def test_tables_at_the_end_of_each_epoch_are_those_of_the_reference_with_lifo(
    paradigm: str, epochs: list[list[tuple[int, str]]], random: Random
) -> None:
    flowing, driver = Flowing(Lifo, paradigm, random), Driver(counting())
    expected: dict[tuple[str, int], dict[Any, int]] = {}
    for epoch, fed in enumerate(epochs, 1):
        for source, word in fed:
            driver.push("words", word, at=0)
            flowing.feed(source, word)
        for name in ("counts", "sizes"):
            expected[name, epoch] = driver.table(name).values()
        flowing.end_epoch(epoch)
    flowing.finish()
    assert flowing.at_end == expected
    # Updates of a table keep their order, whatever the policy does with records.
    assert flowing.shown() == expected.get(("sizes", len(epochs)), {})


# --------------------------------------------------------------------- what a policy can go by


class Noting(Fifo):
    """Writes down what it was given, and what time it was."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Queued] = []
        self.asked_at: list[int] = []
        self.backlogs: list[int] = []

    def put(self, waiting: Queued) -> None:
        super().put(waiting)
        self.seen.append(waiting)

    def next(self, now: int) -> Queued:
        self.asked_at.append(now)
        return super().next(now)

    def shed(self, now: int, records: int) -> Iterable[Queued]:
        self.backlogs.append(records)
        return ()


def test_policy_knows_age_size_cost_group_and_what_waits_in_all() -> None:
    policy = Noting()
    net = Net(Plan.of(counting(), Configuration(Tuning(b_out=2))), policy=lambda: policy)
    (source,), (counts,) = net.of("words"), net.of("counts")
    for now, words in ((5, "abcd"), (9, "ef")):
        counts.inbox.now = now
        source.feed("words", [(0, None, word) for word in words], 0)
        source.pulse(now, COMMIT)
        source.step(0)
        net.deliver(counts)
    assert [(w.came, w.records) for w in policy.seen] == [(5, 2), (5, 2)]  # the mark is in between
    (exchange,) = net.plan.inputs(counts.stage)
    assert {(w.cost, w.group, w.channel) for w in policy.seen} == {
        (exchange.number, None, (exchange.number, 0))
    }
    assert all(w.bytes == len(w.entry[1]) for w in policy.seen)
    for _ in range(10):
        counts.step(0)
    assert policy.asked_at == [9, 9, 9]
    assert policy.backlogs == [6, 2]  # called while there is something to choose from
    assert policy.seen[2].came == 9


@pytest.mark.parametrize(("groups", "expected"), [(2, [0, 1]), (3, [None, 2])])
def test_key_group_is_known_where_a_task_has_only_one(
    groups: int, expected: list[int | None]
) -> None:
    policies: list[Noting] = []

    def policy() -> Policy:
        policies.append(Noting())
        return policies[-1]

    flow = fw.Flow("groups", key_groups=groups)
    flow.source("words", schema=str).isolate().group_by("value AS word").count(name="counts")
    net = Net(Plan.of(flow, Configuration(Tuning(dop=2, b_out=1))), policy=policy)
    net.of("words")[0].feed("words", [(0, None, str(number)) for number in range(50)], 0)
    for task in net.of("counts"):
        net.deliver(task)
    found = [{w.group for w in each.seen} for each in policies if each.seen]
    assert found == [{group} for group in expected]


# --------------------------------------------------------------------- dropping


class Newest(Fifo):
    """Keeps so many records at most; older ones are dropped."""

    def __init__(self, most: int = 0) -> None:
        super().__init__()
        self._most = most

    def shed(self, now: int, records: int) -> Iterable[Queued]:
        while records > self._most and self.waiting:
            records -= self.waiting[0].records
            yield self.waiting.popleft()


@pytest.mark.parametrize("most", [0, 25])
def test_dropped_frames_give_credit_back_and_are_counted(most: int) -> None:
    """A sender that was blocked goes on, and each record is accounted for."""
    net = Net(numbers(), policy=lambda: Newest(most))
    (source,), (out,) = net.of("numbers"), net.of("sink")
    fed = 0
    for _ in range(3):
        while not source.blocked:
            source.feed("numbers", [(0, None, fed)], 0)
            fed += 1
        net.work(out, steps=100)
        net.deliver(source)
        assert not source.blocked
    kept = [row[2] for row in out.program.sinks["sink"].collect()]
    assert len(kept) + out.dropped == fed
    assert len(kept) == 3 * most
    assert fed - 1 in kept or not most
    counts = {each.name: each for each in out.program.counts()}["out"]
    assert (counts.records_in, counts.dropped) == (len(kept), out.dropped)
    (lane,) = source.outlets[0].lanes
    assert lane.outstanding <= lane.window // 4 + 100


def test_sender_knows_at_its_end_that_dropped_frames_are_dealt_with() -> None:
    net = Net(numbers(), policy=Newest)
    (source,), (out,) = net.of("numbers"), net.of("sink")
    source.feed("numbers", [(0, None, 1)], 0)
    source.end_source("numbers", 0)
    assert not source.taken
    net.work(out, steps=5)
    net.deliver(source)
    assert source.taken
    assert out.ended


def test_dropped_records_are_in_the_report_and_from_there_in_status_health_and_metrics() -> None:
    net = Net(numbers(), policy=lambda: Newest(1))
    (source,), (out,) = net.of("numbers"), net.of("sink")
    source.feed("numbers", [(0, None, number) for number in range(10)], 0)
    net.deliver(out)
    reporter = Reporter(out, 0)
    before = decode_report(reporter.report(0, "running", None, {}, bad_frames=0))
    assert (before.records_in, before.queue_records, before.dropped) == (10, 10, 0)
    net.work(out)
    after = decode_report(reporter.report(1, "running", None, {}, bad_frames=0))
    assert (after.records_in, after.queue_records, after.dropped) == (10, 0, 9)
    board = Board("numbers", [StageInfo(out.stage.name, ("out", "sink"), 1, "forward")])
    board.take(after)
    status = board.status(after.time)
    assert (status.totals.dropped, status.stages[0].counters.records_processed) == (9, 1)
    (reason,) = status.health.reasons
    assert (reason.kind, reason.operator, reason.records, reason.of) == ("dropped", "out", 9, 10)
    assert "out was not given 9 of 10 records" in reason.problem
    assert "9 dropped" in summarize(status, "ended")
    (line,) = [
        line
        for line in exposition(status).decode().splitlines()
        if line.startswith("floodway_operator_dropped_records_total") and 'operator="out"' in line
    ]
    assert float(line.split()[-1]) == 9


class DropsAll(Fifo):
    def shed(self, now: int, records: int) -> Iterable[Queued]:
        while self.waiting:
            yield self.waiting.popleft()


class Twice(Fifo):
    def next(self, now: int) -> Queued:
        return self.waiting[0]


@pytest.mark.parametrize("receiver", ["sizes", "out"])
def test_updates_of_a_table_and_news_of_them_cannot_be_dropped(receiver: str) -> None:
    net = Net(Plan.of(counting(), Configuration(Tuning(b_out=1))))
    net.of("words")[0].feed("words", [(0, None, "a")], 0)
    for name in ("counts", "sizes", "changes"):
        net.work(net.of(name)[0])
    (task,) = Net(net.plan, policy=DropsAll).of(receiver)
    for frame in [frame for number, frame in net.sent if number == task.number]:
        task.receive(parse(frame), frame)
    assert task.inbox.records == 1
    with pytest.raises(EngineError, match="DropsAll drops what is no record of a stream"):
        task.step(0)


def test_entry_that_is_given_up_twice_is_noticed() -> None:
    net = Net(numbers(), policy=Twice)
    (source,), (out,) = net.of("numbers"), net.of("sink")
    source.feed("numbers", [(0, None, 1), (0, None, 2)], 0)
    with pytest.raises(EngineError, match="Twice gives up an entry twice"):
        net.work(out)


# --------------------------------------------------------------------- the documentation


def test_page_shows_the_policy_that_is_tested_here() -> None:
    assert inspect.getsource(Lifo) in PAGE.read_text(encoding="utf-8")
