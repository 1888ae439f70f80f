"""What comes of a source's records, as a task takes them."""

from contextlib import closing
from typing import Any

from floodway import Flow
from floodway.connectors.base import Reader, SourceConnector, Split
from floodway.engine.program.intake import Intake
from floodway.operators.base import DEAD, MAIN
from floodway.operators.on_error import DeadLetter, OnError
from floodway.operators.source import Source


class Taken:
    """What came of a source's records: values, dead letters, and how many were skipped."""

    def __init__(self, reader: Reader, connector: SourceConnector, schema: Any, policy: OnError):
        stream = Flow("bad").source("bad", connector, schema=schema, on_error=policy)
        (operator,) = stream.flow.operators
        assert isinstance(operator, Source)
        ports: dict[str, list[Any]] = {MAIN: [], DEAD: []}
        intake = Intake([operator], [ports])
        self.count = 0
        while (raw := reader.poll(7)) is not None:
            self.count += intake.take(raw, 1, keyed=reader.keyed) if raw else 0
        self.values = [value for _, _, value in ports[MAIN]]
        self.letters: list[DeadLetter] = [letter for _, _, letter in ports[DEAD]]
        self.skipped: int = intake.handlers[0].skipped


def taken(connector: SourceConnector, schema: Any, policy: OnError = "dead_letter") -> Taken:
    """Read a source to its end."""
    with closing(connector.open(Split())) as reader:
        return Taken(reader, connector, schema, policy)
