"""A task that collects: what is offered, in which order it is merged, and what is ignored."""

from pathlib import Path
from typing import Any

import pytest

import floodway as fw
from floodway.connectors.base import Split
from floodway.connectors.tcp import TcpSource
from floodway.core.errors import EngineError, OperatorError
from floodway.engine.control.messages import Made, Offer
from floodway.engine.datastream.form import Form
from floodway.engine.datastream.reading import Sources
from floodway.engine.datastream.task import Positions, Task
from floodway.engine.opstream.batches import Batches
from floodway.engine.opstream.blocks import LINES, read_block
from floodway.engine.opstream.remote import Remote
from floodway.engine.program.mark import Mark
from floodway.engine.transport.frame import KIND, RECORDS, Kind, parse
from floodway.plan import Plan
from floodway.testing import ListSource
from tests.engine.datastream.fakes import Feed

SECOND = 1_000_000


class Owner:
    """A task of a flow with one stage, and what it offers and sends."""

    def __init__(
        self, folder: Path, flow: fw.Flow, *, stage: str | None = None, **options: Any
    ) -> None:
        self.plan = Plan.of(flow)
        self.stage = self.plan.stages[0] if stage is None else self.plan.stage(stage)
        self.frames: list[tuple[Any, bytes]] = []
        self.task = Task(self.plan, self.stage, 0, self._send)
        self.offers: list[Offer] = []
        self.told: list[tuple[str, int]] = []
        self.now = self.position = 0
        self.inflow: Sources | None = None
        self.batches = Batches(
            self.task,
            self.offers.append,
            lambda paradigm, pause: self.told.append((paradigm, pause)),
            folder / "blocks",
            lambda: self.now,
            sources=self,
            **options,
        )
        self.remote = Remote(self.plan, self.stage, 0)
        self._folder = folder

    @property
    def form(self) -> Form:
        """The form in which the task works now."""
        return self.batches.form

    def where(self) -> Positions:
        """Return where the sources are."""
        return {"numbers": self.position} if self.inflow is None else self.inflow.where()

    def have_brought(self, name: str, count: int) -> None:
        """Hand on how many records have come in."""
        if self.inflow is not None:
            self.inflow.have_brought(name, count)

    def _send(self, target: int, frame: bytes) -> None:
        self.frames.append((parse(frame), frame))

    def work(self) -> None:
        """Let time pass, and do all there is to do."""
        self.now += SECOND
        self.batches.turn(self.now)
        while self.form.step(self.now):
            self.batches.turn(self.now)
        self.task.flush()

    def room(self) -> int:
        """Feed as much as the task will collect for now, and return how many records that is."""
        count = 0
        while not self.batches.full:
            self.form.feed("numbers", [(0, None, 7)] * 500, 0)
            count += 500
        return count

    def begin(self) -> None:
        """Switch, and see one record through: then it is no longer the beginning."""
        self.batches.switch("operation")
        self.form.feed("numbers", [(0, None, 7)], 0)
        self.work()
        self.answer()

    def process(self, offer: Offer, **changes: Any) -> Made:
        """Return what Spark would have made of an offer."""
        path = self._folder / f"{offer.batch}.result"
        path.write_bytes(self.remote.run(offer.path, 0, offer.cuts[-1][0], offer.context))
        return Made(
            **{"attempt": offer.attempt, "batch": offer.batch, "results": [str(path)]} | changes
        )

    def answer(self) -> None:
        """Process everything that is offered."""
        while self.offers:
            self.batches.made(self.process(self.offers.pop(0)))
            self.work()

    def marks_and_records(self) -> list[int | str]:
        """Return what was sent: records per frame, and marks."""
        return [
            header[RECORDS] if header[KIND] == Kind.DATA else "mark"
            for header, _ in self.frames
            if header[KIND] in (Kind.DATA, Kind.MARK)
        ]


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    flow = fw.Flow("doubling")
    numbers = flow.source("numbers", schema=int).map("value * 2", name="doubled")
    numbers.group_by("value AS number").count(name="counts").changes().to("out")
    return Owner(tmp_path, flow)


def test_marks_stay_where_they_were_among_the_records(owner: Owner) -> None:
    owner.batches.switch("operation")
    for epoch, count in ((1, 2), (2, 3)):
        owner.form.feed("numbers", [(0, None, n) for n in range(count)], 0)
        owner.form.pulse(epoch, Mark(epoch))
        while owner.form.step(0):
            pass
    owner.work()
    assert owner.frames == []
    assert len(owner.offers) == 1  # one block, whatever lies in between
    owner.answer()
    assert owner.marks_and_records() == [2, "mark", 3, "mark"]
    assert owner.task.stream_time == 2
    assert owner.task.records_in == 5


