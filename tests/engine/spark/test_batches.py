"""Offers become jobs: shared out evenly, two jobs at a time, tried again, and nothing is left."""

import logging
import re
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import floodway as fw
from floodway.connectors.json_lines import JsonLinesSource
from floodway.engine.control.messages import Made, Offer
from floodway.engine.opstream.blocks import LINES, Unit, read_result
from floodway.engine.opstream.remote import Context, encode_context
from floodway.engine.spark import batch_worker as worker
from floodway.engine.spark.batch_worker import (
    STUCK,
    BatchWork,
    Errand,
    Order,
    Shipped,
    encode,
    work,
)
from floodway.engine.spark.batches import OVERLAP, SLOW_S, TRIES, Operations
from floodway.engine.spark.shipping import pack
from floodway.engine.spark.split import Piece, share
from floodway.plan import Plan
from tests.engine.opstream.writing import write_block
from tests.waiting import DEADLINE_S, wait_for

# --------------------------------------------------------------------------- sharing out


@st.composite
def offers(draw: st.DrawFn) -> list[Offer]:
    found = []
    for number in range(draw(st.integers(1, 5))):
        cuts = [(0, 0)]
        for size, records in draw(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 40)))):
            cuts.append((cuts[-1][0] + size, cuts[-1][1] + records))
        found.append(Offer(number, 1, 1, "", cuts, b""))
    return found


def records_between(offer: Offer, start: int, stop: int) -> int:
    before = dict(offer.cuts)
    return before[stop] - before[start]  # only where the block can be cut


@given(offers(), st.integers(1, 6), st.integers(1, 30))
def test_pieces_are_the_blocks_in_order(blocks: list[Offer], slots: int, least: int) -> None:
    shares = share(blocks, slots, least=least)
    assert all(shares)
    pieces = [piece for part in shares for piece in part]
    for number, offer in enumerate(blocks):
        own = [piece for piece in pieces if piece.offer == number]
        ends = [0, *(piece.stop for piece in own)]
        assert [piece.start for piece in own] == ends[:-1]
        assert ends[-1] == offer.cuts[-1][0]
        for piece in own:
            assert piece.records == records_between(offer, piece.start, piece.stop)
    assert [piece.offer for piece in pieces] == sorted(piece.offer for piece in pieces)


