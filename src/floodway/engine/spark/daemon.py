"""The process that Spark forks Python workers from, started quickly.

Spark puts its own copy of PySpark, a zip file, first on the path. Python compiles everything in a
zip file anew each time, which takes seconds. Where PySpark is also installed, that one is used; and
what every task needs is imported here, once, before workers are forked. The garbage collector need
not look at that again, which Spark lets it do after every task.
"""

import gc
import importlib
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from typing import Any


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


if __name__ == "__main__":
    sys.path[:] = prefer_installed(sys.path)
    importlib.import_module("floodway.engine.spark.worker")
    importlib.import_module("floodway.engine.opstream.worker")
    importlib.import_module("pyspark.worker")  # starts no thread, so it may be here before a fork
    daemon: Any = importlib.import_module("pyspark.daemon")
    daemon.worker = without_broken_pipes(daemon.worker)
    gc.collect()
    gc.freeze()
    daemon.manager()
