"""Quix Streams: a StreamingDataFrame of its operators, one application (a process) per task.

Tuning: events are decoded with msgspec into structs of the fields that are needed (a deserializer
of our own). What a window keeps is one value (an aggregator of our own). Windows close by
partition: that is looked at once per step of the windows, and not with every event. State is in
RocksDB, without changelog topics, since nothing else here can recover either; checkpoints are every
5 s, which is the default. With one partition `group_by` works in place; with several there is a
topic between, whose producer waits for 5 ms at most.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Process
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient
from events import AdSeen, Click, Report, SessionSeen, Text, Trade
from kit import Results, Signal, Task, run
from quixstreams import Application
from quixstreams.dataframe.windows import Aggregator
from quixstreams.models import Deserializer

GROUP = "bench"
COMMIT_S = 5.0
READY_S = 60.0
"""How long the applications have to get their partitions."""

GRACE_MS = 1_000
"""How late an event may be that has come through another partition."""

KEPT_MS = 10_000
"""How long a window takes updates after its end, if results come with every event."""


GROUPS = 16
"""Visitors are in so many groups."""


class Decoded(Deserializer):
    """Events as structs."""

    def __init__(self, kind: type) -> None:
        super().__init__()
        self._decode = msgspec.json.Decoder(kind).decode

    def __call__(self, value: bytes, ctx: Any) -> Any:
        return self._decode(value)


def event_time(value: Any, *_: Any) -> int:
    """Return the time that an event has itself."""
    return value.time


class Flow:
    """What a workload is made of: an application, its events, and where results go."""

    def __init__(self, task: Task, app: Application, results: Results) -> None:
        self.task, self.options, self.app, self.results = task, task.options, app, results

    def events(self, kind: type) -> Any:
        """Return the events of the topic."""
        topic = self.app.topic(
            self.task.topic, value_deserializer=Decoded(kind), timestamp_extractor=event_time
        )
        return self.app.dataframe(topic)

    @property
    def grace_ms(self) -> int:
        """How long a window that is over waits: events of one partition come in order."""
        return GRACE_MS if len(self.task.ports) > 1 else 0

    def put(self, found: Any, read: Callable[[Any, Any], Any]) -> None:
        """Hand over results as they come: a function of key and value has the row."""
        put = self.results.put

        def hand(value: Any, key: Any, _time: int, _headers: Any) -> None:
            put((read(key, value),))

        found.update(hand, metadata=True)

    def tally(self, found: Any, read: Callable[[Any, Any, int], tuple[int, int]]) -> None:
        """Hand over results that count one by one: a function of key, value and time has both."""
        tally = self.results.tally

        def hand(value: Any, key: Any, time_ms: int, _headers: Any) -> None:
            tally((read(key, value, time_ms),))

        found.update(hand, metadata=True)


class Counted(Aggregator):
    """How many, and the time of the latest."""

    def initialize(self) -> list[int]:
        return [0, 0]

    def agg(self, old: list[int], new: Any, timestamp: int) -> list[int]:
        return [old[0] + 1, max(old[1], timestamp)]

    def result(self, value: list[int]) -> list[int]:
        return value

    def merge(self, a: list[int], b: list[int]) -> list[int]:
        return [a[0] + b[0], max(a[1], b[1])]


class Added(Aggregator):
    """The sum of numbers, how many, and the time of the latest."""

    def initialize(self) -> list[Any]:
        return [0, 0, 0]

    def agg(self, old: list[Any], new: Any, timestamp: int) -> list[Any]:
        return [old[0] + new[1], old[1] + 1, max(old[2], timestamp)]

    def result(self, value: list[Any]) -> list[Any]:
        return value


def first(value: Any) -> Any:
    """Return the key of a row: what it begins with."""
    return value[0]


def window_count(key: Any, window: Any) -> Any:
    """Return the result of a window that counts."""
    count, latest = window["value"]
    return key, window["start"], count, latest


def ads(flow: Flow) -> None:
    """Count the views of a campaign in each window."""
    known = flow.options["campaigns"]
    views = flow.events(AdSeen).filter(lambda event: event.event_type == "view")
    found = views.apply(lambda event: (known.get(event.ad_id),))
    keyed = found.filter(lambda value: value[0] is not None).group_by(first, name="campaign")
    windows = keyed.tumbling_window(flow.options["window_ms"], grace_ms=KEPT_MS)
    flow.put(windows.agg(value=Counted()).current(closing_strategy="partition"), window_count)


def mean(flow: Flow) -> None:
    """Take the mean of each place in windows that overlap."""
    seconds = flow.events(SessionSeen).apply(lambda event: (event.geo, event.seconds))
    keyed = seconds.group_by(first, name="geo")
    windows = keyed.hopping_window(
        flow.options["size_ms"], flow.options["hop_ms"], grace_ms=KEPT_MS
    )

    def read(key: Any, window: Any) -> Any:
        whole, count, latest = window["value"]
        return key, window["start"], whole / count, latest

    flow.put(windows.agg(value=Added()).current(closing_strategy="partition"), read)


def split(flow: Flow) -> Any:
    """Return words by word."""
    words = flow.events(Text).apply(lambda event: event.text.split(" "), expand=True)
    return words.group_by(lambda word: word, name="word")


def words(flow: Flow) -> None:
    """Count each word."""

    def count(value: str, key: Any, time_ms: int, _headers: Any, state: Any) -> tuple[int, int]:
        held, latest = state.get("count") or (0, 0)
        found = held + 1, max(latest, time_ms)
        state.set("count", found)
        return found

    counts = split(flow).apply(count, stateful=True, metadata=True)
    flow.put(counts, lambda key, found: (key, 0, *found))


def windowed_words(flow: Flow) -> None:
    """Count each word in each window."""
    windows = split(flow).tumbling_window(flow.options["window_ms"], grace_ms=KEPT_MS)
    flow.put(windows.agg(value=Counted()).current(closing_strategy="partition"), window_count)


def grep(flow: Flow) -> None:
    """Find the lines that have a word."""
    sought = flow.options["sought"]
    found = flow.events(Text).filter(lambda event: sought in event.text.split(" "))
    flow.tally(found, lambda _key, event, time_ms: (event.id, time_ms))


def join(flow: Flow) -> None:
    """Join offers and sales of an item that are not far apart."""
    within_ms = flow.options["within_ms"]
    trades = flow.events(Trade)

    def side(kind: str) -> Any:
        picked = trades.filter(lambda event: event.kind == kind)
        rows = picked.apply(lambda event: (event.item, event.price, event.time))
        return rows.group_by(first, name=kind)

    pairs = side("offer").join_interval(
        side("sale"),
        how="inner",
        on_merge=lambda offer, sale: (sale[1] - offer[1], max(offer[2], sale[2])),
        backward_ms=within_ms,
        forward_ms=within_ms,
        grace_ms=within_ms + KEPT_MS,
    )
    flow.tally(pairs, lambda _key, pair, _time: (pair[0], pair[1]))


def sessions(flow: Flow) -> None:
    """Cut the clicks of each visitor where there is a pause.

    Visitors are in groups: the state of a group has those whose session may go on, in the order of
    their latest click. A session window finds the same, but it looks at all visitors to close one.
    """
    gap_ms, prime = flow.options["gap_ms"], flow.options["prime"]
    waits_ms = gap_ms + flow.grace_ms
    clicks = flow.events(Click).apply(lambda event: (event.user % GROUPS, event.user))
    keyed = clicks.group_by(first, name="visitors")

    def cut(value: Any, _key: Any, time_ms: int, _headers: Any, state: Any) -> list[Any]:
        held = state.get("held") or {}
        user = str(value[1])
        count, last_ms = held.pop(user, (0, time_ms))
        over = []
        if abs(time_ms - last_ms) > gap_ms:
            over.append((int(user), count, last_ms))
            count, last_ms = 0, time_ms
        held[user] = count + 1, max(last_ms, time_ms)
        for who, (clicked, at_ms) in list(held.items()):
            if time_ms - at_ms <= waits_ms:
                break
            over.append((int(who), clicked, at_ms))
            del held[who]
        state.set("held", held)
        return over

    over = keyed.apply(cut, stateful=True, metadata=True, expand=True)
    flow.tally(over, lambda _key, found, _time: (found[1] * (found[0] % prime + 1), found[2]))


def road(flow: Flow) -> None:
    """Count the reports of a segment and minute; make tolls of the speed of five minutes."""
    minute_ms, minutes = flow.options["minute_ms"], flow.options["minutes"]
    crowded = flow.options["crowded"]
    valid = flow.events(Report).filter(lambda event: event.speed >= 0)
    keyed = valid.apply(lambda event: (event.segment, event.speed)).group_by(
        lambda value: b"%d" % value[0],  # a window that is closed early wants a key of bytes
        name="segment",
        key_serializer="bytes",
        key_deserializer="bytes",
    )
    blocks = keyed.tumbling_window(minute_ms, grace_ms=flow.grace_ms, name="minute")
    blocks = blocks.agg(value=Added()).final(closing_strategy="partition")

    def block(key: Any, window: Any) -> Any:
        _, count, latest = window["value"]
        return f"block-{key.decode()}", window["start"], count, latest

    def speed(window: Any) -> tuple[float, int]:
        whole, count, latest = window["value"]
        return whole / count, latest

    def complete(value: Any, *_: Any) -> bool:
        return value[1] == minutes  # or it would wait for the minute after

    def toll(key: Any, window: Any) -> Any:
        whole, count, latest = window["value"]
        mean = whole / count
        price = 2 * (crowded - mean) ** 2 if mean < crowded else 0.0
        return f"toll-{key.decode()}", window["start"], price, latest

    flow.put(blocks, block)
    tolls = blocks.apply(speed).hopping_window(
        minutes * minute_ms, minute_ms, grace_ms=0, name="minutes", after_update=complete
    )
    tolls = tolls.reduce(
        reducer=lambda old, new: (old[0] + new[0], old[1] + 1, max(old[2], new[1])),
        initializer=lambda new: (new[0], 1, new[1]),
    )
    flow.put(tolls.final(closing_strategy="key"), toll)


FLOWS = {
    "ads": ads,
    "mean": mean,
    "words": words,
    "windowed-words": windowed_words,
    "grep": grep,
    "join": join,
    "sessions": sessions,
    "road": road,
}


def work(task: Task, part: int) -> None:
    """Run one application until it is asked to end."""
    app = Application(
        broker_address=task.servers,
        consumer_group=GROUP + task.topic,
        auto_offset_reset="earliest",
        commit_interval=COMMIT_S,
        state_dir=Path(task.folder) / f"state-{part}",
        use_changelog_topics=False,
        producer_extra_config={"linger.ms": 5},
        loglevel="WARNING",
    )
    results = Results(task, part)
    FLOWS[task.case](Flow(task, app, results))
    app.run()
    results.close()


def wait_until_ready(task: Task, workers: list[Process]) -> None:
    """Wait until every application has its share of the partitions for good.

    Without changelog topics, state does not follow a partition that moves: nothing may come before.
    """
    admin = AdminClient({"bootstrap.servers": task.servers})
    group, deadline = GROUP + task.topic, time.monotonic() + READY_S
    sharing = min(task.dop, len(task.ports))
    while time.monotonic() < deadline and not any(worker.exitcode for worker in workers):
        time.sleep(0.1)
        with suppress(KafkaException):  # nobody is in charge of the group yet
            found = admin.describe_consumer_groups([group])[group].result()
            shares = [
                sum(place.topic == task.topic for place in each.assignment.topic_partitions)
                for each in found.members
            ]
            # While partitions are given out anew, members still have what they had before.
            steady = found.state == ConsumerGroupState.STABLE and len(shares) == task.dop
            if steady and sum(map(bool, shares)) == sharing and sum(shares) == len(task.ports):
                return
    raise SystemExit("the applications have not got their partitions")


def start(task: Task) -> None:
    """Run the applications until all events have come."""
    if task.case == "join" and len(task.ports) > 1:
        # Seen in every run: pairs are missing, and results come seconds late. It seems that the
        # topic before `group_by` takes part in the order of time in which both sides are read.
        raise SystemExit("join_interval after group_by is only right with one partition")
    workers = [Process(target=work, args=(task, part), daemon=True) for part in range(task.dop)]
    for worker in workers:
        worker.start()
    wait_until_ready(task, workers)
    Signal(task).wait()
    for worker in workers:
        os.kill(worker.pid or 0, signal.SIGTERM)
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise SystemExit(1)


if __name__ == "__main__":
    run(start)
