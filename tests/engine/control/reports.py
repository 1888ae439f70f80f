"""Made-up reports."""

from typing import Any

from floodway.engine.control.report import (
    Cost,
    Moments,
    OperatorCounts,
    SourceProgress,
    TaskReport,
)
from floodway.engine.metrics.board import Board, StageInfo
from floodway.engine.metrics.status import StageParadigm
from floodway.model.tuning import Paradigm

START = 1_000.0
"""When the tasks of these reports start."""


def report(
    stage: str = "views",
    index: int = 0,
    *,
    at: float = 1.0,
    attempt: int = 0,
    started: float = START,
    **fields: Any,
) -> TaskReport:
    """Return a report that a task makes ``at`` seconds after the start of the flow."""
    time = START + at
    fields = {"state": "running", **fields}
    return TaskReport(
        stage=stage,
        index=index,
        attempt=attempt,
        place=f"slot-{index}",
        pid=100 + index,
        host="here",
        time=time,
        uptime_s=time - started,
        **fields,
    )


class Said:
    """Says in which paradigm the tasks of some stages work; all others are in `data`."""

    def __init__(self, **stages: list[Paradigm]) -> None:
        self._stages = stages

    def of_task(self, stage: str, index: int) -> Paradigm:
        return self._stages[stage][index] if stage in self._stages else "data"

    def of_stage(self, stage: str) -> StageParadigm:
        known = set(self._stages.get(stage, ["data"]))
        return "switching" if len(known) > 1 else known.pop()


STAGES = (
    StageInfo("events", ("events", "only_views"), dop=1, partitioning="source"),
    StageInfo("views", ("views", "dashboard"), dop=2, partitioning="hash", sinks=("dashboard",)),
)


def source_report(at: float) -> TaskReport:
    """Return a report of the source, which reads 1000 records a second and keeps a third."""
    read = int(1000 * at)
    return report(
        "events",
        at=at,
        operators=[
            OperatorCounts("events", read, read),
            OperatorCounts("only_views", read, read // 3, 0, 2, 1),
        ],
        records_in=read,
        bytes_in=240 * read,
        records_out=read // 3,
        bytes_out=80 * read,
        frames_in=int(10 * at),
        frames_out=int(20 * at),
        frames_again=int(4 * at),
        busy_s=0.25 * at,
        idle_s=0.5 * at,
        blocked_s=0.25 * at,
        cost=Cost(100, 0, 300_000, 50_000),
        service=Moments(read, 350.0, 10.0, 1.0),
        service_us=[300, 350, 400],
        source=SourceProgress(1500, 2.5, 7_000, ended=False),
        stream_time=7_000,
        b_out={"views": 100},
        linger_ms={"views": 5.0},
        rss_bytes=50_000_000,
    )


def view_report(at: float, index: int = 0) -> TaskReport:
    """Return a report of a counting task, which falls behind by 50 records a second."""
    received, done = int(200 * at), int(150 * at)
    return report(
        "views",
        index,
        at=at,
        operators=[
            OperatorCounts("views", done, done, late=7),
            OperatorCounts("dashboard", done, 0),
        ],
        records_in=received,
        bytes_in=20 * received,
        records_out=done,
        bytes_out=30 * done,
        queue_records=received - done,
        queue_bytes=20 * (received - done),
        busy_s=0.9 * at,
        idle_s=0.0,
        blocked_s=0.1 * at,
        cost=Cost(10, 1_000, 60_000, 4_000),
        queue_wait_us=[5_000] * 20,
        service_us=[6_000] * 20,
        latency_us=[20_000] * 98 + [90_000, 90_000],
        stream_time=6_000 - index,
        rss_bytes=60_000_000,
        state_keys=1_000,
        state_bytes=250_000,
        state_aside=0,
    )


def busy_board(seconds: int = 3) -> Board:
    """Return a board that has heard all tasks ten times a second."""
    board = Board("ads", STAGES)
    for tick in range(1, 10 * seconds + 1):
        at = tick / 10
        for each in (source_report(at), view_report(at), view_report(at, 1)):
            board.take(each)
    return board
