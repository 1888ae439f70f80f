"""Paradigms: who may be switched, who is told, and what a stage is said to work in."""

from pathlib import Path

import pytest

import floodway as fw
from floodway.core.errors import OptionError
from floodway.engine.control import Made, Offer, Switch, Switched
from floodway.engine.leader import Leader
from floodway.engine.numbering import Numbering
from floodway.engine.paradigms import Paradigms
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan
from floodway.testing import ListSource
from tests.engine.test_leader import Stage


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


def test_a_stage_works_in_a_paradigm_when_all_its_tasks_do() -> None:
    paradigms, number = Paradigms(plan()), Numbering(plan()).number
    assert set(paradigms.of_stages.values()) == {"data"}
    seen = []
    for index, paradigm in [(0, "operation"), (1, "operation"), (1, "data"), (0, "data")]:
        paradigms.switched(Switched(number("words", index), 1, paradigm, 0))  # type: ignore[arg-type]
        seen.append(paradigms.of_stages["words"])
    assert seen == ["data", "operation", "operation", "data"]
    assert paradigms.of_stages["counts"] == "data"


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


def test_offers_and_switches_go_to_whom_they_concern(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    offer, switched = Offer(0, 1, 1, "block", [(0, 0)], b""), Switched(0, 1, "operation", 5)
    stage.say(offer, switched)  # nobody is concerned, and nothing happens
    offers: list[Offer] = []
    switches: list[Switched] = []
    stage.leader = Leader(
        stage.plan,
        stage.lead,
        stage.post,
        commits=None,
        launch=lambda task, launch: None,
        report=lambda data: None,
        offered=offers.append,
        switched=switches.append,
    )
    stage.say(offer, switched)
    assert (offers, switches) == ([offer], [switched])


def test_a_task_is_told_what_was_made_of_its_block(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    made = Made(1, 1, ["result"])
    stage.leader.tell(0, made)
    assert stage.told(Made) == []  # it is not there yet
    stage.start()
    stage.leader.tell(0, made)
    assert stage.told(Made) == [("at 0/0", made)]
