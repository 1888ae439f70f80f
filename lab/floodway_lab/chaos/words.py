"""What the process that runs the flow says to the one that kills."""

import msgspec

TaskProcess = tuple[str, int, int]
"""The process of a task: its stage, its index, and the number of the process."""


class Word(msgspec.Struct, frozen=True):
    """What the child says.

    Attributes
    ----------
    at
        When it was so, in seconds of the monotonic clock.
    state
        What the flow is doing.
    committed
        The last committed epoch.
    recoveries
        How often it has gone back because a task was lost.
    tasks
        The process of each task that is there.
    error
        What made it fail, if it failed.
    switches
        How often a stage was told to change its paradigm.
    """

    at: float
    state: str
    committed: int
    recoveries: int
    tasks: list[TaskProcess]
    error: str | None = None
    switches: int = 0
