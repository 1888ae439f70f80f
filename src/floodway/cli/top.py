"""``floodway top`` shows a running flow: a table of its stages and operators, kept up to date.

It asks the flow's endpoint for ``/status.json``. It finds the endpoint by the file that the flow
left in the runtime folder, or by ``--url``.
"""

import http.client
import time
from collections.abc import Iterator
from typing import Annotated
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import msgspec
import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.core.errors import EngineError
from floodway.engine.metrics.announcements import Announcement, running
from floodway.engine.metrics.recent import Percentiles
from floodway.engine.metrics.status import (
    OperatorStatus,
    Shares,
    StageStatus,
    State,
    Status,
    TaskStatus,
)

WIDE = 100
"""From this many columns on, the table shows everything."""

_ANSWER_SECONDS = 5.0  # loopback: a driver that takes longer is stuck
_MARKS: dict[State, tuple[str, str]] = {
    "failed": ("✗", "bold red"),
    "silent": ("?", "bold red"),
    "missing": ("○", "yellow"),
    "starting": ("○", "yellow"),
    "paused": ("‖", "yellow"),
    "draining": ("◐", "cyan"),
    "running": ("●", "green"),
    "ended": ("■", "blue"),
    "retired": ("-", "dim"),
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
    """Show a running flow: rates, queues, busy tasks, latency and lag of each stage.

    The table is kept up to date until the flow ends or you press Ctrl-C. ``--once`` and ``--json``
    look once. The exit code is 1 if no such flow is running, else 0.
    """
    address = _find(url, flow)
    status = None if address is None else read_status(address)
    if address is None or status is None:
        typer.echo(_nothing(url, flow), err=True)
        raise typer.Exit(1)
    if json is not None:
        write_json(status, json)
    console = Console(highlight=False)
    if json is None and not once:
        _watch(address, status, interval, console)
    elif json != STDOUT:
        console.print(render(status))


def _find(url: str | None, flow: str | None) -> str | None:
    """Return the address of the endpoint to ask, or None if no such flow is running."""
    if url is not None:
        return url.rstrip("/")
    found = [each for each in running() if flow is None or each.flow == flow]
    if flow is None and len({each.flow for each in found}) > 1:
        raise _several(found)
    return found[0].url if found else None


def _several(found: list[Announcement]) -> EngineError:
    names = sorted({each.flow for each in found})
    return EngineError(
        f"several flows are running: {', '.join(names)}",
        remedy=f"choose one, for example: floodway top --flow {names[0]}",
    )


def _nothing(url: str | None, flow: str | None) -> str:
    if url is not None:
        return f"Nothing answers at {url}."
    if flow is not None:
        return f"No flow {flow!r} is running here."
    return "No flow is running here. A flow on another machine is found with --url."


def read_status(url: str) -> Status | None:
    """Ask an endpoint for the status of its flow.

    Parameters
    ----------
    url
        The address of the endpoint.

    Returns
    -------
    Status or None
        The status; None if nothing listens there.

    Raises
    ------
    EngineError
        If the address is not an HTTP address, or what answers is no endpoint of Floodway.
    """
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise EngineError(
            f"{url!r} is no address of an endpoint",
            remedy="write it like http://127.0.0.1:43121",
        )
    # No proxy: it could not reach the loopback interface of this machine.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(f"{url}/status.json", timeout=_ANSWER_SECONDS) as answer:
            return msgspec.json.decode(answer.read(), type=Status)
    except (HTTPError, http.client.HTTPException, msgspec.MsgspecError) as error:
        if isinstance(error, HTTPError):
            error.close()
        raise EngineError(
            f"what answers at {url} is no endpoint of this version of Floodway: {error}",
            remedy="use the address that the flow printed, without a path",
        ) from error
    except (URLError, OSError):
        return None


def _watch(address: str, status: Status, interval: float, console: Console) -> None:
    """Show the flow until it ends, its endpoint closes or the user has seen enough."""
    try:
        with Live(render(status), console=console, auto_refresh=False) as live:
            while status.state != "ended":
                time.sleep(interval)
                latest = read_status(address)
                if latest is None:
                    break
                status = latest
                live.update(render(status), refresh=True)
    except KeyboardInterrupt:
        return
    ending = "has ended" if status.state == "ended" else f"no longer answers at {address}"
    console.print(Text(f"Flow {status.flow!r} {ending}."))


def render(status: Status) -> RenderableType:
    """Return the table of a flow, for a console of any width from 80 columns on.

    Parameters
    ----------
    status
        The flow at one moment; nothing else is looked at.
    """
    return _View(status)


class _View:
    """The table of a flow; how much it shows depends on the width of the console."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        wide = options.max_width >= WIDE
        yield _headline(self._status)
        yield _grid(self._status, wide=wide)
        yield from _latencies(self._status)
        yield from _troubles(self._status)


def _headline(status: Status) -> Text:
    _, style = _MARKS[status.state]
    line = Text.assemble((status.flow, "bold"), "  ", (status.state, style))
    totals = status.totals
    facts = {
        "up": None if status.started is None else _age(status.time - status.started),
        "in": _count(totals.records_in),
        "out": None if totals.records_out is None else _count(totals.records_out),
        "late": _count(totals.late),
        "failed": _count(totals.skipped + totals.dead_letters),
        "restarts": _count(totals.restarts),
    }
    for label, value in facts.items():
        if value is not None:
            line.append_text(Text.assemble("   ", (f"{label} ", "dim"), value))
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _grid(status: Status, *, wide: bool) -> Grid:
    grid = Grid(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    grid.add_column("stage", width=24 if wide else 18, no_wrap=True, overflow="ellipsis")
    for title, width in (("dop", 3), ("in/s", 6), ("out/s", 6), ("queue", 6)):
        grid.add_column(title, width=width, no_wrap=True, justify="right")
    grid.add_column("busy", width=10 if wide else 6, no_wrap=True)
    grid.add_column("time p50/p99" if wide else "p99", width=13 if wide else 7, justify="right")
    grid.add_column("lag", width=12 if wide else 6, no_wrap=True, justify="right")
    grid.add_column("late/failed", width=11, no_wrap=True, justify="right")
    for stage in status.stages:
        grid.add_row(*_stage_row(stage, wide=wide))
        if [operator.counts.name for operator in stage.operators] != [stage.name]:
            for operator in stage.operators:
                grid.add_row(*_operator_row(operator), style="dim")
    return grid


def _stage_row(stage: StageStatus, *, wide: bool) -> list[RenderableType]:
    mark, style = _MARKS[stage.state]
    late = sum(operator.counts.late for operator in stage.operators)
    return [
        Text.assemble((mark, style), f" {stage.name}"),
        str(stage.dop),
        _count(stage.rates.arrival),
        _count(stage.rates.output),
        _count(stage.queue_records),
        _bar(stage.shares, width=10 if wide else 6),
        _service(stage.service_time, wide=wide),
        _lag(stage, wide=wide),
        _lost(late, sum(_failed(operator) for operator in stage.operators)),
    ]


def _operator_row(operator: OperatorStatus) -> list[RenderableType]:
    counts = operator.counts
    return [
        Text(f"    {counts.name}"),
        "",
        _count(operator.rate_in),
        _count(operator.rate_out),
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
    return Text(f"{_count(late)}/{_count(failed)}", style="yellow" if lost else "dim")


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
    return f"{_time(times.p50)}/{_time(times.p99)}" if wide else _time(times.p99)


def _lag(stage: StageStatus, *, wide: bool) -> str:
    seconds = None if stage.lag_seconds is None else _time(stage.lag_seconds * 1e6)
    records = None if stage.lag_records is None else _count(stage.lag_records)
    known = [each for each in (records, seconds) if each is not None]
    return " ".join(known if wide else known[-1:]) or "-"


def _latencies(status: Status) -> Iterator[Text]:
    for stage in status.stages:
        if stage.latency is not None:
            times = stage.latency
            yield Text.assemble(
                ("latency ", "bold"),
                f"at {stage.name}  p50 {_time(times.p50)}  p90 {_time(times.p90)}",
                f"  p99 {_time(times.p99)}  max {_time(times.max)}",
            )


def _troubles(status: Status) -> Iterator[Text]:
    for stage in status.stages:
        for task in stage.tasks:
            trouble = _trouble(task)
            if trouble:
                yield Text(f"task {stage.name}/{task.index} {trouble}", style="red")


def _trouble(task: TaskStatus) -> str | None:
    # The first line: what follows may be a long traceback, which --json has in full.
    reason = f": {task.reason.splitlines()[0]}" if task.reason else ""
    if task.state == "silent" and task.silent_s is not None:
        return f"is silent for {_time(task.silent_s * 1e6)}"
    return f"{task.state}{reason}" if task.state in ("failed", "paused") else None


def _count(number: float) -> str:
    """Return a number of at most six characters.

    Examples
    --------
    >>> [_count(n) for n in (0, 7.4, 999, 1234, 56_789, 999_960, 4_000_000, 1e12)]
    ['0', '7.4', '999', '1.23k', '56.8k', '1.00M', '4.00M', '1000G']
    """
    for unit in ("", "k", "M"):
        if number < 999.5:
            return _digits(number, exact=not unit) + unit
        number /= 1000
    return _digits(number, exact=False) + "G"


def _digits(number: float, *, exact: bool) -> str:
    """Return three digits of a number; a small whole number has nothing behind its point."""
    if exact and (number == int(number) or number >= 99.95):
        return f"{number:.0f}"
    if exact:
        return f"{number:.1f}"
    return (
        f"{number:.2f}"
        if number < 9.995
        else f"{number:.1f}"
        if number < 99.95
        else f"{number:.0f}"
    )


def _time(microseconds: float) -> str:
    """Return a time of at most six characters.

    Examples
    --------
    >>> [_time(us) for us in (3, 940, 1_240, 61_000, 5_200_000, 90_000_000, 7_300_000_000)]
    ['3µs', '940µs', '1.2ms', '61ms', '5.2s', '90s', '2h01m']
    """
    if microseconds >= 100e6:
        return _age(microseconds / 1e6)
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size * 0.9995:
            value = microseconds / size
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return f"{microseconds:.0f}µs"


def _age(seconds: float) -> str:
    """Return a longer time in two units.

    Examples
    --------
    >>> [_age(s) for s in (8.4, 75, 3_700, 200_000)]
    ['8s', '1m15s', '1h01m', '2d07h']
    """
    whole = max(0, int(seconds))
    for size, unit, part, small in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // part:02}{small}"
    return f"{whole}s"
