"""What a sink that takes whole epochs promises, as a check that can be run on any of them."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import msgspec

from floodway.connectors.base import EpochWriter, Row, SinkConnector, Split, Unavailable
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema
from floodway.testing.demands import PAUSE_S, arrives, demand, pickled, same


def check_epoch_sink(
    connector: SinkConnector,
    schema: Any,
    rows: Sequence[Row],
    read_back: Callable[[], Sequence[Any]],
    *,
    name: str = "flow.sink.0",
    expected: Callable[[Sequence[Row]], Sequence[Any]] | None = None,
    deadline_s: float = 30,
) -> None:
    """Check that a sink shows each epoch once, whenever its task is lost and started again.

    Parameters
    ----------
    connector
        The sink. What it writes to is empty.
    schema
        The schema of the values.
    rows
        What to write, at least eight rows of ``(timestamp, key, value, id)``.
    read_back
        Returns all that can be seen by now.
    name
        The name of the task.
    expected
        What `read_back` returns once some of the rows are there; their values if not given.
    deadline_s
        How long an epoch may take to be applied, and to be seen.

    Examples
    --------
    >>> from floodway.connectors.lists import ListSink
    >>> results = ListSink()
    >>> rows = [(number, None, number, None) for number in range(8)]
    >>> check_epoch_sink(results, int, rows, lambda: results.values)
    """
    demand(
        connector.delivery == "exactly once", f"{connector} does not say that it is exactly once"
    )
    connector.check()
    with ExitStack() as stack:
        check = _Check(connector, Schema.of(schema), rows, read_back, name, stack)
        check.expected = expected or check.expected
        check.deadline_s = deadline_s
        second = _check_epochs(check)
        _check_losses(check, second)
        _check_going_back(check, second)


class _Epoch:
    """An epoch that is prepared: what whoever runs the writer keeps of it."""

    def __init__(self, number: int, blocks: list[bytes], token: Any) -> None:
        self.number = number
        self.blocks = blocks
        # The way that it takes from one process to another.
        self.token = msgspec.msgpack.decode(msgspec.msgpack.encode(token))


class _Check:
    """A sink under examination, and how much of the rows it should show."""

    def __init__(
        self,
        connector: SinkConnector,
        schema: Schema,
        rows: Sequence[Row],
        read_back: Callable[[], Sequence[Any]],
        name: str,
        stack: ExitStack,
    ) -> None:
        self.connector: SinkConnector = connector
        self.deadline_s = 30.0
        self.expected: Callable[[Sequence[Row]], Sequence[Any]] = _values
        self.quarter = len(rows) // 4
        self.rows = rows
        self._schema = schema
        self._read_back = read_back
        self._name = name
        self._stack = stack

    def opened(self, token: Any) -> EpochWriter:
        """Open a writer, as a task in another process does."""
        here = self.connector.place == "driver"
        shipped: SinkConnector = self.connector if here else pickled(self.connector)
        writer = shipped.open_epochs(Split(), self._schema, name=self._name, token=token)
        demand(writer is not None, f"{self.connector} has no writer of epochs")
        assert writer is not None
        self._stack.callback(writer.close)
        self._stack.callback(writer.close)  # twice has to be harmless
        return writer

    def prepared(self, writer: EpochWriter, number: int, quarter: int) -> _Epoch:
        """Let an epoch with a quarter of the rows end, in two blocks."""
        mine = self.rows[quarter * self.quarter : (quarter + 1) * self.quarter]
        middle = len(mine) // 2
        blocks = [writer.encode(mine[:middle]), writer.encode(mine[middle:])]
        return _Epoch(number, blocks, writer.prepare(number))

    def apply(self, writer: EpochWriter, epoch: _Epoch) -> None:
        """Apply an epoch as an engine does: again, as long as it cannot be done."""
        give_up = time.monotonic() + self.deadline_s
        while True:
            try:
                return writer.apply(epoch.number, epoch.blocks, epoch.token)
            except Unavailable as away:
                demand(time.monotonic() < give_up, f"still not available: {away.reason}")
                time.sleep(PAUSE_S)

    def shows(self, quarters: int, when: str) -> None:
        """Demand that the first quarters are there, and nothing else."""
        wanted = self.expected(self.rows[: quarters * self.quarter])
        try:
            arrives(self._read_back, wanted, self.deadline_s)
        except AssertionError as error:
            raise AssertionError(f"{when}, {error}") from None

    def still_shows(self, quarters: int, when: str) -> None:
        """Demand that nothing has been added to the first quarters."""
        wanted = self.expected(self.rows[: quarters * self.quarter])
        demand(same(self._read_back(), wanted), f"{when}, other rows are there than before")


def _check_epochs(check: _Check) -> _Epoch:
    """See rows when their epoch is applied, and once; return the last epoch that was."""
    writer = check.opened(None)
    first = check.prepared(writer, 1, 0)
    check.still_shows(0, "before the first epoch is applied")
    check.apply(writer, first)
    check.shows(1, "after the first epoch")
    check.apply(writer, first)
    check.still_shows(1, "after the first epoch was applied twice")
    check.apply(writer, _Epoch(2, [], writer.prepare(2)))
    check.still_shows(1, "after an epoch without rows")
    second = check.prepared(writer, 3, 1)
    check.prepared(writer, 4, 3)  # encoded, and lost before it is committed
    successor = check.opened(second.token)
    check.still_shows(1, "after a task was lost before it applied an epoch")
    check.apply(successor, first)
    check.still_shows(1, "after the successor of a task applied an epoch again")
    check.apply(successor, second)
    check.shows(2, "after the epoch that a lost task had prepared")
    _let_apply(writer, second)
    check.still_shows(2, "after a task that was given up for dead applied its last epoch")
    return second


def _check_losses(check: _Check, second: _Epoch) -> None:
    """Lose a task after it applied an epoch, and before anybody knows; nothing is changed."""
    writer = check.opened(second.token)
    check.apply(writer, second)
    check.still_shows(2, "after the successor of a task applied its last epoch again")
    third = check.prepared(writer, 4, 2)
    check.apply(writer, third)
    check.shows(3, "after an epoch of a task that was started again")
    successor = check.opened(third.token)
    for epoch in (second, third):
        check.apply(successor, epoch)
        check.still_shows(3, f"after epoch {epoch.number} was applied again")


def _check_going_back(check: _Check, second: _Epoch) -> None:
    """Go back behind an applied epoch, which is taken back, or else is not written again."""
    writer = check.opened(second.token)
    kept = 2 if check.connector.undoes else 3
    check.shows(kept, "after a flow went back by one epoch")
    check.apply(writer, check.prepared(writer, 4, 2))
    check.shows(3, "after the epoch came again")
    check.apply(writer, check.prepared(writer, 5, 3))
    check.shows(4, "after one more epoch")


def _let_apply(writer: EpochWriter, epoch: _Epoch) -> None:
    with suppress(ConnectorError, Unavailable):  # being kept out is as good
        writer.apply(epoch.number, epoch.blocks, epoch.token)


def _values(rows: Sequence[Row]) -> list[Any]:
    return [row[2] for row in rows]
