"""Larger batches: where, by how much, and back again."""

from typing import Any

import pytest

from floodway.engine.scheduler.batching import BatchSizes, Enlargement, growth
from floodway.engine.scheduler.loads import Link, OutletLoad, StageLoad, Topology
from floodway.engine.scheduler.settings import SchedulerSettings
from floodway.engine.scheduler.switch_point import switch_point

CHAIN = Topology(("a", "b"), (Link("a", "b", "a"),), frozenset("a"))
SETTINGS = SchedulerSettings()


def stage(name: str, *, b_out: int = 1, fill: float = 1.0, **fields: Any) -> StageLoad:
    """A stage that takes 1000 records a second, and gets twice as many."""
    rates = {"arrival_per_s": 2000.0, "data_per_s": 1000.0}
    outlets = (OutletLoad(name, b_out, 1000.0, 1000.0 / (b_out * fill)),)
    return StageLoad(**{"stage": name, **rates, "outlets": outlets, **fields})


def raised(
    batching: BatchSizes, flooded: StageLoad, *others: StageLoad, now_ms: int = 0
) -> list[Enlargement]:
    loads = {load.stage: load for load in (flooded, *others)}
    return batching.raise_for(flooded, loads, switch_point(flooded, SETTINGS), now_ms)


def test_emitting_that_dominates_asks_for_larger_batches_of_its_own() -> None:
    flooded = stage("b", cpu_ns=100.0, emit_ns=900.0)
    (step,) = raised(BatchSizes(CHAIN, SETTINGS), flooded, stage("a"))
    assert step == Enlargement("b", 1, 10, "b", "emitting")


def test_fetching_that_dominates_asks_for_larger_batches_of_the_senders() -> None:
    flooded = stage("b", fetch_ns=900.0, cpu_ns=100.0)
    (step,) = raised(BatchSizes(CHAIN, SETTINGS), flooded, stage("a"))
    assert step == Enlargement("a", 1, 10, "b", "fetching")


@pytest.mark.parametrize(
    "flooded",
    [
        stage("a", cpu_ns=900.0, emit_ns=100.0),
        stage("a", cpu_ns=100.0, emit_ns=900.0, fill=0.2, b_out=10),
        stage("a", cpu_ns=100.0, emit_ns=900.0, b_out=1000),
        stage("a", cpu_ns=100.0, emit_ns=900.0, outlets=(OutletLoad("a", 1),)),
        stage("a"),
    ],
    ids=["work dominates", "frames are not full", "largest", "nothing is sent", "nothing is known"],
)
def test_batches_that_would_not_help_are_left(flooded: StageLoad) -> None:
    batching = BatchSizes(CHAIN, SETTINGS)
    assert raised(batching, flooded) == []
    assert not batching.waiting("a", 0)


@pytest.mark.parametrize(
    ("arrival", "size"),
    [
        (2_000, 10),  # 900 / (1000 / 2 - 100) is 2.25
        (7_000, 100),  # 900 / (1000 / 7 - 100) is 21
        (9_900, 1_000),  # 900 / (1000 / 9.9 - 100) is 891
        (10_000, 1_000),  # no batch size is enough
    ],
)
def test_batches_are_as_large_as_equation_4_27_wants(arrival: float, size: int) -> None:
    flooded = stage("a", cpu_ns=100.0, emit_ns=900.0, arrival_per_s=arrival)
    (step,) = raised(BatchSizes(CHAIN, SETTINGS), flooded)
    assert step.after == size


def test_equation_4_27_is_met_with_equality() -> None:
    load = stage("a", fetch_ns=200.0, cpu_ns=100.0, emit_ns=700.0, arrival_per_s=2500.0)
    factor = growth(load, load.emit_ns, switch_point(load, SETTINGS))
    assert factor == 7.0
    # Two and a half times as fast: 200 + 100 + 700 / 7 is 400 instead of 1000.
    assert load.fetch_ns + load.cpu_ns + load.emit_ns / factor == load.cost_ns / 2.5


def test_step_has_a_moment_to_show_its_effect_and_the_last_comes_soon() -> None:
    batching = BatchSizes(CHAIN, SETTINGS)
    flooded = stage("a", cpu_ns=100.0, emit_ns=900.0)
    more = stage("a", cpu_ns=100.0, emit_ns=900.0, b_out=10)
    assert raised(batching, flooded)
    assert batching.waiting("a", 299)
    assert raised(batching, more, now_ms=299) == []
    assert not batching.waiting("a", 300)
    (step,) = raised(batching, more, now_ms=300)
    assert (step.before, step.after) == (10, 100)
    assert batching.waiting("a", 599)
    assert raised(batching, stage("a", cpu_ns=100.0, emit_ns=900.0, b_out=100), now_ms=600) == []
    batching.relax("a")
    assert raised(batching, stage("a", cpu_ns=100.0, emit_ns=900.0, b_out=100), now_ms=600)


def test_batches_are_lowered_when_all_they_were_raised_for_is_calm() -> None:
    batching = BatchSizes(CHAIN, SETTINGS)
    raised(batching, stage("a", cpu_ns=100.0, emit_ns=900.0, arrival_per_s=9_000.0))
    batching.press("a", 1_000)
    assert batching.lower(lambda _: 700.0, 5_900) == []
    assert batching.lower(lambda _: 900.0, 6_000) == []  # more than before could be carried
    assert batching.lower(lambda _: 700.0, 10_900) == []
    assert batching.lower(lambda _: 700.0, 11_000) == [Enlargement("a", 100, 10, "a", "")]
    assert batching.lower(lambda _: None, 20_000) == []
    assert batching.lower(lambda _: 700.0, 25_000) == [Enlargement("a", 10, 1, "a", "")]
    assert batching.lower(lambda _: 700.0, 99_000) == []


def test_batches_are_lowered_to_what_was_configured() -> None:
    batching = BatchSizes(CHAIN, SETTINGS)
    raised(batching, stage("a", cpu_ns=100.0, emit_ns=900.0, b_out=30))
    assert batching.lower(lambda _: 0.0, 10_000) == [Enlargement("a", 300, 30, "a", "")]


def test_batch_size_that_somebody_else_has_set_stays() -> None:
    batching = BatchSizes(CHAIN, SETTINGS)
    raised(batching, stage("a", cpu_ns=100.0, emit_ns=900.0))
    batching.take([stage("a", b_out=1)], 900)  # it has not been heard yet
    batching.take([stage("a", b_out=10)], 1_500)
    batching.take([stage("a", b_out=50)], 2_000)
    assert batching.lower(lambda _: 0.0, 60_000) == []
