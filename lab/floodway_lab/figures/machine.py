"""Where a figure was measured: figures of two machines are not to be compared."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version

import msgspec
import psutil

from floodway.core.machine import processor


class Machine(msgspec.Struct, frozen=True):
    """Where a figure was measured."""

    date: str
    floodway: str
    python: str
    processor: str
    cores: int
    memory_gib: float
    load_before: float

    @classmethod
    def here(cls) -> "Machine":
        """Return this machine, now."""
        return cls(
            datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            version("floodway"),
            platform.python_version(),
            processor(),
            os.cpu_count() or 1,
            round(psutil.virtual_memory().total / 2**30, 1),
            round(os.getloadavg()[0], 2),
        )
