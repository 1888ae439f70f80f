"""A flow whose checkpoint an earlier version has written, for this one to go on from.

`former.tar.xz` is what a version from before the engine was cut into rooms (c81255a) left behind
when it was killed after some epochs. To make it anew, run ``PYTHONPATH=../former/src:. python -m
tests.engine.spark.former FOLDER``, and pack the folder without ``checkpoint/lock``.
"""

import os
import signal
import sys
from pathlib import Path

import floodway as fw
from floodway.connectors import JsonLinesSink
from floodway.testing import ListSource
from tests.waiting import wait_for

EVENTS = 4_000


class Event(fw.Record):
    user: int
    kind: str
    amount: int
    at: int


class User(fw.Record):
    user: int
    name: str


def events() -> list[Event]:
    """Return the events that go in: in order, with pauses between the sessions of a user."""
    return [
        Event(n % 17, "abc"[n * 7 % 3], n * 31 % 101, n * 40 + (n // 500) * 60_000)
        for n in range(EVENTS)
    ]


def users() -> list[User]:
    return [User(n, f"user {n}") for n in range(17)]


def build(folder: Path) -> fw.Flow:
    """Windows, sessions, an aggregate with a join behind it, a join of streams, the user's own."""
    flow = fw.Flow("former", retention="1m")
    source = flow.source("events", ListSource(events()), schema=Event, timestamp="at")
    names = flow.table("names", ListSource(users()), schema=User, key="user", static=True)
    ended = fw.emit.after_window_end()
    kinds = source.group_by("kind").window(fw.tumbling("10s"))
    counts = kinds.agg(n=fw.count(), total=fw.sum("amount"), most=fw.max("amount"), name="windows")
    counts.changes(emit=ended, name="w").to(JsonLinesSink(folder / "windows.jsonl"))
    sessions = source.group_by("user").window(fw.session("30s")).count(name="sessions")
    sessions.changes(emit=ended, name="s").to(JsonLinesSink(folder / "sessions.jsonl"))
    named = source.join(
        names, on="user", select=["left.kind AS kind", "right.name AS name"], name="named"
    )
    totals = named.group_by("kind", "name").count(name="labels")
    totals.changes(name="l").to(JsonLinesSink(folder / "labels.jsonl"))
    steps = source.key_by("user", name="by_user").process(
        init=lambda user: 0, update=add, schema=int, name="sums"
    )
    steps.to(JsonLinesSink(folder / "sums.jsonl"))
    return flow


def add(time: int, user: int, event: Event, total: int) -> tuple[int, list[tuple[int, int, int]]]:
    total += event.amount
    return total, [(time, user, total)]


def leave(folder: Path) -> None:
    """Let the flow work for a while, and kill it: what is left is a checkpoint in the middle."""
    job = build(folder).start(checkpoint=folder / "checkpoint", epoch="300ms", dop=2)
    job.throttle("events", 500)
    wait_for(lambda: job.committed >= 15, "some epochs")
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    leave(Path(sys.argv[1]))
