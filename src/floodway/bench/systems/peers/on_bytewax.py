"""Bytewax: a dataflow of its operators, one worker thread per task.

Tuning: lines come in chunks, which are decoded with msgspec in one call (`flat_map_batch`); what is
kept per key is in `stateful_batch`, which is called once per batch and key; results come out with
every batch, not at the end of a window, since that would be later.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import bytewax.operators as op
import msgspec
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.run import cli_main
from kit import Link, Results, Task, run

LOOK = timedelta(milliseconds=1)


class Ports(DynamicSource):
    """Every worker has its share of the ports."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = ports

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Any:
        return Chunks(self._ports[worker_index::worker_count])


class Chunks(StatelessSourcePartition):
    """Chunks of whole lines."""

    def __init__(self, ports: list[int]) -> None:
        self._links = [Link(port, blocking=False) for port in ports]
        self._awake: datetime | None = None

    def next_batch(self) -> list[bytes]:
        found = []
        for link in list(self._links):
            lines = link.read()
            if lines is None:
                self._links.remove(link)
            elif lines:
                found.append(lines)
        if not self._links and not found:
            raise StopIteration
        self._awake = None if found else datetime.now(UTC) + LOOK
        return found

    def next_awake(self) -> datetime | None:
        return self._awake


class ToResults(DynamicSink):
    """Hands results over."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Any:
        return Written(Results(self._task, worker_index))


class Written(StatelessSinkPartition):
    """The results of one worker."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def write_batch(self, items: list[Any]) -> None:
        self._results.put((key, *found) for key, found in items)

    def close(self) -> None:
        self._results.close()


class AdSeen(msgspec.Struct):
    """What is needed of an ad event."""

    ad_id: str
    event_type: str
    event_time: int


class Counting(op.StatefulBatchLogic):
    """How many events a key has, by window."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._counts: dict[int, int] = {}

    def on_batch(self, values: list[int]) -> tuple[list[Any], bool]:
        latest: dict[int, int] = {}
        counts, size = self._counts, self._window_ms
        for time_ms in values:
            window = time_ms - time_ms % size
            counts[window] = counts.get(window, 0) + 1
            if time_ms > latest.get(window, 0):
                latest[window] = time_ms
        return [(window, counts[window], time_ms) for window, time_ms in latest.items()], False

    def snapshot(self) -> Any:
        return dict(self._counts)


def ads(task: Task) -> Dataflow:
    """Return the dataflow of ad analytics."""
    known, window_ms = task.options["campaigns"], task.options["window_ms"]
    decode = msgspec.json.Decoder(AdSeen).decode_lines

    def views(batch: list[bytes]) -> list[tuple[str, int]]:
        return [
            (campaign, event.event_time)
            for lines in batch
            for event in decode(lines)
            if event.event_type == "view" and (campaign := known.get(event.ad_id)) is not None
        ]

    flow = Dataflow("ads")
    lines = op.input("lines", flow, Ports(task.ports))
    keyed = op.flat_map_batch("views", lines, views)
    counts = op.stateful_batch("counts", keyed, lambda _: Counting(window_ms))
    op.output("out", counts, ToResults(task))
    return flow


class SessionSeen(msgspec.Struct):
    """An event of windowed aggregation."""

    time: int
    geo: int
    seconds: int


class Averaging(op.StatefulBatchLogic):
    """The mean of a key, by window; windows overlap."""

    def __init__(self, size_ms: int, hop_ms: int) -> None:
        self._size_ms, self._hop_ms = size_ms, hop_ms
        self._sums: dict[int, list[int]] = {}

    def on_batch(self, values: list[tuple[int, int]]) -> tuple[list[Any], bool]:
        latest: dict[int, int] = {}
        sums, size, every = self._sums, self._size_ms, self._hop_ms
        for time_ms, seconds in values:
            hop = time_ms - time_ms % every
            for start in range(hop - size + every, hop + 1, every):
                held = sums.setdefault(start, [0, 0])
                held[0] += seconds
                held[1] += 1
                if time_ms > latest.get(start, 0):
                    latest[start] = time_ms
        found = [(start, sums[start][0] / sums[start][1], at) for start, at in latest.items()]
        return found, False

    def snapshot(self) -> Any:
        return dict(self._sums)


def mean(task: Task) -> Dataflow:
    """Return the dataflow of windowed aggregation."""
    size_ms, hop_ms = task.options["size_ms"], task.options["hop_ms"]
    decode = msgspec.json.Decoder(SessionSeen).decode_lines

    def sessions(batch: list[bytes]) -> list[tuple[str, tuple[int, int]]]:
        return [
            (str(event.geo), (event.time, event.seconds))
            for lines in batch
            for event in decode(lines)
        ]

    flow = Dataflow("mean")
    lines = op.input("lines", flow, Ports(task.ports))
    keyed = op.flat_map_batch("sessions", lines, sessions)
    means = op.stateful_batch("means", keyed, lambda _: Averaging(size_ms, hop_ms))
    op.output("out", means, ToResults(task))
    return flow


FLOWS = {"ads": ads, "mean": mean}


def start(task: Task) -> None:
    """Run the dataflow until all events have come."""
    cli_main(FLOWS[task.case](task), workers_per_process=task.dop)


if __name__ == "__main__":
    run(start)
