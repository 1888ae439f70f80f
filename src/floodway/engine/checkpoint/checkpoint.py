"""A flow's checkpoint: where it goes on, and whether it can.

A checkpoint is a folder with commit records, state and logs of sinks. It belongs to one flow, and
to one driver at a time. A flow that has changed since goes on if its state can be kept; otherwise
it is refused, with what is in the way.
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path

from floodway.connectors.backoff import Backoff
from floodway.connectors.base import SinkConnector, SourceConnector
from floodway.core.errors import (
    ConnectorError,
    CorruptError,
    EngineError,
    FloodwayError,
    ServerAwayError,
)
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import CommitRecord
from floodway.engine.checkpoint.rescale import needs_rescaling, rescaled
from floodway.engine.checkpoint.shape import FlowShape
from floodway.engine.checkpoint.upgrade import compare
from floodway.engine.checkpoint.vault import FolderVault
from floodway.operators.sink import Sink
from floodway.operators.source import Source
from floodway.plan.stages import Plan

log = logging.getLogger(__name__)

AWAY_S = 120.0
"""So long a flow that goes on waits for a server that is away. One that begins does not wait: its
user is there, and the address may be wrong."""


class Checkpoint:
    """The checkpoint of a flow, open for one driver.

    Attributes
    ----------
    commits
        Its commit records.
    attempts
        From which number on the attempts of this run are counted.
    lasting
        Whether it is to outlive the driver; otherwise it serves for the loss of tasks alone.
    nonce
        By which tasks know that they see this very folder.
    """

    def __init__(self, path: str | PathLike[str], plan: Plan, *, lasting: bool = True) -> None:
        self.path = Path(path).absolute()
        self._plan = plan
        self.lasting = lasting
        self.commits = Commits(FolderVault(self.path, durable=lasting))
        self.attempts = 0
        self.nonce = ""

    def open(self) -> CommitRecord | None:
        """Keep others out and return where to go on; None for the beginning."""
        self.commits.lock()
        try:
            record = self.commits.latest(verify=True)
            if record is not None:
                self._check(record)
                if needs_rescaling(record, self._plan):
                    record = rescaled(record, self._plan, self.commits)
            self.commits.go_on_from(record)
            self.nonce = self.commits.claim()  # before any file: see `Commits.latest`
            self.attempts = self.commits.new_attempts()
            return record
        except BaseException:
            self.close()
            raise

    def _check(self, record: CommitRecord) -> None:
        if record.flow != self._plan.flow:
            raise EngineError(
                f"{self.path} is the checkpoint of the flow {record.flow!r}, and this is "
                f"{self._plan.flow!r}",
                remedy="choose another folder, one for each flow",
            )
        findings = compare(record.shape, FlowShape.of(self._plan))
        wrong = [finding for finding in findings if finding.verdict == "incompatible"]
        if wrong:
            raise EngineError(
                f"the flow cannot go on from {self.path}: {'; '.join(map(str, wrong))}",
                remedy="`floodway check-upgrade` shows what is kept; undo the change, give changed "
                "operators another name, or start with an empty checkpoint",
            )
        if self.commits.skipped:
            self._refuse_undone(record)

    def _refuse_undone(self, record: CommitRecord) -> None:
        """Refuse to go back behind an epoch that a sink has shown and cannot take back."""
        for operator in self._plan.graph.operators:
            connector = operator.connector if isinstance(operator, Sink) else None
            if not isinstance(connector, SinkConnector) or connector.undoes:
                continue
            if connector.delivery == "exactly once":
                name, reason = self.commits.skipped[0]
                raise CorruptError(
                    f"{self.path}/{name} is damaged ({reason}), and {operator.name} cannot take "
                    f"back what it has shown after epoch {record.epoch}",
                    remedy="restore the checkpoint from a copy, or start with an empty one",
                )
        log.warning("going back to epoch %d: a newer record is damaged", record.epoch)

    def close(self) -> None:
        """Let others in."""
        self.commits.close()


def check_connectors(
    plan: Plan, record: CommitRecord | None = None, *, patience_s: float = AWAY_S
) -> None:
    """Refuse sources and sinks without a connector, and those that are known to fail.

    A sink that goes on from a record may find what it has written itself. And a flow that goes on
    has found its servers before: if one is away now, as after a power cut, it is waited for.
    """
    tokens = {
        name: sink.token
        for task in (record.tasks if record else [])
        for name, sink in task.sinks.items()
    }
    for operator in plan.graph.operators:
        if not isinstance(operator, Source | Sink):
            continue
        wanted = SourceConnector if isinstance(operator, Source) else SinkConnector
        connector = operator.connector
        if not isinstance(connector, wanted):
            kind = "source" if isinstance(operator, Source) else "sink"
            what = "no connector" if connector is None else f"a {type(connector).__name__}"
            raise ConnectorError(
                f"the {kind} {operator.name} has {what}, so the flow cannot run by itself",
                remedy="give it one, e.g. from floodway.connectors; without, only a test driver "
                "can run the flow",
                operator=operator.name,
                place=operator.place,
            )
        check = connector.check
        if isinstance(connector, SinkConnector) and operator.name in tokens:
            check = partial(connector.check_resumed, tokens[operator.name])
        try:
            _patiently(check, operator.name, patience_s if record is not None else 0.0)
        except FloodwayError as error:
            raise error.at(operator.name, operator.place) from None


def _patiently(check: Callable[[], None], name: str, seconds: float) -> None:
    """Check a connector; wait at most so long for a server that does not answer."""
    backoff, deadline = Backoff(most_ms=2_000), time.monotonic() + seconds
    told = False
    while True:
        try:
            check()
        except ServerAwayError as error:
            if time.monotonic() >= deadline:
                raise
            if not told:
                log.warning("%s: %s; waiting %.0f s for it", name, error.problem, seconds)
            told = True
            time.sleep(backoff.next_ms() / 1000)
        else:
            break
    if told:
        log.warning("%s: goes on", name)
