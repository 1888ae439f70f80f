"""The scheduler at work: it sees what the windows hold, and its orders and the story agree."""

from pathlib import Path

import pytest

from floodway import Flow
from floodway.core.errors import OptionError
from floodway.engine.control.messages import Switch, Switched, Tune
from floodway.engine.control.report import Cost
from floodway.engine.driver.paradigms import Paradigms
from floodway.engine.metrics.window import ReportWindows
from floodway.engine.scheduler.decisions import SetBatch, SwitchTo
from floodway.engine.scheduler.live import FIRST_WARM_MS, OBSERVE_MS, LiveScheduler
from floodway.engine.scheduler.replay import recorded, replay
from floodway.engine.transport.numbering import Numbering
from floodway.model.tuning import Pin, Tuning
from floodway.plan import Configuration, Plan
from tests.engine.control.reports import report


def plan(pin: Pin) -> Plan:
    flow = Flow("live")
    views = flow.source("views", schema=str).isolate()
    views.map("upper(value)", name="loud").group_by("value AS word").count(name="counts")
    return Plan.of(flow, Configuration(Tuning(dop=2, b_out=10, paradigm=pin)))


class Live:
    """A scheduler at work, and tasks that report and do what they are told."""

    def __init__(self, pin: Pin = "auto", *, story: Path | None = None) -> None:
        self.plan = plan(pin)
        self.names = Numbering(self.plan).names
        self.windows, self.paradigms = ReportWindows(), Paradigms(self.plan)
        self.paradigms.follow(dict.fromkeys(self.names, 1))
        for task in self.names:
            self.paradigms.goes(task)
        self.scheduler = LiveScheduler(self.plan, self.windows, self.paradigms, file=story)
        self.prepared: list[str] = []
        self.now_ms = 0

    def begin(self) -> None:
        self.scheduler.begin(self.prepared.append, slots=8)

    def turn(self, arrival: int = 0) -> list[Tune | Switch]:
        """Let some time pass in which each task of the source reads what it cannot process."""
        self.now_ms += OBSERVE_MS
        at = self.now_ms / 1000
        for stage, index in self.names.values():
            come = int(arrival * at) if stage == "views" else 0
            done = min(come, int(1000 * at))
            self.windows.of(stage, index).take(
                report(
                    stage,
                    index,
                    at=at,
                    attempt=1,
                    records_in=come,
                    queue_records=come - done,
                    busy_s=at if come else 0.0,
                    idle_s=0.0 if come else at,
                    cost=Cost(done, 0, 1_000_000 * done, 0),
                    b_out={stage: 10},
                )
            )
        orders = self.scheduler.turn(self.now_ms)
        for order in orders:
            if isinstance(order, Switch):
                self.paradigms.told(order)
        return orders

    def answer(self, stage: str) -> None:
        """Let the tasks of a stage say that they have switched, the last one after 9 ms."""
        for task, (name, index) in self.names.items():
            if name == stage:
                self.paradigms.switched(Switched(task, 1, "operation", 9_000 * index))
        for settled in self.paradigms.settled():
            self.scheduler.switched(settled.stage, self.now_ms, settled.pause_us, settled.paradigm)


def test_nothing_is_ordered_before_there_are_processes_for_it() -> None:
    live = Live("operation")
    assert [live.turn() for _ in range(3)] == [[], [], []]
    live.begin()
    assert {order.stage for order in live.turn() if isinstance(order, Switch)} == {"views", "loud"}


def test_processes_are_kept_ready_for_what_may_be_switched() -> None:
    live = Live()
    live.begin()
    while live.now_ms <= FIRST_WARM_MS:
        assert live.prepared == []
        live.turn()
    live.turn()
    assert live.prepared == ["views", "loud"]


def test_pinned_stage_is_ordered_to_switch_once_and_the_story_tells_its_pause() -> None:
    live = Live()
    live.begin()
    live.turn()
    live.scheduler.pin("loud", "operation")
    assert live.turn() == [Switch("loud", "operation")]
    assert live.turn() == []
    live.answer("loud")
    assert live.turn() == []
    told = [(e.what, e.stage, e.before, e.after, e.pause_us) for e in live.scheduler.story.entries]
    assert told == [
        ("switch", "loud", "data", "operation", None),
        ("switched", "loud", "data", "operation", 9_000),
    ]


def test_all_that_is_ordered_in_a_flood_is_in_the_story_and_is_decided_again(
    tmp_path: Path,
) -> None:
    file = tmp_path / "story"
    live = Live(story=file)
    live.begin()
    orders = [order for _ in range(200) for order in live.turn(arrival=50_000)]
    live.scheduler.close()
    assert Switch("views", "operation") in orders
    lines = file.read_bytes().splitlines()
    decided = [each.decision for each in recorded(lines)]
    assert [_as_order(each) for each in decided] == orders
    assert replay(lines) == recorded(lines)


def _as_order(decision: SetBatch | SwitchTo) -> Tune | Switch:
    if isinstance(decision, SetBatch):
        return Tune(decision.operator, decision.b_out, None)
    return Switch(decision.stage, decision.paradigm)


def test_story_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="the story cannot be written"):
        Live(story=tmp_path / "nowhere" / "story")
