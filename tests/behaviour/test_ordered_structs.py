"""min, max and top by records: field by field, null first, as Spark orders structs."""

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow
from floodway.core.errors import ExpressionTypeError
from floodway.testing.strategies import skewed, streams
from tests.engines import Engine


class Point(fw.Record):
    """A place with a name that may be missing."""

    x: int
    name: str | None = None


class Seen(fw.Record):
    """A place seen by somebody."""

    who: str
    point: Point
    maybe: Point | None = None


POINTS = st.builds(Point, st.integers(0, 2), st.sampled_from(["a", "b", None]))
SEEN = streams(st.builds(Seen, skewed("ab"), POINTS, st.none() | POINTS), max_time=20, max_size=8)


@cache
def flow_of() -> Flow:
    flow = Flow("seen")
    seen = flow.source("seen", schema=Seen)
    for name, of in (("point", "point"), ("maybe", "maybe"), ("made", "(point.name, point.x)")):
        grouped = seen.group_by("who")
        grouped.agg(low=fw.min(of), high=fw.max(of), name=f"{name}_ends")
        grouped.top(2, of, name=f"{name}_top")
    latest = seen.key_by("who").to_table(name="latest")
    latest.group_by("'all' AS everybody").agg(high=fw.max("point"), name="of_table")
    return flow


def rank(point: Point | None) -> tuple[Any, ...]:
    assert point is not None
    return point.x, point.name is not None, point.name or ""


def turned(point: Point) -> tuple[Any, ...]:
    return point.name is not None, point.name or "", point.x


@settings(max_examples=60)
@given(stream=SEEN)
def test_records_are_ordered_field_by_field(engine: Engine, stream: Any) -> None:
    values = [value for _, value in stream]
    with engine(flow_of()) as driver:
        driver.push_at("seen", *stream)
        for who in {value.who for value in values}:
            own = [value for value in values if value.who == who]
            points = [value.point for value in own]
            ends = driver.table("point_ends").lookup(who)
            assert (ends.low, ends.high) == (min(points, key=rank), max(points, key=rank))
            made = driver.table("made_ends").lookup(who)
            last = max(points, key=turned)
            assert (made.high.name, made.high.x) == (last.name, last.x)
            some = [value.maybe for value in own if value.maybe is not None]
            ends = driver.table("maybe_ends").lookup(who)
            assert ends.high == max(some, key=rank, default=None)
            best = driver.table("point_top").lookup(who)
            ranks = sorted((rank(point) for point in points), reverse=True)
            assert [rank(value.point) for value in best] == ranks[:2]
        rows = {key: value for key, (_, value) in driver.table("latest").rows().items()}
        if rows:
            highest = max((value.point for value in rows.values()), key=rank)
            assert driver.table("of_table").lookup("all").high == highest


def test_what_has_no_order_is_refused_when_the_flow_is_built() -> None:
    class Tagged(fw.Record):
        tags: dict[str, int]

    grouped = Flow("tagged").source("tagged", schema=Tagged).group_by("size(tags) AS n")
    for build in (lambda: grouped.max("tags"), lambda: grouped.top(2, "tags")):
        with pytest.raises(ExpressionTypeError, match="have an order"):
            build()
    with pytest.raises(ExpressionTypeError, match="have an order"):
        grouped.top(2)
