"""Joins of two streams are a nested loop over both, in any interleaving (definitions 67, 70)."""

from functools import cache
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Flow, Record
from floodway.testing.strategies import arrivals, interleavings, skewed, streams
from tests.behaviour.oracles import bag, final, joined_facts
from tests.engines import Engine

WITHIN = 6
HOWS = ("inner", "left", "right", "full")


class Item(Record):
    key: str | None
    number: int


Items = list[tuple[int, Item]]
ITEMS = streams(
    st.builds(Item, st.one_of(skewed("ab"), st.none()), st.integers(0, 99)), max_time=30, max_size=7
)


def pair(left: Item | None, right: Item | None) -> str:
    return f"{left and left.number}-{right and right.number}"


@cache
def joining() -> Flow:
    """Return all joins of the same two streams."""
    flow = Flow("joins")
    left = flow.source("left", schema=Item).key_by("key")
    right = flow.source("right", schema=Item).key_by("key")
    for how, emit in product(HOWS, ("eager", "lazy")):
        name = f"{how}_{emit}"
        left.join(right, within=WITHIN, how=how, emit=emit, joiner=pair, schema=str, name=name).to(
            f"{name}.out"
        )
    return flow


@settings(max_examples=300)
@given(data=st.data(), left=ITEMS, right=ITEMS)
def test_a_nested_loop_in_any_interleaving(
    engine: Engine, data: st.DataObject, left: Items, right: Items
) -> None:
    turns = data.draw(interleavings(data.draw(arrivals(left)), data.draw(arrivals(right))))
    with engine(joining()) as driver:
        for side, record in turns:
            driver.push_at(("left", "right")[side], record)
        driver.finish()
        for how, emit in product(HOWS, ("eager", "lazy")):
            results = driver.read(f"{how}_{emit}.out")
            expected = bag(
                joined_facts(
                    [(t, item.key, item) for t, item in left],
                    [(t, item.key, item) for t, item in right],
                    WITHIN,
                    how,
                    pair,
                )
            )
            assert final(results) == expected, (how, emit)
            if how == "inner" or emit == "lazy":
                assert all(record.id is None for record in results)  # facts need no updates
            else:
                assert len({record.id for record in results}) == expected.total()


@cache
def two_columns() -> Flow:
    flow = Flow("columns")
    left = flow.source("left", schema=Item).key_by("key", "number % 2 AS odd")
    right = flow.source("right", schema=Item).key_by("key", "number % 2 AS odd")
    left.join(right, within=WITHIN, how="full", joiner=pair, schema=str).to("out")
    return flow


@settings(max_examples=300)
@given(data=st.data(), left=ITEMS, right=ITEMS)
def test_a_key_with_a_null_column_has_no_partner(
    engine: Engine, data: st.DataObject, left: Items, right: Items
) -> None:
    def keyed(items: Items, side: str) -> list[Any]:
        # As in SQL, null equals nothing: each such record gets a key of its own side.
        return [
            (t, (item.key if item.key is not None else side, item.number % 2), item)
            for t, item in items
        ]

    with engine(two_columns()) as driver:
        for side, record in data.draw(interleavings(left, right)):
            driver.push_at(("left", "right")[side], record)
        results = driver.read("out")
    expected = bag(joined_facts(keyed(left, "L"), keyed(right, "R"), WITHIN, "full", pair))
    values = lambda counted: sorted((t, v) for t, _, v in counted.elements())  # noqa: E731
    assert values(final(results)) == values(expected)


def strict(left: Item | None, right: Item | None) -> str:
    if left is None or right is None or (left.number + right.number) % 5 == 0:
        raise ValueError("no result")
    return pair(left, right)


@cache
def failing() -> Flow:
    flow = Flow("failing")
    left = flow.source("left", schema=Item).key_by("key")
    right = flow.source("right", schema=Item).key_by("key")
    for how, emit in product(HOWS, ("eager", "lazy")):
        left.join(
            right,
            within=WITHIN,
            how=how,
            emit=emit,
            joiner=strict,
            on_error="skip",
            schema=str,
            name=f"{how}_{emit}",
        ).to(f"{how}_{emit}.out")
    return flow


@settings(max_examples=300)
@given(data=st.data(), left=ITEMS, right=ITEMS)
def test_a_pair_that_fails_does_not_take_other_pairs_with_it(
    engine: Engine, data: st.DataObject, left: Items, right: Items
) -> None:
    def gentle(a: Item | None, b: Item | None) -> str:
        try:
            return strict(a, b)
        except ValueError:
            return "failed"

    expected = bag(
        joined_facts(
            [(t, item.key, item) for t, item in left],
            [(t, item.key, item) for t, item in right],
            WITHIN,
            "inner",
            gentle,
        )
    )
    good = {fact: count for fact, count in expected.items() if fact[2] != "'failed'"}
    with engine(failing()) as driver:
        for side, record in data.draw(interleavings(left, right)):
            driver.push_at(("left", "right")[side], record)
        driver.finish()
        for how, emit in product(HOWS, ("eager", "lazy")):
            assert final(driver.read(f"{how}_{emit}.out")) == good, (how, emit)
