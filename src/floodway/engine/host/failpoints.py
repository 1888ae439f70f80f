"""Fail points: places at which a test may kill the process, to see that nothing is lost or doubled.

A fail point costs one look at the environment unless it is armed. It is armed from outside, so that
processes that Spark starts are reached as well::

    FLOODWAY_FAIL_POINTS = "commit.before_record=/tmp/marker"

The first process that reaches ``commit.before_record`` makes the file and is killed, as by the
kernel when memory runs out; whoever comes later finds the file and goes on. Simulations that have
all tasks in one process set `hook` instead.
"""

import os
import signal
from collections.abc import Callable

from floodway.core.errors import EngineError

VARIABLE = "FLOODWAY_FAIL_POINTS"
"""The environment variable that arms fail points: ``name=marker[,name=marker...]``."""

FAIL_POINTS: dict[str, str] = {
    "batch.before_offer": "a block is written, and the driver does not know",
    "batch.before_merge": "a block is processed on Spark, and its owner has merged nothing of it",
    "batch.before_mark": "results before a mark are merged, and the mark has not been passed on",
    "commit.before_record": "all tasks have persisted an epoch, and its record is not written",
    "commit.after_record": "the record of an epoch is durable, and nobody has been told",
    "compact.before_base": "a task has merged its state files, and the result is not written",
    "compact.after_base": "the merged state is durable, and nobody has been told",
    "job.before_result": "a Spark task has done its piece, and the result has no name yet",
    "prune.before": "a record is durable, and what it makes superfluous is still there",
    "prune.middle": "superfluous records are deleted, and their files are not",
    "rescale.after_record": "state dealt out anew is committed, and no task has begun",
    "rescale.before_record": "state dealt out anew is durable, and no record names it",
    "rescale.before_state": "sinks show all that is committed, and no state is dealt out yet",
    "rescale.middle": "the new state of some tasks is durable, that of others is not",
    "restore.before": "a task is about to load state",
    "restore.middle": "a task has loaded state, and has not taken up its numbers",
    "restore.after": "a task has its state, and has not said so",
    "sink.after_apply": "a sink shows an epoch, and nobody knows",
    "sink.before_apply": "an epoch is committed, and a sink does not show it yet",
    "sink.before_log": "an epoch has ended at a sink, and its rows are in memory only",
    "spill.middle": "frames of an output cache are on the disk and still in memory",
    "task.after_store": "a task's part of an epoch is durable, and it has not said so",
    "task.before_store": "an epoch has ended at a task, and nothing of it is durable",
    "vault.before_rename": "a file is complete under its temporary name",
    "vault.after_rename": "a file has its name, and its folder is not synchronised",
}
"""Every fail point and what is true when it is reached."""

hook: Callable[[str], None] | None = None
"""Called with the name of each fail point that is reached, by simulations."""


def reach(name: str) -> None:
    """Kill this process if the fail point is armed and nobody has died of it yet."""
    if hook is not None:
        hook(name)
    armed = os.environ.get(VARIABLE)
    if armed:
        marker = markers(armed).get(name)
        if marker is not None and _first(marker):
            os.kill(os.getpid(), signal.SIGKILL)


def markers(armed: str) -> dict[str, str]:
    """Return the marker of each armed fail point.

    >>> markers("prune.before=a,prune.middle=b")
    {'prune.before': 'a', 'prune.middle': 'b'}
    """
    found = {}
    for part in armed.split(","):
        name, _, marker = part.partition("=")
        if name not in FAIL_POINTS or not marker:
            raise EngineError(
                f"{VARIABLE} has {part!r}, which is not a fail point and its marker",
                remedy=f"write name=path, with one of: {', '.join(FAIL_POINTS)}",
            )
        found[name] = marker
    return found


def _first(marker: str) -> bool:
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True
