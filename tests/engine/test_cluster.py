"""The data stream engine gives the reference's answers, however a flow is spread and batched."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Flow, Record, emit, tumbling
from floodway.core.errors import OperatorError
from floodway.engine.datastream.task import Task
from floodway.engine.transport.frame import parse
from floodway.model.tuning import Batching, Tuning
from floodway.plan import Configuration, Plan
from floodway.testing import Driver
from floodway.testing.equivalence import equivalent, fold, latest
from floodway.testing.strategies import changelogs, cuts, skewed, streams


class Sale(Record):
    shop: str
    pieces: int


SALES = streams(st.builds(Sale, skewed("abcd"), st.integers(0, 9)), max_time=40, max_size=15)
PRICES = changelogs(skewed("abcd"), st.integers(1, 9), max_time=40, max_size=8)
TUNINGS = st.builds(
    Tuning,
    dop=st.integers(1, 4),
    b_out=st.integers(1, 6),
    batching=st.sampled_from(["distinct", "shared"]),
)


def everything() -> Flow:
    """A flow with every way of spreading records, and with shared readers and a diamond."""
    flow = Flow("everything", retention="1h")
    sales = flow.source("sales", schema=Sale)
    prices = flow.table("prices", schema=int, key=str)
    spread = sales.rebalance(name="spread").filter("pieces <> 4", name="kept").isolate()
    ranges = spread.range_by("pieces", [2, 5, 7], name="ranges").map("pieces * 2", name="twice")
    ranges.to("ranges_out")
    priced = sales.join(
        prices, on="shop", how="left", joiner=total, schema=int, broadcast=True, name="priced",
        late_updates="ignore",
    )  # fmt: skip
    priced.to("priced_out")
    sales.join(prices, on="shop", joiner=total, schema=int, name="corrected").to("corrected_out")
    counts = spread.group_by("shop").count(name="counts")
    counts.changes(name="changes").to("counts_out")
    sums = spread.group_by("pieces").sum("pieces", name="sums").tune(dop=2)
    sums.changes(name="sum_changes").map(lambda c: c.value, schema=int, name="values").merge(
        ranges, name="both"
    ).group_by("value % 3 AS third").count(name="thirds")
    windows = spread.group_by("shop").window(tumbling(10)).count(name="windows")
    windows.changes(emit=emit.final(), name="finals").to("finals_out")
    return flow


def total(sale: Sale, price: int | None) -> int:
    return sale.pieces * (price or 0)


def drive(driver: Driver, pushes: list[Any], updates: list[Any]) -> None:
    """Bring in updates and pushes in turn."""
    for time, key, value in updates[: len(updates) // 2]:
        driver.update("prices", key, value, at=time)
    for push in pushes:
        driver.push_at("sales", *push)
    for time, key, value in updates[len(updates) // 2 :]:
        driver.update("prices", key, value, at=time)
    driver.finish()


@settings(max_examples=40)
@given(st.data(), SALES, PRICES, TUNINGS, st.booleans())
def test_any_configuration_gives_the_answers_of_the_reference(
    data: st.DataObject, sales: list[Any], prices: list[Any], tuning: Tuning, restarts: bool
) -> None:
    pushes = data.draw(cuts(sales))
    reference = Driver(everything())
    engine = Driver(
        everything(), engine="data", configuration=Configuration(tuning), restarts=restarts
    )
    for driver in (reference, engine):
        drive(driver, pushes, prices)
    for sink in ("ranges_out", "priced_out", "corrected_out", "finals_out"):
        one, other = reference.read(sink), engine.read(sink)
        assert equivalent(one, other), (sink, latest(one), latest(other))
    assert fold(engine.read("counts_out")) == fold(reference.read("counts_out"))
    for table in ("counts", "sums", "windows"):
        assert engine.table(table).values() == reference.table(table).values()
    assert engine.stats("kept").received == reference.stats("kept").received == len(sales)


def spread_of(flow: Flow, dop: int) -> dict[str, str]:
    plan = Plan.of(flow, Configuration(Tuning(dop=dop)))
    return {r.operator: str(e.partitioning) for e in plan.exchanges for r in e.readers}


def test_flow_of_this_test_has_every_way_of_spreading() -> None:
    spreads = {text.partition("(")[0] for text in spread_of(everything(), 3).values()}
    assert spreads == {"random", "hash", "range", "broadcast", "forward"}


def windows(dop: int) -> Flow:
    flow = Flow("windows")
    counts = flow.source("clicks", schema=str).group_by("value AS page").window(tumbling(10))
    table = counts.count(name="counts")
    table.changes(emit=emit.final(), name="finals").tune(dop=dop).to("out")
    return flow


@settings(max_examples=40)
@given(streams(skewed("abc"), max_time=30, max_size=20), st.integers(1, 4), st.integers(1, 4))
def test_changes_of_a_row_stay_together_where_the_dop_differs(
    clicks: list[Any], before: int, after: int
) -> None:
    """Spread at random, each task would hand out a final result of its own for a window."""
    reference = Driver(windows(after))
    engine = Driver(
        windows(after), engine="data", configuration=Configuration(Tuning(dop=before, b_out=1))
    )
    for driver in (reference, engine):
        for click in clicks:
            driver.push_at("clicks", click)
        driver.finish()
    assert equivalent(engine.read("out"), reference.read("out"))


def merged(*, direct_first: bool) -> Flow:
    flow = Flow("diamond")
    words = flow.source("words", schema=str)
    counts = words.group_by("value AS word").count(name="counts")
    around = counts.changes(name="changes").map(lambda c: f"{c.key}{c.value}", schema=str)
    (words.merge(around) if direct_first else around.merge(words)).to("out")
    return flow


@pytest.mark.parametrize("direct_first", [True, False])
def test_diamond_counts_each_word_in_one_place(direct_first: bool) -> None:
    driver = Driver(
        merged(direct_first=direct_first),
        engine="data",
        configuration=Configuration(Tuning(dop=3)),
    )
    for _ in range(4):  # each push through another task of the source
        driver.push("words", "a", "b", at=1)
    assert driver.table("counts").values() == {"a": 4, "b": 4}
    values = Counter(record.value for record in driver.read("out"))
    assert values == {"a": 4, "b": 4} | {f"{w}{n}": 1 for w in "ab" for n in range(1, 5)}


@pytest.mark.parametrize("batching", ["distinct", "shared"])
def test_shared_readers_get_all_records(batching: Batching) -> None:
    flow = Flow("readers")
    words = flow.source("words", schema=str).tune(b_out=3, batching=batching)
    words.group_by("value AS word").count(name="counts").tune(dop=2)
    words.group_by("length(value) AS size").count(name="sizes").tune(dop=3)
    driver = Driver(flow, engine="data")
    driver.push("words", *("a", "bb", "a", "ccc", "bb", "a", "d"), at=1)
    assert driver.table("counts").values() == {"a": 3, "bb": 2, "ccc": 1, "d": 1}
    assert driver.table("sizes").values() == {1: 4, 2: 2, 3: 1}


def test_function_that_breaks_its_promise_is_named() -> None:
    flow = Flow("promise")
    numbers = flow.source("numbers", schema=int).map(str, schema=int, name="liar")
    numbers.group_by("value AS number").count(name="counts")
    driver = Driver(flow, engine="data")
    with pytest.raises(OperatorError, match="the schema says") as caught:
        driver.push("numbers", 5)
    assert caught.value.operator == "liar"


def test_merge_of_streams_with_and_without_key() -> None:
    """The result has no key to speak of, and its records may have one all the same."""
    flow = Flow("keys")
    numbers = flow.source("numbers", schema=int)
    keyed = numbers.key_by("value % 2 AS odd", "value % 3 AS third", name="keyed")
    keyed.merge(numbers, name="both").group_by("value AS number").count(name="counts")
    driver = Driver(flow, engine="data", configuration=Configuration(Tuning(dop=2)))
    driver.push("numbers", 1, 2, 1, at=1)
    assert driver.table("counts").values() == {1: 4, 2: 2}


def test_dead_letter_of_a_source_travels_with_the_key_that_came() -> None:
    flow = Flow("letters")
    sales = flow.source("sales", schema=Sale, on_error="dead_letter")
    sales.to("out")
    sales.dead_letters.map("error", name="errors").isolate().to("rejects")
    plan = Plan.of(flow)
    sent: list[tuple[int, bytes]] = []
    tasks = [
        Task(plan, stage, 0, lambda n, frame: sent.append((n, frame))) for stage in plan.stages
    ]
    source = next(task for task in tasks if task.stage.sources)
    source.feed_raw("sales", [(1, b"key", {"shop": "a", "pieces": "many"})], 0, keyed=True)
    source.flush()
    for number, frame in sent:
        tasks[number].receive(parse(frame), frame)
        assert tasks[number].step(0)
        tasks[number].flush()
    (rejects,) = (
        node for task in tasks for name, node in task.program.sinks.items() if name == "rejects"
    )
    assert ["pieces" in row[2] for row in rejects.collect()] == [True]


def test_updates_of_one_record_stay_together_where_the_number_of_tasks_changes() -> None:
    flow = Flow("updates")
    left = flow.source("left", schema=str).key_by("substr(value, 1, 1) AS letter")
    right = flow.source("right", schema=str).key_by("substr(value, 1, 1) AS letter")
    joined = left.join(
        right, within=10, how="full", joiner=lambda a, b: f"{a}-{b}", schema=str, name="joined"
    )
    joined.tune(dop=3).rebalance(name="spread").tune(dop=2).map("upper(value)").to("out")
    plan = Plan.of(flow)
    assert [str(e.partitioning) for e in plan.exchanges if e.edge.operator.name == "joined"] == [
        "by id"
    ]
    pushes = [(side, i, f"{letter}{i}") for i, letter in enumerate("abcab" * 4) for side in "lr"]
    results = []
    for engine in ("reference", "data"):
        with Driver(flow, engine=engine) as driver:
            for side, time, value in pushes:
                driver.push({"l": "left", "r": "right"}[side], value, at=time)
        results.append(Counter(record.value for record in latest(driver.read("out"))))
    assert results[0] == results[1]
