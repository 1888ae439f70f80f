"""A driver in a process of its own, with a Spark of its own, so that it can be killed.

``python -m tests.engine.spark.child FILE`` runs what the file orders.
"""

import logging
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import msgspec
import psutil

from floodway.core.errors import EngineError
from floodway.engine.datastream.settings import Settings
from floodway.engine.host.failpoints import VARIABLE
from tests.engine.spark.flows import lives
from tests.engine.spark.recovering import counting, from_files
from tests.waiting import wait_for

ROOT = Path(__file__).parents[3]


class Order(msgspec.Struct, kw_only=True):
    """What to run: the counting flow in a folder, or with `files` the one that counts files.

    `armed` are fail points for the driver alone, once it has committed something; its tasks do not
    know of them. A flow that fails is started again in the same process until it has been started
    `tries` times.
    """

    folder: str
    dop: int = 2
    epoch: str = "200ms"
    master: str | None = None
    conf: dict[str, str] = {}
    settings: Settings = Settings()
    armed: str = ""
    options: dict[str, Any] = {}
    files: bool = False
    tries: int = 1


class Child:
    """The process, seen from outside."""

    def __init__(self, order: Order, **environment: str) -> None:
        folder = Path(order.folder)
        (folder / "order.json").write_bytes(msgspec.json.encode(order))
        self._log = folder / "child.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.engine.spark.child", str(folder / "order.json")],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
            )
        self._driver = psutil.Process(self.process.pid)
        self._family: set[psutil.Process] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        for process in self.family():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()

    @property
    def log(self) -> str:
        """What it has said."""
        return self._log.read_text()

    def until(self, condition: Any, what: str) -> None:
        """Wait for a condition; fail if the process ends before."""
        wait_for(lambda: condition() or self.process.poll() is not None, what)
        assert condition(), f"the child ended before {what}:\n{self.log}"

    def family(self) -> set[psutil.Process]:
        """Return all processes that were ever seen below it, and are there."""
        with suppress(psutil.NoSuchProcess):
            self._family |= {*self._driver.children(recursive=True)}
        return {process for process in self._family if lives(process)}

    def javas(self) -> list[psutil.Process]:
        """Return its Spark and the executors of that, in the order of their start."""
        found = [process for process in self.family() if process.name() == "java"]
        return sorted(found, key=psutil.Process.create_time)

    def wait(self) -> int:
        """Wait for the end, and until nothing is left; return the exit code."""
        self.until_over()
        wait_for(lambda: not self.family(), "the end of all processes")
        return self.process.wait()

    def until_over(self) -> None:
        """Wait for the end of the driver."""
        wait_for(lambda: [self.family(), self.process.poll()][1] is not None, "it")


def main(file: str) -> None:
    """Run what a file orders."""
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.WARNING)
    order = msgspec.json.decode(Path(file).read_bytes(), type=Order)
    for left in reversed(range(order.tries)):
        try:
            run(order)
            break
        except EngineError:
            logging.exception("it failed")
            if not left:
                sys.exit(1)


def run(order: Order) -> None:
    """Run the flow once."""
    folder = Path(order.folder)
    flow = from_files(folder) if order.files else counting(folder, **order.options)
    job = flow.start(
        dop=order.dop,
        epoch=order.epoch,
        checkpoint=folder / "checkpoint",
        master=order.master,
        conf=order.conf,
        settings=order.settings,
    )
    if order.armed:
        began = job.committed
        wait_for(lambda: job.committed > began or job.wait(0), "a commit")
        os.environ[VARIABLE] = order.armed  # too late for Spark to hand it on to the tasks
    job.wait()


if __name__ == "__main__":
    main(sys.argv[1])
