"""The process that Spark forks Python workers from, started quickly.

Spark puts its own copy of PySpark, a zip file, first on the path. Python compiles everything in a
zip file anew each time, which takes seconds. Where PySpark is also installed, that one is used; and
what every task needs is imported here, once, before workers are forked. The garbage collector need
not look at that again, which Spark lets it do after every task.
"""

import gc
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from floodway.engine.host.parent import become_parent
from floodway.engine.host.scratch import make_scratch, remove_scratch


def prefer_installed(path: list[str]) -> list[str]:
    """Return the search path without PySpark's zip files, if PySpark is found without them."""
    others = [entry for entry in path if not entry.endswith(".zip")]
    names = ("pyspark", "py4j")
    found = all(PathFinder.find_spec(name, others) is not None for name in names)
    return others if found else path


def without_broken_pipes(worker: Callable[..., int]) -> Callable[..., int]:
    """Return a worker that goes quietly when Spark, which has stopped, does not listen any more.

    It must not return 0: that asks for the next task, and there would be a broken pipe for ever.
    """

    def run(*arguments: Any) -> int:
        try:
            return worker(*arguments)
        except (BrokenPipeError, ConnectionResetError):
            return 1

    return run


SOCKETS = "PYTHON_WORKER_FACTORY_SOCK_DIR"


@contextmanager
def private_sockets() -> Iterator[None]:
    """Let the daemon's socket be in a folder that only this user may enter."""
    given = Path(os.environ.get(SOCKETS, ""))
    if SOCKETS not in os.environ or (given.is_dir() and not given.stat().st_mode & 0o077):
        yield
        return
    scratch = make_scratch()
    os.environ[SOCKETS] = str(scratch)
    try:
        yield
    finally:
        remove_scratch(scratch)


if __name__ == "__main__":
    sys.path[:] = prefer_installed(sys.path)
    importlib.import_module("floodway.engine.spark.worker")
    importlib.import_module("floodway.engine.spark.batch_worker")
    importlib.import_module("pyspark.worker")  # starts no thread, so it may be here before a fork
    daemon: Any = importlib.import_module("pyspark.daemon")
    daemon.worker = without_broken_pipes(daemon.worker)
    become_parent()
    gc.collect()
    gc.freeze()
    with private_sockets():
        daemon.manager()
