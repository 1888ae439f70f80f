"""Whether anybody else was using the machine while something was measured."""

import os
import threading
from types import TracebackType
from typing import Self

import psutil

LOOK_S = 0.5
"""How often it is looked at; what a process did since the last look before it ended is not seen,
and counts as somebody else's."""


class Load:
    """Watches who has the cores. A context manager; while it is entered, it looks.

    Attributes
    ----------
    foreign
        The share of all cores that neither this process nor those it has started have had.

    Examples
    --------
    >>> with Load() as load:
    ...     whole = sum(range(1_000_000))
    >>> 0 <= load.foreign <= 1
    True
    """

    def __init__(self) -> None:
        self.foreign = 0.0
        self._own: dict[int, float] = {}
        self._used = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._began = _busy_and_whole()
        self._own = _processes()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self._look()
        busy, whole = (now - then for now, then in zip(_busy_and_whole(), self._began, strict=True))
        if whole > 0:
            self.foreign = round(min(max(busy - self._used, 0.0) / whole, 1.0), 3)

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        """Add what each process has used since the last look, or since it began."""
        now = _processes()
        self._used += sum(seconds - self._own.get(pid, 0.0) for pid, seconds in now.items())
        self._own = now


def _busy_and_whole() -> tuple[float, float]:
    """Return for how many seconds cores have worked, and how many there were, all together."""
    times = psutil.cpu_times()
    idle = times.idle + times.iowait
    # Guests are in user time already.
    busy = times.user + times.nice + times.system + times.irq + times.softirq + times.steal
    return busy, busy + idle


def _processes() -> dict[int, float]:
    """Return the seconds that this process and all it has started have used."""
    own = psutil.Process()
    found = {own.pid: sum(os.times()[:2])}
    for process in own.children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        found[process.pid] = times.user + times.system
    return found
