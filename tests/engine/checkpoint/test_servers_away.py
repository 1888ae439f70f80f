"""Servers that are away: a flow that begins is refused, and one that goes on waits for them."""

from dataclasses import dataclass, field
from typing import Any

import pytest

import floodway as fw
from floodway.connectors.base import SinkConnector
from floodway.core.errors import ConnectorError, ServerAwayError
from floodway.engine.checkpoint.checkpoint import check_connectors
from floodway.engine.checkpoint.records import SinkRecord
from floodway.plan import Plan
from floodway.testing import ListSource
from tests.engine.checkpoint.making import make_record, make_task


@dataclass
class Away(SinkConnector):
    """A sink whose server does not answer so many times."""

    times: int
    asked: list[str] = field(default_factory=list)

    def check(self) -> None:
        self._ask("anew")

    def check_resumed(self, token: Any) -> None:
        self._ask(f"resumed {token}")

    def _ask(self, how: str) -> None:
        self.asked.append(how)
        if len(self.asked) <= self.times:
            raise ServerAwayError("nobody answers", remedy="start it")


def plan(sink: SinkConnector) -> Plan:
    flow = fw.Flow("numbers")
    flow.source("numbers", ListSource([1]), schema=int).to(sink, name="out")
    return Plan.of(flow)


def test_a_flow_that_begins_is_refused_at_once() -> None:
    sink = Away(1)
    with pytest.raises(ServerAwayError, match="nobody answers") as caught:
        check_connectors(plan(sink))
    assert sink.asked == ["anew"]
    assert caught.value.operator == "out"


def test_a_flow_that_goes_on_waits_for_the_server(caplog: pytest.LogCaptureFixture) -> None:
    sink = Away(2)
    record = make_record(7, [make_task([], sinks={"out": SinkRecord(token=3, logs=[])})])
    check_connectors(plan(sink), record)
    assert sink.asked == ["resumed 3"] * 3
    assert "out: nobody answers; waiting 120 s for it" in caplog.text
    assert "out: goes on" in caplog.text


def test_a_server_that_stays_away_is_not_waited_for_for_ever() -> None:
    sink = Away(10**9)
    with pytest.raises(ServerAwayError):
        check_connectors(plan(sink), make_record(7), patience_s=0.3)
    assert len(sink.asked) > 1


def test_what_is_wrong_and_not_away_is_refused_at_once() -> None:
    class Wrong(Away):
        def check(self) -> None:
            self.asked.append("anew")
            raise ConnectorError("no such topic", remedy="make it")

    sink = Wrong(0)
    with pytest.raises(ConnectorError, match="no such topic"):
        check_connectors(plan(sink), make_record(7))
    assert sink.asked == ["anew"]
