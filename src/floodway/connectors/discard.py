"""A sink that takes everything and keeps nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from floodway.connectors.base import Delivery, Row, SinkConnector, Split, Writer
from floodway.core.schema import Schema


@dataclass(frozen=True)
class DiscardSink(SinkConnector):
    """Takes records and forgets them: to measure a flow, or to run one for its side effects.

    Examples
    --------
    >>> from floodway.core.schema import Schema
    >>> writer = DiscardSink().open(Split(), Schema.of(int))
    >>> writer.write([(0, None, 1, None)])
    """

    eager: ClassVar[Delivery] = "exactly once"  # nothing is shown, and nothing twice

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer that does nothing."""
        return _DiscardWriter()


class _DiscardWriter(Writer):
    def write(self, rows: Sequence[Row]) -> None:
        """Forget the rows."""
