"""Recovery without a checkpoint: what is covered, what is not, and what is said about it."""

from typing import Any, ClassVar

import pytest

from floodway import Flow
from floodway.connectors.base import (
    ConnectorPlace,
    Delivery,
    SinkConnector,
    SourceConnector,
    Split,
    Writer,
)
from floodway.core.errors import OptionError
from floodway.core.schema import Schema
from floodway.engine.control.messages import Drain, PauseReading, Stop, Unreachable
from floodway.engine.driver.job import Job
from floodway.plan import Plan
from tests.engine.driver.leading import EPOCH_MS, Fake, launches, starts, told


class Files(SourceConnector):
    replayable: ClassVar[bool] = True


class Wire(SourceConnector):
    """Can be read once."""


class Loose(SinkConnector):
    def open(self, split: Split, schema: Schema) -> Writer:
        return Writer()


class Exact(Loose):
    eager: ClassVar[Delivery] = "exactly once"


def plan(source: SourceConnector, sink: SinkConnector) -> Plan:
    """Return a source, a count and a sink, each alone."""
    flow = Flow("covered")
    words = flow.source("words", source, schema=str).isolate()
    counts = words.group_by("value AS word").count(name="counts").isolate()
    counts.changes(name="updates").to(sink, name="out")
    return Plan.of(flow)


def running(
    source: SourceConnector, sink: SinkConnector, *, lasting: bool = False, **options: Any
) -> Fake:
    fake = Fake(plan(source, sink), every_ms=EPOCH_MS, lasting=lasting, **options)
    fake.start()
    return fake


def test_lost_task_is_replaced_and_nothing_more_is_said() -> None:
    fake = running(Files(), Exact())
    assert fake.lead.warnings == []
    for operator in ("words", "counts", "out"):
        fake.recover(fake.number(operator))
    assert fake.lead.state == "running"
    assert len(fake.lead.warnings) == 3  # that they were lost


def test_sink_that_may_show_rows_again_says_so_when_it_does() -> None:
    fake = running(Files(), Loose())
    assert fake.lead.warnings == []
    fake.recover(fake.number("counts"))
    assert "out may show again what came since epoch 0" in fake.lead.warnings[1]


def test_input_that_is_read_once_is_named_at_the_start() -> None:
    (warning,) = running(Wire(), Exact()).lead.warnings
    assert warning.startswith("what words has read cannot be read again")


def test_input_of_the_driver_is_lost_with_the_driver_alone() -> None:
    class Typed(Wire):
        place: ClassVar[ConnectorPlace] = "driver"

    assert running(Typed(), Exact()).lead.warnings == []


def test_loss_below_input_that_is_read_once_is_survived() -> None:
    fake = running(Wire(), Exact())
    fake.recover(fake.number("counts"))
    assert fake.lead.state == "running"


def test_loss_of_input_that_is_read_once_is_no_secret() -> None:
    fake = running(Wire(), Exact())
    assert told(fake.lost(fake.number("words")), Stop)
    assert fake.lead.failure is not None
    assert "what words had read cannot be read again" in fake.lead.failure.problem


def test_nothing_was_read_before_the_flow_ran() -> None:
    fake = Fake(plan(Wire(), Exact()), every_ms=EPOCH_MS, lasting=False)
    words = fake.number("words")
    fake.hello(words)
    assert launches(fake.lost(words))
    fake.start()
    assert fake.lead.state == "running"


def test_with_a_checkpoint_the_loss_of_input_is_said() -> None:
    fake = running(Wire(), Exact(), lasting=True)
    fake.recover(fake.number("words"))
    assert fake.lead.state == "running"
    assert any("words had read since epoch 0 may be lost" in text for text in fake.lead.warnings)


def test_checkpoint_without_recovery_makes_no_sense() -> None:
    with pytest.raises(OptionError, match="recovery is off") as caught:
        Job(plan(Files(), Exact()), checkpoint="somewhere", recovery=False)
    assert "leave out one" in caught.value.remedy


# --------------------------------------------------------------------- draining


def test_flow_without_a_checkpoint_is_drained_to_its_end() -> None:
    fake = running(Files(), Exact())
    words = fake.number("words")
    assert told(fake.lead.drain(), Drain).keys() == {words}
    actions = fake.recover(words)
    assert told(actions, Drain).keys() == {words}
    assert fake.lead.state == "draining"


def test_flow_with_a_checkpoint_is_paused() -> None:
    fake = running(Files(), Exact(), lasting=True)
    assert told(fake.lead.drain(), PauseReading).keys() == {fake.number("words")}


# --------------------------------------------------------------------- who sees the folder


def test_checkpoint_that_a_task_does_not_see_is_refused() -> None:
    fake = Fake(plan(Files(), Exact()), every_ms=EPOCH_MS)
    fake.hello(0)
    assert told(fake.hello(1, sees=False), Stop)
    assert fake.lead.failure is not None
    assert "on the host here does not see the checkpoint in /the/folder" in str(fake.lead.failure)
    assert "all hosts see" in fake.lead.failure.remedy


def test_flow_without_a_checkpoint_starts_where_hosts_share_nothing() -> None:
    fake = Fake(plan(Files(), Exact()), every_ms=EPOCH_MS, lasting=False)
    fake.hello(0)
    fake.hello(1, sees=False)
    begun = starts(fake.hello(2, sees=False))
    assert {start.recovers for start in begun.values()} == {False}
    fake.all_ready(begun)
    assert (fake.lead.state, fake.lead.recovers) == ("running", False)
    (warning,) = fake.lead.warnings
    assert "a lost task or executor ends the flow" in warning
    assert told(fake.lost(1), Stop)
    assert fake.lead.state == "failed"


def test_successor_that_does_not_see_the_folder_is_refused() -> None:
    fake = running(Files(), Exact())
    counts = fake.number("counts")
    fake.lost(counts)
    assert told(fake.hello(counts, sees=False), Stop)
    assert "does not see what the flow goes back to" in str(fake.lead.failure)


# --------------------------------------------------------------------- who may still be alive


@pytest.mark.parametrize("machine", ["machine", "elsewhere"])
@pytest.mark.parametrize("lasting", [True, False])
def test_silent_task_elsewhere_may_still_write(machine: str, *, lasting: bool) -> None:
    """Only with a checkpoint that is harmless; and here it can be killed."""
    fake = Fake(plan(Files(), Exact()), every_ms=EPOCH_MS, lasting=lasting, silent_ms=5000)
    fake.machine = machine
    fake.start()
    fake.quiet = {fake.number("out")}
    actions = fake.tick(by=5001)
    if lasting or machine == "machine":
        assert launches(actions)
    else:
        assert told(actions, Stop)
        assert "nobody can tell whether it still writes to out" in str(fake.lead.failure)


def test_task_elsewhere_that_cannot_be_reached_may_still_write() -> None:
    fake = Fake(plan(Files(), Exact()), every_ms=EPOCH_MS, lasting=False)
    fake.machine = "elsewhere"
    fake.start()
    counts, out = fake.number("counts"), fake.number("out")
    assert told(fake.say(Unreachable(counts, fake.attempts[counts], out)), Stop)
    assert "nobody can tell whether it still writes to out" in str(fake.lead.failure)