def test_results_of_another_attempt_are_not_taken(owner: Owner) -> None:
    owner.batches.switch("operation")
    owner.form.feed("numbers", [(0, None, 1)], 0)
    owner.work()
    (offer,) = owner.offers
    owner.batches.made(owner.process(offer, attempt=offer.attempt + 1))
    owner.batches.made(owner.process(offer, batch=offer.batch + 1))
    owner.work()
    assert owner.frames == []
    made = owner.process(offer)
    owner.batches.made(made)
    owner.batches.made(made)
    owner.work()
    owner.batches.made(made)
    owner.work()
    assert owner.marks_and_records() == [1]


def test_results_that_come_out_of_order_wait_for_their_turn(owner: Owner) -> None:
    owner.begin()
    owner.frames.clear()
    for count in (1, 2):
        owner.form.feed("numbers", [(0, None, n) for n in range(count)], 0)
        owner.work()
    first, second = owner.offers
    owner.batches.made(owner.process(second))
    owner.work()
    assert owner.frames == []
    owner.batches.made(owner.process(first))
    owner.work()
    assert owner.marks_and_records() == [1, 2]


def test_no_more_than_two_blocks_are_out(owner: Owner) -> None:
    owner.begin()
    for _ in range(5):
        owner.form.feed("numbers", [(0, None, 7)], 0)
        owner.work()
    assert len(owner.offers) == 2
    owner.answer()
    assert sum(n for n in owner.marks_and_records() if n != "mark") == 6  # type: ignore[misc]


def test_the_first_block_after_a_switch_is_out_alone(owner: Owner) -> None:
    # Two of the stage that was told first took both jobs, and made the other stage stand still.
    owner.batches.switch("operation")
    for _ in range(3):
        owner.form.feed("numbers", [(0, None, 7)], 0)
        owner.work()
    assert len(owner.offers) == 1
    owner.batches.switch("data")
    owner.work()
    assert len(owner.offers) == 2  # whoever goes back has all of it done at once


def test_going_back_waits_for_what_is_out(owner: Owner) -> None:
    owner.batches.switch("operation")
    owner.form.feed("numbers", [(0, None, 1)], 0)
    owner.work()
    owner.batches.switch("data")
    owner.work()
    assert owner.batches.paradigm == "operation"
    assert owner.form.holds_sources
    owner.answer()
    owner.work()
    assert owner.batches.paradigm == "data"
    assert not owner.form.holds_sources
    owner.form.feed("numbers", [(0, None, 1)], 0)
    owner.task.flush()
    assert owner.marks_and_records() == [1, 1]
    assert [paradigm for paradigm, _ in owner.told] == ["data"]


def test_where_sources_are_is_asked_when_a_mark_is_made(owner: Owner) -> None:
    # It was asked when the mark was collected: a read in between was lost when the task was.
    seen: list[Any] = []
    owner.task.on_commit = lambda _, where: seen.append(where)
    owner.batches.switch("operation")
    owner.form.pulse(1, Mark(None, None, commit=True))
    owner.position = 5
    owner.form.feed("numbers", [(0, None, 1)], 0)
    owner.work()
    owner.answer()
    assert seen == [{"numbers": 0}]


def test_a_full_disk_is_waited_for(owner: Owner, tmp_path: Path) -> None:
    (tmp_path / "blocks").touch()  # where a folder is wanted
    owner.batches.switch("operation")
    owner.form.feed("numbers", [(0, None, 1)], 0)
    owner.work()
    assert owner.offers == []
    assert "no room for a block" in str(owner.batches.away)
    (tmp_path / "blocks").unlink()
    owner.work()
    assert owner.batches.away is None
    owner.answer()
    assert owner.marks_and_records() == [1]


def test_a_job_that_cannot_be_done_stops_the_flow(owner: Owner) -> None:
    owner.batches.switch("operation")
    owner.form.feed("numbers", [(0, None, 1)], 0)
    owner.work()
    (offer,) = owner.offers
    with pytest.raises(EngineError, match="could not be processed on Spark: no slots"):
        owner.batches.made(Made(offer.attempt, offer.batch, [], problem="no slots"))


