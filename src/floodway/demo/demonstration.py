"""The ad pipeline through a calm, a flood and a calm again, and what was seen of it.

Events come as JSON lines through a socket, from a process of their own that does not wait for the
flow. They are decoded, filtered, joined with the campaign of their ad and counted per campaign in
windows of ten seconds. At the end the counts are compared with those of a plain loop over the same
lines, and a picture is drawn.
"""

import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from floodway.connectors.tcp import TcpSource
from floodway.core.errors import EngineError
from floodway.demo import ads
from floodway.demo.pictures import Picture, draw
from floodway.demo.sending.engine import Named, Orders
from floodway.demo.sending.engines import DataEngine
from floodway.demo.sending.schedules import Recorded
from floodway.demo.sending.sent import Part, Sent, read_stretches
from floodway.demo.series import Latencies, Phase, PhaseFigures, Point, Sample, figures
from floodway.demo.timing import Timed, Timings, TimingSink
from floodway.engine.driver.job import Job, start
from floodway.engine.metrics.status import Status
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

RECENT_S = 3
"""Latency and rates that are shown are those of so long."""

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


def length_of(phases: tuple[Phase, ...]) -> float:
    """Return how long all phases take together, in seconds."""
    return sum(phase.seconds for phase in phases)


def flood_here() -> int:
    """Return how many events a second are a flood on this machine."""
    return int(FLOOD_SHARE * ads.plain_limit())


def schedule_of(phases: tuple[Phase, ...]) -> Recorded:
    """Return when events are due in phases that are equally long."""
    return Recorded(tuple(float(phase.per_second) for phase in phases), phases[0].seconds)


def orders_of(phases: tuple[Phase, ...], log: str) -> Orders:
    """Return what the data engine does: it sends ad events, and writes down which."""
    return Orders(
        supply=Named("floodway.demo.ads:supply"),
        schedule=Named.of(schedule_of(phases)),
        seconds=length_of(phases),
        log=log,
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


class Watch:
    """Looks at a job and its data engine until the job is over, and remembers.

    Attributes
    ----------
    phases
        What is due when.
    samples, timed
        What was seen, and how long results took.
    """

    def __init__(
        self, job: Job, engine: DataEngine, phases: tuple[Phase, ...], timings: Timings
    ) -> None:
        self._job, self._engine, self._timings = job, engine, timings
        self.phases, self._schedule = phases, schedule_of(phases)
        self.samples: list[Sample] = []
        self.timed: list[Timed] = []
        self._recent: deque[tuple[float, Timed]] = deque()

    def stay(self, show: "Show") -> None:
        """Look at the flow until it is over."""
        if not self._job.wait_running(180):
            raise EngineError("the flow did not start", remedy="run `floodway doctor`")
        while not self._job.wait(LOOK_S):
            if self._engine.history:
                status = self._job.status
                self._note(status)
                show(self, status)
        self.timed += self._timings.new()

    def _note(self, status: Status) -> None:
        now = time.time()
        passed = round(now - self.began_ms / 1000, 3)
        stages = [stage for stage in status.stages if stage.name not in HIDDEN]
        self.samples.append(
            Sample(
                passed,
                int(self._schedule.due(min(passed, length_of(self.phases)))),
                self._engine.history[-1].taken,
                stages[0].operators[0].counts.records_out,
                {stage.name: stage.queue_records for stage in stages},
                {o.counts.name: o.paradigm for stage in stages for o in stage.operators},
            )
        )
        new = self._timings.new()
        self.timed += new
        self._recent.extend((now, timed) for timed in new)
        while self._recent and self._recent[0][0] < now - RECENT_S:
            self._recent.popleft()

    @property
    def began_ms(self) -> int:
        """When the first event was due, in milliseconds since 1970."""
        return self._engine.began_ms

    @property
    def story(self) -> list[Entry]:
        """What the scheduler has decided so far."""
        return self._job.story

    @property
    def recent_ms(self) -> list[float]:
        """How long the results took that came in the last seconds, in order."""
        return sorted(timed.took_ms for _, timed in self._recent)


Show = Callable[[Watch, Status], None]
"""Shows what was seen of the flow, and its status."""


def perform(
    *,
    dop: int,
    phases: tuple[Phase, ...],
    folder: Path | None = None,
    show: Show = lambda *_: None,
) -> Demonstration:
    """Run the phases and collect what they show; `show` is told whenever the flow was looked at."""
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="floodway-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    story = folder / "story.jsonl"
    story.unlink(missing_ok=True)
    out = ListSink()
    with tempfile.TemporaryDirectory() as scratch:
        log = str(Path(scratch) / "sent")
        with DataEngine(orders_of(phases, log)) as engine:
            source = TcpSource("127.0.0.1", engine.port)
            flow = ads.build(source, out, dashboard=TimingSink(scratch))
            with start(flow, dop=dop, recent_s=RECENT_S, story=story) as job:
                watch = Watch(job, engine, phases, Timings(scratch))
                watch.stay(show)
                told = job.story
            ending = engine.wait(60)
        expected = ads.expected(Sent([Part(ads.lines(), read_stretches(log))]))
    found = ads.final_counts(out.records)
    late = Latencies.of(watch.timed, ending.began_ms).probed()
    result = Demonstration(
        job.plan.flow,
        dop,
        ending.taken,
        sum(found.values()),
        len(found),
        found == expected,
        figures(phases, watch.samples, late),
        late.over(max(length_of(phases) / 180, 0.1)),
        watch.samples,
        told,
        ending.began_ms,
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
