"""What the coordinator wants done."""

from typing import NamedTuple

from floodway.engine.checkpoint.records import TaskRecord
from floodway.engine.control.messages import Message


class Tell(NamedTuple):
    """Send a message to a task."""

    task: int
    message: Message


class Launch(NamedTuple):
    """Start a process for a task, in place of any former one."""

    task: int
    launch: int


class Write(NamedTuple):
    """Make an epoch durable, and say so by calling `Coordinator.written`."""

    epoch: int
    tasks: dict[int, TaskRecord]
    finished: bool


Action = Tell | Launch | Write
