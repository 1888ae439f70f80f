"""Pathway: tables that are kept up to date by its engine in Rust, one worker thread per task.

Tuning: a row of the input is a chunk of lines, not a line, since a Python connector takes far fewer
rows a second than there are events. A deterministic function decodes a chunk with msgspec and picks
what is needed; `flatten` makes rows of that. The input is append-only, so `max` keeps one value per
group. Windows are groups of `groupby`: `windowby` finds the same with more rows on the way. Every
chunk is a mini-batch (`autocommit_duration_ms` is 1). Few may wait (`max_backlog_size`): so chunks
are short as long as the system keeps up, longer under load, and what is too much stays in the queue
before the system. What comes at the end of a window is held in a `buffer` after it was reduced, and
not before. No monitoring, no telemetry, no persistence.
"""

import os
import selectors
from collections.abc import Callable
from typing import Any

import msgspec
import pathway as pw
from events import AdSeen, Click, Report, SessionSeen, Text, Trade
from kit import Link, Results, Row, Task, run

COMMIT_MS = 1
"""How long rows wait for others of the same mini-batch."""

BACKLOG = 2
"""So many chunks may wait, and so many may be in the works."""

CHUNK_BYTES = 512 * 1024
"""How long a chunk may be, about."""

KEPT_MS = 10_000
"""For so much longer than it has to, a join keeps what may still find a match."""


class Chunks(pw.io.python.ConnectorSubject):
    """Chunks of whole lines: all that has come since the last one was taken."""

    def __init__(self, ports: list[int]) -> None:
        super().__init__()
        self._ports = ports

    def run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for port in self._ports:
                link = Link(port, blocking=False)
                selector.register(link.socket, selectors.EVENT_READ, link)
            while selector.get_map():
                found, size = list[bytes](), 0
                ready = selector.select()
                while ready and size < CHUNK_BYTES:
                    for each, _ in ready:
                        lines = each.data.read()
                        if lines is None:
                            selector.unregister(each.fileobj)
                        elif lines:
                            found.append(lines)
                            size += len(lines)
                    ready = selector.select(0)
                if found:
                    self.next(lines=b"".join(found))

    @property
    def _deletions_enabled(self) -> bool:
        return False


class Lines(pw.Schema):
    """A chunk of lines."""

    lines: bytes


def rows(task: Task, pick: Callable[[bytes], list[Any]], *names: str) -> pw.Table:
    """Return a table of what a function finds in chunks of lines: tuples with these names."""
    source = Chunks(task.ports)
    lines = pw.io.python.read(
        source, schema=Lines, autocommit_duration_ms=COMMIT_MS, max_backlog_size=BACKLOG
    )
    picked = lines.select(row=pw.udf(pick, deterministic=True)(pw.this.lines)).flatten(pw.this.row)
    return picked.select(**{name: pw.this.row[place] for place, name in enumerate(names)})


def put(table: pw.Table, results: Results, read: Callable[[dict[str, Any]], Row]) -> None:
    """Hand over what changes in a table."""
    found: list[Row] = []

    def change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:  # noqa: FBT001
        if is_addition:
            found.append(read(row))

    def batch_over(time: int) -> None:
        results.put(found)
        found.clear()

    pw.io.subscribe(table, change, on_time_end=batch_over)


def tally(table: pw.Table, results: Results) -> None:
    """Hand over the amount and the time of each new row."""
    found: list[tuple[int, int]] = []

    def change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:  # noqa: FBT001
        if is_addition:
            found.append((row["amount"], row["time"]))

    def batch_over(time: int) -> None:
        results.tally(found)
        found.clear()

    pw.io.subscribe(table, change, on_time_end=batch_over)


def windowed(row: dict[str, Any]) -> Row:
    """Return the result of a key in a window."""
    return row["key"], row["window"], row["value"], row["latest"]


def ads(task: Task, results: Results) -> None:
    """Count the views of a campaign in each window."""
    known, window_ms = task.options["campaigns"], task.options["window_ms"]
    decode = msgspec.json.Decoder(AdSeen).decode_lines

    def views(lines: bytes) -> list[tuple[str, int]]:
        return [
            (campaign, event.time)
            for event in decode(lines)
            if event.event_type == "view" and (campaign := known.get(event.ad_id)) is not None
        ]

    put(counts(rows(task, views, "key", "time"), window_ms), results, windowed)


