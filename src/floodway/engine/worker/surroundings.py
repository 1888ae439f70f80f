"""What a runner finds around it: its mailbox, the vault, the clock, and who works aside.

Here are the real ones; a simulation brings others.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from floodway.engine.checkpoint.vault import Vault
from floodway.engine.datastream.aside import Aside, ThreadAside
from floodway.engine.host.clock import SteadyClock
from floodway.engine.host.parent import Parent
from floodway.engine.transport.frame import Header


class Post(Protocol):
    """What a runner needs of its mailbox."""

    address: str
    bad_frames: int

    @property
    def sent_again(self) -> int:
        """How many frames had to be sent again."""

    def connect(self, number: int, address: str) -> None:
        """Make a way to the inbox of a task, or of the driver."""

    def send(self, number: int, frame: bytes) -> None:
        """Send a frame; never waits."""

    def drain(self, most: int) -> Iterator[tuple[Header, bytes]]:
        """Return the frames that are there."""

    def down(self) -> dict[int, float]:
        """Return to whom there is no connection now, and for how many seconds there was none."""

    def pending(self, number: int) -> bool:
        """Return whether the other side misses something of us: frames, or an answer."""

    def watch(self, descriptor: int) -> None:
        """Wake up also when a file descriptor becomes readable."""

    def unwatch(self, descriptor: int) -> None:
        """Wake up for a file descriptor no more."""


class Surroundings(Protocol):
    """What a runner finds around it; a simulation has others.

    `sees` tells whether the vault is the one that the driver means.
    """

    post: Post
    vault: Vault | None
    scratch: Path
    sees: bool

    def now(self) -> int:
        """Return the time in microseconds since 1970; it never jumps, whatever is done to it."""

    def aside(self, name: str) -> Aside:
        """Return somebody who does work aside."""

    def orphaned(self) -> bool:
        """Return whether the process that made this one is gone."""


class RealSurroundings:
    """Sockets, threads and the clock."""

    def __init__(
        self,
        post: Post,
        vault: Vault | None,
        scratch: Path,
        *,
        in_spark: bool,
        sees: bool = True,
    ) -> None:
        self.post, self.vault, self.scratch, self.sees = post, vault, scratch, sees
        self.now = SteadyClock().now
        self._parent = Parent() if in_spark else None  # in a Spark slot, it is Spark's daemon

    def aside(self, name: str) -> Aside:
        """Return a thread that does work aside, and wakes the task when it has."""
        return ThreadAside(f"floodway-{name}", self.post)

    def orphaned(self) -> bool:
        """Return whether Spark's daemon is gone; the driver may be there."""
        return self._parent is not None and self._parent.gone
