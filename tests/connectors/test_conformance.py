"""The checks of connectors find what is wrong with a connector."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from floodway.connectors.base import (
    EpochWriter,
    Raw,
    Reader,
    Row,
    SinkConnector,
    SourceConnector,
    Split,
    Writer,
)
from floodway.core.schema import Schema
from floodway.testing.conformance import check_epoch_sink, check_sink, check_source

VALUES = list(range(20))


class Numbers(SourceConnector):
    """Keeps every promise; faults are switched on one at a time."""

    most = None

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.replayable = fault in ("", "says nothing", "deals badly")  # type: ignore[misc]
        if fault == "lock":
            self.lock = threading.Lock()  # nothing that could travel

    def open(self, split: Split, position: Any = None) -> Reader:
        mine = VALUES[split.index :: split.of]
        if self.fault == "overlap":
            mine = VALUES
        if self.fault == "order":
            mine = mine[::-1]
        if self.fault == "loss":
            mine = mine[:-1]
        return NumbersReader(mine, position or 0, self.fault)

    def reassign(self, positions: Sequence[Any], of: int) -> list[Any]:
        if self.fault == "deals badly":
            return [min(positions)] * of
        return super().reassign(positions, of)


class NumbersReader(Reader):
    def __init__(self, values: list[Any], at: int, fault: str) -> None:
        self._values = values
        self._at = at
        self._fault = fault
        self._closed = False

    def poll(self, limit: int) -> Raw | None:
        if self._fault == "waits" and self._at == 3:
            threading.Event().wait(0.05)
        if self._at >= len(self._values):
            return [] if self._fault == "endless" else None
        got = self._values[self._at : self._at + limit]
        self._at += len(got)
        if self._fault == "half lines":
            return b"".join(b"%d\n" % n for n in got)[:-1]
        return list(got)

    def position(self) -> Any:
        if self._fault in ("no position", "says nothing"):
            return None
        if self._fault == "odd position":
            return object()
        return self._at - (1 if self._fault == "position" and self._at else 0)

    def close(self) -> None:
        if self._closed and self._fault == "closes once":
            raise RuntimeError("closed already")
        self._closed = True


@pytest.mark.parametrize("fault", ["", "no position"])
def test_source_that_keeps_its_promises(fault: str) -> None:
    check_source(Numbers(fault), VALUES, schema=int)


def test_order_may_be_left_out() -> None:
    check_source(Numbers("order"), VALUES, schema=int, ordered=False)


def test_endless_sources() -> None:
    check_source(Numbers("endless"), VALUES, schema=int, bounded=False)
    with pytest.raises(AssertionError, match="an endless source ended"):
        check_source(Numbers(), VALUES, schema=int, bounded=False)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("overlap", "more values than expected"),
        ("order", "out of order"),
        ("loss", "missing 19, too many nothing"),
        ("endless", "no end after"),
        ("position", "more values than expected"),
        ("says nothing", "does not say where it is"),
        ("deals badly", "2 tasks after 1 read other values"),
        ("half lines", "ends within a line"),
    ],
)
def test_source_that_breaks_a_promise(fault: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_source(Numbers(fault), VALUES, schema=int, deadline_s=0.3)


def test_source_that_waits() -> None:
    with pytest.raises(AssertionError, match="a poll waited for"):
        check_source(Numbers("waits"), VALUES, schema=int, wait_ms=20)


class Keyed(SourceConnector):
    def __init__(self, *, timed: bool | None = True) -> None:
        self.says = timed

    @property
    def timed(self) -> bool | None:
        return self.says

    def open(self, split: Split, position: Any = None) -> Reader:
        return KeyedReader([(None, "a", 1), (5, "b", 2), (6, "a", None)], position or 0, "")


class KeyedReader(NumbersReader):
    keyed = True


def test_keyed_sources_give_pairs() -> None:
    check_source(Keyed(), [("a", 1), ("b", 2), ("a", None)], schema=int)
    with pytest.raises(AssertionError, match=r"missing \('b', None\), too many \('a', None\)"):
        check_source(Keyed(), [("a", 1), ("b", 2), ("b", None)][::-1], schema=int, ordered=False)


def test_source_that_gives_times_says_so() -> None:
    pairs = [("a", 1), ("b", 2), ("a", None)]
    check_source(Keyed(timed=None), pairs, schema=int)
    with pytest.raises(AssertionError, match="let `timed` be true"):
        check_source(Keyed(timed=False), pairs, schema=int)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("odd position", TypeError), ("closes once", RuntimeError), ("lock", TypeError)],
)
def test_source_that_fails_by_itself(fault: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        check_source(Numbers(fault), VALUES, schema=int)


STORE: list[Any] = []


class Store(SinkConnector):
    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def open(self, split: Split, schema: Schema) -> Writer:
        return StoreWriter(self.fault)


class StoreWriter(Writer):
    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._held: list[Any] = []
        self._closed = False
        if fault == "trace":
            STORE.append("opened")

    def write(self, rows: Sequence[Row]) -> None:
        if not rows and self._fault == "empty":
            raise IndexError("no first row")
        self._held += [row[2] for row in (reversed(rows) if self._fault == "order" else rows)]

    def flush(self) -> None:
        if self._fault != "lazy":
            STORE.extend(self._held)
            self._held.clear()

    def close(self) -> None:
        if self._closed and self._fault == "closes once":
            raise RuntimeError("closed already")
        self._closed = True
        STORE.extend(self._held)
        self._held.clear()


ROWS: list[Row] = [(n, None, n, None) for n in range(6)]


@pytest.fixture(autouse=True)
def _empty_store() -> None:
    STORE.clear()


def test_sink_that_keeps_its_promises() -> None:
    check_sink(Store(), int, ROWS, lambda: STORE)


def test_sink_that_shows_rows_when_it_is_closed() -> None:
    check_sink(Store("lazy"), int, ROWS, lambda: STORE, visible="close")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("order", "the order differs"),
        ("lazy", "missing 0, 1, 2"),
        ("trace", "a run without rows leaves something"),
    ],
)
def test_sink_that_breaks_a_promise(fault: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_sink(Store(fault), int, ROWS, lambda: STORE, deadline_s=0.1)


@pytest.mark.parametrize(("fault", "kind"), [("empty", IndexError), ("closes once", RuntimeError)])
def test_sink_that_fails_by_itself(fault: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        check_sink(Store(fault), int, ROWS, lambda: STORE)


class Epochs(SinkConnector):
    """Keeps every promise of a sink of epochs; faults are switched on one at a time."""

    delivery = "exactly once"
    undoes = True

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def open_epochs(
        self, split: Split, schema: Schema, *, name: str, token: Any
    ) -> EpochWriter | None:
        return None if self.fault == "none" else EpochsWriter(self.fault, token or [0, 0])


class EpochsWriter(EpochWriter):
    """Writes to places of the list; a token is the number of an epoch and the end after it."""

    def __init__(self, fault: str, token: Any) -> None:
        self._fault = fault
        self._end = token[1]
        if fault != "does not undo":
            del STORE[self._end :]

    def encode(self, rows: Sequence[Row]) -> bytes:
        self._end += len(rows)
        if self._fault == "eager":
            STORE.extend(row[2] for row in rows)
        return bytes(row[2] for row in rows)

    def prepare(self, epoch: int) -> Any:
        return [epoch, self._end - (1 if self._fault == "token" else 0)]

    def apply(self, epoch: int, blocks: Sequence[bytes], token: Any) -> None:
        values = list(b"".join(blocks))
        start = token[1] - len(values)
        if self._fault == "twice":
            start = len(STORE)
        if self._fault == "late" and epoch == 3:
            return
        STORE[start : token[1]] = values


MORE_ROWS: list[Row] = [(n, None, n, None) for n in range(9)]


def test_sink_of_epochs_that_keeps_its_promises() -> None:
    check_epoch_sink(Epochs(), int, MORE_ROWS, lambda: STORE)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("none", "has no writer of epochs"),
        ("eager", "before the first epoch is applied, other rows"),
        ("twice", "after the first epoch was applied twice, other rows"),
        ("token", "after the first epoch was applied twice, other rows"),
        ("late", "after the epoch that a lost task had prepared, what is there is not"),
        ("does not undo", "after a flow went back by one epoch, what is there is not"),
    ],
)
def test_sink_of_epochs_that_breaks_a_promise(fault: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_epoch_sink(Epochs(fault), int, MORE_ROWS, lambda: STORE, deadline_s=0.1)


def test_sink_without_epochs_does_not_pass_for_one() -> None:
    with pytest.raises(AssertionError, match="does not say that it is exactly once"):
        check_epoch_sink(Store(), int, MORE_ROWS, lambda: STORE)
