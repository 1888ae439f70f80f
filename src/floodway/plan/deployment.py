"""A plan as text, for people: stages, how they talk to each other, and why."""

from typing import Any

from floodway.core.duration import show_ms
from floodway.plan.stages import Exchange, Plan, Stage


def explain_plan(plan: Plan) -> str:
    """Return the stages of a plan: what runs together, how often, and where results go.

    Examples
    --------
    >>> from floodway import Flow
    >>> flow = Flow("clicks")
    >>> counts = flow.source("clicks", schema=str).group_by("value AS page").count(name="counts")
    >>> print(explain_plan(Plan.of(flow)))
    flow clicks: 2 stages, 2 tasks, 128 key groups
    <BLANKLINE>
    stage clicks  dop 1
      runs  clicks
      to    counts: hash(value AS page), b_out 100, linger 0ms
            counts keeps state per value AS page
    <BLANKLINE>
    stage counts  dop 1
      runs  counts
    """
    stages = len(plan.stages)
    head = (
        f"flow {plan.flow}: {stages} stage{'s' if stages != 1 else ''}, {plan.tasks} "
        f"task{'s' if plan.tasks != 1 else ''}, {plan.key_groups} key groups"
    )
    return "\n\n".join([head, *(_stage(plan, stage) for stage in plan.stages)])


def _stage(plan: Plan, stage: Stage) -> str:
    where = "  at the driver" if stage.host == "driver" else ""
    lines = [f"stage {stage.name}  dop {stage.dop}{where}"]
    lines.append(f"  runs  {' -> '.join(operator.name for operator in stage.operators)}")
    label = "to"
    for exchange in plan.outputs(stage):
        lines.append(f"  {label:<4}  {_exchange(plan, exchange)}")
        lines.append(f"        {exchange.why}")
        label = ""
    return "\n".join(lines)


def _exchange(plan: Plan, exchange: Exchange) -> str:
    name = exchange.edge.operator.name
    port = "" if exchange.edge.port == "main" else f" ({name}.{exchange.edge.port})"
    scheme = ", shared batches" if plan.batching(name) == "shared" else ""
    linger = show_ms(plan.linger_ms(name))
    return (
        f"{exchange.receiver}{port}: {exchange.partitioning}, "
        f"b_out {plan.b_out(name)}, linger {linger}{scheme}"
    )


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain data, for programs."""
    return {
        "flow": plan.flow,
        "tasks": plan.tasks,
        "key_groups": plan.key_groups,
        "stages": [
            {
                "name": stage.name,
                "operators": [operator.name for operator in stage.operators],
                "dop": stage.dop,
                "level": stage.level,
                "host": stage.host,
            }
            for stage in plan.stages
        ],
        "exchanges": [
            {
                "from": exchange.sender,
                "to": exchange.receiver,
                "operator": exchange.edge.operator.name,
                "port": exchange.edge.port,
                "partitioning": str(exchange.partitioning),
                "b_out": plan.b_out(exchange.edge.operator.name),
                "linger_ms": plan.linger_ms(exchange.edge.operator.name),
                "batching": plan.batching(exchange.edge.operator.name),
                "why": exchange.why,
            }
            for exchange in plan.exchanges
        ],
    }
