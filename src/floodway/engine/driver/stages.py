"""What the board has to know of the stages of a plan: it sees reports, and no operators."""

from collections.abc import Mapping

from floodway.engine.metrics.board import StageInfo
from floodway.operators.sink import Sink
from floodway.plan.stages import Plan, Stage


def describe_stages(plan: Plan, planned_ns: Mapping[str, float]) -> list[StageInfo]:
    """Describe the stages of a plan.

    Parameters
    ----------
    planned_ns
        What a record should cost each stage, in nanoseconds, where somebody has planned that.
    """
    return [_info(plan, stage, planned_ns.get(stage.name)) for stage in plan.stages]


def _info(plan: Plan, stage: Stage, planned_ns: float | None) -> StageInfo:
    spreads = sorted({str(exchange.partitioning) for exchange in plan.inputs(stage)})
    joins = {operator.name: operator.facts.joins for operator in stage.operators}
    return StageInfo(
        stage.name,
        tuple(operator.name for operator in stage.operators),
        stage.dop,
        ", ".join(spreads) or "source",
        tuple(op.name for op in stage.operators if isinstance(op, Sink)),
        tuple(op.name for op in stage.sources),
        planned_ns,
        {
            op.name: tuple(edge.operator.name for edge in plan.graph.inputs[op.name])
            for op in stage.operators
            if len(plan.graph.inputs[op.name]) > 1
        },
        {name: kind for name, kind in joins.items() if kind is not None},
        {operator.name: str(operator.place) for operator in stage.operators},
        tuple(op.name for op in stage.sources if op.timed),
    )
