"""What users get wrong, and the error of each: its kind, its operator, and what its remedy says."""

from collections.abc import Callable
from functools import partial
from typing import Any

import floodway as fw
from floodway import Flow, Record
from floodway.connectors import DiscardSink, JsonLinesSource, RateSource, TcpSource
from floodway.core import errors
from floodway.core.errors import FloodwayError


class Sale(Record):
    shop: str
    price: int
    note: str | None = None


async def ask(*values: Any) -> Any:
    return values


async def ask_often(value: Any) -> Any:
    yield value


class Asker:
    async def __call__(self, value: Any) -> Any:
        return value


class DataFrame:
    """Whatever others call one."""


class Tagged(Record):
    tags: list[int]
    counts: dict[str, int]


class Parcel(Record):
    tagged: Tagged


def tagged() -> Any:
    return Flow("tagged").source("tagged", schema=Tagged)


def tags_of(value: Tagged) -> list[int]:
    return value.tags


def sales() -> Any:
    return Flow("sales").source("sales", schema=Sale)


def table(**options: Any) -> Any:
    return Flow("tables").table("shops", schema=Sale, key="shop", **options)


def unkeyed_join() -> Any:
    stream = sales()
    stream.join(stream, within="1s")


def looked_up(**options: Any) -> Any:
    stream = sales()
    stream.join(stream.flow.table("shops", schema=Sale, key="shop"), **options)


def mixed_times() -> Any:
    flow = Flow("times")
    flow.table("shops", TcpSource("127.0.0.1", 1), schema=Sale, key="shop")
    flow.source("sales", JsonLinesSource("sales.jsonl"), schema=Sale, timestamp="price")
    flow.check()


def two_flows() -> Any:
    sales().merge(sales())


def defined_twice() -> Any:
    flow = Flow("twice")
    flow.declare("later", schema=int)
    flow.define("later", flow.source("a", schema=int))
    flow.define("later", flow.source("b", schema=int))


def cycle() -> Any:
    flow = Flow("cycle")
    declared = flow.declare("loop", schema=int)
    flow.define("loop", declared.map("value + 1").filter("value < 10"))
    flow.check()


def duplicate() -> Any:
    stream = sales()
    stream.group_by("shop").count(name="counts")
    stream.group_by("price").count(name="counts")


def duplicate_default() -> Any:
    stream = sales()
    stream.group_by("shop").count()
    stream.group_by("shop").count()


def merge_different() -> Any:
    flow = Flow("merge")
    flow.source("a", schema=Sale).merge(flow.source("b", schema=int))


def undefined() -> Any:
    flow = Flow("undefined")
    flow.declare("later", schema=int).to("out")
    flow.check()


def wrongly_defined() -> Any:
    flow = Flow("wrong")
    flow.declare("later", schema=int)
    flow.define("later", flow.source("words", schema=str))


def lost_dead_letters() -> Any:
    flow = Flow("lost")
    flow.source("sales", schema=Sale).map(lambda sale: sale, on_error="dead_letter")
    flow.check()


def keys_of_different_types() -> Any:
    flow = Flow("keys")
    left, right = flow.source("l", schema=Sale), flow.source("r", schema=Sale)
    left.key_by("shop").join(right.key_by("price"), within="1s", select=["left.note"])


def both_sides_have_it() -> Any:
    flow = Flow("clash")
    left, right = flow.source("l", schema=Sale), flow.source("r", schema=Sale)
    left.join(right, on="shop", within="1s")


def joined_with_windows() -> Any:
    flow = Flow("windows")
    stream = flow.source("sales", schema=Sale)
    counts = stream.group_by("shop").window(fw.tumbling("1s")).count()
    stream.join(counts, on="shop", joiner=lambda a, b: b)


def unlike_windows() -> Any:
    stream = sales()
    short = stream.group_by("shop").window(fw.tumbling("1s")).count(name="short")
    long = stream.group_by("shop").window(fw.tumbling("2s")).count(name="long")
    short.join(long)


def updates_to_deduplicate() -> Any:
    flow = Flow("updates")
    shops = flow.table("shops", schema=str, key=str)
    updates = flow.source("sales", schema=str).join(shops, on="value", select=["left AS value"])
    updates.deduplicate("value", ttl="1s")


def updates_where_facts_belong() -> Any:
    flow = Flow("facts")
    left, right = flow.source("l", schema=Sale), flow.source("r", schema=Sale)
    joined = left.join(right, on="shop", within="1s", how="left", joiner=lambda a, b: a)
    joined.key_by(lambda value: 1).process(init=lambda key: 0, update=lambda *_: (0, []))