def counts(table: pw.Table, window_ms: int) -> pw.Table:
    """Count the rows of each key in each window."""
    table = table.with_columns(window=pw.this.time - pw.this.time % window_ms)
    return table.groupby(pw.this.key, pw.this.window).reduce(
        pw.this.key,
        pw.this.window,
        value=pw.reducers.count(),
        latest=pw.reducers.max(pw.this.time),
    )


def mean(task: Task, results: Results) -> None:
    """Take the mean of each place in windows that overlap: add up by hop, then hops by window."""
    size_ms, hop_ms = task.options["size_ms"], task.options["hop_ms"]
    decode = msgspec.json.Decoder(SessionSeen).decode_lines

    def sessions(lines: bytes) -> list[tuple[int, int, int, int]]:
        return [(e.geo, e.time - e.time % hop_ms, e.seconds, e.time) for e in decode(lines)]

    @pw.udf(deterministic=True)
    def windows(hop: int) -> list[int]:
        return list(range(hop - size_ms + hop_ms, hop + 1, hop_ms))

    table = rows(task, sessions, "key", "hop", "seconds", "time")
    hops = table.groupby(pw.this.key, pw.this.hop).reduce(
        pw.this.key,
        pw.this.hop,
        seconds=pw.reducers.sum(pw.this.seconds),
        count=pw.reducers.count(),
        latest=pw.reducers.max(pw.this.time),
    )
    hops = hops.with_columns(window=windows(pw.this.hop)).flatten(pw.this.window)
    means = hops.groupby(pw.this.key, pw.this.window).reduce(
        pw.this.key,
        pw.this.window,
        value=pw.reducers.sum(pw.this.seconds) / pw.reducers.sum(pw.this.count),
        latest=pw.reducers.max(pw.this.latest),
    )
    put(means, results, windowed)


def split(task: Task) -> pw.Table:
    """Return each word with its time."""
    decode = msgspec.json.Decoder(Text).decode_lines

    def texts(lines: bytes) -> list[tuple[list[str], int]]:
        return [(event.text.split(" "), event.time) for event in decode(lines)]

    return rows(task, texts, "key", "time").flatten(pw.this.key)


def words(task: Task, results: Results) -> None:
    """Count each word."""
    whole = split(task).groupby(pw.this.key)
    whole = whole.reduce(
        pw.this.key, value=pw.reducers.count(), latest=pw.reducers.max(pw.this.time)
    )
    put(whole, results, lambda row: (row["key"], 0, row["value"], row["latest"]))


def windowed_words(task: Task, results: Results) -> None:
    """Count each word in each window."""
    put(counts(split(task), task.options["window_ms"]), results, windowed)


def grep(task: Task, results: Results) -> None:
    """Find the lines that have a word."""
    decode, sought = msgspec.json.Decoder(Text).decode_lines, task.options["sought"]

    def found(lines: bytes) -> list[tuple[int, int]]:
        return [
            (event.id, event.time)
            for event in decode(lines)
            if sought in event.text and sought in event.text.split(" ")
        ]

    tally(rows(task, found, "amount", "time"), results)


def join(task: Task, results: Results) -> None:
    """Join offers and sales of an item that are not far apart."""
    within_ms = task.options["within_ms"]
    decode = msgspec.json.Decoder(Trade).decode_lines

    def trades(lines: bytes) -> list[tuple[bool, int, int, int]]:
        return [(e.kind == "offer", e.item, e.price, e.time) for e in decode(lines)]

    table = rows(task, trades, "offered", "item", "price", "time")
    offers, sales = table.filter(pw.this.offered), table.filter(~pw.this.offered)
    pairs = offers.interval_join(
        sales,
        offers.time,
        sales.time,
        pw.temporal.interval(-within_ms, within_ms),
        offers.item == sales.item,
        behavior=pw.temporal.common_behavior(cutoff=within_ms + KEPT_MS),
    ).select(
        amount=sales.price - offers.price,
        time=pw.if_else(offers.time > sales.time, offers.time, sales.time),
    )
    tally(pairs, results)


