"""The process of the flow, seen from whoever kills it: start, listen, kill, look what is left."""

import contextlib
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import msgspec
import psutil

from floodway_lab.chaos.words import Word
from floodway_lab.chaos.workload import Workload

VARIABLE = "FLOODWAY_CHAOS"
"""The environment variable by which every process of a flow is known, whoever its parent is."""

PAUSE_S = 0.5
"""Time between two looks at what is left."""

Heard = Callable[["FlowProcess", Word], None]
"""Takes what a flow's process says."""


class FlowProcess:
    """A driver with its Spark and its tasks, in a process of its own.

    Parameters
    ----------
    workload
        What to run.
    log
        The file that gets what the processes write to standard error.
    hear
        Told what the process says, in another thread.
    environment
        What all its processes find in their environment beside what is in ours.
    """

    def __init__(
        self, workload: Workload, log: Path, hear: Heard, environment: Mapping[str, str]
    ) -> None:
        self._mark = uuid.uuid4().hex
        self._hear = hear
        described = Path(workload.folder) / "workload.json"
        described.write_bytes(msgspec.json.encode(workload))
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "floodway_lab.chaos.child", str(described)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is for us; we see to it that nothing is left
                env={**os.environ, **environment, VARIABLE: self._mark},
            )
        self.last: Word | None = None
        assert self._process.stdout is not None
        self._listener = threading.Thread(
            target=self._listen, args=(self._process.stdout,), daemon=True
        )
        self._listener.start()

    def _listen(self, stream: IO[bytes]) -> None:
        decode = msgspec.json.Decoder(Word).decode
        with stream:
            for line in stream:
                try:
                    word = decode(line)
                except msgspec.MsgspecError:
                    continue  # cut off when the process was killed
                self.last = word
                self._hear(self, word)

    @property
    def pid(self) -> int:
        """The number of the driver's process."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended, or None while it runs."""
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        """Wait for its end; return how it ended, or None if it has not."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> float:
        """Kill the driver; return when."""
        at = time.monotonic()
        self._process.kill()
        self._process.wait()
        return at

    def left(self) -> list[psutil.Process]:
        """Return all processes of the flow that are there, the driver among them."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(VARIABLE) == self._mark and _lives(process):
                    found.append(process)
            except psutil.Error:
                continue  # gone meanwhile, or another user's
        return found

    def wait_gone(self, seconds: float) -> list[psutil.Process]:
        """Wait until no process of the flow is there; return those that stay."""
        deadline = time.monotonic() + seconds
        while (left := self.left()) and time.monotonic() < deadline:
            psutil.wait_procs(left, timeout=PAUSE_S)
        return left

    def end(self) -> None:
        """Kill whatever is there of the flow."""
        while left := self.left():
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=PAUSE_S)
        self._process.wait()
        self._listener.join()


def _lives(process: psutil.Process) -> bool:
    """Return whether a process does something; one that nobody has buried yet does not."""
    return process.status() != psutil.STATUS_ZOMBIE
