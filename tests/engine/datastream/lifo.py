"""Last in, first out: a policy that the engine does not have."""

from floodway.engine.datastream.policy import Policy, Queued


class Lifo(Policy):
    """What came last is worked on first: most are served at once, and some late."""

    sees_all = True

    def __init__(self) -> None:
        self.waiting: list[Queued] = []

    def put(self, waiting: Queued) -> None:
        """Take an entry."""
        self.waiting.append(waiting)

    def next(self, now: int) -> Queued:
        """Give up the one that came last."""
        return self.waiting.pop()
