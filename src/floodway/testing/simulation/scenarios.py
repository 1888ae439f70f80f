"""The scenarios: one of each kind of flow, small, and with an answer that is obviously right."""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from floodway.model.flow import Flow
from floodway.operators import emit
from floodway.operators.windows import tumbling
from floodway.testing.items import Emitted
from floodway.testing.simulation.outside import Feed
from floodway.testing.simulation.scenario import (
    EVENT_TIME,
    Reading,
    Scenario,
    Stream,
    Connections,
    by_name,
    differing,
    items,
    latest,
    out_of_order,
)

Shown = Mapping[str, Sequence[Emitted]]


class Stateless(Scenario):
    """Filter and map; records of a name keep their order."""

    name = "stateless"

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return readings."""
        stream = Stream(random)
        return {"readings": stream.feed((t, None, v) for t, v in stream.readings())}

    def build(self, flow: Flow, world: Connections) -> None:
        """Drop every third, and double the others."""
        readings = flow.source("readings", world.source("readings"), schema=Reading)
        kept = readings.filter("n % 3 <> 0", name="kept")
        doubled = kept.map(lambda r: Reading(r.n * 2, r.name), schema=Reading, name="doubled")
        doubled.to(world.sink("out"), name="out")

    def sinks(self) -> Sequence[str]:
        """Return the only sink."""
        return ["out"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """Every record that is no multiple of three, once and in order."""
        values = [item.value for item in items(feeds["readings"])]
        expected = by_name((v.name, v.n * 2) for v in values if v.n % 3)
        found = by_name((row.value["name"], row.value["n"]) for row in shown["out"])
        return out_of_order(expected, found, "values")


class KeyedCount(Scenario):
    """Count per name; every update is shown, in order."""

    name = "keyed count"

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return readings."""
        stream = Stream(random)
        return {"readings": stream.feed((t, None, v) for t, v in stream.readings())}

    def build(self, flow: Flow, world: Connections) -> None:
        """Count, and show every update."""
        readings = flow.source("readings", world.source("readings"), schema=Reading)
        counts = readings.group_by("name").count(name="counts")
        counts.changes(name="updates").to(world.sink("out"), name="out")

    def sinks(self) -> Sequence[str]:
        """Return the only sink."""
        return ["out"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """One, two, three and so on for every name."""
        counts = Counter(item.value.name for item in items(feeds["readings"]))
        expected = {name: range(1, count + 1) for name, count in counts.items()}
        found = by_name((row.key, row.value["value"]) for row in shown["out"])
        return out_of_order(expected, found, "counts")


class WindowedCounts(Scenario):
    """Count per name and window, out of order; each window is shown once, when it is closed."""

    name = "windowed counts"
    size_ms = 700

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return readings out of order."""
        stream = Stream(random)
        return {"readings": stream.feed((t, None, v) for t, v in stream.readings())}

    def build(self, flow: Flow, world: Connections) -> None:
        """Count, and show final results, and results so far."""
        readings = flow.source("readings", world.source("readings"), schema=Reading)
        windowed = readings.group_by("name").window(tumbling(self.size_ms))
        counts = windowed.count(name="counts")
        final = counts.changes(emit=emit.final(), name="final")
        final.to(world.sink("final"), name="final_out")
        early = counts.changes(emit=emit.after_window_end(), name="early")
        early.to(world.sink("early"), name="early_out")
        counts.late.to(world.sink("late"), name="late_out")

    def sinks(self) -> Sequence[str]:
        """Return the sinks of results and of late records."""
        return ["final", "early", "late"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """No record is late, and every window has its count."""
        size = self.size_ms
        counts = Counter(
            (item.value.name, item.timestamp - item.timestamp % size)
            for item in items(feeds["readings"])
        )
        expected = [(name, start, count) for (name, start), count in counts.items()]
        found = [_window_count(row) for row in shown["final"]]
        last = {(name, start): count for name, start, count in map(_window_count, shown["early"])}
        early = [(name, start, count) for (name, start), count in last.items()]
        late = [row.value["n"] for row in shown["late"]]
        return (
            differing([], late, "late records")
            or differing(expected, found, "final counts")
            or differing(expected, early, "counts after the window's end")
        )


def _window_count(row: Emitted) -> tuple[str, int, int]:
    return row.value["key"], row.value["window"][0], row.value["value"]


class StreamJoin(Scenario):
    """Join two streams; a record without partner is shown alone, and replaced when one comes."""

    name = "stream-stream join"
    within_ms = 600

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return two streams of readings."""
        found = {}
        for side in ("left", "right"):
            stream = Stream(random, most=110, keys=12)
            found[side] = stream.feed((t, None, v) for t, v in stream.readings())
        return found

    def build(self, flow: Flow, world: Connections) -> None:
        """Join records of a name that are not far apart."""
        left, right = (
            flow.source(side, world.source(side), schema=Reading).key_by("name", name=f"by_{side}")
            for side in ("left", "right")
        )
        joined = left.join(
            right, within=self.within_ms, how="left", joiner=_pair, schema=str, name="joined"
        )
        joined.to(world.sink("out"), name="out")

    def sinks(self) -> Sequence[str]:
        """Return the only sink."""
        return ["out"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """Every pair once, and every left record that has no partner."""
        right = by_name((item.value.name, item) for item in items(feeds["right"]))
        expected = []
        for item in items(feeds["left"]):
            partners = [
                other.value
                for other in right.get(item.value.name, ())
                if abs(other.timestamp - item.timestamp) <= self.within_ms
            ]
            expected += [_pair(item.value, partner) for partner in partners or [None]]
        found = [row.value for row in latest(shown["out"])]
        return differing(expected, found, "pairs")


def _pair(left: Reading, right: Reading | None) -> str:
    return f"{left.n}-{'?' if right is None else right.n}"


class LookupJoin(Scenario):
    """Look readings up in a table whose updates come late: results are corrected."""

    name = "look-up join"
    retention_ms = 3_600_000

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return readings, and updates of a table that come when they come."""
        stream, updates = Stream(random, most=140), Stream(random, most=70)
        updates.keys = stream.keys
        table = [
            (time, row.name, None if random.random() < 0.1 else row.n)
            for time, row in updates.readings()
        ]
        unique = {(time, name): (time, name, n) for time, name, n in table}
        delay = random.randint(0, 400)
        return {
            "readings": stream.feed((t, None, v) for t, v in stream.readings()),
            "table.changelog": updates.feed(unique.values(), delay_ms=delay),
        }

    def build(self, flow: Flow, world: Connections) -> None:
        """Look every reading up, as the table was at its time."""
        table = flow.table("table", world.source("table.changelog"), schema=int, key=str)
        readings = flow.source("readings", world.source("readings"), schema=Reading)
        looked_up = readings.join(
            table, on="name", how="left", joiner=_looked_up, schema=str, name="looked_up"
        )
        looked_up.to(world.sink("out"), name="out")

    def sinks(self) -> Sequence[str]:
        """Return the only sink."""
        return ["out"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """Every reading once, with the latest update that is not after it."""
        expected = looked_up(feeds["readings"], feeds["table.changelog"])
        found = [row.value for row in latest(shown["out"])]
        return differing(expected, found, "looked up")


def _looked_up(reading: Reading, n: int | None) -> str:
    return f"{reading.n}-{n}"


def looked_up(readings: Feed, updates: Feed) -> list[str]:
    """Return what looking up gives if all updates are known."""
    table = by_name((item.key, (item.timestamp, item.value)) for item in items(updates))
    found = []
    for item in items(readings):
        known = [u for u in table.get(item.value.name, ()) if u[0] <= item.timestamp]
        value = max(known, key=lambda update: update[0])[1] if known else None
        found.append(_looked_up(item.value, value))
    return found


class FanOut(Scenario):
    """Two sources, merged and split again, with a count on the side."""

    name = "fan-out"

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return readings of two sources whose names differ."""
        found = {}
        for side in ("one", "two"):
            stream = Stream(random, most=120, keys=5)
            found[side] = stream.feed((t, None, v) for t, v in stream.readings(side))
        return found

    def build(self, flow: Flow, world: Connections) -> None:
        """Merge, branch, rebalance and count."""
        one = flow.source("one", world.source("one"), schema=Reading)
        two = flow.source("two", world.source("two"), schema=Reading)
        both = one.merge(two, name="both")
        even, odd = both.branch("n % 2 = 0", name="split")
        even.rebalance(name="spread").to(world.sink("even"), name="even_out")
        odd.to(world.sink("odd"), name="odd_out")
        counts = both.group_by("name").count(name="counts")
        counts.changes(name="updates").to(world.sink("counts"), name="counts_out")

    def sinks(self) -> Sequence[str]:
        """Return the sinks of both arms and of the counts."""
        return ["even", "odd", "counts"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """Each record in one arm, once, and in the counts."""
        values = [item.value for side in ("one", "two") for item in items(feeds[side])]
        counts = Counter(value.name for value in values)
        running = {name: range(1, count + 1) for name, count in counts.items()}
        odd = by_name((v.name, v.n) for v in values if v.n % 2)
        found = {
            side: [(row.value["name"], row.value["n"]) for row in shown[side]]
            for side in ("even", "odd")
        }
        updates = by_name((row.key, row.value["value"]) for row in shown["counts"])
        return (
            differing([(v.name, v.n) for v in values if v.n % 2 == 0], found["even"], "even")
            or out_of_order(odd, by_name(found["odd"]), "odd numbers")
            or out_of_order(running, updates, "counts")
        )


class Processing(Scenario):
    """A state per name that depends on the order: what the last record was, and their sum."""

    name = "process"

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return readings."""
        stream = Stream(random, keys=30)
        return {"readings": stream.feed((t, None, v) for t, v in stream.readings())}

    def build(self, flow: Flow, world: Connections) -> None:
        """Keep a state per name."""
        readings = flow.source("readings", world.source("readings"), schema=Reading)
        steps = readings.key_by("name", name="by_name").process(
            init=lambda name: (0, 0), update=_step, schema=str, name="steps"
        )
        steps.to(world.sink("out"), name="out")

    def sinks(self) -> Sequence[str]:
        """Return the only sink."""
        return ["out"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """The same function, called for one record after another."""
        states: dict[str, tuple[int, int]] = {}
        rows = []
        for item in items(feeds["readings"]):
            name = item.value.name
            state, given = _step(0, name, item.value, states.get(name, (0, 0)))
            states[name] = state or (0, 0)
            rows += [(name, text) for _, _, text in given]
        found = by_name((row.key, row.value) for row in shown["out"])
        return out_of_order(by_name(rows), found, "steps")


def _step(time: int, name: str, reading: Reading, state: tuple[int, int]) -> tuple[Any, list[Any]]:
    last, total = state
    total += reading.n
    given = [(time, name, f"{reading.n} after {last}, {total} together")]
    return (None if reading.n % 11 == 0 else (reading.n, total)), given


class Preloaded(Scenario):
    """A table that is complete before the first reading is looked up in it."""

    name = "preloaded table"
    retention_ms = 3_600_000

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return a table that is read once, and readings that are there at once."""
        stream, updates = Stream(random, most=150), Stream(random, most=60)
        updates.keys, updates.millis = stream.keys, random.randint(50, 800)
        table = [
            (EVENT_TIME - 5_000 + n, row.name, row.n)
            for n, (_, row) in enumerate(updates.readings())
        ]
        return {
            "readings": stream.feed((t, None, v) for t, v in stream.readings()),
            "table.changelog": updates.feed(table),
        }

    def build(self, flow: Flow, world: Connections) -> None:
        """Look every reading up."""
        table = flow.table(
            "table", world.source("table.changelog"), schema=int, key=str, preload=True
        )
        readings = flow.source("readings", world.source("readings"), schema=Reading)
        looked_up = readings.join(
            table,
            on="name",
            how="left",
            joiner=_looked_up,
            schema=str,
            late_updates="ignore",
            name="looked_up",
        )
        looked_up.to(world.sink("out"), name="out")

    def sinks(self) -> Sequence[str]:
        """Return the only sink."""
        return ["out"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """Every reading once, as if the table had always been there."""
        expected = looked_up(feeds["readings"], feeds["table.changelog"])
        return differing(expected, [row.value for row in shown["out"]], "looked up")


SCENARIOS: tuple[Scenario, ...] = (
    Stateless(),
    KeyedCount(),
    WindowedCounts(),
    StreamJoin(),
    LookupJoin(),
    FanOut(),
    Processing(),
    Preloaded(),
)
"""One of each kind."""
