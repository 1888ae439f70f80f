"""Scenarios of streams: stateless, counts, windows, fan-out, states of the user's own."""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import floodway as fw
from floodway.connectors.list_items import Emitted
from floodway.model.flow import Flow
from floodway.operators import emit
from floodway.operators.windows import Window, session, tumbling
from floodway_lab.simulation.outside import Feed
from floodway_lab.simulation.scenario import (
    Connections,
    Reading,
    Scenario,
    Shown,
    Stream,
    by_name,
    differing,
    items,
    out_of_order,
)


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
        both = one.merge(self.other(flow, world), name="both")
        even, odd = both.branch("n % 2 = 0", name="split")
        even.rebalance(name="spread").to(world.sink("even"), name="even_out")
        odd.to(world.sink("odd"), name="odd_out")
        counts = both.group_by("name").count(name="counts")
        counts.changes(name="updates").to(world.sink("counts"), name="counts_out")

    def other(self, flow: Flow, world: Connections) -> fw.Stream:
        """Return the second stream; tasks read it together with the first."""
        return flow.source("two", world.source("two"), schema=Reading)

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


class Confluence(FanOut):
    """The same, where tasks that read a source get the other stream from other tasks."""

    name = "confluence"

    def other(self, flow: Flow, world: Connections) -> fw.Stream:
        """Return the second stream, which other tasks read."""
        return super().other(flow, world).isolate()


class Processing(Scenario):
    """A state per name that depends on the order: what the last record was, and their sum."""

    name = "process"
    pad = 40

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return readings."""
        stream = Stream(random, keys=30)
        stream.pad = self.pad
        return {"readings": stream.feed((t, None, v) for t, v in stream.readings())}

    def build(self, flow: Flow, world: Connections) -> None:
        """Keep a state per name."""
        readings = flow.source("readings", world.source("readings"), schema=Reading)
        steps = readings.key_by("name", name="by_name").process(
            init=lambda name: (0, 0, ""), update=_step, schema=str, name="steps"
        )
        steps.to(world.sink("out"), name="out")

    def sinks(self) -> Sequence[str]:
        """Return the only sink."""
        return ["out"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """Call the same function for one record after another."""
        states: dict[str, State] = {}
        rows = []
        for item in items(feeds["readings"]):
            name = item.value.name
            state, given = _step(0, name, item.value, states.get(name, (0, 0, "")))
            states[name] = state or (0, 0, "")
            rows += [(name, text) for _, _, text in given]
        found = by_name((row.key, row.value) for row in shown["out"])
        return out_of_order(by_name(rows), found, "steps")


State = tuple[int, int, str]


def _step(time: int, name: str, reading: Reading, state: State) -> tuple[Any, list[Any]]:
    last, total, pad = state
    total += reading.n
    given = [(time, name, f"{reading.n} after {last} ({len(pad)}), {total} together")]
    return (None if reading.n % 11 == 0 else (reading.n, total, reading.pad)), given


class LargeState(Processing):
    """The same with so much state that its files are merged."""

    name = "large state"
    pad = 40_000


class Sessions(Scenario):
    """Count per name and session; sessions grow together as records come out of order."""

    name = "sessions"
    gap_ms = 300

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return readings out of order."""
        stream = Stream(random, most=120, keys=20)
        return {"readings": stream.feed((t, None, v) for t, v in stream.readings())}

    def build(self, flow: Flow, world: Connections) -> None:
        """Count, and show final results."""
        readings = flow.source("readings", world.source("readings"), schema=Reading)
        counts = readings.group_by("name").window(session(self.gap_ms)).count(name="counts")
        counts.changes(emit=emit.final(), name="final").to(world.sink("out"), name="out")

    def sinks(self) -> Sequence[str]:
        """Return the only sink."""
        return ["out"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """Every session has its bounds and its count."""
        times = by_name((item.value.name, item.timestamp) for item in items(feeds["readings"]))
        expected: list[tuple[str, int, int, int]] = []
        for name, found in times.items():
            for time in sorted(found):
                if expected and expected[-1][0] == name and time <= expected[-1][2]:
                    _, start, _, count = expected.pop()
                    expected.append((name, start, time + self.gap_ms, count + 1))
                else:
                    expected.append((name, time, time + self.gap_ms, 1))
        values = [row.value for row in shown["out"]]
        found_rows = [(v["key"], *v["window"], v["value"]) for v in values]
        return differing(expected, found_rows, "sessions")


class WindowProcess(Scenario):
    """A state of the user's own per name and window, handed out when the window is closed."""

    name = "windowed process"
    size_ms = 900

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return readings out of order."""
        stream = Stream(random, most=150)
        return {"readings": stream.feed((t, None, v) for t, v in stream.readings())}

    def build(self, flow: Flow, world: Connections) -> None:
        """Collect the numbers of each window."""
        readings = flow.source("readings", world.source("readings"), schema=Reading)
        collected = (
            readings.group_by("name")
            .window(tumbling(self.size_ms))
            .process(init=_none, update=_collect, finalize=_hand_out, schema=str, name="collected")
        )
        collected.to(world.sink("out"), name="out")

    def sinks(self) -> Sequence[str]:
        """Return the only sink."""
        return ["out"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """Every window has its numbers, in the order in which they came."""
        size = self.size_ms
        windows = by_name(
            ((item.value.name, item.timestamp - item.timestamp % size), item.value.n)
            for item in items(feeds["readings"])
        )
        expected = [f"{name} {start} {numbers}" for (name, start), numbers in windows.items()]
        return differing(expected, [row.value for row in shown["out"]], "collected")


def _none(name: str, window: Window) -> list[int]:
    return []


def _collect(
    time: int, name: str, window: Window, reading: Reading, numbers: list[int]
) -> list[int]:
    return [*numbers, reading.n]


def _hand_out(name: str, window: Window, numbers: list[int]) -> list[Any]:
    return [(window.start, name, f"{name} {window.start} {numbers}")]


class AtLeastOnce(Scenario):
    """Sinks that take rows as they come: each at least once and in order, whatever happens."""

    name = "at least once"

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return readings."""
        stream = Stream(random, most=120)
        return {"readings": stream.feed((t, None, v) for t, v in stream.readings())}

    def build(self, flow: Flow, world: Connections) -> None:
        """Hand everything on, to a sink with epochs and to two without."""
        readings = flow.source("readings", world.source("readings"), schema=Reading)
        readings.to(world.eager_sink("eager"), name="eager_out")
        readings.to(world.direct_sink("direct"), name="direct_out")
        readings.to(world.sink("out"), name="out")

    def sinks(self) -> Sequence[str]:
        """Return all three sinks."""
        return ["eager", "direct", "out"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """Every record at least once, the first time in order, and exactly once with epochs."""
        values = [item.value for item in items(feeds["readings"])]
        expected = by_name((value.name, value.n) for value in values)
        for sink in ("eager", "direct"):
            rows = ((row.value["name"], row.value["n"]) for row in shown[sink])
            problem = out_of_order(expected, by_name(dict.fromkeys(rows)), f"{sink} rows")
            if problem is not None:
                return problem
        exact = [row.value["n"] for row in shown["out"]]
        return differing([value.n for value in values], exact, "once")
