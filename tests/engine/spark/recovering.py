"""What tests of recovery share: a flow that lasts as long as a test needs it, and whom to kill."""

import json
import os
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import floodway as fw
from floodway.connectors.base import Raw, Reader, SinkConnector, SourceConnector, Split
from floodway.connectors.json_lines import JsonLinesSink, JsonLinesSource
from floodway.connectors.rate import Schedule
from floodway.engine.driver.job import Job
from floodway.engine.metrics.status import StageStatus
from floodway.engine.opstream.halves import able
from floodway.model.tuning import Paradigm
from floodway.testing import ListSource
from tests.waiting import DEADLINE_S, pause, wait_for

COUNT = 20_000
PER_SECOND = 2_000
GATES = 50
WIDE = "concat(repeat('-', 200), gate) AS gate"
"""A key that takes much room, for flows with much state."""

HELD_BACK = 0.2
"""The part of the records that comes only after the release."""


class Tap(fw.Record):
    gate: int
    number: int


def tap(number: int, gates: int = GATES) -> Tap:
    """Return the tap of a number; always the same."""
    return Tap(number * 7 % gates, number)


def release_of(folder: Path) -> Path:
    """Return the file that lets the last records in, once it is there."""
    return folder / "release"


def release(folder: Path) -> None:
    """Let the last records in."""
    release_of(folder).touch()


# --------------------------------------------------------------------------- sources


@dataclass(frozen=True)
class Taps(SourceConnector):
    """Gives taps at a steady rate; the last ones, and the end, only after the release."""

    replayable: ClassVar[bool] = True
    most = None

    release: Path
    count: int = COUNT
    per_second: float = PER_SECOND
    gates: int = GATES

    def open(self, split: Split, position: Any = None) -> Reader:
        return _TapsReader(self, split, position or 0)


class _TapsReader(Reader):
    idle_ms = 5.0

    def __init__(self, source: Taps, split: Split, done: int) -> None:
        self._source, self._split = source, split
        self._released = False
        early = int(source.count * (1 - HELD_BACK))
        self._schedule = Schedule(split, source.per_second, early, done)

    def poll(self, limit: int) -> Raw | None:
        if not self._released and self._source.release.exists():
            self._released = True
            self._schedule = Schedule(self._split, None, self._source.count, self._schedule.done)
        if self._schedule.ended:
            return None if self._released else []
        return [tap(number, self._source.gates) for number in self._schedule.take(limit)]

    def position(self) -> int:
        return self._schedule.done


class HeldList(ListSource):
    """A list that is read bit by bit; its end comes only after the release."""

    def __init__(self, items: Iterable[Any], release: Path) -> None:
        super().__init__(items)
        self.release = release

    def open(self, split: Split, position: Any = None) -> Reader:
        return _HeldReader(super().open(split, position), self)


class _HeldReader(Reader):
    keyed = True
    idle_ms = 10.0

    def __init__(self, inner: Reader, source: HeldList) -> None:
        self._inner, self._source = inner, source
        self._held = int(len(source.items) * (1 - HELD_BACK))
        self._next = 0.0

    def poll(self, limit: int) -> Raw | None:
        held = self._inner.position() >= self._held and not self._source.release.exists()
        if held or time.monotonic() < self._next:
            return []
        self._next = time.monotonic() + 0.01
        return self._inner.poll(2)

    def position(self) -> Any:
        return self._inner.position()


# --------------------------------------------------------------------------- a flow and its result


def counting(
    folder: Path, *, key: str = "gate", sink: SinkConnector | None = None, **options: Any
) -> fw.Flow:
    """Return a flow of four stages: a source, a filter, a count by key, and a sink of files."""
    flow = fw.Flow("counting")
    taps = flow.source("taps", Taps(release_of(folder), **options), schema=Tap).isolate()
    some = taps.filter("gate % 5 > 0", name="some").isolate()
    counts = some.group_by(key).count(name="counts").isolate()
    counts.changes(name="updates").to(sink or JsonLinesSink(folder / "out"), name="out")
    return flow


def expected(count: int = COUNT, gates: int = GATES) -> dict[int, list[int]]:
    """Return the history of each key, by a plain loop."""
    found: dict[int, list[int]] = {}
    for number in range(count):
        gate = tap(number, gates).gate
        if gate % 5:
            history = found.setdefault(gate, [])
            history.append(len(history) + 1)
    return found


def changes(out: Path) -> list[dict[str, Any]]:
    """Return what the sink shows, file by file; what it is just writing is not there yet."""
    return [
        json.loads(line)
        for file in sorted(out.glob("part-*.jsonl"))
        for line in file.read_text().split("\n")[:-1]
    ]


def shown(out: Path) -> int:
    """Return how many lines the sink shows."""
    return sum(file.read_bytes().count(b"\n") for file in out.glob("part-*.jsonl"))


