"""The world of a simulation: all processes, and everything that befalls them.

There is one driver at a time. When it dies, or the flow was stopped, another one is started after a
while, as an operator or a service manager would do, with the degree of parallelism that the
conditions name next.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from floodway.core.errors import DiskFullError, FloodwayError
from floodway.engine.rescale import RUN_ON
from floodway.model.flow import Flow
from floodway.plan.stages import Plan
from floodway.testing.simulation.conditions import Conditions, Death, Fault, FaultKind
from floodway.testing.simulation.disk import Disk
from floodway.testing.simulation.driver import DriverProcess
from floodway.testing.simulation.network import Network
from floodway.testing.simulation.outside import Outside
from floodway.testing.simulation.processes import Died, Process
from floodway.testing.simulation.scenario import Connections
from floodway.testing.simulation.tasks import TaskProcess
from floodway.testing.simulation.timeline import Timeline

TOO_MANY = " times since epoch "
"""What a flow says that gives up because tasks are lost again and again."""


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
        )
        self.outside.committed = lambda: self.disk.newest_record
        self.problem: str | None = None
        self.happened: Counter[str] = Counter()
        self.died_at: Counter[str] = Counter()
        self._reached: Counter[str] = Counter()
        self._death: tuple[str, Death] | None = None
        self.drivers: list[DriverProcess] = []
        self.processes: list[TaskProcess] = []
        self.losses: list[tuple[int, str, int]] = []
        self.paused: list[tuple[int, str, int]] = []
        self.configured = 0
        self.ended = False

    def _clock(self) -> int:
        return self.timeline.now if self.current is None else self.current.time

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
        self.timeline.after(fault.after, lambda: self.befall(fault))

    def plan(self) -> Plan:
        """Return the plan of the flow, as it is configured now."""
        conditions = self.conditions
        flow = Flow(
            "simulated",
            retention=conditions.scenario.retention_ms,
            idle="1h",
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
        """Start a flow again that has lost too many tasks at once; nothing else may fail."""
        if TOO_MANY not in failure.problem:
            self.fail(f"the flow failed: {failure}")
            return
        self.timeline.say(f"the flow failed: {failure.problem}")
        self._again()

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
            settings=self.conditions.settings,
        )
        self.processes.append(process)
        if self.disk.full:
            self._block([process])
        self.timeline.note("started", process.name)
        process.start()

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
            self._power(f"at {point}")
        elif isinstance(process, DriverProcess):
            self._kill_driver(process, f"at {point}")
        else:
            process.kill(f"at {point}")

    def killed(self, process: Process, reason: str) -> None:
        """Take note that a process was killed, and let it be noticed."""
        self.timeline.say(f"{process.name} is killed ({reason})")
        if not isinstance(process, TaskProcess):
            return
        self.happened["kills"] += 1
        process.clear_up()
        self._missed(process, reason)

    def _missed(self, process: TaskProcess, reason: str) -> None:
        """Let the driver notice that a process is gone, or Spark start it again by itself."""
        driver = self.driver
        if driver is None or driver.run != process.run:
            return
        self.losses.append((driver.run, process.stage, process.index))
        delay = self.timeline.between(5_000, 500_000)
        if self.timeline.chance(0.15):
            self.timeline.after(delay, lambda: self._come(driver, process.task, process.launch))
        else:
            self.timeline.after(
                delay, lambda: self._noticed(driver, process.task, process.launch, reason)
            )

    def _noticed(self, driver: DriverProcess, task: int, launch: int, reason: str) -> None:
        driver.lost(task, launch, reason)

    def _kill_driver(self, driver: DriverProcess, reason: str) -> None:
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

    def _power(self, reason: str) -> None:
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

    # ------------------------------------------------------------------ faults

    def befall(self, fault: Fault) -> None:
        """Let something go wrong."""
        if self.ended:
            return
        action: Callable[[Fault], None] = {
            "kill": self._befall_task,
            "pause": self._befall_task,
            "give up": self._befall_task,
            "cut off": self._befall_task,
            "kill driver": self._befall_driver,
            "pause driver": self._befall_driver,
            "drain": self._befall_driver,
            "switch": lambda fault: self._switch(),
            "power": lambda fault: self._power("by chance"),
            "full disk": self._befall_disk,
            "slow disk": self._befall_disk,
            "source away": self._befall_outside,
            "sink away": self._befall_outside,
        }[fault.kind]
        action(fault)

    def _befall_task(self, fault: Fault) -> None:
        alive = [p for p in self.processes if p.alive and not p.paused]
        if not alive:
            return
        process = self.timeline.random.choice(alive)
        if fault.kind == "kill":
            process.kill("by chance")
        elif fault.kind == "give up":
            self._give_up(process)
        else:
            # Long enough to be given up, most often.
            lasts = int(self.conditions.silent_ms * 1000 * self.timeline.random.uniform(0.3, 4.0))
            self.paused.append((process.run, process.stage, process.index))
            self._silence(process, fault.kind, lasts)

    def _give_up(self, process: TaskProcess) -> None:
        """Let Spark lose sight of a process that is still there, and start another one."""
        self.happened["zombies"] += 1
        self.timeline.say(f"{process.name} is given up")
        self._missed(process, "lost from sight")

    def _silence(self, process: TaskProcess, kind: FaultKind, lasts: int) -> None:
        """Stop a process, or let it work on and cut it off from all others."""
        self.happened["pauses"] += 1
        self.timeline.say(f"{process.name}: {kind}, for {lasts / 1e6:.1f} s")
        if kind == "cut off":
            self.network.cut_off(process.name, self.timeline.now + lasts)
            return
        process.pause()
        self.timeline.after(lasts, process.resume)

    def _befall_driver(self, fault: Fault) -> None:
        driver = self.driver
        if driver is None or driver.paused:
            return
        if fault.kind == "kill driver":
            self._kill_driver(driver, "by chance")
        elif fault.kind == "drain":
            self.timeline.say("the flow is to be stopped")
            self.happened["drains"] += 1
            driver.drain()
        else:
            self.happened["pauses"] += 1
            self.timeline.say(f"{driver.name} is paused for {fault.lasts / 1e6:.1f} s")
            driver.pause()
            self.timeline.after(fault.lasts, driver.resume)

    def _switch(self) -> None:
        """Let one stage, or all of them, work in another paradigm."""
        driver = self.driver
        if driver is not None:
            self.happened["switches"] += 1
            driver.switch()

    def _befall_disk(self, fault: Fault) -> None:
        disk = self.disk
        self.timeline.say(f"{fault.kind} for {fault.lasts / 1e6:.1f} s")
        if fault.kind == "full disk":
            self.happened["full_disks"] += 1
            disk.full = True
            self._block(self.processes)
        else:
            disk.slow = 20.0

        def pass_by() -> None:
            self.timeline.say(f"no {fault.kind} any more")
            disk.full, disk.slow = False, 1.0
            for process in self.processes:
                process.unblock()

        self.timeline.after(fault.lasts, pass_by)

    def _block(self, processes: Iterable[TaskProcess]) -> None:
        """Let output caches find no room; state beyond its budget would fail, and has to."""
        if self.conditions.settings.state_memory is None:
            for process in processes:
                process.block()

    def _befall_outside(self, fault: Fault) -> None:
        names = sorted(self.outside.feeds)
        if fault.kind == "sink away":
            names = sorted(self.conditions.scenario.sinks())
        name = self.timeline.random.choice(names)
        self.timeline.say(f"{name} is away for {fault.lasts / 1e6:.1f} s")
        self.outside.away_until[name] = self.timeline.now + fault.lasts
