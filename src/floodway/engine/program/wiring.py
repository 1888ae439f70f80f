"""The wiring of one partition of a stage: its program, what comes in, and what leads out.

A task works on it, and so does whoever does a part of a task's work elsewhere, or wants to know
what a task consists of. It has no queue, counts nothing, and knows nothing of time.
"""

from collections.abc import Mapping, Sequence

import msgspec

from floodway.engine.program.program import Node, Program
from floodway.engine.program.standing import channels_of
from floodway.engine.transport.batching import (
    Consumer,
    Lane,
    Outlet,
    Send,
    make_outlets,
    receivers,
    senders,
)
from floodway.engine.transport.codec import Codec
from floodway.engine.transport.frame import stamp
from floodway.engine.transport.numbering import Numbering
from floodway.engine.transport.plain import Plain, record_classes
from floodway.operators.base import Edge
from floodway.plan.stages import Exchange, Plan, Stage
from floodway.plan.windowed import windowed

WINDOW = 16 * 1024 * 1024
"""How many bytes may be on their way to a task in all, if nobody says otherwise."""


class Input:
    """An exchange as its receiver sees it: how to decode, and whom to give the rows to."""

    __slots__ = ("codec", "exchange", "owed", "readers", "senders")

    def __init__(
        self,
        exchange: Exchange,
        codec: Codec,
        readers: list[tuple[Node, int]],
        numbers: Mapping[int, int],
    ) -> None:
        self.exchange = exchange
        self.codec = codec
        self.readers = readers
        self.senders = numbers
        self.owed = dict.fromkeys(numbers, 0)
        """Bytes of each sender that were processed, and that it has not been told of."""


class Wiring:
    """The nodes of one partition of a stage, and all that leads to them and from them.

    Parameters
    ----------
    plan, stage, index
        Which partition of which stage.
    send
        Hands a frame to the task of a number.
    window
        How many bytes may be on their way to this task in all, divided among the senders.
    attempts
        The attempt of every task, by number.

    Attributes
    ----------
    number
        The number of the task that works on it.
    plain
        How values of the flow travel that have no schema.
    inputs
        What comes in, by the number of the exchange.
    channels
        Where marks and ends come from: every sender of every exchange, and the own sources.
    lanes
        All ways that lead to other tasks, by exchange and number of the task.
    routers
        The generated code that spreads records, by what it is for.
    """

    def __init__(
        self,
        plan: Plan,
        stage: Stage,
        index: int,
        send: Send,
        *,
        window: int = WINDOW,
        attempts: Sequence[int] | None = None,
    ) -> None:
        self.plan, self.stage, self.index = plan, stage, index
        self.program = Program(plan, stage, index)
        self._numbering = Numbering(plan)
        self._send, self._window = send, window
        self._attempts = attempts or [0] * self._numbering.count
        self.number = self._numbering.number(stage.name, index)
        self.attempt = self._attempts[self.number]
        self.plain = Plain(classes_of(plan))
        self.inputs = {e.number: self._input(e) for e in plan.inputs(stage)}
        self.channels = channels_of(plan, stage, index)
        self.routers: dict[str, str] = {}
        self.lanes: dict[tuple[int, int], Lane] = {}
        self._make_outlets()
        self.outlets = self.program.outlets
        self._routes = {
            (lane.exchange, lane.target): (outlet, lane)
            for outlet in self.outlets
            for lane in outlet.lanes
        }

    def _input(self, exchange: Exchange) -> Input:
        sender = self.plan.stage(exchange.sender)
        readers = [(self.program.node(r.operator), r.port) for r in exchange.readers]
        numbers = {
            index: self._numbering.number(sender.name, index)
            for index in senders(exchange.partitioning, self.index, sender.dop)
        }
        return Input(exchange, self.codec(exchange.edge), readers, numbers)

    def codec(self, edge: Edge) -> Codec:
        """Return how rows of an output port are encoded."""
        return Codec(edge, self.plain, windowed=windowed(self.plan.graph, edge))

    def _make_outlets(self) -> None:
        by_port: dict[tuple[str, str], list[Exchange]] = {}
        for exchange in self.plan.outputs(self.stage):
            by_port.setdefault((exchange.edge.operator.name, exchange.edge.port), []).append(
                exchange
            )
        for exchanges in by_port.values():
            edge = exchanges[0].edge
            consumers = [self._consumer(exchange) for exchange in exchanges]
            name = edge.operator.name
            shared = self.plan.batching(name) == "shared" and edge.output.kind == "records"
            outlets = make_outlets(self.codec(edge), self.index, consumers, shared=shared)
            for outlet in outlets:
                outlet.b_out = self.plan.b_out(name)
                outlet.linger_us = self.plan.linger_ms(name) * 1000
            self.program.port(edge).outlets = outlets

    def _consumer(self, exchange: Exchange) -> Consumer:
        receiver = self.plan.stage(exchange.receiver)
        targets = receivers(exchange.partitioning, self.index, receiver.dop)
        lanes = [self._lane(exchange, receiver, target) for target in targets]
        consumer = Consumer(
            exchange.partitioning, exchange.edge.output.kind, lanes, self.plan.key_groups
        )
        if consumer.source:
            self.routers[f"to {receiver.name}: {exchange.partitioning}"] = consumer.source
        return consumer

    def _lane(self, exchange: Exchange, receiver: Stage, target: int) -> Lane:
        window = lane_window(self.plan, receiver, target, self._window)
        number = self._numbering.number(receiver.name, target)
        attempt = stamp(self._attempts[number])
        lane = Lane(exchange.number, number, window, self._send, attempt=attempt)
        self.lanes[exchange.number, target] = lane
        return lane

    def route(self, exchange: int, target: int) -> tuple[Outlet, Lane]:
        """Return the outlet and the lane that lead to a task on an exchange."""
        return self._routes[exchange, target]

    @property
    def lane_window(self) -> int:
        """How many bytes each sender may have on the way to this task."""
        return lane_window(self.plan, self.stage, self.index, self._window)


def lane_window(plan: Plan, stage: Stage, index: int, window: int) -> int:
    """Return how many bytes each sender may have on the way to a task."""
    count = sum(
        len(senders(exchange.partitioning, index, plan.stage(exchange.sender).dop))
        for exchange in plan.inputs(stage)
    )
    return max(window // max(count, 1), 64 * 1024)


def classes_of(plan: Plan) -> tuple[type[msgspec.Struct], ...]:
    """Return the record classes that travel in a flow, in the same order in every process."""
    from floodway.operators.changelog import Change
    from floodway.operators.on_error import DeadLetter
    from floodway.operators.windows import Window

    outputs = [output for op in plan.graph.operators for output in op.outputs.values()]
    types = [output.schema.type for output in outputs]
    keys = [field.type for output in outputs if output.key for field in output.key.fields]
    known: tuple[type[msgspec.Struct], ...] = (Window, Change, DeadLetter)
    return tuple(dict.fromkeys((*known, *record_classes([*types, *keys]))))
