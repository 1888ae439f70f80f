"""Checkers work from notes of what was sent; here they are compared with folds over all events."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from floodway_lab.cases import join, mean, road, sessions, words
from floodway_lab.cases.base import Case, Shape
from floodway_lab.cases.registry import CASES, case_named
from floodway_lab.sending.lines import Disorder
from floodway_lab.sending.sent import CasePart, CaseSent
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway.demo import ads

Event = dict[str, Any]
Answers = dict[tuple[Any, int], Any]


def fold_ads(events: list[Event]) -> Answers:
    known, counts = ads.campaigns(), Counter[tuple[Any, int]]()
    for event in events:
        if event["event_type"] == "view":
            time_ms = event["event_time"]
            counts[known[event["ad_id"]], time_ms - time_ms % ads.WINDOW_MS] += 1
    return dict(counts)


def fold_mean(events: list[Event]) -> Answers:
    held = defaultdict[tuple[Any, int], list[int]](list)
    for event in events:
        hop = event["time"] // mean.HOP_MS * mean.HOP_MS
        for start in (hop - mean.HOP_MS, hop):
            held[event["geo"], start].append(event["seconds"])
    return {place: sum(values) / len(values) for place, values in held.items()}


def tally(amounts: Iterator[tuple[int, int]]) -> Answers:
    found: Counter[tuple[Any, int]] = Counter()
    for amount, time_ms in amounts:
        second = time_ms // 1000 * 1000
        found["count", second] += 1
        found["sum", second] += amount
    return dict(found)


def fold_join(events: list[Event]) -> Answers:
    by_item = defaultdict[int, list[Event]](list)
    for event in events:
        by_item[event["item"]].append(event)

    def pairs() -> Iterator[tuple[int, int]]:
        for same in by_item.values():
            for offer in same:
                for sale in same:
                    if (offer["kind"], sale["kind"]) == ("offer", "sale"):
                        apart = abs(offer["time"] - sale["time"])
                        if apart <= join.WITHIN_MS:
                            yield sale["price"] - offer["price"], max(offer["time"], sale["time"])

    return tally(pairs())


def fold_words(events: list[Event]) -> Answers:
    counts = Counter(word for event in events for word in event["text"].split(" "))
    return {(word, 0): count for word, count in counts.items()}


def fold_windowed_words(events: list[Event]) -> Answers:
    return dict(
        Counter(
            (word, event["time"] // words.WINDOW_MS * words.WINDOW_MS)
            for event in events
            for word in event["text"].split(" ")
        )
    )


def fold_grep(events: list[Event]) -> Answers:
    return tally((e["id"], e["time"]) for e in events if words.SOUGHT in e["text"].split(" "))


def fold_sessions(events: list[Event]) -> Answers:
    clicks = defaultdict[int, list[int]](list)
    for event in events:
        clicks[event["user"]].append(event["time"])

    def over() -> Iterator[tuple[int, int]]:
        for user, times in clicks.items():
            session: list[int] = []
            for time_ms in sorted(times):
                if session and time_ms - session[-1] > sessions.GAP_MS:
                    yield len(session) * (user % sessions.PRIME + 1), session[-1]
                    session = []
                session.append(time_ms)
            yield len(session) * (user % sessions.PRIME + 1), session[-1]

    return tally(over())


def fold_road(events: list[Event]) -> Answers:
    speeds = defaultdict[tuple[int, int], list[int]](list)
    for event in events:
        if event["speed"] >= 0:
            minute = event["time"] // road.MINUTE_MS * road.MINUTE_MS
            speeds[event["segment"], minute].append(event["speed"])
    found: Answers = {(f"block-{s}", minute): len(all_) for (s, minute), all_ in speeds.items()}
    means = {place: sum(all_) / len(all_) for place, all_ in speeds.items()}
    for segment, minute in means:
        for back in range(road.MINUTES):
            start = minute - back * road.MINUTE_MS
            within = range(start, start + road.MINUTES * road.MINUTE_MS, road.MINUTE_MS)
            some = [means[segment, m] for m in within if (segment, m) in means]
            found[f"toll-{segment}", start] = road.toll(sum(some) / len(some))
    return found


FOLDS: dict[str, Callable[[list[Event]], Answers]] = {
    "ads": fold_ads,
    "mean": fold_mean,
    "join": fold_join,
    "words": fold_words,
    "grep": fold_grep,
    "windowed-words": fold_windowed_words,
    "sessions": fold_sessions,
    "road": fold_road,
}


def send(case: Case, shape: Shape, blocks: list[tuple[int, int]]) -> tuple[CasePart, list[Event]]:
    """Return what a data engine notes, and the events themselves."""
    lines, time_ms, events = case.supply(shape), 1_700_000_003_000, list[Event]()
    for count, passed_ms in blocks:
        time_ms += passed_ms
        events += map(json.loads, lines.take(count, time_ms).splitlines())
    return CasePart(case.lines(shape), lines.sent, shape.seed), events


def test_every_workload_has_a_fold() -> None:
    assert FOLDS.keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=6)
@given(
    blocks=st.lists(st.tuples(st.integers(1, 9_000), st.integers(0, 2_500)), max_size=5),
    late=st.sampled_from([0.0, 0.3]),
    engines=st.integers(1, 2),
)
def test_notes_lead_to_the_same_answers_as_a_fold_over_all_events(
    name: str, blocks: list[tuple[int, int]], late: float, engines: int
) -> None:
    case = case_named(name)
    parts, events = list[CasePart](), list[Event]()
    for seed in range(1, engines + 1):
        part, own = send(case, Shape(seed=seed, disorder=Disorder(late, 900)), blocks)
        parts.append(part)
        events += own
    assert case.expected(CaseSent(parts)) == pytest.approx(FOLDS[name](events))


@pytest.mark.parametrize("name", CASES)
def test_events_are_valid_and_carry_their_payload(name: str) -> None:
    case = case_named(name)
    _, events = send(case, Shape(payload=7), [(25_000, 10)])
    assert len(events) == 25_000
    assert {event["payload"] for event in events} == {"x" * 7}


@pytest.mark.parametrize("name", ["join", "sessions"])
def test_keys_are_new_in_every_lap_and_in_every_engine(name: str) -> None:
    key = {"join": "item", "sessions": "user"}[name]
    laps = [
        {event[key] for event in send(case_named(name), Shape(seed=seed), [(count, 1)])[1]}
        for seed, count in ((1, 20_000), (2, 40_000))
    ]
    assert not laps[0] & laps[1]
    assert len(laps[1]) == 2 * len(laps[0])
