"""Plans: what is fused, what is shipped and how, and how many tasks there are."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Flow, Record, Stream, Table, tumbling
from floodway.core.errors import OptionError
from floodway.model.tuning import Tuning
from floodway.operators.partitioning import BY_KEY, FORWARD, Broadcast, Hash, Random, Single
from floodway.plan import Configuration, Plan
from floodway.plan.deployment import explain_plan, plan_document
from floodway.testing import ListSink, ListSource


class Sale(Record):
    shop: str
    city: str
    pieces: int


def plan(flow: Flow, dop: int = 1, **operators: Tuning) -> Plan:
    return Plan.of(flow, Configuration(Tuning(dop=dop), operators))


def stages(plan: Plan) -> list[list[str]]:
    return [[operator.name for operator in stage.operators] for stage in plan.stages]


def ways(plan: Plan) -> list[tuple[str, str, str]]:
    """Return the exchanges: the operator that sends, the one that reads, and how."""
    return [
        (exchange.edge.operator.name, reader.operator, type(exchange.partitioning).__name__)
        for exchange in plan.exchanges
        for reader in exchange.readers
    ]


def sales(name: str = "shop") -> tuple[Flow, Stream]:
    flow = Flow(name)
    return flow, flow.source("sales", schema=Sale)


def numbers(changes: Stream, name: str) -> Stream:
    return changes.map(lambda change: change.value, schema=int, name=name)


# --------------------------------------------------------------------- fusing


def test_chain_is_one_stage() -> None:
    flow, stream = sales()
    stream.filter("pieces > 1", name="some").map("pieces", name="pieces").to("out")
    assert stages(plan(flow, dop=3)) == [["sales", "some", "pieces", "out"]]
    assert plan(flow, dop=3).tasks == 3


def test_isolated_operator_has_a_stage_of_its_own() -> None:
    flow, stream = sales()
    stream.filter("pieces > 1", name="some").isolate().map("pieces", name="pieces").to("out")
    made = plan(flow, dop=2)
    assert stages(made) == [["sales"], ["some"], ["pieces", "out"]]
    assert {exchange.why for exchange in made.exchanges} == {"some is isolated"}
    assert {exchange.partitioning for exchange in made.exchanges} == {FORWARD}


def test_different_dop_parts_stages() -> None:
    flow, stream = sales()
    stream.map("pieces", name="pieces").tune(dop=3).filter("value > 1", name="some").to("out")
    made = plan(flow)
    assert stages(made) == [["sales"], ["pieces", "some", "out"]]
    (exchange,) = made.exchanges
    assert (exchange.partitioning, exchange.why) == (Random(), "dop 1 before, 3 after")


def test_state_needs_a_shuffle_even_at_dop_1() -> None:
    flow, stream = sales()
    stream.group_by("shop").count(name="counts")
    assert ways(plan(flow)) == [("sales", "counts", "Hash")]


def test_driver_side_connectors_are_stages_of_the_driver() -> None:
    flow = Flow("lists")
    flow.source("numbers", ListSource([1]), schema=int).map("value + 1", name="more").to(
        ListSink(), name="out"
    )
    made = plan(flow, dop=2)
    assert [(stage.name, stage.dop, stage.host) for stage in made.stages] == [
        ("numbers", 1, "driver"),
        ("more", 1, "task"),
        ("out", 1, "driver"),
    ]
    assert made.tasks == 1


# Each case: a diamond in which records reach an operator directly and through an aggregate.
DIAMONDS: dict[str, Callable[[Stream, Stream], Stream]] = {
    "direct way first": lambda direct, around: direct.merge(around, name="both"),
    "direct way last": lambda direct, around: around.merge(direct, name="both"),
}


@pytest.mark.parametrize("close", DIAMONDS.values(), ids=DIAMONDS)
@pytest.mark.parametrize("dop", [1, 2])
def test_diamond_keeps_its_shuffle(close: Callable[[Stream, Stream], Stream], dop: int) -> None:
    """Fused by way of the merge, source and count were one stage, and nothing was shuffled."""
    flow = Flow("diamond")
    stream = flow.source("numbers", schema=int)
    counts = stream.group_by("value AS number").count(name="counts")
    close(stream, numbers(counts.changes(name="changes"), "values")).to("out")
    made = plan(flow, dop=dop)
    assert stages(made) == [["numbers"], ["counts", "changes", "values", "both", "out"]]
    assert ways(made) == [("numbers", "counts", "Hash"), ("numbers", "both", "Forward")]
    assert made.exchanges[1].why == "records also take another way"


def test_copy_of_a_table_is_sent_although_stream_and_table_are_neighbours() -> None:
    """A table's own changes, joined with a copy of it: every task needs all rows."""
    flow = Flow("copies")
    prices = flow.table("prices", schema=int, key=str)
    names = prices.changes(name="changes").map(lambda change: change.key, schema=str, name="names")
    names.join(
        prices.map_values("value + 1", name="more"), on="value", joiner=lambda n, p: p,
        schema=int, late_updates="ignore", broadcast=True, name="joined",
    ).to("out")  # fmt: skip
    made = plan(flow, dop=2)
    assert ("more", "joined", "Broadcast") in ways(made)


