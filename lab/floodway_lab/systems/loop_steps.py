"""The workloads by hand, each in two halves: what a chunk comes to, and what all chunks add up to.

The first half needs nothing but the chunk, so several processes can do it. What it gives is made of
tuples, lists and dictionaries, and much smaller than the lines wherever that can be.
"""

from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

import msgspec

from floodway.demo import ads
from floodway_lab.cases import join, mean, road, sessions, words
from floodway_lab.systems.events import AdSeen, Click, Report, SessionSeen, Text, Trade

Part = TypeVar("Part")
"""What a chunk comes to."""


class Step(ABC, Generic[Part]):
    """What a loop does with every chunk of lines.

    Called with whole lines, and the number of the link that they came from, it gives the results
    that have changed, or that are new. Lines of one link are in the order of their time.

    Attributes
    ----------
    tallied
        Whether results count one by one (`Results.tally`); otherwise there is a last one for each
        key and window (`Results.put`).
    """

    tallied = False

    @abstractmethod
    def part(self, lines: bytes) -> Part:
        """Return what a chunk comes to."""

    @abstractmethod
    def add(self, part: Part, link: int = 0) -> Iterable[Any]:
        """Add that to the whole, in the order of chunks; return what has come of it."""

    def end(self) -> Iterable[Any]:
        """Return what comes at the end of the input."""
        return ()

    def __call__(self, lines: bytes, link: int = 0) -> Iterable[Any]:
        """Do both."""
        return self.add(self.part(lines), link)


class StreamTime:
    """How far all links are: as far as the slowest."""

    def __init__(self, links: int) -> None:
        self._times = [0] * links

    def moved(self, link: int, time_ms: int) -> int:
        """Note how far a link is, and return how far all are."""
        if time_ms > self._times[link]:
            self._times[link] = time_ms
        return min(self._times)


Held = dict[tuple[Any, int], list[int]]
"""By key and window: what a chunk adds, and the time of the latest event in it."""


class CountViews(Step[Held]):
    """Ad analytics."""

    def __init__(self, links: int = 1) -> None:
        self._decode = msgspec.json.Decoder(AdSeen).decode_lines
        self._known = ads.campaigns()
        self._counts: dict[tuple[str, int], int] = {}

    def part(self, lines: bytes) -> Held:
        """Count the views of each campaign."""
        held: Held = {}
        known, size = self._known, ads.WINDOW_MS
        for event in self._decode(lines):
            if event.event_type == "view" and (campaign := known.get(event.ad_id)) is not None:
                time_ms = event.time
                place = campaign, time_ms - time_ms % size
                if (found := held.get(place)) is None:
                    held[place] = [1, time_ms]
                else:
                    found[0] += 1
                    if time_ms > found[1]:
                        found[1] = time_ms
        return held

    def add(self, part: Held, link: int = 0) -> Iterable[Any]:
        """Return the counts that have changed."""
        rows, counts = [], self._counts
        for place, (count, time_ms) in part.items():
            counts[place] = whole = counts.get(place, 0) + count
            rows.append((*place, whole, time_ms))
        return rows


class MeanSessions(Step[Held]):
    """Windowed aggregation."""

    def __init__(self, links: int = 1) -> None:
        self._decode = msgspec.json.Decoder(SessionSeen).decode_lines
        self._sums: Held = {}

    def part(self, lines: bytes) -> Held:
        """Add up per place and hop."""
        held: Held = {}
        hop_ms = mean.HOP_MS
        for event in self._decode(lines):
            time_ms = event.time
            place = event.geo, time_ms - time_ms % hop_ms
            if (found := held.get(place)) is None:
                held[place] = [event.seconds, 1, time_ms]
            else:
                found[0] += event.seconds
                found[1] += 1
                if time_ms > found[2]:
                    found[2] = time_ms
        return held

    def add(self, part: Held, link: int = 0) -> Iterable[Any]:
        """Return the mean of every window that has changed."""
        rows, sums, size, every = [], self._sums, mean.SIZE_MS, mean.HOP_MS
        for (geo, hop), (seconds, count, time_ms) in part.items():
            for start in range(hop - size + every, hop + 1, every):
                if (held := sums.get((geo, start))) is None:
                    held = sums[geo, start] = [0, 0]
                held[0] += seconds
                held[1] += count
                rows.append((geo, start, held[0] / held[1], time_ms))
        return rows


Spoken = dict[int, tuple[dict[str, int], dict[str, int]]]
"""By window: how often each word has come, and when it came last."""


