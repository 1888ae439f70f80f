"""Whole epochs to Redis, each exactly once."""

import uuid
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from floodway.connectors.base import EpochWriter, Row, Unavailable
from floodway.connectors.redis_client import Commands, Encoded, RedisConnection
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema

if TYPE_CHECKING:
    from redis import Redis
    from redis.client import Pipeline

    from floodway.connectors.redis import RedisSink

_TRIES = 10  # while others change the mark under us

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[Encoded]).decode


class RedisEpochs(EpochWriter):
    """Writes an epoch in one ``MULTI``, together with its number.

    The number is under a key of the task's own, the *mark*. Whether an epoch was applied before, by
    whomever, is asked there, and Redis sees to it that nobody changes it in between (``WATCH``). A
    Redis that has lost the mark has lost the rows with it.

    Parameters
    ----------
    sink
        Where rows go, and what they become.
    schema
        The schema of the values.
    name
        The name of the task.
    token
        Where to go on, or None. ``run`` is a name for all that began with the same first start.
    """

    def __init__(self, sink: "RedisSink", schema: Schema, *, name: str, token: Any) -> None:
        self._sink = sink
        self._run: str = token["run"] if token else uuid.uuid4().hex[:12]
        self._mark = f"floodway:applied:{name}:{self._run}"
        self._commands = Commands(sink, schema)
        self._connection = RedisConnection(sink)

    def encode(self, rows: Sequence[Row]) -> bytes:
        """Return rows as keys and values in their formats."""
        return _pack(self._commands.encode(rows))

    def prepare(self, epoch: int) -> Any:
        """Return the name of the run; Redis knows the rest."""
        return {"run": self._run}

    def apply(self, epoch: int, blocks: Sequence[bytes], token: Any) -> None:
        """Write an epoch in one transaction, unless it is there already."""
        rows = [row for block in blocks for row in _unpack(block)]
        if rows:
            self._connection.run(partial(self._transact, rows, epoch))

    def close(self) -> None:
        """Leave Redis."""
        self._connection.close()

    def _transact(self, rows: list[Encoded], epoch: int, redis: "Redis") -> None:
        for _ in range(_TRIES):
            with redis.pipeline(transaction=True) as pipeline:
                pipeline.watch(self._mark)  # type: ignore[no-untyped-call]
                if int(pipeline.get(self._mark) or 0) >= epoch:
                    return
                self._check(pipeline)
                pipeline.multi()
                self._commands.add(pipeline, rows)
                pipeline.set(self._mark, epoch)
                if self._executed(pipeline):
                    return
        raise Unavailable(f"somebody else changes {self._mark} all the time")

    def _check(self, pipeline: "Pipeline") -> None:
        # Redis would do all but the commands that fail: the epoch would count as applied.
        if not self._commands.fits(pipeline):
            raise ConnectorError(
                f"{self._sink.prefix!r} in Redis at {self._sink.address} is no {self._sink.kind}",
                remedy="use another prefix=, or remove what is there",
            )

    def _executed(self, pipeline: "Pipeline") -> bool:
        try:
            pipeline.execute()
        except self._connection.errors.WatchError:
            return False
        return True
