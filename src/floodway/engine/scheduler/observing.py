"""Observing: what tasks report becomes the load of their stages.

Rates are differences between reports a moment apart. They have to be fresh, so that a flood is seen
while it is young; the board, whose rates are for people, looks further back in the same windows.
"""

import os
from collections import deque
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

import msgspec

from floodway.engine.control.report import TaskReport
from floodway.engine.metrics.status import InParadigms
from floodway.engine.metrics.window import ReportSpan, ReportWindows
from floodway.engine.metrics.work import BatchStatus, Counters, Rates, RecordCost, Shares
from floodway.engine.opstream.halves import able, returning
from floodway.engine.scheduler.loads import OutletLoad, StageLoad
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


class Carried(NamedTuple):
    """How many records micro-batches had carried at a time, in which attempts of which tasks."""

    time: float
    records: int
    attempts: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, reports: Sequence[TaskReport]) -> "Carried":
        """Return what some tasks say."""
        return cls(
            max(report.time for report in reports),
            sum(report.batches.records for report in reports),
            tuple((report.index, report.attempt) for report in reports),
        )


class Seen:
    """What a stage's tasks have done together, each between two of its reports."""

    def __init__(self, spans: Sequence[ReportSpan]) -> None:
        self._spans = spans
        self.last = [span.last for span in spans]
        done = [span.done for span in spans]
        self.done = sum(done, Counters())
        self.rates = sum(map(Rates.of, done, [span.seconds for span in spans]), Rates())
        shares = Shares.of(self.done)
        self.busy = _part(shares.busy) if shares is not None else 0.0
        self.blocked = _part(shares.blocked) if shares is not None else 0.0

    @property
    def handed(self) -> dict[str, float]:
        """How many records leave through each port in a second."""
        found: dict[str, float] = {}
        for span in self._spans:
            for port, rate in span.ports.items():
                found[port] = found.get(port, 0.0) + rate
        return found

    @property
    def outlets(self) -> tuple[OutletLoad, ...]:
        """What is handed on of each operator."""
        names = {name: b_out for report in self.last for name, b_out in report.b_out.items()}
        return tuple(OutletLoad(name, b_out, *self._sent(name)) for name, b_out in names.items())

    def _sent(self, operator: str) -> tuple[float, float]:
        sent = [span.sent(operator) for span in self._spans]
        return sum(records for records, _ in sent), sum(frames for _, frames in sent)


