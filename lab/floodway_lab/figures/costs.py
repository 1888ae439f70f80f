"""The cost model beside the engine: three flows, four batch sizes, predicted and measured.

Each flow runs as fast as it goes, with one task for each stage. In turns, batches have the sizes
that costs are found with, and those for which what comes through is compared with what the model
says. Both are in one run because on a machine that others share a run is up to a quarter faster
than the next: that would be an error of the machine, and not of the model. It is done several
times, since a run has only so many turns.
"""

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from statistics import fmean
from typing import Self

import msgspec

import floodway as fw
from floodway.connectors.discard import DiscardSink
from floodway.connectors.json_lines import JsonLinesSource
from floodway.plan.stages import Plan
from floodway.provisioning.calibration.calibrating import prepared
from floodway.provisioning.calibration.describing import describe
from floodway.provisioning.calibration.running import Measured, measure
from floodway.provisioning.cost import CostGraph, Setting, predict
from floodway_lab.figures.machine import Machine

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
    """What a flow takes with a batch size, in records per second, and what was predicted.

    Attributes
    ----------
    predicted, measured
        By the costs that all rounds have shown, and the mean of all rounds.
    error
        By which share the prediction is too high, or, below 0, too low.
    bottleneck
        What limits it, by the model.
    rounds
        What was measured each time.
    """

    flow: str
    b_out: int
    predicted: float
    measured: float
    error: float
    bottleneck: str
    rounds: list[float]

    @classmethod
    def of(
        cls, flow: str, b_out: int, predicted: float, rounds: list[float], bottleneck: str
    ) -> Self:
        """Make it of what was predicted, and measured each time.

        >>> row = Compared.of("hop", 10, 100.0, [100.0, 150.0], "hop")
        >>> row.measured, row.error
        (125.0, -0.2)
        """
        measured = fmean(rounds)
        error = round(predicted / measured - 1, 4)
        return cls(flow, b_out, predicted, measured, error, bottleneck, rounds)


class CostFigures(msgspec.Struct, frozen=True):
    """All comparisons, and by which share predictions are off, on average."""

    machine: Machine
    rows: list[Compared]
    mean_error: float


def hop(source: JsonLinesSource) -> fw.Flow:
    """Return a flow in which a hop is nearly everything."""
    flow = fw.Flow("hop")
    spread = _events(flow, source).rebalance(name="spread")
    spread.filter("ad >= 0", name="all").to(DiscardSink(), name="out")
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
    rounds: int = 4,
) -> CostFigures:
    """Find what each flow costs, and compare what it takes with what the model says."""
    machine, rows = Machine.here(), list[Compared]()
    with tempfile.TemporaryDirectory(prefix="floodway-") as folder:
        file = Path(folder) / "events.jsonl"
        write_events(file)
        for number, name in enumerate(flows):
            flow = FLOWS[name](JsonLinesSource(file))
            running, found = prepared(flow, Path(folder), {}), list[Measured]()
            for turn in range(rounds):
                done = number * rounds + turn
                progress(done, rounds * len(flows), f"{name}: round {turn + 1}")
                found.append(measure(running, also=sizes))
            rows += _compared(name, Plan.of(flow), found)
    return CostFigures(machine, rows, fmean(abs(row.error) for row in rows))


def _compared(name: str, plan: Plan, rounds: Sequence[Measured]) -> Iterator[Compared]:
    """Yield a row for each batch size that was tried while costs were measured."""
    known = describe(plan, reduce(add, rounds), machine="", date="").graph
    for b_out in rounds[0].rates:
        predicted, limit = _predicted(known, b_out)
        measured = [fmean(each.rates[b_out]) for each in rounds if each.rates[b_out]]
        if measured:
            yield Compared.of(name, b_out, predicted, measured, limit)


def _predicted(graph: CostGraph, b_out: int) -> tuple[float, str]:
    """Return what comes through with batches of a size, and which stage limits that."""
    settings = {op: Setting(1, None if graph.is_sink(op) else b_out) for op in graph.operators}
    found = predict(graph, dict.fromkeys(graph.sources, ENDLESS), settings)
    held = next(iter(found.held_back_by.values()), graph.sources[0])
    return sum(found.throughput.values()), held
