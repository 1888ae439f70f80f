"""Of records that tell the same thing one stays: the oracles see all records at once."""

from collections.abc import Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow
from floodway.engine.checkpoint.shape import FlowShape
from floodway.engine.checkpoint.upgrade import compare
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan
from floodway.testing import Driver, run
from floodway.testing.strategies import arrivals, cuts, skewed, streams
from tests.behaviour.oracles import StreamTime, per_key
from tests.engines import Engine

TTL, RETENTION, FAR = 5, 6, 1000
Item = tuple[str, int]
ITEMS = streams(st.tuples(skewed("abc"), st.integers(0, 9)), max_time=40, max_size=14)
IN_ORDER = streams(
    st.tuples(skewed("abc"), st.integers(0, 9)), max_time=60, max_size=16, lateness=0
)


class Event(fw.Record):
    id: int | None
    user: str
    at: int


def name_of(item: Item) -> str:
    return item[0]


@cache
def deduplicating(keep: str, retention: int = RETENTION) -> Flow:
    flow = Flow("once", retention=retention)
    once = flow.source("items", schema=tuple).deduplicate(name_of, ttl=TTL, keep=keep, name="once")
    once.to("out")
    once.late.to("late")
    return flow


def facts(records: Iterable[Any]) -> list[tuple[int, Any]]:
    return [(record.timestamp, record.value) for record in records]


def key(fact: tuple[int, Any]) -> Any:
    return fact[1][0]


# ----------------------------------------------------------------------------- what it means


def near(one: tuple[int, Item], other: tuple[int, Item]) -> bool:
    return one[1][0] == other[1][0] and abs(one[0] - other[0]) < TTL


def firsts(arrived: Iterable[tuple[int, Item]]) -> list[tuple[int, Item]]:
    """Send what is not near anything that was ever sent."""
    sent: list[tuple[int, Item]] = []
    for fact in arrived:
        if not any(near(fact, other) for other in sent):
            sent.append(fact)
    return sent


def lasts(arrived: Sequence[tuple[int, Item]]) -> list[tuple[int, Item]]:
    """Keep what nothing follows, by time and, where that is equal, by arrival."""
    places = [(time, place) for place, (time, _) in enumerate(arrived)]
    return [
        fact
        for fact, place in zip(arrived, places, strict=True)
        if not any(
            near(fact, other) and after > place
            for other, after in zip(arrived, places, strict=True)
        )
    ]


@settings(max_examples=300)
@given(data=st.data(), stream=ITEMS)
def test_first_is_sent_at_once_and_nothing_near_it_ever(
    engine: Engine, data: st.DataObject, stream: list[tuple[int, Item]]
) -> None:
    time_of = StreamTime("items")
    taken: list[tuple[int, Item]] = []
    late, sent = [], []
    with engine(deduplicating("first")) as driver:
        for push in data.draw(cuts(stream)):
            for fact in push:
                time_of.saw("items", fact[0])
                (late if time_of.passed(fact[0] + 1, RETENTION) else taken).append(fact)
            driver.push_at("items", *push)
            time_of.mark()
            sent += facts(driver.read("out"))
            assert per_key(sent, key) == per_key(firsts(taken), key)
        driver.finish()
        assert driver.read("out") == []
        assert per_key(facts(driver.read("late")), key) == per_key(late, key)
        stats = driver.stats("once")
        assert (stats.received, stats.sent, stats.late) == (len(stream), len(sent), len(late))
        assert stats.duplicates == len(taken) - len(sent)


@settings(max_examples=300)
@given(data=st.data(), stream=ITEMS)
def test_last_is_sent_when_no_other_can_follow(
    engine: Engine, data: st.DataObject, stream: list[tuple[int, Item]]
) -> None:
    time_of = StreamTime("items")
    taken: list[tuple[int, Item]] = []
    late, sent = [], []
    with engine(deduplicating("last")) as driver:
        for push in data.draw(cuts(stream)):
            for fact in push:
                time_of.saw("items", fact[0])
                (late if time_of.passed(fact[0] + 1, RETENTION) else taken).append(fact)
            driver.push_at("items", *push)
            time_of.mark()
            sent += facts(driver.read("out"))
            over = [f for f in lasts(taken) if time_of.passed(f[0] + TTL, RETENTION)]
            assert sorted(sent) == sorted(over)
        driver.finish()
        sent += facts(driver.read("out"))
        assert sorted(sent) == sorted(lasts(taken))
        for of_key in per_key(sent, key).values():
            assert of_key == sorted(of_key, key=itemgetter(0))
        assert per_key(facts(driver.read("late")), key) == per_key(late, key)
        stats = driver.stats("once")
        assert (stats.received, stats.sent, stats.late) == (len(stream), len(sent), len(late))
        assert stats.duplicates == len(taken) - len(sent)


