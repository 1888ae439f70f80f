"""A value that an aggregate cannot take is left out, and leaves its row as it would any other."""

import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow
from floodway.core.errors import OperatorError
from floodway.operators.aggregates.identity import identity
from tests.behaviour.kernels import kernel_of, weight
from tests.engines import Engine


def first(row: tuple[Any, ...]) -> Any:
    return row[0]


def one(row: Any) -> int:
    return 1


def lift(row: tuple[Any, ...]) -> int:
    return row[0]


def combine(a: int, b: int) -> int:
    if 7 in (a, b):
        raise ValueError("no sevens")
    return a + b


def subtract(a: int, b: int) -> int:
    return a - b


AGGREGATES: dict[str, Callable[..., Any]] = {
    "sum": lambda g, **o: g.sum(first, **o),
    "max": lambda g, **o: g.max(first, **o),
    "top": lambda g, **o: g.top(2, first, **o),
    "several": lambda g, **o: g.agg(n=fw.count(), most=fw.max(first), total=fw.sum(first), **o),
}
EXPECTED: dict[str, Callable[[list[int]], Any]] = {
    "sum": sum,
    "max": max,
    "top": lambda values: [(value,) for value in sorted(values)[::-1][:2]],
    "several": lambda values: (len(values), max(values), sum(values)),
}


@cache
def refusing(aggregate: str) -> Flow:
    flow = Flow("refusing")
    rows = flow.table("rows", schema=tuple, key=str)
    AGGREGATES[aggregate](rows.group_by(one), name="op", on_error="skip")
    return flow


UPDATES = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([None, 1, 2, 5, "bad"])), max_size=12
)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@settings(max_examples=60)
@given(updates=UPDATES)
def test_a_value_that_is_left_out_does_not_hold_its_row(
    engine: Engine, aggregate: str, updates: list[tuple[str, Any]]
) -> None:
    held: dict[str, Any] = {"zero": 0}  # a number comes first, so that text is what does not fit
    skipped = 0
    with engine(refusing(aggregate)) as driver:
        driver.update("rows", "zero", (0,), at=0)
        for time, (key, value) in enumerate(updates, 1):
            if value is None:
                driver.delete("rows", key, at=time)
            else:
                driver.update("rows", key, (value,), at=time)
            held[key] = value
            skipped += value == "bad"
            numbers = [value for value in held.values() if isinstance(value, int)]
            row = driver.table("op").values()[1]
            if aggregate == "several":
                row = (row.n, row.most, row.total)
            assert row == EXPECTED[aggregate](numbers)
        assert driver.stats("op").skipped == skipped


def revised(flow: Flow) -> Any:
    """A stream with updates, in windows."""
    table = flow.table("prices", schema=tuple, key=str)
    orders = flow.source("orders", schema=tuple)
    joined = orders.join(table, on=first, joiner=lambda a, b: a, schema=tuple)
    return joined.group_by(one).window(fw.tumbling(1000))


def rows_of(flow: Flow) -> Any:
    return flow.table("rows", schema=tuple, key=str).group_by(one)


def revision(number: int, value: Any, old: Any = None) -> Any:
    def fact(found: Any) -> Any:
        return None if found is None else (number, "k", (found,))

    return (number, fact(old), fact(value))


def change(number: int, value: Any, old: Any = None) -> Any:
    def row(found: Any) -> Any:
        return None if found is None else (found,)

    return (number, f"row {number}", row(value), row(old), None)


KERNELS = {"revisions": (revised, revision), "changes": (rows_of, change)}


