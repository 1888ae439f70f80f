"""The world of a simulation: all processes, and everything that befalls them.

There is one driver at a time. When it dies, or the flow was stopped, another one is started after a
while, as an operator or a service manager would do, with the degree of parallelism that the
conditions name next.
"""

from collections import Counter
from pathlib import Path

import msgspec

from floodway.core.errors import CorruptError, DiskFullError, FloodwayError
from floodway.engine.checkpoint.rescale import RUN_ON
from floodway.model.flow import Flow
from floodway.plan.stages import Plan
from floodway_lab.simulation.conditions import Conditions, Death, Fault
from floodway_lab.simulation.disk import Disk
from floodway_lab.simulation.driver import DriverProcess
from floodway_lab.simulation.faults import Faults, block
from floodway_lab.simulation.network import Network
from floodway_lab.simulation.outside import Outside
from floodway_lab.simulation.processes import Died, Process
from floodway_lab.simulation.scenario import Connections
from floodway_lab.simulation.tasks import TaskProcess
from floodway_lab.simulation.timeline import Timeline

TOO_MANY = " times since epoch "
"""What a flow says that gives up because tasks are lost again and again."""

UNREACHED = " was lost (the link "
"""What a flow says that gives up a task because it cannot be reached."""


class World:
    """All that is simulated.

    Attributes
    ----------
    problem
        The first thing that should never have happened.
    happened
        How often what went wrong.
    died_at
        How often somebody died at each fail point.
    settings
        How tasks run.
    set_by
        By how many microseconds the wall clock is wrong that new processes find.
    """

    def __init__(self, timeline: Timeline, conditions: Conditions, scratch: Path) -> None:
        self.timeline, self.conditions = timeline, conditions
        self.scratch = scratch
        self.network = Network(timeline, conditions)
        self.disk = Disk(timeline)
        self.disk.tears_records = conditions.undoes
        self.current: Process | None = None
        self.outside = Outside(
            conditions.scenario.feeds(timeline.random),
            self._clock,
            timeline.random,
            undoes=conditions.undoes,
            redis=conditions.redis,
        )
        self.outside.committed = lambda: self.disk.newest_record
        self.outside.spend = self._spend
        self.problem: str | None = None
        self.happened: Counter[str] = Counter()
        self.outside.happened = self.happened
        self.died_at: Counter[str] = Counter()
        self._reached: Counter[str] = Counter()
        self._death: tuple[str, Death] | None = None
        self.drivers: list[DriverProcess] = []
        self.processes: list[TaskProcess] = []
        self.losses: list[tuple[int, str, int]] = []
        self.paused: list[tuple[int, str, int]] = []
        self.configured = 0
        self.ended = False
        self.set_by = 0
        silent_s = conditions.silent_ms / 1000
        self.settings = msgspec.structs.replace(conditions.settings, silent_s=silent_s)

    def _clock(self) -> int:
        return self.timeline.now if self.current is None else self.current.time

    def _spend(self, microseconds: int) -> None:
        if self.current is not None:
            self.current.spend(microseconds)

    def fail(self, problem: str) -> None:
        """Take note of something that should never have happened."""
        if self.problem is None:
            self.problem = problem
            self.timeline.say(f"PROBLEM: {problem}")

    # ------------------------------------------------------------------ drivers

    def begin(self) -> None:
        """Start the first driver, and let faults come."""
        self._start_driver()
        for fault in self.conditions.faults:
            self._expect(fault)

    def _expect(self, fault: Fault) -> None:
        faults = Faults(self)
        self.timeline.after(fault.after, lambda: faults.befall(fault))

    def plan(self) -> Plan:
        """Return the plan of the flow, as it is configured now."""
        conditions = self.conditions
        flow = Flow(
            "simulated",
            retention=conditions.scenario.retention_ms,
            idle=conditions.idle_ms,
            key_groups=conditions.key_groups,
        )
        conditions.scenario.build(flow, Connections(self.outside))
        return Plan.of(flow, conditions.configuration(self.configured))

    def _start_driver(self) -> None:
        run = len(self.drivers)
        driver = DriverProcess(self, self, self.plan(), self.conditions, run=run)
        driver.finished = self._driver_ended
        self.drivers.append(driver)
        dop = self.conditions.configuration(self.configured).dop
        self.timeline.say(f"{driver.name} starts, dop {dop}")
        driver.start()

    @property
    def unreached(self) -> int:
        """How often a task was given up because somebody could not reach it."""
        leads = [driver.coordinator for driver in self.drivers]
        return sum(UNREACHED in text for lead in leads if lead for text in lead.warnings)

    def _again(self) -> None:
        """Start another driver after a while."""
        self.timeline.after(self.timeline.between(10_000, 1_000_000), self._start_driver)

    def _driver_ended(self, driver: DriverProcess) -> None:
        coordinator = driver.coordinator
        if coordinator is None:
            assert driver.refusal is not None
            self._refused(driver.refusal)
        elif coordinator.failure is not None:
            self._failed(coordinator.failure)
        elif driver.completed:
            self._completed(driver)
        else:
            self.timeline.say(f"{driver.name} has stopped the flow")
            self._configure()
            self._again()

    def _failed(self, failure: FloodwayError) -> None:
        """Start a flow again that lost too many tasks at once, or cannot read what it wrote."""
        if TOO_MANY not in failure.problem and not self._spoilt(failure):
            self.fail(f"the flow failed: {failure}")
            return
        self.timeline.say(f"the flow failed: {failure.problem}")
        self._again()

    def _spoilt(self, error: FloodwayError) -> bool:
        """Return whether somebody complains, with reason, about a file that has gone bad."""
        complains = isinstance(error, CorruptError)
        return complains and any(name in error.problem for name in self.disk.damaged)

    def _completed(self, driver: DriverProcess) -> None:
        self.timeline.say(f"{driver.name} has come to the end")
        # Whoever starts a flow again that has come to its end finds nothing to do.
        if self.happened["again"] == 0 and self.timeline.chance(0.2):
            self.happened["again"] += 1
            self._again()
        else:
            self.ended = True

    def _configure(self) -> None:
        """Take the next degree of parallelism."""
        former = self.conditions.configuration(self.configured).dop
        self.configured += 1
        if self.conditions.configuration(self.configured).dop != former:
            self.happened["rescales"] += 1

    def _refused(self, error: FloodwayError) -> None:
        self.timeline.say(f"the flow cannot start: {error.problem}")
        if error.remedy == RUN_ON:
            self.configured = max(self.configured - 1, 0)
        elif self._spoilt(error):
            self.timeline.say("the checkpoint is restored from a copy")
            self.happened["restored"] += 1
            self.disk.put_back()
        elif not isinstance(error, DiskFullError) and "is away" not in error.problem:
            self.fail(f"the flow cannot start again: {error}")
            return
        self._again()

    # ------------------------------------------------------------------ tasks

    def launch(self, driver: DriverProcess, task: int, launch: int) -> None:
        """Start a process for a task; a former one may live on for a while."""
        for process in self.left(driver):
            if process.task == task and self.timeline.chance(0.5):
                process.kill("replaced")
        self.timeline.after(
            self.timeline.between(5_000, 600_000), lambda: self._come(driver, task, launch)
        )

    def _come(self, driver: DriverProcess, task: int, launch: int) -> None:
        if not driver.alive or driver.coordinator is None:
            return
        stage, index = driver.coordinator.names[task]
        process = TaskProcess(
            self,
            driver.plan,
            stage,
            index,
            number=len(self.processes) + 1,
            run=driver.run,
            launch=launch,
            driver=driver.mailbox.address,
            scratch=self.scratch,
            settings=self.settings,
            host=self._host(),
        )
        self.processes.append(process)
        if self.disk.full:
            block(self, [process])
        self.timeline.note("started", process.name)
        process.start()

    def _host(self) -> int:
        hosts = self.conditions.hosts
        return self.timeline.random.randrange(hosts) if hosts > 1 else 0

    def left(self, driver: DriverProcess) -> list[TaskProcess]:
        """Return the processes of a driver's tasks that are still there."""
        return [p for p in self.processes if p.alive and p.run == driver.run]

    @property
    def driver(self) -> DriverProcess | None:
        """The driver that is alive, if there is one."""
        driver = self.drivers[-1] if self.drivers else None
        return driver if driver is not None and driver.alive else None

    def let_zombies_go(self) -> None:
        """Let processes that linger find out that nobody leads them any more."""
        until = self.timeline.now + 10_000_000
        while any(p.alive for p in self.processes) and self.timeline.now < until:
            if self.problem is not None or not self.timeline.step():
                return

    # ------------------------------------------------------------------ deaths

    def reached(self, point: str) -> None:
        """Let somebody die at a fail point, if that was to be."""
        if self.current is None or not self.current.alive:
            return
        self._reached[point] += 1
        for trap in self.conditions.traps:
            if trap.point == point and trap.n == self._reached[point]:
                self.died_at[point] += 1
                self._death = point, trap.death
                raise Died

    def fell(self, process: Process) -> None:
        """Let happen what was to happen at the fail point that a process has reached."""
        if not process.alive or self._death is None:
            return
        (point, death), self._death = self._death, None
        if death == "power":
            self.lose_power(f"at {point}")
        elif isinstance(process, DriverProcess):
            self.kill_driver(process, f"at {point}")
        else:
            process.kill(f"at {point}")

    def killed(self, process: Process, reason: str) -> None:
        """Take note that a process was killed, and let it be noticed."""
        self.timeline.say(f"{process.name} is killed ({reason})")
        if not isinstance(process, TaskProcess):
            return
        self.happened["kills"] += 1
        process.clear_up()
        self.missed(process, reason)

    def missed(self, process: TaskProcess, reason: str) -> None:
        """Let the driver notice that a process is gone, or Spark start it again by itself."""
        driver = self.driver
        if driver is None or driver.run != process.run:
            return
        self.troubled(process)
        delay = self.timeline.between(5_000, 500_000)
        if self.timeline.chance(0.15):
            self.timeline.after(delay, lambda: self._come(driver, process.task, process.launch))
        else:
            self.timeline.after(
                delay, lambda: self._noticed(driver, process.task, process.launch, reason)
            )

    def troubled(self, process: TaskProcess) -> None:
        """Take note that a process may have to be replaced."""
        self.losses.append((process.run, process.stage, process.index))

    def _noticed(self, driver: DriverProcess, task: int, launch: int, reason: str) -> None:
        driver.lost(task, launch, reason)

    def kill_driver(self, driver: DriverProcess, reason: str) -> None:
        """Kill a driver; its tasks die as well, at once or after a while."""
        self.happened["driver_kills"] += 1
        driver.kill(reason)
        self.disk.holder = None
        for process in self.left(driver):
            if self.timeline.chance(0.4):
                process.kill("with its driver")
            else:
                self.timeline.after(self.timeline.between(1_000, 4_000_000), process.orphan)
        self._configure()
        self._again()

    def lose_power(self, reason: str) -> None:
        """Let the power fail: everything dies, and what is not durable may be lost."""
        self.happened["power_losses"] += 1
        self.timeline.say(f"the power fails ({reason})")
        driver = self.driver
        if driver is not None:
            driver.kill("the power fails")
        for process in self.processes:
            process.kill("the power fails")
        self.disk.fail_power()
        if driver is not None:
            self._configure()
            self._again()
