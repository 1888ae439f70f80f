"""The dataflows of Bytewax in which time goes on: the join, sessions, and Linear Road.

A logic only sees the events of its key, and only the system's clock wakes it up. So all keys are
told now and then how far a link is, and the slowest one counts. For that the keys of the join and
of sessions are groups of items and of visitors, each with a dictionary. With a key for every one of
them it would be several times slower: all those that want to be woken are looked through
with every batch.
"""

from typing import Any

import bytewax.operators as op
import msgspec
from bytewax.operators import Stream
from events import Click, Report, Trade
from kit import Task

Batch = list[tuple[int, bytes]]
"""Chunks, and the number of the link that each came from."""

GROUPS = [str(number) for number in range(16)]
"""The keys of groups."""

TELL_MS = 5
"""How often groups are told how far a link is."""


class Names(dict[int, str]):
    """Numbers as text, since keys are text; those that have come so far."""

    def __missing__(self, number: int) -> str:
        self[number] = name = str(number)
        return name


class StreamTime:
    """How far all links are: as far as the slowest."""

    def __init__(self, links: int) -> None:
        self.times = [0] * links

    def __call__(self) -> int:
        return min(self.times)


Side = dict[int, list[tuple[int, int]]]
"""Time and price of each offer, or of each sale, by item."""


class Matching(op.StatefulBatchLogic):
    """Pairs of a group of items; what is older than two generations of offers and sales is gone."""

    def __init__(self, within_ms: int, links: int) -> None:
        self._within_ms, self._next_ms = within_ms, 0
        self._time = StreamTime(links)
        self._offers: tuple[Side, Side] = {}, {}
        self._sales: tuple[Side, Side] = {}, {}

    def on_batch(self, values: list[tuple[int, Trade]]) -> tuple[list[Any], bool]:
        found, within, times = [], self._within_ms, self._time.times
        for link, event in values:
            item, price, time_ms = event.item, event.price, event.time
            times[link] = time_ms
            if event.kind == "offer":
                (own, _), (new, old), sign = self._offers, self._sales, -1
            else:
                (own, _), (new, old), sign = self._sales, self._offers, 1
            if item in own:
                own[item].append((time_ms, price))
            else:
                own[item] = [(time_ms, price)]
            if item in new or item in old:
                for other_ms, other in [*new.get(item, ()), *old.get(item, ())]:
                    if -within <= time_ms - other_ms <= within:
                        found.append((sign * (price - other), max(time_ms, other_ms)))
        if (now_ms := self._time()) > self._next_ms:
            self._next_ms = now_ms + 2 * within
            self._offers, self._sales = ({}, self._offers[0]), ({}, self._sales[0])
        return found, False

    def snapshot(self) -> Any:
        return [[dict(side) for side in both] for both in (self._offers, self._sales)]


def join(task: Task, chunks: Stream) -> Stream:
    """Return the dataflow of the windowed join."""
    within_ms, links = task.options["within_ms"], len(task.ports)
    decode, groups, count = msgspec.json.Decoder(Trade).decode_lines, GROUPS, len(GROUPS)

    def trades(batch: Batch) -> list[tuple[str, tuple[int, Trade]]]:
        return [
            (groups[event.item % count], (link, event))
            for link, lines in batch
            for event in decode(lines)
        ]

    keyed = op.flat_map_batch("trades", chunks, trades)
    return op.stateful_batch("pairs", keyed, lambda _: Matching(within_ms, links))


NOBODY = -1
"""Whose clicks only tell the time."""


class Cutting(op.StatefulBatchLogic):
    """Sessions of a group of visitors, in the order of their last clicks."""

    def __init__(self, gap_ms: int, prime: int, links: int) -> None:
        self._gap_ms, self._prime, self._time = gap_ms, prime, StreamTime(links)
        self._open: dict[int, tuple[int, int]] = {}

    def on_batch(self, values: list[tuple[int, Click]]) -> tuple[list[Any], bool]:
        running, gap_ms, times = self._open, self._gap_ms, self._time.times
        over = []
        for link, event in values:
            user, time_ms = event.user, event.time
            times[link] = time_ms
            if user == NOBODY:
                continue
            held = running.pop(user, None)
            if held is None:
                running[user] = 1, time_ms
            elif time_ms - held[1] > gap_ms:
                over.append((user, held))
                running[user] = 1, time_ms
            else:
                running[user] = held[0] + 1, time_ms
        now_ms, first = self._time(), len(over)
        for user, held in running.items():
            if now_ms - held[1] <= gap_ms:
                break
            over.append((user, held))
        for user, _ in over[first:]:
            del running[user]
        return self._told(over), False

    def on_eof(self) -> tuple[list[Any], bool]:
        return self._told(list(self._open.items())), True

    def _told(self, over: list[tuple[int, tuple[int, int]]]) -> list[tuple[int, int]]:
        return [(clicks * (user % self._prime + 1), last) for user, (clicks, last) in over]

    def snapshot(self) -> Any:
        return dict(self._open)


