"""How far something is, and how much time is left: a bar on a terminal, lines elsewhere."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

LINE_S = 10.0
"""Where there is no terminal, a line is written at most so often."""


class Gauge:
    """Shows how far something is.

    A context manager; what it shows on a terminal goes when it is left.

    Parameters
    ----------
    console
        Where to show it.
    what
        What is going on, in a word or two.
    clock
        Seconds.

    Examples
    --------
    >>> import io
    >>> now = iter([0, 20, 30])
    >>> console = Console(file=io.StringIO(), highlight=False)
    >>> with Gauge(console, "chaos", clock=lambda: next(now)) as gauge:
    ...     gauge.update(5, 20, "5 of 20 kills")
    ...     gauge.update(20, 20)
    >>> print(console.file.getvalue(), end="")
    chaos: 25 %, about 1 min left, 5 of 20 kills
    chaos: 100 %
    """

    def __init__(
        self, console: Console, what: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console, self._what, self._clock = console, what, clock
        self._began = clock()
        self._written: float | None = None
        self._complete = False
        self._live = (
            Live(console=console, transient=True, refresh_per_second=4)
            if console.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, done: float, total: float, note: str = "") -> None:
        """Say how much is done, of how much, and more in words."""
        passed = self._clock() - self._began
        left = shown_left(passed, done, total)
        if self._live is not None:
            self._live.update(self._bar(done, total, left, note))
            return
        complete = done >= total
        due = self._written is None or passed - self._written >= LINE_S
        if due or (complete and not self._complete):
            self._written, self._complete = passed, complete
            percent = f"{100 * done / total:.0f} %" if total else ""
            told = ", ".join(part for part in (percent, left, note) if part)
            self._console.print(f"{self._what}: {told}", markup=False, soft_wrap=True)

    def _bar(self, done: float, total: float, left: str, note: str) -> Grid:
        grid = Grid.grid(padding=(0, 2, 0, 0))
        bar = ProgressBar(total=max(total, 1), completed=done, width=24)
        grid.add_row(Text(self._what, style="bold"), bar, left, note)
        return grid


def shown_left(passed: float, done: float, total: float) -> str:
    """Return how much time is left, in words; nothing if it cannot be known or none is.

    >>> shown_left(10, 5, 20), shown_left(10, 0, 20), shown_left(600, 5, 20)
    ('about 30 s left', '', 'about 30 min left')
    """
    if done <= 0 or done >= total:
        return ""
    seconds = passed / done * (total - done)
    if seconds < 60:
        return f"about {max(round(seconds), 1)} s left"
    return f"about {round(seconds / 60)} min left"
