"""A task as a process, or as a thread of the driver: mailbox, watchdog, folders and runner."""

import gc
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from floodway.engine.checkpoint.nonce import sees_nonce
from floodway.engine.checkpoint.vault import FolderVault
from floodway.engine.datastream.settings import Settings
from floodway.engine.host.scratch import make_scratch, remove_scratch
from floodway.engine.transport.sockets import Mailbox, Network
from floodway.engine.worker.runner import DRIVER, Runner
from floodway.engine.worker.surroundings import RealSurroundings
from floodway.engine.worker.watchdog import Watchdog
from floodway.plan.stages import Plan

LAST_WORDS_MS = 5_000
"""How long a task that has ended waits for the driver to hear so."""


def run_task(
    plan: Plan,
    stage: str,
    index: int,
    network: Network,
    driver: str,
    settings: Settings,
    *,
    launch: int = 0,
) -> None:
    """Run one task to its end, in this thread."""
    own = plan.stage(stage)
    in_spark = own.host == "task"
    name = f"{plan.stages.index(own)}-{index}-{launch}-{os.getpid()}"
    with (
        _rarely_collecting(own_process=in_spark),
        _scratch(network, name) as scratch,
        Mailbox(network, name) as mailbox,
    ):
        mailbox.connect(DRIVER, driver)
        vault = FolderVault(settings.vault, durable=settings.lasting) if settings.vault else None
        sees = vault is None or sees_nonce(vault, settings.nonce)
        around = RealSurroundings(mailbox, vault, scratch, in_spark=in_spark, sees=sees)
        runner = Runner(plan, stage, index, around, settings, launch=launch)
        with Watchdog(network, driver, runner, settings.stuck_s):
            runner.run(mailbox.wait)
        mailbox.settle(DRIVER, LAST_WORDS_MS)


@contextmanager
def _scratch(network: Network, name: str) -> Iterator[Path]:
    """Give a folder for what need not outlive the task; on the driver's host, within the driver's.

    So what a task that is killed leaves behind goes with the flow.
    """
    if not network.folder:
        made = make_scratch()
        try:
            yield made
        finally:
            remove_scratch(made)
        return
    folder = Path(network.folder) / f"task-{name}"
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _rarely_collecting(*, own_process: bool) -> Iterator[None]:
    """Look for garbage cycles less often: records are many, young and free of cycles."""
    thresholds = gc.get_threshold()
    if own_process:
        gc.freeze()  # what was imported stays, and need not be looked at
        gc.set_threshold(50_000, 50, 50)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
