"""Observing: what tasks report becomes the load of their stages.

Rates are differences between reports a moment apart, by the clock of the task that wrote them. They
have to be fresh, so that a flood is seen while it is young; the board, whose rates are for people,
looks further back.
"""

import os
from collections import deque
from collections.abc import Iterable, Mapping
from statistics import median

from floodway.engine.metrics.report import TaskReport
from floodway.engine.opstream.halves import able, returning
from floodway.engine.scheduler.loads import Load, Outlet
from floodway.model.tuning import Pin
from floodway.plan.stages import Plan, Stage

WINDOW_S = 0.09
"""Rates are those of so long, or of two reports if they lie further apart, as they mostly do."""

LEAST_BUSY = 0.3
"""A task that is less busy than this says little about what it could do."""

SUSTAINED_S = 1.5
"""What is carried for so long at least can be carried on and on."""

SATURATED = 0.9
"""From this share of the time at work or without room on, a source that has more to read is."""


MEASURED = (
    "data_per_s",
    "operation_per_s",
    "schedule_s",
    "transmit_data_s",
    "transmit_operation_s",
    "interval_s",
)
"""What is remembered of a stage from one report to the next."""


class TaskView:
    """The latest reports of one task."""

    def __init__(self) -> None:
        self._reports: deque[TaskReport] = deque()

    def take(self, report: TaskReport) -> None:
        """Take a report; those of an earlier attempt do not count any more."""
        if self._reports and self._reports[-1].attempt != report.attempt:
            self._reports.clear()
        self._reports.append(report)
        while len(self._reports) > 2 and report.time - self._reports[1].time >= WINDOW_S:
            self._reports.popleft()

    @property
    def last(self) -> TaskReport | None:
        """The latest report, once there are two to compare."""
        return self._reports[-1] if len(self._reports) > 1 else None

    @property
    def first(self) -> TaskReport:
        """The report that the latest one is compared with."""
        return self._reports[0]


class Difference:
    """What a stage's tasks have done between two reports, together."""

    def __init__(self, views: Iterable[TaskView]) -> None:
        pairs = [(view.first, view.last) for view in views if view.last is not None]
        self.pairs: list[tuple[TaskReport, TaskReport]] = [(a, b) for a, b in pairs if b]

    def rate(self, field: str) -> float:
        """Return by how much a counter grows in a second."""
        return float(
            sum((getattr(b, field) - getattr(a, field)) / _apart(a, b) for a, b in self.pairs)
        )

    def share(self, field: str) -> float:
        """Return which part of the time went into something."""
        spent = sum(getattr(b, field) - getattr(a, field) for a, b in self.pairs)
        passed = sum(b.time - a.time for a, b in self.pairs)
        return min(max(spent / passed, 0.0), 1.0) if passed > 0 else 0.0

    def grown(self, part: str, field: str) -> float:
        """Return by how much a counter within a part of the reports has grown."""
        return float(
            sum(
                getattr(getattr(b, part), field) - getattr(getattr(a, part), field)
                for a, b in self.pairs
            )
        )

    def sent(self, operator: str) -> tuple[float, float]:
        """Return how many records and frames of an operator are handed on in a second."""
        return (
            sum(_growth(a.sent, b.sent, operator, 0) / _apart(a, b) for a, b in self.pairs),
            sum(_growth(a.sent, b.sent, operator, 1) / _apart(a, b) for a, b in self.pairs),
        )

    def ports(self) -> dict[str, float]:
        """Return how many records leave through each port in a second."""
        found: dict[str, float] = {}
        for a, b in self.pairs:
            for port, records in b.sent_by_port.items():
                rate = (records - a.sent_by_port.get(port, 0)) / _apart(a, b)
                found[port] = found.get(port, 0.0) + max(rate, 0.0)
        return found

    @property
    def processed_per_s(self) -> float:
        """How many records a second were processed."""
        return max(self.rate("records_in") - self.rate("queue_records"), 0.0)

    @property
    def last(self) -> list[TaskReport]:
        """The latest reports."""
        return [b for _, b in self.pairs]


