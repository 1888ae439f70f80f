"""What a changed program may keep of the state that another has left."""

from collections.abc import Callable
from typing import Any

import pytest

import floodway as fw
from floodway.connectors.base import SinkConnector, SourceConnector
from floodway.engine.checkpoint.records import FlowShape, OperatorShape, decode, encode
from floodway.engine.checkpoint.upgrade import Fate, compare
from floodway.plan import Configuration, Plan
from tests.engine.checkpoint.making import make_record


class Sale(fw.Record):
    shop: str
    piece: int
    price: float


class Dated(fw.Record):
    shop: str
    piece: int
    price: float
    at: int


class Numbered(fw.Record):
    shop: int
    piece: int
    price: float


class Once(SinkConnector):
    delivery: Any = "exactly once"


class OnceElsewhere(SinkConnector):
    delivery: Any = "exactly once"


class Often(SinkConnector):
    delivery: Any = "at least once"


class Left(SourceConnector):
    pass


class Right(SourceConnector):
    pass


def add(time: int, key: Any, value: Any, state: Any) -> Any:
    return state, []


def take(time: int, key: Any, value: Any, state: Any) -> Any:
    return state, []


def shape(build: Callable[[fw.Flow], object], *, dop: int = 1, key_groups: int = 128) -> FlowShape:
    flow = fw.Flow("shop", key_groups=key_groups)
    build(flow)
    return FlowShape.of(Plan.of(flow, Configuration(fw.Tuning(dop=dop))))


def sales(flow: fw.Flow, schema: Any = Sale, *, name: str = "sales") -> fw.Stream:
    return flow.source(name, schema=schema)


def counted(
    *,
    by: str = "shop",
    schema: Any = Sale,
    window: Any = None,
    retention: Any = None,
    name: str = "counts",
    versions: bool = False,
    function: Any = None,
) -> Callable[[fw.Flow], object]:
    def build(flow: fw.Flow) -> object:
        grouped: Any = sales(flow, schema).group_by(by)
        windowed = grouped.window(window) if window else grouped
        options = {"retention": retention, "versions": versions, "name": name}
        return windowed.agg(total=function or fw.count(), **options)

    return build


def finding(name: str, old: FlowShape, new: FlowShape) -> Fate:
    (found,) = (each for each in compare(old, new) if each.operator == name)
    return found


def verdicts(old: FlowShape, new: FlowShape) -> dict[str, str]:
    return {each.operator: each.verdict for each in compare(old, new)}


BASE = shape(counted(window=fw.tumbling("10s")))


def test_the_same_flow_keeps_everything() -> None:
    assert [str(each) for each in compare(BASE, shape(counted(window=fw.tumbling("10s"))))] == [
        "sales: kept: it goes on where it was",
        "counts: kept: its state is what it was",
    ]


def test_shape_survives_a_commit_record() -> None:
    record = make_record(1)
    record.shape = BASE
    assert decode(encode(record)).shape == BASE


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (counted(by="piece", window=fw.tumbling("10s")), "key was shop STRING and is piece BIGINT"),
        (counted(schema=Numbered, window=fw.tumbling("10s")), "shop STRING and is shop BIGINT"),
        (counted(window=fw.tumbling("20s")), "window was tumbling(10s) and is tumbling(20s)"),
        (counted(window=fw.session("10s")), "window was tumbling(10s) and is session(10s)"),
        (counted(), "window was tumbling(10s) and is none"),
        (
            counted(window=fw.tumbling("10s"), function=fw.sum("piece")),
            "function was total=count() and is total=sum(piece)",
        ),
        (
            counted(window=fw.tumbling("10s"), function=fw.mean("price")),
            "value was STRUCT<total: BIGINT> and is STRUCT<total: DOUBLE>",
        ),
        (
            counted(window=fw.tumbling("10s"), versions=True),
            "versions was the latest and is all within retention",
        ),
        (
            lambda flow: sales(flow).filter("price > 0", name="counts"),
            "kind was aggregate and is filter",
        ),
        (
            lambda flow: flow.table("counts", schema=int, key=str),
            "its kind was aggregate and is materialize",
        ),
    ],
)
def test_state_of_another_kind_is_incompatible(new: Callable[[fw.Flow], object], why: str) -> None:
    found = finding("counts", BASE, shape(new))
    assert found.verdict == "incompatible"
    assert why in found.why


