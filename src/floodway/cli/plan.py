"""``floodway plan``: how many tasks and what batch sizes, before anything runs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from floodway.cli.described import FreshOption, SampleOption, describe, is_paper
from floodway.cli.flows import on_command_line
from floodway.cli.output import STDOUT, JsonOption, OutputError, write_json
from floodway.cli.plan_output import (
    Part,
    answer_document,
    describe_answer,
    describe_comparison,
    describe_costs,
    describe_figures,
    describe_range,
    range_document,
)
from floodway.cli.rates import rates_of
from floodway.plan.configuration import Configuration
from floodway.provisioning.picture import picture
from floodway.provisioning.planning.answers import Answer, Comparison, explain_operator
from floodway.provisioning.planning.described import Described
from floodway.provisioning.planning.questions import (
    Question,
    compare_against,
    compare_without_changes,
    refuse_no_rate,
    refuse_planning,
    reply,
    reply_each,
)
from floodway.provisioning.planning.refusing import refuse_beside
from floodway.provisioning.planning.wording import show_rate

EXIT_BOTTLENECK = 1
"""The exit code if the configuration that was given has a bottleneck."""


def plan(
    described: Annotated[
        str,
        typer.Argument(
            metavar="FLOW|FILE.toml",
            help="A flow, as `floodway run` takes it, or a file of operators with their costs.",
        ),
    ],
    *,
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="R|FROM:TO:STEP",
            help="Records per second, all sources together, or a range of rates; by default as "
            "the file says. A flow needs one, or --max-tasks.",
        ),
    ] = None,
    max_tasks: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="At most so many tasks. Without --rate: the largest rate that they can take.",
        ),
    ] = None,
    max_b_out: Annotated[
        int | None, typer.Option(min=1, help="The largest batches allowed; by default any.")
    ] = None,
    no_batching: Annotated[
        bool, typer.Option("--no-batching", help="The same as --max-b-out 1.")
    ] = False,
    lean: Annotated[
        bool, typer.Option("--lean", help="Batch sizes that keep records waiting the least.")
    ] = False,
    headroom: Annotated[
        float, typer.Option(help="The share of each operator's capacity to keep free, e.g. 0.2.")
    ] = 0.0,
    cores: Annotated[
        int | None, typer.Option(min=1, help="The cores of a server; by default as the file says.")
    ] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHANGE",
            help="A change, and what it makes of the plan: operator.field=value or "
            "operator.field*=factor. May be given several times.",
        ),
    ] = None,
    configuration: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Check this configuration instead of planning one."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Compare with this configuration."),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option(metavar="OPERATOR", help="Also show where each of its numbers comes from."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the configuration, as floodway run --configuration takes it.",
        ),
    ] = None,
    sample: SampleOption = None,
    fresh: FreshOption = False,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the operators with their loads.")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Plan how many tasks and what batch sizes a rate takes, from what the operators cost.

    With --configuration, say instead what that configuration makes of the rate; the exit code is 1
    if it has a bottleneck. With a file nothing is started. What a flow's operators cost is measured
    on this machine, on a sample of its input, and kept; nothing is written to its sinks.
    """
    if no_batching:
        refuse_beside(
            {"--max-b-out": max_b_out}, "--no-batching", "both say how large batches may be"
        )
    question = Question(
        rates=rates_of(rate) if rate is not None else (),
        max_tasks=max_tasks,
        max_b_out=max_b_out,
        lean=lean,
        headroom=headroom,
        cores=cores,
        what_if=what_if or (),
    )
    if configuration is not None:
        refuse_planning(question, on_command_line, {"--no-batching": no_batching, "--out": out})
    if len(question.rates) > 1:
        single = {"--against": against, "--explain": explain, "--out": out, "--svg": svg}
        refuse_beside(single, "a range of rates", "this is about one rate")
    if not is_paper(described):
        refuse_no_rate(question, on_command_line)
    if no_batching:
        question = msgspec.structs.replace(question, max_b_out=1)
    if configuration is not None:
        checked = Configuration.read(configuration)
        question = msgspec.structs.replace(question, configuration=checked)
    console = Console(stderr=True, highlight=False)
    known = describe(described, samples=sample or (), fresh=fresh, console=console)
    if len(question.rates) > 1:
        steps = reply_each(known, question)
        _report(
            [*_costs(known), *describe_range(steps)],
            {**range_document(steps), **_costs_document(known)},
            json,
        )
        return
    found = reply(known, question)
    comparison = _comparison(known, question, found, (configuration, against))
    figures = explain_operator(found, explain) if explain is not None else []

    if out is not None:
        _write(out, _header(described, found) + known.toml(found.settings), unlike=described)
    if svg is not None:
        title = f"{Path(described).stem}: {show_rate(found.rate)} records/s"
        drawn = picture(found.paper.graph, found.diagnosis, title=title)
        _write(svg, drawn, unlike=described)
    parts = [*_costs(known), *describe_answer(found)]
    document = {**answer_document(found), **_costs_document(known)}
    if comparison is not None:
        parts += ["", *describe_comparison(comparison)]
        document["comparison"] = comparison
    if explain is not None:
        parts += ["", *describe_figures(explain, figures)]
        document["explanation"] = {explain: figures}
    _report(parts, document, json)
    if configuration is not None and found.diagnosis.bottlenecks:
        raise typer.Exit(EXIT_BOTTLENECK)


def _comparison(
    known: Described, question: Question, found: Answer, files: tuple[Path | None, Path | None]
) -> Comparison | None:
    checked, other = files
    if other is not None:
        after = checked.name if checked else "plan"
        configuration = Configuration.read(other)
        return compare_against(known, found, configuration, before=other.name, after=after)
    return compare_without_changes(known, question, found) if question.what_if else None


def _costs(known: Described) -> Iterable[Part]:
    return () if known.costs is None else describe_costs(known.costs)


def _costs_document(known: Described) -> dict[str, object]:
    return {} if known.costs is None else {"costs": known.costs}


def _header(described: str, found: Answer) -> str:
    rate = show_rate(found.rate)
    return f"# {found.tasks} tasks for {rate} records/s, planned with {Path(described).name}\n\n"


def _write(target: Path, text: str, *, unlike: str) -> None:
    remedy = "name a file in a folder that exists and that you may write to"
    if target.resolve() == Path(unlike).resolve():
        raise OutputError(f"{target} is the file with the costs", remedy="name another file")
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        problem = f"cannot write {str(target)!r}: {error.strerror or error}"
        raise OutputError(problem, remedy=remedy) from error


def _report(parts: Iterable[Part], document: dict[str, object], json: str | None) -> None:
    if json is not None:
        write_json(document, json)
    if json != STDOUT:
        console = Console(highlight=False)
        for part in parts:
            console.print(part)