def test_stages_never_wait_for_each_other_in_a_circle() -> None:
    flow = Flow("circle")
    stream = flow.source("numbers", schema=int)
    first = stream.map("value", name="first")
    counts = first.group_by("value AS number").count(name="counts")
    back = numbers(counts.changes(name="changes"), "values")
    first.merge(back, name="both").map("value", name="last").to("out")
    made = plan(flow, dop=2)
    assert all(
        made.stage(exchange.sender).level < made.stage(exchange.receiver).level
        for exchange in made.exchanges
    )


NAMES = count()


def unused() -> str:
    """Return a name that no operator has."""
    return f"table_{next(NAMES)}"


def counted(stream: Stream) -> Stream:
    counts = stream.group_by("value % 3 AS third").count(name=unused())
    return counts.changes().map(lambda change: change.value, schema=int)


Step = Callable[[list[Stream], Any], Stream]
STEPS: dict[str, Step] = {
    "map": lambda streams, pick: pick(streams).map("value + 1"),
    "filter": lambda streams, pick: pick(streams).filter("value > 0"),
    "isolate": lambda streams, pick: pick(streams).map("value").isolate(),
    "wide": lambda streams, pick: pick(streams).map("value").tune(dop=3),
    "rebalance": lambda streams, pick: pick(streams).rebalance(),
    "range": lambda streams, pick: pick(streams).range_by("value", [5]),
    "merge": lambda streams, pick: pick(streams).merge(pick(streams)),
    "key": lambda streams, pick: pick(streams).key_by("value % 3 AS third"),
    "count": lambda streams, pick: counted(pick(streams)),
}


@settings(max_examples=150)
@given(st.data(), st.lists(st.sampled_from(sorted(STEPS)), max_size=10), st.integers(1, 3))
def test_any_plan_has_an_exchange_for_each_move(
    data: st.DataObject, steps: list[str], dop: int
) -> None:
    flow = Flow("random")
    streams = [flow.source("numbers", schema=int), flow.source("more", schema=int)]
    for number, step in enumerate(steps):
        made = STEPS[step](streams, lambda all: data.draw(st.sampled_from(all)))
        named = made.map("value", name=f"step_{number}")
        streams.append(named)
    built = plan(flow, dop=dop)
    carried = {
        (exchange.edge, reader.operator, reader.port): exchange
        for exchange in built.exchanges
        for reader in exchange.readers
    }
    for operator in built.graph.operators:
        for port, edge in enumerate(built.graph.inputs[operator.name]):
            before, after = built.stage_of(edge.operator.name), built.stage_of(operator.name)
            exchange = carried.get((edge, operator.name, port))
            need = operator.partitioning(port)
            # An operator's need is met by an exchange, or by being where the records are.
            assert (exchange is None) == (before is after)
            if not isinstance(need, type(FORWARD)):
                assert exchange is not None or need == BY_KEY
                assert exchange is None or exchange.partitioning in (need, FORWARD)
            if exchange is not None:
                assert before.level < after.level
                assert before.dop == after.dop or exchange.partitioning != FORWARD
    names = [operator.name for stage in built.stages for operator in stage.operators]
    assert sorted(names) == sorted(operator.name for operator in flow.operators)
    assert explain_plan(built).count("\nstage ") == len(built.stages)


