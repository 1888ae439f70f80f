"""The input cache of a task: frames that have come and wait, in order, bounded in bytes.

Frames are taken in the order of arrival, with one exception: a channel that has brought a mark is
held back until all channels have brought it, so that everything before a mark is processed before
it and nothing after it (*alignment*). The bound is kept by the senders: each may have only so many
bytes on the way, and is told when some have been processed.
"""

from collections import deque
from collections.abc import Iterable

from floodway.engine.transport.frame import Frame

Channel = tuple[int, int]
"""An exchange, and the number of the sending task."""


class Inbox:
    """Frames that wait, and which channels are held back.

    Attributes
    ----------
    records, bytes
        How much waits.
    """

    def __init__(self, channels: Iterable[Channel]) -> None:
        self.open: set[Channel] = set(channels)
        self._ready: deque[tuple[Frame, int]] = deque()
        self._held: dict[Channel, list[tuple[Frame, int]]] = {}
        self.records = 0
        self.bytes = 0

    def put(self, frame: Frame, arrived: int = 0) -> None:
        """Add a frame that has come; `arrived` is when, if somebody wants to know."""
        self.records += frame.records
        self.bytes += frame.size
        self._ready.append((frame, arrived))

    def take(self) -> tuple[Frame, int] | None:
        """Return the next frame that may be processed, or None."""
        ready, held = self._ready, self._held
        while ready:
            entry = ready.popleft()
            frame = entry[0]
            if held:
                waiting = held.get((frame.exchange, frame.sender))
                if waiting is not None:
                    waiting.append(entry)
                    continue
            self.records -= frame.records
            self.bytes -= frame.size
            return entry
        return None

    def marked(self, channel: Channel) -> bool:
        """Hold a channel back after its mark; return whether all channels have brought it."""
        self._held.setdefault(channel, [])
        return self._all_marked()

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

    def __bool__(self) -> bool:
        return bool(self._ready)
