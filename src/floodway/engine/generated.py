"""The code that is generated for a plan, for people who want to read what runs."""

from floodway.connectors.base import SourceConnector
from floodway.engine.datastream.intake import Intake
from floodway.engine.datastream.program import Node
from floodway.engine.datastream.task import Task
from floodway.plan.stages import Plan


def generated_code(plan: Plan) -> dict[str, str]:
    """Return the generated functions of each stage: what they are for, and their source."""
    found: dict[str, str] = {}
    for stage in plan.stages:
        task = Task(plan, stage, 0, _nowhere)
        for node in task.program.nodes:
            source = _source(node)
            if source:
                names = " -> ".join(operator.name for operator in node.operators)
                found[f"stage {stage.name}: {names}"] = source
        for title, source in task.router_sources.items():
            found[f"stage {stage.name}: {title}"] = source
    return found


def _source(node: Node) -> str:
    kernel = node.kernel
    if isinstance(kernel, Intake):
        reads = isinstance(getattr(node.operators[0], "connector", None), SourceConnector)
        return kernel.source("items" if reads else "rows")
    code = getattr(kernel, "code", None)
    return "" if code is None else code.source


def _nowhere(task: int, frame: bytes) -> None:
    """Send nothing: this task never runs."""
