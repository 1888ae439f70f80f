"""One run: a system under test, data engines that it pulls from, and whether its answers are right.

Nothing is measured inside the system but the moment at which a result comes out. How much it takes
is read at the queues, outside. How long it takes is from when the latest event was due that a
result is made of, to that moment.
"""

import os
import signal
import subprocess
import tempfile
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from floodway.bench.cases.base import Case, Sent, Shape, differences
from floodway.bench.cases.registry import case_named
from floodway.bench.data.engine import CONNECT_S, DRAIN_S, Ending, Orders, Progress
from floodway.bench.data.engines import DataEngines
from floodway.bench.data.generating import Jitter
from floodway.bench.data.lines import Stretch
from floodway.bench.data.schedules import Schedule, shaped
from floodway.bench.series import percentile
from floodway.bench.systems.kit import Task
from floodway.bench.systems.registry import System, system_named

TOLERATED = 15
"""How many times the acceptable length a queue may have for a while, as in the paper."""

END_S = 60.0
"""How long a system has to come to its end when it has been given everything."""

SHARES = (0.5, 0.9, 0.99, 0.999)


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is of.

    Attributes
    ----------
    case, system
        The workload, and the system under test.
    rate, schedule
        Events per second, of all data engines together, and the shape over time.
    seconds, warm_s
        For how long events are due, and how much of that does not count yet.
    engines, dop
        How many data engines there are, and how many tasks the system should use.
    shape
        What the events are like.
    acceptable_s
        How long the queue may be at any time, in seconds of the rate: the paper's c_a. A rate that
        is too high by a share is found out if that share of the run is longer.
    judged
        Whether the run ends when the system turns out not to keep up.
    """

    case: str
    system: str
    rate: float
    seconds: float = 20.0
    warm_s: float = 5.0
    schedule: str = "constant"
    engines: int = 1
    dop: int = 1
    shape: Shape = Shape()
    acceptable_s: float = 0.2
    judged: bool = False


class Latency(msgspec.Struct, frozen=True):
    """Event-time latency of results, in milliseconds."""

    p50: float
    p90: float
    p99: float
    p999: float
    max: float
    results: int


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has shown.

    Attributes
    ----------
    experiment
        What it was of.
    void, why
        Whether its figures mean nothing, and why.
    sustained
        Whether the system has kept up, and if not, why.
    correct
        Whether its answers are right; None if it was not given everything.
    generated, taken, per_s
        How many events there were, how many it took, and how many a second after the warm-up.
    latency_ms
        Of the results of events that were due after the warm-up; None if there are none.
    over_time
        For each second its latency (p50, p99) and how many events were taken and waited.
    jitter_ms
        How late events were generated, by the worst of the data engines.
    """

    experiment: Experiment
    void: bool
    why: str
    sustained: bool
    correct: bool | None
    generated: int
    taken: int
    per_s: float
    latency_ms: Latency | None
    over_time: list[dict[str, float]]
    jitter_ms: Jitter


def run_once(experiment: Experiment) -> Run:
    """Run a system once, in a fresh process."""
    case = case_named(experiment.case)
    system = system_named(experiment.system, experiment.case)
    with tempfile.TemporaryDirectory(prefix="floodway-bench-") as folder:
        place = Path(folder)
        with DataEngines(_orders(experiment, place)) as engines:
            options = {**case.hints(), **system.options}
            task = Task(experiment.case, engines.ports, folder, experiment.dop, options)
            why = _run_system(system, task, place, engines, experiment.seconds)
            endings = [engine.ending for engine in engines.engines]
            histories = [list(engine.history) for engine in engines.engines]
        return _judged(experiment, case, place, why, endings, histories)


def _orders(experiment: Experiment, folder: Path) -> list[Orders]:
    each = experiment.rate / experiment.engines
    schedule: Schedule = shaped(experiment.schedule, each, experiment.seconds)
    found = []
    for number in range(experiment.engines):
        shape = msgspec.structs.replace(experiment.shape, seed=experiment.shape.seed + number)
        acceptable = max(int(each * experiment.acceptable_s), 1)
        found.append(
            Orders(
                supply="floodway.bench.cases.registry:supply",
                options={"case": experiment.case, "shape": msgspec.to_builtins(shape)},
                schedule=schedule,
                seconds=experiment.seconds,
                log=str(folder / f"sent-{number}"),
                acceptable=acceptable if experiment.judged else None,
                tolerated=TOLERATED * acceptable if experiment.judged else None,
            )
        )
    return found


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
            with suppress(Exception):
                engine.wait(5)
    return "" if code == 0 else f"the system ended with code {code}: {_last_words(folder / 'said')}"


