"""Write results to Redis: the latest value of each key, or every row in a list or stream."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from floodway.connectors.base import Format, Row, SinkConnector, Split, Unavailable, Writer
from floodway.connectors.extras import hide, load_extra
from floodway.connectors.formats import Json, Text
from floodway.connectors.keys import key_encoder
from floodway.core.duration import Duration, to_ms
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema

if TYPE_CHECKING:
    from redis import Redis
    from redis.client import Pipeline

Kind = Literal["set", "hash", "list", "stream"]
"""What rows become in Redis."""

_KINDS = ("set", "hash", "list", "stream")
_SCHEMES = ("redis", "rediss", "unix")
_CHUNK = 1000  # rows per round trip
_ANSWER_SECONDS = 5.0


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

    Parameters
    ----------
    url
        Where Redis is, for example ``"redis://:password@127.0.0.1:6379/0"``. Name and password
        are never shown.
    host, port
        The same without a password and for database 0, if there is no `url`.
    prefix
        What stands before each key; for ``"hash"``, ``"list"`` and ``"stream"`` the name of the
        one key that holds all.
    kind
        What rows become, see above.
    ttl
        How long a value stays after it was written, or all of a hash, list or stream after the
        last row; for good if not given.
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

    def __init__(
        self,
        url: str | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 6379,
        prefix: str = "",
        kind: Kind = "set",
        ttl: Duration | None = None,
        maxlen: int | None = None,
        format: Format | None = None,
    ) -> None:
        self._url = url if url is not None else f"redis://{host}:{port}/0"
        self.prefix = prefix
        self.kind = kind
        self.ttl_ms = None if ttl is None else to_ms(ttl, what="ttl")
        self.maxlen = maxlen
        self.format = format or Json()
        self._check_options()

    @property
    def address(self) -> str:
        """Where Redis is, without name and password."""
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def check(self) -> None:
        """Refuse a Redis that does not answer within five seconds or does not let us in."""
        connection = _Connection(self)
        try:
            connection.run(lambda redis: redis.ping())
        except Unavailable as away:
            raise ConnectorError(
                f"no Redis answers at {self.address}: {away.reason}",
                remedy="start the server, or correct the address",
            ) from None
        finally:
            connection.close()

    def open(self, split: Split, schema: Schema) -> "RedisWriter":
        """Return a writer for one task."""
        return RedisWriter(self, schema)

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
        if urlsplit(self._url).scheme not in _SCHEMES:
            raise OptionError(
                "the address of Redis has no known scheme",
                remedy="write redis://host:port/0, rediss:// for TLS, or unix:///path",
            )


class RedisWriter(Writer):
    """A Redis, open for writing; see `RedisSink`."""

    def __init__(self, sink: RedisSink, schema: Schema) -> None:
        self._sink = sink
        self._encode = sink.format.encoder(schema)
        self._encode_key = key_encoder(Text())
        self._prefix = sink.prefix.encode()
        self._add = getattr(self, f"_add_{sink.kind}")
        # A list or stream grows by a whole chunk or not at all: fewer rows to be there twice.
        self._whole = sink.kind in ("list", "stream")
        self._connection = _Connection(sink)

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows; raise `Unavailable` with the number of those that are surely written."""
        for begin in range(0, len(rows), _CHUNK):
            chunk = rows[begin : begin + _CHUNK]
            self._connection.run(partial(self._send, chunk), taken=begin)

    def close(self) -> None:
        """Leave Redis."""
        self._connection.close()

    def _send(self, rows: Sequence[Row], redis: "Redis") -> None:
        with redis.pipeline(transaction=self._whole) as pipeline:
            self._add(pipeline, rows)
            if self._sink.kind != "set" and self._sink.ttl_ms is not None:
                pipeline.pexpire(self._prefix, self._sink.ttl_ms)
            for answer in pipeline.execute(raise_on_error=False):
                if isinstance(answer, Exception):
                    raise answer

    def _add_set(self, pipeline: "Pipeline", rows: Sequence[Row]) -> None:
        for key, value in self._latest(rows).items():
            if value is None:
                pipeline.delete(self._prefix + key)
            else:
                pipeline.set(self._prefix + key, self._encode(value), px=self._sink.ttl_ms)

    def _add_hash(self, pipeline: "Pipeline", rows: Sequence[Row]) -> None:
        latest = self._latest(rows)
        there: dict[Any, Any] = {
            key: self._encode(value) for key, value in latest.items() if value is not None
        }
        gone = [key for key, value in latest.items() if value is None]
        if there:
            pipeline.hset(self._prefix, mapping=there)
        if gone:
            pipeline.hdel(self._prefix, *gone)

    def _add_list(self, pipeline: "Pipeline", rows: Sequence[Row]) -> None:
        if any(row[2] is None for row in rows):
            raise ConnectorError(
                "a Redis list has no place for a deletion",
                remedy="use kind='set' or 'hash' for tables, or kind='stream' for their changes",
            )
        pipeline.rpush(self._prefix, *[self._encode(row[2]) for row in rows])

    def _add_stream(self, pipeline: "Pipeline", rows: Sequence[Row]) -> None:
        for timestamp, key, value, _ in rows:
            fields: dict[Any, Any] = {b"timestamp": timestamp}
            if key is not None:
                fields[b"key"] = self._encode_key(key)
            if value is not None:
                fields[b"value"] = self._encode(value)
            pipeline.xadd(self._prefix, fields, maxlen=self._sink.maxlen, approximate=True)

    def _latest(self, rows: Sequence[Row]) -> dict[bytes, Any]:
        latest: dict[bytes, Any] = {}
        for _, key, value, _ in rows:
            raw = self._encode_key(key)
            if raw is None:
                raise ConnectorError(
                    f"a row without a key cannot go to a Redis {self._sink.kind}",
                    remedy="use key_by before the sink, or kind='list' or 'stream'",
                )
            latest[raw] = value
        return latest


