"""Connections that break, between all processes of a flow: nothing is lost, nothing is doubled."""

from pathlib import Path
from typing import Any

import pytest
from floodway_lab.chaos.relay import Relay

from floodway.engine.datastream.settings import Settings
from tests.engine.spark.recovering import counting, ended, expected, histories, shown, started
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shared_spark", "clean")]

RESETS = 8


@pytest.mark.parametrize("options", [{}, {"checkpoint": None}], ids=["checkpoint", "without"])
def test_flow_whose_connections_are_reset_has_the_same_results(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    out = tmp_path / "out"
    with Relay() as relay:
        settings = Settings(announce=relay.host)
        job = started(counting(tmp_path), tmp_path, transport="tcp", settings=settings, **options)
        with job:
            for _ in range(RESETS):
                before = shown(out)
                wait_for(lambda: shown(out) > before, "more results")  # noqa: B023 - waits for it
                wait_for(relay.reset, "connections to reset")
            ended(job, tmp_path)
        assert relay.resets > RESETS
    assert job.recoveries == 0
    assert histories(out) == expected()
