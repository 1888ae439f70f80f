"""Memory that was freed, given back to the machine.

Records come and go, and what they leave in the allocator's heap are holes between things that stay.
The allocator only gives back what is free at the end of the heap, so a task that has once been
flooded, or has run for long, would keep far more memory than it needs.
"""

import ctypes
from collections.abc import Callable

EVERY_S = 30.0
"""How often it is worth looking; it takes about a millisecond, and other threads go on."""

_trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)


def give_back() -> None:
    """Give back all whole pages that are free; where the C library cannot, do nothing."""
    if _trim is not None:
        _trim(0)
