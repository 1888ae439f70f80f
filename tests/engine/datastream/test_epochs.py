"""A task's part in epochs: what it stores is what it was at the mark, and nothing is lost."""

from pathlib import Path

import pytest

from floodway.core.errors import CorruptError
from floodway.engine.checkpoint.records import standing_of
from floodway.engine.control.report import decode_report
from floodway.engine.datastream.reporting import Reporter
from floodway.engine.state.sizes import Size
from floodway.engine.transport.frame import KIND, SIZE, Kind, parse
from tests.engine.datastream.fakes import Feed, Shown, Taken
from tests.engine.datastream.parts import Counts, alone

# --------------------------------------------------------------------- what is stored


def test_task_acknowledges_an_epoch_with_all_that_it_is(tmp_path: Path) -> None:
    shown = Shown()
    part = alone(tmp_path, Feed([1, 2], [3]), shown)
    part.work()
    part.mark(6)
    (stored,) = part.stored()
    assert (stored.task, stored.attempt, stored.epoch) == (0, 4, 6)
    record = stored.record
    assert (record.stage, record.index, record.ended) == (part.task.stage.name, 0, False)
    assert record.positions == {"numbers": (2, 3)}
    assert record.sinks["out_0"].token == {"epoch": 6, "rows": 3}
    assert standing_of(record).epoch == 6
    assert shown.applied == []


def test_nothing_is_acknowledged_before_it_is_durable(tmp_path: Path) -> None:
    part = alone(tmp_path, Feed([1]), Shown(), quick=False)
    part.work()
    part.mark(1)
    assert part.stored() == []
    part.storing.finish()
    part.work()
    assert part.stored(1)


def test_stream_goes_on_while_an_epoch_is_stored_and_is_not_part_of_it(tmp_path: Path) -> None:
    feed = Feed([1], [])
    part = alone(tmp_path, feed, Shown(), quick=False)
    part.work()
    part.mark(1)
    feed.batches += [[2, 3]]
    part.work()
    assert part.task.records_in == 3
    part.storing.finish()
    part.work()
    record = part.record(1)
    assert record.positions["numbers"][1] == 1
    assert record.sinks["out_0"].token == {"epoch": 1, "rows": 1}


def test_state_is_stored_as_it_was_at_the_mark(tmp_path: Path) -> None:
    counts = Counts(tmp_path, quick=False)
    counts.feed("a", "b", "a")
    counts.mark(1)
    counts.feed("a", "c")
    counts.part.work()
    counts.part.storing.finish()
    counts.part.work()
    record = counts.part.record(1)
    assert record.files
    again = Counts(tmp_path, vault=counts.part.vault, record=record, epoch=1)
    assert again.counts == {"a": 2, "b": 1}
    total = sum(ref.size for ref in record.files)
    assert again.part.progress[-1] == (total, total)


def test_state_goes_on_from_epoch_to_epoch(tmp_path: Path) -> None:
    counts = Counts(tmp_path)
    for epoch, words in enumerate(("ab", "a", "bc"), 1):
        counts.feed(*words)
        counts.mark(epoch)
        counts.part.epochs.committed(epoch, ended=False)
    record = counts.part.record(3)
    again = Counts(tmp_path, vault=counts.part.vault, record=record, epoch=3)
    assert again.counts == {"a": 2, "b": 2, "c": 1}
    again.feed("a")
    again.mark(4)
    last = Counts(tmp_path, vault=counts.part.vault, record=again.part.record(4), epoch=4)
    assert last.counts == {"a": 3, "b": 2, "c": 1}


def test_size_of_the_state_is_that_at_the_last_mark_or_of_what_was_loaded(tmp_path: Path) -> None:
    counts = Counts(tmp_path)
    counts.feed("a", "b", "a")
    counts.task.step(0)
    assert counts.part.epochs.size == Size(0, 0, 0)
    counts.mark(1)
    size = counts.part.epochs.size
    assert (size.keys, size.aside) == (2, 0)
    assert size.bytes > 0
    record, vault = counts.part.record(1), counts.part.vault
    again = Counts(tmp_path / "again", vault=vault, record=record, epoch=1)
    assert again.part.epochs.size.keys == 2


