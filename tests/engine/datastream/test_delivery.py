"""Sinks that take whole epochs: kept until the epoch is committed, and then shown exactly once."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway.connectors.base import Split
from floodway.core.errors import ConnectorError, CorruptError, DiskFullError
from floodway.engine.checkpoint.records import SinkRecord
from floodway.engine.datastream.aside import Errands
from floodway.engine.datastream.delivery import (
    MOST_UNAPPLIED,
    EpochSink,
    Log,
    StoredLog,
    read_log,
)
from floodway.engine.datastream.reporting import Reporter
from floodway.engine.datastream.writing import Sinks
from floodway.engine.program.program import Node
from floodway.operators.sink import Sink
from tests.engine.datastream.fakes import Feed, Hands, Shelf, Shown, Taken, only_task, straight


class Bench:
    """A sink that takes whole epochs, at work in a task of its own."""

    def __init__(self, shown: Shown | None = None, vault: Shelf | None = None) -> None:
        self.shown = shown or Shown()
        self.vault = vault or Shelf()
        self.task = only_task(straight(Feed(), self.shown))
        self.node: Node = self.task.program.node("out_0")
        self.hands = Hands()
        self.errands = Errands(self.hands)
        self.delivered: list[tuple[int, int]] = []
        self.now = 0
        self.sink = self.open()

    def open(self, record: SinkRecord | None = None) -> EpochSink:
        (operator,) = (op for op in self.task.stage.operators if isinstance(op, Sink))
        writer = self.shown.open_epochs(
            Split(), operator.inputs[0].output.schema, name="a", token=record and record.token
        )
        self.sink = EpochSink(
            operator,
            self.node,
            writer,
            self.vault,
            "sinks/out_0-0",
            lambda born, count: self.delivered.append((born, count)),
        )
        if record is not None:
            self.sink.resume(record)
        return self.sink

    def feed(self, *numbers: int, now: int = 1) -> None:
        self.task.feed("numbers", [(0, None, number) for number in numbers], now)

    def store(self, epoch: int, attempt: int = 1) -> SinkRecord:
        """End an epoch, and make it durable."""
        self.sink.stored(self.sink.end_epoch(epoch, attempt)())
        return self.sink.record()

    def commit(self, epoch: int) -> None:
        self.sink.commit(epoch, self.errands)
        self.settle()

    def settle(self) -> None:
        while len(self.errands):
            self.errands.turn(self.now)
            self.now = max([self.now, *self.errands.due()])


# --------------------------------------------------------------------- one sink


def test_rows_are_shown_when_their_epoch_is_committed_and_not_before() -> None:
    bench = Bench()
    bench.feed(1, 2)
    assert bench.sink.collect()
    assert not bench.sink.collect()  # that was all
    bench.feed(3)
    record = bench.store(5)
    assert bench.shown.calls == []
    assert record.token == {"epoch": 5, "rows": 3}
    assert [epoch for epoch, _ in record.logs] == [5]
    bench.feed(4)
    bench.commit(5)
    assert bench.shown.applied == [(5, [1, 2, 3])]


def test_log_has_all_that_is_needed_to_show_an_epoch() -> None:
    bench = Bench()
    bench.feed(1, 2)
    bench.sink.collect()
    bench.feed(3)
    ((epoch, ref),) = bench.store(5, attempt=7).logs
    assert ref.name == "sinks/out_0-0/000000000005-7.log"
    log = read_log(bench.vault, ref)
    assert (log.epoch, log.token, log.blocks) == (epoch, {"epoch": 5, "rows": 3}, [b"1,2", b"3"])


def test_epoch_without_rows_has_no_log_and_has_a_token() -> None:
    bench = Bench()
    record = bench.store(5)
    assert (record.logs, record.token) == ([], {"epoch": 5, "rows": 0})
    assert bench.vault.names() == []
    bench.commit(5)
    assert bench.shown.calls == []


def test_record_names_logs_until_they_are_shown() -> None:
    bench = Bench()
    for epoch in (1, 2):
        bench.feed(epoch)
        record = bench.store(epoch)
    assert [epoch for epoch, _ in record.logs] == [1, 2]
    bench.commit(1)
    bench.feed(3)
    assert [epoch for epoch, _ in bench.store(3).logs] == [2, 3]
    bench.commit(3)
    assert bench.store(4).logs == []


def test_commit_shows_nothing_of_later_epochs_and_nothing_twice() -> None:
    bench = Bench()
    for epoch in (1, 2, 3):
        bench.feed(epoch)
        bench.store(epoch)
    for _ in range(2):
        bench.commit(2)
    assert bench.shown.applied == [(1, [1]), (2, [2])]


def test_target_that_is_away_is_tried_again_in_order() -> None:
    bench = Bench()
    for epoch in (1, 2):
        bench.feed(epoch)
        bench.store(epoch)
    bench.shown.away = 3
    bench.commit(2)
    assert bench.shown.calls == [1, 1, 1, 1, 2]
    assert bench.shown.values == [1, 2]


def test_rows_are_delivered_when_they_are_visible() -> None:
    bench = Bench()
    bench.feed(1, 2, now=10)
    bench.sink.collect()
    bench.feed(3, now=20)
    bench.store(1)
    assert bench.delivered == []
    bench.commit(1)
    assert bench.delivered == [(10, 2), (20, 1)]


def test_successor_shows_what_was_committed_and_perhaps_not_shown() -> None:
    bench = Bench()
    for epoch in (1, 2):
        bench.feed(epoch)
        record = bench.store(epoch)
    bench.commit(1)  # epoch 2 is committed, and its task is lost before it hears of it
    bench.open(record)
    assert bench.shown.opened[-1] == ("a", {"epoch": 2, "rows": 2})
    bench.commit(2)
    assert bench.shown.calls == [1, 1, 2]  # applying an epoch twice is harmless
    assert bench.delivered == [(1, 1)]  # the latency of what a former task had is nobody's
    bench.feed(3)
    assert bench.store(3).token == {"epoch": 3, "rows": 3}


def test_successor_keeps_logs_in_its_record_until_they_are_shown() -> None:
    bench = Bench()
    bench.feed(1)
    record = bench.store(1)
    bench.open(record)
    assert bench.sink.record() == record
    bench.feed(2)
    assert [epoch for epoch, _ in bench.store(2).logs] == [1, 2]


def test_log_that_was_damaged_is_noticed() -> None:
    bench = Bench()
    bench.feed(1)
    record = bench.store(1)
    ((_, ref),) = record.logs
    bench.vault.files[ref.name] += b"x"
    with pytest.raises(CorruptError):
        bench.open(record)
    fine = bench.vault.write("sinks/out_0-0/000000000009-1.log", b"\xc1 no log")
    with pytest.raises(CorruptError, match="sink log"):
        read_log(bench.vault, fine)


def test_log_that_finds_no_room_may_be_written_again() -> None:
    bench = Bench()
    bench.feed(1)
    work = bench.sink.end_epoch(1, 1)
    bench.vault.full = 1
    with pytest.raises(DiskFullError):
        work()
    entry = work()
    assert entry is not None
    assert entry.log.blocks == [b"1"]


def test_only_what_is_committed_presses_on_the_task() -> None:
    bench = Bench(Shown(block_bytes=100))
    bench.shown.away = 1
    bench.feed(1)
    bench.store(1)
    assert bench.sink.unapplied == 0
    bench.sink.commit(1, bench.errands)
    bench.errands.turn(0)
    assert bench.sink.unapplied == 100
    bench.settle()
    assert bench.sink.unapplied == 0


class Broken(Shown):
    """Has a writer that fails in one of its methods."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self._method = method

    def open_epochs(self, *args: Any, **options: Any) -> Any:
        writer = super().open_epochs(*args, **options)

        def fail(*_: Any) -> None:
            raise ConnectorError("it broke", remedy="mend it")

        setattr(writer, self._method, fail)
        return writer


