"""Why something is decided, in one plain sentence with the numbers."""

from collections.abc import Sequence

from floodway.engine.scheduler.batching import Enlargement
from floodway.engine.scheduler.loads import StageLoad, Topology
from floodway.engine.scheduler.settings import SchedulerSettings
from floodway.engine.scheduler.switch_point import SwitchPoint
from floodway.engine.scheduler.watch import StageWatch
from floodway.model.tuning import Pin


def queue(watch: StageWatch) -> str:
    """Return what is wrong with a stage's queue."""
    point = watch.point
    if watch.waits is not None:
        return (
            f"{watch.waits} waits for {watch.stage}, which takes {_rate(point.arrival_per_s)} "
            f"of {_rate(point.data_per_s)} it can and holds {_count(point.queue_records)} records"
        )
    if point.unbounded:
        return (
            f"{watch.stage} reads {_rate(point.arrival_per_s)} and there is always more: its "
            "queue is outside, and cannot be seen"
        )
    soon = ""
    if point.l_soon > point.queue_records:
        soon = f", {_count(point.l_soon)} in {_seconds(point.ahead_s)}"
    return (
        f"{watch.stage} holds {_count(point.queue_records)} records{soon} "
        f"(L_up {_count(point.l_up)}) at {_rate(point.arrival_per_s)} of "
        f"{_rate(point.data_per_s)} it can"
    )


def flooded(watch: StageWatch, members: Sequence[str]) -> str:
    """Return why a flooded stage is switched, and those with it."""
    point = watch.point
    others = ", ".join(name for name in members if name != watch.stage)
    data = "ever longer"
    if not point.unbounded:
        data = _seconds(point.l_soon / point.data_per_s + point.transmit_data_s)
    return (
        f"{queue(watch)}; then the data paradigm takes {data}, the operation paradigm "
        f"{_seconds(point.latency_operation_s)} with K {_k(point)}"
        f"{f'; the flood goes on to {others}' if others else ''}"
    )


def reached(start: str, load: StageLoad) -> str:
    """Return why a stage is switched with a flooded one."""
    return f"the flood at {start} reaches {load.stage}, where {_rate(load.arrival_per_s)} arrive"


def combines(start: str, load: StageLoad) -> str:
    """Return why a stage is switched with a flooded one that it sends to."""
    return f"{load.stage} sends to {start}, which floods; in micro-batches it sends much less"


def passed(watch: StageWatch) -> str:
    """Return why a stage goes back."""
    point = watch.point
    return (
        f"{_rate(point.arrival_per_s)} arrive at {watch.stage}, of {_rate(point.data_per_s)} that "
        f"the data paradigm can; beyond the {_count(point.standing)} records of its batches "
        f"{_count(max(0.0, point.queue_records - point.standing))} wait (L_down "
        f"{_count(point.l_down)}), and so it has been for {watch.calm_ms / 1000:g} s"
    )


def worse(watch: StageWatch) -> str:
    """Return why a stage goes back although it is flooded."""
    point = watch.point
    return (
        f"the operation paradigm is slower here: {_rate(point.operation_per_s)}, where the data "
        f"paradigm had {_rate(point.data_per_s)} (K {_k(point)})"
    )


def pinned(stage: str, pin: Pin) -> str:
    """Return why a pinned stage is switched."""
    return f"{stage} is pinned to the {pin} paradigm"


def slower(watch: StageWatch) -> str:
    """Return why a flooded stage stays, if the operation paradigm does not pay."""
    point = watch.point
    does = "would do" if "operation_per_s" in point.guessed else "did"
    return (
        f"{queue(watch)}; it stays, since the operation paradigm {does} "
        f"{_rate(point.operation_per_s)} (K {_k(point)}): larger batches are all there is to do"
    )


def unable(watch: StageWatch, topology: Topology) -> str:
    """Return why a flooded stage stays, if it has to."""
    why = watch.load.why_not or "it cannot be switched"
    if watch.stage in topology.sinks:
        why = "it contains only sinks"
    elif watch.load.pin == "data":
        why = "it is pinned to the data paradigm"
    return f"{queue(watch)}; it stays: {why}"


def raised(step: Enlargement, watch: StageWatch, settings: SchedulerSettings) -> str:
    """Return why a batch size is raised."""
    load = watch.load
    cost = load.fetch_ns if step.cost == "fetching" else load.emit_ns
    return (
        f"{queue(watch)}; {step.cost} takes {_count(cost)} of {_count(load.cost_ns)} ns of a "
        f"record, which larger batches share; they have {settings.moment_ms} ms to show it"
    )


def lowered(step: Enlargement, settings: SchedulerSettings) -> str:
    """Return why a batch size is lowered."""
    return (
        f"{step.stage}, for which it was raised, has been calm for {settings.lower_ms / 1000:g} s"
    )


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _rate(value: float) -> str:
    return f"{value:,.0f}/s"


def _seconds(value: float) -> str:
    """Return a time; one that is only a small number divided by a smaller one says no more.

    >>> _seconds(1.234), _seconds(64740499.5)
    ('1.23 s', 'more than an hour')
    """
    return f"{value:.2f} s" if value < 3600 else "more than an hour"


def _k(point: SwitchPoint) -> str:
    return f"{point.k:.2f}{' (guessed)' if 'operation_per_s' in point.guessed else ''}"
