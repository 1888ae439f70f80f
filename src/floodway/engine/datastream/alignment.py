"""The alignment of marks: which channels wait at a mark, and when it has come from everywhere.

Everything before a mark is processed before it and nothing after it. So a channel that has brought
one is *held* until all that have not ended have brought it. Nothing here knows of frames, or of the
order in which what waits is worked on.
"""

from collections.abc import Iterable

from floodway.engine.program.standing import Channel


class Alignment:
    """Which channels are open, and which of them wait at a mark.

    Attributes
    ----------
    open
        The channels that have not ended.
    held
        The channels that have brought a mark which others have not, in the order in which they
        brought it; always the same dictionary.

    Examples
    --------
    >>> alignment = Alignment([(0, 0), (0, 1)])
    >>> alignment.marked((0, 1)), alignment.marked((0, 0))
    (False, True)
    >>> alignment.release()
    [(0, 1), (0, 0)]
    >>> alignment.marked((0, 1)), alignment.ended((0, 0))
    (False, True)
    """

    __slots__ = ("held", "open")

    def __init__(self, channels: Iterable[Channel]) -> None:
        self.open: set[Channel] = set(channels)
        self.held: dict[Channel, None] = {}

    def marked(self, channel: Channel) -> bool:
        """Hold a channel at its mark; return whether all channels have brought it."""
        self.held[channel] = None
        return self._complete()

    def ended(self, channel: Channel) -> bool:
        """Forget a channel; return whether a mark that the others have brought is complete now."""
        self.open.discard(channel)
        return self._complete()

    def _complete(self) -> bool:
        return bool(self.held) and self.open <= self.held.keys()

    def holds(self, channel: Channel) -> bool:
        """Return whether a channel waits at a mark."""
        return channel in self.held

    def release(self) -> list[Channel]:
        """Let the channels go on that waited; return which they are."""
        released = list(self.held)
        self.held.clear()
        return released
