"""Operators without state do what a list comprehension does, in any order (definitions 60-63)."""

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Flow
from floodway.testing.strategies import arrivals, cuts, interleavings, skewed, streams
from tests.behaviour.oracles import bag, final
from tests.behaviour.stateless_cases import CASES, Sale
from tests.engines import Engine

SALES = streams(
    st.builds(
        Sale,
        st.one_of(skewed("abc"), st.none()),
        st.integers(-3, 9),
        st.one_of(st.lists(st.sampled_from("xy"), max_size=3), st.none()),
    ),
    max_time=30,
    max_size=12,
)


@cache
def all_cases() -> Flow:
    flow = Flow("stateless")
    sales = flow.source("sales", schema=Sale)
    for case, (write, _) in CASES.items():
        write(sales).to(f"{case}.out")
    return flow


@settings(max_examples=300)
@given(data=st.data(), stream=SALES)
def test_a_list_comprehension_in_any_order(
    engine: Engine, data: st.DataObject, stream: list[tuple[int, Sale]]
) -> None:
    with engine(all_cases()) as driver, engine(all_cases()) as disordered:
        for push in data.draw(cuts(stream)):
            driver.push_at("sales", *push)
        disordered.push_at("sales", *data.draw(arrivals(stream)))
        for case, (_, meaning) in CASES.items():
            expected = [fact for time, sale in stream for fact in meaning(time, sale)]
            assert [
                (r.timestamp, r.key, r.value) for r in driver.read(f"{case}.out")
            ] == expected, case
            assert final(disordered.read(f"{case}.out")) == bag(expected), case


@cache
def branching() -> Flow:
    flow = Flow("branch")
    small, odd, rest = flow.source("numbers", schema=int).branch("value < 3", lambda n: n % 2 == 1)
    small.to("small")
    odd.to("odd")
    rest.to("rest")
    return flow


@settings(max_examples=300)
@given(streams(st.integers(0, 9), max_time=20, max_size=12))
def test_branch_sends_a_record_to_the_first_arm_that_wants_it(
    engine: Engine, stream: list[tuple[int, int]]
) -> None:
    with engine(branching()) as driver:
        driver.push_at("numbers", *stream)
        arms = [
            [(r.timestamp, r.value) for r in driver.read(arm)] for arm in ("small", "odd", "rest")
        ]
    assert arms[0] == [(t, n) for t, n in stream if n < 3]
    assert arms[1] == [(t, n) for t, n in stream if n >= 3 and n % 2 == 1]
    assert arms[2] == [(t, n) for t, n in stream if n >= 3 and n % 2 == 0]


@cache
def merging() -> Flow:
    flow = Flow("merge")
    sources = [flow.source(name, schema=int) for name in ("a", "b", "c")]
    sources[0].merge(*sources[1:]).to("out")
    return flow


@settings(max_examples=300)
@given(
    st.data(),
    st.lists(streams(st.integers(0, 9), max_time=20, max_size=5), min_size=3, max_size=3),
)
def test_merge_passes_on_all_records_in_order_of_arrival(
    engine: Engine, data: st.DataObject, sources: list[list[tuple[int, int]]]
) -> None:
    turns = data.draw(interleavings(*sources))
    with engine(merging()) as driver:
        for index, record in turns:
            driver.push_at("abc"[index], record)
        assert [(r.timestamp, r.value) for r in driver.read("out")] == [r for _, r in turns]


@settings(max_examples=300)
@given(streams(st.integers(0, 9), max_time=20, max_size=12))
def test_peek_sees_each_value_once(engine: Engine, stream: list[tuple[int, int]]) -> None:
    seen: list[int] = []
    flow = Flow("peek")
    flow.source("numbers", schema=int).peek(seen.append).to("out")
    with engine(flow) as driver:
        driver.push_at("numbers", *stream)
    assert seen == [value for _, value in stream]


@cache
def timed() -> Flow:
    flow = Flow("times")
    flow.source("sales", schema=Sale, timestamp="pieces * 1000", on_error="skip").to("out")
    return flow


@settings(max_examples=300)
@given(SALES)
def test_a_source_takes_event_time_from_the_value(
    engine: Engine, stream: list[tuple[int, Sale]]
) -> None:
    with engine(timed()) as driver:
        driver.push_at("sales", *stream)
        assert [r.timestamp for r in driver.read("out")] == [s.pieces * 1000 for _, s in stream]
