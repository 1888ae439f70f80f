"""``floodway plan``: how many tasks and what batch sizes, before anything runs."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from floodway.cli.described import Described, FreshOption, SampleOption, describe, is_paper
from floodway.cli.output import STDOUT, JsonOption, OutputError, write_json
from floodway.cli.plan_output import (
    Part,
    answer_document,
    describe_answer,
    describe_comparison,
    describe_figures,
    describe_range,
    range_document,
    show_rate,
)
from floodway.cli.planning import (
    Answer,
    Comparison,
    Wishes,
    answer,
    answer_range,
    compare_with,
    explain_operator,
    rates_of,
    with_change,
    with_cores,
    with_rate,
)
from floodway.core.errors import OptionError
from floodway.provisioning.cost import Setting
from floodway.provisioning.paper import Paper
from floodway.provisioning.picture import picture

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
    rates = rates_of(rate) if rate is not None else []
    planning = {
        "--max-tasks": max_tasks,
        "--max-b-out": max_b_out,
        "--no-batching": no_batching,
        "--lean": lean,
        "--out": out,
    }
    if configuration is not None:
        _refuse(planning, "--configuration", "it is checked as it is, and nothing is planned")
    if len(rates) > 1:
        single = {"--against": against, "--explain": explain, "--out": out, "--svg": svg}
        _refuse(single, "a range of rates", "this is about one rate")
    if no_batching:
        _refuse({"--max-b-out": max_b_out}, "--no-batching", "both say how large batches may be")
    wishes = Wishes(
        headroom=headroom,
        max_b_out=1 if no_batching else max_b_out,
        lean=lean,
        max_tasks=max_tasks,
        largest=max_tasks is not None and not rates,
    )

    if not is_paper(described) and not rates and max_tasks is None:
        raise OptionError(
            "a flow does not say how many records are expected",
            remedy="add --rate R, in records per second, or --max-tasks N",
        )
    known = describe(
        described,
        samples=sample or (),
        fresh=fresh,
        console=Console(stderr=True, highlight=False),
    )
    given = with_cores(known.paper, cores) if cores is not None else known.paper
    paper = given
    for change in what_if or ():
        paper = with_change(paper, change)
    settings = known.settings(configuration) if configuration is not None else None
    if len(rates) > 1:
        steps = answer_range(paper, rates, wishes, settings)
        _report(
            [*known.shown(), *describe_range(steps)],
            {**range_document(steps), **known.document()},
            json,
        )
        return
    if rates:
        paper, given = with_rate(paper, rates[0]), with_rate(given, rates[0])
    found = answer(paper, wishes, settings)
    comparison = _comparison(
        found, known, given if what_if else None, settings, (configuration, against)
    )
    figures = explain_operator(found, explain) if explain is not None else []

    if out is not None:
        _write(out, _header(described, found) + known.toml(found.settings), unlike=described)
    if svg is not None:
        title = f"{Path(described).stem}: {show_rate(found.rate)} records/s"
        drawn = picture(paper.graph, found.diagnosis, title=title)
        _write(svg, drawn, unlike=described)
    parts = [*known.shown(), *describe_answer(found)]
    document = {**answer_document(found), **known.document()}
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
    found: Answer,
    known: Described,
    unchanged: Paper | None,
    settings: dict[str, Setting] | None,
    names: tuple[Path | None, Path | None],
) -> Comparison | None:
    configuration, against = names
    if against is not None:
        after = configuration.name if configuration else "plan"
        other = known.settings(against)
        return compare_with(found, found.paper, other, before=against.name, after=after)
    return compare_with(found, unchanged, settings) if unchanged is not None else None


def _refuse(options: Mapping[str, object], beside: str, why: str) -> None:
    """Refuse options that make no sense beside another."""
    given = [name for name, value in options.items() if value]
    if given:
        raise OptionError(
            f"{', '.join(given)} cannot go with {beside}: {why}", remedy=f"leave out {given[0]}"
        )


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
