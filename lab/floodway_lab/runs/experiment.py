"""What a run is of, and what it has shown."""

from typing import Literal

import msgspec

from floodway_lab.cases.base import Shape
from floodway_lab.figures.machine import Machine
from floodway_lab.sending.generating import Jitter
from floodway_lab.sending.schedules import Schedule
from floodway_lab.systems.system import Link

Store = Literal["discard", "redis"]
"""What becomes of results."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is of.

    Attributes
    ----------
    case, system
        The workload, and the system under test.
    link
        How events come to it; None is the best link that the system can read.
    store
        What becomes of results: nothing, or a Redis has them.
    rate, schedule
        Events per second, of all data engines together, and the shape over time; or a schedule, for
        which the rate does not matter.
    closed_s
        From then on events are due as fast as they are taken.
    seconds, warm_s
        For how long events are due, and how much of that does not count yet.
    loads
        Parts of the rate that are due one after the other, each for so long; the run then has a
        part for each.
    engines, dop
        How many data engines there are, and how many tasks the system should use.
    shape
        What the events are like.
    acceptable_s
        How long the queue may be at any time, in seconds of the rate: the paper's c_a. A rate that
        is too high by a share is found out if that share of the run is longer.
    judged
        Whether the run ends when the system turns out not to keep up.
    most_foreign
        A run is void if others had more than this share of the machine's cores while it lasted.
    """

    case: str
    system: str
    rate: float
    link: Link | None = None
    store: Store = "discard"
    seconds: float = 20.0
    warm_s: float = 5.0
    schedule: str | Schedule = "constant"
    closed_s: float | None = None
    loads: tuple[float, ...] = ()
    engines: int = 1
    dop: int = 1
    shape: Shape = Shape()
    acceptable_s: float = 0.2
    judged: bool = False
    most_foreign: float = 0.15

    @property
    def whole_s(self) -> float:
        """For how long events are due, all loads together."""
        return self.seconds * max(len(self.loads), 1)


class Latency(msgspec.Struct, frozen=True):
    """Event-time latency of results, in milliseconds."""

    p50: float
    p90: float
    p99: float
    p999: float
    max: float
    results: int


class Paradigm(msgspec.Struct, frozen=True):
    """From when on a stage of Floodway worked in which paradigm, in seconds of the run."""

    stage: str
    paradigm: str
    t: float


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has shown.

    Attributes
    ----------
    experiment, machine
        What it was of, and where.
    link
        How events came to the system.
    void, why
        Whether its figures mean nothing, and why.
    sustained
        Whether the system has kept up, and if not, why.
    correct
        Whether its answers are right; None if it was not given everything.
    generated, taken, per_s
        How many events there were, how many it took, and how many a second after the warm-up.
    latency_ms, cdf_ms
        Of the results of events that were due after the warm-up; None if there are none. The second
        has a value for each hundredth, and for each thousandth of the last one.
    over_time
        For each second its latency (p50, p99) and how many events were taken and waited.
    paradigms
        How the stages of Floodway worked.
    jitter_ms
        How late events were generated, by the worst of the data engines.
    foreign
        The share of the machine's cores that others had.
    parts
        If there were several loads, what the run has shown at each.
    """

    experiment: Experiment
    machine: Machine
    link: Link
    void: bool
    why: str
    sustained: bool
    correct: bool | None
    generated: int
    taken: int
    per_s: float
    latency_ms: Latency | None
    cdf_ms: list[float]
    over_time: list[dict[str, float]]
    paradigms: list[Paradigm]
    jitter_ms: Jitter
    foreign: float
    parts: list["Run"] = []
