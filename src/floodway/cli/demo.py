"""``floodway demo``: the ad pipeline on Spark, through a calm, a flood and a calm again.

Events come as JSON lines through a socket, from a process of their own that does not wait for the
flow. They are decoded, filtered, joined with the campaign of their ad and counted per campaign in
windows of ten seconds. While it is calm that is done record by record, while they flood in
micro-batches; the scheduler says when, and why. At the end the counts are compared with those of a
plain loop over the same lines, and there is a picture of it all.
"""

import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from floodway.bench import ads
from floodway.bench.flooding import Phase, Progress, Sender, due_by, lookup, plain_limit
from floodway.bench.pictures import Picture, draw
from floodway.bench.series import PhaseFigures, Point, Sample, figures, latencies, percentile
from floodway.bench.timing import Timed, Timings, TimingSink
from floodway.cli.numbers import show_count, show_time
from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.telling import brief, in_full, paradigm_text
from floodway.connectors.tcp import TcpSource
from floodway.core.errors import EngineError
from floodway.engine.job import Job, start
from floodway.engine.metrics.status import StageStatus, Status
from floodway.engine.scheduler.story import Entry
from floodway.testing import ListSink

LOOK_S = 0.25
"""How often the flow is looked at."""

CALM = 1_000
"""Events a second in a calm: what a task does with ease."""

FLOOD_SHARE = 0.55
"""The flood, as a share of what a plain loop can do: more than the pipeline can, record by record,
which comes to a bit less than half of it while everything runs on two cores."""

SECONDS = 90.0
"""How long events come, in all three phases together."""

TOLD = 6
"""So many of the scheduler's last decisions are shown below the table."""

HIDDEN = ("campaigns.changelog", "campaigns")
"""The table is read before the first event; after that there is nothing to see of it."""


def phases_of(seconds: float, flood: int) -> tuple[Phase, ...]:
    """Return the phases of the demonstration."""
    each = seconds / 3
    return (
        Phase("calm", each, CALM),
        Phase("flood", each, flood),
        Phase("calm again", each, CALM),
    )


class Demonstration(msgspec.Struct, frozen=True):
    """The whole demonstration, as ``--json`` writes it.

    Attributes
    ----------
    flow, dop
        What ran, and in how many tasks.
    events, views, windows
        How many events were sent, how many of them were views, in how many windows of campaigns.
    correct
        Whether the counts are those of a plain loop.
    phases
        What was measured in each phase.
    latency
        The latency over time, of events by when they were due.
    samples
        What was seen, four times a second.
    story
        What the scheduler has decided.
    began_ms
        When the first event was due, in milliseconds since 1970.
    files
        Where the picture, the page and the story are.
    """

    flow: str
    dop: int
    events: int
    views: int
    windows: int
    correct: bool
    phases: list[PhaseFigures]
    latency: list[Point]
    samples: list[Sample]
    story: list[Entry]
    began_ms: int
    files: dict[str, str]


