"""What was wanted of a run, and what came of it."""

import math
from collections.abc import Mapping, Sequence

import msgspec

from floodway_lab.chaos.kinds import Kind
from floodway_lab.chaos.verdict import Branch
from floodway_lab.chaos.watch import Strike


class Order(msgspec.Struct, frozen=True):
    """What is wanted.

    Attributes
    ----------
    faults
        How many faults of each kind.
    records
        How many items the flow gets.
    seed
        Decides what goes wrong and whom it befalls, and how long to wait before.
    dop
        Tasks per stage.
    epoch_ms
        How often an epoch is committed.
    state_memory
        How many bytes of state a task keeps in memory; None for all.
    folder
        Where everything is kept; a temporary folder, removed if all is well, if not given.
    switches
        Whether a stage changes its paradigm after every loss, and in between.
    mixed
        How many faults of all kinds that can be had, beside those of `faults`.
    """

    faults: dict[Kind, int] = {}
    records: int = 500_000
    seed: int = 1
    dop: int = 2
    epoch_ms: int = 200
    state_memory: int | None = None
    folder: str | None = None
    switches: bool = False
    mixed: int = 0


class Times(msgspec.Struct, frozen=True):
    """Milliseconds: the middle, almost the worst, the worst, and all."""

    p50: float | None
    p99: float | None
    worst: float | None
    all: list[float]

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Times":
        """Return the figures of times in seconds.

        >>> Times.of([0.5, 0.25, 2.0])
        Times(p50=500.0, p99=2000.0, worst=2000.0, all=[500.0, 250.0, 2000.0])
        """
        ms = [round(1000 * each, 1) for each in seconds]
        return cls(_percentile(ms, 50), _percentile(ms, 99), max(ms, default=None), ms)


def _percentile(values: Sequence[float], percent: float) -> float | None:
    ranked = sorted(values)
    return ranked[math.ceil(len(ranked) * percent / 100) - 1] if ranked else None


class Suffered(msgspec.Struct, frozen=True):
    """What faults of one kind have done.

    Attributes
    ----------
    count
        How many there were.
    whom
        How many of them befell whom.
    running_ms
        From the fault, or from its end if it lasts, until all tasks ran, new ones instead of those
        that were lost. Faults that were overtaken by the kill of a driver are not in it.
    committed_ms
        The same until an epoch was committed.
    """

    count: int
    whom: dict[str, int]
    running_ms: Times
    committed_ms: Times

    @classmethod
    def of(cls, strikes: Sequence[Strike]) -> "Suffered":
        """Return what some faults have done."""
        whom: dict[str, int] = {}
        for strike in strikes:
            name = strike.what.partition("/")[0]
            whom[name] = whom.get(name, 0) + strike.many
        told = [s for s in strikes if not s.overtaken and s.over_at is not None]
        return cls(
            len(strikes),
            whom if all(strike.kind in NAMED for strike in strikes) else {},
            Times.of([s.running_at - s.over_at for s in told if s.running_at and s.over_at]),
            Times.of([s.committed_at - s.over_at for s in told if s.committed_at and s.over_at]),
        )


NAMED = ("task", "stop", "clock", "reset")
"""Kinds of which it is interesting whom they befell, or how many."""


class Result(msgspec.Struct, frozen=True):
    """What came of it.

    Attributes
    ----------
    faults
        What faults of each kind have done.
    wanted
        How many faults of each kind there should have been.
    without
        The kinds that could not be had on this machine, and why.
    while_recovering
        How many faults hit a flow that had not recovered from the one before.
    lost, duplicated, wrong
        Results that are missing, there again, or neither; of all branches together.
    running_ms, committed_ms
        From a fault until all tasks ran again, and until an epoch was committed; of all kinds.
    epochs
        How many epochs were committed.
    recoveries
        How often tasks were replaced.
    switches
        How often a stage changed its paradigm.
    seconds
        From the first moment at which the flow ran to its end.
    left
        Processes that were still there a minute after their driver was gone.
    branches
        What is wrong, branch by branch.
    failure
        What made the flow fail or hang, if it did.
    folder
        Where the results, the checkpoint and the log are, if they were kept.
    order
        What was asked for.
    unmade
        Faults that were left out since all items had come in: they would have hit an idle flow.
    """

    faults: dict[Kind, Suffered]
    wanted: dict[Kind, int]
    without: dict[Kind, str]
    while_recovering: int
    lost: int
    duplicated: int
    wrong: int
    running_ms: Times
    committed_ms: Times
    epochs: int
    recoveries: int
    switches: int
    seconds: float
    left: int
    branches: dict[str, Branch]
    failure: str | None
    folder: str | None
    order: Order
    unmade: int = 0

    @property
    def sound(self) -> bool:
        """Whether nothing was lost, doubled, wrong or left, and every fault was survived."""
        return (
            all(branch.sound for branch in self.branches.values())
            and {kind: suffered.count for kind, suffered in self.faults.items()} == self.wanted
            and not self.left
            and self.failure is None
            and (not self.order.switches or self.switches >= self.wanted.get("task", 0))
        )


def by_kind(strikes: Sequence[Strike], wanted: Mapping[Kind, int]) -> dict[Kind, Suffered]:
    """Return what faults of each kind have done."""
    return {kind: Suffered.of([s for s in strikes if s.kind == kind]) for kind in wanted}