# --------------------------------------------------------------------- what lies right already


def test_tables_with_the_same_key_are_not_shuffled_again() -> None:
    flow, stream = sales()
    one = stream.group_by("shop").count(name="counts")
    other = stream.group_by("shop").sum("pieces", name="pieces")
    one.join(other, joiner=lambda a, b: a, schema=int, name="both")
    made = plan(flow, dop=3)
    assert ways(made) == [("sales", "counts", "Hash"), ("sales", "pieces", "Hash")]
    assert stages(made) == [["sales"], ["counts", "pieces", "both"]]


def test_same_shuffle_is_sent_once_to_a_stage() -> None:
    flow = Flow("once")
    stream = flow.source("sales", schema=Sale).key_by("shop", name="keyed")
    one = stream.to_table(name="one")
    other = stream.to_table(name="other")
    one.join(other, joiner=lambda a, b: a, schema=Sale, name="both")
    (exchange,) = plan(flow, dop=2).exchanges
    assert [(reader.operator, reader.port) for reader in exchange.readers] == [
        ("one", 0),
        ("other", 0),
    ]


def test_tables_with_different_dop_are_shuffled() -> None:
    flow, stream = sales()
    one = stream.group_by("shop").count(name="counts").tune(dop=2)
    other = stream.group_by("shop").sum("pieces", name="pieces")
    one.join(other, joiner=lambda a, b: a, schema=int, name="both")
    assert ("counts", "both", "Hash") in ways(plan(flow, dop=3))


def test_windowed_tables_have_other_keys_and_are_shuffled() -> None:
    flow, stream = sales()
    one, other = (
        stream.group_by("shop").window(tumbling(10)).count(name=name) for name in ("one", "other")
    )
    one.join(other, joiner=lambda a, b: a, schema=int, name="both")
    assert {way for way in ways(plan(flow, dop=2)) if way[1] == "both"} == {
        ("one", "both", "Hash"),
        ("other", "both", "Hash"),
    }


def test_new_key_is_shuffled() -> None:
    flow, stream = sales()
    joined = stream.key_by("shop", name="by_shop").to_table(name="shops")
    cities = joined.changes(name="changes").map(lambda change: change.value, schema=Sale)
    cities.key_by("city", name="by_city").to_table(name="cities")
    assert ("by_city", "cities", "Hash") in ways(plan(flow, dop=2))


