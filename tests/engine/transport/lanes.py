"""Lanes that end in lists, and what was sent on them."""

from collections.abc import Sequence
from typing import Any

from floodway.core.schema import Schema
from floodway.engine.transport.batching import Consumer, Lane, Outlet, make_outlets
from floodway.engine.transport.codec import Codec
from floodway.engine.transport.frame import EXCHANGE, KIND, Header, Kind, parse, payload
from floodway.engine.transport.plain import Plain
from floodway.model.flow import Flow
from floodway.operators.base import Edge, Operator, Output
from floodway.operators.base import Kind as MessageKind
from floodway.operators.partitioning import Partitioning

GROUPS = 128
PLACE = Flow("places").source("here", schema=int).edge.operator.place


class CountingCodec(Codec):
    """Counts how many records it has encoded."""

    encoded = 0

    def encode(self, rows: Sequence[Any]) -> bytes:
        self.encoded += len(rows)
        return super().encode(rows)


class Wires:
    """The lanes of some consumers, given as spread and number of tasks; frames are kept."""

    def __init__(
        self,
        *consumers: tuple[Partitioning, int],
        kind: MessageKind = "records",
        shared: bool = False,
        b_out: int = 1,
        linger_us: int = 0,
        window: int = 2**30,
    ) -> None:
        output = Output(kind, Schema.of(object))
        operator = Operator(name="sender", place=PLACE, inputs=(), outputs={"main": output})
        self.codec = CountingCodec(Edge(operator), Plain(()), windowed=False)
        self.frames: list[tuple[int, Header, bytes]] = []
        self.lanes = [
            [Lane(number, target, window, self._send) for target in range(dop)]
            for number, (_, dop) in enumerate(consumers)
        ]
        ends = [
            Consumer(spread, kind, lanes, GROUPS)
            for (spread, _), lanes in zip(consumers, self.lanes, strict=True)
        ]
        self.outlets = make_outlets(self.codec, 7, ends, shared=shared)
        for outlet in self.outlets:
            outlet.b_out, outlet.linger_us = b_out, linger_us

    def _send(self, target: int, frame: bytes) -> None:
        self.frames.append((target, parse(frame), frame))

    @property
    def outlet(self) -> Outlet:
        (one,) = self.outlets
        return one

    def take(self, rows: Sequence[Any], born: int = 0, now: int = 0) -> None:
        for outlet in self.outlets:
            outlet.take(list(rows), born, now)

    def flush(self, now: int | None = None) -> None:
        for outlet in self.outlets:
            outlet.flush(now)

    def data(self, consumer: int = 0) -> list[tuple[int, list[Any]]]:
        """Return what was sent to a consumer: target and rows, frame by frame."""
        return [
            (target, self.codec.decode(payload(frame)))
            for target, header, frame in self.frames
            if header[KIND] == Kind.DATA and header[EXCHANGE] == consumer
        ]

    def received(self, consumer: int = 0) -> dict[int, list[Any]]:
        """Return what each task of a consumer has got, in order."""
        got: dict[int, list[Any]] = {lane.target: [] for lane in self.lanes[consumer]}
        for target, rows in self.data(consumer):
            got[target] += rows
        return got