class CountWords(Step[Spoken]):
    """WordCount, in windows or without: lines of one moment are split and counted at once."""

    def __init__(self, links: int = 1, *, window_ms: int = 0) -> None:
        self._decode = msgspec.json.Decoder(Text).decode_lines
        self._window_ms = window_ms
        self._counts: dict[int, dict[str, int]] = {}

    def part(self, lines: bytes) -> Spoken:
        """Count the words of each window."""
        moments: dict[int, list[str]] = {}
        for event in self._decode(lines):
            if (texts := moments.get(event.time)) is None:
                moments[event.time] = [event.text]
            else:
                texts.append(event.text)
        size, windows = self._window_ms, dict[int, tuple[Counter[str], dict[str, int]]]()
        for time_ms in sorted(moments):
            window = time_ms - time_ms % size if size else 0
            counts, latest = windows.setdefault(window, (Counter(), {}))
            found = " ".join(moments[time_ms]).split(" ")
            counts.update(found)
            latest.update(dict.fromkeys(found, time_ms))
        return {window: (dict(counts), latest) for window, (counts, latest) in windows.items()}

    def add(self, part: Spoken, link: int = 0) -> Iterable[Any]:
        """Return the counts that have changed."""
        rows = []
        for window, (counts, latest) in part.items():
            whole = self._counts.setdefault(window, {})
            for word, count in counts.items():
                whole[word] = all_of_it = whole.get(word, 0) + count
                rows.append((word, window, all_of_it, latest[word]))
        return rows


class Grep(Step[list[tuple[int, int]]]):
    """Lines that have a word: there is nothing to add up."""

    tallied = True

    def __init__(self, links: int = 1) -> None:
        self._decode = msgspec.json.Decoder(Text).decode_lines

    def part(self, lines: bytes) -> list[tuple[int, int]]:
        """Return number and time of each line that has it."""
        sought = words.SOUGHT
        return [
            (event.id, event.time)
            for event in self._decode(lines)
            if sought in event.text and sought in event.text.split(" ")
        ]

    def add(self, part: list[tuple[int, int]], link: int = 0) -> Iterable[Any]:
        """Return them."""
        return part


Trades = tuple[int, "array[int]", "array[int]"]
"""The latest time, and the offers and the sales: item, time, price, item, time, price, ..."""

Side = dict[int, list[tuple[int, int]]]
"""Time and price of each offer, or of each sale, by item."""


class MatchTrades(Step[Trades]):
    """Windowed join: each side is looked up in the other.

    What is too old is dropped by the thousands: there is a dictionary that is filled, and one
    before it. The first takes the other's place after twice the time that two may be apart.
    """

    tallied = True

    def __init__(self, links: int = 1) -> None:
        self._decode = msgspec.json.Decoder(Trade).decode_lines
        self._time, self._next_ms = StreamTime(links), 0
        self._offers: tuple[Side, Side] = {}, {}
        self._sales: tuple[Side, Side] = {}, {}

    def part(self, lines: bytes) -> Trades:
        """Return offers and sales, as numbers only: those are quickly handed to another process."""
        offers, sales, time_ms = list[int](), list[int](), 0
        for event in self._decode(lines):
            side = offers if event.kind == "offer" else sales
            time_ms = event.time
            side += event.item, time_ms, event.price
        return time_ms, array("q", offers), array("q", sales)

    def add(self, part: Trades, link: int = 0) -> Iterable[Any]:
        """Return gain and time of each pair."""
        latest_ms, offers, sales = part
        rows = _matched(offers, self._offers[0], self._sales, -1)
        rows += _matched(sales, self._sales[0], self._offers, 1)
        now_ms = self._time.moved(link, latest_ms)
        if now_ms > self._next_ms:
            self._next_ms = now_ms + 2 * join.WITHIN_MS
            self._offers, self._sales = ({}, self._offers[0]), ({}, self._sales[0])
        return rows


def _matched(
    trades: "array[int]", own: Side, others: tuple[Side, Side], sign: int
) -> list[tuple[int, int]]:
    """Keep the trades of one side, and match them with the other."""
    rows, within = [], join.WITHIN_MS
    (new, old), numbers = others, iter(trades)
    for item, time_ms, price in zip(numbers, numbers, numbers, strict=True):
        if item in own:
            own[item].append((time_ms, price))
        else:
            own[item] = [(time_ms, price)]
        if item in new or item in old:
            for other_ms, other in [*new.get(item, ()), *old.get(item, ())]:
                if -within <= time_ms - other_ms <= within:
                    latest_ms = time_ms if time_ms > other_ms else other_ms
                    rows.append((sign * (price - other), latest_ms))
    return rows


Clicks = tuple[int, list[tuple[int, int, int, int]]]
"""The latest time, and of each visitor how many clicks without a pause, the first and the last."""


