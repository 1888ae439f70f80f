"""Scenarios of joins and tables."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from floodway.model.flow import Flow
from floodway_lab.simulation.outside import Feed
from floodway_lab.simulation.scenario import (
    EVENT_TIME,
    Connections,
    Reading,
    Scenario,
    Shown,
    Stream,
    by_name,
    differing,
    items,
    latest,
)


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
    broadcast = False

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
            table,
            on="name",
            how="left",
            joiner=_looked_up,
            schema=str,
            broadcast=self.broadcast,
            name="looked_up",
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


class BroadcastLookup(LookupJoin):
    """The same with a copy of the table in every task."""

    name = "broadcast look-up"
    broadcast = True


class TableJoin(Scenario):
    """Two tables, joined by key, and the result counted per value of a column."""

    name = "table-table join"
    retention_ms = 3_600_000

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return the updates of two tables."""
        found = {}
        for side in ("left", "right"):
            stream = Stream(random, most=80, keys=25)
            updates = [
                (EVENT_TIME + n, row.name, None if random.random() < 0.15 else row.n)
                for n, (_, row) in enumerate(stream.readings())
            ]
            found[f"{side}.changelog"] = stream.feed(updates)
        return found

    def build(self, flow: Flow, world: Connections) -> None:
        """Join the tables, and count the rows by the last digit."""
        left, right = (
            flow.table(side, world.source(f"{side}.changelog"), schema=int, key=str)
            for side in ("left", "right")
        )
        both = left.join(right, how="full", joiner=_both, schema=str, name="joined")
        both.changes(name="updates").to(world.sink("out"), name="out")
        digits = left.group_by("value % 10 AS digit").count(name="digits")
        digits.changes(name="digit_updates").to(world.sink("digits"), name="digits_out")

    def sinks(self) -> Sequence[str]:
        """Return the sinks of rows and of counts."""
        return ["out", "digits"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """In the end every key has its last values, and every digit its count."""
        left, right = (_last(feeds[f"{side}.changelog"]) for side in ("left", "right"))
        rows = {key: _both(left.get(key), right.get(key)) for key in {*left, *right}}
        digits: dict[Any, int] = {}
        for value in left.values():
            digits[value % 10] = digits.get(value % 10, 0) + 1
        found = {row.value["key"]: row.value["value"] for row in shown["out"]}
        counts = {row.value["key"]: row.value["value"] for row in shown["digits"]}
        return differing(rows.items(), _present(found), "rows") or differing(
            digits.items(), _present(counts), "digits"
        )


def _both(left: int | None, right: int | None) -> str:
    return f"{left}+{right}"


def _last(feed: Feed) -> dict[Any, Any]:
    last = {item.key: item.value for item in sorted(items(feed), key=lambda i: i.timestamp)}
    return {key: value for key, value in last.items() if value is not None}


def _present(rows: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return [(key, value) for key, value in rows.items() if value]
