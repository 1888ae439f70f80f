"""The central scheduler at work in a flow that runs: it sees the loads, and gives orders.

The leader drives it, and tells the tasks what it orders.
"""

import logging
from collections.abc import Callable
from os import PathLike, fspath
from typing import IO

from floodway.core.errors import OptionError
from floodway.engine.control.messages import Switch, Tune
from floodway.engine.metrics.status import InParadigms
from floodway.engine.metrics.window import ReportWindows
from floodway.engine.scheduler.decisions import Decision, SetBatch
from floodway.engine.scheduler.loads import Topology
from floodway.engine.scheduler.observing import Observer
from floodway.engine.scheduler.scheduler import Scheduler
from floodway.engine.scheduler.settings import SchedulerSettings
from floodway.engine.scheduler.story import Story
from floodway.model.tuning import Paradigm, Pin
from floodway.plan.stages import Plan

log = logging.getLogger(__name__)

OBSERVE_MS = 50
"""How often loads are looked at; tasks report as often."""

FIRST_WARM_MS, WARM_MS = 400, 40_000
"""How often processes for micro-batches are kept warm: Spark ends those that idle for a minute."""


class LiveScheduler:
    """Lets the scheduler see what tasks report, and says what it decides.

    Parameters
    ----------
    windows
        The latest reports of all tasks.
    paradigms
        Who knows in which paradigm each stage works.
    file
        Where to write the story, line by line; it is appended to.
    """

    def __init__(
        self,
        plan: Plan,
        windows: ReportWindows,
        paradigms: InParadigms,
        *,
        settings: SchedulerSettings | None = None,
        file: str | PathLike[str] | None = None,
    ) -> None:
        self._file = None if file is None else _opened(file)
        self._observer = Observer(plan, windows, paradigms)
        self.story = Story(None if self._file is None else self._write)
        self.scheduler = Scheduler(Topology.of(plan), settings, self.story)
        self._prepare: Callable[[str], None] | None = None
        self._next_ms = 0
        self._warm_ms: int | None = None
        self._logged = 0

    def _write(self, line: bytes) -> None:
        if self._file is not None:
            self._file.write(line + b"\n")

    def begin(self, prepare: Callable[[str], None], *, slots: int) -> None:
        """Begin to decide: there are processes for micro-batches.

        `prepare` is called now and then with stages that may be switched to them.
        """
        self._prepare, self._observer.slots = prepare, slots

    def pin(self, stage: str, pin: Pin) -> None:
        """Have a stage work in a paradigm, or let the scheduler choose again."""
        self._observer.pins[stage] = pin

    def turn(self, now_ms: int) -> list[Tune | Switch]:
        """Look at the loads if it is time; return what the tasks are to be told."""
        if self._prepare is None or now_ms < self._next_ms:
            return []
        self._next_ms = now_ms + OBSERVE_MS
        if self._warm_ms is None:
            self._warm_ms = now_ms + FIRST_WARM_MS  # a flow that is soon over needs none
        elif now_ms >= self._warm_ms:
            self._warm_ms = now_ms + WARM_MS
            self._get_ready(self._prepare)
        orders = [_order(each) for each in self.scheduler.observe(self._observer.loads(), now_ms)]
        self._tell()
        return orders

    def _get_ready(self, prepare: Callable[[str], None]) -> None:
        """Have processes ready for what may be switched: a flood does not wait for them."""
        for stage, pin in self._observer.pins.items():
            if pin != "data" and self._observer.able(stage):
                prepare(stage)

    def _tell(self) -> None:
        """Put what is new in the story into the log, and let others read it in the file."""
        for entry in self.story.since(self._logged):
            log.info("%s: %s", entry.stage, entry.why)
            self._logged += 1
        if self._file is not None:
            self._file.flush()

    def switched(self, stage: str, now_ms: int, pause_us: int, paradigm: Paradigm) -> None:
        """Take note that all tasks of a stage have done what they were told."""
        self.scheduler.switched(stage, now_ms, pause_us, paradigm)

    def close(self) -> None:
        """Tell the rest of the story."""
        self._tell()
        if self._file is not None:
            self._file.close()


def _order(decision: Decision) -> Tune | Switch:
    """Return what tasks are told of a decision."""
    if isinstance(decision, SetBatch):
        return Tune(decision.operator, decision.b_out, None)
    return Switch(decision.stage, decision.paradigm)


def _opened(path: str | PathLike[str]) -> IO[bytes]:
    try:
        return open(path, "ab")
    except OSError as error:
        raise OptionError(
            f"the story cannot be written to {fspath(path)}: {error.strerror}",
            remedy="name a file in a folder that is there and can be written",
        ) from None
