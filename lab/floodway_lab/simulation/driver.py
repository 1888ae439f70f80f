"""The driver's process: the real leader and coordinator, and a launcher that simulates."""

from collections.abc import Callable
from typing import Protocol

from floodway.core.errors import FloodwayError
from floodway.engine.checkpoint.checkpoint import Checkpoint
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import CommitRecord
from floodway.engine.control.messages import Made, Switch
from floodway.engine.driver.actions import Launch
from floodway.engine.driver.coordinator import Coordinator
from floodway.engine.driver.epoching import Epoching
from floodway.engine.driver.leader import Leader
from floodway.plan.stages import Plan
from floodway_lab.simulation.jobs import SimulatedJobs
from floodway_lab.simulation.processes import Process, World
from floodway_lab.simulation.tasks import TaskProcess

WIND_UP_US = 5_000_000
"""How long tasks have to leave before they are killed."""

LOOK_MS = 10.0
"""How often the driver looks around."""


class Rhythm(Protocol):
    """How often a flow is asked, and how often it commits."""

    @property
    def pulse_ms(self) -> int:
        """How often sources are asked."""

    @property
    def epoch_ms(self) -> int:
        """How often an epoch ends."""

    @property
    def silent_ms(self) -> int:
        """After which silence a task is given up."""


class Cluster(Protocol):
    """Where processes of tasks are started."""

    def launch(self, driver: "DriverProcess", task: int, launch: int) -> None:
        """Start a process for a task, in place of any former one."""

    def left(self, driver: "DriverProcess") -> list[TaskProcess]:
        """Return the processes of a driver's tasks that are still there."""


class SimulatedCheckpoint(Checkpoint):
    """A checkpoint on the simulated disk."""

    def __init__(self, plan: Plan, commits: Commits) -> None:
        super().__init__("checkpoint", plan)
        self.commits = commits


class DriverProcess(Process):
    """The process that leads a flow.

    Attributes
    ----------
    refusal
        Why the flow could not be started, if it could not.
    completed
        Whether the flow has come to its end, and not only to a stop.
    commits
        How many times it was seen to have committed something.
    """

    def __init__(
        self, world: World, cluster: Cluster, plan: Plan, rhythm: Rhythm, *, run: int
    ) -> None:
        super().__init__(world, f"driver {run}", run)
        self.plan = plan
        self._cluster, self._rhythm = cluster, rhythm
        self._commits = Commits(world.disk.vault(self))
        self._checkpoint = SimulatedCheckpoint(plan, self._commits)
        self.record: CommitRecord | None = None
        self.coordinator: Coordinator | None = None
        self._leader: Leader | None = None
        self._winding_up: int | None = None
        self.refusal: FloodwayError | None = None
        self.completed = False
        self._told = self._committed = self.commits = 0
        self.finished: Callable[[DriverProcess], None] = lambda driver: None
        self._jobs = SimulatedJobs(self, plan, world.scratch / f"results-{run}", self._made)
        self._operating: set[str] = set()

    def start(self) -> None:
        """Begin to work."""
        self.wake(self.world.timeline.now)

    def turn(self) -> float | None:
        """Do what a job's thread does."""
        try:
            return self._lead()
        except Exception as error:
            self.world.fail(f"{self.name} failed: {type(error).__name__}: {error}")
            return None

    def _lead(self) -> float | None:
        if self._leader is None:
            return self._open()
        assert self.coordinator is not None
        if self._winding_up is not None:
            return self._wind_up(self._leader)
        self._leader.turn(self.clock.now() // 1000)
        self._tell(self.coordinator)
        if self.coordinator.over or self.coordinator.state == "stopping":
            self._winding_up = self.time
            self.completed = self.coordinator.state == "ended"
        return LOOK_MS

    def _tell(self, coordinator: Coordinator) -> None:
        """Say what the coordinator warns of, and which epochs are committed."""
        if coordinator.committed != self._committed:
            self._committed = coordinator.committed
            self.commits += coordinator.committed != (self.record.epoch if self.record else 0)
            self.world.timeline.say(f"epoch {self._committed} is committed")
        for text in coordinator.warnings[self._told :]:
            self.world.timeline.say(text.replace(str(self.world.scratch), "scratch"))
        self._told = len(coordinator.warnings)

    def _open(self) -> float | None:
        """Find out where the flow goes on, and launch its tasks."""
        try:
            self.record = self._checkpoint.open()
        except FloodwayError as error:
            self.refusal = error
            self._end()
            return None
        rhythm = self._rhythm
        attempts = self._checkpoint.attempts
        epoching = Epoching(rhythm.epoch_ms, self.record, rhythm.silent_ms, attempts)
        self.coordinator = Coordinator(self.plan, pulse_ms=rhythm.pulse_ms, epoching=epoching)
        self._leader = Leader(
            self.plan,
            self.coordinator,
            self.mailbox,
            commits=self._commits,
            launch=lambda task, launch: self._cluster.launch(self, task, launch),
            report=lambda data: None,
            offered=self._jobs.offer,
        )
        self._leader.carry_out([Launch(task, 0) for task in self.coordinator.names], 0)
        return LOOK_MS

    def _wind_up(self, leader: Leader) -> float | None:
        """See every task out; who does not go is killed."""
        assert self._winding_up is not None
        leader.hear_the_rest(self.clock.now() // 1000)
        left = self._cluster.left(self)
        if left and self.time - self._winding_up < WIND_UP_US:
            return LOOK_MS
        for process in left:
            process.kill("did not leave")
        self._end()
        return None

    def _end(self) -> None:
        self._checkpoint.close()
        self.leave()
        self.finished(self)

    def lost(self, task: int, launch: int, reason: str) -> None:
        """Learn that the process of a task is gone."""
        if self._leader is not None and self.alive:
            self._leader.losses.append((task, launch, reason))

    def _made(self, task: int, made: Made) -> None:
        if self._leader is not None and self._winding_up is None:
            self._leader.tell(task, made)

    def switch(self) -> None:
        """Let a stage, or all of them, work in the other paradigm."""
        random = self.world.timeline.random
        names = [stage.name for stage in self.plan.stages]
        chosen = names if random.random() < 0.4 else [random.choice(names)]
        for name in chosen:
            self._operating ^= {name}
            order = Switch(name, "operation" if name in self._operating else "data")
            self._order(order)

    def _order(self, order: Switch) -> None:
        if self._leader is not None and self.alive:
            self.world.timeline.say(f"{order.stage} is to work in {order.paradigm}")
            self._leader.orders.append(lambda leader: leader.wish(order))

    def drain(self) -> None:
        """Let the flow stop after one more epoch."""
        if self._leader is not None and self.coordinator is not None and self.alive:
            self._leader.orders.append(lambda leader: leader.coordinator.drain())
