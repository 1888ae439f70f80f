"""Waiting for what takes its time: until it is so, and never for a time that was guessed."""

import threading
import time
from collections.abc import Callable

DEADLINE_S = 240.0
"""How long anything may take: what hangs is found, and a busy machine is no failure."""


def pause(seconds: float = 0.01) -> None:
    """Let others work for a moment, between two looks or as a function that is slow on purpose."""
    threading.Event().wait(seconds)


def wait_for(
    condition: Callable[[], object], what: str = "it", seconds: float = DEADLINE_S
) -> None:
    """Wait until a condition holds; fail if that takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        pause()
