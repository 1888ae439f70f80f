"""``floodway explain``: what a flow is, and how it would run; or how it runs now, and why."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from floodway.cli.asking import find_status
from floodway.cli.flows import (
    BatchOption,
    ConfigurationOption,
    DopOption,
    LingerOption,
    configuration_of,
)
from floodway.cli.numbers import show_count, show_time
from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.telling import headline, in_full, paradigm_text
from floodway.core.errors import OptionError
from floodway.engine.driver.asking import read_story
from floodway.engine.metrics.status import StageStatus, Status
from floodway.engine.program.generated import generated_code
from floodway.engine.scheduler.story import Entry
from floodway.model.loading import load_flow
from floodway.plan import Plan
from floodway.plan.deployment import explain_plan, plan_document


class Live(msgspec.Struct, frozen=True):
    """A running flow, as ``--live --json`` writes it."""

    status: Status
    story: list[Entry]


def explain(
    flow: Annotated[
        str | None,
        typer.Argument(
            metavar="FLOW",
            help="The flow: package.module:name or path/to/file.py:name. With --live it may be "
            "left out.",
        ),
    ] = None,
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Explain how a running flow works now, and why.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option("--url", help="With --live: the flow's endpoint, instead of looking for it."),
    ] = None,
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
    """Show a flow's stages: what runs together, how often, how records are spread, and why.

    With --live, show a running flow instead: in which paradigm each stage works, since when and
    why, and all that the scheduler has decided.
    """
    if live:
        _explain_live(None if flow is None else load_flow(flow).name, url, json)
        return
    if flow is None:
        raise OptionError(
            "explain has to know which flow", remedy="name one, or add --live for one that runs"
        )
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


def _explain_live(flow: str | None, url: str | None, json: str | None) -> None:
    address, status = find_status(url, flow)
    story = read_story(address)
    if json is not None:
        write_json(Live(status, story), json)
    if json != STDOUT:
        console = Console(highlight=False)
        for part in describe(status, story):
            console.print(part)


def describe(status: Status, story: list[Entry]) -> Iterator[RenderableType]:
    """Return how a flow runs: each stage and why it works as it does, and all decisions."""
    since_ms = (status.started or status.time) * 1000
    yield Text.assemble("flow ", (status.flow, "bold"), f"  {status.state}")
    for stage in status.stages:
        yield Text("")
        yield from _describe_stage(stage, story)
    yield Text("")
    if story:
        yield Text("story, in seconds since the flow began", style="bold")
        yield from in_full(story, since_ms=since_ms)
    else:
        yield Text("The scheduler has decided nothing so far.")


def _describe_stage(stage: StageStatus, story: list[Entry]) -> Iterator[RenderableType]:
    yield Text.assemble(
        "stage ", (stage.name, "bold"), f"  dop {stage.dop}  ", paradigm_text(stage.paradigm)
    )
    chain = Text(" -> ").join(
        Text.assemble(o.counts.name, " (", paradigm_text(o.paradigm), ")") for o in stage.operators
    )
    yield _fact("runs", chain)
    yield _fact("now", Text(_now(stage)))
    if stage.batches is not None and stage.paradigm != "data":
        yield _fact("batches", Text(_batches(stage)))
    last = next((e for e in reversed(story) if e.stage == stage.name and e.what != "batch"), None)
    if last is not None:
        yield _fact("why", Text.assemble(headline(last), (f"; {last.why}", "dim")))


def _fact(label: str, text: Text) -> RenderableType:
    return Padding(Text.assemble((f"{label:<9}", "cyan"), text), (0, 0, 0, 2), expand=False)


def _now(stage: StageStatus) -> str:
    passage = stage.passage
    facts = [
        f"{show_count(stage.rates.arrival)}/s in",
        f"{show_count(stage.rates.output)}/s out",
        f"{show_count(stage.queue_records)} waiting",
    ]
    if passage is not None:
        facts.append(f"a record takes {show_time(passage.p50)}, 1 of 100 {show_time(passage.p99)}")
    facts += [f"{edge} b_out {b_out}" for edge, b_out in stage.b_out.items()]
    return ", ".join(facts)


def _batches(stage: StageStatus) -> str:
    batches = stage.batches
    if batches is None:
        return ""
    times = {
        "collected": batches.waited_s,
        "scheduled": batches.scheduled_s,
        "processed": batches.processed_s,
        "merged": batches.merged_s,
    }
    return f"{show_count(batches.per_s)}/s of {show_count(batches.records)} records: " + ", ".join(
        f"{word} {show_time(seconds * 1e6)}" for word, seconds in times.items()
    )
