"""The code that is generated for a plan, for people who want to read what runs."""

from floodway.connectors.base import SourceConnector
from floodway.engine.program.intake import Intake
from floodway.engine.program.program import Node
from floodway.engine.program.wiring import Wiring
from floodway.plan.stages import Plan


def generated_code(plan: Plan) -> dict[str, str]:
    """Return the generated functions of each stage: what they are for, and their source."""
    found: dict[str, str] = {}
    for stage in plan.stages:
        wiring = Wiring(plan, stage, 0, _nowhere)
        for node in wiring.program.nodes:
            source = _source(node)
            if source:
                names = " -> ".join(operator.name for operator in node.operators)
                found[f"stage {stage.name}: {names}"] = source
        for title, source in wiring.routers.items():
            found[f"stage {stage.name}: {title}"] = source
    return found


def _source(node: Node) -> str:
    kernel = node.kernel
    if isinstance(kernel, Intake):
        reads = isinstance(getattr(node.operators[0], "connector", None), SourceConnector)
        return kernel.source("items" if reads else "rows")
    return "" if kernel.code is None else kernel.code.source


def _nowhere(task: int, frame: bytes) -> None:
    """Send nothing: nobody works on this."""
