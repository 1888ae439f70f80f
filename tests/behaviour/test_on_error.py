"""A record that makes an operator fail stops the flow, is skipped, or becomes a dead letter."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import FloodwayError, Flow, Stream, tumbling
from floodway.core.errors import OperatorError
from floodway.testing import Emitted
from floodway.testing.strategies import streams
from tests.engines import Engine


def inverse(number: int) -> float:
    return 1 / number


def inverses(number: int) -> Any:
    yield number
    yield 1 / number


def never_zero(timestamp: int, key: Any, value: int, state: int) -> Any:
    return state + 1 // value * 0 + 1, []


OPERATORS: dict[str, Callable[..., Stream]] = {
    "map": lambda numbers, policy, name: numbers.map(inverse, name=name, on_error=policy),
    "flat_map": lambda numbers, policy, name: numbers.flat_map(
        inverses, name=name, on_error=policy
    ),
    "filter": lambda numbers, policy, name: numbers.filter(inverse, name=name, on_error=policy),
    "key_by": lambda numbers, policy, name: numbers.key_by(inverse, name=name, on_error=policy),
    "peek": lambda numbers, policy, name: numbers.peek(inverse, name=name, on_error=policy),
    "branch": lambda numbers, policy, name: numbers.branch(inverse, name=name, on_error=policy)[0],
    "expression": lambda numbers, policy, name: numbers.map(
        "1 / value", name=name, on_error=policy
    ),
    "select": lambda numbers, policy, name: numbers.select(
        "1 / value AS x", name=name, on_error=policy
    ),
    "process": lambda numbers, policy, name: numbers.key_by("value % 2 AS odd").process(
        init=lambda key: 0, update=never_zero, name=name, on_error=policy
    ),
    "aggregate": lambda numbers, policy, name: numbers.group_by("value % 2 AS odd").sum(
        inverse, name=name, on_error=policy
    ),
    "windowed_aggregate": lambda numbers, policy, name: (
        numbers.group_by("value % 2 AS odd")
        .window(tumbling(5))
        .sum(inverse, name=name, on_error=policy)
    ),
}
NUMBERS = streams(st.integers(0, 3), max_time=20, max_size=6)


@cache
def one(operator: str) -> Flow:
    flow = Flow("errors")
    OPERATORS[operator](flow.source("numbers", schema=int), "fail", "op").to("out")
    return flow


@cache
def every(policy: str) -> Flow:
    flow = Flow("errors")
    numbers = flow.source("numbers", schema=int)
    for operator, write in OPERATORS.items():
        made = write(numbers, policy, operator)
        made.to(f"{operator}.out")
        if policy == "dead_letter":
            made.dead_letters.to(f"{operator}.dead")
    return flow


@pytest.mark.parametrize("operator", OPERATORS)
def test_fail_stops_the_flow_and_names_the_operator(engine: Engine, operator: str) -> None:
    driver = engine(one(operator))
    driver.push_at("numbers", (1, 1), (2, 2))
    with pytest.raises(FloodwayError, match="operator: op"):
        driver.push_at("numbers", (3, 3), (4, 0))


@settings(max_examples=300)
@given(NUMBERS)
def test_skip_and_dead_letter_leave_the_others_alone(
    engine: Engine, stream: list[tuple[int, int]]
) -> None:
    bad = [(time, number) for time, number in stream if not number]
    with (
        engine(every("fail")) as good,
        engine(every("skip")) as skipping,
        engine(every("dead_letter")) as keeping,
    ):
        good.push_at("numbers", *((time, number) for time, number in stream if number))
        skipping.push_at("numbers", *stream)
        keeping.push_at("numbers", *stream)
        for operator in OPERATORS:
            expected = shown(good.read(f"{operator}.out"))
            assert shown(skipping.read(f"{operator}.out")) == expected
            assert shown(keeping.read(f"{operator}.out")) == expected
            assert skipping.stats(operator).skipped == len(bad)
            assert keeping.stats(operator).dead_letters == len(bad)
            letters = keeping.read(f"{operator}.dead")
            assert [(r.timestamp, r.value.value) for r in letters] == bad
            assert all(r.value.operator == operator and r.value.error for r in letters)


def shown(records: list[Emitted]) -> list[str]:
    """Return records as text: each flow has record types of its own."""
    return [repr(record) for record in records]


def wrong_type(policy: str) -> Flow:
    flow = Flow("wrong")
    numbers = flow.source("in", schema=int)
    # A name is returned where the schema promises a number, for one record of three.
    mapped = numbers.map(
        lambda n: "two" if n == 2 else n * 10, schema=int, name="op", on_error=policy
    )
    mapped.to("out")
    if policy == "dead_letter":
        mapped.dead_letters.to("dead")
    return flow


def test_a_function_that_returns_the_wrong_type_is_reported(engine: Engine) -> None:
    driver = engine(wrong_type("fail"))
    with pytest.raises(OperatorError) as caught:
        driver.push("in", 1, 2, 3, at=1)
    assert "the record 2" in caught.value.problem
    assert "'two' is a str" in caught.value.problem
    assert caught.value.operator == "op"
    assert caught.value.place is not None


def test_a_wrong_type_is_dealt_with_as_the_policy_says(engine: Engine) -> None:
    with engine(wrong_type("skip")) as driver:
        driver.push("in", 1, 2, 3, at=1)
        assert [record.value for record in driver.read("out")] == [10, 30]
        assert driver.stats("op").skipped == 1
    with engine(wrong_type("dead_letter")) as driver:
        driver.push("in", 1, 2, 3, at=1)
        assert [record.value.value for record in driver.read("dead")] == [2]


TOO_LARGE = 2**70
LARGEST, LOWEST = 2**63 - 1, -(2**63)


def large(number: int) -> int:
    return TOO_LARGE if number == 2 else (LARGEST if number == 1 else LOWEST)


def several_large(number: int) -> Any:
    yield large(number)


def whole(number: int) -> Any:
    return large(number)


RANGES: dict[str, Callable[..., Stream]] = {
    "map": lambda numbers, **o: numbers.map(large, **o),
    "flat_map": lambda numbers, **o: numbers.flat_map(several_large, schema=int, **o),
    "or nothing": lambda numbers, **o: numbers.map(whole, schema=int | None, **o),
    "fractions": lambda numbers, **o: numbers.map(whole, schema=float, **o),
}


@cache
def ranged(operator: str, policy: str) -> Flow:
    flow = Flow("ranged")
    numbers = flow.source("in", schema=int)
    RANGES[operator](numbers, name="op", on_error=policy).key_by(str).to("out")
    return flow


@pytest.mark.parametrize("operator", RANGES)
def test_integer_beyond_64_bits_is_a_bad_record_of_who_made_it(
    engine: Engine, operator: str
) -> None:
    with engine(ranged(operator, "skip")) as driver:
        driver.push("in", 1, 2, 3, at=1)
        kind = float if operator == "fractions" else int  # an engine may make them what they are
        found = sorted(kind(record.value) for record in driver.read("out"))
        assert found == [kind(LOWEST), kind(LARGEST)]
        assert driver.stats("op").skipped == 1
    driver = engine(ranged(operator, "fail"))
    with pytest.raises(OperatorError, match="71 bits does not fit into 64") as caught:
        driver.push("in", 2, at=1)
    assert caught.value.operator == "op"


def when(value: dict[str, Any]) -> Any:
    return value["t"]


@pytest.mark.parametrize("time", [10**30, -(10**30), 2**63])
def test_event_time_beyond_64_bits_is_a_bad_record(engine: Engine, time: int) -> None:
    flow = Flow("times")
    flow.source("in", schema=dict, timestamp=when, on_error="skip").to("out")
    with engine(flow) as driver:
        driver.push("in", {"t": 1}, {"t": time}, {"t": 2}, at=0)
        assert [record.timestamp for record in driver.read("out")] == [1, 2]
        assert driver.stats("in").skipped == 1


def test_rows_of_a_table_that_fail_are_its_dead_letters(engine: Engine) -> None:
    flow = Flow("tables")
    table = flow.table("inverses", schema=int, key=inverse, on_error="dead_letter")
    table.dead_letters.to("rejects")
    with engine(flow) as driver:
        for number in (1, 0, 2):
            driver.update("inverses", None, number, at=number)
        assert driver.table("inverses").values() == {1.0: 1, 0.5: 2}
        driver.finish()
        (letter,) = (record.value for record in driver.read("rejects"))
    assert letter.value == 0
    assert letter.operator == "inverses.changelog"
