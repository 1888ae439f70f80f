"""What a paradigm is to a task: a form in which it works, until a switch gives it the other one."""

from typing import Any, Protocol

from floodway.engine.program.mark import Mark


class Form(Protocol):
    """A form in which a task works: record by record, or in micro-batches.

    `Task` is the record form of itself. The other one is `Batches` of `floodway.engine.opstream`:
    it collects what comes to a task, and merges what was made of it elsewhere. Whoever brings in
    records, marks and ends gives them to the form of the moment, and need not know which it is.
    """

    @property
    def at_once(self) -> bool:
        """Whether what is brought in has been processed when the call returns."""

    @property
    def full(self) -> bool:
        """Whether as much is at work elsewhere as may be, and nothing more can be taken."""

    @property
    def holds_sources(self) -> bool:
        """Whether the task's own sources have to wait."""

    def step(self, now: int) -> bool:
        """Work on what comes next; return whether there was something."""

    def feed(self, source: str, rows: list[Any], now: int) -> None:
        """Bring in rows ``(timestamp, key, value)`` through a source."""

    def feed_raw(self, source: str, raw: list[Any] | bytes, now: int, *, keyed: bool) -> int:
        """Bring in what a reader handed over; return how many records that is.

        If that is not done at once, lines are counted about.
        """

    def end_source(self, source: str, now: int, *, final: bool = True) -> None:
        """End a source; `final` if nothing more will ever come from it."""

    def pulse(self, epoch: int, mark: Mark) -> None:
        """Put a mark after all that the task's own sources have brought so far."""
