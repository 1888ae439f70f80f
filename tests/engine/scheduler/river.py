"""A flow as water: stages with queues, in steps of 10 ms, led by a scheduler.

Nothing of the engine is in it. A stage has a rate in each paradigm, what it hands on comes into
the next one's queue, and a stage whose receivers have no room waits. Every 100 ms the scheduler is
shown what can be measured, and what it decides is done.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from floodway.engine.scheduler.decisions import Decision, SetBatch, SwitchTo
from floodway.engine.scheduler.loads import Link, OutletLoad, StageLoad, Topology
from floodway.engine.scheduler.scheduler import Scheduler
from floodway.engine.scheduler.settings import SchedulerSettings
from floodway.engine.scheduler.story import Story
from floodway.model.tuning import Paradigm, Pin

STEP_MS = 10
REPORT_MS = 100
INTERVAL_MS = 500
SCHEDULE_S = 0.1


@dataclass
class Pool:
    """A stage: what a record costs, how fast the operation paradigm is, how much it may hold."""

    name: str
    cpu_ns: float = 9_000.0
    frame_ns: float = 0.0
    operation_per_s: float = 500_000.0
    out_per_in: float = 1.0
    room: float = inf
    hidden: bool = False
    known: bool = False
    able: bool = True
    pin: Pin = "auto"
    b_out: int = 1
    paradigm: Paradigm = "data"
    queue: float = 0.0
    batch: float = 0.0
    done_ms: int = 0
    closes_ms: int = 0
    results: float = 0.0
    leaving: bool = False
    arrived: float = 0.0
    processed: float = 0.0
    sent: float = 0.0
    busy: float = 0.0
    blocked: float = 0.0
    dry: bool = False

    @property
    def cost_ns(self) -> float:
        return self.cpu_ns + self.frame_ns / self.b_out * self.out_per_in

    @property
    def data_per_s(self) -> float:
        return 1e9 / self.cost_ns

    @property
    def slots(self) -> int:
        """As many as make a first guess of P_O about right, with single records."""
        alone_ns = self.cpu_ns + self.frame_ns * self.out_per_in
        return max(round(self.operation_per_s * alone_ns / 1e9 / SchedulerSettings().usable), 2)


@dataclass
class River:
    """Pools in a chain, the first a source."""

    pools: list[Pool]
    settings: SchedulerSettings = field(default_factory=SchedulerSettings)
    now_ms: int = 0
    decided: list[tuple[int, Decision]] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    longest: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [pool.name for pool in self.pools]
        self.topology = Topology(
            stages=tuple(names),
            links=tuple(Link(a, b, a) for a, b in pairwise(names)),
            sources=frozenset(names[:1]),
        )
        self.by_name = dict(zip(names, self.pools, strict=True))
        self.scheduler = Scheduler(self.topology, self.settings, Story(self.lines.append))

    @property
    def switches(self) -> list[tuple[int, str, Paradigm]]:
        return [(at, d.stage, d.paradigm) for at, d in self.decided if isinstance(d, SwitchTo)]

    @property
    def batches(self) -> list[tuple[int, str, int]]:
        return [(at, d.operator, d.b_out) for at, d in self.decided if isinstance(d, SetBatch)]

    def run(self, seconds: float, arrival: Callable[[float], float]) -> None:
        """Let time pass; `arrival` says how many records a second come at what second."""
        for _ in range(int(seconds * 1000) // STEP_MS):
            coming = arrival(self.now_ms / 1000) * STEP_MS / 1000
            self.now_ms += STEP_MS
            self._arrive(self.pools[0], coming)
            for pool, receiver in zip(self.pools, [*self.pools[1:], None], strict=True):
                self._flow(pool, receiver)
            if self.now_ms % REPORT_MS == 0:
                self._report()

    def _arrive(self, pool: Pool, records: float) -> None:
        pool.queue += records
        pool.arrived += records
        self.longest[pool.name] = max(self.longest.get(pool.name, 0.0), pool.queue + pool.batch)

    def _flow(self, pool: Pool, receiver: Pool | None) -> None:
        room = inf
        if receiver is not None and receiver.paradigm == "data":
            room = max(0.0, receiver.room - receiver.queue)
        if pool.paradigm == "data":
            sent = self._record_by_record(pool, room)
        else:
            sent = self._in_batches(pool, room)
        pool.sent += sent
        if receiver is not None:
            self._arrive(receiver, sent)

    def _record_by_record(self, pool: Pool, room: float) -> float:
        can = pool.data_per_s * STEP_MS / 1000
        taken = min(can, pool.queue, room / pool.out_per_in)
        pool.queue -= taken
        pool.processed += taken
        pool.busy += taken / can
        if pool.queue > 1e-6 and taken < can:
            pool.blocked += 1 - taken / can
        pool.dry = pool.dry or pool.queue < 1e-6
        return taken * pool.out_per_in

    def _in_batches(self, pool: Pool, room: float) -> float:
        if pool.batch and self.now_ms >= pool.done_ms:
            pool.results += pool.batch * pool.out_per_in
            pool.processed += pool.batch
            pool.batch = 0.0
        sent = min(pool.results, room)
        pool.results -= sent
        if pool.results:
            pool.blocked += 1
        elif not pool.batch and pool.leaving:
            pool.paradigm, pool.leaving = "data", False
            self.scheduler.switched(pool.name, self.now_ms, 1000)
        elif not pool.batch and pool.queue and self.now_ms >= pool.closes_ms:
            pool.batch, pool.queue = pool.queue, 0.0
            took_s = SCHEDULE_S + pool.batch / pool.operation_per_s
            pool.done_ms = self.now_ms + int(took_s * 1000)
            pool.closes_ms = self.now_ms + INTERVAL_MS
            pool.known = True
        return sent

    def _report(self) -> None:
        made = self.scheduler.observe([self._load(pool) for pool in self.pools], self.now_ms)
        self.decided += [(self.now_ms, decision) for decision in made]
        for decision in made:
            if isinstance(decision, SetBatch):
                self.by_name[decision.operator].b_out = decision.b_out
            elif decision.paradigm == "operation":
                pool = self.by_name[decision.stage]
                pool.paradigm, pool.closes_ms = "operation", self.now_ms + INTERVAL_MS
                self.scheduler.switched(pool.name, self.now_ms, 1000)
            else:
                self.by_name[decision.stage].leaving = True

    def _load(self, pool: Pool) -> StageLoad:
        steps = REPORT_MS / STEP_MS
        per_s = 1000 / REPORT_MS
        hidden = pool.hidden and pool.paradigm == "data"  # blocks take all there is
        waiting = pool.queue * (not hidden) + pool.batch
        load = StageLoad(
            stage=pool.name,
            paradigm=pool.paradigm,
            pin=pool.pin,
            able=pool.able,
            why_not=None if pool.able else "it has no remote half",
            arrival_per_s=(pool.processed if hidden else pool.arrived) * per_s,
            queue_records=int(waiting),
            saturated=hidden and not pool.dry,
            slots=pool.slots,
            data_per_s=pool.data_per_s if pool.busy and pool.paradigm == "data" else None,
            operation_per_s=pool.operation_per_s if pool.known else None,
            out_per_in=pool.out_per_in,
            interval_s=INTERVAL_MS / 1000,
            schedule_s=SCHEDULE_S,
            cpu_ns=pool.cpu_ns,
            emit_ns=pool.frame_ns / pool.b_out * pool.out_per_in,
            busy=pool.busy / steps,
            blocked=min(pool.blocked / steps, 1 - pool.busy / steps),
            outlets=(
                OutletLoad(pool.name, pool.b_out, pool.sent * 10, pool.sent * 10 / pool.b_out),
            ),
        )
        pool.arrived = pool.processed = pool.sent = pool.busy = pool.blocked = 0.0
        pool.dry = False
        return load


def gaps(switches: Iterable[tuple[int, str, Paradigm]]) -> list[int]:
    """Return the times between the switches of each stage."""
    last: dict[str, int] = {}
    found = []
    for at, stage, _ in switches:
        if stage in last:
            found.append(at - last[stage])
        last[stage] = at
    return found
