"""An aggregate has the same rows whether it gets records or partials of them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import floodway as fw
from floodway.operators.aggregate import Aggregate
from floodway.operators.aggregate_latest import PAUSE, WORTH, LatestKernel
from floodway.operators.aggregate_partials import Combiner
from floodway.operators.lag import Lag
from floodway.operators.partials import Panes
from floodway.plan.graph import Graph

EMITS = {
    "every second": fw.emit.at_most_every(1000),
    "end": fw.emit.after_window_end(),
    "final": fw.emit.final(),
}
WINDOWS = {
    "none": None,
    "tumbling": fw.tumbling(10),
    "hopping": fw.hopping(10, advance=3),
}


class Sale(fw.Record, frozen=True):
    """What is aggregated."""

    shop: str
    pieces: int | None


SALES = st.lists(
    st.tuples(
        st.integers(-30, 60),
        st.none(),
        st.builds(Sale, st.sampled_from("abc"), st.none() | st.integers(-5, 5)),
    ),
    max_size=40,
)


def built(windows: str, emit: str) -> tuple[Graph, Aggregate]:
    flow = fw.Flow("sales", retention=5)
    grouped: Any = flow.source("sales", schema=Sale).group_by("shop")
    if WINDOWS[windows] is not None:
        grouped = grouped.window(WINDOWS[windows])
    table = grouped.agg(
        count=fw.count(),
        known=fw.count("pieces"),
        pieces=fw.sum("pieces"),
        least=fw.min("pieces"),
        most=fw.max("pieces"),
        mean=fw.mean("pieces"),
        name="totals",
    )
    table.changes(emit=EMITS[emit]).to("out")
    graph = Graph.of(flow)
    (operator,) = (op for op in graph.operators if isinstance(op, Aggregate))
    return graph, operator


def kernel_of(operator: Aggregate) -> tuple[LatestKernel, dict[str, list[Any]]]:
    outputs: dict[str, list[Any]] = {port: [] for port in operator.outputs}
    kernel = operator.kernel(outputs)
    assert isinstance(kernel, LatestKernel)
    return kernel, outputs


@pytest.mark.parametrize(
    ("windows", "emit"),
    [("none", "every second"), *((w, e) for w in ("tumbling", "hopping") for e in EMITS)],
)
@given(sales=SALES, times=st.lists(st.integers(-20, 60), max_size=3), data=st.data())
def test_partials_make_the_same_rows(
    windows: str, emit: str, sales: list[Any], times: list[int], data: st.DataObject
) -> None:
    graph, operator = built(windows, emit)
    assert operator.combinable(graph.consumers, versioned=False)
    combiner = Combiner(operator, graph.lags[operator.name], graph.consumers)
    records, expected = kernel_of(operator)
    merged, found = kernel_of(operator)
    stream_time: int | None = None
    for part, time in zip(parts(sales, len(times) + 1, data), [*sorted(times), None], strict=True):
        records.process(0, part)
        into: Panes = {}
        left = combiner.combine(part, into, combiner.horizon(stream_time))
        merged.process(0, left)
        merged.merge(combiner.partials(into))
        assert merged.rows() == records.rows()
        if time is not None:
            stream_time = time
            records.advance(time)
            merged.advance(time)
    assert found.get("late") == expected.get("late")


@pytest.mark.parametrize(
    ("windows", "emit"),
    [("none", "every second"), *((w, e) for w in ("tumbling", "hopping") for e in EMITS)],
)
@given(sales=SALES, times=st.lists(st.integers(-20, 60), max_size=3), data=st.data())
def test_kernel_that_combines_first_makes_the_same_rows(
    windows: str, emit: str, sales: list[Any], times: list[int], data: st.DataObject
) -> None:
    graph, operator = built(windows, emit)
    plain, expected = kernel_of(operator)
    combining, found = kernel_of(operator)
    combining.combine_first(Combiner(operator, graph.lags[operator.name], graph.consumers))
    many = [sale for sale in sales for _ in range(WORTH)]  # so that there is something to combine
    for part, time in zip(parts(many, len(times) + 1, data), [*sorted(times), None], strict=True):
        plain.process(0, part)
        combining.process(0, part)
        assert combining.rows() == plain.rows()
        if time is not None:
            plain.advance(time)
            combining.advance(time)
    assert found.get("late") == expected.get("late")
    last = [{row[1]: row[2] for row in rows["main"]} for rows in (found, expected)]
    assert last[0] == last[1]
    assert len(found["main"]) <= len(expected["main"])


def test_records_without_groups_in_common_are_not_combined_for_a_while() -> None:
    graph, operator = built("none", "every second")
    kernel, found = kernel_of(operator)
    kernel.combine_first(Combiner(operator, Lag(), graph.consumers))
    apart = [(0, None, Sale(f"shop {n}", 1)) for n in range(WORTH)]
    alike = [(0, None, Sale("shop", 1))] * WORTH
    kernel.process(0, apart)
    kernel.process(0, alike)
    assert len(found["main"]) == 2 * WORTH
    for _ in range(PAUSE):
        kernel.process(0, alike)
    assert len(found["main"]) == 2 * WORTH + (PAUSE - 1) * WORTH + 1
    assert kernel.rows()["shop"][1].count == (PAUSE + 1) * WORTH


def test_twice_as_many_records_are_combined_all_the_same() -> None:
    graph, operator = built("none", "every second")
    kernel, found = kernel_of(operator)
    kernel.combine_first(Combiner(operator, Lag(), graph.consumers))
    kernel.process(0, [(0, None, Sale(f"shop {n}", 1)) for n in range(WORTH)])
    kernel.process(0, [(0, None, Sale("shop", 1))] * (2 * WORTH))
    assert len(found["main"]) == WORTH + 1


def parts(rows: Sequence[Any], count: int, data: st.DataObject) -> list[list[Any]]:
    inner = data.draw(st.lists(st.integers(0, len(rows)), min_size=count - 1, max_size=count - 1))
    return [list(rows[a:b]) for a, b in pairwise([0, *sorted(inner), len(rows)])]


def test_rows_have_the_latest_time_of_their_records() -> None:
    graph, operator = built("none", "every second")
    combiner = Combiner(operator, Lag(), graph.consumers)
    into: Panes = {}
    combiner.combine([(9, None, Sale("a", 1)), (4, None, Sale("a", 2))], into, -100)
    kernel, _ = kernel_of(operator)
    kernel.merge(combiner.partials(into))
    assert kernel.rows()["a"][0] == 9


def test_who_sees_every_update_gets_every_record() -> None:
    flow = fw.Flow("sales")
    table = flow.source("sales", schema=Sale).group_by("shop").count(name="counts")
    table.changes().to("out")
    graph = Graph.of(flow)
    (operator,) = (op for op in graph.operators if isinstance(op, Aggregate))
    assert not operator.combinable(graph.consumers, versioned=False)


def test_own_aggregates_and_holistic_ones_are_not_combined() -> None:
    own = fw.aggregate(lambda sale: sale.pieces, max, schema=int)
    for function in (own, fw.collect("pieces")):
        flow = fw.Flow("sales")
        grouped = flow.source("sales", schema=Sale).group_by("shop").window(fw.tumbling(10))
        grouped.agg(x=function, name="made").changes(emit=fw.emit.final()).to("out")
        graph = Graph.of(flow)
        (operator,) = (op for op in graph.operators if isinstance(op, Aggregate))
        assert not operator.combinable(graph.consumers, versioned=False)