def test_dead_letters_of_an_aggregate_have_their_old_key() -> None:
    """They lie where their group is; a table of them by their key has to be shuffled."""
    flow, stream = sales()
    counts = (
        stream.key_by("shop", name="by_shop")
        .group_by("city")
        .count(lambda sale: 1 // sale.pieces, name="counts", on_error="dead_letter")
    )
    counts.dead_letters.filter("true", name="kept").to_table(name="failures")
    assert ("kept", "failures", "Hash") in ways(plan(flow, dop=2))


# --------------------------------------------------------------------- dop


def foreign() -> Flow:
    flow = Flow("foreign")
    orders = flow.table("orders", schema=Sale, key=int)
    shops = flow.table("shops", schema=str, key=str)
    orders.join(shops, on="shop", joiner=lambda o, s: s, schema=str, name="joined")
    return flow


def test_operator_that_sees_everything_runs_once() -> None:
    made = plan(foreign(), dop=4)
    assert made.stage_of("joined").dop == 1
    assert {e.partitioning for e in made.exchanges if e.receiver == "joined"} == {Single()}


def few_groups() -> Flow:
    flow = Flow("few", key_groups=3)
    flow.source("sales", schema=Sale).group_by("shop").count(name="counts")
    return flow


def one_file() -> Flow:
    flow = Flow("list")
    flow.source("numbers", ListSource([1]), schema=int).to("out")
    return flow


@pytest.mark.parametrize(
    ("flow", "operator", "asked", "why", "most"),
    [
        (foreign(), "joined", 2, "it has to see everything", 1),
        (few_groups(), "counts", 4, "the flow has 3 key groups", 3),
        (one_file(), "numbers", 2, "it runs in the process that starts the flow", 1),
    ],
    ids=["single", "key groups", "driver"],
)
def test_dop_that_cannot_be_is_refused(
    flow: Flow, operator: str, asked: int, why: str, most: int
) -> None:
    with pytest.raises(
        OptionError, match=f"cannot run {asked} times side by side: {why}"
    ) as caught:
        plan(flow, **{operator: Tuning(dop=asked)})
    assert caught.value.operator == operator
    assert caught.value.place is not None
    assert caught.value.remedy == f"give it dop={most} or less"
    assert plan(flow, **{operator: Tuning(dop=most)}).stage_of(operator).dop == most


def test_dop_that_is_only_the_default_is_lowered() -> None:
    assert plan(few_groups(), dop=8).stage_of("counts").dop == 3
    assert plan(one_file(), dop=8).stage_of("numbers").dop == 1


def test_connector_may_limit_the_dop(tmp_path: Any) -> None:
    from floodway.connectors import JsonLinesSink

    flow = Flow("file")
    flow.source("numbers", schema=int).to(JsonLinesSink(tmp_path / "out.jsonl"), name="out")
    assert plan(flow, dop=4).stage_of("out").dop == 1
    with pytest.raises(OptionError, match="JsonLinesSink allows 1"):
        plan(flow, dop=4, out=Tuning(dop=2))


# --------------------------------------------------------------------- preloaded tables


def preloading() -> Flow:
    flow = Flow("preload")
    prices: Table = flow.table("prices", schema=int, key=str, preload=True)
    orders = flow.source("orders", schema=str)
    more = prices.map_values("value + 1", name="more")
    orders.join(more, on="value", joiner=lambda o, p: p, schema=int, name="joined").to("out")
    return flow


def test_preloaded_sources_feed_what_depends_on_them_alone() -> None:
    made = plan(preloading(), dop=2)
    assert made.preloaded == {"prices.changelog"}
    fed = made.fed_by(made.preloaded)
    senders = {e.edge.operator.name: e.number in fed for e in made.exchanges}
    assert senders["prices.changelog"]
    assert not senders["orders"]
    assert all(inside for name, inside in senders.items() if name in ("prices", "more"))
    everything = frozenset(source.name for source in made.graph.sources)
    assert made.fed_by(everything) == {e.number for e in made.exchanges}
    assert made.fed_by(frozenset()) == frozenset()


# --------------------------------------------------------------------- for people


def test_plan_explains_itself() -> None:
    flow, stream = sales()
    counts = (
        stream.tune(b_out=7, linger="5ms", batching="shared").group_by("shop").count(name="counts")
    )
    counts.changes(name="changes").to(ListSink(), name="out")
    stream.group_by("city").count(name="cities")
    assert explain_plan(plan(flow, dop=2)) == "\n".join(
        [
            "flow shop: 4 stages, 6 tasks, 128 key groups",
            "",
            "stage sales  dop 2",
            "  runs  sales",
            "  to    counts: hash(shop), b_out 7, linger 5ms, shared batches",
            "        counts keeps state per shop",
            "        cities: hash(city), b_out 7, linger 5ms, shared batches",
            "        cities keeps state per city",
            "",
            "stage counts  dop 2",
            "  runs  counts -> changes",
            "  to    out: random, b_out 100, linger 0ms",
            "        dop 2 before, 1 after",
            "",
            "stage cities  dop 2",
            "  runs  cities",
            "",
            "stage out  dop 1  at the driver",
            "  runs  out",
        ]
    )


def test_document_says_the_same() -> None:
    flow, stream = sales()
    stream.group_by("shop").count(name="counts")
    document = plan_document(plan(flow, dop=2))
    assert document["tasks"] == 4
    assert [stage["name"] for stage in document["stages"]] == ["sales", "counts"]
    (exchange,) = document["exchanges"]
    assert exchange == {
        "from": "sales", "to": "counts", "operator": "sales", "port": "main",
        "partitioning": "hash(shop)", "b_out": 100, "linger_ms": 0, "batching": "distinct",
        "why": "counts keeps state per shop",
    }  # fmt: skip


def test_partitionings_have_names() -> None:
    assert [str(p) for p in (FORWARD, Random(), Broadcast(), Single(), Hash())] == [
        "forward", "random", "broadcast", "single", "hash(key)",
    ]  # fmt: skip
