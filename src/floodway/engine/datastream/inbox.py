"""The input cache of a task: frames that have come and wait, in order, bounded in bytes.

Frames are taken in the order of arrival, with one exception: a channel that has brought a mark is
held back until all channels have brought it, so that everything before a mark is processed before
it and nothing after it (*alignment*). The bound is kept by the senders: each may have only so many
bytes on the way, and is told when some have been processed.
"""

from collections import deque
from collections.abc import Iterable

from floodway.engine.transport.frame import Header

Channel = tuple[int, int]
"""An exchange, and the number of the sending task."""

Entry = tuple[Header, bytes, int]
"""A frame that waits: its header, all of it, and when it came if somebody wants to know."""

DATA = 1


class Inbox:
    """Frames that wait, and which channels are held back.

    Attributes
    ----------
    open
        The channels that have not ended.
    records, bytes
        How much waits.
    """

    def __init__(self, channels: Iterable[Channel]) -> None:
        self.open: set[Channel] = set(channels)
        self._ready: deque[Entry] = deque()
        self._held: dict[Channel, list[Entry]] = {}
        self.records = 0
        self.bytes = 0

    def put(self, header: Header, data: bytes, arrived: int = 0) -> None:
        """Add a frame that has come."""
        self.records += header[6]
        self.bytes += len(data)
        self._ready.append((header, data, arrived))

    def take(self, most: int) -> list[Entry]:
        """Return the next frame that may be processed, or none.

        If it is data, return also what follows on the same exchange, up to `most` records: what
        waits already may as well be processed together.
        """
        taken: list[Entry] = []
        ready, held, records = self._ready, self._held, 0
        while ready:
            entry = ready[0]
            header = entry[0]
            if held and (header[2], header[3]) in held:
                held[header[2], header[3]].append(ready.popleft())
                continue
            if taken and (header[1] != DATA or header[2] != taken[0][0][2] or records >= most):
                break
            taken.append(ready.popleft())
            records += header[6]
            self.bytes -= len(entry[1])
            if header[1] != DATA:
                break
        self.records -= records
        return taken

    def marked(self, channel: Channel) -> bool:
        """Hold a channel back after its mark; return whether all channels have brought it."""
        self._held.setdefault(channel, [])
        return self._all_marked()

    def holds(self, channel: Channel) -> bool:
        """Return whether a channel is held back."""
        return channel in self._held

    def ended(self, channel: Channel) -> bool:
        """Forget a channel; return whether a mark that the others have brought is complete now."""
        self.open.discard(channel)
        return self._all_marked()

    def _all_marked(self) -> bool:
        return bool(self._held) and self.open <= self._held.keys()

    def release(self) -> None:
        """Let the channels go on that were held back."""
        waiting = [entry for entries in self._held.values() for entry in entries]
        self._held.clear()
        self._ready.extendleft(reversed(waiting))

    def ended_exchange(self, exchange: int) -> bool:
        """Return whether all channels of an exchange have ended."""
        return not any(channel[0] == exchange for channel in self.open)

    def clear(self) -> None:
        """Forget everything that waits."""
        self._ready.clear()
        for entries in self._held.values():
            entries.clear()
        self.records = self.bytes = 0
