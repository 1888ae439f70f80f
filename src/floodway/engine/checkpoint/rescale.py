"""Another number of tasks: a commit record dealt out anew.

State is dealt out by key group, row by row, to the tasks that have the groups now; positions of
sources are dealt out by their connectors. What sinks had not shown yet is shown first. The result
is one more commit record, so that at any moment there is either the old one or the new.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any

import msgspec

from floodway.connectors.base import SinkConnector, SourceConnector, Split
from floodway.core.errors import EngineError, FloodwayError
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import CommitRecord, SinkRecord, TaskRecord, standing_of
from floodway.engine.checkpoint.shape import FlowShape
from floodway.engine.checkpoint.sink_log import read_log
from floodway.engine.checkpoint.state_files import StoredParts
from floodway.engine.checkpoint.vault import FileRef, Vault, epoch_name
from floodway.engine.host.failpoints import reach
from floodway.engine.program.opening import opened
from floodway.engine.program.program import Program
from floodway.engine.program.standing import LOCAL, Standing, channels_of
from floodway.engine.program.wiring import classes_of
from floodway.engine.state.delta import Part, PartWriter, Survivors, alive
from floodway.engine.state.pickling import Pickling
from floodway.engine.transport.hashing import partition
from floodway.operators.keyed import EVERYWHERE
from floodway.operators.sink import Sink
from floodway.plan.stages import Plan, Stage

RUN_ON = "let the flow run on for a while with as many tasks as it had, and try again"

Dealt = Callable[[str, int, int], None]
"""Told how it goes: the stage, how many of its tasks are done, and of how many."""


def needs_rescaling(record: CommitRecord, plan: Plan) -> bool:
    """Return whether a plan has other tasks than those of a record."""
    return record.shape.stages != FlowShape.of(plan).stages


def rescaled(
    record: CommitRecord, plan: Plan, commits: Commits, *, progress: Dealt | None = None
) -> CommitRecord:
    """Deal a record out to the tasks of a plan; return the new record, which is durable."""
    show_logs(record, plan, commits.vault)
    reach("rescale.before_state")
    attempt = commits.new_attempts()
    tasks = [
        task
        for stage in plan.stages
        for task in _Deal(record, plan, stage, commits.vault, attempt).tasks(progress)
    ]
    reach("rescale.before_record")
    made = CommitRecord(
        version=record.version,
        flow=record.flow,
        shape=FlowShape.of(plan),
        epoch=record.epoch + 1,
        attempt=attempt,
        stream_time=record.stream_time,
        clock_ms=record.clock_ms,
        finished=record.finished,
        tasks=tasks,
    )
    commits.write(made)
    reach("rescale.after_record")
    return made


def show_logs(record: CommitRecord, plan: Plan, vault: Vault) -> None:
    """Let sinks show what is committed and may not have been shown; twice does no harm."""
    sinks = {op.name: op for op in plan.graph.operators if isinstance(op, Sink)}
    for task in record.tasks:
        for name, sink in task.sinks.items():
            operator = sinks.get(name)
            if not sink.logs or operator is None:
                continue
            connector = operator.connector
            assert isinstance(connector, SinkConnector)
            with opened(operator):
                writer = connector.open_epochs(
                    Split(task.index, record.shape.dop_of(name)),
                    operator.inputs[0].output.schema,
                    name=f"{plan.flow}.{name}.{task.index}",
                    token=sink.token,
                )
                assert writer is not None
                with closing(writer):
                    for _, ref in sink.logs:
                        log = read_log(vault, ref)
                        writer.apply(log.epoch, log.blocks, log.token)


class _Deal:
    """Deals out what belongs to one stage of the plan."""

    def __init__(
        self, record: CommitRecord, plan: Plan, stage: Stage, vault: Vault, attempt: int
    ) -> None:
        self._record, self._plan, self._stage, self._vault = record, plan, stage, vault
        self._attempt = attempt
        self._pickling = Pickling(classes_of(plan))
        self._programs = [Program(plan, stage, index) for index in range(stage.dop)]
        names = {operator.name for operator in stage.operators}
        stages = {s.name for s in record.shape.stages if names & set(s.operators)}
        self._former = [task for task in record.tasks if task.stage in stages]

    def tasks(self, progress: Dealt | None) -> list[TaskRecord]:
        """Return the records of the stage's tasks; their files are durable."""
        files = self._files()
        positions, sinks = self._positions(), self._sinks()
        found = []
        for index in range(self._stage.dop):
            found.append(
                TaskRecord(
                    stage=self._stage.name,
                    index=index,
                    files=self._write(index, files[index]),
                    positions={name: given[index] for name, given in positions.items()},
                    sinks={name: given[index] for name, given in sinks.items()},
                    progress=msgspec.msgpack.encode(self._standing(index)),
                    ended=bool(self._former) and all(task.ended for task in self._former),
                )
            )
            if progress is not None:
                progress(self._stage.name, index + 1, self._stage.dop)
        return found

    # ------------------------------------------------------------------ state

    def _files(self) -> list[bytes]:
        """Return the state of each new task as one part."""
        writers = [PartWriter(self._pickling) for _ in self._programs]
        scalars: dict[str, list[dict[str, Any]]] = {}
        for number, task in enumerate(self._former):
            kept, own = standing_of(task).scalars, dict[str, bytes]()
            for parts in (StoredParts(self._vault, task.files), [kept] if kept else []):
                own |= self._rows(parts, writers, copies=number == 0)
            for operator, pickled in own.items():
                scalars.setdefault(operator, []).append(self._pickling.loads(pickled))
        for program, writer in zip(self._programs, writers, strict=True):
            for node in program.nodes:
                if node.name in scalars:
                    node.kernel.adopt(scalars[node.name])
                writer.scalars(node.name, node.kernel.scalars())
        return [writer.finish() for writer in writers]

    def _rows(
        self, parts: Sequence[bytes], writers: Sequence[PartWriter], *, copies: bool
    ) -> dict[str, bytes]:
        """Give each row of a former task to its new one; return the task's scalars."""
        kernels = {node.name: node.kernel for node in self._programs[0].nodes}
        survivors = Survivors()
        for index in reversed(range(len(parts))):
            part = Part(parts[index], self._pickling)
            for place, rows in survivors.of(part, oldest=index == 0, operators=kernels):
                operator, space, _ = place
                if space not in kernels[operator].spaces():
                    continue  # of a table that the operator does not keep any more
                dealt: list[dict[Any, Any]] = [{} for _ in writers]
                route = kernels[operator].route
                for key, row in alive(rows).items():
                    for target in self._targets(route(space, key), copies=copies):
                        dealt[target][key] = row
                for writer, given in zip(writers, dealt, strict=True):
                    if given:
                        writer.rows(place, given)
        return {name: data for name, data in survivors.scalars.items() if name in kernels}

    def _targets(self, key: Any, *, copies: bool) -> Iterable[int]:
        if key is EVERYWHERE:
            return range(self._stage.dop) if copies else ()
        return (partition(key, self._plan.key_groups, self._stage.dop),)

    def _write(self, index: int, part: bytes) -> list[FileRef]:
        reach("rescale.middle")
        prefix = f"state/{self._stage.name}-{index}"
        name = epoch_name(prefix, self._record.epoch + 1, self._attempt, "base")
        return [self._vault.write(name, part)]

    # ------------------------------------------------------------------ connectors

    def _positions(self) -> dict[str, list[Any]]:
        found = {}
        for source in self._stage.sources:
            given = [t.positions[source.name] for t in self._former if source.name in t.positions]
            connector = source.connector
            if not given or not isinstance(connector, SourceConnector):
                continue
            try:
                dealt = connector.reassign([position for position, _ in given], self._stage.dop)
            except FloodwayError as error:
                raise error.at(source.name, source.place) from None
            # Counts are about what is read again within a run, and this is another one.
            found[source.name] = [[position, 0] for position in dealt]
        return found

    def _sinks(self) -> dict[str, list[SinkRecord]]:
        found = {}
        for operator in self._stage.operators:
            given = [t.sinks[operator.name] for t in self._former if operator.name in t.sinks]
            if not given or not isinstance(operator, Sink):
                continue
            assert isinstance(operator.connector, SinkConnector)
            tokens = [sink.token for sink in given]
            dealt = operator.connector.reassign(tokens, self._stage.dop)
            found[operator.name] = [SinkRecord(token, []) for token in dealt]
        return found

    # ------------------------------------------------------------------ how far

    def _standing(self, index: int) -> Standing:
        """Return how far a new task is: what has ended for all former ones has ended for it."""
        former = [standing_of(task) for task in self._former]
        nodes = {
            name: self._node(name, former, given)
            for name, given in self._programs[index].standing().items()
        }
        ended = self._ended_exchanges(former)
        channels = channels_of(self._plan, self._stage, index)
        return Standing(
            channels=[channel for channel in sorted(channels) if channel[0] not in ended],
            drained=sorted({exchange for standing in former for exchange in standing.drained}),
            nodes=nodes,
            stream_time=self._record.stream_time,
            epoch=self._record.epoch + 1,
        )

    def _node(self, name: str, former: Sequence[Standing], fresh: Any) -> Any:
        given = [standing.nodes[name] for standing in former if name in standing.nodes]
        if not any(closed or inputs != fresh[0] for inputs, closed, _ in given):
            return fresh
        source = any(operator.name == name for operator in self._stage.sources)
        if all(node == given[0] for node in given) and len(given) == len(former):
            return given[0]
        if source:
            return fresh  # those that have ended find so again
        raise EngineError(
            f"{name} has come to its end in some of its tasks and not in others",
            remedy=RUN_ON,
            operator=name,
        )

    def _ended_exchanges(self, former: Sequence[Standing]) -> set[int]:
        if not former:
            return set()
        opened = [{channel[0] for channel in standing.channels} for standing in former]
        there = {exchange.number for exchange in self._plan.inputs(self._stage)}
        own = {LOCAL[0]}
        if any(channels - own != opened[0] - own for channels in opened):
            raise EngineError(
                f"an input of the stage {self._stage.name} has ended for some of its tasks only",
                remedy=RUN_ON,
            )
        return (there | own) - set().union(*opened)