@pytest.mark.parametrize("aggregate", [*AGGREGATES, "own"])
@pytest.mark.parametrize("source", KERNELS)
@settings(max_examples=60)
@given(
    updates=st.lists(st.tuples(st.integers(1, 3), st.sampled_from([None, 1, 2, 7])), max_size=12)
)
def test_kernels_are_a_fold_of_what_they_took(
    source: str, aggregate: str, updates: list[tuple[int, Any]]
) -> None:
    build, make = KERNELS[source]
    bad = 7 if aggregate == "own" else "bad"

    def write(flow: Flow) -> Any:
        if aggregate == "own":
            return build(flow).aggregate(
                lift, combine, subtract=subtract, schema=int, name="op", on_error="skip"
            )
        return AGGREGATES[aggregate](build(flow), name="op", on_error="skip")

    kernel: Any = kernel_of(write, versioned=False)[0]
    empty = weight(kernel.snapshot())
    kernel.process(0, [make(0, 0)])
    held: dict[int, Any] = {0: 0}
    for number, drawn in [*updates, (1, None), (2, None), (3, None)]:
        value = bad if drawn == 7 else drawn
        if value is None and held.get(number) is None:
            continue
        kernel.process(0, [make(number, value, held.get(number))])
        held[number] = value
        numbers = [v for v in held.values() if v is not None and v != bad]
        ((_, row),) = kernel.rows().values()
        if aggregate == "several":
            row = (row.n, row.most, row.total)
        assert row == EXPECTED.get(aggregate, sum)(numbers)
    kernel.process(0, [make(0, None, 0)])
    assert kernel.rows() == {}
    kernel.advance(100_000)
    assert weight(kernel.snapshot()) == empty  # nor is anything kept of what was left out


def test_what_was_left_out_stays_out_when_the_group_was_empty_in_between() -> None:
    kernel: Any = kernel_of(
        lambda f: rows_of(f).max(first, name="op", on_error="skip"), versioned=False
    )[0]
    kernel.process(0, [change(1, "x"), change(2, 5)])  # the text was first: 5 does not fit
    assert kernel.rows() == {1: (1, "x")}
    kernel.process(0, [change(1, None, "x")])
    kernel.advance(1000)
    kernel.process(0, [change(3, 5), change(2, None, 5)])
    assert [value for _, value in kernel.rows().values()] == [5]


# ----------------------------------------------------------------------------- taken back


class Thing:
    """Looks other in every process."""

    def __init__(self, weight: int) -> None:
        self.weight = weight


def sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def heaviest(flow: Flow) -> Any:
    rows = flow.table("rows", schema=Any, key=str)
    return rows.group_by(one).top(1, lambda thing: thing.weight, name="op")


def largest(flow: Flow) -> Any:
    return flow.table("rows", schema=Any, key=str).group_by(one).top(1, len, name="op")


def test_a_thing_is_taken_back_though_it_looks_otherwise_now() -> None:
    kernel: Any = kernel_of(heaviest, versioned=False)[0]
    five, three = Thing(5), Thing(3)
    kernel.process(0, [(1, "a", sent(five), None, None)])
    kernel.process(0, [(2, "a", sent(three), sent(five), None)])
    ((_, row),) = kernel.rows().values()
    assert [thing.weight for thing in row] == [3]
    kernel.process(0, [(3, "a", None, sent(three), None)])
    assert kernel.rows() == {}


@pytest.mark.parametrize(
    ("value", "same"),
    [({"x": 1, "y": 2}, {"y": 2, "x": 1}), ({8, 0}, {0, 8}), ([{"a": {1}}], [{"a": {1}}])],
)
def test_what_is_equal_is_taken_back_in_whatever_order_it_shows_itself(
    value: Any, same: Any
) -> None:
    kernel: Any = kernel_of(largest, versioned=False)[0]
    kernel.process(0, [(1, "a", value, None, None), (2, "a", "", same, None)])
    assert kernel.rows() == {1: (2, [""])}


def test_what_is_not_there_and_is_to_be_taken_back_is_told() -> None:
    kernel: Any = kernel_of(largest, versioned=False)[0]
    kernel.process(0, [(1, "a", "abc", None, None), (1, "b", "z", None, None)])
    with pytest.raises(OperatorError, match="is not there") as caught:
        kernel.process(0, [(2, "a", "", "other", None)])
    assert caught.value.operator == "op"
    assert "schema" in caught.value.remedy


@pytest.mark.parametrize("value", [1, "a", None, (1, [2.5, b"x"]), {"a": 1}, {1}, fw.tumbling(5)])
def test_plain_values_are_told_apart_by_their_text(value: Any) -> None:
    assert identity(value) == repr(value)


def test_what_contains_itself_still_has_a_name() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert identity(loop) == repr(loop)