CALLS: dict[str, Callable[[Bench], object]] = {
    "encode": lambda bench: bench.sink.collect(),
    "prepare": lambda bench: bench.sink.end_epoch(1, 1),
    "apply": lambda bench: (bench.store(1), bench.commit(1)),
    "close": lambda bench: bench.sink.close(),
}


@pytest.mark.parametrize("method", CALLS)
def test_error_of_a_writer_names_the_sink(method: str) -> None:
    bench = Bench(Broken(method))
    bench.feed(1)
    with pytest.raises(ConnectorError, match="it broke") as caught:
        CALLS[method](bench)
    assert caught.value.operator == "out_0"
    assert caught.value.place == bench.sink.operator.place


def test_entry_knows_how_large_its_rows_are() -> None:
    bench = Bench()
    ref = bench.vault.write("x", b"")
    assert StoredLog(Log(1, None, [b"abc", b"de"]), ref).size == 5


EVENTS = st.lists(
    st.sampled_from(["feed", "feed", "collect", "store", "commit", "away", "lose", "turn"]),
    max_size=50,
)


@settings(max_examples=200)
@given(EVENTS)
def test_every_committed_row_is_shown_once_and_in_order(events: list[str]) -> None:
    """The task is lost again and again; what is not committed is fed again by whoever had it."""
    bench = Bench()
    count = epoch = committed = 0
    fed: list[tuple[int, int]] = []  # number, and the epoch in which it comes
    record: SinkRecord | None = None
    stored: SinkRecord | None = None
    for event in events:
        match event:
            case "feed":
                count += 1
                fed.append((count, epoch + 1))
                bench.feed(count)
            case "collect":
                bench.sink.collect()
            case "store" if stored is None:
                epoch += 1
                stored = bench.store(epoch)
            case "commit" if stored is not None:
                committed, record, stored = epoch, stored, None
                bench.sink.commit(epoch, bench.errands)
            case "away":
                bench.shown.away = 2
            case "lose":
                bench.errands.close()
                bench.node.drop()
                bench.errands = Errands(Hands())
                bench.open(record)
                bench.sink.commit(committed, bench.errands)
                epoch, stored = committed, None
                fed = [(number, of) for number, of in fed if of <= committed]
            case "turn":
                bench.errands.turn(bench.now)
    bench.settle()
    seen: dict[int, list[int]] = {}
    for number, numbers in bench.shown.applied:
        assert seen.setdefault(number, numbers) == numbers  # again, and the same
    expected: dict[int, list[int]] = {}
    for number, of in fed:
        if of <= committed:
            expected.setdefault(of, []).append(number)
    assert seen == expected


