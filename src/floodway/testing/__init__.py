"""Test a flow without Spark, without Java, on a clock of your own.

`Driver` runs a flow in process: push records, move time, read what comes out, look into
tables. `floodway.testing.strategies` has Hypothesis strategies for streams.
"""

from floodway.connectors.list_items import Abort, At, Delete, Emitted, End, Pause
from floodway.connectors.lists import ListSink, ListSource
from floodway.testing.clock import VirtualClock
from floodway.testing.driver import Driver, TableReader, run
from floodway.testing.equivalence import equivalent, fold, latest
from floodway.testing.runtime import Stats

__all__ = [
    "Abort",
    "At",
    "Delete",
    "Driver",
    "Emitted",
    "End",
    "ListSink",
    "ListSource",
    "Pause",
    "Stats",
    "TableReader",
    "VirtualClock",
    "equivalent",
    "fold",
    "latest",
    "run",
]
