"""The story: every decision with the numbers that made it.

It is kept as structs and written as JSON lines. With the loads written, too, it can be replayed:
the scheduler is deterministic, and decides on numbers as they are written, so a new one that is
shown the same loads decides the same.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Self

import msgspec

from floodway.core.errors import EngineError
from floodway.engine.scheduler.decisions import Decision, SetBatch, SwitchTo
from floodway.engine.scheduler.loads import StageLoad, Topology, rounded
from floodway.engine.scheduler.settings import SchedulerSettings
from floodway.engine.scheduler.switch_point import SwitchPoint
from floodway.model.tuning import Paradigm

What = Literal["batch", "switch", "switched", "failed", "stay"]
"""Batches change, a stage is told to switch, it has, it could not; or nothing is done, and why."""

KEPT = 1_000
"""So many entries are kept in memory."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="entry"):
    """One decision, or what became of it.

    Attributes
    ----------
    time_ms, what
        When it was, and what it was.
    stage, operator
        Whom it is about, or for whose sake it is done; whose batches change.
    before, after
        Paradigms or batch sizes; ``from`` and ``to`` in JSON.
    why
        The reason in one sentence, with numbers.
    point, range
        The stage's switch point, and the range that is switched.
    loads
        The loads that were looked at.
    pause_us
        How long the stage stood still for the switch.
    """

    time_ms: int
    what: What
    stage: str
    why: str
    operator: str | None = None
    before: str | int | None = msgspec.field(default=None, name="from")
    after: str | int | None = msgspec.field(default=None, name="to")
    point: SwitchPoint | None = None
    range: tuple[str, ...] = ()
    loads: tuple[StageLoad, ...] = ()
    pause_us: int | None = None

    @property
    def decision(self) -> Decision | None:
        """What was decided; None if it tells of something else."""
        if self.what == "batch" and self.operator is not None and isinstance(self.after, int):
            return SetBatch(self.operator, self.after)
        if self.what == "switch":
            return SwitchTo(self.stage, "data" if self.after == "data" else "operation")
        return None


class Began(msgspec.Struct, frozen=True, tag="began"):
    """The first line: whose story it is."""

    topology: Topology
    settings: SchedulerSettings


class LoadRow(StageLoad, frozen=True, kw_only=True, array_like=True):
    """A load as an array, which is a third of its size."""

    @classmethod
    def of(cls, load: StageLoad) -> Self:
        """Return the row of a load."""
        return cls(**msgspec.structs.asdict(load))


class Observed(msgspec.Struct, frozen=True, tag="observed"):
    """All loads at a moment, as far as they were known."""

    time_ms: int
    loads: tuple[LoadRow, ...]


class Answered(msgspec.Struct, frozen=True, omit_defaults=True, tag="answered"):
    """A stage has switched, or has not been able to."""

    time_ms: int
    stage: str
    pause_us: int = 0
    failed: str | None = None
    paradigm: Paradigm | None = None


Line = Began | Entry | Observed | Answered
_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class Story:
    """Keeps the latest entries, and writes lines.

    Parameters
    ----------
    write
        Takes every line, without its end.
    loads
        Whether to write all loads, too: some hundred bytes for each stage, twenty times a second.
        Without them a story can be read, but not replayed.
    kept
        How many entries to keep in memory.
    """

    def __init__(
        self,
        write: Callable[[bytes], object] | None = None,
        *,
        loads: bool = True,
        kept: int = KEPT,
    ) -> None:
        self._write = write
        self._loads = loads
        self._entries: deque[Entry] = deque(maxlen=kept)
        self._told = 0

    @property
    def entries(self) -> list[Entry]:
        """The latest entries, oldest first."""
        return list(self._entries)

    def since(self, count: int) -> list[Entry]:
        """Return the entries after the first `count`, as far as they are kept."""
        fresh = self._told - count
        return self.entries[-fresh:] if fresh > 0 else []

    def began(self, topology: Topology, settings: SchedulerSettings) -> None:
        """Write whose story it is."""
        self._line(Began(topology, settings))

    def observed(self, loads: Iterable[StageLoad], now_ms: int) -> None:
        """Write what was measured."""
        if self._write is not None and self._loads:
            self._line(Observed(now_ms, tuple(map(LoadRow.of, loads))))

    def answered(self, answer: Answered) -> None:
        """Write what became of a switch."""
        self._line(answer)

    def add(self, entry: Entry) -> None:
        """Keep and write an entry."""
        if entry.point is not None:
            entry = msgspec.structs.replace(entry, point=rounded(entry.point))
        self._entries.append(entry)
        self._told += 1
        self._line(entry)

    def _line(self, line: Line) -> None:
        if self._write is not None:
            self._write(msgspec.json.encode(line))


def read_story(lines: Iterable[bytes | str]) -> list[Line]:
    """Return a story that was written; what comes after a broken last line is not there yet.

    Raises
    ------
    EngineError
        If another line than the last is broken.
    """
    texts: Sequence[bytes | str] = [line for line in lines if line.strip()]
    story: list[Line] = []
    for number, text in enumerate(texts, 1):
        try:
            story.append(_DECODER.decode(text))
        except msgspec.MsgspecError as error:
            if number < len(texts):
                raise EngineError(
                    f"line {number} of the scheduler's story cannot be read: {error}",
                    remedy="use the file as the scheduler wrote it",
                ) from error
    return story
