"""The command line in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.waiting import DEADLINE_S


def floodway(*arguments: str, cache: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; with `cache`, nothing that was measured before is known to it."""
    environment = {} if cache is None else {"XDG_CACHE_HOME": str(cache)}
    return subprocess.run(
        [sys.executable, "-m", "floodway", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
