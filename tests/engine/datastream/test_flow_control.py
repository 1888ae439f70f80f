"""Flow control: what is on its way is bounded, credit comes back, and nothing is lost."""

from collections import Counter, deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Flow
from floodway.engine.datastream.task import LOCAL
from floodway.engine.program.mark import Mark
from floodway.engine.program.wiring import lane_window
from floodway.engine.transport.frame import KIND, RECORDS, Kind, make_frame, parse
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan
from tests.engine.datastream.net import WINDOW, Net


def chain(dop: int, b_out: int) -> Plan:
    flow = Flow("chain")
    numbers = flow.source("numbers", schema=str).isolate()
    keyed = numbers.map(lambda v: v + "!", schema=str, name="slow").isolate()
    keyed.key_by("length(value) AS size").group_by("value AS text").count(name="counts")
    return Plan.of(flow, Configuration(Tuning(dop=dop, b_out=b_out)))


@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(1, 50), st.randoms(use_true_random=False))
def test_slow_consumer_bounds_what_is_on_its_way(dop: int, b_out: int, random: Any) -> None:
    net = Net(chain(dop, b_out))
    rest = deque(f"{number:0200}" for number in range(3000))
    sources, fed = net.of("numbers"), Counter[str]()
    rounds = 0
    while rest:
        rounds += 1
        assert rounds < 100_000, "the flow is stuck"
        for source in sources:
            net.deliver(source)
            if not source.blocked and rest:
                values = [rest.popleft() for _ in range(min(len(rest), 100))]
                fed.update(values)
                source.feed("numbers", [(0, None, value) for value in values], 0)
                source.flush()
        # One step's output: what was fed at once, or what one step takes from the inbox.
        assert all(lane.outstanding <= lane.window + 1100 * 320 for lane in net.lanes())
        for task in net.tasks:
            if task not in sources and random.random() < 0.3:  # consumers are slow
                net.work(task)
    net.settle()
    counted = Counter[str]()
    for task in net.of("counts"):
        assert task.inbox.bytes == 0
        view = task.program.node("counts").kernel
        counted.update({key: row[1] for key, row in view.rows().items()})  # type: ignore[attr-defined]
    assert counted == Counter(f"{value}!" for value in fed)
    assert sum(counted.values()) == 3000


def test_source_stops_when_its_receiver_does_nothing_and_goes_on_afterwards() -> None:
    net = Net(chain(1, 10))
    (source,), (slow,) = net.of("numbers"), net.of("slow")
    fed = 0
    while not source.blocked:
        source.feed("numbers", [(0, None, "x" * 1000)] * 10, 0)
        fed += 10
    (lane,) = source.outlets[0].lanes
    assert lane.window < lane.outstanding <= lane.window + 10 * 1100
    net.work(slow, steps=1000)
    credits = [parse(f) for number, f in net.sent if parse(f)[KIND] == Kind.CREDIT]
    assert credits, "nothing was given back"
    net.deliver(source)
    assert not source.blocked
    assert lane.outstanding + sum(header[RECORDS] for header in credits) == sum(
        len(frame) for number, frame in net.sent if number == slow.number
    )
    assert slow.records_in == fed


def test_what_is_not_given_back_never_blocks_a_sender() -> None:
    net = Net(chain(1, 1))
    (source,) = net.of("numbers")
    for _ in range(2000):
        source.feed("numbers", [(0, None, "x" * 100)], 0)
        for task in net.tasks:
            net.work(task, steps=10)
        net.deliver(source)
        assert not source.blocked
        (lane,) = source.outlets[0].lanes
        assert lane.outstanding <= lane.window // 4 + 200


def test_credit_from_nobody_and_too_much_credit_do_no_harm() -> None:
    net = Net(chain(1, 1))
    (source,) = net.of("numbers")
    source.feed("numbers", [(0, None, "x")], 0)
    (lane,) = source.outlets[0].lanes
    for exchange, sender, size in ((99, 0, 5), (lane.exchange, 9, 5), (lane.exchange, 0, 2**31)):
        frame = make_frame(Kind.CREDIT, exchange=exchange, sender=sender, records=size)
        source.receive(parse(frame), frame)
    assert lane.outstanding == 0