def test_report_tells_the_size_of_the_state_if_somebody_keeps_it(tmp_path: Path) -> None:
    counts = Counts(tmp_path)
    counts.feed("a", "b", "a")
    counts.mark(1)
    size = counts.part.epochs.size
    reporter = Reporter(counts.task, 0)
    for given, told in ((size, tuple(size)), (None, (None, None, None))):
        data = reporter.report(9, "running", None, {}, bad_frames=0, size=given)
        report = decode_report(data)
        assert (report.state_keys, report.state_bytes, report.state_aside) == told


def test_state_that_is_damaged_is_noticed(tmp_path: Path) -> None:
    counts = Counts(tmp_path)
    counts.feed("a")
    counts.mark(1)
    record = counts.part.record(1)
    counts.part.vault.files[record.files[0].name] += b"x"
    with pytest.raises(CorruptError):
        Counts(tmp_path, vault=counts.part.vault, record=record, epoch=1)


def test_end_of_a_task_is_stored_once(tmp_path: Path) -> None:
    part = alone(tmp_path, Feed([1], None), Shown())
    part.work()
    part.work()
    (stored,) = part.stored()
    assert (stored.epoch, stored.record.ended) == (1, True)
    assert standing_of(stored.record).channels == []
    assert not part.epochs.left


def test_end_right_behind_a_mark_is_no_part_of_the_epoch(tmp_path: Path) -> None:
    """The record of the epoch may be the one to go back to: its token has to be its own."""
    feed = Feed([1], [])
    part = alone(tmp_path, feed, Shown(), quick=False)
    part.work()
    part.mark(1)
    feed.batches += [[2, 3], None]
    part.work()
    part.work()
    assert part.task.ended
    for _ in range(2):
        part.storing.finish()
        part.work()
    at_mark, at_end = part.record(1), part.record(2)
    assert (at_mark.ended, at_end.ended) == (False, True)
    assert at_mark.sinks["out_0"].token == {"epoch": 1, "rows": 1}
    assert at_end.sinks["out_0"].token == {"epoch": 2, "rows": 3}
    assert [epoch for epoch, _ in at_mark.sinks["out_0"].logs] == [1]
    assert [epoch for epoch, _ in at_end.sinks["out_0"].logs] == [1, 2]


# --------------------------------------------------------------------- what is committed


def test_sinks_show_an_epoch_when_it_is_committed_and_the_driver_is_told(tmp_path: Path) -> None:
    feed, shown = Feed([1, 2]), Shown()
    part = alone(tmp_path, feed, shown)
    part.work()
    part.mark(1)
    part.epochs.committed(1, ended=False)
    part.work()
    assert shown.applied == [(1, [1, 2])]
    assert part.applied() == [1]
    assert feed.committed == [1]


def test_driver_is_told_after_everything_is_shown(tmp_path: Path) -> None:
    shown = Shown()
    part = alone(tmp_path, Feed([1]), shown)
    part.work()
    part.mark(1)
    shown.away = 2
    part.epochs.committed(1, ended=False)
    part.work()
    assert part.applied() == []
    assert part.epochs.away == "the target is down"
    assert part.epochs.held is None  # the task goes on meanwhile
    for _ in range(2):
        (part.now,) = part.epochs.due()
        part.work()
    assert (shown.values, part.applied(), part.epochs.away) == ([1], [1], None)


def test_task_without_sinks_says_that_it_has_shown_everything(tmp_path: Path) -> None:
    counts = Counts(tmp_path)
    counts.mark(1)
    counts.part.epochs.committed(1, ended=False)
    counts.part.work()
    assert counts.part.applied() == [1]


def test_what_was_sent_is_kept_until_it_is_committed(tmp_path: Path) -> None:
    counts = Counts(tmp_path)
    counts.feed("a")
    counts.mark(1)
    counts.feed("b")
    counts.mark(2)
    counts.part.epochs.committed(1, ended=False)
    (target,) = {lane.target for lane in counts.task.lanes}
    counts.net.sent.clear()
    counts.part.epochs.cache.replay(target, 1, 9)
    counts.part.work()
    again = [(parse(frame), frame[SIZE:]) for _, frame in counts.net.sent]
    assert [Kind(header[KIND]) for header, _ in again] == [Kind.DATA, Kind.MARK]
    assert {header[4] for header, _ in again} == {9}
    assert b"b" in again[0][1]
    assert b"a" not in again[0][1]
    kept = counts.part.epochs.cache.bytes
    counts.part.epochs.committed(2, ended=False)
    assert counts.part.epochs.cache.bytes == 0 < kept


