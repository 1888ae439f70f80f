"""What users write: flows, streams, tables."""

from floodway.model.flow import Flow
from floodway.model.grouped import GroupedStream, GroupedTable, WindowedStream
from floodway.model.stream import Stream
from floodway.model.table import Table

__all__ = ["Flow", "GroupedStream", "GroupedTable", "Stream", "Table", "WindowedStream"]
