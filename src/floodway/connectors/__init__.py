"""Connectors: where records come from and where results go, one file each.

Every connector and format can be taken from here. Its module is imported when it is first asked
for, so that a flow that reads lines does not load Parquet's library, nor a client of Kafka.

>>> from floodway.connectors import JsonLinesSource, StdoutSink
>>> JsonLinesSource.__module__
'floodway.connectors.json_lines'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from floodway.connectors.callback import CallbackSink
    from floodway.connectors.csv import CsvSource
    from floodway.connectors.discard import DiscardSink
    from floodway.connectors.formats import Bytes, Json, Msgpack, Text
    from floodway.connectors.json_lines import JsonLinesSink, JsonLinesSource
    from floodway.connectors.kafka import KafkaSink, KafkaSource
    from floodway.connectors.lists import ListSink, ListSource
    from floodway.connectors.parquet import ParquetSink, ParquetSource
    from floodway.connectors.rate import GeneratorSource, RateSource
    from floodway.connectors.redis import RedisSink
    from floodway.connectors.stdio import StdinSource, StdoutSink
    from floodway.connectors.tcp import TcpSink, TcpSource

__all__ = [
    "Bytes",
    "CallbackSink",
    "CsvSource",
    "DiscardSink",
    "GeneratorSource",
    "Json",
    "JsonLinesSink",
    "JsonLinesSource",
    "KafkaSink",
    "KafkaSource",
    "ListSink",
    "ListSource",
    "Msgpack",
    "ParquetSink",
    "ParquetSource",
    "RateSource",
    "RedisSink",
    "StdinSource",
    "StdoutSink",
    "TcpSink",
    "TcpSource",
    "Text",
]

_MODULES = {
    "callback": ("CallbackSink",),
    "csv": ("CsvSource",),
    "discard": ("DiscardSink",),
    "formats": ("Bytes", "Json", "Msgpack", "Text"),
    "json_lines": ("JsonLinesSink", "JsonLinesSource"),
    "kafka": ("KafkaSink", "KafkaSource"),
    "lists": ("ListSink", "ListSource"),
    "parquet": ("ParquetSink", "ParquetSource"),
    "rate": ("GeneratorSource", "RateSource"),
    "redis": ("RedisSink",),
    "stdio": ("StdinSource", "StdoutSink"),
    "tcp": ("TcpSink", "TcpSource"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Return a connector or format; import its module if nobody has."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found  # asked for once
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
