"""A process beside this one that does nothing, and says which it is."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from floodway.engine.host.whereabouts import Whereabouts

SAYS = (
    "from floodway.engine.host.whereabouts import Whereabouts as W; import msgspec, sys; "
    "print(msgspec.json.encode(W.here()).decode(), flush=True); sys.stdin.read()"
)

Beside = tuple[subprocess.Popen[str], Whereabouts]


@contextmanager
def process_beside() -> Iterator[Beside]:
    """Start such a process, and kill it at the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", SAYS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        yield process, msgspec.json.decode(process.stdout.readline(), type=Whereabouts)
        process.kill()
