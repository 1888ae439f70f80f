"""The queue between a generator and a system: first in, first out, counted in events.

What waits is only noted: how many events, and when they were due. Their lines are made when they
are about to leave, and are what they would have been before. So a queue of seconds takes no memory;
gigabytes of lines made the machine stand still, and with it the system that was measured.
"""

from collections import deque
from typing import Protocol


class Supply(Protocol):
    """Where events come from."""

    def take(self, count: int, time_ms: int) -> bytes:
        """Return the next events, due at a moment."""


class Queue:
    """Events that were due and that nobody has taken yet.

    Attributes
    ----------
    put_in, taken
        How many events have come and gone. A block that is partly gone is still here.

    Examples
    --------
    >>> class Digits:
    ...     def take(self, count: int, time_ms: int) -> bytes:
    ...         return b"%d" % time_ms * count
    >>> queue = Queue(Digits())
    >>> for count, time_ms in (2, 10), (1, 11), (1, 12):
    ...     queue.put(count, time_ms)
    >>> [bytes(block) for block in queue.front(2)]
    [b'1010', b'11']
    >>> queue.gone(5)
    >>> queue.taken, queue.size, [bytes(block) for block in queue.front(9)]
    (2, 2, [b'1', b'12'])
    """

    def __init__(self, supply: Supply) -> None:
        self._supply = supply
        self._due: deque[tuple[int, int]] = deque()
        self._made: deque[tuple[memoryview, int]] = deque()
        self.put_in = self.taken = 0

    @property
    def size(self) -> int:
        """How many events wait."""
        return self.put_in - self.taken

    def put(self, count: int, time_ms: int) -> None:
        """Append events that are due at a moment."""
        self._due.append((count, time_ms))
        self.put_in += count

    def front(self, blocks: int) -> list[memoryview]:
        """Return the first blocks, at most so many, each the events of one moment."""
        while self._due and len(self._made) < blocks:
            count, time_ms = self._due.popleft()
            self._made.append((memoryview(self._supply.take(count, time_ms)), count))
        return [self._made[number][0] for number in range(min(blocks, len(self._made)))]

    def gone(self, size: int) -> None:
        """Take note that so many bytes have been taken."""
        while size:
            block, events = self._made[0]
            if size < len(block):
                self._made[0] = (block[size:], events)
                return
            size -= len(block)
            self._made.popleft()
            self.taken += events
