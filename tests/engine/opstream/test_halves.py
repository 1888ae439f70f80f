"""What is done away from the owner of state has none, whatever the operators say."""

from collections.abc import Callable
from typing import Any

import pytest

from floodway import Flow
from floodway.engine.opstream.halves import able, halves, returning
from floodway.engine.program.intake import Intake
from floodway.engine.program.program import Program
from floodway.operators.base import CopyKernel
from floodway.plan.chains import chains
from floodway.plan.stages import Plan
from tests.operators.cases import CASES, stateless


def plan_of(write: Callable[[Flow], Any]) -> Plan:
    flow = Flow("halves", retention=5)
    write(flow)
    return Plan.of(flow)


PLANS = {**{name: plan_of(write) for name, write in CASES.items()}, "all": Plan.of(stateless())}


@pytest.mark.parametrize("name", PLANS)
def test_what_is_done_elsewhere_remembers_nothing(name: str) -> None:
    plan = PLANS[name]
    for stage in plan.stages:
        parts, program = halves(plan, stage), Program(plan, stage, 0)
        for node in program.nodes:
            kernel = node.kernel
            copied = isinstance(kernel, CopyKernel)
            free = isinstance(kernel, Intake) or not kernel.remembers
            assert node.name not in parts.remote or copied or (free and not node.collects)
            assert (node.name in parts.tables) == (copied and node.name in parts.remote)


@pytest.mark.parametrize("name", PLANS)
def test_records_never_come_back_from_the_owner(name: str) -> None:
    plan = PLANS[name]
    for stage in plan.stages:
        parts = halves(plan, stage)
        first_of = {op.name: chain[0] for chain in chains(plan, stage) for op in chain}
        for first in {chain[0].name: chain[0] for chain in chains(plan, stage)}.values():
            if first.name not in parts.remote:
                continue
            for port, edge in enumerate(plan.graph.inputs[first.name]):
                if parts.takes(first.name, port) and edge.operator.name in first_of:
                    assert first_of[edge.operator.name].name in parts.remote


def test_a_look_up_the_owner_has_to_do_takes_what_follows_along() -> None:
    flow = Flow("enriched")
    rows = flow.table("rows", schema=int, key=int)
    numbers = flow.source("numbers", schema=int).map("value + 1", name="more")
    found = numbers.join(
        rows, on="value", joiner=lambda a, b: a + b, schema=int, name="found",
        late_updates="ignore", broadcast=True,
    )  # fmt: skip
    found.filter("value > 1", name="large").to("out")
    plan = Plan.of(flow)
    stage = plan.stage_of("found")
    assert {"numbers", "found", "large"} <= halves(plan, stage).remote
    assert halves(plan, stage).tables == {"found"}
    assert halves(plan, stage, without=["found"]).remote == {"numbers"}
    assert able(plan, stage)
    assert returning(plan, stage) == {"out"}
