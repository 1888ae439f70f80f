"""The process of a task: the real runner, in simulated surroundings."""

from pathlib import Path

from floodway.core.errors import FloodwayError
from floodway.engine.control.messages import Beat, Hello, failure_message, to_frame
from floodway.engine.datastream.settings import Settings
from floodway.engine.worker.runner import DRIVER, Orphaned, Runner
from floodway.plan.stages import Plan
from floodway_lab.simulation.network import WATCHDOG, beating
from floodway_lab.simulation.processes import Process, SimulatedSurroundings, World

BEAT_US = 200_000
"""How often a process says that it is alive."""


class TaskProcess(Process):
    """The process of a task.

    Attributes
    ----------
    task, launch
        The number of the task, and of the launch that started the process.
    host
        The number of the host that it is on.
    attempts
        How many records each of its attempts has worked on.
    """

    def __init__(
        self,
        world: World,
        plan: Plan,
        stage: str,
        index: int,
        *,
        number: int,
        run: int,
        launch: int,
        driver: str,
        scratch: Path,
        settings: Settings,
        host: int = 0,
    ) -> None:
        super().__init__(world, f"{stage}/{index} {run}.{launch} p{number}", run)
        self.number, self.launch, self.host = number, launch, host
        self.mailbox.connect(DRIVER, driver)
        self.around = SimulatedSurroundings(self, scratch / f"p{number}")
        self._driver = driver
        self._runner = Runner(plan, stage, index, self.around, settings, launch=launch)
        self.task: int = self._runner.number
        self.stage, self.index = stage, index
        self.attempts: dict[int, int] = {}

    def start(self) -> None:
        """Say hello, and begin to work."""
        hello = Hello(self.task, self.launch, self.mailbox.address, self.number, "here")
        self.mailbox.send(DRIVER, to_frame(hello))
        self.wake(self.world.timeline.now)
        self._beat()

    def _beat(self) -> None:
        """Say that the process is alive, from a thread and a socket of its own."""
        if not self.alive:
            return
        if not self.paused:
            beat = beating(self.world.network, to_frame(Beat(self.task, self.launch, self.number)))
            self.world.network.carry(f"{self.name}{WATCHDOG}", self._driver, beat, self.time)
        self.world.timeline.after(BEAT_US, self._beat)

    def turn(self) -> float | None:
        """Do what the runner's own loop does."""
        runner = self._runner
        try:
            pause = runner.turn()
            self._see_attempt()
            if not runner.over:
                return pause
            runner.close()
        except Orphaned:
            runner.close()  # Spark tells the driver
        except Exception as error:
            self._failed(error)
        self.leave()
        return None

    def _see_attempt(self) -> None:
        """Take note of how many records each attempt has worked on."""
        task = self._runner.task
        if task is not None:
            self.attempts[task.attempt] = task.records_in

    def _failed(self, error: Exception) -> None:
        self.world.timeline.say(f"{self.name} failed: {error}")
        if not self.around.alone and not isinstance(error, FloodwayError):
            self.world.fail(f"{self.name} failed: {type(error).__name__}: {error}")
        self.mailbox.send(DRIVER, to_frame(failure_message(self.task, self.launch, error)))
        self._runner.close()

    def block(self) -> None:
        """Let the process find no room for its scratch folder, if it has none yet."""
        if self.alive and not self.around.scratch.exists():
            self.around.scratch.touch()

    def unblock(self) -> None:
        """Let the process find room again."""
        if self.around.scratch.is_file():
            self.around.scratch.unlink()

    def orphan(self) -> None:
        """Let the process find out that its driver is gone."""
        self.around.alone = True

    def clear_up(self) -> None:
        """Close what a dead process has left open, so that nothing works on in threads."""
        self._runner.close()
