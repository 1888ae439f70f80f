"""``floodway top`` shows a running flow: a table of its stages and operators, kept up to date.

It asks the flow's endpoint for ``/status.json`` and ``/story``. It finds the endpoint by the file
that the flow left in the runtime folder, or by ``--url``.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from floodway.cli.asking import find_status
from floodway.cli.numbers import show_age, show_count, show_time
from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.telling import brief, paradigm_text
from floodway.engine.driver.asking import read_status, read_story
from floodway.engine.metrics.recent import Percentiles
from floodway.engine.metrics.status import OperatorStatus, StageStatus, State, Status, TaskStatus
from floodway.engine.metrics.work import Shares
from floodway.engine.scheduler.story import Entry

WIDE = 100
"""From this many columns on, the table shows everything."""

TOLD = 5
"""So many of the scheduler's last decisions are shown below the table."""

_MARKS: dict[State, tuple[str, str]] = {
    "failed": ("✗", "bold red"),
    "silent": ("?", "bold red"),
    "missing": ("○", "yellow"),
    "starting": ("○", "yellow"),
    "paused": ("‖", "yellow"),
    "draining": ("◐", "cyan"),
    "running": ("●", "green"),
    "ended": ("■", "blue"),
}


def top(
    *,
    url: Annotated[
        str | None,
        typer.Option("--url", help="The flow's endpoint, for example http://127.0.0.1:43121."),
    ] = None,
    flow: Annotated[
        str | None, typer.Option("--flow", help="The flow's name, if several are running.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Show the flow once and exit.")] = False,
    json: JsonOption = None,
    interval: Annotated[
        float, typer.Option("--interval", min=0.1, help="Seconds between two looks.")
    ] = 1.0,
) -> None:
    """Show a running flow: paradigm, rates, queues, busy tasks, latency and lag of each stage.

    Below are the scheduler's last decisions; `floodway explain --live` has them in full.

    The table is kept up to date until the flow ends or you press Ctrl-C. ``--once`` and ``--json``
    look once. The exit code is 1 if no such flow is running, else 0.
    """
    address, status = find_status(url, flow)
    if json is not None:
        write_json(status, json)
    console = Console(highlight=False)
    if json is None and not once:
        _watch(address, status, interval, console)
    elif json != STDOUT:
        console.print(render(status, read_story(address)))


def _watch(address: str, status: Status, interval: float, console: Console) -> None:
    """Show the flow until it ends, its endpoint closes or the user has seen enough."""
    try:
        first = render(status, read_story(address))
        with Live(first, console=console, auto_refresh=False) as live:
            while status.state != "ended":
                time.sleep(interval)
                latest = read_status(address)
                if latest is None:
                    break
                status = latest
                live.update(render(status, read_story(address)), refresh=True)
    except KeyboardInterrupt:
        return
    ending = "has ended" if status.state == "ended" else f"no longer answers at {address}"
    console.print(Text(f"Flow {status.flow!r} {ending}."))


def render(status: Status, story: Sequence[Entry] = ()) -> RenderableType:
    """Return the table of a flow, for a console of any width from 80 columns on.

    Parameters
    ----------
    status
        The flow at one moment.
    story
        What its scheduler has decided, of which the last entries are shown below.
    """
    return _View(status, story)


class _View:
    """The table of a flow; how much it shows depends on the width of the console."""

    def __init__(self, status: Status, story: Sequence[Entry]) -> None:
        self._status, self._story = status, story

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        wide = options.max_width >= WIDE
        yield _headline(self._status)
        yield _grid(self._status, wide=wide)
        yield from _latencies(self._status)
        yield from _batches(self._status)
        yield from _duplicates(self._status)
        yield from _plans(self._status)
        yield from _troubles(self._status)
        yield from _worries(self._status)
        started = self._status.started or self._status.time
        yield from brief(self._story, since_ms=started * 1000, count=TOLD)


