"""What Floodway's stages did while it was under test, looked at from its own process."""

import time
from pathlib import Path

import msgspec

from floodway.engine.driver.job import Job
from floodway.engine.metrics.recent import Percentiles
from floodway.engine.metrics.status import StageStatus
from floodway.engine.metrics.work import Counters

LOOK_S = 0.25
"""How often a flow is looked at."""

LOOKS = "looks.jsonl"


class StageLook(msgspec.Struct, frozen=True):
    """A stage at a moment; times in milliseconds.

    Attributes
    ----------
    paradigm, queue
        How it works, and how many records wait in it.
    wait, process, wait_p99, process_p99
        Record by record, of late: what half of the records, and 99 of 100, took in the input cache
        and in the operators.
    p99
        What 99 of 100 records took through the stage, of late.
    counters
        What it has done since the flow began.
    """

    paradigm: str
    queue: int
    wait: float
    process: float
    wait_p99: float
    process_p99: float
    p99: float
    counters: Counters


class Look(msgspec.Struct, frozen=True):
    """A flow at a moment, in milliseconds since 1970: its stages."""

    time_ms: int
    stages: dict[str, StageLook]


def look_until_over(job: Job, folder: Path) -> None:
    """Wait for a flow, and write down what its stages do meanwhile."""
    encode = msgspec.json.Encoder().encode
    with (folder / LOOKS).open("wb") as file:
        over = False
        while not over:
            over = job.wait(LOOK_S)
            seen = {stage.name: stage_look(stage) for stage in job.status.stages}
            stages = {name: look for name, look in seen.items() if look is not None}
            file.write(encode(Look(time.time_ns() // 1_000_000, stages)) + b"\n")


def read_looks(folder: Path) -> list[Look]:
    """Return what was written down, if anything was."""
    path = folder / LOOKS
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    decode = msgspec.json.Decoder(Look).decode
    return [decode(line) for line in lines if line.endswith(b"\n")]


def stage_look(stage: StageStatus) -> StageLook | None:
    """Return what is to be kept of a stage; None if nothing went through it lately."""
    passage, none = stage.passage, Percentiles(0, 0, 0, 0, 0)
    if passage is None:
        return None
    waits, services = stage.queue_wait or none, stage.service_time or none
    times = (waits.p50, services.p50, waits.p99, services.p99, passage.p99)
    wait, process, wait_p99, process_p99, p99 = (round(each / 1000, 3) for each in times)
    return StageLook(
        stage.paradigm,
        stage.queue_records,
        wait,
        process,
        wait_p99,
        process_p99,
        p99,
        stage.counters,
    )
