"""``floodway demo``: the ad pipeline on the engine, through a calm, a burst and a calm again.

Events come as JSON lines through a socket, more or fewer per second as time goes on. They are
decoded, filtered, joined with the campaign of their ad and counted per campaign in windows of ten
seconds, in tasks on Spark. At the end the counts are compared with those of a plain loop over the
same lines.
"""

import socket
import time
from collections import Counter
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from floodway.bench import ads
from floodway.bench.feeding import Feeder
from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.top import render
from floodway.connectors.discard import DiscardSink
from floodway.connectors.tcp import TcpSource
from floodway.core.errors import EngineError
from floodway.engine.job import Job, start
from floodway.engine.metrics.recent import Percentiles
from floodway.testing import ListSink

STEP_S = 0.05
"""Events are sent in bursts of this length."""


class Phase(msgspec.Struct, frozen=True):
    """A stretch of the demonstration."""

    name: str
    seconds: float
    per_second: int


PHASES = (
    Phase("calm", 5, 1_000),
    Phase("burst", 6, 40_000),
    Phase("calm again", 5, 1_000),
)


class PhaseFigures(msgspec.Struct, frozen=True):
    """What was measured at the end of a phase."""

    name: str
    per_second: int
    latency_ms: dict[str, float]
    queue_records: int


class Demonstration(msgspec.Struct, frozen=True):
    """The whole demonstration, as ``--json`` writes it."""

    flow: str
    dop: int
    events: int
    views: int
    windows: int
    correct: bool
    phases: list[PhaseFigures]


class Sender(Feeder):
    """Sends events of the present moment, so many per second, and counts their views itself."""

    def __init__(self, phases: tuple[Phase, ...]) -> None:
        super().__init__()
        self._phases = phases
        self.phase: Phase | None = None
        self.sent = 0
        self.counts: Counter[tuple[str, int]] = Counter()
        self._lookup = ads.campaigns()

    def feed(self, client: socket.socket) -> None:
        """Go through the phases."""
        for phase in self._phases:
            self.phase = phase
            self._send_phase(client, phase)

    def _send_phase(self, client: socket.socket, phase: Phase) -> None:
        began, done = time.monotonic(), 0
        while (passed := time.monotonic() - began) < phase.seconds:
            due = int(passed * phase.per_second)
            if due > done:
                events = ads.make_events(
                    due - done, seed=self.sent, start_ms=time.time_ns() // 1_000_000, span_ms=1
                )
                lines = ads.to_lines(events)
                self.counts.update(ads.plain_count(lines, self._lookup))
                client.sendall(lines)
                self.sent += len(events)
                done = due
            time.sleep(STEP_S)


def demo(
    *,
    dop: Annotated[int, typer.Option(min=1, help="How many tasks count.")] = 2,
    json: JsonOption = None,
) -> None:
    """Run the ad pipeline on Spark for about half a minute, with a live table and a summary."""
    console = Console(highlight=False, stderr=json == STDOUT)
    result = perform(console, dop=dop, phases=PHASES)
    if json is not None:
        write_json(result, json)
    if json != STDOUT:
        show(result, console)
    if not result.correct:
        raise typer.Exit(1)


def perform(console: Console, *, dop: int, phases: tuple[Phase, ...]) -> Demonstration:
    """Run the phases and collect what they show."""
    seconds = sum(phase.seconds for phase in phases)
    console.print(
        "[bold]Views per campaign in windows of 10 s[/], from a socket, on Spark's slots.\n"
        f"Starting takes some seconds, the events {seconds:.0f} s."
    )
    out = ListSink()
    figures: dict[str, PhaseFigures] = {}
    with Sender(phases) as sender:
        flow = ads.build(TcpSource("127.0.0.1", sender.port), out, dashboard=DiscardSink())
        job = start(flow, dop=dop, recent_s=3)
        if not job.wait_running(180):
            job.stop()
            raise EngineError("the flow did not start", remedy="run `floodway doctor`")
        with Live(console=console, refresh_per_second=4, transient=True) as screen:
            while not job.wait(0.25):
                phase = sender.phase
                if phase is not None:
                    screen.update(_picture(job, phase, sender.sent))
                    figures[phase.name] = _figures(job, phase)
    found = ads.final_counts(out.records)
    return Demonstration(
        job.plan.flow,
        dop,
        sender.sent,
        sum(found.values()),
        len(found),
        found == sender.counts,
        list(figures.values()),
    )


def _picture(job: Job, phase: Phase, sent: int) -> Grid:
    picture = Grid.grid()
    head = f"{phase.name}: {phase.per_second:,} events/s, {sent:,} sent so far"
    picture.add_row(Text(head, style="bold"))
    picture.add_row(render(job.status))
    return picture


def _figures(job: Job, phase: Phase) -> PhaseFigures:
    status = job.status
    latency = next((s.latency for s in status.stages if s.latency is not None), None)
    queue = sum(stage.queue_records for stage in status.stages)
    return PhaseFigures(phase.name, phase.per_second, _milliseconds(latency), queue)


def _milliseconds(latency: Percentiles | None) -> dict[str, float]:
    if latency is None:
        return {}
    return {"p50": latency.p50 / 1000, "p99": latency.p99 / 1000}


def show(result: Demonstration, console: Console) -> None:
    """Print the summary."""
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("phase", "events/s", "latency p50", "p99", "queue"):
        grid.add_column(title, justify="left" if title == "phase" else "right")
    for phase in result.phases:
        grid.add_row(
            phase.name,
            f"{phase.per_second:,}",
            *(f"{phase.latency_ms.get(q, 0):.1f} ms" for q in ("p50", "p99")),
            str(phase.queue_records),
        )
    console.print()
    console.print(grid)
    verdict = "the same as" if result.correct else "[bold red]NOT[/] the same as"
    console.print(
        f"\n{result.events:,} events, {result.views:,} views in {result.windows} windows of "
        f"campaigns: {verdict} a plain loop over the same lines.\n"
        "Latency: from arrival to the dashboard, in the last three seconds of a phase.\n\n"
        "How it runs: [bold]floodway explain src/floodway/bench/ads.py:demo_flow[/]\n"
        "Event by event, on the reference driver: [bold]floodway walkthrough[/]"
    )
