"""Results to a function."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from floodway.connectors.base import Row, SinkConnector, Split, Unavailable, Writer
from floodway.connectors.lines import bare_values
from floodway.core.errors import ConnectorError
from floodway.core.functions import require_plain
from floodway.core.schema import Schema


@dataclass(frozen=True)
class CallbackSink(SinkConnector):
    """Calls a function with each result.

    The function travels to the tasks and runs there; what it changes in this process stays here. At
    least once: after a failure it may be called again with the same result. A function that cannot
    do its work now raises `floodway.connectors.base.Unavailable`, and is called again later.

    Parameters
    ----------
    function
        Takes a value. With `batches` it takes a list of rows ``(timestamp, key, value, id)``.
    batches
        Whether to call it once with many rows. A stream with updates needs it.

    Examples
    --------
    >>> writer = CallbackSink(print).open(Split(), Schema.of(str))
    >>> writer.write([(1, None, "hello", None)])
    hello
    """

    function: Callable[[Any], object]
    _: KW_ONLY
    batches: bool = False

    def __post_init__(self) -> None:
        require_plain(self.function, "callback")

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer that calls the function."""
        return _BatchWriter(self.function) if self.batches else _ValueWriter(self.function)


class _ValueWriter(Writer):
    def __init__(self, function: Callable[[Any], object]) -> None:
        self._function = function

    def write(self, rows: Sequence[Row]) -> None:
        values = bare_values(rows, "CallbackSink", remedy="pass batches=True and take rows")
        for number, value in enumerate(values):
            try:
                self._function(value)
            except Unavailable as away:
                raise Unavailable(away.reason, taken=number) from away
            except Exception as error:
                raise _failed(self._function, f"on {_short(value)}", error) from error


class _BatchWriter(Writer):
    def __init__(self, function: Callable[[Any], object]) -> None:
        self._function = function

    def write(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        try:
            self._function(list(rows))
        except Unavailable:
            raise
        except Exception as error:
            where = f"on {len(rows)} rows, the first of which is {_short(rows[0])}"
            raise _failed(self._function, where, error) from error


def _failed(function: Callable[..., object], where: str, error: Exception) -> ConnectorError:
    name = getattr(function, "__qualname__", repr(function))
    return ConnectorError(
        f"callback {name} failed {where}: {type(error).__name__}: {error}",
        remedy="let the callback take every value, or raise Unavailable to be called again later",
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
