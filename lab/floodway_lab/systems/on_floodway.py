"""Floodway itself, as a system under test.

Tuning: ``dual`` is how flows run if nobody says anything; ``data`` and ``operation`` have b_out
1000; ``unbatched`` has b_out 1 and no two operators in one task.
"""

from pathlib import Path

from floodway.engine.driver.job import start as start_job
from floodway.model.tuning import Tuning
from floodway.plan import Configuration
from floodway_lab.systems.flows import FLOWS
from floodway_lab.systems.kit import Signal, Task, run
from floodway_lab.systems.looking import look_until_over

RECENT_S = 3.0
"""What stages did of late is what they did in so long."""


def tuning(mode: str, dop: int) -> Tuning:
    """Return how operators run in a mode."""
    match mode:
        case "data" | "operation":
            return Tuning(dop=dop, b_out=1000, paradigm=mode)
        case "unbatched":
            return Tuning(dop=dop, b_out=1, isolate=True, paradigm="data")
        case _:
            return Tuning(dop=dop)


def start(task: Task) -> None:
    """Run a flow until all events have come."""
    configuration = Configuration(tuning(task.options["mode"], task.dop))
    folder = Path(task.folder)
    job = start_job(
        FLOWS[task.case](task),
        configuration=configuration,
        recent_s=RECENT_S,
        story=folder / "story.jsonl",
    )
    if task.link == "kafka":
        job.wait_running()
        Signal(task).wait()
        job.drain()
    look_until_over(job, folder)


if __name__ == "__main__":
    run(start)
