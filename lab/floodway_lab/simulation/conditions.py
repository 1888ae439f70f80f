"""What a seed decides: how a flow runs, and what goes wrong when."""

from collections.abc import Iterator
from random import Random
from typing import Literal, NamedTuple

import msgspec

from floodway.engine.datastream.settings import Settings
from floodway.engine.host.failpoints import FAIL_POINTS
from floodway.model.tuning import Batching, Tuning
from floodway.plan.configuration import Configuration
from floodway_lab.simulation.scenario import Scenario
from floodway_lab.simulation.scenarios import SCENARIOS
from floodway_lab.simulation.streams import LargeState

MOST_DOP = 3

FaultKind = Literal[
    "kill", "pause", "kill driver", "pause driver", "drain", "power", "full disk", "slow disk",
    "source away", "sink away", "give up", "cut off", "switch", "reset", "block", "daemon", "host",
    "clock", "bad sector", "part", "broker", "redis",
]  # fmt: skip

LASTING: dict[FaultKind, tuple[int, int]] = {
    "full disk": (20_000, 1_500_000),
    "slow disk": (100_000, 2_000_000),
    "source away": (10_000, 800_000),
    "sink away": (10_000, 1_500_000),
    "broker": (50_000, 2_000_000),
    "redis": (10_000, 1_000_000),
    "pause driver": (50_000, 2_000_000),
    "block": (10_000, 4_000_000),
    "part": (500_000, 100_000_000),
}
"""How many microseconds what passes by itself lasts, at least and at most."""

PASSING: dict[FaultKind, int] = {
    "full disk": 2,
    "slow disk": 2,
    "source away": 2,
    "sink away": 2,
    "pause driver": 1,
}
"""How often things may happen that pass by themselves."""

PROFILES: tuple[dict[FaultKind, int], ...] = (
    {"kill": 5, "pause": 3, "give up": 3, "cut off": 3},
    {"kill driver": 3, "drain": 2, "power": 1, "pause": 2},
    {"kill": 3, "pause": 2, "give up": 1, "cut off": 1, "kill driver": 2, "drain": 1, "power": 1},
)
"""How often things may happen from which somebody does not come back: one of these for a seed."""

SINGLE: dict[FaultKind, int] = {"daemon": 1, "clock": 3, "bad sector": 2}
"""How often other things may happen, on one host or on several."""

BETWEEN_HOSTS: dict[FaultKind, int] = {"reset": 12, "block": 2, "host": 1, "part": 4}
"""How often things may happen that take several hosts. A link that is parted is most often so for
longer than anybody waits, or until the flow would be over."""

SERVERS: dict[FaultKind, int] = {"broker": 3, "redis": 3}
"""How often what several sources and sinks live on may be killed."""

Death = Literal["kill", "power"]


class Fault(NamedTuple):
    """Something that goes wrong after so many microseconds, for a while."""

    after: int
    kind: FaultKind
    lasts: int


class Trap(NamedTuple):
    """A fail point at which, when it is reached for the n-th time, somebody dies."""

    point: str
    n: int
    death: Death


class Conditions(msgspec.Struct, frozen=True):
    """How a flow runs in a simulation, and what goes wrong.

    Attributes
    ----------
    dops
        The degree of parallelism of each run, one after another; the last one holds from then on.
    pulse_ms, epoch_ms, silent_ms
        How often sources are asked, how often an epoch ends, after which silence a task is given
        up.
    undoes
        Whether sinks can take back what they have shown.
    doubling, clogging
        How likely control messages are to come twice, and ways to be clogged.
    hosts
        Over how many hosts the tasks are spread. Between hosts connections break.
    redis
        The sinks that live in Redis, and not with the broker.
    idle_ms
        After how long a silence a source is not waited for.
    """

    scenario: Scenario
    dops: tuple[int, ...]
    b_out: int
    linger_ms: int
    batching: Batching
    isolate: bool
    key_groups: int
    settings: Settings
    pulse_ms: int
    epoch_ms: int
    silent_ms: int
    undoes: bool
    doubling: float
    clogging: float
    faults: tuple[Fault, ...]
    traps: tuple[Trap, ...]
    hosts: int = 1
    redis: tuple[str, ...] = ()
    idle_ms: int = 3_600_000

    def configuration(self, run: int) -> Configuration:
        """Return the configuration of a run."""
        dop = self.dops[min(run, len(self.dops) - 1)]
        return Configuration(
            Tuning(
                dop=dop,
                b_out=self.b_out,
                linger=self.linger_ms,
                batching=self.batching,
                isolate=self.isolate,
            )
        )