@settings(max_examples=300)
@given(data=st.data(), stream=IN_ORDER)
def test_first_of_what_is_in_order_opens_a_stretch_in_which_its_key_is_silent(
    engine: Engine, data: st.DataObject, stream: list[tuple[int, Item]]
) -> None:
    until: dict[str, int] = {}
    expected = []
    for time, item in stream:
        if time >= until.get(item[0], 0):
            until[item[0]] = time + TTL
            expected.append((time, item))
    with engine(deduplicating("first", 0)) as driver:
        for push in data.draw(cuts(stream)):
            driver.push_at("items", *push)
        assert per_key(facts(driver.read("out")), key) == per_key(expected, key)
        assert driver.stats("once").late == 0


@pytest.mark.parametrize("keep", ["first", "last"])
@settings(max_examples=200)
@given(data=st.data(), stream=ITEMS)
def test_where_the_marks_are_decides_nothing_but_what_is_late(
    engine: Engine, keep: str, data: st.DataObject, stream: list[tuple[int, Item]]
) -> None:
    found = []
    for pushes in ([stream] if stream else [], data.draw(cuts(stream))):
        with engine(deduplicating(keep, FAR)) as driver:
            for push in pushes:
                driver.push_at("items", *push)
            driver.finish()
            found.append(per_key(facts(driver.read("out")), key))
    assert found[0] == found[1]


@settings(max_examples=200)
@given(data=st.data(), stream=ITEMS)
def test_last_does_not_depend_on_the_order_of_arrival(
    engine: Engine, data: st.DataObject, stream: list[tuple[int, Item]]
) -> None:
    found = []
    for arrived in (stream, data.draw(arrivals(stream))):
        with engine(deduplicating("last", FAR)) as driver:
            for push in data.draw(cuts(arrived)):
                driver.push_at("items", *push)
            driver.finish()
            # Of equal timestamps the one that comes last stays, and that may be another.
            found.append(sorted((r.timestamp, r.value[0]) for r in driver.read("out")))
    assert found[0] == found[1]


# ----------------------------------------------------------------------------- at the bounds


def out(keep: str, *records: tuple[int, Item]) -> list[tuple[int, Any]]:
    once = Flow("bounds").source("items", schema=tuple).deduplicate(name_of, ttl=5, keep=keep)
    return run(once, records)


def test_record_at_exactly_the_ttl_is_no_duplicate() -> None:
    records = [(0, ("a", 1)), (4, ("a", 2)), (5, ("a", 3))]
    assert out("first", *records) == [records[0], records[2]]
    apart = [(0, ("a", 1)), (5, ("a", 2))]
    assert out("last", *apart) == apart


def test_ttl_counts_from_the_first_that_was_sent_and_not_from_its_duplicates() -> None:
    records = [(time, ("a", time)) for time in range(0, 13, 3)]
    assert out("first", *records) == [records[0], records[2], records[4]]


def test_ttl_counts_from_the_last_whatever_it_follows() -> None:
    records = [(time, ("a", time)) for time in range(0, 13, 3)]
    assert out("last", *records) == [records[-1]]


def test_earlier_record_that_comes_after_a_later_one_was_sent_is_a_duplicate() -> None:
    records = [(9, ("a", 1)), (6, ("a", 2)), (4, ("a", 3))]
    assert out("first", *records) == [records[0], records[2]]


def test_record_between_two_runs_makes_one_of_them() -> None:
    records = [(0, ("a", 1)), (8, ("a", 2)), (4, ("a", 3))]
    assert out("last", *records) == [records[1]]


@pytest.mark.parametrize(("keep", "stays"), [("first", 1), ("last", 3)])
def test_of_equal_timestamps_arrival_decides(engine: Engine, keep: str, stays: int) -> None:
    with engine(deduplicating(keep)) as driver:
        driver.push_at("items", (7, ("a", 1)), (7, ("a", 2)))
        driver.push_at("items", (7, ("a", 3)))
        driver.finish()
        assert facts(driver.read("out")) == [(7, ("a", stays))]


# ----------------------------------------------------------------------------- around it


@pytest.mark.parametrize("keep", ["first", "last"])
def test_null_is_a_key_and_several_columns_are_one(engine: Engine, keep: str) -> None:
    flow = Flow("columns")
    events = flow.source("events", schema=Event, timestamp="at").key_by("user")
    once = events.deduplicate("id", "upper(user) AS who", ttl="1s", keep=keep, name="once")
    once.to("out")
    with engine(flow) as driver:
        for id_, user in ((1, "ann"), (None, "ann"), (None, "bob"), (1, "Ann"), (None, "ANN")):
            driver.push("events", Event(id_, user, 5))
        driver.finish()
        found = {(r.value.id, r.value.user): r.key for r in driver.read("out")}
    users = {"first": ("ann", "ann"), "last": ("Ann", "ANN")}[keep]
    # The key that the stream had stays.
    expected = {(1, users[0]): users[0], (None, users[1]): users[1], (None, "bob"): "bob"}
    assert found == expected


