"""A whole cluster in one process, from one seed.

The leader, the coordinator, the tasks and all they consist of are the real ones. The network, the
disk, the clock, threads, processes and what is outside of the flow are simulated, and fail as the
seed says. A seed gives the same simulation, event by event, every time and everywhere.
"""

import random as global_random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import msgspec

from floodway.engine.host import failpoints
from floodway_lab.simulation.checks import problem_of, taken_for_sound
from floodway_lab.simulation.conditions import Conditions, conditions
from floodway_lab.simulation.scenario import Scenario
from floodway_lab.simulation.timeline import Timeline
from floodway_lab.simulation.world import World

MOST_SECONDS = 60.0
"""A flow that has not come to its end after so many simulated seconds never will."""

MOST_STEPS = 150_000


class Outcome(msgspec.Struct, frozen=True):
    """What came of a simulation.

    Attributes
    ----------
    problem
        What was wrong; None if all was well.
    trace_hash
        A digest of every event.
    kills, pauses, power_losses, driver_kills, rescales, full_disks
        How often what happened.
    resets, cuts, daemons, hosts
        Connections that broke, or let nothing through for a while; processes that fork tasks, and
        whole hosts, that died.
    unreached
        How often a task was given up because another, or the driver, could not reach it.
    clock_jumps, bad_sectors, restored
        Clocks that were set by an hour, files that went bad after they were durable, and how often
        the checkpoint had to be put back from a copy because of that.
    broker_kills, redis_kills, lost_answers
        How often what several sources and sinks live on was killed, and how often it had done by
        then what it was asked for and could not say so.
    fail_points
        How often something died at each fail point.
    epochs, steps, seconds
        The last committed epoch, the number of events, and the simulated time.
    """

    seed: int
    scenario: str
    problem: str | None
    trace_hash: str
    kills: int
    pauses: int
    power_losses: int
    driver_kills: int
    rescales: int
    full_disks: int
    resets: int
    cuts: int
    unreached: int
    daemons: int
    hosts: int
    clock_jumps: int
    bad_sectors: int
    restored: int
    broker_kills: int
    redis_kills: int
    lost_answers: int
    fail_points: dict[str, int]
    epochs: int
    steps: int
    seconds: float


def simulate(
    seed: int,
    *,
    scenario: Scenario | None = None,
    tell: Callable[[str], None] | None = None,
    under: Callable[[Conditions], Conditions] | None = None,
) -> Outcome:
    """Simulate a flow on a cluster where everything fails.

    Parameters
    ----------
    seed
        Decides everything.
    scenario
        The flow; by default the seed decides that, too.
    tell
        Told, in words, what happens.
    under
        Returns other conditions than those that the seed has decided; for looking into a fault.
    """
    timeline = Timeline(seed, tell)
    given = conditions(seed, timeline.random, scenario)
    if under is not None:
        given = under(given)
    with tempfile.TemporaryDirectory(prefix="floodway-") as scratch:
        world = World(timeline, given, Path(scratch))
        with _surrounding(world, seed):
            return _outcome(seed, world, _run(world))


@contextmanager
def _surrounding(world: World, seed: int) -> Iterator[None]:
    """Let fail points be reached in this world, and back-offs vary as the seed says."""
    state, hook = global_random.getstate(), failpoints.hook
    global_random.seed(seed)
    failpoints.hook = world.reached
    try:
        yield
    finally:
        failpoints.hook = hook
        global_random.setstate(state)
        for process in world.processes:
            if process.alive:
                process.leave()
            process.clear_up()
        world.outside.forget()


def _run(world: World) -> str | None:
    """Run to the end; return what is wrong."""
    timeline = world.timeline
    world.begin()
    while not world.ended and world.problem is None and world.outside.problem is None:
        if timeline.seconds > MOST_SECONDS or timeline.steps > MOST_STEPS:
            world.fail(f"no end after {timeline.seconds:.0f} s: {_standstill(world)}")
        elif not timeline.step():
            world.fail(f"nothing happens any more: {_standstill(world)}")
    world.let_zombies_go()
    wrong = taken_for_sound(world)
    world.disk.put_back()  # sectors that went bad, and nobody has noticed: that is no fault
    return problem_of(world) or wrong


def _standstill(world: World) -> str:
    driver = world.driver
    if driver is None or driver.coordinator is None:
        return "there is no driver"
    lead = driver.coordinator
    return f"{driver.name} is {lead.state}, epoch {lead.epoch}, committed {lead.committed}"


def _outcome(seed: int, world: World, problem: str | None) -> Outcome:
    happened = world.happened
    return Outcome(
        seed=seed,
        scenario=world.conditions.scenario.name,
        problem=problem,
        trace_hash=world.timeline.trace_hash,
        unreached=world.unreached,
        **{name: happened[name] for name in _HAPPENED},
        fail_points=dict(sorted(world.died_at.items())),
        epochs=world.disk.newest_record,
        steps=world.timeline.steps,
        seconds=world.timeline.seconds,
    )


class Summary(msgspec.Struct):
    """What came of many simulations: everything added up.

    Attributes
    ----------
    failures
        The seeds that failed, and their problems.
    trace_hash
        A digest of the digests of all.
    unhit
        The fail points at which nobody died, of those that a simulation can reach.
    """

    seeds: int = 0
    kills: int = 0
    pauses: int = 0
    power_losses: int = 0
    driver_kills: int = 0
    rescales: int = 0
    full_disks: int = 0
    resets: int = 0
    cuts: int = 0
    unreached: int = 0
    daemons: int = 0
    hosts: int = 0
    clock_jumps: int = 0
    bad_sectors: int = 0
    restored: int = 0
    broker_kills: int = 0
    redis_kills: int = 0
    lost_answers: int = 0
    epochs: int = 0
    steps: int = 0
    seconds: float = 0.0
    fail_points: dict[str, int] = msgspec.field(default_factory=dict)
    failures: list[tuple[int, str]] = []
    trace_hash: str = ""

    def add(self, outcome: Outcome) -> None:
        """Add one simulation."""
        self.seeds += 1
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + getattr(outcome, name))
        for point, count in outcome.fail_points.items():
            self.fail_points[point] = self.fail_points.get(point, 0) + count
        if outcome.problem is not None:
            self.failures.append((outcome.seed, outcome.problem))
        both = f"{self.trace_hash} {outcome.trace_hash}".encode()
        self.trace_hash = blake2b(both, digest_size=16).hexdigest()

    @property
    def unhit(self) -> list[str]:
        """The fail points at which nobody died, of those that a simulation can reach."""
        return sorted(failpoints.FAIL_POINTS.keys() - ON_SPARK - self.fail_points.keys())


ON_SPARK = {"job.before_result"}
"""Fail points of Spark's own tasks, which are no processes here; tests on Spark kill them there."""

_HAPPENED = (
    "kills",
    "pauses",
    "power_losses",
    "driver_kills",
    "rescales",
    "full_disks",
    "resets",
    "cuts",
    "daemons",
    "hosts",
    "clock_jumps",
    "bad_sectors",
    "restored",
    "broker_kills",
    "redis_kills",
    "lost_answers",
)

_ADDED = (*_HAPPENED, "unreached", "epochs", "steps", "seconds")