def sessions(task: Task, chunks: Stream) -> Stream:
    """Return the dataflow of sessionization."""
    gap_ms, prime, links = task.options["gap_ms"], task.options["prime"], len(task.ports)
    decode, groups, count = msgspec.json.Decoder(Click).decode_lines, GROUPS, len(GROUPS)

    told = [0] * links

    def clicks(batch: Batch) -> list[tuple[str, tuple[int, Click]]]:
        found = []
        for link, lines in batch:
            events = decode(lines)
            found += [(groups[event.user % count], (link, event)) for event in events]
            if (time_ms := events[-1].time) >= told[link] + TELL_MS:
                told[link] = time_ms
                found += [(group, (link, Click(time_ms, NOBODY))) for group in groups]
        return found

    keyed = op.flat_map_batch("clicks", chunks, clicks)
    return op.stateful_batch("sessions", keyed, lambda _: Cutting(gap_ms, prime, links))


class Adding(op.StatefulBatchLogic):
    """Speeds and reports of a segment per minute, when it is over."""

    def __init__(self, minute_ms: int, links: int) -> None:
        self._minute_ms, self._time = minute_ms, StreamTime(links)
        self._minutes: dict[int, list[int]] = {}

    def on_batch(self, values: list[tuple[int, Report]]) -> tuple[list[Any], bool]:
        minutes, size, times = self._minutes, self._minute_ms, self._time.times
        for link, event in values:
            times[link] = time_ms = event.time
            if event.speed < 0:
                continue
            minute = time_ms - time_ms % size
            if (held := minutes.get(minute)) is None:
                minutes[minute] = [event.speed, 1, time_ms]
            else:
                held[0] += event.speed
                held[1] += 1
                if time_ms > held[2]:
                    held[2] = time_ms
        over_ms = self._time() - size
        return self._told([minute for minute in minutes if minute <= over_ms]), False

    def on_eof(self) -> tuple[list[Any], bool]:
        return self._told(list(self._minutes)), True

    def _told(self, over: list[int]) -> list[Any]:
        """Return minute, average speed, reports and time of the last, in order."""
        found = []
        for minute in sorted(over):
            speed, count, time_ms = self._minutes.pop(minute)
            found.append((minute, speed / count, count, time_ms))
        return found

    def snapshot(self) -> Any:
        return dict(self._minutes)


class Moving(op.StatefulBatchLogic):
    """The toll of a segment for five minutes, as soon as the last of them has come."""

    def __init__(self, minute_ms: int, minutes: int, crowded: float) -> None:
        self._minute_ms, self._whole_ms, self._crowded = minute_ms, minutes * minute_ms, crowded
        self._windows: dict[int, list[tuple[float, int]]] = {}

    def on_batch(self, values: list[tuple[int, float, int, int]]) -> tuple[list[Any], bool]:
        found: list[Any] = []
        for minute, speed, _, time_ms in values:
            first = minute - self._whole_ms + self._minute_ms
            for start in range(first, minute + 1, self._minute_ms):
                self._windows.setdefault(start, []).append((speed, time_ms))
            found += self._told([start for start in self._windows if start <= first])
        return found, False

    def on_eof(self) -> tuple[list[Any], bool]:
        return self._told(list(self._windows)), True

    def _told(self, over: list[int]) -> list[Any]:
        """Return start, toll and time."""
        found = []
        for start in sorted(over):
            held = self._windows.pop(start)
            speed = sum(each for each, _ in held) / len(held)
            toll = 2 * (self._crowded - speed) ** 2 if speed < self._crowded else 0.0
            found.append((start, toll, max(time_ms for _, time_ms in held)))
        return found

    def snapshot(self) -> Any:
        return dict(self._windows)


def road(task: Task, chunks: Stream) -> Stream:
    """Return the dataflow of Linear Road."""
    options, links = task.options, len(task.ports)
    minute_ms, minutes, crowded = options["minute_ms"], options["minutes"], options["crowded"]
    decode = msgspec.json.Decoder(Report).decode_lines

    names, told = Names(), [0] * links

    def reports(batch: Batch) -> list[tuple[str, tuple[int, Report]]]:
        found = []
        for link, lines in batch:
            events = decode(lines)
            found += [(names[event.segment], (link, event)) for event in events if event.speed >= 0]
            if (minute := events[-1].time // minute_ms) > told[link]:
                told[link] = minute
                tick = Report(events[-1].time, 0, -1)  # not valid: it only tells the time
                found += [(segment, (link, tick)) for segment in names.values()]
        return found

    def block(item: tuple[str, tuple[int, float, int, int]]) -> tuple[str, tuple[int, int, int]]:
        segment, (minute, _, count, time_ms) = item
        return f"block-{segment}", (minute, count, time_ms)

    keyed = op.flat_map_batch("reports", chunks, reports)
    agg = op.stateful_batch("agg", keyed, lambda _: Adding(minute_ms, links))
    blocks = op.map("block", agg, block)
    mv = op.stateful_batch("mv", agg, lambda _: Moving(minute_ms, minutes, crowded))
    tolls = op.map("toll", mv, lambda item: (f"toll-{item[0]}", item[1]))
    return op.merge("both", blocks, tolls)
