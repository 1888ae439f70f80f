"""Checkpoints to look at: that of a flow which counts words."""

from pathlib import Path

import floodway as fw
from floodway.connectors import JsonLinesSink, JsonLinesSource
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import VERSION, CommitRecord
from floodway.engine.checkpoint.shape import FlowShape
from floodway.engine.checkpoint.vault import FolderVault
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan


def counting(
    *, flow: str = "words", by: str = "value AS word", counts: str = "counts", dop: int = 1
) -> Plan:
    """Return the plan of a flow that counts words."""
    made = fw.Flow(flow)
    words = made.source("words", JsonLinesSource("in.jsonl"), schema=str)
    counted = words.group_by(by).count(name=counts)
    counted.changes(name="changes").to(JsonLinesSink("out"), name="results")
    return Plan.of(made, Configuration(Tuning(dop=dop)))


def write_checkpoint(folder: Path, *, epoch: int = 12) -> None:
    """Write the checkpoint of a flow that counts words."""
    with Commits(FolderVault(folder)) as commits:
        commits.write(
            CommitRecord(
                version=VERSION,
                flow="words",
                shape=FlowShape.of(counting()),
                epoch=epoch,
                attempt=1,
                stream_time=None,
                clock_ms=0,
                finished=False,
                tasks=[],
            )
        )
