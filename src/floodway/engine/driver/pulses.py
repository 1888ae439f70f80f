"""Pulses: questions to the sources, and marks made of their answers.

A pure state machine. At every pulse all tasks with sources are asked how far they are. When all
have answered there is a new mark, with stream time. Marks since the last committed epoch are kept:
a source that goes back has to make them again.
"""

from collections.abc import Collection, Iterable

from floodway.engine.control.messages import Ask, Pulse, SourceTime
from floodway.engine.driver.stream_time import StreamTime


class Pulses:
    """Numbers the marks and says when the next is due.

    Parameters
    ----------
    time
        Keeps stream time.
    every_ms
        How often there is a mark.
    epoch, clock
        The number of the last mark, and what its clock showed. That never goes back: if the
        driver's is behind, as that of a new one on another host may be, it goes on at half its
        speed until the driver's has caught up.

    Attributes
    ----------
    clock
        What the clock of the last mark showed.
    """

    def __init__(self, time: StreamTime, every_ms: int, *, epoch: int = 0, clock: int = 0) -> None:
        self._time = time
        self._every_ms = every_ms
        self.epoch = epoch
        self.clock = clock
        self._marked_ms: int | None = None
        self._next = 0
        self._question = 0
        self._unanswered: set[int] = set()
        self._marks: list[tuple[Pulse, dict[int, dict[str, int]]]] = []

    def start(self, now_ms: int) -> None:
        """Let the first pulse be due one interval from now."""
        self._next = now_ms + self._every_ms

    def due(self, now_ms: int) -> bool:
        """Return whether it is time for a pulse, or the clock was set back."""
        return not self._next - self._every_ms <= now_ms < self._next

    def ask(self, tasks: Collection[int], now_ms: int) -> Ask | None:
        """Return the next question, unless somebody has not answered the last one yet."""
        if self._unanswered & set(tasks):
            return None
        self._next = now_ms + self._every_ms
        self._question += 1
        self._unanswered = set(tasks)
        return Ask(self._question)

    def forget_question(self) -> None:
        """Do not wait for answers any longer."""
        self._unanswered = set()

    def answer(self, task: int, number: int, sources: Iterable[SourceTime]) -> bool:
        """Take an answer; return whether it was the last."""
        if number != self._question or task not in self._unanswered:
            return False
        self._time.take(task, sources)
        self._unanswered.discard(task)
        return not self._unanswered

    def leave(self, task: int, sources: Iterable[SourceTime] = ()) -> bool:
        """Take note that a task has ended; return whether only its answer was missing."""
        self._time.end(task, sources)
        last = self._unanswered == {task}
        self._unanswered.discard(task)
        return last

    def number(self) -> int:
        """Return the number of the next mark."""
        self.epoch += 1
        return self.epoch

    def mark(self, now_ms: int, *, commit: bool) -> Pulse:
        """Return the mark that was just numbered."""
        since = 0 if self._marked_ms is None else max(now_ms - self._marked_ms, 0)
        self._marked_ms = now_ms
        self.clock = max(now_ms, self.clock + since // 2)
        return Pulse(self.epoch, self._time.advance(), self.clock, commit)

    # ------------------------------------------------------------------ making marks again

    def keep(self, mark: Pulse, tasks: Iterable[int]) -> None:
        """Keep a mark, and how many records the tasks' sources had brought in before it."""
        self._marks.append((mark, {task: self._time.counts(task) for task in tasks}))

    def time_at(self, epoch: int) -> int | None:
        """Return stream time at a mark that is kept; the latest if there is no such mark."""
        times = {mark.epoch: mark.stream_time for mark, _ in self._marks}
        return times.get(epoch, self._time.time)

    def committed(self, epoch: int) -> None:
        """Forget marks up to a committed epoch."""
        self._marks = [(mark, counts) for mark, counts in self._marks if mark.epoch > epoch]

    def kept(self, task: int) -> tuple[list[Pulse], dict[str, int]]:
        """Return the marks that a source task has to make again, and the records before them."""
        most: dict[str, int] = {}
        for _, counts in self._marks:  # a source that catches up has less than it had before
            for name, count in counts.get(task, {}).items():
                most[name] = max(count, most.get(name, 0))
        return [mark for mark, _ in self._marks], most
