"""The kinds of faults there are, what they are called, and about how long they take."""

from collections.abc import Collection
from typing import Literal, NamedTuple

Kind = Literal[
    "task", "reset", "stop", "daemon", "clock", "redis", "broker", "executor", "driver"
]  # fmt: skip
"""What a fault does: kill a task, the process that forks tasks, an executor of Spark, the driver,
Kafka's broker or Redis; reset all connections; stop a process for a while; set a clock."""


class About(NamedTuple):
    """What a kind is called, after a number, and about how many seconds it costs, to plan with."""

    called: str
    seconds: float


KINDS: dict[Kind, About] = {
    "task": About("tasks killed", 2.0),
    "reset": About("connections reset", 2.0),
    "stop": About("processes stopped", 10.0),
    "daemon": About("daemons killed", 4.0),
    "clock": About("clocks set by an hour", 1.0),
    "redis": About("Redis killed", 3.0),
    "broker": About("broker killed", 14.0),
    "executor": About("executors killed", 6.0),
    "driver": About("drivers killed", 15.0),
}


def mixed(count: int, without: Collection[Kind] = ()) -> dict[Kind, int]:
    """Return how often each kind comes if there are so many faults: all about equally often.

    >>> mixed(5, without=["daemon", "clock", "redis", "broker", "executor", "driver"])
    {'task': 2, 'reset': 2, 'stop': 1}
    """
    kinds = [kind for kind in KINDS if kind not in without]
    return {kind: (count + len(kinds) - 1 - at) // len(kinds) for at, kind in enumerate(kinds)}
