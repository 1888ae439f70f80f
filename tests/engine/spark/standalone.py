"""A small standalone cluster on the loopback interface."""

import os
import re
import subprocess
from pathlib import Path
from typing import Self

import pyspark

from tests.waiting import wait_for


class Standalone:
    """A master and a worker with some cores, which read the settings of a folder."""

    def __init__(self, folder: Path, settings: str, cores: int = 8) -> None:
        self.folder = folder
        self.conf = folder / "conf"
        self.conf.mkdir(mode=0o700)
        (self.conf / "spark-defaults.conf").write_text(settings)
        self._cores = cores
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = ""

    def __enter__(self) -> Self:
        try:
            local = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
            self._start("master.Master", *local)
            self.master = self._says("master", r"Starting Spark master at (spark://\S+)")
            room = ("--cores", str(self._cores), "--memory", "2g")
            self._start("worker.Worker", *local, *room, "-d", str(self.folder), self.master)
            self._says("worker", r"Successfully registered with master (\S+)")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()

    def _start(self, name: str, *arguments: str) -> None:
        home = os.path.dirname(pyspark.__file__)
        log = self.folder / f"{name.partition('.')[0]}.log"
        with log.open("wb") as file:
            self._processes.append(
                subprocess.Popen(
                    [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{name}", *arguments],
                    env={
                        **os.environ,
                        "SPARK_HOME": home,
                        "SPARK_CONF_DIR": str(self.conf),
                        "SPARK_DAEMON_MEMORY": "256m",
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                )
            )

    def _says(self, name: str, pattern: str) -> str:
        """Wait until a process has said something, and return what it said."""
        log = self.folder / f"{name}.log"
        wait_for(lambda: re.search(pattern, log.read_text()), f"the {name}")
        found = re.search(pattern, log.read_text())
        assert found is not None
        return found[1]
