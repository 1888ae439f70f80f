"""The cost model beside the engine: three flows, four batch sizes, predicted and measured.

Costs are found in a calibration with other batch sizes than those that are compared. Then each flow
runs as fast as it goes, with one task for each stage, and what it takes is compared with what the
model says of it.
"""

import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

import msgspec

import floodway as fw
from floodway.bench.micro import Machine
from floodway.connectors.discard import DiscardSink
from floodway.connectors.json_lines import JsonLinesSource
from floodway.provisioning.calibration.calibrating import calibrate, prepared
from floodway.provisioning.calibration.running import capacity
from floodway.provisioning.cost import Setting, predict

SIZES = (1, 10, 100, 1000)
ENDLESS = 1e12
"""More records per second than anything takes: then the capacity is what comes through."""

EVENTS = 20_000


class Event(fw.Record):
    """What all three flows read."""

    at: int
    ad: int
    kind: str
    text: str


class Compared(msgspec.Struct, frozen=True):
    """What a flow takes with a batch size, in records per second, and what was predicted."""

    flow: str
    b_out: int
    predicted: float
    measured: float
    bottleneck: str

    @property
    def error(self) -> float:
        """By which share the prediction is too high, or, below 0, too low."""
        return self.predicted / self.measured - 1


class CostFigures(msgspec.Struct, frozen=True):
    """All comparisons."""

    machine: Machine
    rows: list[Compared]

    @property
    def mean_error(self) -> float:
        """By which share predictions are off, on average."""
        return fmean(abs(row.error) for row in self.rows)


def hop(source: JsonLinesSource) -> fw.Flow:
    """Return a flow in which a hop is nearly everything."""
    flow = fw.Flow("hop")
    _events(flow, source).filter("ad >= 0", name="all").isolate().to(DiscardSink(), name="out")
    return flow


def windows(source: JsonLinesSource) -> fw.Flow:
    """Return a flow that counts per key and window."""
    flow = fw.Flow("windows")
    views = _events(flow, source).filter("kind <> 'buy'", name="views").group_by("ad")
    counts = views.window(fw.tumbling("1s")).count(name="counts")
    counts.changes(emit=fw.emit.after_window_end(), name="done").to(DiscardSink(), name="out")
    return flow


def words(source: JsonLinesSource) -> fw.Flow:
    """Return a flow that counts words: several records come out for each that goes in."""
    flow = fw.Flow("words")
    spoken = _events(flow, source).flat_map(_split, schema=str, name="split")
    counts = spoken.group_by("value").count(name="counts")
    counts.changes(emit=fw.emit.at_most_every("1s"), name="some").to(DiscardSink(), name="out")
    return flow


FLOWS: dict[str, Callable[[JsonLinesSource], fw.Flow]] = {
    "hop": hop,
    "windows": windows,
    "words": words,
}


def _events(flow: fw.Flow, source: JsonLinesSource) -> fw.Stream:
    return flow.source("events", source, schema=Event, timestamp="at")


def _split(event: Event) -> list[str]:
    return event.text.split(" ")


def write_events(path: Path, *, seed: int = 1) -> None:
    """Write a sample of events."""
    rng = random.Random(seed)
    events = [
        Event(
            number // 10,
            rng.randrange(500),
            rng.choice(("view", "click", "buy")),
            " ".join(f"word-{rng.randrange(200)}" for _ in range(5)),
        )
        for number in range(EVENTS)
    ]
    path.write_bytes(msgspec.json.Encoder().encode_lines(events))


def compare_costs(
    progress: Callable[[int, int, str], None] = lambda *_: None,
    *,
    flows: Sequence[str] = tuple(FLOWS),
    sizes: Sequence[int] = SIZES,
) -> CostFigures:
    """Calibrate each flow, and compare what it takes with what the model says."""
    machine, rows = Machine.here(), list[Compared]()
    steps = len(flows) * (1 + len(sizes))
    with tempfile.TemporaryDirectory(prefix="floodway-") as folder:
        file = Path(folder) / "events.jsonl"
        write_events(file)
        for name in flows:
            flow = FLOWS[name](JsonLinesSource(file))
            done = len(rows) + list(flows).index(name)
            progress(done, steps, f"{name}: what it costs")
            graph = calibrate(flow, fresh=True).graph
            running = prepared(flow, Path(folder), {})
            for b_out in sizes:
                done += 1
                progress(done, steps, f"{name}: batches of {b_out}")
                settings = {
                    op: Setting(1, None if graph.is_sink(op) else b_out) for op in graph.operators
                }
                found = predict(graph, dict.fromkeys(graph.sources, ENDLESS), settings)
                predicted = sum(found.throughput.values())
                held = next(iter(found.held_back_by.values()), graph.sources[0])
                rows.append(Compared(name, b_out, predicted, capacity(running, b_out), held))
    return CostFigures(machine, rows)