def demo(
    *,
    dop: Annotated[int, typer.Option(min=1, help="How many tasks count.")] = 2,
    seconds: Annotated[
        float, typer.Option(min=1, help="How long events come; a third of it is the flood.")
    ] = SECONDS,
    flood: Annotated[
        int | None,
        typer.Option(
            min=CALM,
            help="How many events a second the flood brings; by default 0.6 of what a plain loop "
            "can do on this machine.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="DIR", help="Where the picture and the story go."),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Run the ad pipeline through a calm, a flood and a calm, and draw a picture of it.

    It takes about two minutes. The exit code is 1 if a count is wrong.
    """
    console = Console(highlight=False, stderr=json == STDOUT)
    phases = phases_of(seconds, int(FLOOD_SHARE * plain_limit()) if flood is None else flood)
    result = perform(console, dop=dop, phases=phases, folder=folder)
    if json is not None:
        write_json(result, json)
    show(result, console)
    if not result.correct:
        raise typer.Exit(1)


def perform(
    console: Console, *, dop: int, phases: tuple[Phase, ...], folder: Path | None = None
) -> Demonstration:
    """Run the phases and collect what they show."""
    seconds = sum(phase.seconds for phase in phases)
    console.print(
        "[bold]Views per campaign in windows of 10 s[/], from a socket, on Spark in this process.\n"
        f"Starting takes some seconds, the events {seconds:.0f} s."
    )
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="floodway-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    story = folder / "story.jsonl"
    story.unlink(missing_ok=True)
    out = ListSink()
    with Sender(phases) as sender, tempfile.TemporaryDirectory() as scratch:
        source = TcpSource("127.0.0.1", sender.port)
        flow = ads.build(source, out, dashboard=TimingSink(scratch), lookup=lookup())
        with start(flow, dop=dop, recent_s=3, story=story) as job:
            watch = Watch(job, sender, Timings(scratch))
            watch.stay(console)
            told = job.story
        expected = sender.counts()
    found = ads.final_counts(out.records)
    samples, timed, began_ms = watch.samples, watch.timed, watch.began_ms
    result = Demonstration(
        job.plan.flow,
        dop,
        due_by(phases, seconds),
        sum(found.values()),
        len(found),
        found == expected,
        figures(phases, samples, timed, began_ms),
        latencies(timed, began_ms, every_s=max(seconds / 180, 0.1)),
        samples,
        told,
        began_ms,
        {"story": str(story.resolve())},
    )
    return _with_pictures(result, phases, folder)


def _with_pictures(result: Demonstration, phases: tuple[Phase, ...], folder: Path) -> Demonstration:
    title = f"{result.flow}: {result.events:,} events through a calm, a flood and a calm"
    picture = Picture(
        title, phases, result.samples, result.latency, result.story, result.began_ms, result.phases
    )
    drawn = draw(picture, folder)
    files = result.files | {name: str(path.resolve()) for name, path in drawn.items()}
    return msgspec.structs.replace(result, files=files)


class Watch:
    """Looks at a job and its sender until the job is over, shows it, and remembers."""

    def __init__(self, job: Job, sender: Sender, timings: Timings) -> None:
        self._job, self._sender, self._timings = job, sender, timings
        self.samples: list[Sample] = []
        self.timed: list[Timed] = []
        self._recent: deque[tuple[float, Timed]] = deque()
        self.began_ms = 0

    def stay(self, console: Console) -> None:
        """Show the flow until it is over."""
        if not self._job.wait_running(180):
            raise EngineError("the flow did not start", remedy="run `floodway doctor`")
        with Live(console=console, refresh_per_second=4, transient=True) as screen:
            while not self._job.wait(LOOK_S):
                progress = self._sender.progress
                status = self._job.status
                if progress is not None:
                    self._note(status, progress)
                    screen.update(self._picture(status, progress))
        self.timed += self._timings.new()

    def _note(self, status: Status, progress: Progress) -> None:
        self.began_ms = progress.began_ms
        now = time.time()
        passed = round(now - progress.began_ms / 1000, 3)
        stages = [stage for stage in status.stages if stage.name not in HIDDEN]
        self.samples.append(
            Sample(
                passed,
                due_by(self._sender.phases, passed),
                progress.sent,
                stages[0].operators[0].counts.records_out,
                {stage.name: stage.queue_records for stage in stages},
                {o.counts.name: o.paradigm for stage in stages for o in stage.operators},
            )
        )
        new = self._timings.new()
        self.timed += new
        self._recent.extend((now, timed) for timed in new)
        while self._recent and self._recent[0][0] < now - 3:
            self._recent.popleft()

    def _picture(self, status: Status, progress: Progress) -> RenderableType:
        sample = self.samples[-1]
        head = Text.assemble(
            (phase_at(self._sender.phases, sample.t), "bold"),
            f"   {sample.t:.0f} s   {sample.due:,} events so far",
            f", {show_count(max(sample.due - sample.processed, 0))} of them wait",
        )
        parts: list[RenderableType] = [head, table(status), self._latency(), Text("")]
        parts += brief(self._job.story, since_ms=progress.began_ms, count=TOLD)
        return Group(*parts)

    def _latency(self) -> Text:
        took = sorted(timed.took_ms * 1000 for _, timed in self._recent)
        if not took:
            return Text("latency  -")
        return Text.assemble(
            ("latency", "bold"),
            f"  from due to dashboard: p50 {show_time(percentile(took, 0.5))}",
            f"  p99 {show_time(percentile(took, 0.99))}",
        )


def phase_at(phases: tuple[Phase, ...], seconds: float) -> str:
    """Return what is going on after so many seconds, in words."""
    for phase in phases:
        if seconds < phase.seconds:
            return f"{phase.name}: {phase.per_second:,} events/s"
        seconds -= phase.seconds
    return "working off what is left"


def table(status: Status) -> Grid:
    """Return the table of operators: how each works, how fast, and what waits before its stage."""
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    grid.add_column("operator", no_wrap=True, width=20, overflow="ellipsis")
    grid.add_column("paradigm", no_wrap=True, width=9)
    for title, width in (("records/s", 9), ("queue", 6), ("p50", 6), ("p99", 6)):
        grid.add_column(title, no_wrap=True, width=width, justify="right")
    for stage in status.stages:
        if stage.name not in HIDDEN:
            _add_rows(grid, stage)
    return grid


def _add_rows(grid: Grid, stage: StageStatus) -> None:
    """Add the operators of a stage; queue and times are those of the stage, and said once."""
    passage = stage.passage
    of_stage = [
        show_count(stage.queue_records),
        show_time(passage.p50) if passage else "-",
        show_time(passage.p99) if passage else "-",
    ]
    for number, operator in enumerate(stage.operators):
        grid.add_row(
            operator.counts.name,
            paradigm_text(operator.paradigm),
            show_count(operator.rate_in),
            *(of_stage if number == 0 else ("", "", "")),
        )


def show(result: Demonstration, console: Console) -> None:
    """Print the summary."""
    console.print()
    console.print(_phases(result))
    verdict = "the same as" if result.correct else "[bold red]NOT[/] the same as"
    console.print(
        f"\n{result.events:,} events, {result.views:,} views in {result.windows:,} windows of "
        f"campaigns: {verdict} a plain loop over the same lines.\n"
        "Latency: from when an event was due to its result on the dashboard.\n"
    )
    switches = [entry for entry in result.story if entry.what in ("switch", "switched", "failed")]
    if switches:
        console.print("[bold]What the scheduler did[/], in seconds since the first event")
        for part in in_full(switches, since_ms=result.began_ms):
            console.print(part)
    else:
        console.print("The scheduler switched nothing.")
    console.print()
    for label, name in (("picture", "png"), ("page", "html"), ("story", "story")):
        if name in result.files:
            path = Text.assemble((f"{label:<9}", "bold"), result.files[name])
            console.print(path, soft_wrap=True)
    if "png" not in result.files:
        console.print(
            "no picture without matplotlib: pip install 'floodway[pictures]'", markup=False
        )
    console.print(
        "\nHow it runs: [bold]floodway explain src/floodway/bench/ads.py:demo_flow[/]\n"
        "Event by event, on the reference driver: [bold]floodway walkthrough[/]"
    )


def _phases(result: Demonstration) -> Grid:
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("phase", "due/s", "done/s", "latency p50", "p99", "waiting", "in batches"):
        grid.add_column(title, justify="left" if title == "phase" else "right")
    for phase in result.phases:
        shares = [each.get("operation", 0.0) for each in phase.paradigms.values()]
        grid.add_row(
            phase.name,
            f"{phase.per_second:,}",
            f"{phase.processed_per_s:,.0f}",
            *(
                show_time(phase.latency_ms[q] * 1000) if q in phase.latency_ms else "-"
                for q in ("p50", "p99")
            ),
            show_count(phase.waiting),
            f"{max(shares, default=0.0):.0%}",
        )
    return grid
