"""``floodway explain``: what a flow is, and how it would run."""

from typing import Annotated

import typer

from floodway.cli.flows import (
    BatchOption,
    ConfigurationOption,
    DopOption,
    FlowArgument,
    LingerOption,
    configuration_of,
    load_flow,
)
from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.engine.generated import generated_code
from floodway.plan import Plan
from floodway.plan.deployment import explain_plan, plan_document


def explain(
    flow: FlowArgument,
    *,
    operators: Annotated[
        bool, typer.Option("--operators", help="Also show every operator with its schema.")
    ] = False,
    code: Annotated[
        bool, typer.Option("--code", help="Also show the Python code that is generated.")
    ] = False,
    dop: DopOption = None,
    b_out: BatchOption = None,
    linger: LingerOption = None,
    configuration: ConfigurationOption = None,
    json: JsonOption = None,
) -> None:
    """Show a flow's stages: what runs together, how often, how records are spread, and why."""
    loaded = load_flow(flow)
    plan = Plan.of(loaded, configuration_of(configuration, dop, b_out, linger))
    if json is not None:
        document = plan_document(plan)
        write_json(document | ({"code": generated_code(plan)} if code else {}), json)
    if json == STDOUT:
        return
    if operators:
        typer.echo(loaded.explain() + "\n")
    typer.echo(explain_plan(plan))
    if code:
        for title, source in generated_code(plan).items():
            typer.echo(f"\n# {title}\n{source.rstrip()}")
