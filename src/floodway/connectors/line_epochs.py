"""Lines of whole epochs in a file, each epoch at its own place."""

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from floodway.connectors.base import EpochWriter, Row, Unavailable
from floodway.connectors.parts import FULL
from floodway.core.errors import ConnectorError
from floodway.core.folders import sync_folder


class LineEpochs(EpochWriter):
    """Writes the lines of an epoch where the epoch before ends.

    The place of an epoch is known when it ends, long before it is written. So it does not matter
    how often it is written, nor by whom: the same bytes go to the same place. A token has the end
    of the file after its epoch.

    Parameters
    ----------
    file
        The file, which is there.
    encode
        The function from rows to lines.
    run
        The name of the run to which the file belongs; part of the token.
    end
        Where to go on; what is behind is cut off. None means behind what is there. The file may be
        shorter for now, if epochs that were committed are not written yet.
    """

    def __init__(
        self,
        file: str,
        encode: Callable[[Sequence[Row]], bytes],
        *,
        run: str,
        end: int | None,
    ) -> None:
        self._name = file
        self._encode = encode
        self._run = run
        self._lock = threading.Lock()  # a closed descriptor may be that of another file by now
        self._descriptor: int | None = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        size = os.fstat(self._descriptor).st_size
        self._end = size if end is None else end
        if size > self._end:
            os.ftruncate(self._descriptor, self._end)
        sync_folder(os.path.dirname(file) or ".")

    def encode(self, rows: Sequence[Row]) -> bytes:
        """Return rows as lines."""
        lines = self._encode(rows)
        self._end += len(lines)
        return lines

    def prepare(self, epoch: int) -> Any:
        """Return the end of the file after the epoch."""
        return {"run": self._run, "end": self._end}

    def apply(self, epoch: int, blocks: Sequence[bytes], token: Any) -> None:
        """Write the lines to their place, and see that they are on the disk."""
        lines = b"".join(blocks)
        if not lines:
            return
        with self._lock:
            if self._descriptor is None:
                raise Unavailable(f"{self._name} is closed")
            start = token["end"] - len(lines)
            self._check(self._descriptor, start)
            try:
                _write_at(self._descriptor, lines, start)
                os.fdatasync(self._descriptor)
            except OSError as error:
                raise self._failed(error) from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _check(self, descriptor: int, start: int) -> None:
        """Refuse to write what nobody will find, or behind a hole."""
        there = os.fstat(descriptor)
        if there.st_nlink and there.st_size >= start:
            return
        problem = f"has only {there.st_size:,} of {start:,} bytes that the flow wrote to it"
        raise ConnectorError(
            f"{self._name} {problem if there.st_nlink else 'was removed while it was written'}",
            remedy="leave files alone that a flow writes to; start it anew with another checkpoint "
            "folder",
        )

    def _failed(self, error: OSError) -> Exception:
        if error.errno in FULL:
            return Unavailable(f"{self._name} cannot grow: {error.strerror}")
        return ConnectorError(
            f"{self._name} cannot be written: {error}", remedy="check the disk it is on"
        )


def _write_at(descriptor: int, data: bytes, offset: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written
