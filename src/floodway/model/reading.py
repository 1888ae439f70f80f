"""What a source's columns say of each record before any operator has it: its time and its key."""

from inspect import isfunction
from typing import TYPE_CHECKING, Any, get_origin

from floodway.core.errors import ExpressionTypeError, OptionError
from floodway.core.schema import Schema
from floodway.core.types import Field, IntegerType, LongType, OpaqueType, TimestampType
from floodway.model.build import Builder, UserCode, check_key
from floodway.model.timing import IngestionTime
from floodway.operators.base import Key, Output
from floodway.operators.code import Snippet

if TYPE_CHECKING:
    from floodway.model.flow import Flow


def timestamp_of(
    flow: "Flow", build: Builder, schema: Schema, code: UserCode | IngestionTime | None
) -> Snippet | None:
    """Return what gives a record's event time; None if that is not in its columns."""
    if code is None or isinstance(code, IngestionTime):
        return None
    snippet = _over(flow, build, schema).snippet(code)
    kinds = (IntegerType, LongType, TimestampType, OpaqueType)
    if not isinstance(snippet.schema.type, kinds):
        raise ExpressionTypeError(
            f"the timestamp {snippet.text!r} is {snippet.schema.type}",
            remedy="give milliseconds (BIGINT) or a TIMESTAMP, e.g. to_timestamp(...)",
        )
    return snippet


def table_key(
    flow: "Flow", build: Builder, schema: Schema, key: Any
) -> tuple[tuple[Snippet, ...], Key]:
    """Return what gives an update's key, which is nothing if it brings one, and the key."""
    parts = list(key) if isinstance(key, list | tuple) else [key]
    if parts and all(isinstance(part, str) or isfunction(part) for part in parts):
        return _over(flow, build, schema).key(parts)
    described = Schema.of(key)
    if not isinstance(key, type) and described.opaque and get_origin(key) is None:
        raise OptionError(
            f"{key!r} cannot be a table's key",
            remedy="give a column, an expression, a function, a list of them, or a type",
        )
    check_key(str(key), described.type)
    return (), Key((Field("key", described.type, described.nullable),))


class _SchemaBuilder(Builder):
    """A builder over a schema that no operator has yet: a source's own."""

    own: Output

    @property
    def output(self) -> Output:
        """What the source is about to bring."""
        return self.own


def _over(flow: "Flow", build: Builder, schema: Schema) -> Builder:
    over = _SchemaBuilder(flow, build.name, name=build.name, stable=True)
    over.own = Output("records", schema)
    return over
