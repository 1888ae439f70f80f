"""Floodway itself, as a system under test.

Tuning: ``dual`` is how flows run if nobody says anything; ``data`` and ``operation`` have b_out
1000; ``unbatched`` has b_out 1 and no two operators in one task.
"""

from pathlib import Path

from floodway.bench.systems.flows import FLOWS
from floodway.bench.systems.kit import Signal, Task, run
from floodway.bench.tracing import Mode, tuning
from floodway.engine.job import start as start_job
from floodway.plan import Configuration

MODES: dict[str, Mode] = {
    "dual": "dual",
    "data": "data",
    "operation": "operation",
    "unbatched": "data_unbatched",
}


def start(task: Task) -> None:
    """Run a flow until all events have come."""
    configuration = Configuration(tuning(MODES[task.options["mode"]], task.dop))
    story = Path(task.folder) / "story.jsonl"
    job = start_job(FLOWS[task.case](task), configuration=configuration, story=story)
    if task.link == "kafka":
        job.wait_running()
        Signal(task).wait()
        job.drain()
    job.wait()


if __name__ == "__main__":
    run(start)