def conditions(seed: int, random: Random, scenario: Scenario | None = None) -> Conditions:
    """Return what a seed decides."""
    traps = _traps(seed, random)
    wanted = traps[0].point.partition(".")[0]
    cramped = wanted == "spill" or random.random() < 0.3
    hosts = Random(f"hosts of {seed}").choice([1, 2, 3])
    scenario = scenario or _scenario(seed, wanted)
    return Conditions(
        scenario=scenario,
        dops=_dops(random, rescaling=wanted == "rescale"),
        b_out=random.randint(1, 20),
        linger_ms=random.choice([0, 0, 3]),
        batching=random.choice(["distinct", "shared"]),
        isolate=random.random() < 0.25,
        key_groups=random.choice([6, 128]),
        settings=Settings(
            input_cache=1 if cramped else 16 * 1024 * 1024,
            metrics=False,
            output_cache=random.choice([200, 3_000]) if cramped else 64 * 1024 * 1024,
            state_memory=random.choice([0, 600]) if random.random() < 0.08 else None,
            block_bytes=Random(f"blocks of {seed}").choice([200, 1_000, 2**26]),
        ),
        pulse_ms=random.choice([10, 25, 60]),
        epoch_ms=random.choice([20, 100, 300]),
        silent_ms=random.choice([1_000, 1_500]),
        undoes=random.random() < 0.3,
        doubling=random.choice([0.0, 0.03, 0.2]),
        clogging=random.choice([0.0, 0.005, 0.03]),
        faults=_with_others(
            seed,
            _with_switches(seed, _faults(random, rescaling=wanted == "rescale"), wanted),
            hosts,
        ),
        traps=traps,
        hosts=hosts,
        redis=_in_redis(seed, scenario),
        idle_ms=Random(f"idle of {seed}").choice(scenario.idle_ms),
    )


def _scenario(seed: int, wanted: str) -> Scenario:
    """Let all kinds of flows have their turn; only large state is merged on the disk."""
    # Seeds that share their first fail point have different flows.
    number = seed + seed // len(FAIL_POINTS)
    return LargeState() if wanted == "compact" else SCENARIOS[number % len(SCENARIOS)]


def _dops(random: Random, *, rescaling: bool) -> tuple[int, ...]:
    dops = [random.randint(1, MOST_DOP)]
    if rescaling:
        dops.append(random.choice([dop for dop in range(1, MOST_DOP + 1) if dop != dops[0]]))
    while len(dops) < 4:
        dops.append(random.randint(1, MOST_DOP) if random.random() < 0.4 else dops[-1])
    return tuple(dops)


def _faults(random: Random, *, rescaling: bool) -> tuple[Fault, ...]:
    found = []
    horizon = random.randint(1_000_000, 4_500_000)
    if rescaling:
        found.append(Fault(random.randint(500_000, 1_000_000), "drain", 0))
    found += _drawn(random, PASSING | random.choice(PROFILES), horizon)
    return tuple(sorted(found))


def _drawn(random: Random, kinds: dict[FaultKind, int], horizon: int) -> Iterator[Fault]:
    for kind, most in kinds.items():
        if random.random() < 0.5:
            continue
        for _ in range(random.randint(1, most)):
            least, longest = LASTING.get(kind, (0, 0))
            after = int(random.uniform(0.02, 1.0) * horizon)
            yield Fault(after, kind, random.randint(least, longest))


def _with_others(seed: int, faults: tuple[Fault, ...], hosts: int) -> tuple[Fault, ...]:
    """Let connections break, hosts, daemons and servers die, clocks jump, sectors go bad."""
    random = Random(f"other faults of {seed}")
    kinds = SINGLE | BETWEEN_HOSTS if hosts > 1 else SINGLE
    others = [*_drawn(random, kinds, random.randint(1_000_000, 4_500_000))]
    random = Random(f"servers of {seed}")
    others += _drawn(random, SERVERS, random.randint(1_000_000, 3_000_000))
    return tuple(sorted([*faults, *others]))


def _in_redis(seed: int, scenario: Scenario) -> tuple[str, ...]:
    random = Random(f"redis of {seed}")
    return tuple(name for name in scenario.sinks() if random.random() < 0.4)


def _with_switches(seed: int, faults: tuple[Fault, ...], wanted: str) -> tuple[Fault, ...]:
    """Let stages switch their paradigm: in two of three seeds, often, and around other faults."""
    if seed % 3 == 0 and wanted != "batch":
        return faults
    random = Random(f"switches of {seed}")
    times = [random.randint(0, 3_000_000) for _ in range(random.randint(1, 12))]
    times += [max(f.after + random.randint(-50_000, 50_000), 0) for f in faults]
    if wanted == "batch":
        times.append(0)
    return tuple(sorted([*faults, *(Fault(after, "switch", 0) for after in times)]))


def _traps(seed: int, random: Random) -> tuple[Trap, ...]:
    """Let all fail points have their turn, whatever chance says, and some more."""
    points = sorted(FAIL_POINTS)
    chosen = [points[seed % len(points)]]
    chosen += random.sample(points, random.randint(0, 2))
    return tuple(Trap(point, _when(random, point), _death(random, point)) for point in chosen)


def _death(random: Random, point: str) -> Death:
    """Return how to die: where files are about to be durable, it is the power that counts."""
    likely = 0.6 if point.startswith("vault") else 0.25
    return "power" if random.random() < likely else "kill"


def _when(random: Random, point: str) -> int:
    """Return at which time of reaching a fail point to die: likely early, where it is rare."""
    if point.startswith(("rescale", "compact")):
        return 1
    if point.startswith("restore"):
        return random.randint(1, 2)
    return 1 + int(30 * random.random() ** 3)
