"""Over a stream with updates, every operator answers for what the stream says in the end (70)."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow, Stream, Window
from floodway.testing import Driver, fold
from floodway.testing.strategies import changelogs, interleavings, skewed, streams
from tests.behaviour.oracles import (
    LAST,
    NaiveTable,
    aggregated,
    bag,
    by_definition_58,
    final,
    joined_facts,
)
from tests.engines import Engine

Item = tuple[str, int]
Pair = tuple[int | None, int | None]
ITEMS = streams(st.tuples(skewed("ab"), st.integers(0, 5)), max_time=20, max_size=6)
UPDATES = changelogs(skewed("ab"), st.integers(0, 5), max_time=20, max_size=6)
WITHIN = 5


def total(pair: Pair) -> int:
    return (pair[0] or 0) + (pair[1] or 0)


def odd(pair: Pair) -> int:
    return total(pair) % 2


def parts(pair: Pair) -> list[int]:
    return [part for part in pair if part is not None]


def outer_join(flow: Flow) -> Stream:
    """Return the eager full join of two streams: outer results are replaced later."""
    left = flow.source("left", schema=tuple).key_by(lambda item: item[0])
    right = flow.source("right", schema=tuple).key_by(lambda item: item[0])
    return left.join(
        right,
        within=WITHIN,
        how="full",
        joiner=lambda a, b: (a and a[1], b and b[1]),
        schema=tuple,
        name="join",
    )


def lookup_join(flow: Flow) -> Stream:
    """Return the join with a table whose late updates correct earlier results."""
    table = flow.table("right", schema=int, key=str)
    left = flow.source("left", schema=tuple).key_by(lambda item: item[0])
    return left.join(table, joiner=lambda a, b: (a[1], b), schema=tuple, name="join")


def outer_facts(left: list[Any], right: list[Any]) -> list[Any]:
    keyed = [[(t, item[0], item[1]) for t, item in side] for side in (left, right)]
    return joined_facts(*keyed, WITHIN, "full", lambda a, b: (a, b))


def lookup_facts(left: list[Any], right: list[Any]) -> list[Any]:
    table = NaiveTable(right)
    found = [(t, k, (v, table.values(t).get(k))) for t, (k, v) in left]
    return [fact for fact in found if fact[2][1] is not None]


JOINS: dict[str, tuple[Any, Any, Any]] = {
    "outer": (outer_join, outer_facts, ITEMS),
    "lookup": (lookup_join, lookup_facts, UPDATES),
}


def play(driver: Driver, turns: list[tuple[int, Any]]) -> None:
    for side, record in turns:
        if len(record) == 3:
            driver.update("right", record[1], record[2], at=record[0])
        else:
            driver.push_at(("left", "right")[side], record)


Fact = tuple[int, Any, Any]
STATELESS: dict[str, tuple[Callable[[Stream], Stream], Callable[[Fact], list[Fact]]]] = {
    "map": (lambda s: s.map(total), lambda f: [(f[0], f[1], total(f[2]))]),
    "filter": (lambda s: s.filter(odd), lambda f: [f] if odd(f[2]) else []),
    "flat_map": (lambda s: s.flat_map(parts), lambda f: [(*f[:2], part) for part in parts(f[2])]),
    "key_by": (lambda s: s.key_by(odd), lambda f: [(f[0], odd(f[2]), f[2])]),
    "branch": (lambda s: s.branch(odd)[1], lambda f: [] if odd(f[2]) else [f]),
    "peek": (lambda s: s.peek(total), lambda f: [f]),
    "merge": (lambda s: s.merge(s.filter(odd)), lambda f: [f, f] if odd(f[2]) else [f]),
    "skipping": (
        lambda s: s.map(lambda pair: 1 // odd(pair), on_error="skip"),
        lambda f: [(*f[:2], 1)] if odd(f[2]) else [],
    ),
}


@cache
def stateless(join: str) -> Flow:
    flow = Flow("stateless")
    joined = JOINS[join][0](flow)
    for name, (write, _) in STATELESS.items():
        write(joined).to(f"{name}.out")
    return flow


@pytest.mark.parametrize("join", JOINS)
@settings(max_examples=300)
@given(data=st.data(), left=ITEMS)
def test_stateless_operators(engine: Engine, join: str, data: st.DataObject, left: Any) -> None:
    _, meaning, rights = JOINS[join]
    right = data.draw(rights)
    facts = meaning(left, right)
    with engine(stateless(join)) as driver:
        play(driver, data.draw(interleavings(left, right)))
        for name, (_, each) in STATELESS.items():
            expected = bag(result for fact in facts for result in each(fact))
            assert final(driver.read(f"{name}.out")) == expected, name


def by_text(rows: Iterable[tuple[int, Any]]) -> list[Any]:
    """Return values in their order; equals are ordered by their text."""
    return [value for _, value in sorted(rows, key=lambda row: (row[0], repr(row[1])))]


FUNCTIONS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], Callable[[list[Any]], Any]]] = {
    "count": ("count", (), {}, len),
    "sum": ("sum", (total,), {}, lambda rows: sum(total(pair) for _, pair in rows)),
    "mean": ("mean", (total,), {}, lambda rows: sum(total(p) for _, p in rows) / len(rows)),
    "custom": (
        "aggregate",
        (lambda pair: 2 ** total(pair), lambda a, b: a * b),
        {"subtract": lambda a, b: a // b},
        lambda rows: 2 ** sum(total(pair) for _, pair in rows),
    ),
}
HOLISTIC: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], Callable[[list[Any]], Any]]] = {
    "min": ("min", (total,), {}, lambda rows: min(total(pair) for _, pair in rows)),
    "max": ("max", (total,), {}, lambda rows: max(total(pair) for _, pair in rows)),
    "top": (
        "top",
        (2, total),
        {},
        lambda rows: by_text((total(p), p) for _, p in rows)[::-1][:2],
    ),
    "collect": (
        "collect",
        (total,),
        {},
        lambda rows: by_text((t, total(p)) for t, p in rows),
    ),
}


def functions(window: bool) -> dict[str, Any]:
    return FUNCTIONS | HOLISTIC if window else FUNCTIONS


@cache
def windows_of(timestamp: int) -> list[Window]:
    return [Window(s, s + 6) for s in range(-LAST, LAST, 4) if s <= timestamp < s + 6]


@cache
def aggregating(join: str, *, window: bool, versions: bool) -> Flow:
    flow = Flow("aggregates")
    grouped: Any = JOINS[join][0](flow).group_by(odd)
    if window:
        grouped = grouped.window(fw.hopping(6, advance=4))
    for name, (method, arguments, more, _) in functions(window).items():
        options = {"name": name, "versions": versions, **more}
        getattr(grouped, method)(*arguments, **options).to(f"{name}.log")
    return flow


@pytest.mark.parametrize("versions", [False, True])
@pytest.mark.parametrize("window", [False, True])
@pytest.mark.parametrize("join", JOINS)
@settings(max_examples=300)
@given(data=st.data(), left=ITEMS)
def test_aggregates(
    engine: Engine, join: str, window: bool, versions: bool, data: st.DataObject, left: Any
) -> None:
    _, meaning, rights = JOINS[join]
    right = data.draw(rights)
    facts = meaning(left, right)

    def groups(timestamp: int, key: Any, pair: Pair) -> list[Any]:
        if not window:
            return [odd(pair)]
        return [(odd(pair), window) for window in windows_of(timestamp)]

    with engine(aggregating(join, window=window, versions=versions)) as driver:
        play(driver, data.draw(interleavings(left, right)))
        for name, (*_, function) in functions(window).items():
            log = driver.read(f"{name}.log")
            expected = aggregated(facts, groups, function)
            rows = driver.table(name).rows()
            if versions:
                assert rows == expected, name
            else:  # a row is as new as the newest record it has had, taken back or not
                assert rows.keys() == expected.keys(), name
                for key, (timestamp, value) in expected.items():
                    assert rows[key][1] == value, name
                    assert rows[key][0] >= timestamp, name
            assert fold(log) == {key: value for key, (_, value) in expected.items()}, name
            if versions:
                folded = by_definition_58(log)
                for at in sorted({fact[0] for fact in facts}):
                    version = aggregated(facts, groups, function, at=at)
                    assert driver.table(name).rows(at) == version, (name, at)
                    values = {key: value for key, (_, value) in version.items()}
                    assert folded.values(at) == values, (name, at)
