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
        How long to wait, at the start, for the next task to come.
    metrics
        Whether tasks measure and report.
    stuck_s
        After how long in one call a task is said to be stuck.
    silent_s
        After how long without a sign of life, or without a connection, a task is replaced, or,
        without recovery, the flow fails; each gives one every second.
    vault
        The folder in which the flow keeps what it goes back to; empty if it keeps nothing.
    lasting
        Whether that folder is a checkpoint, which has to outlive everything.
    nonce
        What the driver has written there: who reads it sees the same folder.
    output_cache
        How many bytes a task that keeps its output for replay keeps in memory; more goes to files.
    state_memory
        How many bytes of state a task keeps in memory; None for all of it.
    block_bytes
        In the operation paradigm, about how many bytes a task collects for a micro-batch at most.
    announce
        With TCP, the host under which all processes of the flow reach each other, if that is not
        the one they listen on; the ports are the same.
    """

    input_cache: int = 16 * 1024 * 1024
    check_ms: float = 50.0
    patience_s: float = 60.0
    metrics: bool = True
    stuck_s: float = 5.0
    silent_s: float = 30.0
    vault: str = ""
    lasting: bool = True
    nonce: str = ""
    output_cache: int = 64 * 1024 * 1024
    state_memory: int | None = None
    block_bytes: int = 64 * 1024 * 1024
    announce: str = ""
