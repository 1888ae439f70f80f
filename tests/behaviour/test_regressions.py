"""Faults that random examples found, each in its smallest form."""

from typing import Any

import pytest

import floodway as fw
from floodway import Flow
from floodway.core.errors import OperatorError
from floodway.testing import Abort, At, Delete, Emitted, ListSink, ListSource, fold
from tests.behaviour.oracles import by_definition_58
from tests.engines import Engine


def first(pair: Any) -> Any:
    return pair[0]


def text(left: Any, right: Any) -> str:
    return f"{left}-{right}"


def values(records: list[Emitted]) -> list[Any]:
    return [record.value for record in records]


def test_aggregates_inside_agg_see_the_key(engine: Engine) -> None:
    flow = Flow("key")
    keyed = flow.source("n", schema=int).key_by("value % 2 AS odd")
    keyed.group_by("odd").agg(name="t", odds=fw.sum("odd"), best=fw.top(1, "odd"))
    with engine(flow) as driver:
        driver.push_at("n", (1, 1), (2, 3))
        assert driver.table("t").values()[1].odds == 2
        assert driver.table("t").values()[1].best == [3]


def test_two_custom_aggregates_may_share_a_combine(engine: Engine) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    flow = Flow("shared")
    flow.source("n", schema=int).group_by("1 AS one").agg(
        name="t",
        minus=fw.aggregate(lambda n: n, add, lambda n: -n, schema=int),
        plus=fw.aggregate(lambda n: n * 10, add, lambda n: n, schema=int),
    )
    with engine(flow) as driver:
        driver.push_at("n", (1, 1), (2, 3))
        row = driver.table("t").values()[1]
        assert (row.minus, row.plus) == (-4, 40)


def test_the_largest_of_whole_numbers_and_fractions(engine: Engine) -> None:
    flow = Flow("mixed")
    flow.source("n", schema=int).group_by("1 AS one").max(lambda n: n / 2 if n % 2 else n, name="t")
    with engine(flow) as driver:
        driver.push_at("n", (1, 3), (2, 4))
        assert driver.table("t").values() == {1: 4}


def test_a_late_update_of_an_input_with_versions_leaves_the_latest_joined_row(
    engine: Engine,
) -> None:
    flow = Flow("older")
    left = flow.table("left", schema=str, key=int, versions=True)
    right = flow.table("right", schema=str, key=int)
    left.join(right, joiner=text, schema=str, name="joined")
    with engine(flow) as driver:
        driver.update("right", 1, "r", at=1)
        driver.update("left", 1, "new", at=5)
        driver.update("left", 1, "old", at=2)
        assert driver.table("joined").values() == {1: "new-r"}


def test_a_late_update_of_an_input_with_versions_leaves_the_latest_group(engine: Engine) -> None:
    flow = Flow("older")
    rows = flow.table("rows", schema=str, key=int, versions=True)
    rows.group_by("value AS v").count(name="groups")
    with engine(flow) as driver:
        driver.update("rows", 1, "a", at=5)
        driver.update("rows", 2, "a", at=9)
        driver.update("rows", 1, "b", at=2)
        assert driver.table("groups").values() == {"a": 2}


def test_a_late_update_of_a_deleted_row_stays_deleted_behind_map_values(engine: Engine) -> None:
    flow = Flow("older")
    rows = flow.table("rows", schema=int, key=str, versions=True)
    rows.map_values("value + 1", name="mapped").to("log")
    with engine(flow) as driver:
        driver.delete("rows", "a", at=9)
        driver.update("rows", "a", 1, at=5)
        assert driver.table("mapped").values() == fold(driver.read("log")) == {}


def test_a_row_that_points_elsewhere_is_the_last_word_of_the_changelog(engine: Engine) -> None:
    flow = Flow("foreign")
    left = flow.table("left", schema=tuple, key=str)
    right = flow.table("right", schema=int, key=str)
    left.join(right, on=first, joiner=text, schema=str, name="joined").to("log")
    with engine(flow) as driver:
        driver.update("right", "x", 1, at=10)
        driver.update("right", "y", 2, at=3)
        driver.update("left", "a", ("x",), at=5)
        driver.update("left", "a", ("y",), at=6)
        assert driver.table("joined").rows() == {"a": (6, "('y',)-2")}
        assert fold(driver.read("log")) == {"a": "('y',)-2"}


