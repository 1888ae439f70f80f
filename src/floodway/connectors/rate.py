"""Values made here: numbers at a given rate, or what a function makes of them."""

import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from floodway.connectors.base import Lag, Raw, Reader, SourceConnector, Split, Unreadable
from floodway.core.errors import OptionError
from floodway.core.functions import require_plain


@dataclass(frozen=True)
class RateSource(SourceConnector):
    """Gives whole numbers at a steady rate: 0, 1, 2 and so on.

    The rate does not depend on how fast the flow is (an open loop): number ``i`` is due
    ``i / per_second`` seconds after the start, and a reader that was kept waiting gives everything
    that is due by then. Several tasks take turns. Can go on from any number, with as many tasks as
    before: replayable.

    Parameters
    ----------
    per_second
        How many numbers per second, of all tasks together.
    count
        How many numbers in all; endless if not given.
    start
        The first number.

    Examples
    --------
    >>> reader = RateSource(1_000_000, count=5).open(Split(1, of=2))
    >>> numbers = []
    >>> while (polled := reader.poll(10)) is not None:
    ...     numbers += polled
    >>> numbers
    [1, 3]
    """

    replayable: ClassVar[bool] = True
    most = None

    per_second: float
    _: KW_ONLY
    count: int | None = None
    start: int = 0

    def __post_init__(self) -> None:
        _check_rate(self.per_second, self.count)

    @property
    def bounded(self) -> bool:
        """Whether it has a count."""
        return self.count is not None

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader of every n-th number."""
        schedule = Schedule(split, self.per_second, self.count, position or 0)
        return _RateReader(schedule, self.start)


@dataclass(frozen=True)
class GeneratorSource(SourceConnector):
    """Gives what a function makes of 0, 1, 2 and so on.

    Can go on from any index, with as many tasks as before, and gives the same again if the function
    does: replayable.

    Parameters
    ----------
    function
        Takes an index and returns a value. It travels to the tasks.
    per_second
        How many values per second, of all tasks together; as fast as they are taken if not given.
    count
        How many values in all; endless if not given.

    Examples
    --------
    >>> reader = GeneratorSource(lambda index: index * index, count=4).open(Split())
    >>> reader.poll(3), reader.poll(3), reader.poll(3)
    ([0, 1, 4], [9], None)
    """

    replayable: ClassVar[bool] = True
    most = None

    function: Callable[[int], Any]
    _: KW_ONLY
    per_second: float | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        _check_rate(self.per_second, self.count)
        require_plain(self.function)

    @property
    def bounded(self) -> bool:
        """Whether it has a count."""
        return self.count is not None

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader of every n-th value."""
        return _GeneratorReader(Schedule(split, self.per_second, self.count, position or 0), self)


class Schedule:
    """Which indices of a task are due.

    Parameters
    ----------
    split
        Which part of the indices the task has.
    per_second
        The rate of all tasks together; everything is due at once if None.
    count
        How many indices there are for all tasks together.
    done
        How many of its own indices the task has given already, before it was started again.
    clock
        Seconds, for the rate.

    Examples
    --------
    >>> now = 10.0
    >>> schedule = Schedule(Split(1, of=2), per_second=10, count=None, done=0, clock=lambda: now)
    >>> now = 10.5
    >>> list(schedule.take(100))
    [1, 3, 5]
    """

    def __init__(
        self,
        split: Split,
        per_second: float | None,
        count: int | None,
        done: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._split = split
        self._per_second = per_second
        self._total = None if count is None else len(range(split.index, count, split.of))
        self._clock = clock
        self._began = clock()
        self._first = done
        self.done = done

    @property
    def ended(self) -> bool:
        """Whether there are no more indices."""
        return self._total is not None and self.done >= self._total

    def due(self) -> int | None:
        """Return how many indices are due and not given yet; None if there is no rate."""
        if self._per_second is None:
            return None
        # The index that the first of this task has at the start is due at its own time.
        passed = (self._clock() - self._began) * self._per_second - self._split.index
        number = self._first + (int(passed // self._split.of) + 1 if passed >= 0 else 0)
        return (number if self._total is None else min(number, self._total)) - self.done

    def take(self, limit: int) -> range:
        """Return at most `limit` indices that are due, and count them as given."""
        due = self.due()
        number = limit if due is None else min(due, limit)
        if self._total is not None:
            number = min(number, self._total - self.done)
        first = self._split.index + self.done * self._split.of
        self.done += number
        return range(first, first + number * self._split.of, self._split.of)

    def lag(self) -> Lag:
        """Return how many indices are due, and for how long the first of them has been."""
        due = self.due()
        if due is None or self._per_second is None:
            return Lag()
        return Lag(due, due * self._split.of / self._per_second, full=False)


class _ScheduledReader(Reader):
    """What both readers have in common."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule

    def position(self) -> Any:
        return self._schedule.done

    def lag(self) -> Lag:
        return self._schedule.lag()


class _RateReader(_ScheduledReader):
    def __init__(self, schedule: Schedule, start: int) -> None:
        super().__init__(schedule)
        self._start = start

    def poll(self, limit: int) -> Raw | None:
        if self._schedule.ended:
            return None
        indices = self._schedule.take(limit)
        start = self._start
        return list(range(indices.start + start, indices.stop + start, indices.step))


class _GeneratorReader(_ScheduledReader):
    def __init__(self, schedule: Schedule, source: GeneratorSource) -> None:
        super().__init__(schedule)
        self._function = source.function

    def poll(self, limit: int) -> Raw | None:
        if self._schedule.ended:
            return None
        return [self._value(index) for index in self._schedule.take(limit)]

    def _value(self, index: int) -> Any:
        try:
            return self._function(index)
        except Exception as error:
            name = getattr(self._function, "__qualname__", repr(self._function))
            return Unreadable(
                index,
                f"{name} failed on {index}: {type(error).__name__}: {error}",
                remedy="let the function return a value for every index",
            )


def _check_rate(per_second: float | None, count: int | None) -> None:
    if per_second is not None and not per_second > 0:
        raise OptionError(f"per_second is {per_second}", remedy="give a number above zero")
    if count is not None and count < 0:
        raise OptionError(f"count is {count}", remedy="give zero or more, or leave it out")
