"""The data stream engine in one process: tasks, frames and marks without sockets.

Every task of the plan is there, with its own kernels, routers, buffers and input cache, and what
travels between them is encoded and decoded as it is between processes. Only the way frames take is
a list here. So a test sees what parallelism, partitioning and batching do to a flow, step by step
and the same every time.
"""

import copy
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, Literal

from floodway.connectors.list_items import Emitted
from floodway.engine.datastream.form import Form
from floodway.engine.datastream.task import Positions, Task
from floodway.engine.program.counts import OperatorCounts
from floodway.engine.program.intake import NEVER
from floodway.engine.program.mark import Mark
from floodway.engine.transport.frame import parse
from floodway.operators.base import TableOperator, View
from floodway.operators.stateless import ChainKernel
from floodway.plan import Plan
from floodway.plan.stages import Stage
from floodway.testing.clock import VirtualClock
from floodway.testing.micro_batches import MicroBatches
from floodway.testing.runtime import Inlet, PushedRow, Runtime, Stats
from floodway.testing.stores import Store


class Cluster(Runtime):
    """Runs all tasks of a plan in turn.

    With `restarts`, after every push and every mark each task is replaced by a new one, which goes
    on from what would have been stored of the former. With the paradigm ``operation`` what comes is
    collected and processed in micro-batches; with ``switching`` tasks change their paradigm again
    and again, in the middle of things.
    """

    def __init__(
        self,
        plan: Plan,
        clock: VirtualClock,
        *,
        restarts: bool = False,
        paradigm: Literal["data", "operation", "switching"] = "data",
    ) -> None:
        super().__init__(plan.graph, clock)
        self._plan = plan
        self._post: deque[tuple[int, bytes]] = deque()
        self._restarts = restarts
        self._jobs = None if paradigm == "data" else MicroBatches(plan, paradigm)
        self._tasks = [
            self._task(stage, index) for stage in plan.stages for index in range(stage.dop)
        ]
        self._stores = [defaultdict[str, Store](Store) for _ in self._tasks]
        self._turn: dict[str, int] = {}
        self._epoch = 0
        self._finished = False
        self.tick()

    def _task(self, stage: Stage, index: int) -> Task:
        # Where there are restarts, somebody is interested in what has changed.
        on_commit = _nothing if self._restarts else None
        task = Task(self._plan, stage, index, self._send, on_commit=on_commit)
        if self._jobs is not None:
            self._jobs.adopt(task)
        return task

    def _send(self, task: int, frame: bytes) -> None:
        self._post.append((task, frame))

    @property
    def _now(self) -> int:
        return self.clock.now * 1000

    def _of(self, operator: str) -> list[Task]:
        stage = self._plan.stage_of(operator)
        return [task for task in self._tasks if task.stage is stage]

    # ------------------------------------------------------------------ moving

    def _push(self, inlet: Inlet, rows: list[PushedRow]) -> None:
        name = inlet.source.name
        tasks = self._of(name)
        # What is pushed together comes through one task of the source; the next has the next.
        turn = self._turn.get(name, 0)
        self._turn[name] = turn + 1
        task = tasks[turn % len(tasks)]
        # To a test they are one source: what one has come to, all have.
        intake = task.intake(name)
        intake.latest = NEVER if inlet.dated is None else inlet.dated
        try:
            self._form(task).feed(name, rows, self._now)
            self._settle([task])
        except Exception:
            self._drop()
            raise
        finally:
            inlet.came_to(_known(intake.latest), _known(intake.arrived))

    def _settle(self, moved: list[Task]) -> None:
        """Let everything run until nothing is on its way; only who was `moved` has work yet."""
        for task in moved if self._jobs is None else self._tasks:
            self._work(task)
        while self._post or (self._jobs is not None and self._jobs.run()):
            if self._post:
                number, data = self._post.popleft()
                self._tasks[number].receive(parse(data), data)
                self._work(self._tasks[number])
            else:
                for task in self._tasks:
                    self._work(task)
        self._collect()
        if self._restarts:
            self._restart()

    def _work(self, task: Task) -> None:
        if self._jobs is not None:
            self._jobs.switch_at_random(task)
        self._step(task)
        if self._jobs is not None:
            self._jobs.turn(task)
            self._step(task)  # a batch without a block is merged at once

    def _step(self, task: Task) -> None:
        while self._form(task).step(self._now):
            pass
        task.flush()

    def _form(self, task: Task) -> Form:
        return task if self._jobs is None else self._jobs.form(task)

    def _collect(self) -> None:
        for task in self._tasks:
            for name, node in task.program.sinks.items():
                self._sinks[name].extend(Emitted(*row) for row in node.collect())

    def _restart(self) -> None:
        """Let new tasks go on where the old ones are that have changed something."""
        for task in self._tasks.copy():
            stores = self._stores[task.number]
            changed = [stores[node.name].take(node.kernel) for node in task.program.nodes]
            if not any(changed):
                continue
            other = self._task(task.stage, task.index)
            for node in other.program.nodes:
                stores[node.name].give(node.kernel)
            other.resume(task.standing())
            _recount(other, _counts(task))
            self._tasks[task.number] = other

    def _drop(self) -> None:
        """Forget what is on its way: what failed must not run again with the next push."""
        self._post.clear()
        for task in self._tasks:
            task.inbox.clear()
            if self._jobs is not None:
                self._jobs.adopt(task)
            for node in task.program.nodes:
                node.drop()
            for outlet in task.outlets:
                for batch in outlet.batches:
                    batch.rows.clear()

    def _mark(self, time: int | None) -> None:
        self._pulse(Mark(stream_time=time))

    def tick(self) -> None:
        """Tell every kernel what the clock shows."""
        self._pulse(Mark(clock=self.clock.now))

    def _pulse(self, mark: Mark) -> None:
        self._epoch += 1
        asked = [task for task in self._tasks if task.stage.sources and not task.ended]
        for task in asked:
            self._form(task).pulse(self._epoch, mark)
        self._settle(asked)

    def _end(self, inlet: Inlet) -> None:
        tasks = self._of(inlet.source.name)
        for task in tasks:
            self._form(task).end_source(inlet.source.name, self._now)
        self._settle(tasks)

    def finish(self) -> None:
        """End all sources and let everything out."""
        if self._finished:
            return
        self._finished = True
        for inlet in self.inlets.values():
            if not inlet.ended:
                self.end(inlet)
        self.mark()

    # ------------------------------------------------------------------ looking in

    def _view(self, operator: TableOperator, inputs: list[View | None]) -> View:
        def parts() -> list[View]:
            tasks = self._of(operator.name)
            kernels = [task.program.node(operator.name).kernel for task in tasks]
            return [operator.view(kernel, inputs) for kernel in kernels]

        return UnionView(parts)

    def _stats(self, name: str) -> Stats:
        found: list[OperatorCounts] = [
            counts
            for task in self._of(name)
            for counts in task.program.counts()
            if counts.name == name
        ]
        return Stats(
            received=sum(counts.records_in for counts in found),
            sent=sum(counts.records_out for counts in found),
            late=sum(counts.late for counts in found),
            skipped=sum(counts.skipped for counts in found),
            dead_letters=sum(counts.dead_letters for counts in found),
            duplicates=sum(counts.duplicates for counts in found),
        )

    # ------------------------------------------------------------------ going back

    def snapshot(self) -> dict[str, Any]:
        """Return all that the tasks remember; between marks nothing is on its way."""
        tasks = [_snapshot(task) for task in self._tasks]
        return super().snapshot() | {"tasks": tasks, "stores": copy.deepcopy(self._stores)}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot; what reached the sinks since then is undone."""
        super().restore(snapshot)
        self._drop()
        for task, saved in zip(self._tasks, snapshot["tasks"], strict=True):
            _restore(task, saved)
            if self._jobs is not None:
                self._jobs.adopt(task)
        self._stores = copy.deepcopy(snapshot["stores"])


class UnionView(View):
    """A table whose rows are spread over tasks: `parts` returns the view of each as it is now."""

    def __init__(self, parts: Callable[[], list[View]]) -> None:
        self._parts = parts

    def entry(self, key: Any, at: int | None = None) -> tuple[int, Any] | None:
        """Return the row from whoever has it."""
        found = (part.entry(key, at) for part in self._parts())
        return next((entry for entry in found if entry is not None), None)

    def rows(self, at: int | None = None) -> dict[Any, tuple[int, Any]]:
        """Return the rows of all parts."""
        return {key: row for part in self._parts() for key, row in part.rows(at).items()}

    def modified(self) -> dict[int, set[Any]]:
        """Return the modified key sets of all parts."""
        sets: dict[int, set[Any]] = {}
        for part in self._parts():
            for timestamp, keys in part.modified().items():
                sets[timestamp] = sets.get(timestamp, set()) | keys
        return dict(sorted(sets.items()))


def _nothing(epoch: int, positions: Positions | None) -> None: ...


def _known(time: int) -> int | None:
    return None if time == NEVER else time


def _snapshot(task: Task) -> dict[str, Any]:
    return {
        "kernels": [node.kernel.snapshot() for node in task.program.nodes],
        "open": [set(node.open_inputs) for node in task.program.nodes],
        "closed": [node.closed for node in task.program.nodes],
        "channels": task.channels,
        "stream_time": task.stream_time,
        "counts": _counts(task),
    }


def _restore(task: Task, saved: dict[str, Any]) -> None:
    for index, node in enumerate(task.program.nodes):
        node.kernel.restore(saved["kernels"][index])
        node.open_inputs = set(saved["open"][index])
        node.closed = saved["closed"][index]
    task.channels = saved["channels"]
    task.stream_time = saved["stream_time"]
    _recount(task, saved["counts"])


def _counts(task: Task) -> dict[str, Any]:
    return {
        "received": [node.received for node in task.program.nodes],
        "sent": [[port.sent for port in node.ports] for node in task.program.nodes],
        "failed": [
            [(handler.skipped, handler.failures) for handler in n.kernel.handlers]
            for n in task.program.nodes
        ],
        "counted": [node.kernel.counted for node in task.program.nodes],
        "duplicates": [node.kernel.duplicates for node in task.program.nodes],
    }


def _recount(task: Task, saved: dict[str, Any]) -> None:
    for index, node in enumerate(task.program.nodes):
        node.received = saved["received"][index]
        node.kernel.duplicates = saved["duplicates"][index]
        for port, sent in zip(node.ports, saved["sent"][index], strict=True):
            port.sent = sent
        handlers = node.kernel.handlers
        for handler, counts in zip(handlers, saved["failed"][index], strict=True):
            handler.skipped, handler.failures = counts
        if isinstance(node.kernel, ChainKernel):
            counted = zip(saved["counted"][index], node.kernel.counted, strict=True)
            node.kernel.add([then - now for then, now in counted])
