"""Records without a time of their own: which time they get, and that they move nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway import ARRIVAL, Flow, Record
from floodway.connectors import JsonLinesSource
from floodway.connectors.base import Reader, SourceConnector, Split
from floodway.engine.datastream.reading import Sources
from floodway.operators.source import BEGINNING
from floodway.plan import Plan
from floodway.testing import Driver, ListSink
from floodway.testing.clock import VirtualClock
from tests.engine.datastream.fakes import NoBell, only_task
from tests.engine.datastream.net import Net

NOW = 1_800_000_000_000
IN_2023 = 1_680_000_000_000


class User(Record):
    id: int
    at: int


KINDS = ("stream", "arrival", "dated stream", "table", "dated table", "static table")


def flow_of(kind: str, connector: Any = None) -> Flow:
    """Return a flow whose results show at which time every row counts."""
    flow = Flow("undated", retention="100000d")
    match kind:
        case "stream":
            flow.source("rows", connector, schema=User).to("out")
        case "arrival":
            flow.source("rows", connector, schema=User, timestamp=ARRIVAL).to("out")
        case "dated stream":
            flow.source("rows", connector, schema=User, timestamp="at").to("out")
        case _:
            options: dict[str, dict[str, Any]] = {
                "table": {},
                "dated table": {"timestamp": "at"},
                "static table": {"static": True},
            }
            table = flow.table("rows", connector, schema=User, key=int, **options[kind])
            table.changes().to("out")
    return flow


class Keyed(SourceConnector):
    """Gives batch after batch of ``(timestamp, key, value)``."""

    def __init__(self, *batches: list[Any]) -> None:
        self.batches = batches

    @property
    def bounded(self) -> bool:
        return True

    def open(self, split: Split, position: Any = None) -> Reader:
        return KeyedReader(self.batches)


class KeyedReader(Reader):
    keyed = True

    def __init__(self, batches: tuple[list[Any], ...]) -> None:
        self._batches = list(batches)

    def poll(self, limit: int) -> list[Any] | None:
        return self._batches.pop(0) if self._batches else None


class Timed(Keyed):
    @property
    def timed(self) -> bool:
        return True


class Reading:
    """A task that is handed what a keyed reader has read, all at the same moment."""

    def __init__(self, flow: Flow) -> None:
        self.net = Net(Plan.of(flow))
        (self.name,) = [source.name for source in self.net.plan.graph.sources]
        (self.task,), (self.last,) = self.net.of(self.name), self.net.of("out")

    def take(self, *rows: Any, now: int = NOW) -> None:
        self.feed(list(rows), now, keyed=True)

    def feed(self, raw: Any, now: int = NOW, *, keyed: bool) -> None:
        self.task.feed_raw(self.name, raw, now * 1000, keyed=keyed)
        self.task.flush()
        self.net.settle()

    def table(self, at: int | None = None) -> dict[Any, Any]:
        (task,) = self.net.of("rows")
        kernel: Any = task.program.node("rows").kernel
        return kernel.rows(at)  # type: ignore[no-any-return]

    @property
    def latest(self) -> int | None:
        return self.task.latest(self.name)

    @property
    def undated(self) -> int:
        return self.task.intake(self.name).undated

    def rows(self) -> list[tuple[int, Any, Any]]:
        return [(row[0], row[1], row[2]) for row in self.last.program.sinks["out"].collect()]


@pytest.mark.parametrize("kind", ["stream", "table"])
def test_undated_record_gets_the_time_its_source_has_come_to(kind: str) -> None:
    # It got the time of the clock, and stream time went from 2023 to the present with it.
    reading = Reading(flow_of(kind))
    reading.take((IN_2023, 1, User(1, 0)), (None, 2, User(2, 0)), (IN_2023 + 5, 3, User(3, 0)))
    assert [row[0] for row in reading.rows()] == [IN_2023, IN_2023, IN_2023 + 5]
    assert (reading.latest, reading.undated) == (IN_2023 + 5, 1)


def test_undated_record_before_all_others_does_not_count_once_one_has_a_time() -> None:
    reading = Reading(flow_of("stream"))
    reading.take((None, 1, User(1, 0)), (IN_2023, 2, User(2, 0)))
    assert [row[0] for row in reading.rows()] == [NOW, IN_2023]
    assert (reading.latest, reading.undated) == (IN_2023, 1)


@pytest.mark.parametrize("kind", ["stream", "table"])
def test_source_in_which_nothing_has_a_time_moves_with_the_clock(kind: str) -> None:
    reading = Reading(flow_of(kind))
    reading.take((None, 1, User(1, 0)))
    reading.take((None, 2, User(2, 0)), now=NOW + 7)
    assert [row[0] for row in reading.rows()] == [NOW, NOW + 7]
    assert (reading.latest, reading.undated) == (NOW + 7, 2)


def test_deletion_without_a_time_is_from_where_the_table_has_come_to() -> None:
    reading = Reading(flow_of("dated table"))
    reading.take((None, 1, User(1, IN_2023)), (None, 1, None), (None, 1, User(1, IN_2023 + 5)))
    assert reading.table() == {1: (IN_2023 + 5, User(1, IN_2023 + 5))}
    assert (reading.latest, reading.undated) == (IN_2023 + 5, 1)


def test_deletion_that_comes_first_deletes_nothing_that_comes_later() -> None:
    reading = Reading(flow_of("dated table"))
    reading.take((None, 1, None), (None, 1, User(1, IN_2023)))
    assert reading.table() == {1: (IN_2023, User(1, IN_2023))}
    assert (reading.latest, reading.undated) == (IN_2023, 1)


def test_deletion_with_the_time_of_its_message_has_it_and_moves_nothing() -> None:
    # The values have times of their own: those of their messages may be from somewhen else.
    reading = Reading(flow_of("dated table"))
    reading.take((NOW, 1, User(1, IN_2023)), (IN_2023 + 9, 1, None))
    assert (reading.latest, reading.undated) == (IN_2023, 0)
    assert [row[0] for row in reading.rows()] == [IN_2023, IN_2023 + 9]


def test_undated_record_that_fails_is_counted_and_has_the_time_at_which_it_came_in() -> None:
    flow = Flow("failing")
    rows = flow.source("rows", schema=User, on_error="dead_letter")
    rows.dead_letters.to("out")
    rows.to("others")
    task = only_task(Plan.of(flow))
    raw = [(IN_2023, 1, User(1, 0)), (None, 2, "no user"), (None, 3, User(3, 0))]
    task.feed_raw("rows", raw, NOW * 1000, keyed=True)
    assert [row[0] for row in task.program.sinks["out"].collect()] == [NOW]
    assert [row[0] for row in task.program.sinks["others"].collect()] == [IN_2023, IN_2023]
    assert task.intake("rows").undated == 2


def test_deletion_in_a_line_moves_nothing() -> None:
    flow = Flow("lines", retention="100000d")
    lines = JsonLinesSource("rows.jsonl")
    table = flow.table("rows", lines, schema=User | None, key=int, timestamp=lambda user: user.at)
    table.changes().to("out")
    reading = Reading(flow)
    for raw in ([b"null"], b"null\n"):
        reading.feed(raw, keyed=False)
    assert (reading.latest, reading.undated) == (None, 2)


TIMES = st.none() | st.integers(0, 40)
VALUES = st.builds(User, st.just(1), st.integers(0, 40))
ROWS = st.tuples(TIMES, st.integers(1, 3), VALUES | st.none())
BATCHES = st.lists(st.lists(ROWS, min_size=1, max_size=4), max_size=6)


@pytest.mark.parametrize("kind", KINDS)
@given(BATCHES)
def test_engine_and_reference_give_undated_rows_the_same_time(
    kind: str, batches: list[list[Any]]
) -> None:
    """The engine reads them as from a reader; the reference is told them one by one."""
    table = "table" in kind
    reading, clock, furthest = Reading(flow_of(kind)), VirtualClock(NOW), list[int]()
    driver = Driver(flow_of(kind), clock=clock, auto_mark=False)
    for batch in batches:
        rows = [(at, key, value) for at, key, value in batch if table or value is not None]
        if kind == "arrival":  # a driver may say when something comes in, a reader may not
            rows = [(None, key, value) for _, key, value in rows]
        if not rows:
            continue
        reading.take(*rows, now=clock.now)
        for at, key, value in rows:
            if table:
                driver.update("rows", key, value, at=at)
            else:
                driver.push("rows", value, at=at)
        driver.mark()
        furthest += [] if reading.latest is None else [reading.latest]
        assert driver.stream_time == max(furthest, default=None)
        clock.advance(5)
    expected = [(row.timestamp, row.key, row.value) for row in driver.read("out")]
    assert reading.rows() == expected


def told(flow: Flow) -> list[str]:
    """Return what people are told while a flow's only source is read to its end."""
    net, texts = Net(Plan.of(flow)), list[str]()
    (task,) = net.of("rows.changelog")
    sources = Sources(task, NoBell(), texts.append, lambda: 0)
    sources.open(Split())
    sources.allow(["rows.changelog"])
    while sources.read(0):
        sources.times()
    sources.times()
    return texts


