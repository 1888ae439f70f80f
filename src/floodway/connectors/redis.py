"""Write results to Redis: the latest value of each key, or every row in a list or stream."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import urlsplit

from floodway.connectors.base import (
    Delivery,
    EpochWriter,
    Format,
    Row,
    SinkConnector,
    Split,
    Unavailable,
    Writer,
)
from floodway.connectors.extras import warn_of_plain_secrets
from floodway.connectors.formats import Json
from floodway.connectors.redis_client import (
    CHUNK,
    Commands,
    Encoded,
    RedisConnection,
    check_scheme,
    secrets_in,
)
from floodway.connectors.redis_epochs import RedisEpochs
from floodway.core.duration import Duration, to_ms
from floodway.core.errors import OptionError, ServerAwayError
from floodway.core.schema import Schema
from floodway.core.secret import Secret

if TYPE_CHECKING:
    from redis import Redis

RedisKind = Literal["set", "hash", "list", "stream"]
"""What rows become in Redis."""

_KINDS = ("set", "hash", "list", "stream")


class RedisSink(SinkConnector):
    """Write results to Redis.

    ============  ====================================  =========================================
    kind          what a row does                       written again after a failure
    ============  ====================================  =========================================
    ``"set"``     ``SET prefix+key value``              nothing changes
    ``"hash"``    ``HSET prefix key value``             nothing changes
    ``"list"``    ``RPUSH prefix value``                the row may be there twice
    ``"stream"``  ``XADD prefix timestamp key value``   the row may be there twice
    ============  ====================================  =========================================

    A value of None deletes the key in ``"set"`` and ``"hash"``. In ``"stream"`` it is an entry
    without a ``value`` field; a ``"list"`` has no place for it. Rows are sent a thousand at a time.

    With a checkpoint, exactly once for all kinds: an epoch is one ``MULTI``, which also stores the
    number of the epoch under a key that begins with ``floodway:applied:``.

    Parameters
    ----------
    url
        Where Redis is, for example ``"redis://127.0.0.1:6379/0"``. A name and password in it are
        never shown. If it has some, use a reference: ``floodway.secret.env("REDIS_URL")``.
    host, port
        The same for database 0, if there is no `url`.
    username, password
        How to log in, if that is not in `url`; the password should be a reference, too.
    prefix
        What is put before each key; for ``"hash"``, ``"list"`` and ``"stream"`` the name of the one
        key that holds all.
    kind
        What rows become, see above.
    ttl
        How long a value is kept after it was written, or a whole hash, list or stream after its
        last row; forever if not given.
    maxlen
        About how many entries a stream keeps; all if not given.
    format
        How values look.

    Examples
    --------
    >>> RedisSink("redis://:secret@127.0.0.1:6379/0", prefix="fare:", ttl="1h")
    RedisSink('redis://127.0.0.1:6379/0', prefix='fare:', kind='set')
    >>> sink = RedisSink(host="127.0.0.1", port=6379, prefix="fares", kind="hash")
    >>> writer = sink.open(Split(), Schema.of(float))  # doctest: +SKIP
    >>> writer.write([(1767225600000, "gate 7", 2.5, None)])  # doctest: +SKIP
    """

    delivery: ClassVar[Delivery] = "exactly once"

    def __init__(
        self,
        url: str | Secret | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 6379,
        username: str | Secret | None = None,
        password: str | Secret | None = None,
        prefix: str = "",
        kind: RedisKind = "set",
        ttl: Duration | None = None,
        maxlen: int | None = None,
        format: Format | None = None,
    ) -> None:
        self._url = url if url is not None else f"redis://{host}:{port}/0"
        self._username = username
        self._password = password
        self.prefix = prefix
        self.kind = kind
        self.ttl_ms = None if ttl is None else to_ms(ttl, what="ttl")
        self.maxlen = maxlen
        self.format = format or Json()
        self._check_options()

    @property
    def address(self) -> str:
        """Where Redis is, without name and password."""
        if isinstance(self._url, Secret):
            return f"{self._url!r}"
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def check(self) -> None:
        """Refuse a Redis that does not answer within five seconds or does not let us in."""
        plain = {"password": isinstance(self._password, str)}
        plain["url"] = isinstance(self._url, str) and bool(secrets_in(self._url))
        warn_of_plain_secrets(self, (name for name, is_plain in plain.items() if is_plain))
        connection = RedisConnection(self)
        try:
            connection.run(lambda redis: redis.ping())
        except Unavailable as away:
            raise ServerAwayError(
                f"no Redis answers at {self.address}: {away.reason}",
                remedy="start the server, or correct the address",
            ) from None
        finally:
            connection.close()

    def check_resumed(self, token: Any) -> None:
        """Refuse the same as `check`."""
        self.check()

    def credentials(self) -> tuple[str | Secret, str | Secret | None, str | Secret | None]:
        """Return address, name and password, for whoever connects."""
        return self._url, self._username, self._password

    def open(self, split: Split, schema: Schema) -> "RedisWriter":
        """Return a writer for one task."""
        return RedisWriter(self, schema)

    def open_epochs(self, split: Split, schema: Schema, *, name: str, token: Any) -> EpochWriter:
        """Return a writer of whole epochs."""
        return RedisEpochs(self, schema, name=name, token=token)

    def __repr__(self) -> str:
        return f"RedisSink({self.address!r}, prefix={self.prefix!r}, kind={self.kind!r})"

    def _check_options(self) -> None:
        if self.kind not in _KINDS:
            raise OptionError(
                f"kind is {self.kind!r}", remedy=f"use one of: {', '.join(map(repr, _KINDS))}"
            )
        if self.kind != "set" and not self.prefix:
            raise OptionError(
                f"kind {self.kind!r} needs a key to hold all rows", remedy="name it with prefix="
            )
        if self.maxlen is not None and (self.kind != "stream" or self.maxlen < 1):
            raise OptionError(
                f"maxlen={self.maxlen} with kind {self.kind!r} makes no sense",
                remedy="use it with kind='stream', and a number above zero",
            )
        if isinstance(self._url, str):
            check_scheme(self._url)


class RedisWriter(Writer):
    """A Redis, open for writing; see `RedisSink`."""

    def __init__(self, sink: RedisSink, schema: Schema) -> None:
        self._commands = Commands(sink, schema)
        # A list or stream grows by a whole chunk or not at all: fewer rows to be there twice.
        self._whole = sink.kind in ("list", "stream")
        self._connection = RedisConnection(sink)

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows; raise `Unavailable` with the number of those that are surely written."""
        for begin in range(0, len(rows), CHUNK):
            chunk = self._commands.encode(rows[begin : begin + CHUNK])
            self._connection.run(partial(self._send, chunk), taken=begin)

    def close(self) -> None:
        """Leave Redis."""
        self._connection.close()

    def _send(self, rows: Sequence[Encoded], redis: "Redis") -> None:
        with redis.pipeline(transaction=self._whole) as pipeline:
            self._commands.add(pipeline, rows)
            for answer in pipeline.execute(raise_on_error=False):
                if isinstance(answer, Exception):
                    raise answer
