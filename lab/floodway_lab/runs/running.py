"""One run: a system under test, data engines that it pulls from, and whether its answers are right.

Nothing is measured inside the system but the moment at which a result comes out. How much it takes
is read at the queues, outside. How long it takes is from when the latest event was due that a
result is made of, to that moment.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from floodway.core.errors import FloodwayError
from floodway.demo.sending.engine import CONNECT_S, PULLED, Ending, Named, Orders, Progress
from floodway.demo.sending.generating import DRAIN_S
from floodway.demo.sending.schedules import Recorded
from floodway.demo.timing import Timings
from floodway.engine.scheduler.story import Entry, read_story
from floodway_lab.cases.registry import case_named
from floodway_lab.figures.machine import Machine
from floodway_lab.runs.answers import check
from floodway_lab.runs.around import Around
from floodway_lab.runs.experiment import Experiment, Paradigm, Run
from floodway_lab.runs.load import Load
from floodway_lab.runs.series import Series, queue_growth, taken_per_s
from floodway_lab.sending.engines import DataEngines
from floodway_lab.sending.generating import Jitter, Noted, noted, trial
from floodway_lab.sending.schedules import Schedule, shaped
from floodway_lab.systems.kit import Task
from floodway_lab.systems.looking import Look, read_looks
from floodway_lab.systems.registry import link_of, system_named
from floodway_lab.systems.system import System

TOLERATED = 15
"""How many times the acceptable length a queue may have for a while, as in the paper."""

STORY = "story.jsonl"
"""Where Floodway leaves the story of its scheduler."""

END_S = 60.0
"""How long a system has to come to its end when it has been given everything."""

GROWN = 0.5
"""By so much of itself the latency of results may grow while a rate is sustained."""


@dataclass(frozen=True)
class Seen:
    """All that was seen of a run.

    Attributes
    ----------
    run, series
        What it has shown, and its results over time.
    history
        How far the first of the data engines was, ten times a second.
    began_ms
        When the first event was due, in milliseconds since 1970.
    looks, story
        What Floodway's stages did, and what its scheduler decided; nothing of other systems.
    """

    run: Run
    series: Series
    history: Sequence[Progress]
    began_ms: int
    looks: Sequence[Look] = ()
    story: Sequence[Entry] = ()


class _Heard(msgspec.Struct, frozen=True):
    """What was heard of a run while it lasted."""

    why: str
    endings: Sequence[Ending | None]
    histories: Sequence[Sequence[Progress]]
    foreign: float

    @property
    def ends(self) -> list[Ending]:
        """The last words of those data engines that had some."""
        return [ending for ending in self.endings if ending is not None]

    @property
    def noted(self) -> list[Noted]:
        """What those have noted."""
        return [noted(ending) for ending in self.ends]

    @property
    def drained(self) -> bool:
        """Whether the system has taken everything, from all data engines."""
        return all(ending is not None and ending.drained for ending in self.endings)

    @property
    def sustained(self) -> bool:
        """Whether the system has kept up with all data engines."""
        return None not in self.endings and all(each.sustained for each in self.noted)


def run_once(experiment: Experiment, around: Around | None = None) -> Run:
    """Run a system once, in a fresh process; servers that it needs are those of `around`."""
    return see(experiment, around).run


def see(experiment: Experiment, around: Around | None = None, *, story: Path | None = None) -> Seen:
    """Run a system once as `run_once` does, and return all that was seen.

    If Floodway's scheduler has told a story, a copy of it goes to `story`.
    """
    machine = Machine.here()
    case_named(experiment.case)
    system = system_named(experiment.system, experiment.case)
    link = link_of(system, experiment.link)
    with ExitStack() as stack:
        servers = around if around is not None else stack.enter_context(Around())
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="floodway-bench-")))
        task = Task(experiment.case, [], str(place), experiment.dop, link=link)
        if link == "kafka":
            brokers, topic = servers.topic("events", experiment.engines)
            stack.callback(servers.forget, topic)
            task = _changed(task, servers=brokers, topic=topic)
        if experiment.store == "redis":
            task = _changed(task, redis=servers.redis())
        heard = _run(experiment, system, task, place)
        if story is not None and (place / STORY).exists():
            shutil.copy(place / STORY, story)
        return _judged(experiment, machine, system, task, place, heard, servers)


def _changed(task: Task, **fields: object) -> Task:
    return Task(**{**vars(task), **fields})


def _run(experiment: Experiment, system: System, task: Task, place: Path) -> _Heard:
    """Run a system, and listen to the data engines."""
    with DataEngines(_orders(experiment, task, place)) as engines, Load() as load:
        options = {**case_named(experiment.case).hints(), **system.options}
        task = _changed(task, ports=engines.ports, options=options)
        why = _run_system(system, task, place, engines, experiment.whole_s)
    return _Heard(
        why,
        [engine.ending for engine in engines.engines],
        [list(engine.history) for engine in engines.engines],
        load.foreign,
    )


def _orders(experiment: Experiment, task: Task, folder: Path) -> list[Orders]:
    each = experiment.rate / experiment.engines
    schedule = Named.of(_schedule(experiment, each))
    generator = _generator(experiment, max(int(each * experiment.acceptable_s), 1))
    found = []
    for number in range(experiment.engines):
        shape = msgspec.structs.replace(experiment.shape, seed=experiment.shape.seed + number)
        of = {"case": experiment.case, "shape": msgspec.to_builtins(shape)}
        found.append(
            Orders(
                supply=Named("floodway_lab.cases.registry:supply", of),
                schedule=schedule,
                seconds=experiment.whole_s,
                generator=generator,
                outlet=_outlet(task, number),
                log=str(folder / f"sent-{number}"),
            )
        )
    return found


def _generator(experiment: Experiment, acceptable: int) -> Named:
    limits = {"acceptable": acceptable, "tolerated": TOLERATED * acceptable}
    return trial(
        warm_s=experiment.warm_s,
        closed_s=experiment.closed_s,
        **(limits if experiment.judged else {}),
    )


def _outlet(task: Task, partition: int) -> Named:
    """Return how events leave a data engine: pulled by the system, or into a partition of Kafka."""
    if not task.topic:
        return PULLED
    where = {"servers": task.servers, "topic": task.topic, "partition": partition}
    return Named("floodway_lab.sending.topics:Filled", where)


def _schedule(experiment: Experiment, rate: float) -> Schedule:
    if experiment.loads:
        return Recorded(tuple(load * rate for load in experiment.loads), experiment.seconds)
    return shaped(experiment.schedule, rate, experiment.seconds)


def _run_system(
    system: System, task: Task, folder: Path, engines: DataEngines, seconds: float
) -> str:
    """Run a system until it has come to its end; return what went wrong, if something did."""
    file = folder / "task.json"
    task.write(file)
    with _started(system, file, folder / "said") as process:
        deadline = time.monotonic() + CONNECT_S + seconds + DRAIN_S
        while not all(engine.over for engine in engines.engines):
            if process.poll() is not None:
                break
            if time.monotonic() > deadline:
                return "the system has not taken its events in time"
            time.sleep(0.05)
        try:
            code = process.wait(END_S)
        except subprocess.TimeoutExpired:
            return f"the system has not come to its end within {END_S:.0f} s"
        for engine in engines.engines:
            with suppress(FloodwayError):
                engine.wait(5)
    return "" if code == 0 else f"the system ended with code {code}: {_last_words(folder / 'said')}"


@contextmanager
def _started(system: System, task: Path, said: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a system, with all that it starts in a group of their own that ends with this."""
    with said.open("wb") as out:
        process = subprocess.Popen(
            system.command(task),
            env=system.environment(),
            stdin=subprocess.PIPE,  # at its end the system ends, so also if this is killed
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin is not None:
            process.stdin.close()


def _last_words(said: Path, lines: int = 5) -> str:
    return "\n".join(said.read_text(errors="replace").strip().splitlines()[-lines:])


def _judged(
    experiment: Experiment,
    machine: Machine,
    system: System,
    task: Task,
    folder: Path,
    heard: _Heard,
    servers: Around,
) -> Seen:
    began_ms = min((end.began_ms for end in heard.ends), default=0)
    series = Series(Timings(folder).new(), began_ms, experiment.whole_s)
    story = _story(folder / STORY)
    sustained, late, per_s = _kept_up(experiment, series, heard)
    correct, why = None, heard.why
    if not why and heard.drained:
        stored = servers.stored() if experiment.store == "redis" else None
        ends = system.ends and task.link == "tcp"
        case = case_named(experiment.case)
        wrong = check(case, experiment.shape, folder, ends=ends, stored=stored)
        correct = not wrong
        why = "; ".join([f"{len(wrong)} wrong answers", *wrong[:3]]) if wrong else ""
    elif not why and heard.sustained:
        why = "the system has not taken all events"
    if not why and heard.foreign > experiment.most_foreign:
        why = (
            f"the machine was too loaded: others had {heard.foreign:.0%} of its cores, more than "
            f"{experiment.most_foreign:.0%}"
        )
    warm_s, seconds = experiment.warm_s, experiment.whole_s
    run = Run(
        experiment=experiment,
        machine=machine,
        link=task.link,  # type: ignore[arg-type]
        void=bool(why),
        why=why or late,
        sustained=sustained and not why,
        correct=correct,
        generated=sum(end.generated for end in heard.ends),
        taken=sum(end.taken for end in heard.ends),
        per_s=round(per_s, 1),
        latency_ms=series.latency(warm_s, seconds),
        cdf_ms=series.cdf(warm_s, seconds),
        over_time=series.over_time(heard.histories),
        paradigms=_paradigms(story, began_ms),
        jitter_ms=max(
            (each.jitter for each in heard.noted), key=lambda j: j.p99, default=Jitter(0, 0, 0)
        ),
        foreign=heard.foreign,
    )
    run = msgspec.structs.replace(run, parts=_parts(run, series))
    return Seen(run, series, heard.histories[0], began_ms, read_looks(folder), story)


def _parts(run: Run, series: Series) -> list[Run]:
    """Return what a run has shown at each of its loads."""
    found, seconds = [], run.experiment.seconds
    for number, load in enumerate(run.experiment.loads):
        start_s, stop_s = number * seconds, (number + 1) * seconds
        inside = [row for row in run.over_time if start_s <= row["t"] < stop_s]
        warm_s = start_s + run.experiment.warm_s
        counted = [row["taken"] for row in inside if row["t"] >= warm_s]
        experiment = msgspec.structs.replace(
            run.experiment, rate=round(load * run.experiment.rate, 1), loads=()
        )
        part = msgspec.structs.replace(
            run,
            experiment=experiment,
            per_s=round(sum(counted) / len(counted), 1) if counted else 0.0,
            latency_ms=series.latency(warm_s, stop_s),
            cdf_ms=series.cdf(warm_s, stop_s),
            over_time=[{**row, "t": row["t"] - start_s} for row in inside],
            paradigms=_from(run.paradigms, start_s, stop_s),
        )
        found.append(part)
    return found


def _from(switches: Sequence[Paradigm], start_s: float, stop_s: float) -> list[Paradigm]:
    """Return how stages worked in a part of a run, in seconds of that part."""
    before = {each.stage: each for each in switches if each.t < start_s}
    inside = [each for each in switches if start_s <= each.t < stop_s]
    return [
        Paradigm(each.stage, each.paradigm, round(max(each.t - start_s, 0.0), 3))
        for each in (*before.values(), *inside)
    ]


def _kept_up(experiment: Experiment, series: Series, heard: _Heard) -> tuple[bool, str, float]:
    """Return whether a system has kept up, why not, and how many events a second it has done.

    What it has taken and not processed shows in the latency, which then grows as long as events
    come; the paper's algorithm looks at the queue outside of the system only.
    """
    per_s = taken_per_s(heard.histories, experiment.warm_s)
    if not heard.sustained:
        return False, next((each.why for each in heard.noted if each.why), ""), per_s
    if experiment.schedule != "constant" or experiment.loads:
        return True, "", per_s
    if why := _fills_up(experiment, heard):
        return False, why, per_s
    growth = series.growth(experiment.warm_s)
    if growth is None:
        return True, "", per_s
    early_s, grown_s = growth
    if grown_s <= max(experiment.acceptable_s, GROWN * early_s):
        return True, "", per_s
    passed_s = 0.8 * (experiment.seconds - experiment.warm_s)  # from one fifth to the other
    return (
        False,
        f"results came {grown_s:.1f} s later at the end than at the beginning",
        min(per_s, experiment.rate * passed_s / (passed_s + grown_s)),
    )


def _fills_up(experiment: Experiment, heard: _Heard) -> str:
    """Return what shows that the queue grew as long as anybody looked, if it did.

    The algorithm takes as long to be sure as the queue may be, in seconds of events: a trial that
    is hardly longer would end before.
    """
    acceptable = experiment.rate * experiment.acceptable_s
    late, grown = queue_growth(heard.histories, experiment.warm_s, experiment.seconds)
    if late < acceptable or grown < acceptable:
        return ""
    return f"{grown} events more waited at the end than after the warm-up"


def _story(path: Path) -> list[Entry]:
    """Return the story that Floodway has left, if it has."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [entry for entry in read_story(lines) if isinstance(entry, Entry)]


def _paradigms(story: Sequence[Entry], began_ms: int) -> list[Paradigm]:
    """Return how the stages of Floodway worked."""
    return [
        Paradigm(entry.stage, str(entry.after), round((entry.time_ms - began_ms) / 1000, 3))
        for entry in story
        if entry.what == "switch"
    ]
