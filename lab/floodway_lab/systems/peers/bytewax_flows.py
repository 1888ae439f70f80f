"""The dataflows of Bytewax: from chunks of lines, each with the number of its link, to results."""

from collections.abc import Callable
from typing import Any

import bytewax.operators as op
import msgspec
from bytewax.operators import Stream
from bytewax_timed import Batch, Names, join, road, sessions
from events import AdSeen, SessionSeen, Text
from kit import Task

FOREVER_MS = 1 << 62
"""The length of a window that never ends; it begins at 0."""


class Counting(op.StatefulBatchLogic):
    """How many events a key has, by window."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._counts: dict[int, int] = {}

    def on_batch(self, values: list[int]) -> tuple[list[Any], bool]:
        counts, size = self._counts, self._window_ms
        latest = max(values)
        window = latest - latest % size
        if min(values) >= window:
            counts[window] = count = counts.get(window, 0) + len(values)
            return [(window, count, latest)], False
        windows: dict[int, list[int]] = {}
        for time_ms in values:
            windows.setdefault(time_ms - time_ms % size, []).append(time_ms)
        return [each for times in windows.values() for each in self.on_batch(times)[0]], False

    def snapshot(self) -> Any:
        return dict(self._counts)


def ads(task: Task, chunks: Stream) -> Stream:
    """Return the dataflow of ad analytics."""
    known, window_ms = task.options["campaigns"], task.options["window_ms"]
    decode = msgspec.json.Decoder(AdSeen).decode_lines

    def views(batch: Batch) -> list[tuple[str, int]]:
        return [
            (campaign, event.time)
            for _, lines in batch
            for event in decode(lines)
            if event.event_type == "view" and (campaign := known.get(event.ad_id)) is not None
        ]

    keyed = op.flat_map_batch("views", chunks, views)
    return op.stateful_batch("counts", keyed, lambda _: Counting(window_ms))


class Averaging(op.StatefulBatchLogic):
    """The mean of a key, by window; windows overlap."""

    def __init__(self, size_ms: int, hop_ms: int) -> None:
        self._size_ms, self._hop_ms = size_ms, hop_ms
        self._sums: dict[int, list[int]] = {}

    def on_batch(self, values: list[tuple[int, int]]) -> tuple[list[Any], bool]:
        hops: dict[int, list[tuple[int, int]]] = {}
        sums, size, every = self._sums, self._size_ms, self._hop_ms
        for value in values:
            hops.setdefault(value[0] - value[0] % every, []).append(value)
        latest: dict[int, int] = {}
        for hop, some in hops.items():
            whole, last_ms = sum(seconds for _, seconds in some), max(some)[0]
            for start in range(hop - size + every, hop + 1, every):
                held = sums.setdefault(start, [0, 0])
                held[0] += whole
                held[1] += len(some)
                latest[start] = max(last_ms, latest.get(start, 0))
        found = [(start, sums[start][0] / sums[start][1], at) for start, at in latest.items()]
        return found, False

    def snapshot(self) -> Any:
        return dict(self._sums)


def mean(task: Task, chunks: Stream) -> Stream:
    """Return the dataflow of windowed aggregation."""
    size_ms, hop_ms = task.options["size_ms"], task.options["hop_ms"]
    decode, names = msgspec.json.Decoder(SessionSeen).decode_lines, Names()

    def seen(batch: Batch) -> list[tuple[str, tuple[int, int]]]:
        return [
            (names[event.geo], (event.time, event.seconds))
            for _, lines in batch
            for event in decode(lines)
        ]

    keyed = op.flat_map_batch("sessions", chunks, seen)
    return op.stateful_batch("means", keyed, lambda _: Averaging(size_ms, hop_ms))


def words(task: Task, chunks: Stream) -> Stream:
    """Return the dataflow of WordCount, with windows or without."""
    window_ms = task.options.get("window_ms", FOREVER_MS)
    decode = msgspec.json.Decoder(Text).decode_lines

    def split(batch: Batch) -> list[tuple[str, int]]:
        return [
            (word, event.time)
            for _, lines in batch
            for event in decode(lines)
            for word in event.text.split(" ")
        ]

    keyed = op.flat_map_batch("words", chunks, split)
    return op.stateful_batch("counts", keyed, lambda _: Counting(window_ms))


def grep(task: Task, chunks: Stream) -> Stream:
    """Return the dataflow of Grep."""
    sought = task.options["sought"]
    decode = msgspec.json.Decoder(Text).decode_lines

    def having(batch: Batch) -> list[tuple[str, tuple[int, int]]]:
        return [
            (sought, (event.id, event.time))
            for _, lines in batch
            for event in decode(lines)
            if sought in event.text and sought in event.text.split(" ")
        ]

    return op.flat_map_batch("lines", chunks, having)


FLOWS: dict[str, Callable[[Task, Stream], Stream]] = {
    "ads": ads,
    "mean": mean,
    "join": join,
    "words": words,
    "grep": grep,
    "windowed-words": words,
    "sessions": sessions,
    "road": road,
}
"""The dataflow of each workload."""

TALLIED = {"join", "grep", "sessions"}
"""Those whose results count one by one."""

IN_ORDER = {"sessions", "road"}
"""Those that need the events of a link in order."""
