"""Rows that have their window in their key are forgotten with it, however far down they come."""

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow, Table
from floodway.core.errors import EmitError, WindowRequiredError
from floodway.testing import fold
from floodway.testing.strategies import cuts, skewed, streams
from tests.behaviour.kernels import kernel_of, weight
from tests.engines import Engine


def ends_of(flow: Flow, windows: str = "tumbling") -> Table:
    items = flow.source("items", schema=str)
    of = fw.tumbling(5) if windows == "tumbling" else fw.session(3)
    counts = items.group_by("value AS item").window(of).count(name="counts")
    counts.to("counts.log")
    return counts.group_by("window_end").max("count", name="ends")


def both(left: int | None, right: int | None) -> int:
    return max(left or 0, right or 0)


def further(ends: Table, how: str) -> Table:
    """Return a table that has a row for every row of another one."""
    flow = ends.flow
    match how:
        case "grouped again":
            return ends.group_by("window_end AS closing").max("max", name="op")
        case "grouped with another column":
            return ends.group_by("'x' AS fixed", "window_end").max("max", name="op")
        case "changed, and grouped":
            changed = ends.map_values("max + 0", name="changed")
            return changed.group_by("window_end").max("value", name="op")
        case "joined by key" | "joined by key, full":
            other = ends.map_values("max + 0", name="other")
            kind: Any = "full" if how.endswith("full") else "inner"
            return ends.join(other, how=kind, joiner=both, schema=int, name="op")
        case "joined with a table":
            names = flow.table("names", schema=int, key=int)
            return ends.join(names, how="left", joiner=both, schema=int, name="op")
        case _:
            names = flow.table("names", schema=int, key=int)
            return ends.join(names, on="max", how="left", joiner=both, schema=int, name="op")


FOLLOWING = [
    "grouped again",
    "grouped with another column",
    "changed, and grouped",
    "joined by key",
    "joined by key, full",
    "joined with a table",
    "joined by foreign key",
]


@cache
def followed(how: str, windows: str) -> Flow:
    flow = Flow("followed", retention=10)
    table = further(ends_of(flow, windows), how)
    table.to("log")
    table.changes(emit=fw.emit.final(), name="final.changes").to("final")
    return flow


def only_end(key: Any) -> int:
    return int(key[-1] if isinstance(key, tuple) else key)


@pytest.mark.parametrize("windows", ["tumbling", "session"])
@pytest.mark.parametrize("how", FOLLOWING)
@settings(max_examples=40)
@given(data=st.data(), stream=streams(skewed("ab"), max_time=80, max_size=16))
def test_rows_go_with_their_windows(
    engine: Engine, how: str, windows: str, data: st.DataObject, stream: Any
) -> None:
    with engine(followed(how, windows)) as driver:
        if "names" in driver.sources():
            driver.end("names")
        for push in data.draw(cuts(stream)):
            driver.push_at("items", *push)
        kept = driver.table("ends").values()
        assert {only_end(key): row for key, row in driver.table("op").values().items()} == kept
        driver.finish()
        expected: dict[int, int] = {}
        for (_, window), count in fold(driver.read("counts.log")).items():
            expected[window.end] = max(count, expected.get(window.end, 0))
        for log in ("log", "final"):
            found = fold(driver.read(log))
            assert {only_end(key): row for key, row in found.items()} == expected, log


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("how", [*FOLLOWING, "joined by a table", "maximum over all"])
def test_nothing_grows_behind_rows_that_have_their_window_in_their_key(
    how: str, versioned: bool
) -> None:
    def write(flow: Flow) -> Any:
        ends = ends_of(flow)
        if how == "maximum over all":
            return ends.group_by("max % 2 AS odd").max("max", name="op")
        if how == "joined by a table":
            due = flow.table("due", schema=int, key=int)
            return due.join(ends, joiner=both, schema=int, name="op")
        return further(ends, how)

    # A join by key has both tables as inputs; the others have theirs first.
    ports = (0, 1) if how in ("joined by key", "joined by key, full", "joined by a table") else (0,)
    kernel, _ = kernel_of(write, versioned=versioned)
    sizes = []
    for number in range(400):
        end = number * 5
        for port in ports:
            kernel.process(port, [(end, end, 1, None, None), (end, end, 2 + number % 5, 1, None)])
        kernel.advance(end)
        if number % 100 == 99:
            sizes.append(weight(kernel.snapshot()))
    assert len(set(sizes)) == 1


def test_lists_of_all_windows_are_refused() -> None:
    ends = ends_of(Flow("lists"))
    with pytest.raises(WindowRequiredError, match="group by window_end, too"):
        ends.group_by("max").collect()
    ends.group_by("window_end").collect()


def test_rows_of_a_full_join_with_a_table_stay_for_as_long_as_the_table_has_them() -> None:
    flow = Flow("stay", retention=10)
    ends = ends_of(flow)
    names = flow.table("names", schema=int, key=int)
    with pytest.raises(EmitError, match="nothing in it ever ends"):
        ends.join(names, how="full", joiner=both, schema=int, name="op").changes(
            emit=fw.emit.final()
        )
