"""Tasks without sockets, and the frames between them."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from floodway.engine.datastream.chosen import MakePolicy
from floodway.engine.datastream.fifo import Fifo
from floodway.engine.datastream.task import Task
from floodway.engine.transport.frame import parse
from floodway.plan import Plan

WINDOW = 64 * 1024  # the smallest that a lane can have


class Net:
    """Tasks of a plan, and the frames between them; each task works only when told to."""

    def __init__(
        self,
        plan: Plan,
        window: int = WINDOW,
        attempts: Sequence[int] | None = None,
        policy: MakePolicy = Fifo,
    ) -> None:
        self.plan = plan
        self.post: dict[int, deque[bytes]] = {}
        self.sent: list[tuple[int, bytes]] = []
        self.tasks = [
            Task(plan, stage, index, self.send, window=window, attempts=attempts, policy=policy)
            for stage in plan.stages
            for index in range(stage.dop)
        ]
        self.post = {task.number: deque() for task in self.tasks}

    def send(self, task: int, frame: bytes) -> None:
        self.sent.append((task, frame))
        self.post[task].append(frame)

    def of(self, operator: str) -> list[Task]:
        stage = self.plan.stage_of(operator)
        return [task for task in self.tasks if task.stage is stage]

    def deliver(self, task: Task) -> None:
        """Bring a task everything that is on its way to it; credits are taken at once."""
        post = self.post[task.number]
        while post:
            frame = post.popleft()
            task.receive(parse(frame), frame)

    def work(self, task: Task, steps: int = 1) -> None:
        """Let a task work as the runner does: not while a receiver has enough."""
        self.deliver(task)
        for _ in range(steps):
            if task.blocked or not task.step(0):
                break
        task.flush()

    def settle(self) -> None:
        """Let everything run to its end."""
        while any(self.post.values()) or any(task.inbox.records for task in self.tasks):
            for task in self.tasks:
                self.work(task, steps=10)

    def lanes(self) -> list[Any]:
        return [lane for task in self.tasks for outlet in task.outlets for lane in outlet.lanes]
