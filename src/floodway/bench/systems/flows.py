"""Floodway itself, as a system under test: the flows, and a sink that hands results over.

Tuning: ``dual`` is how flows run if nobody says anything; ``data`` and ``operation`` have b_out
1000; ``unbatched`` has b_out 1 and no two operators in one task.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import floodway as fw
from floodway.bench import ads
from floodway.bench.cases import mean
from floodway.bench.systems.kit import Results, Task, run
from floodway.bench.tracing import Mode, tuning
from floodway.connectors.base import Row, SinkConnector, Split, Writer
from floodway.connectors.tcp import TcpSource
from floodway.core.schema import Schema
from floodway.engine.job import start as start_job
from floodway.plan import Configuration
from floodway.testing import At, ListSource

MODES: dict[str, Mode] = {
    "dual": "dual",
    "data": "data",
    "operation": "operation",
    "unbatched": "data_unbatched",
}


@dataclass(frozen=True)
class ResultSink(SinkConnector):
    """Hands changes of a table over as results."""

    task: Task

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer of its own for each task."""
        return _ResultWriter(self.task, split.index)


class _ResultWriter(Writer):
    def __init__(self, task: Task, part: int) -> None:
        self._results = Results(task, part)

    def write(self, rows: Sequence[Row]) -> None:
        self._results.put(
            (value.key, value.window.start, value.value, timestamp)
            for timestamp, _, value, _ in rows
        )

    def close(self) -> None:
        self._results.close()


def _events(flow: fw.Flow, ports: Sequence[int], schema: type, timestamp: str) -> fw.Stream:
    """Return the events of all data engines."""
    streams = [
        flow.source(
            f"events{number or ''}",
            TcpSource("127.0.0.1", port),
            schema=schema,
            timestamp=timestamp,
            on_error="skip",
        )
        for number, port in enumerate(ports)
    ]
    first, *others = streams
    for other in others:
        first = first.merge(other)
    return first


def ad_views(task: Task) -> fw.Flow:
    """Return the flow of ad analytics."""
    flow = fw.Flow("ads")
    table = flow.table(
        "campaigns",
        ListSource([At(0, campaign, ad) for ad, campaign in ads.campaigns().items()]),
        schema=str,
        key=str,
        preload=True,
    )
    views = (
        _events(flow, task.ports, ads.AdSeen, "event_time")
        .filter("event_type = 'view'", name="views")
        .join(
            table,
            on="ad_id",
            select=["right AS campaign"],
            late_updates="ignore",
            broadcast=True,
            name="with_campaign",
        )
        .group_by("campaign")
        .window(fw.tumbling(ads.WINDOW_MS))
        .count(name="views_per_campaign")
    )
    views.changes(emit=fw.emit.latest(), name="updates").to(ResultSink(task), name="results")
    return flow


class SessionTimed(fw.Record, frozen=True):
    """An event of windowed aggregation."""

    time: int
    geo: int
    seconds: int


def session_means(task: Task) -> fw.Flow:
    """Return the flow of windowed aggregation."""
    flow = fw.Flow("means")
    means = (
        _events(flow, task.ports, SessionTimed, "time")
        .group_by("geo")
        .window(fw.hopping(mean.SIZE_MS, advance=mean.HOP_MS))
        .mean("seconds", name="mean_per_place")
    )
    means.changes(emit=fw.emit.latest(), name="updates").to(ResultSink(task), name="results")
    return flow


FLOWS: dict[str, Callable[[Task], fw.Flow]] = {"ads": ad_views, "mean": session_means}
"""The flow of each workload."""


def start(task: Task) -> None:
    """Run a flow until all events have come."""
    flow = FLOWS[task.case](task)
    mode = MODES[task.options.get("mode", "dual")]
    start_job(flow, configuration=Configuration(tuning(mode, task.dop))).wait()


if __name__ == "__main__":
    run(start)
