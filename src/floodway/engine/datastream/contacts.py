"""Whether a task reaches those it sends to: what to tell people, and when to give somebody up."""

from collections.abc import Callable, Iterable

from floodway.engine.datastream.surroundings import Post

TELL_S = 2.0
"""A connection that is gone for longer is worth a word; shorter ones come and go unnoticed."""


class Contacts:
    """Watches the ways to the tasks that come after this one.

    Parameters
    ----------
    name
        Returns what people call the task of a number.
    warn
        Tells people what they should know.
    lost
        Told, once, of a task that could not be reached for `silent_s`.
    """

    def __init__(
        self,
        post: Post,
        name: Callable[[int], str],
        warn: Callable[[str], None],
        lost: Callable[[int], None],
        *,
        silent_s: float,
    ) -> None:
        self._post = post
        self._name, self._warn, self._lost = name, warn, lost
        self._silent_s = silent_s
        self._told: set[int] = set()
        self._given_up: set[int] = set()

    def look(self, own: str, targets: Iterable[int]) -> None:
        """See whether what was sent to some tasks can reach them; `own` is who asks."""
        down = self._post.down()
        for target in sorted(set(targets)):
            # To whom there is nothing to say one need not be connected: it may have left.
            seconds = 0.0 if self._post.settled(target) else down.get(target, 0.0)
            if seconds > TELL_S and target not in self._told:
                self._told.add(target)
                self._warn(f"the link {own} -> {self._name(target)} is down; trying again")
            elif target in self._told and target not in down:
                self._told.discard(target)
                self._given_up.discard(target)
                self._warn(f"the link {own} -> {self._name(target)} is up again")
            if seconds > self._silent_s and target not in self._given_up:
                self._given_up.add(target)
                self._lost(target)