class CutSessions(Step[Clicks]):
    """Sessionization: whoever is to be looked at next is found by the time of a last click."""

    tallied = True

    def __init__(self, links: int = 1) -> None:
        self._decode = msgspec.json.Decoder(Click).decode_lines
        self._time = StreamTime(links)
        self._open: dict[int, list[int]] = {}
        self._seen: dict[int, list[int]] = {}  # visitors by the time of a click, and those times
        self._times: list[int] = []

    def part(self, lines: bytes) -> Clicks:
        """Add up the clicks of each visitor."""
        held: dict[int, list[int]] = {}
        parts, time_ms, gap_ms = list[tuple[int, int, int, int]](), 0, sessions.GAP_MS
        for event in self._decode(lines):
            time_ms = event.time
            if (found := held.get(event.user)) is None:
                held[event.user] = [1, time_ms, time_ms]
                continue
            if time_ms - found[2] > gap_ms:
                parts.append((event.user, found[0], found[1], found[2]))
                found[0], found[1] = 0, time_ms
            found[0] += 1
            found[2] = time_ms
        parts += [(user, count, first, last) for user, (count, first, last) in held.items()]
        return time_ms, parts

    def add(self, part: Clicks, link: int = 0) -> Iterable[Any]:
        """Return the sessions that are over."""
        rows, gap_ms, running = [], sessions.GAP_MS, self._open
        for user, count, first_ms, last_ms in part[1]:
            held = running.get(user)
            if held is None:
                running[user] = [count, last_ms]
                self._look_again(user, last_ms)
            elif first_ms - held[1] > gap_ms:
                rows.append(_session(user, held))
                held[:] = count, last_ms
            else:
                held[0] += count
                held[1] = max(held[1], last_ms)
        over_ms = self._time.moved(link, part[0]) - gap_ms
        while self._times and self._times[0] < over_ms:
            time_ms = heappop(self._times)
            for user in self._seen.pop(time_ms):
                if running[user][1] > time_ms:
                    self._look_again(user, running[user][1])
                else:
                    rows.append(_session(user, running.pop(user)))
        return rows

    def _look_again(self, user: int, time_ms: int) -> None:
        """Look whether there was another click when this one is long enough ago."""
        if (users := self._seen.get(time_ms)) is None:
            self._seen[time_ms] = [user]
            heappush(self._times, time_ms)
        else:
            users.append(user)

    def end(self) -> Iterable[Any]:
        """Return the sessions that were not over yet."""
        return [_session(user, held) for user, held in self._open.items()]


def _session(user: int, held: list[int]) -> tuple[int, int]:
    return held[0] * (user % sessions.PRIME + 1), held[1]


Traffic = tuple[int, Held]
"""The latest time, and by segment and minute: sum of speeds, reports, time of the last."""


class TollRoads(Step[Traffic]):
    """Linear Road."""

    def __init__(self, links: int = 1) -> None:
        self._decode = msgspec.json.Decoder(Report).decode_lines
        self._time, self._now_ms = StreamTime(links), 0
        self._minutes: dict[int, dict[int, list[int]]] = {}
        self._tolls: dict[int, dict[int, list[Any]]] = {}

    def part(self, lines: bytes) -> Traffic:
        """Add up speeds per segment and minute."""
        held: Held = {}
        time_ms, minute_ms = 0, road.MINUTE_MS
        for event in self._decode(lines):
            if (speed := event.speed) >= 0:
                time_ms = event.time
                place = event.segment, time_ms - time_ms % minute_ms
                if (found := held.get(place)) is None:
                    held[place] = [speed, 1, time_ms]
                else:
                    found[0] += speed
                    found[1] += 1
                    found[2] = time_ms
        return time_ms, held

    def add(self, part: Traffic, link: int = 0) -> Iterable[Any]:
        """Return what is known at the end of minutes that are over."""
        for (segment, minute), (speed, count, time_ms) in part[1].items():
            held = self._minutes.setdefault(minute, {}).setdefault(segment, [0, 0, 0])
            held[0] += speed
            held[1] += count
            held[2] = max(held[2], time_ms)
        now_ms = self._time.moved(link, part[0])
        if now_ms // road.MINUTE_MS == self._now_ms // road.MINUTE_MS:
            return ()
        self._now_ms = now_ms
        return self._told(now_ms)

    def end(self) -> Iterable[Any]:
        """Return what is known when there will be no more reports."""
        return self._told(max(self._minutes, default=0) + road.MINUTES * road.MINUTE_MS * 2)

    def _told(self, now_ms: int) -> Iterable[Any]:
        """Return the traffic of minutes that are over, and the tolls of five minutes that are."""
        rows: list[Any] = []
        whole_ms = road.MINUTES * road.MINUTE_MS
        for minute in sorted(m for m in self._minutes if m + road.MINUTE_MS <= now_ms):
            for segment, (speed, count, time_ms) in self._minutes.pop(minute).items():
                rows.append((f"block-{segment}", minute, count, time_ms))
                for back in range(0, whole_ms, road.MINUTE_MS):
                    tolls = self._tolls.setdefault(minute - back, {})
                    held = tolls.setdefault(segment, [0.0, 0, 0])
                    held[0] += speed / count
                    held[1] += 1
                    held[2] = max(held[2], time_ms)
        for start in sorted(s for s in self._tolls if s + whole_ms <= now_ms):
            for segment, (speeds, minutes, time_ms) in self._tolls.pop(start).items():
                rows.append((f"toll-{segment}", start, road.toll(speeds / minutes), time_ms))
        return rows


def count_windowed_words(links: int = 1) -> CountWords:
    """Return the step of windowed WordCount."""
    return CountWords(links, window_ms=words.WINDOW_MS)


STEPS: dict[str, Callable[..., Step[Any]]] = {
    "ads": CountViews,
    "mean": MeanSessions,
    "join": MatchTrades,
    "words": CountWords,
    "grep": Grep,
    "windowed-words": count_windowed_words,
    "sessions": CutSessions,
    "road": TollRoads,
}
"""The step of each workload; to be called with the number of links."""