def test_a_function_that_fails_is_named(tmp_path: Path) -> None:
    flow = fw.Flow("failing")
    numbers = flow.source("numbers", schema=int).map(lambda n: 1 // n, schema=int, name="inverse")
    numbers.group_by("value AS number").count(name="counts").changes().to("out")
    owner = Owner(tmp_path, flow)
    owner.batches.switch("operation")
    owner.form.feed("numbers", [(0, None, 0)], 0)
    owner.work()
    with pytest.raises(OperatorError, match="ZeroDivisionError") as caught:
        owner.answer()
    assert caught.value.operator == "inverse"
    assert caught.value.place is not None


def test_lines_are_not_looked_at_by_their_owner(tmp_path: Path) -> None:
    flow = fw.Flow("lines")
    flow.source("numbers", schema=int).group_by("value AS n").count(name="counts").changes().to(
        "out"
    )
    owner = Owner(tmp_path, flow)
    owner.batches.switch("operation")
    owner.form.feed_raw("numbers", b"1\n2\nnot a number\n", 0, keyed=False)
    owner.work()
    (offer,) = owner.offers
    (unit,) = read_block(offer.path, 0, offer.cuts[-1][0])
    assert (unit.kind, unit.records, bytes(unit.data)) == (LINES, 3, b"1\n2\nnot a number\n")


def test_files_of_blocks_are_written_over_and_gone_with_the_paradigm(tmp_path: Path) -> None:
    # New pages for every block, and giving them back, were a sixth of a flooded source's work.
    flow = fw.Flow("again")
    flow.source("numbers", schema=int).map("value * 2", name="doubled").to("out")
    owner = Owner(tmp_path, flow)
    owner.begin()
    paths = set()
    for _ in range(5):
        owner.form.feed("numbers", [(0, None, 7)], 0)
        owner.work()
        paths |= {offer.path for offer in owner.offers}
        owner.answer()
    assert len(paths) == 1
    assert len(list((tmp_path / "blocks").glob("*.block"))) == 1
    owner.batches.switch("data")
    owner.work()
    assert owner.batches.paradigm == "data"
    assert not list((tmp_path / "blocks").glob("*.block"))


def test_lines_that_were_guessed_are_counted_when_they_were_read(tmp_path: Path) -> None:
    flow = fw.Flow("lines")
    numbers = flow.source("numbers", TcpSource("127.0.0.1", 9), schema=int)
    numbers.group_by("value AS n").count(name="counts").changes().to("out")
    owner = Owner(tmp_path, flow)
    owner.batches.switch("operation")
    lines = b"1\n" * 4000 + b"12345678\n\n" * 1000  # shorter ones first, and empty ones
    guess = owner.form.feed_raw("numbers", lines, 0, keyed=False)
    assert owner.task.records_in == guess > 8000
    owner.work()
    owner.answer()
    assert owner.task.records_in == 5000
    assert owner.batches.work.records == 5000


@pytest.mark.parametrize(
    ("cost_us", "first", "next_"),
    [
        (None, 1000, 1000),  # nothing is known
        (0.5, 30_000, 400_000),
        (500, 1000, 1000),  # a job is not worth it for fewer
    ],
)
def test_first_block_is_small_and_the_next_as_large_as_can_be_done_in_a_moment(
    tmp_path: Path, cost_us: float | None, first: int, next_: int
) -> None:
    # The first one had all that a flood had brought: a switch made WordCount stand still for 0.9 s.
    # Then it had 140 records whatever they cost, and so had the next ones: it took half a second
    # until blocks were as large as they should be.
    flow = fw.Flow("large")
    flow.source("numbers", schema=int).map("value * 2", name="doubled").to("out")
    owner = Owner(tmp_path, flow)
    if cost_us is not None:
        sampled = owner.task.sampled
        sampled.records, sampled.fetch_ns, sampled.cpu_ns = 10, 5_000, int(cost_us * 10_000 - 5_000)
    owner.batches.switch("operation")
    assert owner.room() == first
    owner.work()
    assert [offer.cuts[-1][1] for offer in owner.offers] == [first]
    assert owner.room() == next_


def test_what_the_first_block_took_says_how_large_others_may_be(owner: Owner) -> None:
    owner.batches.switch("operation")
    assert owner.room() == 1000
    owner.work()
    owner.answer()
    assert owner.room() > 1000


def test_messages_are_taken_as_they_are(tmp_path: Path) -> None:
    flow = fw.Flow("messages")
    numbers = flow.source("numbers", schema=int, timestamp="value")
    numbers.group_by("value AS n").count(name="counts").changes().to("out")
    owner = Owner(tmp_path, flow)
    owner.batches.switch("operation")
    owner.form.feed_raw(
        "numbers", [(5, b"key", 1), (None, None, 2), (2**70, b"", 3)], 9000, keyed=True
    )
    owner.form.feed_raw("numbers", [4, 5], 9000, keyed=False)
    owner.work()
    owner.answer()
    assert sum(n for n in owner.marks_and_records() if n != "mark") == 5  # type: ignore[misc]
    assert owner.task.latest("numbers") == 5


def test_messages_without_a_time_get_that_of_what_was_merged_before_them(tmp_path: Path) -> None:
    flow = fw.Flow("undated")
    flow.source("numbers", schema=int).map("value * 2", name="doubled").to("out")
    owner = Owner(tmp_path, flow)
    owner.batches.switch("operation")
    for raw in ([(None, None, 1)], [(500, None, 2)], [(None, None, 3), (700, None, 4)]):
        owner.form.feed_raw("numbers", raw, 9_000_000, keyed=True)
        owner.work()
        owner.answer()
    rows = owner.task.program.sinks["out"].collect()
    assert [(row[0], row[2]) for row in rows] == [(9000, 2), (500, 4), (500, 6), (700, 8)]
    assert (owner.task.latest("numbers"), owner.task.intake("numbers").undated) == (700, 2)


def test_deletions_stay_with_the_task_until_it_knows_how_far_the_table_is(tmp_path: Path) -> None:
    # A piece has only a part of what was read: a row before a deletion may be in another.
    flow = fw.Flow("deleting")
    flow.table("rows", schema=int, key=int, timestamp="value").changes().to("out")
    owner = Owner(tmp_path, flow, stage="rows.changelog")
    owner.batches.switch("operation")
    for raw in ([(None, 1, None)], [(None, 1, 500)]):
        owner.form.feed_raw("rows.changelog", raw, 9_000_000, keyed=True)
        owner.work()
    assert owner.offers == []
    assert owner.task.latest("rows.changelog") == 500
    owner.form.feed_raw("rows.changelog", [(None, 1, None), (None, 1, 700)], 9_000_000, keyed=True)
    owner.work()
    owner.answer()
    assert owner.task.latest("rows.changelog") == 700
    assert owner.task.intake("rows.changelog").undated == 2


def test_source_that_comes_back_is_as_far_as_what_was_merged_first(tmp_path: Path) -> None:
    flow, steady = fw.Flow("back"), 0
    feed = Feed([100], [], [], [200], [300])
    numbers = flow.source("numbers", feed, schema=int, timestamp="value", idle="100ms")
    numbers.map("value * 2", name="doubled").to("out")
    owner = Owner(tmp_path, flow)
    sources = Sources(owner.task, Asleep(), lambda text: None, lambda: steady)
    owner.inflow = sources
    sources.open(Split())
    sources.allow(["numbers"])
    owner.batches.switch("operation")
    said = []
    for _ in feed.batches:
        sources.read(0, owner.form)
        steady += 100_000
        owner.work()
        owner.answer()
        (time,) = sources.times()
        said.append((time.latest, time.back))
    assert said == [(100, None), (100, None), (100, None), (200, 200), (300, 200)]


class TwoWays:
    """A task that reads a source, and gets more from another task."""

    def __init__(self, folder: Path, **options: Any) -> None:
        flow = fw.Flow("two_ways")
        more = flow.source("more", schema=int).isolate()
        flow.source("numbers", schema=int).merge(more).map("value * 2", name="doubled").group_by(
            "value AS n"
        ).count(name="counts").changes().to("out")
        self.owner = owner = Owner(folder, flow, stage="numbers", **options)
        self.sender = Task(owner.plan, owner.plan.stage("more"), 0, lambda _, frame: arrive(frame))

        def arrive(frame: bytes) -> None:
            owner.task.receive(parse(frame), frame)

    def read(self, *numbers: int) -> None:
        """Let the task's own source bring something."""
        self.owner.position += len(numbers)
        self.owner.form.feed("numbers", [(0, None, n) for n in numbers], 0)

    def sends(self, *numbers: int) -> None:
        """Let the other task send something."""
        self.sender.feed("more", [(0, None, n) for n in numbers], 0)
        self.sender.flush()

    def marks(self, epoch: int, mark: Mark) -> None:
        """Let the other task's mark come."""
        self.sender.pulse(epoch, mark)
        while self.sender.step(0):
            pass


def test_what_is_read_comes_after_marks_that_were_made_before_even_if_there_is_too_much(
    tmp_path: Path,
) -> None:
    # A block that was full kept the mark back: the read came before it, and again after a recovery.
    ways = TwoWays(tmp_path, most_bytes=10)
    owner = ways.owner
    owner.batches.switch("operation")
    ways.sends(*range(50))
    ways.marks(1, Mark(7))
    owner.form.pulse(1, Mark(7))
    ways.read(1)
    owner.work()
    owner.answer()
    assert owner.marks_and_records() == [50, "mark", 1]


def test_a_task_goes_back_although_something_is_held_at_a_mark(tmp_path: Path) -> None:
    # It never did: it collected nothing more, and the mark that had to come was never taken.
    ways = TwoWays(tmp_path)
    owner = ways.owner
    owner.begin()
    owner.frames.clear()
    owner.form.pulse(1, Mark(7))
    ways.read(1)  # the other task has not made the mark yet
    owner.batches.switch("data")
    owner.work()
    owner.answer()
    assert owner.batches.active  # it waits for the mark
    assert owner.form.holds_sources
    ways.marks(1, Mark(7))
    owner.work()
    owner.answer()
    assert owner.form is owner.task
    assert owner.marks_and_records() == ["mark", 1]


def test_what_is_held_behind_two_marks_is_no_part_of_the_second_epoch(tmp_path: Path) -> None:
    # It was: where the source was at the second mark, it had not read that, and read it again.
    ways = TwoWays(tmp_path)
    owner = ways.owner
    committed: list[tuple[int, Positions | None, int]] = []
    owner.task.on_commit = lambda epoch, positions: committed.append(
        (epoch, positions, owner.task.records_in)
    )
    owner.begin()
    before = owner.task.records_in
    owner.form.pulse(1, Mark(7, commit=True))
    ways.read(1)  # between the marks
    owner.form.pulse(2, Mark(8, commit=True))
    ways.read(2, 3)  # behind both
    for epoch in (1, 2):
        ways.marks(epoch, Mark(6 + epoch, commit=True))
        owner.work()
        owner.answer()
    assert owner.marks_and_records()[-4:] == ["mark", 1, "mark", 2]
    assert [(epoch, positions) for epoch, positions, _ in committed] == [
        (1, {"numbers": 0}),
        (2, {"numbers": 1}),
    ]
    assert owner.task.records_in - before == 3


def test_a_mark_after_the_end_of_a_source_knows_where_that_ended(tmp_path: Path) -> None:
    # It said where the source had been at its last own mark; with another dop that was read again.
    ways = TwoWays(tmp_path)
    owner = ways.owner
    committed: list[tuple[int, Positions | None]] = []
    owner.task.on_commit = lambda epoch, positions: committed.append((epoch, positions))
    owner.begin()
    ways.read(1, 2)
    owner.form.end_source("numbers", 0)
    ways.marks(1, Mark(7, commit=True))
    owner.work()
    owner.answer()
    assert committed == [(1, {"numbers": 2})]


def test_a_source_has_not_ended_before_what_it_has_read_is_merged(tmp_path: Path) -> None:
    # It had: stream time went on without it, and after a recovery its last records were late.
    flow = fw.Flow("ending")
    numbers = flow.source("numbers", ListSource([7, 8]), schema=int)
    numbers.isolate().map("value * 2", name="doubled").to("out")
    owner = Owner(tmp_path, flow, stage="numbers")
    sources = Sources(owner.task, Asleep(), lambda text: None, lambda: 0)
    owner.inflow = sources
    sources.open(Split())
    sources.allow(["numbers"])
    owner.batches.switch("operation")
    while sources.read(0, owner.form):
        pass
    (said,) = sources.times()
    assert (said.ended, said.count, said.latest) == (False, 0, None)
    owner.work()
    owner.answer()
    (said,) = sources.times()
    assert (said.ended, said.count) == (True, 2)


class Asleep:
    """Wakes nobody."""

    def watch(self, descriptor: int) -> None:
        """Do nothing."""

    def unwatch(self, descriptor: int) -> None:
        """Do nothing."""
