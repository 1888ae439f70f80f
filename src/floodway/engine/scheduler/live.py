"""The central scheduler at work in a flow that runs: reports in, orders to the tasks out."""

import logging
from collections.abc import Callable
from os import PathLike, fspath
from typing import IO

from floodway.core.errors import OptionError
from floodway.engine.control import Switch, Switched, Tune
from floodway.engine.metrics.report import TaskReport
from floodway.engine.numbering import Numbering
from floodway.engine.scheduler.decisions import SetBatch
from floodway.engine.scheduler.loads import Topology
from floodway.engine.scheduler.observing import Observer
from floodway.engine.scheduler.scheduler import Scheduler
from floodway.engine.scheduler.settings import Settings
from floodway.engine.scheduler.story import Story
from floodway.model.tuning import Pin
from floodway.plan.stages import Plan

log = logging.getLogger(__name__)

OBSERVE_MS = 50
"""How often loads are looked at; tasks report as often."""

FIRST_WARM_MS, WARM_MS = 400, 40_000
"""How often processes for micro-batches are kept warm: Spark ends those that idle for a minute."""

Wish = Callable[[Tune | Switch], None]
"""Tells all tasks, and later each that begins anew."""


class LiveScheduler:
    """Lets the scheduler see what tasks report, and carries out what it decides.

    Parameters
    ----------
    wish
        How orders reach the tasks.
    prepare
        Called now and then with stages that may be switched to micro-batches.
    file
        Where to write the story, line by line; it is appended to.
    """

    def __init__(
        self,
        plan: Plan,
        wish: Wish,
        *,
        prepare: Callable[[str], None],
        settings: Settings | None = None,
        file: str | PathLike[str] | None = None,
    ) -> None:
        self._numbering = Numbering(plan)
        self._dop = {stage.name: stage.dop for stage in plan.stages}
        self._wish, self._prepare = wish, prepare
        self._file = None if file is None else _opened(file)
        self.observer = Observer(plan)
        self.story = Story(None if self._file is None else self._write)
        self.scheduler = Scheduler(Topology.of(plan), settings, self.story)
        self._next_ms = 0
        self._warm_ms: int | None = None
        self._logged = 0
        self._told: dict[str, dict[int, int]] = {}

    def _write(self, line: bytes) -> None:
        if self._file is not None:
            self._file.write(line + b"\n")

    def take(self, report: TaskReport) -> None:
        """Take what a task reports."""
        self.observer.take(report)

    def pin(self, stage: str, pin: Pin) -> None:
        """Have a stage work in a paradigm, or let the scheduler choose again."""
        self.observer.pins[stage] = pin

    def turn(self, now_ms: int) -> None:
        """Look at the loads if it is time, and give orders."""
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + OBSERVE_MS
        if self._warm_ms is None:
            self._warm_ms = now_ms + FIRST_WARM_MS  # a flow that is soon over needs none
        elif now_ms >= self._warm_ms:
            self._warm_ms = now_ms + WARM_MS
            self._get_ready()
        for decision in self.scheduler.observe(self.observer.loads(), now_ms):
            if isinstance(decision, SetBatch):
                self._wish(Tune(decision.operator, decision.b_out, None))
            else:
                self._told[decision.stage] = {}
                self._wish(Switch(decision.stage, decision.paradigm))
        self._tell()

    def _get_ready(self) -> None:
        """Have processes ready for what may be switched: a flood does not wait for them."""
        for stage, pin in self.observer.pins.items():
            if pin != "data" and self.observer.able(stage):
                self._prepare(stage)

    def _tell(self) -> None:
        """Put what is new in the story into the log, and let others read it in the file."""
        for entry in self.story.since(self._logged):
            log.info("%s: %s", entry.stage, entry.why)
            self._logged += 1
        if self._file is not None:
            self._file.flush()

    def switched(self, message: Switched, now_ms: int) -> None:
        """Take note that a task works in another paradigm; the stage does when all its tasks do."""
        stage, index = self._numbering.names[message.task]
        told = self._told.setdefault(stage, {})
        told[index] = message.pause_us
        if len(told) == self._dop[stage]:
            self.scheduler.switched(stage, now_ms, max(told.values()))
            self._told[stage] = {}

    def close(self) -> None:
        """Tell the rest of the story."""
        self._tell()
        if self._file is not None:
            self._file.close()


def _opened(path: str | PathLike[str]) -> IO[bytes]:
    try:
        return open(path, "ab")
    except OSError as error:
        raise OptionError(
            f"the story cannot be written to {fspath(path)}: {error.strerror}",
            remedy="name a file in a folder that is there and can be written",
        ) from None