def test_the_changelog_says_where_a_late_row_leaves_its_group_again(engine: Engine) -> None:
    flow = Flow("leaves")
    rows = flow.table("rows", schema=str, key=int)
    rows.group_by("value AS v").count(name="groups", versions=True).to("log")
    with engine(flow) as driver:
        driver.update("rows", 1, "b", at=1)
        driver.update("rows", 1, "a", at=0)  # in group a for version 0 only
        log = by_definition_58(driver.read("log"))
        assert log.values(0) == {"a": 1}
        assert log.values(1) == {"b": 1}


def test_the_timestamp_of_a_group_does_not_depend_on_the_order_of_updates(engine: Engine) -> None:
    flow = Flow("timestamps")
    rows = flow.table("rows", schema=str, key=int)
    rows.group_by("value AS v").count(name="groups", versions=True)
    with engine(flow) as driver:
        driver.update("rows", 2, "x", at=1)
        driver.update("rows", 1, "x", at=1)
        driver.update("rows", 1, "y", at=5)
        driver.update("rows", 1, "z", at=3)  # so it was at 3 that the row left x
        assert driver.table("groups").rows()["x"] == (3, 1)


def test_the_changelog_goes_on_after_the_newest_record_was_taken_back(engine: Engine) -> None:
    flow = Flow("taken_back")
    left = flow.source("left", schema=int).key_by("1 AS one")
    right = flow.source("right", schema=int).key_by("1 AS one")
    joined = left.join(right, within=1, how="left", joiner=lambda a, b: b or a, schema=int)
    for name, versions in (("latest", False), ("versions", True)):
        joined.group_by("value AS v").count(name=name, versions=versions).to(f"{name}.log")
    with engine(flow) as driver:
        driver.push_at("left", (9, 5))
        driver.push_at("right", (9, 6))  # the 5 becomes a 6
        driver.push_at("left", (7, 5))
        # Without versions a row is as old as the newest change it has had, also if that was undone.
        for name, since in (("latest", 9), ("versions", 7)):
            log = driver.read(f"{name}.log")
            assert driver.table(name).rows() == {6: (9, 1), 5: (since, 1)}
            assert fold(log) == {6: 1, 5: 1}
        assert by_definition_58(log).values(9) == {6: 1, 5: 1}


def test_a_key_with_a_null_column_finds_no_partner(engine: Engine) -> None:
    flow = Flow("null")
    left, right = (
        flow.source(name, schema=tuple).key_by(first, lambda pair: pair[1])
        for name in ("left", "right")
    )
    left.join(right, within=5, joiner=text, schema=str).to("out")
    with engine(flow) as driver:
        driver.push_at("left", (1, ("a", None)))
        driver.push_at("right", (1, ("a", None)))
        assert driver.read("out") == []


def test_a_record_whose_outer_result_fails_still_finds_its_partner(engine: Engine) -> None:
    for emit in ("eager", "lazy"):
        flow = Flow("failing", retention=0)
        left = flow.source("left", schema=int).key_by("1 AS one")
        right = flow.source("right", schema=int).key_by("1 AS one")
        left.join(
            right,
            within=5,
            how="left",
            emit=emit,
            joiner=lambda a, b: a + b,
            schema=int,
            name="join",
            on_error="skip",
        ).to("out")
        with engine(flow) as driver:
            driver.push_at("left", (1, 1))
            driver.push_at("right", (1, 2))
            driver.push_at("left", (50, 7))
            driver.push_at("right", (99, 0))  # time passes: the 7 has no partner, and fails
            driver.finish()
            assert values(driver.read("out")) == [3]
            assert driver.stats("join").skipped == (2 if emit == "eager" else 1)


