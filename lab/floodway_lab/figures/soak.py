"""A soak: a flow at a steady load for long, and whether it needs more and more.

The flow has what could grow for ever if nobody forgot: windows, sessions, a join of streams and a
count over windows, all by keys that come and never come again. With retention, what it needs after
some minutes is what it needs for ever: memory, descriptors, files.
"""

import itertools
import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import psutil

import floodway as fw
from floodway.connectors import DiscardSink
from floodway.connectors.rate import GeneratorSource
from floodway.core.errors import EngineError, OptionError
from floodway.demo.drawing import INK
from floodway.engine.driver.job import Job, start
from floodway.engine.host.scratch import OWNER, PREFIX
from floodway_lab.figures.machine import Machine
from floodway_lab.reports.charts import Axis, Line, line_chart

MOST = 1.05
"""So many times what it needed after it had settled it may need later."""

LEAST = 0.95
"""At least this part of the records that were due has to have come in: who stalls needs little."""

LOOKED_S = 60.0
"""What it needed when it had settled is the most it needed in so long."""

SWINGING = frozenset({"files, MB"})
"""What goes up and down by design, judged by its mean over the last minute: files of state grow
until they are merged into one, every task's at another time."""

EVERY_S = 5.0
USERS, SPAN_MS = 9_973, 20_000
"""So many users are there at a time, and so long, in event time, before others come."""

Progress = Callable[[float, float, str], None]


class Visit(fw.Record):
    """What the flow reads: a user who sees a page."""

    user: int
    page: int
    at: int


class Sample(msgspec.Struct, frozen=True):
    """What the flow needed at a moment, by name, `at_s` seconds after it began to run."""

    at_s: float
    needs: dict[str, float]


class Growth(msgspec.Struct, frozen=True):
    """What was needed of one thing when the flow had settled, and at most later."""

    what: str
    then: float
    most: float

    @property
    def ratio(self) -> float:
        """How many times as much it was."""
        if self.then:
            return self.most / self.then
        return math.inf if self.most else 1.0


class Soak(msgspec.Struct, frozen=True):
    """What came of a soak."""

    machine: Machine
    rate: float
    retention: str
    settled_s: float
    samples: list[Sample]
    growths: list[Growth]
    records: int
    due: int

    @property
    def steady(self) -> bool:
        """Whether nothing grew; not so if nothing can be said."""
        return bool(self.growths) and all(growth.ratio <= MOST for growth in self.growths)

    @property
    def kept_up(self) -> bool:
        """Whether the flow has taken what it was sent."""
        return self.records >= LEAST * self.due


def soak(
    progress: Progress,
    *,
    minutes: float = 30.0,
    settle_minutes: float = 5.0,
    rate: float = 3000.0,
    retention: str = "1m",
    every_s: float = EVERY_S,
) -> Soak:
    """Run the flow for some minutes, and look at it every few seconds."""
    settled_s = settle_minutes * 60
    if settled_s < every_s or minutes * 60 <= settled_s + every_s:
        raise OptionError(
            f"{minutes:g} minutes, of which it settles for {settle_minutes:g}, are too short to "
            "say whether anything grows",
            remedy=f"let it settle, and run after that, for longer than {every_s:g} s",
        )
    with tempfile.TemporaryDirectory(prefix="floodway-soak-") as folder:
        checkpoint = Path(folder) / "checkpoint"
        with start(visits(rate, retention), dop=2, checkpoint=checkpoint, metrics_port=None) as job:
            if not job.wait_running(120.0):
                raise EngineError("the soak's flow did not start", remedy="run `floodway doctor`")
            before = _taken(job)
            samples = _watched(job, checkpoint, minutes * 60, every_s, progress)
            records = _taken(job) - before
            job.stop()
            job.wait()
    grown = growths(samples, settled_s)
    due = int(rate * samples[-1].at_s)
    return Soak(Machine.here(), rate, retention, settled_s, samples, grown, records, due)


def _taken(job: Job) -> int:
    """Return how many records the sources have given so far."""
    sources = {stage.name for stage in job.plan.stages if stage.sources}
    return sum(s.counters.records_in for s in job.status.stages if s.name in sources)


