"""Connectors, a vault and hands that do what a test says, and tasks that have them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from floodway import Flow
from floodway.connectors.base import (
    EpochWriter,
    Reader,
    Row,
    SinkConnector,
    SourceConnector,
    Split,
    Unavailable,
    Writer,
)
from floodway.core.errors import DiskFullError
from floodway.core.schema import Schema
from floodway.engine.checkpoint.vault import FileRef, Vault, damaged
from floodway.engine.datastream.aside import Outcome, Work
from floodway.engine.datastream.task import Task
from floodway.plan import Plan


class Feed(SourceConnector):
    """Gives batch after batch; the position is how many batches were given.

    An empty batch means that nothing is there now, None that the source has ended.
    """

    replayable: ClassVar[bool] = True

    def __init__(self, *batches: list[int] | None) -> None:
        self.batches: list[list[int] | None] = list(batches)
        self.opened: list[Any] = []
        self.committed: list[Any] = []
        self.by_epochs = 0
        self.closed = 0

    def open(self, split: Split, position: Any = None) -> Reader:
        self.opened.append(position)
        return FeedReader(self, position or 0)


class OneOff(Feed):
    """Gives batches that nobody can have again."""

    replayable: ClassVar[bool] = False


class FeedReader(Reader):
    def __init__(self, feed: Feed, position: int) -> None:
        self._feed = feed
        self._position = position

    def poll(self, limit: int) -> list[int] | None:
        if self._position >= len(self._feed.batches):
            return []
        batch = self._feed.batches[self._position]
        self._position += 1
        return batch

    def position(self) -> int:
        return self._position

    def commits_with_epochs(self) -> None:
        self._feed.by_epochs += 1

    def commit(self, position: Any) -> None:
        self._feed.committed.append(position)

    def close(self) -> None:
        self._feed.closed += 1


class Shown(SinkConnector):
    """Shows whole epochs, and writes down who asked it for what.

    `away` is how often it cannot take an epoch before it can.
    """

    def __init__(self, *, block_bytes: int = 0) -> None:
        self.opened: list[tuple[str, Any]] = []
        self.applied: list[tuple[int, list[int]]] = []
        self.calls: list[int] = []
        self.away = 0
        self.closed = 0
        self.block_bytes = block_bytes

    def open_epochs(self, split: Split, schema: Schema, *, name: str, token: Any) -> EpochWriter:
        self.opened.append((name, token))
        return ShownWriter(self, token["rows"] if token else 0)

    @property
    def values(self) -> list[int]:
        return [value for _, values in self.applied for value in values]


class ShownWriter(EpochWriter):
    """The token is how many rows there are in all after an epoch, and which it is."""

    def __init__(self, shown: Shown, rows: int) -> None:
        self._shown = shown
        self._rows = rows

    def encode(self, rows: Sequence[Row]) -> bytes:
        self._rows += len(rows)
        text = ",".join(str(value) for _, _, value, _ in rows)
        return text.encode().ljust(self._shown.block_bytes)

    def prepare(self, epoch: int) -> Any:
        return {"epoch": epoch, "rows": self._rows}

    def apply(self, epoch: int, blocks: Sequence[bytes], token: Any) -> None:
        shown = self._shown
        shown.calls.append(epoch)
        assert token["epoch"] == epoch
        if shown.away:
            shown.away -= 1
            raise Unavailable("the target is down")
        values = [int(text) for block in blocks for text in block.split(b",")]
        shown.applied.append((epoch, values))

    def close(self) -> None:
        self._shown.closed += 1


class Taken(SinkConnector):
    """Takes rows as they come; what was taken is `flushed` later, if it is not `stuck`."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.flushed: list[int] = []
        self.stuck = False

    def open(self, split: Split, schema: Schema) -> Writer:
        return TakenWriter(self)


class TakenWriter(Writer):
    def __init__(self, target: Taken) -> None:
        self._target = target

    def write(self, rows: Sequence[Row]) -> None:
        self._target.taken += [value for _, _, value, _ in rows]

    def flush(self) -> None:
        if self._target.stuck:
            raise Unavailable("it is stuck")
        self._target.flushed = list(self._target.taken)


class Shelf(Vault):
    """A vault in memory; so often as `full` says there is no room."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.full = 0

    def write(self, name: str, data: bytes) -> FileRef:
        if self.full:
            self.full -= 1
            raise DiskFullError("the shelf is full", remedy="make room")
        self.files[name] = data
        return FileRef(name, len(data), str(hash(data)).encode())

    def load(self, name: str) -> tuple[bytes, bytes]:
        if name not in self.files:
            raise damaged(name, "it is not there")
        data = self.files[name]
        return data, str(hash(data)).encode()

    def size(self, name: str) -> int | None:
        return len(self.files[name]) if name in self.files else None

    def names(self, prefix: str = "") -> list[str]:
        return sorted(name for name in self.files if name.startswith(prefix))

    def delete(self, name: str, *, durable: bool = False) -> None:
        self.files.pop(name, None)

    def lock(self) -> Callable[[], None]:
        return lambda: None

    def sweep(self) -> list[str]:
        return []


class Hands:
    """Does a piece of work aside: at once if it is `quick`, otherwise when told to `finish`."""

    def __init__(self, *, quick: bool = True) -> None:
        self.quick = quick
        self.work: Work | None = None
        self.closed = False
        self._outcome: Outcome | None = None

    def begin(self, work: Work) -> None:
        assert self.work is None, "one piece of work at a time"
        assert not self.closed
        self.work = work

    def finish(self) -> None:
        assert self.work is not None
        try:
            self._outcome = (self.work(), None)
        except BaseException as error:
            self._outcome = (None, error)
        self.work = None

    def outcome(self) -> Outcome | None:
        if self.quick and self.work is not None:
            self.finish()
        found, self._outcome = self._outcome, None
        return found

    def close(self) -> None:
        if self.work is not None:
            self.finish()
        self.closed = True


class NoBell:
    """Has nobody to wake."""

    def watch(self, descriptor: int) -> None:
        """Do nothing."""

    def unwatch(self, descriptor: int) -> None:
        """Do nothing."""


class Bell:
    """Knows whom it would wake up for."""

    def __init__(self) -> None:
        self.watched: set[int] = set()

    def watch(self, descriptor: int) -> None:
        self.watched.add(descriptor)

    def unwatch(self, descriptor: int) -> None:
        self.watched.remove(descriptor)


def straight(source: SourceConnector, *sinks: SinkConnector) -> Plan:
    """A source and its sinks, in one stage: ``numbers`` goes to ``out_0``, ``out_1`` and so on."""
    flow = Flow("straight")
    numbers = flow.source("numbers", source, schema=int)
    for number, sink in enumerate(sinks):
        numbers.to(sink, name=f"out_{number}")
    return Plan.of(flow)


def only_task(plan: Plan, attempts: Sequence[int] = ()) -> Task:
    """Return the one task that a plan has."""
    (stage,) = plan.stages
    return Task(plan, stage, 0, lambda number, frame: None, attempts=attempts or None)


def values(rows: Iterable[Row]) -> list[Any]:
    return [row[2] for row in rows]