class Observer:
    """Sees the loads of a flow's stages.

    Parameters
    ----------
    windows
        The latest reports of all tasks.
    paradigms
        Who knows in which paradigm each stage works.

    Attributes
    ----------
    pins
        The paradigm that is wanted for each stage; may be changed while the flow runs.
    slots
        How many processes there are for micro-batches.
    """

    def __init__(self, plan: Plan, windows: ReportWindows, paradigms: InParadigms) -> None:
        self._stages = {stage.name: stage for stage in plan.stages}
        self._windows, self._paradigms = windows, paradigms
        self._able = {stage.name: able(plan, stage) for stage in plan.stages}
        self._returning = {stage.name: returning(plan, stage) for stage in plan.stages}
        self.slots = os.cpu_count() or 1
        self.pins: dict[str, Pin] = {stage.name: plan.pin(stage) for stage in plan.stages}
        self._remembered: dict[str, dict[str, float]] = {}
        self._flows: dict[str, deque[Carried]] = {}

    def able(self, stage: str) -> bool:
        """Return whether a stage has a remote half."""
        return self._able[stage]

    def loads(self) -> list[StageLoad]:
        """Return the load of every stage that enough is known of."""
        return [load for stage in self._stages.values() if (load := self._load(stage))]

    def _seen(self, stage: Stage) -> Seen | None:
        """Return what the tasks do that have not ended; None if something is not known of one."""
        windows = (self._windows.of(stage.name, index) for index in range(stage.dop))
        there = (window for window in windows if not (window and window.latest.state == "ended"))
        spans = [window.span(WINDOW_S) for window in there]
        known = [span for span in spans if span is not None]
        return Seen(known) if known and len(known) == len(spans) else None

    def _load(self, stage: Stage) -> StageLoad | None:
        seen = self._seen(stage)
        if seen is None:
            return None
        saturated = seen.busy + seen.blocked >= SATURATED and any(_behind(r) for r in seen.last)
        handed = seen.handed
        return StageLoad(
            stage=stage.name,
            paradigm="operation" if self._operates(stage) else "data",
            pin=self.pins[stage.name],
            able=self._able[stage.name],
            why_not=None if self._able[stage.name] else "all its work is with its state",
            tasks=len(seen.last),
            slots=self.slots,
            arrival_per_s=max(seen.rates.arrival, 0.0),
            queue_records=sum(r.queue_records + _outside(r) for r in seen.last),
            saturated=saturated,
            out_per_in=_ratio(sum(handed.values()), seen.rates.processing),
            returned=self._returned(stage, seen),
            busy=seen.busy,
            blocked=seen.blocked,
            outlets=seen.outlets,
            handed=handed,
            **self._costs(stage, seen),
            **self._measured(stage, seen, saturated=saturated),
        )

    def _operates(self, stage: Stage) -> bool:
        return self._paradigms.of_stage(stage.name) == "operation"

    def _returned(self, stage: Stage, seen: Seen) -> float:
        """Return how many records the remote half gives to the local one, for each it takes."""
        given = sum(
            counts.records_in
            for report in seen.last
            for counts in report.operators
            if counts.name in self._returning[stage.name]
        )
        return given / max(sum(r.records_in - r.queue_records for r in seen.last), 1)

    def _costs(self, stage: Stage, seen: Seen) -> Mapping[str, float]:
        """Return what a record costs; what was measured last holds on."""
        known = self._remembered.setdefault(stage.name, {})
        cost = RecordCost.of(seen.done)
        if cost is not None:
            known |= msgspec.structs.asdict(cost)
        return {part: known[part] for part in RecordCost.__struct_fields__ if part in known}

    def _measured(self, stage: Stage, seen: Seen, *, saturated: bool) -> Mapping[str, float]:
        """Return what was measured of the two paradigms; what was measured last holds on."""
        known = self._remembered.setdefault(stage.name, {})
        # What they were in when this was measured: by now they may be in the other one.
        operated = all(report.paradigm == "operation" for report in seen.last)
        if not operated and seen.busy >= LEAST_BUSY:
            known["data_per_s"] = max(seen.rates.processing, 0.0) / seen.busy
        batches = BatchStatus.of(seen.done.batches, 0.0)
        if batches is not None:
            ran = seen.done.batches.processed_us / 1e6 / len(seen.last)
            if ran > 0 and seen.done.batches.records > 0:
                known["operation_per_s"] = seen.done.batches.records / ran
            known["schedule_s"] = batches.scheduled_s
            known["transmit_operation_s"] = batches.merged_s
            known["interval_s"] = batches.waited_s
        hops = [report.hop_us for report in seen.last if report.hop_us]
        if hops:
            known["transmit_data_s"] = median(hops) / 1e6
        sustained = self._sustained(stage, seen, most=operated and saturated)
        if sustained is not None:
            known["operation_per_s"] = sustained
        return {name: known[name] for name in MEASURED if name in known}

    def _sustained(self, stage: Stage, seen: Seen, *, most: bool) -> float | None:
        """Return what micro-batches carry while there is more than they can, once that is known.

        It is less than what their jobs could do: the owner has work with them, too, and whatever
        else runs on the machine.
        """
        kept = self._flows.setdefault(stage.name, deque())
        if not most:
            kept.clear()
            return None
        flow = Carried.of(seen.last)
        if kept and kept[-1].attempts != flow.attempts:
            kept.clear()  # who was replaced begins to count anew
        kept.append(flow)
        while flow.time - kept[0].time > SUSTAINED_S * 2:
            kept.popleft()
        seconds = flow.time - kept[0].time
        return (flow.records - kept[0].records) / seconds if seconds >= SUSTAINED_S else None


def _outside(report: TaskReport) -> int:
    source = report.source
    return source.lag_records or 0 if source is not None else 0


def _behind(report: TaskReport) -> bool:
    return report.source is not None and report.source.behind


def _part(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
