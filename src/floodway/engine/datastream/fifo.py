"""First in, first out: entries are worked on in the order in which they came. The default."""

from collections import deque

from floodway.engine.datastream.policy import Policy, Queued


class Fifo(Policy):
    """The order of arrival; nothing is dropped.

    This is the one order that lets no entry pass a mark all by itself, if marks simply wait among
    the entries. So a task that has this very policy does not ask it: `Inbox` is that queue. One
    that derives from it, and drops or prefers something, is asked like any other.
    """

    sees_all = True

    def __init__(self) -> None:
        self.waiting: deque[Queued] = deque()

    def put(self, waiting: Queued) -> None:
        """Take an entry."""
        self.waiting.append(waiting)

    def next(self, now: int) -> Queued:
        """Give up the one that came first."""
        return self.waiting.popleft()
