"""From a stage to chains: neighbouring operators that run as one generated function."""

from floodway.operators.base import DEAD, MAIN, Operator
from floodway.plan.stages import Plan, Stage


def chains(plan: Plan, stage: Stage) -> list[tuple[Operator, ...]]:
    """Return a stage's operators, those together that run as one generated function."""
    found: list[list[Operator]] = []
    at: dict[str, list[Operator]] = {}
    for operator in stage.operators:
        before = _fused_with(plan, operator, at)
        if before is None:
            chain = [operator]
            found.append(chain)
        else:
            chain = before
            chain.append(operator)
        at[operator.name] = chain
    return [tuple(chain) for chain in found]


def _fused_with(
    plan: Plan, operator: Operator, at: dict[str, list[Operator]]
) -> list[Operator] | None:
    """Return the chain that an operator continues, or None if it starts one."""
    edges = plan.graph.inputs[operator.name]
    if not operator.facts.chained or len(edges) != 1:
        return None
    (edge,) = edges
    chain = at.get(edge.operator.name)
    if chain is None or edge.port != MAIN or edge.output.kind != "records":
        return None
    before = chain[-1]
    only = plan.graph.consumers[edge] == ((operator, 0),)
    if not before.facts.chained or before is not edge.operator or not only:
        return None
    return chain if before.outputs.keys() - {DEAD} == {MAIN} else None