def test_another_retention_keeps_the_state_and_is_mentioned() -> None:
    found = finding("counts", BASE, shape(counted(window=fw.tumbling("10s"), retention="2h")))
    assert found.verdict == "kept"
    assert found.why == "retention was 1h and is 2h: it holds from now on"


def test_another_dop_deals_the_state_out_anew() -> None:
    new = shape(counted(window=fw.tumbling("10s")), dop=3)
    found = finding("counts", BASE, new)
    assert found.verdict == "kept"
    assert found.why == "dop was 1 and is 3: its state is dealt out anew"


def test_another_number_of_key_groups_is_incompatible_with_all_state() -> None:
    def build(flow: fw.Flow) -> None:
        counted()(flow)
        flow.table("prices", schema=int, key=str)

    old, new = shape(build), shape(build, key_groups=64)
    for name in ("counts", "prices"):
        found = finding(name, old, new)
        assert (found.verdict, found.why) == ("incompatible", "key_groups was 128 and is 64")


def test_columns_that_the_state_does_not_have_do_not_matter() -> None:
    assert verdicts(BASE, shape(counted(schema=Dated, window=fw.tumbling("10s")))) == {
        "sales": "kept",
        "counts": "kept",
    }


def test_renamed_operator_starts_empty_and_the_old_state_is_dropped() -> None:
    new = shape(counted(window=fw.tumbling("10s"), name="numbers"))
    assert [str(each) for each in compare(BASE, new)] == [
        "sales: kept: it goes on where it was",
        "numbers: new: it starts empty",
        "counts: dropped: the flow has no counts any more: its state is not read",
    ]


def test_operators_without_state_do_not_matter() -> None:
    def build(flow: fw.Flow) -> object:
        return sales(flow).filter("price > 1").map("upper(shop)").merge(sales(flow, str, name="b"))

    assert verdicts(shape(build), shape(build)) == {"sales": "kept", "b": "kept"}


# ---------------------------------------------------------------------- operators with state


def joined(schema: Any, *, within: str = "10s", how: Any = "inner") -> Callable[[fw.Flow], object]:
    def build(flow: fw.Flow) -> object:
        left = sales(flow, schema, name="left").key_by("shop")
        right = sales(flow, Sale, name="right").key_by("shop")
        joiner = {"joiner": lambda a, b: 1, "schema": int}
        return left.join(right, within=within, how=how, name="pairs", **joiner)

    return build


def looked_up(late_updates: Any = "correct", *, broadcast: bool = False) -> Any:
    def build(flow: fw.Flow) -> object:
        prices = flow.table("prices", schema=float, key=str)
        joiner = {"joiner": lambda a, b: 1, "schema": int}
        options = {"late_updates": late_updates, "broadcast": broadcast}
        return sales(flow).join(prices, on="shop", name="priced", **options, **joiner)

    return build


def processed(update: Any) -> Callable[[fw.Flow], object]:
    def build(flow: fw.Flow) -> object:
        keyed = sales(flow).key_by("shop")
        return keyed.process(init=lambda key: 0, update=update, schema=int, name="own")

    return build


def subscribed(emit: Any) -> Callable[[fw.Flow], object]:
    def build(flow: fw.Flow) -> object:
        counts = sales(flow).group_by("shop").window(fw.tumbling("10s")).count(name="counts")
        return counts.changes(emit=emit, name="updates")

    return build


