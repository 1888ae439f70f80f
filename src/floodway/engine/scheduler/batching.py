"""Larger batches first: the cheapest remedy, without a pause.

A record costs ``c_fetch / b_in + c_cpu + s c_emit / b_out`` (thesis, equation 3.8). Where fetching
or emitting is a large part of that, a larger batch size makes the stage faster: that of its
senders for the one, its own for the other. How large it has to be says equation 4.27, solved for
the batch size with which a record's cost is what the arrival rate leaves time for.

That equation takes all of the emitting for a cost of frames. Some of it is a cost of records, and
so one step may not be enough. What is measured after it counts: further steps follow as long as
there is something to gain and time left, and a stage that still floods then is switched.

When it has been calm for a while the batch sizes go back step by step to what was configured: to
what they were when they were first raised, or to what somebody else has set since.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from floodway.engine.scheduler.loads import OutletLoad, StageLoad, Topology
from floodway.engine.scheduler.settings import SchedulerSettings
from floodway.engine.scheduler.switch_point import SwitchPoint

FULL = 0.5
"""A frame is full when it has half of b_out on average: what comes last often is a short one."""

OTHERS_MS = 1_000
"""A batch size that is not the one that was set so long ago has been set by somebody else."""


class Enlargement(NamedTuple):
    """A batch size that changes, for which stage, and what the record's time was spent on."""

    operator: str
    before: int
    after: int
    stage: str
    cost: str


class _Raised:
    """A batch size that is larger than configured."""

    def __init__(self, configured: int) -> None:
        self.configured = configured
        self.b_out = configured
        self.set_ms = 0
        self.carried: dict[str, float] = {}  # P_D of the stages it was raised for, before that


