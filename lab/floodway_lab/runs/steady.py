"""Runs on a machine that nobody else uses: again if somebody did, and not at all if they go on."""

import time
from collections.abc import Callable

import psutil

from floodway.core.errors import EngineError
from floodway_lab.runs.experiment import Experiment, Run

TRIES = 3
"""A run that others disturbed is done so often."""

SETTLE_S = 30.0
"""So long others have to be done, the last system's processes among them, before a run begins."""

LOOK_S = 0.5

Runner = Callable[[Experiment], Run]


def settle(most_busy: float) -> float:
    """Wait until no more than a share of the cores is busy; return which share is at last."""
    deadline = time.monotonic() + SETTLE_S
    busy = 1.0
    while busy > most_busy and time.monotonic() < deadline:
        busy = psutil.cpu_percent(LOOK_S) / 100
    return busy


def steady(run: Runner, *, wait: Callable[[float], float] = settle) -> Runner:
    """Return a runner that refuses to measure on a machine that others use.

    Parameters
    ----------
    run
        What runs a system once.
    wait
        Waits until no more than a share of the cores is busy, or for long enough; says which is.
    """

    def again(experiment: Experiment) -> Run:
        if experiment.most_foreign >= 1:
            return run(experiment)
        for _ in range(TRIES):
            busy = wait(experiment.most_foreign)
            if busy <= experiment.most_foreign:
                done = run(experiment)
                if done.foreign <= experiment.most_foreign:
                    return done
                busy = done.foreign
        raise EngineError(
            f"the machine is too loaded to measure: others have {busy:.0%} of its cores, more than "
            f"{experiment.most_foreign:.0%}, {TRIES} times in a row",
            remedy="stop what else runs here, or allow more with --most-load and distrust the "
            "figures",
        )

    return again
