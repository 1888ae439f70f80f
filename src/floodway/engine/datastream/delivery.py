"""Sinks that take whole epochs, each exactly once.

Rows that reach such a sink are encoded and kept until their epoch ends. Then they are written to a
durable *log* with the rest of the epoch's state. Once the epoch is committed the writer *applies*
the log: from then on people can see it. Logs that a task left behind, committed and perhaps not
applied, are applied by its successor; applying an epoch twice is harmless.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from floodway.connectors.base import EpochWriter, Unavailable
from floodway.core.errors import ConnectorError
from floodway.engine.checkpoint.records import SinkRecord
from floodway.engine.checkpoint.sink_log import Log, read_log, write_log
from floodway.engine.checkpoint.vault import FileRef, Vault, epoch_name
from floodway.engine.datastream.aside import Errands
from floodway.engine.host.failpoints import reach
from floodway.engine.program.opening import naming
from floodway.engine.program.program import Node
from floodway.operators.sink import Sink

MOST_UNAPPLIED = 64 * 1024 * 1024
"""With so many committed bytes that the target has not taken, a task waits for it."""

Delivered = Callable[[int, int], None]
"""Told when rows have become visible: when the oldest came into the flow, and how many."""


class StoredLog:
    """A log on its way: stored as `ref`, not yet applied; and when its blocks came in."""

    def __init__(self, log: Log, ref: FileRef, births: Sequence[tuple[int, int]] = ()) -> None:
        self.log, self.ref, self.births = log, ref, births
        self.size = sum(map(len, log.blocks))
        self.queued = False


class EpochSink:
    """A sink that takes whole epochs, at work in one task.

    Parameters
    ----------
    folder
        Where in the vault its logs are.
    delivered
        Told about rows that have become visible.
    """

    def __init__(
        self,
        operator: Sink,
        node: Node,
        writer: EpochWriter,
        vault: Vault,
        folder: str,
        delivered: Delivered,
    ) -> None:
        self.operator = operator
        self.node = node
        self.writer = writer
        self._vault = vault
        self._folder = folder
        self._delivered = delivered
        self._blocks: list[bytes] = []
        self._births: list[tuple[int, int]] = []
        self._entries: list[StoredLog] = []
        self._token: Any = None
        self._prepared: deque[Log] = deque()

    @property
    def name(self) -> str:
        """The sink's name."""
        return self.operator.name

    def collect(self) -> bool:
        """Keep what has reached the sink; return whether that was something."""
        rows = self.node.collect()
        if not rows:
            return False
        with naming(self.operator):
            self._blocks.append(self.writer.encode(rows))
        self._births.append((self.node.born, len(rows)))
        self.node.born = 0
        return True

    def end_epoch(self, epoch: int, attempt: int) -> Callable[[], StoredLog | None]:
        """Return the work that makes an epoch's log durable; there may be nothing to write."""
        self.collect()
        with naming(self.operator):
            token = self.writer.prepare(epoch)
        log, births = Log(epoch, token, self._blocks), self._births
        self._prepared.append(log)  # the next epoch may end before this one is stored
        self._blocks, self._births = [], []
        return partial(self._store, log, births, attempt)

    def _store(self, log: Log, births: list[tuple[int, int]], attempt: int) -> StoredLog | None:
        if not log.blocks:
            return None
        name = epoch_name(self._folder, log.epoch, attempt, "log")
        reach("sink.before_log")
        return StoredLog(log, write_log(self._vault, name, log), births)

    def stored(self, entry: StoredLog | None) -> None:
        """Take note that an epoch's log, if it has one, is durable."""
        self._token = self._prepared.popleft().token
        if entry is not None:
            self._entries.append(entry)

    def record(self) -> SinkRecord:
        """Return what a successor has to know."""
        return SinkRecord(self._token, [(e.log.epoch, e.ref) for e in self._entries])

    def resume(self, record: SinkRecord) -> None:
        """Go on where a task was: its logs are committed, and may have to be applied."""
        self._token = record.token
        for _, ref in record.logs:
            self._entries.append(StoredLog(read_log(self._vault, ref), ref))

    def commit(self, epoch: int, errands: Errands) -> None:
        """Have all logs applied up to an epoch that is committed."""
        for entry in self._entries:
            if entry.log.epoch <= epoch and not entry.queued:
                entry.queued = True
                errands.add(partial(self._apply, entry.log), partial(self._applied, entry))

    def _apply(self, log: Log) -> None:
        reach("sink.before_apply")
        with naming(self.operator):
            self.writer.apply(log.epoch, log.blocks, log.token)
        reach("sink.after_apply")

    def show_rest(self, epoch: int) -> None:
        """Apply all that has come, committed or not: nobody will ever go back behind it."""
        self.end_epoch(epoch, 0)
        logs = [*(entry.log for entry in self._entries), *self._prepared]
        try:
            for log in filter(lambda log: log.blocks, logs):
                self._apply(log)
        except Unavailable as error:
            raise ConnectorError(
                f"the last rows of {self.name} could not be written: {error.reason}",
                remedy="see that what it writes to is there, and run the flow again",
                operator=self.name,
                place=self.operator.place,
            ) from None

    def _applied(self, entry: StoredLog, _: None) -> None:
        self._entries.remove(entry)
        for born, count in entry.births:
            self._delivered(born, count)

    @property
    def unapplied(self) -> int:
        """How many committed bytes the target has not taken yet."""
        return sum(entry.size for entry in self._entries if entry.queued)

    def close(self) -> None:
        """Close the writer."""
        with naming(self.operator):
            self.writer.close()