@pytest.mark.parametrize(
    ("name", "old", "new", "why"),
    [
        ("pairs", joined(Sale), joined(Dated), "value of input 1 was STRUCT<shop"),
        ("pairs", joined(Sale), joined(Sale, within="20s"), "within was 10s and is 20s"),
        ("pairs", joined(Sale), joined(Sale, how="left"), "how was inner and is left"),
        ("priced", looked_up(), looked_up("ignore"), "kernel was LookupJoinKernel"),
        ("priced", looked_up(), looked_up(broadcast=True), "table was none and is copied"),
        ("own", processed(add), processed(take), "update was add and is take"),
        (
            "updates",
            subscribed(fw.emit.final()),
            subscribed(fw.emit.at_most_every("1s")),
            "emit was final and is at most every 1s",
        ),
    ],
)
def test_each_operator_knows_what_its_state_depends_on(
    name: str, old: Callable[[fw.Flow], object], new: Callable[[fw.Flow], object], why: str
) -> None:
    assert verdicts(shape(old), shape(old))[name] == "kept"
    found = finding(name, shape(old), shape(new))
    assert found.verdict == "incompatible"
    assert why in found.why


def test_numbered_name_of_something_with_state_is_warned_about() -> None:
    def build(flow: fw.Flow) -> None:
        pairs: Any = joined(Sale, how="left")(flow)
        pairs.merge(sales(flow, int, name="more")).to("out")

    found = finding("merge", shape(build), shape(build))
    assert found.verdict == "kept"
    assert "the name merge is made by counting" in found.why


def test_numbered_subscription_of_a_table_with_versions_is_warned_about() -> None:
    def build(flow: fw.Flow) -> None:
        flow.table("prices", schema=float, key=str, versions=True).changes().to("out")

    old = shape(build)
    assert "is made by counting" in finding("prices.changes", old, old).why
    without = shape(lambda flow: flow.table("prices", schema=float, key=str, versions=True))
    assert "is made by counting" in finding("prices.changes", old, without).why
    assert "is made by counting" in finding("prices.changes", without, old).why


# ---------------------------------------------------------------------- sources and sinks


def piped(source: Any, sink: Any, *, name: str = "report") -> FlowShape:
    return shape(lambda flow: flow.source("sales", source, schema=Sale).to(sink, name=name), dop=1)


def test_changed_source_cannot_go_on_where_it_was() -> None:
    found = finding("sales", piped(Left(), Often()), piped(Right(), Often()))
    assert found.verdict == "incompatible"
    assert "its connector was Left and is Right" in found.why


def test_changed_sink_is_incompatible_if_it_delivers_exactly_once() -> None:
    found = finding("report", piped(Left(), Once()), piped(Left(), OnceElsewhere()))
    assert found.verdict == "incompatible"
    assert "its connector was Once and is OnceElsewhere" in found.why
    found = finding("report", piped(Left(), Once()), piped(Left(), Often()))
    assert found.verdict == "incompatible"
    assert "its delivery was exactly once and is at least once" in found.why


def test_sinks_that_deliver_at_least_once_do_not_matter() -> None:
    assert verdicts(piped(Left(), Often()), piped(Left(), Often())) == {"sales": "kept"}
    assert verdicts(piped(Left(), Often()), piped(Left(), Once()))["report"] == "new"


def test_sources_and_sinks_come_and_go() -> None:
    old, new = piped(Left(), Once()), piped(Left(), Once(), name="summary")
    assert [str(each) for each in compare(old, new)] == [
        "sales: kept: it goes on where it was",
        "summary: new: it starts at its beginning",
        "report: dropped: the flow has no report any more: where it was is forgotten",
    ]


def test_shape_of_an_operator_says_what_is_kept() -> None:
    shapes = {each.name: each for each in piped(Left(), Once(), name="sink").operators}
    assert shapes["sales"] == OperatorShape("sales", "source", "source", connector="Left")
    assert shapes["sink"] == OperatorShape(
        "sink", "sink", "sink", numbered=True, connector="Once", delivery="exactly once"
    )
