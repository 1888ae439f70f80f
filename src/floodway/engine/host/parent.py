"""The process that made this one: a task's is Spark's daemon, and who has lost it is nobody's.

Spark cannot stop an orphan, and it would outlive its driver. Looking who the parent is when work
begins is not enough: the daemon may have died between the fork and then, and the orphan would take
the process that has adopted it for its parent. So the daemon leaves its number in what it forks.
"""

import os

_daemon: int | None = None


def become_parent() -> None:
    """Let all that this process forks know that it is their parent."""
    global _daemon
    _daemon = os.getpid()


class Parent:
    """Who made this process: the one that has said so or, if none has, the present parent."""

    def __init__(self) -> None:
        self._number = os.getppid() if _daemon is None else _daemon

    @property
    def gone(self) -> bool:
        """Whether it is this process's parent no more."""
        return os.getppid() != self._number
