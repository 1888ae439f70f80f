"""Links that stay down: those who cannot be reached are replaced, or the flow says which it was."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from floodway_lab.chaos.relay import Relay

from floodway.core.errors import EngineError
from floodway.engine.datastream.settings import Settings
from floodway.engine.driver.job import Job
from tests.engine.spark.recovering import (
    committed_again,
    counting,
    ended,
    expected,
    histories,
    pid_of,
    shown,
    started,
    until,
)
from tests.waiting import DEADLINE_S, wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.usefixtures("shared_spark", "clean"),
]

SILENT_S = 3.0


@pytest.fixture
def relay() -> Iterator[Relay]:
    with Relay() as relay:
        yield relay


def started_over(relay: Relay, folder: Path, **options: Any) -> Job:
    """Start the counting flow over a relay, and return when it has shown something."""
    settings = Settings(announce=relay.host, silent_s=SILENT_S)
    job = started(counting(folder), folder, transport="tcp", settings=settings, **options)
    wait_for(lambda: shown(folder / "out"), "results")
    return job


def inbox_of(job: Job, operator: str) -> int:
    """Return the port at which a task listens for others."""
    ends = psutil.Process(pid_of(job, operator)).net_connections("tcp")
    (port,) = (end.laddr.port for end in ends if end.status == psutil.CONN_LISTEN)
    return int(port)


RECOVERING = pytest.mark.parametrize(
    "options", [{}, {"checkpoint": None}], ids=["checkpoint", "without"]
)


@RECOVERING
def test_flow_whose_tasks_all_lose_touch_goes_on_when_they_are_let_through_again(
    tmp_path: Path, relay: Relay, options: dict[str, Any]
) -> None:
    with started_over(relay, tmp_path, **options) as job:
        relay.part()
        until(job, lambda: job.recoveries > 0, "giving somebody up")
        relay.join()
        until(job, lambda: job.state == "running", "running again")
        committed_again(job)
        ended(job, tmp_path)
    assert histories(tmp_path / "out") == expected()


@RECOVERING
def test_task_that_nobody_reaches_any_more_is_replaced(
    tmp_path: Path, relay: Relay, caplog: pytest.LogCaptureFixture, options: dict[str, Any]
) -> None:
    """It is heard all the time: only the others know that what they send does not come."""
    caplog.set_level(logging.WARNING, "floodway")
    with started_over(relay, tmp_path, **options) as job:
        before = pid_of(job, "counts")
        relay.part(inbox_of(job, "counts"))
        until(job, lambda: job.recoveries > 0, "giving it up")
        until(job, lambda: job.state == "running", "running again")
        assert pid_of(job, "counts") != before
        committed_again(job)  # its successor has another port, and that is open
        relay.join()
        ended(job, tmp_path)
    stage = job.plan.stage_of("counts").name
    assert f"-> {stage}/0 is down" in caplog.text
    assert histories(tmp_path / "out") == expected()


def test_flow_without_recovery_fails_and_names_the_link_that_is_down(
    tmp_path: Path, relay: Relay
) -> None:
    options = {"checkpoint": None, "recovery": False}
    with started_over(relay, tmp_path, **options) as job:
        relay.part(inbox_of(job, "counts"))
        stage = job.plan.stage_of("counts").name
        with pytest.raises(EngineError, match=rf"the link \S+ -> {stage}/0 is down") as failed:
            job.wait(DEADLINE_S)
    assert f"task 0 of the stage {stage} was lost" in failed.value.problem
    assert "whether its host is there and lets connections in" in failed.value.remedy
    assert job.state == "failed"
