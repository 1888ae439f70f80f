"""``floodway doctor`` says whether a machine is ready and, if it is not, what to do."""

import typer
from rich.console import Console
from rich.text import Text

from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.doctor.checks import Finding, Status
from floodway.doctor.probes import Probes
from floodway.doctor.report import examine

_COLOURS: dict[Status, str] = {"ok": "green", "warning": "yellow", "wrong": "bold red"}


def summary(findings: list[Finding]) -> str:
    """Return the closing sentence of the report.

    Examples
    --------
    >>> summary([Finding(check="a", title="A", status="ok", detail="fine")])
    'Everything is in order.'
    """
    wrong = sum(finding.status == "wrong" for finding in findings)
    warnings = sum(finding.status == "warning" for finding in findings)
    if not wrong and not warnings:
        return "Everything is in order."
    counted = f"{warnings} warning{'' if warnings == 1 else 's'}"
    if not wrong:
        return f"Ready, with {counted}."
    return f"Not ready: {wrong} wrong, {counted}."


def render(findings: list[Finding], console: Console) -> None:
    """Print findings for people: a line for each, and below it what to do if it is not well.

    Parameters
    ----------
    findings
        What to print.
    console
        Where to print it.
    """
    width = max(len(finding.title) for finding in findings)
    for finding in findings:
        colour = _COLOURS[finding.status]
        line = Text.assemble(
            (f"{finding.status:<9}", colour), f"{finding.title:<{width}}  ", finding.detail
        )
        if finding.remedy:
            line.append(f"\n{'':{9 + width + 2}}→ {finding.remedy}", style=colour)
        # Never wrapped: a remedy may be a command to copy.
        console.print(line, soft_wrap=True, highlight=False)
    console.print(summary(findings), highlight=False)


def doctor(ctx: typer.Context, *, json: JsonOption = None) -> None:
    """Check whether this machine is ready, and say what to do if it is not.

    The exit code is 1 if something required is missing or wrong, else 0: warnings do not count.
    """
    report = examine(ctx.ensure_object(Probes))
    if json != STDOUT:
        render(report.findings, Console())
    if json is not None:
        write_json(report, json)
    if report.status == "wrong":
        raise typer.Exit(1)
