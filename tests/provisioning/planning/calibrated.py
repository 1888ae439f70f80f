"""Flows whose costs are known, so that planning them measures nothing and is the same each time."""

from pathlib import Path

import pytest

from floodway.model.flow import Flow
from floodway.model.loading import load_flow
from floodway.plan.stages import Plan
from floodway.provisioning.calibration.describing import Calibrated
from floodway.provisioning.calibration.fitting import Estimate, Fitted
from floodway.provisioning.calibration.keeping import keep, key_of
from floodway.provisioning.cost import Connection

FLOW = """\
import floodway as fw
from floodway.connectors import JsonLinesSink, JsonLinesSource


class Event(fw.Record):
    ad: int
    kind: str
    at: int


flow = fw.Flow("planned")
events = flow.source("events", JsonLinesSource({folder!r} + "/in"), schema=Event, timestamp="at")
views = events.filter("kind = 'view'", name="views").group_by("ad")
counts = views.window(fw.tumbling("1s")).count(name="counts")
counts.changes(emit=fw.emit.after_window_end(), name="done").to(
    JsonLinesSink({folder!r} + "/out"), name="out"
)
"""


def write_flow(folder: Path, monkeypatch: pytest.MonkeyPatch, *, most: int = 8) -> str:
    """Write a flow of two stages whose costs are known; return its name."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    file = folder / f"planned_{folder.name.replace('-', '_')}.py"
    file.write_text(FLOW.format(folder=str(folder)))
    know_costs(load_flow(str(file)), most=most)
    return str(file)


def know_costs(flow: Flow, *, most: int) -> None:
    """Keep costs of a flow, as if they had been measured; its sources have `most` parts."""
    plan = Plan.of(flow)
    found = Calibrated(
        flow=flow.name,
        machine="a machine",
        date="a day",
        costs={"events": costs(1000, emit=2600, out=0.5), "counts": costs(3000, fetch=7400)},
        connections=[Connection("events", "counts", "hash")],
        most={"events": most},
        mix={"events": 1.0},
    )
    keep(key_of(flow, plan, []), found)


def costs(cpu: float, *, fetch: float = 0.0, emit: float = 0.0, out: float = 0.0) -> Fitted:
    """Return the costs of a stage."""
    return Fitted(
        c_cpu_ns=exactly(cpu),
        c_fetch_ns=exactly(fetch),
        c_emit_ns=exactly(emit),
        selectivity=exactly(out),
        record_bytes=32.0,
        error=0.05,
        records=100_000,
    )


def exactly(value: float) -> Estimate:
    """Return an estimate that leaves nothing open."""
    return Estimate(value, value, value)