def sessions(task: Task, results: Results) -> None:
    """Cut the clicks of each visitor where there is a pause."""
    gap_ms, prime = task.options["gap_ms"], task.options["prime"]
    decode = msgspec.json.Decoder(Click).decode_lines

    def clicks(lines: bytes) -> list[tuple[int, int]]:
        return [(event.user, event.time) for event in decode(lines)]

    @pw.reducers.stateful_many
    def cut(
        state: tuple[tuple[int, int], ...] | None, more: list[tuple[list[int], int]]
    ) -> tuple[tuple[int, int], ...]:
        held = list(state or ())
        for (time_ms,), times in sorted(more):  # those of one moment are one row
            if held and time_ms - held[-1][1] <= gap_ms:
                held[-1] = held[-1][0] + times, time_ms
            else:
                held.append((times, time_ms))
        return tuple(held)

    table = rows(task, clicks, "user", "time")
    visits = table.groupby(pw.this.user).reduce(pw.this.user, visit=cut(pw.this.time))
    visits = visits.update_types(visit=tuple[tuple[int, int], ...]).flatten(pw.this.visit)
    visits = visits.select(
        amount=pw.this.visit[0] * (pw.this.user % prime + 1), time=pw.this.visit[1]
    )
    tally(visits.buffer(pw.this.time, gap_ms + 1), results)


def road(task: Task, results: Results) -> None:
    """Count the reports of a segment and minute; make tolls of the speed of five minutes."""
    minute_ms, minutes = task.options["minute_ms"], task.options["minutes"]
    crowded = task.options["crowded"]
    decode = msgspec.json.Decoder(Report).decode_lines

    def reports(lines: bytes) -> list[tuple[int, int, int, int]]:
        return [
            (event.segment, event.time - event.time % minute_ms, event.speed, event.time)
            for event in decode(lines)
            if event.speed >= 0
        ]

    @pw.udf(deterministic=True)
    def windows(minute: int) -> list[int]:
        return [minute - back * minute_ms for back in range(minutes)]

    table = rows(task, reports, "segment", "minute", "speed", "time")
    blocks = table.groupby(pw.this.segment, pw.this.minute).reduce(
        pw.this.segment,
        pw.this.minute,
        count=pw.reducers.count(),
        speed=pw.reducers.avg(pw.this.speed),
        latest=pw.reducers.max(pw.this.time),
    )
    blocks = blocks.buffer(pw.this.minute, minute_ms)
    put(
        blocks,
        results,
        lambda row: (f"block-{row['segment']}", row["minute"], row["count"], row["latest"]),
    )
    # A window is whole with its last minute, which is also the latest that a window begins with.
    means = blocks.with_columns(window=windows(pw.this.minute)).flatten(pw.this.window)
    means = means.groupby(pw.this.segment, pw.this.window).reduce(
        pw.this.segment,
        pw.this.window,
        # Not `avg`: a sum of floats that is not strict misses values that are replaced.
        speed=pw.reducers.sum(pw.this.speed, strict=True) / pw.reducers.count(),
        latest=pw.reducers.max(pw.this.latest),
    )
    means = means.buffer(pw.this.window, (minutes - 1) * minute_ms)

    def toll(row: dict[str, Any]) -> Row:
        speed = row["speed"]
        price = 2 * (crowded - speed) ** 2 if speed < crowded else 0.0
        return f"toll-{row['segment']}", row["window"], price, row["latest"]

    put(means, results, toll)


FLOWS = {
    "ads": ads,
    "mean": mean,
    "words": words,
    "windowed-words": windowed_words,
    "grep": grep,
    "join": join,
    "sessions": sessions,
    "road": road,
}


def start(task: Task) -> None:
    """Run the computation until all events have come."""
    os.environ["PATHWAY_THREADS"] = str(task.dop)
    results = Results(task)
    FLOWS[task.case](task, results)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    results.close()


if __name__ == "__main__":
    run(start)
