"""Tasks that come late, or not at all: who waits for whom, and what is said about it."""

import pytest

import floodway as fw
from floodway.engine.driver.arrivals import Arrivals
from floodway.testing import ListSink, ListSource
from tests.engine.driver.leading import Fake, simple


class Slots:
    """Knows who has no slot; a test says so."""

    def __init__(self) -> None:
        self.without: list[int] = []
        self.asked = 0

    def queued(self) -> list[int]:
        self.asked += 1
        return self.without


def test_tasks_that_keep_coming_are_waited_for() -> None:
    fake, slots = Fake(simple()), Slots()
    arrivals = Arrivals(fake.lead, slots, 60.0)
    for task in range(fake.count - 1):
        assert arrivals.look(0, task * 50.0) is None
        fake.hello(task)
    end = (fake.count - 2) * 50.0
    assert arrivals.look(0, end + 1) is None
    assert arrivals.look(0, end + 61) is None
    assert arrivals.look(0, end + 62) is not None


def test_error_tells_slots_from_processes_that_are_slow() -> None:
    fake, slots = Fake(simple()), Slots()
    arrivals = Arrivals(fake.lead, slots, 60.0)
    arrivals.look(0, 0.0)
    slots.without = [0]
    arrivals.look(0, 59.0)
    error = arrivals.look(0, 61.0)
    assert error is not None
    first, *others = (f"{stage}/{index}" for stage, index in fake.lead.names.values())
    assert f"{first} got no slot of Spark; {', '.join(others)} had a slot" in error.problem
    assert "--master" in error.remedy
    assert "--patience" in error.remedy


def test_nobody_is_asked_about_slots_while_all_are_there() -> None:
    fake, slots = Fake(simple()), Slots()
    arrivals = Arrivals(fake.lead, slots, 60.0)
    slots.without = [0]
    arrivals.look(0, 0.0)
    assert fake.lead.queued
    fake.start()
    arrivals.look(0, 100.0)
    assert (slots.asked, fake.lead.queued) == (1, [])


@pytest.mark.parametrize(("patience", "seconds"), [(None, 60.0), ("5m", 300.0)])
def test_flow_waits_for_its_tasks_as_long_as_it_is_told(
    patience: str | None, seconds: float
) -> None:
    flow = fw.Flow("patient")
    flow.source("numbers", ListSource([1]), schema=int).to(ListSink())
    with flow.start(patience=patience) as job:
        job.wait()
        assert job.settings.patience_s == seconds
