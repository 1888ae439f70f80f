"""A task whose records take long takes on few at a time, so that it hears and tells in time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from floodway import Flow
from floodway.connectors.base import Reader, SourceConnector, Split
from floodway.engine.control.messages import Go
from floodway.engine.datastream.reading import READ
from floodway.engine.worker.pace import PLENTY, TURN_US, Pace
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan
from tests.engine.datastream.desk import Desk
from tests.engine.datastream.fakes import Taken


class Endless(SourceConnector):
    """Always has as many numbers as somebody asks for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def open(self, split: Split, position: Any = None) -> Reader:
        return EndlessReader(self.asked)


class EndlessReader(Reader):
    def __init__(self, asked: list[int]) -> None:
        self.asked = asked

    def poll(self, limit: int) -> list[int]:
        self.asked.append(limit)
        return [1] * limit


def flow_of(work: Callable[[int], int], *, hop: bool) -> tuple[Plan, Endless]:
    flow, source = Flow("slow"), Endless()
    numbers = flow.source("numbers", source, schema=int)
    numbers = numbers.rebalance(name="spread") if hop else numbers
    numbers.map(work, schema=int, name="work").to(Taken(), name="out")
    return Plan.of(flow, Configuration(Tuning(b_out=10))), source


class Clock:
    """Work that takes so many microseconds of a desk's time."""

    def __init__(self, record_us: int) -> None:
        self.record_us = record_us
        self.desk: Desk | None = None

    def __call__(self, value: int) -> int:
        assert self.desk is not None
        self.desk.around.clock += self.record_us
        return value


def test_source_is_read_in_as_small_parts_as_its_records_take_long(tmp_path: Path) -> None:
    work = Clock(1000)
    plan, source = flow_of(work, hop=False)
    work.desk = desk = Desk(tmp_path, plan)
    desk.start()
    desk.turn(20)
    assert source.asked[0] == READ
    assert all(10 <= asked <= TURN_US // 1000 for asked in source.asked[-5:])
    work.record_us = 1
    desk.turn(40)
    assert source.asked[-1] > READ // 2  # a turn of the desk takes 2 ms in any case


def test_frames_that_wait_are_worked_on_in_several_turns(tmp_path: Path) -> None:
    work = Clock(1000)
    plan, _ = flow_of(work, hop=True)
    sender, work.desk = Desk(tmp_path, plan, task=0), (desk := Desk(tmp_path, plan, task=1))
    sender.start()
    desk.start(go=False)
    desk.tell(Go([]))
    desk.post.inbox += [frame for number, frame in sender.post.sent if number == 1]
    done = []
    for _ in range(40):
        before = desk.runner.task.records_in if desk.runner.task else 0
        desk.turn(1)
        assert desk.runner.task is not None
        done.append(desk.runner.task.records_in - before)
    assert done[0] > 100  # nothing is known before the first turn
    assert all(10 <= each <= 30 for each in done[5:])  # a frame is never divided


def test_turn_that_is_held_up_is_soon_forgotten() -> None:
    pace, now, done = Pace(), 0, 0
    pace.turn(now, done)
    pace.turn(now := now + 1_000_000, done := done + 10)
    assert pace.records == 1
    for _ in range(20):
        worked = min(pace.records, 1000)
        pace.turn(now := now + 100 + worked, done := done + worked)
    assert pace.records > 1000


def test_short_turn_says_nothing_of_how_long_a_record_takes() -> None:
    """Few records in a turn seem dear, since a turn itself takes some time: they were read in
    smaller parts after that."""
    pace = Pace()
    for number in range(10):
        pace.turn(150 * number, 2 * number)
    assert pace.records == PLENTY


def test_time_without_work_does_not_count() -> None:
    pace = Pace()
    pace.turn(0, 0)
    pace.rest()
    pace.turn(5_000_000, 10)
    assert pace.records == PLENTY
