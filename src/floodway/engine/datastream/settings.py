"""How tasks run, whatever they run."""

import msgspec


class Settings(msgspec.Struct, frozen=True):
    """How tasks run.

    Attributes
    ----------
    input_cache
        How many bytes may wait for a task, or be on their way to it.
    check_ms
        The longest a task sleeps when nothing happens.
    patience_s
        How long to wait for the others at the start.
    metrics
        Whether tasks measure and report.
    stuck_s
        After how long in one call a task is said to be stuck.
    """

    input_cache: int = 16 * 1024 * 1024
    check_ms: float = 50.0
    patience_s: float = 60.0
    metrics: bool = True
    stuck_s: float = 5.0
