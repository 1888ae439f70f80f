"""What a task reports: counters it has anyway, and what was sampled since the last report."""

import os
import socket

import psutil

from floodway.connectors.base import Reader
from floodway.engine.control.moments import RunningMoments
from floodway.engine.control.report import (
    MAX_SAMPLES,
    BatchCounts,
    Cost,
    SourceProgress,
    TaskReport,
    TaskState,
    encode_report,
    port_name,
)
from floodway.engine.datastream.task import Task
from floodway.engine.state.sizes import Size
from floodway.model.tuning import Paradigm

REPORT_US = 50_000


class Reporter:
    """Collects what the loop tells it and makes reports.

    `again` is how many frames the process had sent again before this attempt.
    """

    def __init__(self, task: Task, now: int, *, again: int = 0) -> None:
        self._task, self._again = task, again
        self._started = now
        self.next_us = now
        self._idle_us = self._blocked_us = self._sleeps = 0
        self._latencies: list[int] = []
        self._arrivals, self._service = RunningMoments(), RunningMoments()
        self._host = socket.gethostname()
        self._process = psutil.Process()
        self._delivered = 0

    def slept(self, microseconds: int, state: str) -> None:
        """Note a time without work: for want of input, or because a receiver has enough."""
        self._sleeps += 1
        if state == "running":
            self._idle_us += microseconds
        else:
            self._blocked_us += microseconds

    def delivered(self, born: int, now: int, count: int) -> None:
        """Note that a sink has taken records, the oldest of which came in at `born`."""
        self._delivered += count
        if len(self._latencies) < MAX_SAMPLES:
            self._latencies.append(max(now - born, 0))

    def report(
        self,
        now: int,
        state: TaskState,
        reason: str | None,
        readers: dict[str, tuple[Reader, bool]],
        *,
        bad_frames: int,
        again: int = 0,
        behind: bool = False,
        paradigm: Paradigm = "data",
        collected: int = 0,
        batches: BatchCounts | None = None,
        size: Size | None = None,
    ) -> bytes:
        """Return the report of this moment, and begin a new one.

        Besides what the task and its loop know of themselves: how many records are `collected` for
        micro-batches and not merged yet, what the `batches` so far have taken, and the `size` of
        its state.
        """
        task, sampled = self._task, self._task.sampled
        self.next_us = now + REPORT_US
        uptime = now - self._started
        waits, services = sampled.waits_us[:MAX_SAMPLES], sampled.services_us[:MAX_SAMPLES]
        sampled.waits_us, sampled.services_us = [], []
        for value in services:
            self._service.add(value)
        for value in sampled.arrivals_us:
            self._arrivals.add(value)
        sampled.arrivals_us = []
        latencies, self._latencies = self._latencies, []
        outlets = {p.operator: o for n in task.program.nodes for p in n.ports for o in p.outlets}
        sent, by_port = _sent(task)
        report = TaskReport(
            stage=task.stage.name,
            index=task.index,
            attempt=task.attempt,
            place=task.stage.host,
            pid=os.getpid(),
            host=self._host,
            time=now / 1e6,
            uptime_s=uptime / 1e6,
            state=state,
            reason=reason or (f"{bad_frames} frames could not be read" if bad_frames else None),
            operators=task.program.counts(),
            records_in=task.records_in + task.dropped + task.inbox.records,
            bytes_in=task.bytes_in + task.inbox.bytes,
            frames_in=task.frames_in,
            records_out=sum(o.records_out for o in task.outlets) + self._delivered,
            bytes_out=sum(o.bytes_out for o in task.outlets),
            frames_out=sum(o.frames_out for o in task.outlets),
            queue_records=task.inbox.records + collected,
            queue_bytes=task.inbox.bytes,
            busy_s=max(uptime - self._idle_us - self._blocked_us, 0) / 1e6,
            idle_s=self._idle_us / 1e6,
            blocked_s=self._blocked_us / 1e6,
            cost=Cost(sampled.records, sampled.fetch_ns, sampled.cpu_ns, sampled.emit_ns),
            arrivals=self._arrivals.report(),
            service=self._service.report(),
            queue_wait_us=waits,
            service_us=services,
            latency_us=latencies,
            source=self._progress(readers, behind=behind),
            stream_time=task.stream_time,
            b_out={name: outlet.b_out for name, outlet in outlets.items()},
            linger_ms={name: outlet.linger_us / 1000 for name, outlet in outlets.items()},
            rss_bytes=self._process.memory_info().rss,
            paradigm=paradigm,
            batches=batches or BatchCounts(),
            sleeps=self._sleeps,
            sent=sent,
            sent_by_port=by_port,
            hop_us=sampled.hop_us,
            frames_again=again - self._again,
            state_keys=None if size is None else size.keys,
            state_bytes=None if size is None else size.bytes,
            state_aside=None if size is None else size.aside,
            dropped=task.dropped,
        )
        return encode_report(report)

    def _progress(
        self, readers: dict[str, tuple[Reader, bool]], *, behind: bool
    ) -> SourceProgress | None:
        if not readers:
            return None
        lags = [reader.lag() for reader, ended in readers.values() if not ended]
        records = [lag.records for lag in lags if lag.records is not None]
        seconds = [lag.seconds for lag in lags if lag.seconds is not None]
        times = [t for name in readers if (t := self._task.latest(name)) is not None]
        return SourceProgress(
            lag_records=sum(records) if records else None,
            lag_seconds=max(seconds) if seconds else None,
            event_time=min(times) if times else None,
            ended=all(ended for _, ended in readers.values()),
            behind=behind,
        )


def _sent(task: Task) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    """Return what was handed to channels: by operator, and by port."""
    sent: dict[str, tuple[int, int]] = {}
    by_port: dict[str, int] = {}
    for port in (port for node in task.program.nodes for port in node.ports):
        for outlet in port.outlets:
            # A shared outlet counts a record once, and sends it to several readers.
            records = outlet.records_out * len({lane.exchange for lane in outlet.lanes})
            before = sent.get(port.operator, (0, 0))
            sent[port.operator] = (before[0] + records, before[1] + outlet.frames_out)
            name = port_name(port.operator, port.name)
            by_port[name] = by_port.get(name, 0) + records
    return sent, by_port
