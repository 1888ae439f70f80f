"""The workloads as flows of Floodway."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import floodway as fw
from floodway.connectors.base import Row, SinkConnector, SourceConnector, Split, Writer
from floodway.connectors.kafka import KafkaSource
from floodway.connectors.tcp import TcpSource
from floodway.core.schema import Schema
from floodway.demo import ads
from floodway_lab.cases import join, mean, road, sessions, words
from floodway_lab.systems.kit import Results, Task

Hand = Callable[[Results, Sequence[Row]], None]
"""How rows are handed over as results."""


@dataclass(frozen=True)
class ResultSink(SinkConnector):
    """Hands what comes over as results."""

    task: Task
    hand: Hand
    part: str = ""

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer of its own for each task."""
        return _ResultWriter(Results(self.task, f"{self.part}{split.index}"), self.hand)


class _ResultWriter(Writer):
    def __init__(self, results: Results, hand: Hand) -> None:
        self._results, self._hand = results, hand

    def write(self, rows: Sequence[Row]) -> None:
        self._hand(self._results, rows)

    def close(self) -> None:
        self._results.close()


def windowed(results: Results, rows: Sequence[Row]) -> None:
    """Hand changes of a windowed table over."""
    results.put((c.key, c.window.start, c.value, timestamp) for timestamp, _, c, _ in rows)


def unwindowed(results: Results, rows: Sequence[Row]) -> None:
    """Hand changes of a table without windows over."""
    results.put((c.key, 0, c.value, timestamp) for timestamp, _, c, _ in rows)


def amounts(results: Results, rows: Sequence[Row]) -> None:
    """Hand records over that are amounts."""
    results.tally((value, timestamp) for timestamp, _, value, _ in rows)


def _source(task: Task, number: int) -> SourceConnector:
    if task.link == "kafka":
        return KafkaSource(task.topic, servers=task.servers)
    return TcpSource("127.0.0.1", task.ports[number])


def _events(flow: fw.Flow, task: Task, schema: type, timestamp: str = "time") -> fw.Stream:
    """Return the events of all data engines."""
    sources = 1 if task.link == "kafka" else len(task.ports)
    first, *others = [
        flow.source(
            f"events{number or ''}",
            _source(task, number),
            schema=schema,
            timestamp=timestamp,
            on_error="skip",
        )
        for number in range(sources)
    ]
    for other in others:
        first = first.merge(other)
    return first


def _updates(table: fw.Table, task: Task, hand: Hand) -> None:
    """Hand each update of a table over."""
    table.changes(emit=fw.emit.latest(), name="updates").to(ResultSink(task, hand), name="results")


def ad_views(task: Task) -> fw.Flow:
    """Return the flow of ad analytics."""
    flow = fw.Flow("ads")
    events = _events(flow, task, ads.AdSeen, "event_time")
    _updates(ads.views_per_campaign(flow, events), task, windowed)
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
        _events(flow, task, SessionTimed)
        .group_by("geo")
        .window(fw.hopping(mean.SIZE_MS, advance=mean.HOP_MS))
        .mean("seconds", name="mean_per_place")
    )
    _updates(means, task, windowed)
    return flow


class Trade(fw.Record, frozen=True):
    """An offer or a sale."""

    time: int
    kind: str
    item: int
    price: int


def gains(task: Task) -> fw.Flow:
    """Return the flow of the windowed join."""
    flow = fw.Flow("gains", retention="1s")
    trades = _events(flow, task, Trade)
    offers = trades.filter("kind = 'offer'", name="offers").key_by("item", name="offered")
    sales = trades.filter("kind = 'sale'", name="sales").key_by("item", name="sold")
    offers.join(
        sales,
        within=join.WITHIN_MS,
        joiner=_gain,
        schema=int,
        name="gained",
    ).to(ResultSink(task, amounts), name="results")
    return flow


def _gain(offer: Trade, sale: Trade) -> int:
    return sale.price - offer.price


class Line(fw.Record, frozen=True):
    """A line of text."""

    time: int
    id: int
    text: str


def _words(flow: fw.Flow, task: Task) -> fw.Stream:
    return _events(flow, task, Line).flat_map(_split, schema=str, name="words")


