"""The sinks of a task at work: writers, rows they could not take yet, and when to flush.

A sink that takes whole epochs is an `EpochSink`, if the flow has a checkpoint; all others are
written to as rows come. In a flow that recovers without a checkpoint almost all are, and say at the
end of each epoch where they are, so that their successors can take back what came after it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from floodway.connectors.backoff import Backoff
from floodway.connectors.base import (
    EpochWriter,
    Row,
    SinkConnector,
    Split,
    Unavailable,
    Writer,
)
from floodway.engine.checkpoint.records import SinkRecord
from floodway.engine.checkpoint.vault import Vault
from floodway.engine.datastream.aside import Errands
from floodway.engine.datastream.delivery import MOST_UNAPPLIED, EpochSink, StoredLog
from floodway.engine.datastream.reporting import Reporter
from floodway.engine.datastream.task import Task
from floodway.engine.program.opening import naming, opened
from floodway.engine.program.program import Node
from floodway.operators.sink import Sink

ROWS_FOR_SINK = 1000
"""So many rows are handed to a sink at a time, or a few more."""

FLUSH_US = 200_000
"""What a sink has taken waits no longer than this, even if more keeps coming."""

_pack = msgspec.msgpack.encode
_unpack = msgspec.msgpack.decode


class OpenSink:
    """A sink and its writer, at work, and rows that it could not take yet."""

    def __init__(self, operator: Sink, node: Node, writer: Writer) -> None:
        self.operator = operator
        self.node = node
        self.writer = writer
        self.rows: list[Row] = []
        self.unflushed = False
        self.flushed_us = 0
        self.retry_us = 0
        self.backoff = Backoff()
        self.away: str | None = None


class Sinks:
    """All sinks of one task.

    `warn` tells people what they should know: a sink is away, or back.
    """

    def __init__(
        self,
        task: Task,
        reporter: Reporter,
        clock: Callable[[], int],
        warn: Callable[[str], None],
    ) -> None:
        self._task = task
        self._reporter = reporter
        self._clock = clock
        self._warn = warn
        self._open: list[OpenSink] = []
        self._epochs: list[EpochSink] = []
        self._nodes: list[Node] = []
        self._eager = False

    def open(
        self,
        split: Split,
        vault: Vault | None = None,
        records: Mapping[str, SinkRecord] | None = None,
        *,
        lasting: bool = True,
    ) -> None:
        """Open the task's part of every sink; with a vault, where `records` say they are.

        With one that is not `lasting`, sinks show rows at once.
        """
        self._eager = vault is not None and not lasting
        for operator in self._task.stage.operators:
            if not isinstance(operator, Sink) or not isinstance(operator.connector, SinkConnector):
                continue
            node = self._task.program.node(operator.name)
            self._nodes.append(node)
            record = (records or {}).get(operator.name)
            with opened(operator):
                if vault is None:
                    schema = operator.inputs[0].output.schema
                    writer = operator.connector.open(split, schema)
                elif lasting:
                    writer = self._open_epochs(operator, split, record)
                else:
                    writer = self._open_eager(operator, split, vault, record)
            if vault is not None and isinstance(writer, EpochWriter):
                folder = _folder(operator, split)
                sink = EpochSink(operator, node, writer, vault, folder, self._delivered)
                self._epochs.append(sink)
                if record is not None:
                    sink.resume(record)
            else:
                self._open.append(OpenSink(operator, node, writer))

    def _open_epochs(self, operator: Sink, split: Split, record: SinkRecord | None) -> Writer:
        """Open a sink for whole epochs, or as it is if it cannot take them."""
        connector, schema = operator.connector, operator.inputs[0].output.schema
        assert isinstance(connector, SinkConnector)
        token = None if record is None else record.token
        writer = connector.open_epochs(split, schema, name=self._name(operator, split), token=token)
        return writer or connector.open(split, schema)

    def _open_eager(
        self, operator: Sink, split: Split, vault: Vault, record: SinkRecord | None
    ) -> Writer:
        """Open a sink that shows rows at once, and take back what nobody has committed.

        Where it began is kept in the vault: a task may be lost before the first epoch is committed,
        and its target need not have been empty.
        """
        connector, schema = operator.connector, operator.inputs[0].output.schema
        assert isinstance(connector, SinkConnector)
        began = f"{_folder(operator, split)}/began"
        position: Any = None
        if record is not None:
            position = record.token
        elif vault.size(began) is not None:
            position = _unpack(vault.read(began))
        writer = connector.open_eager(
            split, schema, name=self._name(operator, split), position=position
        )
        if position is None and (first := writer.position()) is not None:
            vault.write(began, _pack(first))
        return writer

    def _name(self, operator: Sink, split: Split) -> str:
        return f"{self._task.plan.flow}.{operator.name}.{split.index}"

    def _delivered(self, born: int, count: int) -> None:
        self._reporter.delivered(born, self._clock(), count)

    def __iter__(self) -> Iterator[OpenSink]:
        return iter(self._open)

    @property
    def enough(self) -> bool:
        """Whether a sink has enough rows; more should wait in the input cache, which is bounded."""
        return any(node.pending >= ROWS_FOR_SINK for node in self._nodes)

    @property
    def pending(self) -> bool:
        """Whether rows have reached a sink that it has not taken yet."""
        return any(sink.rows or sink.node.pending for sink in self._open)

    @property
    def unflushed(self) -> bool:
        """Whether a sink has taken rows that it has not handed on yet."""
        return any(sink.unflushed for sink in self._open)

    def paused(self, now: int) -> bool:
        """Return whether a sink that is away keeps this task from working."""
        return any(sink.rows and sink.retry_us > now for sink in self._open) or any(
            sink.unapplied > MOST_UNAPPLIED for sink in self._epochs
        )

    def write(self, now: int) -> bool:
        """Hand over what has reached the sinks; return whether that was something."""
        busy = False
        for epoch_sink in self._epochs:
            if epoch_sink.collect():
                busy = True
                self._tell(epoch_sink.operator, epoch_sink.writer)
        for sink in self._open:
            sink.rows += sink.node.collect()
            if (sink.rows or sink.unflushed) and sink.retry_us <= now:
                busy |= self._write(sink, now)
        return busy

    def _write(self, sink: OpenSink, now: int) -> bool:
        count = len(sink.rows)
        try:
            with naming(sink.operator):
                self._hand_over(sink, count, now)
        except Unavailable as error:
            del sink.rows[: error.taken]
            sink.retry_us = now + int(sink.backoff.next_ms() * 1000)
            if sink.away is None:
                self._warn(f"{sink.operator.name} is away: {error.reason}; trying again")
            sink.away = error.reason
            return False
        if sink.away is not None:
            self._warn(f"{sink.operator.name} is back")
            sink.away = None
            sink.backoff.reset()
        return count > 0

    def _hand_over(self, sink: OpenSink, count: int, now: int) -> None:
        if sink.rows:
            sink.writer.write(sink.rows)
            self._tell(sink.operator, sink.writer)
            sink.rows, sink.unflushed = [], True
            self._delivered(sink.node.born, count)
            sink.node.born = 0
        # If nothing more came with this pass, what was taken should not wait.
        if sink.unflushed and (not count or now - sink.flushed_us >= FLUSH_US):
            sink.writer.flush()
            self._tell(sink.operator, sink.writer)
            sink.unflushed, sink.flushed_us = False, now

    def _tell(self, operator: Sink, writer: Writer) -> None:
        if writer.warning is not None:
            self._warn(f"{operator.name}: {writer.warning}")
            writer.warning = None

    # ------------------------------------------------------------------ epochs

    def end_epoch(self, epoch: int, attempt: int) -> dict[str, Callable[[], StoredLog | None]]:
        """Return the work that makes an epoch's rows durable, by sink."""
        return {sink.name: sink.end_epoch(epoch, attempt) for sink in self._epochs}

    def positions(self) -> dict[str, SinkRecord]:
        """Return what a successor of each sink has to know that shows rows at once.

        All that has reached them is flushed.
        """
        if not self._eager:
            return {}
        found = {sink.operator.name: sink.writer.position() for sink in self._open}
        return {name: SinkRecord(at, []) for name, at in found.items() if at is not None}

    def stored(self, entries: Mapping[str, StoredLog | None]) -> dict[str, SinkRecord]:
        """Take note of what is durable; return what a successor of each sink has to know."""
        for sink in self._epochs:
            sink.stored(entries[sink.name])
        return {sink.name: sink.record() for sink in self._epochs}

    def commit(self, epoch: int, errands: Errands) -> None:
        """Have applied what is committed."""
        for sink in self._epochs:
            sink.commit(epoch, errands)

    def show_rest(self, epoch: int) -> None:
        """Let sinks of whole epochs show what they have, in a flow that is stopped for good."""
        for sink in self._epochs if self._eager else ():
            sink.show_rest(epoch)

    def due(self) -> list[int]:
        """Return when sinks that have something to do should be tried again."""
        return [sink.retry_us for sink in self._open if sink.rows or sink.unflushed]

    def close(self) -> None:
        """Close all writers, which may still write, and fail."""
        for sink in self._open:
            with naming(sink.operator):
                sink.writer.close()
            self._tell(sink.operator, sink.writer)
        for epoch_sink in self._epochs:
            epoch_sink.close()
            self._tell(epoch_sink.operator, epoch_sink.writer)
        self._open.clear()
        self._epochs.clear()


def _folder(operator: Sink, split: Split) -> str:
    """Return where in the vault the files of a task's sink are."""
    return f"sinks/{operator.name}-{split.index}"
