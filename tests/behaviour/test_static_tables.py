"""Tables without a time: they hold from the beginning, and stream time knows nothing of them."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow
from floodway.connectors.csv import CsvSource
from floodway.connectors.json_lines import JsonLinesSource
from floodway.connectors.kafka import KafkaSource
from floodway.connectors.rate import RateSource
from floodway.connectors.stdio import StdinSource
from floodway.connectors.tcp import TcpSource
from floodway.core.errors import MixedTimesError, OptionError
from floodway.operators.source import BEGINNING, Changelog
from floodway.testing import At, Delete, Driver, ListSink, ListSource, VirtualClock, latest
from tests.engines import Engine

NOW = 1_800_000_000_000
"""What an engine's clock shows, more or less; a driver's shows 0."""


class User(fw.Record):
    id: int
    city: str


class Visit(fw.Record):
    user: int
    at: int


IDS = st.integers(0, 4)
USERS = st.lists(st.builds(User, IDS, st.sampled_from(["Bern", "Rome", "Oslo"])), max_size=8)
VISITS = st.lists(st.builds(Visit, IDS, st.integers(-50, 50)), max_size=12)


def joining(users: Any, visits: Any, late_updates: Any, **options: Any) -> tuple[Flow, ListSink]:
    flow, sink = Flow("visits", retention="1h"), ListSink()
    table = flow.table("users", users, schema=User, key="id", **options)
    seen = flow.source("visits", visits, schema=Visit, timestamp="at")
    seen.join(
        table,
        on="user",
        how="left",
        joiner=lambda visit, user: (visit.user, user and user.city),
        schema=tuple[int, str | None],
        late_updates=late_updates,
        name="join",
    ).to(sink)
    return flow, sink


def in_order(results: Iterable[Any]) -> list[Any]:
    return sorted(results, key=repr)


def expected(users: list[User], visits: list[Visit]) -> list[Any]:
    """What a dictionary and a loop give."""
    cities = {user.id: user.city for user in users}
    return in_order((v.at, (v.user, cities.get(v.user))) for v in visits)


def joined(sink: ListSink) -> list[Any]:
    """Return what holds in the end; a left join of records that are there takes nothing back."""
    return in_order((record.timestamp, record.value) for record in latest(sink.records))


# --------------------------------------------------------------------- the same everywhere


@settings(max_examples=80)
@given(
    users=USERS,
    visits=VISITS,
    clock=st.sampled_from([0, NOW]),
    late_updates=st.sampled_from(["correct", "ignore"]),
    preload=st.sampled_from([True, None]),
)
def test_static_table_is_complete_for_every_event(
    engine: Engine, users: Any, visits: Any, clock: int, late_updates: Any, preload: Any
) -> None:
    """Whatever the clock shows, and whatever the timestamps of the events are."""
    flow, sink = joining(ListSource(users), ListSource(visits), late_updates, preload=preload)
    driver = engine(flow, clock=VirtualClock(clock))
    driver.run()
    assert joined(sink) == expected(users, visits)
    assert driver.stats("join").late == driver.stats("users").late == 0


@settings(max_examples=80)
@given(
    users=USERS,
    visits=VISITS,
    clock=st.sampled_from([0, NOW]),
    static=st.sampled_from([True, None]),
    data=st.data(),
)
def test_static_table_beside_events_corrects_them(
    engine: Engine, users: Any, visits: Any, clock: int, static: Any, data: st.DataObject
) -> None:
    """In whatever order they come, with a mark after every push."""
    preload = None if static else True  # pushed, it is there when it is pushed
    flow, sink = joining(None, None, "correct", static=static, preload=preload)
    order = data.draw(st.permutations([0] * len(users) + [1] * len(visits)))
    rows: list[Any] = [iter(users), iter(visits)]
    with engine(flow, clock=VirtualClock(clock)) as driver:
        for side in order:
            driver.push(("users", "visits")[side], next(rows[side]))
        late = driver.stats("join").late + driver.stats("users").late
    assert late == 0
    assert joined(sink) == expected(users, visits)


@settings(max_examples=80)
@given(
    users=st.lists(st.tuples(st.integers(0, 60), IDS, st.sampled_from("abc")), max_size=8),
    visits=VISITS,
    preload=st.booleans(),
)
def test_table_with_timestamps_holds_from_them_on(
    engine: Engine, users: Any, visits: Any, preload: bool
) -> None:
    items = [At(time, User(number, city)) for time, number, city in users]
    flow, sink = joining(ListSource(items), ListSource(visits), "correct", preload=preload)
    engine(flow).run()
    found = []
    for visit in visits:
        known = [
            (t, n, c) for n, (t, i, c) in enumerate(users) if i == visit.user and t <= visit.at
        ]
        found.append((visit.at, (visit.user, max(known)[2] if known else None)))
    assert joined(sink) == in_order(found)


# --------------------------------------------------------------------- stream time


def test_static_table_neither_moves_stream_time_nor_holds_it_back(engine: Engine) -> None:
    flow, _ = joining(None, None, "correct", preload=True)
    driver = engine(flow, clock=VirtualClock(NOW))
    driver.push("users", User(1, "Bern"))
    assert driver.stream_time is None
    assert driver.holding_back == ("visits",)
    driver.push("visits", Visit(1, 5))
    assert driver.stream_time == 5
    driver.advance("1h")
    assert driver.stream_time == 5
    driver.end("users")
    assert driver.stream_time == 5
    driver.push("visits", Visit(1, 7_200_000))
    assert driver.stream_time == 7_200_000


def test_row_of_a_static_table_is_never_late(engine: Engine) -> None:
    flow, sink = joining(None, None, "correct", static=True)
    with engine(flow) as driver:
        driver.push("visits", Visit(1, 10 * 3_600_000))
        driver.push("users", User(1, "Bern"))
        driver.push("users", User(1, "Rome"))
        driver.delete("users", 2)
        assert driver.stats("users").late == 0
        assert driver.table("users").rows() == {1: (BEGINNING, User(1, "Rome"))}
    assert joined(sink) == [(36_000_000, (1, "Rome"))]


def test_row_of_a_static_table_can_be_deleted_and_comes_back(engine: Engine) -> None:
    flow = Flow("users")
    flow.table("users", schema=User, key="id", static=True)
    flow.source("visits", schema=Visit, timestamp="at").to("out")
    with engine(flow) as driver:
        driver.push("users", User(1, "Bern"), User(2, "Rome"))
        driver.delete("users", 1, at=5)
        driver.push("visits", Visit(1, 10 * 3_600_000))
        assert driver.table("users").values() == {2: User(2, "Rome")}
        driver.push("users", User(1, "Oslo"))
        assert driver.table("users").values() == {1: User(1, "Oslo"), 2: User(2, "Rome")}


def test_flow_of_static_tables_alone_has_no_stream_time(engine: Engine) -> None:
    flow, sink = Flow("users"), ListSink()
    users = flow.table(
        "users", ListSource([User(1, "Bern"), User(2, "Bern")]), schema=User, key="id"
    )
    users.group_by("city").count(name="cities").to(sink)
    driver = engine(flow)
    driver.run()
    assert driver.stream_time is None
    assert driver.table("cities").values() == {"Bern": 2}


def test_driver_reads_tables_that_come_first_first() -> None:
    """A driver that took turns found what an engine finds, and more than that."""
    users, visits = [User(n, "Bern") for n in range(9)], [Visit(8, 1), Visit(8, 2)]
    flow, sink = joining(ListSource(users), ListSource(visits), "ignore")
    Driver(flow).run()
    assert joined(sink) == [(1, (8, "Bern")), (2, (8, "Bern"))]


# --------------------------------------------------------------------- what is static


@cache
def topic(**options: Any) -> KafkaSource:
    return KafkaSource("users", servers="127.0.0.1:1", **options)


TCP = TcpSource("127.0.0.1", 1)
FOLDER = Path(__file__).parent


@pytest.mark.parametrize(
    ("connector", "options", "preload", "static"),
    [
        (CsvSource("users.csv"), {}, True, True),
        (CsvSource("users.csv"), {"preload": False}, False, True),
        (CsvSource("users.csv"), {"preload": True}, True, True),
        (CsvSource("users.csv"), {"static": False}, False, False),
        (CsvSource("users.csv"), {"static": False, "preload": True}, True, False),
        (CsvSource("users.csv"), {"timestamp": "id"}, False, False),
        (CsvSource("users.csv"), {"timestamp": "id", "preload": True}, True, False),
        (CsvSource("users.csv"), {"timestamp": fw.ARRIVAL}, False, False),
        (JsonLinesSource(FOLDER, watch=True), {}, False, False),
        (JsonLinesSource(FOLDER, watch=True), {"static": True}, False, True),
        (RateSource(1, count=5), {}, True, True),
        (RateSource(1), {}, False, False),
        (StdinSource(), {}, False, False),
        (StdinSource(), {"preload": True}, True, True),
        (TCP, {}, False, False),
        (TCP, {"preload": True}, True, True),
        (topic(), {}, False, False),
        (topic(), {"static": True}, False, True),
        (topic(end="current"), {}, False, False),
        (topic(end="current"), {"preload": True}, True, False),
        (topic(end="current"), {"static": True}, True, True),
        (ListSource([User(1, "a")]), {}, True, True),
        (ListSource([At(1, User(1, "a"))]), {}, False, False),
        (ListSource([User(1, "a"), Delete(1, 5)]), {}, False, False),
        (None, {}, False, False),
        (None, {"preload": True}, True, True),
    ],
)
def test_table_is_static_if_nothing_gives_it_a_time_and_it_ends(
    connector: Any, options: Any, preload: bool, static: bool
) -> None:
    flow = Flow("users")
    flow.table("users", connector, schema=User, key="id", **options)
    changelog = flow.operators[0]
    assert isinstance(changelog, Changelog)
    assert (changelog.preload, changelog.static) == (preload, static)


def test_static_table_has_no_timestamp() -> None:
    with pytest.raises(OptionError, match="has a timestamp") as raised:
        Flow("users").table("users", schema=User, key="id", timestamp="id", static=True)
    assert "leave out" in raised.value.remedy


@pytest.mark.parametrize(
    "connector",
    [topic(), JsonLinesSource(FOLDER, watch=True), RateSource(1)],
    ids=lambda connector: type(connector).__name__,
)
def test_nobody_waits_for_a_table_that_never_ends(connector: Any) -> None:
    with pytest.raises(OptionError, match="wait for ever"):
        Flow("users").table("users", connector, schema=User, key="id", preload=True)


# --------------------------------------------------------------------- times that do not mix


def mixed(users: Any, visits: Any, at: Any = "at", **options: Any) -> Flow:
    flow = Flow("mixed")
    table = flow.table("users", users, schema=User, key="id", **options)
    visiting = flow.source("visits", visits, schema=Visit, timestamp=at)
    visiting.join(table, on="user", select=["left.user", "right.city"], name="join").to("out")
    return flow


FILE = JsonLinesSource("visits.jsonl")


@pytest.mark.parametrize(
    ("flow", "named"),
    [
        (mixed(TCP, FILE), "users"),
        (mixed(RateSource(1), topic()), "users"),
        (mixed(StdinSource(), topic(), None), "users"),
        (mixed(topic(), TCP, None), "visits"),
        (mixed(CsvSource("users.csv"), FILE, static=False), "users"),
    ],
)
def test_times_of_events_and_of_a_clock_do_not_mix(flow: Flow, named: str) -> None:
    with pytest.raises(MixedTimesError, match=f"^{named} is given the time at which") as raised:
        flow.check()
    assert raised.value.place is not None
    assert "timestamp=" in raised.value.remedy
    assert ("static=True" in raised.value.remedy) == (named == "users")


@pytest.mark.parametrize(
    "flow",
    [
        mixed(CsvSource("users.csv"), FILE),
        mixed(TCP, FILE, static=True),
        mixed(TCP, FILE, preload=True),
        mixed(TCP, FILE, timestamp="id"),
        mixed(TCP, FILE, timestamp=fw.ARRIVAL),
        mixed(topic(), FILE),
        mixed(topic(), topic(), None),
        mixed(TCP, TCP, None),
        mixed(None, FILE),
        mixed(ListSource([]), FILE, preload=False, static=False),
        mixed(TCP, None, None),
    ],
)
def test_what_the_remedies_say_is_accepted(flow: Flow) -> None:
    flow.check()


def test_time_of_arrival_is_that_of_the_clock_whatever_the_connector_says(engine: Engine) -> None:
    flow = Flow("arrival")
    flow.source("numbers", schema=int, timestamp=fw.ARRIVAL).to("out")
    driver = engine(flow, clock=VirtualClock(NOW))
    driver.push("numbers", 1)
    assert [record.timestamp for record in driver.read("out")] == [NOW]