def test_what_follows_the_last_lives_in_the_past_and_takes_nothing_for_late(
    engine: Engine,
) -> None:
    flow = Flow("after", retention=0)
    once = flow.source("items", schema=str).deduplicate("value", ttl=5, keep="last", name="once")
    counts = once.group_by("value AS item").window(fw.tumbling(4)).count(name="counts")
    counts.changes(emit=fw.emit.final()).to("out")
    assert once.edge.operator.facts.held is not None
    with engine(flow) as driver:
        for time in (0, 3, 10, 11, 30):
            driver.push("items", "a", at=time)
        driver.finish()
        assert [r.value.window.start for r in driver.read("out")] == [0, 8, 28]
        assert driver.stats("counts").late == 0


@pytest.mark.parametrize("after", [1, 3])
def test_duplicates_are_known_after_a_change_of_parallelism(after: int) -> None:
    operator = next(op for op in deduplicating("first").operators if op.name == "once")
    written: dict[str, list[Any]] = {port: [] for port in operator.outputs}
    before = operator.kernel(written)
    before.process(0, [(9, None, ("a", 1)), (9, None, ("b", 1))])
    before.advance(12)
    for names in (["a", "b"],) if after == 1 else (["a"], ["b"], []):
        kernel = operator.kernel(written)
        for name in names:
            (row,) = [row for known, row in before.spaces()["state"].everything() if known == name]
            kernel.spaces()["state"].load(name, row)
            kernel.loaded("state", None, name, row)
        kernel.adopt([before.scalars()])
        written["main"].clear()
        kernel.process(0, [(10, None, (name, 2)) for name in names] + [(5, None, ("c", 1))])
        assert written["main"] == []
        assert written["late"].pop() == (5, None, ("c", 1))
        assert kernel.duplicates == len(names)
        kernel.advance(FAR)
        assert len(kernel.spaces()["state"]) == 0


def test_state_of_another_ttl_or_of_the_other_end_is_not_taken_over() -> None:
    def shape(**options: Any) -> FlowShape:
        flow = Flow("shape")
        flow.source("items", schema=str).deduplicate("value", name="once", **options).to("out")
        return FlowShape.of(Plan.of(flow, Configuration(Tuning(dop=1))))

    old = shape(ttl="1m")
    for other, why in (
        (shape(ttl="2m"), "its ttl was 1m and is 2m"),
        (shape(ttl="1m", keep="last"), "its keep was first and is last"),
    ):
        (found,) = [f for f in compare(old, other) if f.operator == "once"]
        assert found.verdict == "incompatible"
        assert why in found.why
    (found,) = [f for f in compare(old, shape(ttl="1m", retention="2h")) if f.operator == "once"]
    assert found.verdict == "kept"


# ----------------------------------------------------------------------------- Spark's answer


@pytest.mark.spark
def test_spark_sql_keeps_the_same_of_what_is_in_order(spark: Any) -> None:
    events = [Event(n * n % 7, "u", n * n % 11 + 4 * n) for n in range(40)]
    events = sorted(events, key=lambda event: event.at)
    rows = [(place, e.id, e.at) for place, e in enumerate(events)]
    spark.createDataFrame(rows, "place int, id int, at int").createOrReplaceTempView("events")

    def ours(keep: str, ttl: int) -> list[tuple[int | None, int]]:
        flow = Flow("ours")
        once = flow.source("events", schema=Event, timestamp="at").deduplicate(
            "id", ttl=ttl, keep=keep
        )
        once.to("out")
        with Driver(flow) as driver:
            driver.push("events", *events)
            driver.finish()
            return sorted((r.value.id, r.value.at) for r in driver.read("out"))

    def theirs(kept: str) -> list[tuple[int, int]]:
        query = f"""SELECT id, at FROM (SELECT *,
            row_number() OVER (PARTITION BY id ORDER BY at, place) AS first,
            row_number() OVER (PARTITION BY id ORDER BY at DESC, place DESC) AS last,
            lead(at) OVER (PARTITION BY id ORDER BY at, place) - at AS pause
            FROM events) WHERE {kept}"""
        return sorted((row.id, row.at) for row in spark.sql(query).collect())

    assert ours("first", FAR) == theirs("first = 1")
    assert ours("last", FAR) == theirs("last = 1")
    assert ours("last", 20) == theirs("pause IS NULL OR pause >= 20")
    assert len(events) > len(ours("last", 20)) > len(ours("last", FAR))
