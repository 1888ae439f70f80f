"""Where results leave the remote half: encoded rows for the owner, and partials instead of rows."""

from typing import Any

import msgspec

from floodway.engine.opstream.blocks import BlockRows
from floodway.engine.transport.batching import Lane, Outlet
from floodway.engine.transport.codec import Codec
from floodway.engine.transport.frame import VERSION, Kind, pack_header
from floodway.engine.transport.plain import Plain
from floodway.engine.transport.routing import place_of
from floodway.operators.partials import Combines, Panes, Partial

PARTIALS = "partials"
"""Stands for the port of rows that are partials of an aggregate in the owner's stage."""

REST = "rest"
"""Stands for the port of records of such an aggregate that could not be combined."""

_encode = msgspec.msgpack.Encoder().encode


class Boundary(Outlet):
    """Keeps rows that the owner's own operators read."""

    def __init__(self, codec: Codec, operator: str, port: str) -> None:
        super().__init__(codec, 0, [])
        self._operator, self._port = operator, port
        self._rows: list[Any] = []

    def take(self, rows: list[Any], born: int, now: int) -> None:
        """Keep rows."""
        self._rows += rows

    def flush(self, now: int | None = None) -> None:
        """Do nothing: what is kept is asked for."""

    def rows(self) -> list[BlockRows]:
        """Return what was kept, encoded, and forget it."""
        rows, self._rows = self._rows, []
        if not rows:
            return []
        return [BlockRows(self._operator, self._port, len(rows), self.codec.encode(rows))]

    def forget(self) -> None:
        """Forget what was kept."""
        self._rows = []


class Combining(Outlet):
    """Combines records of an aggregate; `rest` takes those that cannot be combined.

    With `groups`, the aggregate is in another stage, and partials are sent there as `rest` would
    send records; otherwise they are for the owner itself.
    """

    def __init__(
        self, combiner: Combines, rest: Outlet, plain: Plain, *, groups: int | None = None
    ) -> None:
        super().__init__(rest.codec, rest.sender, [rest.lanes])
        self._combiner = combiner
        self._rest = rest
        self._plain = plain
        self._groups = groups
        self._horizon = combiner.horizon(None)
        self._into: Panes = {}

    @property
    def inside(self) -> bool:
        """Whether the aggregate is in the owner's own stage."""
        return self._groups is None

    def begin(self, stream_time: int | None) -> None:
        """Judge by stream time what can be combined."""
        self._horizon = self._combiner.horizon(self._combiner.time(stream_time))

    def take(self, rows: list[Any], born: int, now: int) -> None:
        """Combine records."""
        left = self._combiner.combine(rows, self._into, self._horizon)
        if left:
            self._rest.take(left, born, now)

    def flush(self, now: int | None = None) -> None:
        """Send all partials."""
        if self._groups is None:
            return
        self._rest.flush()
        combined, self._into = self._into, {}
        lanes = self.lanes
        by_lane: list[list[Partial]] = [[] for _ in lanes]
        for partial in self._combiner.partials(combined):
            by_lane[place_of(partial[0], self._groups, len(lanes))].append(partial)
        for lane, rows in zip(lanes, by_lane, strict=True):
            if rows:
                self._send_partials(lane, rows)

    def _send_partials(self, lane: Lane, rows: list[Partial]) -> None:
        header = pack_header(VERSION, Kind.PARTIAL, lane.exchange, self.sender, 0, 0, len(rows), 0)
        lane.send(lane.target, header + self._packed(rows))

    def _packed(self, rows: list[Partial]) -> bytes:
        pack = self._plain.pack
        return _encode([pack(list(row)) for row in rows])

    def rows(self) -> list[BlockRows]:
        """Return the partials for the owner's own aggregate, and forget them."""
        made, self._into = self._combiner.partials(self._into), {}
        if not made:
            return []
        return [BlockRows(self._combiner.name, PARTIALS, len(made), self._packed(made))]

    def forget(self) -> None:
        """Forget what was combined."""
        self._into = {}
        self._rest.forget()