# --------------------------------------------------------------------- all sinks of a task


def open_sinks(
    *connectors: Any, vault: Shelf | None = None, records: dict[str, SinkRecord] | None = None
) -> tuple[Sinks, Any]:
    task = only_task(straight(Feed(), *connectors))
    sinks = Sinks(task, Reporter(task, 0), lambda: 99, lambda text: None)
    sinks.open(Split(), vault, records)
    return sinks, task


def feed(task: Any, *numbers: int) -> None:
    task.feed("numbers", [(0, None, number) for number in numbers], 1)


def test_sink_that_can_takes_epochs_if_there_is_a_checkpoint() -> None:
    shown, taken = Shown(), Taken()
    sinks, _ = open_sinks(shown, taken, vault=Shelf())
    assert shown.opened == [("straight.out_0.0", None)]
    assert [sink.operator.name for sink in sinks] == ["out_1"]


def test_sink_goes_on_at_the_token_of_its_record() -> None:
    shown = Shown()
    record = SinkRecord({"epoch": 4, "rows": 9}, [])
    open_sinks(shown, vault=Shelf(), records={"out_0": record})
    assert shown.opened == [("straight.out_0.0", {"epoch": 4, "rows": 9})]


def test_sinks_of_a_task_store_and_commit_together() -> None:
    one, other, taken, vault = Shown(), Shown(), Taken(), Shelf()
    sinks, task = open_sinks(one, other, taken, vault=vault)
    feed(task, 1, 2)
    assert sinks.write(0)
    works = sinks.end_epoch(3, 8)
    assert set(works) == {"out_0", "out_1"}  # the third has nothing to store
    records = sinks.stored({name: work() for name, work in works.items()})
    assert {name: [epoch for epoch, _ in record.logs] for name, record in records.items()} == {
        "out_0": [3],
        "out_1": [3],
    }
    errands = Errands(Hands())
    sinks.commit(3, errands)
    while len(errands):
        errands.turn(0)
    assert one.applied == other.applied == [(3, [1, 2])]
    sinks.close()
    assert (one.closed, other.closed) == (1, 1)


def test_sink_that_has_not_flushed_is_known() -> None:
    taken = Taken()
    sinks, task = open_sinks(Shown(), taken, vault=Shelf())
    assert (sinks.pending, sinks.unflushed) == (False, False)
    feed(task, 1)
    assert sinks.pending  # it has reached the sink, and nobody has taken it
    sinks.write(0)
    assert (sinks.pending, sinks.unflushed, taken.taken, taken.flushed) == (False, True, [1], [])
    sinks.write(1)
    assert (sinks.unflushed, taken.flushed) == (False, [1])


def test_task_waits_for_a_target_that_has_too_much_to_take() -> None:
    shown, vault = Shown(block_bytes=MOST_UNAPPLIED + 1), Shelf()
    sinks, task = open_sinks(shown, vault=vault)
    feed(task, 1)
    sinks.write(0)
    sinks.stored({name: work() for name, work in sinks.end_epoch(1, 1).items()})
    assert not sinks.paused(0)
    hands = Hands(quick=False)
    errands = Errands(hands)
    sinks.commit(1, errands)
    errands.turn(0)
    assert sinks.paused(0)
    hands.finish()
    errands.turn(0)
    assert not sinks.paused(0)