class BatchSizes:
    """Raises batch sizes and lowers them again."""

    def __init__(self, topology: Topology, settings: SchedulerSettings) -> None:
        self._topology = topology
        self._settings = settings
        self._raised: dict[str, _Raised] = {}
        self._began: dict[str, int] = {}
        self._stepped: dict[str, int] = {}
        self._pressed: dict[str, int] = {}

    def take(self, loads: Iterable[StageLoad], now_ms: int) -> None:
        """Take note of the present batch sizes, and forget those that others have set."""
        for outlet in (outlet for load in loads for outlet in load.outlets):
            raised = self._raised.get(outlet.operator)
            if raised and outlet.b_out != raised.b_out and now_ms - raised.set_ms >= OTHERS_MS:
                del self._raised[outlet.operator]

    def press(self, stage: str, now_ms: int) -> None:
        """Take note that a stage needs its batches large."""
        self._pressed[stage] = now_ms

    def relax(self, stage: str) -> None:
        """Take note that a stage is neither rising nor flooded: the next flood is another one."""
        self._began.pop(stage, None)
        self._stepped.pop(stage, None)

    def waiting(self, stage: str, now_ms: int) -> bool:
        """Return whether a larger batch still has to show what it does for a stage."""
        stepped = self._stepped.get(stage)
        return stepped is not None and now_ms - stepped < self._settings.moment_ms

    # ------------------------------------------------------------------ raising

    def raise_for(
        self, load: StageLoad, loads: Mapping[str, StageLoad], point: SwitchPoint, now_ms: int
    ) -> list[Enlargement]:
        """Return the batch sizes to raise for a stage that is rising or flooded."""
        self.press(load.stage, now_ms)
        began = self._began.get(load.stage, now_ms)
        if self.waiting(load.stage, now_ms) or now_ms - began >= self._settings.patience_ms:
            return []
        steps = [
            self._raise(outlet, wanted, load, cost, point, now_ms)
            for outlet, wanted, cost in self._worth_raising(load, loads, point)
        ]
        if steps:
            self._began[load.stage] = began
            self._stepped[load.stage] = now_ms
        return steps

    def _worth_raising(
        self, load: StageLoad, loads: Mapping[str, StageLoad], point: SwitchPoint
    ) -> Iterator[tuple[OutletLoad, int, str]]:
        """Yield the outlets with too small a batch size, the one to set, and for which cost."""
        fetch = [o for o in self._feeding(load, loads) if self._worth(o, load.fetch_ns, load)]
        emit = [o for o in load.outlets if self._worth(o, load.emit_ns, load)]
        shared = load.fetch_ns * bool(fetch) + load.emit_ns * bool(emit)
        factor = growth(load, shared, point)
        for outlets, cost in ((fetch, "fetching"), (emit, "emitting")):
            for outlet in outlets:
                yield outlet, self._wanted(outlet, factor), cost

    def _feeding(self, load: StageLoad, loads: Mapping[str, StageLoad]) -> list[OutletLoad]:
        senders = ((loads.get(e.sender), e) for e in self._topology.entering(load.stage))
        outlets = (sender.outlet(link.operator) for sender, link in senders if sender is not None)
        return [outlet for outlet in outlets if outlet is not None]

    def _worth(self, outlet: OutletLoad, cost_ns: float, load: StageLoad) -> bool:
        # Frames that are not full now would not be fuller with a larger b_out: with little to do,
        # or with a linger, they leave before.
        return (
            self._present(outlet) < self._settings.most_batch
            and cost_ns > 0
            and cost_ns >= self._settings.dominant * load.cost_ns
            and outlet.batch >= FULL * outlet.b_out
        )

    def _wanted(self, outlet: OutletLoad, factor: float | None) -> int:
        """Return a batch size: the next that is enough by the cost model."""
        size = self._present(outlet) * self._settings.factor
        while size < self._settings.most_batch and (factor is None or size < outlet.batch * factor):
            size *= self._settings.factor
        return min(size, self._settings.most_batch)

    def _present(self, outlet: OutletLoad) -> int:
        raised = self._raised.get(outlet.operator)
        return outlet.b_out if raised is None else max(raised.b_out, outlet.b_out)

    def _raise(
        self,
        outlet: OutletLoad,
        size: int,
        load: StageLoad,
        cost: str,
        point: SwitchPoint,
        now_ms: int,
    ) -> Enlargement:
        before = self._present(outlet)
        raised = self._raised.setdefault(outlet.operator, _Raised(outlet.b_out))
        raised.b_out, raised.set_ms = size, now_ms
        raised.carried.setdefault(load.stage, point.data_per_s)
        return Enlargement(outlet.operator, before, size, load.stage, cost)

    # ------------------------------------------------------------------ lowering

    def lower(self, arrival: Callable[[str], float | None], now_ms: int) -> list[Enlargement]:
        """Return the batch sizes to lower.

        Parameters
        ----------
        arrival
            Returns what arrives at a stage per second; None if that is not known.
        now_ms
            The present time.
        """
        steps = []
        for operator, raised in list(self._raised.items()):
            if not self._calm(raised, arrival, now_ms):
                continue
            after = max(raised.configured, raised.b_out // self._settings.factor)
            stage = next(iter(raised.carried))
            steps.append(Enlargement(operator, raised.b_out, after, stage, ""))
            raised.b_out, raised.set_ms = after, now_ms
            if after == raised.configured:
                del self._raised[operator]
        return steps

    def _calm(self, raised: _Raised, arrival: Callable[[str], float | None], now_ms: int) -> bool:
        # What a stage could carry before is what it will carry then. Without that check the batch
        # size would go up and down under a load that just needs the larger one.
        for stage, before in raised.carried.items():
            now = arrival(stage)
            if now is None or now > (1 - self._settings.delta) * before:
                self.press(stage, now_ms)
        since = max(raised.set_ms, *(self._pressed.get(stage, 0) for stage in raised.carried))
        return now_ms - since >= self._settings.lower_ms


def growth(load: StageLoad, shared_ns: float, point: SwitchPoint) -> float | None:
    """Return by what factor frames must grow for a stage to carry what arrives (equation 4.27).

    Parameters
    ----------
    load
        The stage, with what a record costs now.
    shared_ns
        Which part of that cost is shared by the records of a frame.
    point
        Has the arrival rate and the rate at which the stage works.

    Returns
    -------
    float | None
        None if no batch size is enough: then as large as allowed, which is as good as it gets.

    Examples
    --------
    2000 records a second arrive where a record takes a millisecond, 0.9 of that for its frame:

    >>> from floodway.engine.scheduler.switch_point import switch_point
    >>> load = StageLoad(stage="s", arrival_per_s=2000, data_per_s=1000, cpu_ns=1e5, emit_ns=9e5)
    >>> growth(load, load.emit_ns, switch_point(load, SchedulerSettings()))
    2.25
    """
    if point.unbounded or load.arrival_per_s <= 0:
        return None  # how much there is to carry is not known
    # P_D is the rate of all tasks: so many records are in work at the same time.
    budget_ns = load.cost_ns * point.data_per_s / load.arrival_per_s
    slack_ns = budget_ns - (load.cost_ns - shared_ns)
    return shared_ns / slack_ns if slack_ns > 0 else None