def test_window_is_divided_among_all_senders() -> None:
    plan = chain(4, 1)
    stage = plan.stage_of("counts")
    assert lane_window(plan, stage, 0, 1024 * 1024) == 1024 * 1024 // 4
    assert lane_window(plan, stage, 0, 0) == WINDOW
    forward = plan.stage_of("slow")
    assert lane_window(plan, forward, 0, 1024 * 1024) == 1024 * 1024


def test_frame_from_a_stranger_is_not_taken() -> None:
    net = Net(chain(1, 1))
    (slow,) = net.of("slow")
    for exchange, sender in ((0, 5), (77, 0)):
        frame = make_frame(Kind.DATA, b"\x90", exchange=exchange, sender=sender, records=1)
        slow.receive(parse(frame), frame)
    assert (slow.inbox.records, slow.frames_in) == (0, 0)


# --------------------------------------------------------------------- ends and marks


def windows(dop: int) -> Plan:
    from floodway import emit, tumbling

    flow = Flow("windows")
    counts = flow.source("clicks", schema=str).group_by("value AS page").window(tumbling(10))
    counts.count(name="counts").changes(emit=emit.final()).to("out")
    return Plan.of(flow, Configuration(Tuning(dop=dop)))


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("finals", [(True, True), (True, False), (False, False)])
def test_end_is_final_only_if_it_is_of_all_senders(finals: tuple[bool, bool], last: int) -> None:
    """A split that was drained must not close windows because another has come to its end."""
    net = Net(windows(2))
    sources = net.of("clicks")
    sources[0].feed("clicks", [(1, None, "home")], 0)
    order = [1 - last, last]
    for index in order:
        sources[index].end_source("clicks", 0, final=finals[index])
        net.settle()
        for task in net.of("counts"):
            net.work(task, steps=10)
    out = [row for task in net.of("out") for row in task.program.sinks["out"].collect()]
    assert bool(out) == all(finals)
    assert all(task.ended for task in net.tasks)


@pytest.mark.parametrize("drained", ["left", "right"])
@pytest.mark.parametrize("last", ["left", "right"])
def test_operator_with_a_drained_input_is_not_finished(drained: str, last: str) -> None:
    from floodway import emit, tumbling

    flow = Flow("merged")
    left, right = (flow.source(name, schema=str) for name in ("left", "right"))
    counts = left.merge(right).group_by("value AS page").window(tumbling(10)).count(name="counts")
    counts.changes(emit=emit.final()).to("out")
    net = Net(Plan.of(flow))
    net.of("left")[0].feed("left", [(1, None, "home")], 0)
    for name in sorted(("left", "right"), key=lambda name: name == last):
        net.of(name)[0].end_source(name, 0, final=name != drained)
        for _ in range(5):
            for task in net.tasks:
                net.work(task, steps=10)
    assert all(task.ended for task in net.tasks)
    assert [row for task in net.of("out") for row in task.program.sinks["out"].collect()] == []


def test_mark_waits_for_sources_and_for_other_tasks() -> None:
    flow = Flow("both")
    far = flow.source("far", schema=int).isolate()
    near = flow.source("near", schema=int)
    near.merge(far).to("out")
    net = Net(Plan.of(flow))
    (upstream,), (task,) = net.of("far"), net.of("near")
    task.pulse(1, Mark(stream_time=5))
    task.step(0)
    assert task.holds_sources
    assert task.epoch == 0
    upstream.pulse(1, Mark(stream_time=5))
    upstream.step(0)
    net.work(task)
    assert not task.holds_sources
    assert (task.epoch, task.stream_time) == (1, 5)
    assert LOCAL in task.alignment.open
    task.pulse(2, Mark(stream_time=3))
    upstream.end_source("far", 0)
    net.work(task, steps=5)
    assert (task.epoch, task.stream_time) == (2, 5)  # stream time never goes back
