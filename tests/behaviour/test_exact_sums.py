"""A float that has left a sum leaves nothing behind, whatever it was."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow
from floodway.engine.checkpoint.shape import FlowShape
from floodway.engine.checkpoint.upgrade import compare
from floodway.plan import Plan
from tests.behaviour.kernels import kernel_of
from tests.engines import Engine

INF, NAN = math.inf, math.nan
NUMBERS = st.one_of(
    st.sampled_from([0.1, 0.2, -0.3, 1e16, -1e16, 1e308, -1e308, 5e-324, INF, -INF, NAN, 0.0]),
    st.floats(),
)
WRITES = st.lists(st.tuples(st.sampled_from("abcd"), st.none() | NUMBERS), max_size=30)


def summed(values: list[float]) -> float | None:
    """Return what `math.fsum` says, where it says anything."""
    if not values:
        return None
    try:
        return math.fsum(values)
    except ValueError:  # infinities of both signs
        return NAN
    except OverflowError:  # of all together, or in between
        infinite = [value for value in values if not math.isfinite(value)]
        return sum(infinite) if infinite else rounded(values)


def rounded(values: list[float]) -> float:
    total = sum(map(Fraction, values), Fraction(0))
    try:
        return float(total)
    except OverflowError:
        return INF if total > 0 else -INF


def same(a: Any, b: Any) -> bool:
    return a == b or (a is not None and b is not None and a != a and b != b)


def table(flow: Flow) -> Any:
    return flow.table("rows", schema=float, key=str).group_by("1 AS g")


def untyped(flow: Flow) -> Any:
    return flow.table("rows", schema=tuple, key=str).group_by(lambda row: 1)


def revised(flow: Flow) -> Any:
    names = flow.table("names", schema=str, key=float)
    orders = flow.source("orders", schema=float)
    joined = orders.join(names, on="value", how="left", joiner=lambda a, b: a, schema=float)
    return joined.group_by("1 AS g")


def change(name: str, old: Any, new: Any) -> Any:
    return (1, name, new, old, None)


def row_change(name: str, old: Any, new: Any) -> Any:
    return (1, name, None if new is None else (new,), None if old is None else (old,), None)


def revision(name: str, old: Any, new: Any) -> Any:
    return (name, *(None if value is None else (1, None, value) for value in (old, new)))


INPUTS: dict[str, tuple[Callable[[Flow], Any], Callable[..., Any], Any]] = {
    "rows": (table, change, "value"),
    "untyped rows": (untyped, row_change, lambda row: row[0]),
    "revisions": (revised, revision, "value"),
}


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("source", INPUTS)
@settings(max_examples=150)
@given(writes=WRITES)
@example(writes=[("a", 0.1), ("b", 1e16), ("b", 0.2)])
@example(writes=[("a", 0.1), ("b", INF), ("c", NAN), ("b", 0.2), ("c", None)])
@example(writes=[("a", 1e308), ("b", 1e308), ("a", 0.1), ("b", 0.2)])
def test_what_is_left_is_what_fsum_says(
    source: str, versioned: bool, writes: list[tuple[str, float | None]]
) -> None:
    build, make, of = INPUTS[source]

    def write(flow: Flow) -> Any:
        return build(flow).agg(name="op", n=fw.count(), total=fw.sum(of), average=fw.mean(of))

    kernel: Any = kernel_of(write, versioned=versioned)[0]
    rows: dict[str, float] = {}
    for name, value in writes:
        kernel.process(0, [make(name, rows.get(name), value)])
        rows.pop(name, None)
        if value is not None:
            rows[name] = value
        found = [row for _, row in kernel.rows().values()]
        wanted = summed(list(rows.values()))
        assert len(found) == (wanted is not None)
        for row in found:
            assert row.n == len(rows)
            assert wanted is not None
            assert same(row.total, wanted)
            assert same(row.average, wanted / row.n)


@cache
def corrected() -> Flow:
    flow = Flow("exact")
    rows = flow.table("rows", schema=float, key=str)
    rows.group_by("1 AS g").sum("value", name="total")
    rows.group_by("1 AS g").mean("value", name="average")
    return flow


@pytest.mark.parametrize("was", [1e16, 1e308, INF, NAN])
def test_a_corrected_float_is_gone(engine: Engine, was: float) -> None:
    with engine(corrected()) as driver:
        driver.update("rows", "a", 0.1, at=1)
        driver.update("rows", "b", was, at=2)
        driver.update("rows", "c", was, at=2)
        driver.update("rows", "c", None, at=3)
        driver.update("rows", "b", 0.2, at=4)
        assert driver.table("total").values() == {1: math.fsum([0.1, 0.2])}
        assert driver.table("average").values() == {1: math.fsum([0.1, 0.2]) / 2}


def test_integers_of_no_known_type_stay_integers(engine: Engine) -> None:
    flow = Flow("integers")
    rows = flow.table("rows", schema=tuple, key=str)
    rows.group_by(lambda row: 1).sum(lambda row: row[0], name="total")
    with engine(flow) as driver:
        driver.update("rows", "a", (10**20,), at=1)
        driver.update("rows", "b", (0.5,), at=2)
        driver.update("rows", "b", (1,), at=3)
        assert driver.table("total").values() == {1: 10**20 + 1}


def test_a_checkpoint_with_rounded_sums_is_not_taken_for_one_with_exact_ones() -> None:
    exact = FlowShape.of(Plan.of(corrected()))
    states = {shape.name: shape.state for shape in exact.operators if shape.state is not None}
    states["total"].pop("layout")
    rounding = FlowShape.of(Plan.of(corrected()))
    (finding,) = [f for f in compare(exact, rounding) if f.operator == "total"]
    assert finding.verdict == "incompatible"
    assert finding.why == "its layout was none and is exact"
