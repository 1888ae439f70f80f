"""On real Spark a flow gives what the reference driver gives, however it is spread and batched."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import floodway as fw
from floodway.testing import (
    At,
    Delete,
    Driver,
    Emitted,
    ListSink,
    ListSource,
    Pause,
    equivalent,
    fold,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shared_spark", "clean")]

Sinks = dict[str, ListSink]
Build = Callable[[fw.Flow, Sinks], None]


class Tap(fw.Record):
    gate: str
    fare: int


class Place(fw.Record):
    gate: str
    town: str


# Out of order by at most two seconds, over three keys.
TAPS = [
    At(1000 * number - (1500 if number % 7 == 3 else 0), Tap("abc"[number % 3], number % 10))
    for number in range(2, 60)
]
LATER: list[Any] = [Pause("1s")]  # marks come meanwhile, so that stream time is where it should be


def taps(flow: fw.Flow, items: Iterable[Any] = TAPS, name: str = "taps") -> fw.Stream:
    return flow.source(name, ListSource(items), schema=Tap, idle="200ms")


def stateless(flow: fw.Flow, sinks: Sinks) -> None:
    doubled = taps(flow).filter("fare > 2").map(lambda tap: tap.fare * 2, schema=int)
    doubled.flat_map(lambda fare: range(fare % 4), schema=int).to(sinks["facts"])


def branch_and_merge(flow: fw.Flow, sinks: Sinks) -> None:
    dear, cheap, other = taps(flow).branch("fare > 7", "fare < 3")
    raised = dear.map(lambda tap: Tap(tap.gate, tap.fare + 100), schema=Tap)
    raised.merge(cheap).to(sinks["facts"])
    other.to(sinks["facts_too"])


def windowed_count(flow: fw.Flow, sinks: Sinks) -> None:
    late = [*TAPS, *LATER, At(500, Tap("a", 1)), At(59_000, Tap("a", 1)), At(600, Tap("b", 2))]
    counts = (
        taps(flow, late)
        .group_by("gate")
        .window(fw.tumbling("10s"))
        .count(name="counts", retention="5s")
    )
    counts.changes(emit=fw.emit.final()).to(sinks["facts"])
    counts.changes().to(sinks["table"])
    counts.late.to(sinks["facts_late"])


def sessions(flow: fw.Flow, sinks: Sinks) -> None:
    items = [tap for tap in TAPS if (tap.timestamp // 1000) % 9 < 6]
    sums = taps(flow, items).group_by("gate").window(fw.session("3s")).sum("fare", name="sessions")
    sums.changes(emit=fw.emit.final()).to(sinks["facts"])


def several_aggregates(flow: fw.Flow, sinks: Sinks) -> None:
    taps(flow).group_by("gate").agg(name="both", taps=fw.count(), fare=fw.sum("fare")).to(
        sinks["table"]
    )


def top(flow: fw.Flow, sinks: Sinks) -> None:
    taps(flow).group_by("gate").top(2, by="fare", name="dearest").to(sinks["table"])


def joining_streams(how: Any, emit: Any) -> Build:
    def build(flow: fw.Flow, sinks: Sinks) -> None:
        left = taps(flow).key_by("gate")
        others = [At(tap.timestamp + 700, tap.value) for tap in TAPS if tap.value.fare % 2]
        right = taps(flow, others, "exits").key_by("gate")
        left.join(
            right,
            within="1500ms",
            how=how,
            emit=emit,
            joiner=lambda one, other: (one and one.fare, other and other.fare),
            schema=tuple[int | None, int | None],
            retention="1m",
            name="pairs",
        ).to(sinks["facts"])

    return build


def lookup(flow: fw.Flow, sinks: Sinks) -> None:
    updates = [
        At(0, Place("a", "north")),
        At(0, Place("b", "south")),
        At(20_000, Place("a", "east")),
        *LATER,
        At(10_000, Place("b", "west")),  # late: what was joined since then is corrected
    ]
    places = flow.table("places", ListSource(updates), schema=Place, key="gate", idle="200ms")
    taps(flow).join(
        places, on="gate", how="left", select=["left.gate", "fare", "town"], name="where"
    ).to(sinks["facts"])


def joining_tables(flow: fw.Flow, sinks: Sinks) -> None:
    updates = [At(0, Place("a", "north")), At(5000, Place("b", "x")), At(9000, Place("b", "y"))]
    places = flow.table(
        "places", ListSource([*updates, Delete("a", 30_000)]), schema=Place, key="gate"
    )
    fares = taps(flow).key_by("gate").to_table(name="fares")
    fares.join(places, how="left", select=["fare", "town"], name="both").to(sinks["table"])


def aggregating_a_table(flow: fw.Flow, sinks: Sinks) -> None:
    last = taps(flow).key_by("gate").to_table(name="last")
    last.group_by("fare % 2 AS odd").sum("fare", name="sums").to(sinks["table"])


def process(flow: fw.Flow, sinks: Sinks) -> None:
    def update(time: int, key: str, tap: Tap, total: int) -> tuple[int, list[Any]]:
        return total + tap.fare, [(time, key, total + tap.fare)]

    totals = taps(flow).key_by("gate").process(init=lambda key: 0, update=update, schema=int)
    totals.to(sinks["ordered"])


def dead_letters(flow: fw.Flow, sinks: Sinks) -> None:
    parts = taps(flow).map("12 / (fare - 5)", name="parts", on_error="dead_letter")
    parts.to(sinks["facts"])
    letters = parts.dead_letters.map(lambda letter: letter.operator, schema=str)
    letters.to(sinks["facts_dead"])
    taps(flow, TAPS[:20], "again").map("12 / (fare - 5)", on_error="skip").to(sinks["facts_too"])


BUILDS: dict[str, Build] = {
    "stateless": stateless,
    "branch_and_merge": branch_and_merge,
    "windowed_count": windowed_count,
    "sessions": sessions,
    "several_aggregates": several_aggregates,
    "top": top,
    "inner_join": joining_streams("inner", "eager"),
    "full_join_eager": joining_streams("full", "eager"),
    "left_join_lazy": joining_streams("left", "lazy"),
    "lookup": lookup,
    "joining_tables": joining_tables,
    "aggregating_a_table": aggregating_a_table,
    "process": process,
    "dead_letters": dead_letters,
}


def built(name: str) -> tuple[fw.Flow, Sinks]:
    flow, sinks = fw.Flow(name), defaultdict[str, ListSink](ListSink)
    BUILDS[name](flow, sinks)
    return flow, sinks


def repr_of(rows: dict[Any, Any]) -> dict[Any, str]:
    """Return rows as text: two flows have two classes for the same columns."""
    return {key: repr(value) for key, value in rows.items()}


def by_key(records: Iterable[Emitted]) -> dict[Any, list[Any]]:
    found = defaultdict(list)
    for record in records:
        found[record.key].append(record.value)
    return dict(found)


@pytest.mark.parametrize(("dop", "b_out"), [(1, 1), (1, 50), (3, 1), (3, 50)])
@pytest.mark.parametrize("name", BUILDS)
def test_results_are_those_of_the_reference(name: str, dop: int, b_out: int) -> None:
    flow, expected = built(name)
    assert Driver(flow).run() == "ended"
    flow, found = built(name)
    flow.run(dop=dop, b_out=b_out)
    assert expected.keys() == found.keys()
    for sink, want in expected.items():
        assert want.records, f"{name} tests nothing at {sink}"
        got = found[sink].records
        if sink == "table":
            assert repr_of(fold(got)) == repr_of(fold(want.records))
        elif sink == "ordered":
            assert by_key(got) == by_key(want.records)
        else:
            assert equivalent(got, want.records), sink
