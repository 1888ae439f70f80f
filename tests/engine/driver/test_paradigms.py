"""Paradigms: who may be switched, who is told, and in which paradigm everybody works."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import floodway as fw
from floodway.core.errors import OptionError
from floodway.engine.control.messages import Go, Made, Offer, Ready, Report, Switch, Switched, Tune
from floodway.engine.control.report import encode_report
from floodway.engine.driver.leader import Leader
from floodway.engine.driver.paradigms import Paradigms, Settled
from floodway.engine.metrics.window import ReportWindows
from floodway.engine.scheduler.live import LiveScheduler
from floodway.engine.transport.numbering import Numbering
from floodway.model.tuning import Paradigm, Pin, Tuning
from floodway.plan import Configuration, Plan
from floodway.testing import ListSource
from tests.engine.control.reports import report
from tests.engine.driver.stage import Stage


def plan() -> Plan:
    flow = fw.Flow("words")
    words = flow.source("words", schema=str).isolate()
    long = words.filter("length(value) > 3", name="long").map("upper(value)", name="loud")
    long.isolate().group_by("value AS word").count(name="counts").changes(name="updates")
    return Plan.of(flow, Configuration(Tuning(dop=2)))


def test_a_stage_may_be_named_by_its_operators() -> None:
    paradigms = Paradigms(plan())
    stage = plan().stage_of("loud").name
    assert paradigms.order("loud", "operation") == Switch(stage, "operation")
    assert paradigms.order(stage, "data") == Switch(stage, "data")


def test_what_does_not_exist_is_refused() -> None:
    paradigms = Paradigms(plan())
    with pytest.raises(OptionError, match="no stage or operator 'short'") as caught:
        paradigms.order("short", "operation")
    assert "long" in caught.value.remedy
    with pytest.raises(OptionError, match="no paradigm 'auto'"):
        paradigms.order("long", "auto")  # type: ignore[arg-type]


def test_a_stage_without_a_remote_half_is_refused() -> None:
    paradigms = Paradigms(plan())
    with pytest.raises(OptionError, match="'counts' cannot work in micro-batches") as caught:
        paradigms.order("counts", "operation")
    assert caught.value.remedy == "switch one of: words, long, loud"
    assert paradigms.order("counts", "data") == Switch("counts", "data")


def test_a_stage_at_the_driver_is_refused() -> None:
    flow = fw.Flow("here")
    flow.source("numbers", ListSource([1]), schema=int).to("nowhere")
    with pytest.raises(OptionError, match="runs in the driver's process"):
        Paradigms(Plan.of(flow)).order("numbers", "operation")


def going(*, attempt: int = 1) -> Paradigms:
    """Return the paradigms of a flow whose tasks all go."""
    paradigms = Paradigms(plan())
    begin(paradigms, dict.fromkeys(Numbering(plan()).names, attempt))
    return paradigms


def begin(paradigms: Paradigms, attempts: dict[int, int]) -> None:
    """Let tasks begin an attempt and go."""
    paradigms.follow(attempts)
    for task in attempts:
        paradigms.goes(task)


def test_a_stage_works_in_a_paradigm_when_all_its_tasks_do() -> None:
    paradigms, number = going(), Numbering(plan()).number
    assert set(paradigms.of_stages.values()) == {"data"}
    agreed, now = [], []
    for index, paradigm in [(0, "operation"), (1, "operation"), (1, "data"), (0, "data")]:
        paradigms.switched(Switched(number("words", index), 1, paradigm, 0))  # type: ignore[arg-type]
        agreed.append(paradigms.of_stages["words"])
        now.append(paradigms.of_stage("words"))
    assert agreed == ["data", "operation", "operation", "data"]
    assert now == ["switching", "operation", "switching", "data"]
    assert paradigms.of_stages["counts"] == "data"


def test_what_a_task_says_counts_in_its_present_attempt() -> None:
    paradigms, task = going(attempt=3), Numbering(plan()).number("words", 1)
    paradigms.switched(Switched(task, 2, "operation", 0))
    assert not paradigms.heard(task, 2, "operation")
    assert paradigms.of_task("words", 1) == "data"
    assert paradigms.heard(task, 3, "operation")
    assert (paradigms.of_task("words", 0), paradigms.of_task("words", 1)) == ("data", "operation")


def test_a_replaced_task_begins_in_the_paradigm_that_it_is_told() -> None:
    paradigms, task = going(), Numbering(plan()).number("words", 1)
    paradigms.told(Switch("words", "operation"))
    paradigms.follow({task: 2})
    assert paradigms.of_task("words", 1) == "operation"
    paradigms.told(Switch("words", "data"))  # it will hear of that, too, before it goes
    assert paradigms.of_task("words", 1) == "data"
    paradigms.goes(task)
    paradigms.told(Switch("words", "operation"))
    assert paradigms.of_task("words", 1) == "data"


def test_an_order_is_done_when_all_tasks_have_said_so() -> None:
    paradigms, number = going(), Numbering(plan()).number
    paradigms.told(Switch("words", "operation"))
    paradigms.switched(Switched(number("words", 0), 1, "operation", 7))
    paradigms.switched(Switched(number("words", 0), 1, "operation", 4))
    assert paradigms.settled() == []
    paradigms.switched(Switched(number("words", 1), 1, "operation", 5))
    assert paradigms.settled() == [Settled("words", "operation", 7)]
    assert paradigms.settled() == []


def test_an_order_that_changes_nothing_is_done() -> None:
    paradigms = going()
    paradigms.told(Switch("words", "data"))
    assert paradigms.settled() == [Settled("words", "data", 0)]


def test_an_answer_to_another_order_is_none_to_this_one() -> None:
    paradigms, number = going(), Numbering(plan()).number
    for paradigm in ("operation", "data"):
        paradigms.told(Switch("words", paradigm))  # type: ignore[arg-type]
    for index in (0, 1):
        paradigms.switched(Switched(number("words", index), 1, "operation", 7))
    assert paradigms.settled() == []


@pytest.mark.parametrize(("paradigm", "answers"), [("data", False), ("operation", True)])
def test_a_replaced_task_answers_if_it_begins_in_micro_batches(
    paradigm: Paradigm, answers: bool
) -> None:
    paradigms, number = going(), Numbering(plan()).number
    if paradigm == "data":
        paradigms.told(Switch("words", "operation"))
    paradigms.told(Switch("words", paradigm))
    paradigms.switched(Switched(number("words", 0), 1, paradigm, 3))
    paradigms.follow({number("words", 1): 2})
    assert paradigms.settled() == []  # it does not go yet
    paradigms.goes(number("words", 1))
    assert paradigms.settled() == ([] if answers else [Settled("words", paradigm, 3)])


def test_nobody_waits_for_a_task_that_has_left() -> None:
    # It never answered: the stage was switching for ever, and never sent back.
    paradigms, number = going(), Numbering(plan()).number
    first, second = number("words", 0), number("words", 1)
    attempts = {first: 1, second: 1}
    paradigms.follow(attempts, left={first})
    paradigms.told(Switch("words", "operation"))
    paradigms.switched(Switched(second, 1, "operation", 5))
    assert paradigms.settled() == [Settled("words", "operation", 5)]
    assert paradigms.of_stage("words") == "operation"
    paradigms.told(Switch("words", "data"))
    paradigms.follow(attempts, left={first, second})  # before it has answered
    assert paradigms.of_stage("words") == "operation"


# --------------------------------------------------------------------------- any order


class Played:
    """A task as the owner's world sees it: a process, and what is on its way to it and from it."""

    def __init__(self) -> None:
        self.attempt = 0
        self.inbox: list[Any] = []
        self.said: list[Switched] = []
        self.there = self.goes = self.ordered = False
        self.wanted: Paradigm = "data"
        self.works: Paradigm = "data"

    def replaced(self) -> None:
        """Let another process take over; what the former one has said is on its way still."""
        said = self.said
        self.__init__()  # type: ignore[misc]
        self.said = said

    def hear(self, number: int) -> None:
        """Take what comes next, as a task does."""
        match self.inbox.pop(0):
            case int(attempt):
                self.attempt, self.goes, self.ordered = attempt, False, False
                self.wanted = self.works = "data"
            case Switch(_, paradigm) if self.attempt and paradigm != self.wanted:
                self.wanted, self.ordered = paradigm, True
                if paradigm == "operation":
                    self.works = paradigm  # what comes is collected at once
            case Go():
                self.goes = True

    def work(self, number: int) -> None:
        """Do what was ordered, and say so."""
        if self.goes and self.ordered:
            self.works, self.ordered = self.wanted, False
            self.said.append(Switched(number, self.attempt, self.works, number))


