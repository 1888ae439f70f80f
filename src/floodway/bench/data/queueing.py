"""The queue between a generator and a system: first in, first out, counted in events."""

from collections import deque


class Queue:
    """Blocks of events that were generated and that nobody has taken yet.

    Attributes
    ----------
    put_in, taken
        How many events have come and gone. A block that is partly gone is still here.

    Examples
    --------
    >>> queue = Queue()
    >>> for block, events in (b"one two", 2), (b"three", 1), (b"four", 1):
    ...     queue.put(block, events)
    >>> queue.gone(9)
    >>> queue.taken, queue.size, [bytes(block) for block in queue.front(9)]
    (2, 2, [b'ree', b'four'])
    """

    def __init__(self) -> None:
        self._blocks: deque[tuple[memoryview, int]] = deque()
        self.put_in = self.taken = 0

    @property
    def size(self) -> int:
        """How many events wait."""
        return self.put_in - self.taken

    def put(self, block: bytes, events: int) -> None:
        """Append a block."""
        self._blocks.append((memoryview(block), events))
        self.put_in += events

    def front(self, blocks: int) -> list[memoryview]:
        """Return the first blocks, at most so many."""
        return [self._blocks[number][0] for number in range(min(blocks, len(self._blocks)))]

    def gone(self, size: int) -> None:
        """Take note that so many bytes have been taken."""
        while size:
            block, events = self._blocks[0]
            if size < len(block):
                self._blocks[0] = (block[size:], events)
                return
            size -= len(block)
            self._blocks.popleft()
            self.taken += events