def visits(rate: float, retention: str) -> fw.Flow:
    """Return the flow; half of the records are views, half are clicks."""
    flow = fw.Flow("soak", retention=retention)

    def visit(number: int) -> Visit:
        at = int(number * 2000 / rate)
        return Visit(at // SPAN_MS * USERS + number % USERS, number % 97, at)

    made = GeneratorSource(visit, per_second=rate / 2)
    views = flow.source("views", made, schema=Visit, timestamp="at")
    clicks = flow.source("clicks", made, schema=Visit, timestamp="at")
    windows = views.group_by("user").window(fw.tumbling("10s"))
    counts = windows.count(name="counts")
    counts.changes(emit=fw.emit.after_window_end()).to(DiscardSink(), name="counted")
    busy = counts.group_by("window_start").count(name="busy")
    busy.changes(emit=fw.emit.after_window_end()).to(DiscardSink(), name="told")
    sessions = clicks.group_by("user").window(fw.session("5s"))
    stays = sessions.count(name="stays")
    stays.changes(emit=fw.emit.final()).to(DiscardSink(), name="stayed")
    page = ["left.page AS page"]
    pairs = views.join(clicks, within="5s", on="user", select=page, name="pairs")
    pairs.to(DiscardSink(), name="paired")
    return flow


def _watched(
    job: Job, checkpoint: Path, seconds: float, every_s: float, progress: Progress
) -> list[Sample]:
    began = time.monotonic()
    samples: list[Sample] = []
    while (passed := time.monotonic() - began) < seconds:
        if job.wait(min(every_s, seconds - passed)):
            raise EngineError("the soak's flow ended", remedy="see its log")
        at_s = time.monotonic() - began
        samples.append(Sample(round(at_s, 1), needs(checkpoint)))
        memory = samples[-1].needs["memory of tasks, MB"]
        progress(at_s, seconds, f"tasks have {memory:,.0f} MB")
    return samples


def needs(checkpoint: Path) -> dict[str, float]:
    """Return what this process, those it has started, their folders, and a checkpoint need now."""
    own = psutil.Process()
    memory = {"driver": own_pages(own), "Spark": 0.0, "tasks": 0.0}
    descriptors = own.num_fds()
    for process in own.children(recursive=True):
        try:
            kind = "Spark" if process.name() == "java" else "tasks"
            memory[kind] += own_pages(process)
            descriptors += process.num_fds()
        except psutil.Error:
            continue  # it has ended meanwhile
    count, size_of_files = files(checkpoint)
    return {
        **{f"memory of {kind}, MB": round(size / 2**20, 1) for kind, size in memory.items()},
        "descriptors": descriptors,
        "files": count,
        "files, MB": round(size_of_files / 2**20, 2),
    }


def files(checkpoint: Path) -> tuple[int, int]:
    """Return how many files there are in a checkpoint and in this process's scratch folders.

    What tasks put aside is in those, and what Spark does; the second number is their size.
    """
    sizes = [
        _size(os.path.join(folder, file))
        for place in (checkpoint, *own_scratch())
        for folder, _, names in os.walk(place)
        for file in names
    ]
    return len(sizes), sum(sizes)


def own_scratch() -> list[Path]:
    """Return this process's scratch folders: each has a file that says whose it is."""
    folders = Path(tempfile.gettempdir()).glob(f"{PREFIX}*")
    return [folder for folder in folders if _owner(folder).startswith(f"{os.getpid()} on ")]


def _owner(folder: Path) -> str:
    try:
        return (folder / OWNER).read_text()
    except OSError:  # no scratch folder, or somebody else's
        return ""


def own_pages(process: psutil.Process) -> float:
    """Return the memory that a process has written to and shares with nobody.

    What it has of libraries is not counted: that is its own or shared, as other programs come and
    go that have the same ones.
    """
    try:
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    except OSError:
        text = ""
    found = re.search(r"Private_Dirty:\s+(\d+) kB", text)
    if found is None:  # not a Linux, or it has just ended: then this says so
        return float(process.memory_full_info().uss)
    return 1024.0 * int(found[1])


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def growths(samples: Sequence[Sample], settled_s: float) -> list[Growth]:
    """Return what was needed once the flow had settled, and at most since.

    What swings is taken as its mean over a minute.

    Examples
    --------
    >>> samples = [Sample(at, {"files": count}) for at, count in [(250, 9), (299, 10), (400, 12)]]
    >>> [(growth.what, growth.then, growth.most, growth.ratio) for growth in growths(samples, 300)]
    [('files', 10, 12, 1.2)]
    """
    then = [s for s in samples if settled_s - LOOKED_S <= s.at_s <= settled_s]
    later = [s for s in samples if s.at_s > settled_s]
    if not then or not later:
        return []

    def most(looks: Sequence[Sample], what: str) -> float:
        if what in SWINGING:
            return max(_mean(samples, what, look.at_s) for look in looks)
        return max(look.needs[what] for look in looks)

    return [Growth(what, most(then, what), most(later, what)) for what in later[0].needs]


def _mean(samples: Sequence[Sample], what: str, at_s: float) -> float:
    """Return the mean of what was needed in the minute that ends at a moment."""
    seen = [s.needs[what] for s in samples if at_s - LOOKED_S < s.at_s <= at_s]
    return sum(seen) / len(seen)


def picture(found: Soak) -> str:
    """Return the curves as a picture: each as a share of what it was when the flow had settled."""
    looks = itertools.cycle(("#0b6", "#06b", "#b50", "#808", "#888", INK))
    # One that was too short to settle has a curve all the same: as a share of its end.
    whole = {growth.what: growth.then for growth in found.growths} or found.samples[-1].needs
    lines = [
        Line(what, [(s.at_s / 60, s.needs[what] / then) for s in found.samples], colour=colour)
        for (what, then), colour in zip(whole.items(), looks, strict=False)
        if then
    ]
    minute = (found.settled_s if found.growths else found.samples[-1].at_s) / 60
    return line_chart(
        "What a flow needs over time, as a share of what it needed when it had settled",
        lines,
        Axis("minutes"),
        Axis(f"share of minute {minute:g}", covers=(0.0, MOST)),
    )