class AnyOrder(RuleBasedStateMachine):
    """Orders, answers, reports, losses and recoveries, in any order, of two stages."""

    STAGES = ("words", "counts")
    TASKS = range(4)

    def __init__(self) -> None:
        super().__init__()
        flow = fw.Flow("words")
        words = flow.source("words", schema=str).isolate()
        words.group_by("value AS word").count(name="counts")
        self.owner = Paradigms(Plan.of(flow, Configuration(Tuning(dop=2))))
        self.played = [Played() for _ in self.TASKS]
        self.attempt = 0
        self.attempts = dict.fromkeys(self.TASKS, 0)
        self.wishes: dict[str, Switch] = {}
        self.open: set[str] = set()
        self.begun: set[int] = set()
        self.waiting: set[int] = set()
        self.model: dict[int, Paradigm] = dict.fromkeys(self.TASKS, "data")
        self.left: set[int] = set()
        self._begin(set(self.TASKS), None)

    def stage(self, task: int) -> str:
        return self.STAGES[task // 2]

    def _begin(self, tasks: set[int], lost: int | None) -> None:
        self.attempt += 1
        if lost is not None:
            self.played[lost].replaced()
        self.waiting |= tasks
        self.begun -= self.waiting
        for task in self.waiting:
            self.attempts[task] = self.attempt
        self.owner.follow(self.attempts, self.left)

    @property
    def staying(self) -> set[int]:
        return set(self.TASKS) - self.left

    def wish(self, task: int) -> Paradigm:
        order = self.wishes.get(self.stage(task))
        return "data" if order is None else order.paradigm

    # ------------------------------------------------------------------ what happens

    @rule(stage=st.sampled_from(STAGES), paradigm=st.sampled_from(["data", "operation"]))
    def order(self, stage: str, paradigm: Paradigm) -> None:
        self.wishes[stage] = order = Switch(stage, paradigm)
        self.open.add(stage)
        self.owner.told(order)
        for task, played in enumerate(self.played):
            if self.stage(task) == stage and played.there:
                played.inbox.append(order)

    @rule(task=st.sampled_from(TASKS), alone=st.booleans())
    def lose(self, task: int, alone: bool) -> None:
        if task in self.staying:
            after = {task} if alone else set(range(task, len(self.TASKS)))
            self._begin(after & self.staying, task)

    @precondition(lambda self: not self.waiting)
    @rule(task=st.sampled_from(TASKS))
    def leave(self, task: int) -> None:
        if self.played[task].goes:
            self.left.add(task)
            self.owner.follow(self.attempts, self.left)

    @rule(task=st.sampled_from(TASKS))
    def come(self, task: int) -> None:
        self.played[task].there = True
        if task in self.waiting - self.begun:
            self.begun.add(task)
            self.played[task].inbox.append(self.attempts[task])

    @precondition(lambda self: self.waiting and self.waiting == self.begun)
    @rule()
    def go(self) -> None:
        for task, played in enumerate(self.played):
            if self.stage(task) in self.wishes:
                played.inbox.append(self.wishes[self.stage(task)])
            self.owner.goes(task)
            played.inbox.append(Go([]))
        for task in self.waiting:
            self.model[task] = self.wish(task)
        self.waiting, self.begun = set(), set()

    @rule(task=st.sampled_from(TASKS))
    def hear(self, task: int) -> None:
        if self.played[task].inbox:
            self.played[task].hear(task)

    @rule(task=st.sampled_from(TASKS))
    def work(self, task: int) -> None:
        self.played[task].work(task)

    @rule(task=st.sampled_from(TASKS))
    def report(self, task: int) -> None:
        """Let a task say how it works, in between."""
        played = self.played[task]
        if played.goes:
            played.said.append(Switched(task, played.attempt, played.works, REPORT))

    @rule(task=st.sampled_from(TASKS))
    def deliver(self, task: int) -> None:
        if not self.played[task].said:
            return
        message = self.played[task].said.pop(0)
        if message.pause_us == REPORT:
            self.owner.heard(task, message.attempt, message.paradigm)
        else:
            self.owner.switched(message)
        if message.attempt == self.attempts[task]:
            self.model[task] = message.paradigm

    @rule()
    def settled(self) -> None:
        done = [each.stage for each in self.owner.settled()]
        assert len(set(done)) == len(done)
        assert self.open.issuperset(done)
        for task in self.staying:
            if self.stage(task) in done:
                assert task not in self.waiting
                assert self.model[task] == self.wish(task)
        self.open.difference_update(done)

    @rule()
    def rest(self) -> None:
        """Let everything come to an end that has been begun."""
        for task in self.staying:
            self.come(task)
        if self.waiting:
            self.go()
        for task in self.staying:
            played = self.played[task]
            while played.inbox:
                played.hear(task)
            played.work(task)
            while played.said:
                self.deliver(task)
            assert played.works == self.owner.of_task(self.stage(task), task % 2)
            assert played.works == self.wish(task)
        self.settled()
        assert self.open == set()

    # ------------------------------------------------------------------ what is so

    @invariant()
    def every_task_works_as_it_said_last_or_was_told_to_begin(self) -> None:
        for task in self.staying:
            expected = self.wish(task) if task in self.waiting else self.model[task]
            assert self.owner.of_task(self.stage(task), task % 2) == expected

    @invariant()
    def a_stage_works_as_its_tasks_do(self) -> None:
        for place, stage in enumerate(self.STAGES):
            there = [index for index in (0, 1) if 2 * place + index in self.staying]
            each = {self.owner.of_task(stage, index) for index in there}
            known = self.owner.of_stage(stage)
            assert not each or known == ("switching" if len(each) > 1 else each.pop()), place
            if known != "switching":
                assert self.owner.of_stages[stage] == known


REPORT = -1
"""The pause of what is no answer but a report."""

TestAnyOrder = AnyOrder.TestCase


# --------------------------------------------------------------------------- the leader


def test_only_the_tasks_of_a_stage_are_told_to_switch(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.start()
    stage.told(Switch)
    stage.leader.carry_out(stage.leader.wish(Switch("two", "operation")), 0)
    assert stage.told(Switch) == [("at 1/0", Switch("two", "operation"))]


def test_a_task_that_begins_anew_is_told_what_was_wished_last(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.leader.wish(Switch("one", "operation"))
    stage.leader.wish(Switch("two", "operation"))
    stage.leader.wish(Switch("one", "data"))
    stage.start()
    assert stage.told(Switch) == [
        ("at 0/0", Switch("one", "data")),
        ("at 1/0", Switch("two", "operation")),
    ]


def test_offers_go_to_whom_they_concern(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    offer = Offer(0, 1, 1, "block", [(0, 0)], b"")
    stage.say(offer)  # nobody is concerned, and nothing happens
    offers: list[Offer] = []
    lead(stage, offered=offers.append)
    stage.say(offer)
    assert offers == [offer]


def lead(stage: Stage, **options: Any) -> None:
    """Give a stage another leader."""
    stage.leader = Leader(
        stage.plan,
        stage.lead,
        stage.post,
        commits=stage.commits,
        launch=lambda task, launch: stage.launched.append((task, launch)),
        report=stage.reports.append,
        paradigms=stage.paradigms,
        **options,
    )


def works(stage: Stage) -> list[str]:
    return [stage.paradigms.of_task(name, index) for name, index in stage.lead.names.values()]


def test_who_works_how_follows_from_orders_answers_and_reports(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.start()
    assert works(stage) == ["data"] * 4
    stage.leader.carry_out(stage.leader.wish(Switch("two", "operation")), 0)
    assert works(stage) == ["data"] * 4  # nobody has said anything
    stage.say(Switched(1, 1, "operation", 5))
    assert works(stage) == ["data", "operation", "data", "data"]
    said = report("one", attempt=1, paradigm="operation")
    stage.say(Report(0, encode_report(said)))
    assert works(stage) == ["operation", "operation", "data", "data"]


def test_who_is_lost_begins_as_it_is_told_and_its_former_words_do_not_count(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path)
    stage.start()
    stage.say(Switched(1, 1, "operation", 5))
    stage.lose(1)
    stage.say(Switched(1, 1, "operation", 5))  # said before it was lost
    assert works(stage) == ["data"] * 4
    stage.leader.wish(Switch("two", "operation"))
    assert works(stage) == ["data", "operation", "data", "data"]
    stage.hello(1)
    stage.say(*(Ready(task, 2) for task in stage.tasks))
    stage.say(Switched(1, 1, "data", 5))
    assert works(stage) == ["data", "operation", "data", "data"]
    stage.say(Switched(1, 2, "data", 5))
    assert works(stage) == ["data"] * 4


class Planned(LiveScheduler):
    """A scheduler that orders what a test wants, and keeps what it is told."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.plan, ReportWindows(), stage.paradigms)
        self.orders: list[Switch | Tune] = []
        self.heard: list[tuple[Any, ...]] = []

    def turn(self, now_ms: int) -> list[Switch | Tune]:
        orders, self.orders = self.orders, []
        return orders

    def switched(self, stage: str, now_ms: int, pause_us: int, paradigm: Paradigm) -> None:
        self.heard.append((stage, now_ms, pause_us, paradigm))

    def pin(self, stage: str, pin: Pin) -> None:
        self.heard.append((stage, pin))


def test_scheduler_orders_while_the_flow_runs_and_hears_when_it_is_done(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    scheduler = Planned(stage)
    lead(stage, scheduler=scheduler)
    scheduler.orders = [Tune("counts", 5, None), Switch("two", "operation")]
    stage.turn()
    assert len(scheduler.orders) == 2  # the flow does not run yet
    stage.start()
    stage.turn()
    told = [(to, m) for to, m in stage.post.sent if isinstance(m, Tune | Switch)]
    tune = [(f"at {task}/0", Tune("counts", 5, None)) for task in stage.tasks]
    assert told == [*tune, ("at 1/0", Switch("two", "operation"))]
    assert scheduler.heard == []
    stage.now = 70
    stage.say(Switched(1, 1, "operation", 5))
    assert scheduler.heard == [("two", 70, 5, "operation")]


def test_what_a_user_wants_is_told_to_tasks_and_scheduler(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    scheduler = Planned(stage)
    lead(stage, scheduler=scheduler)
    stage.start()
    stage.told(Switch)
    stage.leader.carry_out(stage.leader.pin(Switch("two", "operation")), 0)
    assert stage.told(Switch) == [("at 1/0", Switch("two", "operation"))]
    assert scheduler.heard == [("two", "operation")]


def test_a_task_is_told_what_was_made_of_its_block(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    made = Made(1, 1, ["result"])
    stage.leader.tell(0, made)
    assert stage.told(Made) == []  # it is not there yet
    stage.start()
    stage.leader.tell(0, made)
    assert stage.told(Made) == [("at 0/0", made)]
