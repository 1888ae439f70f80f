"""What has happened, in a few lines, for the end of a run."""

from floodway.engine.metrics.status import Status


def summarize(status: Status, state: str) -> str:
    """Return what came in and out, what got lost, and a line for each reason to worry.

    Parameters
    ----------
    status
        The flow at its end.
    state
        How it has ended: the word of its driver, which knows better than its tasks.
    """
    totals = status.totals
    tasks = [task for stage in status.stages for task in stage.tasks]
    # A task that was replaced has been there for less long than the flow.
    heard = [status.time - task.silent_s for task in tasks if task.silent_s is not None]
    seconds = 0.0 if status.started is None else max(heard, default=status.time) - status.started
    counts = {
        "records in": totals.records_in,
        "out": totals.records_out,
        "late": totals.late or None,
        "skipped": totals.skipped or None,
        "to dead letters": totals.dead_letters or None,
        "duplicates": totals.duplicates or None,
        "dropped": totals.dropped or None,
    }
    told = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count is not None)
    worry = "" if status.health.state == "healthy" else f"; {status.health.state}:"
    lines = [f"  {reason.kind}: {reason.problem}" for reason in status.health.reasons]
    return "\n".join([f"{status.flow} {state}: {told} in {seconds:.1f} s{worry}", *lines])
