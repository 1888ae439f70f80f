"""Flink's DataStream API in Python, in a local cluster in one process.

Tuning: lines come in chunks, which are decoded with msgspec in one call and, where there is a sum
to be made, added up per key and window before they are sent on (what Flink calls local-global
aggregation); Python runs in the threads of the Java process (thread mode), so there are no bundles
to wait for, and nothing goes to another process; what is kept per key is in Flink's keyed state.
Objects are reused; buffers are sent after 2 ms at the latest, and watermarks come every 5 ms;
checkpoints are off.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from events import decoder
from flink_functions import (
    Averaging,
    Blocks,
    Clicks,
    Counting,
    Field,
    HandOver,
    Joining,
    OfWindow,
    Speeds,
)
from flink_shared import Cluster
from kit import Task, run
from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.datastream import DataStream
from pyflink.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

SETTINGS = {
    "python.executable": sys.executable,
    "python.client.executable": sys.executable,
    "python.pythonpath": os.pathsep.join(path for path in sys.path if path),
    "python.execution-mode": "thread",
}

TRADED = Types.TUPLE([Types.LONG()] * 4)
"""Item, whether it was sold, when, and the price."""

COUNTED = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()])
"""Key, window, how many, and the latest time."""


SUMMED = Types.TUPLE(
    [Types.TUPLE([Types.LONG(), Types.LONG()]), Types.LONG(), Types.LONG(), Types.LONG()]
)
"""Key and window, the sum, how many, and the latest time."""

MEANS = Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE(), Types.LONG()])
"""Key, window, the mean, and the latest time."""


def ads(task: Task, chunks: list[DataStream]) -> None:
    """Count views per campaign in windows."""
    known, size = task.options["campaigns"], task.options["window_ms"]

    def views(lines: bytes) -> Iterator[tuple[str, int]]:
        for event in decoder("ads")(lines):
            if event.event_type == "view" and (campaign := known.get(event.ad_id)) is not None:
                yield campaign, event.time

    count(task, chunks, views, size)


def count(
    task: Task,
    chunks: list[DataStream],
    found: Callable[[bytes], Iterable[tuple[str, int]]],
    size: int,
) -> None:
    """Count what is found in events, by key and window; without a size there is one window."""

    def partly(lines: bytes) -> Iterable[Any]:
        counts: dict[tuple[str, int], list[int]] = {}
        for key, time_ms in found(lines):
            held = counts.setdefault((key, time_ms - time_ms % size if size else 0), [0, 0])
            held[0] += 1
            if time_ms > held[1]:
                held[1] = time_ms
        return [(*place, *held) for place, held in counts.items()]

    parts = united(chunks).flat_map(partly, COUNTED)
    counts = parts.key_by(lambda part: part[0], Types.STRING()).process(Counting(), COUNTED)
    end(counts.flat_map(HandOver(task)))


def mean(task: Task, chunks: list[DataStream]) -> None:
    """Take the mean per place, in windows that overlap."""
    size, hop = task.options["size_ms"], task.options["hop_ms"]

    def partly(lines: bytes) -> Iterable[Any]:
        sums: dict[tuple[int, int], list[int]] = {}
        for event in decoder("mean")(lines):
            add(sums, (event.geo, event.time - event.time % hop), event.seconds, event.time)
        return [(place, *held) for place, held in sums.items()]

    parts = united(chunks).flat_map(partly, SUMMED)
    means = parts.key_by(lambda part: part[0][0], Types.LONG()).process(Averaging(size, hop), MEANS)
    end(means.flat_map(HandOver(task)))


def add(sums: dict[Any, list[int]], place: Any, amount: int, time_ms: int) -> None:
    """Add an event to a sum."""
    held = sums.setdefault(place, [0, 0, 0])
    held[0] += amount
    held[1] += 1
    if time_ms > held[2]:
        held[2] = time_ms


def words(task: Task, chunks: list[DataStream]) -> None:
    """Count words, in windows if these have a length."""

    def split(lines: bytes) -> Iterator[tuple[str, int]]:
        for event in decoder("words")(lines):
            for word in event.text.split(" "):
                yield word, event.time

    count(task, chunks, split, task.options.get("window_ms", 0))


def grep(task: Task, chunks: list[DataStream]) -> None:
    """Find the lines that have a word."""
    sought = task.options["sought"]

    def found(lines: bytes) -> Iterable[Any]:
        for event in decoder("grep")(lines):
            if sought in event.text.split(" "):
                yield event.id, event.time

    end(united(chunks).flat_map(found).flat_map(HandOver(task, tally=True)))


def join(task: Task, chunks: list[DataStream]) -> None:
    """Join offers and sales."""

    def trades(lines: bytes) -> Iterable[Any]:
        for trade in decoder("join")(lines):
            yield trade.item, int(trade.kind == "sale"), trade.time, trade.price

    timed = [stamped(each.flat_map(trades, TRADED), 2) for each in chunks]
    pairs = (
        united(timed)
        .key_by(lambda trade: trade[0], Types.LONG())
        .process(Joining(task.options["within_ms"]), Types.TUPLE([Types.LONG(), Types.LONG()]))
    )
    end(pairs.flat_map(HandOver(task, tally=True)))


def sessions(task: Task, chunks: list[DataStream]) -> None:
    """Count clicks per session."""
    gap, prime = task.options["gap_ms"], task.options["prime"]
    kind = Types.TUPLE([Types.LONG()] * 3)

    def clicks(lines: bytes) -> Iterable[Any]:
        return [(click.user, click.time) for click in decoder("sessions")(lines)]

    of = Types.TUPLE([Types.LONG(), Types.LONG()])
    timed = [stamped(each.flat_map(clicks, of), 1) for each in chunks]
    found = (
        united(timed)
        .key_by(lambda click: click[0], Types.LONG())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(gap)))
        .aggregate(Clicks(), accumulator_type=kind, output_type=kind)
        .map(lambda over: (over[1] * (over[0] % prime + 1), over[2]))
    )
    end(found.flat_map(HandOver(task, tally=True)))


def road(task: Task, chunks: list[DataStream]) -> None:
    """Take the speed per segment and minute, and the toll of some minutes."""
    minute, crowded = task.options["minute_ms"], task.options["crowded"]
    size = Time.milliseconds(minute * task.options["minutes"])
    part = Types.TUPLE([Types.LONG(), Types.DOUBLE(), Types.LONG(), Types.LONG()])
    sums = Types.TUPLE([Types.DOUBLE(), Types.LONG(), Types.LONG()])
    whole = Types.TUPLE([Types.LONG()] * 2 + [Types.DOUBLE()] + [Types.LONG()] * 2)

    def partly(lines: bytes) -> Iterable[Any]:
        found: dict[tuple[int, int], list[int]] = {}
        for report in decoder("road")(lines):
            if report.speed >= 0:
                place = report.segment, report.time - report.time % minute
                add(found, place, report.speed, report.time)
        ordered = sorted(found.items(), key=lambda item: item[1][2])
        return [(place[0], float(held[0]), *held[1:]) for place, held in ordered]

    def toll(value: Any) -> Any:
        segment, start, speeds, number, time_ms = value
        speed = speeds / number
        cost = 2 * (crowded - speed) ** 2 if speed < crowded else 0.0
        return f"toll-{segment}", start, cost, time_ms

    def windowed(stream: DataStream, assigner: Any) -> DataStream:
        keyed = stream.key_by(lambda each: each[0], Types.LONG()).window(assigner)
        return keyed.aggregate(Speeds(), OfWindow(), accumulator_type=sums, output_type=whole)

    timed = [stamped(each.flat_map(partly, part), 3) for each in chunks]
    tumbling = TumblingEventTimeWindows.of(Time.milliseconds(minute))
    speeds = windowed(united(timed), tumbling).flat_map(Blocks(task), part)
    sliding = SlidingEventTimeWindows.of(size, Time.milliseconds(minute))
    end(windowed(speeds, sliding).map(toll).flat_map(HandOver(task)))


def stamped(stream: DataStream, field: int) -> DataStream:
    """Return a stream with times; events that come 1 ms late are still in time."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1))
    return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Field(field)))


def united(streams: list[DataStream]) -> DataStream:
    """Return all streams as one."""
    return streams[0].union(*streams[1:]) if len(streams) > 1 else streams[0]


def end(stream: DataStream) -> None:
    """Let nothing come after a stream."""
    stream._j_data_stream.print()  # noqa: SLF001 - without a worker for it


FLOWS: dict[str, Callable[[Task, list[DataStream]], None]] = {
    "ads": ads,
    "mean": mean,
    "join": join,
    "words": words,
    "windowed-words": words,
    "grep": grep,
    "sessions": sessions,
    "road": road,
}


def start(task: Task) -> None:
    """Run the job until all events have come."""
    cluster = Cluster(task, SETTINGS)
    kind = Types.PRIMITIVE_ARRAY(Types.BYTE()).get_java_type_info()
    FLOWS[task.case](task, [DataStream(each) for each in cluster.lines(None, kind)])
    cluster.env.execute(task.case)


if __name__ == "__main__":
    run(start)
