"""Wall clocks of processes, set from outside."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from floodway_lab.chaos import clocks
from floodway_lab.chaos.clocks import MACHINE, set_clock

HOUR_NS = 3_600_000_000_000

TELLING = """
import os, sys, time
from time import clock_gettime_ns, CLOCK_REALTIME
def tell():
    right = clock_gettime_ns(CLOCK_REALTIME)
    off = (round((time.time_ns() - right) / 3.6e12), round((time.time() - right / 1e9) / 3600))
    print(os.getpid(), *off, flush=True)
tell()
for line in sys.stdin:
    if line == "fork\\n" and (child := os.fork()):
        os.waitpid(child, 0)
    else:
        tell()
        if line == "fork\\n":
            os._exit(0)
"""


class Told:
    """A process that tells by how many hours its clock is wrong."""

    def __init__(self, folder: Path) -> None:
        site = folder / "site"
        site.mkdir(exist_ok=True)
        shutil.copy(clocks.__file__, site / "sitecustomize.py")
        self.process = subprocess.Popen(
            [sys.executable, "-c", TELLING],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(site), clocks.VARIABLE: str(folder)},
        )
        self.first = self._read()

    def _read(self) -> tuple[int, int, int]:
        assert self.process.stdout is not None
        pid, one, other = map(int, self.process.stdout.readline().split())
        return pid, one, other

    def ask(self, what: str = "tell") -> tuple[int, int, int]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return self._read()

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    process = Told(tmp_path)
    yield process
    process.close()


def test_clock_of_a_process_is_set_and_that_of_nobody_else(told: Told, tmp_path: Path) -> None:
    pid, *off = told.first
    assert off == [0, 0]
    set_clock(tmp_path, str(pid), -HOUR_NS)
    assert told.ask() == (pid, -1, -1)
    set_clock(tmp_path, str(pid), 3 * HOUR_NS)
    assert told.ask() == (pid, 2, 2)
    other = Told(tmp_path)
    other.close()
    assert other.first[1:] == (0, 0)


def test_process_begins_with_the_clock_of_the_machine_also_after_a_fork(
    told: Told, tmp_path: Path
) -> None:
    set_clock(tmp_path, MACHINE, HOUR_NS)
    assert told.ask() == told.first
    child, *off = told.ask("fork")
    assert child != told.first[0]
    assert off == [1, 1]
