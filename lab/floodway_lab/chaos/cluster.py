"""A small Spark cluster on loopback: a master and two workers, each with an executor for a flow."""

import contextlib
import os
import secrets
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import pyspark

from floodway.core.errors import EngineError
from floodway.testing.servers import HOST, free_port

WORKERS = 2
START_S = 60.0
PAUSE_S = 0.1
BACKEND = "CoarseGrainedExecutorBackend"
"""What the main class of an executor is called."""


class LoopbackCluster:
    """A master and workers; a context manager, which ends them.

    Parameters
    ----------
    folder
        Where they keep their work, their logs, and the secret without which nobody talks to them.
    cores
        How many tasks each worker takes.
    environment
        What tasks find in their environment beside what is in ours.
    """

    def __init__(self, folder: Path, *, cores: int, environment: Mapping[str, str]) -> None:
        self._folder, self._cores = folder, cores
        self._surrounding = dict(environment)
        self._port = free_port()
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def master(self) -> str:
        """Where the master is."""
        return f"spark://{HOST}:{self._port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a driver needs to be let in."""
        return {"SPARK_CONF_DIR": str(self._folder / "conf")}

    def __enter__(self) -> Self:
        self._configure()
        try:
            self._start("master", "master.Master", "--port", str(self._port))
            self._await("master", "I have been elected leader")
            for number in range(WORKERS):
                name = f"worker-{number}"
                work = str(self._folder / name)
                options = ("--cores", str(self._cores), "--memory", "1g", "--work-dir", work)
                self._start(name, "worker.Worker", *options, self.master)
            for number in range(WORKERS):
                self._await(f"worker-{number}", "Successfully registered with master")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _configure(self) -> None:
        conf = self._folder / "conf"
        conf.mkdir(parents=True, mode=0o700)
        settings = {
            "spark.authenticate": "true",
            "spark.authenticate.secret": secrets.token_hex(32),
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.memory": "512m",
        }
        file = conf / "spark-defaults.conf"
        file.touch(mode=0o600)
        file.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))

    def _start(self, name: str, main: str, *options: str) -> None:
        script = Path(pyspark.__file__).parent / "bin" / "spark-class"
        command = [str(script), f"org.apache.spark.deploy.{main}", "--host", HOST]
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [*command, "--webui-port", "0", *options],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env={**os.environ, **self._surrounding, **self.environment},
                )
            )

    def _await(self, name: str, words: str) -> None:
        file, deadline = self._folder / f"{name}.log", time.monotonic() + START_S
        while words not in (text := file.read_text(errors="replace")):
            if self._processes[-1].poll() is not None or time.monotonic() > deadline:
                raise EngineError(
                    f"Spark's {name} did not start: {text[-500:]}",
                    remedy=f"see {file}",
                )
            time.sleep(PAUSE_S)

    def executors(self) -> list[psutil.Process]:
        """Return the executors that are there."""
        found = []
        for process in self._processes[1:]:
            with contextlib.suppress(psutil.NoSuchProcess):
                children = psutil.Process(process.pid).children(recursive=True)
                found += [child for child in children if _is_executor(child)]
        return found

    def close(self) -> None:
        """End everything."""
        executors = self.executors()
        for process in self._processes:
            process.kill()
            process.wait()
        for executor in executors:
            with contextlib.suppress(psutil.NoSuchProcess):
                executor.kill()
        psutil.wait_procs(executors, timeout=5)
        self._processes.clear()


def _is_executor(process: psutil.Process) -> bool:
    try:
        return any(BACKEND in word for word in process.cmdline())
    except psutil.NoSuchProcess:  # gone meanwhile, or not buried yet: the script that began it
        return False