@given(offers(), st.integers(1, 6), st.integers(1, 30))
def test_shares_are_as_even_as_the_cuts_allow(blocks: list[Offer], slots: int, least: int) -> None:
    shares = share(blocks, slots, least=least)
    whole = sum(offer.cuts[-1][1] for offer in blocks)
    assert len(shares) <= max(min(slots, whole // least), 1)
    largest = max((b[1] - a[1] for o in blocks for a, b in pairwise(o.cuts)), default=0)
    parts = max(min(slots, whole // least), 1)
    for part in shares:
        assert sum(piece.records for piece in part) <= whole / parts + largest


@given(st.integers(1, 8), st.integers(1, 100))
def test_blocks_that_can_be_cut_anywhere_are_cut_evenly(slots: int, each: int) -> None:
    cuts = [(number, number) for number in range(slots * each + 1)]
    shares = share([Offer(0, 1, 1, "", cuts, b"")], slots, least=1)
    assert [sum(piece.records for piece in part) for part in shares] == [each] * slots


def test_few_records_are_one_task() -> None:
    cuts = [(number, number) for number in range(1000)]
    assert share([Offer(0, 1, 1, "", cuts, b"")], 8) == [[Piece(0, 0, 999, 999)]]


# --------------------------------------------------------------------------- jobs


class Tap(fw.Record):
    gate: int
    fare: int


def plan() -> Plan:
    flow = fw.Flow("taps")
    taps = (
        flow.source("taps", JsonLinesSource("taps.jsonl"), schema=Tap)
        .filter("fare > 2", name="dear")
        .isolate()
    )
    taps.group_by("gate").count(name="counts")
    return Plan.of(flow)


LINE = b'{"gate":1,"fare":3}\n'


class Here:
    """Runs jobs in this process; a test can hold one up, and let parts of one fail."""

    def __init__(self, shipped: Path) -> None:
        self.shipped = shipped
        self.slots = 2
        self.alive = True
        self.may_run = threading.Semaphore(0)
        self.began = threading.Semaphore(0)
        self.sizes: list[int] = []
        self.deaths: list[Callable[[int], bool]] = []
        self.cancelled = False

    def start(self, target: Callable[[], None], name: str) -> threading.Thread:
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        return thread

    def begin(self) -> None: ...

    def cancel(self) -> None:
        self.cancelled = True
        self.may_run.release()

    def run(self, order: Path, tasks: int) -> str | None:
        self.sizes.append(tasks)
        self.began.release()
        self.may_run.acquire()
        if self.cancelled:
            return "cancelled"
        dies = self.deaths.pop(0) if self.deaths else lambda _: False
        for partition in range(tasks):
            if not dies(partition):
                work(str(self.shipped), str(order), partition)
        return "its process died" if any(map(dies, range(tasks))) else None


class Desk:
    """Operations, and what they have told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "made").mkdir()
        shipped = folder / "shipped"
        shipped.write_bytes(encode(Shipped(pack(plan()), [])))
        self.here = Here(shipped)
        self.told: list[tuple[int, Made]] = []
        self.now_s = 0.0
        self.operations = Operations(
            plan(),
            self.here,
            folder / "made",
            now=lambda: self.now_s,
        )

    def offer(self, lines: int = 5000, *, batch: int = 1, attempt: int = 1, task: int = 0) -> None:
        path = self.folder / f"{task}-{attempt}-{batch}.block"
        units = (Unit(LINES, 0, 0, 1000, 1, LINE * 1000) for _ in range(lines // 1000))
        context = encode_context(Context([None]))
        self.operations.offer(
            Offer(task, attempt, batch, str(path), write_block(path, units), context)
        )

    def turn(self) -> None:
        self.operations.turn(lambda task, made: self.told.append((task, made)))

    def go_on(self, jobs: int = 1) -> None:
        for _ in range(jobs):
            self.here.may_run.release()

    def await_told(self, count: int) -> list[Made]:
        def enough() -> bool:
            self.turn()
            return len(self.told) >= count

        wait_for(enough, f"{count} to be told")
        return [made for _, made in self.told]

    def read(self, made: Made) -> int:
        """Fetch the results of a block, as its owner does; return how many records it had."""
        found = 0
        for path in made.results:
            found += sum(run.read for run in read_result(path).runs)
            Path(path).unlink()
        return found

    def left(self) -> list[str]:
        return sorted(file.name for file in (self.folder / "made").iterdir())


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    found = Desk(tmp_path)
    yield found
    found.operations.close()
    assert not [t for t in threading.enumerate() if t.name == "floodway-batches"]


def test_a_block_comes_back_as_results_in_order(desk: Desk) -> None:
    desk.offer(5000)
    desk.go_on()
    (made,) = desk.await_told(1)
    assert (made.attempt, made.batch, made.problem) == (1, 1, "")
    assert len(made.results) == 2
    assert made.ran_us > 0
    assert desk.read(made) == 5000
    assert desk.left() == []


def test_block_that_is_offered_twice_is_processed_once(desk: Desk) -> None:
    desk.offer(batch=1)
    desk.offer(batch=1)
    desk.offer(batch=2)
    desk.go_on(3)
    assert sorted(made.batch for made in desk.await_told(2)) == [1, 2]
    desk.offer(batch=2, attempt=2)  # another attempt counts anew
    assert [(made.attempt, made.batch) for made in desk.await_told(3)][2:] == [(2, 2)]


def test_offers_gather_while_jobs_run(desk: Desk) -> None:
    for batch in (1, 2):
        desk.offer(batch=batch)
        desk.here.began.acquire()
    for batch in (3, 4, 5):
        desk.offer(batch=batch)
    desk.go_on(OVERLAP + 1)
    made = desk.await_told(5)
    assert desk.operations.jobs == OVERLAP + 1
    assert sorted(m.batch for m in made) == [1, 2, 3, 4, 5]
    assert [desk.read(m) for m in made] == [5000] * 5


def test_the_next_job_is_with_spark_before_the_first_is_done(desk: Desk) -> None:
    for batch in (1, 2):
        desk.offer(batch=batch)
        assert desk.here.began.acquire(timeout=DEADLINE_S)
    desk.go_on(OVERLAP)
    desk.await_told(2)


def test_only_what_was_lost_is_done_again(desk: Desk) -> None:
    desk.here.deaths = [lambda partition: partition == 1]
    desk.offer(5000)
    desk.go_on(2)
    (made,) = desk.await_told(1)
    assert desk.here.sizes == [2, 1]
    assert desk.operations.again == 1
    assert desk.read(made) == 5000
    assert desk.left() == []


def test_a_job_that_fails_after_its_work_is_not_done_again(desk: Desk) -> None:
    class Late(Here):
        def run(self, order: Path, tasks: int) -> str | None:
            super().run(order, tasks)
            return "its process died"

    desk.here.__class__ = Late
    desk.offer(5000)
    desk.go_on(3)
    (made,) = desk.await_told(1)
    assert desk.operations.jobs == 1
    assert desk.read(made) == 5000


def test_what_cannot_be_done_is_told(desk: Desk) -> None:
    desk.here.deaths = [lambda _: True] * TRIES
    desk.offer()
    desk.go_on(TRIES)
    (made,) = desk.await_told(1)
    assert (made.results, made.problem) == ([], "its process died")
    assert desk.left() == []


def test_a_block_that_is_gone_does_not_spoil_the_others(desk: Desk) -> None:
    desk.offer(batch=1)
    desk.here.began.acquire()
    desk.offer(batch=1, task=1)
    desk.offer(batch=2)
    (desk.folder / "1-1-1.block").unlink()
    desk.go_on(2 + TRIES)
    made = desk.await_told(3)
    by_task = {(task, m.batch): m for task, m in desk.told}
    assert "No such file" in by_task[1, 1].problem
    assert sum(desk.read(m) for m in made) == 10_000
    assert desk.left() == []


def test_spark_that_is_gone_is_not_asked_again(desk: Desk) -> None:
    desk.here.alive = False
    desk.here.deaths = [lambda _: True]
    desk.offer()
    desk.go_on(TRIES)
    assert desk.await_told(1)[0].problem
    assert desk.operations.jobs == 1


def test_blocks_of_an_attempt_that_is_over_are_not_processed(desk: Desk) -> None:
    for batch in (1, 2):
        desk.offer(batch=batch)
        desk.here.began.acquire()
    desk.offer(batch=3)
    desk.offer(batch=1, attempt=2)
    desk.offer(batch=4)  # of the first attempt, and late
    desk.go_on(OVERLAP + 1)
    (made,) = desk.await_told(1)
    assert (made.attempt, made.batch) == (2, 1)
    assert desk.read(made) == 5000
    assert desk.left() == []  # nor is what was made of the first


def test_blocks_of_a_task_that_went_back_hold_nobody_up(desk: Desk) -> None:
    # They are gone with the attempt: the job was tried again and again, and the others waited.
    desk.offer(batch=1)
    desk.here.began.acquire()
    desk.offer(batch=1, task=1)
    desk.offer(batch=2)
    desk.here.began.acquire()
    (desk.folder / "1-1-1.block").unlink()
    desk.operations.follow({0: 1, 1: 2})
    desk.go_on(3)  # and not as many as there are tries
    made = desk.await_told(2)
    assert [task for task, _ in desk.told] == [0, 0]
    assert sum(desk.read(m) for m in made) == 10_000
    assert desk.operations.again == 0


def test_results_that_nobody_has_fetched_go_with_their_attempt(desk: Desk) -> None:
    desk.offer()
    desk.go_on()
    desk.await_told(1)
    assert len(desk.left()) == 2
    desk.offer(attempt=2)
    assert not [name for name in desk.left() if name.startswith("1-")]
    desk.go_on()
    desk.await_told(2)


def test_getting_ready_is_a_job_of_its_own_and_done_once(desk: Desk) -> None:
    desk.here.slots = 1  # here nobody can wait for another
    desk.operations.prepare("taps")
    desk.operations.prepare("taps")
    desk.here.began.acquire()
    desk.offer()
    desk.go_on(2)
    desk.await_told(1)
    assert desk.operations.jobs == 2


def test_job_that_takes_long_is_warned_of_once_with_where_it_is(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.offer()
    desk.here.began.acquire()
    (desk.folder / "made" / f"1.order.0{STUCK}").write_text("dear (flows.py:9), flows.py:3 in slow")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            desk.now_s += 0.7 * SLOW_S
            desk.turn()
    desk.go_on()
    desk.await_told(1)
    (said,) = caplog.messages
    assert said == "a micro-batch has been on Spark for 60 s: dear (flows.py:9), flows.py:3 in slow"


def keep_note(folder: Path) -> bool:
    """Keep the note of a task, and return whether there is one that is complete."""
    notes = [note.read_text() for note in folder.glob(f"*{STUCK}")]
    (folder / "kept").write_text("".join(notes))
    return any(notes)


def waiting(folder: Path) -> Callable[[Tap], Tap]:
    """Return a function that waits in one call until there is a note."""

    def wait(tap: Tap) -> Tap:
        done = threading.Event()

        def look() -> None:
            wait_for(lambda: keep_note(folder), "a note")
            done.set()

        threading.Thread(target=look).start()
        done.wait(60)
        return tap

    return wait


def matching(folder: Path) -> Callable[[Tap], Tap]:
    """Return a function that is in one call to `re` for far longer than the note takes."""

    def match(tap: Tap) -> Tap:
        re.match(r"(a+)+$", "a" * 24 + "b")
        keep_note(folder)
        return tap

    return match


@pytest.mark.parametrize("make", [waiting, matching])
def test_task_that_is_long_at_work_says_where_it_is(
    make: Callable[[Path], Callable[[Tap], Tap]], tmp_path: Path
) -> None:
    flow = fw.Flow("slow")
    taps = flow.source("taps", JsonLinesSource("taps.jsonl"), schema=Tap)
    slow = taps.map(make(tmp_path), schema=Tap, name="asks")
    slow.group_by("gate").count(name="counts")
    shipped, block, order = (tmp_path / each for each in ("shipped", "block", "order"))
    shipped.write_bytes(encode(Shipped(pack(Plan.of(flow)), [])))
    stop = write_block(block, [Unit(LINES, 0, 0, 1, 1, LINE)])[-1][0]
    context, result = encode_context(Context([None])), str(tmp_path / "result")
    order.write_bytes(encode(Order([[Errand("taps", 0, str(block), 0, stop, context, result)]])))
    work(str(shipped), str(order), 0, stuck_s=0.05)
    assert read_result(result).failed is None
    said = (tmp_path / "kept").read_text()
    assert said.startswith("asks (")
    assert "at the record Tap(gate=1, fare=3)" in said
    assert f"{__file__}:" in said
    assert not list(tmp_path.glob(f"*{STUCK}"))


def test_close_cancels_what_runs_and_tells_nobody(desk: Desk) -> None:
    desk.offer()
    desk.here.began.acquire()
    desk.offer(batch=2)
    desk.operations.close()
    assert desk.here.cancelled
    assert desk.told == []
    desk.offer(batch=3)  # nobody is there any more


def test_close_before_anything_was_offered(desk: Desk) -> None:
    assert desk.operations.jobs == 0


# --------------------------------------------------------------------------- the worker's side


def test_processes_that_get_ready_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "ALONE_S", 60.0)
    order = str(tmp_path / "1.order")
    first = threading.Thread(target=worker.meet, args=(order, 0, 2))
    first.start()
    wait_for(Path(f"{order}.0").exists)
    assert first.is_alive()
    worker.meet(order, 1, 2)
    first.join(10)
    assert not first.is_alive()


def test_processes_for_which_there_is_no_slot_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "MEET_S", float("inf"))
    worker.meet(str(tmp_path / "1.order"), 0, 2)


def order_for(folder: Path, block: str, *, result: str = "1.result") -> tuple[str, str]:
    shipped, order = folder / "shipped", folder / "1.order"
    shipped.write_bytes(encode(Shipped(pack(plan()), [])))
    context = encode_context(Context([None]))
    size = (folder / block).stat().st_size if (folder / block).exists() else 100
    errand = Errand("taps", 0, str(folder / block), 0, size, context, str(folder / result))
    order.write_bytes(encode(Order([[errand]])))
    return str(shipped), str(order)


def test_a_result_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    write_block(tmp_path / "block", [Unit(LINES, 0, 0, 3, 1, LINE * 3)])
    work(*order_for(tmp_path, "block"), 0)
    (run,) = read_result(str(tmp_path / "1.result")).runs
    assert run.read == 3
    assert not list(tmp_path.glob("*.part"))


def test_a_problem_is_noted_and_does_not_raise(tmp_path: Path) -> None:
    work(*order_for(tmp_path, "nothing"), 0)
    assert "No such file" in (tmp_path / "1.result.problem").read_text()
    assert not (tmp_path / "1.result").exists()


def test_who_was_given_up_leaves_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_block(tmp_path / "block", [Unit(LINES, 0, 0, 3, 1, LINE * 3)])
    shipped, order = order_for(tmp_path, "block")
    monkeypatch.setattr("floodway.engine.host.failpoints.hook", lambda _: Path(order).unlink())
    work(shipped, order, 0)
    assert not list(tmp_path.glob("1.result*"))


def test_without_an_order_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert list(BatchWork(str(tmp_path / "shipped"))(0, [])) == []
