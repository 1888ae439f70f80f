"""The input cache of a task: frames that have come and wait, bounded in bytes.

Here frames are taken in the order of arrival, with one exception: a channel that has brought a mark
is held back until all channels have brought it. `Chosen` asks a policy for the order instead. The
bound is kept by the senders: each may have only so many bytes on the way, and is told when some
have been processed.
"""

from collections import deque

from floodway.engine.datastream.alignment import Alignment
from floodway.engine.program.standing import Channel
from floodway.engine.transport.frame import EXCHANGE, KIND, RECORDS, SENDER, Header

Arrived = tuple[Header, bytes, int]
"""A frame that waits: its header, all of it, and when it came if somebody wants to know."""

DATA = 1


class Inbox:
    """Frames that wait, in the order of arrival.

    Attributes
    ----------
    records, bytes
        How much waits.
    now
        The time of this turn of the task's loop; whoever runs the task says so.
    """

    def __init__(self, alignment: Alignment) -> None:
        self._alignment = alignment
        self._held = alignment.held
        self._ready: deque[Arrived] = deque()
        self._behind: dict[Channel, list[Arrived]] = {}
        self.records = 0
        self.bytes = 0
        self.now = 0

    def put(self, header: Header, data: bytes, arrived: int = 0) -> None:
        """Add a frame that has come."""
        self.records += header[RECORDS]
        self.bytes += len(data)
        self._ready.append((header, data, arrived))

    def shed(self) -> None:
        """Drop what nobody shall work on: nothing, in the order of arrival."""

    def take(self, most: int) -> list[Arrived]:
        """Return the next frame that may be processed, or none.

        If it is data, return also what follows on the same exchange, up to `most` records: what
        waits already may as well be processed together.
        """
        taken: list[Arrived] = []
        ready, held = self._ready, self._held
        records = exchange = 0  # of what is taken
        while ready:
            header, data, _ = ready[0]
            if held and (header[EXCHANGE], header[SENDER]) in held:
                self._behind.setdefault((header[EXCHANGE], header[SENDER]), []).append(
                    ready.popleft()
                )
                continue
            if taken and (header[KIND] != DATA or header[EXCHANGE] != exchange or records >= most):
                break
            taken.append(ready.popleft())
            exchange = header[EXCHANGE]
            records += header[RECORDS]
            self.bytes -= len(data)
            if header[KIND] != DATA:
                break
        self.records -= records
        return taken

    def release(self) -> None:
        """Let the channels go on that were held at a mark."""
        waiting: list[Arrived] = []
        for channel in self._alignment.release():
            waiting += self._behind.pop(channel, ())
        self._ready.extendleft(reversed(waiting))

    def clear(self) -> None:
        """Forget everything that waits."""
        self._ready.clear()
        self._behind.clear()
        self.records = self.bytes = 0
