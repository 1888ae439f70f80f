"""Time in flows that run: tables without a time, and sources that are not idle."""

import json
import os
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import floodway as fw
from floodway.connectors.csv import CsvSource
from floodway.connectors.json_lines import JsonLinesSink, JsonLinesSource
from floodway.testing import ListSink, ListSource, Pause
from tests.engine.spark.recovering import (
    changes,
    committed_again,
    ended,
    kill_and_recover,
    release_of,
    started,
    switch_all,
)
from tests.waiting import pause, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shared_spark", "clean")]

IN_2023 = 1_680_000_000_000
"""Long before anybody runs this, in milliseconds since 1970."""

MINUTE = 60_000


class Sale(fw.Record):
    item: str
    at: int


class Item(fw.Record):
    name: str
    price: int


def sales(path: Path, count: int, items: int = 1000) -> Path:
    """Write sales in perfect order, one a minute: much more than the retention in all."""
    rows = [{"item": f"i{n % items}", "at": IN_2023 + n * MINUTE} for n in range(count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def prices(path: Path, count: int = 1000) -> Path:
    path.write_text("name,price\n" + "".join(f"i{n},{n}\n" for n in range(count)))
    return path


# Without preload, records whose late updates are ignored find what is there when they come.
@pytest.mark.parametrize(
    ("preload", "late_updates"),
    [
        (True, "correct"),
        (False, "correct"),
        (None, "correct"),
        (True, "ignore"),
        (None, "ignore"),
    ],
)
def test_table_without_a_time_is_there_for_events_of_the_past(
    tmp_path: Path, preload: bool | None, late_updates: Any
) -> None:
    count, sink = 5_000, ListSink()
    flow = fw.Flow("shop", retention="1000d")
    items = flow.table(
        "items", CsvSource(prices(tmp_path / "items.csv")), schema=Item, key="name", preload=preload
    )
    sold = flow.source(
        "sold", JsonLinesSource(sales(tmp_path / "sold.jsonl", count)), schema=Sale, timestamp="at"
    )
    sold.join(
        items,
        on="item",
        select=["left.item", "right.price"],
        late_updates=late_updates,
        name="priced",
    ).to(sink)
    job = flow.run()
    found = {record.timestamp: record.value for record in sink.records if record.value is not None}
    assert len(found) == count
    assert all(row.item == f"i{row.price}" for row in found.values())
    assert job.status.totals.late == 0


def test_table_without_a_time_never_moves_stream_time(tmp_path: Path) -> None:
    # Its clock carried stream time to the present when the events made a pause, and all that
    # followed was late.
    rows = [{"item": "i1", "at": IN_2023 + n * MINUTE} for n in range(400)]
    sink = ListSink()
    flow = fw.Flow("shop", idle="300ms")
    items = flow.table(
        "items", CsvSource(prices(tmp_path / "items.csv")), schema=Item, key="name", preload=True
    )
    sold = flow.source(
        "sold",
        ListSource([*rows[:200], Pause("1500ms"), *rows[200:]]),
        schema=Sale,
        timestamp="at",
    )
    priced = sold.join(items, on="item", select=["left.item", "right.price"], name="priced")
    priced.group_by("item").window(fw.tumbling("1h")).count(name="hours").changes(
        emit=fw.emit.final()
    ).to(sink)
    job = flow.run()
    assert sum(record.value.value for record in sink.records) == len(rows)
    assert job.status.totals.late == 0


def test_call_that_takes_longer_than_idle_makes_no_source_idle(tmp_path: Path) -> None:
    count, sink = 5_000, ListSink()

    def slow_once(sale: Sale) -> Sale:
        number = (sale.at - IN_2023) // MINUTE
        if number % 100 == 0:
            pause(2.5 if number == 100 else 0.01)  # what follows must not be over before a mark
        return sale

    flow = fw.Flow("slow", idle="400ms")
    one = flow.source(
        "one", JsonLinesSource(sales(tmp_path / "one.jsonl", count)), schema=Sale, timestamp="at"
    )
    end = {"item": "last", "at": IN_2023 + count * MINUTE}
    other = flow.source("other", ListSource([end, Pause("600ms")]), schema=Sale, timestamp="at")
    both = one.map(slow_once, schema=Sale, name="slow_once").merge(other, name="both")
    both.group_by("'all' AS what").window(fw.tumbling("1h")).count(name="hours").changes(
        emit=fw.emit.final()
    ).to(sink)
    job = flow.run()
    assert job.status.totals.late == 0
    assert sum(record.value.value for record in sink.records) == count + 1


def test_source_that_comes_back_with_a_backlog_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # It had read all it had by the time it was asked how far it was, and nobody was told.
    folder = tmp_path / "quiet"
    folder.mkdir()
    sales(folder / "first.jsonl", 1)
    flow = fw.Flow("back", idle="400ms")
    quiet = flow.source("quiet", JsonLinesSource(folder, watch=True), schema=Sale, timestamp="at")
    busy = tmp_path / "busy"
    busy.mkdir()
    sales(busy / "first.jsonl", 1_500)
    other = flow.source(
        "busy", JsonLinesSource(busy, watch=True), schema=Sale, timestamp="at", idle="1h"
    )
    quiet.merge(other, name="both").to(ListSink())
    end = IN_2023 + 1_499 * MINUTE
    with flow.start() as job:
        wait_for(lambda: end in [stage.stream_time for stage in job.status.stages], "idleness")
        backlog = sales(tmp_path / "backlog", 2_000)
        backlog.rename(folder / "second.jsonl")
        wait_for(lambda: "quiet was idle and is back" in caplog.text, "a warning")
        job.stop()
    assert "behind stream time" in caplog.text


def test_source_that_was_stopped_and_goes_on_is_not_idle(tmp_path: Path) -> None:
    count, sink = 4_000, ListSink()
    flow = fw.Flow("stopped", idle="400ms")
    one = flow.source(
        "one", JsonLinesSource(sales(tmp_path / "one.jsonl", count)), schema=Sale, timestamp="at"
    )
    end = {"item": "last", "at": IN_2023 + count * MINUTE}
    other = flow.source("other", ListSource([end, Pause("600ms")]), schema=Sale, timestamp="at")
    both = one.merge(other, name="both")
    both.group_by("'all' AS what").window(fw.tumbling("1h")).count(name="hours").changes(
        emit=fw.emit.final()
    ).to(sink)
    with flow.start() as job:
        job.wait_running()
        job.throttle("one", 2_000)
        wait_for(lambda: job.status.totals.records_in > 500, "some records")
        (task,) = [
            task
            for stage in job.status.stages
            if any(operator.counts.name == "one" for operator in stage.operators)
            for task in stage.tasks
        ]
        os.kill(task.pid, signal.SIGSTOP)
        pause(1.5)
        os.kill(task.pid, signal.SIGCONT)
        job.wait()
    assert job.status.totals.late == 0
    assert sum(record.value.value for record in sink.records) == count + 1


def slowly(sale: Sale, seconds: float, released: Path) -> Sale:
    """Hand a sale on, after a while unless there was the release."""
    if not released.exists():
        pause(seconds)
    return sale


@pytest.mark.slow
def test_sources_are_not_idle_while_they_are_switched_and_a_task_is_replaced(
    tmp_path: Path,
) -> None:
    # Each of these took longer than a source may be silent, and what was left of a source that had
    # not come as far as the other was late.
    hours = 2000
    flow = fw.Flow("moved", idle="400ms", retention=0)
    one, two = (
        flow.source(
            name,
            JsonLinesSource(sales(tmp_path / f"{name}.jsonl", hours * 60)),
            schema=Sale,
            timestamp="at",
        ).map(
            partial(slowly, seconds=seconds, released=release_of(tmp_path)),
            schema=Sale,
            name=f"slow_{name}",
        )
        for name, seconds in (("one", 0.001), ("two", 0.0005))
    )
    sold = one.merge(two, name="both").group_by("'all' AS what").window(fw.tumbling("1h"))
    sold.count(name="hours").changes(emit=fw.emit.final(), name="final").to(
        JsonLinesSink(tmp_path / "out")
    )
    with started(flow, tmp_path, dop=1) as job:
        switch_all(job, "operation")
        committed_again(job)
        kill_and_recover(job, "one")
        switch_all(job, "operation")
        committed_again(job)
        switch_all(job, "data")
        kill_and_recover(job, "hours")
        assert len(changes(tmp_path / "out")) < hours / 2, "all was over too soon to see anything"
        ended(job, tmp_path)
    operators = [operator.counts for stage in job.status.stages for operator in stage.operators]
    assert [counts.name for counts in operators if counts.returns] == []
    assert job.status.totals.late == 0
    times = [IN_2023 + n * MINUTE for n in range(hours * 60)]
    expected = Counter(time - time % (60 * MINUTE) for time in times)
    found = [(row["window"][0], row["value"]) for row in changes(tmp_path / "out")]
    assert found == [(start, 2 * count) for start, count in expected.items()]
