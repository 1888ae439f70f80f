"""What is sent to Redis, and how."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from floodway.connectors.base import Row, Unavailable
from floodway.connectors.extras import hide, load_extra
from floodway.connectors.formats import Text
from floodway.connectors.keys import key_encoder
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema
from floodway.core.secret import Secret, revealed

if TYPE_CHECKING:
    from redis import Redis
    from redis.client import Pipeline

    from floodway.connectors.redis import RedisSink

CHUNK = 1000
"""So many rows go into one command, where a command takes many, or into one round trip."""

_ANSWER_SECONDS = 5.0
_SCHEMES = ("redis", "rediss", "unix")

Encoded = tuple[int, bytes | None, bytes | None]
"""Timestamp, key and value of a row, as they go out."""


class Commands:
    """What rows become in Redis, as the sink wants it."""

    def __init__(self, sink: "RedisSink", schema: Schema) -> None:
        self._kind = sink.kind
        self._prefix = sink.prefix.encode()
        self._ttl_ms = sink.ttl_ms
        self._maxlen = sink.maxlen
        self._encode = sink.format.encoder(schema)
        self._encode_key = key_encoder(Text())
        self._add = getattr(self, f"_add_{sink.kind}")

    def encode(self, rows: Sequence[Row]) -> list[Encoded]:
        """Return rows as they go out; refuse those for which the kind has no place."""
        encoded = [
            (time, self._encode_key(key), None if value is None else self._encode(value))
            for time, key, value, _ in rows
        ]
        if self._kind in ("set", "hash") and any(key is None for _, key, _ in encoded):
            raise ConnectorError(
                f"a row without a key cannot go to a Redis {self._kind}",
                remedy="use key_by before the sink, or kind='list' or 'stream'",
            )
        if self._kind == "list" and any(value is None for _, _, value in encoded):
            raise ConnectorError(
                "a Redis list has no place for a deletion",
                remedy="use kind='set' or 'hash' for tables, or kind='stream' for their changes",
            )
        return encoded

    def add(self, pipeline: "Pipeline", rows: Sequence[Encoded]) -> None:
        """Add the commands for rows to a pipeline."""
        self._add(pipeline, rows)
        if self._kind != "set" and self._ttl_ms is not None:
            pipeline.pexpire(self._prefix, self._ttl_ms)

    def fits(self, redis: "Redis") -> bool:
        """Return whether the one key that holds all rows is free, or is of the right kind."""
        found: Any = redis.type(self._prefix) if self._kind != "set" else b"none"
        return found in (b"none", "none", self._kind.encode(), self._kind)

    def _add_set(self, pipeline: "Pipeline", rows: Sequence[Encoded]) -> None:
        for key, value in _latest(rows).items():
            if value is None:
                pipeline.delete(self._prefix + key)
            else:
                pipeline.set(self._prefix + key, value, px=self._ttl_ms)

    def _add_hash(self, pipeline: "Pipeline", rows: Sequence[Encoded]) -> None:
        latest = _latest(rows)
        there: list[Any] = [part for item in latest.items() if item[1] is not None for part in item]
        gone = [key for key, value in latest.items() if value is None]
        for chunk in _chunks(there, 2 * CHUNK):
            pipeline.hset(self._prefix, items=chunk)
        for chunk in _chunks(gone, CHUNK):
            pipeline.hdel(self._prefix, *chunk)

    def _add_list(self, pipeline: "Pipeline", rows: Sequence[Encoded]) -> None:
        for chunk in _chunks([value for _, _, value in rows], CHUNK):
            pipeline.rpush(self._prefix, *chunk)

    def _add_stream(self, pipeline: "Pipeline", rows: Sequence[Encoded]) -> None:
        for timestamp, key, value in rows:
            fields: dict[Any, Any] = {b"timestamp": timestamp}
            if key is not None:
                fields[b"key"] = key
            if value is not None:
                fields[b"value"] = value
            pipeline.xadd(self._prefix, fields, maxlen=self._maxlen, approximate=True)


def _latest(rows: Sequence[Encoded]) -> dict[bytes, bytes | None]:
    return {key: value for _, key, value in rows if key is not None}


def _chunks(items: list[Any], size: int) -> Iterable[list[Any]]:
    return (items[begin : begin + size] for begin in range(0, len(items), size))


class RedisConnection:
    """One connection to Redis, made anew after it was lost, and what its errors mean."""

    def __init__(self, sink: "RedisSink") -> None:
        library: Any = load_extra("redis", "redis")
        self.errors: Any = library.exceptions
        self._sink = sink
        url, username, password = map(revealed, sink.credentials())
        whole = [url] if isinstance(sink.credentials()[0], Secret) else []
        self._secrets = [*whole, *secrets_in(url), *([password] if password else [])]
        check_scheme(url)
        try:
            self._redis: Redis = library.Redis.from_url(
                url,
                username=username,
                password=password,
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
        errors = self.errors
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
        """Leave Redis."""
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


def check_scheme(url: str) -> None:
    """Refuse an address that is none of a Redis."""
    if urlsplit(url).scheme not in _SCHEMES:
        raise OptionError(
            "the address of Redis has no known scheme",
            remedy="write redis://host:port/0, rediss:// for TLS, or unix:///path",
        )


def secrets_in(url: str) -> list[str]:
    """Return what of an address must not be shown: the password, however it is written."""
    parts = urlsplit(url)
    raw = [parts.password or "", *parse_qs(parts.query).get("password", [])]
    return [form for secret in raw for form in (secret, unquote(secret)) if form]
