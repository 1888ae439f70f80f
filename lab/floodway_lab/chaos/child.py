"""The process that runs the flow, so that it can be killed: ``python -m`` this, and a file.

It writes a line to standard output whenever something has changed: what the flow does, its last
committed epoch, and the processes of its tasks. The clock of these lines is that of the whole
machine, so whoever reads them knows when it was so.
"""

import logging
import os
import random
import sys
import time
from pathlib import Path

import msgspec

from floodway.core.errors import FloodwayError
from floodway.engine.datastream.settings import Settings
from floodway.engine.driver.job import Job, start
from floodway.engine.opstream.halves import able
from floodway_lab.chaos.processes import VARIABLE
from floodway_lab.chaos.words import Word
from floodway_lab.chaos.workload import LETTERS, Workload, build

PATIENCE_S = 100.0
"""How long a flow has to start; a machine that is busy with all this is slow."""

LOOK_S = 0.005
"""How often the child looks at its flow."""

SWITCH_S = 1.0
"""Some stage changes its paradigm after so long, even if nothing was lost."""


def main(file: str) -> int:
    """Run the workload that a file describes; return the exit code."""
    logging.basicConfig(
        format="%(asctime)s %(name)s: %(message)s", level=logging.INFO, stream=sys.stderr
    )
    workload = msgspec.json.decode(Path(file).read_bytes(), type=Workload)
    try:
        job = start(
            build(workload),
            dop=workload.dop,
            checkpoint=workload.checkpoint,
            epoch=workload.epoch_ms,
            settings=Settings(
                state_memory=workload.state_memory,
                silent_s=workload.silent_s,
                announce=workload.announce,
                patience_s=PATIENCE_S,
            ),
            metrics_port=None,
            master=workload.master or None,
            conf={f"spark.executorEnv.{VARIABLE}": os.environ[VARIABLE]},
            transport="tcp" if workload.announce else "auto",
        )
        letters = Letters(job, workload) if workload.letters else None
        return _follow(job, Switches(job) if workload.switches else None, letters)
    except FloodwayError as error:
        _say(Word(time.monotonic(), "failed", 0, 0, [], str(error)))
        logging.exception("the flow failed")
        return 1


class Switches:
    """Lets stages change their paradigm: whenever a task was lost, and every now and then.

    Attributes
    ----------
    count
        How often that was so.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._able = [stage.name for stage in job.plan.stages if able(job.plan, stage)]
        self._operating: set[str] = set()
        self._random = random.Random(job.start_epoch)
        self._recoveries = 0
        self._next = 0.0
        self.count = 0

    def turn(self) -> None:
        """Switch a stage if it is time."""
        job, now = self._job, time.monotonic()
        if job.state in ("running", "recovering") and (
            job.recoveries > self._recoveries or now >= self._next
        ):
            self._recoveries, self._next = job.recoveries, now + SWITCH_S
            stage = self._random.choice(self._able)
            self._operating ^= {stage}
            job.switch(stage, "operation" if stage in self._operating else "data")
            self.count += 1


class Letters:
    """Lets letters come in slowly, until all that is left is released."""

    def __init__(self, job: Job, workload: Workload) -> None:
        self._job, self._release = job, workload.release
        self._slow = not self._release.exists()
        if self._slow:
            share = workload.letters / workload.records
            job.throttle(LETTERS, workload.per_second * share / workload.dop)

    def turn(self) -> None:
        """See if they are released."""
        if self._slow and self._release.exists():
            self._slow = False
            self._job.throttle(LETTERS, None)


def _follow(job: Job, switches: Switches | None, letters: Letters | None) -> int:
    said: Word | None = None
    over = False
    while not over:
        try:
            over = job.wait(LOOK_S)
            if switches is not None:
                switches.turn()
            if letters is not None:
                letters.turn()
        finally:
            word = _word(job, switches.count if switches is not None else 0)
            if said is None or msgspec.structs.replace(word, at=said.at) != said:
                _say(word)
                said = word
    return 0


def _word(job: Job, switches: int) -> Word:
    # The processes first: if one is new and the flow runs, then it runs with the new one.
    tasks = [(stage, index, pid) for (stage, index), (_, pid) in sorted(job.tasks.items())]
    return Word(
        time.monotonic(),
        job.state,
        job.committed,
        job.recoveries,
        tasks,
        None if job.error is None else str(job.error),
        switches,
    )


def _say(word: Word) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(word) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