def _headline(status: Status) -> Text:
    _, style = _MARKS[status.state]
    line = Text.assemble((status.flow, "bold"), "  ", (status.state, style))
    totals = status.totals
    facts = {
        "up": None if status.started is None else show_age(status.time - status.started),
        "in": show_count(totals.records_in),
        "out": None if totals.records_out is None else show_count(totals.records_out),
        "late": show_count(totals.late),
        "failed": show_count(totals.skipped + totals.dead_letters),
        "restarts": show_count(totals.restarts),
    }
    for label, value in facts.items():
        if value is not None:
            line.append_text(Text.assemble("   ", (f"{label} ", "dim"), value))
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _grid(status: Status, *, wide: bool) -> Grid:
    grid = Grid(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    grid.add_column("stage", width=21 if wide else 18, no_wrap=True, overflow="ellipsis")
    grid.add_column("paradigm" if wide else "mode", width=9 if wide else 4, no_wrap=True)
    for title, width in (("dop", 3), ("in/s", 6), ("out/s", 6), ("queue", 6)):
        grid.add_column(title, width=width, no_wrap=True, justify="right")
    grid.add_column("busy", width=8 if wide else 6, no_wrap=True)
    grid.add_column("time p50/p99" if wide else "p99", width=13 if wide else 7, justify="right")
    grid.add_column("lag", width=10 if wide else 6, no_wrap=True, justify="right")
    grid.add_column("late/fail", width=9, no_wrap=True, justify="right")
    for stage in status.stages:
        grid.add_row(*_stage_row(stage, wide=wide))
        if [operator.counts.name for operator in stage.operators] != [stage.name]:
            for operator in stage.operators:
                grid.add_row(*_operator_row(operator, wide=wide), style="dim")
    return grid


def _stage_row(stage: StageStatus, *, wide: bool) -> list[RenderableType]:
    mark, style = _MARKS[stage.state]
    late = sum(operator.counts.late for operator in stage.operators)
    return [
        Text.assemble((mark, style), f" {stage.name}"),
        paradigm_text(stage.paradigm, width=9 if wide else 4),
        str(stage.dop),
        show_count(stage.rates.arrival),
        show_count(stage.rates.output),
        show_count(stage.queue_records),
        _bar(stage.shares, width=8 if wide else 6),
        _service(stage.service_time, wide=wide),
        _lag(stage, wide=wide),
        _lost(late, sum(_failed(operator) for operator in stage.operators)),
    ]


def _operator_row(operator: OperatorStatus, *, wide: bool) -> list[RenderableType]:
    counts = operator.counts
    return [
        Text(f"   {counts.name}"),
        paradigm_text(operator.paradigm, width=9 if wide else 4),
        "",
        show_count(operator.rate_in),
        show_count(operator.rate_out),
        "",
        "",
        "",
        "",
        _lost(counts.late, _failed(operator)),
    ]


def _failed(operator: OperatorStatus) -> int:
    return operator.counts.skipped + operator.counts.dead_letters


def _lost(late: int, failed: int) -> Text:
    lost = late or failed
    return Text(f"{show_count(late)}/{show_count(failed)}", style="yellow" if lost else "dim")


def _bar(shares: Shares | None, *, width: int) -> Text:
    """Return a bar of the time at work, the time blocked and the rest."""
    if shares is None:
        return Text("-", style="dim")
    busy = round(shares.busy * width)
    blocked = min(round(shares.blocked * width), width - busy)
    return Text.assemble(
        ("█" * busy, "green" if shares.busy < 0.8 else "red"),  # 0.8: little room for a burst
        ("▒" * blocked, "magenta"),
        ("·" * (width - busy - blocked), "dim"),
    )


def _service(times: Percentiles | None, *, wide: bool) -> str:
    if times is None:
        return "-"
    return f"{show_time(times.p50)}/{show_time(times.p99)}" if wide else show_time(times.p99)


def _lag(stage: StageStatus, *, wide: bool) -> str:
    seconds = None if stage.lag_seconds is None else show_time(stage.lag_seconds * 1e6)
    records = None if stage.lag_records is None else show_count(stage.lag_records)
    known = [each for each in (records, seconds) if each is not None]
    return " ".join(known if wide else known[-1:]) or "-"


def _latencies(status: Status) -> Iterator[Text]:
    for stage in status.stages:
        if stage.latency is not None:
            times = stage.latency
            yield Text.assemble(
                ("latency ", "bold"),
                f"at {stage.name}  p50 {show_time(times.p50)}  p90 {show_time(times.p90)}",
                f"  p99 {show_time(times.p99)}  max {show_time(times.max)}",
            )


def _batches(status: Status) -> Iterator[Text]:
    for stage in status.stages:
        batches = stage.batches
        if batches is not None and stage.paradigm != "data":
            line = Text.assemble(
                ("batches ", "bold"),
                f"at {stage.name}  {show_count(batches.per_s)}/s of {show_count(batches.records)}",
                f"  collected {show_time(batches.waited_s * 1e6)}",
                f"  scheduled {show_time(batches.scheduled_s * 1e6)}",
                f"  processed {show_time(batches.processed_s * 1e6)}",
                f"  merged {show_time(batches.merged_s * 1e6)}",
            )
            line.no_wrap, line.overflow = True, "ellipsis"
            yield line


def _duplicates(status: Status) -> Iterator[Text]:
    """Return how many records were duplicates: as it should be, so that nobody is warned."""
    for stage in status.stages:
        for operator in stage.operators:
            counts = operator.counts
            if counts.duplicates:
                yield Text.assemble(
                    ("duplicates ", "bold"),
                    f"at {counts.name}  {show_count(counts.duplicates)} of "
                    f"{show_count(counts.records_in)} records",
                )


def _plans(status: Status) -> Iterator[Text]:
    """Return how far what records cost is from what was planned."""
    for stage in status.stages:
        off = stage.off_plan
        if off is not None and stage.planned_ns is not None and stage.busy_ns is not None:
            # A task that mostly waits works more per record: it wakes up for every few of them.
            idle = stage.shares is not None and stage.shares.busy < 0.5
            yield Text.assemble(
                ("plan ", "bold"),
                f"of {stage.name}  a record costs {stage.busy_ns:,.0f} ns, planned "
                f"{stage.planned_ns:,.0f} ns: ",
                (f"{off:+.0%}", "dim" if idle else "yellow" if abs(off) > 0.2 else "green"),
                "  (mostly waiting)" if idle else "",
            )


def _troubles(status: Status) -> Iterator[Text]:
    for stage in status.stages:
        for task in stage.tasks:
            trouble = _trouble(task)
            if trouble:
                yield Text(f"task {stage.name}/{task.index} {trouble}", style="red")


def _worries(status: Status) -> Iterator[Text]:
    """Return why the flow is degraded, each reason in one line; --json has them in full."""
    for reason in status.health.reasons:
        if reason.kind != "task":
            line = Text.assemble(("degraded ", "bold yellow"), reason.problem)
            line.no_wrap, line.overflow = True, "ellipsis"
            yield line


def _trouble(task: TaskStatus) -> str | None:
    # The first line: what follows may be a long traceback, which --json has in full.
    reason = f": {task.reason.splitlines()[0]}" if task.reason else ""
    if task.state == "silent" and task.silent_s is not None:
        return f"is silent for {show_time(task.silent_s * 1e6)}"
    return f"{task.state}{reason}" if task.state in ("failed", "paused") else None