def updates_in_sessions() -> Any:
    flow = Flow("sessions")
    left, right = flow.source("l", schema=Sale), flow.source("r", schema=Sale)
    joined = left.join(right, on="shop", within="1s", how="left", select=["left.shop"])
    joined.group_by("shop").window(fw.session("1s")).count()


def session_versions_wanted() -> Any:
    flow = Flow("versions")
    grouped = flow.source("sales", schema=Sale).group_by("shop")
    grouped.window(fw.session("1s")).count().map_values("count + 1").join(
        flow.table("shops", schema=Sale, key="shop")
    )


def looked_up_by_array() -> Any:
    flow = Flow("arrays")
    stream = flow.source("tagged", schema=Tagged)
    stream.join(flow.table("shops", schema=Sale, key=object), on="tags")


MISTAKES: dict[str, tuple[Callable[[], Any], type[FloodwayError], str, str]] = {
    "unknown column": (
        lambda: sales().filter("prize > 3"),
        errors.UnknownColumnError,
        "filter",
        "price",
    ),
    "unknown column in select": (
        lambda: sales().select("shop", "cost * 2 AS twice"),
        errors.UnknownColumnError,
        "select",
        "price",
    ),
    "unknown column in group_by": (
        lambda: sales().group_by("town").count(),
        errors.UnknownColumnError,
        "count_by_town",
        "shop",
    ),
    "unknown timestamp": (
        lambda: Flow("time").source("sales", schema=Sale, timestamp="at"),
        errors.UnknownColumnError,
        "sales",
        "price",
    ),
    "expression on an opaque value": (
        lambda: sales().map(lambda sale: sale.price).filter("price > 3"),
        errors.UnknownColumnError,
        "filter",
        "schema=",
    ),
    "wrong type": (
        lambda: sales().filter("shop + true > 3"),
        errors.ExpressionTypeError,
        "filter",
        "",
    ),
    "condition that is no condition": (
        lambda: sales().filter("price"),
        errors.ExpressionTypeError,
        "filter",
        "compare",
    ),
    "sum of text": (
        lambda: sales().group_by("shop").sum("shop"),
        errors.ExpressionTypeError,
        "sum_by_shop",
        "cast",
    ),
    "unparsable expression": (
        lambda: sales().filter("price > > 3"),
        errors.ExpressionSyntaxError,
        "filter",
        "",
    ),
    "unknown function": (
        lambda: sales().map("frobnicate(price)"),
        errors.UnsupportedExpressionError,
        "map",
        "Python function",
    ),
    "aggregate inside an expression": (
        lambda: sales().map("sum(price)"),
        errors.UnsupportedExpressionError,
        "map",
        "group_by",
    ),
    "unnamed column": (
        lambda: sales().select("price * 2"),
        errors.FlowError,
        "select",
        "AS",
    ),
    "column twice": (
        lambda: sales().select("shop", "price AS shop"),
        errors.SchemaError,
        "select",
        "AS",
    ),
    "explode outside flat_map": (
        lambda: sales().map("explode(split(shop, ','))"),
        errors.UnsupportedExpressionError,
        "map",
        "flat_map",
    ),
    "flat_map that gives one": (
        lambda: sales().flat_map("price"),
        errors.OptionError,
        "flat_map",
        "explode",
    ),
    "holistic aggregate without a window": (
        lambda: sales().group_by("shop").collect("price"),
        errors.WindowRequiredError,
        "collect_by_shop",
        "window",
    ),
    "own holistic aggregate without a window": (
        lambda: (
            sales()
            .group_by("shop")
            .aggregate(lambda v: [v], lambda a, b: a + b, holistic=True, name="all")
        ),
        errors.WindowRequiredError,
        "all",
        "window",
    ),
    "report after the end of nothing": (
        lambda: sales().group_by("shop").count().changes(emit=fw.emit.after_window_end()),
        errors.EmitError,
        "count_by_shop.after_window_end",
        "at_most_every",
    ),
    "final result of nothing": (
        lambda: table().changes(emit=fw.emit.final()),
        errors.EmitError,
        "shops.final",
        "at_most_every",
    ),
    "aggregate of a table without subtract": (
        lambda: table().group_by("price").aggregate(lambda v: 1, lambda a, b: a + b, name="n"),
        errors.AggregateError,
        "n",
        "subtract",
    ),
    "a coroutine function": (
        lambda: sales().map(ask, name="asked"),
        errors.OptionError,
        "asked",
        "with def instead of async def",
    ),
    "an asynchronous generator": (
        lambda: sales().flat_map(ask_often, name="asked"),
        errors.OptionError,
        "asked",
        "with def",
    ),
    "a coroutine method": (
        lambda: sales().filter(Asker(), name="asked"),
        errors.OptionError,
        "asked",
        "with def",
    ),
    "a coroutine function in part": (
        lambda: sales().peek(partial(ask), name="asked"),
        errors.OptionError,
        "asked",
        "with def",
    ),
    "a coroutine function as a key": (
        lambda: sales().key_by(ask, name="asked"),
        errors.OptionError,
        "asked",
        "with def",
    ),
    "a coroutine function as a timestamp": (
        lambda: Flow("asked").source("asked", schema=Sale, timestamp=ask),
        errors.OptionError,
        "asked",
        "with def",
    ),
    "a coroutine function in process": (
        lambda: sales().key_by("shop").process(init=lambda key: 0, update=ask, name="asked"),
        errors.OptionError,
        "asked",
        "with def",
    ),
    "a coroutine function in a window": (
        lambda: (
            sales()
            .group_by("shop")
            .window(fw.tumbling("1s"))
            .process(init=lambda key: 0, update=ask, finalize=lambda *_: [], name="asked")
        ),
        errors.OptionError,
        "asked",
        "with def",
    ),
    "a coroutine function as joiner": (
        lambda: looked_up(on="shop", joiner=ask, name="asked"),
        errors.OptionError,
        "asked",
        "with def",
    ),
    "a DataFrame as source": (
        lambda: Flow("frame").source("frame", DataFrame(), schema=Sale),
        errors.OptionError,
        "frame",
        "ParquetSource",
    ),
    "a DataFrame as table": (
        lambda: Flow("frame").table("frame", DataFrame(), schema=Sale, key="shop"),
        errors.OptionError,
        "frame.changelog",
        "ParquetSource",
    ),
    "a DataFrame as sink": (
        lambda: sales().to(DataFrame(), name="frame"),
        errors.OptionError,
        "frame",
        "ParquetSink",
    ),
    "a list as source": (
        lambda: Flow("list").source("list", [1, 2], schema=int),
        errors.OptionError,
        "list",
        "ListSource",
    ),
    "a function as sink": (
        lambda: sales().to(print, name="out"),
        errors.OptionError,
        "out",
        "CallbackSink",
    ),
    "a class as source": (
        lambda: Flow("class").source("numbers", RateSource, schema=int),
        errors.OptionError,
        "numbers",
        "RateSource(...)",
    ),
    "a source as sink": (
        lambda: sales().to(RateSource(1), name="out"),
        errors.OptionError,
        "out",
        "it is a source",
    ),
    "a sink as source": (
        lambda: Flow("sink").source("in", DiscardSink(), schema=int),
        errors.OptionError,
        "in",
        "it is a sink",
    ),
    "nothing as sink": (
        lambda: sales().to(None, name="out"),
        errors.OptionError,
        "out",
        "SinkConnector",
    ),
    "duplicate names": (duplicate, errors.DuplicateNameError, "counts", "name="),
    "duplicate names by default": (
        duplicate_default,
        errors.DuplicateNameError,
        "count_by_shop",
        "name=",
    ),
    "a name that is none": (
        lambda: sales().filter("price > 1", name="../evil"),
        errors.OptionError,
        "../evil",
        "letters",
    ),
    "a cycle": (cycle, errors.CycleError, "loop", "does not depend"),
    "an undefined stream": (undefined, errors.UndefinedError, "later", "flow.define"),
    "a stream that is not what was declared": (
        wrongly_defined,
        errors.SchemaError,
        "later",
        "same",
    ),
    "defining what was not declared": (
        lambda: Flow("none").define("nothing", sales()),
        errors.UndefinedError,
        "nothing",
        "declare",
    ),
    "an aggregate called like an option": (
        lambda: sales().group_by("shop").agg(name=fw.count()),
        errors.OptionError,
        "agg",
        "its_name",
    ),
    "a group of arrays": (
        lambda: tagged().group_by("tags").count(),
        errors.ExpressionTypeError,
        "count_by_tags",
        "tuple(v.tags)",
    ),
    "a group of arrays in windows": (
        lambda: tagged().group_by("tags").window(fw.tumbling("1s")).count(),
        errors.ExpressionTypeError,
        "count_by_tags",
        "tags[0]",
    ),
    "a group of maps": (
        lambda: tagged().group_by("counts").count(),
        errors.ExpressionTypeError,
        "count_by_counts",
        "tuple(sorted(v.counts.items()))",
    ),
    "a group of structs with arrays": (
        lambda: Flow("parcels").source("parcels", schema=Parcel).group_by("tagged").count(),
        errors.ExpressionTypeError,
        "count_by_tagged",
        "fields",
    ),
    "a group that is one of several and an array": (
        lambda: tagged().group_by("size(tags) AS n", tags_of).count(),
        errors.ExpressionTypeError,
        "count_by_n_tags_of",
        "tuple(",
    ),
    "a key that is an array": (
        lambda: tagged().key_by("tags"),
        errors.ExpressionTypeError,
        "key_by",
        "tuple(",
    ),
    "a join on arrays": (
        lambda: tagged().join(tagged(), on="tags", within="1s"),
        errors.ExpressionTypeError,
        "key_by",
        "tuple(",
    ),
    "a look-up of an array": (
        looked_up_by_array,
        errors.ExpressionTypeError,
        "join_tagged_shops_by_tags",
        "tuple(",
    ),
    "a table with an array as key": (
        lambda: Flow("keys").table("tags", schema=Tagged, key="tags"),
        errors.ExpressionTypeError,
        "tags.changelog",
        "tuple(",
    ),
    "a table whose keys come along as maps": (
        lambda: Flow("keys").table("tags", schema=int, key=dict[str, int]),
        errors.ExpressionTypeError,
        "tags.changelog",
        "tuple(",
    ),
    "a declared stream with an array as key": (
        lambda: Flow("keys").declare("tags", schema=Tagged, key="tags"),
        errors.ExpressionTypeError,
        "tags",
        "tuple(",
    ),
    "a group of everything": (
        lambda: sales().group_by().count(),
        errors.UnkeyedError,
        "count",
        "'all' AS everything",
    ),
    "text beside a number": (
        lambda: sales().filter("shop > 5"),
        errors.ExpressionTypeError,
        "filter",
        "CAST(shop AS BIGINT)",
    ),
    "unkeyed join": (
        unkeyed_join,
        errors.UnkeyedError,
        "join_sales_sales",
        "key_by",
    ),
    "times of events and of a clock": (
        mixed_times,
        errors.MixedTimesError,
        "shops.changelog",
        "timestamp=",
    ),
    "unkeyed look-up": (
        looked_up,
        errors.UnkeyedError,
        "join_sales_shops",
        "on=",
    ),
    "unkeyed process": (
        lambda: sales().process(init=lambda key: 0, update=lambda *_: (0, [])),
        errors.UnkeyedError,
        "process_lambda",
        "key_by",
    ),
    "deduplicating by nothing": (
        lambda: sales().deduplicate(ttl="1s"),
        errors.OptionError,
        "deduplicate",
        "deduplicate('",
    ),
    "deduplicating by what cannot be a key": (
        lambda: tagged().deduplicate("tags", ttl="1s"),
        errors.ExpressionTypeError,
        "deduplicate_by_tags",
        "tags[0]",
    ),
    "deduplicating for no time": (
        lambda: sales().deduplicate("shop", ttl="0s"),
        errors.DurationError,
        "deduplicate_by_shop",
        "10s",
    ),
    "keeping what is neither first nor last": (
        lambda: sales().deduplicate("shop", ttl="1s", keep="any"),
        errors.OptionError,
        "deduplicate_by_shop",
        "first, last",
    ),
    "deduplicating a table": (
        lambda: table().deduplicate("shop", ttl="1s"),
        errors.StreamRequiredError,
        "shops",
        ".changes().deduplicate(...)",
    ),
    "deduplicating updates": (
        updates_to_deduplicate,
        errors.OptionError,
        "deduplicate_by_value",
        "lazy",
    ),
    "unkeyed table": (
        lambda: sales().to_table(name="latest"),
        errors.UnkeyedError,
        "latest",
        "key_by",
    ),
    "grouping by nothing": (
        lambda: sales().group_by().count(),
        errors.UnkeyedError,
        "count",
        "group_by('",
    ),
    "grouping a table by nothing": (
        lambda: table().group_by().count(),
        errors.UnkeyedError,
        "count",
        "group_by('",
    ),
    "keys of different types": (
        keys_of_different_types,
        errors.ExpressionTypeError,
        "join_key_by_key_by_2",
        "CAST",
    ),
    "a column on both sides": (
        both_sides_have_it,
        errors.SchemaError,
        "join_key_by_key_by_2",
        "select=",
    ),
    "look-up in a windowed table": (
        joined_with_windows,
        errors.OptionError,
        "join_sales_count_by_shop_by_shop",
        "without windows",
    ),
    "tables with unlike windows": (unlike_windows, errors.OptionError, "join_short_long", "same"),
    "updates where facts belong": (
        updates_where_facts_belong,
        errors.OptionError,
        "process_lambda",
        "lazy",
    ),
    "updates in sessions": (
        updates_in_sessions,
        errors.AggregateError,
        "count_by_shop",
        "lazy",
    ),
    "merge of unlike streams": (merge_different, errors.SchemaError, "merge", "same"),
    "dead letters that go nowhere": (lost_dead_letters, errors.OptionError, "map", "dead_letters"),
    "a policy that is none": (
        lambda: sales().map(lambda sale: sale, on_error="ignore"),
        errors.OptionError,
        "map",
        "skip",
    ),
    "a join that is none": (
        lambda: looked_up(on="shop", how="outer"),
        errors.OptionError,
        "join_sales_shops_by_shop",
        "inner, left",
    ),
    "neither expression nor function": (
        lambda: sales().map(5),
        errors.OptionError,
        "map",
        "Python function",
    ),
    "streams of two flows": (two_flows, errors.OptionError, "merge", "one flow"),
    "a stream that is defined twice": (defined_twice, errors.DuplicateNameError, "later", "once"),
    "a flow without a name": (lambda: Flow("my flow!"), errors.OptionError, "my flow!", "letters"),
    "a flow that keeps nothing": (
        lambda: Flow("f", retention="soon"),
        errors.DurationError,
        "f",
        "10s",
    ),
    "a timestamp that is text": (
        lambda: Flow("time").source("sales", schema=Sale, timestamp="shop"),
        errors.ExpressionTypeError,
        "sales",
        "to_timestamp",
    ),
    "a table's key that is none": (
        lambda: Flow("keys").table("shops", schema=Sale, key=None),
        errors.OptionError,
        "shops.changelog",
        "column",
    ),
    "streams joined for ever": (
        lambda: sales().join(sales(), on="shop"),
        errors.OptionError,
        "join",
        "within='10s'",
    ),
    "a table joined within a time": (
        lambda: looked_up(within="1s"),
        errors.OptionError,
        "join",
        "late_updates",
    ),
    "windows that are none": (
        lambda: sales().group_by("shop").window("10s"),
        errors.OptionError,
        "window",
        "tumbling('10s')",
    ),
    "a strategy that is none": (
        lambda: sales().group_by("shop").count().changes(emit="final"),
        errors.EmitError,
        "count_by_shop.changes",
        "emit.final()",
    ),
    "a strategy that was not called": (
        lambda: sales().group_by("shop").count().changes(emit=fw.emit.final),
        errors.EmitError,
        "count_by_shop.changes",
        "emit.final()",
    ),
    "windows without a size": (
        lambda: fw.tumbling("wide"),
        errors.DurationError,
        "tumbling",
        "10s",
    ),
    "no columns": (lambda: sales().select(), errors.SchemaError, "select", "column"),
    "no key": (lambda: sales().key_by(), errors.OptionError, "key_by", "key_by('"),
    "no aggregate": (
        lambda: sales().group_by("shop").agg(name="nothing"),
        errors.OptionError,
        "nothing",
        "fw.count()",
    ),
    "an aggregate that is none": (
        lambda: sales().group_by("shop").agg(total="sum(price)"),
        errors.OptionError,
        "total_by_shop",
        "fw.sum",
    ),
    "an option that is none": (
        lambda: sales().group_by("shop").count(nane="x"),
        errors.OptionError,
        "aggregate",
        "retention",
    ),
    "late records where none are late": (
        lambda: sales().late,
        errors.UndefinedError,
        "sales",
        "window",
    ),
    "dead letters without the policy": (
        lambda: sales().dead_letters,
        errors.UndefinedError,
        "sales",
        "on_error",
    ),
    "sessions for process": (
        lambda: (
            sales()
            .group_by("shop")
            .window(fw.session("1s"))
            .process(
                init=lambda k, w: 0,
                update=lambda t, k, w, v, s: s,
                finalize=lambda k, w, s: [],
                name="sessions",
            )
        ),
        errors.OptionError,
        "sessions",
        "aggregate",
    ),
    "versions of sessions": (
        lambda: sales().group_by("shop").window(fw.session("1s")).count(versions=True),
        errors.OptionError,
        "count_by_shop",
        "tumbling",
    ),
    "a bad retention": (
        lambda: sales().group_by("shop").count(retention="soon"),
        errors.DurationError,
        "count_by_shop",
        "10s",
    ),
    "top of nothing": (
        lambda: sales().group_by("shop").top(0, "price"),
        errors.OptionError,
        "top_by_shop",
        "at least 1",
    ),
}