def histories(out: Path) -> dict[int, list[int]]:
    """Return the values that each key has had, in the order in which they were written."""
    found = defaultdict(list)
    for change in changes(out):
        found[int(str(change["key"]).lstrip("-"))].append(change["value"])
    return dict(found)


# --------------------------------------------------------------------------- the same with files


def from_files(folder: Path, *, watch: bool = True) -> fw.Flow:
    """Return a flow that counts what is in files: slowly before the release, then to their end."""
    flow = fw.Flow("from-files")
    source = JsonLinesSource(folder / "in", watch=watch)
    slowly = partial(gate_of, released=release_of(folder))
    some = flow.source("taps", source, schema=Tap).map(slowly, schema=int, name="gates")
    counts = some.group_by("value AS gate").count(name="counts")
    counts.changes(name="updates").to(JsonLinesSink(folder / "out"), name="out")
    return flow


def gate_of(given: Tap, released: Path) -> int:
    """Return the gate of a tap, after a while unless there was the release."""
    if not released.exists():
        pause(0.0005)
    return given.gate


def add_files(folder: Path, numbers: range) -> None:
    """Add four files with taps of some numbers."""
    (folder / "in").mkdir(exist_ok=True)
    for part in range(4):
        # Long lines, of which a task reads few at a time.
        rows = [{"gate": n % GATES, "number": n, "more": "." * 500} for n in numbers[part::4]]
        lines = map(json.dumps, rows)
        file = folder / "in" / f".{numbers.start:06}-{part}"
        file.write_text("\n".join(lines) + "\n")
        file.rename(file.with_name(f"{file.name[1:]}.jsonl"))


def check_files(folder: Path, count: int) -> None:
    """Compare what was counted with a plain loop, however often keys have moved between tasks.

    A key moves from file to file, and each file has in order what came while the key was there.
    """
    by_file = [histories_of(file) for file in (folder / "out").glob("part-*.jsonl")]
    assert all(values == sorted(values) for file in by_file for values in file.values())
    totals = Counter(number % GATES for number in range(count))
    assert {
        key: sorted(value for file in by_file for value in file.get(key, ())) for key in totals
    } == {key: [*range(1, total + 1)] for key, total in totals.items()}


def histories_of(file: Path) -> dict[int, list[int]]:
    """Return the values that each key has had in one file."""
    found: dict[int, list[int]] = {}
    for line in file.read_text().splitlines():
        change = json.loads(line)
        found.setdefault(change["key"], []).append(change["value"])
    return found


# --------------------------------------------------------------------------- jobs and their tasks


def started(flow: fw.Flow, folder: Path, **options: Any) -> Job:
    """Start a flow with a checkpoint in a folder, and return when it runs."""
    job = flow.start(**{"dop": 2, "epoch": "200ms", "checkpoint": folder / "checkpoint"} | options)
    until(job, lambda: job.state == "running", "running")
    return job


def until(job: Job, condition: Callable[[], object], what: str) -> None:
    """Wait for a condition while a job goes on; raise what makes it fail."""

    def so() -> bool:
        if condition():
            return True
        assert not job.wait(0), f"the flow was over before {what}"
        return False

    wait_for(so, what)


def ended(job: Job, folder: Path) -> None:
    """Let the last records in, and wait for the end."""
    release(folder)
    assert job.wait(DEADLINE_S), "the flow did not end"
    assert job.state == "ended"


def pid_of(job: Job, operator: str, index: int = 0) -> int:
    """Return the process of a task."""
    return job.tasks[job.plan.stage_of(operator).name, index][1]


def stage_of(job: Job, operator: str) -> StageStatus:
    """Return what is known of an operator's stage."""
    name = job.plan.stage_of(operator).name
    return next(stage for stage in job.status.stages if stage.name == name)


def committed_again(job: Job, epochs: int = 1) -> None:
    """Wait until some more epochs are committed."""
    for _ in range(epochs):
        before = job.committed
        until(job, lambda: job.committed > before, "another epoch")  # noqa: B023 - waits for it


def kill(job: Job, operator: str, index: int = 0) -> None:
    """Kill a task, and wait until its loss is noticed."""
    before = job.recoveries
    os.kill(pid_of(job, operator, index), signal.SIGKILL)
    until(job, lambda: job.recoveries > before, f"noticing the loss of {operator}")


def kill_and_recover(job: Job, operator: str, index: int = 0) -> None:
    """Kill a task, and wait until the flow goes on without it."""
    kill(job, operator, index)
    until(job, lambda: job.state == "running", "running again")
    committed_again(job)


def able_stages(job: Job) -> list[str]:
    """Return the stages that can work in micro-batches."""
    return [stage.name for stage in job.plan.stages if able(job.plan, stage)]


def switch_all(job: Job, paradigm: Paradigm) -> None:
    """Switch every stage that can be, and wait until all its tasks work so."""
    stages = able_stages(job)
    for stage in stages:
        job.switch(stage, paradigm)
    until(job, lambda: {job.paradigms[stage] for stage in stages} == {paradigm}, paradigm)