class _Connection:
    """One connection to Redis, made anew after it was lost, and what its errors mean."""

    def __init__(self, sink: RedisSink) -> None:
        library: Any = load_extra("redis", "redis")
        self._errors: Any = library.exceptions
        self._sink = sink
        url = sink._url  # noqa: SLF001 - private, so that it is not shown
        self._secrets = _secrets(url)
        try:
            self._redis: Redis = library.Redis.from_url(
                url,
                socket_timeout=_ANSWER_SECONDS,
                socket_connect_timeout=_ANSWER_SECONDS,
                # Whoever runs the writer tries again; here it would write rows twice unnoticed.
                retry=library.retry.Retry(library.backoff.NoBackoff(), 0),
            )
        except (ValueError, TypeError) as error:
            raise ConnectorError(
                f"{sink.address} is no address of a Redis: {self._hide(error)}",
                remedy="write it as redis://host:port/0",
            ) from None

    def run(self, work: "Callable[[Redis], Any]", *, taken: int = 0) -> None:
        """Do something with Redis; raise `Unavailable` if it may work later."""
        errors = self._errors
        try:
            work(self._redis)
        except (errors.AuthenticationError, errors.AuthorizationError, errors.NoPermissionError):
            raise ConnectorError(
                f"Redis at {self._sink.address} does not let us in",
                remedy="correct name and password in the address, or the rights of that user",
            ) from None
        except (
            errors.ConnectionError,
            errors.TimeoutError,
            errors.ReadOnlyError,
            errors.OutOfMemoryError,
            OSError,
        ) as error:
            raise Unavailable(f"Redis: {self._hide(error)}", taken=taken) from None
        except errors.RedisError as error:
            raise self._refused(error) from None

    def close(self) -> None:
        self._redis.close()

    def _refused(self, error: Exception) -> ConnectorError:
        remedy = "correct the sink's options"
        if "WRONGTYPE" in str(error):
            remedy = f"use another prefix=, or remove what is there and no {self._sink.kind}"
        return ConnectorError(
            f"Redis at {self._sink.address} refuses rows: {self._hide(error)}", remedy=remedy
        )

    def _hide(self, error: Exception) -> str:
        return hide(str(error), self._secrets)


def _secrets(url: str) -> list[str]:
    """Return what of an address must not be shown: the password, however it is written."""
    parts = urlsplit(url)
    raw = [parts.password or "", *parse_qs(parts.query).get("password", [])]
    return [form for secret in raw for form in (secret, unquote(secret)) if form]
