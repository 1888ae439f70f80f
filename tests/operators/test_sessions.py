"""Sessions are the same whether a kernel says what became of them at each record or once."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import floodway as fw
from floodway.operators.aggregate import Aggregate
from floodway.operators.aggregate_partials import unseen
from floodway.operators.aggregate_session import SessionKernel
from floodway.operators.base import Kernel
from floodway.operators.changes import Changes
from floodway.plan.graph import Graph
from floodway.testing.strategies import cuts, skewed, streams
from tests.behaviour.kernels import weight

EMITS = {
    "latest": fw.emit.latest(),
    "every second": fw.emit.at_most_every(1000),
    "end": fw.emit.after_window_end(),
    "final": fw.emit.final(),
}
FUNCTIONS = {"count": fw.count(), "most": fw.max("value"), "all": fw.collect("value")}


@cache
def built(emit: str, function: str) -> Graph:
    flow = fw.Flow("clicks", retention=5)
    grouped = flow.source("clicks", schema=int).group_by("value % 3 AS who")
    sessions = grouped.window(fw.session(4)).agg(of=FUNCTIONS[function], name="sessions")
    sessions.changes(emit=EMITS[emit]).to("out")
    return Graph.of(flow)


class Side:
    """Sessions and a subscriber, kernel to kernel."""

    def __init__(self, emit: str, function: str, *, combines: bool) -> None:
        graph = built(emit, function)
        self.sessions, self.told = self._kernel(graph, Aggregate)
        self.changes, self.sent = self._kernel(graph, Changes)
        assert isinstance(self.sessions, SessionKernel)
        (operator,) = (op for op in graph.operators if isinstance(op, Aggregate))
        assert unseen(operator, graph.consumers, versioned=False)
        if combines:
            self.sessions.combine_first()

    @staticmethod
    def _kernel(graph: Graph, kind: type) -> tuple[Kernel, dict[str, list[Any]]]:
        (operator,) = (op for op in graph.operators if isinstance(op, kind))
        outputs: dict[str, list[Any]] = {port: [] for port in operator.outputs}
        return operator.kernel(outputs), outputs

    def push(self, rows: Sequence[Any]) -> int:
        """Let records come together; return how many changes that made."""
        self.sessions.process(0, rows)
        changes = self.told["main"].copy()
        self.told["main"].clear()
        self.changes.process(0, changes)
        return len(changes)

    def advance(self, time: int) -> None:
        """Let stream time reach `time`."""
        self.sessions.advance(time)
        self.changes.advance(time)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("emit", EMITS)
@given(data=st.data(), clicks=streams(skewed(range(6)), max_time=40, max_size=30))
def test_told_once_or_at_each_record(
    emit: str, function: str, data: st.DataObject, clicks: Any
) -> None:
    each = Side(emit, function, combines=False)
    once = Side(emit, function, combines=True)
    latest = 0
    for epoch in data.draw(cuts(clicks)):
        rows = [(time, None, value) for time, value in epoch]
        assert once.push(rows) <= each.push(rows)
        assert once.sessions.rows() == each.sessions.rows()
        assert once.told["late"] == each.told["late"]
        latest = max([latest, *(row[0] for row in rows)])
        for side in (each, once):
            side.advance(latest)
        agree(emit, once, each)
    for side in (each, once):
        side.changes.finish()
    agree(emit, once, each)


def agree(emit: str, once: Side, each: Side) -> None:
    """Fail unless both subscribers have heard the same."""
    if emit in ("end", "final"):
        assert Counter(map(repr, once.sent["main"])) == Counter(map(repr, each.sent["main"]))
    said = [{(c.key, c.window): c.value for _, _, c in side.sent["main"]} for side in (once, each)]
    kept = [{row: value for row, value in last.items() if value is not None} for last in said]
    assert kept[0] == kept[1]


def test_clicks_that_come_together_are_told_once() -> None:
    side = Side("end", "count", combines=True)
    assert side.push([(time, None, 0) for time in range(10)]) == 1
    assert side.push([(time, None, 0) for time in range(10, 20)]) == 2  # the former is gone
    assert side.sessions.rows()[0, 0, 23][1].of == 20


def test_session_that_goes_on_does_not_grow() -> None:
    side = Side("end", "count", combines=False)
    sizes = set()
    for time in range(1000):
        side.push([(time, None, 0)])
        side.advance(time)
        sizes.add(weight(side.sessions.snapshot()))
    assert len(sizes) == 1
    side.advance(2000)
    assert not side.sessions.rows()


def test_who_sees_every_update_is_told_at_each_record() -> None:
    flow = fw.Flow("clicks")
    clicks = flow.source("clicks", schema=int).group_by("value AS who").window(fw.session(4))
    clicks.count(name="sessions").changes().to("out")
    graph = Graph.of(flow)
    (operator,) = (op for op in graph.operators if isinstance(op, Aggregate))
    assert not unseen(operator, graph.consumers, versioned=False)


@pytest.mark.parametrize("order", [(0, 4, 8), (0, 8, 4), (8, 4, 0)])
def test_records_one_gap_apart_are_one_session(order: tuple[int, ...]) -> None:
    for combines in (False, True):
        side = Side("end", "count", combines=combines)
        side.push([(time, None, 0) for time in order])
        assert {key: row[1].of for key, row in side.sessions.rows().items()} == {(0, 0, 12): 3}


def test_a_session_goes_on_with_a_record_at_its_very_end() -> None:
    side = Side("final", "count", combines=False)
    side.push([(0, None, 0)])
    side.advance(4 + 5)  # its end and the retention
    assert side.sent["main"] == []
    side.push([(4, None, 0)])
    assert list(side.sessions.rows()) == [(0, 0, 8)]
    side.advance(8 + 5 + 1)
    assert [(c.window.start, c.window.end, c.value.of) for _, _, c in side.sent["main"]] == [
        (0, 8, 2)
    ]


@pytest.mark.spark
def test_sessions_are_those_of_spark(spark: Any) -> None:
    times = (0, 4, 8, 13, 17, 30, 35, 40)
    rows = ", ".join(f"(timestamp_seconds({time}), {time % 2})" for time in times)
    theirs = spark.sql(
        f"SELECT unix_timestamp(w.start) AS a, unix_timestamp(w.end) AS b, n FROM (SELECT "
        f"session_window(t, '4 seconds') AS w, count(*) AS n FROM VALUES {rows} AS d(t, k) "
        "GROUP BY session_window(t, '4 seconds')) ORDER BY a"
    ).collect()
    side = Side("end", "count", combines=False)
    side.push([(time, None, 0) for time in times])
    ours = sorted((start, end, row[1].of) for (_, start, end), row in side.sessions.rows().items())
    assert ours == [tuple(row) for row in theirs]
