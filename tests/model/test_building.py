"""Building a flow: nothing runs, nothing changes, names are stable."""

from pathlib import Path
from typing import Any

import pytest

import floodway as fw
from floodway import Flow, Record
from floodway.core.place import Place
from floodway.testing import Driver


class Sale(Record):
    shop: str
    price: int


class Trip(Record):
    start: int
    end: int


def explode(*_: Any) -> Any:
    raise AssertionError("building must not call user functions")


def test_building_never_runs_anything() -> None:
    flow = Flow("quiet")
    sales = flow.source("sales", schema=Sale)
    mapped = sales.map(explode, schema=Sale).filter(explode).peek(explode)
    mapped.flat_map(explode, schema=Sale).key_by(explode).process(init=explode, update=explode)
    mapped.group_by(explode).aggregate(explode, explode, explode, name="own")
    flow.explain()


def test_operators_are_immutable() -> None:
    stream = Flow("frozen").source("sales", schema=Sale).filter("price > 1")
    with pytest.raises(AttributeError):
        stream.edge.operator.name = "other"  # type: ignore[misc]


def test_using_a_stream_twice_does_not_change_it() -> None:
    flow = Flow("twice")
    sales = flow.source("sales", schema=Sale)
    cheap, dear = sales.filter("price < 10"), sales.filter("price >= 10")
    assert cheap.edge.operator.inputs == dear.edge.operator.inputs == (sales.edge,)
    assert sales.schema == cheap.schema


def test_names_of_stateful_operators_do_not_depend_on_what_is_around_them() -> None:
    def build(*, more: bool) -> Any:
        sales = Flow("names").source("sales", schema=Sale)
        if more:
            sales = sales.filter("price > 1").map("price", name="prices").filter("value > 2")
            return sales.group_by("value AS price").count()
        return sales.group_by("price").count()

    assert build(more=False).name == build(more=True).name == "count_by_price"


def test_stateless_operators_are_numbered() -> None:
    sales = Flow("numbers").source("sales", schema=Sale)
    assert sales.filter("price > 1").filter("price > 2").name == "filter_2"


def test_schemas_follow_the_operators() -> None:
    sales = Flow("schemas").source("sales", schema=Sale)
    assert str(sales.select("shop", "price / 2 AS half").schema) == (
        "Select(shop STRING NOT NULL, half DOUBLE NOT NULL)"
    )
    assert sales.with_columns(PRICE="price * 2").schema.names == ("shop", "PRICE")
    assert str(sales.map(len, schema=int).schema) == "value BIGINT NOT NULL"
    assert sales.group_by("shop").mean("price").schema.names == ("mean",)
    totals = sales.group_by("shop").agg(n=fw.count(), total=fw.sum("price"))
    assert totals.schema.names == ("n", "total")
    assert totals.key is not None
    assert totals.key.names == ("shop",)


def test_a_function_s_annotation_is_its_schema() -> None:
    class Half(Record):
        half: float

    def halve(sale: Sale) -> Half:
        return Half(sale.price / 2)

    halves = Flow("annotated").source("sales", schema=Sale).map(halve)
    assert halves.filter("half > 1").schema.names == ("half",)
    assert Flow("class").source("n", schema=float).map(Half).schema.names == ("half",)


def test_columns_of_table_and_window_can_be_named() -> None:
    sales = Flow("columns").source("sales", schema=Sale)
    counts = sales.group_by("shop").window(fw.tumbling("1m")).count()
    late = counts.filter("window_start >= 60000 AND shop <> 'a' AND count > 1")
    assert late.windowed
    per_window = counts.group_by("window_start").sum("count")
    assert per_window.key is not None
    assert per_window.key.names == ("window_start",)


def test_versions_are_kept_only_where_something_asks() -> None:
    from floodway.plan import Graph

    flow = Flow("versions")
    sales = flow.source("sales", schema=Sale)
    shops = flow.table("shops", schema=str, key=str)
    plain = sales.group_by("shop").count(name="plain")
    plain.changes().to("out")
    asked = sales.group_by("price").count(name="asked")
    mapped = asked.map_values("count + 1", name="mapped", schema=int)
    sales.join(mapped, on="price", joiner=lambda a, b: b).to("joined")
    shops.join(plain, joiner=lambda a, b: b, name="latest")
    assert Graph.of(flow).versioned == {"asked", "mapped"}


EXPLAINED = """\
flow explained: 5 operators

sales  (source: stream)
  schema     Sale(shop STRING NOT NULL, price BIGINT NOT NULL)
  time       price

filter  (filter: stream)
  from       sales
  schema     Sale(shop STRING NOT NULL, price BIGINT NOT NULL)
  where      price > 3

sum_by_shop  (aggregate: table)
  from       filter
  key        shop STRING NOT NULL
  schema     sum BIGINT NOT NULL
  by         shop
  of         sum(price)
  window     hopping(1m, advance=10s)
  retention  5m
  also       late

sum_by_shop.final  (changes: stream)
  from       sum_by_shop
  key        shop STRING NOT NULL
  schema     Change(key STRING NOT NULL, window STRUCT<start: BIGINT, end: BIGINT>, \
value BIGINT, previous BIGINT)
  emit       final

out  (sink: stream)
  from       sum_by_shop.final
  key        shop STRING NOT NULL
  schema     Change(key STRING NOT NULL, window STRUCT<start: BIGINT, end: BIGINT>, \
value BIGINT, previous BIGINT)"""


def test_explain_shows_kinds_keys_windows_and_schemas() -> None:
    flow = Flow("explained", retention="5m")
    sales = flow.source("sales", schema=Sale, timestamp="price").filter("price > 3")
    sums = sales.group_by("shop").window(fw.hopping("1m", advance="10s")).sum("price")
    sums.to("out", emit=fw.emit.final())
    assert flow.explain() == EXPLAINED


def test_a_graph_of_ten_thousand_operators_is_no_problem() -> None:
    flow = Flow("long")
    stream = flow.source("numbers", schema=int)
    for _ in range(10_000):
        stream = stream.peek(print)
    flow.check()


def test_a_table_may_be_joined_by_several_columns_without_names() -> None:
    flow = Flow("joins")
    zones = flow.table("zones", schema=str, key=int)
    pairs = flow.source("trips", schema=Trip)
    names = [
        pairs.join(zones, on=column, joiner=lambda trip, zone: zone, schema=str).name
        for column in ("start", "end", "start + 1")
    ]
    assert names == [
        "join_trips_zones_by_start",
        "join_trips_zones_by_end",
        "join_trips_zones_by_start_1",
    ]


def test_top_of_a_table_keeps_the_key_that_is_put_into_the_value() -> None:
    flow = Flow("best")
    totals = flow.source("trips", schema=Trip).group_by("start").sum("end", name="totals")
    rows = totals.map_values("struct(start, sum AS total)")
    rows.group_by("'all' AS everything").top(2, "total", name="best")
    with Driver(flow) as driver:
        driver.push_at("trips", (1, Trip(1, 5)), (2, Trip(2, 7)), (3, Trip(3, 1)))
        best = driver.table("best").lookup("all")
    assert [(row.start, row.total) for row in best] == [(2, 7), (1, 5)]


def test_place_is_called_the_same_wherever_it_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks have another current folder than the program that built the flow."""
    monkeypatch.chdir(Path(__file__).parent)
    place = Place.here()
    shown = str(place)
    monkeypatch.chdir(tmp_path)
    assert shown.startswith(f"{Path(__file__).name}:")
    assert str(place) == shown