class Observer:
    """Keeps the latest reports of all tasks.

    Attributes
    ----------
    pins
        The paradigm that is wanted for each stage; may be changed while the flow runs.
    slots
        How many processes there are for micro-batches.
    """

    def __init__(self, plan: Plan) -> None:
        self._stages = {stage.name: stage for stage in plan.stages}
        self._views: dict[tuple[str, int], TaskView] = {}
        self._able = {stage.name: able(plan, stage) for stage in plan.stages}
        self._returning = {stage.name: returning(plan, stage) for stage in plan.stages}
        self.slots = os.cpu_count() or 1
        self.pins: dict[str, Pin] = {stage.name: plan.pin(stage) for stage in plan.stages}
        self._remembered: dict[str, dict[str, float]] = {}
        self._flows: dict[str, deque[tuple[float, int]]] = {}

    def able(self, stage: str) -> bool:
        """Return whether a stage has a remote half."""
        return self._able[stage]

    def take(self, report: TaskReport) -> None:
        """Take a report."""
        self._views.setdefault((report.stage, report.index), TaskView()).take(report)

    def loads(self) -> list[Load]:
        """Return the load of every stage that enough is known of."""
        return [load for stage in self._stages.values() if (load := self._load(stage))]

    def _load(self, stage: Stage) -> Load | None:
        views = [self._views.get((stage.name, index)) for index in range(stage.dop)]
        if any(view is None or view.last is None for view in views):
            return None
        seen = Difference(view for view in views if view is not None)
        busy, blocked = seen.share("busy_s"), seen.share("blocked_s")
        saturated = busy + blocked >= SATURATED and any(_behind(r) for r in seen.last)
        operates = all(report.paradigm == "operation" for report in seen.last)
        return Load(
            stage=stage.name,
            paradigm="operation" if operates else "data",
            pin=self.pins[stage.name],
            able=self._able[stage.name],
            why_not=None if self._able[stage.name] else "all its work is with its state",
            tasks=stage.dop,
            slots=self.slots,
            arrival_per_s=max(seen.rate("records_in"), 0.0),
            queue_records=sum(r.queue_records + _outside(r) for r in seen.last),
            saturated=saturated,
            out_per_in=_ratio(sum(seen.ports().values()), seen.processed_per_s),
            returned=self._returned(stage, seen),
            busy=busy,
            blocked=blocked,
            outlets=_outlets(seen),
            handed=seen.ports(),
            **self._costs(stage, seen),
            **self._measured(stage, seen, busy, operates=operates, saturated=saturated),
        )

    def _returned(self, stage: Stage, seen: Difference) -> float:
        """Return how many records the remote half gives to the local one, for each it takes."""
        given = sum(
            counts.records_in
            for report in seen.last
            for counts in report.operators
            if counts.name in self._returning[stage.name]
        )
        return given / max(sum(r.records_in - r.queue_records for r in seen.last), 1)

    def _costs(self, stage: Stage, seen: Difference) -> Mapping[str, float]:
        """Return what a record costs; what was measured last holds on."""
        records = seen.grown("cost", "records")
        known = self._remembered.setdefault(stage.name, {})
        if records > 0:
            for part in ("fetch_ns", "cpu_ns", "emit_ns"):
                known[part] = seen.grown("cost", part) / records
        return {part: known[part] for part in ("fetch_ns", "cpu_ns", "emit_ns") if part in known}

    def _measured(
        self, stage: Stage, seen: Difference, busy: float, *, operates: bool, saturated: bool
    ) -> Mapping[str, float]:
        """Return what was measured of the two paradigms; what was measured last holds on."""
        known = self._remembered.setdefault(stage.name, {})
        if not operates and busy >= LEAST_BUSY:
            known["data_per_s"] = seen.processed_per_s / busy
        batches, records = seen.grown("batches", "batches"), seen.grown("batches", "records")
        if batches > 0:
            ran = seen.grown("batches", "processed_us") / 1e6 / stage.dop
            if ran > 0 and records > 0:
                known["operation_per_s"] = records / ran
            known["schedule_s"] = seen.grown("batches", "scheduled_us") / batches / 1e6
            known["transmit_operation_s"] = seen.grown("batches", "merged_us") / batches / 1e6
            known["interval_s"] = seen.grown("batches", "waited_us") / batches / 1e6
        hops = [report.hop_us for report in seen.last if report.hop_us]
        if hops:
            known["transmit_data_s"] = median(hops) / 1e6
        sustained = self._sustained(stage, seen, most=operates and saturated)
        if sustained is not None:
            known["operation_per_s"] = sustained
        return {name: known[name] for name in MEASURED if name in known}

    def _sustained(self, stage: Stage, seen: Difference, *, most: bool) -> float | None:
        """Return what micro-batches carry while there is more than they can, once that is known.

        It is less than what their jobs could do: the owner has work with them, too, and whatever
        else runs on the machine.
        """
        kept = self._flows.setdefault(stage.name, deque())
        if not most:
            kept.clear()
            return None
        now = max(report.time for report in seen.last)
        kept.append((now, sum(report.batches.records for report in seen.last)))
        while now - kept[0][0] > SUSTAINED_S * 2:
            kept.popleft()
        (first, before), (_, after) = kept[0], kept[-1]
        return (after - before) / (now - first) if now - first >= SUSTAINED_S else None


def _outside(report: TaskReport) -> int:
    source = report.source
    return source.lag_records or 0 if source is not None else 0


def _behind(report: TaskReport) -> bool:
    return report.source is not None and report.source.behind


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _outlets(seen: Difference) -> tuple[Outlet, ...]:
    """Return what is handed on of each operator."""
    names = {name: b_out for report in seen.last for name, b_out in report.b_out.items()}
    return tuple(Outlet(name, b_out, *seen.sent(name)) for name, b_out in names.items())


def _apart(a: TaskReport, b: TaskReport) -> float:
    """Return how many seconds lie between two reports."""
    return max(b.time - a.time, 1e-3)


def _growth(
    before: Mapping[str, tuple[int, int]],
    after: Mapping[str, tuple[int, int]],
    name: str,
    which: int,
) -> int:
    """Return by how much one of two counters has grown."""
    return max(after.get(name, (0, 0))[which] - before.get(name, (0, 0))[which], 0)
