"""Scenarios of sources that a flow must not take for idle, however long it pauses itself."""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from floodway.model.flow import Flow
from floodway.operators import emit
from floodway.operators.windows import tumbling
from floodway_lab.simulation.outside import Feed
from floodway_lab.simulation.scenario import (
    Connections,
    Reading,
    Scenario,
    Shown,
    Stream,
    differing,
    items,
)

SIDES = ("much", "more")


class Backlog(Scenario):
    """Count what two sources have had for long, in perfect order; nobody may be late at all."""

    name = "backlog"
    retention_ms = 0
    idle_ms: ClassVar[tuple[int, ...]] = (50, 120, 300)
    size_ms = 100
    remote = False

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return readings in order, which have all come before the flow begins."""
        found = {}
        for side in SIDES:
            stream = Stream(random, most=70)
            rows = [(t, None, v) for t, v in stream.readings(ordered=True)]
            found[side] = stream.feed(rows, delay_ms=-stream.millis - 1)
        return found

    def build(self, flow: Flow, world: Connections) -> None:
        """Count, and show final results, and whatever is late."""
        much, more = (
            flow.source(side, world.backlog(side, remote=self.remote), schema=Reading)
            for side in SIDES
        )
        windowed = much.merge(more, name="both").group_by("name").window(tumbling(self.size_ms))
        counts = windowed.count(name="counts")
        counts.changes(emit=emit.final(), name="final").to(world.sink("final"), name="final_out")
        counts.late.to(world.sink("late"), name="late_out")

    def sinks(self) -> Sequence[str]:
        """Return the sinks of results and of late records."""
        return ["final", "late"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """No record is late, and every window has its count."""
        expected = Counter(
            (item.value.name, item.timestamp - item.timestamp % self.size_ms)
            for side in SIDES
            for item in items(feeds[side])
        )
        found = [
            ((row.value["key"], row.value["window"][0]), row.value["value"])
            for row in shown["final"]
        ]
        late = [row.value["n"] for row in shown["late"]]
        return differing([], late, "late records") or differing(expected.items(), found, "counts")


class RemoteBacklog(Backlog):
    """The same with sources that have nothing until something was fetched."""

    name = "remote backlog"
    remote = True
    # It takes up to 40 ms to fetch, and now and then a pause comes in between.
    idle_ms: ClassVar[tuple[int, ...]] = (200, 300, 500)