DATED = [(IN_2023, 1, User(1, 0)), (None, 2, User(2, 0)), (IN_2023 + 5, 1, None)]


def table_of(connector: SourceConnector, **options: Any) -> Flow:
    flow = Flow("static")
    flow.table("rows", connector, schema=User, key=int, **options).changes().to(ListSink())
    return flow


def test_times_that_are_ignored_are_told_of_once() -> None:
    # A connector that had not said `timed` lost the times of its table without a word.
    (text,) = told(table_of(Keyed(DATED, DATED)))
    assert text.startswith("rows.changelog: its reader gives times, and they are ignored")
    assert "timed = True" in text
    assert "static=False" in text


@pytest.mark.parametrize(
    "flow",
    [
        table_of(Keyed([(None, 1, User(1, 0))])),
        table_of(Keyed(DATED), static=True),
        table_of(Keyed(DATED), static=False),
        table_of(Timed(DATED)),
        table_of(Keyed(DATED), timestamp="at"),
    ],
    ids=["no times", "static", "not static", "timed", "with a timestamp"],
)
def test_nothing_is_told_of_times_that_count_or_that_nobody_wants(flow: Flow) -> None:
    assert told(flow) == []


def test_first_row_of_a_static_table_holds_from_the_beginning_whatever_its_reader_says() -> None:
    reading = Reading(flow_of("static table"))
    reading.take(*DATED[:2])
    assert reading.latest is None
    assert {row[0] for row in reading.table().values()} == {BEGINNING}