@contextmanager
def _started(system: System, task: Path, said: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a system, with all that it starts in a group of their own that ends with this."""
    with said.open("wb") as out:
        process = subprocess.Popen(
            system.command(task),
            env=system.environment(),
            stdin=subprocess.DEVNULL,
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


def _last_words(said: Path, lines: int = 5) -> str:
    return "\n".join(said.read_text(errors="replace").strip().splitlines()[-lines:])


def _judged(
    experiment: Experiment,
    case: Case,
    folder: Path,
    why: str,
    endings: Sequence[Ending | None],
    histories: Sequence[Sequence[Progress]],
) -> Run:
    ends = [ending for ending in endings if ending is not None]
    complete = len(ends) == len(endings) and all(end.drained for end in ends)
    sustained = len(ends) == len(endings) and all(end.sustained for end in ends)
    correct = None
    if not why and complete:
        wrong = check(case, experiment, folder)
        correct = not wrong
        why = "; ".join([f"{len(wrong)} wrong answers", *wrong[:3]]) if wrong else ""
    elif not why and sustained:
        why = "the system has not taken all events"
    began_ms = min((end.began_ms for end in ends), default=0)
    series = Series(read_times(folder), began_ms, experiment.seconds)
    return Run(
        experiment=experiment,
        void=bool(why),
        why=why or next((end.why for end in ends if end.why), ""),
        sustained=sustained and not why,
        correct=correct,
        generated=sum(end.generated for end in ends),
        taken=sum(end.taken for end in ends),
        per_s=round(taken_per_s(histories, experiment.warm_s), 1),
        latency_ms=series.latency(experiment.warm_s, experiment.seconds),
        over_time=series.over_time(histories),
        jitter_ms=max((end.jitter for end in ends), key=lambda j: j.p99, default=Jitter(0, 0, 0)),
    )


def check(case: Case, experiment: Experiment, folder: Path) -> list[str]:
    """Return what is wrong with the answers of a system that was given everything."""
    expected: dict[tuple[Any, int], Any] = {}
    sent = [
        msgspec.msgpack.decode(path.read_bytes(), type=list[Stretch])
        for path in sorted(folder.glob("sent-*"))
    ]
    seeds = range(experiment.shape.seed, experiment.shape.seed + len(sent))
    lines = [case.lines(msgspec.structs.replace(experiment.shape, seed=seed)) for seed in seeds]
    offset, stretches = 0, []
    for own, each in zip(lines, sent, strict=True):
        stretches += [Stretch(s.first + offset, s.count, s.time_ms) for s in each]
        offset += len(own)
    every = [line for own in lines for line in own]
    expected = case.expected(every, Sent(stretches, len(every), case.window_ms))
    return differences({(str(k), w): v for (k, w), v in expected.items()}, read_found(folder))


def read_found(folder: Path) -> dict[tuple[Any, int], Any]:
    """Return what all parts of a system have found; keys are text, as some systems want them."""
    found: dict[tuple[Any, int], Any] = {}
    for path in sorted(folder.glob("found-*.json")):
        for key, window, value in msgspec.json.decode(path.read_bytes()):
            found[str(key), window] = value
    return found


def read_times(folder: Path) -> list[tuple[int, int]]:
    """Return for each result when its latest event was due (ms), and when it came out (us)."""
    found: list[tuple[int, int]] = []
    for path in sorted(folder.glob("times-*")):
        data = path.read_bytes()
        numbers = array("q", data[: len(data) - len(data) % 16])
        found += zip(numbers[::2], numbers[1::2], strict=True)
    return found


def taken_per_s(histories: Sequence[Sequence[Progress]], warm_s: float) -> float:
    """Return how many events a second were taken after the warm-up, as long as there were any."""
    whole = 0.0
    for history in histories:
        if len(history) < 2:
            continue
        times = [each.time_ms for each in history]
        warm_ms = min(1000 * warm_s, (times[-1] - times[0]) / 2)  # a run may end before that
        first = min(bisect_left(times, times[0] + warm_ms), len(times) - 2)
        last = next((n for n, e in enumerate(history) if e.taken == history[-1].taken), -1)
        last = max(last, first + 1)
        passed = times[last] - times[first]
        whole += (history[last].taken - history[first].taken) / max(passed, 1) * 1000
    return whole


class Series:
    """The results of a run over time."""

    def __init__(self, times: Sequence[tuple[int, int]], began_ms: int, seconds: float) -> None:
        self._seconds, self._began_ms = seconds, began_ms
        self._took = sorted(
            ((time_ms - began_ms) / 1000, out_us / 1000 - time_ms) for time_ms, out_us in times
        )
        self._at = [at for at, _ in self._took]

    def took(self, start_s: float, stop_s: float) -> list[float]:
        """Return the latencies of events that were due in a stretch of time, in order."""
        first, last = bisect_left(self._at, start_s), bisect_left(self._at, stop_s)
        return sorted(took for _, took in self._took[first:last])

    def latency(self, start_s: float, stop_s: float) -> Latency | None:
        """Return the latency of events that were due in a stretch of time."""
        took = self.took(start_s, stop_s)
        if not took:
            return None
        p50, p90, p99, p999 = (round(percentile(took, share), 3) for share in SHARES)
        return Latency(p50, p90, p99, p999, round(took[-1], 3), len(took))

    def over_time(self, histories: Sequence[Sequence[Progress]]) -> list[dict[str, float]]:
        """Return latency, rate and queue for every second."""
        found = []
        for second in range(int(self._seconds)):
            took = self.took(second, second + 1)
            row: dict[str, float] = {"t": second}
            if took:
                row |= {"p50": percentile(took, 0.5), "p99": percentile(took, 0.99)}
            ends = [self._at_second(history, second + 1) for history in histories]
            before = [self._at_second(history, second) for history in histories]
            row["taken"] = sum(e.taken for e in ends) - sum(b.taken for b in before)
            row["queued"] = sum(e.generated - e.taken for e in ends)
            found.append({name: round(value, 3) for name, value in row.items()})
        return found

    def _at_second(self, history: Sequence[Progress], second: float) -> Progress:
        if not history:
            return Progress(0, 0, 0)
        times = [each.time_ms for each in history]
        return history[min(bisect_left(times, times[0] + 1000 * second), len(history) - 1)]
