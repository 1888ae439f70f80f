"""A batch: a stretch of what has come to a task, step by step in its order."""

from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from floodway.engine.datastream.inbox import Arrived
from floodway.engine.datastream.task import Positions
from floodway.engine.opstream.blocks import FRAME, BlockWriter, RunResult, Unit
from floodway.engine.opstream.halves import Halves
from floodway.engine.program.mark import Mark
from floodway.engine.transport.frame import Header

ChangedTables = frozenset[str]
"""The look-ups whose table a step may change."""


class Run(NamedTuple):
    """Stands for what comes of a run in the remote half; `source` if it was read by one."""

    number: int
    source: str | None
    changes: ChangedTables


class Frames(NamedTuple):
    """Frames that the owner works on itself."""

    entries: list[Arrived]
    changes: ChangedTables


class RawUnit(NamedTuple):
    """What a source has read and the owner takes itself.

    `kind` is that of a unit, and `records` about how many records that is: empty lines are none,
    and are counted here.
    """

    source: str
    raw: list[Any] | bytes
    now: int
    kind: int
    records: int
    changes: ChangedTables


class Marked(NamedTuple):
    """A mark, and where the sources were."""

    epoch: int
    mark: Mark
    positions: Positions | None


class EndOfChannel(NamedTuple):
    """The end of a channel."""

    header: Header
    data: bytes


class EndOfSource(NamedTuple):
    """The end of a source."""

    source: str
    final: bool


BatchStep = Run | Frames | RawUnit | Marked | EndOfChannel | EndOfSource


class Batch:
    """Steps, and the block of what is done elsewhere; `file` says where that can go.

    Attributes
    ----------
    block
        Where the units go; None while there are none.
    parts, without
        How the stage is divided for this batch, and which look-ups the owner does itself.
    since, offered_us
        When the first step was collected, and when the block was offered.
    times
        Stream time during each run.
    records, guessed
        How many records are in the block, and of them those that sources have read, about.
    results
        What came of each run, piece by piece; None until that is known.
    """

    def __init__(
        self, file: Callable[[], Path], parts: Halves, without: list[str], now: int
    ) -> None:
        self._file = file
        self.parts, self.without, self.since = parts, without, now
        self.steps: deque[BatchStep] = deque()
        self.block: BlockWriter | None = None
        self.times: list[int | None] = []
        self.records = self.guessed = 0
        self.number = 0
        self.offered_us = 0
        self.results: dict[int, list[RunResult]] | None = None
        self._last: tuple[int, bool] | None = None

    def add(self, step: BatchStep) -> None:
        """Add a step that is not done elsewhere."""
        self.steps.append(step)
        self._last = None

    def begins_run(self, kind: int, place: int) -> bool:
        """Return whether units of a place do not belong to the last run."""
        return self._last != (place, kind != FRAME)

    def begin_run(self, kind: int, place: int, run: Run, stream_time: int | None) -> None:
        """Begin a run."""
        self.steps.append(run)
        self.times.append(stream_time)
        self._last = (place, kind != FRAME)

    @property
    def bytes(self) -> int:
        """How much is in the block."""
        return 0 if self.block is None else self.block.bytes

    def send_away(self, kind: int, place: int, units: Iterable[tuple[int, int, Any]]) -> bool:
        """Add units to the last run: how many records, when they came, and what they are.

        Returns whether there is enough to be written.
        """
        if self.block is None:
            self.block = BlockWriter(self._file())
        run, enough = len(self.times) - 1, False
        for records, born, data in units:
            enough = self.block.add(Unit(kind, place, run, records, born, data))
            self.records += records
        return enough
