"""The scenarios: one of each kind of flow, small, and with an answer that is obviously right."""

from floodway.testing.simulation.bank import Bank
from floodway.testing.simulation.idleness import Backlog, RemoteBacklog
from floodway.testing.simulation.joins import (
    BroadcastLookup,
    LookupJoin,
    Preloaded,
    StreamJoin,
    TableJoin,
)
from floodway.testing.simulation.scenario import Scenario
from floodway.testing.simulation.streams import (
    AtLeastOnce,
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
)
"""One of each kind."""
