"""The scenarios: one of each kind of flow, small, and with an answer that is obviously right."""

from floodway_lab.simulation.bank import Bank
from floodway_lab.simulation.idleness import Backlog, RemoteBacklog
from floodway_lab.simulation.joins import (
    BroadcastLookup,
    LookupJoin,
    Preloaded,
    StreamJoin,
    TableJoin,
)
from floodway_lab.simulation.scenario import Scenario
from floodway_lab.simulation.streams import (
    AtLeastOnce,
    Confluence,
    FanOut,
    KeyedCount,
    LargeState,
    Processing,
    Sessions,
    Stateless,
    WindowedCounts,
    WindowProcess,
)

SCENARIOS: tuple[Scenario, ...] = (
    Stateless(),
    KeyedCount(),
    WindowedCounts(),
    StreamJoin(),
    LookupJoin(),
    FanOut(),
    Processing(),
    Preloaded(),
    Sessions(),
    WindowProcess(),
    AtLeastOnce(),
    BroadcastLookup(),
    TableJoin(),
    LargeState(),
    Backlog(),
    RemoteBacklog(),
    Bank(),
    Confluence(),
)
"""One of each kind."""