def _split(line: Line) -> list[str]:
    return line.text.split(" ")


def word_counts(task: Task) -> fw.Flow:
    """Return the flow of WordCount."""
    flow = fw.Flow("words")
    _updates(_words(flow, task).group_by("value").count(name="counts"), task, unwindowed)
    return flow


def windowed_word_counts(task: Task) -> fw.Flow:
    """Return the flow of windowed WordCount."""
    flow = fw.Flow("windowed-words")
    windows = fw.tumbling(words.WINDOW_MS)
    counts = _words(flow, task).group_by("value").window(windows).count(name="counts")
    _updates(counts, task, windowed)
    return flow


def matches(task: Task) -> fw.Flow:
    """Return the flow of Grep."""
    flow = fw.Flow("grep")
    sought = f"concat(' ', text, ' ') LIKE '% {words.SOUGHT} %'"
    found = _events(flow, task, Line).filter(sought, name="matching")
    found.to(ResultSink(task, _numbers), name="results")
    return flow


def _numbers(results: Results, rows: Sequence[Row]) -> None:
    results.tally((line.id, timestamp) for timestamp, _, line, _ in rows)


class Click(fw.Record, frozen=True):
    """A click of somebody."""

    time: int
    user: int


def click_sessions(task: Task) -> fw.Flow:
    """Return the flow of sessionization; events come in order, so nothing changes afterwards."""
    flow = fw.Flow("sessions", retention=sessions.GAP_MS)
    clicks = (
        _events(flow, task, Click)
        .group_by("user")
        .window(fw.session(sessions.GAP_MS))
        .count(name="clicks")
    )
    over = clicks.changes(emit=fw.emit.after_window_end(), name="over")
    over.to(ResultSink(task, _weighted), name="results")
    return flow


def _weighted(results: Results, rows: Sequence[Row]) -> None:
    prime = sessions.PRIME
    results.tally((c.value * (c.key % prime + 1), timestamp) for timestamp, _, c, _ in rows)


class Report(fw.Record, frozen=True):
    """A position report."""

    time: int
    segment: int
    speed: int


class Speed(fw.Record, frozen=True):
    """The average speed of a segment in a minute."""

    segment: int
    speed: float


def tolls(task: Task) -> fw.Flow:
    """Return the flow of Linear Road: agg, block, mv, toll as in the thesis."""
    flow = fw.Flow("road", retention=road.MINUTE_MS)
    agg, mv = speeds(_events(flow, task, Report).filter("speed >= 0", name="parse"))
    agg.to(ResultSink(task, _blocks, "block-"), name="block")
    mv.to(ResultSink(task, _tolls, "toll-"), name="toll")
    return flow


def speeds(reports: fw.Stream) -> tuple[fw.Stream, fw.Stream]:
    """Return traffic and speed per segment and minute, and the mean speed of five minutes."""
    agg = (
        reports.group_by("segment")
        .window(fw.tumbling(road.MINUTE_MS))
        .agg(cars=fw.count(), speed=fw.mean("speed"), name="agg")
        .changes(emit=fw.emit.after_window_end(), name="minutes")
    )
    mv = (
        agg.map(_speed, schema=Speed, name="speeds")
        .group_by("segment")
        .window(fw.hopping(road.MINUTES * road.MINUTE_MS, advance=road.MINUTE_MS))
        .mean("speed", name="mv")
        .changes(emit=fw.emit.after_window_end(), name="five_minutes")
    )
    return agg, mv


def _speed(change: Any) -> Speed:
    return Speed(change.key, change.value.speed)


def _blocks(results: Results, rows: Sequence[Row]) -> None:
    results.put((f"block-{c.key}", c.window.start, c.value.cars, at) for at, _, c, _ in rows)


def _tolls(results: Results, rows: Sequence[Row]) -> None:
    results.put((f"toll-{c.key}", c.window.start, road.toll(c.value), at) for at, _, c, _ in rows)


FLOWS: dict[str, Callable[[Task], fw.Flow]] = {
    "ads": ad_views,
    "mean": session_means,
    "join": gains,
    "words": word_counts,
    "grep": matches,
    "windowed-words": windowed_word_counts,
    "sessions": click_sessions,
    "road": tolls,
}
"""The flow of each workload."""
