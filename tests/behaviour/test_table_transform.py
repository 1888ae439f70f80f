"""map_values and filter on tables treat every version alike (definitions 71, 72)."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Flow, Table
from floodway.testing import fold
from floodway.testing.strategies import changelogs, skewed
from tests.behaviour.oracles import LAST, NaiveTable, by_definition_58
from tests.engines import Engine

Updates = list[tuple[int, str, int | None]]
UPDATES = changelogs(skewed("abc"), st.integers(0, 9), max_time=30, max_size=12)


def big(value: int) -> int | None:
    return value * 10 if value > 3 else None


def reciprocal(value: int) -> int:
    return 12 // value


CASES: dict[str, tuple[Callable[..., Table], Callable[[str, int], Any]]] = {
    "mapped": (lambda t, **o: t.map_values("value + 1", **o), lambda key, value: value + 1),
    "mapped_away": (lambda t, **o: t.map_values(big, **o), lambda key, value: big(value)),
    "filtered": (
        lambda t, **o: t.filter("value > 3", **o),
        lambda key, value: value if value > 3 else None,
    ),
    "filtered_by_key": (
        lambda t, **o: t.filter("key <> 'a'", **o),
        lambda key, value: value if key != "a" else None,
    ),
    "failing": (
        lambda t, **o: t.map_values(reciprocal, on_error="skip", **o),
        lambda key, value: 12 // value if value else None,
    ),
}


@cache
def flow_of(*, versions: bool) -> Flow:
    flow = Flow("tables")
    table = flow.table("rows", schema=int, key=str, versions=versions)
    for name, (write, _) in CASES.items():
        made = write(table, name=name)
        made.to(f"{name}.log")
        if versions:  # a look-up join asks for the versions of a derived table
            flow_probe(flow, made, name)
    return flow


def flow_probe(flow: Flow, table: Table, name: str) -> None:
    probes = flow.source(f"{name}.probes", schema=str)
    probes.join(table, on="value", joiner=lambda a, b: b, name=f"{name}.join").to(f"{name}.found")


@pytest.mark.parametrize("versions", [True, False])
@settings(max_examples=300)
@given(UPDATES)
def test_each_version_is_the_same_version_mapped(
    engine: Engine, versions: bool, updates: Updates
) -> None:
    naive = NaiveTable(updates)
    with engine(flow_of(versions=versions)) as driver:
        for timestamp, key, value in updates:
            driver.update("rows", key, value, at=timestamp)
        for name, (_, meaning) in CASES.items():
            log = driver.read(f"{name}.log")
            folded = by_definition_58(log)
            for at in [*range(32), LAST] if versions else [LAST]:
                mapped = {k: (t, meaning(k, v)) for k, (t, v) in naive.versions[at].items()}
                expected = {k: row for k, row in mapped.items() if row[1] is not None}
                values = {k: v for k, (_, v) in expected.items()}
                rows = driver.table(name).rows(at if versions else None)
                assert rows == expected, (name, at)
                assert folded.values(at) == values, (name, at)
            assert fold(log) == values, name
