"""Temporary folders: where sockets and Spark's files are while a flow runs."""

import logging
import shutil
import tempfile
import time
from pathlib import Path

from floodway.core.errors import EngineError

log = logging.getLogger(__name__)

PATIENCE_S = 5.0


def make_scratch() -> Path:
    """Return a new folder that only this user may enter."""
    try:
        return Path(tempfile.mkdtemp(prefix="floodway-"))
    except OSError as error:
        raise EngineError(
            f"no temporary folder can be made: {error}",
            remedy="set TMPDIR to a folder that exists and that you may write to",
        ) from None


def remove_scratch(folder: Path) -> None:
    """Remove a folder in which a Spark that has just been stopped may still be at work."""
    deadline = time.monotonic() + PATIENCE_S
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
        if time.monotonic() > deadline:
            log.warning("the temporary folder %s could not be removed", folder)
            return
        time.sleep(0.01)