def test_task_leaves_when_its_end_is_committed_and_all_is_shown(tmp_path: Path) -> None:
    shown = Shown()
    part = alone(tmp_path, Feed([1], None), shown)
    part.work()
    part.work()
    assert part.stored()[-1].record.ended
    shown.away = 1
    part.epochs.committed(7, ended=True)
    part.work()
    assert not part.epochs.left
    (part.now,) = part.epochs.due()
    part.work()
    assert part.epochs.left
    assert shown.values == [1]


def test_task_does_not_leave_while_later_epochs_wait_behind_earlier_ones(tmp_path: Path) -> None:
    feed, shown = Feed([1]), Shown()
    part = alone(tmp_path, feed, shown, quick=False)
    part.storing.quick = True
    part.work()
    part.mark(1)
    part.epochs.committed(1, ended=False)
    part.work()  # it is being applied
    feed.batches += [[2], None]
    part.work()
    part.work()
    part.epochs.committed(2, ended=True)
    for _ in range(10):
        assert not part.epochs.left or shown.values == [1, 2]
        if part.applying.work is not None:
            part.applying.finish()
        part.work()
    assert part.epochs.left
    assert part.applied() == [1, 2]


def test_successor_of_a_task_that_had_ended_shows_what_was_left_and_leaves(tmp_path: Path) -> None:
    shown, feed = Shown(), Feed([1], None)
    part = alone(tmp_path, feed, shown)
    part.work()
    part.work()
    (stored,) = part.stored()
    again = alone(tmp_path, feed, shown, vault=part.vault, record=stored.record, epoch=9)
    again.work()
    assert shown.applied == [(1, [1])]
    assert again.stored()[-1].record.ended  # it says so again
    again.epochs.committed(9, ended=True)
    again.work()
    assert again.epochs.left
    assert shown.applied == [(1, [1])]


# --------------------------------------------------------------------- what is in the way


def test_task_is_held_while_its_state_finds_no_room(tmp_path: Path) -> None:
    feed = Feed([1])
    part = alone(tmp_path, feed, Shown())
    part.work()
    part.vault.full = 2
    part.mark(1)
    feed.batches += [[2]]
    part.work()
    assert part.epochs.held == part.epochs.away == "the shelf is full"
    assert (part.stored(), part.task.records_in) == ([], 1)
    for _ in range(2):
        (part.now,) = part.epochs.due()
        part.work()
    assert (part.epochs.held, part.epochs.away) == (None, None)
    assert part.record(1).sinks["out_0"].token["rows"] == 1
    assert part.task.records_in == 2


def test_task_is_held_until_sinks_that_take_rows_as_they_come_are_flushed(tmp_path: Path) -> None:
    """Otherwise rows could be lost that were before the mark."""
    taken = Taken()
    part = alone(tmp_path, Feed([1, 2]), taken)
    taken.stuck = True
    part.work()
    part.mark(1)
    assert part.epochs.held == "a sink has to be flushed"
    assert (part.stored(), taken.flushed) == ([], [])
    taken.stuck = False
    part.now += 60_000_000
    part.work()
    assert part.epochs.held is None
    assert taken.flushed == [1, 2]
    assert part.stored(1)


def test_task_is_held_while_its_output_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    counts = Counts(tmp_path / "file", output_cache=0)
    counts.feed("a")
    counts.part.work()
    counts.task.flush()
    counts.part.epochs.turn(0)
    assert counts.part.epochs.held is not None
    assert "output cache" in counts.part.epochs.held
    assert counts.part.epochs.away is not None


def test_closed_epochs_finish_what_was_begun_and_leave_no_files(tmp_path: Path) -> None:
    counts = Counts(tmp_path, quick=False, output_cache=0)
    counts.feed("a")
    counts.mark(1)
    counts.task.flush()
    counts.part.epochs.turn(0)
    assert list(tmp_path.rglob("*.frames"))
    assert counts.part.vault.names() == []
    counts.part.epochs.close()
    assert counts.part.vault.names()  # it was being stored
    assert counts.part.storing.closed
    assert counts.part.applying.closed
    assert not list(tmp_path.rglob("*.frames"))
