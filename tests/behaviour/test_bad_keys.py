"""A value that cannot be a key is a bad record: the ``on_error`` of who makes the key decides."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow
from floodway.core.errors import OperatorError
from tests.engines import Engine

GOOD, BAD = {"k": 1}, {"k": [1]}


def k(value: dict[str, Any]) -> Any:
    return value["k"]


def both(left: Any, right: Any) -> Any:
    return (left, right)


def stream(flow: Flow) -> Any:
    return flow.source("in", schema=dict)


def rows(flow: Flow) -> Any:
    """A table of what is pushed, each value in a row of its own."""
    return stream(flow).key_by(str).to_table(name="rows")


def others(flow: Flow) -> Any:
    return flow.table("others", schema=int, key=object)


def counted_updates(flow: Flow, **options: Any) -> Any:
    joined = stream(flow).join(others(flow), on=str, how="left", joiner=lambda v, _: v)
    return joined.group_by(k).count(**options)


def processed(flow: Flow, **options: Any) -> Any:
    return (
        stream(flow)
        .group_by(k)
        .window(fw.tumbling(5))
        .process(
            init=lambda group, window: 0,
            update=lambda time, group, window, value, state: state + 1,
            finalize=lambda group, window, state: [(window.start, group, state)],
            **options,
        )
    )


OPERATORS: dict[str, Callable[..., Any]] = {
    "key_by": lambda flow, **o: stream(flow).key_by(k, **o),
    "key_by two": lambda flow, **o: stream(flow).key_by("1 AS one", k, **o),
    "aggregate": lambda flow, **o: stream(flow).group_by(k).count(**o),
    "tumbling": lambda flow, **o: stream(flow).group_by(k).window(fw.tumbling(5)).count(**o),
    "hopping": lambda flow, **o: (
        stream(flow).group_by(k).window(fw.hopping(4, advance=2)).count(**o)
    ),
    "session": lambda flow, **o: stream(flow).group_by(k).window(fw.session(5)).count(**o),
    "versions": lambda flow, **o: stream(flow).group_by(k).count(versions=True, **o),
    "updates": counted_updates,
    "process": processed,
    "first": lambda flow, **o: stream(flow).deduplicate(k, ttl=1, **o),
    "last": lambda flow, **o: stream(flow).deduplicate(k, ttl=1, keep="last", **o),
    "table aggregate": lambda flow, **o: rows(flow).group_by(k).count(**o),
    "table versions": lambda flow, **o: rows(flow).group_by(k).count(versions=True, **o),
    "look-up": lambda flow, **o: stream(flow).join(others(flow), on=k, joiner=both, **o),
    "look-up of facts": lambda flow, **o: stream(flow).join(
        others(flow), on=k, joiner=both, late_updates="ignore", **o
    ),
    "foreign key": lambda flow, **o: rows(flow).join(others(flow), on=k, joiner=both, **o),
}


@cache
def keyed(operator: str, policy: str) -> Flow:
    flow = Flow("keyed")
    made = OPERATORS[operator](flow, name="op", on_error=policy)
    if isinstance(made, fw.Table):
        made = made.changes()
    made.to("out")
    return flow


@pytest.mark.parametrize("operator", OPERATORS)
def test_value_that_cannot_be_a_key_is_skipped(engine: Engine, operator: str) -> None:
    with engine(keyed(operator, "skip")) as good, engine(keyed(operator, "skip")) as driver:
        for number, value in enumerate([GOOD, BAD, GOOD]):
            driver.push("in", value, at=number)
            if value is GOOD:
                good.push("in", value, at=number)
        for each in (driver, good):
            each.finish()
        assert driver.stats("op").skipped == 1
        assert {r.key: r.value for r in driver.read("out")} == {
            r.key: r.value for r in good.read("out")
        }


@pytest.mark.parametrize("operator", OPERATORS)
def test_value_that_cannot_be_a_key_names_operator_and_place(engine: Engine, operator: str) -> None:
    driver = engine(keyed(operator, "fail"))
    driver.push("in", GOOD, at=1)
    with pytest.raises(OperatorError, match="unhashable") as caught:
        driver.push("in", BAD, at=2)
    assert caught.value.operator == "op"
    assert caught.value.place is not None


def test_key_that_comes_along_and_cannot_be_one_is_a_bad_record(engine: Engine) -> None:
    flow = Flow("given")
    flow.table("rows", schema=int, key=object, on_error="skip")
    with engine(flow) as driver:
        driver.update("rows", "a", 1, at=1)
        driver.update("rows", {"b": 1}, 2, at=2)
        driver.delete("rows", ["a"], at=3)
        assert driver.table("rows").values() == {"a": 1}
        assert driver.stats("rows.changelog").skipped == 2


def test_key_of_a_row_that_cannot_be_one_makes_it_a_bad_record(engine: Engine) -> None:
    flow = Flow("rows")
    flow.table("rows", schema=dict, key=k, on_error="skip")
    with engine(flow) as driver:
        driver.push("rows", GOOD, BAD, at=1)
        assert driver.table("rows").values() == {1: GOOD}
        assert driver.stats("rows.changelog").skipped == 1


def test_value_that_cannot_be_a_key_is_a_dead_letter_with_the_key_it_had(engine: Engine) -> None:
    flow = Flow("letters")
    made = stream(flow).key_by("7 AS seven").key_by(k, on_error="dead_letter")
    made.to("out")
    made.dead_letters.to("dead")
    with engine(flow) as driver:
        driver.push("in", GOOD, BAD, at=1)
        assert [(record.key, record.value) for record in driver.read("out")] == [(1, GOOD)]
        assert [(record.key, record.value.value) for record in driver.read("dead")] == [(7, BAD)]


class Tagged(fw.Record):
    tags: list[int | None]
    counts: dict[str, int]


@cache
def grouped() -> Flow:
    """Grouped as the errors say that it should be done."""
    flow = Flow("tagged")
    tagged = flow.source("tagged", schema=Tagged)
    tagged.group_by(lambda v: tuple(v.tags)).count(name="tags")
    tagged.group_by(lambda v: tuple(sorted(v.counts.items()))).count(name="counts")
    return flow


TAGGED = st.builds(
    Tagged,
    tags=st.lists(st.none() | st.integers(0, 1), max_size=2),
    counts=st.dictionaries(st.sampled_from("ab"), st.integers(0, 1)),
)


@settings(max_examples=100)
@given(st.lists(TAGGED, max_size=6))
def test_tuples_group_arrays_and_maps(engine: Engine, values: list[Tagged]) -> None:
    with engine(grouped()) as driver:
        driver.push("tagged", *values, at=1)
        for table, of in (("tags", lambda v: v.tags), ("counts", lambda v: v.counts)):
            sizes = sorted(sum(of(v) == of(w) for w in values) for v in values)
            counts = driver.table(table).values().values()
            assert sorted(n for n in counts for _ in range(n)) == sizes