def test_a_late_update_helps_a_record_that_failed(engine: Engine) -> None:
    flow = Flow("failing")
    table = flow.table("table", schema=int, key=int)
    flow.source("n", schema=int).join(
        table,
        on="value",
        how="left",
        joiner=lambda n, row: n // row,
        schema=int,
        name="join",
        on_error="skip",
    ).to("out")
    with engine(flow) as driver:
        driver.update("table", 6, 0, at=1)
        driver.push_at("n", (5, 6))
        assert driver.read("out") == []
        driver.update("table", 6, 2, at=2)
        assert values(driver.read("out")) == [3]
        driver.update("table", 6, 0, at=3)
        assert values(driver.read("out")) == [None]  # taken back
        assert driver.stats("join").skipped == 2


def test_one_row_that_fails_does_not_hide_the_others_of_its_partner(engine: Engine) -> None:
    flow = Flow("failing")
    left = flow.table("left", schema=tuple, key=str)
    right = flow.table("right", schema=int, key=str)
    left.join(
        right, on=first, joiner=lambda a, b: a[1] // b, schema=int, name="joined", on_error="skip"
    )
    left.join(right, on=first, joiner=lambda a, b: b // a[1], name="other", on_error="skip")
    with engine(flow) as driver:
        driver.update("left", "p", ("x", 0), at=1)
        driver.update("left", "q", ("x", 2), at=1)
        driver.update("right", "x", 4, at=2)
        assert driver.table("other").values() == {"q": 2}
        driver.update("right", "x", 0, at=3)
        assert driver.table("joined").values() == {}
        assert driver.table("other").values() == {"q": 0}


def test_a_foreign_key_of_null_points_to_nothing(engine: Engine) -> None:
    flow = Flow("null")
    left = flow.table("left", schema=tuple, key=str)
    right = flow.table("right", schema=int, key=Any)
    left.join(right, on=first, how="left", joiner=text, schema=str, name="joined")
    with engine(flow) as driver:
        driver.update("right", None, 1, at=1)
        driver.update("left", "a", (None,), at=1)
        assert driver.table("joined").values() == {"a": "(None,)-None"}


def test_peek_and_skip_meet_each_update_once(engine: Engine) -> None:
    seen: list[Any] = []
    flow = Flow("once")
    left = flow.source("left", schema=int).key_by("1 AS one")
    right = flow.source("right", schema=int).key_by("1 AS one")
    joined = left.join(right, within=5, how="left", joiner=lambda a, b: (a, b))
    joined.peek(seen.append).map(lambda pair: 1 // 0, name="fails", on_error="skip").to("out")
    with engine(flow) as driver:
        driver.push_at("left", (1, 1))
        driver.push_at("right", (1, 2))
        assert seen == [(1, None), (1, 2)]
        assert driver.stats("fails").skipped == 2


def test_a_join_that_forgot_a_deletion_does_not_bring_the_row_back(engine: Engine) -> None:
    flow = Flow("forgot")
    table = flow.table("table", schema=str, key=int, retention="1h")
    orders = flow.source("orders", schema=int)
    orders.join(table, on="value", joiner=lambda n, row: row, schema=str, retention=0).to("out")
    with engine(flow) as driver:
        driver.update("table", 1, "a", at=1)
        driver.delete("table", 1, at=5)
        driver.push_at("orders", (100, 2))
        driver.update("table", 2, "x", at=100)
        driver.update("table", 1, "b", at=3)  # held up to 5, and then the row was deleted
        driver.push_at("orders", (100, 1))
        assert values(driver.read("out")) == ["x"]


def test_a_group_with_less_retention_than_its_table(engine: Engine) -> None:
    flow = Flow("retention")
    rows = flow.table("rows", schema=int, key=str, retention="1h")
    grouped = rows.group_by("value % 2 AS odd")
    grouped.mean("value", name="means", retention=0, versions=True)
    with engine(flow) as driver:
        driver.update("rows", "a", 1, at=1)
        driver.update("rows", "a", 3, at=50)
        driver.update("rows", "b", 5, at=100)
        driver.update("rows", "a", 2, at=7)  # before what the groups remember
        driver.update("rows", "c", 7, at=8)
        assert driver.table("means").values() == {1: 5.0}


def test_an_empty_list_does_not_hold_back_time(engine: Engine) -> None:
    flow, out = Flow("empty", retention=0), ListSink()
    items = flow.source("items", ListSource([At(1, 1), At(50, 1), At(2, 1)]), schema=int)
    flow.table("rows", ListSource([]), schema=int, key=int)
    counts = items.group_by("value AS v").window(fw.tumbling(5)).count(name="counts")
    counts.late.to(out)
    driver = engine(flow)
    driver.run()
    assert out.values == [1]


def test_items_of_sources_take_turns_as_without_an_abort(engine: Engine) -> None:
    def order(abort: bool) -> list[Any]:
        flow, out = Flow("turns"), ListSink()
        one = [At(1, 1), *([Abort()] if abort else []), At(2, 2)]
        left = flow.source("left", ListSource(one), schema=int)
        right = flow.source("right", ListSource([At(1, -1), At(2, -2)]), schema=int)
        left.merge(right).to(out)
        driver = engine(flow)
        while driver.run() == "aborted":
            pass
        return out.values

    assert order(abort=True) == order(abort=False) == [1, -1, 2, -2]


def test_a_table_of_deletions_only(engine: Engine) -> None:
    flow = Flow("deletions")
    table = flow.table("rows", ListSource([Delete(1, 5), At(3, 7, key=1)]), schema=int, key=int)
    table.to("log")
    driver = engine(flow)
    driver.run()
    assert driver.table("rows").rows() == fold(driver.read("log")) == {}


def test_what_a_lazy_join_holds_back_is_not_late_downstream(engine: Engine) -> None:
    flow = Flow("lazy", retention=10)
    left = flow.source("left", schema=str).key_by("value AS item")
    right = flow.source("right", schema=str).key_by("value AS item")
    joined = left.join(right, within=5, how="left", emit="lazy", joiner=lambda a, b: a, schema=str)
    joined.group_by("value AS item").window(fw.tumbling(4)).count(name="counts", retention=0)
    with engine(flow) as driver:
        for time in range(0, 60, 2):
            driver.push("left", "a", at=time)
            driver.push("right", "b", at=time)
        driver.finish()
        stats = driver.stats("counts")
    assert (stats.received, stats.late) == (30, 0)


def test_what_final_holds_back_is_not_late_downstream(engine: Engine) -> None:
    flow = Flow("final", retention=10)
    items = flow.source("items", schema=str)
    counts = items.group_by("value AS item").window(fw.tumbling(8)).count(name="counts")
    finals = counts.changes(emit=fw.emit.final())
    finals.group_by("key").window(fw.tumbling(4)).count(name="again", retention=0)
    with engine(flow) as driver:
        for time in range(60):
            driver.push("items", "a", at=time)
        driver.finish()
        stats = driver.stats("again")
    assert (stats.received, stats.late) == (8, 0)


def test_a_push_that_fails_is_not_run_again(engine: Engine) -> None:
    flow = Flow("failing")
    flow.source("items", schema=int).map("10 DIV value", name="divide").to("out")
    driver = engine(flow)
    with pytest.raises(OperatorError):
        driver.push("items", 5, 0, 2)
    driver.push("items", 1)
    assert [record.value for record in driver.read("out")] == [10]


def test_final_over_joined_windows_waits_for_the_slower_side(engine: Engine) -> None:
    flow = Flow("slower", retention="1h")
    items = flow.source("items", schema=str)
    windowed = items.group_by("value AS item").window(fw.tumbling(10))
    quick = windowed.count(name="quick", retention=0)
    slow = windowed.count(name="slow", retention=50)
    quick.join(slow, joiner=lambda a, b: b, retention=50, schema=int).to(
        "out", emit=fw.emit.final()
    )
    with engine(flow) as driver:
        driver.push_at("items", (1, "a"))
        driver.push_at("items", (20, "b"))
        driver.push_at("items", (2, "a"))  # late for quick, not for slow
        driver.push_at("items", (99, "c"))
        driver.finish()
        rows = [(r.value.key, r.value.window.start, r.value.value) for r in driver.read("out")]
    assert rows.count(("a", 0, 2)) == 1
    assert [row for row in rows if row[:2] == ("a", 0)] == [("a", 0, 2)]
