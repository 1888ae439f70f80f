"""The process that runs the flow, so that it can be killed: ``python -m`` this, and a file.

It writes a line to standard output whenever something has changed: what the flow does, its last
committed epoch, and the processes of its tasks. The clock of these lines is that of the whole
machine, so whoever reads them knows when it was so.
"""

import logging
import sys
import time
from pathlib import Path

import msgspec

from floodway.core.errors import FloodwayError
from floodway.engine.job import Job, start
from floodway.testing.chaos.words import Word
from floodway.testing.chaos.workload import Workload, build

LOOK_S = 0.005
"""How often the child looks at its flow."""


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
            state_memory=workload.state_memory,
            metrics_port=None,
        )
        return _follow(job)
    except FloodwayError as error:
        _say(Word(time.monotonic(), "failed", 0, 0, [], str(error)))
        logging.exception("the flow failed")
        return 1


def _follow(job: Job) -> int:
    said: Word | None = None
    over = False
    while not over:
        try:
            over = job.wait(LOOK_S)
        finally:
            word = _word(job)
            if said is None or msgspec.structs.replace(word, at=said.at) != said:
                _say(word)
                said = word
    return 0


def _word(job: Job) -> Word:
    # The processes first: if one is new and the flow runs, then it runs with the new one.
    tasks = [(stage, index, pid) for (stage, index), (_, pid) in sorted(job.tasks.items())]
    return Word(
        time.monotonic(),
        job.state,
        job.committed,
        job.recoveries,
        tasks,
        None if job.error is None else str(job.error),
    )


def _say(word: Word) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(word) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
