"""What can stand where a flow wants a connector."""

import inspect
from typing import Any

from floodway.connectors.base import SinkConnector, SourceConnector
from floodway.core.errors import OptionError

_KINDS: dict[type[Any], str] = {SourceConnector: "source", SinkConnector: "sink"}


def require_source(connector: Any) -> None:
    """Refuse what is no source connector; None is none, and a driver brings the records."""
    if connector is not None:
        _require(connector, SourceConnector)


def require_sink(connector: Any) -> None:
    """Refuse what is no sink connector."""
    _require(connector, SinkConnector)


def _require(connector: Any, wanted: type[Any]) -> None:
    if isinstance(connector, wanted):
        return
    kind = _KINDS[wanted]
    raise OptionError(
        f"{_shown(connector)} is no {kind} connector", remedy=_remedy(connector, wanted, kind)
    )


def _shown(connector: Any) -> str:
    if inspect.isclass(connector):
        return f"the class {connector.__name__}"
    return f"a {type(connector).__module__.partition('.')[0]} {type(connector).__name__}".replace(
        "a builtins ", "a "
    )


def _remedy(connector: Any, wanted: type[Any], kind: str) -> str:
    if inspect.isclass(connector) and issubclass(connector, wanted):
        return f"make one of it, e.g. {connector.__name__}(...)"
    if isinstance(connector, SourceConnector | SinkConnector):
        other = "source" if kind == "sink" else "sink"
        return f"it is a {other}; use the {kind} of the same system, if there is one"
    if type(connector).__name__ == "DataFrame":
        if kind == "source":
            return "write it to Parquet and read that with ParquetSource(path)"
        return "write to Parquet with ParquetSink(folder) and read that as a DataFrame"
    if isinstance(connector, list | tuple | range) and kind == "source":
        return "wrap it: floodway.connectors.ListSource([...])"
    if callable(connector) and kind == "sink":
        return "wrap it: CallbackSink(function)"
    return f"use one of floodway.connectors, or derive a {wanted.__name__}"
