"""Heartbeats: machines say that they are alive, and each second shows how many did.

Shows: a flow with its own source and sink, so that ``floodway run`` can run it on Spark: numbers at
a rate, made into heartbeats, counted in windows of a second, written to standard output as JSON.

Run it on Spark: ``floodway run examples/heartbeats.py:build --seconds 5``

Run it without: ``python examples/heartbeats.py``
"""

import floodway as fw
from floodway.connectors.base import SinkConnector
from floodway.connectors.rate import RateSource
from floodway.connectors.stdio import StdoutSink
from floodway.testing import Driver, ListSink

MACHINES = 3


class Alive(fw.Record):
    second: int
    machine: str
    beats: int


def alive(change: fw.Change) -> Alive:
    """Return what to show of the count of one machine and second."""
    assert change.window is not None
    return Alive(change.window.start // 1000, change.key, change.value)


def build(sink: SinkConnector | None = None) -> fw.Flow:
    flow = fw.Flow("heartbeats", retention="0s")
    numbers = flow.source("numbers", RateSource(200), schema=int)
    beats = numbers.select(f"concat('machine ', value % {MACHINES}) AS machine", name="beats")
    counts = beats.group_by("machine").window(fw.tumbling("1s")).count(name="per_second")
    finals = counts.changes(emit=fw.emit.final(), name="finals")
    finals.map(alive, name="alive").to(sink or StdoutSink(), name="shown")
    return flow


def main() -> None:
    shown = ListSink()
    with Driver(build(shown)) as driver:
        driver.push_at("numbers", *((100 * number, number) for number in range(25)))
    for row in shown.values:
        print(f"second {row.second}: {row.machine} beat {row.beats} times")


if __name__ == "__main__":
    main()
